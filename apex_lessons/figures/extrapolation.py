"""Pictures of lesson 05: loss by position, by length, answers by distance, entropy.

Every picture ``name(...)`` has its numbers in a pure function beside it and a
``describe_name(...)`` that says them in text. The numbers are the stored measurements
of ``apex_lessons.extrapolation``; a band goes from the least to the greatest seed.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from apex_lessons.extrapolation import (
    LENGTHS,
    METHODS,
    Band,
    band,
    select,
    training_log,
)
from apex_lessons.extrapolation.checkpoints import seeds
from apex_lessons.extrapolation.measuring import BIN, DISTANCES
from apex_lessons.figures import (
    INK,
    LINE_STYLES,
    MARKERS,
    PALETTE,
    new_figure,
)

TRAINED = LENGTHS[0]
PAPERS = ("none", "position_interpolation", "ntk_aware", "yarn")
# Each method keeps its colour, line and marker in every picture of the lesson.
LOOKS = {
    "none": (PALETTE[6], "-", "o"),
    "position_interpolation": (PALETTE[1], "--", "s"),
    "ntk_aware": (PALETTE[4], "-.", "^"),
    "dynamic_ntk": (PALETTE[5], ":", "v"),
    "ntk_by_parts": (PALETTE[5], (0, (5, 1)), "D"),
    "ntk_by_parts_rotations": (PALETTE[3], (0, (1, 1)), "X"),
    "yarn": (PALETTE[0], "-", "D"),
    "yarn_rotations": (PALETTE[2], "--", "X"),
    "llama3": (PALETTE[2], (0, (3, 1, 1, 1, 1, 1)), "P"),
    "apex1": (PALETTE[3], "-.", "v"),
    "apex1_scores": (PALETTE[3], ":", "^"),
}


class Curve(NamedTuple):
    """One method's values: ``x``, and a band over the seeds at each."""

    method: str
    x: tuple[float, ...]
    bands: tuple[Band, ...]


# --- loss by position ---------------------------------------------------------------


def position_curves(
    methods: Sequence[str],
    *,
    length: int,
    text: str = "recall",
    seed: int | None = None,
    factor: float | None = None,
    tuned: bool = False,
) -> list[Curve]:
    """Loss, nats a byte, in bins of 128 bytes; ``x`` is each bin's middle, in bytes."""
    curves = []
    for method in methods:
        records = select(
            method=method, length=length, text=text, factor=factor, tuned=tuned
        )
        rows = [r.by_position for r in records if seed is None or r.seed == seed]
        bands = tuple(band(column) for column in zip(*rows, strict=True))
        middles = tuple((at + 0.5) * BIN for at in range(len(bands)))
        curves.append(Curve(method, middles, bands))
    return curves


def loss_by_position(methods: Sequence[str], *, length: int, **settings) -> Figure:
    """Loss along a text of ``length`` bytes; settings as in ``position_curves``."""
    curves = position_curves(methods, length=length, **settings)
    figure, axis = new_figure(7.2, 3.8)
    _draw(axis, curves)
    _mark_trained(axis)
    axis.set(xlabel="position in the text, bytes", ylabel="loss, nats a byte")
    axis.set_xlim(0, length)
    _legend(figure)
    return figure


def describe_loss_by_position(
    methods: Sequence[str], *, length: int, **settings
) -> str:
    """Each method's loss within the trained length, and in the text's last quarter."""
    curves = position_curves(methods, length=length, **settings)
    lines = []
    for curve in curves:
        early = [
            b.mean for x, b in zip(curve.x, curve.bands, strict=True) if x < TRAINED
        ]
        late = [b.mean for b in curve.bands[-max(1, len(curve.bands) // 4) :]]
        name = METHODS[curve.method][0]
        lines.append(
            f"{name}: first {TRAINED} bytes {_mean(early):.3f}, last quarter"
            f" {_mean(late):.3f}"
        )
    return "\n".join(lines)


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


# --- loss by length -----------------------------------------------------------------


def length_curves(
    methods: Sequence[str], *, text: str = "recall", value: str = "loss"
) -> list[Curve]:
    """A method's ``loss``, ``accuracy`` or ``entropy`` at each length, zero-shot."""
    curves = []
    for method in methods:
        records = [select(method=method, length=n, text=text) for n in LENGTHS]
        bands = tuple(band(getattr(r, value) for r in some) for some in records)
        curves.append(Curve(method, LENGTHS, bands))
    return curves


LENGTH_LABELS = {
    "loss": "loss, nats a byte",
    "accuracy": "share of answers right",
    "entropy": "attention entropy, nats",
}


def loss_by_length(
    methods: Sequence[str], *, text: str = "recall", value: str = "loss"
) -> Figure:
    """Loss (or another value) against the text's length; the factor is length / 512."""
    figure, axis = new_figure(7.2, 3.8)
    _draw(axis, length_curves(methods, text=text, value=value))
    axis.set_xscale("log", base=2)
    axis.set_xticks(LENGTHS, [f"{n:,}\n{n // TRAINED}x" for n in LENGTHS])
    axis.set(xlabel="length of the text, bytes", ylabel=LENGTH_LABELS[value])
    _legend(figure)
    return figure


def describe_loss_by_length(
    methods: Sequence[str], *, text: str = "recall", value: str = "loss"
) -> str:
    """One line a method: the mean over the seeds at each length."""
    return "\n".join(
        f"{METHODS[curve.method][0]}: "
        + ", ".join(
            f"{x // TRAINED}x {b.mean:.3f}"
            for x, b in zip(curve.x, curve.bands, strict=True)
        )
        for curve in length_curves(methods, text=text, value=value)
    )


# --- answers by distance ------------------------------------------------------------


def distance_curves(
    methods: Sequence[str],
    *,
    length: int,
    seed: int | None = None,
    factor: float | None = None,
    tuned: bool = False,
) -> list[Curve]:
    """Share of right answers by how far back the fact lies; ``x``: bins' middles."""
    curves = []
    for method in methods:
        records = select(method=method, length=length, factor=factor, tuned=tuned)
        rows = [r.by_distance for r in records if seed is None or r.seed == seed]
        columns = [col for col in zip(*rows, strict=True) if col[0][1] > 0]
        bands = tuple(band(right / n for right, n in column) for column in columns)
        edges = zip(DISTANCES[:-1], DISTANCES[1:], strict=True)
        middles = tuple(math.sqrt(low * high) for low, high in edges)[: len(bands)]
        curves.append(Curve(method, middles, bands))
    return curves


def accuracy_by_distance(methods: Sequence[str], *, length: int, **settings) -> Figure:
    """Share of answers found, by distance in bytes; one in eight is a guess."""
    figure, axis = new_figure(7.2, 3.8)
    _draw(axis, distance_curves(methods, length=length, **settings))
    axis.set_xscale("log", base=2)
    axis.set_xticks(DISTANCES, [f"{edge:,}" for edge in DISTANCES])
    axis.axhline(1 / 8, color=INK, linewidth=0.8, linestyle=":", label="guessing")
    _mark_trained(axis)
    axis.set(xlabel="bytes back to the fact", ylabel="share of answers right")
    axis.set_ylim(0, 1.03)
    _legend(figure)
    return figure


def describe_accuracy_by_distance(
    methods: Sequence[str], *, length: int, **settings
) -> str:
    """One line a method: the share of right answers in each bin of distances."""
    lines = []
    for curve in distance_curves(methods, length=length, **settings):
        bins = zip(DISTANCES, DISTANCES[1:], curve.bands, strict=False)
        shares = ", ".join(
            f"{low} to {high - 1}: {b.mean:.2f}" for low, high, b in bins
        )
        lines.append(f"{METHODS[curve.method][0]}: {shares}")
    return "\n".join(lines)


# --- training -----------------------------------------------------------------------


def training_curves() -> dict[str, list[tuple[int, Band]]]:
    """Step and band over the seeds: ``recall``, ``natural`` loss and ``accuracy``."""
    logs = [training_log(seed) for seed in seeds()]
    return {
        name: [
            (lines[0].step, band(getattr(line, name) for line in lines))
            for lines in zip(*logs, strict=True)
        ]
        for name in ("recall", "natural", "accuracy")
    }


def training() -> Figure:
    """Both losses, and the share of answers found, while the models learn."""
    figure, (left, right) = new_figure(7.2, 3.2, columns=2)
    looks = {"recall": "none", "natural": "yarn", "accuracy": "ntk_aware"}
    for name, points in training_curves().items():
        steps, bands = zip(*points, strict=True)
        axis = right if name == "accuracy" else left
        _line(axis, Curve(looks[name], steps, bands), name)
    left.set(xlabel="step", ylabel="loss, nats a byte")
    right.set(xlabel="step", ylabel="share of answers right", ylim=(0, 1.03))
    left.legend(frameon=False, fontsize=9)
    return figure


def describe_training() -> str:
    """First and last logged values, means over the seeds."""
    curves = training_curves()
    parts = [
        f"{name} {points[0][1].mean:.2f} to {points[-1][1].mean:.2f}"
        for name, points in curves.items()
    ]
    first, last = curves["recall"][0][0], curves["recall"][-1][0]
    return f"step {first} to {last}, mean over seeds: " + ", ".join(parts)


# --- drawing ------------------------------------------------------------------------


def _draw(axis, curves: Sequence[Curve]) -> None:
    for curve in curves:
        _line(axis, curve, METHODS[curve.method][0])


def _line(axis, curve: Curve, label: str, look: tuple | None = None) -> None:
    colour, style, marker = look or LOOKS[curve.method]
    means = [b.mean for b in curve.bands]
    every = max(1, len(means) // 8)
    axis.plot(
        curve.x,
        means,
        color=colour,
        linestyle=style,
        marker=marker,
        markersize=4.5,
        markevery=every,
        linewidth=1.8,
        label=label,
    )
    lows, highs = [b.low for b in curve.bands], [b.high for b in curve.bands]
    axis.fill_between(curve.x, lows, highs, color=colour, alpha=0.13, linewidth=0)


def _mark_trained(axis) -> None:
    axis.axvline(TRAINED, color=INK, linewidth=1.0, linestyle="--")
    axis.annotate(
        "trained\nlength",
        (TRAINED, 0.98),
        xycoords=("data", "axes fraction"),
        xytext=(4, 0),
        textcoords="offset points",
        va="top",
        fontsize=8,
        color=INK,
    )


def _legend(figure: Figure) -> None:
    """Outside the axes: curves fill them from edge to edge."""
    figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5)


def unnamed(bands: Mapping[str, Sequence[Band]]) -> Figure:
    """Loss by position of curves that are called by letters; bins of 128 bytes."""
    figure, axis = new_figure(7.2, 3.8)
    looks = zip(PALETTE, LINE_STYLES, MARKERS, strict=True)
    for (letter, values), look in zip(bands.items(), looks, strict=False):
        middles = tuple((at + 0.5) * BIN for at in range(len(values)))
        _line(axis, Curve("none", middles, tuple(values)), letter, look)
    _mark_trained(axis)
    axis.set(xlabel="position in the text, bytes", ylabel="loss, nats a byte")
    _legend(figure)
    return figure


def describe_unnamed(bands: Mapping[str, Sequence[Band]]) -> str:
    """Each curve's loss in the first 512 bytes and in the text's last quarter."""
    lines = []
    for letter, values in bands.items():
        early = _mean([b.mean for b in values[: TRAINED // BIN]])
        late = _mean([b.mean for b in values[-len(values) // 4 :]])
        lines.append(
            f"{letter}: first {TRAINED} bytes {early:.3f}, last quarter {late:.3f}"
        )
    return "\n".join(lines)


# --- near and far -------------------------------------------------------------------

NEAR, FAR = 128, TRAINED  # bytes: nearer than the one, at least as far as the other


class NearFar(NamedTuple):
    """One method's share of answers found near by and far away, bands over seeds."""

    method: str
    near: Band
    far: Band
    far_answers: int  # asked of each model


def near_and_far_shares(
    methods: Sequence[str] = tuple(METHODS), *, length: int, **settings
) -> list[NearFar]:
    """Answers less than 128 bytes back, and those 512 bytes back or more."""
    split = DISTANCES.index(NEAR), DISTANCES.index(FAR)
    rows = []
    for method in methods:
        counts = [
            r.by_distance for r in select(method=method, length=length, **settings)
        ]
        near = band(_share(row[: split[0]]) for row in counts)
        far = band(_share(row[split[1] :]) for row in counts)
        asked = sum(n for _, n in counts[0][split[1] :])
        rows.append(NearFar(method, near, far, asked))
    return rows


def _share(bins: Sequence[tuple[int, int]]) -> float:
    return sum(right for right, _ in bins) / sum(n for _, n in bins)


def near_and_far(
    methods: Sequence[str] = tuple(METHODS), *, length: int, **settings
) -> Figure:
    """Each method as a point: answers found near by (x) and far away (y)."""
    figure, axis = new_figure(7.2, 4.6)
    for row in near_and_far_shares(methods, length=length, **settings):
        colour, _, marker = LOOKS[row.method]
        spread = {
            "xerr": [[row.near.mean - row.near.low], [row.near.high - row.near.mean]],
            "yerr": [[row.far.mean - row.far.low], [row.far.high - row.far.mean]],
        }
        axis.errorbar(
            row.near.mean, row.far.mean, **spread, color=colour, marker=marker,
            markersize=7, linewidth=1, label=METHODS[row.method][0], linestyle="none",
        )  # fmt: skip
    axis.set(
        xlabel=f"share found, less than {NEAR} bytes back",
        ylabel=f"share found, {FAR} bytes back or more",
    )
    _legend(figure)
    return figure


def describe_near_and_far(
    methods: Sequence[str] = tuple(METHODS), *, length: int, **settings
) -> str:
    """One line a method: near, far, means over the seeds."""
    rows = near_and_far_shares(methods, length=length, **settings)
    lines = [f"{rows[0].far_answers} far answers are asked of each model"]
    lines += [
        f"{METHODS[row.method][0]}: near {row.near.mean:.2f}, far {row.far.mean:.2f}"
        for row in rows
    ]
    return "\n".join(lines)


# --- tables -------------------------------------------------------------------------


class Table:
    """Rows of words and numbers; shows itself in a notebook and in a terminal."""

    def __init__(
        self, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]
    ):
        self.caption, self.head, self.rows = caption, list(head), [*map(list, rows)]

    def __repr__(self) -> str:
        lines = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = "".join(
            f'<th scope="col">{html.escape(cell)}</th>' for cell in self.head
        )
        rows = "".join(
            f'<tr><th scope="row">{html.escape(first)}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in others)
            + "</tr>"
            for first, *others in self.rows
        )
        return (
            f"<table><caption>{html.escape(self.caption)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def loss_table(text: str, methods: Sequence[str] = tuple(METHODS)) -> Table:
    """Zero-shot loss of every method at every length: mean, and least to most."""
    rows = []
    for curve in length_curves(methods, text=text):
        cells = [_banded(b) for b in curve.bands]
        rows.append([METHODS[curve.method][0], *cells])
    head = ["method", *(f"{n // TRAINED}x ({n:,} bytes)" for n in LENGTHS)]
    caption = f"Loss on {text} text, nats a byte: mean over seeds (least to most)"
    return Table(caption, head, rows)


def _banded(b: Band) -> str:
    return f"{b.mean:.3f} ({b.low:.3f} to {b.high:.3f})"


STATIC_FACTORS = (4.0, 8.0)


def static_table(text: str, methods: Sequence[str]) -> Table:
    """Loss on texts of the trained length, read with factors set for longer ones."""
    plain = band(r.loss for r in select(method="none", length=TRAINED, text=text))
    rows = [[METHODS["none"][0], _banded(plain), _banded(plain)]]
    for method in methods:
        found = [
            select(method=method, length=TRAINED, text=text, factor=f)
            for f in STATIC_FACTORS
        ]
        rows.append(
            [
                METHODS[method][0],
                *(_banded(band(r.loss for r in some)) for some in found),
            ]
        )
    head = ["method", *(f"factor {f:g}, whatever the text" for f in STATIC_FACTORS)]
    return Table(f"Loss on {text} text of {TRAINED} bytes, nats a byte", head, rows)


def tuned_table(text: str, methods: Sequence[str]) -> Table:
    """Loss before and after the short fine-tuning at four times the trained length."""
    rows = []
    for method in methods:
        cells = [METHODS[method][0]]
        for length, factor, tuned in (
            (2048, None, False),
            (2048, 4.0, True),
            (512, 4.0, True),
            (4096, 8.0, True),
        ):
            records = select(
                method=method, length=length, text=text, factor=factor, tuned=tuned
            )
            cells.append(_banded(band(r.loss for r in records)))
        rows.append(cells)
    head = ["method", "4x, before", "4x, after", "1x, after", "8x, after"]
    return Table(f"Loss on {text} text, nats a byte", head, rows)

