"""Other devices: meta, one that knows neither float64 nor complex, compiled graphs.

The pretended device runs the real numbers, so results are compared as well as watched.
"""

import math

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.norm import RMSNorm, rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    rotate_pairs,
    wavelengths,
)
from apex_lessons.yarn import (
    apex1,
    dynamic_ntk,
    llama3,
    longrope,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    proportional,
    regimes,
    yarn,
)
from tests import oracles
from tests.pretend_device import PretendDevice

TRAINED = {"base": 1e4, "factor": 4.0, "trained_length": 4096}
METHODS = {
    "none": lambda: None,
    "position_interpolation": lambda: position_interpolation(8, base=1e4, factor=4.0),
    "ntk_aware": lambda: ntk_aware(8, base=1e4, factor=4.0),
    "dynamic_ntk": lambda: dynamic_ntk(8, **TRAINED, length=8192),
    "ntk_by_parts": lambda: ntk_by_parts(8, **TRAINED),
    "yarn": lambda: yarn(8, **TRAINED),
    "yarn, ramp of the paper": lambda: yarn(8, **TRAINED, ramp="rotations"),
    "yarn, not truncated": lambda: yarn(8, **TRAINED, truncate=False),
    "llama3": lambda: llama3(8, **TRAINED),
    "longrope": lambda: longrope(8, **TRAINED, factors=[1.0, 1.5, 2.0, 4.0]),
    "proportional": lambda: proportional(8, base=1e4, partial_rotary_factor=0.5),
    "apex1": lambda: apex1(8, base=1e4, factor=40.0),
}
LAYOUTS = ["interleaved", "half"]
HALVES_AND_SINGLE = [torch.float32, torch.bfloat16, torch.float16]


# --- meta ---


class NoWideNumbersOffTheCpu(TorchDispatchMode):
    """Fails when any operation makes a float64 or complex tensor off the CPU."""

    def __init__(self, complex_too=True):
        super().__init__()
        self.seen, self.complex_too = 0, complex_too

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for value in tree_leaves(out):
            if isinstance(value, torch.Tensor) and value.device.type != "cpu":
                self.seen += 1
                wide = value.dtype in (torch.float64, torch.complex128)
                wide |= self.complex_too and value.dtype.is_complex
                assert not wide, f"{func} made {value.dtype} on {value.device}"
        return out


def test_the_watch_catches_what_it_is_for():
    with pytest.raises(AssertionError, match="float64"), NoWideNumbersOffTheCpu():
        torch.zeros(2, device="meta").double()
    with pytest.raises(AssertionError, match="complex"), NoWideNumbersOffTheCpu():
        torch.view_as_complex(torch.zeros(2, 2, device="meta"))


def on_meta(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype, device="meta").requires_grad_(
        dtype.is_floating_point
    )


def norm_on_meta(dtype, order):
    x, weight = on_meta(2, 3, 8, dtype=dtype), on_meta(8, dtype=dtype)
    y = rms_norm(x, weight, order=order)
    y.sum().backward()
    return y, x


def module_norm_on_meta(dtype, offset):
    module = RMSNorm(8, weight_offset=offset, device="meta", dtype=dtype)
    x = on_meta(2, 3, 8, dtype=dtype)
    y = module(x)
    y.sum().backward()
    return y, x


def rotation_on_meta(dtype, layout, width=8, transposed=False, **kwargs):
    x = on_meta(2, 4, 5, 8, dtype=dtype)
    if transposed:
        x = on_meta(2, 5, 4, 8, dtype=dtype)
    held = x.transpose(1, 2) if transposed else x
    y, _ = RotaryEmbedding(8, layout=layout, rotary_dim=width)(held, held, **kwargs)
    y.sum().backward()
    return y, held


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("order", ["cast-last", "cast-first", "cast-to-weight"])
def test_norm_on_meta(dtype, order):
    with NoWideNumbersOffTheCpu() as watch:
        y, x = norm_on_meta(dtype, order)
        no_weight = rms_norm(x.detach())
    assert watch.seen and y.is_meta and (y.shape, y.dtype) == (x.shape, dtype)
    assert no_weight.is_meta and no_weight.dtype == dtype


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_norm_module_on_meta(dtype, offset):
    with NoWideNumbersOffTheCpu() as watch:
        y, x = module_norm_on_meta(dtype, offset)
    assert watch.seen and y.is_meta and (y.shape, y.dtype) == (x.shape, dtype)


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [4, 8])
@pytest.mark.parametrize("transposed", [False, True])
def test_rotation_on_meta(dtype, layout, width, transposed):
    """complex64 is allowed: only MPS lacks it; the pretended device watches that."""
    positions = torch.arange(5, device="meta")
    for kwargs in (
        {},
        {"offset": 3},
        {"positions": positions},
        {"positions": positions.expand(2, 5)},
        {"offset": 2**21},
    ):
        with NoWideNumbersOffTheCpu(complex_too=False) as watch:
            y, x = rotation_on_meta(dtype, layout, width, transposed, **kwargs)
        assert watch.seen and y.is_meta and (y.shape, y.dtype) == (x.shape, dtype)


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
def test_tables_on_meta(dtype):
    with NoWideNumbersOffTheCpu() as watch:
        for positions in (
            torch.arange(5, device="meta"),
            torch.zeros(2, 5, dtype=torch.int32, device="meta"),
        ):
            for table in rotary_tables(positions, inverse_frequencies(8), dtype=dtype):
                assert table.is_meta and table.dtype == dtype
                assert table.shape == (*positions.shape, 4)
    assert watch.seen


def test_the_rest_on_meta():
    x = on_meta(2, 8)
    with NoWideNumbersOffTheCpu() as watch:
        assert rotate_pairs(x).is_meta and rotate_pairs(x).shape == x.shape
        moved = convert_layout(x.T, 2, to="half", rotary_dim=2)
        assert moved.is_meta and moved.shape == (8, 2)
        table = ScaledEmbedding(7, 8, padding_idx=0, device="meta")
        ids = torch.zeros(2, 3, dtype=torch.long, device="meta")
        out = table(ids)
        logits = table.logits(out)
        (out.sum() + logits.sum()).backward()
    assert watch.seen and out.shape == (2, 3, 8) and logits.shape == (2, 3, 7)
    assert out.is_meta and logits.is_meta and table.weight.grad.is_meta
    assert wavelengths(torch.ones(3, device="meta")).shape == (3,)
    plain = torch.ones(3, device="meta")
    assert regimes(plain, plain, 2.0).shape == (3,)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_frequencies_are_real_cpu_numbers_under_any_default_device(method, device):
    """A model is often built under torch.device("meta"); frequencies stay numbers."""
    want = RotaryEmbedding(8, scaling=METHODS[method]()).inv_freq
    with torch.device(device):
        module = RotaryEmbedding(8, scaling=METHODS[method]())
        plain = inverse_frequencies(8)
    assert module.inv_freq.device.type == "cpu" and torch.equal(module.inv_freq, want)
    assert torch.equal(plain, inverse_frequencies(8))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_default_dtype_changes_no_frequency_and_no_table(dtype):
    x = oracles.normal(1, 2, 5, 8)
    want = RotaryEmbedding(8, scaling=METHODS["yarn"]())
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        module = RotaryEmbedding(8, scaling=METHODS["yarn"]())
        got = module(x, x)[0], rms_norm(x)
        cos, _ = rotary_tables(torch.arange(5), inverse_frequencies(8))
    finally:
        torch.set_default_dtype(before)
    assert torch.equal(module.inv_freq, want.inv_freq) and cos.dtype == torch.float32
    assert torch.equal(got[0], want(x, x)[0]) and torch.equal(got[1], rms_norm(x))


# --- a device without float64 and complex numbers ---


def test_the_pretended_device_catches_what_it_is_for():
    with PretendDevice("mps"):
        x = torch.ones(2, 2).to("mps")
        assert x.device.type == "mps" and (x * 2).device.type == "mps"
        assert x.is_mps and not x.is_cpu and torch.ones(1).is_cpu
        assert x.cpu().device.type == "cpu" and x.cpu().double().dtype == torch.float64
        with pytest.raises(AssertionError, match="float64"):
            x.double()
        with pytest.raises(AssertionError, match="complex"):
            torch.view_as_complex(x)
        with pytest.raises(RuntimeError, match="cpu"):
            x + torch.ones(2)


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", [8, 32, 64])
@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"offset": 70},
        {"offset": 2**21},
        {"positions": torch.arange(3, 8)},
        {"positions": torch.arange(10).view(2, 5)},
    ],
    ids=str,
)
def test_rotation_where_float64_and_complex_do_not_exist(dtype, layout, width, kwargs):
    x = oracles.normal(2, 4, 5, 64, dtype=dtype)  # as wide as the fast paths need
    module = RotaryEmbedding(
        64, layout=layout, rotary_dim=width, scaling=yarn(width, **TRAINED)
    )
    exact_positions = kwargs.get("positions", torch.arange(5) + kwargs.get("offset", 0))
    exact = oracles.rotate(
        x, exact_positions, module.inv_freq, layout, module.attention_factor
    )
    with PretendDevice("mps") as pretend:
        there = x.to("mps")
        moved = {
            k: v.to("mps") if isinstance(v, torch.Tensor) else v
            for k, v in kwargs.items()
        }
        for held in (there, there.transpose(1, 2).contiguous().transpose(1, 2)):
            y, _ = module(held, held, **moved)
            assert y.device.type == "mps"
        y = y.cpu()
        assert pretend.made > 0
    assert y.dtype == dtype
    if dtype == torch.float32:
        torch.testing.assert_close(y.double(), exact, rtol=0, atol=1e-6)
    else:
        oracles.assert_rounded_once(y, exact, slack=1e-6)


@pytest.mark.parametrize("where", ["mps", "cpu"])
def test_positions_may_lie_elsewhere(where):
    """Positions from a data loader are on the CPU while q is on the device."""
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8)
    want, _ = module(x, x)
    with PretendDevice("mps"):
        q = x.to("mps")
        got, _ = module(q, q, torch.arange(5).to(where))
        assert got.device.type == "mps"
        torch.testing.assert_close(got.cpu(), want)


def test_tables_follow_q_from_device_to_device():
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8)
    want, _ = module(x, x)
    with PretendDevice("mps"):
        there = x.to("mps")
        module.to("mps")
        for _ in range(2):
            got, _ = module(there, there)
            assert got.device.type == "mps"
            torch.testing.assert_close(got.cpu(), want, rtol=0, atol=2e-7)
            back, _ = module(x, x)
            assert back.device.type == "cpu" and torch.equal(back, want)
        assert module.inv_freq.device.type == "cpu"


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
def test_tables_and_wavelengths_where_float64_does_not_exist(dtype):
    want = rotary_tables(torch.arange(5), inverse_frequencies(8), dtype=dtype)
    with PretendDevice("mps"):
        got = rotary_tables(
            torch.arange(5).to("mps"), inverse_frequencies(8), dtype=dtype
        )
        for one, other in zip(got, want, strict=True):
            assert one.device.type == "mps" and torch.equal(one.cpu(), other)
        single = inverse_frequencies(8).float().to("mps")
        torch.testing.assert_close(
            wavelengths(single).cpu().double(),
            wavelengths(inverse_frequencies(8)),
            rtol=1e-6,
            atol=0,
        )
        assert rotate_pairs(got[0]).device.type == "mps"


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("scale", [1.0, 1e20])
def test_norm_where_float64_does_not_exist(dtype, scale):
    x = (oracles.normal(3, 8) * (scale if dtype != torch.float16 else 100)).to(dtype)
    weight = oracles.normal(8, seed=1, dtype=dtype)
    want = rms_norm(x, weight)
    with PretendDevice("mps"):
        got = rms_norm(x.to("mps"), weight.to("mps"))
        assert got.device.type == "mps"
        torch.testing.assert_close(got.cpu(), want)
        module = RMSNorm(8, dtype=dtype).to("mps")
        assert module(x.to("mps")).device.type == "mps"


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
def test_embedding_where_float64_does_not_exist(dtype):
    table = ScaledEmbedding(7, 8, padding_idx=0, dtype=dtype)
    ids = torch.tensor([[1, 6, 0]])
    want = table(ids).detach()
    want_logits = table.logits(want).detach()
    with PretendDevice("mps"):
        moved = table.to("mps")
        out = moved(ids.to("mps"))
        logits = moved.logits(out)
        assert out.device.type == logits.device.type == "mps"
        assert torch.equal(out.detach().cpu(), want)
        torch.testing.assert_close(logits.detach().cpu(), want_logits)
        with pytest.raises(IndexError):
            moved(torch.tensor([7]).to("mps"))


def test_conversion_stays_on_its_device():
    weight = oracles.normal(16, 3)
    with PretendDevice("mps"):
        got = convert_layout(weight.to("mps"), 2, to="half", rotary_dim=4)
        assert got.device.type == "mps"
        assert torch.equal(
            got.cpu(), convert_layout(weight, 2, to="half", rotary_dim=4)
        )


# --- torch.compile ---


def compiled_once(function, *args, **kwargs):
    """The result of a graph without a break; "eager" needs no compiler."""
    torch._dynamo.reset()
    return torch.compile(function, backend="eager", fullgraph=True)(*args, **kwargs)


KINDS = {
    "default": {},
    "offset": {"offset": 7},
    "positions": {"positions": torch.arange(5)},
    "batched positions": {"positions": torch.arange(10).view(2, 5)},
}


@pytest.mark.parametrize(
    "kind, layout",
    [
        ("default", "interleaved"),
        ("offset", "half"),
        ("positions", "interleaved"),
        ("batched positions", "half"),
    ],
)
def test_no_graph_break_in_the_rotation(kind, layout):
    """Every method once; they share their code, so the other kinds take one of them."""
    q, k = oracles.normal(2, 4, 5, 8), oracles.normal(2, 2, 5, 8, seed=1)
    for name in METHODS if kind == "default" else ["yarn"]:
        module = RotaryEmbedding(8, scaling=METHODS[name](), layout=layout)
        got, want = (
            compiled_once(module, q, k, **KINDS[kind]),
            module(q, k, **KINDS[kind]),
        )
        for one, other in zip(got, want, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=5e-7, msg=name)


def test_graph_breaks_are_counted_as_zero():
    x = oracles.normal(2, 4, 5, 8)
    module, norm, table = RotaryEmbedding(8), RMSNorm(8), ScaledEmbedding(7, 8)

    def block(ids, x):
        q, k = module(norm(x), x, offset=3)
        return table.logits(table(ids)), q, k

    torch._dynamo.reset()
    explained = torch._dynamo.explain(block)(torch.tensor([[1, 2]]), x)
    assert explained.graph_break_count == 0 and explained.graph_count == 1


@pytest.mark.parametrize("rows", [1, 17, 100])
def test_dynamic_ntk_inside_the_graph(rows):
    """The length is a number of the shape, not a tensor to branch on."""

    def rotate(x):
        scaled = dynamic_ntk(
            8, base=1e4, factor=2.0, trained_length=16, length=x.shape[-2]
        )
        cos, sin = rotary_tables(torch.arange(x.shape[-2]), scaled.inv_freq)
        return apply_rotary(x, cos, sin)

    x = oracles.normal(1, 2, rows, 8)
    torch.testing.assert_close(compiled_once(rotate, x), rotate(x), rtol=0, atol=5e-7)


def test_compiled_at_several_lengths_then_eager():
    """Tables made while tracing must not be met by later calls, nor the reverse."""
    module = RotaryEmbedding(8)
    torch._dynamo.reset()
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    for rows in (5, 9, 300, 2):
        x = oracles.normal(1, 2, rows, 8)
        want = RotaryEmbedding(8)(x, x)[0]
        torch.testing.assert_close(compiled(x, x)[0], want, rtol=0, atol=5e-7)
        assert torch.equal(module(x, x)[0], want)


@pytest.mark.parametrize("dtype", HALVES_AND_SINGLE)
@pytest.mark.parametrize("order", ["cast-last", "cast-first"])
def test_compiled_norm_forward_and_backward(dtype, order):
    x, weight = (
        oracles.normal(4, 8, dtype=dtype),
        oracles.normal(8, seed=1, dtype=dtype),
    )
    grad = oracles.normal(4, 8, seed=2, dtype=dtype)
    results = []
    for run in (rms_norm, lambda *a, **k: compiled_once(rms_norm, *a, **k)):
        leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
        y = run(leaf, weight_leaf, order=order)
        y.backward(grad)
        results.append((y.detach(), leaf.grad, weight_leaf.grad))
    rtol = 1e-6 if dtype == torch.float32 else 2 * torch.finfo(dtype).eps
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(
            one, other, rtol=rtol, atol=2 * torch.finfo(dtype).eps
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_compiled_rotation_backward(layout):
    module = RotaryEmbedding(8, layout=layout, rotary_dim=4)
    x = oracles.normal(1, 2, 5, 8).requires_grad_()
    grad = oracles.normal(1, 2, 5, 8, seed=1)
    compiled_once(module, x, x)[0].backward(grad)
    leaf = x.detach().clone().requires_grad_()
    module(leaf, leaf)[0].backward(grad)
    torch.testing.assert_close(x.grad, leaf.grad, rtol=0, atol=5e-7)


@pytest.mark.parametrize("padding_idx", [None, 0])
def test_compiled_embedding(padding_idx):
    table, ids = (
        ScaledEmbedding(7, 8, padding_idx=padding_idx),
        torch.tensor([[1, 6, 0]]),
    )
    assert torch.equal(compiled_once(table, ids), table(ids))
    hidden = oracles.normal(1, 3, 8)
    assert torch.equal(compiled_once(table.logits, hidden), table.logits(hidden))


def test_export_of_a_small_stack():
    class Stack(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.norm = ScaledEmbedding(7, 8), RMSNorm(8)
            self.rope = RotaryEmbedding(4, scaling=yarn(4, **TRAINED))

        def forward(self, ids):
            x = self.norm(self.table(ids)).unflatten(-1, (2, 4)).transpose(1, 2)
            q, _ = self.rope(x, x)
            return self.table.logits(q.transpose(1, 2).flatten(-2))

    stack, ids = Stack(), torch.tensor([[1, 6, 0]])
    program = torch.export.export(stack, (ids,))
    torch.testing.assert_close(program.module()(ids), stack(ids))
    assert math.isfinite(stack(ids).sum().item())
