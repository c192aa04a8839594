"""A class of hostile and unlucky submissions, graded once, by the real grader.

Each gets what it did earn and a reason; nobody else is harmed, nothing hidden comes
out, nothing stays behind.
"""

import csv
import json
import os
import socket
import threading
from pathlib import Path

import pytest

from apex_lessons.grading import classroom, sandbox, store, watch
from apex_lessons.grading.sandbox import Limits
from tests.grading import hostile, tiny

LIMITS = Limits(seconds=6.0, memory=700, patience=10.0)
MARK = 90_000_000 + os.getpid()  # seconds that a daemon wants to sleep


class Outcome:
    """What the graded class left: its folder, its results, calls from inside."""

    def __init__(self, folder, results, calls):
        self.out, self.calls = folder / "out", calls
        self.results = {one["student"]: one for one in results}

    def page(self, student):
        path = self.out / "students" / f"{store.file_name(student)}.html"
        return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("class")
    place = tiny.write_assignment(folder)
    submitted = folder / "submitted"
    submitted.mkdir()
    with Listener() as listener:
        hand_in(submitted, listener.port, folder / "out")
        settings = classroom.Settings(limits=LIMITS, workers=2)
        results = classroom.Class(place, submitted, folder / "out", settings).grade()
    return Outcome(folder, results, listener.calls)


def hand_in(submitted, port, out):
    """All hostile notebooks, and the files that are none."""
    for student, (data, *_) in hostile.SUBMISSIONS.items():
        for word, value in (("PORT", port), ("MARK", MARK), ("OUT", str(out)),
                            ("SUBMITTED", str(submitted))):
            data = data.replace(word.encode(), repr(value).encode())
        (submitted / f"{student}.ipynb").write_bytes(data)
    with open(os.path.join(os.fsencode(submitted), b"caf\xe9.ipynb"), "wb") as file:
        file.write(tiny.notebook(tiny.cells()))  # a name from a Latin-1 system
    (submitted / "nothing").mkdir()
    (submitted / "wrong-files").mkdir()
    (submitted / "wrong-files" / "tiny.docx").write_bytes(b"x")
    (submitted / "link.ipynb").symlink_to(submitted / "right.ipynb")
    (submitted / "linked-folder").symlink_to(submitted / "wrong-files")
    (submitted / "folder.ipynb").mkdir()
    os.mkfifo(submitted / "pipe.ipynb")
    (submitted / "two-files").mkdir()
    (submitted / "two-files" / "tiny.ipynb").write_bytes(tiny.notebook(tiny.cells()))
    (submitted / "two-files" / "draft.ipynb").write_bytes(b"x")


class Listener:
    """A server on this machine that counts who calls."""

    def __enter__(self):
        self.socket, self.calls = socket.create_server(("127.0.0.1", 0)), []
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def listen(self):
        try:
            while True:
                self.calls.append(self.socket.accept()[1])
        except OSError:  # closed
            return

    def __exit__(self, *error):
        self.socket.close()


@pytest.mark.parametrize("student", hostile.SUBMISSIONS)
def test_each_gets_what_it_earned_and_a_reason(graded, student):
    _, scale, norm, words = hostile.SUBMISSIONS[student]
    result = graded.results[student]
    points = {task["name"]: task["points"] for task in result["tasks"]}
    if scale is not None:
        assert (points.get("scale", 0), points.get("norm", 0)) == (scale, norm)
        assert result["points"] == scale + norm
    assert result["out_of"] == 7
    assert words in graded.page(student)
    assert f"{result['points']:g} of 7 points" in graded.page(student)


@pytest.mark.parametrize(("student", "status", "words"), [
    ("nothing", "nothing handed in", "No notebook was handed in for tiny."),
    ("wrong-files", "nothing handed in", "What is there: tiny.docx."),
    ("link", "nothing handed in", "A link was handed in"),
    ("linked-folder", "nothing handed in", "A link was handed in"),
    ("folder", "unreadable", "no ordinary file"),
    ("pipe", "unreadable", "no ordinary file"),
    ("two-files", "graded", "tiny.ipynb was graded, not draft.ipynb"),
    ("caf\udce9", "graded", "7 of 7 points")])
def test_files_that_are_no_notebook(graded, student, status, words):
    assert graded.results[student]["status"] == status
    assert words in graded.page(student)


def test_nobody_is_lost(graded):
    handed_in = [*hostile.SUBMISSIONS, "nothing", "wrong-files", "link",
                 "linked-folder", "folder", "pipe", "two-files", "caf\udce9"]
    assert sorted(graded.results) == sorted(handed_in)
    assert "not graded" not in {one["status"] for one in graded.results.values()}
    assert len(list((graded.out / "results").iterdir())) == len(handed_in)
    assert len(list((graded.out / "students").iterdir())) == len(handed_in)


def hidden_numbers(folder):
    """Hidden inputs and expected answers, as they would be printed."""
    from apex_lessons.grading import judge

    assignment, _, _ = tiny.load(folder)
    for task in assignment.tasks:
        tensors = [case["x"] for cases in judge.cases_of(task, 0) for case in cases]
        for group in judge.outputs_of(task, task.answer, 0):
            tensors += group
        for tensor in tensors:
            for number in tensor.double().flatten().tolist():
                yield f"{number:.4f}"


def test_no_hidden_number_reaches_a_student(graded):
    """Not as printed, not with another point; the teacher's file has them."""
    numbers = set(hidden_numbers(graded.out.parent / "tiny"))
    told = json.dumps(graded.results["tells-inputs"]["for_the_teacher"])
    assert any(number in told for number in numbers)  # the submission did find them
    for page in (graded.out / "students").iterdir():
        text = page.read_text(encoding="utf-8")
        found = [n for n in numbers if n in text or n.replace(".", "_") in text]
        assert found == [], page.name


def test_inputs_that_were_had_early_are_not_shown(graded):
    result = graded.results["asks-early"]
    assert result["status"] == "graded" and "tensor" not in graded.page("asks-early")


def test_nobody_called_from_inside(graded):
    assert graded.calls == []


def test_nothing_stays_behind(graded):
    """No process of a submission, no file outside its sandbox."""
    running = list(map(command_line, Path("/proc").glob("[0-9]*")))
    assert [words for words in running if str(MARK).encode() in words] == []
    assert watch.usage(os.getpid()).processes == len(os.listdir("/proc/self/task"))
    assert list(graded.out.parent.rglob("was-here")) == []


def command_line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def test_pages_hold_no_foreign_markup(graded):
    pages = [*(graded.out / "students").iterdir(), graded.out / "overview.html",
             graded.out / "written.html"]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text and "<img" not in text and "\x1b" not in text


def test_the_table_computes_nothing(graded):
    text = (graded.out / "grades.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == len(graded.results)
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    points = {row["student"]: row["points"] for row in rows}
    assert points["exit-for-half-precision"] == "6.0"


def test_a_sandbox_is_here():
    """`make test` found or installed bubblewrap; without it nothing of this ran."""
    assert sandbox.find_mode() in ("root", "user")
