"""Words for the student: what went wrong, without a hidden input or expected value.

All that a submission reports once it has seen the hidden inputs may hold them, in any
disguise: the text of an exception, but also the line that it seems to come from, which
a program can choose among its own. Of such reports only a choice from a short list
passes: the name of a built-in exception or type, a dtype, the number of axes. What a
cell said before any input was sent is shown as it is.
"""

from __future__ import annotations

import builtins
import re
from dataclasses import dataclass, field
from typing import Any

import torch

from apex_lessons.grading.submission import Record
from apex_lessons.grading.task import Task
from apex_lessons.grading.values import Other, decode

STOPPED = {
    "time": "It took longer than is allowed (an endless loop?) and was stopped.",
    "memory": "It used more memory than is allowed and was stopped.",
    "processes": "It started more processes than is allowed and was stopped.",
    "answers": "It reported more than is allowed and was stopped.",
    "exit": "The program ended in the middle of it (os._exit, a crash, a kill).",
    "budget": "It was not run: the time for the whole notebook had been used up, or the"
              " program had ended too often.",
}
EXCEPTIONS = {name for name, kind in vars(builtins).items()
              if isinstance(kind, type) and issubclass(kind, BaseException)}
TYPES = {"list", "tuple", "dict", "str", "int", "float", "complex", "bool", "NoneType",
         "set", "function", "method", "type", "module", "generator", "ndarray",
         "Tensor", "range", "bytes", "dtype", "object", "huge tensor", "sparse tensor",
         "tensor without numbers", "tensor of an unusual dtype", "a huge whole number",
         "a malformed value"}
SHOWN_CELLS = 50  # of those that did not end well


@dataclass(frozen=True)
class Trouble:
    """Why there is no value.

    ``kind``: nothing, undefined, broken (its cell went wrong), exception or stopped.
    """

    kind: str
    what: str = ""  # the exception's type, or why it was stopped
    said: str = field(default="", compare=False)  # words that may be shown


def outputs_from(record: Record, task: Task, plan: dict) -> list[list[Any]]:
    """What a submission answered for one task, as the judge takes it."""
    lines = [line for line in plan["criteria"] if line["task"] == task.name]
    return [[_output(record, line, number) for number in range(len(line["cases"]))]
            for line in lines]


def _output(record: Record, criterion: dict, number: int) -> Any:
    answer = record.answers.get(criterion["step"], {}).get(number)
    if answer is None:
        return Trouble("stopped", record.stopped.get(criterion["step"], "exit"))
    if answer.get("undefined"):
        return _undefined(record, criterion["task"], criterion["function"])
    if "error" in answer:
        kind = str(answer["error"])
        return Trouble("exception", kind if kind in EXCEPTIONS else "an exception of"
                       " its own")
    return Trouble("nothing") if "value" not in answer else decode(answer["value"])


def _undefined(record: Record, task: str, function: str) -> Trouble:
    """There is no such function: was it never written, or did its cell go wrong?"""
    definition = re.compile(rf"\b{function}\b")
    for label, source in record.sources.items():
        mine = label == task or label.startswith(f"{task}, copy")
        went_wrong = label in record.stopped or label in record.cells
        if went_wrong and (mine or definition.search(source)):
            return Trouble("broken", said=f"The function {function} is not there: the"
                           f" cell {label.removeprefix('cell ')} did not end well"
                           " (see below).")
    return Trouble("undefined", said=f"The function {function} is nowhere defined.")


def cells_in_words(record: Record) -> list[tuple[str, str]]:
    """(cell, what went wrong in it), for the cells that did not end well."""
    stopped = [(label, STOPPED.get(why, STOPPED["exit"]))
               for label, why in record.stopped.items() if label in record.sources]
    return (stopped + list(record.cells.items()))[:SHOWN_CELLS]


def message_of(trouble: Trouble) -> str:
    """A trouble as a sentence.

    >>> message_of(Trouble("exception", "ValueError"))
    'Your function ended with ValueError; call it in your notebook to see where.'
    """
    if trouble.kind == "nothing":
        return ("Nothing came back: the function is still to be written, or it has no"
                " `return`.")
    if trouble.kind == "stopped":
        return STOPPED.get(trouble.what, STOPPED["exit"])
    if trouble.kind == "exception":
        return (f"Your function ended with {trouble.what}; call it in your notebook to"
                " see where.")
    return trouble.said


def difference(got: Any, want: Any) -> str:
    """How an answer differs from the right one, without a number of either."""
    if isinstance(got, Trouble):
        return message_of(got)
    if isinstance(want, Trouble):
        return f"An answer came back; {want.what or 'an exception'} is wanted here."
    if isinstance(want, torch.Tensor):
        return _tensor_difference(got, want)
    if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
        if len(got) != len(want):
            return "A list of another length is wanted."
        return "One of the things that came back is not the right one."
    if isinstance(want, (int, float)) and isinstance(got, (int, float, torch.Tensor)):
        return "The number is not the right one."
    if type(got) is not type(want):
        return f"`{type(want).__name__}` is wanted, {_kind(got)} came back."
    return "What came back is not right."


def _tensor_difference(got: Any, want: torch.Tensor) -> str:
    if not isinstance(got, torch.Tensor):
        return f"`Tensor` is wanted, {_kind(got)} came back."
    if got.dim() != want.dim():
        return f"The result has {got.dim()} axes, wanted are {want.dim()}."
    if got.shape != want.shape:
        return "The result has the right number of axes, but another shape."
    if got.dtype != want.dtype:
        return f"The result is {got.dtype}, wanted is {want.dtype}."
    if bool(got.isnan().any()) and not bool(want.isnan().any()):
        return "The result holds NaN."
    if bool(got.isinf().any()) and not bool(want.isinf().any()):
        return "The result holds infinity."
    return "Shape and dtype are right, the numbers are not."


def _kind(value: Any) -> str:
    name = value.what if isinstance(value, Other) else type(value).__name__
    return f"`{name}`" if name in TYPES else "something else"


def raw_messages(record: Record) -> list[str]:
    """Messages of exceptions as they were reported: they may hold hidden inputs."""
    said = [f"{step}: {str(answer['error'])[:100]}: {str(answer.get('message'))[:300]}"
            f" ({str(answer.get('cell'))[:60]}, line {answer.get('line')})"
            for step, cases in sorted(record.answers.items())
            for _, answer in sorted(cases.items()) if "error" in answer]
    return list(dict.fromkeys(said))[:50]
