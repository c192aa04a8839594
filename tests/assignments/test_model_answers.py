"""The numbers in the model answers to the written questions are computed here."""

import math

import torch

from apex_lessons import norm, rope, yarn
from tests.assignments import course
from tests.assignments.course import label


def answer(name):
    """The model answer, as one line."""
    (part,) = course.assignment(name).written
    (cell,) = (cell for cell in course.notebooks(name)["solution"].cells
               if label(cell).get("grade_id") == part.name)
    return " ".join(cell.source.split())


def test_int8_rows_are_off_by_half_a_step_and_by_one_per_cent():
    text = answer("embedding")
    table = torch.randn(50, 4096, generator=torch.Generator().manual_seed(0))
    codes, scales = course.solution_namespace("embedding")["quantise_rows"](table)
    error = codes * scales[:, None] - table
    largest = table.abs().amax(dim=-1, keepdim=True)
    assert (error.abs() <= largest / 254 * 1.001).all() and "1/254" in text
    share = (error.norm(dim=-1) / table.norm(dim=-1)).mean().item()
    assert 0.008 < share < 0.012 and "about one per cent" in text


def test_the_counterexample_of_the_norms():
    weight = torch.tensor([3.0, 1.0])
    after = norm.rms_norm(torch.ones(2), weight)
    before = norm.rms_norm(torch.ones(2) * weight)
    assert torch.allclose(after, torch.tensor([3.0, 1.0]), atol=1e-5)
    assert torch.allclose(before, torch.tensor([3.0, 1.0]) / math.sqrt(5), atol=1e-5)
    assert "gives (3, 1); weight, then norm gives (3, 1)/√5" in answer("norm")


def test_a_folded_factor_vanishes_in_a_norm():
    fold = course.solution_namespace("yarn")["fold_factor"]
    x, weight = torch.randn(2, 6, 6, generator=torch.Generator().manual_seed(1))
    plain, folded = (norm.rms_norm(x @ w.T) for w in (weight, fold(weight, 1, 6, 1.3)))
    assert torch.allclose(plain, folded, atol=1e-5)
    part = norm.rms_norm(x @ fold(weight, 1, 4, 1.3).T)
    assert (part[:, 4:].abs() < plain[:, 4:].abs()).all()
    assert "the norm makes the rest smaller instead" in answer("yarn")


def test_the_numbers_of_the_three_claims():
    text = answer("capstone")
    never = (rope.wavelengths(rope.inverse_frequencies(128)) > 4096).sum().item()
    factor = yarn.yarn_attention_factor(16)
    assert f"{128_000 * 4096 / 1e6:.0f} million" in text
    assert f"{never} of 64 pairs" in text
    assert f"= {factor:.3f}" in text and f"{factor**2:.2f}: it" in text
    assert f"{factor**2 - 1:.0%}".replace("%", " %") in text
