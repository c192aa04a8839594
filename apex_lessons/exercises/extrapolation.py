"""Checks of lesson 05: means, entropy, far answers, three curves without names.

Each check is called with what a learner wrote and gives a ``Diagnosis``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from apex_lessons.exercises.diagnosis import (
    Diagnosis,
    Mistake,
    agrees,
    judge,
    run_learner,
)
from apex_lessons.extrapolation import Band, band, select
from apex_lessons.extrapolation.measuring import DISTANCES

# --- loss by position ---------------------------------------------------------------


def losses_in_bins(losses: Tensor, width: int) -> Tensor:
    """[rows, length] -> [length / width]: means over rows and over each bin."""
    return losses.unflatten(1, (-1, width)).mean(dim=(0, 2))


def check_loss_by_position(function: Callable) -> Diagnosis:
    """Check ``f(losses, width)``: losses [rows, length], mean in each bin of positions.

    ``length`` is a multiple of ``width``; the answer is [length / width].

    >>> check_loss_by_position(losses_in_bins).status
    'right'
    """
    generator = torch.Generator().manual_seed(5)
    sizes = ((3, 8, 2), (2, 12, 4), (4, 6, 6))
    cases = [
        (torch.rand(rows, length, generator=generator, dtype=torch.float64) + 1, width)
        for rows, length, width in sizes
    ]
    return judge(
        function,
        cases,
        losses_in_bins,
        BIN_MISTAKES,
        praise="Right: one mean for each stretch of positions, over all texts.",
    )


BIN_MISTAKES = tuple(
    Mistake(name, "check_loss_by_position", function, words)
    for name, function, words in (
        (
            "one-number",
            lambda losses, width: losses.mean(),
            "You average over everything. A single number hides where a model fails;"
            " keep the positions apart.",
        ),
        (
            "rows-mixed-in",
            lambda losses, width: losses.mean(1),
            "You average over positions and keep the texts. It is the other way round.",
        ),
        (
            "every-position",
            lambda losses, width: losses.mean(0),
            "You average over the texts, but each position stands alone. Average"
            " `width` neighbours as well: one byte's loss is mostly noise.",
        ),
        (
            "keeps-the-rows",
            lambda losses, width: losses.unflatten(1, (-1, width)).mean(2),
            "The bins are right, but the texts are still apart. Average over them too.",
        ),
        (
            "strided",
            lambda losses, width: losses.unflatten(1, (width, -1)).mean((0, 1)),
            "Your bins take every so-many-th position. A bin is a stretch of `width`"
            " neighbours: which size comes first in the reshape?",
        ),
        (
            "sums",
            lambda losses, width: losses.unflatten(1, (-1, width)).sum((0, 2)),
            "You add the losses up. Divide by how many there are.",
        ),
        (
            "sum-over-texts",
            lambda losses, width: losses.unflatten(1, (-1, width)).mean(2).sum(0),
            "You add over the texts. A second text must not double the loss.",
        ),
        (
            "perplexity",
            lambda losses, width: losses.unflatten(1, (-1, width)).mean((0, 2)).exp(),
            "This is perplexity, exp of the mean loss. Asked is the mean itself.",
        ),
        (
            "running-mean",
            lambda losses, width: (
                losses.mean(0).cumsum(0) / torch.arange(1, losses.shape[1] + 1)
            )[width - 1 :: width],
            "You average from the beginning up to each bin's end. The good start then"
            " hides the bad end; start each bin anew.",
        ),
        (
            "first-of-each-bin",
            lambda losses, width: losses.mean(0)[::width],
            "You take one position from each bin. Take the mean of all of them.",
        ),
        (
            "mean-over-the-wrong-two",
            lambda losses, width: losses.unflatten(1, (-1, width)).mean((0, 1)),
            "After the reshape you average over the texts and the bins, and the places"
            " inside a bin are left. Keep the bins instead.",
        ),
        (
            "largest-in-bin",
            lambda losses, width: losses.unflatten(1, (-1, width)).mean(0).amax(1),
            "You take the largest of each bin; asked is the mean.",
        ),
        (
            "divided-by-the-texts-only",
            lambda losses, width: losses.unflatten(1, (-1, width)).sum(2).mean(0),
            "You add up inside a bin and average over the texts only. A wider bin must"
            " not have a larger loss.",
        ),
        (
            "last-of-each-bin",
            lambda losses, width: losses.mean(0)[width - 1 :: width],
            "You take one position from each bin. Take the mean of all of them.",
        ),
    )
)

# --- entropy ------------------------------------------------------------------------


def entropy(weights: Tensor) -> Tensor:
    """-sum p ln p over the last dimension, in nats; 0 where p is 0."""
    return -torch.special.xlogy(weights, weights).sum(-1)


def check_entropy(function: Callable) -> Diagnosis:
    """Check ``f(weights)``: attention weights [..., keys], entropy [...] in nats.

    Some weights are exactly 0: keys that a causal mask hides. A number of 1e-9 or less
    added inside the logarithm is let pass.

    >>> check_entropy(lambda p: -(p * p.log()).sum(-1)).mistake
    'zero-times-infinity'
    """
    weights = masked_weights()
    said = judge(function, [(weights,)], entropy, ENTROPY_MISTAKES, tolerance=1e-7,
                 praise="Right. Evenly spread over n keys it is ln n, so it grows with"
                 " the text.")
    if said.mistake == "nan":
        return ZERO_TIMES_INFINITY
    unknown = said.mistake in ("constant-factor", "varying-factor", "other")
    return SMALL_NUMBER if unknown and _adds_a_number(function, weights) else said


def masked_weights() -> Tensor:
    """Attention weights [2, 5, 5] with a causal mask, float64."""
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    return scores.masked_fill(hidden, -torch.inf).softmax(-1)


def _adds_a_number(function: Callable, weights: Tensor) -> bool:
    """Is the answer that of -sum p ln(p + e) for a small e?"""
    answer, _ = run_learner(function, weights)
    guesses = (-(weights * (weights + 10.0**-k).log()).sum(-1) for k in range(1, 9))
    return any(agrees(answer, guess, 1e-9) for guess in guesses)


def _mistakes(check: str, *mistakes: tuple[str, Callable, str]) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, check, wrong, words) for name, wrong, words in mistakes)


ENTROPY_MISTAKES = _mistakes(
    "check_entropy",
    ("no-minus", lambda p: torch.special.xlogy(p, p).sum(-1),
     "The sign is missing: ln p is negative, and an entropy is not."),
    ("bits", lambda p: entropy(p) / math.log(2),
     "These are bits: you used the base-2 logarithm. Asked are nats, with ln."),
    ("base-10", lambda p: entropy(p) / math.log(10),
     "You used the logarithm to base 10. Asked are nats, with ln."),
    ("mean-over-keys", lambda p: entropy(p) / p.shape[-1],
     "You average over the keys. Add them: p is the weight in the sum already."),
    ("relative", lambda p: entropy(p) / math.log(p.shape[-1]),
     "You divide by the largest entropy there can be, ln n. Asked is the entropy."),
    ("perplexity", lambda p: entropy(p).exp(),
     "This is exp of the entropy, the number of keys it is worth. Asked is the entropy"
     " itself."),
    ("over-queries", lambda p: -torch.special.xlogy(p, p).sum(-2),
     "You sum over the queries. Each query has its own weights over the keys, and the"
     " keys are the last dimension."),
    ("one-number", lambda p: entropy(p).mean(),
     "You averaged over the queries too. Asked is one entropy for each query."),
    ("keeps-the-keys", lambda p: entropy(p)[..., None],
     "The last dimension is still there, with size 1. Leave `keepdim` out."),
    ("rows-lost", lambda p: torch.nan_to_num(-(p * p.log()).sum(-1)),
     "You replace NaN after the sum: one hidden key then takes its whole row with it."
     " Replace it before, or use `torch.special.xlogy(p, p)`."),
    ("no-weights", lambda p: -torch.nan_to_num(p.log(), neginf=0.0).sum(-1),
     "You add ln p without its weight. The sum is of p ln p."),
)
SMALL_NUMBER = Diagnosis(
    "wrong", "small-number-added",
    "You added a number inside the logarithm that is large enough to change the result."
    " `torch.special.xlogy(p, p)` is 0 where p is 0, with nothing added.")
ZERO_TIMES_INFINITY = Diagnosis(
    "wrong", "zero-times-infinity",
    "Where a weight is 0, its logarithm is minus infinity and the product NaN. Such a"
    " key adds nothing: `torch.special.xlogy(p, p)` knows it.")

# --- how much is found far away -----------------------------------------------------


def found_beyond(counts: Sequence[tuple[int, int]], edges: Sequence[int],
                 distance: int) -> float:
    """Share of right answers in all bins that begin at ``distance`` or farther."""
    far = [pair for pair, low in zip(counts, edges, strict=False) if low >= distance]
    return sum(right for right, _ in far) / sum(n for _, n in far)


def check_found_beyond(function: Callable) -> Diagnosis:
    """Check ``f(counts, edges, distance)``: the share of far answers that were found.

    ``counts``: (right, answers) of each bin; bin i holds distances from edges[i] to
    edges[i + 1]. The bins hold very different numbers of answers.

    >>> check_found_beyond(found_beyond).status
    'right'
    """
    first = [(90, 100), (80, 100), (60, 80), (20, 60), (9, 50), (9, 40), (3, 4), (0, 0)]
    second = [(5, 6), (7, 9), (1, 2), (30, 90), (2, 20), (1, 3), (2, 2), (4, 10)]
    cases = [(first, DISTANCES, 256), (second, DISTANCES, 32),
             (second, DISTANCES, 2048)]
    return judge(function, cases, found_beyond, BEYOND_MISTAKES, praise="Right: all far"
                 " answers weigh the same, however they are binned.")


def _mean_of_shares(counts, edges, distance):
    far = [r / n for (r, n), low in zip(counts, edges) if low >= distance and n]
    return sum(far) / len(far)


def _other_bins(keep: Callable) -> Callable:
    """The share in bins chosen by ``keep(low, high, distance)``."""
    def share(counts, edges, distance):
        far = [pair for pair, low, high in zip(counts, edges, edges[1:])
               if keep(low, high, distance)]
        return sum(r for r, _ in far) / max(1, sum(n for _, n in far))
    return share


BEYOND_MISTAKES = _mistakes(
    "check_found_beyond",
    ("mean-of-shares", _mean_of_shares,
     "You average the bins' shares. A bin with four answers then weighs as much as one"
     " with forty: add up first, divide once."),
    ("everything", _other_bins(lambda low, high, distance: True),
     "You count all bins. Near answers are many and easy, and hide the far ones."),
    ("near-ones", _other_bins(lambda low, high, distance: low < distance),
     "These are the near answers. Keep the bins that begin at `distance` or farther."),
    ("one-bin-too-many", _other_bins(lambda low, high, distance: high >= distance),
     "You keep a bin that ends where the far answers begin. Compare each bin's first"
     " edge with `distance`."),
    ("one-bin-too-few", _other_bins(lambda low, high, distance: low > distance),
     "The bin that begins exactly at `distance` is missing."),
    ("counts-not-shares", lambda counts, edges, distance: float(sum(
        r for (r, _), low in zip(counts, edges) if low >= distance)),
     "This is the number of answers found. Divide by how many were asked."),
    ("of-all-answers", lambda counts, edges, distance: sum(
        r for (r, _), low in zip(counts, edges) if low >= distance
    ) / sum(n for _, n in counts),
     "You divide the far ones found by all answers. Divide by the far ones asked."),
    ("missed-not-found", lambda c, e, d: 1 - found_beyond(c, e, d),
     "This is the share that was missed."),
)

# --- three curves without names -----------------------------------------------------

_CURVES = {"A": "none", "B": "apex1", "C": "yarn"}
# What gives each method away, as the page names it; "cut-off" fits none of them.
REASONS = {"none": "new-angles", "apex1": "neighbours", "yarn": "kept"}
CLUES = {
    "new-angles": "as trained up to the trained length, then worse and worse",
    "neighbours": "worse from the first bytes on, and not much worse later",
    "kept": "good at the start and still good at the end",
    "cut-off": "as if only the last 512 bytes were read: level after them",
}
TRAPS = {
    ("apex1", "none"):
        "no scaling changes nothing within the trained length: its curve must start"
        " as low as any. This one is high from the first bytes.",
    ("apex1", "yarn"):
        "YaRN keeps every pair that turns often enough, so near neighbours look as they"
        " did in training. A curve that is high from the first bytes has lost some.",
    ("none", "apex1"):
        "the printed rule divides pairs that short texts need, so its curve is worse"
        " from the first bytes. This one starts low and goes wrong later.",
    ("none", "yarn"):
        "YaRN leads no pair to an angle it never saw. This curve breaks away at the"
        " trained length; what happens there?",
    ("yarn", "none"):
        "without scaling something must happen past the trained length. Look at this"
        " curve there.",
    ("yarn", "apex1"):
        "the printed rule divides pairs that short texts need. This curve has good"
        " neighbours from the first bytes on.",
}


def curves_without_names() -> dict[str, tuple[Band, ...]]:
    """Loss by position of three methods on natural text of 4,096 bytes, by letter."""
    found = {}
    for letter, method in _CURVES.items():
        records = select(method=method, length=4096, text="natural")
        columns = zip(*(record.by_position for record in records), strict=True)
        found[letter] = tuple(band(column) for column in columns)
    return found


def check_three_curves(function: Callable) -> Diagnosis:
    """Check ``f()``: {"A": (method, clue), ...}, what each curve is and what shows it.

    Methods: "none", "apex1", "yarn"; clues: the keys of ``CLUES``.

    >>> check_three_curves(lambda: {"A": ("yarn", "kept")}).mistake
    'A-is-not-yarn'
    """
    answers, trouble = run_learner(function)
    if trouble is not None:
        return trouble
    if not isinstance(answers, Mapping):
        return _wrong("not-a-dict", "A, B and C", 'return {"A": (method, clue), ...}.')
    given = {str(letter).upper(): answer for letter, answer in answers.items()}
    named = {x: given[x] for x in _CURVES if not _is_nothing(given.get(x))}
    for letter, answer in named.items():
        problem = _judged(letter, _CURVES[letter], answer)
        if problem is not None:
            return problem
    missing = ", ".join(letter for letter in _CURVES if letter not in named)
    if missing:
        return Diagnosis("not attempted", None, f"Still without a name: {missing}.")
    return RIGHT_CURVES


def _is_nothing(value: object) -> bool:
    return value is None or value is ...


RIGHT_CURVES = Diagnosis(
    "right", None,
    "Right, and for the right reasons: new angles, blurred neighbours, both spared.")


def _judged(letter: str, method: str, given: object) -> Diagnosis | None:
    """What is wrong with one curve's answer; None where nothing is."""
    pair = isinstance(given, (tuple, list)) and len(given) == 2
    if not (pair and all(isinstance(word, str) for word in given)):
        return _wrong("not-a-pair", letter, 'give two words, as in ("yarn", "kept").')
    named, clue = (re.sub(r"[\s_]+", "-", word.strip().lower()) for word in given)
    if named not in REASONS or clue not in CLUES:
        words = f"methods are {', '.join(REASONS)}; clues are {', '.join(CLUES)}."
        return _wrong("unknown-word", letter, words)
    if named != method:
        return _wrong(f"{letter}-is-not-{named}", letter, TRAPS[method, named])
    if clue != REASONS[method]:
        words = f"the method is right, the clue is not. You say: {CLUES[clue]}. Is it?"
        return _wrong(f"{letter}-other-clue", letter, words)
    return None


def _wrong(mistake: str, letter: str, words: str) -> Diagnosis:
    return Diagnosis("wrong", mistake, f"{letter}: {words}")


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs of this lesson."""
    return BIN_MISTAKES + ENTROPY_MISTAKES + BEYOND_MISTAKES
