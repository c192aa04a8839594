"""An assignment's parts, and its two files that must fit together."""

import pytest

from apex_lessons.grading import master
from apex_lessons.grading.task import (Assignment, Criterion, Task, WrongAnswer,
                                       Written, load_assignment)
from tests.grading import tiny

LINE = Criterion("all", 1, lambda generator: [])


def test_the_tiny_assignment(tmp_path):
    assignment = load_assignment(tiny.write_assignment(tmp_path))
    assert [task.name for task in assignment.tasks] == ["scale", "norm"]
    assert [task.points for task in assignment.tasks] == [3, 4]
    assert assignment.points == 7


@pytest.mark.parametrize(("make", "words"), [
    (lambda: Criterion("", 1, None), "needs a name"),
    (lambda: Criterion("a", -1, None), "0 or more"),
    (lambda: Criterion("a", float("nan"), None), "0 or more"),
    (lambda: WrongAnswer("a", None, "", float("inf")), "0 or more"),
    (lambda: Task("a", "not a name", (LINE,), None), "Python name"),
    (lambda: Task("a", "f", (), None), "no criterion"),
    (lambda: Task("a", "f", (LINE, LINE), None), "two criteria of task 'a'"),
    (lambda: Assignment("a", "A", (Task("b", "f", (LINE,), None),), (Written("b", 1),)),
     "two cells of assignment 'a'")])
def test_parts_that_make_no_sense(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_points_are_numbers():
    with pytest.raises(TypeError, match="'3'"):
        Criterion("a", "3", None)


@pytest.mark.parametrize(("old", "new", "words"), [
    ('grade_id": "scale"', 'grade_id": "scaling"',
     "no solution cell with grade_id 'scale'"),
    ('grade_id": "why"', 'grade_id": "what"', "no written cell with grade_id 'why'"),
    ('"points": 4', '"points": 5', "checks have 8 points, the rubric 7"),
    ("import torch\n", "import torch  ### BEGIN SOLUTION\n", "may not see")])
def test_a_master_that_does_not_fit(tmp_path, old, new, words):
    place = tiny.write_assignment(tmp_path)
    assert old in tiny.MASTER
    (place / "tiny.py").write_text(tiny.MASTER.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        load_assignment(place)


@pytest.mark.parametrize(("name", "content", "words"), [
    ("hidden.py", "ASSIGNMENT = 3\n", "it is a int"),
    ("hidden.py", tiny.HIDDEN.replace('Assignment("tiny"', 'Assignment("other"'),
     "is called 'other'"),
    ("hidden.py", None, "holds no hidden.py"), ("tiny.py", None, "is missing")])
def test_a_folder_that_is_no_assignment(tmp_path, name, content, words):
    place = tiny.write_assignment(tmp_path)
    (place / name).unlink()
    if content is not None:
        (place / name).write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        load_assignment(place)


def test_the_kinds_of_the_masters_cells(tmp_path):
    cells = master.read(tiny.write_assignment(tmp_path))
    assert [(cell.name, cell.kind, cell.points) for cell in cells] == [
        ("intro", "text", 0), ("imports", "given", 0), ("scale", "solution", 0),
        ("scale-check", "check", 3), ("norm", "solution", 0),
        ("norm-check", "check", 4), ("why", "written", 2)]
