"""Every explorer, and the page that it stands on."""

import importlib

import nbformat

from notebooks.machine import build
from notebooks.machine.site.collect import EXPLORER, outputs_of
from tests.explorers.page import LESSONS

PAGES = [source.stem for source in build.page_sources()
         if build.page_of(source).exists()]
CLASSES = {name: cls for lesson in LESSONS for name, cls in importlib.import_module(
    f"apex_lessons.explorers.{lesson}").explorers().items()}


def _place(name):
    """The first page with a cell that ends with ``….Name()``."""
    for page in PAGES:
        text = (build.FOLDER / f"{page}.py").read_text(encoding="utf-8")
        if f".{name}()\n" in text:
            return page
    return None


def how_many(page):
    """Explorers that a stored page shows, those that need a kernel among them."""
    if page not in PAGES:
        return 0
    notebook = nbformat.read(build.FOLDER / f"{page}.ipynb", as_version=4)
    return sum(output.data.get("text/plain", "").startswith(EXPLORER)
               for _, output in outputs_of(notebook))


def how_many_live(page):
    """Explorers that move on the site: those that ask Python stand as pictures."""
    if page not in PAGES:
        return 0
    notebook = nbformat.read(build.FOLDER / f"{page}.ipynb", as_version=4)
    asking = sum(".LiveExtrapolation()" in cell.source for cell in notebook.cells
                 if cell.cell_type == "code")
    return how_many(page) - asking


PLACES = {name: page for name in CLASSES if (page := _place(name))}
