"""A stranger's notebook: its cells, whatever state the file is in.

Runs inside the sandbox, since reading a hostile file costs memory and time too.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

MOST_CELLS = 2000
LONGEST_SOURCE = 1_000_000  # characters of one cell
WRITTEN_SHOWN = 20_000  # characters of a written answer that travel to the teacher


class Unreadable(ValueError):
    """The file is no notebook; the message says why."""


@dataclass(frozen=True)
class Found:
    """One cell of a submission."""

    name: str  # grade_id, "" where there is none
    code: bool
    source: str


def read_notebook(data: bytes) -> tuple[list[Found], list[str]]:
    """The cells of an .ipynb file of format 3 or 4, and notes on what was odd.

    Unreadable: nothing in it can be run; the message is for the student.
    """
    if not data.strip():
        raise Unreadable("The file is empty.")
    notes: list[str] = []
    content = _json(data, notes)
    if not isinstance(content, dict):
        raise Unreadable("The file is JSON, but no notebook: no cells are in it.")
    cells = _cell_list(content)
    if cells is None:
        raise Unreadable("The file is JSON, but no notebook: no cells are in it.")
    if len(cells) > MOST_CELLS:
        notes.append(f"Only the first {MOST_CELLS} cells were read.")
    notes += _kernel_notes(content.get("metadata"))
    found = [_found(cell) for cell in cells[:MOST_CELLS] if isinstance(cell, dict)]
    return found, notes


def _json(data: bytes, notes: list[str]):
    try:
        text = data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
        notes.append("Some bytes of the file are no UTF-8; they were replaced.")
    try:
        return json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise Unreadable("The file is nested too deep to be a notebook.") from None
    except ValueError as error:
        place = re.search(r"line \d+", str(error))
        where = f" (at {place[0]})" if place else ""
        raise Unreadable(f"The file is not a notebook: it is no valid JSON{where}."
                         " Open it in JupyterLab, save it there and hand it in"
                         " again.") from None


def _cell_list(content: dict) -> list | None:
    """Format 4 has cells; format 3 has worksheets that have them."""
    if isinstance(content.get("cells"), list):
        return content["cells"]
    sheets = content.get("worksheets")
    if not isinstance(sheets, list):
        return None
    return [cell for sheet in sheets if isinstance(sheet, dict)
            and isinstance(sheet.get("cells"), list) for cell in sheet["cells"]]


def _kernel_notes(metadata) -> list[str]:
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = kernel.get("name") if isinstance(kernel, dict) else None
    if not isinstance(name, str) or "python" in name.lower():
        return []
    language = kernel.get("language")
    if isinstance(language, str) and language.lower() == "python":
        return []
    return [f"The notebook names the kernel {name[:40]!r}; it was run with Python."]


def _found(cell: dict) -> Found:
    metadata = cell.get("metadata")
    label = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    name = label.get("grade_id") if isinstance(label, dict) else None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    source = source if isinstance(source, str) else ""
    return Found(name if isinstance(name, str) else "", cell.get("cell_type") == "code",
                 source[:LONGEST_SOURCE].replace("\r\n", "\n"))


# --- which cells run ---------------------------------------------------------------

@dataclass(frozen=True)
class Step:
    """One piece of code to execute; ``label`` names it in messages."""

    label: str
    source: str


def steps(found: list[Found], master: list[dict]) -> tuple[list[Step], list[str]]:
    """The cells to execute, in order (see ``apex_lessons.grading.master``), and notes.

    ``master``: dicts with name, kind and, for given and check cells, source.
    """
    kinds = {cell["name"]: cell["kind"] for cell in master if cell["name"]}
    groups, last = _groups(found, kinds)
    chosen: list[Step] = []
    for cell in (cell for cell in master if cell["name"]):
        here = groups.get(cell["name"], [])
        for number, (before, labelled) in enumerate(here, start=1):
            chosen += before
            if cell["kind"] == "solution":
                copy = f", copy {number}" if len(here) > 1 else ""
                chosen.append(Step(f"{cell['name']}{copy}", labelled.source))
        if cell["kind"] == "given":
            chosen.append(Step(cell["name"], cell["source"]))
    return chosen + last, _notes(found, master)


def _groups(found: list[Found], kinds: dict[str, str]):
    """grade_id -> [(unlabelled cells before it, the cell)]; those after the last."""
    groups: dict[str, list] = {}
    waiting: list[Step] = []
    for number, cell in enumerate(found, start=1):
        if cell.name in kinds:
            groups.setdefault(cell.name, []).append((waiting, cell))
            waiting = []
        elif cell.code:
            waiting.append(Step(f"cell {number}", cell.source))
    return groups, waiting


def _notes(found: list[Found], master: list[dict]) -> list[str]:
    names = [cell.name for cell in found]
    labels = [cell["name"] for cell in master if cell["name"]]
    if labels and not set(labels) & set(names):
        return ["None of the assignment's cells is in this notebook: is it another"
                " one? Functions of the right names were looked for all the same."]
    notes = []
    for cell in (cell for cell in master if cell["kind"] == "solution"):
        count = names.count(cell["name"])
        if count == 0:
            notes.append(f"The cell {cell['name']} is missing; its function was looked"
                         " for in the other cells.")
        if any(one.name == cell["name"] and not one.code for one in found):
            notes.append(f"The cell {cell['name']} is no code cell any more; it was run"
                         " all the same.")
        if count > 1:
            notes.append(f"The cell {cell['name']} is there {count} times; all were"
                         " run, what the last one defines counts.")
    return notes + _changed_cells(found, master)


TAMPERED = {"given": "the original was run.", "check": "its result does not count."}


def _changed_cells(found: list[Found], master: list[dict]) -> list[str]:
    texts = {cell.name: cell.source.strip() for cell in found}
    return [f"The locked cell {cell['name']} was changed or deleted;"
            f" {TAMPERED[cell['kind']]}" for cell in master
            if cell["kind"] in TAMPERED
            and texts.get(cell["name"]) != cell["source"].strip()]


def written_answers(found: list[Found], master: list[dict]) -> dict[str, str]:
    """What stands in the cells of the written questions: grade_id -> text."""
    wanted = {cell["name"] for cell in master if cell["kind"] == "written"}
    return {cell.name: cell.source[:WRITTEN_SHOWN] for cell in found
            if cell.name in wanted}


# --- notebook code that is no Python -------------------------------------------------

SKIPPED_LINE = re.compile(r"^(\s*)[%!].*$|^(\s*)[\w.]+\?{1,2}\s*$", re.MULTILINE)
HARMLESS_CELL_MAGICS = ("%%time", "%%timeit", "%%capture")


def python_of(source: str) -> str:
    """A cell's Python: lines with magics and shell commands do nothing.

    >>> python_of("%matplotlib inline\\nx = 1")
    'pass\\nx = 1'
    """
    first = source.lstrip().split(None, 1)[0] if source.strip() else ""
    if first.startswith("%%"):
        body = source.lstrip().partition("\n")[2]
        source = "\n" + body if first in HARMLESS_CELL_MAGICS else ""
    try:
        ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SKIPPED_LINE.sub(lambda line: f"{line[1] or line[2] or ''}pass", source)
    return source
