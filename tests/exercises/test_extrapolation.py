"""Checks of lesson 05: every mistake is named, every right way is right."""

import numpy
import pytest
import torch

from apex_lessons.exercises import extrapolation as lesson
from apex_lessons.exercises.extrapolation import (
    CLUES,
    REASONS,
    check_entropy,
    check_found_beyond,
    check_loss_by_position,
    check_three_curves,
    curves_without_names,
    known_mistakes,
)
from apex_lessons.extrapolation import band, select

def said_of(answers):
    return check_three_curves(lambda: answers)


CURVES = lesson._CURVES
RIGHT = {letter: (method, REASONS[method]) for letter, method in CURVES.items()}


@pytest.mark.parametrize("mistake", known_mistakes(), ids=lambda mistake: mistake.name)
def test_each_mistake_is_named(mistake):
    said = getattr(lesson, mistake.check)(mistake.function)
    assert (said.status, said.mistake) == ("wrong", mistake.name)


@pytest.mark.parametrize(
    "right",
    [
        lambda losses, width: losses.reshape(len(losses), -1, width).mean((0, 2)),
        lambda losses, width: losses.mean(0).view(-1, width).mean(-1),
        lambda losses, width: torch.stack(
            [part.mean() for part in losses.split(width, 1)]
        ),
    ],
)
def test_right_bins(right):
    assert check_loss_by_position(right).status == "right"


@pytest.mark.parametrize(
    "right",
    [
        lambda p: torch.special.entr(p).sum(-1),
        lambda p: -(p * p.clamp_min(1e-300).log()).sum(-1),
        lambda p: -torch.nan_to_num(p * p.log()).sum(-1),
    ],
)
def test_right_entropy(right):
    assert check_entropy(right).status == "right"


def test_a_product_of_zero_and_infinity_is_named():
    assert (
        check_entropy(lambda p: -(p * p.log()).sum(-1)).mistake == "zero-times-infinity"
    )


@pytest.mark.parametrize("check", [check_loss_by_position, check_entropy])
def test_a_stub_is_not_attempted(check):
    assert check(lambda *given: ...).status == "not attempted"


def test_the_three_curves():
    assert said_of(RIGHT).status == "right"
    assert said_of(dict.fromkeys("ABC", ...)).status == "not attempted"
    assert said_of(RIGHT | {"B": ...}).status == "not attempted"


@pytest.mark.parametrize("letter", CURVES)
def test_every_wrong_name_has_its_own_words(letter):
    messages = set()
    for method in set(REASONS) - {CURVES[letter]}:
        said = said_of(RIGHT | {letter: (method, REASONS[method])})
        assert said.status == "wrong" and said.mistake.startswith(f"{letter}-is-not-")
        messages.add(said.message)
    assert len(messages) == 2


@pytest.mark.parametrize("letter", CURVES)
def test_a_right_name_for_a_wrong_reason_is_not_right(letter):
    for clue in set(CLUES) - {REASONS[CURVES[letter]]}:
        said = said_of(RIGHT | {letter: (CURVES[letter], clue)})
        assert (said.status, said.mistake) == ("wrong", f"{letter}-other-clue")


def test_words_nobody_knows_are_answered():
    assert said_of("yarn").mistake == "not-a-dict"
    assert check_three_curves(lambda: ...).status == "not attempted"
    assert (
        said_of(RIGHT | {"A": ("linear", "kept")}).mistake == "unknown-word"
    )
    assert said_of(RIGHT | {"A": "yarn"}).mistake == "not-a-pair"


def test_the_clues_are_what_the_measurement_shows():
    """Each clue holds for its curve on the stored data, and for no other curve."""
    curves = curves_without_names()
    early = {CURVES[x]: sum(b.mean for b in all_[:4]) / 4 for x, all_ in curves.items()}
    late = {CURVES[x]: sum(b.mean for b in all_[-8:]) / 8 for x, all_ in curves.items()}
    assert early["apex1"] > max(early["none"], early["yarn"]) + 0.2
    assert early["none"] == pytest.approx(early["yarn"], abs=0.1)
    assert late["none"] > early["none"] + 0.5 and late["none"] > late["yarn"] + 0.5
    assert late["yarn"] < early["yarn"] and abs(late["apex1"] - early["apex1"]) < 0.4


def test_the_curves_without_names_are_the_stored_ones():
    bins = curves_without_names()["C"]
    rows = [r.by_position for r in select(method="yarn", length=4096, text="natural")]
    assert bins[7] == band(row[7] for row in rows)


@pytest.mark.parametrize("given", [
    {"a": "x"}, {"A": None}, {"A": (None, "kept")}, {"A": ("yarn",)}, "yarn", 3,
    {"A": numpy.array(["none", "kept"])}])
def test_odd_answers_get_words_and_no_traceback(given):
    assert said_of(given).status in ("wrong", "not attempted")


def test_small_letters_spaces_and_capitals_are_understood():
    answers = {letter.lower(): (method.upper(), clue.replace("-", " "))
               for letter, (method, clue) in RIGHT.items()}
    assert said_of(answers).status == "right"


@pytest.mark.parametrize("exponent", range(2, 8))
def test_a_number_inside_the_logarithm_is_named(exponent):
    said = check_entropy(lambda p: -(p * (p + 10.0**-exponent).log()).sum(-1))
    assert said.mistake == "small-number-added"


@pytest.mark.parametrize("right", [
    lambda c, e, d: sum(r for (r, _), low in zip(c, e) if low >= d) / sum(
        n for (_, n), low in zip(c, e) if low >= d),
    lambda c, e, d: float(numpy.divide(*numpy.array(c[e.index(d):]).sum(0)))])
def test_right_shares(right):
    assert check_found_beyond(right).status == "right"
