"""Checks of lesson 05: a mean by position, an entropy, and three curves without names.

Each check is called with what a learner wrote and gives a ``Diagnosis``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from apex_lessons.exercises.diagnosis import Diagnosis, Mistake, judge, run_learner

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

    Some weights are exactly 0: keys that a causal mask hides.

    >>> check_entropy(lambda p: -(p * p.log()).sum(-1)).mistake
    'zero-times-infinity'
    """
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(2, 5, 5, generator=generator, dtype=torch.float64)
    hidden = torch.ones(5, 5, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
    said = judge(
        function,
        [(weights,)],
        entropy,
        ENTROPY_MISTAKES,
        praise="Right."
        " Evenly spread over n keys it is ln n, so it grows with the text.",
    )
    return ZERO_TIMES_INFINITY if said.mistake == "nan" else said


ENTROPY_MISTAKES = tuple(
    Mistake(name, "check_entropy", function, words)
    for name, function, words in (
        (
            "no-minus",
            lambda p: torch.special.xlogy(p, p).sum(-1),
            "The sign is missing: ln p is negative, and an entropy is not.",
        ),
        (
            "bits",
            lambda p: entropy(p) / torch.tensor(2.0, dtype=p.dtype).log(),
            "These are bits: you used the base-2 logarithm. Asked are nats, with ln.",
        ),
        (
            "mean-over-keys",
            lambda p: entropy(p) / p.shape[-1],
            "You average over the keys. Add them: p is the weight in the sum already.",
        ),
        (
            "over-queries",
            lambda p: -torch.special.xlogy(p, p).sum(-2),
            "You sum over the queries. Each query has its own weights over the keys,"
            " and the keys are the last dimension.",
        ),
        (
            "one-number",
            lambda p: entropy(p).mean(),
            "You averaged over the queries too. Asked is one entropy for each query.",
        ),
        (
            "small-number-added",
            lambda p: -(p * (p + 1e-3).log()).sum(-1),
            "You added a number inside the logarithm that is large enough to change the"
            " result. `torch.special.xlogy(p, p)` is 0 where p is 0; add nothing.",
        ),
    )
)
ZERO_TIMES_INFINITY = Diagnosis(
    "wrong",
    "zero-times-infinity",
    "Where a weight is 0, its logarithm is minus infinity and the product NaN. Such a"
    " key adds nothing: `torch.special.xlogy(p, p)` knows it.",
)

# --- three curves without names -----------------------------------------------------

CURVES = {"A": "position_interpolation", "B": "yarn", "C": "none"}
# What gives each method away, as the page names it.
REASONS = {
    "position_interpolation": "neighbours",
    "yarn": "kept",
    "none": "new-angles",
}
CLUES = {
    "neighbours": "worse from the first bytes on, where the others are still good",
    "kept": "good at the start and still good at the end",
    "new-angles": "as trained up to the trained length, then worse and worse",
}
TRAPS = {
    (
        "position_interpolation",
        "none",
    ): "No scaling changes nothing within the trained length: its curve must start"
    " as low as any. This one is high from the first bytes.",
    (
        "position_interpolation",
        "yarn",
    ): "YaRN keeps the fast pairs, so near neighbours look as they did in training."
    " A curve that is high from the first bytes has lost them.",
    (
        "none",
        "position_interpolation",
    ): "Interpolation squeezes all positions, the first ones as well. This curve"
    " starts low and goes wrong only past the trained length.",
    (
        "none",
        "yarn",
    ): "YaRN leads no pair to an angle it never saw. This curve breaks away at the"
    " trained length; what happens there?",
    (
        "yarn",
        "none",
    ): "Without scaling, something must happen past the trained length. Look at this"
    " curve there.",
    (
        "yarn",
        "position_interpolation",
    ): "Interpolation blurs neighbours everywhere. This curve has good neighbours from"
    " the first bytes on.",
}


def check_three_curves(function: Callable) -> Diagnosis:
    """Check ``f()``: {"A": (method, clue), ...}, what each curve is and what shows it.

    Methods: "none", "position_interpolation", "yarn"; clues: the keys of ``CLUES``.

    >>> check_three_curves(lambda: {"A": ("yarn", "kept")}).mistake
    'A-is-not-yarn'
    """
    answers, trouble = run_learner(function)
    if trouble is not None:
        return trouble
    if not isinstance(answers, Mapping):
        return _wrong("not-a-dict", "A, B and C", 'return {"A": (method, clue), ...}.')
    named = {x: answers[x] for x in CURVES if answers.get(x, ...) not in (..., None)}
    for letter, given in named.items():
        problem = _judged(letter, CURVES[letter], given)
        if problem is not None:
            return problem
    missing = ", ".join(letter for letter in CURVES if letter not in named)
    if missing:
        return Diagnosis("not attempted", None, f"Still without a name: {missing}.")
    return RIGHT_CURVES


RIGHT_CURVES = Diagnosis(
    "right", None,
    "Right, and for the right reasons: squeezed neighbours, kept neighbours, unknown"
    " angles.")


def _judged(letter: str, method: str, given: object) -> Diagnosis | None:
    """What is wrong with one curve's answer; None where nothing is."""
    if not (isinstance(given, (tuple, list)) and len(given) == 2):
        return _wrong("not-a-pair", letter, 'give two words, as in ("yarn", "kept").')
    named, clue = (str(part).strip().lower().replace("-", "_") for part in given)
    clue = clue.replace("_", "-")
    if named not in REASONS or clue not in CLUES:
        words = f"methods are {', '.join(REASONS)}; clues are {', '.join(CLUES)}."
        return _wrong("unknown-word", letter, words)
    if named != method:
        name = f"{letter}-is-not-{named.replace('_', '-')}"
        return _wrong(name, letter, TRAPS[method, named])
    if clue != REASONS[method]:
        words = f"the method is right, the clue is not. You say: {CLUES[clue]}. Is it?"
        return _wrong(f"{letter}-other-clue", letter, words)
    return None


def _wrong(mistake: str, letter: str, words: str) -> Diagnosis:
    return Diagnosis("wrong", mistake, f"{letter}: {words}")


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs of this lesson."""
    return BIN_MISTAKES + ENTROPY_MISTAKES
