"""The explorer of lesson 02: one vector, LayerNorm and RMSNorm, dtype and depth."""

from __future__ import annotations

import math

import torch
import traitlets

from apex_lessons import norm
from apex_lessons.explorers.base import Explorer, Label, Range

BASE = (1.2, -0.8, 0.4, 1.6, -1.4, 0.2, -0.6, -0.6)  # eight numbers with mean 0
OUTLIER = 3  # the entry that the outlier setting multiplies
GAIN = 0.84  # RMS of a fresh sublayer's output for an input of RMS 1 (page 02)
BLOCKS = 72
# significant bits, exponent of the smallest normal number, largest finite number
DTYPES = {"float32": (24, -126, 3.4028234663852886e38),
          "bfloat16": (8, -126, 3.3895313892515355e38), "float16": (11, -14, 65504.0)}


def rounded(value: float, dtype: str) -> float:
    """The number as a dtype stores it: nearest, ties to even, overflow to infinity.

    torch turns float64 into a half type through float32, which rounds twice; this
    rounds once, from float64.

    >>> rounded(65520.0, "float16"), rounded(1.01, "bfloat16")
    (inf, 1.0078125)
    """
    if value == 0 or not math.isfinite(value):
        return value
    bits, smallest, largest = DTYPES[dtype]
    power = math.frexp(value)[1] - 1
    unit = 2.0 ** (max(power, smallest) - bits + 1)
    stored = round(value / unit) * unit
    return stored if abs(stored) <= largest else math.copysign(math.inf, value)


def all_in_dtype(x: list[float], eps: float, dtype: str) -> list[float]:
    """RMSNorm with every step rounded to ``dtype``, as code without an upcast runs.

    >>> all_in_dtype([300.0, -300.0], 1e-6, "float16")
    [0.0, -0.0]
    """
    squares = [rounded(value * value, dtype) for value in x]
    mean = rounded(sum(squares) / len(x), dtype)  # torch sums halves in float32
    root = rounded(math.sqrt(rounded(mean + rounded(eps, dtype), dtype)), dtype)
    return [rounded(_quotient(value, root), dtype) for value in x]


def wide_inside(x: list[float], eps: float, dtype: str, *,
                centred: bool = False) -> list[float]:
    """RMSNorm (or LayerNorm, ``centred``) in float64, rounded to ``dtype`` once."""
    if not all(map(math.isfinite, x)):
        return [math.nan if centred or not math.isfinite(value) else 0.0 for value in x]
    middle = sum(x) / len(x) if centred else 0.0
    values = torch.tensor([value - middle for value in x], dtype=torch.float64)
    return [rounded(value, dtype) for value in norm.rms_norm(values, eps=eps).tolist()]


def _quotient(value: float, divisor: float) -> float:
    """value / divisor as floating-point units compute it, 0 included."""
    if divisor:
        return value / divisor
    return math.copysign(math.inf, value) if value else math.nan


def _finite(x: list[float]) -> list[float]:
    return [value for value in x if math.isfinite(value)]


def _statistics(x: list[float]) -> tuple[float, float, float]:
    """Mean, variance and RMS of the entries that are numbers; else zeros."""
    kept = _finite(x)
    if not kept:
        return 0.0, 0.0, 0.0
    mean = sum(kept) / len(kept)
    variance = sum((value - mean) * (value - mean) for value in kept) / len(kept)
    return mean, variance, _rms(kept)


def _rms(x: list[float]) -> float:
    """sqrt(mean(x^2)), scaled so that no square overflows."""
    size = max(map(abs, x)) or 1.0
    shares = [value / size for value in x]
    return size * math.sqrt(sum(share * share for share in shares) / len(x))


class NormExplorer(Explorer):
    """What do the two norms make of one vector, and what breaks them?"""

    title = "LayerNorm and RMSNorm of one vector"
    script = "norm.js"
    ranges = {
        "shift": Range(-10.0, 10.0, 0.05),
        "outlier": Range(1.0, 1000.0, 0.1, log=True),
        "scale": Range(1e-6, 1e6, 1e-8, log=True),
        "eps": Range(1e-12, 1e-2, 1e-14, log=True),
        "dtype": list(DTYPES),
        "inside": [False, True],
        "depth": Range(0, BLOCKS, 1),
        "placement": ["pre", "post", "none"],
    }
    labels = {
        "shift": Label("Added to every entry"),
        "outlier": Label("Outlier: the fourth entry times"),
        "scale": Label("All entries times"),
        "eps": Label("Epsilon"),
        "dtype": Label("Dtype"),
        "inside": Label("Square in float32 or wider, cast at the end"),
        "depth": Label("Blocks before the norm"),
        "placement": Label("Norms in those blocks", choices={
            "pre": "pre-norm", "post": "post-norm", "none": "none"}),
    }
    presets = {
        "Mean 0": {"shift": 0.0, "outlier": 1.0, "scale": 1.0, "depth": 0},
        "Large shift": {"shift": 8.0, "outlier": 1.0, "scale": 1.0, "depth": 0},
        "One outlier": {"shift": 0.5, "outlier": 100.0, "scale": 1.0, "depth": 0},
        "Below epsilon": {"scale": 1e-4, "eps": 1e-6, "depth": 0},
        "float16, too large": {"dtype": "float16", "inside": False, "scale": 300.0,
                               "depth": 0},
        "float16, too small": {"dtype": "float16", "inside": False, "scale": 1e-4,
                               "eps": 1e-8, "depth": 0},
        "Llama 2 7B": {"dtype": "bfloat16", "inside": True, "eps": 1e-5, "scale": 1.0,
                       "placement": "pre", "depth": 32},
        "72 blocks, no norm": {"dtype": "float16", "inside": True, "scale": 1.0,
                               "placement": "none", "depth": 72},
    }

    shift = traitlets.Float(0.5).tag(sync=True)
    outlier = traitlets.Float(1.0).tag(sync=True)
    scale = traitlets.Float(1.0).tag(sync=True)
    eps = traitlets.Float(1e-6).tag(sync=True)
    dtype = traitlets.Unicode("float32").tag(sync=True)
    inside = traitlets.Bool(True).tag(sync=True)
    depth = traitlets.Int(0).tag(sync=True)
    placement = traitlets.Unicode("pre").tag(sync=True)

    def vectors(self) -> dict[str, list[float]]:
        """The vector as exact numbers and as stored, and what each norm makes of it."""
        exact = self._grown()
        stored = [rounded(value, self.dtype) for value in exact]
        output = (wide_inside(stored, self.eps, self.dtype) if self.inside
                  else all_in_dtype(stored, self.eps, self.dtype))
        right = norm.rms_norm(torch.tensor(exact, dtype=torch.float64), eps=self.eps)
        return {"stored": stored, "output": output, "right": right.tolist(),
                "layer": wide_inside(stored, self.eps, self.dtype, centred=True)}

    def _start(self) -> list[float]:
        entries = [value * self.outlier if i == OUTLIER else value
                   for i, value in enumerate(BASE)]
        return [self.scale * (value + self.shift) for value in entries]

    def _grown(self) -> list[float]:
        """The vector after ``depth`` blocks: the same direction, another size."""
        start = self._start()
        size = _rms(start)
        if size == 0:
            return start
        grown = self._stream(size, self.placement, self.depth)
        return [value * (grown / size) for value in start]

    @staticmethod
    def _stream(size: float, placement: str, blocks: int) -> float:
        from apex_lessons.figures.norm import stream_rms

        return stream_rms(2 * blocks, GAIN, placement, start=size)

    def compute(self) -> dict[str, float]:
        vectors, start = self.vectors(), _rms(self._start())
        stored, output = vectors["stored"], vectors["output"]
        squares = [rounded(value * value, self.dtype) for value in stored]
        facts = {"largest": max(map(abs, stored)), "bend": math.sqrt(self.eps),
                 "right_rms": _rms(vectors["right"]),
                 "infinite": len(stored) - len(_finite(stored)),
                 "squares_infinite": sum(map(math.isinf, squares)),
                 "squares_zero": sum(value != 0 and square == 0
                                     for value, square in zip(stored, squares)),
                 "lost": len(output) - len(_finite(output)),
                 "lost_layer": len(stored) - len(_finite(vectors["layer"]))}
        named = {"": stored, "output_": output, "layer_": vectors["layer"]}
        for name, x in named.items():
            for fact, value in zip(("mean", "variance", "rms"), _statistics(x)):
                facts[name + fact] = value
        for placement in ("none", "post", "pre"):
            facts[f"stream_{placement}"] = self._stream(start, placement, self.depth)
        return facts

    def alt(self) -> str:
        facts = self.facts()
        return (f"Eight numbers before and after two norms. Before: mean"
                f" {facts['mean']:.4g}, RMS {facts['rms']:.4g}. After RMSNorm: mean"
                f" {facts['output_mean']:.4g}, RMS {facts['output_rms']:.4g}; after"
                f" LayerNorm: mean {_quiet(facts['layer_mean']):.4g}, RMS"
                f" {facts['layer_rms']:.4g}. Beside it, the size of the residual stream"
                " over 72 blocks without norms, with post-norm and with pre-norm.")

    def figure(self):
        from apex_lessons.figures import INK, PALETTE, new_figure

        vectors, places = self.vectors(), range(len(BASE))
        figure, (left, middle, right) = new_figure(9.6, 3.6, columns=3)
        _stems(left, vectors["stored"], 0.0, "o", INK, "as stored")
        _stems(middle, vectors["layer"], -0.14, "s", PALETTE[1], "LayerNorm")
        _stems(middle, vectors["output"], 0.14, "o", PALETTE[0], "RMSNorm")
        for axis, title in ((left, "the vector"), (middle, "after the norms")):
            axis.axhline(0, color=INK, lw=0.8)
            axis.set_xlabel("entry")
            axis.set_xticks(places, [str(place + 1) for place in places])
            axis.set_title(title, fontsize=10, color=INK, loc="left")
        middle.legend(frameon=False, fontsize=8)
        self._draw_streams(right)
        return figure

    def _draw_streams(self, axis) -> None:
        from apex_lessons.figures import INK, PALETTE
        from apex_lessons.figures.norm import LABEL, LINE

        start, blocks = _rms(self._start()), range(BLOCKS + 1)
        for placement, colour in (("none", PALETTE[1]), ("post", PALETTE[4]),
                                  ("pre", PALETTE[0])):
            axis.plot(blocks, [self._stream(start, placement, b) for b in blocks],
                      color=colour, ls=LINE[placement], lw=2, label=LABEL[placement])
        axis.plot(self.depth, self._stream(start, self.placement, self.depth), "o",
                  color=INK, ms=7)
        axis.set(yscale="log", xlabel="block")
        axis.minorticks_off()
        axis.set_title("RMS of the stream", fontsize=10, color=INK, loc="left")
        axis.legend(frameon=False, fontsize=8)


def _stems(axis, values: list[float], move: float, marker: str, colour: str,
           name: str) -> None:
    """Dots on stems, for the entries that are numbers."""
    kept = [(place + move, value) for place, value in enumerate(values)
            if math.isfinite(value)]
    at, heights = zip(*kept) if kept else ((), ())
    axis.vlines(at, 0, heights, color=colour, lw=2)
    axis.plot(at, heights, marker, color=colour, ms=5, label=name)


def _quiet(value: float) -> float:
    """Rounding noise of a mean, as 0."""
    return 0.0 if abs(value) < 1e-2 else value


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson by name."""
    return {"NormExplorer": NormExplorer}
