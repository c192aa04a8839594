"""`make test`: what it runs, how it finds a browser, and the seconds of each family."""

import os
import sys
from types import SimpleNamespace

import pytest
import torch

from notebooks.machine import browser, build, course_tests
from tests import conftest


@pytest.fixture
def no_browser(monkeypatch):
    """A machine without any Chromium; what would be installed is written down."""
    tried = []
    monkeypatch.setattr(browser, "NAMES", ("no-such-browser",))
    monkeypatch.setattr(browser, "PLACES", ())
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser, "playwrights_own", lambda: None)
    monkeypatch.setattr(browser, "run_quietly",
                        lambda command, seconds: tried.append(command) or False)
    monkeypatch.setattr(course_tests.browser, "find_or_install",
                        browser.find_or_install)
    return tried


@pytest.fixture
def chromium_of_ours(tmp_path):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def test_every_page_is_compared_in_one_run(monkeypatch):
    monkeypatch.setattr(course_tests.browser, "find_or_install", lambda: "a browser")
    environment = {"TEST_OPTIONS": "-k 'one or two'"}
    command = course_tests.pytest_command(False, environment)
    pages = [f"notebooks/{build.page_of(source).name}"
             for source in build.page_sources()]
    assert command[:5] == [sys.executable, "-m", "pytest", "tests", "apex_lessons"]
    assert [word for word in command if word.endswith(".ipynb")] == pages
    assert {"--nbval", "--nbval-current-env",
            "--nbval-cell-timeout=120"} <= set(command)
    assert command[command.index("--dist") + 1] == "loadfile"
    assert command[command.index("-n") + 1] == "2" and command[-2:] == ["-k",
                                                                        "one or two"]
    assert environment["CHROMIUM"] == "a browser"


def test_the_slow_tests_are_their_own_command():
    command = course_tests.pytest_command(True, {"BROWSER": "skip"})
    assert command[command.index("-m", 2) + 1] == "slow" and "--nbval" not in command


def test_browser_tests_are_left_out_only_when_told(capsys, no_browser):
    options = course_tests.browser_options({"BROWSER": "skip"})
    assert options == list(course_tests.IN_A_BROWSER)
    assert "--ignore=tests/browser" in options
    assert "left out" in capsys.readouterr().out and no_browser == []


def test_without_a_browser_it_says_so_and_cannot_pass(capsys, no_browser):
    """tests/test_project.py fails then, so that the run does."""
    environment = {}
    assert course_tests.browser_options(environment) == list(
        course_tests.IN_A_BROWSER)
    assert "did NOT run" in capsys.readouterr().out
    assert no_browser[-1][-2:] == ["install", "chromium"]
    assert browser.find() is None


def test_root_on_debian_installs_the_systems_package(monkeypatch, no_browser):
    monkeypatch.setattr(browser, "may_install_packages", lambda: True)
    browser.install()
    assert no_browser[0] == ["apt-get", "update"]
    monkeypatch.setattr(browser, "run_quietly",
                        lambda command, seconds: no_browser.append(command) or True)
    browser.install()
    assert no_browser[-1][:2] == ["apt-get", "install"] and "chromium" in no_browser[-1]


def test_a_browser_that_does_not_start_is_passed_over(monkeypatch, no_browser, tmp_path,
                                                      chromium_of_ours):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("CHROMIUM", str(broken))
    assert browser.find() is None
    monkeypatch.setenv("CHROMIUM", str(chromium_of_ours))
    assert browser.find() == str(chromium_of_ours)


@pytest.mark.parametrize(("place", "family"), [
    ("tests/test_rope.py::test_x", "mathematics"),
    ("apex_lessons/rope.py::apex_lessons.rope.rotary_tables", "mathematics"),
    ("tests/models/test_config.py::test_x", "models"),
    ("tests/exercises/test_rope.py::test_x", "figures and exercises"),
    ("apex_lessons/figures/rope.py::x", "figures and exercises"),
    ("tests/explorers/test_rope.py::test_x", "explorers"),
    ("notebooks/03-rope.ipynb::Cell 3", "notebooks"),
    ("tests/notebooks/test_lint.py::test_x", "notebooks"),
    ("tests/browser/test_lab.py::test_x", "browser"),
])
def test_a_test_belongs_to_a_family(place, family):
    assert conftest.family_of(place) == family


def test_families_run_one_after_another():
    places = ["tests/browser/b.py::1", "notebooks/03.ipynb::1", "tests/test_rope.py::2",
              "tests/models/m.py::1", "tests/test_rope.py::1"]
    items = [SimpleNamespace(nodeid=place) for place in places]
    conftest.pytest_collection_modifyitems(items)
    assert [item.nodeid for item in items] == [places[2], places[4], places[3],
                                               places[1],
                                               places[0]]


def test_the_seconds_of_a_family_are_added_up():
    def report(nodeid, start, stop):
        return SimpleNamespace(nodeid=nodeid, start=start, stop=stop,
                               duration=stop - start)

    line = conftest.family_line("models", [report("a", 10, 11), report("b", 10, 12.5),
                                           report("a", 12.5, 13)])
    assert line.split() == "models 2 tests 4.0 s of work 3.0 s on the clock".split()


def test_tests_run_with_one_thread_and_no_network():
    assert os.environ["OMP_NUM_THREADS"] == "1" and os.environ["HF_HUB_OFFLINE"] == "1"
    assert torch.get_num_threads() == 1


def test_what_the_caller_has_set_does_not_reach_the_tests(monkeypatch):
    """PYTHONDONTWRITEBYTECODE doubles the run: each process translates torch anew."""
    started = []
    monkeypatch.setattr(course_tests.subprocess, "run", lambda command, **settings:
                        started.append(settings["env"])
                        or SimpleNamespace(returncode=7))
    for name in course_tests.NOT_OURS:
        monkeypatch.setenv(name, "set by the caller")
    monkeypatch.setenv("BROWSER", "skip")
    monkeypatch.setenv("SANDBOX", "skip")
    assert course_tests.main([]) == 7
    assert "set by the caller" not in started[0].values()
    assert started[0]["OMP_NUM_THREADS"] == "1"
