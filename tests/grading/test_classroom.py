"""A small class, graded again and again: nothing is lost, nothing is done twice."""

import json

import pytest

from apex_lessons.grading import classroom, engines
from apex_lessons.grading.classroom import Class, Settings
from apex_lessons.grading.submission import Record
from tests.grading import tiny


class Room:
    """A folder with the tiny assignment and submissions, and how often each was run."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.submitted, self.ran = folder, folder / "in", []
        self.assignment = tiny.write_assignment(folder)
        self.submitted.mkdir()
        monkeypatch.setattr(classroom.sandbox, "find_mode", lambda: "root")
        monkeypatch.setattr(classroom, "run_submission", self.pretend)

    def pretend(self, data, plan, limits, mode, hide):
        """What a submission is said to have done; its bytes are kept."""
        self.ran.append(data)
        if data == b"no process":
            raise BlockingIOError("no memory for a new process")
        if data == b"an error":
            raise RecursionError("maximum depth")
        if data == b"breaks":
            return Record(failed="no memory for a new process")
        labels = ["norm", "scale, copy 1", "scale, copy 2"]
        return Record(sources=dict.fromkeys(labels, "") if data == b"copies" else {},
                      answers={line["step"]: {n: {"nothing": True} for n in (0, 1)}
                               for line in plan["criteria"]}, notes=[data.decode()])

    def hand_in(self, **files):
        for student, text in files.items():
            (self.submitted / f"{student}.ipynb").write_text(text, encoding="utf-8")

    def grade(self, **settings):
        """Run the grader; returns the bytes that were run and the results."""
        self.ran.clear()
        results = Class(self.assignment, self.submitted, self.folder / "out",
                        Settings(workers=2, **settings)).grade()
        return sorted(self.ran), {one["student"]: one for one in results}

    def files(self):
        return {path.relative_to(self.folder).as_posix(): path.read_bytes()
                for path in (self.folder / "out").rglob("*") if path.is_file()}


@pytest.fixture
def room(tmp_path, monkeypatch):
    return Room(tmp_path, monkeypatch)


def test_a_second_time_nothing_is_run_and_nothing_changes(room):
    room.hand_in(anna="a", ben="b")
    assert room.grade()[0] == [b"a", b"b"]
    before = room.files()
    assert room.grade()[0] == [] and room.files() == before
    assert set(before) == {f"out/{name}" for name in (
        "grades.csv", "overview.html", "written.html", "results/anna.json",
        "results/ben.json", "students/anna.html", "students/ben.html")}


def test_only_what_is_new_or_changed_is_run(room):
    room.hand_in(anna="a", ben="b")
    room.grade()
    room.hand_in(ben="better", cy="c")
    ran, results = room.grade()
    assert ran == [b"better", b"c"] and results["ben"]["notes"] == ["better"]


@pytest.mark.parametrize("change", ["seed", "limits", "assignment", "program"])
def test_another_basis_runs_all_again(room, change, monkeypatch):
    room.hand_in(anna="a")
    room.grade()
    settings = {}
    if change == "seed":
        settings = {"seed": 1}
    elif change == "limits":
        settings = {"limits": classroom.Limits(seconds=5)}
    elif change == "assignment":
        hidden = room.assignment / "hidden.py"
        hidden.write_text(tiny.HIDDEN + "# more\n", encoding="utf-8")
    else:
        monkeypatch.setattr(classroom, "_program", lambda: b"another")
    assert room.grade(**settings)[0] == [b"a"]


def test_another_torch_or_comparison_makes_other_results(monkeypatch, tmp_path):
    program = classroom._program.__wrapped__
    before = program()
    with monkeypatch.context() as patch:
        patch.setattr(classroom.torch, "__version__", "0.0")
        assert program() != before
    (tmp_path / "diagnosis.py").write_bytes(b"TOLERANCES = {}")
    monkeypatch.setattr(classroom.diagnosis, "__file__", str(tmp_path / "diagnosis.py"))
    assert program() != before


@pytest.mark.parametrize("spoil", ["results/anna.json", "students/anna.html"])
def test_a_file_that_is_lost_or_broken_is_made_again(room, spoil):
    room.hand_in(anna="a", ben="b")
    room.grade()
    before = room.files()
    place = room.folder / "out" / spoil
    if spoil.endswith("json"):
        place.write_text("{", encoding="utf-8")
    else:
        place.unlink()
    room.grade()
    assert room.files() == before


@pytest.mark.parametrize("data", ["breaks", "no process"])
def test_a_failure_of_the_machine_is_no_mark_and_is_tried_again(room, data):
    room.hand_in(anna=data, ben="b")
    _, results = room.grade()
    assert results["anna"]["status"] == "not graded"
    assert "no memory for a new process" in results["anna"]["reason"]
    assert b'"anna","not graded","","7"' in room.files()["out/grades.csv"]
    assert room.grade()[0] == [data.encode()]


def test_an_error_of_the_worker_ends_nothing(room):
    room.hand_in(anna="an error", ben="b")
    _, results = room.grade()
    assert results["anna"]["status"] == "not graded"
    assert results["anna"]["reason"] == "It could not be run: RecursionError"
    assert results["ben"]["status"] == "graded"


def test_what_the_judge_cannot_cope_with_ends_nothing(room, monkeypatch):
    judged = classroom.feedback.outputs_from

    def unable(record, task, plan):
        if record.notes == ["a"]:
            raise RuntimeError("a hidden input: 7.25")
        return judged(record, task, plan)

    monkeypatch.setattr(classroom.feedback, "outputs_from", unable)
    room.hand_in(anna="a", ben="b")
    _, results = room.grade()
    assert (results["anna"]["status"], results["ben"]["status"]) == (
        "not graded", "graded")
    assert "RuntimeError in test_classroom.py, line" in results["anna"]["reason"]
    assert not any(b"7.25" in content for content in room.files().values())


def test_a_crash_in_the_middle_keeps_what_was_done(room, monkeypatch):
    room.hand_in(**{f"s{number}": str(number) for number in range(6)})
    work, done = engines.here, []

    def until_the_power_fails(*arguments):
        for result in work(*arguments):
            if len(done) == 3:
                raise KeyboardInterrupt
            done.append(result[0])
            yield result

    monkeypatch.setattr(engines, "here", until_the_power_fails)
    with pytest.raises(KeyboardInterrupt):
        room.grade()
    monkeypatch.setattr(engines, "here", work)
    ran, results = room.grade()
    assert len(ran) == 3 and len(results) == 6
    assert not {f"s{data.decode()}" for data in ran} & set(done)


def test_a_stub_behind_the_solution_is_named_in_the_task(room):
    room.hand_in(anna="copies", ben="b")
    _, results = room.grade()
    named = {(student, task["name"]) for student, one in results.items()
             for task in one["tasks"] if "last copy of this cell" in task["message"]}
    assert named == {("anna", "scale")}
    assert b"last copy of this cell" in room.files()["out/students/anna.html"]


def test_the_courses_other_folders_are_hidden(tmp_path, monkeypatch):
    for name in (".git", "apex_lessons", "assignments", "env/python", "tests"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "tests")
    monkeypatch.setattr(classroom.sandbox, "PACKAGE", tmp_path / "apex_lessons")
    monkeypatch.setattr(classroom.sandbox, "python_folders",
                        lambda: [str(tmp_path / "env" / "python")])
    assert classroom.course_folders(tmp_path) == []  # it is not the course's folder
    (tmp_path / "pyproject.toml").touch()
    assert [one.name for one in classroom.course_folders(tmp_path)] == [
        ".git", "assignments", "tests"]


def test_a_submission_is_run_without_sight_of_the_course(room, monkeypatch):
    seen = []
    monkeypatch.setattr(classroom, "run_submission", lambda *data, hide, **more: (
        seen.extend(hide), Record(failed="x"))[1])
    room.hand_in(anna="a")
    room.grade()
    assert {str(classroom.sandbox.PACKAGE.parent / "assignments"),
            str(room.submitted), str(room.assignment)} <= set(seen)


def test_a_folder_in_a_hidden_one_and_one_that_is_not_there_need_no_hiding(tmp_path):
    for name in ("a/b/c", "ab"):
        (tmp_path / name).mkdir(parents=True)
    names = "a/b/c", "a", "ab", "a/b", "missing", "missing/x"
    found = classroom.outermost(*(tmp_path / name for name in names))
    assert found == (str(tmp_path / "a"), str(tmp_path / "ab"))


def test_the_bar_moves_once_for_each(room):
    room.hand_in(anna="a", ben="b")
    (room.submitted / "cy").mkdir()
    for _ in range(2):
        ticks = []
        Class(room.assignment, room.submitted, room.folder / "out",
              Settings()).grade(lambda: ticks.append(1))
        assert len(ticks) == 3


def test_results_inside_the_submissions_are_no_student(room):
    room.hand_in(anna="a")
    for _ in range(2):
        results = Class(room.assignment, room.submitted, room.submitted / "out",
                        Settings()).grade()
        assert [one["student"] for one in results] == ["anna"]


def test_the_teachers_file_holds_everything(room):
    room.hand_in(anna="a")
    room.grade()
    stored = json.loads(room.files()["out/results/anna.json"])
    assert {"key", "student", "status", "points", "out_of", "tasks", "notes", "cells",
            "written", "for_the_teacher", "reason", "file"} == set(stored)
    assert [task["status"] for task in stored["tasks"]] == ["not attempted"] * 2
