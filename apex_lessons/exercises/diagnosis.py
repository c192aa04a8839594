"""What a check answers: right, not attempted, or wrong with the mistake's name.

A check gives a learner's function a few inputs, compares what comes back with the
right answers, and, if they differ, looks for a known mistake that gives exactly
these wrong answers. Its message says which one; it never prints a right answer.
"""

from __future__ import annotations

import html
import math
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

Status = Literal["right", "wrong", "not attempted"]
SIGN = {"right": "✔", "wrong": "✘", "not attempted": "…"}
COLOUR = {"right": "#009E73", "wrong": "#D55E00", "not attempted": "#767676"}


@dataclass(frozen=True)
class Diagnosis:
    """The answer of a check; shows itself in a notebook and in a terminal.

    ``status`` is "right", "wrong" or "not attempted"; ``mistake`` is a short name or
    None; ``message`` says in words what to look at. It is true only when right.

    >>> Diagnosis("wrong", "no-scale", "The factor is missing.")
    ✘ wrong [no-scale]: The factor is missing.
    """

    status: Status
    mistake: str | None
    message: str

    def __bool__(self) -> bool:
        return self.status == "right"

    def __repr__(self) -> str:
        name = f" [{self.mistake}]" if self.mistake else ""
        return f"{SIGN[self.status]} {self.status}{name}: {self.message}"

    def _repr_mimebundle_(self, include=None, exclude=None):
        colour = COLOUR[self.status]
        name = f" <code>{html.escape(self.mistake)}</code>" if self.mistake else ""
        words = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.message))
        box = (f'<div role="status" style="border-left:4px solid {colour};'
               f'padding:.4em .8em"><b>{SIGN[self.status]} {self.status}</b>{name}<br>'
               f'{words}</div>')
        return {"text/plain": repr(self), "text/html": box}


@dataclass(frozen=True)
class Mistake:
    """A wrong program that learners really write, and the words that name it."""

    name: str  # short, lower-case-with-dashes; the value of Diagnosis.mistake
    check: str  # the check that recognises it, e.g. "check_rms_norm"
    function: Callable  # the wrong program itself
    explanation: str  # what is wrong, how to see it, what to try


NOT_ATTEMPTED = Diagnosis(
    "not attempted", None,
    "Nothing came back yet. Replace the three dots, then run this cell again."
    " If you have done so: does your function end with `return`?")
_NOTHING = (None, Ellipsis, NotImplemented)


def copied(value: Any) -> Any:
    """A copy that a learner may change without changing ours.

    A tensor that asks for gradients gives a copy that asks for them too.

    >>> given = torch.zeros(2)
    >>> copied(given).add_(1), given
    (tensor([1., 1.]), tensor([0., 0.]))
    """
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def run_learner(function: Callable, *inputs: Any,
                **named: Any) -> tuple[Any, Diagnosis | None]:
    """Call a learner's function on copies: ``(result, None)`` or ``(None, diagnosis)``.

    None, Ellipsis and NotImplementedError are "not attempted"; any other exception is
    "wrong", with its line; so is a function that changes its inputs in place.

    >>> run_learner(lambda x: x + 1, 1)
    (2, None)
    >>> run_learner(lambda x: ..., 1)[1].status
    'not attempted'
    """
    if not callable(function):
        return None, _not_a_function(function)
    given, given_named = copied(inputs), copied(named)
    try:
        result = function(*given, **given_named)
    except NotImplementedError:
        return None, NOT_ATTEMPTED
    except (Exception, SystemExit) as error:  # a learner's program may raise anything
        return None, Diagnosis("wrong", "exception", _where(error))
    if any(result is nothing for nothing in _NOTHING):
        return None, NOT_ATTEMPTED
    if _changed(inputs, given) or _changed(named, given_named):
        return None, CHANGES_ITS_INPUT
    return result, None


CHANGES_ITS_INPUT = Diagnosis(
    "wrong", "changes-its-input",
    "Your function writes into the tensor it was given. In a model that spoils the"
    " caller's tensor, such as the residual stream or a shared weight, and the next"
    " call starts from other numbers. Make a new tensor: `y = x * 2`, not `x *= 2`.")


def _not_a_function(value: Any) -> Diagnosis:
    if any(value is nothing for nothing in _NOTHING):
        return NOT_ATTEMPTED
    return Diagnosis("wrong", "not-a-function",
                     f"A function is wanted, this is a {type(value).__name__}."
                     " Give its name without brackets: `check(my_function)`.")


def _changed(old: Any, new: Any) -> bool:
    """Does a nested input hold other numbers now? NaN equals NaN here."""
    if isinstance(old, dict):
        return any(_changed(old[key], new.get(key)) for key in old)
    if isinstance(old, (list, tuple)):
        return len(old) != len(new) or any(map(_changed, old, new))
    if not isinstance(old, torch.Tensor):
        return False
    if old.shape != new.shape or old.dtype != new.dtype:
        return True
    return not bool(((old == new) | ((old != old) & (new != new))).all())


def _where(error: BaseException) -> str:
    """The exception in words, with the learner's own line, not a library's."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    line = f" (your line {own[-1].lineno}: `{own[-1].line}`)" if own else ""
    return f"{type(error).__name__}: {error}{line}"


# --- comparing an answer with the right one ---------------------------------------

# A few roundings of each dtype: relative to the number, and to the largest number.
TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5,
              torch.bfloat16: 2.0 ** -7, torch.float16: 2.0 ** -9}


def agrees(result: Any, right: Any, tolerance: float | None = None) -> bool:
    """Do two answers agree up to rounding? Types, shapes and dtypes must agree too.

    ``tolerance`` is relative; None takes it from the dtype of ``right``: 1e-5 for
    float32, 1e-9 for float64 and Python numbers, two roundings of a half type.
    The numbers are compared in plain Python, which a notebook cannot patch by accident.

    >>> agrees(torch.tensor([1.0]), torch.tensor([1.000001]))
    True
    >>> agrees(float("nan"), 1.0)
    False
    """
    if problem(result, right) is not None:
        return False
    is_tensor = isinstance(right, torch.Tensor)
    if tolerance is None:
        tolerance = TOLERANCES.get(right.dtype, 0.0) if is_tensor else 1e-9
    got, want = _numbers(result), _numbers(right)
    largest = max((abs(number) for number in want), default=0.0)
    return all(abs(a - b) <= tolerance * (abs(b) + 0.1 * largest)
               for a, b in zip(got, want))


def _numbers(value: Any) -> list[float]:
    if isinstance(value, torch.Tensor):
        return [float(number) for number in value.detach().flatten().tolist()]
    return [float(value)]


def problem(result: Any, right: Any) -> Diagnosis | None:
    """What makes an answer impossible to compare: its type, shape, dtype or a NaN.

    The messages give the shape and dtype wanted (they are part of the question), never
    a number of the answer. None when the two can be compared.
    """
    if not isinstance(right, torch.Tensor):
        return _number_problem(result)
    if type(result) not in (torch.Tensor, torch.nn.Parameter):
        return Diagnosis("wrong", "not-a-tensor", "A torch.Tensor is wanted, this is a"
                         f" {type(result).__name__}.")
    if result.shape != right.shape:
        return Diagnosis("wrong", "shape", f"The shape is {list(result.shape)}, wanted"
                         f" is {list(right.shape)}.")
    if result.dtype != right.dtype:
        return Diagnosis("wrong", "dtype", f"The result is {result.dtype}, wanted is"
                         f" {right.dtype}: an answer keeps the dtype of its input.")
    return _not_finite(_numbers(result))


def _number_problem(result: Any) -> Diagnosis | None:
    if type(result) is torch.Tensor and result.numel() == 1:
        result = result.item()
    if type(result).__module__ == "numpy" and getattr(result, "ndim", 1) == 0:
        result = result.item()
    if type(result) not in (int, float):
        return Diagnosis("wrong", "not-a-number",
                         f"A number is wanted, this is a {type(result).__name__}.")
    return _not_finite([result])


def _not_finite(numbers: Sequence[float]) -> Diagnosis | None:
    if any(math.isnan(number) for number in numbers):
        return Diagnosis("wrong", "nan", "The answer holds NaN (not a number). Look for"
                         " 0/0, infinity minus infinity, the root of a negative number"
                         " or memory that was never filled (`torch.empty`).")
    if any(math.isinf(number) for number in numbers):
        return Diagnosis("wrong", "infinite", "The answer holds infinity. Look for a"
                         " division by zero, or a number too large for its dtype.")
    return None


# --- naming the mistake -----------------------------------------------------------

def judge(function: Callable, cases: Sequence[tuple], right: Callable,
          mistakes: Sequence[Mistake], *, praise: str = "Right.",
          tolerance: float | None = None) -> Diagnosis:
    """Run a learner's function on every case and say what it is: the heart of a check.

    ``right(*case)`` gives the right answers; ``mistakes`` are the wrong programs to
    recognise. A mistake is named only if it explains every answer; an answer that none
    explains is described by its relation to the right one.

    >>> judge(lambda x: x + x, [(2.0,), (3.0,)], lambda x: x * x, []).status
    'wrong'
    """
    answers = []
    for case in cases:
        answer, trouble = run_learner(function, *case)
        if trouble is not None:
            return trouble
        answers.append(answer)
    wanted = [right(*copied(case)) for case in cases]
    if all(agrees(a, w, tolerance) for a, w in zip(answers, wanted)):
        return Diagnosis("right", None, praise)
    for mistake in mistakes:
        if _explains(mistake, cases, answers, tolerance):
            return Diagnosis("wrong", mistake.name, mistake.explanation)
    return relation(answers, wanted, tolerance)


def _explains(mistake: Mistake, cases: Sequence[tuple], answers: Sequence[Any],
              tolerance: float | None) -> bool:
    for case, answer in zip(cases, answers):
        guess, trouble = run_learner(mistake.function, *case)
        if trouble is not None or not agrees(answer, guess, tolerance):
            return False
    return True


ONE_FACTOR = 1e-3  # ratios that differ by less are called one factor


def relation(answers: Sequence[Any], wanted: Sequence[Any],
             tolerance: float | None = None) -> Diagnosis:
    """How unknown wrong answers relate to the right ones: a factor or a size of error.

    The first case that differs is described; no number of the answer is printed.
    """
    number, answer, want = next(
        (i, a, w) for i, (a, w) in enumerate(zip(answers, wanted), start=1)
        if not agrees(a, w, tolerance))
    case = f"On input {number} of {len(answers)}: "
    found = problem(answer, want)
    if found is not None:
        return Diagnosis("wrong", found.mistake, case + found.message)
    factors = _factors(answers, wanted)
    if factors is not None and _spread(factors) <= 5 * ONE_FACTOR:
        return Diagnosis("wrong", "constant-factor", "Every number is"
                         f" {factors[0]:.4g} times what it should be.")
    if factors is not None:
        return Diagnosis("wrong", "varying-factor", "All numbers of one answer are off"
                         " by the same factor, and that factor changes from input to"
                         " input. What does it depend on?")
    error = _distance(_numbers(answer), _numbers(want))
    return Diagnosis("wrong", "other", case + "the answer is off by"
                     f" {error:.2g} times its own size (root of summed squares).")


def _factors(answers: Sequence[Any], wanted: Sequence[Any]) -> list[float] | None:
    """One factor for each case of several numbers, or None where there is none."""
    factors = []
    for answer, want in zip(answers, wanted):
        if problem(answer, want) is not None:
            return None
        pairs = [(a, b) for a, b in zip(_numbers(answer), _numbers(want)) if b]
        ratios = [a / b for a, b in pairs]
        rounding = TOLERANCES.get(getattr(want, "dtype", None), 0.0)
        if ratios and _spread(ratios) > max(ONE_FACTOR, 2 * rounding):
            return None
        factors += [sum(ratios) / len(ratios)] if ratios else []
    many = any(len(_numbers(want)) > 1 for want in wanted)
    return factors if factors and (many or _spread(factors) <= ONE_FACTOR) else None


def _spread(numbers: Sequence[float]) -> float:
    """Largest minus smallest, relative to the largest size."""
    return (max(numbers) - min(numbers)) / (max(map(abs, numbers)) or 1.0)


def _distance(got: Sequence[float], right: Sequence[float]) -> float:
    size = math.sqrt(sum(b * b for b in right)) or 1.0
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(got, right))) / size
