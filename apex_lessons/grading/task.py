"""What an assignment is: tasks, the rubric's lines, hidden inputs, typical mistakes.

An assignment is a folder with two files. ``<name>.py`` is the master text of all its
copies (py:percent, nbgrader's metadata on the cells). ``hidden.py`` is the teacher's
half: it sets ``ASSIGNMENT = Assignment(...)``, is executed in the judge's process only
and never enters a sandbox. A student's copy holds neither.

Which cells of a submission run: see ``apex_lessons.grading.master``.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

HIDDEN = "hidden.py"


@dataclass(frozen=True)
class Criterion:
    """One line of the rubric: all of its cases right earns the points, else nothing.

    ``cases(generator)`` makes the hidden inputs from a seeded ``torch.Generator``: a
    list of dicts, keyword -> argument. An argument is a tensor, a number, a string,
    a bool, None, or a list or dict of those; a tensor keeps ``requires_grad``.
    """

    name: str  # e.g. "scale in the table's dtype"; the student reads it
    points: float
    cases: Callable[[torch.Generator], list[dict]]

    def __post_init__(self):
        _named(self)
        _points(self.points, self.name)


@dataclass(frozen=True)
class WrongAnswer:
    """A typical wrong program; it is named when it explains every answer of a task."""

    name: str  # short, lower-case-with-dashes
    function: Callable  # the wrong program itself, called like the right one
    explanation: str  # what the student reads; no hidden input, no expected value
    earns: float  # what the rubric gives it

    def __post_init__(self):
        _named(self)
        _points(self.earns, self.name)


@dataclass(frozen=True)
class Task:
    """One function that a student writes, and how it is judged.

    ``tolerance`` is relative, on top of the checks of type, shape and dtype; None
    takes a few roundings of the answer's dtype. ``setup`` is code that runs after the
    student's cells, in their namespace; it may wrap the function:
    ``setup="_f = norm\\ndef norm(x): return [_f(x), x]"`` judges the input as well.
    """

    name: str  # the grade_id of the solution cell in the master
    function: str  # the name the student must define
    criteria: tuple[Criterion, ...]
    answer: Callable  # the right function; it runs in the judge's process only
    wrong_answers: tuple[WrongAnswer, ...] = ()
    tolerance: float | None = None
    setup: str = ""

    def __post_init__(self):
        _named(self)
        if not self.function.isidentifier():
            raise ValueError(f"task {self.name!r}: function must be a Python name, got"
                             f" {self.function!r}")
        _distinct(self.criteria, f"criteria of task {self.name!r}")
        _distinct(self.wrong_answers, f"wrong answers of task {self.name!r}")
        if not self.criteria:
            raise ValueError(f"task {self.name!r} has no criterion: nothing to judge")

    @property
    def points(self) -> float:
        """The most that the task can earn."""
        return sum(criterion.points for criterion in self.criteria)


@dataclass(frozen=True)
class Written:
    """A written question: the teacher reads it; no part of the automatic score."""

    name: str  # the grade_id of its cell in the master
    points: float

    def __post_init__(self):
        _named(self)
        _points(self.points, self.name)


@dataclass(frozen=True)
class Assignment:
    """All that is judged in one notebook."""

    name: str  # the name of its folder
    title: str
    tasks: tuple[Task, ...]
    written: tuple[Written, ...] = ()

    def __post_init__(self):
        _named(self)
        _distinct((*self.tasks, *self.written), f"cells of assignment {self.name!r}")

    @property
    def points(self) -> float:
        """The most that can be earned without the written questions."""
        return sum(task.points for task in self.tasks)


def load_assignment(folder: str | Path) -> Assignment:
    """The assignment of a folder: ``hidden.py`` executed, checked against the master.

    Call it only for a folder that you trust. ValueError: the two files do not fit
    together, or one is missing; it says which and how.
    """
    from apex_lessons.grading import master

    folder = Path(folder).resolve()
    hidden = folder / HIDDEN
    if not hidden.is_file():
        raise ValueError(f"{folder} holds no {HIDDEN}: no assignment is there")
    assignment = _execute(hidden)
    if assignment.name != folder.name:
        raise ValueError(f"{hidden}: the assignment is called {assignment.name!r}, its"
                         f" folder {folder.name!r}; they must be the same")
    for trouble in master.troubles(assignment, master.read(folder)):
        raise ValueError(f"{folder}: {trouble}")
    return assignment


def _execute(path: Path) -> Assignment:
    spec = importlib.util.spec_from_file_location(f"hidden_{path.parent.name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assignment = getattr(module, "ASSIGNMENT", None)
    if not isinstance(assignment, Assignment):
        raise ValueError(f"{path} must set ASSIGNMENT = Assignment(...), it is a"
                         f" {type(assignment).__name__}")
    return assignment


def _named(part) -> None:
    if not isinstance(part.name, str) or not part.name.strip():
        raise ValueError(f"a {type(part).__name__} needs a name, got {part.name!r}")


def _points(points: float, name: str) -> None:
    if isinstance(points, bool) or not isinstance(points, (int, float)):
        raise TypeError(f"points of {name!r} must be a number, got {points!r}")
    if not 0 <= points < math.inf:
        raise ValueError(f"points of {name!r} must be 0 or more, got {points!r}")


def _distinct(parts: tuple, what: str) -> None:
    for name in _repeated(part.name for part in parts):
        raise ValueError(f"two {what} are called {name!r}; names must differ")


def _repeated(names: Iterator[str]) -> list[str]:
    seen: set[str] = set()
    return [name for name in names if name in seen or seen.add(name)]
