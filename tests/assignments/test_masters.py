"""One master, several copies: they fit together, and a student's has nothing hidden."""

import ast
import importlib
import inspect
import json
import re
from pathlib import Path

import nbformat
import pytest
import torch
from nbgrader.nbgraderformat import MetadataValidator
from nbgrader.utils import compute_checksum

import apex_lessons
from apex_lessons.exercises.diagnosis import copied
from apex_lessons.grading import copies, judge
from tests.assignments import course
from tests.assignments.course import COURSE, NAMES, TASKS, label

every_assignment = pytest.mark.parametrize("name", NAMES)
every_task = pytest.mark.parametrize(("name", "task"), TASKS,
                                     ids=[task for _, task in TASKS])


def text_of(notebook):
    """All that is in a notebook file, as a reader of the JSON finds it."""
    return json.dumps(nbformat.from_dict(notebook), ensure_ascii=False)


# --- stub and solution ---------------------------------------------------------

@every_assignment
def test_only_solutions_differ_between_stub_and_solution(name):
    made = course.notebooks(name)
    pairs = list(zip(made["student"].cells, made["solution"].cells, strict=True))
    assert all(a.id == b.id and a.cell_type == b.cell_type for a, b in pairs)
    differ = {label(b)["grade_id"] for a, b in pairs if a.source != b.source}
    found = course.assignment(name)
    assert differ == {part.name for part in (*found.tasks, *found.written)}


@every_task
def test_a_stub_keeps_the_lines_around_the_solution(name, task):
    made = course.notebooks(name)
    source, stub = (next(cell.source for cell in made[copy].cells
                         if label(cell).get("grade_id") == task)
                    for copy in ("source", "student"))
    head, rest = source.split("    ### BEGIN SOLUTION\n")
    tail = rest.split("    ### END SOLUTION")[1]
    assert stub == (f"{head}    # YOUR CODE HERE\n    raise NotImplementedError()"
                    f"{tail}")
    (function,) = ast.parse(head + "    pass").body
    assert function.name == course.task_of(name, task).function


@every_task
def test_the_untouched_stub_is_not_attempted(name, task):
    student = course.notebooks(name)["student"]
    said = [course.said_by(check, course.student_namespace(name))
            for check in course.checks_of(student, task)]
    assert {diagnosis.status for diagnosis in said} == {"not attempted"}


@every_task
def test_the_solution_passes_every_example(name, task):
    solution = course.notebooks(name)["solution"]
    said = [course.said_by(check, course.solution_namespace(name))
            for check in course.checks_of(solution, task)]
    assert said == [None] * len(course.task_of(name, task).criteria)


@every_task
def test_an_example_for_every_line_of_the_rubric(name, task):
    checks = course.checks_of(course.notebooks(name)["student"], task)
    assert [label(check)["points"] for check in checks] == [
        line.points for line in course.task_of(name, task).criteria]


# --- what a student receives ---------------------------------------------------------

@every_assignment
def test_nothing_of_a_solution_is_in_the_students_copy(name):
    text = text_of(course.notebooks(name)["student"])
    lines = [line for line in course.solution_lines(name) if len(line) > 24]
    assert len(lines) > 15
    assert [line for line in lines if json.dumps(line, ensure_ascii=False)[1:-1] in text
            ] == []


@every_assignment
def test_nothing_of_the_teachers_is_in_the_students_copy(name):
    text = text_of(course.notebooks(name)["student"])
    assert re.findall(r"SOLUTION|MARK SCHEME|hidden_|WrongAnswer", text) == []
    wrong = [wrong for task in course.assignment(name).tasks
             for wrong in task.wrong_answers]
    sentences = [sentence for one in wrong
                 for sentence in re.split(r"(?<=[.:?]) ", one.explanation)
                 if len(sentence) > 50]
    assert len(sentences) > 12
    assert [sentence for sentence in sentences if sentence in text] == []


@every_assignment
def test_no_model_answer_is_in_the_students_copy(name):
    made = course.notebooks(name)
    text, found = text_of(made["student"]), 0
    for part in course.assignment(name).written:
        (cell,) = (cell for cell in made["source"].cells
                   if label(cell).get("grade_id") == part.name)
        sentences = [one for one in re.split(r"(?<=[.:;]) ", " ".join(
            cell.source.split())) if len(one) > 30]
        found += len(sentences)
        assert [one for one in sentences if one in text] == []
        (stub,) = (cell for cell in made["student"].cells
                   if label(cell).get("grade_id") == part.name)
        assert stub.source == "YOUR ANSWER HERE"
    assert found > 6


def tensors(value):
    """All tensors of a nested value."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [found for part in value for found in tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


@every_assignment
def test_no_hidden_input_is_in_the_students_copy(name):
    """Neighbours, as an example would print them; single numbers meet by chance."""
    text, pairs = text_of(course.notebooks(name)["student"]), set()
    for task in course.assignment(name).tasks:
        for found in tensors(judge.cases_of(task, 0)):
            digits = [f"{value:.5g}" for value in found.flatten().tolist()]
            pairs |= {f"{a}, {b}" for a, b in zip(digits, digits[1:])
                      if len(a) > 5 and len(b) > 5}
    assert len(pairs) > 100
    assert [pair for pair in pairs if pair in text] == []


@every_assignment
def test_the_students_copy_is_a_release_version_of_nbgrader(name):
    student = course.notebooks(name)["student"]
    nbformat.validate(student)
    MetadataValidator().validate_nb(student)
    assert student.metadata.kernelspec == copies.KERNELSPEC
    for cell in student.cells:
        known = label(cell)
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
        if known:
            assert known["checksum"] == compute_checksum(cell)
            assert cell.metadata.get("editable", True) != known["locked"]
        assert set(cell.metadata) <= {"nbgrader", "deletable", "editable"}


# --- no answer is for sale ---------------------------------------------------------

def functions_in(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_no_task_asks_for_a_function_of_the_package():
    names = {name for path in Path(apex_lessons.__file__).parent.rglob("*.py")
             for name in functions_in(path)}
    assert len(names) > 500 and "rms_norm" in names
    tasks = {course.task_of(*task).function for task in TASKS}
    assert tasks & names == set()


MODULES = ("embedding", "norm", "rope", "yarn", "exercises.embedding", "exercises.norm",
           "exercises.rope", "exercises.yarn", "exercises.yarn_mistakes",
           "exercises.reference")


def mathematics():
    """The functions of the package that compute something, by their full name."""
    modules = [importlib.import_module(f"apex_lessons.{name}") for name in MODULES]
    return {f"{module.__name__}.{name}": value for module in modules
            for name, value in vars(module).items()
            if inspect.isfunction(value) and not name.startswith("check_")}


@every_task
@pytest.mark.filterwarnings("ignore")
def test_no_function_of_the_package_answers_a_task(name, task):
    """Called with a case's arguments, in order or by name, none earns over a half."""
    found = course.task_of(name, task)
    right = judge.outputs_of(found, found.answer, 0)
    for source, function in mathematics().items():
        for call in (lambda **given: function(*given.values()), function):
            earned = sum(line.points for line, cases, wanted in zip(
                found.criteria, judge.cases_of(found, 0), right)
                if answers_all(call, cases, wanted))
            assert earned <= found.points / 2, source


def answers_all(call, cases, wanted):
    for case, want in zip(cases, wanted):
        try:
            answer = call(**copied(case))
        except Exception:  # most do not even take these arguments
            return False
        if not judge.same(answer, want):
            return False
    return True


# --- style ---------------------------------------------------------

@every_assignment
def test_a_master_says_goals_minutes_and_points(name):
    text = (COURSE / name / f"{name}.py").read_text(encoding="utf-8")
    minutes = int(re.search(r"\*\*Time\.\*\* (\d+) minutes", text).group(1))
    found = course.assignment(name)
    parts = [found.points, sum(part.points for part in found.written)]
    said = re.search(r"\*\*Points\.\*\* (\d+): (\w+) programs with (\d+), a written"
                     r" question with\s(?:# )?(\d+)\.", text)
    assert 60 <= minutes <= 120 and "**Goals.**" in text
    assert [int(said[1]), int(said[3]), int(said[4])] == [sum(parts), *parts]
    assert {"four": 4, "five": 5}[said[2]] == len(found.tasks)


@every_assignment
def test_given_code_is_short_and_every_line_fits(name):
    for cell in course.notebooks(name)["source"].cells:
        if cell.cell_type == "code" and label(cell)["locked"] and not course.is_check(
                cell):
            assert len([line for line in cell.source.split("\n") if line.strip()]) <= 10
    for path in (COURSE / name).glob("*.py"):
        lines = path.read_text(encoding="utf-8").split("\n")
        assert [line for line in lines if len(line) > 88] == []


@every_assignment
def test_the_folder_holds_master_and_rubric_and_no_more(name):
    kept = {path.name for path in (COURSE / name).iterdir()} - {"__pycache__"}
    assert kept == {f"{name}.py", "hidden.py"}


def test_the_course_has_these_assignments():
    found = [folder.name for folder in copies.assignment_folders(COURSE)]
    assert found == sorted(NAMES)
