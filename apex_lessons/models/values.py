"""One value of a config at a time: right type and range, or a sentence with why."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from apex_lessons.models.reading import Unreadable
from apex_lessons.models.remarks import ConfigError, Remarks, number_text, shown

WIDEST_HEAD = 65_536  # elements; released heads stay below 1024
LONGEST_TEXT = 2**31  # tokens; longer is possible, and suspicious


class Settings:
    """The model's own part of a config, read key by key and never changed.

    ``path`` is where it stands in the file ("text_config"), ``names`` the family's
    other names of the usual keys, tried first.
    """

    def __init__(self, values: Mapping[str, Any], remarks: Remarks, path: str = "",
                 names: Mapping[str, list[str]] | None = None):
        self.values, self.remarks, self.path = values, remarks, path
        self.names = dict(names or {})

    def has(self, key: str) -> bool:
        """Whether the file states the key, null not counted."""
        return self.values.get(key) is not None

    def key_of(self, name: str) -> str | None:
        """The key under which the file states a usual setting, or None."""
        candidates = [*self.names.get(name, ()), *USUAL_NAMES.get(name, (name,))]
        for key in candidates:
            if self.has(key):
                return key
        return next((key for key in candidates if key in self.values), None)

    def whole(self, key: str, *, at_least: int = 1, at_most: int | None = None,
              hint: str = "") -> int:
        """The whole number under ``key``; ConfigError names the key and the value."""
        number = self.real(key, hint=hint)
        if not float(number).is_integer():
            raise _error("value-type", key, self.values[key], "must be a whole"
                         " number", hint)
        if isinstance(self.values[key], float):
            self.remarks.warn("value-written-as-float", f"{key} is written {number},"
                              " with a fraction of zero: transformers refuses that;"
                              f" write {int(number)}")
        if number < at_least:
            raise _error("value-range", key, number, "must be at least"
                         f" {at_least}", hint)
        if at_most is not None and number > at_most:
            raise _error("value-range", key, number, f"must be at most {at_most}", hint)
        return int(number)

    def real(self, key: str, *, above: float | None = None,
             at_most: float | None = None,
             hint: str = "") -> float:
        """The finite number under ``key``; ConfigError names the key and the value."""
        return real_value(key, self.values.get(key), above=above, at_most=at_most,
                          hint=hint)

    def flag(self, key: str) -> bool:
        """The true or false under ``key``; ConfigError for a string "false"."""
        return flag_value(key, self.values.get(key))


def real_value(key: str, value, *, above: float | None = None,
               at_most: float | None = None,
               at_least: float | None = None, hint: str = "") -> float:
    """``value`` if it is a finite number in range; ConfigError naming key and value."""
    if value is None:
        raise _error("value-null", key, value, "must be a number", hint)
    if isinstance(value, Unreadable):
        text = f"{key} is {value.text}: no number that a computer holds"
        raise ConfigError("value-not-finite", text)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _error("value-type", key, value, "must be a number", hint)
    if isinstance(value, float) and not math.isfinite(value):
        raise _error("value-not-finite", key, value, "must be finite", hint)
    if above is not None and value <= above:
        raise _error("value-range", key, value, f"must be above {number_text(above)}",
                     hint)
    if at_least is not None and value < at_least:
        raise _error("value-range", key, value, "must be at least"
                     f" {number_text(at_least)}",
                     hint)
    if at_most is not None and value > at_most:
        raise _error("value-range", key, value, "must be at most"
                     f" {number_text(at_most)}", hint)
    return value


def flag_value(key: str, value) -> bool:
    """``value`` if it is true or false; ConfigError otherwise.

    >>> flag_value("truncate", False)
    False
    """
    if isinstance(value, bool):
        return value
    hint = ""
    if isinstance(value, str):
        hint = "a string that is not empty counts as true in Python"
    raise _error("value-type", key, value, "must be true or false", hint)


def list_value(key: str, value, rule: str = "value-type") -> list:
    """``value`` if it is a list; ConfigError otherwise."""
    if isinstance(value, list):
        return value
    raise _error(rule, key, value, "must be a list", "")


def nearest(word: str, known: Iterable[str], cutoff: float = 0.8) -> str:
    """A hint with the nearest known word, or nothing.

    >>> nearest("rope_tetha", ["rope_theta", "head_dim"])
    ', did you mean rope_theta?'
    """
    found = difflib.get_close_matches(word[:60], list(known), n=1, cutoff=cutoff)
    return f", did you mean {found[0]}?" if found else ""


def _error(rule: str, key: str, value, problem: str, hint: str) -> ConfigError:
    text = f"{key} {problem}, got {shown(value)}"
    return ConfigError(rule, f"{text}; {hint}" if hint else text)


# What the usual settings are called in some file or other, the common name first.
USUAL_NAMES = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "model_dim", "dim"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "max_seq_len",
                                "seq_length", "max_sequence_length", "n_ctx",
                                "context_length", "max_seq_length", "model_max_length"),
}
