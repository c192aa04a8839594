"""Finding what a class has handed in, and reading it without trusting it.

Three layouts, which may be mixed: nbgrader's (``<student>/<assignment>/x.ipynb`` in
``submitted``; that folder or the one above it is named), a folder for each student
(``<student>/x.ipynb``), and files alone (``<student>.ipynb``).
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

LARGEST = 100  # MB
SHOWN = 5  # names of other files in a message


@dataclass(frozen=True)
class Submission:
    """What one student has handed in; ``path`` is None where no notebook is."""

    student: str
    path: Path | None
    notes: tuple[str, ...] = ()
    reason: str = ""  # why there is no notebook


class Refused(ValueError):
    """A file that is not read; the message says why."""


def find(folder: Path, assignment: str, leave_out: Path) -> list[Submission]:
    """All submissions of a folder, by student; ``leave_out``: the results' folder.

    Both as os.path.realpath gives them. ValueError where nothing is that could be a
    submission, and where the results would lie among the submissions.
    """
    folder = _place(folder, leave_out)
    found: dict[str, Submission] = {}
    for entry in sorted(folder.iterdir(), key=lambda one: (one.is_file(), one.name)):
        if entry.name.startswith((".", "__")) or entry == leave_out:
            continue
        one = _of_entry(entry, assignment)
        if one is not None and one.student in found:
            first = found[one.student]
            one = Submission(first.student, first.path or one.path, (*first.notes,
                             f"Handed in twice: {entry.name} was not looked at."
                             if first.path else f"Taken from {entry.name}."))
        if one is not None:
            found[one.student] = one
    if not found:
        raise ValueError(f"{folder} holds no submission: neither a folder for each"
                         " student nor files <student>.ipynb")
    return sorted(found.values(), key=lambda one: one.student)


def _place(folder: Path, leave_out: Path) -> Path:
    """The folder whose entries are students."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; give the one with the submissions")
    inner = folder / "submitted"
    if leave_out in (folder, inner):
        raise ValueError(f"{leave_out} holds the submissions: results there would be"
                         " taken for students. Give --out another folder")
    return inner if inner.is_dir() else folder


def _of_entry(entry: Path, assignment: str) -> Submission | None:
    is_notebook = _is_notebook(entry)
    if entry.is_symlink():
        student = entry.stem if is_notebook else entry.name
        return Submission(student, None, reason="A link was handed in, not a file.")
    if entry.is_dir() and not is_notebook:
        return _of_folder(entry, assignment)
    return Submission(entry.stem, entry) if is_notebook else None


def _of_folder(folder: Path, assignment: str) -> Submission:
    inner = folder / assignment
    place = inner if inner.is_dir() and not inner.is_symlink() else folder
    try:
        notebooks = sorted(path for path in place.iterdir() if _is_notebook(path))
    except OSError as error:
        return Submission(folder.name, None, reason="The folder cannot be read"
                          f" ({error.strerror}).")
    if not notebooks:
        return Submission(folder.name, None, reason=_nothing(folder, assignment))
    named = [path for path in notebooks if path.stem == assignment]
    chosen = (named or sorted(notebooks, key=_age))[-1]
    others = [path.name for path in notebooks if path != chosen]
    why = "" if named else ", the newest,"
    notes = (f"Several notebooks were handed in; {chosen.name}{why} was graded, not"
             f" {', '.join(others[:SHOWN])}.",) if others else ()
    return Submission(folder.name, chosen, notes)


def _nothing(folder: Path, assignment: str) -> str:
    there = sorted(_names(folder, levels=2))
    seen = f" What is there: {', '.join(there[:SHOWN])}." if there else ""
    return f"No notebook was handed in for {assignment}.{seen}"


def _names(folder: Path, levels: int) -> list[str]:
    """Names of what is no folder; a link may lead anywhere and is not followed."""
    try:
        entries = list(os.scandir(folder))
    except OSError:  # locked: what it holds is not told
        return []
    folders = [one for one in entries if one.is_dir(follow_symlinks=False)]
    inner = [f"{one.name}/{name}" for one in folders if levels > 1
             for name in _names(Path(one.path), levels - 1)]
    return [one.name for one in entries if one not in folders] + inner


def _is_notebook(path: Path) -> bool:
    return path.suffix.lower() == ".ipynb" and not path.name.startswith(".")


def _age(path: Path) -> tuple[int, str]:
    return path.lstat().st_mtime_ns, path.name


def read(path: Path) -> bytes:
    """The bytes of a submitted file. Refused: no ordinary file, or too large.

    A link is not followed, a pipe not waited for.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, flags)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise Refused("What was handed in is no ordinary file.")
        with os.fdopen(descriptor, "rb") as file:
            data = file.read((LARGEST << 20) + 1)
    except OSError as error:
        raise Refused("What was handed in cannot be read as a file"
                      f" ({error.strerror}).") from None
    if len(data) > LARGEST << 20:
        raise Refused(f"The file is larger than {LARGEST} MB. Clear the outputs"
                      " (Kernel, Restart Kernel and Clear Outputs), save, hand in"
                      " again.")
    return data
