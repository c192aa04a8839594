"""The numbers behind the pictures of lesson 02, against closed forms and torch."""

import math

import pytest
import torch

from apex_lessons.figures import norm as figures
from apex_lessons.figures import png
from apex_lessons.norm import rms_norm

PICTURES = ("before_and_after", "what_a_shift_does", "two_dimensions", "epsilon_curve",
            "half_precision", "cast_orders", "which_axis", "partial", "depth",
            "last_layer")
TIMES = {"a copy": {"forward": 1.0, "backward": 2.0},
         "LayerNorm": {"forward": 1.5, "backward": 4.0}}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_the_same_twice_and_says_its_numbers(name):
    picture, words = getattr(figures, name), getattr(figures, f"describe_{name}")
    first, second = picture(), picture()
    assert png(first) == png(second)
    assert first.axes and all(axis.get_xlabel() or axis.get_title()
                              for axis in first.axes)
    assert words() == words() and any(letter.isdigit() for letter in words())


def test_layer_norm_agrees_with_torch():
    x = torch.randn(5, 16, generator=torch.Generator().manual_seed(0),
                    dtype=torch.float64)
    wanted = torch.nn.functional.layer_norm(x, (16,), eps=1e-6)
    assert torch.allclose(figures.layer_norm(x), wanted, rtol=1e-12, atol=0)


def test_rms_squared_is_variance_plus_mean_squared():
    facts = figures.statistics(torch.tensor([2.0, -1.0, 0.5, 1.5]))
    assert facts["rms"] ** 2 == pytest.approx(facts["variance"] + facts["mean"] ** 2)
    assert facts["length"] == pytest.approx(2 * facts["rms"])  # sqrt(4) times


def test_the_worked_example_has_the_reference_s_numbers():
    out = figures.both_norms()["after RMSNorm"]
    wanted = torch.tensor([1.4605930971890022, -0.7302965485945011, 0.36514827429725055,
                           1.0954448228917517], dtype=torch.float64)
    assert torch.allclose(out, wanted, rtol=1e-12, atol=0)
    assert "variance 0.700" in figures.describe_before_and_after()


def test_a_shift_changes_rms_norm_only():
    shifts, layer, root = figures.shift_sweep()
    assert layer.shape == root.shape == (len(shifts), 4)
    assert (layer - layer[0]).abs().max() < 1e-5  # epsilon aside
    assert (root - root[0]).abs().max() > 1
    far = figures.both_norms(shift=1e6)["after RMSNorm"]
    assert torch.allclose(far, torch.ones(4, dtype=torch.float64), atol=1e-5)


@pytest.mark.parametrize("shift", [-7.0, 0.0, 1e4])
def test_bars_for_any_shift_stay_inside_their_axes(shift):
    figure = figures.before_and_after(shift=shift)
    for axis in figure.axes:
        low, high = axis.get_ylim()
        assert all(low <= bar.get_y() + bar.get_height() <= high
                   for bar in axis.patches)


def test_two_numbers_are_left_of_layer_norm_and_a_circle_of_rms_norm():
    moved = figures._moved(figures.ring())
    lengths = moved["after RMSNorm"].norm(dim=-1)
    assert torch.allclose(lengths, torch.full_like(lengths, math.sqrt(2)))
    assert moved["after LayerNorm"].abs().sub(1).abs().max() < 1e-12
    directions = torch.nn.functional.cosine_similarity(moved["input"],
                                                       moved["after RMSNorm"])
    assert directions.min() > 1 - 1e-12


@pytest.mark.parametrize("r, eps, wanted", [(0.01, 1e-5, 0.9534625892455924),
                                            (0.01, 1e-6, 0.9950371902099892),
                                            (1e-3, 1e-6, 0.7071067811865476)])
def test_output_rms_agrees_with_the_norm(r, eps, wanted):
    x = torch.tensor([r, -r, r, r], dtype=torch.float64)
    assert figures.output_rms(r, eps).item() == pytest.approx(wanted, rel=1e-12)
    assert rms_norm(x, eps=eps).square().mean().sqrt().item() == pytest.approx(wanted)


def test_output_rms_outside_the_root():
    assert figures.output_rms(1e-3, 1e-6,
                              inside=False).item() == pytest.approx(1 / 1.001)


def test_float16_overflows_from_256_and_vanishes_below():
    sizes = torch.tensor([255.0, 256.0, 1000.0, 1e-4], dtype=torch.float64)
    assert figures.half_output(sizes[:3], "all in float16").tolist() == [1.0, 0.0, 0.0]
    assert figures.half_output(sizes, "float32 inside")[:3].tolist() == [1.0] * 3
    assert figures.half_output(sizes[3:], "all in float16", 1e-8).isinf().all()
    low, high = figures._where_infinite()
    # below half of the smallest float16 number, 2**-24, a square is 0
    assert low < 2e-6 and high == pytest.approx(math.sqrt(2**-25), rel=0.01)


def test_bfloat16_reaches_as_far_as_float32():
    sizes = torch.tensor([256.0, 6e4], dtype=torch.float64)
    assert figures.half_output(sizes, "all in bfloat16").tolist() == [1.0, 1.0]


def test_one_rounding_is_the_nearest_number_and_more_roundings_are_not():
    errors = figures.cast_errors()
    last, first, none = (errors[name] for name in figures.ORDERS)
    assert last.not_nearest < 1e-4 and last.largest <= 2**-8
    assert 0.2 < first.not_nearest < 0.3 and 2**-8 < first.largest <= 2**-7 * 1.01
    assert none.not_nearest > first.not_nearest and none.largest > first.largest


def test_the_pinned_example_of_the_two_orders():
    x = torch.tensor([1.0, 2.0, 2.0, 4.0], dtype=torch.bfloat16)
    weight = torch.full((4,), 1.0078125, dtype=torch.bfloat16)
    assert rms_norm(x, weight).tolist() == [0.40234375, 0.8046875, 0.8046875, 1.609375]
    assert rms_norm(x, weight, order="cast-first").tolist() == [
        0.404296875, 0.80859375, 0.80859375, 1.6171875]


def test_only_the_last_axis_keeps_tokens_apart():
    assert torch.equal(figures.influence(-1) > 1e-12, torch.eye(6, dtype=torch.bool))
    for dim in ((-2, -1), -2):
        assert (figures.influence(dim) > 1e-12).all()


def test_partial_rms():
    x = torch.tensor([[3.0, 4.0, 12.0, 0.0]])
    assert figures.partial_rms(x, 0.5).item() == pytest.approx(math.sqrt(12.5))
    assert figures.partial_rms(x, 1.0).item() == pytest.approx(6.5)
    assert figures.partial_rms(x, 0.01).item() == 3.0  # never fewer than one


def test_the_spread_of_the_partial_rms_follows_theory():
    """For normal numbers the ratio's std is close to sqrt((1 - p) / (2 k))."""
    spread = figures.partial_spread()
    low, _, high = spread[figures.SHARES.index(1 / 16)].tolist()
    wanted = math.sqrt((1 - 1 / 16) / (2 * 32))
    assert (high - low) / (2 * 1.645) == pytest.approx(wanted, rel=0.1)
    assert spread[-1].tolist() == pytest.approx([1.0, 1.0, 1.0])
    wide = figures.partial_spread(outlier=30.0)
    assert (wide[:, 2] - wide[:, 0])[:-1].min() > (spread[:, 2] - spread[:, 0])[1]


def test_place_is_the_residual_step():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64)

    def double(values):
        return 2 * values

    assert torch.equal(figures.place(x, double, "none"), 3 * x)
    assert torch.allclose(figures.place(x, double, "pre"), x + 2 * rms_norm(x))
    assert torch.allclose(figures.place(x, double, "post"), rms_norm(x), atol=1e-6)


@pytest.mark.parametrize("placement", ["none", "post", "pre"])
def test_every_number_through_depth_is_finite(placement):
    run = figures.through_depth(placement, 3)
    assert len(run.size) == len(run.gradient) == 4
    assert all(map(math.isfinite, (*run.size, *run.gradient, run.last_weight_gradient)))


def test_seventy_two_blocks():
    none, post, pre = (figures.through_depth(p) for p in ("none", "post", "pre"))
    assert none.size[-1] > 1e9 and none.gradient[0] / none.gradient[-1] > 1e9
    assert all(size == pytest.approx(1, abs=1e-3) for size in post.size[1:])
    assert 5 < pre.size[-1] < 20 and 4 < pre.gradient[0] / pre.gradient[-1] < 40
    assert pre.size[-1] / pre.size[18] == pytest.approx(2, rel=0.25)  # sqrt(72 / 18)


def test_the_last_gradient_falls_with_depth_in_pre_norm_only():
    post, pre = figures.last_gradients("post"), figures.last_gradients("pre")
    assert max(post) / min(post) < 2
    assert pre[0] / pre[-1] == pytest.approx(math.sqrt(72 / 4), rel=0.3)


def test_expected_stream_rms_agrees_with_independent_sublayers():
    """Pure random sublayers: outputs of RMS `gain`, independent of the stream."""
    generator = torch.Generator().manual_seed(0)
    for placement, tolerance in (("pre", 0.05), ("none", 0.05), ("post", 1e-3)):
        x = torch.randn(64, 64, generator=generator, dtype=torch.float64)
        for _ in range(20):
            matrix = torch.randn(64, 64, generator=generator, dtype=torch.float64) / 8
            x = figures.place(x, lambda h, w=matrix: 0.5 * h @ w, placement)
        wanted = figures.stream_rms(20, 0.5, placement)
        assert x.square().mean().sqrt().item() == pytest.approx(wanted, rel=tolerance)
    assert figures.stream_rms(0, 1.0, "post", start=3.0) == 3.0


def test_the_speed_picture_takes_any_table():
    figure = figures.speed(TIMES)
    assert len(figure.axes) == 2 and len(figure.axes[0].patches) == 2
    assert figures.describe_speed(TIMES) == (
        "a copy: forward 1.00 ms, backward 2.00 ms\n"
        "LayerNorm: forward 1.50 ms, backward 4.00 ms")
