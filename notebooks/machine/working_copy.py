"""The reader's own copy of the pages, ``my-course/``, and JupyterLab opened on it.

    python notebooks/machine/working_copy.py lab          what `make lab` runs
    python notebooks/machine/working_copy.py copy         the copy, without JupyterLab
    python notebooks/machine/working_copy.py reset 03     a fresh page 03, yours kept

The pages in ``notebooks/`` are never opened for writing, so trying things out cannot
break an update of the course or its tests. A page that the reader did not change
follows the course; one that he changed is his, and is never overwritten. "Changed"
means its cells: running a page changes its outputs only.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES, COPY = ROOT / "notebooks", ROOT / "my-course"
RECORD = ".originals.json"  # what each page was when it was copied
NOT_FOR_READERS = {"machine", "__pycache__"}
FIRST_PAGE = "00-start-here.ipynb"


def fingerprint(path: Path) -> str:
    """A page's cells, or any other file's bytes, as one short word."""
    content = path.read_bytes()
    if path.suffix == ".ipynb":
        content = cells_of(content)
    return hashlib.sha256(content).hexdigest()[:16]


def cells_of(content: bytes) -> bytes:
    """A page's cells without outputs; all of it where it no longer reads as a page."""
    try:
        cells = json.loads(content)["cells"]
        return json.dumps([[cell["cell_type"], "".join(cell["source"])]
                           for cell in cells]).encode("utf-8")
    except (ValueError, KeyError, TypeError):
        return content


def originals(pages: Path = PAGES) -> dict[str, Path]:
    """Every file a reader gets, by its name inside the copy: pages, pictures, data."""
    found = {}
    for path in sorted(pages.rglob("*")):
        inside = path.relative_to(pages)
        hidden = any(part.startswith(".") or part in NOT_FOR_READERS
                     for part in inside.parts)
        if path.is_file() and not hidden and path.suffix != ".py":
            found[inside.as_posix()] = path
    return found


def read_record(copy: Path) -> dict[str, str]:
    try:
        return json.loads((copy / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def write_record(copy: Path, record: dict[str, str]) -> None:
    unfinished = copy / f"{RECORD}.new"
    unfinished.write_text(json.dumps(record, indent=1, sort_keys=True),
                          encoding="utf-8")
    os.replace(unfinished, copy / RECORD)


def put(original: Path, target: Path) -> None:
    """Copy in one step, writable even where the course itself is read-only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.new")
    shutil.copyfile(original, unfinished)
    os.replace(unfinished, target)


def refresh(pages: Path = PAGES, copy: Path = COPY) -> list[str]:
    """Bring the copy up to date; leave the reader's work alone; say what was done."""
    copy.mkdir(exist_ok=True)
    record, told = read_record(copy), []
    for name, original in originals(pages).items():
        target, now = copy / name, fingerprint(original)
        theirs = fingerprint(target) if target.exists() else None
        if theirs is None:
            put(original, target)
        elif now not in (theirs, record.get(name)):  # the course has changed since
            if theirs != record.get(name):  # and so has the reader
                told.append(newer_version(name))
                continue
            put(original, target)
            told.append(f"{name}: renewed, the course has a newer version")
        record[name] = now
    write_record(copy, record)
    return told


def newer_version(name: str) -> str:
    number = name[:2] if name[:2].isdigit() else name
    return (f"{name}: yours is kept as you changed it; the course has a newer version."
            f" `make reset PAGE={number}` gives you that one and keeps yours beside it")


def find_page(word: str, pages: Path = PAGES) -> str:
    """The page meant by ``03``, ``3``, ``03-rope`` or ``03-rope.ipynb``."""
    names = [name for name in originals(pages) if name.endswith(".ipynb")]
    stem = word.strip().removesuffix(".ipynb")
    wanted = f"{int(stem):02d}-" if stem.isdigit() else stem
    found = [name for name in names if name.removesuffix(".ipynb") == wanted
             or (stem.isdigit() and name.startswith(wanted))]
    if len(found) != 1:
        which = "say which page: make reset PAGE=03"
        seen = f"there is no page {word!r}" if stem else which
        raise LookupError(f"{seen}. The pages are: {', '.join(names)}")
    return found[0]


def beside(target: Path) -> Path:
    """A free name for the reader's version: ``03-rope.mine.ipynb``, ``.mine-2`` …"""
    number = 1
    while True:
        ending = "mine" if number == 1 else f"mine-{number}"
        free = target.with_name(f"{target.stem}.{ending}{target.suffix}")
        if not free.exists():
            return free
        number += 1


def reset(word: str, pages: Path = PAGES, copy: Path = COPY) -> str:
    """Give a fresh page; a page that the reader changed is kept under another name."""
    name = find_page(word, pages)
    copy.mkdir(exist_ok=True)
    original, target, record = pages / name, copy / name, read_record(copy)
    told = f"{copy.name}/{name} is fresh."
    if target.exists() and fingerprint(target) not in (fingerprint(original),
                                                       record.get(name)):
        kept = beside(target)
        os.replace(target, kept)
        told += f" Your version is now {copy.name}/{kept.name}."
    put(original, target)
    write_record(copy, record | {name: fingerprint(original)})
    return told


# --- JupyterLab -----------------------------------------------------------------------

def lab_command(options: list[str]) -> list[str]:
    """JupyterLab on the copy: no news, no updates, nothing else from the network."""
    as_root = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    first = f"{COPY.name}/{FIRST_PAGE}" if (COPY / FIRST_PAGE).exists() else COPY.name
    return [sys.executable, "-m", "jupyterlab",
            f"--ServerApp.root_dir={ROOT}", "--ServerApp.log_level=WARN",
            '--ServerApp.jpserver_extensions={"jupyterlab_jupytext": False}',
            f"--LabApp.default_url=/lab/tree/{first}",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None", "--LabApp.extension_manager=readonly",
            *as_root, *options]


def quiet_settings() -> None:
    """Answer Lab's question about news with no, before it asks."""
    folder = Path(sys.prefix, "share", "jupyter", "lab", "settings")
    folder.mkdir(parents=True, exist_ok=True)
    quiet = {"@jupyterlab/apputils-extension:notification":
             {"fetchNews": "false", "checkForUpdates": False}}
    (folder / "overrides.json").write_text(json.dumps(quiet), encoding="utf-8")


def lab_environment() -> dict[str, str]:
    """Our kernel and our packages, whatever else is installed for this user."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"JUPYTER_PREFER_ENV_PATH": "1", "PYTHONNOUSERSITE": "1",
                   "MPLCONFIGDIR": str(Path(sys.prefix, "cache", "matplotlib"))}


def lab(options: list[str]) -> int:
    for line in refresh(PAGES, COPY):
        print(line)
    quiet_settings()
    print(f"Your copy of the course is {COPY.name}/; it opens in your browser now."
          " To stop: Ctrl-C, twice.", flush=True)
    command = lab_command(options)
    if os.name == "nt":
        import subprocess
        return subprocess.run(command, env=lab_environment(), cwd=ROOT).returncode
    os.chdir(ROOT)
    os.execve(command[0], command, lab_environment())


def main(words: list[str]) -> int:
    if words[:1] == ["lab"]:
        return lab([*shlex.split(os.environ.get("LAB_OPTIONS", "")), *words[1:]])
    if words == ["copy"]:
        print("\n".join([*refresh(PAGES, COPY),
                         f"Your copy of the course is {COPY.name}/."]))
        return 0
    if words[:1] == ["reset"]:
        try:
            print(reset(" ".join(words[1:]), PAGES, COPY))
        except LookupError as error:
            print(error.args[0], file=sys.stderr)
            return 2
        return 0
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
