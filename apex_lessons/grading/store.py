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
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would compute these


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

    >>> file_name("anna"), file_name("Zoë B")
    ('anna', 'Zoë_B-0a3b5b99')
    """
    name = unicodedata.normalize("NFC", student)
    name = re.sub(r"[^\w.@-]", "_", name.encode("utf-8", "replace").decode())
    name = name.strip(".")[:LONGEST_NAME]
    if name and name == student:
        return name
    digest = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name or 'student'}-{digest[:8]}"


def table(rows: list[list[Any]]) -> str:
    """Rows as CSV; an apostrophe keeps a spreadsheet from computing a text.

    >>> table([["=1+1", 2]])
    "'=1+1,2\\r\\n"
    """
    text = io.StringIO()
    csv.writer(text).writerows([[_harmless(cell) for cell in row] for row in rows])
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    clean = re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", " ", cell)
    return f"'{clean}" if clean.startswith(FORMULA) else clean
