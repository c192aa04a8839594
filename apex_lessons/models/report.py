"""What a config says, in words and numbers: ``explain(config) -> Report``.

A report is made once from ``rope_from_config``'s result. ``data()`` has every number at
full precision under stable names, ``text()`` has the words, ``lines()`` the words with
a style for each line, for a terminal.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from apex_lessons import rope, yarn
from apex_lessons.models.config import RopeByLayerType, RopeSettings, rope_from_config
from apex_lessons.models.layers import numbers_text
from apex_lessons.models.methods import stacked
from apex_lessons.models.released import released_config
from apex_lessons.models.remarks import ConfigError, number_text, shown

SCHEMA = 1  # of data(): a key may be added, none is renamed or removed
REGIMES = ("unchanged", "blended", "interpolated")
MARKS = ".:#"  # one for each regime


def explain(config, length: int | None = None) -> Report:
    """What a model's config says about rotary positions, as a report.

    ``config``: a dictionary, a path, or the name of a released model. ``length``:
    tokens of the text at hand. A notebook cell that ends with ``explain(...)`` shows
    the report. Raises ConfigError, a ValueError, where there is nothing to explain.

    >>> report = explain({"model_type": "gpt2", "n_embd": 768})
    >>> report.data()["rotary"], report.data()["positions"]
    (False, 'learned absolute')
    """
    name = None
    if isinstance(config, str) and _is_name(config):
        name, config = config, released_config(config)
    return Report(rope_from_config(config, length=length), length, name)


def _is_name(text: str) -> bool:
    """Whether a string is a released model's name rather than a path."""
    if (text == "-" or text.endswith(".json") or "/" in text or "\\" in text
            or len(text) > 200):
        return False
    try:
        return not Path(text).exists()
    except (OSError, ValueError):
        return True


@dataclass(frozen=True)
class Report:
    """One config explained; ``settings`` is what ``rope_from_config`` returned."""

    settings: RopeByLayerType
    length: int | None = None
    title: str | None = None

    @property
    def name(self) -> str:
        """What is explained, safe to print."""
        return clean(self.title or self.settings.name)

    def data(self) -> dict[str, Any]:
        """Everything as plain dictionaries, lists and numbers, for JSON.

        ``schema``, ``source``, ``model_type``, ``family``, ``family_source``,
        ``rotary``, ``positions``, ``why``, ``layers``, ``layers_without_rotary``
        (0-based), ``query_factor``, ``warnings`` and ``notes`` (each {rule, text}).
        With rotary positions also ``top_level_is`` (the set whose numbers stand at the
        top), ``per_layer_type`` and, of the set: ``layout``, ``rope_type``,
        ``head_dim``, ``rotary_dims``, ``query_key_dims``, ``pairs``, ``base``,
        ``factor``, ``original_length`` and ``longest_length`` (tokens), ``parameters``,
        ``defaults``, ``inv_freq`` and ``plain_inv_freq`` (radians per token, one a
        pair), ``wavelengths`` and ``plain_wavelengths`` (tokens per turn, null where a
        pair stands), ``regimes``, ``counts``, ``longer_than_original`` and
        ``longer_than_original_after_scaling`` (pairs that never turn within the
        original length), ``attention_factor`` (on cos and sin), ``softmax_factor``,
        ``score_factor``, ``score_factor_covers``; LongRoPE adds ``inv_freq_long`` and
        ``counts_long``. ``length`` is the length that was asked for.
        """
        found = self.settings
        family = found.family
        data = {
            "schema": SCHEMA, "source": self.name,
            "model_type": None if found.model_type is None else clean(found.model_type),
            "family": family.model_type if family else None,
            "family_source": family.source if family else None,
            "rotary": bool(found), "positions": found.positions, "why": found.why,
            "length": self.length, "layers": found.layer_count,
            "layers_without_rotary": list(found.layers_without_rotary or ()),
            "query_factor": _jsonable(found.query_factor),
            "warnings": self._remarks("warning"), "notes": self._remarks("note")}
        if not found:
            return data
        sets = {label: set_data(value) for label, value in found.items()}
        data["top_level_is"] = found.main
        data |= sets[found.main]
        data["per_layer_type"] = sets if len(sets) > 1 else {}
        return data

    def _remarks(self, level: str) -> list[dict[str, str]]:
        return [{"rule": item.rule, "text": item.text} for item in self.settings.remarks
                if item.level == level]

    def text(self, *, warnings: bool = True) -> str:
        """The report in words, 88 columns, no control characters."""
        return "\n".join(line for _, line in self.lines(warnings=warnings)) + "\n"

    def lines(self, *, warnings: bool = True) -> Iterator[tuple[str, str]]:
        """(style, line) of the report; styles: title, head, plain, warning, note."""
        found = self.settings
        yield "title", f"Rotary positions of {self.name}"
        yield from self._lines_family()
        for label, value in found.items():
            if len(found) > 1:
                layers = ""
                if value.layers:
                    layers = f": layers {numbers_text(value.layers)}"
                yield "plain", ""
                yield "head", f"{clean(label)}{layers}"
            yield from set_lines(value, self.length)
        for level, title in (("warning", "Warnings"), ("note", "Notes")):
            texts = [item.text for item in found.remarks if item.level == level]
            if texts and (warnings or level == "note"):
                yield "plain", ""
                yield "head", title
                for text in texts:
                    yield from ((level, line)
                                for line in wrapped(clean(text, 2000), "- "))

    def _lines_family(self) -> Iterator[tuple[str, str]]:
        found, family = self.settings, self.settings.family
        kind = clean(found.model_type or "not stated")
        if family is None:
            yield "plain", (f"  family      {kind}: not in the table, explained by its"
                            " keys")
        else:
            yield "plain", f"  family      {family.model_type}   ({family.source})"
        if not found:
            yield "plain", f"  positions   no rotary positions: {found.positions}"
            for line in wrapped(clean(found.why), "              "):
                yield "plain", line
            return
        still, count = found.layers_without_rotary or (), found.layer_count
        if still:
            turning = f"{count - len(still)} of {count} layers; " if count else ""
            yield "plain", ("  positions   rotary in"
                            f" {turning}not in {numbers_text(still)}")
        else:
            everywhere = "" if count is None else f", all {count} layers"
            yield "plain", f"  positions   rotary{everywhere}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": self.text().rstrip("\n")}

    def __repr__(self) -> str:
        return f"<Report of {self.name}>"


def set_data(value: RopeSettings) -> dict[str, Any]:
    """One set of frequencies as plain data; ``Report.data`` says what the keys mean."""
    scaled, plain = value.scaled.inv_freq, value.plain
    regimes = yarn.regimes(plain, scaled, value.factor).tolist()
    whole = value.rotary_dim < value.head_dim or value.query_key_dims is not None
    data = {
        "layout": value.layout, "rope_type": value.method, "head_dim": value.head_dim,
        "rotary_dims": value.rotary_dim, "query_key_dims": value.query_key_dims,
        "pairs": len(scaled), "base": value.base, "factor": value.factor,
        "original_length": value.trained_length, "longest_length": value.longest_length,
        "parameters": _jsonable(value.parameters),
        "defaults": _jsonable(value.defaults),
        "inv_freq": stacked(scaled), "plain_inv_freq": stacked(plain),
        "wavelengths": _waves(scaled), "plain_wavelengths": _waves(plain),
        "regimes": [REGIMES[regime] for regime in regimes], "counts": counts(regimes),
        "longer_than_original": longer_than(plain, value.trained_length),
        "longer_than_original_after_scaling": longer_than(scaled, value.trained_length),
        "attention_factor": value.scaled.attention_factor,
        "softmax_factor": value.softmax_factor, "score_factor": value.score_factor,
        "score_factor_covers": _covers(value, whole),
        "layers_of_this_type": None if value.layers is None else list(value.layers)}
    return data if value.long is None else data | _long_data(value)


def _long_data(value: RopeSettings) -> dict[str, Any]:
    """LongRoPE's second list, in use beyond the trained length."""
    long = value.long.inv_freq
    regimes = yarn.regimes(value.plain, long, value.factor).tolist()
    return {"inv_freq_long": stacked(long), "counts_long": counts(regimes),
            "longer_than_original_after_scaling_long":
                longer_than(long, value.trained_length)}


def _covers(value: RopeSettings, partial: bool) -> str:
    """Which part of a score the factor reaches: cos and sin only reach what turns."""
    if value.softmax_factor != 1 and value.scaled.attention_factor == 1:
        return "the whole score (softmax scale)"
    if partial and value.scaled.attention_factor != 1:
        return "the part of the score that comes from turned dimensions"
    return "the whole score"


def counts(regimes: list[int]) -> dict[str, int]:
    """How many pairs are unchanged, blended and divided by the factor.

    >>> counts([0, 0, 1, 2])
    {'unchanged': 2, 'blended': 1, 'interpolated': 1}
    """
    return {name: regimes.count(number) for number, name in enumerate(REGIMES)}


def longer_than(inv_freq: torch.Tensor, length: int | None) -> int | None:
    """Pairs whose wavelength is longer than ``length`` tokens: no turn is complete.

    >>> longer_than(rope.inverse_frequencies(128), 4096)
    18
    """
    if length is None:
        return None
    return int((rope.wavelengths(inv_freq) > length).sum())


def _waves(inv_freq: torch.Tensor) -> list[float | None]:
    return [wave if math.isfinite(wave) else None
            for wave in rope.wavelengths(inv_freq).tolist()]


def _jsonable(value):
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    return value


# --- words ----------------------------------------------------------------------------

def set_lines(value: RopeSettings,
              length: int | None = None) -> Iterator[tuple[str, str]]:
    """(style, line) of one set of frequencies."""
    for name, text in facts(value):
        for number, line in enumerate(wrapped(text, "", width=72)):
            yield "plain", f"  {name if number == 0 else '':12s}{line}"
    yield "plain", ""
    yield from _table_lines(value)
    yield "plain", ""
    for text in sentences(value, length):
        yield from (("plain", line) for line in wrapped(text, "  "))


def _width(value: RopeSettings) -> str:
    """The width of a head and how much of it turns."""
    if value.query_key_dims:
        return (f"{value.rotary_dim} of {value.query_key_dims} query and key dimensions"
                " turn")
    part = f", the first {value.rotary_dim} turn"
    return f"{value.head_dim} dimensions" + part * (value.rotary_dim < value.head_dim)


def facts(value: RopeSettings) -> Iterator[tuple[str, str]]:
    """Name and value of each setting; what the file does not state is marked."""
    half = value.rotary_dim // 2
    pair = (f"i and i + {half}" if value.layout == "half" else "2i and 2i + 1")
    assumed = " (assumed)" if "layout" in value.defaults else ""
    yield "pairs", (f"{half}, layout {value.layout}{assumed}: dimensions {pair} turn"
                    " together")
    yield "head", _width(value) + _mark(value, "head_dim", "qk_rope_head_dim",
                                        "partial_rotary_factor", "rotary_dim",
                                        "rotary_pct")
    yield "base", number_text(value.base) + _mark(value, "rope_theta", "base",
                                                  "rotary_emb_base")
    known = value.trained_length is not None
    trained = f"{value.trained_length} tokens" if known else "not stated"
    if value.longest_length not in (None, value.trained_length):
        trained += f"; the file's max_position_embeddings is {value.longest_length}"
    yield "trained on", trained + _mark(value, "max_position_embeddings",
                                        "original_max_position_embeddings")
    yield "method", METHOD_WORDS.get(value.method, value.method)
    for name, number in value.parameters.items():
        shown_number = number_text(number)
        if isinstance(number, bool):
            shown_number = str(number).lower()
        yield "", f"{name} {shown_number}{_mark(value, name)}"


def _mark(value: RopeSettings, *names: str) -> str:
    return " (default)" if any(name in value.defaults for name in names) else ""


METHOD_WORDS = {
    "default": "default: plain rotary positions, no scaling",
    "linear": "linear: position interpolation, every frequency divided by the factor",
    "dynamic": "dynamic: NTK-aware, a larger base for longer texts",
    "yarn": "yarn: fast pairs kept, slow pairs divided, a ramp between, and a"
            " temperature",
    "longrope": "longrope: a divisor for each pair, shipped with the model",
    "llama3": "llama3: by parts, between two numbers of turns; no temperature",
    "proportional": "proportional: only the first pairs turn, exponents of the whole"
    " head",
    "ntk": "ntk: a larger base at every length",
    "apex1": "apex1: the rule printed in the reference, by wavelengths in tokens"}


def _table_lines(value: RopeSettings) -> Iterator[tuple[str, str]]:
    """A few pairs; where something is scaled, also one mark for each pair."""
    if value.method == "default":
        yield from _plain_table(value)
        return
    scaled, plain = value.scaled.inv_freq, value.plain
    regimes = yarn.regimes(plain, scaled, value.factor).tolist()
    yield "head", (f"  {'pair':>5s}  {'frequency':>12s}  {'wavelength':>12s} "
                   f" {'scaled':>12s}  {'wavelength':>12s}")
    yield "plain", (f"  {'':5s}  {'rad/token':>12s}  {'tokens/turn':>12s} "
                    f" {'rad/token':>12s}  {'tokens/turn':>12s}")
    for pair in sample_pairs(len(plain)):
        waves = [rope.wavelengths(source)[pair].item() for source in (plain, scaled)]
        yield "plain", (f"  {pair:5d}  {plain[pair].item():12.6g}  {waves[0]:12.6g}"
                        f"  {scaled[pair].item():12.6g}  {waves[1]:12.6g} "
                        f" {REGIMES[regimes[pair]]}")
    yield "plain", ""
    yield from _strip_lines(regimes, value.factor)


def _plain_table(value: RopeSettings) -> Iterator[tuple[str, str]]:
    """A few pairs of a model that scales nothing, with their turns in its length."""
    length, waves = value.trained_length, rope.wavelengths(value.plain).tolist()
    turns = "" if length is None else f"  {f'turns in {length}':>20s}"
    yield "head", f"  {'pair':>5s}  {'frequency':>12s}  {'wavelength':>12s}{turns}"
    yield "plain", f"  {'':5s}  {'rad/token':>12s}  {'tokens/turn':>12s}"
    for pair in sample_pairs(len(waves)):
        turned = "" if length is None else f"  {length / waves[pair]:20.6g}"
        yield "plain", (f"  {pair:5d}  {value.plain[pair].item():12.6g} "
                        f" {waves[pair]:12.6g}{turned}")


def _strip_lines(regimes: list[int], factor: float) -> Iterator[tuple[str, str]]:
    """One mark a pair, 64 in a line, and how many there are of each."""
    strip = "".join(MARKS[regime] for regime in regimes[:4096])
    for start in range(0, len(strip), 64):
        yield "strip", f"  {start:5d}  {strip[start:start + 64]}"
    count = counts(regimes)
    yield "plain", (f"         {MARKS[0]} {count['unchanged']} unchanged   {MARKS[1]}"
                    f" {count['blended']} blended   {MARKS[2]} {count['interpolated']}"
                    f" divided by {number_text(factor)}")


def sample_pairs(pairs: int) -> list[int]:
    """First, three middle ones, last.

    >>> sample_pairs(64), sample_pairs(2)
    ([0, 16, 32, 48, 63], [0, 1])
    """
    return sorted({0, pairs // 4, pairs // 2, 3 * pairs // 4, pairs - 1})


def sentences(value: RopeSettings, length: int | None = None) -> Iterator[str]:
    """What the numbers mean: turns, scores, short texts, the length asked for."""
    original = value.trained_length
    if original is not None:
        before = longer_than(value.plain, original)
        after = longer_than(value.scaled.inv_freq, original)
        text = (f"{before} of {len(value.plain)} pairs never complete a turn within"
                f" {original} tokens")
        yield text + ("." if after == before else f"; {after} after scaling.")
    yield _scores(value)
    yield _short_texts(value)
    if length is not None:
        yield (f"All numbers are for a text of {length} tokens." if value.method in
               ("dynamic", "longrope") else f"A text of {length} tokens uses the same"
               " numbers: this method does not look at the length.")


def _scores(value: RopeSettings) -> str:
    """The attention factor and what scores get of it."""
    factor, softmax = value.scaled.attention_factor, value.softmax_factor
    if factor == 1 and softmax == 1:
        return "Attention factor 1: scores keep their size."
    if factor == 1:
        return ("Attention factor 1 on cos and sin; the softmax scale gets"
                f" {softmax:.6g}, so the whole score does.")
    text = (f"Attention factor {factor:.6g} on cos and sin: queries and keys both carry"
            f" it, so their scores get its square, {factor ** 2:.6g}.")
    if softmax != 1:
        text += (f" The softmax scale gets {softmax:.6g} on top, so the whole score"
                 f" gets {value.score_factor:.6g}.")
    elif value.rotary_dim < value.head_dim:
        text += " Only the part that turns gets it."
    return text


def _short_texts(value: RopeSettings) -> str:
    """What the method changes for texts within the trained length."""
    if value.method == "dynamic" and "alpha" not in value.parameters:
        return f"Short texts: nothing changes up to {value.trained_length} tokens."
    if value.method == "longrope":
        return (f"Short texts: up to {value.trained_length} tokens the short list"
                " counts; the attention factor is the same at every length.")
    changed = int((value.scaled.inv_freq != value.plain).sum())
    if not changed and value.scaled.attention_factor == 1 and value.softmax_factor == 1:
        return "Short texts: nothing is scaled at any length."
    text = (f"Short texts: the scaling is always on. {changed} of {len(value.plain)}"
            " pairs turn slower in a text of ten tokens as well")
    if value.score_factor != 1:
        text += ", and scores are sharpened there too"
    return text + "."


def clean(text: str, limit: int = 200) -> str:
    """A string from outside, safe to print: ASCII, no control characters, not too long.

    >>> clean("a\\x1b[2Jb")
    'a\\\\x1b[2Jb'
    """
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return re.sub(r"[^\x20-\x7e]", lambda match: ascii(match[0])[1:-1], text)


def wrapped(text: str, first: str, width: int = 86) -> list[str]:
    """Lines of at most ``width`` columns; the later ones are indented like the first.

    >>> wrapped("one two three", "- ", width=10)
    ['- one two', '  three']
    """
    lines, line = [], first
    rest = " " * len(first)
    for word in text.split():
        if len(line) + len(word) + 1 > width and line.strip() and line != first:
            lines.append(line.rstrip())
            line = rest
        line += ("" if line in (first, rest) else " ") + word
    return [*lines, line.rstrip()] if line.strip() else lines


__all__ = ["ConfigError", "Report", "explain", "shown"]
