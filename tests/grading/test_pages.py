"""The pages about a class."""

import html.parser
import math

import pytest

from apex_lessons.grading import judge, pages
from apex_lessons.grading.task import load_assignment
from tests.grading import tiny


@pytest.fixture(scope="module")
def assignment(tmp_path_factory):
    return load_assignment(tiny.write_assignment(tmp_path_factory.mktemp("pages")))


def result_of(assignment, student, functions, **about):
    """A result as the class keeps it; ``functions`` answer the tasks."""
    from dataclasses import asdict

    tasks = [asdict(judge.judge_values(task, judge.outputs_of(task, one, 0), seed=0))
             for task, one in zip(assignment.tasks, functions)]
    return {"student": student, "status": "graded", "out_of": assignment.points,
            "points": sum(task["points"] for task in tasks), "tasks": tasks,
            "reason": "", "file": "a.ipynb", "notes": [], "cells": [],
            "written": {}} | about


@pytest.fixture(scope="module")
def results(assignment):
    right = [task.answer for task in assignment.tasks]
    wrong = [task.wrong_answers[0].function for task in assignment.tasks]
    return [result_of(assignment, "anna", right, written={"why": "<i>So</i> it is."}),
            result_of(assignment, "ben", wrong, notes=["`x` was changed."],
                      cells=[["scale", "<b>bold</b>\n\x1b[1m"]]),
            result_of(assignment, "cy", [right[0], wrong[1]]),
            result_of(assignment, "dee", [], status="nothing handed in",
                      reason="No file.", file=""),
            result_of(assignment, "eve", [], status="not graded"),
            result_of(assignment, "fay", [lambda x, dim: x[0] * math.inf, None])]


class Outline(html.parser.HTMLParser):
    """Unclosed tags, and what was met."""

    def __init__(self, text):
        super().__init__()
        self.open, self.met, self.wrong = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.met.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if self.open.pop() != tag:
            self.wrong.append(tag)


def test_pages_are_well_formed_and_accessible(results, assignment):
    links = {one["student"]: "students/x.html" for one in results}
    texts = [pages.student_page(one, assignment) for one in results]
    texts += [pages.overview(results, assignment, links),
              pages.written_answers(results, assignment)]
    for text in texts:
        outline = Outline(text)
        assert outline.open == [] and outline.wrong == []
        tags = [tag for tag, _ in outline.met]
        assert tags.count("h1") == tags.count("main") == tags.count("title") == 1
        assert ("html", {"lang": "en"}) in outline.met
        assert all("scope" in about for tag, about in outline.met if tag == "th")
        assert tags.count("caption") == tags.count("table")


def test_a_student_reads_points_and_explanation(results, assignment):
    page = pages.student_page(results[1], assignment)
    assert "3 of 7 points" in page and "Take the root of dim." in page
    assert "<strong>no-eps</strong>" in page and "<code>x</code> was changed." in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page and "\x1b" not in page
    assert "why: 2 points, read by your teacher" in page


def test_a_student_who_handed_in_nothing(results, assignment):
    page = pages.student_page(results[3], assignment)
    assert "0 of 7 points: nothing handed in." in page and "No file." in page


def test_a_cell_without_a_name_is_headed_by_its_number(assignment):
    result = result_of(assignment, "gil", [], cells=[["cell 1", "1/0"]])
    assert "<h3>Cell 1</h3>" in pages.student_page(result, assignment)


def test_the_overview_counts_mistakes(results, assignment):
    page = pages.overview(results, assignment, {one["student"]: "x" for one in results})
    row = page[page.index("<td>no-eps</td>"):]
    assert row.startswith('<td>no-eps</td><td class="number">2</td>')
    assert "50 %" in row[:200] and "Where is eps?" in row[:300]
    assert "Points (mean 3.2 of 7)" in page  # (7 + 3 + 6 + 0 + 0) / 5: not eve
    assert "<td>The result has 0 axes, wanted are 1.</td>" in page
    assert "<td>Your function ended with TypeError</td>" in page


def test_the_table_has_no_points_for_who_is_not_graded(results, assignment):
    rows = pages.grades(results, assignment)
    assert rows[0][:6] == ["student", "status", "points", "out_of", "scale", "norm"]
    assert rows[1][:6] == ["anna", "graded", 7, 7, 3, 4]
    assert rows[4][2] == 0 and rows[5][2] == ""


def test_written_answers_are_shown_as_text(results, assignment):
    page = pages.written_answers(results, assignment)
    assert "&lt;i&gt;So&lt;/i&gt; it is." in page and page.count("(nothing)") == 3
