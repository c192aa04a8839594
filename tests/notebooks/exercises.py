"""The exercises of a page, read from its text: stub, check and solution of each.

A solution is tried in this process, on what it needs of the page: no kernel, no figure.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

TITLE = re.compile(r"#{2,4} Exercise (\d+\.\d+)")
HEADING = re.compile(r"#{1,3} ")
SOLUTION = re.compile(r"<details>\s*<summary>Solution</summary>(.*?)</details>",
                      re.DOTALL)
FENCE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
CHECK = re.compile(r"\bcheck_\w+\(")
STUB = re.compile(r"^\s*\.\.\.\s*(?:#.*)?$", re.MULTILINE)


@dataclass
class Exercise:
    """What stands between an exercise's heading and the next heading."""

    name: str
    before: list = field(default_factory=list)  # the code cells up to the heading
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
        blocks = SOLUTION.findall(self.words)
        return [fence for block in blocks for fence in FENCE.findall(block)]


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
    found, current, before = [], None, []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            before.append(cell)
            if current:
                current.code.append(cell)
        for part in parts_of(cell.source) if cell.cell_type == "markdown" else []:
            title = TITLE.match(part)
            if title:
                current = Exercise(title.group(1), before.copy())
                found.append(current)
            elif HEADING.match(part):
                current = None
            if current:
                current.words += part + "\n"
    return found


# --- without a kernel -----------------------------------------------------------------

def statements(sources: list[str]) -> list[ast.stmt]:
    """The top-level statements of the cells, in page order."""
    return [statement for source in sources for statement in ast.parse(source).body]


def names_in(node: ast.AST) -> tuple[set[str], set[str]]:
    """The names that a statement gives a value, and those that it looks up."""
    given, used = set(), set()
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            (used if isinstance(part.ctx, ast.Load) else given).add(part.id)
        elif isinstance(part, ast.alias):
            given.add((part.asname or part.name).partition(".")[0])
        elif isinstance(part, (ast.FunctionDef, ast.ClassDef)):
            given.add(part.name)
    return given, used


def stands_on(before: list[str], source: str) -> list[ast.stmt]:
    """The statements before that ``source`` needs, and those that they need."""
    parts = [(statement, *names_in(statement)) for statement in statements(before)]
    wanted, known = names_in(ast.parse(source))[1], set()
    while wanted != known:
        known = wanted
        wanted = known.union(*(used for _, given, used in parts if given & known))
    return [statement for statement, given, _ in parts if given & wanted]


def answers(exercise: Exercise) -> list[str]:
    """What each check of an exercise says of its solution, in this process."""
    before = [cell.source for cell in exercise.before]
    solution = "\n".join(exercise.solutions)
    return [answer_to(before, f"{solution}\n{cell.source}") for cell in exercise.checks]


def answer_to(before: list[str], source: str) -> str:
    """What the last line of ``source`` shows, run after what it stands on."""
    *lines, last = ast.parse(source).body
    program = ast.Module([*stands_on(before, source), *lines], type_ignores=[])
    names: dict = {"__name__": "__main__"}
    exec(compile(program, "<page>", "exec"), names)
    return repr(eval(compile(ast.Expression(last.value), "<check>", "eval"), names))
