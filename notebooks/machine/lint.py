"""Look at pages without running them: ``python notebooks/machine/lint.py [PAGE ...]``.

Each rule is one function ``rule(page)`` that yields ``(cell number, what is wrong)``;
its name is what the report calls it. Cells are numbered from 1, as readers count; 0 is
the page as a whole. Exit status 1 when a rule is broken.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).resolve().parent))
import build  # noqa: E402

LONGEST_CELL, SHORTEST_ALT = 10, 30
LARGEST_PAGE, LARGEST_SOURCES = 1_500_000, 100_000
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")
Finding = tuple[int, str]  # the number of a cell, what is wrong there


@dataclass(frozen=True)
class Page:
    """One executed page, with the parts that several rules look at."""

    path: Path

    @cached_property
    def notebook(self):
        return nbformat.read(self.path, as_version=4)

    @cached_property
    def numbered(self) -> list:
        return list(enumerate(self.notebook.cells, 1))

    @cached_property
    def code(self) -> list:
        return [(number, cell) for number, cell in self.numbered
                if cell.cell_type == "code"]

    @cached_property
    def tokens(self) -> list:
        """Every markdown token, nested ones too, with its cell's number."""
        found = []
        for number, cell in self.numbered:
            if cell.cell_type == "markdown":
                for token in MARKDOWN.parse(cell.source):
                    found += [(number, part)
                              for part in (token, *(token.children or []))]
        return found

    @cached_property
    def headings(self) -> list[tuple[int, int, str]]:
        """(cell number, level, text) of every heading."""
        pairs = zip(self.tokens, self.tokens[1:])
        return [(number, int(token.tag[1]), after.content)
                for (number, token), (_, after) in pairs
                if token.type == "heading_open"]

    def outputs(self) -> Iterator:
        for number, cell in self.code:
            for output in cell.outputs:
                yield number, output


# --- words and pictures ---------------------------------------------------------------

def picture_without_alt(page: Page) -> Iterator[Finding]:
    """A reader who cannot see a picture reads its alt text."""
    for number, output in page.outputs():
        for kind in PICTURES:
            if kind in output.get("data", {}):
                described = output.get("metadata", {}).get(kind, {}).get("alt", "")
                yield from too_short(number, described)
        yield from images_in_html(number, output.get("data", {}).get("text/html", ""))
    for number, token in page.tokens:
        if token.type == "image":
            yield from too_short(number, token.content)
        if token.type in ("html_block", "html_inline"):
            yield from images_in_html(number, token.content)


def too_short(number: int, alt: str) -> Iterator[Finding]:
    if len(alt.strip()) < SHORTEST_ALT:
        yield number, (f"a picture needs alt text of {SHORTEST_ALT} characters or more,"
                       f" has {alt!r}")


def images_in_html(number: int, html: str) -> Iterator[Finding]:
    for tag in re.findall(r"<img\b[^>]*>", html, re.IGNORECASE):
        alt = re.search(r"""\balt\s*=\s*(["'])(.*?)\1""", tag)
        yield from too_short(number, alt.group(2) if alt else "")


def picture_without_numbers(page: Page) -> Iterator[Finding]:
    """nbval does not compare pictures, so the numbers drawn stand beside each."""
    for number, cell in page.code:
        pictures = [output.data for output in cell.outputs
                    if any(kind in output.get("data", {}) for kind in PICTURES)]
        printed = any(output.output_type == "stream" for output in cell.outputs)
        for data in pictures:
            words = data.get("text/plain", "")
            if not printed and (not words or words.startswith(("[picture]", "<"))):
                yield number, "print the numbers behind this picture beside it"


def heading_level_skipped(page: Page) -> Iterator[Finding]:
    last = 0
    for number, level, text in page.headings:
        if level > last + 1:
            yield number, f"heading {text!r} is level {level}, right under level {last}"
        last = level


def not_one_title(page: Page) -> Iterator[Finding]:
    titles = [number for number, level, _ in page.headings if level == 1]
    if len(titles) != 1:
        yield (titles
               or [0])[-1], f"a page has one title (# ...); this one has {len(titles)}"


def anchor(text: str) -> str:
    """The name under which Jupyter and GitHub find a heading of a page."""
    return text.strip().replace(" ", "-")


def broken_link(page: Page) -> Iterator[Finding]:
    """Links to files and headings that are not there (addresses are not looked up)."""
    for number, token in page.tokens:
        attributes = token.attrs or {}
        target = attributes.get("href") or attributes.get("src")
        place = urllib.parse.urlsplit(target or "")
        if target is None or place.scheme in ("http", "https", "mailto"):
            continue
        name = urllib.parse.unquote(place.path)
        linked = page.path.parent / name if name else page.path
        if place.scheme or not linked.exists():
            yield number, f"link to {target}: there is no such file"
        elif place.fragment and linked.suffix == ".ipynb":
            wanted = urllib.parse.unquote(place.fragment)
            if wanted not in [anchor(text) for _, _, text in Page(linked).headings]:
                yield number, f"link to {target}: no heading has that name"


def absolute_path(page: Page) -> Iterator[Finding]:
    """A path of the author's machine, in a source or in an output."""
    for number, cell in page.numbered:
        outputs = [str(output.get("text", "")) + str(output.get("traceback", ""))
                   + "".join(str(value)
                             for kind, value in output.get("data", {}).items()
                             if kind not in PICTURES)
                   for output in cell.get("outputs", [])]
        for text in (cell.source, *outputs):
            found = re.search(r"(?<![\w.:/])(?:/(?:home|Users|tmp|root|work|opt|usr|var"
                              r"|mnt|content)/|~/|[A-Za-z]:\\+\w)[^\s'\"]*", text)
            if found:
                yield number, f"a path of one machine only: {found.group(0)}"


# --- code -----------------------------------------------------------------------------

def code_tokens(source: str) -> list[tokenize.TokenInfo]:
    """The tokens that are code; of a cell that is not plain Python the first ones."""
    noise = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT,
             tokenize.DEDENT, tokenize.ENDMARKER}
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type not in noise:
                found.append(token)
    except (tokenize.TokenError, SyntaxError):
        found.append(tokenize.TokenInfo(tokenize.OP, "?", (1, 0), (1, 0), ""))
    return found


def long_cell(page: Page) -> Iterator[Finding]:
    """More code than a reader takes in at once; comments and blank lines are free."""
    for number, cell in page.code:
        lines = {line for token in code_tokens(cell.source)
                 for line in range(token.start[0], token.end[0] + 1)
                 if cell.source.splitlines()[line - 1].strip()}
        if len(lines) > LONGEST_CELL:
            yield number, f"{len(lines)} lines of code; {LONGEST_CELL} are allowed"


def trailing_semicolon(page: Page) -> Iterator[Finding]:
    """Hides an output in Jupyter but not in nbval."""
    for number, cell in page.code:
        tokens = code_tokens(cell.source)
        last_on_line = {token.end[0]: token for token in tokens}
        if any(token.string == ";" for token in last_on_line.values()):
            yield number, "a line ends with `;`: assign the value to _ instead"


FORBIDDEN = {
    r"\binteract(?:ive|ive_output)?\(":
        "draws into an Output widget, which nbval cannot compare",
    r"\b(?:widgets\.)?Output\(": "what is drawn in an Output widget cannot be compared",
    r"\bclear_output\b": "nbval cannot compare what was cleared",
    r"(?m)^\s*[!%]{1,2}\s*pip\b":
        "installs into another Python; installing is in the README",
    r"(?m)^\s*!": "shell commands differ between machines",
    r"\bpyplot\b": "keeps figures open and global; use figures.new_figure",
}


def forbidden_call(page: Page) -> Iterator[Finding]:
    for number, cell in page.code:
        for pattern, why in FORBIDDEN.items():
            found = re.search(pattern, cell.source)
            if found:
                yield number, f"{found.group(0).strip()!r}: {why}"


# --- outputs --------------------------------------------------------------------------

def not_executed_in_order(page: Page) -> Iterator[Finding]:
    for wanted, (number, cell) in enumerate(page.code, 1):
        if cell.execution_count != wanted:
            yield number, (f"execution count is {cell.execution_count},"
                           f" {wanted} in a fresh run")


def noise_in_output(page: Page) -> Iterator[Finding]:
    """Warnings, errors and object addresses: they differ from run to run."""
    for number, output in page.outputs():
        if output.output_type == "error":
            yield number, f"the cell failed: {output.ename}"
        if output.get("name") == "stderr":
            yield number, f"text on stderr: {output.text.strip()[:60]!r}"
        words = str(output.get("text", "")) + str(output.get("data",
                                                             {}).get("text/plain", ""))
        if re.search(r"\b0x[0-9a-f]{6,}", words):
            yield number, "an object's address is in the output: print a value instead"


IGNORING = ("nbval-", "raises-exception")


def unreasoned_ignore(page: Page) -> Iterator[Finding]:
    """Only cells tagged `machine`, with a reason, may differ from what is stored."""
    for number, cell in page.numbered:
        tags = cell.metadata.get("tags", [])
        if build.MACHINE in tags:
            if len(str(cell.metadata.get("reason", "")).split()) < 2:
                yield number, 'a `machine` cell says why: reason="..."'
            if build.IGNORE not in tags:
                yield number, "a `machine` cell without nbval's tag: build it again"
        elif any(tag.startswith(IGNORING) for tag in tags):
            yield number, f"only `machine` cells may be ignored; tags are {tags}"
        if cell.cell_type == "code" and re.search(r"NBVAL_|PYTEST_VALIDATE",
                                                  cell.source):
            yield number, "a comment that nbval obeys; use the tag `machine`, a reason"


# --- the page as a whole --------------------------------------------------------------

def wrong_kernel(page: Page) -> Iterator[Finding]:
    name = page.notebook.metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        yield 0, f"the kernel is {name!r}; every page says 'python3'"


def stored_widget_state(page: Page) -> Iterator[Finding]:
    """Some places refuse to show such a page at all."""
    if "widgets" in page.notebook.metadata:
        yield 0, "metadata.widgets is stored: build the page again"


def too_large(page: Page) -> Iterator[Finding]:
    size = page.path.stat().st_size
    words = sum(len(cell.source.encode("utf-8")) for _, cell in page.numbered)
    if size > LARGEST_PAGE:
        yield 0, f"{size / 1e6:.1f} MB; {LARGEST_PAGE / 1e6:.1f} are allowed"
    if words > LARGEST_SOURCES:
        yield 0, (f"{words / 1e3:.0f} kB of text and code;"
                  f" {LARGEST_SOURCES / 1e3:.0f} are allowed")


def differs_from_its_source(page: Page) -> Iterator[Finding]:
    """The text source was changed, or the page was edited by hand."""
    source = page.path.with_suffix(".py")
    if not source.exists():
        yield 0, f"there is no text source {source.name}"
        return

    def what_is_written(cells) -> list:
        return [(cell.id, cell.cell_type, cell.source, dict(cell.metadata))
                for cell in cells]

    written = what_is_written(build.read_source(source).cells)
    stored = what_is_written(page.notebook.cells)
    if written != stored:
        different = next((number
                          for number, (one, other) in enumerate(zip(written, stored), 1)
                          if one != other), min(len(written), len(stored)) + 1)
        yield different, f"not as {source.name} says: make notebooks"


RULES = (picture_without_alt, picture_without_numbers, heading_level_skipped,
         not_one_title,
         broken_link, absolute_path, long_cell, trailing_semicolon, forbidden_call,
         not_executed_in_order, noise_in_output, unreasoned_ignore, wrong_kernel,
         stored_widget_state, too_large, differs_from_its_source)


def problems(path: Path) -> list[str]:
    """Everything that is wrong with a page, one line each."""
    page = Page(path)
    return [f"{path.name}, {f'cell {number}' if number else 'page'}: {what}"
            f" [{rule.__name__}]"
            for rule in RULES for number, what in rule(page)]


def main(arguments: list[str]) -> int:
    pages = [Path(word) for word in arguments]
    pages = pages or [build.page_of(source) for source in build.page_sources()]
    unbuilt = [page.name for page in pages if not page.exists()]
    found = [f"{name}: not built yet: make notebooks" for name in unbuilt]
    found += [line for page in pages if page.exists() for line in problems(page)]
    for line in found:
        print(line)
    print(f"{len(pages)} pages, {len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
