"""Released models: one typed row each, with where every number comes from.

The table is ``released-models.csv`` beside this file. A cell there may carry a remark
("(HF default)", "(opt-in)", "in Meta code"); here the value and the remark are apart,
and what is unknown is None. Nothing is guessed: a rounded "256k" is no number.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import resources
from types import MappingProxyType

WHOLE = ("hidden_size", "vocab_size", "head_dim", "rotary_dims",
         "original_max_position_embeddings", "max_position_embeddings")
REAL = ("embedding_multiplier", "output_logit_multiplier", "norm_eps",
        "partial_rotary_factor", "rope_theta", "factor", "beta_fast", "beta_slow",
        "low_freq_factor", "high_freq_factor", "mscale", "mscale_all_dim",
        "attention_factor")
TRUTH = ("tie_word_embeddings", "truncate")
WORDS = ("norm_type", "rope_layout", "rope_scaling_type")


@dataclass(frozen=True)
class PublishedModel:
    """One released model. None means: not known, not set, or not applicable.

    Sizes are elements, lengths are tokens; ``rope_layout`` is "half" or "interleaved",
    ``rope_scaling_type`` "none" where the release scales nothing. ``remarks`` has the
    rest of a cell's text, by column; ``labelled`` has the numbers of a cell that holds
    several, by column and label; ``not_applicable`` names the columns that make no
    sense for this model.
    """

    model: str
    hidden_size: int | None
    vocab_size: int | None
    tie_word_embeddings: bool | None
    embedding_multiplier: float | None
    output_logit_multiplier: float | None
    norm_type: str | None
    norm_eps: float | None
    head_dim: int | None
    rotary_dims: int | None
    partial_rotary_factor: float | None
    rope_layout: str | None
    rope_theta: float | None
    rope_scaling_type: str | None
    factor: float | None
    original_max_position_embeddings: int | None
    max_position_embeddings: int | None
    beta_fast: float | None
    beta_slow: float | None
    low_freq_factor: float | None
    high_freq_factor: float | None
    mscale: float | None
    mscale_all_dim: float | None
    attention_factor: float | None
    truncate: bool | None
    source: str
    notes: str
    remarks: Mapping[str, str] = field(default_factory=dict)
    labelled: Mapping[str, Mapping[str, float | str]] = field(default_factory=dict)
    not_applicable: frozenset[str] = frozenset()


@cache
def published() -> tuple[PublishedModel, ...]:
    """The released models, typed: 33 rows in the order of the table.

    Every numeric column is a number or None, the two yes-or-no columns are booleans or
    None, and the provenance (``source``, ``notes``, ``remarks``) is apart.
    Source: ``released-models.csv`` beside this file, which names one for each row.

    >>> llama = next(row for row in published() if row.model == "Llama-3.1-8B-Instruct")
    >>> llama.rope_theta, llama.factor, llama.tie_word_embeddings, llama.mscale
    (500000.0, 8.0, False, None)
    """
    table = resources.files(__package__).joinpath("released-models.csv")
    rows = csv.DictReader(table.read_text(encoding="utf-8").splitlines())
    return tuple(_typed(row) for row in rows)


def _typed(row: dict[str, str]) -> PublishedModel:
    """One line of the table: each cell's value, remark and labelled numbers."""
    columns = [item.name for item in fields(PublishedModel)][:-3]
    typed, remarks, labelled = {}, {}, {}
    for column in columns:
        text = row[column].strip()
        if column in ("model", "source", "notes"):
            typed[column] = text
            continue
        value, remark = _cell(column, text, row)
        typed[column] = value
        if remark:
            remarks[column] = remark
        several = _labelled(column, text)
        if several:
            labelled[column] = MappingProxyType(several)
    blank = frozenset(name for name in columns if row[name].strip() == "n/a")
    return PublishedModel(**typed, remarks=MappingProxyType(remarks),
                          labelled=MappingProxyType(labelled), not_applicable=blank)


def _cell(column: str, text: str, row: dict[str, str]) -> tuple:
    """The value and the remark of one cell; None where the cell states no value."""
    if text == "n/a":
        return None, ""
    if text.startswith("unknown"):
        return None, _inner(text.removeprefix("unknown"))
    if column in TRUTH:
        word, _, rest = text.partition(" ")
        return {"true": True, "false": False}.get(word), (
            _inner(rest) if word in ("true", "false") else text)
    if column in WORDS:
        return _word(column, text)
    value, remark = _number(text, int(row["hidden_size"] or 0)
                            if row["hidden_size"].isdigit() else None)
    return (int(value) if value is not None and column in WHOLE else value), remark


def _word(column: str, text: str) -> tuple[str, str]:
    """A kind in the course's words, and what else the cell says about it."""
    for start, word in (("half-split", "half"), ("interleaved", "interleaved"),
                        ("RMSNorm", "RMSNorm"), ("LayerNorm", "LayerNorm"),
                        ("own three-regime rule", "apex1"), ("none", "none"),
                        ("linear", "linear"), ("longrope", "longrope"),
                        ("llama3", "llama3"), ("yarn", "yarn")):
        if text.startswith(start):
            if column == "rope_layout" and "half-split in HF" in text:
                # two code bases, two layouts: the released HF weights count
                word = "half"
            rest = text if word == "none" else text.removeprefix(start)
            return word, "" if text == start else _inner(rest)
    raise ValueError(f"released-models.csv: {column} says {text!r}; teach _word its"
                     " kind")


def _number(text: str, width: int | None) -> tuple[float | None, str]:
    """The number that a cell states and the text around it; None for a rounded one."""
    for pattern, value in ((r"1/sqrt\([dn]\)", lambda: 1 / math.sqrt(width)),
                           (r"sqrt\(d\)", lambda: math.sqrt(width))):
        if width and re.match(pattern, text):
            return value(), text
    if found := re.match(r"(\d+)/(\d+)(?: |$)", text):  # 64/192 (decoupled)
        return int(found[1]) / int(found[2]), text
    for pattern in (r"qk (\d+) =", r"cos/sin x([\d.]+);", r".* = (\d\.\d+)(?: on"
                    r" cos,sin)?$"):
        if found := re.match(pattern, text):
            return float(found[1]), text
    if found := re.match(r"(\d+(?:\.\d+)?(?:e-?\d+)?)(?: (.*))?$", text):
        return float(found[1]), _inner(found[2] or "")
    return None, text  # "~37k shared BPE", "256k", "1M (README)", "not set", ...


def _labelled(column: str, text: str) -> dict[str, float | str]:
    """The numbers of a cell that holds one for each of several cases."""
    if found := re.match(r"(\d+) global / (\d+) local", text):
        return {"global": float(found[1]), "local": float(found[2])}
    if found := re.match(r"(\d+) \(GQA\) / (\d+) \(MLA\)", text):
        return {"GQA": int(found[1]), "MLA": int(found[2])}
    if found := re.search(r"softmax scale x([\d.]+)", text):
        return {"softmax scale": float(found[1])}
    if column == "rope_layout" and " in " in text:
        parts = [part.split(" in ", 1) for part in text.split("; ")]
        return {where: _word(column, kind)[0] for kind, where in parts}
    return {}


def _inner(text: str) -> str:
    """The text of a remark without the brackets or the separator around it."""
    text = text.strip().lstrip(":;,").strip()
    return text[1:-1] if re.fullmatch(r"\([^()]*\)", text) else text
