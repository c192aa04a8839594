"""The numbers behind lesson 03's pictures, against closed forms; then the pictures."""

import cmath
import inspect
import math
import random

import pytest
import torch

from apex_lessons import rope
from apex_lessons.figures import png
from apex_lessons.figures import rope as pictures

FIGURES = ("shuffled_sentence", "clock_face", "wavelength_ladder", "ladders_by_base",
           "released_wavelengths", "distance_collapse", "score_matrices",
           "pairs_and_distances", "decay", "two_layouts", "precision")


def frequencies(head_dim, base):
    return [base ** (-2 * i / head_dim) for i in range(head_dim // 2)]


def as_complex(vector, layout):
    """The pairs of a vector as complex numbers, by plain indexing."""
    numbers, half = vector.tolist(), len(vector) // 2
    firsts = range(0, 2 * half, 2) if layout == "interleaved" else range(half)
    step = 1 if layout == "interleaved" else half
    return [complex(numbers[i], numbers[i + step]) for i in firsts]


# ------------------------------------------------------------------------- the numbers
def test_scores_without_positions_move_with_the_words():
    words = list(pictures.SENTENCE)
    before = pictures.attention_without_positions(words)
    after = pictures.attention_without_positions([words[i] for i in pictures.SWAPPED])
    order = torch.tensor(pictures.SWAPPED)
    assert torch.equal(after, before[order][:, order])
    assert before.unique().numel() > 15  # not all alike, or it would prove nothing
    lines = pictures.describe_shuffled_sentence().splitlines()
    assert lines[0].split(":")[1] == lines[1].split(":")[1]


@pytest.mark.parametrize("seed", range(20))
def test_clock_hands_are_powers_of_one_complex_number(seed):
    pick = random.Random(seed)
    frequency, positions = pick.uniform(1e-4, 1), [pick.randrange(200)
                                                   for _ in range(5)]
    found = pictures.clock_hands(frequency, positions).tolist()
    for m, (x, y) in zip(positions, found):
        assert complex(x, y) == pytest.approx(cmath.exp(1j * frequency) ** m, abs=1e-10)


@pytest.mark.parametrize("head_dim, base, context, never", [
    (128, 1e4, 4096, 18), (64, 1e4, 4096, 9), (128, 1e4, 8192, 14),
    (128, 5e5, 8192, 29),
    (128, 1e6, 8192, 30)])
def test_pairs_that_never_finish_a_turn(head_dim, base, context, never):
    counted = sum(2 * math.pi / f > context for f in frequencies(head_dim, base))
    assert counted == never
    said = pictures.describe_wavelength_ladder(head_dim, base, context)
    assert f"{never} of {head_dim // 2} pairs never finish a turn" in said
    assert f"{never} of" in pictures.describe_ladders_by_base([base], head_dim, context)


def test_the_ladder_draws_every_pair_once_and_in_its_set():
    figure = pictures.wavelength_ladder(64, 1e4, 4096)
    drawn = {line.get_label().split(":")[0]: line.get_xydata().tolist()
             for line in figure.axes[0].lines if line.get_label().count(":")}
    turned, never = drawn["finishes at least one turn"], drawn["never finishes a turn"]
    assert [i for i, _ in turned + never] == list(range(32))
    assert all(wave <= 4096 for _, wave in turned) and len(never) == 9
    for i, wave in turned + never:
        assert wave == pytest.approx(2 * math.pi * 1e4 ** (2 * i / 64), rel=1e-12)


def test_released_models_come_from_the_table_with_their_own_lengths():
    rows = {row.model: row for row in pictures.released_models()}
    assert rows["Llama-2-7B"][1:] == (128, 10_000.0, 4096)
    assert rows["DeepSeek-V3"][1:] == (64, 10_000.0, 4096)
    assert rows["gpt-oss-20b"][1:] == (64, 150_000.0, 4096)
    assert rows["Qwen2.5-7B-Instruct"][1:] == (128, 1_000_000.0, 32768)
    assert len(pictures.describe_released_wavelengths().splitlines()) == len(rows)


@pytest.mark.parametrize("layout", rope.LAYOUTS)
def test_rotated_multiplies_complex_pairs(layout):
    vector, _ = pictures.query_and_key(8)
    for m, found in zip((0, 1, 7, 500), pictures.rotated(
            vector, torch.tensor([0, 1, 7, 500]), base=500.0, layout=layout)):
        wanted = [z * cmath.exp(1j * m * f) for z, f in
                  zip(as_complex(vector, layout), frequencies(8, 500.0))]
        assert as_complex(found, layout) == pytest.approx(wanted, abs=1e-12)


def test_score_matrix_is_a_sum_over_pairs_of_the_distance_alone():
    q, k = pictures.query_and_key(16)
    products = [a.conjugate() * b for a, b in
                zip(as_complex(q, "half"), as_complex(k, "half"))]
    scores = pictures.score_matrix(6, layout_q="half", layout_k="half")
    for m in range(6):
        for n in range(6):
            terms = (z * cmath.exp(1j * (n - m) * f)
                     for z, f in zip(products, frequencies(16, 1e4)))
            wanted = sum(term.real for term in terms) / 4
            assert scores[m, n].item() == pytest.approx(wanted, abs=1e-12)


def test_equal_layouts_collapse_and_mixed_ones_do_not():
    for layout in rope.LAYOUTS:
        equal = pictures.score_matrix(48, layout_q=layout, layout_k=layout)
        assert pictures.spread_at_equal_distance(equal) < 1e-12
    mixed = pictures.score_matrix(48, layout_k="half")
    assert pictures.spread_at_equal_distance(mixed) == pytest.approx(2.7558, abs=1e-4)
    assert "0 to 12 decimals" in pictures.describe_distance_collapse()
    assert "2.7558" in pictures.describe_distance_collapse(layout_k="half")


def test_spread_looks_along_diagonals_both_above_and_below():
    scores = torch.zeros(4, 4)
    assert pictures.spread_at_equal_distance(scores) == 0
    for m, n in ((3, 1), (0, 2), (1, 1)):
        spoilt = scores.clone()
        spoilt[m, n] = 2.0
        assert pictures.spread_at_equal_distance(spoilt) == 2
    spoilt = scores.clone()
    spoilt[0, 3] = 5.0  # the corner is alone at its distance
    assert pictures.spread_at_equal_distance(spoilt) == 0


@pytest.mark.parametrize("distance, average", [
    (0, 16.5), (10, 8.8), (50, 5.7), (100, 7.5), (500, 3.0), (1000, 4.1),
    (20_000, 1.5)])
def test_the_average_behind_the_bound_is_the_published_one_and_not_monotone(
        distance, average):
    found = pictures.decay_mean(64, 1e4, torch.tensor([distance])).item()
    hands = [cmath.exp(1j * distance * f) for f in frequencies(64, 1e4)]
    wanted = sum(abs(sum(hands[:j])) for j in range(1, 33)) / 32
    assert found == pytest.approx(wanted, rel=1e-9)
    assert found == pytest.approx(average, abs=0.05)


@pytest.mark.parametrize("favourite", [0, 7, 100, 4000])
def test_a_query_can_look_at_any_distance_and_never_passes_one(favourite):
    k, _ = pictures.query_and_key(32)
    at = torch.arange(0, 5000)
    cosines = pictures.decay_scores(k, 1e4, at, favourite=favourite)
    assert cosines[favourite] == pytest.approx(1) and int(cosines.argmax()) == favourite
    assert cosines.abs().max() <= 1 + 1e-12
    # the same by rotating: q = R(-favourite) k, put at distance tokens from k at 0
    sign = torch.tensor([1.0, -1.0] * 16, dtype=torch.float64)
    q = pictures.rotated(k * sign, torch.tensor([favourite]))[0] * sign
    turned = pictures.rotated(q, at[:300])
    assert torch.allclose(turned @ k / (k @ k), cosines[:300], atol=1e-12)


def test_the_bound_holds_for_equal_vectors():
    ones, at = torch.ones(64, dtype=torch.float64), torch.arange(20_001)
    scores = pictures.decay_scores(ones, 1e4, at).abs()
    assert bool((scores <= pictures.decay_mean(64, 1e4, at) + 1e-12).all())


@pytest.mark.parametrize("seed", range(30))
def test_telling_pairs_count_turns(seed):
    pick = random.Random(seed)
    head_dim, base = 2 * pick.randint(2, 64), pick.uniform(20, 1e6)
    distance = pick.randint(1, 50_000)
    turns = [distance * f / (2 * math.pi) for f in frequencies(head_dim, base)]
    repeats, blind = sum(t > 0.5 for t in turns), sum(t < 0.05 for t in turns)
    found = pictures.telling_pairs(head_dim, base, distance)
    assert found == (repeats, head_dim // 2 - repeats - blind, blind)


@pytest.mark.parametrize("head_dim, base, distance", [(64, 1e4, 100), (128, 5e5, 7)])
def test_a_pair_that_tells_gives_every_shorter_distance_another_cosine(
        head_dim, base, distance):
    repeats, tell, _ = pictures.telling_pairs(head_dim, base, distance)
    cosines = pictures.pair_by_distance(head_dim, base, torch.arange(distance + 1))
    telling = cosines[repeats:repeats + tell]
    assert tell > 0 and bool((telling[:, 1:] < telling[:, :-1]).all())
    assert bool((telling[:, -1] < 0.9511).all())


@pytest.mark.parametrize("width", [2, 4, 8, 128])
@pytest.mark.parametrize("layout", rope.LAYOUTS)
def test_partners_are_those_that_the_package_turns_together(width, layout):
    pairs = pictures.partners(width, layout)
    assert sorted(n for pair in pairs for n in pair) == list(range(width))
    for i, (first, second) in enumerate(pairs):
        x = torch.zeros(1, width)
        x[0, first] = 1.0
        cos, sin = torch.ones(1, width // 2), torch.zeros(1, width // 2)
        cos[0, i], sin[0, i] = 0.0, 1.0  # a quarter turn of this pair alone
        assert rope.apply_rotary(x, cos, sin, layout=layout)[0, second] == 1.0


def test_partners_refuse_an_unknown_layout():
    with pytest.raises(ValueError, match="'interleaved' or 'half', got 'thirds'"):
        pictures.partners(8, "thirds")


@pytest.mark.parametrize("position, low, high", [
    (1024, 2e-5, 2e-4), (131_072, 3e-3, 2e-2), (1_048_576, 3e-2, 2e-1)])
def test_angle_errors_have_the_sizes_that_are_told(position, low, high):
    assert low < pictures.angle_error(position, "float32 angles") < high
    assert pictures.angle_error(position, "float64 angles") < 6e-8
    assert 1.9 < pictures.angle_error(position, "bfloat16 positions") <= 2
    assert pictures.angle_error(0,
                                "bfloat16 positions") == 0  # below 256 nothing is lost


def test_angle_error_refuses_an_unknown_kind():
    with pytest.raises(ValueError, match="kind"):
        pictures.angle_error(5, "float8")


# ------------------------------------------------------------------------ the pictures
@pytest.mark.parametrize("name", FIGURES)
def test_each_picture_is_the_same_twice_and_has_words_with_numbers(name):
    draw, describe = getattr(pictures, name), getattr(pictures, f"describe_{name}")
    first = png(draw())
    assert first == png(draw()) and len(first) > 5000
    said = describe()
    assert any(letter.isdigit() for letter in said) and said == describe()
    assert max(map(len, said.splitlines())) < 120


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_names(name):
    figure = getattr(pictures, name)()
    for axis in figure.axes:
        ticks = len(axis.get_xticks()) and len(axis.get_yticks())
        if ticks and axis.get_label() != "<colorbar>":
            assert axis.get_xlabel() and (axis.get_ylabel() or name in (
                "score_matrices", "released_wavelengths")), name


def test_settings_change_the_pictures():
    for name, settings in (("two_layouts", {"width": 4}), ("clock_face", {
            "frequencies": (0.5,)}), ("distance_collapse", {"layout_k": "half"})):
        draw = getattr(pictures, name)
        assert png(draw()) != png(draw(**settings)), name


def test_no_global_state():
    assert "pyplot" not in inspect.getsource(pictures)
