"""The class's own repository: what is in it, what stays, where it may not be."""

import doctest
import importlib.util
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "assignments" / "hub" / "class_repository.py"


@pytest.fixture
def program(monkeypatch):
    """The program, without the students' copies: they take seconds."""
    spec = importlib.util.spec_from_file_location("class_repository", PLACE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "students_copies", lambda target: ["rope"])
    return module


def test_it_has_the_pages_and_no_answers(program, tmp_path, capsys):
    assert program.main([str(tmp_path / "class")]) == 0
    assert "rope" in capsys.readouterr().out
    names = {path.relative_to(tmp_path / "class").as_posix()
             for path in (tmp_path / "class").rglob("*")}
    assert {"notebooks/03-rope.ipynb", "apex_lessons/rope.py", "Makefile",
            "hub/jupyterhub_config.py", "requirements.lock"} <= names
    assert {name.partition("/")[0] for name in names}.isdisjoint({"tests", ".git"})
    assert [name for name in names if name.endswith("hidden.py")] == []


def test_students_read_and_see_no_teachers_commands(program, tmp_path):
    program.write(tmp_path)
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    makefile = (tmp_path / "Makefile").read_text(encoding="utf-8")
    offered = subprocess.run(["make", "-C", tmp_path], capture_output=True,
                             encoding="utf-8", check=True).stdout
    assert set(re.findall(r"^  make (\S+)", offered, re.MULTILINE)) == {
        "help", "install", "lab", "copy", "reset", "site", "train", "measure", "clean"}
    for word in ("make test", "make assignments", "make grade", "eacher", "ontributor",
                 "course_tests", "hidden.py", "SANDBOX"):
        assert word not in readme + offered
    assert not re.search(r"tests/|_assignments|course_tests", makefile)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", readme, re.MULTILINE)) <= set(
        re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    linked = re.findall(r"\]\(([^):]+)\)", readme)
    assert linked and all((tmp_path / one).exists() for one in linked)


def test_a_second_time_it_renews_what_it_wrote(program, tmp_path):
    program.write(tmp_path)
    (tmp_path / "notebooks" / "old.ipynb").write_text("x", encoding="utf-8")
    (tmp_path / "our-timetable.md").write_text("Mondays", encoding="utf-8")
    program.write(tmp_path)
    assert not (tmp_path / "notebooks" / "old.ipynb").exists()
    assert (tmp_path / "our-timetable.md").exists()


@pytest.mark.parametrize("place", [ROOT, ROOT / "notebooks" / "class"])
def test_it_is_not_put_beside_the_answers(place, program, capsys):
    assert program.main([str(place)]) == 2
    assert "holds the answers" in capsys.readouterr().err


def test_too_few_words_are_answered_with_help(program, capsys):
    assert program.main([]) == 2
    assert "class_repository.py link HUB" in capsys.readouterr().err


def test_an_image_has_what_a_hub_needs(program):
    environment = yaml.safe_load(program.environment_of_a_hub())
    from_pip = environment["dependencies"][-1]["pip"]
    assert [one.partition(">")[0] for one in from_pip[-3:-1]] == [
        "nbgrader", "nbgitpuller"]
    assert from_pip[-1] == "-e ."


def test_its_examples_are_true(program):
    assert doctest.testmod(program) == doctest.TestResults(0, 3)
