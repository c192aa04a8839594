"""Find bubblewrap for the grading tests, or install it.

Grading runs strangers' programs in its sandbox. It exists for Linux only; there an
administrator of a Debian or Ubuntu machine gets the system's package.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import browser  # noqa: E402

# The tests that start sandboxes, or look at processes as Linux shows them.
TESTS = ("tests/grading/test_hostile.py", "tests/grading/test_sandbox.py",
         "tests/grading/test_class.py", "tests/grading/test_hub.py",
         "tests/assignments/test_graded.py")
TRIAL = ["bwrap", "--ro-bind", "/", "/", "--unshare-pid", "--unshare-net", "true"]
NONE = """\
The tests of grading did NOT run: there is no sandbox here, bubblewrap is missing or may
not make namespaces, and could not be installed. `python -m apex_lessons grade` says how
to get it; to run the other tests alone: make test SANDBOX=skip
"""


def works() -> bool:
    """Whether bubblewrap is here and may do its work."""
    try:
        done = subprocess.run(TRIAL, capture_output=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def find_or_install() -> bool:
    """Is there a sandbox, at last?"""
    if not works() and browser.may_install_packages():
        print("No bubblewrap here: installing the system's package.", flush=True)
        browser.run_quietly(["apt-get", "update"], browser.PACKAGE_SECONDS)
        browser.run_quietly(["apt-get", "install", "-y", "--no-install-recommends",
                             "bubblewrap"], browser.PACKAGE_SECONDS)
    return works()


def options(environment: dict[str, str]) -> list[str]:
    """What pytest is told: nothing, or which tests to leave out, and that in words."""
    if sys.platform != "linux":
        print("The tests of grading's sandbox are left out: it is for Linux.",
              flush=True)
    elif environment.get("SANDBOX") == "skip":
        print("The tests of grading's sandbox are left out: SANDBOX=skip.",
              flush=True)
    elif find_or_install():
        return []
    else:
        print(NONE, flush=True)
    return [f"--ignore={test}" for test in TESTS]
