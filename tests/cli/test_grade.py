"""``python -m apex_lessons grade``: options, words, exit status."""

import pytest

from apex_lessons import cli
from apex_lessons.grading import classroom, sandbox
from apex_lessons.grading.submission import Record
from tests.grading import tiny


@pytest.fixture
def class_folder(tmp_path, monkeypatch):
    """An assignment, two submissions; nothing is really run."""
    asked = {}

    def pretend(data, **about):
        asked.update(about)
        return Record(failed="too busy") if data == b"busy" else Record()

    monkeypatch.setattr(classroom, "run_submission", pretend)
    monkeypatch.setattr(sandbox, "find_mode", lambda: "user")
    tiny.write_assignment(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "anna.ipynb").write_bytes(b"{}")
    (tmp_path / "in" / "a\x1bb").mkdir()
    monkeypatch.chdir(tmp_path)
    return asked


def test_a_class_is_graded(class_folder, capsys):
    assert cli.main(["grade", "tiny", "in", "--out", "out", "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "2 submissions in" in said and "1 graded, 1 nothing handed in" in said
    assert "a\\x1bb: nothing handed in." in said and "overview.html" in said


def test_it_says_at_once_that_it_has_begun(class_folder, capsys, monkeypatch):
    monkeypatch.setattr(classroom, "load_assignment", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["grade", "tiny", "in", "--out", "out"])
    assert capsys.readouterr().err.startswith("Preparing tiny")


def test_the_options_arrive(class_folder):
    assert cli.main(["grade", "tiny", "in", "--out", "out", "--time-limit", "12",
                     "--memory-limit", "700", "--unsafe-without-sandbox"]) == 0
    assert class_folder["mode"] == "none"
    assert (class_folder["limits"].seconds, class_folder["limits"].memory) == (12, 700)


def test_what_could_not_be_graded_shows_in_the_status(class_folder, capsys, tmp_path):
    (tmp_path / "in" / "ben.ipynb").write_bytes(b"busy")
    assert cli.main(["grade", "tiny", "in", "--out", "out"]) == 2
    said = capsys.readouterr().out
    assert "ben: not graded. It could not be run: too busy" in said


def test_without_a_sandbox_it_refuses(class_folder, capsys, monkeypatch):
    def none():
        raise sandbox.NoSandbox(sandbox.HOW_TO_GET.format(problem="No bwrap."))

    monkeypatch.setattr(sandbox, "find_mode", none)
    assert cli.main(["grade", "tiny", "in", "--out", "out"]) == 2
    error = capsys.readouterr().err
    assert "apt-get install bubblewrap" in error and "--unsafe-without-sandbox" in error
    words = ["grade", "tiny", "in", "--out", "out", "--unsafe-without-sandbox"]
    assert cli.main(words) == 0
    assert "your own rights" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "reason"), [
    (["nothing", "in", "--out", "out"], "'nothing' is no assignment"),
    (["tiny", "elsewhere", "--out", "out"], "elsewhere is no folder"),
    (["tiny", "tiny", "--out", "out"], "holds no submission"),
    (["tiny", "in"], "--out"), (["tiny", "", "--out", "out"], "a folder is needed"),
    (["", "in", "--out", "out"], "'' is no assignment"),
    (["tiny", "in", "--out", "out", "--workers", "0"], "1 or more"),
    (["tiny", "in", "--out", "out", "--time-limit", "nan"], "1 to 86400"),
    (["tiny", "in", "--out", "out", "--workers", "2", "--scheduler", "tcp://a:1"],
     "not allowed with"), (["tiny", "in", "--out", "tiny/tiny.py"], "tiny.py")])
def test_bad_input_is_refused_with_a_reason(class_folder, capsys, words, reason):
    assert cli.main(["grade", *words]) == 2
    error = capsys.readouterr().err
    assert reason in error and "Traceback" not in error
