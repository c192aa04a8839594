"""Checks of lesson 05: every mistake is named, every right way is right."""

import pytest
import torch

from apex_lessons.exercises import extrapolation as lesson
from apex_lessons.exercises.extrapolation import (
    CLUES,
    CURVES,
    REASONS,
    check_entropy,
    check_loss_by_position,
    check_three_curves,
    known_mistakes,
)
from apex_lessons.extrapolation import select

def said_of(answers):
    return check_three_curves(lambda: answers)


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
    rows = {
        method: [r.by_position for r in select(method=method, length=2048)]
        for method in REASONS
    }
    early = {
        m: sum(sum(r[:4]) for r in some) / len(some) / 4 for m, some in rows.items()
    }
    late = {
        m: sum(sum(r[-4:]) for r in some) / len(some) / 4 for m, some in rows.items()
    }
    assert early["position_interpolation"] > max(early["none"], early["yarn"]) + 0.1
    assert early["none"] == pytest.approx(early["yarn"], abs=0.1)
    assert late["none"] > late["yarn"] + 0.05
