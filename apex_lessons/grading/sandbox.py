"""The walls around a submission: bubblewrap's namespaces, then process limits.

Inside there is no network and no other process; the Python environment and
``apex_lessons`` can be read, a small folder in memory can be written, and nothing else
is there: no assignment, no other submission, no home folder. Without bubblewrap nothing
is graded, unless a teacher says ``--unsafe-without-sandbox``.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from apex_lessons.grading import seccomp

PACKAGE = Path(__file__).resolve().parent.parent
COURSE, BOX = "/course", "/box"  # the package and the folder to write in, inside
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/nix/store", "/etc/ld.so.cache",
          "/etc/alternatives")
FIRST_USER, USERS = 61_200, 4_000  # numbers that no real account has
STARTS = itertools.count()
HOW_TO_GET = """\
Grading needs the sandbox bubblewrap, because a submission is a stranger's program.
{problem}
Debian, Ubuntu: sudo apt-get install bubblewrap (0.7 or newer). Where it is there but
may not make namespaces, allow them: sysctl kernel.unprivileged_userns_clone=1, on
Ubuntu kernel.apparmor_restrict_unprivileged_userns=0, for Docker --privileged. It is
for Linux only: elsewhere use a Linux machine or WSL 2. --unsafe-without-sandbox runs
submissions with your own rights, under process limits alone."""


class NoSandbox(OSError):
    """There is no sandbox on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use; a step is one cell or one line of the rubric."""

    seconds: float = 60.0  # of processor time, all steps and new starts together
    memory: int = 2000  # MB, all processes together
    processes: int = 64  # and threads
    folder: int = 64  # MB of files
    answers: int = 8  # MB of answers
    start: float = 120.0  # seconds until Python and torch are there
    patience: float = 5.0  # seconds on the clock for each second of processor time

    @property
    def step(self) -> float:
        """Seconds of processor time for one step."""
        return self.seconds / 6

    def both(self, seconds: float) -> tuple[float, float]:
        """(seconds of processor time, seconds on the clock) that belong together."""
        return seconds, self.patience * seconds


def command(mode: str, hide: tuple[str, ...] = (),
            filter_at: int | None = None) -> list[str]:
    """The words that start the runner; ``mode`` as ``find_mode`` gives it.

    ``hide``: folders that must not be seen even where they lie in a folder that is.
    """
    runner = Path(COURSE, "apex_lessons") if mode != "none" else PACKAGE
    python = [sys.executable, "-I", "-S", "-B", str(runner / "grading" / "runner.py")]
    if mode == "none":
        return python
    words = ["bwrap", "--unshare-ipc", "--unshare-pid", "--unshare-net",
             "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent",
             "--new-session", "--clearenv"]
    if mode == "user":
        words += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
    else:
        words += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID",
                  "--cap-add", "CAP_SETGID"]
    words += [*_folders(hide), "--chdir", BOX]
    for name, value in environment(BOX).items():
        words += ["--setenv", name, value]
    return words + (["--seccomp", str(filter_at)] if filter_at else []) + python


def _folders(hide: tuple[str, ...]) -> list[str]:
    seen = [*SYSTEM, *python_folders()]
    words = _parents([*seen, f"{COURSE}/apex_lessons"])
    for folder in seen:
        if os.path.islink(folder) and folder in SYSTEM:
            words += ["--symlink", os.readlink(folder), folder]
        elif os.path.exists(folder):
            words += ["--ro-bind", folder, folder]
    for folder in hide:
        if any(Path(folder).is_relative_to(one) for one in seen):
            words += ["--tmpfs", folder, "--remount-ro", folder]
    size = str(Limits.folder << 20)
    return [*words, "--ro-bind", str(PACKAGE), f"{COURSE}/apex_lessons",
            "--proc", "/proc", "--dev", "/dev",
            "--dev-bind", "/dev/null", "/dev/zero",  # its pages are shared memory
            "--size", size, "--perms", "1777",
            "--tmpfs", BOX, "--size", "1048576", "--perms", "1777", "--tmpfs",
            "/dev/shm", "--remount-ro", "/dev", "--remount-ro", "/"]


def _parents(folders: list[str]) -> list[str]:
    """The folders above, open to all; bubblewrap would make them its owner's alone."""
    above = {str(parent) for folder in folders for parent in Path(folder).parents}
    return [word for folder in sorted(above - {"/", *folders})
            for word in ("--perms", "0755", "--dir", folder)]


def python_folders() -> list[str]:
    """The folders of the running Python: its environment and what that stands on."""
    folders = {sys.prefix, sys.base_prefix, sys.exec_prefix,
               os.path.dirname(os.path.dirname(os.path.realpath(sys.executable)))}
    return sorted(str(Path(folder)) for folder in folders - {"/", "/usr"})


def import_path(mode: str) -> list[str]:
    """Where the runner finds packages: the course's own first."""
    paths = sysconfig.get_paths()
    course = COURSE if mode != "none" else str(PACKAGE.parent)
    return list(dict.fromkeys([course, paths["purelib"], paths["platlib"]]))


def environment(home: str) -> dict[str, str]:
    """All environment variables that a submission sees."""
    return {"HOME": home, "TMPDIR": home, "MPLCONFIGDIR": home, "MPLBACKEND": "Agg",
            "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "student",
            "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0"}


def start(mode: str, hide: tuple[str, ...] = ()) -> subprocess.Popen:
    """Start the runner with pipes on its input, its events and its complaints."""
    if mode == "none":
        return _start_unsafe()
    code = seccomp.program()
    read = None
    if code is not None:
        read, write = os.pipe()
        os.write(write, code)
        os.close(write)
    try:
        return subprocess.Popen(command(mode, hide, read), stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                pass_fds=[read] if read else [], env=environment(BOX))
    finally:
        if read is not None:
            os.close(read)


def _start_unsafe() -> subprocess.Popen:
    home = tempfile.mkdtemp(prefix="submission-")
    process = subprocess.Popen(command("none"), stdin=subprocess.PIPE, cwd=home,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment(home), start_new_session=True)
    process.home = home
    return process


def user_for(mode: str) -> int:
    """The number of the user that the runner becomes; 0: it stays who it is.

    Another one each time: the kernel counts processes by user, and only root is exempt.
    """
    if mode != "root":
        return 0
    return FIRST_USER + (64 * os.getpid() + next(STARTS)) % USERS


@functools.cache
def find_mode() -> str:
    """How this machine makes a sandbox: "root" or "user". NoSandbox where it cannot."""
    if shutil.which("bwrap") is None:
        raise NoSandbox(HOW_TO_GET.format(problem="The program bwrap is not here."))
    said = ""
    for mode in ("root", "user") if os.geteuid() == 0 else ("user",):
        words = command(mode)
        words = words[:words.index(sys.executable) + 1] + ["-I", "-S", "-c", ""]
        done = subprocess.run(words, capture_output=True, encoding="utf-8",
                              errors="replace", env=environment(BOX))
        if done.returncode == 0:
            return mode
        said = done.stderr.strip()[-300:]
    raise NoSandbox(HOW_TO_GET.format(problem=f"bwrap is here, but says: {said}"))
