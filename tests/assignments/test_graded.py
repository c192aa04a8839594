"""Three students' notebooks through the real grader, in its sandbox."""

import csv
import html
import json

import nbformat
import pytest

from apex_lessons import cli
from tests.assignments import course

NAME = "capstone"


def changed(notebook, cell, old, new):
    """The notebook with one line of a student's program written differently."""
    copy = nbformat.from_dict(notebook)
    (found,) = (one for one in copy.cells if course.label(one).get("grade_id") == cell)
    assert old in found.source
    found.source = found.source.replace(old, new)
    return copy


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The folder with the results of: all solved, nothing written, some mistakes."""
    folder, made = tmp_path_factory.mktemp("class"), course.notebooks(NAME)
    careless = changed(made["solution"], "add-and-norm", "stream = residual + x",
                       "residual += x\n    stream = residual")
    careless = changed(careless, "decode-scores", "start + torch.arange",
                       "torch.arange")
    class_of = {"ada": made["solution"], "ben": made["student"], "cleo": careless}
    for student, notebook in class_of.items():
        place = folder / "in" / student / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(notebook, place)
    assert cli.main(["grade", NAME, str(folder / "in"), "--out",
                     str(folder / "out")]) == 0
    return folder / "out"


def row_of(results, student):
    with open(results / "grades.csv", encoding="utf-8-sig", newline="") as lines:
        return next(row for row in csv.DictReader(lines) if row["student"] == student)


def page_of(results, student):
    return (results / "students" / f"{student}.html").read_text(encoding="utf-8")


def test_the_solution_earns_all_and_the_stub_nothing(results):
    full = course.assignment(NAME).points
    assert float(row_of(results, "ada")["points"]) == full
    assert float(row_of(results, "ben")["points"]) == 0


def test_two_mistakes_earn_their_shares_and_are_named(results):
    row, wrong = row_of(results, "cleo"), {}
    for task in course.assignment(NAME).tasks:
        wrong |= {known.name: known for known in task.wrong_answers}
    named = ("writes-into-the-stream", "counts-from-zero")
    assert [float(row[task]) for task in ("add-and-norm", "decode-scores")] == [
        wrong[name].earns for name in named]
    kept = json.loads((results / "results" / "cleo.json").read_text(encoding="utf-8"))
    assert all(name in json.dumps(kept) for name in named)
    page = html.unescape(page_of(results, "cleo").replace("<code>", "`").replace(
        "</code>", "`"))
    assert all(wrong[name].explanation in page for name in named)


def test_a_page_without_an_answer_tells_none(results):
    page = page_of(results, "ben")
    lines = [html.escape(line) for line in course.solution_lines(NAME)
             if len(line) > 24]
    words = [html.escape(known.explanation) for task in course.assignment(NAME).tasks
             for known in task.wrong_answers]
    assert len(lines) > 15 and [one for one in lines + words if one in page] == []
    assert "not attempted" in page.lower()
