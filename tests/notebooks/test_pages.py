"""The course's pages: built, clean, the same when run twice, solvable as they say."""

import nbformat.v4 as v4
import pytest

from notebooks.machine import build, lint
from tests.notebooks.exercises import answer_to, answers, exercises_of
from tests.notebooks.pages import PAGES, SOURCES, read

every_source = pytest.mark.parametrize("source", SOURCES,
                                       ids=[one.stem for one in SOURCES])
NOT_COMPARED = ("image/png", build.WIDGET_VIEW)


@every_source
def test_a_page_is_built_and_the_lint_finds_nothing(source):
    page = build.page_of(source)
    assert page.exists(), f"make notebooks PAGE={source.name[:2]}"
    assert lint.problems(page) == []


def test_every_page_has_a_text_source():
    assert sorted(build.FOLDER.glob("*.ipynb")) == sorted(PAGES)


def in_a_row(page):
    """In one kernel: the page, the page again, then each solution with its checks."""
    notebook = build.read_source(page)
    once = [cell for cell in notebook.cells if cell.cell_type == "code"]
    again = [v4.new_code_cell(cell.source, metadata=cell.metadata) for cell in once]
    solved = {exercise.name: [*map(v4.new_code_cell, exercise.solutions),
                              *(v4.new_code_cell(cell.source)
                                for cell in exercise.checks)]
              for exercise in exercises_of(notebook)}
    notebook.cells = [*once, *again,
                      *(cell for cells in solved.values() for cell in cells)]
    build.execute(notebook)
    return once, again, solved


def comparable(cell):
    """Outputs as nbval compares them: no pictures, no widget ids, whole streams."""
    return [{"text": output.get("text"),
             "data": {kind: value for kind, value in output.get("data", {}).items()
                      if kind not in NOT_COMPARED}}
            for output in build.merge_streams(cell.outputs)]


def verdicts(cells):
    """The first line of each diagnosis among the cells' outputs."""
    texts = [output.data.get("text/plain", "") for cell in cells
             for output in cell.get("outputs", []) if "data" in output]
    return [text for text in texts if text.startswith(("✔", "✘", "…"))]


def not_right(answers_by_name):
    """The exercises without an answer, or with one that is not right."""
    return {name: said for name, said in answers_by_name.items()
            if not said or not all(line.startswith("✔ right") for line in said)}


# `make test` runs one page twice in a kernel, `make test-slow` the others.
REPRESENTATIVE = "03-rope"
one_page = [pytest.param(one, id=one.stem,
                         marks=[pytest.mark.slow] * (one.stem != REPRESENTATIVE))
            for one in SOURCES]


@pytest.mark.parametrize("source", one_page)
def test_running_all_cells_twice_gives_the_same_and_then_solutions_are_right(source):
    """NB-12: no cell changes what an earlier one made; solutions get what they need."""
    once, again, solved = in_a_row(source)
    different = [first.source for first, second in zip(once, again)
                 if build.MACHINE not in first.metadata.get("tags", [])
                 and comparable(first) != comparable(second)]
    assert different == []
    assert not_right({name: verdicts(cells) for name, cells in solved.items()}) == {}


@every_source
def test_every_solution_is_right(source):
    exercises = exercises_of(build.read_source(source))
    assert not_right({one.name: answers(one) for one in exercises}) == {}


@every_source
def test_an_untouched_stub_is_not_attempted(source):
    for exercise in exercises_of(read(build.page_of(source))):
        said = verdicts(exercise.checks)
        assert said, f"exercise {exercise.name}: no diagnosis is stored"
        assert all(line.startswith("… not attempted") for line in said), exercise.name


@every_source
def test_every_exercise_is_complete(source):
    for exercise in exercises_of(build.read_source(source)):
        parts = {"stub": len(exercise.stubs), "check": len(exercise.checks),
                 "solution": len(exercise.solutions)}
        assert parts["stub"] >= 1 and parts["check"] >= 1, (exercise.name, parts)
        assert parts["solution"] == 1, (exercise.name, parts)
        assert any(sign in exercise.words
                   for sign in ("●○○", "●●○", "●●●")), exercise.name
        assert "minutes" in exercise.words.lower(), exercise.name
        easy = "●○○" in exercise.words
        assert easy or "<summary>Hint" in exercise.words, exercise.name


@every_source
def test_exercises_are_numbered_in_order(source):
    page = str(int(source.name[:2]))
    names = [exercise.name for exercise in exercises_of(build.read_source(source))]
    assert names == [f"{page}.{number}" for number in range(1, len(names) + 1)]


def small_page(solution, stub="..."):
    cells = [v4.new_markdown_cell(
        "### Exercise 9.1: twice\n\n●○○ 1 minutes\n<details><summary>Hint 1</summary>x"
        "</details>"),
        v4.new_code_cell(f"def twice(x):\n    {stub}"),
             v4.new_code_cell("check_twice(twice)"),
        v4.new_markdown_cell("<details><summary>Solution</summary>\n\n```python\n"
                             f"{solution}\n# a comment\n```\n\n</details>\n\n"
                             "### Exercise 9.2: other"),
        v4.new_code_cell("check_other(1)"), v4.new_markdown_cell("## Next"),
        v4.new_code_cell("check_nothing(1)")]
    return v4.new_notebook(cells=cells)


def test_the_parts_of_an_exercise_are_found():
    exercise, other = exercises_of(small_page("def twice(x):\n    return 2 * x"))
    assert exercise.name == "9.1" and len(exercise.code) == 2
    assert other.name == "9.2" and len(other.code) == 1 and not other.solutions
    assert exercise.solutions == ["def twice(x):\n    return 2 * x\n# a comment\n"]
    assert [cell.source for cell in exercise.checks] == ["check_twice(twice)"]
    assert len(exercise.stubs) == 1


def test_an_incomplete_exercise_is_noticed():
    finished = exercises_of(small_page("def twice(x): ...", stub="return 2 * x"))[0]
    assert finished.stubs == []  # nothing is left to do
    without = small_page("")
    without.cells[3].source = ("<details><summary>Hint 2</summary>\n\n"
                               "```python\nx\n```\n</details>")
    assert exercises_of(without)[0].solutions == []


BEFORE = ["import math\nn = 2", "unused = 1 / 0", "def double(x):\n    return n * x",
          "n = 3\nn == 3", "for k in range(2):\n    total = double(k)"]


@pytest.mark.parametrize(("source", "answer"), [
    ("double(2)", "6"),  # with the n that holds where the exercise begins
    ("total", "3"), ("x = 5\nx + n", "8"), ("math.pi > 3", "True")])
def test_a_solution_gets_what_it_stands_on_and_no_more(source, answer):
    assert answer_to(BEFORE, source) == answer


def test_a_solution_that_needs_a_later_cell_or_fails_is_noticed():
    page = small_page("def twice(x):\n    return factor * x")
    page.cells.insert(0, v4.new_code_cell("def check_twice(f):\n    return f(2)"))
    with pytest.raises(NameError):
        answers(exercises_of(page)[0])
    page.cells.insert(0, v4.new_code_cell("factor = 2"))
    assert answers(exercises_of(page)[0]) == ["4"]
