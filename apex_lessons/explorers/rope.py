"""The explorers of lesson 03: a clock of pairs, distance alone, who tells distances."""

from __future__ import annotations

import math

import torch
import traitlets

from apex_lessons import rope
from apex_lessons.explorers.base import Explorer, Label, Range
from apex_lessons.figures.rope import released_models

LAYOUTS = list(rope.LAYOUTS)
ODD = "Head width {} is odd: dimensions turn in pairs, so take an even number."
LAYOUT_NAMES = {"interleaved": "interleaved (neighbours)",
                "half": "half (half a head away)"}
SIDE = 20  # the matrix shows SIDE x SIDE pairs of positions

# A key, and a query that fits it best when the key stands six tokens back; width 16.
KEY = (1.0, 0.5, -0.8, 0.6, 0.7, 0.7, -0.3, 0.9,
       1.0, 0.2, 0.5, -0.8, -0.6, 0.6, 0.4, 0.9)
QUERY = (0.8, 0.8, 0.8, 0.6, 1.0, 0.2, -0.1, 0.9,
         -1.0, -0.1, -0.5, 0.8, -0.6, 0.6, 0.4, 0.9)


def clock_facts(head_dim: int, base: float, context_length: int, position: int,
                pair_share: int) -> dict[str, float]:
    """One pair on its clock face, and how many pairs finish a turn.

    ``pair_share`` picks the pair: 0 is the fastest, 100 the slowest. Angles are
    radians, wavelengths tokens. ``pairs_at_new_angles`` are those that stand, at this
    position, where no position up to the context length brings them:
    ``position mod wavelength > context_length``.

    >>> facts = clock_facts(128, 10_000.0, 4096, 100, 0)
    >>> facts["pairs_never"], facts["pair"], facts["angle"]
    (18, 0, 100.0)
    """
    frequencies = rope.inverse_frequencies(head_dim, base)  # [pairs]
    waves = rope.wavelengths(frequencies)
    pairs = len(frequencies)
    pair = math.floor(pair_share / 100 * (pairs - 1) + 0.5)
    never = int((waves > context_length).sum())
    return {
        "pairs": pairs, "pair": pair, "frequency": frequencies[pair].item(),
        "wavelength": waves[pair].item(), "angle": position * frequencies[pair].item(),
        "turns": position / waves[pair].item(),
        "turns_in_context": context_length / waves[pair].item(),
        "shortest_wavelength": waves[0].item(), "longest_wavelength": waves[-1].item(),
        "pairs_never": never,
        "pairs_at_new_angles": int((position % waves > context_length).sum()),
    }


class WavelengthClock(Explorer):
    """Which pair turns how fast, and which never finishes a turn?"""

    title = "A clock for every pair: wavelengths and the context"
    script = "rope.js"
    ranges = {
        "position": Range(1, 262144, 1, log=True),
        "pair_share": Range(0, 100, 1),
        "context_length": Range(64, 262144, 1, log=True),
        "base": Range(10.0, 10_000_000.0, 1.0, log=True),
        "head_dim": Range(4, 256, 2),
    }
    labels = {
        "position": Label("Position m", unit="tokens"),
        "pair_share": Label("Chosen pair: 0 fastest, 100 slowest"),
        "context_length": Label("Context length", unit="tokens"),
        "base": Label("Base b"),
        "head_dim": Label("Head width d (numbers that turn)"),
    }
    presets = {row.model.removesuffix("-Instruct"): {
        "head_dim": row.rotary_dim, "base": row.base,
        "context_length": row.trained_length}
        for row in released_models()}

    head_dim = traitlets.Int(128).tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)
    context_length = traitlets.Int(4096).tag(sync=True)
    position = traitlets.Int(100).tag(sync=True)
    pair_share = traitlets.Int(30).tag(sync=True)

    def problem(self) -> str | None:
        return ODD.format(self.head_dim) if self.head_dim % 2 else None

    def compute(self) -> dict[str, float]:
        return clock_facts(**self.settings())

    def alt(self) -> str:
        facts = self.facts()
        return (f"Wavelengths of {facts['pairs']} pairs on a log axis, from "
                f"{facts['shortest_wavelength']:.4g} to"
                f" {facts['longest_wavelength']:,.0f} tokens; {facts['pairs_never']}"
                f" pairs never finish a turn in {self.context_length:,} tokens. A dial"
                f" shows each pair at position {self.position:,}; pair {facts['pair']}"
                f" has made {facts['turns']:.4g} turns.")

    def figure(self):
        from apex_lessons.figures.rope import wavelength_clock

        return wavelength_clock(self.head_dim, self.base, self.context_length,
                                self.position, self.facts()["pair"])


def fixed_vectors() -> tuple[torch.Tensor, torch.Tensor]:
    """The query and the key of the explorer, each of length 1: float64 [16].

    >>> [round(vector.norm().item(), 12) for vector in fixed_vectors()]
    [1.0, 1.0]
    """
    q, k = (torch.tensor(numbers, dtype=torch.float64) for numbers in (QUERY, KEY))
    return q / q.norm(), k / k.norm()


def invariance_scores(positions: torch.Tensor, *, base: float, layout_q: str,
                      layout_k: str) -> torch.Tensor:
    """``<R(m) q, R(n) k>`` for all m and n in ``positions``: float64, a square matrix.

    >>> scores = invariance_scores(torch.arange(3), base=1e4, layout_q="half",
    ...                            layout_k="half")
    >>> bool((scores[1:, 1:] - scores[:-1, :-1]).abs().max() < 1e-12)
    True
    """
    q, k = fixed_vectors()
    tables = rope.rotary_tables(positions, rope.inverse_frequencies(len(q), base),
                                dtype=torch.float64)
    queries, keys = (
        rope.apply_rotary(x.expand(len(positions), -1), *tables, layout=layout)
        for x, layout in ((q, layout_q), (k, layout_k)))  # each [positions, 16]
    return queries @ keys.T


class RotationInvariance(Explorer):
    """Does a score see the positions, or only their distance?"""

    title = "Scores see only distance, as long as the layouts agree"
    script = "rope.js"
    ranges = {
        "m": Range(0, SIDE - 1, 1),
        "n": Range(0, SIDE - 1, 1),
        "shift": Range(0, 500, 1),
        "layout_q": LAYOUTS,
        "layout_k": LAYOUTS,
        "base": Range(10.0, 1_000_000.0, 1.0, log=True),
    }
    labels = {
        "m": Label("Query's place m", unit="tokens"),
        "n": Label("Key's place n", unit="tokens"),
        "shift": Label("Shift both by", unit="tokens"),
        "layout_q": Label("Layout of the query", choices=LAYOUT_NAMES),
        "layout_k": Label("Layout of the key", choices=LAYOUT_NAMES),
        "base": Label("Base b"),
    }
    presets = {
        "both interleaved": {"layout_q": "interleaved", "layout_k": "interleaved"},
        "both half": {"layout_q": "half", "layout_k": "half"},
        "mixed up": {"layout_q": "interleaved", "layout_k": "half"},
    }
    # sums of terms that cancel: compared against the size of the terms
    scales = {"score": 1.0, "shifted_score": 1.0, "change": 1.0, "spread": 1.0}

    m = traitlets.Int(15).tag(sync=True)
    n = traitlets.Int(9).tag(sync=True)
    shift = traitlets.Int(50).tag(sync=True)
    layout_q = traitlets.Unicode("interleaved").tag(sync=True)
    layout_k = traitlets.Unicode("interleaved").tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)

    def scores(self, start: int) -> torch.Tensor:
        """The matrix of positions start, start + 1, ...: float64 [20, 20]."""
        return invariance_scores(torch.arange(start, start + SIDE), base=self.base,
                                 layout_q=self.layout_q, layout_k=self.layout_k)

    def compute(self) -> dict[str, float]:
        from apex_lessons.figures.rope import spread_at_equal_distance

        before, after = self.scores(0), self.scores(self.shift)
        score, shifted = before[self.m, self.n].item(), after[self.m, self.n].item()
        return {"distance": self.m - self.n, "score": score, "shifted_score": shifted,
                "change": shifted - score, "spread": spread_at_equal_distance(after)}

    def alt(self) -> str:
        facts = self.facts()
        kept = ("on one curve" if facts["spread"] < 1e-9 else
                "in a cloud: at equal distance they differ by up to"
                f" {facts['spread']:.3f}")
        return (f"Scores of one query ({self.layout_q}) and one key ({self.layout_k}) "
                f"at {SIDE * SIDE} pairs of positions against their distance: they lie"
                f" {kept}. Beside it the same scores as a matrix.")

    def figure(self):
        from apex_lessons.figures.rope import rotation_invariance

        return rotation_invariance(self.scores(self.shift), self.shift, self.m, self.n,
                                   f"q {self.layout_q}, k {self.layout_k}")


def distance_facts(head_dim: int, base: float, distance: int) -> dict[str, float]:
    """How many pairs repeat, tell, and have not noticed a distance; and the borders.

    As in ``figures.rope.telling_pairs``: more than half a turn repeats, less than a
    twentieth has not noticed. ``first_telling`` is -1 where no pair tells. Wavelengths
    are tokens.

    >>> distance_facts(8, 10_000.0, 10)["tell"]
    1
    """
    from apex_lessons.figures.rope import telling_pairs

    repeats, tell, blind = telling_pairs(head_dim, base, distance)
    waves = rope.wavelengths(rope.inverse_frequencies(head_dim, base))
    return {"pairs": head_dim // 2, "repeats": repeats, "tell": tell, "blind": blind,
            "first_telling": repeats if tell else -1,
            "last_telling": repeats + tell - 1 if tell else -1,
            "half_wavelength": 2 * distance, "longest_wavelength": waves[-1].item(),
            "turns_of_the_fastest": distance / waves[0].item(),
            "turns_of_the_slowest": distance / waves[-1].item()}


def _by_frequencies() -> dict[tuple[int, float], list[str]]:
    """The released models, those with equal frequencies together."""
    groups: dict[tuple[int, float], list[str]] = {}
    for row in released_models():
        groups.setdefault((row.rotary_dim, row.base), []).append(
            row.model.removesuffix("-Instruct"))
    return groups


class PairsAndDistances(Explorer):
    """Which pairs tell a distance from shorter ones?"""

    title = "Which pairs carry which distances"
    script = "rope.js"
    ranges = {
        "distance": Range(1, 100_000, 1, log=True),
        "base": Range(10.0, 10_000_000.0, 1.0, log=True),
        "head_dim": Range(4, 256, 2),
    }
    labels = {
        "distance": Label("Distance", unit="tokens"),
        "base": Label("Base b"),
        "head_dim": Label("Head width d (numbers that turn)"),
    }
    presets = {" and ".join(names): {"head_dim": head_dim, "base": base}
               for (head_dim, base), names in _by_frequencies().items()}

    head_dim = traitlets.Int(64).tag(sync=True)
    base = traitlets.Float(10_000.0).tag(sync=True)
    distance = traitlets.Int(100).tag(sync=True)

    def problem(self) -> str | None:
        return ODD.format(self.head_dim) if self.head_dim % 2 else None

    def compute(self) -> dict[str, float]:
        return distance_facts(**self.settings())

    def alt(self) -> str:
        facts = self.facts()
        return (f"Of {facts['pairs']} pairs, at a distance of {self.distance:,} tokens "
                f"{facts['repeats']} have passed half a turn and repeat,"
                f" {facts['tell']} tell it from shorter distances, {facts['blind']}"
                " have not noticed it.")

    def figure(self):
        from apex_lessons.figures.rope import pairs_at_distance

        return pairs_at_distance(self.head_dim, self.base, self.distance)


def explorers() -> dict[str, type[Explorer]]:
    """The explorers of this lesson by name."""
    return {"WavelengthClock": WavelengthClock,
            "RotationInvariance": RotationInvariance,
            "PairsAndDistances": PairsAndDistances}
