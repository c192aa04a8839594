"""One submission from its bytes to what it did: a pure function of bytes and plan.

A cell or a line of the rubric that ends the process, or oversteps a limit, is left out
and the rest is started again: an endless loop in one task costs that task alone. All
starts share one budget of processor time and one of time on the clock.

A function that has seen the hidden inputs can end its process, and the next start runs
its cells again. It must not tell them anything: so no start is told more than numbers
of cells that were stopped before any input was sent, and what cells say is taken from
no start that follows such a one (when it began would tell an input, too).

Each submission gets an interpreter of its own, and so pays for Python's start and
torch's import, about a second of processor time. One process that has imported torch
and forks for each submission would save that, but a child that is inside the sandbox
already shares it with the others (their files, their processes, whatever one leaves
behind), and one that is outside would have to build the walls itself, since bubblewrap
begins with a new program. The time is paid for walls that others have tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from apex_lessons.grading import sandbox
from apex_lessons.grading.sandbox import Limits
from apex_lessons.grading.watch import Attempt, watch

MOST_STARTS = 12


@dataclass
class Record:
    """What a submission did. ``answers`` may hold hidden inputs, the rest cannot.

    The rest was said before it first saw an input; later nothing is added to it but
    which step was stopped, a step of the plan, and why, in one of a few known words.
    """

    notes: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)  # label of a cell -> its code
    written: dict[str, str] = field(default_factory=dict)
    cells: dict[str, str] = field(default_factory=dict)  # label -> what went wrong
    stopped: dict[str, str] = field(default_factory=dict)  # label or step -> why
    answers: dict[str, dict] = field(default_factory=dict)  # step -> case -> answer
    unreadable: str = ""
    failed: str = ""  # the sandbox did not start: nobody's fault but the machine's


def run_submission(notebook: bytes, plan: dict, limits: Limits,
                   mode: str | None = None, hide: tuple[str, ...] = ()) -> Record:
    """Run a notebook's cells and call its functions as ``plan`` says.

    ``plan``: ``cells``, the master's (name, kind, source), and ``criteria``, the lines
    of the rubric (step, function, setup, cases), see ``apex_lessons.grading.judge``.
    ``mode``: None finds this machine's sandbox; "none" runs without one.
    """
    mode = sandbox.find_mode() if mode is None else mode
    record, left, told = Record(), limits.both(limits.seconds), False
    waiting, skip = list(plan["criteria"]), []
    for start in range(MOST_STARTS):
        attempt = watch(mode, _job(plan, limits, mode, skip), notebook, waiting, limits,
                        left, hide)
        if not told:
            _take_events(attempt.events, record)
        done = _take_answers(attempt.answers, waiting, record)
        waiting = [criterion for criterion in waiting if criterion["step"] not in done]
        left = left[0] - attempt.seconds, left[1] - attempt.clock
        if not attempt.started:
            record.failed = attempt.complaint or f"no start ({attempt.stopped})"
        if record.failed or record.unreadable or not attempt.stopped or not waiting:
            return record
        if told and not attempt.told:  # it had come further: not by its cells' fault
            break
        told = attempt.told
        waiting = _without_the_culprit(attempt, waiting, skip, record)
        if min(left) <= 0 or (attempt.step is None and start > 0):
            break
    record.stopped |= {criterion["step"]: "budget" for criterion in waiting}
    return record


def _job(plan: dict, limits: Limits, mode: str, skip: list[str]) -> dict:
    return {"cells": plan["cells"], "skip": skip, "user": sandbox.user_for(mode),
            "path": sandbox.import_path(mode),
            "limits": {"memory": limits.memory, "processes": limits.processes,
                       "file": limits.folder,
                       "cpu": int(limits.seconds + limits.start)}}


def _take_events(events: list[dict], record: Record) -> None:
    """What was said before any input was sent: none of it can hold one."""
    for event in events:
        if event["event"] == "read" and not record.sources:
            record.notes = _texts(event.get("notes"))
            record.sources = _named_texts(event.get("sources"))
            record.written = _named_texts(event.get("written"))
        if event["event"] == "end" and isinstance(event.get("label"), str):
            wrong = str(event.get("error") or "")
            record.cells |= {event["label"]: wrong[:5000]} if wrong else {}
        if event["event"] == "unreadable":
            record.unreadable = str(event.get("why"))[:500]


def _take_answers(events: list[dict], waiting: list[dict], record: Record) -> set[str]:
    """Keep the answers to what was asked; returns the steps that came to their end."""
    asked = {criterion["step"]: len(criterion["cases"]) for criterion in waiting}
    for event in events:
        step, case = event.get("step"), event.get("case")
        if (event["event"] == "answer" and isinstance(step, str) and step in asked
                and type(case) is int and 0 <= case < asked[step]
                and isinstance(event.get("answer"), dict)):
            record.answers.setdefault(step, {})[case] = event["answer"]
    return {step for step, cases in asked.items()
            if len(record.answers.get(step, ())) == cases}


def _without_the_culprit(attempt: Attempt, waiting: list[dict], skip: list[str],
                         record: Record) -> list[dict]:
    """What is left to ask, the guilty task's other lines last."""
    step = attempt.step
    guilty = next((c for c in waiting if c["step"] == step), None)
    if guilty is not None:
        record.stopped[step] = attempt.stopped
        others = [c for c in waiting if c is not guilty]
        return sorted(others, key=lambda c: c["task"] == guilty["task"])
    if step is not None and not attempt.told and step not in skip:
        labels = [event.get("label") for event in attempt.events
                  if event.get("step") == step]
        skip.append(step)
        record.stopped |= {label: attempt.stopped for label in labels
                           if isinstance(label, str)}
    return waiting


def _texts(data: Any) -> list[str]:
    return [text[:500] for text in data[:50] if isinstance(text, str)] \
        if isinstance(data, list) else []


def _named_texts(data: Any) -> dict[str, str]:
    return {name[:200]: text for name, text in data.items()
            if isinstance(name, str) and isinstance(text, str)} \
        if isinstance(data, dict) else {}
