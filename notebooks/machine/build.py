"""Text source in, executed page out: ``python notebooks/machine/build.py [PAGE ...]``.

A page is written as text (``03-rope.py``, py:percent). This program runs it from top to
bottom in a fresh kernel and writes ``03-rope.ipynb`` beside it, the same bytes every
time: ids come from the source, nothing of the machine, the clock or a widget is kept.
Without arguments it builds every page.

A cell tagged ``machine`` (timings, versions, device) is run, but keeps the output that
is stored already as long as its source is unchanged; ``--fresh`` renews it.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

FOLDER = Path(__file__).resolve().parent.parent
ROOT = FOLDER.parent
MACHINE, IGNORE = "machine", "nbval-ignore-output"
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python",
              "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
CELL_SECONDS = 120
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def page_sources(folder: Path = FOLDER) -> list[Path]:
    """The text sources of all pages, in reading order."""
    return sorted(folder.glob("[0-9][0-9]-*.py"))


def page_of(source: Path) -> Path:
    """Where the executed page of a text source stands: beside it."""
    return source.with_suffix(".ipynb")


def read_source(source: Path) -> nbformat.NotebookNode:
    """The page's cells before they are run, with stable ids and our metadata only."""
    notebook = jupytext.reads(source.read_text(encoding="utf-8"), fmt="py:percent")
    notebook.metadata = nbformat.from_dict({
        "kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        if "title" in cell.metadata:  # jupytext takes it for a name and hides it
            raise ValueError(f"{source.name}: text stands on the line of a cell's mark:"
                             f" {cell.metadata.title!r}. Put it on the next line.")
        digest = hashlib.sha256(cell.source.encode("utf-8")).hexdigest()[:8]
        seen[digest] = seen.get(digest, 0) + 1
        for layout in ("lines_to_next_cell", "lines_to_end_of_cell_marker"):
            cell.metadata.pop(layout, None)  # jupytext's notes on blank lines
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        tags = cell.metadata.get("tags", [])
        if MACHINE in tags and IGNORE not in tags:
            cell.metadata.tags = [*tags, IGNORE]
    return notebook


@contextlib.contextmanager
def private_kernel():
    """A manager for one kernel of this very Python, over local sockets where possible.

    Kernels that are started at the same time over TCP can take each other's ports.
    """
    with tempfile.TemporaryDirectory(prefix="page-",
                                     ignore_cleanup_errors=True) as folder:
        options = {"connection_file": os.path.join(folder, "kernel.json")}
        if os.name == "posix":
            options |= {"transport": "ipc", "ip": os.path.join(folder, "k")}
        manager = AsyncKernelManager(kernel_name="python3", **options)
        manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher",
                                    "-f", "{connection_file}"]
        manager.kernel_spec.env = {}
        yield manager


def kernel_environment() -> dict[str, str]:
    """What a kernel sees: one thread, this project's package, no user's settings."""
    inherited = {name: value for name, value in os.environ.items()
                 if name not in ("PYTHONPATH", "PYTHONWARNINGS", "MPLBACKEND")}
    inherited.setdefault("MPLCONFIGDIR", str(Path(sys.prefix, "cache", "matplotlib")))
    return inherited | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1",
                        "PYTHONHASHSEED": "0"}


def execute(notebook, progress=lambda done, total: None, *,
            widgets: bool = False) -> None:
    """Run all cells in place, in a fresh kernel whose folder is the pages' folder.

    ``widgets`` keeps what the widgets hold, in the notebook's metadata.
    """
    total = len(notebook.cells)
    with private_kernel() as manager, tempfile.TemporaryDirectory() as ipython:
        client = NotebookClient(
            notebook, km=manager, timeout=CELL_SECONDS, record_timing=False,
            store_widget_state=widgets, coalesce_streams=True,
            resources={"metadata": {"path": str(FOLDER)}}, startup_timeout=300,
            on_cell_start=lambda cell, cell_index: progress(cell_index, total))
        client.owns_km = True  # so that it also ends the kernel, whatever happens
        client.execute(env=kernel_environment() | {"IPYTHONDIR": ipython})


def normalise(notebook) -> None:
    """Keep of the outputs what is the same on every run, and only that."""
    notebook.metadata = nbformat.from_dict({
        "kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = merge_streams(cell.outputs)
        for output in cell.get("outputs", []):
            # A view without state shows as an error.
            output.get("data", {}).pop(WIDGET_VIEW, None)
            output.pop("transient", None)


def merge_streams(outputs: list) -> list:
    """One output a stream, as nbval compares them: where a flush falls is chance."""
    merged, streams = [], {}
    for output in outputs:
        if output.output_type == "stream" and output.name in streams:
            streams[output.name].text += output.text
            continue
        if output.output_type == "stream":
            streams[output.name] = output
        merged.append(output)
    return merged


def keep_machine_outputs(notebook, stored: Path) -> None:
    """Leave stored outputs of unchanged ``machine`` cells: rebuilding stays quiet."""
    if not stored.exists():
        return
    old = {cell.id: cell for cell in nbformat.read(stored, as_version=4).cells
           if MACHINE in cell.metadata.get("tags", [])}
    for cell in notebook.cells:
        before = old.get(cell.id)
        if MACHINE in cell.metadata.get("tags", []) and before is not None:
            if before.get("execution_count") is not None:
                cell.outputs = before.outputs
                for output in cell.outputs:
                    if "execution_count" in output:
                        output.execution_count = cell.execution_count


def built(source: Path, *, fresh: bool = False,
          progress=lambda done, total: None) -> str:
    """The executed page as text: what ``page_of(source)`` should hold."""
    notebook = read_source(source)
    execute(notebook, progress)
    normalise(notebook)
    if not fresh:
        keep_machine_outputs(notebook, page_of(source))
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def write_whole(path: Path, text: str) -> bool:
    """Write the file in one step (never half a page); say whether it changed."""
    if path.exists() and path.read_bytes() == text.encode("utf-8"):
        return False
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    unfinished.write_bytes(text.encode("utf-8"))
    os.replace(unfinished, path)
    return True


def named(page: Path) -> list[Path]:
    """The sources meant by a path or by a page's number (``make notebooks PAGE=3``)."""
    if page.name.isdigit():
        return sorted(FOLDER.glob(f"{int(page.name):02d}-*.py")) or [page]
    return [page.with_suffix(".py")]


def report_failure(source: Path, number: int, error: Exception) -> None:
    """The failing cell and its traceback, on stderr, without colours in a log."""
    text = str(error) if sys.stderr.isatty() else ANSI.sub("", str(error))
    print(f"\n{source.name}: cell {number} failed, so the page is left as it was.\n"
          f"{text}", file=sys.stderr)


def build_one(source: Path, label: str, fresh: bool) -> bool:
    """Build one page and say how it went; False when a cell failed."""
    reached = 0

    def progress(done: int, total: int) -> None:
        nonlocal reached
        reached = done + 1
        if sys.stdout.isatty():
            print(f"\r{label} {source.stem}: cell {reached} of {total} ", end="",
                  flush=True)

    start = time.perf_counter()
    try:
        text = built(source, fresh=fresh, progress=progress)
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        report_failure(source, reached, error)
        return False
    outcome = "written" if write_whole(page_of(source), text) else "unchanged"
    line_start = "\r\x1b[K" if sys.stdout.isatty() else ""
    seconds = time.perf_counter() - start
    print(f"{line_start}{label} {source.stem}: {outcome}, {seconds:.1f} s", flush=True)
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path,
                        help="text sources; default: all pages")
    parser.add_argument("--fresh", action="store_true",
                        help="renew the `machine` outputs too")
    options = parser.parse_args(arguments)
    chosen = [found for page in options.pages for found in named(page)]
    sources = chosen or page_sources()
    missing = [str(source) for source in sources if not source.is_file()]
    if missing:
        print(f"no such page source: {', '.join(missing)}", file=sys.stderr)
        return 2
    if not sources:
        print("no pages yet: a page is notebooks/NN-name.py", file=sys.stderr)
        return 2
    done = [build_one(source, f"[{number}/{len(sources)}]", options.fresh)
            for number, source in enumerate(sources, 1)]
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
