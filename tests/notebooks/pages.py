"""Small pages for the tests of the notebook machine, and the course's own pages."""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat

from notebooks.machine import build

SOURCES = build.page_sources()
PAGES = [build.page_of(source) for source in SOURCES]

HEADER = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

"""

GOOD = HEADER + """\
# %% [markdown]
# # A small page
#
# With a [link](#A-second-heading) to itself.
#
# ## A second heading

# %%
import base64
import ipywidgets as widgets
from IPython.display import display

# %%
dot = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNg"
       "AAAAAgABSK+kcQAAAABJRU5ErkJggg==")
display({"image/png": dot, "text/plain": "[picture] one dot"}, raw=True,
        metadata={"image/png": {"alt": "one black dot in the middle of nothing"}})
print("dot: 1 pixel")

# %% tags=["machine"] reason="the clock differs between runs"
import time
print(time.time())

# %%
slider = widgets.FloatSlider(1.5, description="base")
slider

# %%
print("flushed", flush=True)
print("later")
round(10000 ** -0.5, 4)
"""


def write_source(folder: Path, text: str = GOOD, name: str = "90-small.py") -> Path:
    source = folder / name
    source.write_text(text, encoding="utf-8")
    return source


def read(page: Path):
    return nbformat.read(page, as_version=4)


def write(page: Path, notebook) -> Path:
    page.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    return page


def changed(page: Path, change, folder: Path) -> Path:
    """The page and its source in another folder, after ``change(notebook)``."""
    notebook = copy.deepcopy(read(page))
    change(notebook)
    source = page.with_suffix(".py")
    (folder / source.name).write_bytes(source.read_bytes())
    return write(folder / page.name, notebook)
