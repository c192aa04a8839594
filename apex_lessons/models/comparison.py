"""Two settings side by side, pair by pair: ``compare(a, b) -> Comparison``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apex_lessons import rope
from apex_lessons.models.config import RopeSettings
from apex_lessons.models.remarks import ConfigError, number_text
from apex_lessons.models.report import Report, clean, explain, sample_pairs, wrapped


def compare(a, b, length: int | None = None) -> Comparison:
    """Two configs (dictionaries, paths or names of released models) side by side.

    ``length``: tokens of the text at hand. Where a model has several sets of
    frequencies, sets of the same name are compared if both have it, else each model's
    main set. Raises ConfigError where one of them has no rotary positions.

    >>> plain = {"model_type": "llama", "hidden_size": 8, "num_attention_heads": 1,
    ...          "max_position_embeddings": 64, "rope_theta": 10000.0}
    >>> stretched = {**plain, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    >>> compare(plain, stretched).data()["largest_ratio"]["ratio"]
    4.0
    """
    first, second = explain(a, length), explain(b, length)
    for report in (first, second):
        if not report.settings:
            raise ConfigError("family-no-rotary", f"{report.name} has no rotary"
                              f" positions ({report.settings.positions}): nothing to"
                              " compare")
    return Comparison(first, second)


@dataclass(frozen=True)
class Comparison:
    """Two reports and the pairs they have in common."""

    a: Report
    b: Report

    @property
    def labels(self) -> tuple[tuple[str, str], ...]:
        """The sets that are compared: (label in a, label in b)."""
        shared = [label for label in self.a.settings if label in self.b.settings]
        if shared:
            return tuple((label, label) for label in shared)
        return ((self.a.settings.main, self.b.settings.main),)

    @property
    def _main(self) -> tuple[RopeSettings, RopeSettings]:
        wanted = (self.a.settings.main, self.b.settings.main)
        labels = wanted if wanted in self.labels else self.labels[0]
        return self.a.settings[labels[0]], self.b.settings[labels[1]]

    def data(self) -> dict[str, Any]:
        """Everything as plain data: ``a``, ``b`` (names), ``settings`` (each as {a,
        b}), ``pairs`` (one object a pair both have: pair, a_inv_freq, b_inv_freq, ratio
        (the larger by the smaller, null where one stands), a_wavelength, b_wavelength,
        half_turn_apart (tokens until the two angles are half a turn apart, null if
        never)), ``largest_ratio`` and ``first_apart`` (two of those), ``sets``
        (the same for each set where there are several), ``only_a`` and ``only_b``
        (pairs that the other does not have).
        """
        sets = {}
        for left, right in self.labels:
            name = left if left == right else f"{left} / {right}"
            sets[name] = set_comparison(self.a.settings[left], self.b.settings[right])
        main = set_comparison(*self._main)
        return {"schema": 1, "a": self.a.name, "b": self.b.name, **main,
                "sets": sets if len(sets) > 1 else {}}

    def text(self) -> str:
        """The comparison in words, 88 columns."""
        return "\n".join(line for _, line in self.lines()) + "\n"

    def lines(self) -> Iterator[tuple[str, str]]:
        """(style, line) of the comparison."""
        yield "title", f"a: {self.a.name}"
        yield "title", f"b: {self.b.name}"
        for left, right in self.labels:
            if len(self.labels) > 1 or left != right:
                yield "plain", ""
                yield "head", f"{clean(left)}" if left == right else \
                    f"{clean(left)} (a) and {clean(right)} (b)"
            yield from _set_lines(self.a.settings[left], self.b.settings[right])

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": self.text().rstrip("\n")}


def set_comparison(a: RopeSettings, b: RopeSettings) -> dict[str, Any]:
    """Two sets of frequencies, pair by pair; keys as in ``Comparison.data``."""
    pairs = compare_pairs(a, b)
    turning = [row for row in pairs if row["ratio"] is not None]
    apart = [row for row in pairs if row["half_turn_apart"] is not None]
    return {
        "settings": {name: {"a": left, "b": right}
                     for name, left, right in _settings(a, b)},
        "pairs": pairs,
        "largest_ratio": max(turning, key=lambda row: row["ratio"], default=None),
        "first_apart": min(apart, key=lambda row: row["half_turn_apart"], default=None),
        "only_a": max(0, len(a.plain) - len(b.plain)),
        "only_b": max(0, len(b.plain) - len(a.plain))}


def compare_pairs(a: RopeSettings, b: RopeSettings) -> list[dict[str, Any]]:
    """One row for each pair number that both have."""
    left, right = a.scaled.inv_freq.tolist(), b.scaled.inv_freq.tolist()
    waves = [rope.wavelengths(item.scaled.inv_freq).tolist() for item in (a, b)]
    rows = []
    for pair, (first, second) in enumerate(zip(left, right)):
        low, high = sorted((first, second))
        difference = high - low
        rows.append({
            "pair": pair, "a_inv_freq": first, "b_inv_freq": second,
            "ratio": high / low if low > 0 and math.isfinite(high / low) else None,
            "a_wavelength": _finite(waves[0][pair]),
            "b_wavelength": _finite(waves[1][pair]),
            # the two angles differ by m * difference; half a turn is pi
            "half_turn_apart": _finite(math.pi / difference)
            if difference > 0 else None})
    return rows


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _settings(a: RopeSettings, b: RopeSettings) -> Iterator[tuple[str, Any, Any]]:
    for name in ("method", "layout", "base", "head_dim", "rotary_dim", "factor",
                 "trained_length", "longest_length", "softmax_factor", "score_factor"):
        yield name, getattr(a, name), getattr(b, name)
    yield "attention_factor", a.scaled.attention_factor, b.scaled.attention_factor


def _set_lines(a: RopeSettings, b: RopeSettings) -> Iterator[tuple[str, str]]:
    data = set_comparison(a, b)
    yield "head", f"  {'':18s}{'a':>18s}{'b':>18s}"
    for name, left, right in _settings(a, b):
        mark = "" if left == right else "   differs"
        yield "plain", f"  {name:18s}{_cell(left):>18s}{_cell(right):>18s}{mark}"
    yield "plain", ""
    yield "head", (f"  {'pair':>5s}{'a rad/token':>14s}{'b rad/token':>14s}"
                   f"{'ratio':>10s}{'half a turn apart after':>26s}")
    worst = {row["pair"] for row in (data["largest_ratio"], data["first_apart"]) if row}
    for row in data["pairs"]:
        if row["pair"] in {*sample_pairs(len(data["pairs"])), *worst}:
            after = row["half_turn_apart"]
            tokens = "never" if after is None else f"{after:.6g} tokens"
            yield "plain", (f"  {row['pair']:5d}{row['a_inv_freq']:14.6g}"
                            f"{row['b_inv_freq']:14.6g}{_cell(row['ratio']):>10s}"
                            f"{tokens:>26s}")
    yield "plain", ""
    for text in verdicts(a, b, data):
        yield from (("plain", line) for line in wrapped(text, "  "))


def verdicts(a: RopeSettings, b: RopeSettings, data: dict[str, Any]) -> Iterator[str]:
    """The largest disagreement and what it means in tokens."""
    worst, first = data["largest_ratio"], data["first_apart"]
    if data["only_a"] or data["only_b"]:
        yield (f"a has {len(a.plain)} pairs, b has {len(b.plain)}: only the first"
               f" {len(data['pairs'])} can be compared, and pair i is not the same"
               " share of a head.")
    if first is None:
        yield "All common pairs have the same frequencies."
    else:
        if worst is not None and worst["ratio"] > 1:
            yield (f"Largest disagreement: pair {worst['pair']}, one turn in"
                   f" {_cell(worst['a_wavelength'])} tokens in a and"
                   f" {_cell(worst['b_wavelength'])} in b, {worst['ratio']:.6g} times.")
        yield (f"First to disagree: pair {first['pair']}, half a turn apart after"
               f" {first['half_turn_apart']:.6g} tokens; before that the two angles are"
               " closer.")
    if a.layout != b.layout:
        yield ("The layouts differ: weights of one do not fit the other without a"
               " permutation of the rows of W_q and W_k.")
    if not math.isclose(a.score_factor, b.score_factor, rel_tol=1e-12):
        yield (f"Scores: a multiplies them by {a.score_factor:.6g},"
               f" b by {b.score_factor:.6g}.")


def _cell(value) -> str:
    if value is None:
        return "-"
    return number_text(value) if isinstance(value, (int, float)) else str(value)
