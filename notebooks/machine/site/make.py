"""The course as a static site in ``_site/``: ``python notebooks/machine/site/make.py``.

Every page is run anew, two at a time, unless nothing that it depends on has changed;
``--stored`` takes the pages as they are in git and makes only the explorers anew, in
seconds. Sphinx with myst-nb does the layout, under a small theme of the course's own:
the usual themes bring seven megabytes of scripts and letters, mathematics from another
host, and columns too narrow for the explorers. The site needs no server and no network.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import re
import shutil
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
from notebooks.machine import build  # noqa: E402
from notebooks.machine.site import collect, pages  # noqa: E402
from notebooks.machine.site.front import front_page  # noqa: E402

SITE = ROOT / "_site"
WORKSHOP = ROOT / "build" / "site"
SETTINGS = Path(__file__).resolve().parent
WORKERS = 2


class Trouble(Exception):
    """Why there is no site, in words."""


def gather(sources: list[Path], stored: bool) -> dict[Path, object]:
    """source -> its executed page with the explorers' state."""
    if stored:
        return {source: collect.as_stored(source) for source in sources}
    found = {}
    print(f"Running {len(sources)} pages where something changed, {WORKERS} at a time.",
          flush=True)
    with ProcessPoolExecutor(WORKERS) as workers:
        waiting = {workers.submit(collect.run_anew, source): source
                   for source in sources}
        for number, done in enumerate(as_completed(waiting), 1):
            source = waiting[done]
            try:
                found[source] = done.result()
            except Exception as error:
                raise Trouble(f"{source.name} did not run:\n{error}") from error
            print(f"[{number}/{len(sources)}] {source.stem}", flush=True)
    return {source: found[source] for source in sources}


def write_sources(notebooks: dict[Path, object], folder: Path, beside: Path) -> None:
    """The pages and the front page for Sphinx; ``beside`` them pictures and modules."""
    for place in (folder, beside):
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    assets = pages.Assets(beside)
    stills = {}
    for source, notebook in notebooks.items():
        stills[source.stem] = pages.for_sphinx(notebook, assets)
        build.write_whole(folder / f"{source.stem}.ipynb", nbformat.writes(notebook))
        assets.write(f"{source.stem}.ipynb", build.page_of(source).read_bytes())
    build.write_whole(folder / "index.md", front_page(notebooks, stills))


def lay_out(folder: Path, out: Path) -> None:
    """Run Sphinx; a warning is an error."""
    from sphinx.application import Sphinx

    warnings = io.StringIO()
    shutil.rmtree(out, ignore_errors=True)
    app = Sphinx(str(folder), str(SETTINGS), str(out), str(folder.parent / "doctrees"),
                 "html", status=None, warning=warnings, freshenv=True)
    app.build()
    said = re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()).strip()
    if said or app.statuscode:
        raise Trouble(said or "Sphinx failed and did not say why.")
    for unused in (".buildinfo", "objects.inv", "_static/mystnb.*.css"):
        for file in out.glob(unused):
            file.unlink()
    shutil.rmtree(out / "_sources", ignore_errors=True)


def keep_offline(site: Path) -> None:
    """Write the script that keeps a served site, with the list of what it keeps."""
    kept = ("*.html", "_static/*", "explorers/*", "pictures/*")
    files = sorted(path for pattern in kept for path in site.glob(pattern))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    names = ",\n  ".join(f'"{file.relative_to(site).as_posix()}"' for file in files)
    text = (SETTINGS / "theme" / "offline.js").read_text(encoding="utf-8")
    text = text.replace("/* version */", f"lessons-{digest.hexdigest()[:12]}")
    build.write_whole(site / "offline.js", text.replace("/* files */", names))


def make(out: Path, workshop: Path, stored: bool) -> None:
    """Build the whole site in the workshop, then put it in place of the one before."""
    sources = [source for source in build.page_sources()
               if not stored or build.page_of(source).exists()]
    if not sources:
        raise Trouble("no pages yet: a page is notebooks/NN-name.py")
    write_sources(gather(sources, stored), workshop / "source", workshop / "beside")
    lay_out(workshop / "source", workshop / "html")
    shutil.copytree(workshop / "beside", workshop / "html", dirs_exist_ok=True)
    keep_offline(workshop / "html")
    shutil.rmtree(out, ignore_errors=True)
    shutil.move(workshop / "html", out)


def weight(paths) -> float:
    """Megabytes."""
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stored", action="store_true",
                        help="take the pages as they are stored, run none")
    options = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1"}
    start = time.perf_counter()
    try:
        make(SITE, WORKSHOP, options.stored)
    except (Trouble, collect.Stale, ValueError) as error:
        print(f"The site is left as it was: {error}", file=sys.stderr)
        return 1
    seconds = time.perf_counter() - start
    print(f"{SITE.name}/index.html: {weight(SITE.rglob('*')):.1f} MB in all, "
          f"{seconds:.0f} s. Open it in a browser: no network needed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
