"""Checks of page 06."""

from __future__ import annotations

import math

import pytest
import torch

from apex_lessons.exercises import reference
from apex_lessons.rope import inverse_frequencies, wavelengths
from apex_lessons.norm import rms_norm
from apex_lessons.yarn import ntk_by_parts, rotations, yarn


@pytest.mark.parametrize("mistake", reference.known_mistakes(), ids=lambda m: m.name)
def test_each_mistake_is_named(mistake):
    said = getattr(reference, mistake.check)(mistake.function)
    assert (said.status, said.mistake) == ("wrong", mistake.name)


def test_right_variants():
    assert reference.check_variance(lambda s, d: (math.sqrt(d) * s) ** 2)
    assert reference.check_variance(
        lambda init_std, d_model: torch.tensor(
            d_model * init_std**2, dtype=torch.float64
        )
    )
    assert reference.check_divisor(reference._right_divisor)


@pytest.mark.parametrize(
    "check",
    [reference.check_variance, reference.check_divisor, reference.check_verdicts],
)
def test_stubs_and_nonsense(check):
    assert check(lambda *_: ...).status == "not attempted"
    assert check(lambda *_: math.nan).status == "wrong"
    assert check(lambda *_: 1 / 0).mistake == "exception"


def test_the_right_divisor_is_the_packages_own():
    plain = inverse_frequencies(128)
    scaled = ntk_by_parts(
        128, base=1e4, factor=32.0, trained_length=4096, ramp="rotations"
    ).inv_freq
    turns = rotations(plain, 4096)
    for pair in range(64):
        ours = reference._right_divisor(turns[pair].item(), 32.0, 32.0, 1.0)
        assert ours == pytest.approx((plain / scaled)[pair].item(), rel=1e-12)


def test_the_four_verdicts_are_what_the_package_says():
    assert round(wavelengths(inverse_frequencies(64))[-1].item(), -3) == 47_000
    norms = [rms_norm(torch.ones(1, d)).norm().item() for d in (4, 512)]
    assert norms == pytest.approx([2.0, 512**0.5], rel=1e-5)
    same = yarn(64, base=1e4, factor=1.0, trained_length=4096)
    assert (
        torch.equal(same.inv_freq, inverse_frequencies(64))
        and same.attention_factor == 1.0
    )
    assert reference.check_verdicts(lambda: dict(reference.ANSWERS))


@pytest.mark.parametrize("name", "abcd")
def test_a_wrong_verdict_is_named_without_its_answer(name):
    other = "wrong" if reference.ANSWERS[name] == "correct" else "correct"
    said = reference.check_verdicts(lambda: {**reference.ANSWERS, name: other})
    assert said.mistake == f"verdict-{name}" and said.status == "wrong"
    assert reference.ANSWERS[name] not in said.message
