"""A Linux machine of the test's own, for a hub: its accounts, homes and folders.

It is bubblewrap's. Programs see the system and this Python read-only, and what a
temporary folder holds as /home, /srv and /etc; the network is the real machine's, so
that a browser can come in. Not run by root there can be one account only: ``jovyan``,
as in many containers, and JUPYTERHUB_USER tells who is who.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from apex_lessons.grading.sandbox import SYSTEM, python_folders

IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
USERS = {"teacher": 61_001, "anna": 61_002, "ben": 61_003, "eve": 61_004}
ACCOUNTS = USERS | {"root": 0} if IS_ROOT else {"jovyan": 1000}
PASSWORD = "in a test only"
HASH = ("$6$hub$L.Sc9xqsNJ8ZwVIsIEJ9t1GNUktBYbzYszsS4rFPNvC/5i4R.rPxVewyBw0tx."
        "kPjgiWgSJwpjwFjzmBua5PJ/")  # openssl passwd -6 -salt hub "in a test only"
ETC = {
    "passwd": "".join(f"{name}:x:{number}:{number}::/home/{name}:/bin/sh\n"
                      for name, number in ACCOUNTS.items()),
    "group": "".join(f"{name}:x:{number}:\n" for name, number in ACCOUNTS.items()),
    "shadow": "".join(f"{name}:{HASH}:20000::::::\n" for name in ACCOUNTS),
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "hosts": "127.0.0.1 localhost\n",
    "pam.d/login": "auth required pam_unix.so\naccount required pam_unix.so\n",
}
APART = ["bwrap", "--unshare-pid", "--unshare-ipc", "--die-with-parent",
         "--new-session", "--clearenv"]
ONE_USER = ["--unshare-user", "--uid", "1000", "--gid", "1000"]


class Machine:
    """Runs and starts programs as one of its users; ``close`` ends them all."""

    def __init__(self, folder: Path):
        self.folder, self.running = folder, []
        for name, text in ETC.items():
            self.make("etc", name).parent.mkdir(parents=True, exist_ok=True)
            self.make("etc", name).write_text(text, encoding="utf-8")
        for name in ("home", "srv"):
            self.give(name, 0, 0o755)
        for name, number in USERS.items():
            self.give(f"home/{name}", number, 0o700)

    def make(self, *names: str) -> Path:
        """Where a path of the machine really is."""
        return self.folder.joinpath(*names)

    def give(self, name: str, number: int, mode: int) -> Path:
        """Make a folder that belongs to the user of this number."""
        folder = self.make(name)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
        if IS_ROOT:
            os.chown(folder, number, number)
        return folder

    def words(self, user: str, folder: str, environment: dict[str, str]) -> list[str]:
        """What stands before a program that ``user`` runs in ``folder``."""
        words = [*APART, *([] if IS_ROOT else ONE_USER)]
        words += ["--perms", "1777", "--tmpfs", "/tmp"]
        for name in ("home", "srv"):
            words += ["--bind", str(self.make(name)), f"/{name}"]
        words += system()  # after /home and /tmp: this Python may lie in one of them
        for path in sorted(self.make("etc").iterdir()):
            words += ["--ro-bind", str(path), f"/etc/{path.name}"]
        words += ["--proc", "/proc", "--dev", "/dev", "--chdir", folder]
        for name, value in environment.items():
            words += ["--setenv", name, value]
        number = USERS.get(user, 0)
        become = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"]
        return words + (become if IS_ROOT and number else [])

    def environment(self, user: str) -> dict[str, str]:
        programs = Path(sys.prefix, "bin")
        home = f"/home/{user}" if user in USERS else "/srv"
        return {"HOME": home, "PATH": f"{programs}:/usr/bin:/bin:/usr/sbin:/sbin",
                "LANG": "C.UTF-8", "USER": user, "JUPYTERHUB_USER": user,
                "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def run(self, user: str, command: list[str], folder: str = "/srv",
            **more: str) -> subprocess.CompletedProcess:
        """Run a program to its end."""
        environment = self.environment(user) | more
        return subprocess.run(self.words(user, folder, environment) + command,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8",
                              errors="replace", timeout=120)

    def start(self, user: str, command: list[str], **more: str) -> subprocess.Popen:
        """Start a program that runs until ``close``."""
        environment = self.environment(user) | more
        log = self.make(f"{Path(command[0]).name}.log").open("wb")
        process = subprocess.Popen(self.words(user, "/srv", environment) + command,
                                   stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.running.append(process)
        log.close()
        return process

    def log(self, program: str) -> str:
        text = self.make(f"{program}.log").read_text(encoding="utf-8", errors="replace")
        return text[-6000:]

    def close(self) -> None:
        for process in self.running:
            process.kill()
            process.wait(20)


def system() -> list[str]:
    """bubblewrap's words for the system and this Python, read-only."""
    seen = [*SYSTEM, "/sbin", *python_folders()]
    above = {str(one) for place in seen for one in Path(place).parents} | {"/etc"}
    words = []
    for place in sorted(above - {"/", *seen}):
        words += ["--perms", "0755", "--dir", place]
    for place in seen:
        if os.path.islink(place):
            words += ["--symlink", os.readlink(place), place]
        elif os.path.exists(place):
            words += ["--ro-bind", place, place]
    return words


def until(true, seconds: float, what) -> None:
    """Wait until ``true()``; when it does not come, ``what()`` says why."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.2)
