"""An executed page becomes one for Sphinx: pictures in files, explorers that live.

A picture keeps its alt text and its size. An explorer becomes a box with its settings
as JSON, its picture for those without scripts, and the name of its module; the module
itself, shared by all explorers of a lesson, is a file. ``theme/static/site.js`` brings
the box to life. A module is stored as text in an ordinary script, because a browser
that opened the page from a folder loads no other file.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from notebooks.machine.site.collect import STATE, outputs_of

PICTURES, MODULES = "pictures", "explorers"
STOCK_WIDGET = re.compile(r"^[A-Z]\w*\((?:children|value|options)=")
NO_KERNEL = ('<p class="no-kernel"><strong>Controls made with stock ipywidgets stand '
             "here</strong> when Python runs: download this page as a notebook to move "
             "them. What they open with follows below.</p>")

ASKS_PYTHON = ('<p class="no-kernel"><strong>An explorer that asks Python stands '
               "here</strong> when Python runs: download this page as a notebook to "
               "move it. The picture shows what it opens with.</p>")
MANY_COLUMNS = 5  # more than a phone is wide
TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
COLUMN = re.compile(r'<th scope="col"[^>]*>(.*?)</th>', re.DOTALL)
ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
ROLES = {"table": "table", "thead": "rowgroup", "tr": "row", "th": "columnheader"}
ANSWERED = "_answered"  # the setting with which a kernel says that it has answered


class Still(NamedTuple):
    """A picture in a file."""

    file: str
    alt: str
    width: int
    height: int

    def element(self, loading: str = "lazy") -> str:
        return (f'<img src="{self.file}" alt="{html.escape(self.alt)}" '
                f'width="{self.width}" height="{self.height}" '
                f'loading="{loading}" decoding="async">')


@dataclass
class Assets:
    """What the pages share: ``folder`` is what goes beside them unchanged."""

    folder: Path
    written: set[str] = field(default_factory=set)

    def write(self, name: str, content: bytes) -> str:
        if name not in self.written:
            place = self.folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            self.written.add(name)
        return name


def named_by_content(folder: str, stem: str, suffix: str, content: bytes) -> str:
    return f"{folder}/{stem}{hashlib.sha256(content).hexdigest()[:12]}{suffix}"


def still_of(output, assets: Assets) -> Still:
    """The output's picture, written to a file."""
    content = base64.b64decode(output.data["image/png"])
    said = output.metadata["image/png"]
    file = assets.write(named_by_content(PICTURES, "", ".png", content), content)
    return Still(file, said["alt"], said["width"], said["height"])


def picture(still: Still) -> str:
    return f'<div class="picture scroll">{still.element()}</div>'


def module_of(state: dict, assets: Assets) -> str:
    """The explorer's script and style as text, under a name made from both."""
    text = json.dumps({"script": state["_esm"], "style": state.get("_css", "")})
    name = named_by_content(MODULES, "", ".js", text.encode())
    key = json.dumps(Path(name).stem)
    assets.write(name, f"(globalThis.modules ??= {{}})[{key}] = {text};\n".encode())
    return name


def explorer(output, assets: Assets, loaded: set[str]) -> str:
    """The box of one explorer; its module's script once a page."""
    state = output.data[STATE]
    module = module_of(state, assets)
    settings = {name: value for name, value in state.items()
                if name not in ("_esm", "_css")}
    stored = json.dumps(settings, sort_keys=True).replace("</", "<\\/")
    still = picture(still_of(output, assets)) if "image/png" in output.data else ""
    script = "" if module in loaded else f'<script defer src="{module}"></script>'
    loaded.add(module)
    return (f'<div class="live" data-module="{Path(module).stem}">'
            f'<script type="application/json">{stored}</script>{still}</div>{script}')


def markup(given: str) -> str:
    """HTML that a cell showed: tables in a box, and no header without words."""
    if "<table" not in given:
        return given
    whole = re.sub(r"<th\b[^>]*></th>", "<td></td>", given)
    return f'<div class="scroll">{TABLE.sub(cards, whole)}</div>'


def cards(table: re.Match) -> str:
    """A table of many columns, whose rows a narrow screen can show as cards.

    Each cell is told its column's name. The roles stay what they are when the style
    sheet makes blocks of rows and cells.
    """
    text = table.group(0)
    names = [re.sub(r"<[^>]*>", "", name) for name in COLUMN.findall(text)]
    if len(names) < MANY_COLUMNS:
        return text
    head, opening, body = text.partition("<tbody")
    rows = ROW.sub(lambda row: labelled(row.group(0), names), body)
    for tag, role in ROLES.items():
        head = re.sub(rf"<{tag}\b", f'<{tag} role="{role}"', head)
    return f'{head}{opening} role="rowgroup"{rows}'


def labelled(row: str, names: list[str]) -> str:
    """One row of the body with the columns' names at its cells."""
    waiting = iter(names)

    def cell(found: re.Match) -> str:
        role = "rowheader" if found.group(1) == "th" else "cell"
        label = html.escape(html.unescape(next(waiting, "")))
        return f'<{found.group(1)} role="{role}" data-label="{label}"'

    return re.sub(r"<(th|td)\b", cell, row).replace("<tr", '<tr role="row"', 1)


def for_sphinx(notebook, assets: Assets) -> list[Still]:
    """Change the outputs in place; returns the page's pictures, explorers' first."""
    of_explorers, others, loaded = [], [], set()
    for _, output in outputs_of(notebook):
        data = output.data
        if ANSWERED in data.get(STATE, {}):
            of_explorers.append(still_of(output, assets))
            shown = ASKS_PYTHON + picture(of_explorers[-1])
            output.data = {"text/html": shown}
        elif STATE in data:
            of_explorers.append(still_of(output, assets))
            output.data = {"text/html": explorer(output, assets, loaded)}
        elif "image/png" in data:
            others.append(still_of(output, assets))
            output.data = {"text/html": picture(others[-1])}
        elif "text/html" in data:
            output.data = {"text/html": markup(data["text/html"])}
        elif STOCK_WIDGET.match(data.get("text/plain", "")):
            output.data = {"text/html": NO_KERNEL}
    return of_explorers + others
