"""Checks of lesson 02: a learner's RMSNorm in, the name of the mistake out.

Each check runs the learner's function on a few small inputs, chosen so that every
mistake of the catalogue gives different numbers on at least one of them. A message
says what is wrong and where to look; it never prints the right numbers.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from apex_lessons import norm
from apex_lessons.exercises.diagnosis import (
    Diagnosis, Mistake, problem, run_learner)

F16, BF16, F32, F64 = torch.float16, torch.bfloat16, torch.float32, torch.float64
SINGLE_SLACK = 84 * torch.finfo(F32).eps  # relative, 1.0e-5: any order of operations
EITHER_ORDER = 1.6  # in eps of a half dtype: three roundings at the most
LOOSE = 12.0  # in eps of a half dtype: arithmetic that never leaves it


LEFT_FOR_LATER = (" One thing is left for later: very big or very small float16 values"
                  " still go wrong. The section on half precision shows why.")


@dataclass(frozen=True)
class Case:
    """Inputs, what a right program gives for them, and how far off it may be."""

    inputs: tuple
    expected: torch.Tensor  # float64
    dtype: torch.dtype = F32  # wanted of the result
    slack: float = SINGLE_SLACK  # relative
    floor: float = 1e-6  # absolute
    about: str = ""  # names the case in a message, without its numbers

    def right(self) -> torch.Tensor | float:
        """The expected result as a right program would return it."""
        expected = self.expected
        return expected.to(self.dtype) if expected.dim() else expected.item()

    def accepts(self, values: Sequence[float]) -> bool:
        """Every value near the expected one; NaN is near nothing."""
        return all(abs(value - right) <= self.floor + self.slack * abs(right)
                   for value, right in zip(values, _numbers(self.expected)))


# --------------------------------------------------------------------------- checks
def check_rms_norm(f: Callable) -> Diagnosis:
    """Is ``f(x, weight, eps)`` the RMSNorm ``x / sqrt(mean(x^2) + eps) * weight``?

    x: [..., d_model] of any floating dtype; weight: [d_model]; the result has the shape
    and the dtype of x. Accepts either formula (division or rsqrt), float32 or float64
    inside. What half precision does to big and tiny values is `check_half_precision`.

    >>> check_rms_norm(lambda x, weight, eps: ...).status
    'not attempted'
    >>> check_rms_norm(lambda x, weight, eps: x * weight).status
    'wrong'
    """
    diagnosis = _diagnose(f, rms_norm_cases(), "check_rms_norm")
    if diagnosis.status == "right" and not _survives_half(f):
        return replace(diagnosis, message=diagnosis.message + LEFT_FOR_LATER)
    return diagnosis


def check_layer_norm(f: Callable) -> Diagnosis:
    """Is ``f(x, eps)`` LayerNorm without weight and bias, RMSNorm of ``x - mean``?

    x: float32 [..., d_model]; the same shape and dtype come back.

    >>> check_layer_norm(lambda x, eps: torch.nn.functional.layer_norm(
    ...     x, x.shape[-1:], eps=eps)).status
    'right'
    """
    return _diagnose(f, layer_norm_cases(), "check_layer_norm")


def check_epsilon_for(f: Callable) -> Diagnosis:
    """Does ``f(input_rms, output_rms)`` give the epsilon between the two?

    Both are floats, with ``0 < output_rms < 1``; the weight is 1. From
    ``output_rms = input_rms / sqrt(input_rms^2 + eps)``.

    >>> check_epsilon_for(lambda input_rms, output_rms: 1e-6).mistake
    'always-the-same'
    """
    return _diagnose(f, epsilon_cases(), "check_epsilon_for")


def check_half_precision(f: Callable) -> Diagnosis:
    """Does ``f(x, weight, eps)`` keep its promise for float16 and bfloat16 inputs?

    The result has the dtype of x (whatever the weight's is), and is as near to the
    exact one as two or three roundings to that dtype allow: the weight may be applied
    before or after the cast.

    >>> check_half_precision(lambda x, weight, eps: (
    ...     norm.rms_norm(x.double(), weight.double(), eps).to(x.dtype))).status
    'right'
    """
    return _diagnose(f, half_precision_cases(), "check_half_precision")


def check_gemma_weight(f: Callable) -> Diagnosis:
    """Is ``f(x, weight, eps)`` Gemma's norm: ``x / rms * (1 + weight)``, cast once?

    The 1 is added in float32 and the result is cast to x's dtype at the very end.

    >>> check_gemma_weight(lambda x, weight, eps: norm.rms_norm(x, weight, eps)).mistake
    'plain-weight'
    """
    return _diagnose(f, gemma_cases(), "check_gemma_weight")


# ---------------------------------------------------------------------------- cases
def _normal(*shape: int, seed: int, dtype: torch.dtype = F32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(dtype)


def rms_norm_cases() -> tuple[Case, ...]:
    """Ordinary, small, tiny, zero and half inputs: see ``about`` of each."""
    weight = torch.tensor([0.5, -1.25, 2.0, 0.8])
    ordinary = 1.5 * _normal(2, 3, 4, seed=1) + 0.7
    inputs = [
        (ordinary, weight, 1e-6, "an input of shape [2, 3, 4]"),
        (0.01 * _normal(4, 4, seed=2), weight, 1e-5, "a small input, RMS near 0.01"),
        (0.001 * _normal(2, 4, seed=3), weight, 1e-6, "a tiny input"),
        (torch.zeros(1, 4), weight, 1e-6, "a vector of zeros"),
    ]
    cases = [Case((x, w, eps), _exact(x, w, eps), about=about)
             for x, w, eps, about in inputs]
    for dtype in (F16, BF16):
        x, w = ordinary[0].to(dtype), weight.to(dtype)
        cases.append(Case((x, w, 1e-5), _exact(x, w, 1e-5), dtype,
                          slack=LOOSE * torch.finfo(dtype).eps,
                          about=f"an input of dtype {_short(dtype)}"))
    return tuple(cases)


def layer_norm_cases() -> tuple[Case, ...]:
    """A shifted, a tiny and a constant input."""
    inputs = [
        (1.5 * _normal(2, 3, 4, seed=4) + 0.7, 1e-5, "an input of shape [2, 3, 4]"),
        (0.002 * _normal(3, 4, seed=5) + 0.003, 1e-5, "a tiny input"),
        (torch.full((1, 4), 0.25), 1e-5, "a vector of equal numbers"),
    ]
    return tuple(Case((x, eps), _exact(x - x.mean(-1, keepdim=True), None, eps),
                      slack=4 * SINGLE_SLACK, about=about) for x, eps, about in inputs)


def epsilon_cases() -> tuple[Case, ...]:
    """Pairs of RMS before and after; the expected epsilon follows from the formula."""
    pairs = [(0.01, 0.9), (1e-3, 0.5), (3e-3, 0.99), (0.2, 0.8)]
    return tuple(Case((r, o), torch.tensor((r / o)**2 - r**2, dtype=F64), slack=1e-4,
                      floor=1e-15, about=f"RMS {r:g} in, {o:g} out") for r, o in pairs)


def half_precision_cases() -> tuple[Case, ...]:
    """Big, tiny, zero and ordinary values in both half dtypes, and a float32 input."""
    row = torch.tensor([[1.0, -1.0, 0.5, 2.0], [1.0, 0.01, -0.02, 0.005]])
    weight = torch.tensor([1.0, 0.5, -1.5, 2.0])
    ordinary, spread = _normal(3, 4, seed=6), 1 + 0.3 * _normal(4, seed=7)
    inputs = [
        ((300 * row).to(F16), weight.to(F16), 1e-6, "float16 values of some hundreds"),
        ((1e-4 * row).to(F16), weight.to(F16), 1e-8, "float16 values near 0.0001"),
        ((0 * row).to(F16), weight.to(F16), 1e-8, "a float16 vector of zeros"),
        (ordinary.to(BF16), spread.to(BF16), 1e-6, "an ordinary bfloat16 input"),
        (ordinary.to(BF16), spread, 1e-6, "a bfloat16 input with a float32 weight"),
        (300 * row, weight, 1e-6, "a float32 input"),
    ]
    return tuple(Case((x, w, eps), _exact(x, w, eps), x.dtype, _half_slack(x.dtype),
                      about=about) for x, w, eps, about in inputs)


def gemma_cases() -> tuple[Case, ...]:
    """Small, zero and big stored weights; in bfloat16 one rounding and no second."""
    x = torch.tensor([[1.0, 2.0, 2.0, 4.0], [3.0, -1.0, 0.5, 2.0]])
    small = torch.full((4,), 0.0078125)
    large = torch.tensor([15.8125, 0.00390625, -0.5, 2.5])
    inputs = [
        (1.5 * _normal(2, 3, 4, seed=8), 0.3 * _normal(4, seed=9), "a float32 input"),
        (x, torch.zeros(4), "a stored weight of zeros"),
        (x.to(BF16), small.to(BF16), "bfloat16, a small stored weight"),
        (x.to(BF16), large.to(BF16), "bfloat16, a large stored weight"),
    ]
    cases = []
    for values, weight, about in inputs:
        exact = _exact(values, 1 + weight.double(), 1e-6)
        slack = SINGLE_SLACK
        if values.dtype is BF16:
            exact, slack = exact.to(BF16).double(), 1e-4
        inputs_of_f = (values, weight, 1e-6)
        cases.append(Case(inputs_of_f, exact, values.dtype, slack, about=about))
    return tuple(cases)


def _exact(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    return norm.rms_norm(x.double(), None if weight is None else weight.double(), eps)


def _half_slack(dtype: torch.dtype) -> float:
    return SINGLE_SLACK if dtype is F32 else EITHER_ORDER * torch.finfo(dtype).eps


def _survives_half(f: Callable) -> bool:
    return all(_fault(*run_learner(f, *case.inputs), case) is None
               for case in half_precision_cases())


# ------------------------------------------------------------------------ diagnosing
def _diagnose(f: Callable, cases: Sequence[Case], check: str) -> Diagnosis:
    """Run all cases; then right, a known mistake, or the first fault in words."""
    outcomes = [run_learner(f, *case.inputs) for case in cases]
    for _, stopped in outcomes:
        if stopped is not None and _ends_the_check(stopped):
            return stopped
    faults = [_fault(result, stopped, case)
              for (result, stopped), case in zip(outcomes, cases)]
    if all(fault is None for fault in faults):
        words = f"All {len(cases)} inputs agree with the formula."
        return Diagnosis("right", None, words)
    mistake = _recognised(outcomes, cases, check)
    if mistake:
        return Diagnosis("wrong", mistake.name, mistake.explanation)
    if check == "check_rms_norm":
        aside = _weight_aside(f, cases)
        if aside is not None:
            return aside
    return next(fault for fault in faults if fault is not None)


def _recognised(outcomes: Sequence, cases: Sequence[Case],
                check: str) -> Mistake | None:
    """The first mistake of the catalogue that gives the same on every case."""
    for mistake in known_mistakes():
        if mistake.check == check and _alike(outcomes, mistake.function, cases):
            return mistake
    return None


def _weight_aside(f: Callable, cases: Sequence[Case]) -> Diagnosis | None:
    """Two mistakes at once: judge the division alone, with a weight of ones."""
    ones = []
    for case in cases:
        x, weight, eps = case.inputs
        one = torch.ones_like(weight)
        ones.append(replace(case, inputs=(x, one, eps), expected=_exact(x, one, eps)))
    outcomes = [run_learner(f, *case.inputs) for case in ones]
    if all(_fault(*outcome, case) is None for outcome, case in zip(outcomes, ones)):
        return Diagnosis(
            "wrong", "weight", "With a weight of ones your result is right, with other"
            " weights it is not. Multiply the normalised vector by the weight, entry by"
            " entry, once.")
    mistake = _recognised(outcomes, ones, "check_rms_norm")
    if mistake is None or "weight" in mistake.name:
        return None
    return Diagnosis("wrong", mistake.name, "Two things at once. First: "
                     f"{mistake.explanation} Then look at how the weight is used.")


def _ends_the_check(stopped: Diagnosis) -> bool:
    return (stopped.status == "not attempted"
            or stopped.mistake in ("changes-its-input", "not-a-function"))


def _fault(result: Any, stopped: Diagnosis | None, case: Case) -> Diagnosis | None:
    """What is wrong with one result, or None."""
    if stopped is not None:
        return _with_hint(stopped)
    found = _no_numbers(result)
    if found is None:
        found = problem(result, case.right())
    if found is not None:
        return replace(found, message=f"For {case.about}: {found.message}")
    values = _plain(result)
    return None if case.accepts(values) else _in_words(values, case)


def _no_numbers(result: Any) -> Diagnosis | None:
    """A tensor without data cannot be compared."""
    if isinstance(result, torch.Tensor) and result.is_meta:
        return Diagnosis("wrong", "no-numbers", "This tensor is on the meta device: it"
                         " has a shape and no numbers.")
    return None


def _with_hint(stopped: Diagnosis) -> Diagnosis:
    """An exception about sizes nearly always is a mean that lost its axis."""
    if "size of tensor" not in stopped.message:
        return stopped
    return replace(stopped, message=stopped.message + " Did the mean lose its axis?"
                   " mean(-1, keepdim=True) keeps it.")


def _in_words(values: Sequence[float], case: Case) -> Diagnosis:
    """A mistake without a name: how the result relates to the right one."""
    right = _numbers(case.expected)
    ratios = [value / wanted for value, wanted in zip(values, right) if wanted]
    low, high = min(ratios, default=0.0), max(ratios, default=0.0)
    if not ratios:
        words = "your result is not zero."
    elif len(ratios) == 1:
        words = f"your number is {high:.3g} times the right one."
    elif high - low <= 1e-3 * abs(high):
        words = (f"every number of your result is {high:.3g} times what it should be:"
                 " the divisor is off.")
    else:
        words = (f"your numbers are between {low:.3g} and {high:.3g} times what they"
                 " should be. Print the RMS of one row, then each step for that row,"
                 " and compare with the worked example.")
    return Diagnosis("wrong", "unknown", f"For {case.about} {words}")


def _alike(outcomes: Sequence, wrong: Callable, cases: Sequence[Case]) -> bool:
    """Does the known wrong program give the same as the learner's on every case?"""
    return all(_same(mine, run_learner(wrong, *case.inputs), case)
               for mine, case in zip(outcomes, cases))


def _same(mine: tuple, theirs: tuple, case: Case) -> bool:
    (result, stopped), (wrong, wrong_stopped) = mine, theirs
    if stopped is not None or wrong_stopped is not None:
        kinds = [None if one is None else one.message.split(":")[0]
                 for one in (stopped, wrong_stopped)]
        return kinds[0] == kinds[1]
    values, wrong_values = _plain(result), _plain(wrong)
    if values is None or len(values) != len(wrong_values):
        return False
    if isinstance(wrong, torch.Tensor) and isinstance(result, torch.Tensor):
        if (result.shape, result.dtype) != (wrong.shape, wrong.dtype):
            return False
    return all(_near(value, other, case) for value, other in zip(values, wrong_values))


def _near(value: float, other: float, case: Case) -> bool:
    if not (math.isfinite(value) and math.isfinite(other)):
        return value == other or (math.isnan(value) and math.isnan(other))
    return abs(value - other) <= case.floor + case.slack * abs(other)


def _plain(result: Any) -> list[float] | None:
    """Python floats of a plain tensor or a number; None for anything else.

    Comparing Python floats leaves no room for objects that call themselves equal.
    """
    if type(result) in (torch.Tensor, torch.nn.Parameter) and not result.is_meta:
        return None if result.is_complex() else _numbers(result)
    return [float(result)] if isinstance(result, numbers.Real) else None


def _numbers(values: torch.Tensor) -> list[float]:
    return values.detach().double().flatten().tolist()


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ------------------------------------------------------------------- known mistakes
def known_mistakes() -> tuple[Mistake, ...]:
    """The catalogue: one wrong program a misconception, with the words that name it."""
    return (*_named("check_rms_norm", RMS_NORM_MISTAKES),
            *_named("check_layer_norm", LAYER_NORM_MISTAKES),
            *_named("check_epsilon_for", EPSILON_MISTAKES),
            *_named("check_half_precision", HALF_MISTAKES),
            *_named("check_gemma_weight", GEMMA_MISTAKES))


def _named(check: str, rows: Sequence[tuple[str, Callable, str]]) -> list[Mistake]:
    return [Mistake(name, check, function, words) for name, function, words in rows]


def _mean_square(x: torch.Tensor, dim: int | tuple = -1) -> torch.Tensor:
    return x.pow(2).mean(dim, keepdim=True)


def _upcast(x: torch.Tensor, eps: float) -> torch.Tensor:
    return x.float() * torch.rsqrt(_mean_square(x.float()) + eps)


def _divides_by(divisor: Callable) -> Callable:
    """The program ``x / divisor(x, eps) * weight``."""
    return lambda x, weight, eps: x / divisor(x, eps) * weight


def _sum_of_squares(x: torch.Tensor) -> torch.Tensor:
    return x.pow(2).sum(-1, keepdim=True)


def _variance(x: torch.Tensor, unbiased: bool = False) -> torch.Tensor:
    return x.var(-1, keepdim=True, unbiased=unbiased)


def _in_place(x, weight, eps):
    x /= torch.sqrt(_mean_square(x) + eps)
    x *= weight
    return x


def _centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(-1, keepdim=True)


RMS_NORM_MISTAKES = (
    ("subtracts-the-mean",
     lambda x, w, eps: _centred(x) / torch.sqrt(_mean_square(_centred(x)) + eps) * w,
     "This is LayerNorm: the mean is subtracted first. RMSNorm leaves the mean in."
     " Try a vector of equal numbers: LayerNorm gives zeros, RMSNorm gives ones."),
    ("variance-instead-of-mean-square",
     _divides_by(lambda x, eps: torch.sqrt(_variance(x) + eps)),
     "You divide by the standard deviation. RMS squared is the variance plus the mean"
     " squared, so the two agree only where the mean is 0. Square x itself."),
    ("unbiased-standard-deviation",
     _divides_by(lambda x, eps: torch.sqrt(_variance(x, unbiased=True) + eps)),
     "You divide by torch's standard deviation, which removes the mean and divides by"
     " d - 1. RMSNorm takes the mean of the squares of x itself, over d."),
    ("layer-norm-with-unbiased-deviation",
     lambda x, w, eps: _centred(x) / torch.sqrt(_variance(x, unbiased=True) + eps) * w,
     "This is LayerNorm, and with d - 1 in the variance. RMSNorm does not subtract the"
     " mean, and its mean of squares divides by d."),
    ("divides-by-d-minus-one",
     _divides_by(lambda x, eps: (_sum_of_squares(x) / (x.shape[-1] - 1) + eps).sqrt()),
     "The sum of squares is divided by d - 1. Nothing is estimated here: the mean of d"
     " squares divides by d."),
    ("epsilon-outside-the-root",
     _divides_by(lambda x, eps: (torch.sqrt(_mean_square(x)) + eps)),
     "Epsilon is added after the square root. Here it belongs inside: sqrt(mean(x^2)"
     " + eps). You see the difference only where the RMS is small: try values near"
     " 0.001."),
    ("epsilon-squared",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x) + eps**2)),
     "Epsilon is squared before it is added. It is added to the mean square as it is;"
     " the RMS at which it begins to matter is therefore its square root."),
    ("square-root-of-the-rms",
     _divides_by(lambda x, eps: torch.sqrt(torch.sqrt(_mean_square(x)) + eps)),
     "There is one square root too many: you divide by the root of the RMS. The RMS"
     " already is the root of the mean square. Doubling x must not change the result:"
     " yours changes."),
    ("no-square-root",
     _divides_by(lambda x, eps: (_mean_square(x) + eps)),
     "The square root is missing: you divide by the mean square. Doubling x must not"
     " change the result; yours is halved."),
    ("absolute-values",
     _divides_by(lambda x, eps: (x.abs().mean(-1, keepdim=True) + eps)),
     "You divide by the mean of the absolute values. Close, but large entries must"
     " count more: square first, then mean, then root."),
    ("largest-entry",
     _divides_by(lambda x, eps: x.abs().amax(-1, keepdim=True) + eps),
     "You divide by the largest entry. One outlier then decides alone; the RMS takes"
     " all entries into account: square, mean, root."),
    ("square-of-the-mean",
     _divides_by(lambda x, eps: torch.sqrt(x.mean(-1, keepdim=True).pow(2) + eps)),
     "You square the mean; wanted is the mean of the squares. With [1, -1] your"
     " divisor is almost 0."),
    ("sum-instead-of-mean",
     _divides_by(lambda x, eps: torch.sqrt(_sum_of_squares(x) + eps)),
     "The squares are summed, not averaged. The result has length 1; RMSNorm gives"
     " RMS 1, which is length sqrt(d)."),
    ("unit-norm",
     lambda x, w, eps: x / x.norm(dim=-1, keepdim=True).clamp(min=eps) * w,
     "This is F.normalize: length 1. RMSNorm gives RMS 1, so the length is sqrt(d)."
     " What is the mean square of your result?"),
    ("root-d-the-wrong-way",
     _divides_by(lambda x, eps: torch.sqrt((_sum_of_squares(x) + eps) * x.shape[-1])),
     "The length is divided by sqrt(d) where it should be multiplied: the RMS is the"
     " length over sqrt(d), and you divide by it."),
    ("multiplies-by-the-rms",
     lambda x, w, eps: x * torch.sqrt(_mean_square(x) + eps) * w,
     "You multiply by the RMS (or divide by rsqrt, which is the same). Divide by the"
     " RMS, or multiply by rsqrt."),
    ("over-time-and-features",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x, (-2, -1)) + eps)),
     "One RMS serves all tokens of a sequence: the mean runs over time as well. Then"
     " a later token changes an earlier output. Use the last axis only."),
    ("over-time",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x, -2) + eps)),
     "The mean runs over the tokens, one RMS a feature. Each token must have its own"
     " RMS: use the last axis."),
    ("over-the-batch",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x, 0) + eps)),
     "The mean runs over the first axis, as in batch normalisation. A token would"
     " then depend on its neighbours in the batch: use the last axis."),
    ("over-batch-and-time",
     _divides_by(lambda x, eps: torch.sqrt(
         _mean_square(x, tuple(range(x.dim() - 1))) + eps)),
     "The mean runs over all axes but the last: one RMS a feature, as in batch"
     " normalisation. Turn it round: the last axis only, one RMS a token."),
    ("over-everything",
     _divides_by(lambda x, eps: torch.sqrt(x.pow(2).mean() + eps)),
     "One RMS serves the whole tensor. Give mean the last axis, and keepdim=True."),
    ("forgets-keepdim",
     _divides_by(lambda x, eps: torch.sqrt(x.pow(2).mean(-1) + eps)),
     "The mean loses its axis, so the RMS lines up with the wrong axis, or with none."
     " Write mean(-1, keepdim=True): one number a token, shape [..., 1]."),
    ("forgets-the-weight",
     lambda x, w, eps: x / torch.sqrt(_mean_square(x) + eps),
     "The weight is never used. Multiply the normalised vector by it, entry by entry."),
    ("weight-added",
     lambda x, w, eps: x / torch.sqrt(_mean_square(x) + eps) + w,
     "The weight is added like a bias. It is a scale: multiply."),
    ("one-plus-weight",
     lambda x, w, eps: x / torch.sqrt(_mean_square(x) + eps) * (1 + w),
     "You multiply by 1 + weight. That is Gemma's convention, for weights stored"
     " around 0. Here the weight is the scale itself."),
    ("weight-before-the-norm",
     lambda x, w, eps: x * w / torch.sqrt(_mean_square(x * w) + eps),
     "The weight is multiplied in before the RMS is taken, so the norm undoes a part"
     " of it. Normalise x first, then multiply."),
    ("ignores-epsilon-uses-1e-6",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x) + 1e-6)),
     "Epsilon is written into your function as 1e-6. Use the eps you are given:"
     " models differ, and at RMS 0.01 the difference is 4 %."),
    ("ignores-epsilon-uses-1e-5",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x) + 1e-5)),
     "Epsilon is written into your function as 1e-5. Use the eps you are given:"
     " models differ, and at RMS 0.01 the difference is 4 %."),
    ("ignores-epsilon-uses-1e-8",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x) + 1e-8)),
     "Epsilon is written into your function as 1e-8. Use the eps you are given."),
    ("no-epsilon",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x))),
     "There is no epsilon: a vector of zeros gives 0/0, which is nan. Add eps inside"
     " the root."),
    ("epsilon-as-a-floor",
     _divides_by(lambda x, eps: torch.sqrt(_mean_square(x).clamp(min=eps))),
     "Epsilon is a lower limit in your function. It is added: near RMS sqrt(eps) the"
     " two differ by up to 40 %."),
    ("returns-float32",
     lambda x, w, eps: _upcast(x, eps) * w.float(),
     "The numbers are right, but the result stays float32 for a half-precision input."
     " Cast back with .to(x.dtype): the next layer expects the dtype it gave you."),
    ("changes-its-input", _in_place,
     "Your function writes into the tensor it was given: make a new tensor."),
)

LAYER_NORM_MISTAKES = (
    ("keeps-the-mean", lambda x, eps: x / torch.sqrt(_mean_square(x) + eps),
     "This is RMSNorm: the mean is still in. Subtract it first."),
    ("rms-of-the-shifted-vector",
     lambda x, eps: _centred(x) / torch.sqrt(_mean_square(x) + eps),
     "You subtract the mean, but divide by the RMS of the vector that still has it."
     " Take the RMS of the centred vector."),
    ("only-divides",
     lambda x, eps: x / torch.sqrt(_variance(x) + eps),
     "You divide by the standard deviation but never subtract the mean."),
    ("only-subtracts", lambda x, eps: _centred(x),
     "The mean is gone, but nothing is divided: the RMS of your result is not 1."),
    ("unbiased-variance",
     lambda x, eps: _centred(x) / torch.sqrt(_variance(x, unbiased=True) + eps),
     "Your variance divides by d - 1, which is what torch does unless told otherwise."
     " LayerNorm divides by d: unbiased=False."),
    ("epsilon-outside-the-root",
     lambda x, eps: _centred(x) / (torch.sqrt(_mean_square(_centred(x))) + eps),
     "Epsilon is added after the root; it belongs inside. Only tiny inputs show it."),
    ("no-epsilon", lambda x, eps: _centred(x) / torch.sqrt(_mean_square(_centred(x))),
     "Without epsilon a vector of equal numbers gives 0/0."),
    ("no-square-root", lambda x, eps: _centred(x) / (_mean_square(_centred(x)) + eps),
     "You divide by the variance; the square root is missing."),
    ("mean-over-everything",
     lambda x, eps: (x - x.mean()) / torch.sqrt(_mean_square(x - x.mean()) + eps),
     "One mean is taken of the whole tensor. Each token has its own: the last axis,"
     " keepdim=True."),
    ("mean-over-time",
     lambda x, eps: (x - x.mean(-2, keepdim=True))
     / torch.sqrt(_mean_square(x - x.mean(-2, keepdim=True)) + eps),
     "The mean runs over the tokens. Each token has its own mean: the last axis."),
    ("adds-the-mean",
     lambda x, eps: norm.rms_norm(2 * x - _centred(x), eps=eps),
     "The mean is added where it should be subtracted."),
)

EPSILON_MISTAKES = (
    ("outside-the-root", lambda r, o: r * (1 / o - 1),
     "This is the answer for epsilon outside the root, r / (r + eps). Inside, the"
     " squares are compared: start from output^2 = input^2 / (input^2 + eps)."),
    ("input-not-squared", lambda r, o: r * (1 / o**2 - 1),
     "The input's RMS must be squared: epsilon is added to the mean square."),
    ("output-not-squared", lambda r, o: r**2 * (1 / o - 1),
     "The output's RMS must be squared too: square both sides before you solve."),
    ("root-of-epsilon", lambda r, o: r * math.sqrt(1 / o**2 - 1),
     "This is the square root of epsilon. Square it."),
    ("gain-upside-down", lambda r, o: r**2 * (1 - o**2),
     "A factor 1 / output^2 is missing. Put your answer back into the formula: the"
     " output comes out too large."),
    ("wrong-sign", lambda r, o: r**2 * (1 - 1 / o**2),
     "Your epsilon is negative. The output is smaller than 1 because epsilon makes the"
     " divisor larger."),
    ("linear-loss", lambda r, o: r**2 * (1 - o),
     "You took the missing part of the output as epsilon over the mean square. Square"
     " both sides of the formula and solve."),
    ("forgets-the-minus-one", lambda r, o: r**2 / o**2,
     "This is the whole number under the root, mean square plus epsilon. Subtract the"
     " mean square."),
    ("always-the-same", lambda r, o: 1e-6,
     "This is one model's epsilon. The question is which epsilon turns these two"
     " numbers into each other: it depends on both."),
)


HALF_MISTAKES = (
    ("no-upcast",
     lambda x, w, eps: (x / torch.sqrt(_mean_square(x) + eps) * w).to(x.dtype),
     "Everything is computed in the input's dtype. In float16 the square of 256 is"
     " already infinite, and the square of 0.0001 is 0. Write x.float() first."),
    ("squares-in-half",
     lambda x, w, eps: (x.float() * torch.rsqrt(_mean_square(x).float() + eps)
                        * w.float()).to(x.dtype),
     "One of the two uses of x is still half precision: the squares. Cast x once, at"
     " the top, and use the cast one everywhere."),
    ("mean-square-rounded-to-half",
     lambda x, w, eps: (x.float() / torch.sqrt(
         _mean_square(x.float()).to(x.dtype) + eps) * w.float()).to(x.dtype),
     "The mean square is cast back to half before the root. There it is infinite for"
     " values of some hundreds. Cast only the result."),
    ("returns-float32", lambda x, w, eps: _upcast(x, eps) * w.float(),
     "The numbers are right, but the result stays float32. Cast it to x.dtype at the"
     " end."),
    ("weight-decides-the-dtype", lambda x, w, eps: w * _upcast(x, eps).to(x.dtype),
     "With a float32 weight your bfloat16 result becomes float32: a product takes the"
     " wider dtype. Cast after the product, or cast the weight."),
    ("always-float16", lambda x, w, eps: (_upcast(x, eps) * w.float()).half(),
     "Your function always returns float16. Give back x.dtype, whatever it is."),
    ("always-bfloat16", lambda x, w, eps: (_upcast(x, eps) * w.float()).bfloat16(),
     "Your function always returns bfloat16. Give back x.dtype, whatever it is."),
    ("through-bfloat16",
     lambda x, w, eps: (x.bfloat16() / torch.sqrt(_mean_square(x.bfloat16()) + eps)
                        * w.bfloat16()).to(x.dtype),
     "You compute in bfloat16. Its range is wide enough, but it keeps only 8 bits,"
     " less than float16 does. Compute in float32."),
    ("clamps-the-input",
     lambda x, w, eps: (_upcast(x.clamp(-255, 255), eps) * w.float()).to(x.dtype),
     "Large values are cut off before they are squared. That changes the vector's"
     " direction. Compute in float32 instead: nothing has to be cut off."),
    ("hides-the-overflow",
     lambda x, w, eps: (x / torch.sqrt(_mean_square(x).nan_to_num(posinf=65504.0)
                                       + eps) * w).to(x.dtype),
     "The overflow is replaced by the largest float16. The result is finite and still"
     " wrong: the RMS is not that number. Compute in float32."),
)

GEMMA_MISTAKES = (
    ("plain-weight", lambda x, w, eps: (_upcast(x, eps) * w.float()).to(x.dtype),
     "The stored weight is used as the scale itself. Gemma stores the distance from"
     " 1, so a weight of zeros would silence your layer. Multiply by 1 + weight."),
    ("one-added-in-half",
     lambda x, w, eps: (_upcast(x, eps) * (1 + w).float()).to(x.dtype),
     "The 1 is added in the weight's own dtype. In bfloat16, 1 + 0.0039 is 1 again."
     " Write 1 + weight.float()."),
    ("casts-before-the-weight",
     lambda x, w, eps: ((1 + w.float()) * _upcast(x, eps).to(x.dtype)).to(x.dtype),
     "The normalised vector is rounded before the weight is applied, and the product"
     " once more. That is Llama's order. Gemma casts once, at the end."),
    ("llama-order-in-half",
     lambda x, w, eps: (1 + w) * _upcast(x, eps).to(x.dtype),
     "Both the 1 + weight and the product are made in half precision: three"
     " roundings. Stay in float32 and cast once, at the end."),
    ("one-added-to-the-result",
     lambda x, w, eps: (_upcast(x, eps) * w.float() + 1).to(x.dtype),
     "The 1 is added to the result instead of the weight: mind the brackets."),
    ("weight-added", lambda x, w, eps: (_upcast(x, eps) + w.float()).to(x.dtype),
     "The weight is added to the normalised vector. It is a scale: multiply by 1 +"
     " weight."),
    ("one-subtracted",
     lambda x, w, eps: (_upcast(x, eps) * (w.float() - 1)).to(x.dtype),
     "The 1 is subtracted. The stored weight is the scale minus 1, so add it back."),
    ("forgets-the-weight", lambda x, w, eps: _upcast(x, eps).to(x.dtype),
     "The weight is never used. It only looks right while all stored weights are 0."),
    ("returns-float32", lambda x, w, eps: _upcast(x, eps) * (1 + w.float()),
     "The result stays float32 for a bfloat16 input. Cast it to x.dtype at the end."),
)
