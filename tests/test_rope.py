"""Rotary positions: golden outputs, exact angles, gradients, decoding, state."""

import copy
import io
import math
import pickle
import time

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from apex_lessons.norm import rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    rotate_pairs,
    wavelengths,
)
from apex_lessons.yarn import ScaledFrequencies, position_interpolation, yarn
from tests import oracles

GOLDEN = oracles.golden("rotation-and-norm.json")
INPUTS = GOLDEN["rope_inputs"]
LAYOUTS = ["interleaved", "half"]
DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
OFFSET_1000 = "bf16 rotary-embedding-torch, offset 1000 (BUG: bf16 positions collapse)"
DEINTERLEAVED = "hf_deepseek_v3 interleaved-in, half-out"
FAR = [131_071, 1_000_000, 10_000_000]


def golden_input(name, case, dtype):
    suffix = "_bf16" if dtype == torch.bfloat16 else ""
    if len(case["q_out"]) == 192:
        return torch.tensor(INPUTS["q64"]).view(1, 1, 3, 64)
    values = torch.tensor(INPUTS[name + suffix], dtype=torch.float32).to(dtype)
    return values.view(INPUTS["shape_" + name])


def golden_rope(name, case):
    """The module that does what the golden case's library did."""
    layout = "interleaved" if "interleaved" in case["layout"] else "half"
    if name.startswith("gpt-oss"):
        scaling = yarn(64, base=150_000, factor=32, trained_length=4096, truncate=False)
        return RotaryEmbedding(64, base=150_000, layout=layout, scaling=scaling)
    return RotaryEmbedding(
        INPUTS["dim"],
        base=INPUTS["base"],
        layout=layout,
        rotary_dim=case.get("rotary_dim"),
    )


def rotated_like(name, case):
    dtype = torch.bfloat16 if name.startswith("bf16") else torch.float32
    q = golden_input("q", case, dtype)
    k = golden_input("k", case, dtype) if "k_out" in case else q
    positions = torch.tensor(case["positions"])
    return golden_rope(name, case)(q, k, positions), (q, k)


# --- golden outputs ---


@pytest.mark.parametrize("name", [n for n in GOLDEN["rope"] if n != OFFSET_1000])
def test_golden_rotation(name):
    case = GOLDEN["rope"][name]
    (q, k), inputs = rotated_like(name, case)
    # The library's own error: float32 angles far out, coarse bfloat16 tables.
    atol = 0.02 if name.startswith("bf16") else 1.2e-6
    for got, key in ((q, "q_out"), (k, "k_out")):
        if key not in case:
            continue
        if name == DEINTERLEAVED:
            got = got[..., [0, 2, 4, 6, 1, 3, 5, 7]]
        want = torch.tensor(case[key], dtype=torch.float64).view(got.shape)
        torch.testing.assert_close(got.double(), want, rtol=0, atol=atol)


@pytest.mark.parametrize("name", GOLDEN["rope"])
def test_golden_inputs_rotated_exactly(name):
    """Closer to float64 than any of the libraries: one rounding of the true value."""
    case = GOLDEN["rope"][name]
    got, inputs = rotated_like(name, case)
    module = golden_rope(name, case)
    for y, x in zip(got, inputs, strict=True):
        exact = oracles.rotate(
            x,
            case["positions"],
            module.inv_freq,
            module.layout,
            module.attention_factor,
        )
        assert y.dtype == x.dtype
        if x.dtype == torch.bfloat16:
            oracles.assert_rounded_once(y, exact, slack=1e-6)
        else:
            torch.testing.assert_close(y.double(), exact, rtol=0, atol=4e-7)


def test_golden_fault_of_half_precision_positions_is_not_ours():
    (q, _), _ = rotated_like(OFFSET_1000, GOLDEN["rope"][OFFSET_1000])
    theirs = torch.tensor(GOLDEN["rope"][OFFSET_1000]["q_out"]).view(q.shape)
    assert (q.float() - theirs).abs().max() > 1.0


# --- frequencies and wavelengths ---


@pytest.mark.parametrize(
    "dim, base", [(2, 1e4), (8, 1e4), (128, 5e5), (64, 1.0001), (256, 1e7)]
)
def test_inverse_frequencies(dim, base):
    got = inverse_frequencies(dim, base)
    assert got.dtype == torch.float64 and got.device.type == "cpu"
    assert got[0].item() == 1.0 and got.shape == (dim // 2,)
    want = torch.tensor(oracles.plain_frequencies(dim, base), dtype=torch.float64)
    torch.testing.assert_close(got, want, rtol=1e-14, atol=0)


def test_default_base_and_a_whole_number_base():
    assert torch.equal(inverse_frequencies(64), inverse_frequencies(64, 10_000))


def test_wavelengths():
    got = wavelengths(torch.tensor([1.0, 0.5, 0.0], dtype=torch.float64))
    assert got.dtype == torch.float64
    assert got.tolist() == [2 * math.pi, 4 * math.pi, math.inf]


# --- tables ---


@pytest.mark.parametrize("dim, base", [(128, 1e4), (64, 1e6)])
@pytest.mark.parametrize("position", FAR)
def test_tables_far_out_are_right_to_float32(position, dim, base):
    """float32 angles, as most libraries have them, are off by 0.06 at a million."""
    positions = [position - 1, position]
    cos, sin = rotary_tables(torch.tensor(positions), inverse_frequencies(dim, base))
    assert cos.dtype == sin.dtype == torch.float32
    exact_cos, exact_sin = oracles.exact_tables(positions, dim, base)
    assert (cos.double() - exact_cos).abs().max() <= 6e-8
    assert (sin.double() - exact_sin).abs().max() <= 6e-8


@pytest.mark.parametrize("dtype", DTYPES)
def test_tables_of_each_dtype_are_rounded_once(dtype):
    positions = list(range(0, 131_072, 4111))
    inv_freq = inverse_frequencies(64)
    for got, exact in zip(
        rotary_tables(torch.tensor(positions), inv_freq, dtype=dtype),
        oracles.exact_tables(positions, 64, 1e4),
        strict=True,
    ):
        assert got.dtype == dtype
        # float64 angles at 131,071 are themselves exact to 2e-11 only.
        oracles.assert_rounded_once(got, exact, slack=3e-11) if (
            dtype != torch.float64
        ) else torch.testing.assert_close(got, exact, rtol=0, atol=1e-10)


def test_positions_that_float32_cannot_tell_apart():
    positions = [2**24, 2**24 + 1]
    cos, _ = rotary_tables(torch.tensor(positions), inverse_frequencies(8))
    exact, _ = oracles.exact_tables(positions, 8, 1e4)
    assert (cos.double() - exact).abs().max() <= 6e-8
    assert cos[0, 0] != cos[1, 0]


def test_tables_carry_the_attention_factor():
    positions, inv_freq = torch.arange(7), inverse_frequencies(8)
    plain = rotary_tables(positions, inv_freq, dtype=torch.float64)
    factored = rotary_tables(
        positions, inv_freq, attention_factor=1.25, dtype=torch.float64
    )
    for one, other in zip(plain, factored, strict=True):
        torch.testing.assert_close(other, one * 1.25, rtol=1e-15, atol=0)


def test_tables_of_batched_positions_are_those_of_each_row():
    positions = torch.tensor([[0, 0, 1, 2], [5, 6, 7, 100_000]])
    inv_freq = inverse_frequencies(8)
    cos, sin = rotary_tables(positions, inv_freq)
    assert cos.shape == sin.shape == (2, 4, 4)
    for row in range(2):
        want_cos, want_sin = rotary_tables(positions[row], inv_freq)
        assert torch.equal(cos[row], want_cos) and torch.equal(sin[row], want_sin)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.int64,
        torch.int32,
        torch.int16,
        torch.int8,
        torch.uint8,
        torch.uint16,
        torch.uint32,
        torch.uint64,
    ],
)
def test_any_integer_dtype_counts_the_same(dtype):
    positions, inv_freq = torch.arange(100), inverse_frequencies(8)
    for one, other in zip(
        rotary_tables(positions, inv_freq),
        rotary_tables(positions.to(dtype), inv_freq),
        strict=True,
    ):
        assert torch.equal(one, other)


def test_tables_of_no_positions():
    cos, sin = rotary_tables(torch.arange(0), inverse_frequencies(8))
    assert cos.shape == sin.shape == (0, 4)
    assert rotary_tables(torch.zeros(2, 0, dtype=torch.long), inverse_frequencies(8))[
        0
    ].shape == (2, 0, 4)


# --- rotation ---


def test_rotate_pairs():
    x = torch.arange(1.0, 9.0).view(2, 4)
    assert rotate_pairs(x).tolist() == [[-2, 1, -4, 3], [-6, 5, -8, 7]]
    assert torch.equal(rotate_pairs(rotate_pairs(x)), -x)


def test_rotation_by_the_reference_formula():
    """x cos + rotate_pairs(x) sin with each table entry twice: section 4.4."""
    x = oracles.normal(1, 2, 5, 8, dtype=torch.float64)
    cos, sin = rotary_tables(
        torch.arange(5), inverse_frequencies(8), dtype=torch.float64
    )
    twice = [table.repeat_interleave(2, dim=-1) for table in (cos, sin)]
    want = x * twice[0] + rotate_pairs(x) * twice[1]
    torch.testing.assert_close(apply_rotary(x, cos, sin), want, rtol=0, atol=1e-14)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("batched", [False, True])
def test_rotation_by_2x2_matrices(layout, width, batched):
    x = oracles.normal(2, 3, 5, 8, dtype=torch.float64)
    positions = torch.arange(3, 8)
    if batched:
        positions = torch.stack([positions, positions * 1000])
    inv_freq = inverse_frequencies(width)
    cos, sin = rotary_tables(positions, inv_freq, dtype=torch.float64)
    got = apply_rotary(x, cos, sin, layout=layout)
    want = oracles.rotate(x, positions, inv_freq, layout)
    torch.testing.assert_close(got, want, rtol=0, atol=1e-12)
    assert torch.equal(got[..., width:], x[..., width:])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rotation_keeps_the_dtype_and_rounds_once(layout, dtype):
    """bf16 tables, or bf16 arithmetic, move more than half of the elements."""
    x = oracles.normal(2, 4, 33, 64, dtype=dtype)
    module = RotaryEmbedding(64, layout=layout)
    positions = torch.arange(4000, 4033)
    y, _ = module(x, x, positions)
    assert y.dtype == dtype
    exact = oracles.rotate(x, positions, module.inv_freq, layout)
    if dtype == torch.float64:
        torch.testing.assert_close(y, exact, rtol=0, atol=1e-11)
    elif dtype == torch.float32:
        torch.testing.assert_close(y.double(), exact, rtol=0, atol=1e-6)
    else:
        oracles.assert_rounded_once(y, exact, slack=1.5e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_q_and_k_of_different_dtypes_keep_theirs(layout):
    q, k = oracles.normal(1, 2, 5, 8), oracles.normal(1, 1, 5, 8, dtype=torch.bfloat16)
    turned_q, turned_k = RotaryEmbedding(8, layout=layout)(q, k)
    assert (turned_q.dtype, turned_k.dtype) == (torch.float32, torch.bfloat16)


@pytest.mark.parametrize("x_dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("table_dtype", DTYPES)
def test_tables_of_another_dtype_do_not_change_the_output_dtype(x_dtype, table_dtype):
    x = oracles.normal(1, 2, 5, 8, dtype=x_dtype)
    cos, sin = rotary_tables(torch.arange(5), inverse_frequencies(8), dtype=table_dtype)
    for layout in LAYOUTS:
        got = apply_rotary(x, cos, sin, layout=layout)
        assert got.dtype == x_dtype
        want = oracles.rotate(x, range(5), inverse_frequencies(8), layout)
        torch.testing.assert_close(got.double(), want, rtol=0, atol=0.03)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("seq", [0, 1, 2, 17])
@pytest.mark.parametrize("batch", [0, 1, 3])
def test_lengths_and_empty_input(layout, seq, batch):
    q, k = oracles.normal(batch, 4, seq, 8), oracles.normal(batch, 2, seq, 8)
    module = RotaryEmbedding(8, layout=layout, rotary_dim=4)
    for positions in (None, torch.arange(seq), torch.arange(seq).expand(batch, seq)):
        turned_q, turned_k = module(q, k, positions)
        assert turned_q.shape == q.shape and turned_k.shape == k.shape
        want = oracles.rotate(q, range(seq), module.inv_freq, layout)
        torch.testing.assert_close(turned_q.double(), want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_input_is_not_written_to(layout):
    for dtype in DTYPES:
        x = oracles.normal(1, 2, 5, 64, dtype=dtype)
        before = x.clone()
        module = RotaryEmbedding(64, layout=layout)
        y, _ = module(x, x)
        assert torch.equal(x, before)
        assert y.data_ptr() != x.data_ptr()


# --- memory ---


def memories(x):
    """The same numbers in the ways that attention and users really hold them."""
    padded = torch.zeros(*x.shape[:-1], x.shape[-1] + 3, dtype=x.dtype)
    padded[..., 1:-2] = x
    strided = torch.zeros(*x.shape[:-1], 2 * x.shape[-1], dtype=x.dtype)
    strided[..., ::2] = x
    joined = torch.stack([x, x], dim=2).flatten(1, 2)
    return {
        "contiguous": x,
        "[batch, seq, heads, head_dim]": x.transpose(1, 2).contiguous().transpose(1, 2),
        "odd storage offset": padded[..., 1:-2],
        "every second number": strided[..., ::2],
        "slice of heads": joined[:, ::2],
        "head_dim first": x.permute(3, 0, 1, 2).contiguous().permute(1, 2, 3, 0),
    }


MEMORIES = list(memories(torch.zeros(1, 1, 1, 2)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rotary_dim", [16, 32, 64])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_memory_layout_does_not_change_the_result(layout, rotary_dim, memory, dtype):
    x = oracles.normal(2, 3, 5, 64, dtype=dtype)
    module = RotaryEmbedding(64, layout=layout, rotary_dim=rotary_dim)
    exact = oracles.rotate(x, range(5), module.inv_freq, layout)
    held = memories(x)[memory]
    assert torch.equal(held, x)
    got, _ = module(held, held)
    if dtype == torch.bfloat16:
        oracles.assert_rounded_once(got, exact, slack=1e-6)
    else:
        torch.testing.assert_close(got.double(), exact, rtol=0, atol=5e-7)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_expanded_input(layout):
    """Heads repeated by expand share memory: turned in place, they turn twice."""
    k = oracles.normal(1, 1, 5, 64)
    module = RotaryEmbedding(64, layout=layout)
    shared, _ = module(k.expand(2, 4, 5, 64), k)
    own, _ = module(k.expand(2, 4, 5, 64).contiguous(), k)
    torch.testing.assert_close(shared, own, rtol=0, atol=2e-7)


# --- gradients ---


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "shape, width, batched",
    [
        ((2, 2, 3, 6), 4, True),
        ((2, 2, 3, 6), 6, False),
        ((1, 1, 2, 32), 32, False),
    ],
)
def test_gradcheck(layout, shape, width, batched):
    x = oracles.normal(*shape, dtype=torch.float64).requires_grad_()
    positions = torch.arange(5, 5 + shape[2])
    if batched:
        positions = torch.stack([positions, positions * 3])
    cos, sin = rotary_tables(positions, inverse_frequencies(width), dtype=torch.float64)

    def turned(x):
        return apply_rotary(x, cos, sin, layout=layout)

    assert gradcheck(turned, (x,))
    assert gradgradcheck(turned, (x,))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [6, 32])
def test_gradcheck_of_strided_memory(layout, width):
    base = oracles.normal(1, 2, 2, width, dtype=torch.float64).requires_grad_()
    cos, sin = rotary_tables(
        torch.arange(2), inverse_frequencies(width), dtype=torch.float64
    )
    assert gradcheck(
        lambda b: apply_rotary(b.transpose(1, 2), cos, sin, layout=layout), (base,)
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [4, 32])
def test_forward_mode_gradients(layout, width):
    x = oracles.normal(1, 2, 3, width, dtype=torch.float64)
    tangent = oracles.normal(1, 2, 3, width, seed=1, dtype=torch.float64)
    cos, sin = rotary_tables(
        torch.arange(3), inverse_frequencies(width), dtype=torch.float64
    )

    def turned(x):
        return apply_rotary(x, cos, sin, layout=layout)

    value, derivative = torch.func.jvp(turned, (x,), (tangent,))
    torch.testing.assert_close(value, turned(x))
    torch.testing.assert_close(derivative, turned(tangent))  # a rotation is linear


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_with_respect_to_the_tables(layout):
    """Learned frequencies need them; a fast path must not drop them in silence."""
    x = oracles.normal(1, 1, 3, 4, dtype=torch.float64)
    angle = oracles.normal(3, 2, seed=2, dtype=torch.float64).requires_grad_()
    assert gradcheck(
        lambda a: apply_rotary(x, a.cos(), a.sin(), layout=layout), (angle,)
    )


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("head_dim", [8, 64])
def test_same_values_with_and_without_gradients(layout, dtype, head_dim):
    x = oracles.normal(2, 3, 17, head_dim, dtype=dtype)
    module = RotaryEmbedding(head_dim, layout=layout)
    plain, _ = module(x, x)
    leaf = x.clone().requires_grad_()
    tracked, _ = module(leaf, x)
    assert tracked.requires_grad and torch.equal(tracked, plain)
    with torch.no_grad():
        assert torch.equal(module(leaf, x)[0], plain)
    with torch.inference_mode():
        assert torch.equal(module(x.clone(), x)[0], plain)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradient_is_the_rotation_back(layout, dtype):
    x = oracles.normal(1, 2, 5, 64, dtype=dtype).requires_grad_()
    module = RotaryEmbedding(64, layout=layout)
    grad = oracles.normal(1, 2, 5, 64, seed=1, dtype=dtype)
    module(x, x)[0].backward(grad)
    want = oracles.rotate(grad, [-p for p in range(5)], module.inv_freq, layout)
    assert x.grad.dtype == dtype
    if dtype == torch.bfloat16:
        oracles.assert_rounded_once(x.grad, want, slack=1e-6)
    else:
        torch.testing.assert_close(x.grad.double(), want, rtol=0, atol=5e-7)


# --- one token at a time ---


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dims", [(8, 8), (64, 64), (80, 20), (6, 2)])
def test_step_by_step_equals_the_full_pass_exactly(layout, dtype, dims):
    head_dim, rotary_dim = dims
    q = oracles.normal(2, 3, 21, head_dim, dtype=dtype)
    k = oracles.normal(2, 1, 21, head_dim, seed=1, dtype=dtype)
    module = RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)
    full = module(q, k)
    for at in range(21):
        step_q, step_k = q[:, :, at : at + 1], k[:, :, at : at + 1]
        by_offset = module(step_q, step_k, offset=at)
        by_position = module(
            step_q.contiguous(), step_k.contiguous(), torch.tensor([at])
        )
        for whole, one, other in zip(full, by_offset, by_position, strict=True):
            assert torch.equal(one, whole[:, :, at : at + 1])
            assert torch.equal(other, whole[:, :, at : at + 1])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("head_dim", [80, 128])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_steps_are_exact_however_many_threads_share_the_full_pass(
    layout, head_dim, threads
):
    """From 32,768 numbers on threads share the work, and a cut can move a rounding."""
    x = oracles.normal(2, 7, 131, head_dim)
    module, before = RotaryEmbedding(head_dim, layout=layout), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        full, _ = module(x, x)
        for at in (0, 1, 65, 130):
            step = x[:, :, at : at + 1]
            assert torch.equal(
                module(step, step, offset=at)[0], full[:, :, at : at + 1]
            )
        assert torch.equal(module(x[1:], x[1:])[0], full[1:])
        by_token = x.transpose(1, 2).contiguous().transpose(1, 2)
        assert torch.equal(module(by_token, by_token)[0], full)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_prompt_then_chunks_equals_the_full_pass_exactly(layout):
    q = oracles.normal(1, 2, 40, 16)
    module = RotaryEmbedding(16, layout=layout)
    full, _ = module(q, q)
    pieces, at = [], 0
    for size in (6, 1, 1, 13, 19):
        part = q[:, :, at : at + size]
        pieces.append(module(part, part, offset=at)[0])
        at += size
    assert torch.equal(torch.cat(pieces, dim=2), full)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("head_dim", [8, 64])
def test_left_padding_equals_the_prompt_alone(layout, head_dim):
    prompt = oracles.normal(1, 2, 3, head_dim)
    padded = torch.cat([oracles.normal(1, 2, 2, head_dim, seed=1), prompt], dim=2)
    other = oracles.normal(1, 2, 5, head_dim, seed=2)
    module = RotaryEmbedding(head_dim, layout=layout)
    positions = torch.tensor([[0, 0, 0, 1, 2], [0, 1, 2, 3, 4]])
    batch = torch.cat([padded, other])
    turned, _ = module(batch, batch, positions)
    assert torch.equal(turned[:1, :, 2:], module(prompt, prompt)[0])
    assert torch.equal(turned[1:], module(other, other)[0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("head_dim", [8, 64])
def test_packed_sequences_equal_each_alone(layout, head_dim):
    first, second = (
        oracles.normal(1, 2, 4, head_dim),
        oracles.normal(1, 2, 3, head_dim, seed=1),
    )
    packed = torch.cat([first, second], dim=2)
    module = RotaryEmbedding(head_dim, layout=layout)
    turned, _ = module(packed, packed, torch.tensor([0, 1, 2, 3, 0, 1, 2]))
    assert torch.equal(turned[:, :, :4], module(first, first)[0])
    assert torch.equal(turned[:, :, 4:], module(second, second)[0])


def test_one_row_of_positions_serves_the_whole_batch():
    x = oracles.normal(3, 2, 5, 8)
    module = RotaryEmbedding(8)
    assert torch.equal(module(x, x, torch.arange(5)[None])[0], module(x, x)[0])


# --- the module's tables ---


def fresh(module, x, *args, **kwargs):
    """What a module that was never called before gives."""
    new = RotaryEmbedding(module.head_dim, layout=module.layout)
    return new(x, x, *args, **kwargs)[0]


HISTORIES = {
    "a bfloat16 call": lambda m, x: m(x.bfloat16(), x.bfloat16()),
    "a float16 call far out": lambda m, x: m(x.half(), x.half(), offset=2000),
    "a float64 call": lambda m, x: m(x.double(), x.double()),
    "a longer call": lambda m, x: m(x.repeat(1, 1, 300, 1), x.repeat(1, 1, 300, 1)),
    "a shorter call": lambda m, x: m(x[:, :, :1], x[:, :, :1]),
    "a call at an offset": lambda m, x: m(x, x, offset=777),
    "explicit positions": lambda m, x: m(x, x, torch.tensor([9, 3, 3, 0, 1])),
    "half()": lambda m, x: m.half(),
    "to(bfloat16)": lambda m, x: m.to(torch.bfloat16),
    "a call, then to(bfloat16)": lambda m, x: (m(x, x), m.to(torch.bfloat16)),
    "double()": lambda m, x: m.double(),
    "a meta call": lambda m, x: m(x.to("meta"), x.to("meta")),
    "to(meta) and back": lambda m, x: m.to("meta").to_empty(device="cpu"),
    "to_empty": lambda m, x: m.to_empty(device="cpu"),
    "eval and train": lambda m, x: m.eval().train(),
    "gradients switched off": lambda m, x: m.requires_grad_(False),
}


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_tables_stay_right_after(history, layout):
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8, layout=layout)
    HISTORIES[history](module, x)
    for kwargs in ({}, {"offset": 4096}):
        assert torch.equal(module(x, x, **kwargs)[0], fresh(module, x, **kwargs))
        half = x.bfloat16()
        assert torch.equal(
            module(half, half, **kwargs)[0], fresh(module, half, **kwargs)
        )
    assert module.inv_freq.dtype == torch.float64
    assert module.inv_freq.device.type == "cpu"
    assert torch.equal(module.inv_freq, inverse_frequencies(8))


def test_inference_mode_first_then_training():
    """A table born in inference mode cannot be saved for backward."""
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8)
    with torch.inference_mode():
        module(x, x)
        module(x, x, torch.arange(5))
    leaf = x.clone().requires_grad_()
    for positions in (None, torch.arange(5)):
        module(leaf, x, positions)[0].square().sum().backward()
        assert leaf.grad is not None


def test_module_built_in_inference_mode_then_training():
    with torch.inference_mode():
        module = RotaryEmbedding(8)
        scaled = RotaryEmbedding(
            8, scaling=position_interpolation(8, base=1e4, factor=2)
        )
    for rope in (module, scaled):
        leaf = oracles.normal(1, 2, 5, 8).requires_grad_()
        for positions in (None, torch.arange(5)):
            rope(leaf, leaf, positions)[0].square().sum().backward()


def test_backward_twice():
    """A cached table that kept a graph would fail at the second backward."""
    module = RotaryEmbedding(8)
    for _ in range(2):
        leaf = oracles.normal(1, 2, 5, 8).requires_grad_()
        module(leaf, leaf)[0].square().sum().backward()


@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_function_transforms_do_not_spoil_the_tables(transform):
    x = oracles.normal(4, 1, 2, 5, 8)
    module = RotaryEmbedding(8)
    want = torch.stack([fresh(module, row) for row in x])

    def turned(row):
        return module(row, row)[0]

    if transform == "vmap":
        assert torch.equal(torch.func.vmap(turned)(x), want)
    elif transform == "grad":
        got = torch.func.grad(lambda row: turned(row).square().sum())(x[0])
        torch.testing.assert_close(got, 2 * x[0], rtol=1e-5, atol=1e-6)
    else:
        value, _ = torch.func.jvp(turned, (x[0],), (x[1],))
        assert torch.equal(value, want[0])
    assert torch.equal(module(x[0], x[0])[0], want[0])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("head_dim", [8, 64])
def test_vmap_and_grad_of_apply_rotary(layout, head_dim):
    x = oracles.normal(4, 2, 5, head_dim, dtype=torch.float64)
    cos, sin = rotary_tables(
        torch.arange(5), inverse_frequencies(head_dim), dtype=torch.float64
    )

    def turned(row):
        return apply_rotary(row[None], cos, sin, layout=layout)[0]

    want = apply_rotary(x, cos, sin, layout=layout)
    torch.testing.assert_close(torch.func.vmap(turned)(x), want, rtol=0, atol=1e-14)
    per_row = torch.func.vmap(torch.func.grad(lambda row: turned(row).pow(3).sum()))(x)
    leaf = x.clone().requires_grad_()
    apply_rotary(leaf, cos, sin, layout=layout).pow(3).sum().backward()
    torch.testing.assert_close(per_row, leaf.grad)


@pytest.mark.parametrize(
    "head_dim, position",
    [
        (4, 2**20 - 1),
        (4, 2**20),
        (128, 2**20 + 1),
        (128, 10_000_000),
    ],
)
def test_a_far_offset_is_right_and_costs_no_table(head_dim, position):
    x = oracles.normal(1, 1, 1, head_dim)
    module = RotaryEmbedding(head_dim, layout="half")
    start = time.perf_counter()
    got, _ = module(x, x, offset=position)
    # A table of 10 million rows takes minutes and 5 GB.
    assert time.perf_counter() - start < 3.0
    cos, sin = oracles.exact_tables([position], head_dim, 1e4)
    first, second = x.double().chunk(2, dim=-1)
    want = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
    torch.testing.assert_close(got.double(), want, rtol=0, atol=1e-6)
    explicit, _ = module(x, x, torch.tensor([position]))
    assert torch.equal(explicit, got)


def test_a_run_across_the_cache_limit_is_exact():
    x = oracles.normal(1, 1, 6, 8)
    module = RotaryEmbedding(8)
    at = 2**20 - 3
    full, _ = module(x, x, offset=at)
    explicit, _ = module(x, x, torch.arange(at, at + 6))
    assert torch.equal(full, explicit)


def test_no_position_is_further_than_the_last_bit_of_the_score():
    """The same distance 3 at the start and at a million: the score drifts by 1e-7."""
    q, k = (
        torch.nn.functional.normalize(
            oracles.normal(1, 1, 1, 128, seed=s, dtype=torch.float64), dim=-1
        )
        for s in (0, 1)
    )
    inv_freq = inverse_frequencies(128)

    def score(m, n):
        rows = [rotary_tables(torch.tensor([p]), inv_freq) for p in (m, n)]
        return (apply_rotary(q, *rows[0]) * apply_rotary(k, *rows[1])).sum().item()

    near = score(3, 0)
    for start in FAR:
        assert abs(score(start + 3, start) - near) <= 1e-7


# --- moving, copying, saving ---


def test_there_is_nothing_to_save_or_to_train():
    module = RotaryEmbedding(8)
    module(oracles.normal(1, 1, 5, 8), oracles.normal(1, 1, 5, 8))
    assert list(module.state_dict()) == []
    assert list(module.parameters()) == [] and list(module.buffers()) == []


@pytest.mark.parametrize(
    "copier",
    [
        copy.deepcopy,
        copy.copy,
        lambda m: pickle.loads(pickle.dumps(m)),
    ],
)
def test_copies_are_right_and_independent(copier):
    x = oracles.normal(1, 2, 5, 8)
    scaling = yarn(8, base=1e4, factor=4, trained_length=4096)
    module = RotaryEmbedding(8, layout="half", scaling=scaling)
    want, _ = module(x, x)
    twin = copier(module)
    assert torch.equal(twin(x, x)[0], want)
    assert torch.equal(twin.inv_freq, module.inv_freq)
    assert twin.attention_factor == module.attention_factor
    twin(x.bfloat16(), x.bfloat16(), offset=5000)
    assert torch.equal(module(x, x)[0], want)


def test_a_pickle_holds_the_settings_not_the_tables():
    module, x = RotaryEmbedding(64), oracles.normal(1, 1, 4000, 64)
    module(x, x)
    assert len(pickle.dumps(module)) < 20_000  # the tables alone are a megabyte


def test_torch_save_round_trip():
    module, stream = RotaryEmbedding(8, layout="half", rotary_dim=4), io.BytesIO()
    x = oracles.normal(1, 2, 5, 8)
    want, _ = module(x, x)
    torch.save(module, stream)
    stream.seek(0)
    assert torch.equal(torch.load(stream, weights_only=False)(x, x)[0], want)


@pytest.mark.parametrize("how", ["context", "to_empty", "both"])
def test_meta_construction(how):
    """A non-persistent buffer would hold whatever the memory held before."""
    if how == "to_empty":
        module = RotaryEmbedding(8)
    else:
        with torch.device("meta"):
            scaling = yarn(8, base=1e4, factor=4, trained_length=4096)
            module = RotaryEmbedding(8)
            scaled = RotaryEmbedding(8, scaling=scaling)
        assert torch.equal(
            scaled.inv_freq, yarn(8, base=1e4, factor=4, trained_length=4096).inv_freq
        )
    if how != "context":
        module = module.to_empty(device="cpu")
    assert module.inv_freq[0].item() == 1.0
    x = oracles.normal(1, 2, 5, 8)
    assert torch.equal(module(x, x)[0], fresh(module, x))


def test_changing_the_scaling_afterwards_does_not_reach_in():
    scaling = position_interpolation(8, base=1e4, factor=2)
    module = RotaryEmbedding(8, scaling=scaling)
    scaling.inv_freq.zero_()
    assert module.inv_freq[0].item() == 0.5


def test_scaling_replaces_the_frequencies_and_scales_both_tables():
    scaling = ScaledFrequencies(torch.tensor([0.5, 0.25], dtype=torch.float64), 1.5)
    module = RotaryEmbedding(4, scaling=scaling)
    x = oracles.normal(1, 1, 3, 4)
    want = oracles.rotate(x, range(3), [0.5, 0.25], "interleaved", 1.5)
    torch.testing.assert_close(module(x, x)[0].double(), want, rtol=0, atol=1e-6)


def test_autocast_leaves_the_rotation_alone():
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8)
    want, _ = module(x, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got, _ = RotaryEmbedding(8)(x, x)
        leaf = x.clone().requires_grad_()
        module(leaf, x)[0].square().sum().backward()
    assert got.dtype == torch.float32 and torch.equal(got, want)
    torch.testing.assert_close(leaf.grad, 2 * x, rtol=1e-5, atol=1e-6)


# --- converting weights between the layouts ---


def heads_of(x, n_heads):
    return x.unflatten(-1, (n_heads, -1)).transpose(
        1, 2
    )  # [batch, heads, seq, head_dim]


def scores(layout, weights, hidden, n_heads, n_kv_heads, rotary_dim):
    """Attention scores with biases, per-head norm weights and grouped key heads."""
    parts = []
    for name, heads in (("q", n_heads), ("k", n_kv_heads)):
        x = torch.nn.functional.linear(
            hidden, weights["W_" + name], weights["b_" + name]
        )
        parts.append(rms_norm(heads_of(x, heads), weights["norm_" + name]))
    head_dim = parts[0].shape[-1]
    module = RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)
    q, k = module(*parts, offset=1)
    k = k.repeat_interleave(n_heads // n_kv_heads, dim=1)
    return q @ k.transpose(-1, -2)


def attention_weights(n_heads, n_kv_heads, head_dim, d_model):
    out = {}
    for seed, (name, heads) in enumerate((("q", n_heads), ("k", n_kv_heads))):
        rows = heads * head_dim
        out["W_" + name] = oracles.normal(rows, d_model, seed=seed, dtype=torch.float64)
        out["b_" + name] = oracles.normal(rows, seed=seed + 9, dtype=torch.float64)
        out["norm_" + name] = oracles.normal(
            head_dim, seed=seed + 20, dtype=torch.float64
        )
    return out


def converted(weights, to, n_heads, n_kv_heads, rotary_dim):
    heads = {
        "W_q": n_heads,
        "b_q": n_heads,
        "norm_q": 1,
        "W_k": n_kv_heads,
        "b_k": n_kv_heads,
        "norm_k": 1,
    }
    return {
        name: convert_layout(weights[name], count, to=to, rotary_dim=rotary_dim)
        for name, count in heads.items()
    }


@pytest.mark.parametrize("rotary_dim", [None, 4, 2, 8])
@pytest.mark.parametrize("n_heads, n_kv_heads", [(1, 1), (4, 2), (3, 1)])
@pytest.mark.parametrize("start", LAYOUTS)
def test_converted_weights_give_the_same_scores(start, n_heads, n_kv_heads, rotary_dim):
    other = "half" if start == "interleaved" else "interleaved"
    weights = attention_weights(n_heads, n_kv_heads, 8, 12)
    hidden = oracles.normal(2, 6, 12, seed=5, dtype=torch.float64)
    shape = (n_heads, n_kv_heads, rotary_dim)
    want = scores(start, weights, hidden, *shape)
    moved = converted(weights, other, *shape)
    torch.testing.assert_close(
        scores(other, moved, hidden, *shape), want, rtol=0, atol=1e-9
    )
    if rotary_dim != 2:  # one pair is the same in both layouts
        wrong = scores(other, weights, hidden, *shape)
        assert (wrong - want).abs().max() > 0.1


@pytest.mark.parametrize("rotary_dim", [None, 2, 4, 6])
@pytest.mark.parametrize(
    "shape, n_heads", [((16, 3), 2), ((16,), 2), ((8,), 1), ((24, 2), 3)]
)
def test_conversion_has_an_inverse(shape, n_heads, rotary_dim):
    weight = oracles.normal(*shape)
    there = convert_layout(weight, n_heads, to="half", rotary_dim=rotary_dim)
    back = convert_layout(there, n_heads, to="interleaved", rotary_dim=rotary_dim)
    assert torch.equal(back, weight)
    other = convert_layout(weight, n_heads, to="interleaved", rotary_dim=rotary_dim)
    assert torch.equal(
        convert_layout(other, n_heads, to="half", rotary_dim=rotary_dim), weight
    )


def test_conversion_moves_the_rows_that_turn_and_no_other():
    rows = torch.arange(8)
    assert convert_layout(rows, 1, to="half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert convert_layout(rows, 1, to="interleaved").tolist() == [
        0,
        4,
        1,
        5,
        2,
        6,
        3,
        7,
    ]
    assert convert_layout(rows, 1, to="half", rotary_dim=4).tolist() == [
        0,
        2,
        1,
        3,
        4,
        5,
        6,
        7,
    ]
    assert convert_layout(rows, 2, to="half").tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


def test_conversion_agrees_with_the_released_view_and_transpose():
    """Meta's to Hugging Face's script: view(heads, d/2, 2, d_model).transpose(1, 2)."""
    weight = oracles.normal(24, 5)
    want = weight.view(3, 4, 2, 5).transpose(1, 2).reshape(24, 5)
    assert torch.equal(convert_layout(weight, 3, to="half"), want)


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64]
)
def test_conversion_makes_a_new_tensor_of_the_same_kind(dtype):
    weight = torch.arange(16).view(8, 2).to(dtype)
    got = convert_layout(weight, 2, to="half")
    assert got.dtype == dtype and got.shape == weight.shape
    got.zero_()
    assert weight.sum() != 0


def test_conversion_of_a_parameter_keeps_gradients_possible():
    weight = torch.nn.Parameter(oracles.normal(8, 3))
    convert_layout(weight, 1, to="half")[0].sum().backward()
    assert weight.grad[0].tolist() == [1, 1, 1] and weight.grad[1:].abs().sum() == 0
