"""A config file or dictionary in, a checked dictionary out: bounded time and memory.

Nothing of a file is ever executed; a number that no float can hold is kept as
``Unreadable`` until somebody asks for it, so that the message can name its key.
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apex_lessons.models.remarks import ConfigError, Remarks, shown

LARGEST_FILE = 16 * 2**20  # bytes; released config files stay below one MiB
LONGEST_INTEGER = 300  # digits; a float64 holds 308


@dataclass(frozen=True)
class Unreadable:
    """A number in a file that no float64 holds: NaN, Infinity, 1e400, 400 digits."""

    text: str  # as it stands in the file, shortened


@dataclass
class ConfigFile:
    """A dictionary of settings, where it came from and what was odd about it."""

    values: dict[str, Any]
    name: str
    remarks: Remarks = field(default_factory=Remarks)


def read_config(source) -> ConfigFile:
    """The settings of a config: a dictionary, a path, or a directory with config.json.

    A dictionary is taken as it is (it is not changed); "-" reads standard input.
    Raises ConfigError (a ValueError) where there is nothing to explain, and TypeError
    for a source of another kind.
    """
    if isinstance(source, dict):
        return ConfigFile(_own_copy(source), "the given dictionary")
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError("a config is a dictionary or a path, got"
                        f" {type(source).__name__}")
    name = os.fspath(source)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    remarks = Remarks()
    text = _text(_bytes(name), remarks)
    values = _parsed(text, remarks)
    if not isinstance(values, dict):
        raise ConfigError("file-not-an-object",
                          f"a config is a JSON object {{...}}; this file holds"
                          f" {shown(values)}")
    return ConfigFile(values, name, remarks)


def _own_copy(value, depth: int = 0):
    """A copy with a mark on numbers that no float holds, as a file's reader does."""
    if depth > 50:
        raise ConfigError("file-nesting", "the dictionary is nested more than 50 deep")
    if isinstance(value, dict):
        return {str(key): _own_copy(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_own_copy(item, depth + 1) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return Unreadable(str(value))
    if isinstance(value, int) and value.bit_length() > 1000:
        return Unreadable("a number of more than 300 digits")
    return value


def _bytes(name: str) -> bytes:
    """At most LARGEST_FILE bytes of a regular file; anything else is refused."""
    if name == "-":
        return _limited(sys.stdin.buffer.read(LARGEST_FILE + 1))
    try:
        path = Path(name)
        if path.is_dir() and (path / "config.json").is_file():
            path = path / "config.json"
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = "no regular file"
            if stat.S_ISDIR(mode):
                kind = "a directory without config.json"
            raise ConfigError("file-kind", f"{shown(name)} is {kind}: give a"
                              " config.json")
        with path.open("rb") as file:
            return _limited(file.read(LARGEST_FILE + 1))
    except FileNotFoundError:
        raise ConfigError("file-missing", f"there is no file {shown(name)}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        reason = getattr(error, "strerror", None) or "not a usable file name"
        raise ConfigError("file-unreadable", f"{shown(name)}: {reason}") from None


def _limited(data: bytes) -> bytes:
    if len(data) > LARGEST_FILE:
        raise ConfigError("file-too-large", f"more than {LARGEST_FILE // 2**20} MiB: a"
                          " config file is a few kB; is this a weights file?")
    return data


def _text(data: bytes, remarks: Remarks) -> str:
    """UTF-8 text; a byte order mark is dropped with a warning."""
    for mark, encoding in ((codecs.BOM_UTF32_LE, "UTF-32"),
                           (codecs.BOM_UTF32_BE, "UTF-32"),
                           (codecs.BOM_UTF16_LE, "UTF-16"),
                           (codecs.BOM_UTF16_BE, "UTF-16")):
        if data.startswith(mark):
            raise ConfigError("file-not-text", f"the file is {encoding} text; JSON is"
                              " UTF-8: save it again as UTF-8")
    if data.startswith(codecs.BOM_UTF8):
        remarks.warn("file-byte-order-mark", "the file starts with a byte order mark,"
                     " which transformers refuses; save it as UTF-8 without one")
        data = data[len(codecs.BOM_UTF8):]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError("file-not-text", f"byte {error.start}"
                          f" (0x{data[error.start]:02x}) is no UTF-8: the file is"
                          " another encoding, or no text") from None
    if not text.strip():
        raise ConfigError("file-empty", "the file is empty")
    return text


def _parsed(text: str, remarks: Remarks):
    """The JSON value; each usual kind of wrong file gets its own sentence."""
    repeated: set[str] = set()
    try:
        values = json.loads(text, parse_int=_integer, parse_float=_float,
                            parse_constant=Unreadable,
                            object_pairs_hook=lambda pairs: _object(pairs, repeated))
    except RecursionError:
        raise ConfigError("file-nesting", "the brackets are nested too deep for a"
                          " config"
                          ) from None
    except json.JSONDecodeError as error:
        raise _not_json(text, error) from None
    for key in sorted(repeated)[:5]:
        remarks.warn("file-repeated-key", f"the key {shown(key)} stands twice in one"
                     " object; the last value counts")
    return values


def _object(pairs, repeated: set[str]) -> dict:
    values = dict(pairs)
    if len(values) != len(pairs):
        seen = set()
        repeated.update(key for key, _ in pairs if key in seen or seen.add(key))
    return values


def _integer(digits: str):
    if len(digits) > LONGEST_INTEGER:
        return Unreadable(f"a number of {len(digits)} digits")
    return int(digits)


def _float(digits: str):
    number = float(digits)
    return number if math.isfinite(number) else Unreadable(digits[:20])


def _not_json(text: str, error: json.JSONDecodeError) -> ConfigError:
    """Why the text is no JSON, by the marks of the usual mix-ups."""
    start = text.lstrip()[:200]
    where = f"line {error.lineno}, column {error.colno}"
    if start.startswith("<"):
        return ConfigError("file-html", f"this is a web page, not JSON ({where}): often"
                           " a sign-in or a 404 page saved under this name; download it"
                           " again")
    if re.match(r"\{\s*'", start):
        return ConfigError("file-python", f"single quotes at {where}: this looks like a"
                           " Python dictionary printed with str(); write it with"
                           " json.dump")
    if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
        return ConfigError("file-json", f"the file stops in the middle, at {where}: a"
                           " download that was cut off?")
    return ConfigError("file-json", f"no JSON: {error.msg} at {where}")
