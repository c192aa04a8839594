"""The front page: ``front.md`` with the README's first words and its table of pages."""

from __future__ import annotations

import html
import re
from pathlib import Path
from string import Template
from typing import NamedTuple

from notebooks.machine import build
from notebooks.machine.site.pages import Still

ROW = re.compile(r"^\| \[(?P<number>\d\d) (?P<title>[^\]]+)\]"
                 r"\(notebooks/(?P<page>[^)]+)\.ipynb\) \| (?P<what>.+?) "
                 r"\| (?P<minutes>\d+) \|$", re.MULTILINE)


class Row(NamedTuple):
    """A line of the README's table of pages."""

    number: str
    title: str
    page: str
    what: str
    minutes: str


def readme() -> str:
    return (build.ROOT / "README.md").read_text(encoding="utf-8")


def introduction(text: str) -> tuple[str, str]:
    """The README's title and its first paragraphs of prose.

    >>> introduction("# One: two\\n\\n[![x](y)](z)\\n\\nProse.\\n\\n## Next")
    ('One: two', 'Prose.')
    """
    title, _, rest = text.partition("\n")
    paragraphs = rest.partition("\n## ")[0].strip().split("\n\n")
    prose = [one for one in paragraphs if not one.startswith(("[!", "!", "<", "|"))]
    return title.removeprefix("# "), "\n\n".join(prose)


def rows(text: str) -> dict[str, Row]:
    """The README's table of pages: page -> row."""
    return {found["page"]: Row(**found.groupdict()) for found in ROW.finditer(text)}


def title_of(notebook) -> str:
    """A page's title as its first cell says it."""
    return notebook.cells[0].source.partition("\n")[0].removeprefix("# ")


def card(row: Row, stills: list[Still]) -> str:
    """A page's first explorer (else picture), its title, what one does there."""
    image = stills[0].element() if stills else ""
    title, what = html.escape(row.title), html.escape(row.what)
    return (f'<li class="card"><a href="{row.page}.html">'
            f'<span class="frame">{image}</span>'
            f'<span class="card-title">{row.number} {title}</span></a>'
            f'<p>{what}</p><p class="minutes">{row.minutes} minutes</p></li>')


def front_page(notebooks: dict[Path, object], stills: dict[str, list[Still]]) -> str:
    """MyST text of the index. Every page must be in the README's table."""
    title, prose = introduction(readme())
    table = rows(readme())
    missing = [source.stem for source in notebooks if source.stem not in table]
    if missing:
        raise ValueError("README.md's table of pages does not list "
                         f"{', '.join(missing)}: add a row for each")
    order = [source.stem for source in notebooks]
    cards = "".join(card(table[page], stills[page]) for page in order)
    text = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")
    return Template(text).substitute(title=title, prose=prose, cards=cards,
                                     first=order[0], names="\n".join(order))
