"""The explorers of lesson 03: facts against closed forms, true words, pictures."""

import cmath
import math
import random

import pytest
import torch

from apex_lessons.explorers import rope as explorers
from apex_lessons.figures import rope as pictures
from apex_lessons.models import published
from tests.explorers.page import run_states

CLOCK, INVARIANCE, DISTANCES = (explorers.WavelengthClock, explorers.RotationInvariance,
                                explorers.PairsAndDistances)


def frequencies(head_dim, base):
    return [base ** (-2 * i / head_dim) for i in range(head_dim // 2)]


def settings_of(seed):
    pick = random.Random(seed)
    return {"head_dim": 2 * pick.randint(2, 128), "base": 10 ** pick.uniform(1, 7),
            "context_length": round(2 ** pick.uniform(6, 18)),
            "position": round(2 ** pick.uniform(0, 18)),
            "pair_share": pick.randint(0, 100)}


# --------------------------------------------------------------------------- the clock
@pytest.mark.parametrize("seed", range(40))
def test_clock_facts_in_plain_arithmetic(seed):
    state = settings_of(seed)
    facts = CLOCK(**state).facts()
    rates = frequencies(state["head_dim"], state["base"])
    waves = [2 * math.pi / rate for rate in rates]
    pair = facts["pair"]
    assert facts["pairs"] == len(rates) and 0 <= pair < len(rates)
    assert abs(pair - state["pair_share"] / 100 * (len(rates) - 1)) <= 0.5
    assert facts["frequency"] == pytest.approx(rates[pair], rel=1e-12)
    assert facts["angle"] == pytest.approx(state["position"] * rates[pair], rel=1e-12)
    assert facts["turns"] * waves[pair] == pytest.approx(state["position"], rel=1e-12)
    assert facts["pairs_never"] == sum(wave > state["context_length"] for wave in waves)
    assert facts["shortest_wavelength"] == pytest.approx(2 * math.pi, rel=1e-12)
    assert facts["longest_wavelength"] == pytest.approx(waves[-1], rel=1e-12)


def test_both_ends_of_the_chosen_pair():
    assert CLOCK(pair_share=0).facts()["pair"] == 0
    assert CLOCK(pair_share=100).facts()["pair"] == 63
    assert CLOCK(pair_share=100, head_dim=4).facts()["pair"] == 1


@pytest.mark.parametrize("seed", range(15))
def test_new_angles_are_those_no_position_in_the_context_reaches(seed):
    pick = random.Random(seed)
    head_dim, base, context = 16, pick.choice([1e2, 1e3, 1e4]), pick.randint(64, 300)
    position = pick.randint(1, 4 * context)
    new = 0
    for rate in frequencies(head_dim, base):
        turned = position * rate % (2 * math.pi)
        # the arc that positions 0 ... context sweep, whole turns included
        new += not (context * rate >= 2 * math.pi or turned <= context * rate)
    found = CLOCK(head_dim=head_dim, base=base, context_length=context,
                  position=position)
    assert found.facts()["pairs_at_new_angles"] == new


def test_inside_the_context_nothing_is_new():
    for seed in range(30):
        state = settings_of(seed)
        state["position"] = min(state["position"], state["context_length"])
        assert CLOCK(**state).facts()["pairs_at_new_angles"] == 0


def test_a_shared_position_beyond_one_turn_is_not_new_again():
    # pair 3 of head width 8 needs 6,283 tokens: 6,300 is its start again
    state = {"head_dim": 8, "base": 1e4, "context_length": 4096}
    assert CLOCK(**state, position=6200).facts()["pairs_at_new_angles"] == 1
    assert CLOCK(**state, position=6300).facts()["pairs_at_new_angles"] == 0


@pytest.mark.parametrize("cls", [CLOCK, DISTANCES])
def test_an_odd_head_says_why_in_both_languages(cls, tmp_path):
    explorer = cls(head_dim=65)
    with pytest.raises(ValueError, match="65 is odd: dimensions turn in pairs"):
        explorer.facts()
    (shown,) = run_states(tmp_path, cls, [explorer.settings()])
    assert shown["problem"] == explorer.problem()
    data, _ = explorer._repr_mimebundle_()
    assert "65 is odd" in data["text/plain"] and "image/png" not in data


def test_presets_are_released_models_with_the_numbers_of_the_table():
    rows = {row.model: row for row in published()}
    for name, preset in CLOCK.presets.items():
        row = next(row for model, row in rows.items() if model.startswith(name))
        assert (preset["head_dim"], preset["base"]) == (row.rotary_dims, row.rope_theta)
        assert preset["context_length"] in (row.original_max_position_embeddings,
                                            row.max_position_embeddings)
    together = " and ".join(CLOCK.presets)
    assert sorted(" and ".join(DISTANCES.presets).split(" and ")) == sorted(
        together.split(" and "))
    settings = [tuple(preset.items()) for preset in DISTANCES.presets.values()]
    assert len(set(settings)) == len(settings)


def test_the_dial_stands_where_the_angles_say(tmp_path):
    states = [CLOCK().defaults() | settings_of(seed) for seed in range(10)]
    for state, shown in zip(states, run_states(tmp_path, CLOCK, states)):
        dots = {mark["key"]: mark for mark in shown["frames"]["dial"]["marks"]
                if mark["kind"] == "dots"}
        points = list(zip(dots["turns"]["x"], dots["turns"]["y"]))
        points += list(zip(dots["never"]["x"], dots["never"]["y"]))
        rates = frequencies(state["head_dim"], state["base"])
        assert len(points) == len(rates)
        for i, ((x, y), rate) in enumerate(zip(points, rates)):
            radius = 1 - 0.8 * i / max(1, len(rates) - 1)
            wanted = radius * cmath.exp(1j * state["position"] * rate)
            assert complex(x, y) == pytest.approx(wanted, abs=1e-6)


# ---------------------------------------------------------------------- the invariance
def pairs_of(vector, layout):
    half = len(vector) // 2
    if layout == "interleaved":
        return [complex(vector[2 * i], vector[2 * i + 1]) for i in range(half)]
    return [complex(vector[i], vector[i + half]) for i in range(half)]


def turned(vector, position, base, layout):
    """The vector at a position, back in its own order."""
    numbers = [z * cmath.exp(1j * position * rate) for z, rate in
               zip(pairs_of(vector, layout), frequencies(len(vector), base))]
    if layout == "interleaved":
        return [part for z in numbers for part in (z.real, z.imag)]
    return [z.real for z in numbers] + [z.imag for z in numbers]


@pytest.mark.parametrize("seed", range(12))
def test_scores_in_plain_arithmetic(seed):
    pick = random.Random(seed)
    explorer = INVARIANCE(m=pick.randint(0, 19), n=pick.randint(0, 19),
                          base=pick.uniform(10, 1e6),
                          shift=pick.randint(0, 500),
                          layout_q=pick.choice(["interleaved", "half"]),
                          layout_k=pick.choice(["interleaved", "half"]))
    q, k = (vector.tolist() for vector in explorers.fixed_vectors())
    facts = explorer.facts()
    for name, shift in (("score", 0), ("shifted_score", explorer.shift)):
        query = turned(q, explorer.m + shift, explorer.base, explorer.layout_q)
        key = turned(k, explorer.n + shift, explorer.base, explorer.layout_k)
        wanted = sum(a * b for a, b in zip(query, key))
        assert facts[name] == pytest.approx(wanted, abs=1e-11)
    assert facts["distance"] == explorer.m - explorer.n
    assert facts["change"] == pytest.approx(facts["shifted_score"] - facts["score"],
                                            abs=1e-12)


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("shift", [0, 1, 77, 500])
def test_equal_layouts_see_only_distance(layout, shift):
    facts = INVARIANCE(layout_q=layout, layout_k=layout, shift=shift).facts()
    assert abs(facts["change"]) < 1e-12 and facts["spread"] < 1e-12


def test_mixed_layouts_see_positions_but_not_at_zero():
    mixed = {"layout_q": "interleaved", "layout_k": "half"}
    assert INVARIANCE(**mixed).facts()["spread"] > 0.3
    assert abs(INVARIANCE(**mixed).facts()["change"]) > 0.05
    at_zero = INVARIANCE(m=0, n=0, shift=0, **mixed).facts()["score"]
    assert at_zero == pytest.approx(INVARIANCE(m=0, n=0, shift=0).facts()["score"],
                                    abs=1e-12)


def test_the_query_looks_six_tokens_back():
    scores = INVARIANCE(base=10_000.0).scores(0)
    assert {m - n for m, n in (scores > scores.max() - 1e-9).nonzero().tolist()} == {6}


def test_the_matrix_shows_every_score_in_its_place(tmp_path):
    explorer = INVARIANCE(layout_k="half", shift=13)
    (shown,) = run_states(tmp_path, INVARIANCE, [explorer.settings()])
    cells = next(mark for mark in shown["frames"]["map"]["marks"]
                 if mark["kind"] == "cells")
    side = explorers.SIDE
    assert cells["rows"] == cells["columns"] == side
    upside_down = torch.tensor(cells["values"], dtype=torch.float64).view(side,
                                                                          side).flip(0)
    assert torch.allclose(upside_down, explorer.scores(13), atol=1e-12)
    cloud = next(mark for mark in shown["frames"]["curve"]["marks"]
                 if mark["key"] == "all")
    assert len(cloud["x"]) == side * side
    for index in (0, 19, 20, 399):
        m, n = divmod(index, side)
        assert cloud["x"][index] == m - n
        assert cloud["y"][index] == pytest.approx(explorer.scores(13)[m, n].item(),
                                                  abs=1e-12)


def test_words_tell_the_two_cases_apart(tmp_path):
    states = [INVARIANCE().settings(), INVARIANCE(layout_q="half").settings()]
    equal, mixed = (" ".join(shown["words"]) for shown in
                    run_states(tmp_path, INVARIANCE, states))
    assert "differ by **0**" in equal and "The layouts differ" not in equal
    assert "The layouts differ" in mixed and "No error is raised" in mixed


# ----------------------------------------------------------------------- the distances
@pytest.mark.parametrize("seed", range(30))
def test_groups_count_turns(seed):
    state = settings_of(seed)
    distance = 1 + state["position"] % 100_000
    facts = DISTANCES(head_dim=state["head_dim"], base=state["base"],
                      distance=distance).facts()
    turns = [distance * rate / (2 * math.pi) for rate in
             frequencies(state["head_dim"], state["base"])]
    groups = [sum(t > 0.5 for t in turns), sum(0.05 <= t <= 0.5 for t in turns),
              sum(t < 0.05 for t in turns)]
    assert [facts[name] for name in ("repeats", "tell", "blind")] == groups
    telling = [i for i, t in enumerate(turns) if 0.05 <= t <= 0.5]
    assert facts["first_telling"] == (telling[0] if telling else -1)
    assert facts["last_telling"] == (telling[-1] if telling else -1)


def test_borders_in_the_picture_are_half_and_a_twentieth_of_a_turn(tmp_path):
    explorer = DISTANCES(head_dim=128, base=5e5, distance=300)
    (shown,) = run_states(tmp_path, DISTANCES, [explorer.settings()])
    lines = {mark["key"]: mark for mark in shown["frames"]["map"]["marks"]
             if mark["kind"] == "line"}
    for key, share in (("half", 0.5), ("twentieth", 0.05)):
        for distance, pair in zip(lines[key]["x"], lines[key]["y"]):
            turns = distance * 5e5 ** (-2 * pair / 128) / (2 * math.pi)
            assert turns == pytest.approx(share, rel=1e-9)


def test_dots_of_the_groups_are_all_pairs_once(tmp_path):
    states = [DISTANCES(distance=d, head_dim=h).settings()
              for d in (1, 90, 100_000) for h in (4, 64, 256)]
    for state, shown in zip(states, run_states(tmp_path, DISTANCES, states)):
        for plot, axis in (("map", "y"), ("stems", "x")):
            dots = [mark for mark in shown["frames"][plot]["marks"]
                    if mark["kind"] == "dots"]
            pairs = sorted(pair for mark in dots for pair in mark[axis])
            assert pairs == list(range(state["head_dim"] // 2))


# ------------------------------------------------------------------------- the pictures
@pytest.mark.parametrize("explorer", [
    CLOCK(), CLOCK(head_dim=4, base=10.0, context_length=64, position=262_144),
    CLOCK(head_dim=256, base=1e7, pair_share=100), INVARIANCE(layout_k="half", shift=0),
    DISTANCES(distance=1), DISTANCES(distance=100_000, base=10.0, head_dim=4)],
                         ids=repr)
def test_every_state_has_a_picture_and_alt_text(explorer):
    figure, alt = explorer.figure(), explorer.alt()
    assert len(figure.axes) >= 1 and 60 < len(alt) < 400
    if isinstance(explorer, CLOCK):
        assert f"pair {explorer.facts()['pair']} " in alt


def test_the_static_picture_marks_the_chosen_pair():
    explorer = CLOCK(pair_share=50)
    facts = explorer.facts()
    marks = [line.get_xydata().tolist() for line in explorer.figure().axes[0].lines]
    assert [[float(facts["pair"]), pytest.approx(facts["wavelength"])]] in marks
    assert callable(pictures.wavelength_clock)
