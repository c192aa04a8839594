"""The stored measurements: data with provenance, and how to ask them.

``data/results.json`` holds one record for each seed, text, method, factor and length,
with the versions it was made with. ``make measure`` remakes it from the checkpoints.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from apex_lessons.extrapolation.checkpoints import DATA, read_record, trained_length
from apex_lessons.extrapolation.decoder import DecoderSettings

DIGITS = 4  # of stored losses and shares; pages print three


def lengths_of(trained: int) -> tuple[int, ...]:
    """The lengths that models of one trained length are measured at.

    >>> lengths_of(512)
    (512, 1024, 2048, 4096)
    """
    return tuple(times * trained for times in (1, 2, 4, 8))


LENGTHS = lengths_of(DecoderSettings().trained_length)  # of the shipped models


@dataclass(frozen=True)
class Result:
    """One measurement of one trained model.

    ``factor`` None: length / trained length. ``tuned``: after fine-tuning at four times
    the trained length with the same method. Losses in nats a byte; ``entropy`` in nats,
    the mean over heads. ``by_distance``: right answers and answers.
    """

    seed: int
    text: str
    method: str
    factor: float | None
    length: int
    tuned: bool
    loss: float
    by_position: tuple[float, ...]
    accuracy: float | None
    by_distance: tuple[tuple[int, int], ...]
    entropy: float | None = None


@dataclass(frozen=True)
class Band:
    """Mean, smallest and largest value over the seeds."""

    mean: float
    low: float
    high: float


@cache
def stored(folder: Path = DATA) -> tuple[Result, ...]:
    """All stored measurements."""
    return tuple(_result(entry) for entry in _file(folder)["results"])


@cache
def provenance(folder: Path = DATA) -> dict:
    """With what the stored measurements were made."""
    return _file(folder)["made_with"]


def _file(folder: Path) -> dict:
    return read_record(folder / "results.json", "measure", _check)


def _check(record: dict) -> None:
    for entry in record["results"]:
        _result(entry)
    dict(record["made_with"])


def _result(entry: dict) -> Result:
    entry = entry | {"by_position": tuple(entry["by_position"])}
    entry["by_distance"] = tuple(map(tuple, entry["by_distance"]))
    return Result(**entry)


def save_results(results: Iterable[Result], made_with: dict, folder: Path) -> None:
    """Write all measurements, one a line."""
    lines = ",\n".join(json.dumps(asdict(result)) for result in results)
    head = json.dumps({"made_by": "make measure", "made_with": made_with}, indent=1)
    text = head[:-2] + f',\n "results": [\n{lines}\n ]\n}}\n'
    (folder / "results.json").write_text(text, encoding="utf-8")
    stored.cache_clear()
    provenance.cache_clear()


def select(
    *,
    method: str,
    length: int,
    text: str = "recall",
    factor: float | None = None,
    tuned: bool = False,
    folder: Path = DATA,
) -> tuple[Result, ...]:
    """The records of all seeds for one method, length, text and factor, by seed.

    Up to the trained length and without a factor every method is plain RoPE; it is
    stored once, as "none". Raises ValueError where nothing was measured.
    """
    short = factor is None and not tuned and length <= trained_length(folder)
    wanted = (text, "none" if short else method, factor, length, tuned)
    found = [r for r in stored(folder) if _key(r) == wanted]
    if not found:
        raise ValueError(
            f"nothing was measured for method {method!r}, length {length}, text"
            f" {text!r}, factor {factor}, tuned {tuned}"
        )
    return tuple(sorted(found, key=lambda result: result.seed))


def _key(r: Result) -> tuple:
    return (r.text, r.method, r.factor, r.length, r.tuned)


def band(values: Iterable[float]) -> Band:
    """Mean, least and greatest.

    >>> band([1.0, 2.0, 6.0])
    Band(mean=3.0, low=1.0, high=6.0)
    """
    values = list(values)
    return Band(statistics.fmean(values), min(values), max(values))
