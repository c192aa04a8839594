"""The explorer of lesson 04: what each number of a scaling does to each pair."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import traitlets
from torch import Tensor

from apex_lessons import rope, yarn
from apex_lessons.explorers.base import Explorer, Label, Range
from apex_lessons.figures.yarn import pairs_at_new_angles, released_models

METHODS = {
    "yarn": "YaRN", "yarn-other": "YaRN, the other ramp", "none": "plain RoPE",
    "linear": "position interpolation", "ntk": "NTK-aware", "dynamic": "dynamic NTK",
    "llama3": "Llama 3's rule", "proportional": "proportional (25% turn)",
    "apex1": "the reference's rule",
}
OTHER_RAMP = {"pair": "rotations", "rotations": "pair"}
TEMPERATURES = {"tables": "on cos and sin (YaRN)",
                "softmax": "on the softmax (DeepSeek)",
                "none": "nowhere (NTK-by-parts)"}
SHARE = 0.25  # of the pairs turn under "proportional"
CUTS = ("beta_fast", "beta_slow", "truncate", "low_freq_factor", "high_freq_factor")
TIE = 1e-9  # two ratios closer than this are one


@dataclass(frozen=True)
class Side:
    """One of the two methods that are compared, computed."""

    inv_freq: Tensor  # float64 [pairs], radians per token
    attention_factor: float  # on cos and sin
    softmax_factor: float = 1.0

    @property
    def score_factor(self) -> float:
        """What a score of a fully rotary head is multiplied by."""
        return self.attention_factor ** 2 * self.softmax_factor


def side(method: str, s: dict[str, Any]) -> Side:
    """A method of ``METHODS`` with the explorer's settings ``s``.

    Raises ValueError, in words, where the settings do not go together.

    >>> settings = RegimesLaboratory().settings()
    >>> round(side("yarn", settings).score_factor, 4)
    1.8133
    """
    width, common = s["head_dim"], {"base": s["base"], "factor": s["factor"]}
    known = {**common, "trained_length": s["trained_length"]}
    betas = {"beta_fast": s["beta_fast"], "beta_slow": s["beta_slow"]}
    if method in ("yarn", "yarn-other"):
        ramp = s["ramp"] if method == "yarn" else OTHER_RAMP[s["ramp"]]
        scaled = yarn.ntk_by_parts(width, **known, **betas, ramp=ramp,
                                   truncate=s["truncate"])
        sharpen = yarn.yarn_attention_factor(s["factor"], s["mscale"])
        return _with_temperature(scaled.inv_freq, sharpen, s["temperature"])
    inv_freq = {
        "none": lambda: rope.inverse_frequencies(width, s["base"]),
        "linear": lambda: yarn.position_interpolation(width, **common)[0],
        "ntk": lambda: yarn.ntk_aware(width, **common)[0],
        "dynamic": lambda: yarn.dynamic_ntk(width, **known, length=s["length"])[0],
        "llama3": lambda: yarn.llama3(
            width, **known, low_freq_factor=s["low_freq_factor"],
            high_freq_factor=s["high_freq_factor"])[0],
        "proportional": lambda: yarn.proportional(
            width, base=s["base"], partial_rotary_factor=SHARE)[0],
        "apex1": lambda: yarn.apex1(width, **common, **betas)[0],
    }[method]()
    return Side(inv_freq, 1.0)


def _with_temperature(inv_freq: Tensor, sharpen: float, where: str) -> Side:
    if where == "tables":
        return Side(inv_freq, sharpen)
    return Side(inv_freq, 1.0, sharpen ** 2 if where == "softmax" else 1.0)


def comparison(plain: Tensor, first: Side, second: Side, s: dict[str, Any]) -> dict:
    """The facts of the laboratory: pairs are counted, wavelengths are tokens.

    ``*_other`` belongs to the second method. ``new_angles``: pairs that reach, in
    ``length`` tokens, angles that training did not bring. ``fast_slowed``: pairs with
    more than ``beta_fast`` turns that are slowed down all the same. ``pair_1`` ... are
    the three largest disagreements, ``ratio_1`` ... by how much the frequencies differ.
    """
    trained, length, factor = s["trained_length"], s["length"], s["factor"]
    turns = yarn.rotations(plain, trained)
    standing = first.inv_freq == 0
    kinds = yarn.regimes(plain, first.inv_freq, factor)
    fast = turns > s["beta_fast"]
    facts = {"pairs": len(plain), "head_dim": 2 * len(plain), "base": s["base"],
             "factor": factor, "trained_length": trained,
             "unchanged": int(((kinds == 0) & ~standing).sum()),
             "blended": int(((kinds == 1) & ~standing).sum()),
             "divided": int(((kinds == 2) & ~standing).sum()),
             "standing": int(standing.sum()), "never_turned": int((turns < 1).sum()),
             "longest_before": rope.wavelengths(plain)[-1].item()}
    for name, one in (("", first), ("_other", second)):
        new = pairs_at_new_angles(plain, one.inv_freq, trained, length)
        slowed = fast & (one.inv_freq < plain * (1 - TIE))
        facts |= {f"new_angles{name}": int(new.sum()),
                  f"fast_slowed{name}": int(slowed.sum()),
                  f"longest_after{name}": rope.wavelengths(one.inv_freq)[-1].item(),
                  f"attention_factor{name}": one.attention_factor,
                  f"score_factor{name}": one.score_factor}
    return facts | _disagreements(first.inv_freq, second.inv_freq)


def _disagreements(first: Tensor, second: Tensor) -> dict[str, float]:
    """The three pairs whose frequencies differ most, the first of equals first."""
    ratios = [1.0 if a == b else max(a, b) / min(a, b) if min(a, b) else math.inf
              for a, b in zip(first.tolist(), second.tolist())]
    facts, left = {}, list(range(len(ratios)))
    for place in (1, 2, 3):
        best = left[0]
        for pair in left:
            if ratios[pair] > ratios[best] * (1 + TIE):
                best = pair
        left.remove(best)
        facts |= {f"pair_{place}": best, f"ratio_{place}": ratios[best]}
    return facts


def parsed(text: str) -> dict[str, Any]:
    """The object that a config.json holds; ValueError, in words, for another text."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The text is no JSON: {error}. Paste a whole"
                         " config.json.") from None
    if not isinstance(config, dict):
        raise ValueError("A config.json is an object in braces, this is a"
                         f" {type(config).__name__}.")
    return config


def from_config(text: str, s: dict[str, Any]) -> tuple[Tensor, Side, dict[str, Any]]:
    """A pasted config.json: plain frequencies, the file's own method, settings as used.

    Raises ValueError, in words, where the file cannot be read.
    """
    from apex_lessons.models.config import rope_from_config

    sets = rope_from_config(parsed(text), length=s["length"])
    if not sets:
        raise ValueError(f"This model has no rotary positions: {sets.positions}.")
    own = sets[sets.main]
    if own.rotary_dim < 8:
        raise ValueError(f"Only {own.rotary_dim} dimensions turn; the laboratory"
                         " compares four pairs or more.")
    used = {**s, "head_dim": own.rotary_dim, "base": own.base,
            # a file without scaling: what would the slider's factor do to it?
            "factor": s["factor"] if own.method == "default" else own.factor,
            "trained_length": own.trained_length or s["trained_length"],
            **{name: own.parameters[name] for name in CUTS if name in own.parameters}}
    plain = rope.inverse_frequencies(own.rotary_dim, own.base)
    found = Side(own.scaled.inv_freq, own.scaled.attention_factor, own.softmax_factor)
    return plain, found, used


def family_table() -> dict[str, Any]:
    """What the page must know of the model families, small enough to travel with it.

    ``families``: {model_type: the conventions that its line states}, a string for a
    family without rotary positions, null for one with rules that only Python reads.
    ``composites``: {model_type: [key of the language model, its default type]}.
    ``wrong_files``: {key: the other file of a model that it gives away}.
    """
    from apex_lessons.models.config import WRONG_FILES
    from apex_lessons.models.families import composites, families

    table = {name: _line(family) for name, family in sorted(families().items())}
    return {"families": table, "composites": composites(),
            "wrong_files": WRONG_FILES}


READ_IN_THE_PAGE = ("base", "base_keys", "head_dim", "head_dim_keys", "latent", "share",
                    "share_keys", "share_read", "share_fixed", "rotary_dim",
                    "rotary_dim_keys", "scaling", "scaling_read", "types", "original",
                    "softmax", "names", "sizes", "sets", "base_scale_key", "head_ratio",
                    "inside", "needs", "needs_default", "otherwise", "positions_key",
                    "alibi_unless", "alpha", "mscales", "rotates")
DOES_NOT_MATTER = ("model_type", "source", "why", "aliases", "layout", "layout_key",
                   "interleave_key", "nope", "query", "layers",
                   "all_rotate_without", "no_rope_layers", "no_base_on",
                   "without_rotary", "label_of", "window", "ignored", "notes",
                   "alibi_key")


def _line(family) -> dict | str | None:
    """One family's conventions as JSON: only what differs from the usual."""
    from apex_lessons.models.families import Family

    if not family.rotary:
        return family.positions
    usual = vars(Family(model_type="", source=""))
    stated = {name: value for name, value in vars(family).items()
              if value != usual[name] and name not in DOES_NOT_MATTER}
    return stated if set(stated) <= set(READ_IN_THE_PAGE) else None


def _preset(model) -> dict[str, Any]:
    llama = model.method == "llama3"
    if llama:
        cuts = {"high_freq_factor": model.beta_fast, "low_freq_factor": model.beta_slow}
    else:
        cuts = {"beta_fast": model.beta_fast, "beta_slow": model.beta_slow,
                "ramp": "pair", "truncate": model.truncate,
                "mscale": model.mscale_all_dim or 1.0,
                "temperature": "softmax" if model.mscale_all_dim else "tables"}
    return {"method": model.method, "other": "yarn" if llama else "ntk",
            "head_dim": model.head_dim, "base": model.base,
            "factor": model.factor, "trained_length": model.trained_length,
            "length": int(model.factor * model.trained_length), "config": "", **cuts}


class RegimesLaboratory(Explorer):
    """Which pairs does a method leave alone, blend and divide?"""

    title = "The regimes laboratory: what a scaling does to each pair"
    script = "yarn.js"
    ranges = {
        "method": list(METHODS),
        "other": list(METHODS),
        "factor": Range(1.0, 128.0, 0.1, log=True),
        "trained_length": Range(64, 1048576, 1, log=True),
        "length": Range(64, 4194304, 1, log=True),
        "head_dim": Range(8, 512, 2),
        "base": Range(100.0, 1_000_000_000.0, 1.0, log=True),
        "beta_fast": Range(0.5, 128.0, 0.1, log=True),
        "beta_slow": Range(0.1, 64.0, 0.1, log=True),
        "ramp": ["pair", "rotations"],
        "truncate": [False, True],
        "temperature": list(TEMPERATURES),
        "mscale": Range(0.1, 2.0, 0.001),
        "high_freq_factor": Range(0.5, 64.0, 0.1, log=True),
        "low_freq_factor": Range(0.1, 32.0, 0.1, log=True),
        "config": "the text of a model's config.json",
    }
    labels = {
        "method": Label("Method", choices=METHODS),
        "other": Label("Compared with", choices=METHODS),
        "factor": Label("Factor s", hint="how many times longer the text gets"),
        "trained_length": Label("Trained length L", unit="tokens"),
        "length": Label("Length of the text to read", unit="tokens"),
        "head_dim": Label("Head width d (numbers that turn)"),
        "base": Label("Base b (rope_theta)"),
        "beta_fast": Label("beta_fast", unit="turns"),
        "beta_slow": Label("beta_slow", unit="turns"),
        "ramp": Label("Ramp of YaRN", choices={
            "pair": "by pair (everybody's code)", "rotations": "by turns (the paper)"}),
        "truncate": Label("Round the ends of the ramp (truncate)"),
        "temperature": Label("YaRN's temperature goes", choices=TEMPERATURES),
        "mscale": Label("mscale in 0.1 mscale ln s + 1",
                        hint="1 in most models, 0.707 in DeepSeek-V2"),
        "high_freq_factor": Label("Llama 3: high_freq_factor", unit="turns"),
        "low_freq_factor": Label("Llama 3: low_freq_factor", unit="turns"),
        "config": Label("Or paste a config.json: your own model",
                        hint='{"model_type": "llama", "rope_scaling": {...}, ...}'),
    }
    presets = {
        **{model.name + (" (width inferred)" if model.inferred else ""): _preset(model)
           for model in released_models()},
        "InternLM2.5 7B": {"method": "dynamic", "other": "yarn", "head_dim": 128,
                           "base": 1_000_000.0, "factor": 2.0, "trained_length": 32768,
                           "length": 65536, "config": ""},
        "APEX-1 Large": {"method": "apex1", "other": "yarn", "head_dim": 128,
                         "base": 1_000_000.0, "factor": 8.0, "trained_length": 131072,
                         "length": 1048576, "beta_fast": 32.0, "beta_slow": 1.0,
                         "config": ""},
    }

    method = traitlets.Unicode("yarn").tag(sync=True)
    other = traitlets.Unicode("ntk").tag(sync=True)
    factor = traitlets.Float(32.0).tag(sync=True)
    trained_length = traitlets.Int(4096).tag(sync=True)
    length = traitlets.Int(131072).tag(sync=True)
    head_dim = traitlets.Int(128).tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)
    beta_fast = traitlets.Float(32.0).tag(sync=True)
    beta_slow = traitlets.Float(1.0).tag(sync=True)
    ramp = traitlets.Unicode("pair").tag(sync=True)
    truncate = traitlets.Bool(True).tag(sync=True)
    temperature = traitlets.Unicode("tables").tag(sync=True)
    mscale = traitlets.Float(1.0).tag(sync=True)
    high_freq_factor = traitlets.Float(4.0).tag(sync=True)
    low_freq_factor = traitlets.Float(1.0).tag(sync=True)
    config = traitlets.Unicode("").tag(sync=True)

    def sides(self) -> tuple[Tensor, Side, Side, dict[str, Any]]:
        """Plain frequencies, both methods, the settings as used (a pasted file wins).

        Raises ValueError, in words, where the settings do not go together.
        """
        used = self.settings()
        if self.config.strip():
            plain, first, used = from_config(self.config, used)
        else:
            plain = rope.inverse_frequencies(self.head_dim, self.base)
            first = side(self.method, used)
        return plain, first, side(self.other, used), used

    def problem(self) -> str | None:
        try:
            self.sides()
        except ValueError as error:
            return str(error)
        return None

    def compute(self) -> dict[str, float]:
        return comparison(*self.sides())

    def names(self) -> tuple[str, str]:
        """What the two methods are called in words."""
        first = "the pasted file" if self.config.strip() else METHODS[self.method]
        return first, METHODS[self.other]

    def alt(self) -> str:
        facts, (first, second) = self.facts(), self.names()
        return (f"Divisors and wavelengths of {facts['pairs']} pairs under {first} at "
                f"factor {facts['factor']:g}: {facts['unchanged']} unchanged, "
                f"{facts['blended']} blended, {facts['divided']} divided; "
                f"{facts['new_angles']} meet new angles in {self.length:,} tokens. "
                f"{second} is drawn beside it; the two differ most at pair "
                f"{facts['pair_1']}, {facts['ratio_1']:.4g} times.")

    def figure(self):
        from apex_lessons.figures.yarn import laboratory

        plain, first, second, used = self.sides()
        ways = list(zip(self.names(), (first.inv_freq, second.inv_freq)))
        return laboratory(plain, ways, used["factor"], used["trained_length"],
                          self.length, used["beta_fast"], used["beta_slow"])


RegimesLaboratory._esm = RegimesLaboratory._esm.replace(
    "/* families */ null", json.dumps(family_table(), separators=(",", ":")))


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson by name."""
    return {"RegimesLaboratory": RegimesLaboratory}
