"""All tests of the course in one pytest run: ``make test``, ``make test-slow``.

The package's tests, the examples in its docstrings, every page compared with its stored
outputs by nbval, and the browser tests, on two workers; a page or a test file stays on
one worker. tests/conftest.py puts the families in order and prints the seconds of each.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402
import bubblewrap  # noqa: E402
import build  # noqa: E402

WORKERS = "2"
CELL_SECONDS = "120"
# Set by the caller, these would lead our Python elsewhere, or have each of its many
# processes translate every module anew.
NOT_OURS = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS")
IN_A_BROWSER = ("--ignore=tests/browser", "--ignore=tests/site",
                "--ignore=tests/grading/test_hub.py")
NO_BROWSER = """\
The browser tests did NOT run: there is no Chromium here and none could be installed.
Install Chromium or Google Chrome, or name one with CHROMIUM=/its/path; to run the other
tests alone: make test BROWSER=skip
"""


def browser_options(environment: dict[str, str]) -> list[str]:
    """Name the browser for the tests; without one, leave them out and say so."""
    if environment.get("BROWSER") == "skip":
        print("The browser tests are left out: BROWSER=skip.", flush=True)
        return list(IN_A_BROWSER)
    program = browser.find_or_install()
    if program is None:
        print(NO_BROWSER, flush=True)
        environment["CHROMIUM"] = ""
        return list(IN_A_BROWSER)
    environment["CHROMIUM"] = program
    return []


def pytest_command(slow: bool, environment: dict[str, str]) -> list[str]:
    pages = [build.page_of(source) for source in build.page_sources()]
    built = [str(page.relative_to(build.ROOT)) for page in pages if page.exists()]
    which = ["-m", "slow"] if slow else ["--nbval", "--nbval-current-env",
                                         f"--nbval-cell-timeout={CELL_SECONDS}", *built]
    return [sys.executable, "-m", "pytest", "tests", "apex_lessons", *which, "-q",
            "-n", WORKERS, "--dist", "loadfile", "--no-loadscope-reorder",
            *browser_options(environment), *bubblewrap.options(environment),
            *shlex.split(environment.get("TEST_OPTIONS", ""))]


def main(arguments: list[str]) -> int:
    environment = {name: value for name, value in os.environ.items()
                   if name not in NOT_OURS}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONNOUSERSITE": "1",
                    "PYTHONUNBUFFERED": "1",
                    "MPLCONFIGDIR": str(Path(sys.prefix, "cache", "matplotlib"))}
    command = pytest_command("--slow" in arguments, environment)
    try:
        return subprocess.run(command, cwd=build.ROOT, env=environment).returncode
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
