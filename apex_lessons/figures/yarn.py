"""Pictures of lesson 04: unseen angles, divisors, regimes, ramps, temperature.

Every picture ``name(...)`` has its numbers in a pure function beside it and a
``describe_name(...)`` that says them in a line or two of text. The running example is
Llama 2 7B: head width 128, base 10,000, trained on 4,096 tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Wedge
from torch import Tensor

from apex_lessons import rope, yarn
from apex_lessons.figures import FAINT, INK, PALETTE, PAPER, new_figure
from apex_lessons.models.published import PublishedModel, published

BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY = PALETTE[:6]
REGIMES = ("unchanged", "blended", "divided")
REGIME_COLOURS, REGIME_MARKERS = (BLUE, GREEN, VERMILION), ("o", "D", "s")
HEAD_DIM, BASE, TRAINED = 128, 10_000.0, 4096
SEED = 4
# Phi-3.5-mini-instruct, the divisors for texts longer than 4,096 tokens (head width 96,
# base 10,000); mlc-ai/mlc-llm at 79d603f, python/mlc_llm/model/model_preset.py.
PHI_3_5_MINI_LONG = (
    1.08, 1.11, 1.14, 1.34, 1.59, 1.6, 1.62, 2.62, 3.23, 3.23, 4.79, 7.4, 7.7, 9.09,
    12.2, 17.67, 24.46, 28.57, 30.42, 30.84, 32.59, 32.93, 42.32, 44.96, 50.34,
    50.45, 57.55, 57.93, 58.21, 60.14, 62.61, 62.62, 62.71, 63.14, 63.14, 63.77,
    63.93, 63.96, 63.97, 64.03, 64.07, 64.08, 64.12, 64.41, 64.48, 64.51, 64.53,
    64.84)


class Released(NamedTuple):
    """A released model's scaling, as its own settings give it.

    ``inferred`` names the fields that no source states and that follow from another
    (a width from the architecture, for instance). Lengths are tokens.
    """

    name: str
    method: str  # "yarn" or "llama3"
    head_dim: int
    base: float
    factor: float
    trained_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    mscale: float | None = None
    mscale_all_dim: float | None = None
    inferred: tuple[str, ...] = ()

    def softmax_factor(self) -> float:
        """What DeepSeek's code multiplies the softmax scale by; 1.0 elsewhere."""
        if self.mscale_all_dim is None:
            return 1.0
        return yarn.yarn_attention_factor(self.factor, self.mscale_all_dim) ** 2

    def scaled(self) -> yarn.ScaledFrequencies:
        """The frequencies and the factor on cos and sin that these settings give."""
        common = {"base": self.base, "factor": self.factor,
                  "trained_length": self.trained_length}
        if self.method == "llama3":
            return yarn.llama3(self.head_dim, **common, high_freq_factor=self.beta_fast,
                               low_freq_factor=self.beta_slow)
        return yarn.yarn(self.head_dim, **common, beta_fast=self.beta_fast,
                         beta_slow=self.beta_slow, truncate=self.truncate,
                         mscale=self.mscale, mscale_all_dim=self.mscale_all_dim)


SHOWN = {"Yarn-Llama-2-7b-128k": "Llama 2 128K", "gpt-oss-20b": "gpt-oss-20b",
         "DeepSeek-V3 (and R1, same architecture)": "DeepSeek-V3",
         "Kimi-K2-Instruct-0905": "Kimi-K2-0905",
         "Qwen2.5-7B-Instruct": "Qwen2.5-7B, opt-in",
         "Olmo-3.1-32B-Instruct": "Olmo-3.1-32B",
         "Llama-3.1-8B-Instruct": "Llama-3.1-8B"}
# Kimi-K2 has DeepSeek-V3's architecture; its own file was read in part.
INFERRED = {"Kimi-K2-0905": {"head_dim": 64}}


def released_models() -> tuple[Released, ...]:
    """Seven released models from the table of this course, each by its own settings.

    What no source states and follows from the architecture is named in ``inferred``.
    Source: ``apex_lessons.models.published``, which names one for every row.

    >>> [model.name for model in released_models() if model.inferred]
    ['Kimi-K2-0905']
    """
    rows = {row.model: row for row in published()}
    return tuple(_released(name, rows[key]) for key, name in SHOWN.items())


def _released(name: str, row: PublishedModel) -> Released:
    llama3 = row.rope_scaling_type == "llama3"
    guessed = INFERRED.get(name, {})
    width = row.rotary_dims or guessed["head_dim"]
    return Released(name, "llama3" if llama3 else "yarn", width, row.rope_theta,
                    row.factor, row.original_max_position_embeddings,
                    row.high_freq_factor if llama3 else row.beta_fast,
                    row.low_freq_factor if llama3 else row.beta_slow,
                    row.truncate is not False, row.mscale, row.mscale_all_dim,
                    tuple(guessed))


def _line_up(axis, values: Sequence[float]) -> list[float]:
    """Heights for labels at the right end of lines, in data units, none on another."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    scale = axis.get_yscale() == "log"
    low, high = (math.log(v) if scale else v for v in axis.get_ylim())
    gap, places, last = (high - low) * 0.052, [0.0] * len(values), -math.inf
    for index in order:
        wanted = math.log(values[index]) if scale else values[index]
        last = max(wanted, last + gap)
        places[index] = math.exp(last) if scale else last
    return places


def few_ticks(*axes) -> None:
    """No minor ticks: on log axes they say little and cost most of the drawing time."""
    for axis in axes:
        axis.minorticks_off()


def doubling_ticks(axis, top: float) -> None:
    """Ticks 1, 2, 4, ... up to ``top`` on a log axis of divisors."""
    values = [2**power for power in range(int(math.log2(top)) + 1)]
    axis.set_yticks(values, [f"{value}" for value in values])


def label_lines(axis, lines: Sequence[tuple[float, str, str]], x: float) -> None:
    """Write each line's name at its right end; ``lines`` are (height, text, colour)."""
    heights = _line_up(axis, [line[0] for line in lines])
    for height, (_, text, colour) in zip(heights, lines):
        axis.annotate(text, (x, height), xytext=(7, 0), textcoords="offset points",
                      color=colour, fontsize=9, va="center", annotation_clip=False)


# ------------------------------------------------------------------- angles never seen
def angle_gaps(trained: Tensor, new: Tensor, trained_length: int,
               length: int) -> Tensor:
    """How far, at most, a new angle lies from every trained one, for each pair.

    Measured: all angles ``m * trained`` of m < trained_length and all ``m * new`` of
    m < length, around the circle. Returns float64 [pairs], in degrees (0 to 180).

    >>> slow = torch.tensor([1e-4], dtype=torch.float64)
    >>> round(angle_gaps(slow, slow, 100, 400).item(), 2)  # 300 steps of 1e-4 radians
    1.72
    """
    turn = 2 * math.pi
    seen = trained[:, None] * torch.arange(trained_length)  # [pairs, trained_length]
    met = (new[:, None] * torch.arange(length)) % turn  # [pairs, length]
    seen = (seen % turn).sort(dim=-1).values
    above = torch.searchsorted(seen, met)
    after = seen.gather(-1, above % trained_length)
    before = seen.gather(-1, (above - 1) % trained_length)
    nearest = torch.minimum((after - met) % turn, (met - before) % turn)
    return nearest.amax(-1).rad2deg()


def _three_ways(factor: float) -> dict[str, Tensor]:
    common = {"base": BASE, "factor": factor}
    return {"nothing changed": rope.inverse_frequencies(HEAD_DIM, BASE),
            "position interpolation":
                yarn.position_interpolation(HEAD_DIM, **common).inv_freq,
            "YaRN": yarn.yarn(HEAD_DIM, **common, trained_length=TRAINED).inv_freq}


@cache
def _gaps(factor: int) -> dict[str, Tensor]:
    plain = rope.inverse_frequencies(HEAD_DIM, BASE)
    return {name: angle_gaps(plain, new, TRAINED, factor * TRAINED)
            for name, new in _three_ways(factor).items()}


def unseen_angles(factor: int = 4) -> Figure:
    """For each pair, the largest distance of a new angle from all trained angles."""
    figure, axis = new_figure(8.2, 3.9)
    plain = rope.inverse_frequencies(HEAD_DIM, BASE)
    styles = zip((VERMILION, PURPLE, BLUE), ("s", "^", "o"))
    for (name, gaps), (colour, marker) in zip(_gaps(factor).items(), styles):
        axis.plot(gaps, marker, color=colour, markersize=4.5, label=name)
    turns = yarn.rotations(plain, TRAINED)
    first = int((turns >= 1).sum())
    axis.axvspan(first - 0.5, HEAD_DIM / 2, color=VERMILION, alpha=0.08, linewidth=0)
    axis.text(first, 260, "never finish a turn in training", color=INK, fontsize=9,
              va="center")
    axis.set(yscale="log", ylim=(1e-3, 400), xlim=(-1, HEAD_DIM / 2), xlabel="pair i",
             ylabel="farthest new angle (degrees)",
             title=f"Trained on {TRAINED:,} tokens, reading {factor * TRAINED:,}: "
                   "how far from any trained angle?")
    axis.legend(loc="upper left", frameon=False, fontsize=9)
    few_ticks(axis)
    _rotation_axis(axis)
    return figure


def describe_unseen_angles(factor: int = 4) -> str:
    """The largest gap among fast and among slow pairs, for the three ways."""
    plain = rope.inverse_frequencies(HEAD_DIM, BASE)
    slow = yarn.rotations(plain, TRAINED) < 1
    lines = [f"{int(slow.sum())} of {len(plain)} pairs never finish a turn in "
             f"{TRAINED:,} tokens"]
    for name, gaps in _gaps(factor).items():
        lines.append(f"{name}: farthest new angle {gaps[slow].max():.2f} degrees among "
                     f"those, {gaps[~slow].max():.2f} among the others")
    return "\n".join(lines)


def _rotation_axis(axis, head_dim: int = HEAD_DIM, base: float = BASE,
                   trained_length: int = TRAINED) -> None:
    """A second axis on top: turns of each pair in the trained length."""
    top = axis.secondary_xaxis("top")
    ticks = [turns for turns in (300, 100, 32, 10, 3, 1, 0.3, 0.1)
             if -0.5 < yarn.pair_at_rotations(turns, head_dim, base, trained_length)
             < head_dim / 2]
    top.set_xticks([yarn.pair_at_rotations(turns, head_dim, base, trained_length)
                    for turns in ticks], [f"{turns:g}" for turns in ticks])
    top.set_xlabel("turns in the trained length", fontsize=9)
    top.tick_params(labelsize=8, colors=INK)


DIALS = (0, 20, 40, 50, 63)


def arcs(pairs: Sequence[int], factor: float = 4.0) -> list[dict]:
    """What each pair's hand covers, in turns, in training and when reading further.

    One dict a pair: ``trained`` turns in training, and for each of three ways the
    ``reach`` (turns in factor times as many tokens) and ``step`` (degrees per token).

    >>> round(arcs([63])[0]["trained"], 3)
    0.075
    """
    plain = rope.inverse_frequencies(HEAD_DIM, BASE)
    rows = []
    for pair in pairs:
        row = {"pair": pair, "trained": (TRAINED * plain[pair] / (2 * math.pi)).item()}
        for name, new in _three_ways(factor).items():
            reach = factor * TRAINED * new[pair] / (2 * math.pi)
            row[name] = {"reach": reach.item(), "step": new[pair].rad2deg().item()}
        rows.append(row)
    return rows


def clock_arcs(pairs: Sequence[int] = DIALS, factor: float = 4.0) -> Figure:
    """The part of the dial each pair reaches: trained, and new, for three ways."""
    ways = list(_three_ways(factor))
    figure, axes = new_figure(8.4, 5.4, columns=len(pairs), rows=len(ways))
    for column, row in enumerate(arcs(pairs, factor)):
        for line, way in enumerate(ways):
            axis = axes[line][column]
            _draw_arc(axis, row["trained"], row[way]["reach"], row[way]["step"])
            if line == 0:
                axis.set_title(f"pair {row['pair']}\n{row['trained']:.3g} turns",
                               fontsize=10)
            if column == 0:
                axis.text(-1.45, 0, way.replace(" ", "\n"), ha="right", va="center",
                          fontsize=9.5, color=INK)
    keys = [Line2D([], [], color=BLUE, linewidth=6, label="angles met in training"),
            Line2D([], [], color=VERMILION, linewidth=6, label="met the first time"),
            Line2D([], [], color=INK, linewidth=2, label="turn per token (degrees)")]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, frameon=False,
                  fontsize=9)
    return figure


def _draw_arc(axis, trained: float, reach: float, step: float) -> None:
    axis.set_aspect("equal")
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=[], yticks=[])
    axis.add_patch(Wedge((0, 0), 1, 0, 360, width=0.26, facecolor=FAINT, alpha=0.55))
    seen, end = min(trained, 1.0), min(reach, 1.0)
    # a slow pair under interpolation reaches exactly as far as in training
    axis.add_patch(Wedge((0, 0), 1, 0, 360 * min(seen, end), width=0.26,
                         facecolor=BLUE))
    if end > seen + 1e-9:
        axis.add_patch(Wedge((0, 0), 1, 360 * seen, 360 * end, width=0.26,
                             facecolor=VERMILION, hatch="////", edgecolor=PAPER,
                             linewidth=0))
    x, y = math.cos(math.radians(step)), math.sin(math.radians(step))
    axis.plot([0, 0.7], [0, 0], color=FAINT, linewidth=1.5)
    axis.plot([0, 0.7 * x], [0, 0.7 * y], color=INK, linewidth=2)
    axis.text(0, -0.36, f"{step:.3g}°", ha="center", fontsize=8.5, color=INK)


def describe_clock_arcs(pairs: Sequence[int] = DIALS, factor: float = 4.0) -> str:
    """For each pair: turns in training, new share of the dial, degrees per token."""
    ways = list(_three_ways(factor))
    lines = ["share of the dial that is new, and degrees per token, with "
             + " / ".join(ways) + ":"]
    for row in arcs(pairs, factor):
        shares = " / ".join(f"{_new_share(row['trained'], row[way]['reach']):.0%}"
                            for way in ways)
        steps = " / ".join(f"{row[way]['step']:.4g}" for way in ways)
        lines.append(f"  pair {row['pair']} ({row['trained']:.3g} turns in training): "
                     f"{shares}, {steps}")
    return "\n".join(lines)


def _new_share(trained: float, reach: float) -> float:
    return max(min(reach, 1.0) - min(trained, 1.0), 0.0)


def pairs_at_new_angles(plain: Tensor, scaled: Tensor, trained_length: int,
                        length: int) -> Tensor:
    """Which pairs reach angles in ``length`` tokens that training did not bring: bool.

    A pair reaches min(1, turns) of its dial; the two reaches are compared to 1e-9.

    >>> f = rope.inverse_frequencies(128)
    >>> int(pairs_at_new_angles(f, f, 4096, 16_384).sum())
    18
    """
    trained = yarn.rotations(plain, trained_length).clamp(max=1.0)
    reach = yarn.rotations(scaled, length).clamp(max=1.0)
    return reach > trained + 1e-9


# ----------------------------------------------------------------- divisors by method
def divisors(scaled: Tensor, plain: Tensor) -> Tensor:
    """By what number each pair's frequency is divided: inf where it stands still."""
    return plain / scaled


def methods(factor: float = 32.0, *, head_dim: int = HEAD_DIM, base: float = BASE,
            trained_length: int = TRAINED) -> dict[str, Tensor]:
    """The divisor of every pair under each method, float64 [head_dim/2].

    "dynamic NTK" is taken where the text is a quarter of the way there, with a factor
    of 1 in its formula, so that its stretch is length / trained_length.

    >>> {name: round(d[-1].item(), 2) for name, d in methods(8.0).items()}["NTK-aware"]
    8.0
    """
    common = {"base": base, "factor": factor}
    known = {**common, "trained_length": trained_length}
    reached = max(int(factor * trained_length / 4), trained_length)
    scaled = {
        "position interpolation": yarn.position_interpolation(head_dim, **common),
        "NTK-aware": yarn.ntk_aware(head_dim, **common),
        f"dynamic NTK at {reached:,} tokens": yarn.dynamic_ntk(
            head_dim, base=base, factor=1.0, trained_length=trained_length,
            length=reached),
        "NTK-by-parts, YaRN": yarn.ntk_by_parts(head_dim, **known),
        "Llama 3": yarn.llama3(head_dim, **known),
        "proportional: 25% turn, the rest stands still": yarn.proportional(
            head_dim, base=base, partial_rotary_factor=0.25),
    }
    plain = rope.inverse_frequencies(head_dim, base)
    return {name: divisors(value.inv_freq, plain) for name, value in scaled.items()}


def divisors_by_pair(factor: float = 32.0, longrope: Sequence[float] | None = None,
                     printed: bool = False) -> Figure:
    """Every method on one axis: the number each pair's frequency is divided by.

    ``longrope``: a list of divisors of a model with the same base and trained length;
    its pairs are put where their frequency belongs. ``printed`` adds APEX-1's rule.
    """
    figure, axis = new_figure(8.8, 5.2)
    top = 3.4 * max(factor, 2)
    axis.set(yscale="log", ylim=(0.72, top), xlim=(-1, 63.6), xlabel="pair i",
             ylabel="frequency divided by")
    _shade_regimes(axis)
    known = methods(factor)
    for (name, values), look in zip(known.items(), METHOD_LOOKS, strict=True):
        axis.plot(values.clamp(max=1e9), color=look.colour, linestyle=look.style,
                  linewidth=look.width)
        _name_line(axis, values.clamp(max=0.7 * top), name, look)
    if longrope is not None:
        where = np.arange(len(longrope)) * (HEAD_DIM / 2 / len(longrope))
        axis.plot(where, longrope, ".", color=INK, markersize=5)
        axis.annotate("LongRoPE, a released list", (44, longrope[-1]), xytext=(0, 7),
                      textcoords="offset points", color=INK, fontsize=9)
    if printed:
        _draw_printed(axis, _printed(factor))
    few_ticks(axis)
    doubling_ticks(axis, top)
    _rotation_axis(axis)
    return figure


class Look(NamedTuple):
    """How a line is drawn and where its name stands: at a pair, moved by points."""

    colour: str
    style: str | tuple
    width: float
    pair: int
    move: tuple[float, float]
    side: str = "left"


OLIVE, TEAL = "#7a6000", "#2b7fb0"
METHOD_LOOKS = (
    Look(PURPLE, "-", 1.8, 0, (0, 6)),
    Look(AMBER, "--", 1.8, 24, (-6, 6), "right"),
    Look(OLIVE, "-.", 1.8, 47, (4, -14)),
    Look(BLUE, "-", 3.0, 24, (8, -6)),
    Look(GREEN, (0, (6, 1.5)), 2.0, 40, (8, -8)),
    Look(TEAL, ":", 2.2, 16, (5, 0)),
)
PRINTED_LOOK = Look(VERMILION, "--", 2.4, 16, (6, 6))


def _draw_printed(axis, values: Tensor) -> None:
    axis.step(range(len(values)), values, where="mid", color=VERMILION, linewidth=2.4,
              linestyle=(0, (5, 2)))
    _name_line(axis, values, "the reference's rule", PRINTED_LOOK)


def _name_line(axis, values: Tensor, name: str, look: Look) -> None:
    axis.annotate(name, (look.pair, values[look.pair].item()), xytext=look.move,
                  textcoords="offset points", color=look.colour, fontsize=9,
                  ha=look.side, fontweight="bold" if look.width > 2.9 else "normal")


def _printed(factor: float) -> Tensor:
    rule = yarn.apex1(HEAD_DIM, base=BASE, factor=factor).inv_freq
    return divisors(rule, rope.inverse_frequencies(HEAD_DIM, BASE))


def _shade_regimes(axis) -> None:
    fast, slow = (yarn.pair_at_rotations(turns, HEAD_DIM, BASE, TRAINED)
                  for turns in (32, 1))
    for start, end, colour, text in ((-1, fast, BLUE, "more than 32 turns"),
                                     (fast, slow, GREEN, "32 to 1"),
                                     (slow, 64, VERMILION, "less than one")):
        axis.axvspan(start, end, color=colour, alpha=0.07, linewidth=0)
        axis.text((start + end) / 2, 0.015, text, color=INK, fontsize=8.5, ha="center",
                  transform=axis.get_xaxis_transform())


def describe_divisors_by_pair(factor: float = 32.0,
                              longrope: Sequence[float] | None = None,
                              printed: bool = False) -> str:
    """The divisors of pairs 0, 15, 31, 47 and 63 under each method."""
    shown = (0, 15, 31, 47, 63)
    rows = {name: [values[pair].item() for pair in shown]
            for name, values in methods(factor).items()}
    if longrope is not None:
        last = len(longrope) - 1
        rows["LongRoPE list"] = [longrope[round(pair * last / 63)] for pair in shown]
    if printed:
        rows["the reference's rule"] = [_printed(factor)[pair].item() for pair in shown]
    lines = [f"divisor of pair {', '.join(map(str, shown))} at factor {factor:g}:"]
    for name, values in rows.items():
        said = ", ".join(f"{value:.4g}" if math.isfinite(value) else "stands still"
                         for value in values)
        lines.append(f"  {name}: {said}")
    return "\n".join(lines)


# ------------------------------------------------------------------------ the regimes
def regime_counts(model: Released) -> tuple[int, int, int]:
    """How many pairs of a model are unchanged, blended and divided by the factor.

    >>> regime_counts(Released("Llama 2 128K", "yarn", 128, 10_000.0, 32.0, 4096))
    (21, 25, 18)
    """
    plain = rope.inverse_frequencies(model.head_dim, model.base)
    kinds = yarn.regimes(plain, model.scaled().inv_freq, model.factor)
    return tuple(torch.bincount(kinds.long(), minlength=3).tolist())


def three_regimes(models: Sequence[Released]) -> Figure:
    """Every pair of every model by its turns in training, coloured by regime."""
    figure, axis = new_figure(8.8, 1.3 + 0.46 * len(models))
    for row, model in enumerate(models):
        plain = rope.inverse_frequencies(model.head_dim, model.base)
        turns = yarn.rotations(plain, model.trained_length)
        kinds = yarn.regimes(plain, model.scaled().inv_freq, model.factor)
        axis.axhline(row, color=FAINT, linewidth=0.8, zorder=0)
        for kind, (colour, marker) in enumerate(zip(REGIME_COLOURS, REGIME_MARKERS)):
            chosen = turns[kinds == kind]
            axis.plot(chosen, torch.full_like(chosen, row), marker, color=colour,
                      markersize=4.2, clip_on=False)
        for beta in {model.beta_fast, model.beta_slow}:
            axis.plot([beta, beta], [row - 0.33, row + 0.33], color=INK, linewidth=1.4)
        counts = " / ".join(map(str, regime_counts(model)))
        axis.text(1.015, row, counts, transform=axis.get_yaxis_transform(), color=INK,
                  fontsize=9.5, va="center")
    _label_regimes(figure, axis, models)
    return figure


def _label_regimes(figure, axis, models: Sequence[Released]) -> None:
    axis.set_yticks(range(len(models)), [_model_label(model) for model in models])
    axis.set(xscale="log", xlim=(8e3, 2e-3), ylim=(len(models) - 0.4, -0.6),
             xlabel="turns in the trained length (fast pairs on the left)")
    axis.grid(False, axis="y")
    few_ticks(axis)
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    keys = [Line2D([], [], color=colour, marker=marker, linestyle="", label=name)
            for name, colour, marker in zip(REGIMES, REGIME_COLOURS, REGIME_MARKERS)]
    keys.append(Line2D([], [], color=INK, marker="|", linestyle="", markersize=12,
                       label="the model's own cuts"))
    figure.legend(handles=keys, loc="outside upper center", ncols=4, frameon=False,
                  fontsize=9)


def _model_label(model: Released) -> str:
    star = "*" if model.inferred else ""
    return f"{model.name}{star}\n{model.trained_length:,} × {model.factor:g}"


def describe_three_regimes(models: Sequence[Released]) -> str:
    """unchanged / blended / divided for each model, and what is inferred."""
    lines = ["unchanged / blended / divided:"]
    for model in models:
        counts = " / ".join(map(str, regime_counts(model)))
        note = f" (inferred: {', '.join(model.inferred)})" if model.inferred else ""
        lines.append(f"  {model.name}: {counts}{note}")
    return "\n".join(lines)


# ------------------------------------------------------------------------ the two ramps
def ramps(head_dim: int = HEAD_DIM, base: float = BASE,
          trained_length: int = TRAINED) -> dict[str, Tensor]:
    """How much of each pair is divided (0 to 1) under the three ramps in use.

    >>> list(ramps())
    ["everybody's code", 'code, not rounded', "the paper's equations"]
    """
    plain = rope.inverse_frequencies(head_dim, base)
    known = (head_dim, base, trained_length)
    return {"everybody's code": yarn.pair_ramp(*known),
            "code, not rounded": yarn.pair_ramp(*known, truncate=False),
            "the paper's equations": yarn.rotations_ramp(plain, trained_length, 32, 1)}


def ramp_ratio(factor: float = 32.0, *, head_dim: int = HEAD_DIM, base: float = BASE,
               trained_length: int = TRAINED) -> Tensor:
    """Frequencies of the code over those of the paper, pair by pair.

    >>> round(ramp_ratio().max().item(), 2)
    3.96
    """
    settings = {"base": base, "factor": factor, "trained_length": trained_length}
    code, paper = (yarn.ntk_by_parts(head_dim, **settings, ramp=ramp).inv_freq
                   for ramp in ("pair", "rotations"))
    return code / paper


def two_ramps(factor: float = 32.0) -> Figure:
    """The ramp of the code and of the paper, and the ratio of the frequencies."""
    figure, (left, right) = new_figure(8.8, 3.8, columns=2)
    styles = (("-", BLUE, 2.4), ("--", GREEN, 1.8), ("-.", VERMILION, 2.2))
    for (name, share), (style, colour, width) in zip(ramps().items(), styles):
        left.plot(share, linestyle=style, color=colour, linewidth=width, label=name)
    left.set(xlabel="pair i", ylabel="share that is divided", xlim=(-1, 64))
    left.legend(frameon=False, fontsize=9, loc="upper left")
    _rotation_axis(left)
    ratio = ramp_ratio(factor)
    top = int(ratio.argmax())
    right.plot(ratio, "o", color=BLUE, markersize=4)
    right.annotate(f"pair {top}: {ratio[top]:.2f} times", (top, ratio[top].item()),
                   xytext=(0, 7), textcoords="offset points", ha="center", fontsize=9,
                   color=INK)
    right.set(xlabel="pair i", ylabel="code's frequency / paper's", xlim=(-1, 64),
              ylim=(0.85, 1.12 * ratio[top].item()))
    _rotation_axis(right)
    return figure


def describe_two_ramps(factor: float = 32.0) -> str:
    """The three ramps at three pairs, and where the frequencies differ most."""
    ratio = ramp_ratio(factor)
    top = int(ratio.argmax())
    lines = [f"{name}: share divided at pairs 24, 32, 40: "
             + ", ".join(f"{share[pair]:.3f}" for pair in (24, 32, 40))
             for name, share in ramps().items()]
    lines.append(f"the code's frequency is up to {ratio[top]:.2f} times the paper's, "
                 f"at pair {top}")
    return "\n".join(lines)


# ------------------------------------------------------------------------- temperature
@cache
def attention_entropy(length: int, multiplier: float, *, spread: float = 1.5,
                      rows: int = 8) -> float:
    """Entropy of softmax(multiplier * scores), in nats, averaged over rows.

    The scores are seeded normal numbers with standard deviation ``spread``; for long
    rows the entropy is close to ln(length) - (multiplier * spread)^2 / 2.

    >>> bool(abs(attention_entropy(4096, 0.0) - math.log(4096)) < 1e-9)
    True
    """
    generator = torch.Generator().manual_seed(SEED)
    scores = spread * torch.randn(rows, length, generator=generator)
    weights = torch.log_softmax(multiplier * scores.double(), dim=-1)
    return -(weights.exp() * weights).sum(-1).mean().item()


def entropies(lengths: Sequence[int], spread: float = 1.5) -> dict[str, list[float]]:
    """Entropy at each length: evenly spread, and under three multipliers of the scores.

    The factor at a length is length / 4096: a model stretched to just there.

    >>> round(entropies([4096])["all tokens alike"][0], 3)
    8.318
    """
    def factor(length):
        return yarn.yarn_attention_factor(max(length / TRAINED, 1.0))
    return {
        "all tokens alike": [math.log(length) for length in lengths],
        "no temperature": [attention_entropy(n, 1.0, spread=spread) for n in lengths],
        "factor once, as printed": [attention_entropy(n, factor(n), spread=spread)
                                    for n in lengths],
        "YaRN: factor squared": [attention_entropy(n, factor(n) ** 2, spread=spread)
                                 for n in lengths],
    }


ENTROPY_LENGTHS = (4096, 8192, 16384, 32768, 65536, 131072)


def entropy_by_length(lengths: Sequence[int] = ENTROPY_LENGTHS,
                      spread: float = 1.5) -> Figure:
    """Entropy of attention against length, with and without the temperature."""
    figure, axis = new_figure(8.4, 4.0)
    axis.set(xscale="log", xlabel="tokens to attend to", ylabel="entropy (nats)",
             xlim=(lengths[0], lengths[-1]), ylim=(6.5, 12.2))
    axis.set_xscale("log", base=2)
    axis.set_xticks(lengths, [f"{length:,}" for length in lengths])
    ends = []
    looks = ((":", INK, ""), ("-", VERMILION, "s"), ("--", AMBER, "^"),
             ("-", BLUE, "o"))
    known = entropies(lengths, spread)
    for (name, values), (style, colour, marker) in zip(known.items(), looks):
        axis.plot(lengths, values, linestyle=style, color=colour, marker=marker,
                  markersize=5, linewidth=2, clip_on=False)
        ends.append((values[-1], name, colour))
    label_lines(axis, ends, lengths[-1])
    few_ticks(axis)
    start = known["no temperature"][0]
    axis.axhline(start, color=INK, linewidth=1, linestyle=(0, (1, 3)))
    axis.text(lengths[-1] * 0.97, start - 0.1, "as in training", color=INK, fontsize=9,
              va="top", ha="right")
    return figure


def describe_entropy_by_length(lengths: Sequence[int] = ENTROPY_LENGTHS,
                               spread: float = 1.5) -> str:
    """Entropy at the shortest and the longest length for each multiplier."""
    table = entropies((lengths[0], lengths[-1]), spread)
    lines = [f"scores with standard deviation {spread:g}; entropy in nats at "
             f"{lengths[0]:,} and {lengths[-1]:,} tokens:"]
    lines += [f"  {name}: {first:.2f} and {last:.2f}"
              for name, (first, last) in table.items()]
    return "\n".join(lines)


# -------------------------------------------------------------------- the printed rule
def printed_divisors(factor: float, wavelength: Tensor, *, beta_fast: float = 32.0,
                     beta_slow: float = 1.0) -> Tensor:
    """What the reference's rule divides a pair of this wavelength by (tokens, float64).

    >>> printed_divisors(64.0, torch.tensor([31.0, 40.0, 65.0])).tolist()
    [1.0, 40.0, 64.0]
    """
    t = (wavelength / beta_slow - 1) / (factor - 1)
    middle = t * factor + (1 - t)
    slow = torch.where(wavelength > beta_slow * factor, factor, middle)
    return torch.where(wavelength < beta_fast, 1.0, slow)


def yarn_divisors(factor: float, wavelength: Tensor, trained_length: int) -> Tensor:
    """What the paper's equations divide a pair of this wavelength by, betas 32 and 1.

    >>> yarn_divisors(32.0, torch.tensor([100.0, 1024.0, 5000.0]), 4096).tolist()
    [1.0, 8.0, 32.0]
    """
    turns = trained_length / wavelength
    gamma = ((turns - 1.0) / (32.0 - 1.0)).clamp(0, 1)
    return 1 / ((1 - gamma) / factor + gamma)


def printed_rule(factors: Sequence[float] = (4, 32, 128),
                 trained: Sequence[int] = (4096, 131072)) -> Figure:
    """Divisor against wavelength: the reference's rule, and YaRN for two trainings."""
    figure, (left, right) = new_figure(8.8, 4.1, columns=2, sharey=True)
    waves = torch.logspace(math.log10(2 * math.pi), 6, 1200, dtype=torch.float64)
    tones = ((VERMILION, "-"), (PURPLE, "--"), (AMBER, "-."))
    for factor, (colour, style) in zip(factors, tones):
        left.plot(waves, printed_divisors(factor, waves), color=colour, linestyle=style,
                  linewidth=2.2)
        left.annotate(f"factor {factor:g}", (9e5, factor), xytext=(0, 4), color=colour,
                      textcoords="offset points", ha="right", fontsize=9.5)
    left.plot(waves, waves, color=INK, linewidth=1, linestyle=":")
    left.annotate("divisor = wavelength", (170, 170), xytext=(6, 0), va="center",
                  textcoords="offset points", fontsize=9, color=INK)
    for length, (colour, style) in zip(trained, ((BLUE, "-"), (GREEN, "--"))):
        _draw_training(right, waves, factors[1], length, colour, style)
    left.set(title="The reference's rule", ylabel="frequency divided by",
             ylim=(0.8, 2 * factors[-1]), yscale="log")
    right.set(title=f"YaRN's equations, factor {factors[1]:g}, cuts at L/32 and L")
    for axis in (left, right):
        axis.set(xscale="log", xlabel="wavelength (tokens)", xlim=(6, 1e6))
    few_ticks(left, right)
    return figure


def _draw_training(axis, waves: Tensor, factor: float, length: int, colour: str,
                   style: str) -> None:
    """YaRN's divisors for one trained length, with the cuts of its ramp."""
    axis.plot(waves, yarn_divisors(factor, waves, length), color=colour,
              linestyle=style, linewidth=2.2)
    for cut in (length / 32, length):
        axis.axvline(cut, color=colour, linewidth=1, linestyle=":")
    middle = length / 32**0.5
    axis.annotate(f"L = {length:,}", (middle, 0.5 * factor**0.5), xytext=(12, 0),
                  textcoords="offset points", color=colour, fontsize=9.5, va="center",
                  bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 1})


def describe_printed_rule(factors: Sequence[float] = (4, 32, 128),
                          trained: Sequence[int] = (4096, 131072)) -> str:
    """The divisor on both sides of 32 tokens, and where YaRN's cuts are."""
    sides = torch.tensor([31.999, 32.0, 32.001], dtype=torch.float64)
    lines = [f"factor {factor:g}: at a wavelength just below, at and just above 32 the "
             "printed divisor is " + ", ".join(
                 f"{value:.4g}" for value in printed_divisors(factor, sides).tolist())
             for factor in factors]
    lines += [f"YaRN trained on {length:,}: unchanged below a wavelength of "
              f"{length / 32:,.0f}, divided in full above {length:,}"
              for length in trained]
    return "\n".join(lines)


# ----------------------------------------------------------- the price at short lengths
def agreement(plain: Tensor, scaled: Tensor, distances: Tensor) -> Tensor:
    """Correlation of a score before and after scaling, at each distance.

    For q and k of independent normal numbers the correlation of the two scores at
    distance m is the mean over pairs of cos(m (plain_i - scaled_i)). Returns float64,
    the shape of ``distances``; 1 means: the model finds what it learnt.

    >>> f = rope.inverse_frequencies(8)
    >>> agreement(f, f, torch.tensor([0.0, 7.0])).tolist()
    [1.0, 1.0]
    """
    moved = (plain - scaled) * distances.double()[..., None]  # [distances, pairs]
    return moved.cos().mean(-1)


def running_mean(values: Tensor, window: int) -> Tensor:
    """The mean over a window (an odd number of values), the ends held.

    >>> running_mean(torch.tensor([0.0, 3.0, 6.0]), 3).tolist()
    [1.0, 3.0, 5.0]
    """
    half = window // 2
    held = torch.cat((values[:1].expand(half), values, values[-1:].expand(half)))
    return held.unfold(0, window, 1).mean(-1)


def _short_ways(factor: float) -> dict[str, Tensor]:
    common = {"base": BASE, "factor": factor}
    return {"dynamic NTK": yarn.dynamic_ntk(HEAD_DIM, **common, trained_length=TRAINED,
                                            length=TRAINED).inv_freq,
            "YaRN": yarn.yarn(HEAD_DIM, **common, trained_length=TRAINED).inv_freq,
            "NTK-aware": yarn.ntk_aware(HEAD_DIM, **common).inv_freq,
            "position interpolation":
                yarn.position_interpolation(HEAD_DIM, **common).inv_freq}


def agreement_by_distance(factor: float = 4.0) -> Figure:
    """How well scores within the trained length keep, under each static method."""
    figure, axis = new_figure(8.6, 3.9)
    axis.set(xscale="log", xlim=(1, TRAINED), ylim=(0, 1.06),
             xlabel="distance (tokens), all within the trained length",
             ylabel="correlation (running mean)")
    distances = torch.logspace(0, math.log10(TRAINED), 4000, dtype=torch.float64)
    plain, ends = rope.inverse_frequencies(HEAD_DIM, BASE), []
    styles = ((":", INK), ("-", BLUE), ("-.", AMBER), ("--", PURPLE))
    for (name, scaled), (style, colour) in zip(_short_ways(factor).items(), styles):
        values = running_mean(agreement(plain, scaled, distances), 101)
        axis.plot(distances, values, linestyle=style, color=colour, linewidth=2.2)
        ends.append((values[-1].item(), name, colour))
    label_lines(axis, ends, TRAINED)
    few_ticks(axis)
    return figure


def describe_agreement_by_distance(factor: float = 4.0) -> str:
    """The correlation at distances 1, 10, 100 and 1000 for each method."""
    plain = rope.inverse_frequencies(HEAD_DIM, BASE)
    distances = torch.tensor([1, 10, 100, 1000])
    lines = [f"factor {factor:g}; correlation with the trained score at distance 1, "
             "10, 100, 1000:"]
    for name, scaled in _short_ways(factor).items():
        values = agreement(plain, scaled, distances).tolist()
        lines.append(f"  {name}: " + ", ".join(f"{value:.3f}" for value in values))
    return "\n".join(lines)


# ----------------------------------------------------------------------- the laboratory
def _shade_between(axis, turns: Tensor, beta_fast: float, beta_slow: float) -> None:
    """The three regimes of pairs that make so many turns, cut at the two betas."""
    fast, slow = ((turns > beta).sum().item() - 0.5 for beta in (beta_fast, beta_slow))
    edges = (-0.5, fast, max(slow, fast), len(turns) - 0.5)
    for start, end, colour in zip(edges, edges[1:], REGIME_COLOURS):
        axis.axvspan(start, end, color=colour, alpha=0.07, linewidth=0)


def laboratory(plain: Tensor, ways: Sequence[tuple[str, Tensor]], factor: float,
               trained_length: int, length: int, beta_fast: float,
               beta_slow: float) -> Figure:
    """Divisors and wavelengths of two methods, as the explorer draws them.

    ``ways``: (name, frequencies) of the two; lengths are tokens.
    """
    figure, (left, right) = new_figure(9.4, 4.2, columns=2)
    _shade_between(left, yarn.rotations(plain, trained_length), beta_fast, beta_slow)
    before = rope.wavelengths(plain)
    right.plot(before, color=INK, linestyle=":", linewidth=1.8, label="before")
    looks = ((BLUE, "-", 2.6), (VERMILION, "--", 2.0))
    for (name, scaled), (colour, style, width) in zip(ways, looks):
        look = {"color": colour, "linestyle": style, "linewidth": width, "label": name}
        left.plot(divisors(scaled, plain).clamp(max=1e12), **look)
        right.plot(rope.wavelengths(scaled).clamp(max=1e30), **look)
    for tokens, text in ((trained_length, "trained length"), (length, "text")):
        right.axhline(tokens, color=INK, linewidth=1, linestyle=(0, (1, 3)))
        right.annotate(f"{text}: {tokens:,} tokens", (0, tokens), xytext=(0, 3),
                       textcoords="offset points", fontsize=8.5, color=INK)
    both = {"xlabel": "pair i", "yscale": "log", "xlim": (-0.5, len(plain) - 0.5)}
    top, longest = 2.2 * max(factor, 1.5), before[-1].item() * factor
    left.set(ylabel="frequency divided by", ylim=(0.7, top), **both)
    right.set(ylabel="wavelength (tokens)", ylim=(4, 3 * max(longest, length)), **both)
    left.legend(frameon=False, fontsize=9, loc="upper left")
    right.legend(frameon=False, fontsize=9, loc="lower right")
    few_ticks(left, right)
    doubling_ticks(left, top)
    return figure
