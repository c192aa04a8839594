"""Faults seen in other implementations, none of which may be ours.

``golden/faults.json`` numbers them and says where they were seen. The test names carry
the number; what a faulty program gives is in the comment or the assertion.
"""

import copy
import math
import re

import pytest
import torch

from apex_lessons.models import rope_from_config
from apex_lessons.norm import RMSNorm, rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
)
from apex_lessons.yarn import (
    apex1,
    dynamic_ntk,
    llama3,
    longrope,
    proportional,
    regimes,
    yarn,
)
from tests import oracles
from tests.pretend_device import PretendDevice

LAYOUTS = ["interleaved", "half"]
FREQUENCIES = {
    case["name"]: case for case in oracles.golden("frequencies.json")["cases"]
}
DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "num_attention_heads": 128,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "max_position_embeddings": 163_840,
    "rope_theta": 10_000,
}
YARN_40 = {
    "type": "yarn",
    "factor": 40,
    "beta_fast": 32,
    "beta_slow": 1,
    "original_max_position_embeddings": 4096,
}


def test_every_fault_of_the_list_has_a_test():
    listed = {fault["id"] for fault in oracles.golden("faults.json")}
    covered = {
        found[1]
        for name in globals()
        if (found := re.match(r"test_fault_(\d+[a-d]?)_", name))
    }
    assert listed == covered


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_fault_1_positions_in_half_precision(dtype):
    """bfloat16 positions: 769 different ones of 4096, cos off by 2."""
    assert len(torch.arange(4096).bfloat16().unique()) == 769
    x = torch.ones(1, 1, 2048, 32, dtype=dtype)
    module = RotaryEmbedding(32)
    y, _ = module(x, x)
    exact = oracles.rotate(x, range(2048), module.inv_freq, "interleaved")
    assert (y.double() - exact).abs().max() <= torch.finfo(dtype).eps
    for table in rotary_tables(
        torch.arange(2048), inverse_frequencies(32), dtype=dtype
    ):
        assert table.dtype == dtype
    with pytest.raises(TypeError):
        rotary_tables(torch.arange(16).to(dtype), inverse_frequencies(32))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_fault_1b_a_cast_of_the_model_rounds_no_frequency(dtype):
    """float32 positions times bfloat16 frequencies: off by 1.14 at position 1000."""
    model = torch.nn.Sequential(RMSNorm(32), RotaryEmbedding(32)).to(dtype)
    assert torch.equal(model[1].inv_freq, inverse_frequencies(32))
    x = torch.ones(1, 1, 1, 32)
    want = oracles.rotate(x, [8191], inverse_frequencies(32), "interleaved")
    got, _ = model[1](x, x, offset=8191)
    torch.testing.assert_close(got.double(), want, rtol=0, atol=3e-7)


@pytest.mark.parametrize("start", [100_000, 131_071, 1_000_000])
def test_fault_2_angles_far_out(start):
    """float32 angles: 6.8e-3, 7.6e-3 and 6.0e-2."""
    positions = list(range(start, start + 256, 17))
    for got, exact in zip(
        rotary_tables(torch.tensor(positions), inverse_frequencies(128)),
        oracles.exact_tables(positions, 128, 1e4),
        strict=True,
    ):
        assert (got.double() - exact).abs().max() <= 6e-8


def test_fault_3_a_long_prompt_leaves_nothing_behind():
    """A dynamic base that is not reset drifts by 0.95 for the next short prompt."""

    def short_prompt():
        scaled = dynamic_ntk(64, base=1e4, factor=2, trained_length=4096, length=100)
        return rotary_tables(torch.arange(100), scaled.inv_freq)

    before = short_prompt()
    dynamic_ntk(64, base=1e4, factor=2, trained_length=4096, length=16_384)
    for one, other in zip(before, short_prompt(), strict=True):
        assert torch.equal(one, other)
    module, x = RotaryEmbedding(64), oracles.normal(1, 1, 100, 64)
    want, _ = module(x, x)
    module(x.repeat(1, 1, 100, 1), x.repeat(1, 1, 100, 1))
    assert torch.equal(module(x, x)[0], want)


def test_fault_3b_one_base_for_a_sequence():
    """Keys cached under a shorter length carry an older base than the new query."""

    def rope(length):
        scaled = dynamic_ntk(8, base=1e4, factor=2, trained_length=8, length=length)
        return RotaryEmbedding(8, scaling=scaled)

    keys = oracles.normal(1, 1, 12, 8, dtype=torch.float64)
    query = oracles.normal(1, 1, 1, 8, seed=1, dtype=torch.float64)
    cached = torch.cat(
        [
            rope(i + 1)(keys[:, :, i : i + 1], keys[:, :, i : i + 1], offset=i)[1]
            for i in range(12)
        ],
        dim=2,
    )
    final = rope(12)
    turned = final(query, query, offset=11)[0]
    full = final(keys, keys)[1]
    by_read = torch.cat(
        [
            final(keys[:, :, i : i + 1], keys[:, :, i : i + 1], offset=i)[1]
            for i in range(12)
        ],
        dim=2,
    )
    assert torch.equal(by_read, full)  # rotated at read: one base
    wrong = (turned @ cached.transpose(-1, -2)) - (turned @ full.transpose(-1, -2))
    assert wrong.abs().max() > 0.01


@pytest.mark.parametrize("spelling", ["rope_scaling", "rope_parameters"])
def test_fault_4_truncate_false_of_gpt_oss_is_heard(spelling):
    """Rounded ends 8 and 18 instead of 8.0928 and 17.3980: 76 % off at pair 17."""
    ramp = oracles.pair_ramp(64, 150_000, 4096, 32, 1, truncate=False)
    want = torch.tensor(oracles.blend(64, 150_000, 32, ramp), dtype=torch.float64)
    block = {
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
        "rope_type": "yarn",
    }
    config = {
        "model_type": "gpt_oss",
        "head_dim": 64,
        "hidden_size": 2880,
        "num_attention_heads": 64,
        "max_position_embeddings": 131_072,
    }
    if spelling == "rope_scaling":
        config |= {"rope_theta": 150_000, "rope_scaling": block}
    else:
        config |= {"rope_parameters": {**block, "rope_theta": 150_000}}
    (found,) = rope_from_config(config).values()
    direct = yarn(64, base=150_000, factor=32, trained_length=4096, truncate=False)
    for inv_freq in (direct.inv_freq, found.scaled.inv_freq):
        torch.testing.assert_close(inv_freq, want, rtol=1e-12, atol=0)
    wrong = FREQUENCIES["gpt-oss config but truncate=True (the wrong one)"][
        "inv_freq_f64"
    ]
    off = (torch.tensor(wrong, dtype=torch.float64) / want - 1).abs()
    assert off.argmax() == 17 and off.max() > 0.4


@pytest.mark.parametrize(
    "name, mscale, factor", [("V3", 1.0, 1.87385), ("V2-Lite", 0.707, 1.58963)]
)
def test_fault_6_the_temperature_of_deepseek_is_on_the_softmax(name, mscale, factor):
    block = {**YARN_40, "mscale": mscale, "mscale_all_dim": mscale}
    (found,) = rope_from_config({**DEEPSEEK, "rope_scaling": block}).values()
    assert found.softmax_factor == pytest.approx(factor, rel=1e-5)
    if name == "V3":
        want = FREQUENCIES["DeepSeek-V3"]["attention"]["softmax_scale_multiplier"]
        assert found.softmax_factor == pytest.approx(want, rel=1e-12)


def test_fault_6b_equal_scales_are_one_on_the_tables_and_a_square_on_the_softmax():
    scaled = yarn(
        64, base=1e4, factor=40, trained_length=4096, mscale=1, mscale_all_dim=1
    )
    assert scaled.attention_factor == 1.0
    block = {**YARN_40, "mscale": 1.0, "mscale_all_dim": 1.0}
    (found,) = rope_from_config({**DEEPSEEK, "rope_scaling": block}).values()
    assert found.scaled.attention_factor == 1.0
    assert found.softmax_factor == pytest.approx(
        (0.1 * math.log(40) + 1) ** 2, rel=1e-12
    )
    assert (
        regimes(inverse_frequencies(64), found.scaled.inv_freq, 40).tolist().count(0)
        == 11
    )


@pytest.mark.parametrize("given", [1.0, 1.25])
def test_fault_6c_an_explicit_attention_factor_wins(given):
    """Ignored, it would be 1.3689."""
    scaled = yarn(64, base=1e4, factor=40, trained_length=4096, attention_factor=given)
    assert scaled.attention_factor == given
    scaled = longrope(
        4,
        base=1e4,
        factor=32,
        trained_length=4096,
        factors=[1, 1],
        attention_factor=given,
    )
    assert scaled.attention_factor == given
    config = {
        "model_type": "llama",
        "hidden_size": 128,
        "num_attention_heads": 2,
        "max_position_embeddings": 163_840,
        "rope_theta": 1e4,
        "rope_scaling": {**YARN_40, "attention_factor": given},
    }
    (found,) = rope_from_config(config).values()
    assert found.scaled.attention_factor == given


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fault_6d_the_factor_is_applied_exactly_once(layout):
    """Twice would be 1.2965 on q and 1.6809 on the score."""
    scaling = yarn(8, base=1e4, factor=4, trained_length=4096)
    x = oracles.normal(1, 1, 3, 8, dtype=torch.float64)
    q, k = RotaryEmbedding(8, scaling=scaling, layout=layout)(x, x)
    torch.testing.assert_close(
        q.norm(dim=-1) / x.norm(dim=-1),
        torch.full((1, 1, 3), 1.138629436111989, dtype=torch.float64),
    )
    torch.testing.assert_close(
        (q * k).sum(-1) / x.square().sum(-1),
        torch.full((1, 1, 3), 1.2964769927807063, dtype=torch.float64),
    )


def test_fault_7_the_upper_end_is_clamped_at_dim_less_one():
    """dim/2 - 1 moves a pair by 67 %; at 4096 trained tokens nothing shows."""
    scaled = yarn(64, base=1e4, factor=4, trained_length=131_072).inv_freq
    want = oracles.blend(64, 1e4, 4, oracles.pair_ramp(64, 1e4, 131_072, 32, 1, True))
    torch.testing.assert_close(
        scaled, torch.tensor(want, dtype=torch.float64), rtol=1e-12, atol=0
    )
    wrong = oracles.blend(64, 1e4, 4, [min(1, max(0, (i - 22) / 9)) for i in range(32)])
    assert (scaled / torch.tensor(wrong, dtype=torch.float64) - 1).abs().max() > 0.6


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("dim, length", [(64, 4), (8, 4), (64, 1), (128, 6)])
def test_fault_8_no_silent_return_to_plain_frequencies(dim, length, truncate):
    """high below low leaves every pair unscaled in four released programs."""
    with pytest.raises(ValueError, match=f"{length}"):
        yarn(dim, base=1e4, factor=4, trained_length=length, truncate=truncate)
    by_turns = yarn(
        dim, base=1e4, factor=4, trained_length=length, ramp="rotations"
    ).inv_freq
    turns = torch.tensor(oracles.turns(dim, 1e4, length))
    slow = turns <= 1
    assert slow.any()
    torch.testing.assert_close(
        by_turns[slow], inverse_frequencies(dim)[slow] / 4, rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("ramp", ["pair", "rotations"])
def test_fault_8b_betas_the_wrong_way_round(ramp):
    """The ramp runs backwards: the fastest pair divided, the slowest untouched."""
    with pytest.raises(ValueError, match="beta_fast"):
        yarn(
            64,
            base=1e4,
            factor=4,
            trained_length=4096,
            beta_fast=1,
            beta_slow=32,
            ramp=ramp,
        )


def test_fault_9_the_printed_rule_is_kept_and_yarn_is_not_it():
    """12 pairs kept, 0 on the ramp, 52 divided; YaRN: 21, 25, 18."""
    plain = inverse_frequencies(128)
    printed = apex1(128, base=1e4, factor=16)
    case = FREQUENCIES["Yarn-Llama-2-7b-64k"]
    want = torch.tensor(case["peers"]["APEX-1 apply_yarn_scaling"]["inv_freq"])
    torch.testing.assert_close(printed.inv_freq, want.double(), rtol=5e-7, atol=0)
    assert regimes(plain, printed.inv_freq, 16).bincount(minlength=3).tolist() == [
        12,
        0,
        52,
    ]
    for ramp, counts in (("pair", [21, 25, 18]), ("rotations", [21, 25, 18])):
        real = yarn(128, base=1e4, factor=16, trained_length=4096, ramp=ramp)
        assert regimes(plain, real.inv_freq, 16).bincount().tolist() == counts
    for length in (2048, 32_768):  # the trained length matters
        other = yarn(128, base=1e4, factor=16, trained_length=length)
        assert not torch.equal(other.inv_freq, real.inv_freq)


def test_fault_10_layouts_agree_only_after_the_permutation():
    """The same q and k: scores differ by several units; permuted: equal."""
    q, k = (oracles.normal(1, 1, 6, 8, seed=s) * 2 for s in (0, 1))
    order = convert_layout(torch.arange(8), 1, to="half")
    assert order.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]

    def scores(layout, q, k):
        q, k = RotaryEmbedding(8, layout=layout)(q, k, offset=1)
        return q @ k.transpose(-1, -2)

    want = scores("interleaved", q, k)
    assert (scores("half", q, k) - want).abs().max() > 1.0
    moved = scores("half", q[..., order], k[..., order])
    torch.testing.assert_close(moved, want, rtol=0, atol=1e-5)
    for layout in LAYOUTS:  # each layout alone is a rotation
        turned, _ = RotaryEmbedding(8, layout=layout)(q, k, offset=1)
        torch.testing.assert_close(
            turned.norm(dim=-1), q.norm(dim=-1), rtol=1e-6, atol=0
        )


def test_fault_10b_the_layout_belongs_to_the_module():
    """One model may hold both; neither touches the other, and each says which it is."""
    main, indexer = RotaryEmbedding(8), RotaryEmbedding(8, layout="half")
    assert "interleaved" in repr(main) and "half" in repr(indexer)
    x = oracles.normal(1, 1, 5, 8)
    for module, layout in (
        (main, "interleaved"),
        (indexer, "half"),
        (main, "interleaved"),
    ):
        want = oracles.rotate(x, range(5), inverse_frequencies(8), layout)
        torch.testing.assert_close(module(x, x)[0].double(), want, rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="layout"):
        RotaryEmbedding(8, layout="deepseek")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fault_11_a_half_precision_call_does_not_poison_the_tables(layout):
    """A bfloat16 call of 1024 positions left later float32 calls off by 2.38."""
    module, x = RotaryEmbedding(32, layout=layout), torch.ones(1, 1, 1024, 32)
    module(x.bfloat16(), x.bfloat16())
    want = oracles.rotate(x, range(1024), inverse_frequencies(32), layout)
    torch.testing.assert_close(module(x, x)[0].double(), want, rtol=0, atol=3e-7)
    shifted, _ = module(
        x, x, offset=10
    )  # after a cached call: not the table of offset 0
    want = oracles.rotate(x, range(10, 1034), inverse_frequencies(32), layout)
    torch.testing.assert_close(shifted.double(), want, rtol=0, atol=3e-7)


def test_fault_11b_a_second_backward_through_the_cached_tables():
    module = RotaryEmbedding(8)
    for _ in range(3):
        x = oracles.normal(1, 1, 5, 8).requires_grad_()
        module(x, x)[0].square().sum().backward()
        torch.testing.assert_close(x.grad, 2 * x.detach(), rtol=1e-5, atol=1e-6)
    for table in rotary_tables(torch.arange(4), inverse_frequencies(8)):
        assert not table.requires_grad


@pytest.mark.parametrize("width", [9, 65, 3, 1])
def test_fault_12_an_odd_rotary_width_is_refused_when_built(width):
    with pytest.raises(ValueError, match=str(width)):
        RotaryEmbedding(width)
    with pytest.raises(ValueError, match=str(width)):
        RotaryEmbedding(128, rotary_dim=width)


@pytest.mark.parametrize("scaling", [None, "yarn"])
def test_fault_15_meta_and_to_empty(scaling):
    """A buffer would hold old memory: inv_freq[0] = -5e-23."""
    with torch.device("meta"):
        scaled = yarn(8, base=1e4, factor=4, trained_length=4096) if scaling else None
        module = torch.nn.ModuleList([RotaryEmbedding(8, scaling=scaled), RMSNorm(8)])
    module.to_empty(device="cpu")
    assert module[0].inv_freq[0].item() == 1.0
    x = oracles.normal(1, 1, 5, 8)
    fresh = yarn(8, base=1e4, factor=4, trained_length=4096) if scaling else None
    assert torch.equal(module[0](x, x)[0], RotaryEmbedding(8, scaling=fresh)(x, x)[0])


def test_fault_17_float16_neither_overflows_nor_divides_zero_by_zero():
    x = torch.tensor([300.0, -300.0, 300.0, 300.0]).half()
    assert rms_norm(x).tolist() == [1.0, -1.0, 1.0, 1.0]  # in float16: 0
    zeros = torch.zeros(4).half()
    assert rms_norm(zeros, eps=1e-8).tolist() == [0.0] * 4  # in float16: nan


def test_fault_18_gemma_adds_its_one_in_float32():
    weight = torch.tensor([15.8125, 0.0039]).bfloat16()
    x = torch.ones(2).bfloat16()
    got = rms_norm(x.float(), weight, 0.0, weight_offset=1.0)
    assert got[0].item() == 16.8125  # in bfloat16: 16.75
    assert got[1].item() == pytest.approx(1.0039, abs=1e-5)  # in bfloat16: 1.0
    half = rms_norm(x, weight, 0.0, weight_offset=1.0)
    assert torch.equal(half, got.bfloat16())  # one cast


@pytest.mark.parametrize("order", ["cast-last", "cast-first", "cast-to-weight"])
def test_fault_19_a_float32_weight_does_not_widen_the_stream(order):
    x = oracles.normal(3, 8, dtype=torch.bfloat16)
    assert rms_norm(x, torch.ones(8), order=order).dtype == torch.bfloat16
    assert RMSNorm(8, order=order)(x).dtype == torch.bfloat16


def test_fault_20_eps_is_a_number_whatever_the_dtype():
    """With bfloat16's own eps, 0.0078, this output is 0.553 times too small."""
    x = 0.058 * torch.tensor([1.0, -1.0, 1.0, 1.0])
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        got = rms_norm(x.to(dtype)).abs().double()
        torch.testing.assert_close(
            got, torch.full((4,), 0.99985, dtype=torch.float64), rtol=4e-3, atol=0
        )
    with pytest.raises((TypeError, ValueError), match="eps"):
        rms_norm(x, eps=None)


@pytest.mark.parametrize("gradients", [False, True])
def test_fault_22_the_sum_of_squares_does_not_overflow_float32(gradients):
    x = torch.tensor([1e20, -1e20, 1e20, 1e20]).requires_grad_(gradients)
    torch.testing.assert_close(
        rms_norm(x), torch.tensor([1.0, -1.0, 1.0, 1.0]), rtol=2e-7, atol=0
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fault_24_decoding_step_by_step_equals_the_full_pass(layout):
    """Every new token at position 0 moves the last row of scores by 3."""
    q, k = oracles.normal(1, 2, 9, 8), oracles.normal(1, 2, 9, 8, seed=1)
    module = RotaryEmbedding(8, layout=layout)
    full_q, full_k = module(q, k)
    cache = []
    for at in range(9):
        one_q, one_k = module(q[:, :, at : at + 1], k[:, :, at : at + 1], offset=at)
        cache.append(one_k)
        step = one_q @ torch.cat(cache, dim=2).transpose(-1, -2)
        assert torch.equal(step, one_q @ full_k[:, :, : at + 1].transpose(-1, -2))
    assert torch.equal(one_q, full_q[:, :, -1:])
    assert torch.equal(torch.cat(cache, dim=2), full_k)


def test_fault_26_sliced_and_proportional_are_two_things():
    x = torch.arange(1.0, 9.0, dtype=torch.float64).view(1, 1, 1, 8)
    sliced = RotaryEmbedding(8, rotary_dim=4, layout="half")
    scaling = proportional(8, base=1e4, partial_rotary_factor=0.5)
    whole = RotaryEmbedding(8, scaling=scaling, layout="half")
    one, other = (m(x, x, offset=1)[0].flatten() for m in (sliced, whole))
    assert one[4:].tolist() == [5, 6, 7, 8]  # the first four turn: pairs (0, 2), (1, 3)
    assert other[[2, 3, 6, 7]].tolist() == [3, 4, 7, 8]  # pairs (0, 4), (1, 5) turn
    c, s = math.cos(1), math.sin(1)
    assert one[[0, 2]].tolist() == pytest.approx([c - 3 * s, 3 * c + s])
    assert other[[0, 4]].tolist() == pytest.approx([c - 5 * s, 5 * c + s])
    assert one[1].item() == pytest.approx(2 * math.cos(0.01) - 4 * math.sin(0.01))
    assert other[1].item() == pytest.approx(2 * math.cos(0.1) - 6 * math.sin(0.1))


def test_fault_27_no_graph_break_for_any_method():
    """Two for dynamic NTK elsewhere, which branches on a tensor; it is included."""
    settings = {"base": 1e4, "factor": 2.0, "trained_length": 16}

    def rotate(x):
        out, rows = [], x.shape[-2]
        for scaled in (
            yarn(8, **settings),
            dynamic_ntk(8, **settings, length=rows),
            llama3(8, **settings),
            longrope(8, **settings, factors=[1.0, 1.5, 2.0, 2.0]),
        ):
            tables = rotary_tables(
                torch.arange(rows),
                scaled.inv_freq,
                attention_factor=scaled.attention_factor,
            )
            out.append(apply_rotary(x, *tables))
        return out

    torch._dynamo.reset()
    assert (
        torch._dynamo.explain(rotate)(oracles.normal(1, 2, 24, 8)).graph_break_count
        == 0
    )


def test_fault_29_the_table_lies_where_q_lies():
    x = oracles.normal(1, 2, 5, 8)
    module = RotaryEmbedding(8)
    want, _ = module(x, x)  # the cache is filled on the CPU first
    with PretendDevice("mps"):  # mixing devices raises
        there = x.to("mps")
        got, _ = module(there, there)
        assert got.device.type == "mps"
        torch.testing.assert_close(got.cpu(), want, rtol=0, atol=2e-7)
        twin = copy.deepcopy(module)
        assert twin(there, there)[0].device.type == "mps"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_fault_30_float64_and_complex_stay_on_the_cpu(layout, dtype):
    x = oracles.normal(1, 2, 5, 64, dtype=dtype)
    with PretendDevice("mps") as pretend:  # float64 or complex there raises
        there = x.to("mps")
        scaling = yarn(64, base=1e4, factor=4, trained_length=4096)
        module = RotaryEmbedding(64, scaling=scaling, layout=layout)
        module(there, there, torch.arange(5).to("mps"))
        module(there, there, offset=2**21)
        rms_norm(there, torch.ones(64, dtype=dtype).to("mps"))
    assert pretend.made > 0
