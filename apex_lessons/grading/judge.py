"""Values in, points out: the judge, a pure function in a process of its own.

It makes the hidden inputs, knows the right answers and compares. No code of a
submission runs here; it gets plain values (``apex_lessons.grading.values``).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from apex_lessons.exercises.diagnosis import TOLERANCES, copied
from apex_lessons.grading import feedback
from apex_lessons.grading.feedback import Trouble
from apex_lessons.grading.master import Cell
from apex_lessons.grading.task import Assignment, Task
from apex_lessons.grading.values import Other, encode

RUN_IN_THE_SANDBOX = ("given", "check")  # kinds whose text goes in; never a solution's


@dataclass(frozen=True)
class CriterionResult:
    """One line of the rubric, judged."""

    name: str
    points: float
    out_of: float
    message: str  # "" when right; for the student, without any hidden value


@dataclass(frozen=True)
class TaskResult:
    """One task, judged. ``status``: right, partly, wrong or not attempted."""

    name: str
    status: str
    points: float
    out_of: float
    criteria: tuple[CriterionResult, ...]
    mistake: str | None  # the typical wrong answer that explains all that came back
    message: str


def judge_values(task: Task, outputs: list[list[Any]], *, seed: int) -> TaskResult:
    """Judge what a function gave: ``outputs[criterion][case]`` for the cases of seed.

    An output is a plain value, an ``Other`` or a ``Trouble``. The result is a function
    of its arguments alone.
    """
    wanted = outputs_of(task, task.answer, seed)
    lines = tuple(_criterion(*parts, task.tolerance)
                  for parts in zip(task.criteria, outputs, wanted))
    points = sum(line.points for line in lines)
    everything = [output for group in outputs for output in group]
    if all(line.message == "" for line in lines):
        return TaskResult(task.name, "right", points, task.points, lines, None, "")
    if all(_is_nothing(output) for output in everything):
        return TaskResult(task.name, "not attempted", points, task.points, lines, None,
                          feedback.message_of(everything[0]))
    mistake = next((wrong for wrong in task.wrong_answers
                    if _all_same(outputs, outputs_of(task, wrong.function, seed),
                                 task.tolerance)), None)
    return TaskResult(task.name, "partly" if points else "wrong", points, task.points,
                      lines, mistake.name if mistake else None,
                      mistake.explanation if mistake else "")


def _criterion(criterion, got: list, want: list, tolerance: float | None):
    for number, (answer, right) in enumerate(zip(got, want, strict=True), start=1):
        if not same(answer, right, tolerance):
            return CriterionResult(criterion.name, 0.0, criterion.points, where(
                answer, number, len(want)) + feedback.difference(answer, right))
    return CriterionResult(criterion.name, criterion.points, criterion.points, "")


def where(answer: Any, number: int, count: int) -> str:
    """Which of a line's cases it is, unless it is the same with all of them."""
    everywhere = isinstance(answer, Trouble) and answer.kind in ("undefined", "broken")
    return "" if everywhere or count == 1 else f"Hidden input {number} of {count}: "


def _is_nothing(output: Any) -> bool:
    return isinstance(output, Trouble) and output.kind in ("nothing", "undefined")


def _all_same(got: list[list], want: list[list], tolerance: float | None) -> bool:
    return all(same(a, b, tolerance) for mine, theirs in zip(got, want)
               for a, b in zip(mine, theirs, strict=True))


# --- hidden inputs and what a trusted function makes of them ------------------------

@functools.lru_cache(maxsize=256)
def cases_of(task: Task, seed: int) -> list[list[dict]]:
    """The hidden inputs: for each line of the rubric its cases."""
    return [criterion.cases(generator_of(seed, task.name, criterion.name))
            for criterion in task.criteria]


def generator_of(seed: int, *names: str) -> torch.Generator:
    """A generator for one line of the rubric; others do not shift its numbers."""
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:7], "big"))


@functools.lru_cache(maxsize=4096)
def outputs_of(task: Task, function: Callable, seed: int) -> list[list[Any]]:
    """A trusted function's answers to the hidden inputs, as judge_values takes them."""
    namespace = {task.function: function}
    exec(task.setup, namespace)  # the teacher's own code
    prepared = namespace[task.function]
    return [[_output(prepared, case) for case in cases]
            for cases in cases_of(task, seed)]


def _output(function: Callable, case: dict) -> Any:
    torch.manual_seed(0)
    try:
        value = function(**copied(case))
    except NotImplementedError:
        return Trouble("nothing")
    except Exception as error:  # a typical wrong answer may be one that fails
        return Trouble("exception", type(error).__name__)
    return Trouble("nothing") if value is None or value is ... else value


# --- comparing --------------------------------------------------------------------

def same(got: Any, want: Any, tolerance: float | None = None) -> bool:
    """Do two plain values agree: type, shape, dtype, and numbers up to rounding?

    ``tolerance`` is relative; None: a few roundings of the dtype. A tuple may stand for
    a list, a tensor of one number for a number.

    >>> same(torch.ones(2), torch.ones(2) + 1e-7), same(torch.ones(2), [1.0, 1.0])
    (True, False)
    """
    if isinstance(want, Trouble) or isinstance(got, Trouble):
        return got == want
    if isinstance(want, torch.Tensor):
        return (isinstance(got, torch.Tensor) and got.shape == want.shape
                and got.dtype == want.dtype and _close(got, want, tolerance))
    if isinstance(want, (list, tuple)):
        return isinstance(got, (list, tuple)) and len(got) == len(want) and all(
            same(a, b, tolerance) for a, b in zip(got, want))
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(
            same(got[key], want[key], tolerance) for key in want)
    if isinstance(want, (int, float, complex)) and not isinstance(want, bool):
        return _same_number(got, want, tolerance)
    return not isinstance(got, (torch.Tensor, Other)) and type(got) is type(want) \
        and got == want


def _same_number(got: Any, want: Any, tolerance: float | None) -> bool:
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        got = got.item()
    if isinstance(got, bool) or not isinstance(got, (int, float, complex)):
        return False
    dtype = torch.complex128 if complex in (type(got), type(want)) else torch.float64
    try:
        return _close(torch.tensor(got, dtype=dtype), torch.tensor(want, dtype=dtype),
                      1e-9 if tolerance is None else tolerance)
    except OverflowError:  # a whole number that no float can hold
        return got == want


def _close(got: torch.Tensor, want: torch.Tensor, tolerance: float | None) -> bool:
    """|got - want| <= tolerance (|want| + largest |want| / 10); NaN equals NaN."""
    if not (want.is_floating_point() or want.is_complex()):
        return torch.equal(got, want)
    if tolerance is None:
        tolerance = TOLERANCES.get(want.abs().dtype, 0.0)
    wide = torch.complex128 if want.is_complex() else torch.float64
    got, want = got.detach().to(wide), want.detach().to(wide)
    finite = torch.isfinite(want)
    if not torch.equal(torch.isfinite(got), finite):
        return False
    odd = got[~finite], want[~finite]
    if not bool(((odd[0] == odd[1]) | (odd[0].isnan() & odd[1].isnan())).all()):
        return False
    got, want = got[finite], want[finite]
    if not want.numel():
        return True
    room = tolerance * (want.abs() + 0.1 * want.abs().max())
    return bool(((got - want).abs() <= room).all())


# --- the plan of a submission's run -------------------------------------------------

def plan_of(assignment: Assignment, cells: list[Cell], seed: int) -> dict:
    """All that a sandbox is told: cells that are given, hidden inputs, no answer."""
    criteria = [
        {"step": f"{task.name}/{number}", "task": task.name, "function": task.function,
         "setup": task.setup,
         "cases": [{name: encode(value) for name, value in case.items()}
                   for case in cases]}
        for task in assignment.tasks
        for number, cases in enumerate(cases_of(task, seed))]
    return {"criteria": criteria, "cells": [
        {"name": cell.name, "kind": cell.kind,
         "source": cell.source if cell.kind in RUN_IN_THE_SANDBOX else ""}
        for cell in cells if cell.kind != "text"]}
