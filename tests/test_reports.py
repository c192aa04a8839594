"""What people reported in public, area by area: each test is named after its report.

``golden/reports.json`` holds the ids and where they were reported. Each test shows that
the package gives the right answer and, where a wrong program is known, that it differs.
"""

import math
import re
import warnings

import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn import functional as F

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.norm import RMSNorm, rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    wavelengths,
)
from apex_lessons.yarn import (
    dynamic_ntk,
    llama3,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    regimes,
    yarn,
)
from tests import oracles

EXAMPLE = [2.0, -1.0, 0.5, 1.5]
NORMED = [
    1.4605930971890022,
    -0.7302965485945011,
    0.36514827429725055,
    1.0954448228917517,
]
Q = [1.0, 0.5, 0.3, -0.2]


def f64(values):
    return torch.tensor(values, dtype=torch.float64)


def near(got, want, rel=1e-12):
    got = got.tolist() if isinstance(got, torch.Tensor) else got
    assert got == pytest.approx(want, rel=rel, abs=1e-15)


def turned(x, position, layout="interleaved", base=1e4, scaling=None):
    """One vector at one position, in float64."""
    inv_freq = scaling.inv_freq if scaling else inverse_frequencies(len(x), base)
    factor = scaling.attention_factor if scaling else 1.0
    cos, sin = rotary_tables(
        torch.tensor([position]), inv_freq, attention_factor=factor, dtype=torch.float64
    )
    return apply_rotary(f64([x]), cos, sin, layout=layout)[0]


def table_of(rows, **kwargs):
    table = ScaledEmbedding(*rows.shape, dtype=rows.dtype, **kwargs)
    with torch.no_grad():
        table.weight.copy_(rows)
    return table


def test_every_report_of_these_areas_has_a_test():
    reports = oracles.golden("reports.json")
    assert {r["area"] for r in reports} == {
        "embedding",
        "tying",
        "rmsnorm",
        "rope",
        "yarn",
    }
    covered = {
        "-".join(found.groups())
        for name in globals()
        if (found := re.match(r"test_(EMB|TIE|RMS|ROPE|YARN)_(\d+)_", name))
    }
    wanted = {r["id"] for r in reports}
    assert wanted - covered == set() and covered - wanted == set()


# --- embedding ---


@pytest.mark.parametrize(
    "std, want",
    [
        (1.0, 22.627416997969522),
        (0.02, 0.4525483399593904),
        (512**-0.5, 1.0),
    ],
)
def test_EMB_01_the_init_decides_the_size(std, want):
    torch.manual_seed(0)
    out = ScaledEmbedding(10_000, 512, init_std=std)(torch.arange(10_000))
    assert out.square().mean().sqrt().item() == pytest.approx(want, rel=0.01)


def test_EMB_02_the_factor_multiplies():
    table = table_of(
        f64(
            [
                [0.01, -0.03, 0.02, 0.01],
                [-0.02, 0.04, -0.01, 0.03],
                [0.03, 0.01, -0.04, 0.02],
            ]
        )
    )
    want = f64(
        [
            [-0.04, 0.08, -0.02, 0.06],
            [0.02, -0.06, 0.04, 0.02],
            [0.06, 0.02, -0.08, 0.04],
        ]
    )
    assert torch.equal(table(torch.tensor([1, 0, 2])), want)


@pytest.mark.parametrize(
    "d, bf16, fp16",
    [
        (512, 22.625, 22.625),
        (768, 27.75, 27.71875),
        (3072, 55.5, 55.4375),
        (7168, 84.5, 84.6875),
    ],
)
def test_EMB_04_the_factor_is_rounded_to_the_tables_dtype(d, bf16, fp16):
    for dtype, scale in ((torch.bfloat16, bf16), (torch.float16, fp16)):
        table = table_of(torch.ones(1, d, dtype=dtype))
        out = table(torch.tensor([0]))
        assert out.dtype == dtype and out[0, 0].item() == scale
    assert ScaledEmbedding(1, d).scale == pytest.approx(math.sqrt(d), rel=1e-15)


def test_EMB_05_an_id_one_past_the_table():
    table = ScaledEmbedding(151_643, 2)
    assert table(torch.tensor([151_642])).shape == (1, 2)
    with pytest.raises(IndexError, match=r"151643") as caught:
        table(torch.tensor([0, 151_643]))
    assert "151643 rows" in str(caught.value) or "151642" in str(caught.value)
    counts = [
        ScaledEmbedding(v, d, device="meta").weight.numel()
        for v, d in ((151_643, 512), (151_936, 512), (151_643, 7168))
    ]
    assert counts == [77_641_216, 77_791_232, 1_086_977_024]


def test_EMB_06_ids_are_whole_numbers_of_an_integer_type():
    table, ids = ScaledEmbedding(7, 2), torch.tensor([3, 1])
    assert torch.equal(table(ids), table(ids.int()))
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.bool):
        with pytest.raises(TypeError):
            table(ids.to(dtype))
    with pytest.raises(TypeError):
        table(torch.tensor([1.7]))  # never row 1
    for dtype in (torch.int16, torch.uint8):
        assert torch.equal(table(ids.to(dtype)), table(ids))


@pytest.mark.parametrize("shape", [(2, 0), (0, 5)])
def test_EMB_08_nothing_in_nothing_out(shape):
    table, norm, rope = ScaledEmbedding(7, 4), RMSNorm(4), RotaryEmbedding(4)
    x = norm(table(torch.zeros(shape, dtype=torch.long)))
    q, k = rope(x[:, None], x[:, None])
    logits = table.logits(q[:, 0] + k[:, 0])
    assert x.shape == (*shape, 4) and logits.shape == (*shape, 7)
    logits.sum().backward()
    assert table.weight.grad.abs().sum() == 0 and norm.weight.grad.abs().sum() == 0


def test_EMB_09_padding_is_an_init_and_a_gradient_not_a_mask():
    table = ScaledEmbedding(3, 2, padding_idx=0, scale=1.0)
    assert table(torch.tensor([0])).tolist() == [[0.0, 0.0]]
    table.weight = nn.Parameter(torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]))
    out = table(torch.tensor([0, 1]))
    assert out[0].tolist() == [0.5, 0.5]
    out.sum().backward()
    assert table.weight.grad[0].tolist() == [0.0, 0.0]


def test_EMB_10_a_tied_padding_row_still_learns_through_the_logits():
    table = table_of(f64([[0, 0], [1, 0], [0, 1]]), padding_idx=0, scale=1.0)
    loss = F.cross_entropy(table.logits(table(torch.tensor([1]))), torch.tensor([2]))
    near(loss.item(), 1.551444713932051)
    loss.backward()
    want = [
        [0.21194155761708544, 0],
        [1.1522337695316582, -0.7880584423829146],
        [-0.7880584423829146, 0],
    ]
    for got, row in zip(table.weight.grad.tolist(), want, strict=True):
        near(got, row)


# --- tying ---


def initial_loss(table, tokens=64):
    """Cross entropy of random targets for hidden states of unit RMS."""
    hidden = rms_norm(oracles.normal(tokens, table.d_model, seed=1))
    targets = torch.randint(
        0, table.vocab_size, (tokens,), generator=oracles.generator(2)
    )
    return F.cross_entropy(table.logits(hidden), targets).item()


def test_TIE_01_the_tied_table_starts_with_the_std_that_was_asked_for():
    torch.manual_seed(0)
    table = ScaledEmbedding(50_257, 768)
    with torch.no_grad():
        assert table.weight.std().item() == pytest.approx(0.02, rel=0.01)
        assert initial_loss(table) == pytest.approx(10.9785, abs=0.15)
        table.weight.mul_(50)  # as if the other tensor, N(0, 1), had survived
        assert initial_loss(table) > 100


def test_TIE_02_sharing_is_identity_not_equal_values():
    table = ScaledEmbedding(7, 4)
    assert sum(p.numel() for p in table.parameters()) == 28
    with torch.no_grad():
        table.weight[3, 1] = 5.0
    assert table(torch.tensor([3]))[0, 1] == 10.0
    assert table.logits(torch.eye(4))[1, 3] == 5.0
    assert ScaledEmbedding(128_256, 2048, device="meta").weight.numel() == 262_668_288


def test_TIE_04_a_file_holds_one_tensor_and_the_tie_comes_back():
    table = ScaledEmbedding(7, 4)
    stored = safetensors.torch.load(safetensors.torch.save(table.state_dict()))
    assert list(stored) == ["weight"]
    back = ScaledEmbedding(7, 4)
    back.load_state_dict(stored)
    assert torch.equal(back.weight, table.weight)
    assert sum(p.numel() for p in back.parameters()) == 28
    with torch.no_grad():
        back.weight.fill_(1.0)
    assert torch.equal(back.logits(torch.ones(4)), torch.full((7,), 4.0))


def test_TIE_05_the_optimiser_meets_the_tensor_once():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = ScaledEmbedding(7, 4)
            self.head = self.embed

    model = Model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimiser = torch.optim.SGD(model.parameters(), lr=1.0)
    assert len(optimiser.param_groups[0]["params"]) == 1
    before = model.embed.weight.detach().clone()
    model.head.logits(torch.ones(1, 4)).sum().backward()
    optimiser.step()
    torch.testing.assert_close(model.embed.weight, before - 1)  # one step, not two


def test_TIE_08_a_grown_vocabulary_grows_on_both_sides():
    table = ScaledEmbedding(7, 4)
    old = table.weight.detach().clone()
    table.weight = nn.Parameter(torch.cat([old, torch.zeros(2, 4)]))
    assert table.logits(torch.ones(1, 4)).shape == (1, 9)
    assert torch.equal(table(torch.arange(7)), old * 2.0)
    assert table(torch.tensor([8])).tolist() == [[0.0] * 4]


def test_TIE_09_gradients_of_both_uses_add():
    table = table_of(torch.eye(2, dtype=torch.float64))
    near(table.scale, math.sqrt(2))
    logits = table.logits(table(torch.tensor([0])))
    F.cross_entropy(logits, torch.tensor([1])).backward()
    near(table.weight.grad[0], [2.2752707339536427, -1.1376353669768213])
    near(table.weight.grad[1], [-1.1376353669768213, 0])


def test_TIE_10_same_object_same_storage_same_values():
    table = ScaledEmbedding(7, 4)
    head = nn.Linear(4, 7, bias=False)
    head.weight = table.weight
    assert head.weight is table.weight
    assert len({id(p) for p in [*table.parameters(), *head.parameters()]}) == 1
    hidden = oracles.normal(2, 4)
    with torch.no_grad():
        table.weight.mul_(3)
    assert torch.equal(head(hidden), table.logits(hidden))
    copied = nn.Parameter(table.weight.clone())
    with torch.no_grad():
        table.weight.zero_()
    assert copied.abs().sum() > 0  # equal values once, not shared


@torch.no_grad()
def test_TIE_12_an_untrained_tied_model_echoes_its_input():
    torch.manual_seed(0)
    table, ids = ScaledEmbedding(50_257, 512), torch.arange(0, 50_257, 1571)
    logits = table.logits(rms_norm(table(ids), eps=0.0))
    own = logits.gather(1, ids[:, None]).mean().item()
    assert own == pytest.approx(10.24, rel=0.03)
    assert logits.std().item() == pytest.approx(0.452548, rel=0.03)
    share = logits.softmax(-1).gather(1, ids[:, None]).mean().item()
    assert share == pytest.approx(0.3346, rel=0.06)
    raw = table.logits(table(ids)).gather(1, ids[:, None]).mean().item()
    assert raw == pytest.approx(4.634095, rel=0.03)


# --- rmsnorm ---


def test_RMS_01_eps_stands_inside_the_root():
    near(rms_norm(f64([1e-3] * 4)), [0.7071067811865476] * 4)
    near(rms_norm(f64(EXAMPLE)), NORMED)
    near(rms_norm(f64(EXAMPLE)).square().mean().item(), 0.9999994666669512)


def test_RMS_02_divided_by_the_root_of_the_mean_square():
    wrong = f64(
        [
            1.7091474014926595,
            -0.8545737007463298,
            0.4272868503731649,
            1.2818605511194947,
        ]
    )
    got = rms_norm(f64(EXAMPLE))
    near(got, NORMED)
    assert (got - wrong).abs().max() > 0.2


def test_RMS_04_eps_belongs_to_the_model():
    x = f64([0.01, -0.01, 0.01, 0.01])
    for eps, want in ((1e-5, 0.9534625892455924), (1e-6, 0.9950371902099892)):
        module = RMSNorm(4, eps, dtype=torch.float64)
        assert module.eps == eps and f"eps={eps:g}" in repr(module)
        near(module(x).square().mean().sqrt().item(), want)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("value", [255.0, 256.0, 1000.0])
def test_RMS_05_squares_do_not_overflow(dtype, value):
    assert rms_norm(torch.full((4,), value, dtype=dtype)).tolist() == [1.0] * 4


def test_RMS_06_squares_do_not_underflow():
    x = torch.full((4,), 1e-4, dtype=torch.float16)
    for eps, want in ((1e-6, 0.09952006708028384), (1e-8, 0.7071654422987326)):
        got = rms_norm(x, eps=eps)
        assert (
            got.tolist() == torch.full((4,), want, dtype=torch.float64).half().tolist()
        )


def test_RMS_08_one_is_added_in_float32():
    x = torch.ones(2, dtype=torch.bfloat16)
    weight = torch.tensor([15.8125, 0.0], dtype=torch.bfloat16)
    got = rms_norm(x.float(), weight.float(), 0.0, weight_offset=1.0)
    assert got.tolist() == [16.8125, 1.0]
    assert (weight + 1)[0].item() == 16.75  # what adding in bfloat16 gives
    got = rms_norm(x.float(), weight, 0.0, weight_offset=1.0)
    assert got.tolist() == [16.8125, 1.0]
    assert (
        rms_norm(x, weight).tolist()[1] == 0.0
    )  # the plain form silences this dimension


def test_RMS_09_the_cast_order_shows_in_bfloat16():
    x = torch.tensor([1.0, 2.0, 2.0, 4.0]).bfloat16()
    weight = torch.full((4,), 1.0078125).bfloat16()
    assert rms_norm(x, weight, order="cast-first").tolist() == [
        0.404296875,
        0.80859375,
        0.80859375,
        1.6171875,
    ]
    assert rms_norm(x, weight).tolist() == [0.40234375, 0.8046875, 0.8046875, 1.609375]


def test_RMS_10_each_token_alone():
    got = rms_norm(f64([[3, 4], [6, 8]]), eps=0.0)
    for row in got:
        near(row, [0.848528137423857, 1.131370849898476])
    both = f64([[[3, 4], [6, 8]], [[0, 0], [1, 1]]])
    assert torch.equal(rms_norm(both, eps=1e-6)[0], rms_norm(both[0], eps=1e-6))


def test_RMS_12_root_d_times_the_unit_vector():
    x = f64([3, 4])
    near(rms_norm(x, eps=0.0), (F.normalize(x, dim=-1) * math.sqrt(2)).tolist())
    near(rms_norm(x, eps=0.0).norm().item(), math.sqrt(2))


def test_RMS_13_the_mean_stays():
    x = f64(EXAMPLE)
    layer = F.layer_norm(x, (4,), eps=1e-6)
    near(
        layer,
        [1.0910890355270753, -1.527524649737905, -0.218217807105415, 0.654653421316245],
    )
    assert (rms_norm(x) - layer).abs().max() > 0.3
    centred = x - x.mean()
    near(rms_norm(centred), layer.tolist())


def test_RMS_14_a_norm_without_a_weight():
    module = RMSNorm(4, elementwise_affine=False)
    assert module.weight is None and module.state_dict() == {}
    assert list(module.parameters()) == [] and "RMSNorm" in repr(module)
    near(module(torch.tensor(EXAMPLE)), NORMED, rel=1e-6)


# --- rope ---


@pytest.mark.parametrize("width", [65, 9, 1, 0, -2])
def test_ROPE_01_an_odd_width_is_refused_when_built(width):
    for build in (inverse_frequencies, RotaryEmbedding):
        with pytest.raises(ValueError, match=str(width)):
            build(width)
    with pytest.raises(ValueError, match="3"):
        RotaryEmbedding(4, rotary_dim=3)  # a share of 0.75 of 4


def test_ROPE_02_positions_are_counted_in_whole_numbers():
    assert torch.tensor(257).bfloat16().item() == 256
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        with pytest.raises(TypeError):
            rotary_tables(torch.arange(8).to(dtype), inverse_frequencies(8))
    q = torch.ones(1, 1, 4096, 32, dtype=torch.bfloat16)
    y, _ = RotaryEmbedding(32)(q, q)
    assert (
        len({tuple(row) for row in y[0, 0].tolist()}) == 4096
    )  # no two positions collide
    cos, _ = rotary_tables(
        torch.tensor([1857]), inverse_frequencies(32), dtype=torch.float64
    )
    near(cos[0, 1].item(), 0.3066928098187106, rel=1e-11)
    cos, _ = rotary_tables(
        torch.tensor([15_962]), inverse_frequencies(2), dtype=torch.bfloat16
    )
    assert cos.item() == f64(-0.908015901251032).bfloat16().item()


@pytest.mark.parametrize(
    "rows, error", [(4096, 1.455e-4), (8192, 2.965e-4), (131_072, 4.873e-3)]
)
def test_ROPE_04_float32_angles_err_ours_do_not(rows, error):
    inv_freq = inverse_frequencies(64)
    positions = torch.arange(rows)[-2000:]
    exact = (positions[:, None].double() * inv_freq).cos()
    single = (positions[:, None].float() * inv_freq.float()).cos()
    assert error / 3 < (single - exact).abs().max() < error * 1.3
    cos, _ = rotary_tables(positions, inv_freq)
    assert (cos - exact).abs().max() <= 6e-8
    if rows == 131_072:
        assert cos[-1, 1].item() == pytest.approx(0.05461793, abs=1e-8)


def test_ROPE_05_two_layouts_two_results_one_norm():
    adjacent = [
        -1.060552500630379,
        -0.3538762402403555,
        0.3058641101651954,
        -0.1909113566890488,
    ]
    half = [
        -1.0323284990184056,
        0.5057741169149929,
        -0.1558777409202664,
        -0.18491225664854968,
    ]
    near(turned(Q, 3), adjacent)
    near(turned(Q, 3, "half"), half)
    for layout in ("interleaved", "half"):
        near(turned(Q, 3, layout).norm().item(), 1.174734012447073)


def test_ROPE_06_rows_are_permuted_head_by_head():
    eight = torch.arange(8)
    assert convert_layout(eight, 1, to="half").tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert convert_layout(eight, 2, to="half").tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert convert_layout(eight, 1, to="interleaved").tolist() == [
        0,
        4,
        1,
        5,
        2,
        6,
        3,
        7,
    ]
    twice = convert_layout(convert_layout(eight, 1, to="half"), 1, to="half")
    assert twice.tolist() != eight.tolist()
    moved = convert_layout(f64(Q), 1, to="half").tolist()
    near(turned(moved, 3, "half"), convert_layout(turned(Q, 3), 1, to="half").tolist())


def test_ROPE_08_values_are_not_rotated():
    """One key: the output is its value, wherever it stands."""
    q, k, v = (f64(x).view(1, 1, 1, 2) for x in ([1, 2], [3, 4], [1, 0]))
    out = RotaryEmbedding(2)(q, k, offset=1)
    assert len(out) == 2  # q and k; there is no third to forget
    weights = (out[0] @ out[1].transpose(-1, -2)).softmax(-1)
    assert (weights @ v).flatten().tolist() == [1.0, 0.0]
    near(turned([1.0, 0.0], 1), [0.5403023058681398, 0.8414709848078965])


def test_ROPE_10_every_head_has_the_same_frequencies():
    x = f64([1.0, 0.5, 0.3, -0.2]).expand(1, 2, 4, 4)
    module = RotaryEmbedding(4)
    near(module.inv_freq, [1.0, 0.01])
    y, _ = module(x, x)
    assert torch.equal(y[:, 0], y[:, 1])


def test_ROPE_12_a_decoder_counts_on():
    x = oracles.normal(1, 2, 11, 8)
    module = RotaryEmbedding(8)
    full, _ = module(x, x)
    for at in (6, 7, 8, 9, 10):
        assert torch.equal(
            module(x[:, :, at : at + 1], x[:, :, at : at + 1], offset=at)[0],
            full[:, :, at : at + 1],
        )
    three = x[:, :, 5:8]
    assert torch.equal(module(three, three, offset=5)[0], full[:, :, 5:8])
    assert not torch.equal(module(three, three)[0], full[:, :, 5:8])
    assert torch.equal(module(three, three, offset=5)[0], full[:, :, 5:8])


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_ROPE_13_one_token_with_several_heads(layout):
    x = torch.ones(1, 4, 1, 2, dtype=torch.float64)
    y, _ = RotaryEmbedding(2, layout=layout)(x, x, offset=1)
    assert y.shape == (1, 4, 1, 2)
    for head in y[0, :, 0]:
        near(head, [-0.3011686789397568, 1.3817732906760363])


def test_ROPE_14_padding_does_not_count():
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    assert positions.tolist() == [[0, 0, 0, 1, 2]]
    x = oracles.normal(1, 1, 5, 4, dtype=torch.float64)
    module = RotaryEmbedding(4)
    q, k = module(x, x, positions)
    alone, _ = module(x[:, :, 2:], x[:, :, 2:])
    assert torch.equal(q[:, :, 2:], alone)
    later, _ = module(x, x, positions + 100)  # a shift of all leaves the scores
    torch.testing.assert_close(q @ k.transpose(-1, -2), later @ later.transpose(-1, -2))
    mixed = (later[:, :, 4:] * k[:, :, 2:3]).sum()  # two ways of counting do not
    assert abs(mixed - (q[:, :, 4:] * k[:, :, 2:3]).sum()) > 0.1


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_ROPE_16_partial_rotary_uses_its_own_width(layout):
    module = RotaryEmbedding(8, rotary_dim=4, layout=layout)
    near(module.inv_freq, [1.0, 0.01])
    x = oracles.normal(1, 1, 3, 8, dtype=torch.float64)
    y, _ = module(x, x, offset=1)
    assert torch.equal(y[..., 4:], x[..., 4:])
    inner = RotaryEmbedding(4, layout=layout)
    assert torch.equal(y[..., :4], inner(x[..., :4], x[..., :4], offset=1)[0])


def test_ROPE_17_the_exponent_is_negative_and_starts_at_zero():
    inv_freq = inverse_frequencies(8)
    near(inv_freq, [1, 0.1, 0.01, 0.001])
    near(
        wavelengths(inv_freq),
        [6.283185307179586, 62.83185307179586, 628.3185307179587, 6283.185307179587],
    )


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_ROPE_18_counter_clockwise(layout):
    near(turned([1.0, 0.0], 1, layout), [0.5403023058681398, 0.8414709848078965])


def test_ROPE_20_nothing_to_save_and_an_extra_key_is_named():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.rope = RMSNorm(8), RotaryEmbedding(8)

    model, x = Model(), oracles.normal(1, 1, 5, 8)
    want, _ = model.rope(x, x)
    assert list(model.state_dict()) == ["norm.weight"]
    old = {**model.state_dict(), "rope.inv_freq": torch.zeros(4)}
    with pytest.raises(RuntimeError, match="rope.inv_freq"):
        model.load_state_dict(old)
    assert model.load_state_dict(old, strict=False).unexpected_keys == ["rope.inv_freq"]
    assert torch.equal(model.rope(x, x)[0], want) and model.rope.inv_freq[0] == 1.0


def test_ROPE_21_built_on_meta_then_emptied():
    with torch.device("meta"):
        module = RotaryEmbedding(8)
    module.to_empty(device="cpu")
    assert module.inv_freq[0].item() == 1.0
    x = oracles.normal(1, 1, 5, 8)
    assert torch.equal(module(x, x)[0], RotaryEmbedding(8)(x, x)[0])


def test_ROPE_22_the_table_follows_q():
    """meta stands for another device; test_devices.py compares values on one."""
    module, x = RotaryEmbedding(8), oracles.normal(1, 1, 5, 8)
    want, _ = module(x, x)
    module.to("meta")
    assert module(x.to("meta"), x.to("meta"))[0].device.type == "meta"
    assert torch.equal(module(x, x)[0], want)


@pytest.mark.parametrize("size", [2, 4, 6])
def test_ROPE_24_no_smallest_width_is_forced(size):
    x = oracles.normal(1, 1, 3, size)
    module = RotaryEmbedding(size, rotary_dim=size)
    want = oracles.rotate(x, range(3), inverse_frequencies(size), "interleaved")
    torch.testing.assert_close(module(x, x)[0].double(), want, rtol=0, atol=1e-6)
    assert module.inv_freq.shape == (size // 2,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_ROPE_25_no_float64_and_no_complex_tensor_on_mps(dtype, layout):
    from tests.pretend_device import PretendDevice

    x = oracles.normal(1, 2, 5, 64, dtype=dtype)
    module = RotaryEmbedding(64, layout=layout)
    with PretendDevice("mps") as pretend:  # raises when one is made there
        there = x.to("mps")
        module(there, there)
        module(there, there, torch.arange(5).to("mps"))
        tables = rotary_tables(torch.arange(5).to("mps"), inverse_frequencies(8))
        assert all(t.dtype == torch.float32 and t.device.type == "mps" for t in tables)
    assert pretend.made > 0


def test_ROPE_26_what_may_be_cached():
    q, k = (
        oracles.normal(1, 1, 1, 8, dtype=torch.float64),
        oracles.normal(1, 1, 6, 8, seed=1, dtype=torch.float64),
    )
    static = RotaryEmbedding(8)
    rotated = static(k, k)[1]
    one_by_one = torch.cat(
        [static(k[:, :, i : i + 1], k[:, :, i : i + 1], offset=i)[1] for i in range(6)],
        dim=2,
    )
    assert torch.equal(
        rotated, one_by_one
    )  # cached after rotation or before: the same keys

    def at_length(length):
        scaling = dynamic_ntk(8, base=1e4, factor=2, trained_length=4, length=length)
        return RotaryEmbedding(8, scaling=scaling)

    stale, fresh = at_length(4)(k, k)[1], at_length(6)(k, k)[1]
    query = at_length(6)(q, q, offset=5)[0]
    want = oracles.rotate(k, range(6), at_length(6).inv_freq, "interleaved")
    torch.testing.assert_close(
        query @ fresh.transpose(-1, -2), query @ want.transpose(-1, -2)
    )
    assert (
        (query @ stale.transpose(-1, -2)) - (query @ fresh.transpose(-1, -2))
    ).abs().max() > 0.01


# --- yarn ---

TOY = {"base": 1e4, "factor": 4, "trained_length": 4096}


def test_YARN_01_frequencies_change_positions_do_not():
    scaled = yarn(8, **TOY)
    near(scaled.inv_freq, [1, 0.1, 0.00625, 0.00025])
    cos, _ = rotary_tables(torch.tensor([1]), scaled.inv_freq, dtype=torch.float64)
    assert cos[0, 0].item() == math.cos(1.0)  # not cos(0.25)
    late = yarn(8, base=1e4, factor=8, trained_length=4096).inv_freq
    cos, sin = rotary_tables(torch.tensor([32_760, 39_999, 40_000]), late)
    assert len({tuple(row) for row in torch.cat([cos, sin], -1).tolist()}) == 3


def test_YARN_02_the_ramp_of_the_code_and_the_ramp_of_the_paper():
    near(yarn(8, **TOY).inv_freq[2].item(), 0.00625)
    near(yarn(8, **TOY, ramp="rotations").inv_freq[2].item(), 0.003835238661865492)
    wide = {"base": 1e4, "factor": 32, "trained_length": 4096}
    near(yarn(64, **wide).inv_freq[16].item(), 0.005528846153846154)
    near(yarn(64, **wide, ramp="rotations").inv_freq[16].item(), 0.0020371832715762603)


def test_YARN_04_the_range_counts_pairs():
    """One rotation in 4096 tokens is at index 45.03: pairs 46 and up are divided."""
    index = oracles.pair_that_turns(1, 128, 1e4, 4096)
    near(index, 45.02688127375455, rel=1e-9)
    near(2 * math.pi * 1e4 ** (2 * index / 128), 4096.0, rel=1e-9)
    plain = inverse_frequencies(128)
    scaled = yarn(128, base=1e4, factor=16, trained_length=4096).inv_freq
    near(scaled[46].item(), plain[46].item() / 16)
    assert scaled[45] > plain[45] / 16 * 1.01


def test_YARN_05_the_upper_end_is_clamped_at_dim_less_one():
    scaled = yarn(64, base=1e4, factor=4, trained_length=131_072).inv_freq
    ratio = scaled / inverse_frequencies(64)
    ramp = (1 - ratio) / 0.75
    near([ramp[24].item(), ramp[31].item()], [0.15384615384615385, 0.6923076923076923])


def test_YARN_06_truncate():
    settings = {"base": 150_000, "factor": 32, "trained_length": 4096}
    near(yarn(64, **settings, truncate=False).inv_freq[12].item(), 0.006794959489732218)
    near(yarn(64, **settings).inv_freq[12].item(), 0.007015713910504388)


def test_YARN_08_betas_the_wrong_way_round():
    with pytest.raises(ValueError, match="beta_fast.*beta_slow"):
        yarn(64, base=1e4, factor=4, trained_length=4096, beta_fast=1, beta_slow=32)


def test_YARN_09_factor_one_and_below():
    scaled = yarn(64, base=1e4, factor=1, trained_length=4096)
    assert torch.equal(scaled.inv_freq, inverse_frequencies(64))
    assert scaled.attention_factor == 1.0
    for factor in (0.5, 0, -2):
        with pytest.raises(ValueError, match=str(factor)):
            yarn(64, base=1e4, factor=factor, trained_length=4096)


def test_YARN_10_scores_get_the_square():
    for factor, once, squared in (
        (4, 1.138629436111989, 1.2964769927807063),
        (32, 1.3465735902799727, 1.8132604340394958),
        (128, 1.4852030263919618, 2.205828029603842),
    ):
        a = yarn(4, base=1e4, factor=factor, trained_length=4096).attention_factor
        near([a, a * a], [once, squared])
    scaling = yarn(4, base=1e4, factor=32, trained_length=4096)
    k = [0.02, 0.0, 0.0, 0.0]  # q . k = 0.02
    score = turned(Q, 7, scaling=scaling) @ turned(k, 7, scaling=scaling)
    near(score.item(), 0.03626520868078986)
    first = (f64([2, 1, 0]) * scaling.attention_factor**2).softmax(0)[0].item()
    near(first, 0.8405268276879397)


@pytest.mark.parametrize(
    "scale, squared", [(0.707, 1.5896261651208734), (1.0, 1.8738542070926265)]
)
def test_YARN_12_the_ratio_on_the_tables_the_square_on_the_softmax(scale, squared):
    from apex_lessons.models import rope_from_config

    scaled = yarn(
        64, base=1e4, factor=40, trained_length=4096, mscale=scale, mscale_all_dim=scale
    )
    assert scaled.attention_factor == 1.0
    config = {
        "model_type": "deepseek_v3",
        "hidden_size": 7168,
        "num_attention_heads": 128,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "max_position_embeddings": 163_840,
        "rope_theta": 10_000,
        "rope_scaling": {
            "type": "yarn",
            "factor": 40,
            "beta_fast": 32,
            "beta_slow": 1,
            "mscale": scale,
            "mscale_all_dim": scale,
            "original_max_position_embeddings": 4096,
        },
    }
    found = rope_from_config(config)["all"]
    near(found.softmax_factor, squared)
    assert found.scaled.attention_factor == 1.0


@pytest.mark.parametrize(
    "trained, low, high", [(32_768, 23, 40), (131_072, 30, 47), (2048, 10, 27)]
)
def test_YARN_13_the_trained_length_sets_the_range(trained, low, high):
    plain = inverse_frequencies(128, 1e6)
    scaled = yarn(128, base=1e6, factor=4, trained_length=trained).inv_freq
    kinds = regimes(plain, scaled, 4).tolist()
    assert kinds == [0] * (low + 1) + [1] * (high - low - 1) + [2] * (64 - high)
    with pytest.raises(TypeError, match="trained_length"):
        yarn(128, base=1e6, factor=4)


def test_YARN_14_llama3_is_another_rule():
    plain = inverse_frequencies(128, 5e5)
    for factor, last in ((8, 3.068925988914511e-07), (32, 7.672314972286278e-08)):
        scaled = llama3(128, base=5e5, factor=factor, trained_length=8192).inv_freq
        near(scaled[-1].item(), last)
        assert regimes(plain, scaled, factor).bincount().tolist() == [29, 6, 29]
    scaled = llama3(128, base=5e5, factor=8, trained_length=8192).inv_freq
    near(plain[[29, 34]], [0.0026160992529250353, 0.0009384738703573802])
    near(scaled[[29, 34]], [0.0021665707635033587, 0.0001785078127679964])


def test_YARN_17_yarn_is_no_larger_base():
    near(ntk_aware(8, base=1e4, factor=4).inv_freq[1].item(), 0.06299605249474366)
    near(ntk_by_parts(8, **TOY).inv_freq[1].item(), 0.1)
    near(
        position_interpolation(8, base=1e4, factor=4).inv_freq,
        [0.25, 0.025, 0.0025, 0.00025],
    )


def test_YARN_18_the_factor_is_four_not_a_quarter():
    assert position_interpolation(8, base=1e4, factor=4).inv_freq[0] == 0.25
    with pytest.raises(ValueError, match=r"0\.25.*\b4\b"):
        position_interpolation(8, base=1e4, factor=0.25)
    for factor, meant in ((0.0625, "16"), (0.015625, "64")):
        with pytest.raises(ValueError, match=meant):
            yarn(8, base=1e4, factor=factor, trained_length=4096)
