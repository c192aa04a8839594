"""Three copies of an assignment from its one master: student, solution, instructor.

``make assignments``, or ``python -m apex_lessons.grading.copies assignments
_assignments``, writes ``_assignments/<copy>/<assignment>/<assignment>.ipynb``:

- ``student``: each solution is a stub, nothing hidden is in it. It is what nbgrader
  calls the release version: checksums and locked cells are set.
- ``solution``: the master, run, without its stubs' markers and mark scheme.
- ``instructor``: the solution, and for the teacher the mark scheme of the written
  question, the lines of the rubric and the typical wrong answers with what they earn.
- ``source``: the master as a notebook; nbgrader makes its release version from it.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apex_lessons.grading.task import HIDDEN, Assignment, Task, load_assignment

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python",
              "name": "python3"}
SCHEMA = 3  # of nbgrader's cell metadata
CELL_SECONDS = 120
MARK_SCHEME = re.compile(r"\n*^### BEGIN MARK SCHEME\n(.*)\n### END MARK SCHEME$",
                         re.DOTALL | re.MULTILINE)
# nbgrader refuses a source with this outside a solution; a reader does not see it.
NOT_FOR_STUDENTS = "<!-- ### BEGIN SOLUTION -->\n{}\n<!-- ### END SOLUTION -->"
COPIES = ("student", "solution", "instructor", "source")


def make_copies(assignment_folder: Path, out_folder: Path, *,
                run: bool = True) -> dict[str, Path]:
    """Write all copies of one assignment; copy -> the notebook's path.

    ``run=False`` leaves the outputs of solution and instructor empty. Raises ValueError
    where master and rubric do not fit together, CellExecutionError (of nbclient) where
    the solution fails a check.
    """
    import nbformat

    assignment = load_assignment(assignment_folder)
    made = notebooks(Path(assignment_folder), assignment)
    if run:
        executed = run_notebook(made["solution"])
        made |= {"solution": executed,
                 "instructor": with_outputs(made["instructor"], executed)}
    paths = {}
    for name, notebook in made.items():
        nbformat.validate(notebook)
        path = Path(out_folder, name, assignment.name, f"{assignment.name}.ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = nbformat.writes(notebook).rstrip("\n") + "\n"
        path.write_bytes(text.encode("utf-8"))
        paths[name] = path
    return paths


def notebooks(folder: Path, assignment: Assignment) -> dict[str, Any]:
    """All copies as notebooks, none of them run."""
    master = read_master(folder, assignment)
    return {"student": student_copy(master), "solution": solution_copy(master),
            "instructor": instructor_copy(master, assignment), "source": master}


def read_master(folder: Path, assignment: Assignment):
    """The master as a notebook, with nbgrader's metadata in full."""
    import jupytext
    import nbformat

    path = folder / f"{folder.name}.py"
    notebook = jupytext.reads(path.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.metadata = nbformat.from_dict({
        "kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    written = {part.name: part.points for part in assignment.written}
    for number, cell in enumerate(notebook.cells):
        label = cell.metadata.get("nbgrader")
        cell.metadata = nbformat.from_dict(
            {} if label is None else {"nbgrader": full_label(label, written)})
        cell.id = cell_id(label["grade_id"] if label else f"{number} {cell.source}")
    return notebook


def full_label(label: dict, written: dict[str, float]) -> dict:
    """nbgrader's metadata of a cell; the master leaves out what follows."""
    solution, grade = label.get("solution", False), label.get("grade", False)
    full = {"grade": grade, "grade_id": label["grade_id"], "locked": not solution,
            "schema_version": SCHEMA, "solution": solution, "task": False}
    if grade:
        full["points"] = label.get("points", written.get(label["grade_id"]))
    return full


def cell_id(words: str) -> str:
    return hashlib.sha256(words.encode("utf-8")).hexdigest()[:8]


# --- the copies ---------------------------------------------------------------------

def student_copy(master):
    """Solutions become stubs; what is locked cannot be edited; checksums are set."""
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        ClearOutput,
        ClearSolutions,
        ComputeChecksums,
        LockCells,
    )

    notebook, resources = copy.deepcopy(master), {}
    for step in (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata,
                 ComputeChecksums):
        notebook, resources = step().preprocess(notebook, resources)
    return notebook


def solution_copy(master):
    """The master without markers and mark scheme: what students may see afterwards."""
    notebook = copy.deepcopy(master)
    for cell in notebook.cells:
        cell.source = MARK_SCHEME.sub("", cell.source)
        cell.source = "\n".join(line for line in cell.source.split("\n")
                                if line.strip() not in ("### BEGIN SOLUTION",
                                                        "### END SOLUTION"))
    return notebook


def instructor_copy(master, assignment: Assignment):
    """The solution, and a cell for the teacher after each task and written question."""
    notebook = solution_copy(master)
    tasks = {task.name: task for task in assignment.tasks}
    schemes = {cell.metadata.nbgrader.grade_id: mark_scheme(cell.source)
               for cell in master.cells if "nbgrader" in cell.metadata}
    cells = [teachers_cell("This copy is for teachers", INTRODUCTION)]
    for cell in notebook.cells:
        cells.append(cell)
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in tasks:
            cells.append(teachers_cell(f"How `{tasks[name].function}` is judged",
                                       rubric_of(tasks[name])))
        elif schemes.get(name):
            cells.append(teachers_cell("Mark scheme", schemes[name]))
    notebook.cells = cells
    return notebook


INTRODUCTION = ("It holds the solutions, the rubric and the typical wrong answers. Do"
                " not hand it out, and do not give it to nbgrader as a source: nbgrader"
                " refuses it.")


def teachers_cell(title: str, words: str):
    from nbformat.v4 import new_markdown_cell

    source = NOT_FOR_STUDENTS.format(f"### For the teacher: {title}\n\n{words}")
    return new_markdown_cell(source, id=cell_id(title + words))


def mark_scheme(source: str) -> str:
    """The text of a cell's mark scheme, "" where there is none.

    >>> mark_scheme("Yes.\\n### BEGIN MARK SCHEME\\n- 1 point\\n### END MARK SCHEME")
    '- 1 point'
    """
    found = MARK_SCHEME.search(source)
    return found.group(1) if found else ""


def rubric_of(task: Task) -> str:
    """A task's lines of the rubric and its typical wrong answers, in words."""
    lines = ["| points | for (all hidden inputs of this line right) |", "|---|---|"]
    lines += [f"| {line.points:g} | {line.name} |" for line in task.criteria]
    lines += ["", f"Typical wrong answers, of {task.points:g} points:", ""]
    lines += [f"- **{wrong.name}** earns {wrong.earns:g}. {wrong.explanation}"
              for wrong in task.wrong_answers]
    return "\n".join(lines)


# --- running the solution -----------------------------------------------------------

def run_notebook(notebook):
    """A copy that was run from top to bottom in a fresh kernel of this Python."""
    from nbclient import NotebookClient

    done = copy.deepcopy(notebook)
    root = str(Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory(prefix="copies-") as folder:
        client = NotebookClient(done, km=private_kernel(folder), record_timing=False,
                                timeout=CELL_SECONDS)
        client.owns_km = True  # so that it also ends the kernel, whatever happens
        client.execute(env=os.environ | {"PYTHONPATH": root, "OMP_NUM_THREADS": "1",
                                         "IPYTHONDIR": folder})
    return done


def private_kernel(folder: str):
    """A manager for one kernel of this very Python, over local sockets if there are."""
    from jupyter_client import AsyncKernelManager

    options = {"connection_file": os.path.join(folder, "kernel.json")}
    if os.name == "posix":
        options |= {"transport": "ipc", "ip": os.path.join(folder, "k")}
    manager = AsyncKernelManager(kernel_name="python3", **options)
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f",
                                "{connection_file}"]
    return manager


def with_outputs(notebook, executed):
    """A copy of a notebook with the outputs of another one's cells of the same id."""
    done = copy.deepcopy(notebook)
    outputs = {cell.id: cell for cell in executed.cells if cell.cell_type == "code"}
    for cell in done.cells:
        if cell.cell_type == "code":
            cell.outputs = outputs[cell.id].outputs
            cell.execution_count = outputs[cell.id].execution_count
    return done


def assignment_folders(course: Path) -> list[Path]:
    """The assignments of a folder, in order of name."""
    return sorted(path.parent for path in course.glob(f"*/{HIDDEN}"))


def main(arguments: list[str], tell: Callable[[str], None] = print) -> int:
    """``copies ASSIGNMENTS OUT``: make all copies of all assignments."""
    from rich.progress import track

    course, out = map(Path, arguments)
    folders = assignment_folders(course)
    for folder in track(folders, "assignments", transient=True):
        make_copies(folder, out)
    tell(f"{len(folders)} assignments in {out}: " + ", ".join(
        f"{name}/" for name in COPIES) + "; hand out student/ and nothing else")
    return 0 if folders else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
