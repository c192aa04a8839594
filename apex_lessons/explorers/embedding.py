"""The explorer of lesson 01: what width, init, factor, norm and tying do at the start."""

from __future__ import annotations

import math

import traitlets

from apex_lessons.explorers.base import Explorer, Label, Range

NORM_EPS = 1e-6


def initial_statistics(d_model: int, vocab_size: int, *, init_std: float, factor: float,
                       norm: bool, tied: bool, logit_factor: float) -> dict[str, float]:
    r"""Sizes of stream and logits of an untrained model whose blocks add nothing.

    The table's entries are independent and N(0, init_std^2); a token's row, times
    ``factor``, is the stream; a following RMSNorm gives it RMS 1 (up to its epsilon);
    the logits are ``logit_factor * (rows of the output table) . hidden``:

        stream_std = factor * init_std
        hidden_std = stream_std / sqrt(stream_std^2 + eps)  with the norm, else stream_std
        own logit  = hidden_std * init_std * d_model * logit_factor        (tied)
        other std  = hidden_std * init_std * sqrt(d_model) * logit_factor
        loss       = ln(vocab_size) + other_std^2 / 2                      (untied)
        loss       = ln(exp(own logit) + vocab_size * exp(other_std^2 / 2))     (tied)

    The loss is that of a target which is not the token itself.

    >>> facts = initial_statistics(512, 50257, init_std=0.02, factor=512 ** 0.5,
    ...                            norm=True, tied=True, logit_factor=1.0)
    >>> round(facts["own_token_logit"], 2), round(facts["other_logit_std"], 4)
    (10.24, 0.4525)
    """
    stream = factor * init_std
    hidden = stream / math.sqrt(stream * stream + NORM_EPS) if norm else stream
    other = hidden * init_std * math.sqrt(d_model) * logit_factor
    own = hidden * init_std * d_model * logit_factor
    spread = math.log(vocab_size) + other * other / 2
    return {
        "init_std": init_std, "factor": factor, "stream_std": stream, "hidden_std": hidden,
        "own_token_logit": own if tied else 0.0, "other_logit_std": other,
        "log_vocab": math.log(vocab_size), "loss_untied": spread,
        "loss_tied": spread + _softplus(own - spread),
        "probability_own": _sigmoid(own - spread) if tied else 1 / vocab_size,
    }


def _softplus(x: float) -> float:
    return x + math.log1p(math.exp(-x)) if x > 0 else math.log1p(math.exp(x))


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


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
            "fixed": "the same at every width", "1/sqrt(d)": "1/√d"}),
        "init_std": Label("Std, same at every width"),
        "factor": Label("Factor after the look-up", choices={
            "none": "none (1)", "sqrt(d)": "√d", "custom": "a number of your own"}),
        "custom_factor": Label("Your own factor"),
        "norm": Label("RMSNorm before the logits"),
        "tied": Label("Output table tied to the input table"),
        "logit_factor": Label("Factor on the logits", choices={
            "none": "none (1)", "1/sqrt(d)": "1/√d"}),
        "vocab_size": Label("Vocabulary size V"),
    }
    presets = {
        "APEX-1 Small": {"d_model": 512, "vocab_size": 151643, "init": "fixed",
                         "init_std": 0.02, "factor": "sqrt(d)", "norm": True, "tied": True,
                         "logit_factor": "none"},
        "APEX-1 Medium": {"d_model": 2048, "vocab_size": 151643, "init": "fixed",
                          "init_std": 0.02, "factor": "sqrt(d)", "norm": True,
                          "tied": True, "logit_factor": "none"},
        "APEX-1 Large": {"d_model": 7168, "vocab_size": 151643, "init": "fixed",
                         "init_std": 0.02, "factor": "sqrt(d)", "norm": True,
                         "tied": True, "logit_factor": "none"},
        "Vaswani 2017": {"d_model": 512, "vocab_size": 37000, "init": "1/sqrt(d)",
                         "factor": "sqrt(d)", "norm": True, "tied": True,
                         "logit_factor": "none"},
        "T5 base, PaLM style": {"d_model": 768, "vocab_size": 32128, "init": "fixed",
                                "init_std": 1.0, "factor": "none", "norm": True,
                                "tied": True, "logit_factor": "1/sqrt(d)"},
        "GPT-2": {"d_model": 768, "vocab_size": 50257, "init": "fixed", "init_std": 0.02,
                  "factor": "none", "norm": True, "tied": True, "logit_factor": "none"},
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
        facts = self.facts()
        return (f"Embedding scale at width {self.d_model}: the table has std "
                f"{facts['init_std']:.4g}, the stream {facts['stream_std']:.4g}; the "
                f"token's own logit is {facts['own_token_logit']:.4g} and the others have "
                f"std {facts['other_logit_std']:.4g}.")

    def figure(self):
        from apex_lessons.figures import PALETTE, new_figure

        widths = [64 * 2 ** (k / 12) for k in range(85)]
        figure, axis = new_figure(7.0, 3.4)
        factors = {"none": lambda d: 1.0, "sqrt(d)": math.sqrt,
                   "custom": lambda d: self.custom_factor}
        scale = factors[self.factor]
        lines = {"std 0.02": lambda d: 0.02, "std 1": lambda d: 1.0,
                 "std 1/√d": lambda d: 1 / math.sqrt(d)}
        for (name, std), colour, style in zip(lines.items(), PALETTE, ("-", "--", "-.")):
            axis.loglog(widths, [scale(d) * std(d) for d in widths], style, color=colour,
                        label=name, base=10)
        axis.plot([self.d_model], [self.facts()["stream_std"]], "o", color="black",
                  label="your setting")
        axis.set(xlabel="width d", ylabel="std of the stream after scaling")
        axis.legend(frameon=False, fontsize=9)
        return figure


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson by name."""
    return {"EmbeddingScale": EmbeddingScale}
