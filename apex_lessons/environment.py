"""What is on this machine, and what to do about what is missing.

Reads version numbers without importing the packages; only torch is asked for devices.
"""

from __future__ import annotations

import html
import os
import platform
import re
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

OLDEST_PYTHON = (3, 11)
# What the pages need: a package, the oldest version that works, what it is for.
NEEDED = (
    ("torch", "2.2", "every computation"),
    ("matplotlib", "3.9", "the pictures"),
    ("ipywidgets", "8.1.5", "the sliders"),
    ("anywidget", "0.9.18", "the explorers"),
    ("jupyterlab", "4.3", "this page, in a browser"),
    ("safetensors", "0.4.5", "the trained table of lesson 01"),
    ("tokenizers", "0.20", "the trained table of lesson 01"),
    ("wordllama", "0.2.2", "the trained table of lesson 01"),
)


@dataclass(frozen=True)
class Finding:
    """One line of the report: what was looked for, what was found, what to do."""

    name: str
    found: str
    remedy: str | None  # None where all is well


@dataclass(frozen=True)
class Environment:
    """The findings; shows itself in a notebook and in a terminal.

    It is true when nothing is missing.
    """

    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return all(finding.remedy is None for finding in self.findings)

    def __repr__(self) -> str:
        width = max(len(finding.name) for finding in self.findings)
        lines = [f"{_mark(finding)} {finding.name:{width}}  {finding.found}"
                 + (f"  -> {finding.remedy}" if finding.remedy else "")
                 for finding in self.findings]
        return "\n".join([*lines, self._conclusion()])

    def _conclusion(self) -> str:
        missing = sum(finding.remedy is not None for finding in self.findings)
        return "All is there." if not missing else (
            f"{missing} to look at: the arrows say what to do. `make lab` installs"
            " everything in one step.")

    def _repr_mimebundle_(self, include=None, exclude=None):
        rows = "".join(
            "<tr>" + "".join(f'<td style="text-align:left">{html.escape(cell)}</td>'
                             for cell in (_mark(finding), finding.name, finding.found,
                                          finding.remedy or "")) + "</tr>"
            for finding in self.findings)
        heads = "".join(f'<th style="text-align:left">{words}</th>'
                        for words in ("", "what", "found", "what to do"))
        table = (f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
                 f"<p>{html.escape(self._conclusion())}</p>")
        return {"text/plain": repr(self), "text/html": table}


def _mark(finding: Finding) -> str:
    return "✔" if finding.remedy is None else "✘"


def check_environment() -> Environment:
    """Python, the packages of the course with their versions, and the devices.

    Never raises for what is missing or too old: it says what to do.
    """
    packages = [check_package(*needed) for needed in NEEDED]
    return Environment((check_python(), *packages, check_devices()))


def check_python(running: tuple[int, ...] | None = None) -> Finding:
    """Is this Python new enough? ``running`` is its version, e.g. (3, 12, 1)."""
    running = running or tuple(sys.version_info[:3])
    found = f"{'.'.join(map(str, running))} on {platform.system()}"
    if running[:2] >= OLDEST_PYTHON:
        return Finding("Python", found, None)
    oldest = ".".join(map(str, OLDEST_PYTHON))
    return Finding("Python", found, f"install Python {oldest} or newer, then start"
                   " again with `make lab`")


def check_package(name: str, oldest: str, purpose: str) -> Finding:
    """Is a package there, and new enough? ``oldest`` is a version such as "2.2"."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return Finding(name, "missing", f"needed for {purpose}: pip install {name}")
    if numbers(found) >= numbers(oldest):
        return Finding(name, found, None)
    return Finding(name, found, f"{oldest} or newer is needed for {purpose}:"
                   f" pip install --upgrade {name}")


def numbers(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, for comparing.

    >>> numbers("2.13.0+cpu"), numbers("0.2.2.post0")
    ((2, 13, 0), (0, 2, 2))
    """
    release = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in release.group().split(".")) if release else ()


def check_devices() -> Finding:
    """Where tensors can live here. The CPU is enough for every page."""
    try:
        import torch
    except ImportError:
        return Finding("devices", "unknown without torch", "pip install torch")
    found = [f"CPU, {os.cpu_count()} cores, {torch.get_num_threads()} threads in torch"]
    if torch.cuda.is_available():
        found.append(f"CUDA: {torch.cuda.get_device_name(0)}")
    if torch.backends.mps.is_available():
        found.append("MPS (Apple)")
    return Finding("devices", "; ".join(found), None)
