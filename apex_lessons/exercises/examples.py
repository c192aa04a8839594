"""Worked examples that check a function of an assignment and name what went wrong.

An example holds an input, the right answer, and hints: the mark of a common wrong
answer, and the words that explain it. All of it is meant to be read; anyone may follow
an example on paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from apex_lessons.exercises.diagnosis import (
    Diagnosis,
    agrees,
    problem,
    relation,
    run_learner,
)

TOLERANCE = 1e-4  # the numbers of an example are written with five digits
PRAISE = "This example is right. Other inputs decide, of other sizes and shapes."
STUB = Diagnosis(
    "not attempted", None,
    "Nothing came back yet. Replace `raise NotImplementedError()` by your program, run"
    " its cell, then this one. Does your function end with `return`?")
Hints = Mapping[float | str, str]  # the mark of a wrong answer -> words


class Unsolved(AssertionError):
    """A check that is not passed; a notebook shows its words and no traceback."""

    def __init__(self, diagnosis: Diagnosis):
        super().__init__(repr(diagnosis))
        self.diagnosis = diagnosis

    def _render_traceback_(self) -> list[str]:
        return [repr(self.diagnosis)]


def check_example(function: Callable, given: Mapping[str, Any], wanted: Any,
                  hints: Hints | None = None) -> Diagnosis:
    """Compare ``function(**given)`` with ``wanted``: a Diagnosis if it is right.

    ``wanted``: a tensor, a number, a string, or lists, tuples and dicts of these.
    ``hints``: ``mark`` of a wrong answer -> the words for it. Raises Unsolved where the
    answer is not right, so that a grader sees it: with the words of the hint whose mark
    the answer has, if there is one, else with how the answer differs.

    >>> check_example(lambda x: 2 * x, {"x": 3.0}, 6.0).status
    'right'
    >>> check_example(lambda x: x, {"x": 3.0}, 6.0, {1.6209: "You forget the 2."})
    Traceback (most recent call last):
        ...
    apex_lessons.exercises.examples.Unsolved: ✘ wrong [example]: You forget the 2.
    """
    found = diagnosed(function, given, wanted, hints or {})
    if not found:
        raise Unsolved(found)
    return found


def diagnosed(function: Callable, given: Mapping[str, Any], wanted: Any,
              hints: Hints) -> Diagnosis:
    """The same without an exception."""
    answer, trouble = run_learner(function, **given)
    if trouble is not None:
        return STUB if trouble.status == "not attempted" else trouble
    if same(answer, wanted):
        return Diagnosis("right", None, PRAISE)
    found = difference(answer, wanted)
    if found.mistake not in ("parts", "shape", "dtype", "nan", "infinite"):
        for known, words in hints.items():
            if has_mark(answer, known):
                return Diagnosis("wrong", "example", words)
    return found


# --- comparing ----------------------------------------------------------------------

def same(answer: Any, wanted: Any) -> bool:
    """Equal to five digits, of the same types, shapes and dtypes; a tuple is a list.

    >>> same([1.00001, "a"], (1.0, "a")), same([1.0], [1.0, 2.0])
    (True, False)
    """
    if isinstance(wanted, (list, tuple)):
        return (isinstance(answer, (list, tuple)) and len(answer) == len(wanted)
                and all(map(same, answer, wanted)))
    if isinstance(wanted, Mapping):
        return (isinstance(answer, Mapping) and answer.keys() == wanted.keys()
                and all(same(answer[key], wanted[key]) for key in wanted))
    if isinstance(wanted, str):
        return isinstance(answer, str) and answer == wanted
    return agrees(answer, wanted, TOLERANCE)


def mark(answer: Any) -> float | str:
    """One number for all numbers of an answer: sum of answer_j cos(j), j = 1, 2, ...

    It tells apart answers that hold the same numbers in another order. The mark of
    strings is the strings with a space between them.

    >>> round(mark([torch.tensor([1.0, 0.0]), 2.0]), 4), mark(["a", "b"])
    (-1.4397, 'a b')
    """
    leaves = list(_leaves(answer))
    if any(isinstance(leaf, str) for leaf in leaves) or not leaves:
        return " ".join(map(str, leaves))
    return sum(value * math.cos(j) for j, value in enumerate(leaves, start=1))


def has_mark(answer: Any, known: float | str) -> bool:
    """Whether an answer's mark is ``known``, to five digits of the answer's size."""
    found = mark(answer)
    if isinstance(found, str) or isinstance(known, str):
        return found == known
    size = math.sqrt(sum(value * value for value in _leaves(answer)))
    return abs(found - known) <= TOLERANCE * max(size, abs(known))


def _leaves(answer: Any) -> Iterator[float | str]:
    """The numbers and strings of an answer, depth first."""
    if isinstance(answer, Mapping):
        answer = list(answer.values())
    if isinstance(answer, (list, tuple)):
        for part in answer:
            yield from _leaves(part)
    elif isinstance(answer, torch.Tensor):
        yield from (float(value) for value in answer.detach().flatten().tolist())
    else:
        yield float(answer) if isinstance(answer, (int, float)) else str(answer)


# --- words for an answer that no hint knows -------------------------------------------

def difference(answer: Any, wanted: Any, place: str = "") -> Diagnosis:
    """Where and how a wrong answer differs, in words; the first difference counts."""
    if isinstance(wanted, (list, tuple, Mapping)):
        parts = _parts(answer, wanted)
        if isinstance(parts, Diagnosis):
            return parts
        name, got, want = next(part for part in parts if not same(*part[1:]))
        return difference(got, want, f"{place}[{name!r}]")
    if isinstance(wanted, str):
        words = f"{_shown(answer)} is not {wanted!r}."
        return Diagnosis("wrong", "text", f"In the result{place}: {words}")
    found = problem(answer, wanted) or relation([answer], [wanted], TOLERANCE)
    words = found.message.removeprefix("On input 1 of 1: ")
    if found.mistake == "dtype":  # not always the dtype of the input
        words = f"its dtype is {answer.dtype}, wanted is {wanted.dtype}."
    return Diagnosis("wrong", found.mistake,
                     f"In the result{place}: {words} Yours: {_shown(answer)}")


def _parts(answer: Any, wanted: Any) -> list[tuple[Any, Any, Any]] | Diagnosis:
    """(name, got, wanted) of every part, or why there are none to compare."""
    if isinstance(wanted, Mapping):
        if not isinstance(answer, Mapping) or answer.keys() != wanted.keys():
            return Diagnosis("wrong", "parts", "A dict with these keys is wanted:"
                             f" {sorted(wanted)}. Yours: {_shown(answer)}")
        return [(key, answer[key], wanted[key]) for key in wanted]
    if not isinstance(answer, (list, tuple)):
        return Diagnosis("wrong", "parts", f"A list or tuple of {len(wanted)} is"
                         f" wanted. Yours: {_shown(answer)}")
    if len(answer) == len(wanted):
        return [(i, got, want) for i, (got, want) in enumerate(zip(answer, wanted))]
    kind = "text" if all(isinstance(part, str) for part in wanted) else "parts"
    return Diagnosis("wrong", kind, f"{len(wanted)} parts are wanted."
                     f" Yours: {_shown(answer)}")


def _shown(value: Any, limit: int = 200) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= limit else text[:limit] + " ..."
