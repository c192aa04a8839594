"""The numbers behind the pictures of lesson 04, against closed forms."""

from __future__ import annotations

import inspect
import io
import math
import warnings

import pytest
import torch
from matplotlib.figure import Figure

from apex_lessons import rope, yarn
from apex_lessons.figures import yarn as pictures

PLAIN = rope.inverse_frequencies(128, 10_000.0)
LONGROPE = [1.0 + pair for pair in range(48)]
MODELS = (
    pictures.Released("Llama 2 128K", "yarn", 128, 1e4, 32.0, 4096),
    pictures.Released("gpt-oss", "yarn", 64, 150_000.0, 32.0, 4096, truncate=False),
    pictures.Released("Kimi-K2", "yarn", 64, 50_000.0, 64.0, 4096, 1.0, 1.0,
                      inferred=("rotary width",)),
    pictures.Released("Llama 3.1", "llama3", 128, 500_000.0, 8.0, 8192, 4.0, 1.0),
)
FIGURES = {
    "clock_arcs": {}, "unseen_angles": {}, "divisors_by_pair": {},
    "three_regimes": {"models": MODELS}, "two_ramps": {}, "entropy_by_length": {},
    "printed_rule": {}, "agreement_by_distance": {},
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_the_same_bytes_twice_without_a_warning(name):
    draw = getattr(pictures, name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (drawn(draw(**FIGURES[name])) for _ in range(2))
    assert first == second and len(first) > 5000
    assert "pyplot" not in inspect.getsource(pictures)


def drawn(figure):
    assert isinstance(figure, Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_numbers_in_words(name):
    words = getattr(pictures, f"describe_{name}")(**FIGURES[name])
    assert any(letter.isdigit() for letter in words)
    assert all(len(line) < 250 for line in words.splitlines())


# Angles never seen


def test_gaps_equal_a_search_through_all_pairs_of_angles():
    plain = rope.inverse_frequencies(16, 1000.0)
    new = plain / 3
    turn = 2 * math.pi
    expected = []
    for one, other in zip(plain.tolist(), new.tolist()):
        seen = [m * one % turn for m in range(40)]
        gaps = [min(min((m * other - a) % turn, (a - m * other) % turn) for a in seen)
                for m in range(120)]
        expected.append(math.degrees(max(gaps)))
    measured = pictures.angle_gaps(plain, new, 40, 120)
    torch.testing.assert_close(measured, torch.tensor(expected, dtype=torch.float64))


def test_the_slow_pairs_see_new_angles_and_the_fast_ones_do_not():
    gaps = pictures.angle_gaps(PLAIN, PLAIN, 4096, 16_384)
    slow = yarn.rotations(PLAIN, 4096) < 1
    assert int(slow.sum()) == 18
    assert gaps[slow].min() > 20 and gaps[~slow].max() < 2
    # a pair that stays below half a turn goes on by three times its trained arc
    assert gaps[63].item() == pytest.approx(math.degrees(PLAIN[63] * (16_383 - 4095)))


@pytest.mark.parametrize("way", ["position interpolation", "YaRN"])
def test_scaled_pairs_stay_among_trained_angles(way):
    new = pictures._three_ways(4)[way]
    assert pictures.angle_gaps(PLAIN, new, 4096, 16_384).max() < 2


def test_arcs_are_turns_and_degrees():
    first, last = pictures.arcs([0, 63], 4.0)
    assert first["trained"] == pytest.approx(4096 / (2 * math.pi))
    assert last["position interpolation"]["reach"] == pytest.approx(last["trained"])
    assert last["nothing changed"]["reach"] == pytest.approx(4 * last["trained"])
    assert first["YaRN"]["step"] == pytest.approx(math.degrees(1))
    assert first["position interpolation"]["step"] == pytest.approx(math.degrees(1 / 4))


# Divisors


def test_divisors_of_each_method():
    known = pictures.methods(32.0)
    pair = torch.arange(64, dtype=torch.float64)
    torch.testing.assert_close(known["position interpolation"], 0 * pair + 32)
    torch.testing.assert_close(known["NTK-aware"], 32.0 ** (pair / 63))
    reached = known["dynamic NTK at 32,768 tokens"]
    torch.testing.assert_close(reached, 8.0 ** (pair / 63))
    by_parts = known["NTK-by-parts, YaRN"]
    assert (by_parts[:21] == 1).all() and by_parts[46:].sub(32).abs().max() < 1e-9
    llama = known["Llama 3"]
    turns = yarn.rotations(PLAIN, 4096)
    assert (llama[turns > 4] == 1).all()
    assert llama[turns < 1].sub(32).abs().max() < 1e-9
    standing = known["proportional: 25% turn, the rest stands still"]
    assert (standing[:16] == 1).all() and standing[16:].isinf().all()


def test_the_line_of_yarn_is_drawn_from_the_numbers():
    axis = pictures.divisors_by_pair(32.0, LONGROPE, printed=True).axes[0]
    heights = [[float(y) for y in line.get_ydata()] for line in axis.lines]
    assert pictures.methods(32.0)["NTK-by-parts, YaRN"].tolist() in heights
    assert LONGROPE in heights
    assert [1.0] * 12 + [32.0] * 52 in heights


# Regimes


def test_counts_of_released_models():
    counts = [pictures.regime_counts(model) for model in MODELS]
    assert counts == [(21, 25, 18), (9, 9, 14), (20, 0, 12), (29, 6, 29)]


def test_every_pair_is_drawn_once_in_its_regime():
    axis = pictures.three_regimes(MODELS).axes[0]
    dots = [len(line.get_xdata()) for line in axis.lines if line.get_marker() in "oDs"]
    assert dots == [n for model in MODELS for n in pictures.regime_counts(model)]
    words = pictures.describe_three_regimes(MODELS)
    assert "Kimi-K2: 20 / 0 / 12 (inferred: rotary width)" in words


# Ramps


def test_ramps_agree_at_their_ends_and_differ_by_four_times_between():
    code, unrounded, paper = pictures.ramps().values()
    for share in (code, unrounded, paper):
        assert (share[:21] == 0).all() and (share[46:] == 1).all()
    assert (paper[22:45] > code[22:45]).all()
    ratio = pictures.ramp_ratio(32.0)
    assert ratio.max().item() == pytest.approx(3.96, abs=5e-3)
    assert int(ratio.argmax()) == 40
    deepseek = pictures.ramp_ratio(40.0, head_dim=64)
    assert deepseek.max().item() == pytest.approx(4.28, abs=5e-3)


# Temperature


@pytest.mark.parametrize("spread, multiplier", [(0.5, 1.0), (1.0, 1.0), (1.0, 1.3)])
def test_entropy_is_near_its_closed_form(spread, multiplier):
    measured = pictures.attention_entropy(65_536, multiplier, spread=spread)
    closed = math.log(65_536) - (spread * multiplier) ** 2 / 2
    assert measured == pytest.approx(closed, abs=0.02)


def test_longer_raises_entropy_and_the_temperature_lowers_it():
    known = pictures.entropies((4096, 131_072))
    plain, once, squared = list(known.values())[1:]
    assert plain[0] == once[0] == squared[0]
    assert plain[1] > once[1] > squared[1] > plain[0]
    assert plain[1] - plain[0] == pytest.approx(math.log(32), abs=0.05)


# The printed rule


@pytest.mark.parametrize("factor", [2.0, 4.0, 32.0, 64.0, 128.0])
@pytest.mark.parametrize("head_dim, base", [(128, 1e4), (64, 5e5), (32, 1e6)])
def test_printed_divisors_are_those_of_the_kept_rule(factor, head_dim, base):
    plain = rope.inverse_frequencies(head_dim, base)
    rule = yarn.apex1(head_dim, base=base, factor=factor).inv_freq
    drawn = pictures.printed_divisors(factor, rope.wavelengths(plain))
    torch.testing.assert_close(drawn, plain / rule)


@pytest.mark.parametrize("factor", [4.0, 32.0, 100.0])
def test_yarn_divisors_are_the_papers(factor):
    scaled = yarn.ntk_by_parts(128, base=1e4, factor=factor, trained_length=8192,
                               ramp="rotations").inv_freq
    drawn = pictures.yarn_divisors(factor, rope.wavelengths(PLAIN), 8192)
    torch.testing.assert_close(drawn, PLAIN / scaled)


# The price at short lengths


def test_agreement_is_the_correlation_of_random_scores():
    scaled = yarn.position_interpolation(64, base=1e4, factor=4.0).inv_freq
    plain = rope.inverse_frequencies(64, 1e4)
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 40_000, 1, 1, 64, generator=generator, dtype=torch.float64)
    for distance in (1, 10, 300):
        pair = []
        for inv_freq in (plain, scaled):
            cos, sin = rope.rotary_tables(torch.tensor([distance]), inv_freq,
                                          dtype=torch.float64)
            pair.append((rope.apply_rotary(q, cos, sin) * k).sum(-1).flatten())
        measured = torch.corrcoef(torch.stack(pair))[0, 1].item()
        closed = pictures.agreement(plain, scaled, torch.tensor(distance)).item()
        assert measured == pytest.approx(closed, abs=0.02)


def test_static_scaling_costs_and_dynamic_does_not():
    distances = torch.arange(1, 4096)
    ways = {name: pictures.agreement(PLAIN, scaled, distances)
            for name, scaled in pictures._short_ways(4.0).items()}
    assert (ways["dynamic NTK"] == 1).all()
    means = {name: values.mean().item() for name, values in ways.items()}
    assert 1 > means["YaRN"] > means["NTK-aware"] > means["position interpolation"]


# The laboratory


@pytest.mark.parametrize("name", ["proportional", "plain"])
def test_the_laboratory_draws_pairs_that_stand_still(name):
    plain = rope.inverse_frequencies(64)
    first = yarn.proportional(64, base=1e4, partial_rotary_factor=0.25).inv_freq \
        if name == "proportional" else plain
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = pictures.laboratory(plain, [(name, first), ("before", plain)], 1.0,
                                     4096, 4096, 1.0, 1.0)
        assert len(drawn(figure)) > 3000
    heights = [[float(y) for y in line.get_ydata()] for line in figure.axes[1].lines]
    assert rope.wavelengths(plain).tolist() in heights
