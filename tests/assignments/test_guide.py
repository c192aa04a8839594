"""The teacher's guide: what it names is there, and its rubrics are the masters'."""

import re

import pytest

from apex_lessons.grading import copies
from tests.assignments import course
from tests.assignments.course import COURSE, NAMES, ROOT, label

GUIDE = (COURSE / "README.md").read_text(encoding="utf-8")
MINUTES = re.compile(r"§(\d+) \((\d+)\)")


def page(number):
    (source,) = (ROOT / "notebooks").glob(f"{number}-*.py")
    return source.read_text(encoding="utf-8")


def section(number, wanted):
    """The text of one numbered section of a page, its heading included."""
    start = re.search(rf"^# ## {wanted}\. .*$", page(number), re.MULTILINE)
    assert start, f"page {number} has no section {wanted}"
    rest = page(number)[start.start():]
    end = re.search(r"^# ## (?!%s\. )" % wanted, rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(heading):
    """The cells of the table under a heading, without its head."""
    text = GUIDE.split(f"{heading}\n", 1)[1]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE).group(0)
    found = [line.strip("|").split(" | ") for line in table.strip().split("\n")]
    return [[cell.strip() for cell in row] for row in found[2:]]


@pytest.mark.parametrize("lesson", [45, 90])
def test_a_plan_fills_its_lesson_with_sections_that_are_there(lesson):
    plans = rows(f"### {lesson} minutes")
    assert [row[0] for row in plans] == [f"0{n}" for n in range(7)]
    for row in plans:
        planned = MINUTES.findall(" ".join(row))
        assert sum(int(minutes) for _, minutes in planned) == lesson, row[0]
        for wanted, _ in planned:
            section(row[0], wanted)


def test_the_exercises_of_the_plans_are_there():
    for number, _, exercises in rows("### 90 minutes"):
        for exercise in exercises.split(", "):
            heading = rf"^# ### Exercise {exercise}: "
            assert re.search(heading, page(number), re.MULTILINE)


def test_every_misconception_has_its_cell():
    known = rows("## Misconceptions, and the cell that dispels each")
    assert len(known) >= 15
    for _, place, fragment in known:
        number, wanted = place.split(" §")
        code = "\n".join(line for line in section(number, wanted).split("\n")
                         if not line.startswith("#"))
        assert fragment.strip("`") in code, (place, fragment)


def test_what_is_shown_first_is_there():
    for number, words, _ in rows("### 45 minutes"):
        for wanted in re.findall(r"§(\d+)", words):
            section(number, wanted)
    assert "start.path_of_a_token" in section("00", "3")


@pytest.mark.parametrize("name", NAMES)
def test_the_guides_rubric_is_the_masters(name):
    for cell in course.notebooks(name)["source"].cells:
        scheme = copies.mark_scheme(cell.source)
        if scheme:
            heading = f"### {name}: `{label(cell)['grade_id']}`\n\n"
            assert GUIDE.split(heading, 1)[1].startswith(scheme + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_the_table_of_assignments_is_right(name):
    table = rows(GUIDE[: GUIDE.index("| assignment |")].rstrip("\n") + "\n")
    (row,) = (one for one in table if one[0].startswith(f"[{name}]"))
    found = course.assignment(name)
    master = (COURSE / name / f"{name}.py").read_text(encoding="utf-8")
    assert f"**Time.** {row[2]} minutes" in master
    written = sum(part.points for part in found.written)
    assert row[3] == f"{found.points:g} + {written:g}"


def test_links_files_and_commands_are_there():
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", GUIDE)
    assert links and [link for link in links if not (COURSE / link).exists()] == []
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(
        encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z][a-z-]*)", GUIDE, re.MULTILINE))
    assert {"assignments"} <= named <= targets
    for place in re.findall(r"pytest ([^\n]+)", GUIDE):
        assert all((ROOT / path).exists() for path in place.split())
    assert all(f"`{name}/`" in GUIDE for name in copies.COPIES)


def test_the_first_hours_points_are_true():
    assert f"`solved` {course.assignment('rope').points:g} of 16" in GUIDE
    assert course.assignment("rope").points == 16
