"""The pages with their explorers' state: run anew, or as they are stored.

`run_anew` runs a page from its text source in a fresh kernel, as ``make notebooks``
does, and keeps what the widgets hold. A page takes ten seconds and more, so it stays in
``build/site`` until the source, the package or the packages it needs change.

`as_stored` takes the page from git, whose outputs the tests have just compared with a
fresh run, and makes only its explorers anew, in this process. Both give the same
notebook; tests/site/test_collect.py compares them.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

from notebooks.machine import build

STATE = "application/vnd.jupyter.widget-state+json"
EXPLORER = "[explorer] "
KEPT = build.ROOT / "build" / "site" / "pages"
# What every widget has for a kernel to talk to a page; the rest is the explorer's own.
OTHERS = {"_anywidget_id", "_dom_classes", "_model_module", "_model_module_version",
          "_model_name", "_view_count", "_view_module", "_view_module_version",
          "_view_name", "layout", "tabbable", "tooltip"}


class Stale(ValueError):
    """A stored page does not show what its source gives."""


def outputs_of(notebook) -> Iterator:
    """(cell, output) for every output that holds data."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "data" in output:
                yield cell, output


def own_state(state: dict[str, Any]) -> dict[str, Any]:
    """The settings, the script and the style of an anywidget.

    >>> own_state({"layout_q": "half", "layout": "IPY_MODEL_1"})
    {'layout_q': 'half'}
    """
    return {name: value for name, value in state.items() if name not in OTHERS}


# --- from git -----------------------------------------------------------------------

def as_stored(source: Path):
    """The stored page; its explorers get the state that they open with."""
    notebook = nbformat.read(build.page_of(source), as_version=4)
    names: dict[str, Any] = {}
    for cell, output in outputs_of(notebook):
        if output.data.get("text/plain", "").startswith(EXPLORER):
            names = names or imports_of(notebook)
            output.data[STATE] = state_of_explorer(cell, output, names, source.name)
    return notebook


def imports_of(notebook) -> dict[str, Any]:
    """What a page's import lines make known: an explorer's cell needs nothing else."""
    names: dict[str, Any] = {}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for line in ast.parse(cell.source).body:
                if isinstance(line, (ast.Import, ast.ImportFrom)):
                    exec(compile(ast.Module([line], []), "imports", "exec"), names)
    return names


def state_of_explorer(cell, output, names: dict[str, Any], page: str) -> dict[str, Any]:
    last = ast.parse(cell.source).body[-1]
    try:
        explorer = eval(ast.unparse(last), dict(names))
        sentence = f"{EXPLORER}{explorer.alt()}"
    except (NameError, AttributeError) as error:
        raise Stale(f"{page}: an explorer's cell may use the page's imports only, and "
                    f"this one is {cell.source!r} ({error})") from error
    machine = build.MACHINE in cell.metadata.get("tags", [])
    if sentence != output.data["text/plain"] and not machine:
        raise Stale(f"{page}: {cell.source!r} does not give the picture that is "
                    "stored; run make notebooks")
    state = own_state(explorer.get_state())
    explorer.close()
    return state


# --- run anew -----------------------------------------------------------------------

def digest_of(source: Path) -> str:
    """Changes when anything does that the page's outputs can depend on."""
    package = build.ROOT / "apex_lessons"
    files = sorted(path for path in package.rglob("*") if path.is_file()
                   and "__pycache__" not in path.parts)
    total = hashlib.sha256()
    for path in (source, build.page_of(source), Path(build.__file__), Path(__file__),
                 build.ROOT / "requirements.lock", *files):
        content = path.read_bytes() if path.exists() else b""
        total.update(f"{path.name} {len(content)} ".encode() + content)
    return total.hexdigest()[:16]


def run_anew(source: Path, progress=lambda done, total: None):
    """The page as a fresh kernel gives it, kept until what it depends on changes."""
    kept = KEPT / f"{source.stem}-{digest_of(source)}.ipynb"
    if not kept.exists():
        notebook = build.read_source(source)
        build.execute(notebook, progress, widgets=True)
        states = states_by_place(notebook)
        build.normalise(notebook)
        build.keep_machine_outputs(notebook, build.page_of(source))
        put_back(notebook, states)
        KEPT.mkdir(parents=True, exist_ok=True)
        for outdated in KEPT.glob(f"{source.stem}-*.ipynb"):
            outdated.unlink()
        build.write_whole(kept, nbformat.writes(notebook))
    return nbformat.read(kept, as_version=4)


def places(notebook) -> Iterator:
    """(where, output) for every output: its cell's id and which picture of it it is."""
    counts: dict[str, int] = {}
    for cell, output in outputs_of(notebook):
        counts[cell.id] = counts.get(cell.id, 0) + 1
        yield (cell.id, counts[cell.id]), output


def states_by_place(notebook) -> dict[tuple[str, int], dict[str, Any]]:
    """The state of each anywidget that an output shows."""
    stored = notebook.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
    found = {}
    for place, output in places(notebook):
        view = output.data.get(build.WIDGET_VIEW)
        state = stored.get(view["model_id"], {}).get("state", {}) if view else {}
        if "_esm" in state:
            found[place] = json.loads(json.dumps(own_state(state)))
    return found


def put_back(notebook, states: dict[tuple[str, int], dict[str, Any]]) -> None:
    """Each state beside its picture; a ``machine`` cell's picture is the stored one."""
    for place, output in places(notebook):
        if place in states:
            output.data[STATE] = states[place]
