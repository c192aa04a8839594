"""Pictures of lesson 02: what RMSNorm keeps, epsilon, half precision, depth, speed.

Every picture ``name(...)`` has its numbers in a pure function beside it and a
``describe_name(...)`` that says them in a line or two of text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from apex_lessons.figures import INK, LINE_STYLES, MARKERS, PALETTE, PAPER, new_figure
from apex_lessons.norm import rms_norm

BLUE, VERMILION, GREEN, PURPLE, AMBER, SKY = PALETTE[:6]
WORKED = (2.0, -1.0, 0.5, 1.5)  # the reference's example, section 3.4
ORDERS = {"cast-last": "weight in float32,\nthen cast",
          "cast-first": "cast,\nthen weight",
          "no upcast": "all in\nbfloat16"}
COLOUR = {"none": VERMILION, "post": AMBER, "pre": BLUE}
LABEL = {"none": "no norm", "post": "post-norm", "pre": "pre-norm"}
LINE = {"none": "-", "post": "--", "pre": "-."}
LARGEST_FLOAT16 = torch.finfo(torch.float16).max
SEED = 2


# -------------------------------------------------------------- the two norms compared
def layer_norm(x: Tensor, eps: float = 1e-6) -> Tensor:
    """LayerNorm without weight and bias: ``rms_norm(x - mean(x))``, last dimension.

    >>> layer_norm(torch.tensor([1.0, 3.0])).round(decimals=3).tolist()
    [-1.0, 1.0]
    """
    return rms_norm(x - x.mean(dim=-1, keepdim=True), eps=eps)


def statistics(x: Tensor) -> dict[str, float]:
    """Mean, variance, RMS and length of one vector; ``rms^2 = variance + mean^2``.

    >>> statistics(torch.tensor([3.0, 4.0]))["length"]
    5.0
    """
    x = x.double()
    return {"mean": x.mean().item(), "variance": x.var(unbiased=False).item(),
            "rms": x.square().mean().sqrt().item(), "length": x.norm().item()}


def both_norms(vector: Sequence[float] = WORKED, *, shift: float = 0.0,
               eps: float = 1e-6) -> dict[str, Tensor]:
    """The vector plus a shift, and what LayerNorm and RMSNorm make of it; float64 [d].

    >>> sorted(both_norms())
    ['after LayerNorm', 'after RMSNorm', 'input']
    """
    x = torch.tensor(vector, dtype=torch.float64) + shift
    return {"input": x, "after LayerNorm": layer_norm(x, eps),
            "after RMSNorm": rms_norm(x, eps=eps)}


def before_and_after(vector: Sequence[float] = WORKED, *, shift: float = 0.0,
                     eps: float = 1e-6) -> Figure:
    """Bars of one vector before and after each norm, with its mean drawn."""
    figure, axes = new_figure(8.4, 3.3, columns=3)
    vectors = both_norms(vector, shift=shift, eps=eps)
    colours = (INK, VERMILION, BLUE)
    for axis, colour, (name, values) in zip(axes, colours, vectors.items()):
        facts = statistics(values)
        _bars(axis, values.tolist(), colour, facts["mean"])
        axis.set_title(f"{name}\nmean {_zero(facts['mean']):.2f} (dashed),"
                       f" RMS {facts['rms']:.2f}", fontsize=10, color=INK)
    low, high = zip(*(axis.get_ylim() for axis in axes[1:]))
    for axis in axes[1:]:  # one scale for the two outputs
        axis.set_ylim(min(low), max(high))
    return figure


def _bars(axis, numbers: Sequence[float], colour: str, mean: float) -> None:
    """Labelled bars, and a dashed line at their mean."""
    axis.bar(range(len(numbers)), numbers, color=colour, alpha=0.85, width=0.6)
    axis.axhline(0, color=INK, linewidth=0.8)
    axis.axhline(mean, color=AMBER, linestyle="--", linewidth=1.8)
    room = 0.22 * max(abs(number) for number in numbers) or 1.0
    axis.set_ylim(min(0, *numbers) - room, max(0, *numbers) + room)
    box = {"facecolor": PAPER, "pad": 0.6, "edgecolor": "none", "alpha": 0.9}
    for column, number in enumerate(numbers):
        axis.annotate(f"{_zero(number):.2f}", (column, number), ha="center", color=INK,
                      xytext=(0, 4 if number >= 0 else -13), fontsize=9, bbox=box,
                      textcoords="offset points")
    axis.set_xticks(range(len(numbers)), [f"$x_{i}$" for i in range(len(numbers))])
    axis.grid(False)


def describe_before_and_after(vector: Sequence[float] = WORKED, *, shift: float = 0.0,
                              eps: float = 1e-6) -> str:
    """The three vectors and their statistics, a line each."""
    lines = []
    for name, values in both_norms(vector, shift=shift, eps=eps).items():
        facts = statistics(values)
        entries = ", ".join(f"{_zero(value):.4f}" for value in values.tolist())
        lines.append(f"{name}: [{entries}]  mean {_zero(facts['mean']):.3f}"
                     f"  variance {facts['variance']:.3f}  RMS {facts['rms']:.3f}")
    return "\n".join(lines)


def _zero(value: float, tiny: float = 5e-7) -> float:
    """The value, but never a minus zero or its rounding noise."""
    return 0.0 if abs(value) < tiny else value


# ------------------------------------------------------------------- shift and circle
def shift_sweep(vector: Sequence[float] = WORKED, *, largest: float = 6.0,
                steps: int = 121) -> tuple[Tensor, Tensor, Tensor]:
    """The outputs of both norms while the same number is added to every entry.

    Returns (shifts [steps], LayerNorm [steps, d], RMSNorm [steps, d]), float64.
    """
    shifts = torch.linspace(-largest, largest, steps, dtype=torch.float64)
    x = torch.tensor(vector, dtype=torch.float64) + shifts[:, None]  # [steps, d]
    return shifts, layer_norm(x), rms_norm(x)


def what_a_shift_does(vector: Sequence[float] = WORKED) -> Figure:
    """Each entry's output against the shift: flat for LayerNorm, not for RMSNorm."""
    shifts, *outputs = shift_sweep(vector)
    figure, axes = new_figure(8.4, 3.4, columns=2, sharey=True)
    for axis, output, name in zip(axes, outputs, ("LayerNorm", "RMSNorm")):
        for entry, number in enumerate(vector):
            axis.plot(shifts, output[:, entry], color=PALETTE[entry % 7], linewidth=2,
                      linestyle=LINE_STYLES[entry % 7], label=f"{number:g}")
        axis.set(title=name, xlabel="number added to every entry")
        axis.axhline(0, color=INK, linewidth=0.8)
    axes[0].set_ylabel("output")
    axes[1].legend(title="entry", fontsize=9, title_fontsize=9, loc="lower right")
    return figure


def describe_what_a_shift_does(vector: Sequence[float] = WORKED) -> str:
    """The outputs at the two ends and without a shift."""
    shifts, layer, root = shift_sweep(vector)
    lines = []
    for row in (0, len(shifts) // 2, len(shifts) - 1):
        values = [", ".join(f"{_zero(v):.3f}" for v in out[row].tolist())
                  for out in (layer, root)]
        lines.append(f"shift {_zero(shifts[row].item()):+.0f}: LayerNorm [{values[0]}]"
                     f"  RMSNorm [{values[1]}]")
    return "\n".join(lines)


def ring(count: int = 48) -> Tensor:
    """Vectors of two numbers all around, of lengths 0.4 to 2.6; float64 [count, 2]."""
    steps = torch.arange(count, dtype=torch.float64) + 0.5
    angles = steps * (2 * math.pi / count)
    lengths = 0.4 + 2.2 * torch.frac(steps * 0.618)
    return lengths[:, None] * torch.stack([angles.cos(), angles.sin()], dim=-1)


def two_dimensions(count: int = 48) -> Figure:
    """Vectors of two numbers, before and after: two points remain, or a circle."""
    points = ring(count)
    figure, axes = new_figure(9.0, 3.4, columns=3, sharey=True)
    above = points[:, 1] > points[:, 0]
    for axis, (name, moved) in zip(axes, _moved(points).items()):
        for chosen, colour, marker in ((above, BLUE, "o"), (~above, VERMILION, "^")):
            axis.plot(*moved[chosen].T, marker, color=colour, markersize=5, alpha=0.8)
        axis.axline((0, 0), slope=1, color=INK, linestyle="--", linewidth=1, alpha=0.6)
        axis.set(xlim=(-2.8, 2.8), ylim=(-2.8, 2.8), aspect="equal", title=name,
                 xlabel="first number")
    axes[0].set_ylabel("second number")
    for x, y in ((-1, 1), (1, -1)):
        axes[1].annotate("24 vectors", (x, y), xytext=(0, 9), ha="center", fontsize=9,
                         textcoords="offset points", color=INK)
    return figure


def describe_two_dimensions(count: int = 48) -> str:
    """How many different points remain, and at what distance from 0."""
    lines = []
    for name, moved in _moved(ring(count)).items():
        different = len({tuple(point) for point in moved.round(decimals=3).tolist()})
        lengths = moved.norm(dim=-1)
        lines.append(f"{name}: {different} different points, lengths"
                     f" {lengths.min().item():.3f} to {lengths.max().item():.3f}")
    return "\n".join(lines)


def _moved(points: Tensor) -> dict[str, Tensor]:
    return {"input": points, "after LayerNorm": layer_norm(points, eps=0.0),
            "after RMSNorm": rms_norm(points, eps=0.0)}


# --------------------------------------------------------------------------- epsilon
def output_rms(input_rms: Tensor | float, eps: float, *, inside: bool = True) -> Tensor:
    """RMS after the norm of a vector with RMS r: ``r / sqrt(r^2 + eps)``.

    ``inside=False`` is the other convention, ``r / (r + eps)``. float64, no unit.

    >>> round(output_rms(0.01, 1e-5).item(), 4)
    0.9535
    """
    r = torch.as_tensor(input_rms, dtype=torch.float64)
    return r / (r.square() + eps).sqrt() if inside else r / (r + eps)


EPSILON_CURVES = (("1e-5, inside the root", 1e-5, True), ("1e-6, inside", 1e-6, True),
                  ("1e-6, outside", 1e-6, False))


def epsilon_curve() -> Figure:
    """RMS after the norm against RMS before it, for three epsilons; log axes."""
    figure, axis = new_figure(7.4, 3.9)
    r = torch.logspace(-7, 1, 321, dtype=torch.float64)
    for number, (name, eps, inside) in enumerate(EPSILON_CURVES):
        colour = (VERMILION, BLUE, GREEN)[number]
        axis.plot(r, output_rms(r, eps, inside=inside), color=colour, linewidth=2.2,
                  linestyle=LINE_STYLES[number], label=name)
        turn = math.sqrt(eps) if inside else eps
        axis.plot(turn, output_rms(turn, eps, inside=inside), MARKERS[number],
                  color=colour, markersize=8)
    axis.set(xscale="log", yscale="log", xlabel="RMS of the input", ylim=(1e-4, 2),
             ylabel="RMS of the output")
    axis.minorticks_off()  # they are slow to lay out and say nothing here
    axis.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axis.legend(title="epsilon; the mark is where the curve bends", fontsize=9,
                title_fontsize=9, loc="lower right")
    return figure


def describe_epsilon_curve() -> str:
    """Output RMS of the three curves at four input sizes."""
    lines = []
    for r in (1.0, 1e-2, 1e-3, 1e-5):
        values = [f"{output_rms(r, eps, inside=inside).item():.4f} ({name})"
                  for name, eps, inside in EPSILON_CURVES]
        lines.append(f"input RMS {r:g}: " + ", ".join(values))
    return "\n".join(lines)


# -------------------------------------------------------------------- half precision
def printed_rms_norm(x: Tensor, weight: Tensor | float = 1.0,
                     eps: float = 1e-6) -> Tensor:
    """The formula as the reference's code has it: every step in x's own dtype.

    >>> printed_rms_norm(torch.full((4,), 300.0, dtype=torch.float16)).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """
    return x / x.pow(2).mean(dim=-1, keepdim=True).add(eps).sqrt() * weight


HALF_PROGRAMS: dict[str, tuple[torch.dtype, Callable]] = {
    "float32 inside": (torch.float16, rms_norm),
    "all in bfloat16": (torch.bfloat16, printed_rms_norm),
    "all in float16": (torch.float16, printed_rms_norm),
}


def half_output(size: Tensor, name: str, eps: float = 1e-6) -> Tensor:
    """What a program gives for four equal numbers of each size; shaped like ``size``.

    ``name``: a key of HALF_PROGRAMS. float64; the right answer is near 1 for sizes well
    above ``sqrt(eps)``.
    """
    dtype, program = HALF_PROGRAMS[name]
    x = size[:, None].expand(-1, 4).to(dtype)  # [sizes, 4]
    return program(x, eps=eps)[:, 0].double()


def half_precision() -> Figure:
    """RMSNorm of half-precision vectors: large sizes, and small ones with eps 1e-8."""
    figure, axes = new_figure(9.0, 3.6, columns=2, sharey=True)
    ranges = ((0.0, math.log10(6e4), 1e-6), (-6.0, -2.0, 1e-8))
    for axis, (low, high, eps) in zip(axes, ranges):
        sizes = torch.logspace(low, high, 301, dtype=torch.float64)
        for number, name in enumerate(HALF_PROGRAMS):
            output = half_output(sizes, name, eps)
            axis.plot(sizes[output.isfinite()], output[output.isfinite()], label=name,
                      color=(BLUE, GREEN, VERMILION)[number], alpha=(0.4, 1, 1)[number],
                      linestyle=LINE_STYLES[number], linewidth=(5, 2, 2)[number])
        axis.set(xscale="log", ylim=(-0.05, 1.5), xlabel="size of the input",
                 title=f"eps {eps:g}")
        axis.minorticks_off()
    axes[0].set_ylabel("output (the formula says the blue band)")
    axes[0].axvline(256, color=INK, linewidth=1, linestyle=":")
    axes[0].annotate("256", (256, 1.25), xytext=(4, 0), textcoords="offset points",
                     fontsize=9, color=INK)
    infinite = _where_infinite()
    axes[1].axvspan(*infinite, color=VERMILION, alpha=0.18, linewidth=0)
    axes[1].annotate("infinite in float16", (math.sqrt(infinite[0] * infinite[1]), 1.3),
                     ha="center", fontsize=9, color=INK)
    axes[0].legend(fontsize=9, loc="center left")
    return figure


def _where_infinite() -> tuple[float, float]:
    """The sizes for which float16 without float32 gives 1/0, with eps 1e-8."""
    sizes = torch.logspace(-6, -2, 2001, dtype=torch.float64)
    wrong = sizes[~half_output(sizes, "all in float16", 1e-8).isfinite()]
    return wrong.min().item(), wrong.max().item()


def describe_half_precision() -> str:
    """The three programs at a few sizes."""
    lines = []
    for eps, sizes in ((1e-6, [1.0, 255.0, 256.0, 1000.0]), (1e-8, [1e-5, 1e-4, 3e-4])):
        shown = "  ".join(f"{size:>7g}" for size in sizes)
        lines.append(f"eps {eps:g}, size:{'':2} {shown}")
        for name in HALF_PROGRAMS:
            values = half_output(torch.tensor(sizes, dtype=torch.float64), name, eps)
            shown = "  ".join(f"{value:7.4f}" for value in values.tolist())
            lines.append(f"{name:>16}  {shown}")
    return "\n".join(lines)


class CastError(NamedTuple):
    """How one order of cast and weight differs from the correctly rounded result."""

    not_nearest: float  # share of elements that are not the nearest bfloat16 number
    largest: float  # largest relative error against float64


@lru_cache(maxsize=4)
def cast_errors(rows: int = 1000, width: int = 256) -> dict[str, CastError]:
    """Three orders measured on random bfloat16 rows, weight near 1; keys of ORDERS."""
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64).bfloat16()
    weight = torch.randn(width, generator=generator, dtype=torch.float64)
    weight = (1 + 0.3 * weight).bfloat16()
    exact = rms_norm(x.double(), weight.double())
    found = {}
    for name in ORDERS:
        result = (printed_rms_norm(x, weight) if name == "no upcast"
                  else rms_norm(x, weight, order=name))
        wrong = (result != exact.bfloat16()).double().mean().item()
        error = (result.double() - exact).abs() / exact.abs().clamp(min=1e-9)
        found[name] = CastError(wrong, error.max().item())
    return found


def cast_orders() -> Figure:
    """Bars: how often each order misses the nearest bfloat16 number, and how far."""
    errors = cast_errors()
    figure, axes = new_figure(8.4, 2.9, columns=2, sharey=True)
    places = range(len(ORDERS))
    panels = (("not the nearest bfloat16 number", [100 * e.not_nearest for e in
                                                   errors.values()], "{:.1f} %"),
              ("largest relative error", [100 * e.largest for e in errors.values()],
               "{:.2f} %"))
    for axis, (title, values, form) in zip(axes, panels):
        axis.barh(places, values, color=(BLUE, AMBER, VERMILION), height=0.6)
        axis.set_title(title, fontsize=10)
        axis.set_xlim(0, 1.25 * max(values))
        axis.grid(False, axis="y")
        for place, value in zip(places, values):
            axis.annotate(form.format(value), (value, place), xytext=(4, 0), fontsize=9,
                          textcoords="offset points", va="center", color=INK)
        axis.set_xlabel("percent")
    axes[0].set_yticks(places, ORDERS.values())
    axes[0].invert_yaxis()
    return figure


def describe_cast_orders() -> str:
    """The two numbers of each order."""
    return "\n".join(f"{name}: {100 * e.not_nearest:.1f} % of the elements are not the"
                     f" nearest bfloat16 number, largest relative error {e.largest:.4f}"
                     for name, e in cast_errors().items())


# ----------------------------------------------- which numbers share one RMS, pRMSNorm
AXES = {"each token by itself": -1, "tokens and features together": (-2, -1),
        "each feature over the tokens": -2}


def influence(dim: int | tuple[int, ...], tokens: int = 6, width: int = 8) -> Tensor:
    """How much output i moves when token j is changed; float64 [tokens i, tokens j].

    The RMS is taken over ``dim`` of a [tokens, width] tensor.

    >>> int((influence(-1) > 0).sum())
    6
    """
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(tokens, width, generator=generator, dtype=torch.float64)
    normed = x / x.square().mean(dim=dim, keepdim=True).sqrt()
    columns = []
    for token in range(tokens):
        changed = x.clone()
        changed[token] *= 3.0 * torch.linspace(0.5, 1.5, width, dtype=torch.float64)
        other = changed / changed.square().mean(dim=dim, keepdim=True).sqrt()
        columns.append((other - normed).abs().amax(dim=-1))  # [tokens]
    return torch.stack(columns, dim=-1)


def which_axis() -> Figure:
    """Which outputs move when one token changes; framed where the future leaks."""
    figure, axes = new_figure(9.0, 3.5, columns=3)
    for axis, (name, dim) in zip(axes, AXES.items()):
        moved = influence(dim)
        axis.imshow(moved.clamp(max=1.0).numpy(), cmap="Blues", vmin=0, vmax=1)
        axis.grid(False)
        for i, j in (moved.triu(1) > 0).nonzero().tolist():
            axis.add_patch(Rectangle((j - 0.46, i - 0.46), 0.92, 0.92, fill=False,
                                     edgecolor=VERMILION, linewidth=1.6))
        axis.set_title(f"{name}\n{_leaks(moved)} leaks from the future", fontsize=10)
        axis.set_xlabel("token that is changed")
    axes[0].set_ylabel("output that moves")
    return figure


def describe_which_axis() -> str:
    """The count of leaks for each choice of axis."""
    return "\n".join(f"{name}: {_leaks(influence(dim))} of 15 earlier outputs move"
                     " when a later token changes" for name, dim in AXES.items())


def _leaks(moved: Tensor) -> int:
    return int((moved.triu(1) > 1e-12).sum())


def partial_rms(x: Tensor, share: float) -> Tensor:
    """RMS of the first ``floor(d share)`` numbers, as pRMSNorm takes it; [..., 1].

    >>> partial_rms(torch.tensor([3.0, 3.0, 100.0, 100.0]), 0.5).tolist()
    [3.0]
    """
    first = x[..., :max(1, math.floor(x.shape[-1] * share))]
    return first.square().mean(dim=-1, keepdim=True).sqrt()


SHARES = tuple(2.0**-k for k in range(6, -1, -1))  # 1/64 to 1
QUANTILES = torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64)


@lru_cache(maxsize=2)
def partial_spread(*, outlier: float = 1.0, width: int = 512,
                   rows: int = 600) -> Tensor:
    """Partial RMS over full RMS: 5 %, 50 % and 95 % of random rows; [shares, 3].

    ``outlier`` multiplies one entry, at a random place, of each row of normal numbers.
    """
    generator = torch.Generator().manual_seed(SEED)
    x = torch.randn(rows, width, generator=generator, dtype=torch.float64)
    places = torch.randint(0, width, (rows, 1), generator=generator)
    x = x.scatter(1, places, outlier * x.gather(1, places))
    ratios = [(partial_rms(x, share) / partial_rms(x, 1.0))[:, 0] for share in SHARES]
    return torch.stack([ratio.quantile(QUANTILES) for ratio in ratios])


def partial() -> Figure:
    """RMS of the first few numbers over the RMS of all, with and without an outlier."""
    figure, axis = new_figure(7.4, 3.7)
    kinds = ((1.0, BLUE, "-", "normal numbers"),
             (30.0, VERMILION, "--", "one entry is 30 times larger"))
    for outlier, colour, line, name in kinds:
        low, middle, high = partial_spread(outlier=outlier).T
        axis.fill_between(SHARES, low, high, color=colour, alpha=0.22, linewidth=0)
        axis.plot(SHARES, middle, color=colour, linestyle=line, linewidth=2.2,
                  marker="o", markersize=4, label=name)
    axis.set_xscale("log", base=2)
    axis.set_xticks(SHARES, [f"1/{round(1 / share)}" if share < 1 else "all"
                             for share in SHARES])
    axis.axhline(1, color=INK, linewidth=0.8, linestyle=":")
    axis.set(xlabel="share of the 512 numbers that is looked at", ylim=(0, 2.5),
             ylabel="partial RMS / full RMS")
    axis.legend(title="line: median; band: 5 % to 95 %", fontsize=9, title_fontsize=9,
                loc="upper right")
    return figure


def describe_partial() -> str:
    """The spread at 1/16, and with all numbers."""
    lines = []
    for outlier, name in ((1.0, "normal numbers"), (30.0, "with an outlier")):
        row = partial_spread(outlier=outlier)[SHARES.index(1 / 16)]
        low, middle, high = row.tolist()
        lines.append(f"{name}, 1/16 of 512: partial RMS is {low:.2f} to {high:.2f} of"
                     f" the full one (median {middle:.2f})")
    return "\n".join(lines)


# ----------------------------------------------------------------------------- depth
class Depth(NamedTuple):
    """A signal through a stack of blocks at the start of training."""

    size: tuple[float, ...]  # RMS of the stream: at the input, after block 1, 2, ...
    gradient: tuple[float, ...]  # RMS of the loss's gradient there
    last_weight_gradient: float  # its length for the last block's last matrix


def place(x: Tensor, sublayer: Callable, placement: str) -> Tensor:
    """One residual step: pre-norm, post-norm or no norm at all."""
    if placement == "pre":
        return x + sublayer(rms_norm(x))
    if placement == "post":
        return rms_norm(x + sublayer(x))
    return x + sublayer(x)


def through_depth(placement: str, layers: int = 72, *, width: int = 48,
                  tokens: int = 32, seed: int = 0) -> Depth:
    """Forward and backward through ``layers`` blocks of attention and feed-forward.

    All weights normal with variance 1 / fan-in; the loss is a cross entropy with random
    targets; float64, so that even the stack without norms stays finite. The same run is
    computed once.
    """
    return _through_depth(placement, layers, width, tokens, seed)


@lru_cache(maxsize=64)
def _through_depth(placement: str, layers: int, width: int, tokens: int,
                   seed: int) -> Depth:
    generator = torch.Generator().manual_seed(seed)
    x = _normal(tokens, width, generator=generator).requires_grad_()
    streams = [x]
    for _ in range(layers):
        attention, feed_forward, last = _sublayers(width, tokens, generator)
        x = place(place(x, attention, placement), feed_forward, placement)
        streams.append(x)
    head = _normal(256, width, generator=generator) / math.sqrt(width)
    targets = torch.randint(0, 256, (tokens,), generator=generator)
    final = x if placement == "none" else rms_norm(x)
    loss = torch.nn.functional.cross_entropy(final @ head.T, targets)
    *gradients, of_weight = torch.autograd.grad(loss, [*streams, last])
    return Depth(tuple(map(_rms, streams)), tuple(map(_rms, gradients)),
                 of_weight.norm().item())


def _sublayers(width: int, tokens: int, generator, heads: int = 4):
    """Causal attention, a ReLU feed-forward, and the last of their fresh matrices."""
    mixed, out, up, down = (
        _normal(rows, columns, generator=generator) / math.sqrt(columns)
        for rows, columns in ((3 * width, width), (width, width), (4 * width, width),
                              (width, 4 * width)))
    future = torch.full((tokens, tokens), -math.inf, dtype=torch.float64).triu(1)

    def attention(x):
        split = (x @ mixed.T).view(tokens, 3 * heads, -1).transpose(0, 1)
        q, k, v = split.chunk(3)  # [heads, tokens, width / heads]
        scores = q @ k.transpose(1, 2) / math.sqrt(width // heads) + future
        return (scores.softmax(-1) @ v).transpose(0, 1).reshape(tokens, width) @ out.T

    def feed_forward(x):
        return torch.relu(x @ up.T) @ down.T

    return attention, feed_forward, down.requires_grad_()


def _normal(*shape: int, generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _rms(x: Tensor) -> float:
    return x.detach().square().mean().sqrt().item()


def stream_rms(depth: float, gain: float, placement: str, start: float = 1.0) -> float:
    """Expected RMS of the stream after ``depth`` sublayers that are independent of it.

    ``gain`` is the RMS of a sublayer's output for an input of RMS 1. Variances add, so:
    pre-norm ``sqrt(start^2 + depth gain^2)``, post-norm 1 (from the first sublayer on),
    no norm ``start (1 + gain^2)^(depth / 2)``.

    >>> stream_rms(3, 1.0, "pre")
    2.0
    """
    if placement == "pre":
        return math.sqrt(start**2 + depth * gain**2)
    if placement == "post":
        return 1.0 if depth else start
    return start * (1 + gain**2) ** (depth / 2)


LAYER_COUNTS = (4, 12, 36, 72)


def last_gradients(placement: str) -> list[float]:
    """Gradient length of the last block's last matrix, for stacks of LAYER_COUNTS."""
    return [through_depth(placement, layers).last_weight_gradient
            for layers in LAYER_COUNTS]


def depth(layers: int = 72) -> Figure:
    """Size of the stream and of its gradient, block by block, for three placements."""
    figure, axes = new_figure(9.0, 3.8, columns=2, sharex=True)
    for placement in ("none", "post", "pre"):
        run = through_depth(placement, layers)
        style = {"color": COLOUR[placement], "linestyle": LINE[placement],
                 "linewidth": 2}
        axes[0].plot(run.size, label=LABEL[placement], **style)
        axes[1].plot(run.gradient, **style)
    axes[0].axhline(LARGEST_FLOAT16, color=INK, linewidth=1, linestyle=":")
    axes[0].annotate("largest float16 number", (layers, LARGEST_FLOAT16), fontsize=8,
                     xytext=(0, 3), textcoords="offset points", ha="right", color=INK)
    axes[0].set(yscale="log", ylabel="RMS", title="the residual stream, forward")
    axes[1].set(yscale="log", ylabel="RMS", title="the gradient, backward")
    for axis in axes:
        axis.set_xlabel("block")
        axis.minorticks_off()
    axes[0].legend(fontsize=9, loc="upper left")
    return figure


def describe_depth(layers: int = 72) -> str:
    """First and last values of the three runs; without a norm, powers of ten."""
    none, post, pre = (through_depth(p, layers) for p in ("none", "post", "pre"))
    swing = max(post.gradient) / min(post.gradient)
    growth = math.log10(none.gradient[0] / none.gradient[-1])
    ratio, size = pre.gradient[0] / pre.gradient[-1], math.log10(none.size[-1])
    return (f"no norm: RMS grows to about 1e{size:.0f}, the gradient at the"
            f" input is about 1e{growth:.0f} times the one at the end\n"
            f"post-norm: RMS {post.size[-1]:.2f} after every block, gradients within a"
            f" factor {swing:.1f}\n"
            f"pre-norm: RMS {pre.size[0]:.2f} at the input, {pre.size[-1]:.1f} after"
            f" block {layers}, the gradient at the input is {ratio:.0f} times the one"
            " at the end")


def last_layer() -> Figure:
    """Gradient of the last block's matrix against the number of blocks; log axes."""
    figure, axis = new_figure(6.4, 3.6)
    for placement, marker in (("post", "s"), ("pre", "o")):
        axis.plot(LAYER_COUNTS, last_gradients(placement), color=COLOUR[placement],
                  linestyle=LINE[placement], marker=marker, linewidth=2,
                  label=LABEL[placement])
    start, first = last_gradients("pre")[0], LAYER_COUNTS[0]
    axis.plot(LAYER_COUNTS, [start * math.sqrt(first / n) for n in LAYER_COUNTS],
              color=INK, linestyle=":", linewidth=1.2, label="one over root of blocks")
    axis.set(xscale="log", yscale="log", xlabel="number of blocks",
             ylabel="length of the gradient")
    axis.set_xticks(LAYER_COUNTS, LAYER_COUNTS)
    axis.set_xticks([], minor=True)
    axis.set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
    axis.set_yticks([], minor=True)
    axis.legend(fontsize=9, loc="lower left")
    return figure


def describe_last_layer() -> str:
    """The gradients at the smallest and the largest stack."""
    words = []
    for placement in ("post", "pre"):
        values = last_gradients(placement)
        words.append(f"{LABEL[placement]}: {values[0]:.2f} with {LAYER_COUNTS[0]}"
                     f" blocks, {values[-1]:.2f} with {LAYER_COUNTS[-1]}")
    return "\n".join(words)


# ----------------------------------------------------------------------------- speed
def speed(times: Mapping[str, Mapping[str, float]],
          unit: str = "milliseconds") -> Figure:
    """Horizontal bars of measured times: ``times[program][what was measured]``."""
    programs = list(times)
    measures = list(next(iter(times.values())))
    figure, axes = new_figure(9.0, 0.6 + 0.45 * len(programs), columns=len(measures),
                              sharey=True, squeeze=False)
    for axis, measure in zip(axes[0], measures):
        values = [times[program][measure] for program in programs]
        colours = [VERMILION if "layer" in program.lower() else BLUE if "rms" in
                   program.lower() else PALETTE[6] for program in programs]
        axis.barh(range(len(programs)), values, color=colours, height=0.6)
        axis.set(title=measure, xlabel=unit, xlim=(0, 1.2 * max(values)))
        axis.grid(False, axis="y")
        for row, value in enumerate(values):
            axis.annotate(f"{value:.2f}", (value, row), xytext=(4, 0), va="center",
                          textcoords="offset points", fontsize=9, color=INK)
    axes[0][0].set_yticks(range(len(programs)), programs)
    axes[0][0].invert_yaxis()
    return figure


def describe_speed(times: Mapping[str, Mapping[str, float]], unit: str = "ms") -> str:
    """The table in words, a line a program."""
    return "\n".join(f"{program}: " + ", ".join(f"{what} {value:.2f} {unit}"
                     for what, value in row.items()) for program, row in times.items())
