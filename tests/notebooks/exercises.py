"""The exercises of a page, read from its text: stub, check and solution of each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TITLE = re.compile(r"#{2,4} Exercise (\d+\.\d+)")
HEADING = re.compile(r"#{1,3} ")
SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>(.*?)</details>", re.DOTALL)
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CHECK = re.compile(r"\bcheck_\w+\(")
STUB = re.compile(r"^\s*\.\.\.\s*(?:#.*)?$", re.MULTILINE)


@dataclass
class Exercise:
    """What stands between an exercise's heading and the next heading."""

    name: str
    words: str = ""
    code: list = field(default_factory=list)

    @property
    def stubs(self) -> list:
        return [cell for cell in self.code if STUB.search(cell.source)]

    @property
    def checks(self) -> list:
        return [cell for cell in self.code if CHECK.search(cell.source)]

    @property
    def solutions(self) -> list[str]:
        return [fence for block in SOLUTION.findall(self.words) for fence in FENCE.findall(block)]


def parts_of(text: str) -> list[str]:
    """A text cell cut before each heading; a `#` inside a code fence is no heading."""
    parts, fenced = [""], False
    for line in text.splitlines(keepends=True):
        fenced ^= line.startswith("```")
        if HEADING.match(line) and not fenced:
            parts.append("")
        parts[-1] += line
    return parts


def exercises_of(notebook) -> list[Exercise]:
    """In page order. The next heading of the same level or above ends an exercise."""
    found, current = [], None
    for cell in notebook.cells:
        if cell.cell_type == "code" and current:
            current.code.append(cell)
        for part in parts_of(cell.source) if cell.cell_type == "markdown" else []:
            title = TITLE.match(part)
            if title:
                current = Exercise(title.group(1))
                found.append(current)
            elif HEADING.match(part):
                current = None
            if current:
                current.words += part + "\n"
    return found
