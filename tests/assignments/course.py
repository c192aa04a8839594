"""The course's assignments, loaded once, and their cells run in this process."""

import re
from functools import cache
from pathlib import Path

from apex_lessons.exercises.examples import Unsolved
from apex_lessons.grading import copies
from apex_lessons.grading.task import load_assignment

ROOT = Path(__file__).resolve().parents[2]
COURSE = ROOT / "assignments"
NAMES = ("embedding", "norm", "rope", "yarn", "capstone")
TASKS = [(name, task.name) for name in NAMES
         for task in load_assignment(COURSE / name).tasks]


@cache
def assignment(name):
    return load_assignment(COURSE / name)


@cache
def notebooks(name):
    return copies.notebooks(COURSE / name, assignment(name))


def task_of(name, task):
    return next(found for found in assignment(name).tasks if found.name == task)


def solution_lines(name):
    """The lines between the markers, of all solution cells of a master."""
    for cell in notebooks(name)["source"].cells:
        regions = re.findall(r"### BEGIN SOLUTION\n(.*?)\n *### END SOLUTION",
                             cell.source, re.DOTALL)
        yield from (line.strip() for region in regions for line in region.split("\n"))


def label(cell):
    return cell.metadata.get("nbgrader", {})


def is_check(cell):
    return cell.cell_type == "code" and label(cell).get("grade", False)


def checks_of(notebook, task):
    """The cells with the examples of a task, in order."""
    return [cell for cell in notebook.cells if is_check(cell)
            and label(cell)["grade_id"].rpartition("-")[0] == task]


def run(cell, namespace):
    exec(compile(cell.source, label(cell).get("grade_id", "cell"), "exec"), namespace)


def namespace_of(notebook):
    """What a reader has defined who ran every cell but the checks."""
    namespace = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "code" and not is_check(cell):
            run(cell, namespace)
    return namespace


@cache
def student_namespace(name):
    return namespace_of(notebooks(name)["student"])


@cache
def solution_namespace(name):
    return namespace_of(notebooks(name)["solution"])


def said_by(check, namespace):
    """What an example says of a program: its diagnosis where it is not passed."""
    try:
        run(check, dict(namespace))
    except Unsolved as error:
        return error.diagnosis
    return None
