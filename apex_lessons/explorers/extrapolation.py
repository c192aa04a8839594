"""The explorers of lesson 05: every stored measurement, and one text read live."""

from __future__ import annotations

import json
import math
import time
from functools import cache
from typing import Any

import torch
import traitlets

from apex_lessons.explorers.base import Explorer, Label, Range
from apex_lessons.extrapolation import methods, results
from apex_lessons.extrapolation.checkpoints import load_checkpoint
from apex_lessons.extrapolation.decoder import Decoder
from apex_lessons.extrapolation.measuring import BIN, DISTANCES, read_by
from apex_lessons.extrapolation.text import recall

VIEWS = {
    "position": "loss by position in the text",
    "distance": "right answers by distance",
    "length": "loss by length of the text",
    "entropy": "attention entropy by length",
    "factor": "loss of short text by static factor",
}
TEXTS = {"recall": "recall text: facts to look up", "natural": "Python's own library"}
SCALINGS = {
    "matched": "zero-shot, factor by length",
    "static 4": "zero-shot, factor 4, short text",
    "static 8": "zero-shot, factor 8, short text",
    "tuned": "after a short fine-tuning",
}
METHODS = {name: title for name, (title, _) in methods.METHODS.items()}
SHORT_NAMES = {
    "none": "no scaling",
    "position_interpolation": "interpolation",
    "ntk_aware": "NTK-aware",
    "dynamic_ntk": "dynamic NTK",
    "ntk_by_parts": "by parts, pair",
    "ntk_by_parts_rotations": "by parts, rotations",
    "yarn": "YaRN, pair",
    "yarn_rotations": "YaRN, rotations",
    "llama3": "Llama 3",
    "apex1": "printed rule",
    "apex1_scores": "printed, with factor",
}
PAPERS = ("none", "position_interpolation", "ntk_aware", "yarn")
SHORT, LONG = results.LENGTHS[0], results.LENGTHS[-1]  # SHORT is the trained length
PLAIN = ("none", "dynamic_ntk")  # on short text these two are plain RoPE
NEAR = 1.25  # zoomed in: up to so many times the least value
WHOLE, PART = 10_000, 1_000  # a nat in the table: of whole texts, of position bins
UNITS = {"position": "nats a byte", "distance": "of the answers right",
         "length": "nats a byte", "entropy": "nats", "factor": "nats a byte"}


# --- the stored measurements, small enough to travel with a page ----------------------

@cache
def table() -> dict[str, Any]:
    """All stored measurements as whole numbers.

    ``rows``: {"text/scaling/length/method": one list a seed}, each [loss, entropy, loss
    of each position bin, right answers of each distance bin]; loss and entropy in
    1/10,000 nat, bins in 1/1,000 nat. ``answers``: {length: answers in each distance
    bin}. Raises ValueError where seeds differ between rows or texts between methods.
    """
    seeds = sorted({result.seed for result in results.stored()})
    rows: dict[str, list] = {}
    answers: dict[str, list[int]] = {}
    for result in sorted(results.stored(), key=lambda result: result.seed):
        place, got = _place(result), rows.setdefault(_place(result), [])
        counted = [count for _, count in result.by_distance]
        if result.text == "recall":
            known = answers.setdefault(str(result.length), counted)
            if known != counted:
                raise ValueError(f"{place} was measured on other texts than the rest")
        if len(got) == len(seeds) or result.seed != seeds[len(got)]:
            raise ValueError(f"{place} needs each of the seeds {seeds} once")
        got.append(_packed(result))
    return {"seeds": seeds, "bin": BIN, "distances": DISTANCES, "answers": answers,
            "lengths": results.LENGTHS, "rows": rows}


def _place(result: results.Result) -> str:
    static = "matched" if result.factor is None else f"static {result.factor:g}"
    scaling = "tuned" if result.tuned else static
    return f"{result.text}/{scaling}/{result.length}/{result.method}"


def _packed(result: results.Result) -> list:
    recalled = result.by_distance if result.text == "recall" else ()
    right = [right for right, _ in recalled]
    positions = [round(PART * loss) for loss in result.by_position]
    return [round(WHOLE * result.loss), round(WHOLE * result.entropy), positions, right]


def row(method: str, text: str, scaling: str, length: int) -> list | None:
    """One method's numbers, a list a seed; None where nothing was measured.

    On text of the trained length all methods are plain RoPE unless a factor was set
    beforehand, and plain RoPE and dynamic NTK have no factor to set.
    """
    if scaling == "matched" and length == SHORT:
        method = "none"
    if scaling.startswith("static") and method in PLAIN:
        method, scaling = "none", "matched"
    return table()["rows"].get(f"{text}/{scaling}/{length}/{method}")


SEEDS = tuple(table()["seeds"])
COUNTED = {1: "one seed", 2: "two seeds", 3: "three seeds", 4: "four seeds"}
ALL_SEEDS = COUNTED.get(len(SEEDS), f"{len(SEEDS)} seeds")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _preset(names: tuple[str, ...], **settings) -> dict[str, Any]:
    plain = {"view": "position", "text": "recall", "scaling": "matched", "length": 2048,
             "seed": "mean", "zoom": False}
    return {**plain, **settings, **{name: name in names for name in METHODS}}


class ExtrapolationExplorer(Explorer):
    """What each method does to a trained model beyond its length, as measured."""

    title = "Past the trained length: what was measured"
    script = "extrapolation.js"
    ranges = {
        "view": list(VIEWS),
        "text": list(TEXTS),
        "scaling": list(SCALINGS),
        "length": list(results.LENGTHS),
        "seed": ["mean", *map(str, SEEDS)],
        "at": Range(1, LONG, 1, log=True),
        "zoom": [False, True],
        **{name: [False, True] for name in METHODS},
    }
    labels = {
        "view": Label("What is drawn", choices=VIEWS),
        "text": Label("Text", choices=TEXTS),
        "scaling": Label("How the models were read", choices=SCALINGS),
        "length": Label("Length of the text", unit="bytes", choices={
            n: f"{n:,} bytes, {n // SHORT}×" for n in results.LENGTHS}),
        "seed": Label("Seed", choices={
            "mean": f"mean and range, {ALL_SEEDS}",
            **{str(seed): f"seed {seed} alone" for seed in SEEDS}}),
        "at": Label("Position, or distance, to read at", unit="bytes"),
        "zoom": Label("Zoom in on the methods near the best",
                      hint="values up to 1.25 times the least"),
        **{name: Label(_capital(title)) for name, title in METHODS.items()},
    }
    presets = {
        "The papers' four": _preset(PAPERS),
        "By distance": _preset(PAPERS, view="distance", length=LONG),
        "Ramps": _preset(("ntk_by_parts", "ntk_by_parts_rotations", "yarn",
                          "yarn_rotations", "llama3"), view="length"),
        "The printed rule": _preset(("none", "yarn", "apex1", "apex1_scores"),
                                    length=LONG),
        "Temperature": _preset(("ntk_by_parts", "yarn", "apex1", "apex1_scores"),
                               view="entropy", length=LONG),
        "Cost on short text": _preset((*PAPERS, "llama3", "apex1"), view="factor"),
        "After fine-tuning": _preset(PAPERS, scaling="tuned"),
        "Python's library": _preset(PAPERS, text="natural"),
    }

    view = traitlets.Unicode("position").tag(sync=True)
    text = traitlets.Unicode("recall").tag(sync=True)
    scaling = traitlets.Unicode("matched").tag(sync=True)
    length = traitlets.Int(2048).tag(sync=True)
    seed = traitlets.Unicode("mean").tag(sync=True)
    at = traitlets.Int(1024).tag(sync=True)
    zoom = traitlets.Bool(False).tag(sync=True)
    none = traitlets.Bool(True).tag(sync=True)
    position_interpolation = traitlets.Bool(True).tag(sync=True)
    ntk_aware = traitlets.Bool(True).tag(sync=True)
    dynamic_ntk = traitlets.Bool(False).tag(sync=True)
    ntk_by_parts = traitlets.Bool(False).tag(sync=True)
    ntk_by_parts_rotations = traitlets.Bool(False).tag(sync=True)
    yarn = traitlets.Bool(True).tag(sync=True)
    yarn_rotations = traitlets.Bool(False).tag(sync=True)
    llama3 = traitlets.Bool(False).tag(sync=True)
    apex1 = traitlets.Bool(False).tag(sync=True)
    apex1_scores = traitlets.Bool(False).tag(sync=True)

    # --- what is asked for, where some settings leave no choice

    def asked(self) -> dict[str, Any]:
        """Text, scaling and length as they are read: see `row`."""
        by_factor = self.view == "factor"
        scaling = "static 8" if by_factor else self.scaling
        return {"text": "recall" if self.view == "distance" else self.text,
                "scaling": scaling,
                "length": SHORT if scaling.startswith("static") else self.length}

    def chosen(self) -> list[str]:
        """The methods that are ticked."""
        return [name for name in METHODS if getattr(self, name)]

    def drawn(self) -> list[str]:
        """The ticked methods that were measured at these settings."""
        asked = self.asked()
        return [name for name in self.chosen() if row(name, **asked)]

    def problem(self) -> str | None:
        if not self.chosen():
            return "No method is chosen: tick one or more."
        if not self.drawn():
            how, length = SCALINGS[self.scaling], self.asked()["length"]
            return (f"Read {how}, these methods were not measured at {length:,} bytes: "
                    "choose another length or other methods.")
        return None

    # --- numbers

    def steps(self, seeds: list) -> list[int]:
        """Each seed's whole number: right answers, or steps of 1/10,000 nat."""
        if self.view == "distance":
            return [sum(right) for *_, right in self._kept(seeds)]
        at = 1 if self.view == "entropy" else 0
        return [one[at] for one in self._kept(seeds)]

    def whole(self, seeds: list) -> list[float]:
        """Each seed's value for the texts as a whole, in the view's own quantity."""
        answers = table()["answers"][str(self.asked()["length"])]
        per = sum(answers) if self.view == "distance" else WHOLE
        return [value / per for value in self.steps(seeds)]

    def _kept(self, seeds: list) -> list:
        return seeds if self.seed == "mean" else [seeds[SEEDS.index(int(self.seed))]]

    def curve(self, method: str) -> list[tuple[float, list[float]]]:
        """(x, each seed's value) of every point of one method's line."""
        asked = self.asked()
        seeds = self._kept(row(method, **asked))
        if self.view == "position":
            columns = zip(*(one[2] for one in seeds), strict=True)
            return [(BIN * (k + 0.5), [loss / PART for loss in column])
                    for k, column in enumerate(columns)]
        if self.view == "distance":
            counts = table()["answers"][str(asked["length"])]
            return [(math.sqrt(DISTANCES[k] * DISTANCES[k + 1]),
                     [one[3][k] / count for one in seeds])
                    for k, count in enumerate(counts) if count]
        if self.view == "factor":
            places = {1: "matched", 4: "static 4", 8: "static 8"}
            found = {x: row(method, asked["text"], s, SHORT) for x, s in places.items()}
        else:
            found = {n: row(method, asked["text"], asked["scaling"], n)
                     for n in results.LENGTHS}
        return [(x, self.whole(got)) for x, got in found.items() if got]

    def bin_at(self) -> tuple[int, int, int]:
        """The bin that ``at`` falls into: which point, its first and its last byte."""
        length = self.asked()["length"]
        place = min(self.at, length - 1)
        if self.view == "position":
            number = place // BIN
            return number, number * BIN, number * BIN + BIN - 1
        counts = table()["answers"][str(length)]
        bins = [k for k, count in enumerate(counts) if count and DISTANCES[k] <= place]
        return len(bins) - 1, DISTANCES[bins[-1]], DISTANCES[bins[-1] + 1] - 1

    def compute(self) -> dict[str, float]:
        """Mean, least and most over the seeds, for each method that is drawn.

        ``<method>_there``: the mean in the bin from ``from`` to ``to``. ``ahead``: with
        how many seeds the best method is ahead of the second. ``plain``: the same
        quantity at the trained length without scaling.
        """
        asked, drawn = self.asked(), self.drawn()
        facts = {"trained_length": SHORT, "length": asked["length"],
                 "seeds": len(SEEDS) if self.seed == "mean" else 1,
                 "drawn": len(drawn), "missing": len(self.chosen()) - len(drawn)}
        if self.view in ("position", "distance"):
            number, facts["from"], facts["to"] = self.bin_at()
        for method in drawn:
            values = self.whole(row(method, **asked))
            facts |= {method: _mean(values), f"{method}_least": min(values),
                      f"{method}_most": max(values)}
            if self.view in ("position", "distance"):
                _, there = self.curve(method)[number]
                facts[f"{method}_there"] = _mean(there)
        if len(drawn) > 1:
            facts["ahead"] = self._ahead()
        if self.view != "distance":
            plain = self.whole(row("none", asked["text"], "matched", SHORT))
            facts["plain"] = _mean(plain)
        return facts

    def _ahead(self) -> int:
        """With how many seeds the best of the methods is ahead of the second."""
        sign = -1 if self.view == "distance" else 1
        found = [self.steps(row(name, **self.asked())) for name in self.drawn()]
        first, second, *_ = sorted(found, key=lambda values: sign * sum(values))
        return sum(sign * (a - b) < 0 for a, b in zip(first, second, strict=True))

    # --- the picture without a page

    def alt(self) -> str:
        facts, asked, unit = self.facts(), self.asked(), UNITS[self.view]
        told = [f"{METHODS[m]} {facts[m]:.3f}" for m in self.drawn()]
        seeds = (f"mean of {ALL_SEEDS}" if self.seed == "mean"
                 else f"seed {self.seed} alone")
        how = f"{asked['text']} text, {SCALINGS[asked['scaling']]}, {seeds}"
        return (f"{_capital(VIEWS[self.view])}, {how}. "
                f"Over all of {asked['length']:,} bytes, {unit}: {', '.join(told)}.")

    def figure(self):
        from apex_lessons.figures import new_figure

        figure, axis = new_figure(8.0, 3.9)
        for method in self.drawn():
            self._draw(axis, method)
        axis.set_ylim(*self.heights())
        ticks = {"length": results.LENGTHS, "entropy": results.LENGTHS,
                 "distance": EIGHTS, "factor": (1, 4, 8)}.get(self.view)
        if ticks:
            axis.set_xscale("log", base=2)
            axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
            axis.minorticks_off()
        axis.set(xlabel=X_LABELS[self.view], ylabel=Y_LABELS[self.view])
        if self.view in ("position", "distance"):
            axis.axvline(SHORT, color="black", lw=1, ls="--", label="trained length")
        figure.legend(loc="outside upper left", ncols=3, frameon=False, fontsize=8.5)
        return figure

    def heights(self) -> tuple[float, float]:
        """How far the vertical axis reaches; zoomed in, not to what lies far off."""
        if self.view == "distance":
            return 0.0, 1.03
        facts, names = self.facts(), self.drawn()
        limit = NEAR * min(facts[name] for name in names) if self.zoom else math.inf
        values = [value for name in names if facts[name] <= limit
                  for _, values in self.curve(name) for value in values]
        air = max(0.07 * (max(values) - min(values)), 0.01)
        return max(0.0, min(values) - air), max(values) + air

    def _draw(self, axis, method: str) -> None:
        from apex_lessons.figures.extrapolation import LOOKS

        colour, style, marker = LOOKS[method]
        x, values = zip(*self.curve(method), strict=True)
        axis.plot(x, list(map(_mean, values)), color=colour, ls=style, marker=marker,
                  ms=4.5, markevery=max(1, len(x) // 8), lw=1.8, label=METHODS[method])
        axis.fill_between(x, list(map(min, values)), list(map(max, values)),
                          color=colour, alpha=0.13, lw=0)


EIGHTS = (1, 8, 64, 512, 4096)
X_LABELS = {"position": "position in the text, bytes",
            "distance": "bytes back to the answer's fact",
            "length": "length of the text, bytes",
            "entropy": "length of the text, bytes",
            "factor": "factor set beforehand, text of the trained length"}
Y_LABELS = {"position": "loss, nats a byte", "distance": "share of answers right",
            "length": "loss, nats a byte", "entropy": "attention entropy, nats",
            "factor": "loss, nats a byte"}


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


# --- one text, read now ---------------------------------------------------------------

LIVE_RANGES = ("method", "length", "follow", "factor", "seed", "draw")


class LiveExtrapolation(Explorer):
    """A recall text read by a shipped model, as soon as a setting is changed.

    A kernel reads and sets ``_result``; without one the page shows what was read last.
    """

    title = "Past the trained length: a text read now"
    script = "extrapolation.js"
    ranges = {
        "method": list(METHODS),
        "length": Range(SHORT, LONG, BIN),
        "follow": [False, True],
        "factor": Range(1.0, 16.0, 0.1, log=True),
        "seed": list(SEEDS),
        "draw": Range(1, 100, 1),
    }
    labels = {
        "method": Label("Method", choices=METHODS),
        "length": Label("Length of the text", unit="bytes",
                        hint=f"the model was trained with {SHORT} bytes"),
        "follow": Label(f"The factor follows the length: length / {SHORT}"),
        "factor": Label("Factor s, set beforehand"),
        "seed": Label("Model", choices={seed: f"seed {seed}" for seed in SEEDS}),
        "draw": Label("Which text", hint="the seed of the text's generator"),
    }
    presets = {
        "At the trained length": {"method": "none", "length": SHORT, "follow": True},
        "Twice, no scaling": {"method": "none", "length": 1024, "follow": True},
        "Four times, YaRN": {"method": "yarn", "length": 2048, "follow": True},
        "Four times, interpolated": {"method": "position_interpolation",
                                     "length": 2048, "follow": True},
        "Short text at factor 8": {"method": "yarn", "length": SHORT, "follow": False,
                                   "factor": 8.0},
    }

    method = traitlets.Unicode("yarn").tag(sync=True)
    length = traitlets.Int(2048).tag(sync=True)
    follow = traitlets.Bool(True).tag(sync=True)
    factor = traitlets.Float(4.0).tag(sync=True)
    seed = traitlets.Int(SEEDS[0]).tag(sync=True)
    draw = traitlets.Int(1).tag(sync=True)
    # What was read, see `read_text`; a question from a page, and the kernel's answer.
    _result = traitlets.Dict().tag(sync=True)
    _asked = traitlets.Int(0).tag(sync=True)
    _answered = traitlets.Int(0).tag(sync=True)
    _silent = traitlets.Bool(False).tag(sync=True)

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self._read()

    def set(self, **settings) -> None:
        """Change several settings in one step, then read once."""
        with self.hold_trait_notifications():
            super().set(**settings)

    @traitlets.observe(*LIVE_RANGES)
    def _read(self, change=None) -> None:
        settings = self.settings()
        if self._outside() or self._result.get("settings") == settings:
            return
        try:
            read = read_text(**settings)
        except (OSError, ValueError) as error:
            read = {"problem": f"This text could not be read: {error}"}
        self._result = {"settings": settings, **read}

    @traitlets.observe("_asked")
    def _answer(self, change) -> None:
        self._read()
        self._answered = self._asked

    def problem(self) -> str | None:
        return self._result.get("problem")

    def compute(self) -> dict[str, float]:
        """Losses in nats a byte; answers, and those from beyond the trained length."""
        read = self._result
        pairs = list(zip(read["distances"], read["right"], strict=True))
        far = [right for distance, right in pairs if distance > SHORT]
        facts = {"length": self.length, "factor": read["factor"], "loss": read["loss"],
                 "plain_loss": read["plain_loss"], "answers": len(pairs),
                 "right": sum(read["right"]), "far": len(far), "far_right": sum(far)}
        return facts | ({"stored": read["stored"]} if "stored" in read else {})

    def alt(self) -> str:
        facts = self.facts()
        how = f"seed {self.seed} with {METHODS[self.method]}"
        read = (f"Recall text {self.draw} of {self.length:,} bytes, read by {how}, "
                f"factor {facts['factor']:.3g}")
        far = f"{facts['far_right']} of {facts['far']} from beyond {SHORT} bytes back"
        return (f"{read}: loss by position, and each answer by distance. The loss is "
                f"{facts['loss']:.2f} nats a byte, without scaling "
                f"{facts['plain_loss']:.2f}; {facts['right']} of {facts['answers']} "
                f"answers are right, {far}.")

    def figure(self):
        from apex_lessons.figures import INK, new_figure

        figure, (left, right) = new_figure(9.6, 3.7, columns=2)
        self._draw_losses(left)
        self._draw_answers(right)
        for axis, title in ((left, "loss by position"), (right, "the answers")):
            axis.set_title(title, fontsize=10, color=INK, loc="left")
            axis.legend(frameon=False, fontsize=8)
        return figure

    def _draw_losses(self, axis) -> None:
        from apex_lessons.figures import INK
        from apex_lessons.figures.extrapolation import LOOKS

        read, (colour, _, marker) = self._result, LOOKS[self.method]
        lines = (("plain_by_position", "no scaling", INK, ":", ""),
                 ("by_position", METHODS[self.method], colour, "-", marker))
        for name, label, ink, style, shape in lines:
            axis.plot([BIN * (k + 0.5) for k in range(len(read[name]))], read[name],
                      color=ink, ls=style, marker=shape, ms=4.5, lw=1.8, label=label)
        axis.axvline(SHORT, color=INK, lw=1, ls="--", label="trained length")
        axis.set(xlabel="position in the text, bytes", ylabel="loss, nats a byte",
                 xlim=(0, self.length))

    def _draw_answers(self, axis) -> None:
        from apex_lessons.figures import INK, PALETTE

        read = self._result
        looks = (("missed", 0, "x", PALETTE[1]), ("found", 1, "o", PALETTE[0]))
        for label, wanted, marker, colour in looks:
            places = [k for k, right in enumerate(read["right"]) if right == wanted]
            axis.plot([read["distances"][k] for k in places],
                      [read["positions"][k] for k in places], marker, color=colour,
                      ms=4, label=label)
        axis.axvline(SHORT, color=INK, lw=1, ls="--")
        axis.set_xscale("log", base=2)
        axis.set_xticks(EIGHTS, [f"{tick:,}" for tick in EIGHTS])
        axis.minorticks_off()
        axis.set(xlabel="bytes back to the fact", ylabel="position in the text, bytes")


def read_text(method: str, length: int, follow: bool, factor: float, seed: int,
              draw: int) -> dict[str, Any]:
    """One recall text read by one shipped model, with a method and without scaling.

    ``loss`` and ``by_position`` (bins of 128 bytes) in nats a byte; ``positions``,
    ``distances`` and ``right`` (1 or 0) of each answer; ``plain_...`` without scaling;
    ``seconds`` that the two readings took;
    ``stored``: the stored loss, where this method was measured at this length.
    """
    decoder = _model(seed)
    started = time.perf_counter()
    made = recall(length, 1, torch.Generator().manual_seed(draw))
    ids, distance = made.ids[0], made.distance[0]
    static = None if follow or method in PLAIN else factor
    losses, right = read_by(decoder, ids, method, static)
    plain, _ = read_by(decoder, ids, "none")
    answers = distance.nonzero()[:, 0]  # positions
    used = max(1.0, length / SHORT) if static is None else static
    seconds = round(time.perf_counter() - started, 2)
    read = {"factor": 1.0 if method == "none" else used, "seconds": seconds,
            **_rounded(losses), **{f"plain_{k}": v for k, v in _rounded(plain).items()},
            "positions": answers.tolist(), "distances": distance[answers].tolist(),
            "right": right[answers - 1].int().tolist()}
    known = row(method, "recall", "matched", length) if static is None else None
    return read | ({"stored": known[SEEDS.index(seed)][0] / WHOLE} if known else {})


@cache
def _model(seed: int) -> Decoder:
    return load_checkpoint(seed)


def _rounded(losses: torch.Tensor) -> dict[str, Any]:
    """The mean over a text [length - 1], and means over bins of positions."""
    # byte 0 has no loss, so the first bin is one byte shorter
    parts = [losses[: BIN - 1], *losses[BIN - 1 :].split(BIN)]
    means = [round(part.mean().item(), 4) for part in parts]
    return {"loss": round(losses.mean().item(), 4), "by_position": means}


# --- the script's constants -----------------------------------------------------------

def _embed(cls: type[Explorer], name: str, value: Any) -> None:
    """Put a constant into a class's script, where it says ``/* name */ null``."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    cls._esm = cls._esm.replace(f"/* {name} */ null", text)


for _cls in (ExtrapolationExplorer, LiveExtrapolation):
    _embed(_cls, "methods", [[m, METHODS[m], SHORT_NAMES[m]] for m in METHODS])
_embed(ExtrapolationExplorer, "results", table())


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson that live without a kernel, by name."""
    return {"ExtrapolationExplorer": ExtrapolationExplorer}
