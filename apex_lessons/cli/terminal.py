"""Lines with a style, printed: coloured on a terminal, plain everywhere else."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

RESET = "\x1b[0m"
STYLES = {"title": "\x1b[1;36m", "head": "\x1b[1m", "warning": "\x1b[33m", "note": "",
          "plain": "", "strip": ""}
# One colour for each regime of a pair: kept, blended, divided.
MARKS = {".": "\x1b[32m", ":": "\x1b[33m", "#": "\x1b[35m"}


def print_lines(lines: Iterable[tuple[str, str]], colour: str = "auto") -> None:
    """Print (style, line) pairs; ``colour``: "auto", "always" or "never".

    "auto" colours only a terminal that is not dumb, and respects NO_COLOR.
    """
    coloured = wants_colour(colour)
    for style, line in lines:
        print(paint(style, line) if coloured else line)


def wants_colour(colour: str) -> bool:
    """Whether standard output shall get colours."""
    if colour != "auto":
        return colour == "always"
    return (sys.stdout.isatty() and "NO_COLOR" not in os.environ
            and os.environ.get("TERM") != "dumb")


def paint(style: str, line: str) -> str:
    """One line with its colour codes.

    >>> paint("plain", "as it is")
    'as it is'
    """
    if style == "strip":
        head, marks = line[:9], line[9:]
        return head + "".join(f"{MARKS.get(mark, '')}{mark}" for mark in marks) + RESET
    code = STYLES.get(style, "")
    return f"{code}{line}{RESET}" if code and line else line
