"""Results on disk: written whole or not at all, found again by what they depend on."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import tempfile
import unicodedata
from pathlib import Path
from typing import Any

LONGEST_NAME = 56
FORMULA = tuple("=+-@＝＋－＠")  # a spreadsheet would compute what begins so
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)")  # by Windows
OURS = re.compile(r"-[0-9a-f]{8}$")  # looks like a name that was made here


def write(path: Path, text: str) -> None:
    """Write a file so that a crash leaves the old one or the new one, never half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def load(path: Path, key: str) -> dict | None:
    """A stored result, if it is whole and was made from the same things."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or a broken disk: it is made again
        return None
    return result if isinstance(result, dict) and result.get("key") == key else None


def save(path: Path, result: dict) -> None:
    """Store a result; the same result gives the same bytes."""
    write(path, json.dumps(result, indent=1, sort_keys=True) + "\n")


def key_of(*parts: Any) -> str:
    """A digest of all that a result depends on: bytes, or plain data."""
    total = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else json.dumps(part).encode()
        total.update(hashlib.sha256(data).digest())
    return total.hexdigest()


def file_name(student: str) -> str:
    """A file's name for a student: legal everywhere, one for each student.

    Also where Anna and anna are one file.

    >>> file_name("anna"), file_name("Zoë B")
    ('anna', 'Zoë_B-0a3b5b99')
    """
    name = unicodedata.normalize("NFC", student)
    name = re.sub(r"[^\w.@-]", "_", name.encode("utf-8", "replace").decode())
    name = name.strip(".")[:LONGEST_NAME]
    plain = name == student == name.casefold()
    if name and plain and not RESERVED.match(name) and not OURS.search(name):
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name or 'student'}-{digest[:8]}"


def check_names(students: list[str]) -> None:
    """ValueError where two students would share a file."""
    owner: dict[str, str] = {}
    for student in students:
        other = owner.setdefault(file_name(student).casefold(), student)
        if other != student:
            raise ValueError(f"the results of {other!r} and {student!r} would go to one"
                             " file; give one of their submissions another name")


def table(rows: list[list[Any]]) -> str:
    """Rows as CSV, a line each, with the mark by which spreadsheets know UTF-8.

    An apostrophe keeps them from computing a text.

    >>> table([["=1+1", 2]])
    '\\ufeff"\\'=1+1","2"\\r\\n'
    """
    text = io.StringIO("\ufeff", newline="")
    text.seek(0, io.SEEK_END)
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows(
        [[_harmless(cell) for cell in row] for row in rows])
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    clean = re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", cell)
    return f"'{clean}" if clean.lstrip().startswith(FORMULA) else clean
