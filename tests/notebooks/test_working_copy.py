"""my-course/: the reader's work is never overwritten, and an update still arrives."""

import json
import subprocess

import pytest

from notebooks.machine import build, lint, working_copy
from tests.notebooks.pages import PAGES


def page_text(words, *, output=None, count=None):
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "source": [words],
            "execution_count": count, "outputs": output or []}
    return json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4,
                       "nbformat_minor": 5})


@pytest.fixture
def course(tmp_path):
    pages, copy = tmp_path / "notebooks", tmp_path / "my-course"
    (pages / "machine").mkdir(parents=True)
    (pages / "machine" / "build.py").write_text("", encoding="utf-8")
    (pages / "03-rope.py").write_text("", encoding="utf-8")
    (pages / ".ipynb_checkpoints").mkdir()
    (pages / ".ipynb_checkpoints" / "03-rope.ipynb").write_text("", encoding="utf-8")
    (pages / "pictures").mkdir()
    (pages / "pictures" / "turn.svg").write_text("<svg/>", encoding="utf-8")
    for name in ("03-rope.ipynb", "04-yarn.ipynb"):
        (pages / name).write_text(page_text("1 + 1"), encoding="utf-8")
    working_copy.refresh(pages, copy)
    return pages, copy


def write(folder, text, name="03-rope.ipynb"):
    (folder / name).write_text(text, encoding="utf-8")


def text_of(folder, name="03-rope.ipynb"):
    return (folder / name).read_text(encoding="utf-8")


def test_a_reader_gets_the_pages_and_what_they_show(course):
    pages, copy = course
    found = sorted(path.relative_to(copy).as_posix() for path in copy.rglob("*")
                   if path.is_file())
    assert found == [".originals.json", "03-rope.ipynb", "04-yarn.ipynb",
                     "pictures/turn.svg"]
    assert working_copy.refresh(pages, copy) == []


def test_an_unchanged_page_follows_the_course(course):
    pages, copy = course
    write(pages, page_text("2 + 2"))
    assert working_copy.refresh(pages, copy) == [
        "03-rope.ipynb: renewed, the course has a newer version"]
    assert text_of(copy) == text_of(pages)
    assert working_copy.refresh(pages, copy) == []


def test_a_page_that_was_only_run_follows_the_course_and_else_keeps_its_outputs(course):
    pages, copy = course
    run = page_text("1 + 1",
                    output=[{"output_type": "stream", "name": "stdout", "text": "2"}],
                    count=5)
    write(copy, run)
    assert working_copy.refresh(pages, copy) == [] and text_of(copy) == run
    write(pages, page_text("2 + 2"))
    working_copy.refresh(pages, copy)
    assert text_of(copy) == text_of(pages)


def test_a_changed_page_is_never_overwritten(course):
    pages, copy = course
    mine = page_text("1 + 41")
    write(copy, mine)
    assert working_copy.refresh(pages, copy) == []
    write(pages, page_text("2 + 2"))
    for _ in range(2):  # told every time, until he decides
        told = working_copy.refresh(pages, copy)
        assert len(told) == 1 and "make reset PAGE=03" in told[0] and "kept" in told[0]
        assert text_of(copy) == mine


def test_a_page_that_no_longer_reads_counts_as_changed(course):
    pages, copy = course
    write(copy, "{ half a pa")
    write(pages, page_text("2 + 2"))
    assert len(working_copy.refresh(pages, copy)) == 1
    assert text_of(copy) == "{ half a pa"


def test_a_deleted_page_and_a_new_page_arrive(course):
    pages, copy = course
    (copy / "04-yarn.ipynb").unlink()
    write(pages, page_text("0"), "05-new.ipynb")
    assert working_copy.refresh(pages, copy) == []
    assert text_of(copy, "04-yarn.ipynb") and text_of(copy, "05-new.ipynb")


def test_without_its_record_nothing_is_overwritten(course):
    pages, copy = course
    (copy / ".originals.json").unlink()
    write(pages, page_text("2 + 2"))
    assert len(working_copy.refresh(pages, copy)) == 1
    assert text_of(copy) == page_text("1 + 1")


def test_reset_keeps_each_version_of_the_reader(course):
    pages, copy = course
    for number, kept in enumerate(("03-rope.mine.ipynb", "03-rope.mine-2.ipynb")):
        write(copy, page_text(f"mine {number}"))
        told = working_copy.reset("03", pages, copy)
        assert kept in told and text_of(copy, kept) == page_text(f"mine {number}")
        assert text_of(copy) == text_of(pages)
    assert working_copy.refresh(pages, copy) == []


def test_reset_of_an_unchanged_page_keeps_nothing(course):
    pages, copy = course
    assert "mine" not in working_copy.reset("3", pages, copy)
    assert not list(copy.glob("*.mine*"))


@pytest.mark.parametrize("word", ["03", "3", "03-rope", "03-rope.ipynb", " 03 "])
def test_a_page_has_several_names(course, word):
    assert working_copy.find_page(word, course[0]) == "03-rope.ipynb"


@pytest.mark.parametrize("word", ["", "9", "rope", "../03-rope"])
def test_an_unknown_page_names_the_pages_there_are(course, word):
    with pytest.raises(LookupError, match="03-rope.ipynb, 04-yarn.ipynb"):
        working_copy.find_page(word, course[0])


def test_reset_without_a_page_says_how(capsys):
    assert working_copy.main(["reset", ""]) == 2
    assert "make reset PAGE=03" in capsys.readouterr().err


def test_links_work_in_the_copy(tmp_path):
    """The copy stands beside notebooks/, so that links out of that folder hold too."""
    copy = build.ROOT / "my-course"
    assert working_copy.COPY == copy and copy.parent == build.FOLDER.parent
    working_copy.refresh(copy=tmp_path / "my-course")
    for page in filter(lambda page: page.exists(), PAGES):
        copied = lint.Page(tmp_path / "my-course" / page.name)
        inside = [line for line in lint.broken_link(copied) if "../" not in line[1]]
        assert inside == list(lint.broken_link(lint.Page(page)))


def test_git_does_not_see_the_copy():
    """NB-14: running or changing a page never stands in the way of an update."""
    done = subprocess.run(["git", "check-ignore", "my-course/03-rope.ipynb", ".venv/x"],
                          cwd=build.ROOT, capture_output=True, encoding="utf-8")
    assert done.stdout.split() == ["my-course/03-rope.ipynb", ".venv/x"]


def test_lab_opens_the_copy_and_asks_nothing_of_the_network():
    command = working_copy.lab_command(["--no-browser"])
    assert command[1:3] == ["-m", "jupyterlab"] and command[-1] == "--no-browser"
    assert any(word.startswith("--LabApp.default_url=/lab/tree/my-course")
               for word in command)
    for quiet in ("--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
                  "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"):
        assert quiet in command
