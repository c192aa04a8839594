"""What is found on a machine, and what is said about what is missing."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from apex_lessons import environment
from apex_lessons.environment import (
    NEEDED,
    Environment,
    Finding,
    check_devices,
    check_environment,
    check_package,
    check_python,
    numbers,
)

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(
    encoding="utf-8"))["project"]


def test_here_all_is_there():
    report = check_environment()
    assert report, repr(report)
    assert [finding.name for finding in report.findings] == [
        "Python", *(name for name, _, _ in NEEDED), "devices"]
    assert "All is there." in repr(report)


def test_the_list_is_the_projects_own():
    """Each package stands in pyproject.toml, and asks for no newer version than it."""
    wanted = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["course"]
    stated = {}
    for line in wanted:
        name, oldest = re.match(r"([\w-]+)[>=]=([\d.]*\d)", line).groups()
        stated[name] = numbers(oldest)
    for name, oldest, _ in NEEDED:
        assert numbers(oldest) <= stated[name], name
    assert environment.OLDEST_PYTHON == numbers(PROJECT["requires-python"].strip(">="))


def test_a_missing_package_is_told_with_its_purpose_and_its_remedy(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(environment, "version", missing)
    report = check_environment()
    assert not report
    assert "pip install wordllama" in repr(report)
    assert "the pictures" in repr(report)
    assert "make lab" in repr(report)


@pytest.mark.parametrize(("found", "oldest", "fine"), [
    ("2.13.0+cpu", "2.2", True), ("2.2", "2.2.0", False), ("2.2.0", "2.2", True),
    ("0.2.2.post0", "0.2.2", True), ("3.8.4", "3.9", False), ("10.0", "9.9", True),
    ("8.1.5rc1", "8.1.5", True), ("nonsense", "1.0", False)])
def test_versions_are_compared_as_numbers(monkeypatch, found, oldest, fine):
    monkeypatch.setattr(environment, "version", lambda name: found)
    finding = check_package("thing", oldest, "the pictures")
    assert (finding.remedy is None) is fine
    if not fine:
        assert oldest in finding.remedy
        assert "--upgrade thing" in finding.remedy


def test_an_old_python_is_told():
    assert check_python((3, 10, 4)).remedy.startswith("install Python 3.11")
    assert check_python((3, 14, 0)).remedy is None
    assert check_python(tuple(sys.version_info[:3])).remedy is None


def test_without_torch_it_still_answers(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    finding = check_devices()
    assert finding.found == "unknown without torch"
    assert finding.remedy == "pip install torch"


def test_devices_are_named(monkeypatch):
    import torch

    assert check_devices().found.startswith("CPU, ")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Big Card")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert "CUDA: Big Card; MPS" in check_devices().found


def test_it_shows_itself_as_text_and_as_an_escaped_table():
    report = Environment((Finding("a<b", "1.0", None),
                          Finding("c", "missing", "do & be")))
    assert "✔ a<b  1.0" in repr(report)
    assert "✘ c    missing  -> do & be" in repr(report)
    page = report._repr_mimebundle_()["text/html"]
    assert "a&lt;b" in page
    assert "do &amp; be" in page
    assert "1 to look at" in page


def test_nothing_heavy_is_imported():
    """The report must work where matplotlib or ipywidgets are broken."""
    import subprocess

    code = ("import sys, apex_lessons.environment as e; repr(e.check_environment());"
            "print([n for n in ('matplotlib', 'ipywidgets', 'anywidget', 'tokenizers')"
            " if n in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          encoding="utf-8", cwd=Path(__file__).parents[1], timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
