"""The explorer of lesson 01: width, init, factor, norm and tying at the start."""

from __future__ import annotations

import math

import torch
import traitlets

from apex_lessons.explorers.base import Explorer, Label, Range

NORM_EPS = 1e-6
EULER_GAMMA = 0.5772156649015329
GRID = 0.3
WIDTHS = [64, 128, 256, 512, 1024, 2048, 4096, 8192]


def initial_statistics(d_model: int, vocab_size: int, *, init_std: float, factor: float,
                       norm: bool, tied: bool, logit_factor: float) -> dict[str, float]:
    r"""Sizes of stream and logits of an untrained model whose blocks add nothing.

    The table's entries are independent and N(0, init_std^2); a token's row, times
    ``factor``, is the stream; a following RMSNorm gives it RMS 1 (up to its epsilon);
    the logits are ``logit_factor * (rows of the output table) . hidden``:

        stream_std = factor * init_std
        hidden_std = stream_std / sqrt(stream_std^2 + eps)     (norm; else stream_std)
        own logit  = hidden_std * init_std * d_model * logit_factor        (tied)
        other std  = hidden_std * init_std * sqrt(d_model) * logit_factor

    The losses, in nats, are those of a target that is not the token itself; see
    `expected_log_sum`. Where the others' std is small they are ln(V) + other std^2 / 2
    (untied) and ln(e^own + V e^(other std^2 / 2)) (tied).

    >>> facts = initial_statistics(512, 50257, init_std=0.02, factor=512 ** 0.5,
    ...                            norm=True, tied=True, logit_factor=1.0)
    >>> [round(facts[name], 4) for name in ("own_token_logit", "other_logit_std",
    ...                                     "probability_own")]
    [10.24, 0.4525, 0.3346]
    """
    stream = factor * init_std
    hidden = stream / math.sqrt(stream * stream + NORM_EPS) if norm else stream
    other = hidden * init_std * math.sqrt(d_model) * logit_factor
    echo, share = expected_log_sum(other, vocab_size - 1, other * math.sqrt(d_model))
    blind, _ = expected_log_sum(other, vocab_size)
    return {
        "init_std": init_std, "factor": factor,
        "stream_std": stream, "hidden_std": hidden,
        "own_token_logit": hidden * init_std * d_model * logit_factor if tied else 0.0,
        "other_logit_std": other, "log_vocab": math.log(vocab_size),
        "loss": echo if tied else blind, "loss_tied": echo, "loss_untied": blind,
        "probability_own": share if tied else 1 / vocab_size,
        "table_parameters": d_model * vocab_size * (1 if tied else 2),
    }


def expected_log_sum(spread: float, count: int,
                     own: float = -math.inf) -> tuple[float, float]:
    r"""E[ln(e^own + sum_j e^(spread g_j))] for normal g_j, and e^own's mean share.

    A trick turns the sum into a product: for a Gumbel number G of its own,

        P(ln Z + G < t) = E[exp(-Z e^-t)] = exp(-e^(own - t)) (1 - exceeds(t))^count

    so E[ln Z] is the mean of that distribution less Euler's constant, and the mean
    share is the integral of e^(own - t) times it. Both are trapezoid sums. Exact for
    every spread; ln(count) + spread^2 / 2 overshoots once spread^2 nears 2 ln(count).

    >>> mean, _ = expected_log_sum(0.1, 1000)
    >>> round(mean, 6), round(math.log(1000) + 0.1 ** 2 / 2, 6)
    (6.91275, 6.912755)
    """
    alone = own == -math.inf
    width = math.sqrt(2 * math.log(count))
    step = GRID * (max(1.0, spread / width) if alone else 1.0)
    start = max(own, math.log(count) + min(spread * spread / 2, spread * width))
    weights_down, rates_down = _march(1, -step, start, spread, count, own)
    weights_up, rates_up = _march(0, step, start, spread, count, own)
    # E[T] = start + integral of (1 - P) above it - integral of P below it
    above = -torch.expm1(-rates_up).sum().item()
    below = torch.exp(-rates_down).sum().item()
    mean = start + step * (above - below - 0.5) - EULER_GAMMA
    share = (weights_down @ torch.exp(-rates_down) + weights_up @ torch.exp(-rates_up))
    return mean, min(1.0, step * share.item())


def _march(first: int, step: float, start: float, spread: float, count: int,
           own: float) -> tuple[torch.Tensor, torch.Tensor]:
    """e^(own - t) and -ln P(ln Z + G < t), step by step until nothing is left."""
    # counted from the start, since a large t would swallow the digits of own - t
    u = step * (torch.arange(400, dtype=torch.float64) + first)  # [400]
    weights = torch.exp(own - start - u)
    rates = weights - count * torch.log1p(-_exceeds(start + u, spread))
    done = rates > 45 if step < 0 else rates < 1e-17
    end = int(done.double().argmax()) + 1 if done.any() else len(u)
    return weights[:end], rates[:end]


def _exceeds(t: torch.Tensor, spread: float) -> torch.Tensor:
    """P(spread g + Gumbel number > t): a trapezoid sum over the smoother of the two."""
    if spread <= 1:
        g = -8.5 + 0.35 * torch.arange(53, dtype=torch.float64)
        weights = 0.35 * torch.exp(-g * g / 2) / math.sqrt(2 * math.pi)
        share = -torch.expm1(-torch.exp(spread * g - t[:, None])) @ weights
    else:
        x = -40 + GRID * torch.arange(148, dtype=torch.float64)
        weights = GRID * torch.exp(x - torch.exp(x)) / 2
        share = torch.erfc((t[:, None] + x) / (spread * math.sqrt(2))) @ weights
    return share.clamp(max=1.0)


def _convention(d_model: int, vocab_size: int, *, init: str = "fixed",
                init_std: float = 0.02, factor: str = "sqrt(d)",
                logit_factor: str = "none") -> dict:
    """A preset. Each of these models ties its tables and ends with a norm. The std of
    Gemma's own training is not published: 0.02 is what transformers draws."""
    start = {"init": init} if init == "1/sqrt(d)" else {"init": init,
                                                        "init_std": init_std}
    return {"d_model": d_model, "vocab_size": vocab_size, **start, "factor": factor,
            "norm": True, "tied": True, "logit_factor": logit_factor}


class EmbeddingScale(Explorer):
    """How large is a token's vector, and what do the first logits look like?"""

    title = "Embedding scale: from the table to the first logits"
    script = "embedding.js"
    ranges = {
        "d_model": Range(64, 8192, 2, log=True),
        "init": ["fixed", "1/sqrt(d)"],
        "init_std": Range(0.0001, 2.0, 0.0001, log=True),
        "factor": ["none", "sqrt(d)", "custom"],
        "custom_factor": Range(0.1, 100.0, 0.1, log=True),
        "norm": [False, True],
        "tied": [False, True],
        "logit_factor": ["none", "1/sqrt(d)"],
        "vocab_size": Range(256, 262144, 1, log=True),
    }
    labels = {
        "d_model": Label("Width d"),
        "init": Label("Initial std of the table", choices={
            "fixed": "one number for every width", "1/sqrt(d)": "1/√d"}),
        "init_std": Label("That number"),
        "factor": Label("Factor after the look-up", choices={
            "none": "none (1)", "sqrt(d)": "√d", "custom": "a number of your own"}),
        "custom_factor": Label("Your own factor"),
        "norm": Label("Norm before the logits"),
        "tied": Label("Tied: the output table is the input table"),
        "logit_factor": Label("Factor on the logits", choices={
            "none": "none (1)", "1/sqrt(d)": "1/√d"}),
        "vocab_size": Label("Vocabulary size V"),
    }
    presets = {
        "APEX-1 Small": _convention(512, 151643),
        "APEX-1 Medium": _convention(2048, 151643),
        "APEX-1 Large": _convention(7168, 151643),
        "Vaswani 2017": _convention(512, 37000, init="1/sqrt(d)"),
        "T5 base": _convention(768, 32128, init_std=1.0, factor="none",
                               logit_factor="1/sqrt(d)"),
        "Gemma 2 2B": _convention(2304, 256000),
        "GPT-2": _convention(768, 50257, factor="none"),
    }

    d_model = traitlets.Int(512).tag(sync=True)
    init = traitlets.Unicode("fixed").tag(sync=True)
    init_std = traitlets.Float(0.02).tag(sync=True)
    factor = traitlets.Unicode("sqrt(d)").tag(sync=True)
    custom_factor = traitlets.Float(10.0).tag(sync=True)
    norm = traitlets.Bool(True).tag(sync=True)
    tied = traitlets.Bool(True).tag(sync=True)
    logit_factor = traitlets.Unicode("none").tag(sync=True)
    vocab_size = traitlets.Int(151643).tag(sync=True)

    def compute(self) -> dict[str, float]:
        root = math.sqrt(self.d_model)
        factors = {"none": 1.0, "sqrt(d)": root, "custom": self.custom_factor}
        return initial_statistics(
            self.d_model, self.vocab_size,
            init_std=1 / root if self.init == "1/sqrt(d)" else self.init_std,
            factor=factors[self.factor], norm=self.norm, tied=self.tied,
            logit_factor=1 / root if self.logit_factor == "1/sqrt(d)" else 1.0)

    def alt(self) -> str:
        facts = {name: f"{value:.4g}" for name, value in self.facts().items()}
        logit = f"the token's own logit is {facts['own_token_logit']}, "
        own = logit if self.tied else ""
        return (f"Embedding scale by width, on log axes. At width {self.d_model:,} the "
                f"table has std {facts['init_std']} and the stream "
                f"{facts['stream_std']}; {own}the other logits have std "
                f"{facts['other_logit_std']}; the first loss is about {facts['loss']} "
                f"nats, ln V is {facts['log_vocab']}.")

    def figure(self):
        from apex_lessons.figures import INK, new_figure

        figure, axes = new_figure(9.0, 3.7, columns=2)
        self._draw_stream(axes[0])
        self._draw_logits(axes[1])
        for axis in axes:
            axis.set(xscale="log", yscale="log", xlabel="width d")
            axis.set_xticks(WIDTHS[::2], [f"{width:,}" for width in WIDTHS[::2]])
            axis.minorticks_off()
            axis.title.set(fontsize=10, color=INK)
            axis.legend(frameon=False, fontsize=8)
        return figure

    def _draw_stream(self, axis) -> None:
        from apex_lessons.figures import INK, LINE_STYLES, PALETTE

        inits = {"std 0.02": {"init": "fixed", "init_std": 0.02},
                 "std 1": {"init": "fixed", "init_std": 1.0},
                 "std 1/√d": {"init": "1/sqrt(d)"}}
        for (name, start), colour, style in zip(inits.items(), PALETTE, LINE_STYLES):
            axis.plot(*self._by_width("stream_std", **start), color=colour, ls=style,
                      lw=1.8, label=name)
        if self.norm:
            axis.plot(*self._by_width("hidden_std"), color=INK, ls=LINE_STYLES[5],
                      lw=1.2,
                      label="after the norm")
        axis.plot(self.d_model, self.facts()["stream_std"], "o", color=INK, ms=8,
                  label="set here")
        axis.set_title("std of the stream, after the factor")

    def _draw_logits(self, axis) -> None:
        from apex_lessons.figures import INK, LINE_STYLES, PALETTE

        now = self.facts()
        if self.tied:
            axis.plot(*self._by_width("own_token_logit"), color=PALETTE[1], lw=1.8,
                      label="the token's own logit")
            axis.plot(self.d_model, now["own_token_logit"], "o", color=INK, ms=8)
        axis.plot(*self._by_width("other_logit_std"), color=PALETTE[0], lw=1.8,
                  ls=LINE_STYLES[1], label="std of the other logits")
        axis.plot(self.d_model, now["other_logit_std"], "s", color=INK, ms=7)
        axis.axhline(now["log_vocab"], color=INK, ls=LINE_STYLES[3], lw=1.2,
                     label="ln V")
        axis.set_title("first logits")

    def _by_width(self, fact: str, **settings) -> tuple[list[int], list[float]]:
        """One fact at every width, all else as set or as given."""
        other = type(self)()
        other.set(**{**self.settings(), **settings})
        values = []
        for width in WIDTHS:
            other.d_model = width
            values.append(other.compute()[fact])
        return WIDTHS, values


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson by name."""
    return {"EmbeddingScale": EmbeddingScale}
