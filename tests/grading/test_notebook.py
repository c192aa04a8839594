"""Which cells of a stranger's notebook run, in which order."""

import pytest

from apex_lessons.grading import judge, notebook
from apex_lessons.grading.notebook import python_of, read_notebook, steps
from tests.grading import tiny
from tests.grading.tiny import NORM, SCALE, cells, code, text


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    _, _, plan = tiny.load(tiny.write_assignment(tmp_path_factory.mktemp("notebook")))
    return plan["cells"]


def chosen(master, submitted):
    found, _ = read_notebook(tiny.notebook(submitted))
    picked, notes = steps(found, master)
    return [(step.label, step.source) for step in picked], notes


def test_the_cells_of_an_honest_submission(master):
    assert chosen(master, cells()) == (
        [("imports", "import torch"), ("scale", SCALE), ("norm", NORM)], [])


def test_the_plan_holds_no_solution(master):
    """What goes into a sandbox: given and visible cells, nothing to copy from."""
    assert {cell["name"]: cell["source"] for cell in master if cell["source"]} == {
        "imports": "import torch",
        "scale-check": "assert scale(torch.ones(1), 4) == 2",
        "norm-check": "assert norm(torch.ones(2), 0.0).sum() == 2"}


def test_given_cells_are_the_masters_own(master):
    changed = [code("import numpy as torch", "imports"), *cells()[1:]]
    picked, notes = chosen(master, changed)
    assert picked[0] == ("imports", "import torch")
    assert notes == ["The locked cell imports was changed or deleted; the original"
                     " was run."]


def test_order_does_not_matter_but_for_free_cells(master):
    free = [code("a = 1"), *cells()[:3], code("b = 2"), *cells()[3:], code("c = 3")]
    picked, _ = chosen(master, free)
    assert [label for label, _ in picked] == ["cell 1", "imports", "scale", "cell 5",
                                              "norm", "cell 9"]
    picked, _ = chosen(master, free[::-1])
    assert [label for label, _ in picked] == ["imports", "scale", "cell 5", "norm",
                                              "cell 1", "cell 9"]


def test_the_last_copy_of_a_cell_comes_last(master):
    picked, notes = chosen(master, [*cells(), code("scale = 7", "scale")])
    assert [label for label, _ in picked] == ["imports", "scale, copy 1",
                                              "scale, copy 2", "norm"]
    assert any("2 times" in note for note in notes)


def test_a_solution_that_is_no_code_cell_is_run_and_noted(master):
    picked, notes = chosen(master, [text(SCALE, "scale"), *cells()[:1], *cells()[2:]])
    assert ("scale", SCALE) in picked
    assert notes == ["The cell scale is no code cell any more; it was run all the"
                     " same."]


def test_a_cell_of_another_assignment_is_a_free_cell(master):
    picked, _ = chosen(master, [code("x = 1", "someone-elses"), *cells()])
    assert picked[0] == ("cell 1", "x = 1")


def test_written_answers_travel(master):
    found, _ = read_notebook(tiny.notebook([*cells()[:-1], text("Since θ.", "why")]))
    assert notebook.written_answers(found, master) == {"why": "Since θ."}


def test_long_notebooks_are_cut():
    found, notes = read_notebook(tiny.notebook([code("1")] * 2500))
    assert len(found) == 2000 and "first 2000 cells" in notes[0]


@pytest.mark.parametrize(("source", "runs"), [
    ("x = 1", "x = 1"), ("x = 5 %2\n", "x = 5 %2\n"), ("", ""),
    ("%%time\nx = 1", "\nx = 1"),
    ("%%html\n<b>", ""), ("if x:\n    !ls\n", "if x:\n    pass\n"), ("x?", "pass"),
    ("x = (", "x = ("), ("text = '''\n%a\n'''", "text = '''\n%a\n'''")])
def test_magics_do_nothing(source, runs):
    assert python_of(source) == runs


def test_cells_with_solutions_are_blanked_in_the_plan(tmp_path):
    """A cell of any other kind could hold a solution: its text stays outside."""
    assert judge.RUN_IN_THE_SANDBOX == ("given", "check")
