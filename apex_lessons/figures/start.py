"""Pictures of page 00: the path of one token, and the shapes a model computes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.figures import INK, PALETTE, new_figure
from apex_lessons.figures.embedding import heat_map, rounded, seeded
from apex_lessons.models.apex1 import SIZES, apex1_config
from apex_lessons.norm import rms_norm
from apex_lessons.rope import RotaryEmbedding

# --- the path of one token ---------------------------------------------------------


def token_path(token: int = 2, position: int = 3, *, width: int = 8,
               seed: int = 0) -> dict[str, torch.Tensor]:
    """What this course's functions make of one token, step by step: each [width].

    id -> row of the table -> times sqrt(d) -> RMSNorm -> query -> query turned by its
    position. The weights are random: std 0.02 in the table, 1/sqrt(d) in the query
    matrix.
    """
    table = ScaledEmbedding(6, width, generator=seeded(seed))
    w_q = torch.randn(width, width, generator=seeded(seed + 1)) / math.sqrt(width)
    with torch.no_grad():
        row = table.weight[token]  # [width]
        scaled = table(torch.tensor([token]))[0]  # [width]
        normed = rms_norm(scaled)  # [width]
        query = (w_q @ normed)[None, None, None]  # [batch, heads, seq, width]
        turned, _ = RotaryEmbedding(width)(query, query, torch.tensor([position]))
    return {"row of the table": row.detach(), "× √d": scaled, "RMSNorm": normed,
            "query": query[0, 0, 0], f"turned, m = {position}": turned[0, 0, 0]}


def path_of_a_token(token: int = 2, position: int = 3, **sizes):
    """The steps as rows of numbers, from the table to the turned query."""
    steps = token_path(token, position, **sizes)
    figure, axes = new_figure(8.4, 4.2, rows=len(steps))
    for axis, (name, vector) in zip(axes, steps.items()):
        heat_map(axis, vector[None], "", row_labels=[name], decimals=3)
        size = vector.pow(2).mean().sqrt().item()
        axis.text(1.01, 0.5, f"RMS {size:.3f}", transform=axis.transAxes, fontsize=9,
                  va="center", color=INK)
    axes[0].set_title(f"token id {token}", fontsize=10, color=INK)
    return figure


def describe_path_of_a_token(token: int = 2, position: int = 3, **sizes) -> str:
    """The first two numbers and the size of each step."""
    return "\n".join(
        f"{name}: starts {rounded(vector[:2], 3)}, RMS"
        f" {vector.pow(2).mean().sqrt().item():.3f}"
        for name, vector in token_path(token, position, **sizes).items())


# --- shapes ------------------------------------------------------------------------

class Shape(NamedTuple):
    """A tensor of a forward pass: its name, its shape in symbols and in numbers."""

    name: str
    symbols: str
    sizes: tuple[int, ...]

    @property
    def numbers(self) -> int:
        return math.prod(self.sizes)


def tensor_shapes(batch: int, seq: int, d_model: int, *, d_head: int = 64,
                  vocab: int = 151_643) -> list[Shape]:
    """The tensors between the ids and the logits; d_model / d_head heads of queries.

    >>> [shape.numbers for shape in tensor_shapes(1, 2, 64, vocab=10)][:2]
    [2, 128]
    """
    heads = d_model // d_head
    return [
        Shape("token ids", "[B, S]", (batch, seq)),
        Shape("embedded X", "[B, S, d]", (batch, seq, d_model)),
        Shape("queries Q", "[B, H, S, d_h]", (batch, heads, seq, d_head)),
        Shape("cos, sin", "[S, d_h/2]", (seq, d_head // 2)),
        Shape("scores QKᵀ", "[B, H, S, S]", (batch, heads, seq, seq)),
        Shape("logits", "[B, S, V]", (batch, seq, vocab)),
    ]


def shapes(batch: int, seq: int, d_model: int, **sizes):
    """How many numbers each tensor holds, as bars on a logarithmic axis."""
    rows = tensor_shapes(batch, seq, d_model, **sizes)
    figure, axis = new_figure(8.0, 2.9)
    axis.barh(range(len(rows)), [row.numbers for row in rows], color=PALETTE[5])
    axis.set_xscale("log")
    axis.set_xlim(1, 1e16)
    axis.minorticks_off()
    for at, row in enumerate(rows):
        words = " × ".join(f"{size:,}" for size in row.sizes)
        axis.text(row.numbers * 1.3, at, words, va="center", fontsize=9, color=INK)
    axis.set_yticks(range(len(rows)), [f"{row.name}  {row.symbols}" for row in rows])
    axis.invert_yaxis()
    axis.set_xlabel("numbers in the tensor")
    axis.set_title(f"B = {batch}, S = {seq:,}, d = {d_model:,}", fontsize=10, color=INK)
    return figure


def describe_shapes(batch: int, seq: int, d_model: int, **sizes) -> str:
    """Each tensor with its shape, and its megabytes at two bytes a number.

    >>> print(describe_shapes(1, 2, 64, vocab=10).splitlines()[1])
    embedded X [B, S, d] = [1, 2, 64]: 128 numbers
    """
    return "\n".join(
        f"{row.name} {row.symbols} = {list(row.sizes)}: {row.numbers:,} numbers"
        for row in tensor_shapes(batch, seq, d_model, **sizes))


# --- the notation table ------------------------------------------------------------

# The typical values that the reference's section 1 prints, smallest and largest.
PRINTED = {
    "d": (512, 7168), "d_h": (64, 128), "d_r": (32, 64), "d_kv": (256, 512),
    "d_q": (192, 1536), "H_q": (8, 128), "H_kv": (2, 8), "L": (6, 72),
    "V": (151_643, 151_643), "E": (4, 256), "K": (2, 8), "W": (512, 4096),
}


class Notation(NamedTuple):
    """A symbol, what the reference prints, and what the four sizes have."""

    symbol: str
    meaning: str
    printed: tuple[int, int]
    values: tuple[int, ...]  # tiny, small, medium, large

    @property
    def verdict(self) -> str:
        """Do the printed bounds fit all four sizes, Small to Large, or neither?"""
        if self.printed == (min(self.values), max(self.values)):
            return "all four"
        if self.printed == (min(self.values[1:]), max(self.values[1:])):
            return "Small to Large"
        return "differs"


def notation() -> list[Notation]:
    """The symbols that are settings of a model, with the four sizes' values.

    >>> next(row.verdict for row in notation() if row.symbol == "W")
    'differs'
    """
    configs = [apex1_config(size) for size in SIZES]
    meanings = {row.symbol: row.meaning for row in configs[0].symbols()}
    return [Notation(symbol, meanings[symbol], printed,
                     tuple(getattr(config, symbol) for config in configs))
            for symbol, printed in PRINTED.items()]


def notation_table() -> str:
    """The notation as lines of text: printed bounds, four values, how they fit."""
    lines = [f"{'symbol':7}{'printed':>17}{'Tiny':>8}{'Small':>9}{'Medium':>9}"
             f"{'Large':>9}  printed bounds fit"]
    for row in notation():
        low, high = row.printed
        bounds = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        values = "".join(f"{value:>{8 + (at > 0)},}" for at, value in
                         enumerate(row.values))
        lines.append(f"{row.symbol:7}{bounds:>17}{values}  {row.verdict}")
    return "\n".join(lines)
