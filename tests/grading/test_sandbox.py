"""The walls: what is inside, what each machine can make, what is said where none is."""

import os
import subprocess
import sys

import pytest

from apex_lessons.grading import sandbox, seccomp
from apex_lessons.grading.sandbox import Limits
from apex_lessons.grading.submission import run_submission
from tests.grading import tiny


def inside(mode, program, hide=()):
    """What a program prints that runs in the runner's place."""
    words = sandbox.command(mode, hide)
    words = words[:words.index(sys.executable) + 1] + ["-I", "-S", "-c", program]
    done = subprocess.run(words, capture_output=True, encoding="utf-8", env={})
    assert done.returncode == 0, done.stderr
    return done.stdout


def modes():
    return ["root", "user"] if os.geteuid() == 0 else ["user"]


@pytest.mark.parametrize("mode", modes())
def test_only_the_environment_and_the_package_are_inside(mode):
    seen = inside(mode, "import os; print(*os.listdir('/course'), *os.listdir('/box'),"
                        " *os.listdir('/dev/shm'), *sorted(os.environ))").split()
    assert seen == ["apex_lessons", *sorted({*sandbox.environment("/box"), "PWD"})]
    top = set(inside(mode, "import os; print(*os.listdir('/'))").split())
    assert not top & {"home", "mnt", "media", "srv", "var", "sys", "boot"}


@pytest.mark.parametrize("mode", modes())
def test_no_device_gives_memory_that_is_not_counted(mode):
    """A shared mapping of /dev/zero keeps pages that no process seems to hold."""
    same = inside(mode, "import os; print(os.stat('/dev/zero').st_rdev =="
                        " os.stat('/dev/null').st_rdev)")
    assert same == "True\n"


@pytest.mark.parametrize("mode", modes())
def test_the_package_inside_holds_no_assignment(mode):
    names = inside(mode, "import os; print(*[name for _, _, names in os.walk('/course')"
                         " for name in names])").split()
    assert "runner.py" in names and "hidden.py" not in names


def test_a_folder_that_lies_in_the_environment_is_covered(tmp_path, monkeypatch):
    """Someone keeps the course, or the submissions, inside of a virtual environment."""
    secret = tmp_path / "environment" / "assignments"
    secret.mkdir(parents=True)
    (secret / "hidden.py").write_bytes(b"x")
    python_folders = [*sandbox.python_folders(), str(tmp_path / "environment")]
    monkeypatch.setattr(sandbox, "python_folders", lambda: python_folders)
    look = f"import os; print(os.listdir({str(secret)!r}))"
    assert inside(sandbox.find_mode(), look) == "['hidden.py']\n"
    assert inside(sandbox.find_mode(), look, (str(secret),)) == "[]\n"


@pytest.mark.parametrize("mode", modes())
def test_both_kinds_of_walls_run_a_submission(tmp_path, mode):
    """As root without a namespace for users, and as anyone with one."""
    _, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    who = tiny.code("import os\nraise Exception(f'{os.getuid()} {os.getgroups()}')")
    record = run_submission(tiny.notebook([*tiny.cells(), who]), plan, Limits(), mode)
    assert record.failed == "" and len(record.answers) == 4
    (error,) = record.cells.values()
    number = int(error.rpartition("Exception: ")[2].split()[0])
    assert number == 1000 if mode == "user" else 61_200 <= number < 65_200


def test_without_bubblewrap_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    wanted = "(?s)not here.*apt-get install bubblewrap"
    with pytest.raises(sandbox.NoSandbox, match=wanted):
        sandbox.find_mode.__wrapped__()


def test_a_bubblewrap_that_may_not_is_quoted(monkeypatch, tmp_path):
    program = tmp_path / "bwrap"
    program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new"
                       " namespace' >&2\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sandbox, "environment", lambda home: {"PATH": str(tmp_path)})
    with pytest.raises(sandbox.NoSandbox, match="No permissions to create new"):
        sandbox.find_mode.__wrapped__()


def test_the_filter_is_a_program_for_each_machine():
    for machine in seccomp.MACHINES:
        code = seccomp.program(machine)
        steps = [code[place:place + 8] for place in range(0, len(code), 8)]
        assert all(len(step) == 8 for step in steps) and len(steps) < 4096
        for number, step in enumerate(steps):  # every jump stays inside
            assert number + 1 + max(step[2], step[3]) < len(steps) or step[0] == 6


def test_without_a_sandbox_limits_still_hold(tmp_path):
    _, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    data = tiny.notebook(tiny.cells(scale="while True: pass\n"))
    record = run_submission(data, plan, Limits(seconds=6), "none")
    assert record.stopped == {"scale": "time"} and len(record.answers["norm/0"]) == 2
