"""What every test stands on, and the seconds of each family of tests.

One thread, this folder's package, no network and no settings of the user. The families
run in order; under ``make test`` two workers share them, a file or a page to a worker.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
os.environ |= {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1",
               "TOKENIZERS_PARALLELISM": "false", "JUPYTER_PREFER_ENV_PATH": "1"}
os.environ.pop("MPLBACKEND", None)

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)

# The family of a test is that of the first of these that its place begins with.
FAMILIES = {
    "tests/models": "models", "apex_lessons/models": "models",
    "tests/cli": "models", "apex_lessons/cli": "models",
    "tests/figures": "figures and exercises",
    "apex_lessons/figures": "figures and exercises",
    "tests/exercises": "figures and exercises",
    "apex_lessons/exercises": "figures and exercises",
    "tests/explorers": "explorers", "apex_lessons/explorers": "explorers",
    "tests/notebooks": "notebooks", "notebooks": "notebooks",
    "tests/test_project.py": "notebooks",
    "tests/browser": "browser", "tests/site": "site",
    "tests/extrapolation": "extrapolation",
    "apex_lessons/extrapolation": "extrapolation",
    "tests/grading": "classroom", "apex_lessons/grading": "classroom",
    "tests/assignments": "classroom",
    "": "mathematics",
}
ORDER = ["mathematics", "models", "figures and exercises", "explorers", "extrapolation",
         "classroom", "notebooks", "browser", "site"]
REPORTS: dict[str, list] = {}  # family -> the reports of its tests' three phases


def family_of(nodeid: str) -> str:
    return next(family for place, family in FAMILIES.items()
                if nodeid.startswith(place))


def pytest_configure(config):
    if getattr(config.option, "nbval", False) and os.name == "posix":
        config.add_cleanup(kernels_over_local_sockets())


def kernels_over_local_sockets():
    """Give nbval's kernels files to talk over; over TCP two can take one port."""
    import nbval.kernel
    from jupyter_client.manager import KernelManager

    folder, number = tempfile.mkdtemp(prefix="nbval-"), count()

    def local_manager(**options):
        place = os.path.join(folder, f"k{next(number)}")
        return KernelManager(transport="ipc", ip=place, **options)

    nbval.kernel.KernelManager = local_manager
    os.environ["IPYTHONDIR"] = os.path.join(folder, "ipython")
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def pytest_collection_modifyitems(items):
    """One family after another; inside a family the order stays."""
    items.sort(key=lambda item: ORDER.index(family_of(item.nodeid)))


def pytest_runtest_logreport(report):
    REPORTS.setdefault(family_of(report.nodeid), []).append(report)


def pytest_terminal_summary(terminalreporter):
    """Tests and seconds by family, above pytest's own closing line."""
    if not REPORTS:
        return
    terminalreporter.section("seconds by family")
    for family in ORDER:
        reports = REPORTS.get(family, [])
        if reports:
            terminalreporter.write_line(family_line(family, reports))
    if os.environ.get("BROWSER") == "skip":
        terminalreporter.write_line("browser: left out (BROWSER=skip)")


def family_line(family: str, reports: list) -> str:
    """Work: all durations. Clock: from the first test's start to the last one's end."""
    tests = len({report.nodeid for report in reports})
    work = sum(report.duration for report in reports)
    clock = max(report.stop for report in reports) - min(report.start
                                                         for report in reports)
    return (f"{family:<22} {tests:>5} tests {work:>7.1f} s of work"
            f" {clock:>7.1f} s on the clock")


@pytest.fixture(scope="session")
def chromium():
    """One browser for all tests of a worker: Playwright allows no second one."""
    from tests.browser.conftest import running_chromium

    yield from running_chromium()
