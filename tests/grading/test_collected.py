"""Finding submissions in the layouts that there are."""

import os
from pathlib import Path

import pytest

from apex_lessons.grading import collected
from apex_lessons.grading.collected import find, read


def make(folder, *files):
    for name in files:
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"{}")
    return folder


def found(folder, out="out"):
    return {one.student: one.path and one.path.relative_to(folder).as_posix()
            for one in find(folder, "rope", folder / out)}


@pytest.mark.parametrize(("files", "students"), [
    (["anna.ipynb", "Zoë B.IPYNB", "notes.txt", "._anna.ipynb"],
     {"anna": "anna.ipynb", "Zoë B": "Zoë B.IPYNB"}),
    (["anna/rope.ipynb", "ben/answer.ipynb", ".git/x.ipynb", "__MACOSX/anna/x.ipynb"],
     {"anna": "anna/rope.ipynb", "ben": "ben/answer.ipynb"}),
    (["submitted/anna/rope/page.ipynb", "submitted/ben/norm/norm.ipynb",
      "release/rope/rope.ipynb"],
     {"anna": "submitted/anna/rope/page.ipynb", "ben": None}),
    (["anna/rope/rope.ipynb", "anna/rope/.ipynb_checkpoints/rope-checkpoint.ipynb"],
     {"anna": "anna/rope/rope.ipynb"}),
    (["anna/rope.ipynb", "anna.ipynb"], {"anna": "anna/rope.ipynb"}),
    (["anna/answer.txt", "anna.ipynb"], {"anna": "anna.ipynb"}),
    (["anna.ipynb", "out/students/x.html"], {"anna": "anna.ipynb"})])
def test_layouts(tmp_path, files, students):
    assert found(make(tmp_path, *files)) == students


def test_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    make(tmp_path, "anna/rope.ipynb", "ben/rope.ipynb")
    listed = Path.iterdir

    def locked(path):
        if path.name == "anna":
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", locked)
    anna, ben = find(tmp_path, "rope", tmp_path / "out")
    assert anna.reason == "The folder cannot be read (Permission denied)."
    assert ben.path.name == "rope.ipynb"


def test_the_newest_of_several_notebooks(tmp_path):
    make(tmp_path, "anna/b.ipynb", "anna/a.ipynb")
    os.utime(tmp_path / "anna" / "b.ipynb", (1, 1))
    (one,) = find(tmp_path, "rope", tmp_path / "out")
    assert one.path.name == "a.ipynb"
    assert one.notes == ("Several notebooks were handed in; a.ipynb, the newest, was"
                         " graded, not b.ipynb.",)


def test_nothing_is_told_with_what_is_there(tmp_path):
    make(tmp_path, "ben/norm/norm.ipynb")
    (one,) = find(tmp_path, "rope", tmp_path / "out")
    assert one.reason == ("No notebook was handed in for rope. What is there:"
                          " norm/norm.ipynb.")


def test_links_are_neither_followed_nor_an_obstacle(tmp_path):
    """A loop, and links to what is not the student's, whose names must not be told."""
    make(tmp_path / "try", "secret/private.txt")
    folder = make(tmp_path / "in", "ben/notes/a.txt")
    (folder / "loop").symlink_to("loop")
    (folder / "ben" / "notes" / "up").symlink_to(tmp_path / "try")
    (folder / "ben" / "link").symlink_to(tmp_path / "try" / "secret")
    ben, loop = find(folder, "rope", tmp_path / "out")
    assert loop.reason == "A link was handed in, not a file."
    assert ben.reason.endswith("What is there: link, notes/a.txt, notes/up.")


@pytest.mark.parametrize("out", ["in", "in/submitted"])
def test_results_among_the_submissions_are_refused(tmp_path, out):
    folder = make(tmp_path / "in", "submitted/anna/rope.ipynb")
    with pytest.raises(ValueError, match="Give --out another folder"):
        find(folder, "rope", tmp_path / out)


@pytest.mark.parametrize("place", ["missing", "empty", "file"])
def test_a_folder_without_submissions(tmp_path, place):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ValueError, match=place):
        find(tmp_path / place, "rope", tmp_path / "out")


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(collected, "LARGEST", 1)
    fits, large = tmp_path / "a.ipynb", tmp_path / "b.ipynb"
    fits.write_bytes(b"x" * 2**20)
    large.write_bytes(b"x" * (2**20 + 1))
    assert len(read(fits)) == 2**20
    with pytest.raises(collected.Refused, match="larger than 1 MB"):
        read(large)


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "a.ipynb").symlink_to(tmp_path / "secret")
    with pytest.raises(collected.Refused, match="cannot be read"):
        read(tmp_path / "a.ipynb")
