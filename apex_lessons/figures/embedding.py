"""Pictures of lesson 01: lookup, scale, conventions, tying, the start of training.

Each picture has three parts: a pure function that computes its numbers (a test can
check it), a figure that draws them, and a ``describe_`` function that puts them into
a line or two of words. Widths are vector sizes d, sizes are root mean squares (RMS),
losses are in nats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import torch
from torch.nn import functional as F

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.figures import INK, LINE_STYLES, MARKERS, PALETTE, new_figure
from apex_lessons.models.apex1 import SIZES, apex1_config
from apex_lessons.norm import rms_norm

WIDTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
APEX_STD = 0.02


def seeded(seed: int) -> torch.Generator:
    """A generator on the CPU, so that numbers do not depend on the machine."""
    return torch.Generator().manual_seed(seed)


def random_table(rows: int, width: int, std: float, seed: int = 0) -> torch.Tensor:
    """A table drawn from N(0, std²), the same one for the same seed.

    >>> random_table(3, 4, 0.02).shape
    torch.Size([3, 4])
    """
    return torch.randn(rows, width, generator=seeded(seed)) * std  # [rows, width]


def root_mean_square(x: torch.Tensor) -> float:
    """sqrt(mean(x²)) over all numbers of x, in float64.

    >>> root_mean_square(torch.tensor([3.0, -3.0]))
    3.0
    """
    return x.detach().double().pow(2).mean().sqrt().item()


# --- lookup -----------------------------------------------------------------------

def lookup_parts(table: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """The three matrices of ``one_hot @ table = rows``, and the gradient of sum(rows).

    Shapes: one_hot [seq, vocab], table [vocab, d], rows [seq, d], gradient [vocab, d].
    The gradient counts how often each row was used.

    >>> lookup_parts(torch.ones(3, 2), torch.tensor([1, 1]))["gradient"][:, 0].tolist()
    [0.0, 2.0, 0.0]
    """
    weight = table.detach().clone().requires_grad_()  # [vocab, d]
    rows = F.embedding(ids, weight)  # [seq, d]
    rows.sum().backward()
    one_hot = F.one_hot(ids, len(table)).to(table.dtype)  # [seq, vocab]
    return {"one_hot": one_hot, "table": table, "rows": rows.detach(),
            "gradient": weight.grad}


def lookup(table: torch.Tensor, ids: torch.Tensor, names: Sequence[str] = ()):
    """One-hot matrix times table gives the rows; beside it, which rows learn."""
    parts = lookup_parts(table, ids)
    names = names or [str(row) for row in range(len(table))]
    said = [names[token] for token in ids.tolist()]
    figure, axes = new_figure(9.0, 2.9, columns=4, gridspec_kw={
        "width_ratios": [part.shape[1] for part in parts.values()]})
    titles = ("one-hot  [S, V]", "@  table  [V, d]", "=  rows  [S, d]",
              "gradient of their sum\non the table")
    labels = (said, names, said, names)
    for axis, part, title, rows in zip(axes, parts.values(), titles, labels):
        heat_map(axis, part, title, row_labels=rows)
    return figure


def describe_lookup(table: torch.Tensor, ids: torch.Tensor) -> str:
    """The largest difference of the two ways, and how often each row is used.

    >>> print(describe_lookup(torch.ones(3, 2), torch.tensor([1, 0])))
    one-hot product minus selected rows: 0.0 at most
    uses of each row, read from its gradient: [1, 1, 0]
    """
    parts = lookup_parts(table, ids)
    error = (parts["one_hot"] @ table - parts["rows"]).abs().max().item()
    uses = [int(count) for count in parts["gradient"][:, 0]]
    return (f"one-hot product minus selected rows: {error} at most\n"
            f"uses of each row, read from its gradient: {uses}")


def heat_map(axis, values: torch.Tensor, title: str, *, row_labels=(), column_labels=(),
             decimals: int = 2, limit: float | None = None, font: float = 9) -> None:
    """A matrix as coloured cells with its numbers in them: purple +, orange −."""
    limit = limit or values.abs().max().item() or 1.0
    axis.imshow(values.tolist(), cmap="PuOr", vmin=-2 * limit, vmax=2 * limit,
                aspect="auto")
    decimals = decimals if (values % 1).any() else 0
    for row, numbers in enumerate(values.tolist()):
        for column, exact in enumerate(numbers):
            number = round(exact, decimals) + 0.0  # no negative zero
            text = f"{number:.{decimals}f}".replace("-", "−") if exact else "0"
            axis.text(column, row, text, ha="center", va="center", fontsize=font,
                      color=INK)
    axis.set_title(title, fontsize=10, color=INK)
    axis.set_xticks(range(values.shape[1]), column_labels or [""] * values.shape[1])
    axis.set_yticks(range(len(values)), row_labels or [""] * len(values))
    axis.grid(False)
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0)


# --- how large the numbers are ----------------------------------------------------

class Init(NamedTuple):
    """One way to draw a table: std = factor * d ** power."""

    name: str
    factor: float
    power: float

    def std(self, width: float) -> float:
        return self.factor * width ** self.power


INITS = (Init("N(0, 1), what nn.Embedding draws", 1.0, 0.0),
         Init("std 0.02, APEX-1 and GPT-2", APEX_STD, 0.0),
         Init("std 1/√d, tensor2tensor", 1.0, -0.5))
NUMBERS_DRAWN = 2 ** 16


def scales_by_width(widths: Sequence[int] = WIDTHS) -> dict[str, list[tuple]]:
    """For each init ``(width, size of the table, size after the factor)``, measured.

    65,536 numbers are drawn for each width and go through ``ScaledEmbedding``.
    """
    return {init.name: [(width, *measured_sizes(width, init.std(width)))
                        for width in widths] for init in INITS}


@cache
def measured_sizes(width: int, std: float) -> tuple[float, float]:
    """RMS of a random table and of what ``ScaledEmbedding`` makes of all its rows."""
    rows = NUMBERS_DRAWN // width
    layer = ScaledEmbedding(rows, width, init_std=std, generator=seeded(0))
    scaled = layer(torch.arange(rows))  # [rows, width]
    return root_mean_square(layer.weight), root_mean_square(scaled)


def scale_by_width(widths: Sequence[int] = WIDTHS):
    """Three inits: the size of the table's numbers, and their size after × sqrt(d)."""
    figure, axes = new_figure(9.0, 4.0, columns=2, sharey=True)
    for init, color, marker, points in zip(
            INITS, PALETTE, MARKERS, scales_by_width(widths).values()):
        for axis, column, extra in ((axes[0], 1, 0.0), (axes[1], 2, 0.5)):
            line = [init.factor * width ** (init.power + extra) for width in widths]
            axis.plot(widths, line, color=color, lw=1.5)
            axis.plot(widths, [point[column] for point in points], marker, color=color,
                      label=init.name)
    for axis, title in zip(axes, ("the table, as drawn", "after × √d")):
        log_widths(axis, widths)
        written_log_axis(axis, (0.01, 0.1, 1, 10, 100))
        axis.set_title(title, fontsize=11, color=INK)
        axis.axvline(2500, color=INK, lw=0.8, ls=":")
    axes[0].set_ylabel("size of one number (RMS)")
    axes[0].legend(fontsize=9, loc="upper left", frameon=False)
    axes[0].annotate("d = 2500:\n1/√d = 0.02", (2500, 0.02), (900, 0.055), fontsize=9,
                     arrowprops={"arrowstyle": "-", "color": INK})
    axes[1].annotate("d = 2500:\n0.02 × √d = 1", (2500, 1.0), (600, 3.0), fontsize=9,
                     arrowprops={"arrowstyle": "-", "color": INK})
    return figure


def log_widths(axis, widths: Sequence[int]) -> None:
    """A logarithmic axis of vector sizes, each one written out."""
    axis.set_xscale("log", base=2)
    axis.set_xticks(list(widths), [str(width) for width in widths], rotation=35)
    axis.set_xlabel("vector size d")
    axis.minorticks_off()


def written_log_axis(axis, ticks: Sequence[float], side: str = "y") -> None:
    """A logarithmic axis whose ticks are written as plain numbers."""
    axis.set(**{f"{side}scale": "log"})
    axis.minorticks_off()
    axis.set(**{f"{side}ticks": list(ticks),
                f"{side}ticklabels": [f"{tick:g}" for tick in ticks]})


def describe_scale_by_width(widths: Sequence[int] = WIDTHS) -> str:
    """Measured sizes after the factor at the first and the last width."""
    lines = []
    for name, points in scales_by_width(widths).items():
        (first, _, small), (last, _, large) = points[0], points[-1]
        lines.append(f"{name}: after × √d {small:.3g} at d={first},"
                     f" {large:.3g} at d={last}")
    return "\n".join(lines)


# --- conventions ------------------------------------------------------------------

class Convention(NamedTuple):
    """How a model draws its one table, and what it multiplies by on the way in and out.

    Each of the three is a power of the width: ``factor * d ** power``.
    """

    name: str
    std: tuple[float, float]
    on_the_way_in: float  # power of d
    on_the_way_out: float  # power of d

    def input_size(self, width: float) -> float:
        """RMS of the vector that enters the first block."""
        factor, power = self.std
        return factor * width ** (power + self.on_the_way_in)

    def logit_size(self, width: float) -> float:
        """Std of the logits that a random hidden vector of RMS 1 gets."""
        factor, power = self.std
        return factor * width ** (power + self.on_the_way_out + 0.5)


CONVENTIONS = (
    Convention("Vaswani et al. 2017", (1.0, -0.5), 0.5, 0.0),
    Convention("T5, PaLM", (1.0, 0.0), 0.0, -0.5),
    Convention("APEX-1", (APEX_STD, 0.0), 0.5, 0.0),
    Convention("GPT-2 (no factor)", (APEX_STD, 0.0), 0.0, 0.0),
    Convention("bare nn.Embedding, × √d", (1.0, 0.0), 0.5, 0.0),
)


def conventions(widths: tuple[int, int] = (512, 7168)):
    """Each convention as a point: size at the input, size of the first logits."""
    figure, axis = new_figure(7.2, 4.4)
    axis.plot([0.01, 200], [0.01, 200], color=INK, lw=0.8, ls="--", zorder=1)
    axis.text(0.55, 0.04, "dashed: a factor √d stands between\nthe two uses of the"
              " table, so both\nsizes are the same number", fontsize=9, color=INK)
    for at, (rule, color, marker) in enumerate(zip(CONVENTIONS, PALETTE, MARKERS)):
        x = [rule.input_size(width) for width in widths]
        y = [rule.logit_size(width) for width in widths]
        size = 13 if at == 0 else 8
        axis.plot(x, y, color=color, lw=2, ls="-")
        axis.plot(x[0], y[0], marker, color=color, ms=size, mfc="none", mew=2)
        axis.plot(x[1], y[1], marker, color=color, ms=size, label=rule.name,
                  mfc="none" if at == 0 else color, mew=2)
    written_log_axis(axis, (0.01, 0.1, 1, 10, 100), "x")
    written_log_axis(axis, (0.01, 0.1, 1, 10, 100))
    axis.set_xlabel("size of the vector that enters block 1 (RMS)")
    axis.set_ylabel("size of the logits of an RMS-1 vector (std)")
    axis.legend(fontsize=9, frameon=False, loc="upper left",
                title=f"hollow: d = {widths[0]}, filled: d = {widths[1]}",
                title_fontsize=9)
    return figure


def describe_conventions(widths: tuple[int, int] = (512, 7168)) -> str:
    """Input size and logit size of each convention at two widths."""
    return "\n".join(
        f"{rule.name}: input {rule.input_size(a):.3g} to {rule.input_size(b):.3g},"
        f" logits {rule.logit_size(a):.3g} to {rule.logit_size(b):.3g}"
        for a, b in [widths] for rule in CONVENTIONS)


# --- one vector, for the explorer in the open ---------------------------------------

def token_vector(width: int = 512, scaled: bool = True, std: float = APEX_STD):
    """The first 64 numbers of one token's vector, with or without the factor."""
    vector = one_vector(width, scaled, std)
    figure, axis = new_figure(7.0, 2.6)
    axis.bar(range(64), vector[:64].tolist(), color=PALETTE[0 if scaled else 1])
    axis.set_ylim(-4, 4)
    axis.set_xlabel("first 64 numbers of the vector")
    axis.set_title(f"d = {width}, {'× √d' if scaled else 'as drawn'}: RMS"
                   f" {root_mean_square(vector):.3f}", fontsize=10, color=INK)
    return figure


def one_vector(width: int, scaled: bool, std: float = APEX_STD) -> torch.Tensor:
    """One random row of N(0, std²), times sqrt(width) if ``scaled``: [width]."""
    return random_table(1, width, std)[0] * (math.sqrt(width) if scaled else 1.0)


def describe_token_vector(width: int = 512, scaled: bool = True,
                          std: float = APEX_STD) -> str:
    """Its RMS and its length.

    >>> describe_token_vector(4, False, 0.0)
    'd = 4, as drawn: RMS 0.000, length 0.00'
    """
    vector = one_vector(width, scaled, std)
    return (f"d = {width}, {'× √d' if scaled else 'as drawn'}: RMS"
            f" {root_mean_square(vector):.3f}, length {vector.norm().item():.2f}")


# --- what the optimiser sees ------------------------------------------------------

def tied_loss(weight: torch.Tensor, ids: torch.Tensor, targets: torch.Tensor,
              on_the_way_in: float, on_the_way_out: float) -> torch.Tensor:
    """Cross entropy of the smallest tied model: look up, multiply, logits, multiply."""
    hidden = F.embedding(ids, weight) * on_the_way_in  # [seq, d]
    logits = hidden @ weight.T * on_the_way_out  # [seq, vocab]
    return F.cross_entropy(logits, targets)


def first_move(weight: torch.Tensor, on_the_way_in: float, on_the_way_out: float,
               optimiser: str, rate: float) -> torch.Tensor:
    """How the first step moves the table, on three made-up pairs of tokens.

    SGD: -rate * gradient. Adam's first step: -rate * gradient / |gradient| (its two
    averages start from this one gradient; its epsilon is left out).
    """
    table = weight.clone().requires_grad_()  # [vocab, d]
    ids, targets = torch.tensor([3, 7, 1]), torch.tensor([7, 1, 4])
    tied_loss(table, ids, targets, on_the_way_in, on_the_way_out).backward()
    step = {"SGD": table.grad, "Adam": table.grad.sign()}[optimiser]
    return -rate * step


OPTIMISERS = {"SGD": 1.0, "Adam": 0.5}  # the ratio is d to this power


def step_ratios(widths: Sequence[int] = (16, 64, 256, 1024)) -> dict[str, list[float]]:
    """How much further one step moves Vaswani's table than T5's, in the same units.

    Both start as the same function: T5's table is Vaswani's times sqrt(d). The move of
    T5's table is divided by sqrt(d) before the two are compared.
    """
    ratios = {name: [] for name in OPTIMISERS}
    for width in widths:
        table = random_table(12, width, width ** -0.5).double()  # [vocab, d]
        root = math.sqrt(width)
        for name in OPTIMISERS:
            small = first_move(table, root, 1.0, name, 1e-3)
            large = first_move(table * root, 1.0, 1 / root, name, 1e-3) / root
            ratios[name].append((small.norm() / large.norm()).item())
    return ratios


def optimiser_step(widths: Sequence[int] = (16, 64, 256, 1024)):
    """One step at the same learning rate: the ratio of the two moves, against width."""
    figure, axis = new_figure(6.4, 3.6)
    for (name, ratios), color, marker in zip(step_ratios(widths).items(), PALETTE,
                                             MARKERS):
        axis.plot(widths, [width ** OPTIMISERS[name] for width in widths], color=color,
                  lw=1.5, ls="-" if name == "SGD" else "--")
        axis.plot(widths, ratios, marker, color=color,
                  label=f"{name}: {'d' if name == 'SGD' else '√d'} times")
    log_widths(axis, widths)
    written_log_axis(axis, (4, 16, 64, 256, 1024))
    axis.set_ylabel("move of Vaswani's table\n÷ move of T5's table")
    axis.legend(fontsize=9, frameon=False)
    return figure


def describe_optimiser_step(widths: Sequence[int] = (16, 64, 256, 1024)) -> str:
    """The measured ratios, one line an optimiser."""
    return "\n".join(f"{name}: " + ", ".join(
        f"{ratio:.4g} at d={width}" for width, ratio in zip(widths, ratios))
        for name, ratios in step_ratios(widths).items())


# --- added positions --------------------------------------------------------------

def sinusoids(length: int, width: int, base: float = 10_000.0) -> torch.Tensor:
    """Vaswani's position table: sin and cos in turn, float64 [length, width].

    >>> round(root_mean_square(sinusoids(50, 64)), 6)  # sin² + cos² = 1 in each pair
    0.707107
    """
    steps = torch.arange(0, width, 2, dtype=torch.float64)  # [width/2]
    positions = torch.arange(length, dtype=torch.float64)[:, None]  # [length, 1]
    angles = positions * base ** (-steps / width)  # [length, width/2]
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def position_shares(widths: Sequence[int] = WIDTHS) -> dict[str, list[float]]:
    """Share of the squared length that is position, where sinusoids are added."""
    shares = {}
    for init in INITS[1:]:
        for words, power in ((", as drawn", 0.0), (", × √d", 0.5)):
            row = shares[init.name + words] = []
            for width in widths:
                token = (init.std(width) * width ** power) ** 2
                position = root_mean_square(sinusoids(64, width)) ** 2
                row.append(position / (position + token))
    return shares


def position_share(widths: Sequence[int] = WIDTHS):
    """How much of an added-sinusoid input is position, with and without the factor."""
    figure, axis = new_figure(6.8, 3.8)
    for at, (name, shares) in enumerate(position_shares(widths).items()):
        color = PALETTE[1 + at // 2]
        axis.plot(widths, shares, color=color, ls=("-", "--")[at % 2],
                  marker=MARKERS[at], label=name)
    log_widths(axis, widths)
    axis.set_ylim(0, 1.05)
    axis.set_ylabel("share of the input\nthat is position")
    axis.legend(fontsize=9, frameon=False, loc="lower left")
    return figure


def describe_position_share(widths: Sequence[int] = WIDTHS) -> str:
    """The shares at width 512."""
    at = list(widths).index(512)
    return "\n".join(f"{name}: {shares[at]:.1%} position at d=512"
                     for name, shares in position_shares(widths).items())


# --- the residual stream ----------------------------------------------------------

class Depth(NamedTuple):
    """What is measured after each sub-layer: lists of layers * 2 + 1 numbers."""

    stream: list[float]  # RMS of the residual stream
    output: list[float]  # RMS of what the sub-layer added; nan at the start
    kept: list[float]  # mean cosine of the stream with the token's own embedding


def random_blocks(width: int, layers: int, heads: int, hidden: int, seed: int):
    """Weights of random pre-norm blocks, N(0, 0.02²), one sub-layer after the other."""
    generator = seeded(seed)

    def draw(rows, columns):
        return torch.randn(rows, columns, generator=generator) * APEX_STD

    for _ in range(layers):
        yield attend, [draw(width, width) for _ in range(4)] + [heads]
        yield feed_forward, [draw(hidden, width), draw(hidden, width),
                             draw(width, hidden)]


def attend(x: torch.Tensor, w_q, w_k, w_v, w_o, heads: int) -> torch.Tensor:
    """Causal attention of several heads, without positions: x [seq, d] -> [seq, d]."""
    q, k, v = ((x @ w.T).unflatten(-1, (heads, -1)).transpose(0, 1)
               for w in (w_q, w_k, w_v))  # each [heads, seq, d_head]
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return mixed.transpose(0, 1).flatten(1) @ w_o.T


def feed_forward(x: torch.Tensor, w_gate, w_up, w_down) -> torch.Tensor:
    """SwiGLU: x [seq, d] -> [seq, d]."""
    return (F.silu(x @ w_gate.T) * (x @ w_up.T)) @ w_down.T


@cache
def stream_by_depth(factors: tuple[float, ...], *, width: int = 512, layers: int = 12,
                    heads: int = 8, hidden: int = 1376, tokens: int = 32,
                    seed: int = 0) -> list[Depth]:
    """Follow the same tokens through the same random blocks, once for each factor.

    A block is x + attention(norm(x)), then x + feed_forward(norm(x)). The embedding is
    N(0, 0.02²) times the factor.
    """
    start = random_table(tokens, width, APEX_STD, seed)  # [tokens, width]
    streams = [start * factor for factor in factors]
    depths = [Depth([root_mean_square(x)], [math.nan], [1.0]) for x in streams]
    for layer, weights in random_blocks(width, layers, heads, hidden, seed + 1):
        for at, depth in enumerate(depths):
            out = layer(rms_norm(streams[at]), *weights)
            streams[at] = streams[at] + out
            depth.stream.append(root_mean_square(streams[at]))
            depth.output.append(root_mean_square(out))
            depth.kept.append(F.cosine_similarity(streams[at], start).mean().item())
    return depths


def residual_by_depth(**sizes):
    """With and without the factor: how much of the stream is still the token."""
    width = sizes.get("width", 512)
    figure, axes = new_figure(9.0, 3.6, columns=2)
    names = ("embedding × √d", "embedding as drawn")
    depths = stream_by_depth((math.sqrt(width), 1.0), **sizes)
    for depth, name, color, marker in zip(depths, names, PALETTE, MARKERS):
        steps = range(len(depth.kept))
        axes[0].plot(steps, depth.kept, color=color, marker=marker, ms=4, label=name)
        axes[1].plot(steps, depth.stream, color=color, marker=marker, ms=4,
                     label=f"stream, {name}")
        axes[1].plot(steps, depth.output, "x" if color == PALETTE[0] else "+", ms=6,
                     color=color, label=f"added by one sub-layer, {name}")
    axes[0].set_ylabel("cosine with the token's own embedding")
    axes[0].set_ylim(0, 1.05)
    axes[1].set_ylabel("size (RMS)")
    written_log_axis(axes[1], (0.02, 0.05, 0.1, 0.2, 0.5))
    for axis in axes:
        axis.set_xlabel("sub-layers passed (two a block)")
        axis.legend(fontsize=8, frameon=False)
    return figure


def describe_residual_by_depth(**sizes) -> str:
    """Start, first addition and what is left at the end, with and without × √d."""
    width = sizes.get("width", 512)
    words = []
    for name, depth in zip(("embedding × √d", "as drawn"),
                           stream_by_depth((math.sqrt(width), 1.0), **sizes)):
        words.append(f"{name}: starts at {depth.stream[0]:.3f}, the first sub-layer"
                     f" adds {depth.output[1]:.3f}; cosine at the end"
                     f" {depth.kept[-1]:.2f}")
    return "\n".join(words)


# --- tying ------------------------------------------------------------------------

def tied_gradients(weight: torch.Tensor, token: int, target: int,
                   scale: float) -> dict[str, torch.Tensor]:
    """The two paths of the gradient of a tied table, and their sum: each [vocab, d].

    logits = W · (scale · W[token]), loss = cross entropy with ``target``. Each path is
    found by detaching the other use.
    """
    gradients = {}
    for name, learns_input, learns_output in (
            ("lookup path", True, False), ("head path", False, True),
            ("total", True, True)):
        table = weight.clone().requires_grad_()  # [vocab, d]
        source = table if learns_input else table.detach()
        head = table if learns_output else table.detach()
        logits = head @ (scale * source[token])  # [vocab]
        F.cross_entropy(logits[None], torch.tensor([target])).backward()
        gradients[name] = table.grad
    return gradients


def gradient_paths(weight: torch.Tensor, token: int, target: int, scale: float):
    """Three heat maps: lookup path + head path = what the optimiser gets."""
    parts = tied_gradients(weight, token, target, scale)
    limit = max(part.abs().max().item() for part in parts.values())
    figure, axes = new_figure(8.0, 2.7, columns=3)
    rows = [f"row {row}" for row in range(len(weight))]
    for axis, (name, part), sign in zip(axes, parts.items(), ("", "+ ", "= ")):
        heat_map(axis, part, sign + name, row_labels=rows, decimals=4, limit=limit)
    return figure


def describe_gradient_paths(weight: torch.Tensor, token: int, target: int,
                            scale: float) -> str:
    """The three matrices, row by row."""
    return "\n".join(f"{name}: {rounded_rows(part)}" for name, part in tied_gradients(
        weight, token, target, scale).items())


def rounded(vector: torch.Tensor, decimals: int = 2) -> list[float]:
    """A vector as rounded Python numbers, without negative zeros.

    >>> rounded(torch.tensor([0.126, -0.001]))
    [0.13, 0.0]
    """
    return [round(number, decimals) + 0.0 for number in vector.tolist()]


def rounded_rows(matrix: torch.Tensor, decimals: int = 4) -> list[list[float]]:
    """A matrix as rounded Python numbers, row by row."""
    return [rounded(row, decimals) for row in matrix]


class Savings(NamedTuple):
    """Parameters of one APEX-1 size, by what they do with the vocabulary."""

    table: int  # V·d, input and output in one
    other_heads: int  # n_predict further [V, d] matrices, not tied
    rest: int  # everything else

    @property
    def total(self) -> int:
        return self.table + self.other_heads + self.rest


def savings() -> dict[str, Savings]:
    """The counts of all APEX-1 sizes; an untied head would add ``table`` once more.

    >>> savings()["small"].table
    77641216
    """
    rows = {}
    for size in SIZES:
        counts = apex1_config(size).parameter_counts()
        table, heads = counts["embedding"], counts["multi-token head"]
        rows[size] = Savings(table, heads, counts["total"] - table - heads)
    return rows


def tying_savings():
    """Shares of each APEX-1 size: tied table, untied heads, what tying saves."""
    figure, axis = new_figure(7.6, 3.0)
    names = ("tied table", "4 untied multi-token heads", "the rest",
             "saved: a second table")
    looks = zip((PALETTE[0], PALETTE[2], "#bbbbbb", "none"), ("", "//", "", "xx"),
                ("white", "white", "white", PALETTE[1]), names)
    rows = list(reversed(savings().items()))
    left = [0.0] * len(rows)
    for part, (color, hatch, edge, name) in enumerate(looks):
        shares = [(row.table, row.other_heads, row.rest, row.table)[part] / row.total
                  for _, row in rows]
        axis.barh(range(len(rows)), shares, left=left, color=color, hatch=hatch,
                  edgecolor=edge, label=name)
        left = [before + share for before, share in zip(left, shares)]
    axis.axvline(1.0, color=INK, lw=0.8, ls=":")
    axis.set_yticks(range(len(rows)), [
        f"{size.capitalize()}, {row.total / 1e6:,.{int(row.total < 1e9)}f} M"
        for size, row in rows])
    axis.set_xlabel("share of the model's own parameters")
    axis.legend(fontsize=9, frameon=False, ncols=2, loc="lower center",
                bbox_to_anchor=(0.4, 1.0))
    return figure


def describe_tying_savings() -> str:
    """What tying saves, and what the multi-token heads hold, one line a size."""
    return "\n".join(
        f"{size}: tying saves {row.table:,} of {row.total + row.table:,}"
        f" ({row.table / (row.total + row.table):.2%}); the untied heads hold"
        f" {row.other_heads / row.table:.0f} times that" for size, row in
        savings().items())


# --- the start of training --------------------------------------------------------

def expected_start(width: float, std: float, vocab: int) -> dict[str, float]:
    """What theory expects of a tied model whose blocks still do nothing.

    table(std) -> × sqrt(d) -> RMSNorm -> tied head. The own token's logit is d·std, the
    others are N(0, d·std²). Losses (nats) are for targets that have nothing to do with
    the input: "echo" with the own token's logit, "blind" without it (an untied head).
    """
    own, spread = width * std, std * math.sqrt(width)
    crowd = math.log(vocab - 1) + spread ** 2 / 2  # log of the sum of the other exps
    echo = max(own, crowd) + math.log1p(math.exp(-abs(own - crowd)))
    return {"own": own, "spread": spread, "echo": echo,
            "blind": math.log(vocab) + spread ** 2 / 2, "uniform": math.log(vocab)}


@cache
def measured_start(width: int, std: float, vocab: int, tokens: int = 64,
                   seed: int = 0) -> dict[str, float]:
    """The same numbers from one random table and 64 of its tokens."""
    ids = torch.arange(tokens)
    targets = ids + tokens  # other tokens
    layer = ScaledEmbedding(vocab, width, init_std=std, generator=seeded(seed))
    with torch.no_grad():
        logits = layer.logits(rms_norm(layer(ids)))  # [tokens, vocab]
        stranger = rms_norm(random_table(tokens, width, 1.0, seed + 1))  # [tokens, d]
        blind = F.cross_entropy(layer.logits(stranger), targets).item()
    own = logits[ids, ids]
    others = logits[~F.one_hot(ids, vocab).bool()]
    return {"own": own.mean().item(), "spread": others.std().item(),
            "echo": F.cross_entropy(logits, targets).item(), "blind": blind,
            "uniform": math.log(vocab)}


def start_of_training(widths: Sequence[int] = WIDTHS, std: float = APEX_STD,
                      vocab: int = 1000):
    """Own-token logit and first loss against width: lines theory, markers measured."""
    figure, axes = new_figure(9.0, 3.8, columns=2)
    theory = [expected_start(width, std, vocab) for width in widths]
    measured = [measured_start(width, std, vocab) for width in widths]
    wanted = ((0, "own", "the token's own logit, d · std"),
              (0, "spread", "spread of the others, std · √d"),
              (1, "echo", "tied, blocks do nothing"),
              (1, "blind", "untied"), (1, "uniform", f"ln V, V = {vocab}"))
    for at, (panel, key, name) in enumerate(wanted):
        axes[panel].plot(widths, [row[key] for row in theory], color=PALETTE[at],
                         ls=LINE_STYLES[at], lw=1.8, label=name)
        if key != "uniform":
            axes[panel].plot(widths, [row[key] for row in measured], MARKERS[at],
                             color=PALETTE[at])
    for axis, label in zip(axes, ("logit", "loss at the start (nats)")):
        log_widths(axis, widths)
        written_log_axis(axis, (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if axis is axes[0]
                         else (7, 10, 20, 50, 100))
        axis.set_ylabel(label)
        axis.legend(fontsize=9, frameon=False)
    return figure


def describe_start_of_training(widths: Sequence[int] = WIDTHS, std: float = APEX_STD,
                               vocab: int = 1000) -> str:
    """Measured numbers at width 512 and at the last width."""
    lines = []
    for width in (512, widths[-1]):
        found = measured_start(width, std, vocab)
        lines.append(f"d={width}: own logit {found['own']:.1f}, others ±"
                     f"{found['spread']:.2f}; loss tied {found['echo']:.1f}, untied"
                     f" {found['blind']:.2f}, ln V {found['uniform']:.2f}")
    return "\n".join(lines)


# --- a trained table --------------------------------------------------------------

def row_sizes(table: torch.Tensor) -> torch.Tensor:
    """RMS of each row: [rows].

    >>> row_sizes(torch.tensor([[3.0, 3.0], [0.0, 0.0]])).tolist()
    [3.0, 0.0]
    """
    return table.float().pow(2).mean(dim=1).sqrt()


def cosines(table: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
    """Cosine of the angle between each two of the given rows: [n, n]."""
    unit = F.normalize(table[list(rows)].float(), dim=-1)  # [n, d]
    return unit @ unit.T


def word_cosines(table: torch.Tensor, rows: Sequence[int], words: Sequence[str]):
    """A heat map of the cosines between words."""
    side = 1.2 + 0.46 * len(words)
    figure, axis = new_figure(side + 0.6, side - 0.6)
    heat_map(axis, cosines(table, rows), "cosine between the rows of two words",
             row_labels=words, column_labels=words, limit=1.0, font=8)
    axis.tick_params(axis="x", rotation=45)
    return figure


def describe_word_cosines(table: torch.Tensor, rows: Sequence[int],
                          words: Sequence[str]) -> str:
    """The nearest other word of each, of those shown."""
    values = cosines(table, rows) - 2 * torch.eye(len(words))
    nearest = values.max(dim=1)
    return "nearest in this list: " + ", ".join(
        f"{word}: {words[at]} {value:.2f}" for word, at, value in zip(
            words, nearest.indices.tolist(), rounded(nearest.values)))


def trained_sizes(table: torch.Tensor, marks: dict[str, int]):
    """Row sizes of a trained table beside those of two random ones."""
    figure, axis = new_figure(7.4, 3.6)
    edges = torch.logspace(-2, 0.6, 120)
    drawn = row_sizes(random_table(*table.shape, 1.0))  # [rows]
    tables = (("trained table", row_sizes(table)), ("random, std 1", drawn),
              ("random, std 0.02", drawn * APEX_STD))
    for (name, sizes), color, style in zip(tables, PALETTE, LINE_STYLES):
        counts = torch.histogram(sizes, edges).hist
        axis.stairs(counts.tolist(), edges.tolist(), fill=True, alpha=0.35, color=color)
        axis.stairs(counts.tolist(), edges.tolist(), color=color, ls=style, lw=1.5,
                    label=name)
    written_log_axis(axis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2), "x")
    written_log_axis(axis, (1, 10, 100, 1000, 10_000))
    axis.set_xlabel("size of a row (RMS)")
    axis.set_ylabel("rows per bin")
    for word, row in marks.items():
        size = row_sizes(table[[row]]).item()
        axis.axvline(size, ymax=0.9, color=INK, lw=0.8, ls=":")
        axis.text(size, 0.91, word, ha="center", fontsize=9, color=INK,
                  transform=axis.get_xaxis_transform())
    axis.legend(fontsize=9, frameon=False, ncols=3, loc="lower left",
                bbox_to_anchor=(0, 1.0))
    return figure


def describe_trained_sizes(table: torch.Tensor, marks: dict[str, int]) -> str:
    """Median, smallest and largest row, and the marked ones."""
    sizes = row_sizes(table)
    marked = ", ".join(f"{word} {sizes[row]:.2f}" for word, row in marks.items())
    return (f"size of a row: median {sizes.median():.2f}, smallest {sizes.min():.3f},"
            f" largest {sizes.max():.2f}; {marked}")
