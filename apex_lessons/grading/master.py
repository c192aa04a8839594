"""The master text of an assignment, and which cells of a submission are executed.

The master's code cells have one of these kinds, read from nbgrader's metadata:

- ``solution``: the student writes it; the submission's cell of that grade_id runs;
- ``given``: locked, not graded (imports, helpers, programs to repair). The master's
  text runs, whatever the submission has made of it, even if it was deleted;
- ``check``: the visible tests. They do not run: the hidden inputs decide;
- ``plain``: no grade_id. What the submission has of these runs as the student left it.

Labelled cells run in the master's order, so reordering them costs nothing; a cell
without a label runs before the labelled cell that it precedes in the submission.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apex_lessons.grading.task import Assignment


@dataclass(frozen=True)
class Cell:
    """One cell of the master."""

    name: str  # grade_id, "" where there is none
    kind: str  # solution, given, check, plain, written or text
    source: str
    points: float = 0.0


def read(folder: Path) -> list[Cell]:
    """The cells of the master ``<folder>/<folder's name>.py``, in order."""
    import jupytext

    path = Path(folder) / f"{Path(folder).name}.py"
    if not path.is_file():
        raise ValueError(f"{path} is missing: an assignment needs its master text")
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    return [_cell(cell) for cell in notebook.cells]


def _cell(cell) -> Cell:
    label = cell.metadata.get("nbgrader", {})
    return Cell(label.get("grade_id", ""), _kind(cell.cell_type == "code", label),
                cell.source, float(label.get("points") or 0))


def _kind(code: bool, label: dict) -> str:
    """``label``: the cell's nbgrader metadata."""
    if label.get("task") or (label.get("grade") and label.get("solution")):
        return "written"
    if not code:
        return "text"
    if label.get("solution"):
        return "solution"
    if label.get("grade"):
        return "check"
    return "given" if label.get("locked") else "plain"


def troubles(assignment: Assignment, cells: list[Cell]) -> list[str]:
    """What does not fit between an assignment's rubric and its master, in words."""
    found = [f"its master has no {kind} cell with grade_id {part.name!r}"
             for kind, parts in (("solution", assignment.tasks),
                                 ("written", assignment.written))
             for part in parts
             if part.name not in {cell.name for cell in cells if cell.kind == kind}]
    found += [f"the given cell {cell.name!r} holds a solution, which a sandbox may not"
              " see" for cell in cells
              if cell.kind == "given" and "BEGIN SOLUTION" in cell.source]
    checks = sum(cell.points for cell in cells if cell.kind == "check")
    if abs(checks - assignment.points) > 1e-9:
        found.append(f"the master's visible checks have {checks:g} points, the rubric"
                     f" {assignment.points:g}; a student must read what counts")
    return found
