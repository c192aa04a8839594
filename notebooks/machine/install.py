"""Make the course's own environment, ``.venv``, or leave it when nothing changed.

``make`` runs this before every command; without make: ``python
notebooks/machine/install.py``. Python's own library is all it needs. torch goes in
first and alone, since its right build
depends on the machine; then everything else as requirements.lock says, hashes checked.
An install that was interrupted, or that failed, is taken up again by the next call.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import locale
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
STATE = VENV / "apex-lessons.json"
BUSY = ROOT / ".venv-in-use"
TORCH = "torch==2.13.0"
TORCH_INTEL_MAC = "torch==2.2.2"  # the last one made for Macs with an Intel processor
OLDEST_PYTHON = (3, 11)
NEWEST_INTEL_MAC_PYTHON = (3, 12)
GIGABYTE = 1e9
SPACE_WANTED = 2.5 * GIGABYTE  # with the CPU build of torch, downloads included

NETWORK_SIGNS = re.compile(
    r"name resolution|resolve host|getaddrinfo|nodename nor servname|dns error"
    r"|unreachable|connection (refused|reset|aborted)|timed out|max retries"
    r"|error sending request|failed to fetch|from versions: none", re.IGNORECASE)
DISK_SIGNS = re.compile(r"no space left|errno 28|disk quota|not enough space",
                        re.IGNORECASE)
NO_BUILD_SIGNS = re.compile(r"no matching distribution|could not find a version",
                            re.IGNORECASE)


class Trouble(Exception):
    """What went wrong and what to do, in words for the reader."""


def venv_python() -> Path:
    """The environment's interpreter, on every system."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def base_python() -> str:
    """The Python outside of any virtual environment (ours may be what runs this)."""
    in_venv = sys.prefix != sys.base_prefix
    outside = getattr(sys, "_base_executable", sys.executable)
    return outside if in_venv else sys.executable


def default_torch() -> str:
    """The build of torch that is installed when nobody chooses another."""
    intel_mac = sys.platform == "darwin" and platform.machine() == "x86_64"
    return TORCH_INTEL_MAC if intel_mac else TORCH


def clean_environment() -> dict[str, str]:
    """The caller's environment without what would lead an installer elsewhere."""
    astray = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
              "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "UV_SYSTEM_PYTHON",
              "UV_PYTHON", "UV_TARGET", "UV_PREFIX", "UV_BREAK_SYSTEM_PACKAGES")
    kept = {name: value for name, value in os.environ.items() if name not in astray}
    for pip_name, uv_name in (("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
                              ("PIP_CERT", "SSL_CERT_FILE")):
        if pip_name in kept:
            kept.setdefault(uv_name, kept[pip_name])
    return kept | {"PYTHONNOUSERSITE": "1", "PIP_USER": "0",
                   "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONIOENCODING": "utf-8",
                   "MPLCONFIGDIR": str(VENV / "cache" / "matplotlib")}


# --- what is there already ------------------------------------------------------------

def read_state() -> dict:
    """What the last install wrote about itself; empty when there was none."""
    try:
        return json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_state(**changes) -> None:
    state = read_state() | changes
    unfinished = STATE.with_suffix(".new")
    unfinished.write_text(json.dumps(state, indent=1), encoding="utf-8")
    os.replace(unfinished, STATE)


def wanted_torch(state: dict) -> list[str]:
    """pip's words for torch: the reader's choice, an earlier one, or the default."""
    chosen = shlex.split(os.environ.get("TORCH", ""))
    if chosen:
        return chosen
    if state.get("default") == default_torch() and state.get("torch"):
        return state["torch"]
    return [default_torch()]


def interpreter_works() -> bool:
    """Whether the environment's Python still starts (an update can take it away)."""
    try:
        done = subprocess.run([str(venv_python()), "-c", ""], env=clean_environment(),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def torch_stays(state: dict) -> bool:
    """Whether the environment with its torch can be kept."""
    python_chosen = bool(os.environ.get("PYTHON", "").strip())
    same_python = state.get("python") == list(sys.version_info[:2])
    right_python = same_python or not python_chosen
    return (state.get("torch_done") is True
            and state.get("torch") == wanted_torch(state)
            and state.get("place") == str(VENV) and right_python
            and interpreter_works())


def lock_digest() -> str:
    return hashlib.sha256(LOCK.read_bytes()).hexdigest()


# --- checks before --------------------------------------------------------------------

def check_python() -> None:
    too_new = sys.version_info[:2] > NEWEST_INTEL_MAC_PYTHON
    if too_new and default_torch() == TORCH_INTEL_MAC:
        raise Trouble("On a Mac with an Intel processor the course needs Python 3.11 or"
                      " 3.12: torch\nand numpy are not made for newer ones there. Then:"
                      " make lab PYTHON=python3.12")
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        raise Trouble(f"This Python is {platform.python_version()} ({sys.executable});"
                      f" the course needs {wanted} or newer.\nInstall a newer one, then"
                      " say which: make lab PYTHON=python3.12")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Trouble("This Python cannot make virtual environments: its module `venv`"
                      " is missing.\nOn Debian or Ubuntu: sudo apt install"
                      f" python{version}-venv (then the same command again).") from None


def check_space(least: float = SPACE_WANTED) -> None:
    free = shutil.disk_usage(ROOT).free
    if free < least:
        raise Trouble(f"The disk is nearly full: {free / GIGABYTE:.1f} GB free, and the"
                      f" course needs {least / GIGABYTE:.1f} GB (with a CUDA build of"
                      " torch about 8).\nMake room, then the same command again; what"
                      " is downloaded is kept.")


def check_folder_is_ours() -> None:
    if (VENV / "pyvenv.cfg").exists() and not STATE.exists():
        raise Trouble("There is a folder .venv here that this course did not make.\n"
                      "Move it away or delete it, then the same command again.")


# --- the steps ------------------------------------------------------------------------

def say(text: str) -> None:
    print(text, flush=True)


def explain_failure(what: str, output: str) -> Trouble:
    """An installer's output read for its three usual causes."""
    if DISK_SIGNS.search(output) or shutil.disk_usage(ROOT).free < 0.05 * GIGABYTE:
        why = ("The disk is full. Make room, then the same command again;"
               " what is downloaded is kept.")
    elif NETWORK_SIGNS.search(output):
        why = ("The packages could not be reached. Is this machine connected to the"
               " internet (or its proxy set)?\nThen the same command again; it goes on"
               " from here.")
    elif NO_BUILD_SIGNS.search(output):
        why = (f"There is no such build for Python {platform.python_version()} on"
               f" {platform.system()} {platform.machine()}.\nAnother Python may have"
               " one (make lab PYTHON=python3.12), or choose another build with"
               " TORCH=\"...\".")
    else:
        why = ("The installer's own words are above. The same command again goes on"
               " from here.")
    return Trouble(f"{what} did not work.\n{why}")


def run_step(what: str, command: list[str], *, live: bool = False) -> None:
    """Run an installer and explain a failure; a ``live`` one shows its progress."""
    call = {"cwd": ROOT, "env": clean_environment(), "stdin": subprocess.DEVNULL}
    if live and sys.stdout.isatty():
        if subprocess.run(command, **call).returncode == 0:
            return
    # Else its words matter only when it fails; after a live failure, once more.
    done = subprocess.run(command, **call, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode != 0:
        heard = done.stdout.decode("utf-8", "replace")
        print(textwrap.indent(heard.rstrip(), "    "), flush=True)
        raise explain_failure(what, heard)


def make_venv(state: dict) -> None:
    """A fresh, empty environment; the state file goes in first and marks it as ours."""
    torch = wanted_torch(state)
    if VENV.exists():
        say("Removing the environment that is there: it is unfinished or out of date.")
        shutil.rmtree(VENV)
    VENV.mkdir()
    write_state(torch=torch, default=default_torch(), python=list(sys.version_info[:2]),
                place=str(VENV))
    say(f"[1/4] Making .venv with Python {platform.python_version()}")
    run_step("Making the virtual environment", [base_python(), "-m", "venv", str(VENV)])


def install_torch() -> None:
    words = read_state()["torch"]
    say(f"[2/4] Installing {words[0]} (once; it is large, so this can take minutes)")
    run_step(f"Installing {words[0]}",
             [str(venv_python()), "-m", "pip", "install", "--no-compile", *words],
             live=True)
    write_state(torch_done=True)


def uv_requirement() -> str:
    """uv's own entry of the lock file, with its hashes."""
    entry = re.search(r"^uv==.*?(?=^\S|\Z)", LOCK.read_text(encoding="utf-8"),
                      re.M | re.S)
    return entry.group(0)


def install_uv() -> None:
    with tempfile.TemporaryDirectory() as folder:
        only_uv = Path(folder) / "uv.txt"
        only_uv.write_text(uv_requirement(), encoding="utf-8")
        run_step("Installing uv",
                 [str(venv_python()), "-m", "pip", "install", "--quiet",
                  "--no-deps", "--require-hashes", "-r", str(only_uv)])


def install_packages() -> None:
    """Everything of the lock file, and nothing else: torch is there already."""
    count = len(re.findall(r"^\S+==", LOCK.read_text(encoding="utf-8"), re.M))
    say(f"[3/4] Installing {count} packages (about 150 MB), exact versions,"
        " hashes checked")
    install_uv()
    run_step("Installing the packages",
             [str(venv_python()), "-m", "uv", "pip", "install", "--quiet",
              "--python", str(venv_python()), "--no-deps", "--require-hashes",
              "-r", str(LOCK)])


def add_the_course() -> None:
    """Let the environment import ``apex_lessons`` from this folder, as it is now."""
    site = subprocess.run([str(venv_python()), "-c",
                           "import sysconfig; print(sysconfig.get_path('purelib'))"],
                          env=clean_environment(), check=True, stdout=subprocess.PIPE,
                          encoding="utf-8").stdout.strip()
    # Python 3.13 reads these files as UTF-8, older ones in the system's encoding.
    encoding = "utf-8" if sys.version_info >= (3, 13) else locale.getencoding()
    Path(site, "apex_lessons_here.pth").write_text(f"{ROOT}\n", encoding=encoding)
    say("[4/4] Looking for the fonts of the pictures")
    run_step("Looking for fonts",
             [str(venv_python()), "-c", "import matplotlib.font_manager"])


# --- one at a time --------------------------------------------------------------------

@contextlib.contextmanager
def alone():
    """Hold the folder's install lock; a second call waits for the first."""
    with open(BUSY, "a+b") as handle:
        told = False
        while not try_lock(handle):
            if not told:
                say("Another command is installing the course right now;"
                    " waiting for it.")
            told = True
            time.sleep(0.5)
        yield


def try_lock(handle) -> bool:
    """Take the lock if it is free; the system frees it when this process ends."""
    try:
        if os.name == "nt":
            import msvcrt
            handle.seek(0)
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def bring_up_to_date() -> None:
    state = read_state()
    keep = torch_stays(state)
    if keep and state.get("lock") == lock_digest():
        return
    check_folder_is_ours()
    check_space()
    start = time.monotonic()
    if not keep:
        make_venv(state)
        install_torch()
    install_packages()
    add_the_course()
    write_state(lock=lock_digest())
    say(f"Ready, after {time.monotonic() - start:.0f} s."
        " From now on this step is skipped.")


def main() -> int:
    try:
        check_python()
        with alone():
            bring_up_to_date()
    except Trouble as trouble:
        print(f"\n{trouble}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. The same command again goes on from here.",
              file=sys.stderr)
        return 130
    except OSError as error:
        print(f"\n{explain_failure('Preparing the environment', str(error))}\n"
              f"({error})",
              file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
