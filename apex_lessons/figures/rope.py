"""Pictures of lesson 03: clocks, wavelengths, distances, layouts, precision.

Every picture ``name(...)`` has its numbers in a pure function beside it and a
``describe_name(...)`` that says them in a line or two of text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Arc, FancyArrowPatch, Rectangle

from apex_lessons import rope
from apex_lessons.figures import FAINT, INK, MARKERS, PALETTE, PAPER, new_figure
from apex_lessons.models import published

BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY = PALETTE[:6]
SCORES = "PuOr"  # purple to orange through white: safe for colour-blind readers
SENTENCE = ("my", "dog", "bites", "your", "cat")
SWAPPED = (3, 4, 2, 0, 1)  # "your cat bites my dog"
SEED = 3


# ---------------------------------------------------------------- without positions
def attention_without_positions(words: Sequence[str], *,
                                width: int = 8) -> torch.Tensor:
    """Scores of a head that knows no positions: ``q k^T / sqrt(width)``.

    A word's vector depends on the word alone (a seeded random table over the sorted
    vocabulary). Returns float64 [words, words], row = query. No unit.

    >>> first = attention_without_positions(["my", "dog"])
    >>> second = attention_without_positions(["dog", "my"])
    >>> bool(first[0, 1] == second[1, 0])
    True
    """
    generator = torch.Generator().manual_seed(SEED)
    table, w_q, w_k = (torch.randn(n, width, generator=generator, dtype=torch.float64)
                       for n in (len(set(words)), width, width))
    vocabulary = sorted(set(words))
    hidden = table[[vocabulary.index(word) for word in words]]  # [words, width]
    q, k = hidden @ w_q / math.sqrt(width), hidden @ w_k / math.sqrt(width)
    return (q[:, None] * k[None]).sum(-1) / math.sqrt(width)  # [words, words]


def shuffled_sentence(words: Sequence[str] = SENTENCE,
                      order: Sequence[int] = SWAPPED) -> Figure:
    """The scores of a sentence and of its words in another order, side by side."""
    figure, axes = new_figure(8.0, 3.7, columns=2)
    sentences = [list(words), [words[i] for i in order]]
    for axis, sentence in zip(axes, sentences):
        scores = attention_without_positions(sentence)
        _heat(axis, scores, scores.abs().max().item())
        _write_values(axis, scores)
        where = sentence.index("bites"), sentence.index("dog")
        axis.add_patch(Rectangle((where[1] - 0.5, where[0] - 0.5), 1, 1, fill=False,
                                 edgecolor=INK, linewidth=2.5))
        axis.set_xticks(range(len(sentence)), sentence)
        axis.set_yticks(range(len(sentence)), sentence)
        axis.set(title=" ".join(sentence), xlabel="key", ylabel="query")
    return figure


def describe_shuffled_sentence(words: Sequence[str] = SENTENCE,
                               order: Sequence[int] = SWAPPED) -> str:
    """The framed score in both sentences, in words."""
    sentences = [list(words), [words[i] for i in order]]
    scores = [attention_without_positions(s)[s.index("bites"), s.index("dog")].item()
              for s in sentences]
    return "\n".join(
        f'score of query "bites" with key "dog" in "{" ".join(sentence)}": {score:.4f}'
        for sentence, score in zip(sentences, scores))


# --------------------------------------------------------------------- clock faces
def clock_hands(frequency: float, positions: Sequence[int]) -> torch.Tensor:
    """Where the hand points that starts at (1, 0): ``(cos m theta, sin m theta)``.

    ``frequency`` in radians per token. Returns float64 [positions, 2].

    >>> clock_hands(1.0, [0, 1])[0].tolist()
    [1.0, 0.0]
    """
    angles = torch.as_tensor(positions, dtype=torch.float64) * frequency
    return torch.stack([angles.cos(), angles.sin()], dim=-1)


def clock_face(frequencies: Sequence[float] = (1.0, 0.1),
               positions: Sequence[int] = tuple(range(6))) -> Figure:
    """One pair of numbers on a clock face for each frequency, at a few positions."""
    figure, axes = new_figure(3.6 * len(frequencies), 3.8, columns=len(frequencies),
                              squeeze=False)
    for axis, frequency in zip(axes[0], frequencies):
        _draw_dial(axis)
        hands = clock_hands(frequency, positions).tolist()
        for step, (m, (x, y)) in enumerate(zip(positions, hands)):
            shade = 0.25 + 0.75 * (step + 1) / len(positions)
            axis.plot([0, x], [0, y], color=BLUE, alpha=shade, linewidth=2.2,
                      solid_capstyle="round")
            axis.plot(x, y, "o", color=BLUE, alpha=shade, markersize=6)
            axis.annotate(str(m), (1.17 * x, 1.17 * y), ha="center", va="center",
                          color=INK, fontsize=9)
        wave = 2 * math.pi / frequency
        axis.set_xlabel(f"{frequency:g} rad a token: one turn in {wave:,.1f} tokens",
                        fontsize=10, color=INK)
    return figure


def describe_clock_face(frequencies: Sequence[float] = (1.0, 0.1),
                        positions: Sequence[int] = tuple(range(6))) -> str:
    """The hand's tip at the last position, for each frequency."""
    lines = []
    for frequency in frequencies:
        x, y = clock_hands(frequency, positions)[-1].tolist()
        lines.append(f"{frequency:g} rad a token: position {positions[-1]} points to "
                     f"({x:.4f}, {y:.4f}), angle {positions[-1] * frequency:.4f}"
                     " radians")
    return "\n".join(lines)


def _draw_dial(axis) -> None:
    axis.set_aspect("equal")
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xticks=[], yticks=[])
    turn = torch.linspace(0, 2 * math.pi, 181, dtype=torch.float64)
    axis.plot(turn.cos(), turn.sin(), color=INK, linewidth=1.1, alpha=0.7)
    for x, y in clock_hands(math.pi / 6, range(12)).tolist():
        axis.plot([0.93 * x, x], [0.93 * y, y], color=INK, linewidth=0.8, alpha=0.7)
    axis.plot([0, 1], [0, 0], color=FAINT, linewidth=1.2, zorder=0)
    axis.add_patch(FancyArrowPatch((0.37, 1.13), (-0.12, 1.18), color=INK, alpha=0.55,
                                   connectionstyle="arc3,rad=0.25", mutation_scale=10,
                                   arrowstyle="-|>", linewidth=1))


# --------------------------------------------------------------------- wavelengths
def wavelength_ladder(head_dim: int = 128, base: float = 10_000.0,
                      context_length: int = 4096) -> Figure:
    """The wavelength of each pair on a log axis, with the context length drawn."""
    figure, axis = new_figure(8.0, 4.2)
    waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base)).tolist()
    finished = [i for i, wave in enumerate(waves) if wave <= context_length]
    never = [i for i, wave in enumerate(waves) if wave > context_length]
    top = max(max(waves), context_length) * 2
    axis.axhspan(context_length, top, color=VERMILION, alpha=0.08, linewidth=0)
    axis.axhline(context_length, color=INK, linestyle="--", linewidth=1.3)
    for pairs, colour, marker, label in (
            (finished, BLUE, "o", "finishes at least one turn"),
            (never, VERMILION, "s", "never finishes a turn")):
        axis.plot(pairs, [waves[i] for i in pairs], marker, color=colour, markersize=5,
                  label=f"{label}: {len(pairs)} pairs")
    axis.annotate(f"context length {context_length:,}", (0, context_length),
                  xytext=(0, 5), textcoords="offset points", color=INK, fontsize=9)
    axis.set(yscale="log", ylim=(4, top), xlabel="pair i",
             ylabel="wavelength (tokens per turn)",
             title=f"head width {head_dim}, base {base:,.0f}")
    axis.legend(loc="lower right", frameon=False, fontsize=9)
    turns = axis.secondary_yaxis("right", functions=(_turns(context_length),) * 2)
    turns.set_ylabel("turns in the context")
    turns.tick_params(labelsize=9)
    _only_decades(axis, turns)
    return figure


def describe_wavelength_ladder(head_dim: int = 128, base: float = 10_000.0,
                               context_length: int = 4096) -> str:
    """First and last wavelength and how many pairs never finish a turn."""
    waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
    never = int((waves > context_length).sum())
    return (f"wavelengths from {waves[0]:.3f} to {waves[-1]:,.0f} tokens\n"
            f"within {context_length:,} tokens {never} of {len(waves)} pairs never "
            f"finish a turn\nthe fastest turns {context_length / waves[0]:.1f} times, "
            f"the slowest {context_length / waves[-1]:.3f} times")


def _only_decades(*axes) -> None:
    """No minor ticks: they say little on a log axis and cost most of the drawing."""
    for axis in axes:
        axis.minorticks_off()


def _turns(context_length: int):
    # matplotlib asks at 0 too, where there is nothing to divide by
    return lambda waves: context_length / np.maximum(waves, 1e-300)


def ladders_by_base(bases: Sequence[float] = (1e4, 5e5, 1e6), head_dim: int = 128,
                    context_length: int = 8192) -> Figure:
    """The wavelengths of one head width for several bases, context length drawn."""
    figure, axis = new_figure(8.0, 4.0)
    styles = zip(bases, (BLUE, VERMILION, GREEN, PURPLE, AMBER), MARKERS)
    for base, colour, marker in styles:
        waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
        never = int((waves > context_length).sum())
        axis.plot(range(len(waves)), waves, marker, color=colour, markersize=4,
                  label=f"base {base:,.0f}: {never} of {len(waves)} never finish one")
    axis.axhline(context_length, color=INK, linestyle="--", linewidth=1.3)
    axis.annotate(f"context length {context_length:,}",
                  (head_dim / 2 - 1, context_length), xytext=(0, -12), ha="right",
                  textcoords="offset points", fontsize=9, color=INK)
    axis.set(yscale="log", xlabel="pair i", ylabel="wavelength (tokens per turn)",
             title=f"A larger base stretches the slow pairs (head width {head_dim})")
    axis.legend(frameon=False, fontsize=9)
    _only_decades(axis)
    return figure


def describe_ladders_by_base(bases: Sequence[float] = (1e4, 5e5, 1e6),
                             head_dim: int = 128, context_length: int = 8192) -> str:
    """For each base: the longest wavelength, and how many pairs never finish a turn."""
    lines = []
    for base in bases:
        waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
        lines.append(f"base {base:,.0f}: longest wavelength {waves[-1]:,.0f} tokens; "
                     f"{int((waves > context_length).sum())} of {len(waves)} pairs"
                     f" never finish a turn in {context_length:,} tokens")
    return "\n".join(lines)


class Released(NamedTuple):
    """What a released model turns, and the length it was first trained at (tokens)."""

    model: str
    rotary_dim: int
    base: float
    trained_length: int


RELEASED = ("GPT-J-6B", "Llama-2-7B", "DeepSeek-V3", "gpt-oss-20b",
            "Llama-3.1-8B-Instruct", "Qwen2.5-7B-Instruct")


def released_models(names: Sequence[str] = RELEASED) -> list[Released]:
    """Rows of the table of released models, by the start of their names.

    >>> released_models(["Llama-2-7B"])[0]
    Released(model='Llama-2-7B', rotary_dim=128, base=10000.0, trained_length=4096)
    """
    rows = []
    for name in names:
        row = next(row for row in published() if row.model.startswith(name))
        length = row.original_max_position_embeddings or row.max_position_embeddings
        rows.append(Released(name, row.rotary_dims, row.rope_theta, length))
    return rows


def released_wavelengths(names: Sequence[str] = RELEASED) -> Figure:
    """One line of dots a model: its wavelengths, and the length it was trained at."""
    rows = released_models(names)
    figure, axis = new_figure(8.4, 0.52 * len(rows) + 1.3)
    for y, row in enumerate(rows):
        waves = rope.wavelengths(rope.inverse_frequencies(row.rotary_dim, row.base))
        turned = waves <= row.trained_length
        axis.plot(waves[turned], [y] * int(turned.sum()), "o", color=BLUE, markersize=4)
        axis.plot(waves[~turned], [y] * int((~turned).sum()), "s", markersize=4,
                  color=VERMILION, markerfacecolor=PAPER)
        axis.plot([row.trained_length] * 2, [y - 0.36, y + 0.36], color=INK,
                  linewidth=2)
    labels = [f"{row.model.removesuffix('-Instruct')}\n{row.rotary_dim // 2} pairs, "
              f"base {row.base:,.0f}" for row in rows]
    axis.set_yticks(range(len(rows)), labels, fontsize=8)
    axis.set(xscale="log", ylim=(len(rows) - 0.4, -0.6),
             xlabel="wavelength (tokens per turn)")
    axis.plot([], [], "o", color=BLUE, label="finishes a turn")
    axis.plot([], [], "s", color=VERMILION, markerfacecolor=PAPER, label="never does")
    axis.plot([], [], color=INK, linewidth=2, label="trained length")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False,
                fontsize=9)
    _only_decades(axis)
    return figure


def describe_released_wavelengths(names: Sequence[str] = RELEASED) -> str:
    """For each model: pairs that never finish a turn within the trained length."""
    lines = []
    for row in released_models(names):
        waves = rope.wavelengths(rope.inverse_frequencies(row.rotary_dim, row.base))
        never = int((waves > row.trained_length).sum())
        lines.append(f"{row.model}: base {row.base:,.0f}, trained length "
                     f"{row.trained_length:,}: {never} of {len(waves)} pairs never "
                     "finish a turn")
    return "\n".join(lines)


# ------------------------------------------------------------- scores and distances
def query_and_key(head_dim: int, *,
                  seed: int = SEED) -> tuple[torch.Tensor, torch.Tensor]:
    """Two seeded random vectors, float64 [head_dim] each, made on the CPU.

    >>> query_and_key(8)[0].shape
    torch.Size([8])
    """
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn(head_dim, generator=generator, dtype=torch.float64)
    return q, torch.randn(head_dim, generator=generator, dtype=torch.float64)


def rotated(vector: torch.Tensor, positions: torch.Tensor, *, base: float = 10_000.0,
            layout: str = "interleaved") -> torch.Tensor:
    """One vector as it looks at each of many positions: float64 [positions, head_dim].

    >>> rotated(torch.tensor([1.0, 0.0]).double(), torch.tensor([0])).tolist()
    [[1.0, 0.0]]
    """
    frequencies = rope.inverse_frequencies(vector.shape[-1], base)
    cos, sin = rope.rotary_tables(positions, frequencies, dtype=torch.float64)
    copies = vector.expand(1, 1, len(positions), -1)
    return rope.apply_rotary(copies, cos, sin, layout=layout)[0, 0]


def score_matrix(length: int = 16, head_dim: int = 16, *, base: float = 10_000.0,
                 layout_q: str = "interleaved", layout_k: str = "interleaved",
                 ) -> torch.Tensor:
    """Scores of ONE query and ONE key put at every pair of positions.

    ``score[m, n] = <R(m) q, R(n) k> / sqrt(head_dim)``, float64 [length, length].

    >>> scores = score_matrix(4)
    >>> bool((scores[1:, 1:] - scores[:-1, :-1]).abs().max() < 1e-12)
    True
    """
    q, k = query_and_key(head_dim)
    positions = torch.arange(length)
    queries = rotated(q, positions, base=base, layout=layout_q)  # [length, head_dim]
    keys = rotated(k, positions, base=base, layout=layout_k)
    return queries @ keys.T / math.sqrt(head_dim)


def spread_at_equal_distance(scores: torch.Tensor) -> float:
    """How far scores of equal distance differ at most: 0 where only distance counts.

    The largest max - min along a diagonal of ``scores`` [length, length].

    >>> spread_at_equal_distance(torch.eye(3))
    0.0
    """
    length = scores.shape[-1]
    lines = (scores.diagonal(offset) for offset in range(1 - length, length))
    return max((line.max() - line.min()).item() for line in lines)


def distance_collapse(length: int = 48, head_dim: int = 16, *, base: float = 10_000.0,
                      layout_q: str = "interleaved", layout_k: str = "interleaved",
                      ) -> Figure:
    """All scores of one q and one k against the distance m - n, coloured by m."""
    figure, axis = new_figure(7.4, 3.7)
    scores = score_matrix(length, head_dim, base=base, layout_q=layout_q,
                          layout_k=layout_k)
    m, n = torch.meshgrid(torch.arange(length), torch.arange(length), indexing="ij")
    dots = axis.scatter((m - n).flatten(), scores.flatten(), c=m.flatten(), s=13,
                        cmap="viridis", linewidth=0)
    bar = figure.colorbar(dots, ax=axis, pad=0.02)
    bar.set_label("position m of the query")
    bar.outline.set_visible(False)
    axis.set(xlabel="distance m - n (tokens)", ylabel="score",
             title=f"{length * length:,} pairs of positions; "
                   f"q {layout_q}, k {layout_k}")
    return figure


def describe_distance_collapse(length: int = 48, head_dim: int = 16, *,
                               base: float = 10_000.0, layout_q: str = "interleaved",
                               layout_k: str = "interleaved") -> str:
    """The largest difference between two scores of equal distance."""
    scores = score_matrix(length, head_dim, base=base, layout_q=layout_q,
                          layout_k=layout_k)
    spread = spread_at_equal_distance(scores)
    said = "0 to 12 decimals" if spread < 5e-13 else f"{spread:.4f}"
    return (f"q {layout_q}, k {layout_k}: {length * length:,} scores at "
            f"{2 * length - 1} distances\nlargest difference at equal distance: {said}")


def score_matrices(length: int = 16, head_dim: int = 16, *, base: float = 10_000.0,
                   ) -> Figure:
    """One query, one key, every pair of positions: layouts equal, and mixed up."""
    figure, axes = new_figure(8.4, 4.1, columns=2)
    matrices = _equal_and_mixed(length, head_dim, base)
    limit = max(matrix.abs().max().item() for matrix in matrices.values())
    for axis, (title, matrix) in zip(axes, matrices.items()):
        image = _heat(axis, matrix, limit)
        axis.invert_yaxis()  # position 0 at the bottom, as on any axis
        axis.plot([-0.5, length - 3.5], [2.5, length - 0.5], color=INK, linewidth=1)
        axis.plot([-0.5, length - 5.5], [4.5, length - 0.5], color=INK, linewidth=1)
        axis.set(title=title, xlabel="position n of the key")
    axes[0].set_ylabel("position m of the query")
    bar = figure.colorbar(image, ax=list(axes), pad=0.02)
    bar.set_label("score")
    bar.outline.set_visible(False)
    return figure


def describe_score_matrices(length: int = 16, head_dim: int = 16, *,
                            base: float = 10_000.0) -> str:
    """Four scores along the framed diagonal (m - n = 4) of both matrices."""
    lines = []
    for title, matrix in _equal_and_mixed(length, head_dim, base).items():
        along = matrix.diagonal(-4)[:4].tolist()
        lines.append(f"{title}: scores at distance 4: "
                     + ", ".join(f"{value:.4f}" for value in along))
    return "\n".join(lines)


def _equal_and_mixed(length: int, head_dim: int, base: float) -> dict:
    return {"q and k interleaved": score_matrix(length, head_dim, base=base),
            "q interleaved, k half": score_matrix(length, head_dim, base=base,
                                                  layout_k="half")}


def _heat(axis, matrix: torch.Tensor, limit: float):
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)
    return axis.imshow(matrix.numpy(), cmap=SCORES, vmin=-limit, vmax=limit)


def _write_values(axis, matrix: torch.Tensor) -> None:
    strong = 0.6 * matrix.abs().max().item()
    for i, row in enumerate(matrix.tolist()):
        for j, value in enumerate(row):
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9,
                      color=PAPER if abs(value) > strong else INK)


# --------------------------------------------------------- which pair, which distance
def pair_by_distance(head_dim: int, base: float,
                     distances: torch.Tensor) -> torch.Tensor:
    """What each pair says about each distance: ``cos(distance * theta_i)``.

    Returns float64 [head_dim/2, distances], between -1 and 1.

    >>> pair_by_distance(4, 10_000.0, torch.tensor([0])).tolist()
    [[1.0], [1.0]]
    """
    frequencies = rope.inverse_frequencies(head_dim, base)
    return (frequencies[:, None] * distances.double()).cos()


def pairs_and_distances(head_dim: int = 64, base: float = 10_000.0,
                        longest: int = 10_000) -> Figure:
    """cos(distance * theta_i) for every pair and distance, and the two borders."""
    figure, axis = new_figure(8.0, 4.2)
    grid = torch.logspace(0, math.log10(longest), 700, dtype=torch.float64)
    values = pair_by_distance(head_dim, base, grid)
    edges = torch.cat([grid, grid[-1:] * grid[1] / grid[0]])
    mesh = axis.pcolormesh(edges.numpy(), np.arange(head_dim // 2 + 1) - 0.5,
                           values.numpy(), cmap=SCORES, vmin=-1, vmax=1)
    _draw_borders(axis, rope.wavelengths(rope.inverse_frequencies(head_dim, base)))
    for x, y, text in ((0.13, 0.12, "has not noticed it yet"), (0.36, 0.62, "tells it"),
                       (0.72, 0.83, "repeats")):
        axis.text(x, y, text, transform=axis.transAxes, color=INK, ha="center",
                  fontsize=10, bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 2})
    axis.grid(False)
    axis.set(xscale="log", xlim=(1, longest), ylim=(head_dim / 2 - 0.5, -0.5),
             xlabel="distance (tokens)", ylabel="pair i",
             title=f"cos(distance × θᵢ), head width {head_dim}, base {base:,.0f}")
    axis.legend(loc="lower right", fontsize=9, facecolor=PAPER, framealpha=1)
    _only_decades(axis)
    figure.colorbar(mesh, ax=axis, pad=0.02).outline.set_visible(False)
    return figure


def _draw_borders(axis, waves: torch.Tensor) -> None:
    """The distances at which each pair has made half and a twentieth of its turn."""
    pairs = torch.arange(len(waves))
    for part, style, label in ((2, "-", "half a turn"),
                               (20, "--", "a twentieth of a turn")):
        axis.plot(waves / part, pairs, color=PAPER, linewidth=3.4, alpha=0.8)
        axis.plot(waves / part, pairs, color=INK, linewidth=1.6, linestyle=style,
                  label=label)


def telling_pairs(head_dim: int, base: float, distance: int) -> tuple[int, int, int]:
    """How many pairs repeat, tell, and do not yet notice a distance.

    A pair repeats when it made more than half a turn (another, shorter distance gives
    the same cosine), has not noticed when it made less than a twentieth of a turn
    (its cosine is still above 0.95), and tells in between.

    >>> telling_pairs(8, 10_000.0, 10)
    (1, 1, 2)
    """
    turns = distance / rope.wavelengths(rope.inverse_frequencies(head_dim, base))
    repeats, blind = int((turns > 0.5).sum()), int((turns < 0.05).sum())
    return repeats, head_dim // 2 - repeats - blind, blind


def describe_pairs_and_distances(head_dim: int = 64, base: float = 10_000.0,
                                 longest: int = 10_000) -> str:
    """For distances 1, 10, 100, ...: how many pairs repeat, tell, have not noticed."""
    lines = []
    for power in range(int(math.log10(longest)) + 1):
        repeats, tell, blind = telling_pairs(head_dim, base, 10**power)
        lines.append(f"distance {10**power:,}: {repeats} pairs repeat, {tell} tell it "
                     f"from shorter ones, {blind} have not noticed it")
    return "\n".join(lines)


# --------------------------------------------------------------------------- decay
def decay_mean(head_dim: int, base: float, distances: torch.Tensor) -> torch.Tensor:
    """The average of RoFormer's figure 2: ``mean_j |S_j|``.

    ``S_j = sum_{i<j} exp(1j r theta_i)`` adds the first j hands at distance r. Returns
    float64 [distances]; an average of sums, not a score (RoFormer, section 3.4.3).

    >>> decay_mean(64, 10_000.0, torch.tensor([0])).item()
    16.5
    """
    angles = distances.double()[:, None] * rope.inverse_frequencies(head_dim, base)
    partial = torch.hypot(angles.cos().cumsum(-1), angles.sin().cumsum(-1))
    return partial.mean(-1)


def decay_scores(k: torch.Tensor, base: float, distances: torch.Tensor, *,
                 favourite: int = 0) -> torch.Tensor:
    """Cosine between ``R(distance) q`` and ``k``, where q fits best at one distance.

    ``q = R(-favourite) k``, so the cosine is 1 at ``favourite``. float64 [distances].

    >>> decay_scores(torch.ones(8, dtype=torch.float64), 1e4, torch.tensor([7]),
    ...              favourite=7).item()
    1.0
    """
    # each pair adds its squared length times cos((distance - favourite) theta_i)
    weight = (k[0::2] ** 2 + k[1::2] ** 2) / (k * k).sum()  # [head_dim/2]
    angles = (distances.double() - favourite)[:, None] * rope.inverse_frequencies(
        len(k), base)
    return (angles.cos() * weight).sum(-1)


def decay(head_dim: int = 64, base: float = 10_000.0, favourite: int = 100) -> Figure:
    """The bound on an average, and what two real query-key pairs do."""
    figure, axis = new_figure(8.0, 4.2)
    distances = torch.logspace(0, math.log10(20_000), 500).round().unique()
    ones = torch.ones(head_dim, dtype=torch.float64)
    axis.plot(distances, decay_mean(head_dim, base, distances), color=INK,
              linewidth=1.8, label="the bound, for q = k = (1, 1, ..., 1)")
    axis.axhline(1, color=INK, linestyle=":", linewidth=1.3,
                 label="no cosine can be larger than 1 anyway")
    for chosen, colour, style in ((0, BLUE, "-"), (favourite, VERMILION, "--")):
        cosines = decay_scores(ones, base, distances, favourite=chosen)
        axis.plot(distances, cosines.abs(), color=colour, linewidth=1.2,
                  linestyle=style, label="score of q = k" if not chosen else
                        f"score of a q that looks {chosen} tokens back")
    axis.set(xscale="log", yscale="log", xlim=(1, 20_000), ylim=(5e-3, 60),
             xlabel="distance (tokens)", ylabel="|score| / (|q| |k|)",
             title=f"Head width {head_dim}, base {base:,.0f}")
    axis.legend(loc="lower left", frameon=False, fontsize=9)
    _only_decades(axis)
    return figure


def describe_decay(head_dim: int = 64, base: float = 10_000.0,
                   favourite: int = 100) -> str:
    """The average and the scores at a few distances; where the average rises."""
    at = torch.tensor([0, 10, 50, 100, 500, 1000, 20_000])
    ones = torch.ones(head_dim, dtype=torch.float64)
    rows = {"average |S|": decay_mean(head_dim, base, at),
            "score of q = k": decay_scores(ones, base, at),
            f"looks {favourite} back": decay_scores(ones, base, at,
                                                    favourite=favourite)}
    lines = ["distance".ljust(16) + "".join(f"{n:>9,}" for n in at.tolist())]
    lines += [name.ljust(16) + "".join(f"{value:9.2f}" for value in row.tolist())
              for name, row in rows.items()]
    return "\n".join(lines)


# ------------------------------------------------------------------------- layouts
def partners(width: int, layout: str) -> list[tuple[int, int]]:
    """Which two numbers of a head turn together.

    >>> partners(8, "interleaved")
    [(0, 1), (2, 3), (4, 5), (6, 7)]
    >>> partners(8, "half")
    [(0, 4), (1, 5), (2, 6), (3, 7)]
    """
    half = width // 2
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(half)]
    if layout == "half":
        return [(i, i + half) for i in range(half)]
    raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")


def two_layouts(width: int = 8) -> Figure:
    """The numbers of one head as boxes; arcs join the two that turn together."""
    figure, axes = new_figure(8.0, 3.4, rows=2)
    colours = (BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY, INK)
    for axis, layout in zip(axes, ("interleaved", "half")):
        axis.grid(False)
        axis.spines[:].set_visible(False)
        axis.set(xlim=(-0.7, width - 0.3), ylim=(-0.85, 1.75), xticks=[], yticks=[])
        axis.set_title(f'layout "{layout}"', fontsize=10, loc="left", color=INK)
        for pair, (first, second) in enumerate(partners(width, layout)):
            colour = colours[pair % len(colours)]
            for place, text in ((first, f"x{first}"), (second, f"x{second}")):
                axis.add_patch(Rectangle((place - 0.4, -0.4), 0.8, 0.8, linewidth=1.6,
                                         facecolor=PAPER, edgecolor=colour))
                axis.text(place, 0, text, ha="center", va="center", color=INK)
                axis.text(place, -0.62, f"pair {pair}", ha="center", va="center",
                          fontsize=8, color=colour)
            high = 0.9 if layout == "interleaved" else 1.1 + 0.45 * pair
            axis.add_patch(Arc(((first + second) / 2, 0.4), second - first, high,
                               theta1=0, theta2=180, color=colour, linewidth=1.8))
    return figure


def describe_two_layouts(width: int = 8) -> str:
    """The partners in both layouts, in words."""
    return "\n".join(f"{layout}: " + ", ".join(f"x{a} with x{b}" for a, b in
                                               partners(width, layout))
                     for layout in ("interleaved", "half"))


# ----------------------------------------------------------------------- precision
def angle_error(position: int, kind: str, *, head_dim: int = 128,
                base: float = 10_000.0, count: int = 256) -> float:
    """Largest error of cos over ``count`` positions when the angle is made in ``kind``.

    "bfloat16 positions": positions rounded to bfloat16, frequencies exact;
    "float32 angles": positions, frequencies and product in float32;
    "float64 angles": all in float64, only the finished cosine rounded to float32.

    >>> angle_error(1_000_000, "float64 angles") < 6e-8
    True
    """
    positions = torch.arange(position, position + count)
    frequencies = rope.inverse_frequencies(head_dim, base)
    exact = (positions.double()[:, None] * frequencies).cos()
    if kind == "bfloat16 positions":
        made = (positions.bfloat16().double()[:, None] * frequencies).cos()
    elif kind == "float32 angles":
        made = (positions.float()[:, None] * frequencies.float()).double().cos()
    elif kind == "float64 angles":
        made = exact.float().double()
    else:
        raise ValueError(f"kind: one of {KINDS}, got {kind!r}")
    return (made - exact).abs().max().item()


KINDS = ("bfloat16 positions", "float32 angles", "float64 angles")
POSITIONS = tuple(2**power for power in range(8, 21))


def precision(positions: Sequence[int] = POSITIONS) -> Figure:
    """The error of the cosine table by position, for three ways to make the angles."""
    figure, axis = new_figure(8.0, 3.9)
    for kind, colour, marker in zip(KINDS, (VERMILION, BLUE, GREEN), MARKERS):
        errors = [angle_error(position, kind) for position in positions]
        axis.plot(positions, errors, color=colour, marker=marker, markersize=4,
                  label=kind)
    axis.axhline(2, color=INK, linestyle=":", linewidth=1)
    axis.annotate("2: as wrong as a cosine can be", (positions[0], 2), xytext=(0, 4),
                  textcoords="offset points", fontsize=9, color=INK)
    axis.set(xscale="log", yscale="log", ylim=(1e-8, 12), xlabel="position (tokens)",
             ylabel="largest error of cos",
             title="256 positions from each point; head width 128, base 10,000")
    axis.legend(loc="center right", frameon=False, fontsize=9)
    _only_decades(axis)
    return figure


def describe_precision(positions: Sequence[int] = (1024, 131_072, 1_048_576)) -> str:
    """The errors at three positions, to one digit."""
    return "\n".join(f"{kind}: " + ", ".join(
        f"{angle_error(position, kind):.0e} at {position:,}" for position in positions)
        for kind in KINDS)


# --------------------------------------------------- the explorers' states as pictures
def wavelength_clock(head_dim: int = 128, base: float = 10_000.0,
                     context_length: int = 4096, position: int = 100,
                     pair: int = 19) -> Figure:
    """All wavelengths with one pair marked, and all pairs on one dial at a position."""
    figure, (left, right) = new_figure(9.0, 3.9, columns=2, width_ratios=(1.35, 1))
    waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
    pairs = torch.arange(len(waves))
    ring = 1 - 0.8 * pairs / max(1, len(waves) - 1)  # the fastest pair outside
    angles = 2 * math.pi * torch.remainder(position / waves, 1)
    _draw_dial(right)
    for chosen, colour, marker, label in (
            (waves <= context_length, BLUE, "o", "finishes a turn"),
            (waves > context_length, VERMILION, "s", "never does")):
        left.plot(pairs[chosen], waves[chosen], marker, color=colour, markersize=4,
                  label=label)
        right.plot((ring * angles.cos())[chosen], (ring * angles.sin())[chosen], marker,
                   color=colour, markersize=4)
    _mark_pair(left, right, pair, waves, ring, angles)
    left.axhline(context_length, color=INK, linestyle="--", linewidth=1.2)
    left.set(yscale="log", xlabel="pair i", ylabel="wavelength (tokens per turn)",
             title=f"context length {context_length:,}")
    left.legend(frameon=False, fontsize=9)
    right.set_xlabel(f"every pair at position {position:,}, fast ones outside")
    _only_decades(left)
    return figure


def _mark_pair(left, right, pair, waves, ring, angles) -> None:
    ring_style = {"markersize": 11, "markerfacecolor": "none", "color": INK}
    left.plot(pair, waves[pair], "o", **ring_style)
    x, y = angles[pair].cos(), angles[pair].sin()
    right.plot([0, 1.05 * x], [0, 1.05 * y], color=INK, linewidth=1.6)
    right.plot(ring[pair] * x, ring[pair] * y, "o", **ring_style)


def rotation_invariance(scores: torch.Tensor, start: int, m: int, n: int,
                        title: str) -> Figure:
    """A score matrix of positions start, start + 1, ... and its scores by distance."""
    figure, (left, right) = new_figure(9.0, 3.9, columns=2, width_ratios=(1.25, 1))
    side = len(scores)
    row, column = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    left.scatter((row - column).flatten().numpy(), scores.flatten().numpy(), s=6,
                 color=SKY, linewidth=0)
    for place, colour, marker in ((0, BLUE, "o"), (side // 2, VERMILION, "s"),
                                  (side - 1, GREEN, "^")):
        left.plot(place - torch.arange(side), scores[place], marker, color=colour,
                  markersize=4, label=f"query at {start + place}")
    left.plot(m - n, scores[m, n], "o", markersize=11, mfc="none", color=INK)
    left.set(ylim=(-1, 1), xlabel="distance m - n (tokens)", ylabel="score / (|q| |k|)",
             title=title)
    left.legend(frameon=False, fontsize=9, loc="lower right")
    image = _heat(right, scores, 0.6)
    ends = (start - 0.5, start + side - 0.5)
    image.set_extent((*ends, *ends[::-1]))
    for colour, width in ((PAPER, 3.5), (INK, 1.5)):
        right.plot(start + n, start + m, "o", markersize=9, markerfacecolor="none",
                   color=colour, markeredgewidth=width)
    ticks = range(start, start + side, 4)
    right.set(xlim=ends, ylim=ends, xticks=ticks, yticks=ticks,
              xlabel="position of the key", ylabel="position of the query")
    return figure


def pairs_at_distance(head_dim: int = 64, base: float = 10_000.0,
                      distance: int = 100) -> Figure:
    """The cosine that each pair gives for one distance, in three groups."""
    figure, axis = new_figure(8.0, 3.4)
    cosines = pair_by_distance(head_dim, base, torch.tensor([distance]))[:, 0]
    repeats, tell, _ = telling_pairs(head_dim, base, distance)
    pairs = torch.arange(head_dim // 2)
    for chosen, colour, marker, label in (
            (pairs < repeats, VERMILION, "s", "repeats (over half a turn)"),
            ((pairs >= repeats) & (pairs < repeats + tell), BLUE, "o", "tells it"),
            (pairs >= repeats + tell, GREEN, "^", "has not noticed it")):
        axis.vlines(pairs[chosen], 0, cosines[chosen], color=colour, linewidth=1.4)
        axis.plot(pairs[chosen], cosines[chosen], marker, color=colour, label=label,
                  markersize=5)
    axis.axhline(0, color=INK, linewidth=0.8)
    axis.set(ylim=(-1.1, 1.1), xlabel="pair i", ylabel="cos(distance × θᵢ)",
             title=f"distance {distance:,}, head width {head_dim}, base {base:,.0f}")
    axis.legend(frameon=False, fontsize=9, loc="lower right")
    return figure
