"""Results on disk: whole, found again, with names and cells that do no harm."""

import csv
import io
import os

import pytest

from apex_lessons.grading import store


def test_a_crash_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    store.write(tmp_path / "a", "old")

    def crash(*names):
        raise OSError("power cut")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="power cut"):
        store.write(tmp_path / "a", "new")
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ["old"]


def test_a_result_is_found_by_its_key(tmp_path):
    store.save(tmp_path / "a.json", {"key": "k", "points": 3.0, "name": "\udcff θ"})
    assert store.load(tmp_path / "a.json", "k")["points"] == 3.0
    assert store.load(tmp_path / "a.json", "other") is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"key": "o'])
def test_half_a_result_is_none(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    assert store.load(tmp_path / "a.json", "k") is None
    assert store.load(tmp_path / "missing.json", "k") is None


def test_keys_tell_parts_apart():
    keys = [store.key_of(*parts) for parts in (
        (b"ab", b"c"), (b"a", b"bc"), (b"abc",), ("abc",), (1,), ("1",), ([1], None))]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("student", [
    "../x", "a/b", ".", "..", "con:", "a\0b", "\udcff", "-rf", "é" * 300, "<b>", "a b",
    "", "NUL", "a\u202eb"])
def test_file_names_stay_in_their_folder(tmp_path, student):
    name = store.file_name(student)
    assert not set(name) & set('/\\:\0<>"|?* ') and not name.startswith(".")
    assert len(f"{name}.html".encode()) <= 255
    (tmp_path / f"{name}.html").write_bytes(b"")
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.html"]


def test_different_students_get_different_files():
    students = ["a b", "a_b", "a/b", "a:b", "é", "e\u0301", "x" * 56, "x" * 57,
                "x" * 58, "a", "A", "Zoë B", store.file_name("Zoë B"), "straße",
                "strasse"]
    store.check_names(students)
    names = {store.file_name(student).casefold() for student in students}
    assert len(names) == len(students)


@pytest.mark.parametrize("student", ["con", "nul", "aux.b", "com1", "lpt9.x.y"])
def test_names_that_windows_keeps_for_itself(student):
    assert store.file_name(student) == f"{student}-{store.file_name(student)[-8:]}"


def test_two_students_with_one_file_are_refused(monkeypatch):
    monkeypatch.setattr(store, "file_name", lambda student: "x")
    with pytest.raises(ValueError, match="'anna' and 'ben' would go to one file"):
        store.check_names(["anna", "ben"])


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@a", "\t=1", "\r=1", "\x00=1",
                                  "\n=1", "\u00a0=1", "＝1", "＋1", "－1", "＠a"])
def test_no_cell_is_a_formula(cell):
    ((read, number),) = csv.reader(io.StringIO(store.table([[cell, -1.5]])[1:]))
    assert read.startswith("'") and number == "-1.5"


def test_a_row_is_a_line_in_a_file_that_spreadsheets_read():
    text = store.table([["Zoë  B", "a\r\nb;c"], ["x", 'say "y"']])
    assert text.encode().decode("utf-8-sig").split("\r\n") == [
        '"Zoë  B","a b;c"', '"x","say ""y"""', ""]
