"""`make test` finds a sandbox for the grading tests, installs one, or says so."""

from types import SimpleNamespace

import pytest

from notebooks.machine import bubblewrap, course_tests

IGNORED = [f"--ignore={test}" for test in bubblewrap.TESTS]


@pytest.fixture
def linux_without_it(monkeypatch):
    """A Linux machine without bubblewrap; what would be installed is written down."""
    tried = []
    monkeypatch.setattr(bubblewrap.sys, "platform", "linux")
    monkeypatch.setattr(bubblewrap, "TRIAL", ["no-such-program"])
    monkeypatch.setattr(bubblewrap.browser, "may_install_packages", lambda: True)
    monkeypatch.setattr(bubblewrap.browser, "run_quietly",
                        lambda command, seconds: tried.append(command) or True)
    return tried


def test_a_machine_that_has_one_leaves_nothing_out(monkeypatch):
    monkeypatch.setattr(bubblewrap.sys, "platform", "linux")
    monkeypatch.setattr(bubblewrap, "TRIAL", ["true"])
    assert bubblewrap.options({}) == []


def test_a_bubblewrap_that_may_not_is_none(monkeypatch):
    monkeypatch.setattr(bubblewrap, "TRIAL", ["false"])
    assert not bubblewrap.works()


def test_an_administrator_gets_the_package(linux_without_it, monkeypatch):
    answers = iter([False, True])
    monkeypatch.setattr(bubblewrap, "works", lambda: next(answers))
    assert bubblewrap.options({}) == []
    assert linux_without_it[-1][-1] == "bubblewrap"


def test_without_one_it_is_said_loudly(linux_without_it, capsys):
    """tests/test_project.py fails then, so that the run does."""
    assert bubblewrap.options({}) == IGNORED
    assert "did NOT run" in capsys.readouterr().out


def test_it_is_left_out_when_told(linux_without_it, capsys):
    assert bubblewrap.options({"SANDBOX": "skip"}) == IGNORED
    assert "left out" in capsys.readouterr().out and linux_without_it == []


def test_other_systems_have_none(monkeypatch, capsys):
    monkeypatch.setattr(bubblewrap, "sys", SimpleNamespace(platform="darwin"))
    assert bubblewrap.options({}) == IGNORED
    assert "for Linux" in capsys.readouterr().out


def test_make_test_asks(monkeypatch):
    monkeypatch.setattr(course_tests.bubblewrap, "options", lambda about: ["--asked"])
    command = course_tests.pytest_command(False, {"BROWSER": "skip"})
    assert "--asked" in command


def test_the_clean_machine_gets_it_too():
    script = (course_tests.build.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "missing+=(bubblewrap)" in script and "unset BROWSER SANDBOX" in script
