"""Copies of an assignment: written whole, the same each time, each for its reader."""

import json
import os
import sys
from pathlib import Path

import nbformat
import pytest

from apex_lessons.grading import copies
from tests.assignments import course
from tests.assignments.course import COURSE, NAMES, label

every_assignment = pytest.mark.parametrize("name", NAMES)


def text_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def test_the_same_bytes_every_time_and_nothing_else(tmp_path):
    first, second = (copies.make_copies(COURSE / "norm", tmp_path / name, run=False)
                     for name in ("a", "b"))
    assert list(first) == list(copies.COPIES)
    for name, path in first.items():
        assert path == tmp_path / "a" / name / "norm" / "norm.ipynb"
        assert path.read_bytes() == second[name].read_bytes()
        nbformat.validate(nbformat.read(path, as_version=4))
    assert len(list((tmp_path / "a").rglob("*.*"))) == len(first)


@every_assignment
def test_the_solution_copy_has_answers_but_no_markers_and_no_mark_scheme(name):
    made = course.notebooks(name)
    text = text_of(made["solution"])
    assert "SOLUTION" not in text and "MARK SCHEME" not in text
    assert "NotImplementedError()\n" not in text and "YOUR ANSWER" not in text
    for part in course.assignment(name).written:
        (cell,) = (cell for cell in made["solution"].cells
                   if label(cell).get("grade_id") == part.name)
        assert len(cell.source.split()) > 80 and "1 point" not in cell.source


@every_assignment
def test_the_instructor_copy_tells_rubric_and_mistakes(name):
    text = text_of(course.notebooks(name)["instructor"])
    for task in course.assignment(name).tasks:
        for line in task.criteria:
            assert f"| {line.points:g} | {line.name} |" in text
        for wrong in task.wrong_answers:
            words = f"**{wrong.name}** earns {wrong.earns:g}. {wrong.explanation}"
            assert words in text
    assert text.count("For the teacher: Mark scheme") == 1 and "- 1 point" in text


@every_assignment
def test_the_mark_scheme_adds_up_to_the_points(name):
    schemes = [copies.mark_scheme(cell.source)
               for cell in course.notebooks(name)["source"].cells]
    (scheme,) = filter(None, schemes)
    points = [int(line[2]) for line in scheme.split("\n") if line.startswith("- ")]
    (written,) = course.assignment(name).written
    assert sum(points) == written.points


@pytest.fixture
def release(tmp_path, monkeypatch):
    """Has nbgrader make its release version of a notebook: (its report, notebook)."""
    from nbgrader.apps import NbGraderAPI
    from nbgrader.coursedir import CourseDirectory
    from traitlets.config import Config

    tools = str(Path(sys.executable).parent)  # nbgrader calls alembic by its name
    monkeypatch.setenv("PATH", tools + os.pathsep + os.environ["PATH"])

    def make(source, name):
        config = Config({"CourseDirectory": {"root": str(tmp_path)}})
        place = tmp_path / "source" / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(source, place)
        api = NbGraderAPI(CourseDirectory(config=config), config=config)
        done = api.generate_assignment(name)
        made = tmp_path / "release" / name / f"{name}.ipynb"
        return done, nbformat.read(made, as_version=4) if made.exists() else None
    return make


@pytest.mark.slow
def test_nbgrader_makes_the_same_students_copy_from_the_source(release):
    made = course.notebooks("norm")
    done, theirs = release(made["source"], "norm")
    assert done["success"], done
    for one, other in zip(theirs.cells, made["student"].cells, strict=True):
        assert (one.cell_type, one.source) == (other.cell_type, other.source)
        assert json.dumps(one.metadata, sort_keys=True) == json.dumps(
            other.metadata, sort_keys=True)


@every_assignment
def test_nbgrader_refuses_the_instructor_copy_as_a_source(name):
    """Or a teacher's slip would hand out the rubric."""
    from nbgrader.preprocessors import ClearSolutions

    with pytest.raises(RuntimeError, match="non-solution cell"):
        ClearSolutions().preprocess(course.notebooks(name)["instructor"], {})


def test_a_solution_runs_in_a_kernel_and_its_outputs_are_kept():
    """One check, one given cell; that all solutions pass is tested without a kernel."""
    made = course.notebooks("norm")
    short = nbformat.from_dict(made["solution"])
    wanted = {"imports", "grouped-rms-norm", "grouped-rms-norm-1"}
    short.cells = [cell for cell in short.cells
                   if label(cell).get("grade_id") in wanted]
    done = copies.run_notebook(short)
    assert "right" in done.cells[-1].outputs[0].data["text/plain"]
    assert short.cells[-1].outputs == []
    both = copies.with_outputs(short, done)
    assert [cell.execution_count for cell in both.cells] == [1, 2, 3]


def test_a_solution_that_fails_its_example_stops_the_making():
    from nbclient.exceptions import CellExecutionError

    cell = nbformat.v4.new_code_cell("assert 0, 'no'")
    short = nbformat.v4.new_notebook(cells=[cell])
    with pytest.raises(CellExecutionError, match="no"):
        copies.run_notebook(short)


def test_a_folder_without_a_rubric_is_refused(tmp_path):
    (tmp_path / "norm").mkdir()
    with pytest.raises(ValueError, match=r"hidden\.py"):
        copies.make_copies(tmp_path / "norm", tmp_path / "out", run=False)


def test_an_empty_course_is_said(tmp_path):
    told = []
    assert copies.main([str(tmp_path), str(tmp_path / "out")], told.append) == 2
    assert told[0].startswith("0 assignments")
