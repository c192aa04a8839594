"""Checks of lesson 04: a learner's program in, a diagnosis out.

A check runs the program on settings chosen so that no two known mistakes give the same
numbers, compares plain Python floats (no ``==`` of the learner's objects is trusted),
and looks for the program in the catalogue of known mistakes when the numbers differ.
The messages name the relation that is broken and never the answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy
import torch

from apex_lessons import rope, yarn
from apex_lessons.exercises.diagnosis import Diagnosis, Mistake, run_learner
from apex_lessons.exercises.yarn_mistakes import MISTAKES, scores, sharpen, turned

__all__ = ["check_attention_factor", "check_paper_yarn", "check_position_interpolation",
           "check_regime_counts", "check_scaled_scores", "check_yarn", "known_mistakes"]

# head_dim, base, factor, trained_length, beta_fast, beta_slow
TOY = (8, 10_000.0, 4.0, 4096, 32.0, 1.0)
LLAMA_2 = (128, 10_000.0, 16.0, 4096, 32.0, 1.0)
LONG_TRAINING = (64, 10_000.0, 4.0, 131_072, 32.0, 1.0)  # ramp ends past the last pair
LLAMA_3 = (128, 500_000.0, 8.0, 8192, 32.0, 1.0)
DEVSTRAL = (128, 1_000_000.0, 64.0, 4096, 4.0, 1.0)
OTHER_BETAS = (64, 150_000.0, 32.0, 8192, 24.0, 2.0)
NO_STRETCH = (32, 10_000.0, 1.0, 4096, 32.0, 1.0)
EQUAL_BETAS = (64, 50_000.0, 32.0, 4096, 1.0, 1.0)  # Kimi-K2: a step
SETTINGS = (TOY, LLAMA_2, LONG_TRAINING, DEVSTRAL, OTHER_BETAS, NO_STRETCH)
FACTORS = (1.0, 2.0, 4.0, 8.0, 32.0, 40.0, 64.0)

EXACT, SINGLE, SAME_PROGRAM = 1e-9, 2e-5, 1e-4  # relative
RIGHT = "Right on every setting."
FROM_SINGLE = (" (Your numbers carry float32 accuracy. That is enough here; at a"
               " million tokens it costs 0.06 in a cosine, so this course stays in"
               " float64 until the end.)")


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs that the checks of this lesson know by name.

    >>> "swapped-betas" in {mistake.name for mistake in known_mistakes()}
    True
    """
    return tuple(MISTAKES)


Reading = tuple[list | None, Diagnosis | None]  # plain floats, or what is wrong

# The checks


def check_position_interpolation(f: Callable) -> Diagnosis:
    """Exercise 4.1: ``f(positions, head_dim, base, factor, trained_length)`` -> angles.

    Formula: angle = position / factor * frequency, ``[seq, head_dim/2]``, in radians;
    ``positions`` is an integer tensor ``[seq]``. Chen et al. 2023, equation 4.

    >>> check_position_interpolation(lambda *settings: ...).status
    'not attempted'
    """
    near = torch.tensor([0, 1, 2, 5, 1000])
    far = torch.tensor([4095, 8190, 16_383, 40_000])
    inputs = [(near, 8, 10_000.0, 4.0, 4096), (far, 8, 10_000.0, 8.0, 4096),
              (far, 64, 500_000.0, 4.0, 8192), (near, 16, 10_000.0, 1.0, 4096)]

    def truth(positions, head_dim, base, factor, trained_length):
        scaled = yarn.position_interpolation(head_dim, base=base, factor=factor)
        return positions.to(torch.float64)[:, None] * scaled.inv_freq
    return _judge(f, inputs, truth, _tensor, _catalogue("check_position_interpolation"),
                  _explain_angles)


def check_regime_counts(f: Callable) -> Diagnosis:
    """Exercise 4.2: how many pairs are in each regime?

    ``f(head_dim, base, factor, trained_length, beta_fast, beta_slow)`` -> (unchanged,
    blended, divided), three whole numbers that add up to head_dim/2.
    Formula: rotations = trained_length * frequency / 2 pi; more than beta_fast:
    unchanged; fewer than beta_slow: divided. Peng et al. 2023 (YaRN), section 3.2.

    >>> check_regime_counts(lambda *settings: (21, 25, 18)).status
    'wrong'
    """
    stretched = LLAMA_2[:2] + (64.0,) + LLAMA_2[3:]
    inputs = [LLAMA_2, stretched, LLAMA_3, LONG_TRAINING, DEVSTRAL, OTHER_BETAS]

    def truth(head_dim, base, factor, trained_length, beta_fast, beta_slow):
        wavelengths = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
        rotations = [trained_length / wavelength for wavelength in wavelengths.tolist()]
        kept = sum(turns > beta_fast for turns in rotations)
        divided = sum(turns < beta_slow for turns in rotations)
        return [kept, len(rotations) - kept - divided, divided]
    return _judge(f, inputs, truth, _three_counts, _catalogue("check_regime_counts"),
                  _explain_counts)


def check_yarn(f: Callable, *, ramp: str = "pair") -> Diagnosis:
    """Exercise 4.3: the frequencies of YaRN.

    ``f(head_dim, base, factor, trained_length, beta_fast, beta_slow)`` -> inverse
    frequencies, ``[head_dim/2]``, radians per token, pair 0 first.
    ``ramp="pair"`` is the code of the authors (bounds rounded outwards, clamped to 0
    and head_dim - 1); ``ramp="rotations"`` is equations 17 to 20 of the paper.
    Raises ValueError for another ramp.

    >>> check_yarn(lambda head_dim, *rest: torch.ones(head_dim // 2)).status
    'wrong'
    """
    if ramp not in ("pair", "rotations"):
        raise ValueError(f"ramp={ramp!r}: 'pair' (the code of the authors) or"
                         " 'rotations' (the equations of the paper)")

    def truth(head_dim, base, factor, trained_length, beta_fast, beta_slow):
        return yarn.ntk_by_parts(head_dim, base=base, factor=factor, ramp=ramp,
                                 trained_length=trained_length, beta_fast=beta_fast,
                                 beta_slow=beta_slow).inv_freq
    inputs = SETTINGS + ((EQUAL_BETAS,) if ramp == "pair" else ())
    catalogue = _catalogue("check_yarn", "check_paper_yarn")
    return _judge(f, inputs, truth, _tensor, catalogue, _explain_frequencies)


def check_paper_yarn(f: Callable) -> Diagnosis:
    """``check_yarn(f, ramp="rotations")`` under a name of its own.

    >>> check_paper_yarn(lambda *settings: None).status
    'not attempted'
    """
    return check_yarn(f, ramp="rotations")


def check_attention_factor(f: Callable) -> Diagnosis:
    """Exercise 4.4: ``f(factor)`` -> what multiplies cos and sin, one number.

    Formula: 0.1 ln(factor) + 1. Peng et al. 2023 (YaRN), equation 22.

    >>> check_attention_factor(lambda factor: 1.0).mistake
    'no-temperature'
    """
    def truth(factor):
        return [0.1 * math.log(factor) + 1]
    return _judge(f, [(factor,) for factor in FACTORS], truth, _one_number,
                  _catalogue("check_attention_factor"), _explain_factor)


def check_scaled_scores(f: Callable) -> Diagnosis:
    """Exercise 4.5: ``f(q, k, cos, sin, factor)`` -> scores before the softmax.

    ``q`` and ``k`` are ``[batch, heads, seq, head_dim]``, cos and sin plain tables
    ``[seq, head_dim/2]``, interleaved layout; result ``[batch, heads, seq, seq]``: the
    scores divided by sqrt(head_dim), with YaRN's temperature in them.

    >>> check_scaled_scores(lambda q, k, cos, sin, factor: q @ k.mT).status
    'wrong'
    """
    generator = torch.Generator().manual_seed(4)
    inputs = []
    for factor, head_dim in ((4.0, 8), (32.0, 16), (1.0, 8)):
        q, k = torch.randn(2, 1, 2, 5, head_dim, generator=generator,
                           dtype=torch.float64)
        plain = rope.inverse_frequencies(head_dim)
        cos, sin = rope.rotary_tables(torch.arange(5), plain, dtype=torch.float64)
        inputs.append((q, k, cos, sin, factor))

    def truth(q, k, cos, sin, factor):
        return scores(turned(q, cos, sin), turned(k, cos, sin)) * sharpen(factor) ** 2
    return _judge(f, inputs, truth, _tensor, _catalogue("check_scaled_scores"),
                  _explain_scores, floor=1.0)


# Judging


def _catalogue(*checks: str) -> list[Mistake]:
    return [mistake for mistake in MISTAKES if mistake.check in checks]


def _judge(f, inputs, truth, read, catalogue, explain, *, floor=0.0) -> Diagnosis:
    """Run ``f`` on every input, compare with the truth, else name what went wrong.

    ``floor``: numbers below this share of the largest are compared on its scale.
    """
    answers, wanted = [], []
    for given in inputs:
        result, trouble = run_learner(f, *given)
        if trouble is None:
            expected = truth(*given)
            answer, trouble = read(result, expected)
        if trouble is not None:
            right_so_far = _agree(answers, wanted, SINGLE, floor)
            found = None if right_so_far else _named_mistake(
                catalogue, inputs[:len(answers)], answers, floor)
            return _placed(trouble, given, inputs) if found is None else found
        answers.append(answer)
        wanted.append(_flat(expected))
    if _agree(answers, wanted, SINGLE, floor):
        exact = _agree(answers, wanted, EXACT, floor)
        return Diagnosis("right", None, RIGHT if exact else RIGHT + FROM_SINGLE)
    found = _named_mistake(catalogue, inputs, answers, floor)
    return explain(inputs, answers, wanted) if found is None else found


def _named_mistake(catalogue, inputs, answers, floor) -> Diagnosis | None:
    """The known mistake that gives these numbers; None for none, or for more than one.

    ``inputs`` may be the first few, where a program fails on a later one.
    """
    known = []
    for mistake in catalogue if len(inputs) > 2 else ():
        programs = [_flat(mistake.function(*given)) for given in inputs]
        if _agree(answers, programs, SAME_PROGRAM, floor):
            known.append(Diagnosis("wrong", mistake.name, mistake.explanation))
    return known[0] if len(known) == 1 else None


def _placed(trouble: Diagnosis, given: tuple, inputs: Sequence) -> Diagnosis:
    """The same diagnosis, with the setting it happened at if that is not the first."""
    if trouble.status == "not attempted" or given is inputs[0]:
        return trouble
    return Diagnosis(trouble.status, trouble.mistake,
                     f"{trouble.message} (At {_named(given)}.)")


def _named(given: tuple) -> str:
    words = [f"a tensor {list(value.shape)}" if isinstance(value, torch.Tensor)
             else f"{value:g}" for value in given]
    return f"({', '.join(words)})"


def _agree(answers: list, wanted: list, tolerance: float, floor: float) -> bool:
    """All numbers within the relative tolerance (of the floor, where below it)."""
    for got, want in zip(answers, wanted, strict=True):
        smallest = floor * max(map(abs, want))
        for one, other in zip(got, want, strict=True):
            if not abs(one - other) <= tolerance * max(abs(other), smallest):
                return False
    return True


# Reading a learner's result: (plain floats, None) or (None, diagnosis)


def _flat(values: Any) -> list[float]:
    if isinstance(values, torch.Tensor):
        return values.double().flatten().tolist()
    several = values if isinstance(values, (list, tuple)) else [values]
    return [float(value) for value in several]


def _tensor(result: Any, expected: torch.Tensor) -> Reading:
    # a subclass of Tensor may say anything about itself
    with torch._C.DisableTorchFunctionSubclass():
        if isinstance(result, (list, tuple)) and not _holds_tensors(result):
            return _from_list(result, expected)
        if type(result) is numpy.ndarray and result.dtype.kind == "f":
            result = torch.from_numpy(result)
        if not isinstance(result, torch.Tensor):
            return None, _wrong("not-a-tensor", f"A tensor is wanted, this is a"
                                f" {type(result).__name__}.")
        if result.is_meta or result.dtype == torch.bool or result.is_complex():
            return None, _wrong("not-real-numbers", f"Real numbers are wanted, this is"
                                f" {result.dtype} on {result.device.type}.")
        trouble = _shape_trouble(list(result.shape), list(expected.shape))
        trouble = _coarse(result) if trouble is None else trouble
        if trouble is not None:
            return None, trouble
        return _finite(_flat(result.detach()))


def _holds_tensors(result: Sequence) -> bool:
    return any(isinstance(value, torch.Tensor) and value.dim() > 0 for value in result)


def _from_list(result: Sequence, expected: torch.Tensor):
    if expected.dim() != 1:
        return None, _wrong("not-a-tensor", "A tensor is wanted, this is a list.")
    try:
        values = [float(value) for value in result]
    except (TypeError, ValueError):
        return None, _wrong("not-a-tensor", "A tensor of numbers is wanted, not a list"
                            f" of {type(result[0]).__name__}.")
    trouble = _shape_trouble([len(values)], list(expected.shape))
    return (None, trouble) if trouble is not None else _finite(values)


def _shape_trouble(shape: list, wanted: list) -> Diagnosis | None:
    if shape == wanted:
        return None
    if shape[:-1] == wanted[:-1] and shape[-1:] == [2 * wanted[-1]]:
        return _wrong("one-per-dimension", f"Your shape is {shape}: one number for"
                      " every dimension. Two dimensions make a pair, and a pair has one"
                      " number.")
    return _wrong("wrong-shape", f"The shape is {shape}, and should be {wanted}.")


def _coarse(result: torch.Tensor) -> Diagnosis | None:
    if result.dtype in (torch.float16, torch.bfloat16):
        return _wrong("half-precision", f"{result.dtype} keeps three digits at most;"
                      " far out in a text such angles are noise. Compute in float64 (or"
                      " float32).")
    return None


def _finite(values: list[float]) -> Reading:
    if all(map(math.isfinite, values)):
        return values, None
    return None, _wrong("not-finite", "There is a nan or an inf among your numbers:"
                        " look for a division by zero, or a logarithm of zero.")


def _one_number(result: Any, expected: list) -> Reading:
    if isinstance(result, torch.Tensor) and result.numel() != 1:
        return None, _wrong("wrong-shape", "One number is wanted, not many.")
    if isinstance(result, (str, bool)):  # float() would take them
        return None, _wrong("not-a-number", "One number is wanted, this is a"
                            f" {type(result).__name__}.")
    try:
        return _finite([float(result)])
    except (TypeError, ValueError, RuntimeError):
        return None, _wrong("not-a-number", "One number is wanted, this is a"
                            f" {type(result).__name__}.")


def _three_counts(result: Any, expected: list) -> Reading:
    try:
        values = [float(value) for value in result]
    except (TypeError, ValueError, RuntimeError):
        return None, _wrong("not-three-counts", "Three whole numbers are wanted, this"
                            f" is a {type(result).__name__}.")
    if len(values) != 3:
        return None, _wrong("not-three-counts", f"Three whole numbers are wanted, these"
                            f" are {len(values)}.")
    return _finite(values)


def _wrong(name: str, message: str) -> Diagnosis:
    return Diagnosis("wrong", name, message)


# Words for a program that is not in the catalogue


def _explain_frequencies(inputs, answers, wanted) -> Diagnosis:
    for (head_dim, base, factor, *_), got in zip(inputs, answers):
        plain = _flat(rope.inverse_frequencies(head_dim, base))
        divisors = [one / other if other else math.inf
                    for one, other in zip(plain, got)]
        trouble = _divisor_trouble(divisors, factor)
        if trouble:
            return _wrong(trouble[0], f"{trouble[1]} (head_dim {head_dim}, base"
                          f" {base:g}, factor {factor:g})")
    given, pair = _first_difference(inputs, answers, wanted)
    return _wrong("blended-band", "The ends are right and something between is not:"
                  f" pair {pair} at {_named(given)}. Print where your ramp begins and"
                  " where it ends, as pair numbers, and the rotations of those pairs.")


def _divisor_trouble(divisors: list[float], factor: float) -> tuple[str, str] | None:
    """The first broken rule among those every correct blend keeps, and its words."""
    slack = 1e-3
    if factor == 1 and any(abs(divisor - 1) > slack for divisor in divisors):
        return "not-plain-at-factor-one", "A factor of 1 must give plain RoPE."
    if min(divisors) < 1 - slack or max(divisors) > factor * (1 + slack):
        return "outside-the-two-ends", (
            "A pair is sped up, or divided by more than the factor: every pair must end"
            " between its own frequency and that frequency divided by the factor.")
    if abs(divisors[0] - 1) > slack:
        return "fast-pairs-changed", (
            "Pair 0 turns hundreds of times in training and must keep its frequency;"
            " yours is slowed down.")
    if any(later < earlier - slack for earlier, later in zip(divisors, divisors[1:])):
        return "divisor-falls", (
            "The divisor must never fall from a pair to a slower one; yours does.")
    return None


def _first_difference(inputs, answers, wanted) -> tuple[tuple, int]:
    for given, got, want in zip(inputs, answers, wanted):
        for index, (one, other) in enumerate(zip(got, want)):
            if not abs(one - other) <= SINGLE * abs(other):
                return given, index
    return inputs[0], 0


def _explain_angles(inputs, answers, wanted) -> Diagnosis:
    given, index = _first_difference(inputs, answers, wanted)
    positions, head_dim, base, factor, _ = given
    row, pair = divmod(index, head_dim // 2)
    return _wrong("other-angles", f"The angle of position {int(positions[row])}, pair"
                  f" {pair}, is not (position / factor) times the frequency of the pair"
                  f" (head_dim {head_dim}, base {base:g}, factor {factor:g}).")


def _explain_counts(inputs, answers, wanted) -> Diagnosis:
    for given, got in zip(inputs, answers):
        if sum(got) != given[0] // 2 or min(got) < 0:
            return _wrong("counts-do-not-add-up", f"With head_dim {given[0]} there are"
                          " head_dim/2 pairs, and each is in one group; yours add up to"
                          f" {sum(got):g}.")
    given, _ = _first_difference(inputs, answers, wanted)
    return _wrong("other-cuts", f"The sum is right and the cuts are not, at"
                  f" {_named(given)}. Print the rotations of a pair next to each cut"
                  " and compare them with the two betas.")


def _explain_factor(inputs, answers, wanted) -> Diagnosis:
    if abs(answers[0][0] - 1) > SINGLE:
        return _wrong("not-one-at-factor-one", "With a factor of 1 nothing is stretched"
                      " and nothing may be sharpened; yours does not give 1 there.")
    return _wrong("other-growth", "Right at a factor of 1 and wrong at a larger one:"
                  " compare how much your number grows from 2 to 4 and from 4 to 8."
                  " With a logarithm the two steps are equal.")


def _explain_scores(inputs, answers, wanted) -> Diagnosis:
    ratios = [one / other for one, other in zip(answers[0], wanted[0]) if other]
    if max(ratios) - min(ratios) < SINGLE * abs(max(ratios)):
        return _wrong("other-size", "All your scores are wrong by one common number:"
                      " look at what multiplies them (the factor, from q and from k,"
                      " and the root of the head width).")
    return _wrong("other-scores", "Your scores differ from the right ones in more than"
                  " their size: look at the turning of q and k, and at which one is"
                  " transposed.")
