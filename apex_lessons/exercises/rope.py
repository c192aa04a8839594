"""Checks for lesson 03: frequencies, tables, the rotation, layouts, decoding.

``check_name(f)`` runs a learner's function on small seeded inputs and answers with a
Diagnosis. A wrong answer is compared with the answers of ``known_mistakes()``, which
are programs, so that it can be told by its name. No message prints a right value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from apex_lessons import rope
from apex_lessons.exercises.diagnosis import Diagnosis, Mistake, run_learner

ROUNDING = 2.0**-24  # half a unit in the last place of float32, relative
SLACK = 64  # a few dozen roundings may add up in a right program in float32


# -------------------------------------------------------------------------- machinery
def wrong(name: str | None, message: str) -> Diagnosis:
    """The answer of a check that found something."""
    return Diagnosis("wrong", name, message)


@dataclass(frozen=True)
class Case:
    """One call of the learner's function: its inputs and what is right.

    ``wanted`` is a tuple of float64 tensors (one for each tensor returned) and
    ``tolerance`` a tensor or number of the same shape; where ``counts`` is False any
    value from 0 up is fine.
    """

    inputs: tuple
    wanted: tuple[torch.Tensor, ...]
    tolerance: tuple
    counts: torch.Tensor | None = None


def case(inputs: tuple, wanted, *, tolerance=None, counts=None) -> Case:
    """A Case; the usual tolerance is what a right program in float32 may lose."""
    parts = wanted if isinstance(wanted, tuple) else (wanted,)
    tensors = tuple(part.double() for part in parts)
    if tolerance is None:
        tolerance = tuple(SLACK * ROUNDING * (t.abs() + 0.1 * t.abs().max())
                          for t in tensors)
    return Case(inputs, tensors, tolerance, counts)


@dataclass(frozen=True)
class Answer:
    """What came back, as plain Python numbers, so that no object can pose as equal."""

    shapes: tuple
    numbers: tuple[list[float], ...]
    dtypes: tuple


def plain(result) -> Answer | Diagnosis:
    """A tensor or a tuple of tensors as plain numbers; else what is wrong with it."""
    parts = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    strange = [part for part in parts if type(part) not in (torch.Tensor,
                                                            torch.nn.Parameter)]
    if strange or not parts:
        kind = type(strange[0]).__name__ if strange else "empty tuple"
        return wrong(
            "not-a-tensor",
            f"A torch tensor is wanted, this is a {kind}: return the tensor itself.")
    if any(part.is_complex() for part in parts):
        return wrong(
            "complex-result",
            "The result is still complex. Go back to pairs of real numbers"
            " (torch.view_as_real).")
    return Answer(tuple(tuple(part.shape) for part in parts),
                  tuple(part.detach().double().flatten().tolist() for part in parts),
                  tuple(part.dtype for part in parts))


def close(found: Answer, wanted: Case | Answer, case: Case, *, wider: float = 1,
          ) -> bool:
    """Whether all numbers that count agree within the case's tolerance."""
    if isinstance(wanted, Case):
        wanted = Answer(tuple(tuple(t.shape) for t in wanted.wanted),
                        tuple(t.flatten().tolist() for t in wanted.wanted), ())
    if found.shapes != wanted.shapes:
        return False
    counts = None if case.counts is None else case.counts.flatten().tolist()
    for index, (left, right) in enumerate(zip(found.numbers, wanted.numbers)):
        if counts is not None and len(counts) == len(left):
            left = [value for value, used in zip(left, counts) if used]
            right = [value for value, used in zip(right, counts) if used]
        allowed = _allowed(case, index, right)
        if not all(abs(a - b) <= limit * wider
                   for a, b, limit in zip(left, right, allowed)):
            return False
    return True


def _allowed(case: Case, index: int, right: list[float]) -> list[float]:
    limit = case.tolerance[min(index, len(case.tolerance) - 1)]
    if isinstance(limit, torch.Tensor) and limit.numel() == len(right):
        return limit.flatten().tolist()
    largest = limit.max().item() if isinstance(limit, torch.Tensor) else limit
    return [max(largest, SLACK * ROUNDING * abs(value)) for value in right]


Finding = Callable[[list[Answer], list[Case]], Diagnosis | None]


def check(function, cases: list[Case], mistakes: tuple[Mistake, ...], praise: str, *,
          hint: Finding = lambda *_: None,
          also: Finding = lambda *_: None) -> Diagnosis:
    """Run the cases; right, or the first of: known mistake, form, property, size.

    ``hint`` may explain an unknown wrong answer, ``also`` may object to right numbers.
    """
    answers = []
    for one in cases:
        result, diagnosis = run_learner(function, *one.inputs)
        if diagnosis is None and not isinstance(answer := plain(result), Answer):
            diagnosis = answer
        if diagnosis is not None:
            return diagnosis
        answers.append(answer)
    if all(close(found, one, one) for found, one in zip(answers, cases)):
        right = Diagnosis("right", None, praise + _dtype_note(answers, cases))
        objection = _first(answers, cases, also)
        return right if objection is None else objection
    return _first(answers, cases, _not_a_number, partial(_known, mistakes), _form,
                  _constant, _coarse, hint, _size)


def _first(answers, cases, *findings: Finding) -> Diagnosis | None:
    # a wrong Diagnosis is falsy, so "or" would pass over it
    found = (finding(answers, cases) for finding in findings)
    return next((one for one in found if one is not None), None)


def _dtype_note(answers: list[Answer], cases: list[Case]) -> str:
    given = cases[0].inputs[0]
    if not (isinstance(given, torch.Tensor) and given.is_floating_point()):
        return ""
    if answers[0].dtypes[0] == given.dtype:
        return ""
    return (f" One thing to add in a model: the input was {given.dtype} and the"
            f" result is {answers[0].dtypes[0]}; cast it back at the end.")


def _not_a_number(answers: list[Answer], cases) -> Diagnosis | None:
    for answer in answers:
        for numbers in answer.numbers:
            bad = sum(not math.isfinite(value) for value in numbers)
            if bad:
                return wrong(
                    "not-a-number",
                    f"{bad} of {len(numbers)} numbers are NaN or infinite. Look for a"
                    " division by zero or an overflow.")
    return None


def _known(mistakes, answers, cases) -> Diagnosis | None:
    for mistake in mistakes:
        theirs = [plain(mistake.function(*(copy(value) for value in one.inputs)))
                  for one in cases]
        if all(close(found, other, one)
               for found, other, one in zip(answers, theirs, cases)):
            return wrong(mistake.name, mistake.explanation)
    return None


def copy(value):
    """A copy for a wrong program, which may write into it."""
    return value.clone() if isinstance(value, torch.Tensor) else value


def _form(answers, cases) -> Diagnosis | None:
    for answer, one in zip(answers, cases):
        wanted = tuple(tuple(t.shape) for t in one.wanted)
        if answer.shapes != wanted:
            return wrong(
                "wrong-shape",
                f"The shape is {_said(answer.shapes)}, wanted is {_said(wanted)}.")
    return None


def _said(shapes: tuple) -> str:
    return " and ".join(str(list(shape)) for shape in shapes)


def _constant(answers, cases) -> Diagnosis | None:
    for first in range(len(cases)):
        for second in range(first):
            same_form = answers[first].shapes == answers[second].shapes
            if same_form and answers[first].numbers == answers[second].numbers:
                differ = any(not torch.equal(a, b) for a, b in
                             zip(cases[first].wanted, cases[second].wanted))
                if differ:
                    return wrong(
                        "constant",
                        "Two different inputs gave the same answer. The result must"
                        " be computed from the inputs, and nothing kept from an"
                        " earlier call.")
    return None


def _coarse(answers, cases) -> Diagnosis | None:
    if all(close(found, one, one, wider=2.0**12) for found, one in zip(answers, cases)):
        return wrong(
            "half-precision",
            "Right to two digits only: somewhere the numbers pass through bfloat16 or"
            " float16. Compute in float32 or float64.")
    return None


def _size(answers, cases) -> Diagnosis:
    good = [close(found, one, one) for found, one in zip(answers, cases)]
    if any(good):
        return wrong(
            None,
            f"Right for {sum(good)} of {len(good)} inputs. Something is fixed that"
            " should follow from the inputs.")
    gaps = [abs(a - b) for found, one in zip(answers, cases)
            for numbers, t in zip(found.numbers, one.wanted)
            for a, b in zip(numbers, t.flatten().tolist())]
    return wrong(
        None,
        "The form is right, the numbers are not: they differ by up to"
        f" {max(gaps):.2g}. Try the smallest case by hand.")


def _random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# --------------------------------------------------------- the rotation by 90 degrees
def _two(x: torch.Tensor, layout: str = "interleaved"):
    if layout == "interleaved":
        return x[..., 0::2], x[..., 1::2]
    return x.chunk(2, dim=-1)


def _one(first: torch.Tensor, second: torch.Tensor, layout: str = "interleaved"):
    if layout == "interleaved":
        return torch.stack([first, second], dim=-1).flatten(-2)
    return torch.cat([first, second], dim=-1)


def _quarter_overwritten(x):
    x = x.clone()
    x[..., 0::2] = -x[..., 1::2]
    x[..., 1::2] = x[..., 0::2]
    return x


def _quarter_other_axis(x):
    return _one(-x.mT[..., 1::2], x.mT[..., 0::2]).mT


_QUARTERS = (
    ("forgets-the-minus-sign", lambda x: _one(x[..., 1::2], x[..., 0::2]),
     "You swap the two numbers of a pair but never change a sign. A swap is a mirror,"
     " not a turn: apply it twice and you are back at x, where two quarter turns give"
     " -x."),
    ("rotates-clockwise", lambda x: _one(x[..., 1::2], -x[..., 0::2]),
     "This is the quarter turn the other way round. The minus belongs to the number"
     " that comes to the first place of the pair."),
    ("half-layout", lambda x: _one(-x.chunk(2, -1)[1], x.chunk(2, -1)[0], "half"),
     "This is the half layout (partner half a head away), which many libraries call"
     " rotate_half. Here the partners are neighbours."),
    ("two-minus-signs", lambda x: _one(-x[..., 1::2], -x[..., 0::2]),
     "Both numbers of a pair got a minus. One only: apply yours twice and you are"
     " back at x, where two quarter turns give -x."),
    ("does-not-swap", lambda x: _one(-x[..., 0::2], x[..., 1::2]),
     "Each number stays in its place, only signs change. A quarter turn also swaps"
     " the two numbers of a pair."),
    ("pairs-not-put-back", lambda x: torch.cat([-x[..., 1::2], x[..., 0::2]], -1),
     "The numbers are right but their order is not: you took the pairs apart and then"
     " laid the two halves end to end. Stack on a new last axis, then flatten it."),
    ("overwrites-before-it-reads", _quarter_overwritten,
     "The first assignment overwrites what the second one reads: a slice is a view,"
     " not a copy. Compute both new numbers before you store one."),
    ("uses-the-wrong-axis", _quarter_other_axis,
     "You pair along the sequence, not along the head: the pairs lie in the last"
     " axis."),
)


def check_rotate_pairs(f) -> Diagnosis:
    """Check ``f(x) -> [-x1, x0, -x3, x2, ...]`` along the last axis.

    >>> check_rotate_pairs(rope.rotate_pairs).status
    'right'
    """
    inputs = (_random(4, 8, seed=1), _random(2, 6, 4, seed=2), _random(4, 8, seed=3))
    cases = [case((x,), rope.rotate_pairs(x)) for x in inputs]
    return check(f, cases, _mistakes("check_rotate_pairs", _QUARTERS),
                 "Every pair is a quarter turn ahead.")


# -------------------------------------------------------------------- the frequencies
def _powers(exponents: torch.Tensor, base: float) -> torch.Tensor:
    return torch.as_tensor(base, dtype=torch.float64) ** exponents


def _index(head_dim: int, first: int = 0) -> torch.Tensor:
    return torch.arange(first, first + head_dim // 2, dtype=torch.float64)


def _right_frequencies(d, base):
    return _powers(-2 * _index(d) / d, base)


_FREQUENCIES = (
    ("missing-minus", lambda d, base: _powers(2 * _index(d) / d, base),
     "The minus in the exponent is missing: your values rise, and every one is the"
     " inverse of what it should be. The first pair is the fastest."),
    ("counts-pairs-from-one", lambda d, base: _powers(-2 * _index(d, 1) / d, base),
     "You count the pairs from 1. The paper does, with i - 1 in the exponent; in code i"
     " starts at 0, and the first pair turns one radian a token."),
    ("exponent-without-the-two", lambda d, base: _powers(-_index(d) / d, base),
     "The exponent is i/d where 2i/d is wanted: there are only d/2 pairs, so yours stop"
     " half way down and the slowest pair is far too fast."),
    ("exponent-doubled", lambda d, base: _powers(-4 * _index(d) / d, base),
     "The exponent runs twice too fast. torch.arange(0, d, 2) already holds 2i: do not"
     " multiply it by 2 again."),
    ("reaches-the-base", lambda d, base: _powers(-_index(d) / (d // 2 - 1), base),
     "Your last pair turns exactly 1/base radians a token: the exponent is divided by"
     " one pair too few. It must stop one step before 1."),
    ("one-frequency-a-number",
     lambda d, base: _right_frequencies(d, base).repeat_interleave(2),
     "One value for each number, each twice. A frequency belongs to a pair: d/2 of"
     " them."),
    ("laid-end-to-end", lambda d, base: _right_frequencies(d, base).repeat(2),
     "The list is there twice, end to end, as some libraries keep it for the half"
     " layout. A frequency belongs to a pair: d/2 of them."),
    ("one-step-a-number",
     lambda d, base: _powers(-torch.arange(d, dtype=torch.float64) / d, base),
     "You made d frequencies, one for each number of the head. A frequency belongs to a"
     " pair: step by two, d/2 of them."),
    ("wavelengths-instead",
     lambda d, base: 2 * math.pi / _right_frequencies(d, base),
     "These are wavelengths (tokens per turn). Wanted are radians per token: the first"
     " must be the largest."),
    ("turns-not-radians", lambda d, base: _right_frequencies(d, base) / (2 * math.pi),
     "These are turns per token. cos and sin want radians per token: a full turn is 2"
     " pi, not 1."),
    ("times-two-pi", lambda d, base: 2 * math.pi * _right_frequencies(d, base),
     "Every value is 2 pi too large. The power itself is radians per token; 2 pi enters"
     " only when you ask for the wavelength."),
    ("degrees", lambda d, base: torch.rad2deg(_right_frequencies(d, base)),
     "These are degrees per token. cos and sin want radians."),
    ("ignores-the-base", lambda d, base: _right_frequencies(d, 10_000.0),
     "The base is fixed at 10,000 in your function. It is an argument: models use other"
     " bases."),
    ("model-width-for-head-width",
     lambda d, base: _powers(-2 * _index(d) / (4 * d), base),
     "Your exponent falls too slowly, as if divided by the width of four heads: that is"
     " what happens when the model width stands where the head width belongs. Then the"
     " heads differ, and each sees a slice of the frequencies."),
    ("forgets-the-logarithm", lambda d, base: (-2 * _index(d) / d).exp(),
     "exp of the exponent alone is a power of e, not of the base: multiply the exponent"
     " by log(base), or write base ** exponent."),
    ("wrong-logarithm",
     lambda d, base: (-2 * _index(d) / d * math.log10(base)).exp(),
     "exp with a logarithm to base 10: exp undoes the natural logarithm only. Use"
     " math.log."),
    ("integer-division", lambda d, base: _powers(-(2 * _index(d) // d), base),
     "The exponent was divided with //, which cuts off the fraction, so all pairs turn"
     " alike. Use /."),
    ("slowest-first", lambda d, base: _right_frequencies(d, base).flip(0),
     "The right numbers in the wrong order: pair 0 is the fastest."),
    ("evenly-spaced", lambda d, base: torch.linspace(1, 1 / base, d // 2,
                                                     dtype=torch.float64),
     "Your values fall by equal steps. They must fall by equal factors, so that the"
     " wavelengths are even on a log axis."),
    ("half-precision", lambda d, base: _right_frequencies(d, base).bfloat16(),
     "The formula is right, but the numbers went through bfloat16: 8 bits. At position"
     " 1,000 the angle is then wrong by radians. Keep float32, better float64."),
)


def check_inverse_frequencies(f) -> Diagnosis:
    """Check ``f(head_dim, base) -> [head_dim/2]``, radians per token.

    >>> check_inverse_frequencies(rope.inverse_frequencies).status
    'right'
    """
    settings = ((8, 10_000.0), (64, 500_000.0), (8, 1_000_000.0), (128, 10_000.0))
    cases = []
    for one in settings:
        wanted = rope.inverse_frequencies(*one)
        # a power loses a few roundings for each unit of its logarithm
        cases.append(case(one, wanted, tolerance=(wanted * SLACK * ROUNDING,)))
    return check(f, cases, _mistakes("check_inverse_frequencies", _FREQUENCIES),
                 "The frequencies fall by one factor from pair to pair.")


# ------------------------------------------------------------------------- the tables
def _angles(positions, frequencies):
    return positions.double()[:, None] * frequencies.double()


def _both(angles):
    return angles.cos(), angles.sin()


_TABLES = (
    ("bfloat16-positions",
     lambda p, w: _both(_angles(p.bfloat16(), w)),
     "The positions went through bfloat16, which has 8 significant bits: from 256 on,"
     " several positions become one. Positions stay integers until they meet float64"
     " (or float32) frequencies."),
    ("float16-positions",
     lambda p, w: _both(_angles(p.half(), w)),
     "The positions went through float16, which has 11 significant bits: from 2,048 on,"
     " neighbours become one. Keep them integers until they meet the frequencies."),
    ("rounded-frequencies",
     lambda p, w: _both(_angles(p, w.bfloat16())),
     "The frequencies went through bfloat16. Small at position 1, but the error grows"
     " with the position until the angle is unrelated. This is what model.bfloat16()"
     " does to a buffer."),
    ("degrees", lambda p, w: _both(torch.deg2rad(_angles(p, w))),
     "Position times frequency is already in radians. You turned it from degrees into"
     " radians once more."),
    ("turns-not-radians", lambda p, w: _both(2 * math.pi * _angles(p, w)),
     "Position times frequency is already in radians: no 2 pi belongs here. Yours"
     " brings the first pair back to its start at every token."),
    ("swapped-cos-and-sin", lambda p, w: _both(_angles(p, w))[::-1],
     "The two tables are swapped. At position 0 nothing turns: there the first table"
     " must be all ones, the second all zeros."),
    ("counts-from-one", lambda p, w: _both(_angles(p + 1, w)),
     "Every angle is one token too far. Scores do not notice, cached keys from another"
     " program do: use the positions as they are."),
    ("recounts-from-zero", lambda p, w: _both(_angles(torch.arange(len(p)), w)),
     "You count the rows instead of reading the positions. Right for a whole prompt,"
     " wrong for the next token of a decoder, which would sit at position 0 for ever."),
    ("transposed", lambda p, w: _both(_angles(p, w).T),
     "Rows and columns are swapped: one row for each position, one column for each"
     " pair."),
    ("doubled-end-to-end",
     lambda p, w: _both(torch.cat([_angles(p, w)] * 2, dim=-1)),
     "This is the table of full head width for the half layout. Here one column for"
     " each pair is wanted: the layout is decided later, when the table is used."),
    ("doubled-in-pairs",
     lambda p, w: _both(_angles(p, w).repeat_interleave(2, dim=-1)),
     "This is the table of full head width for the interleaved layout. Here one"
     " column for each pair is wanted: the layout is decided later, when the table is"
     " used."),
    ("index-for-frequency",
     lambda p, w: _both(_angles(p, torch.arange(len(w)))),
     "The angle is position times the number of the pair. It must be position times the"
     " pair's frequency."),
    ("ignores-the-frequencies",
     lambda p, w: _both(_angles(p, torch.ones_like(w))),
     "All columns turn one radian a token. Each pair has its own frequency."),
    ("divides-by-the-frequency", lambda p, w: _both(_angles(p, 1 / w)),
     "Position divided by frequency. A frequency is radians per token, so the angle is"
     " their product."),
    ("clockwise", lambda p, w: (_angles(p, w).cos(), -_angles(p, w).sin()),
     "The sines have the other sign: everything turns clockwise. Fine if all programs"
     " do it, wrong against other people's weights."),
    ("cosine-twice", lambda p, w: (_angles(p, w).cos(), _angles(p, w).cos()),
     "Both tables are cosines. The second must be sines: all zeros at position 0."),
)


def check_rotary_tables(f) -> Diagnosis:
    """Check ``f(positions, inv_freq) -> (cos, sin)``, each [seq, head_dim/2].

    The tolerance grows with the position as float32 angles do: an angle of 4,000
    radians in float32 is off by up to 2e-4.

    >>> check_rotary_tables(rope.rotary_tables).status
    'right'
    """
    cases = []
    for places, head_dim in (([0, 1, 2, 3, 4, 5], 8), ([7, 257, 1025, 2049, 4093], 16),
                             ([3, 1, 2, 5, 4, 1000], 8)):
        positions = torch.tensor(places)
        frequencies = rope.inverse_frequencies(head_dim)
        angles = _angles(positions, frequencies)
        limit = 4 * ROUNDING * angles + SLACK * ROUNDING / 4
        cases.append(case((positions, frequencies), _both(angles),
                          tolerance=(limit, limit)))
    return check(f, cases, _mistakes("check_rotary_tables", _TABLES),
                 "Position 0 is (1, 0), far positions keep their digits.")


# ------------------------------------------------------------------------ the rotation
def _turned(x, cos, sin, layout="interleaved"):
    first, second = _two(x, layout)
    return _one(first * cos - second * sin, first * sin + second * cos, layout)


def _other(layout: str) -> str:
    return "half" if layout == "interleaved" else "interleaved"


def _wide_table_mixed(x, cos, sin, layout):
    # a table repeated for one layout, multiplied with the quarter turn of the other
    first, second = _two(x, _other(layout))
    quarter = _one(-second, first, _other(layout))
    wide_cos, wide_sin = _one(cos, cos, layout), _one(sin, sin, layout)
    return x * wide_cos + quarter * wide_sin


def _quarter_mixed(x, cos, sin, layout):
    first, second = _two(x, layout)
    quarter = _one(-second, first, layout)
    wide_cos, wide_sin = (_one(t, t, _other(layout)) for t in (cos, sin))
    return x * wide_cos + quarter * wide_sin


def _stored_too_early(x, cos, sin, layout):
    first, second = _two(x, layout)
    first = first * cos - second * sin
    return _one(first, first * sin + second * cos, layout)


def _heads_as_sequence(x, cos, sin, layout):
    heads = x.shape[1]
    return _turned(x, cos[:heads, None], sin[:heads, None], layout)


def _mirrored(x, cos, sin, layout):
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:].flip(-1)
    return torch.cat([first * cos - second * sin,
                      (first * sin + second * cos).flip(-1)], dim=-1)


def _in_place(x, cos, sin, layout):
    first, second = _two(x, layout)
    turned = first * cos - second * sin, first * sin + second * cos
    first.copy_(turned[0])
    second.copy_(turned[1])
    return x


def _only_head_zero(x, cos, sin, layout):
    return torch.cat([_turned(x[:, :1], cos, sin, layout), x[:, 1:]], dim=1)


def _half_the_pairs(x, cos, sin, layout):
    keep = torch.arange(cos.shape[-1]) < cos.shape[-1] // 2
    return _turned(x, torch.where(keep, cos, 1.0), torch.where(keep, sin, 0.0), layout)


def _pairwise(first_new: Callable, second_new: Callable) -> Callable:
    """A wrong program from two formulas in (a, b, cos, sin)."""
    def program(x, cos, sin, layout):
        a, b = _two(x, layout)
        return _one(first_new(a, b, cos, sin), second_new(a, b, cos, sin), layout)
    return program


_TURNS = (
    ("{other}-layout", lambda x, c, s, layout: _turned(x, c, s, _other(layout)),
     "This is the {other} layout. Position 0 cannot show it, there nothing"
     " turns: try m = 1. Both layouts are right by themselves; q, k and the"
     " weights must agree."),
    ("rotates-clockwise", lambda x, c, s, layout: _turned(x, c, -s, layout),
     "You rotate clockwise: the sines have the other sign. The score then depends"
     " on n - m, which weights trained the other way do not expect."),
    ("swapped-cos-and-sin", lambda x, c, s, layout: _turned(x, s, c, layout),
     "cos and sin are swapped. See it at position 0, where x must not change."),
    ("forgets-the-minus-sign", _pairwise(lambda a, b, cos, sin: a * cos + b * sin,
                                         lambda a, b, cos, sin: a * sin + b * cos),
     "The minus is missing in the first number of each pair: this is no rotation."
     " Look at the norm of the result, it must stay as it was."),
    ("two-minus-signs", _pairwise(lambda a, b, cos, sin: a * cos - b * sin,
                                  lambda a, b, cos, sin: b * cos - a * sin),
     "Both numbers of a pair got a minus; one must have a plus. Look at the norm:"
     " it must stay as it was."),
    ("forgets-the-sine-term", _pairwise(lambda a, b, cos, sin: a * cos,
                                        lambda a, b, cos, sin: b * cos),
     "Only x * cos: the half with sin is missing, so the vector shrinks where it"
     " should turn."),
    ("does-not-swap", _pairwise(lambda a, b, cos, sin: a * cos - a * sin,
                                lambda a, b, cos, sin: b * cos + b * sin),
     "Each number meets itself in the sine term. It must meet its partner."),
    ("mixed-table-and-turn", _wide_table_mixed,
     "The tables are repeated for the {layout} layout, but the swap is that of the"
     " {other} layout. That is no rotation in either: the norm changes."),
    ("mixed-turn-and-table", _quarter_mixed,
     "The swap is that of the {layout} layout, but the tables are repeated for the"
     " {other} layout. That is no rotation in either: the norm changes."),
    ("reads-what-it-just-wrote", _stored_too_early,
     "The second number of a pair is computed from the new first number. Keep the"
     " old one until both are done."),
    ("head-axis-for-sequence-axis", _heads_as_sequence,
     "The table was laid along the heads: every head got one angle and all"
     " positions the same. In [batch, heads, seq, head_dim] positions run along"
     " axis 2."),
    ("mirrored-pairs", _mirrored,
     "You pair the first number with the last, the second with the last but one."
     " In the {layout} layout the partner is {partner}."),
    ("only-the-first-head", _only_head_zero,
     "Only head 0 is rotated. All heads of one token have the same position."),
    ("half-of-the-pairs", _half_the_pairs,
     "Only the first half of the pairs turns. That is partial rotary; here the"
     " tables have a column for every pair."),
    ("ignores-the-position", lambda x, c, s, layout: x,
     "The result is x itself at every position. That is right for V, which is never"
     " rotated; q and k must turn."),
    ("one-row-for-all", lambda x, c, s, layout: _turned(x, c[-1], s[-1], layout),
     "All positions got the last row of the table. Each position has its own row."),
    ("first-row-for-all", lambda x, c, s, layout: _turned(x, c[0], s[0], layout),
     "All positions got the first row of the table. Each position has its own"
     " row."),
    ("one-frequency-for-all-pairs",
     lambda x, c, s, layout: _turned(x, c[:, :1], s[:, :1], layout),
     "All pairs turn like pair 0. Each pair has its own column of the table."),
    ("slowest-pair-first",
     lambda x, c, s, layout: _turned(x, c.flip(1), s.flip(1), layout),
     "The columns are used from the last to the first: pair 0 must be the"
     " fastest."),
    ("sequence-backwards",
     lambda x, c, s, layout: _turned(x, c.flip(0), s.flip(0), layout),
     "The rows are used from the last to the first: row m belongs to position m."),
    ("one-position-late",
     lambda x, c, s, layout: _turned(x, c.roll(1, 0), s.roll(1, 0), layout),
     "Each position uses the row before its own, and the first the last."),
    ("rotates-twice",
     lambda x, c, s, layout: _turned(_turned(x, c, s, layout), c, s, layout),
     "Everything is rotated twice, by double the angle. Is the function called in"
     " two places?"),
    ("adds-instead-of-turning",
     lambda x, c, s, layout: x + _one(c, s, layout),
     "You add the table to x, as the sinusoids of 2017 did. A rotation multiplies:"
     " the norm must stay as it was."),
    ("changes-its-input", _in_place,
     "Your function writes into the tensor it was given. In a model that spoils the"
     " residual stream of the caller: make a new tensor."),
    ("half-precision",
     lambda x, c, s, layout: _turned(x.bfloat16(), c.bfloat16(), s.bfloat16(), layout),
     "The formula is right, but the numbers went through bfloat16. Compute in"
     " float32 and cast once, at the end."),
)


def _rotations(layout: str) -> tuple:
    """The wrong programs of check_apply_rotary for one layout."""
    partner = {"interleaved": "the neighbour", "half": "half a head away"}[layout]
    words = {"layout": layout, "other": _other(layout), "partner": partner}
    return tuple((name.format(**words), partial(program, layout=layout),
                  explanation.format(**words)) for name, program, explanation in _TURNS)


def _rotation_hint(answers: list[Answer], cases: list[Case]) -> Diagnosis | None:
    """What a rotation keeps and this one does not, if nothing else is known of it."""
    given, found = cases[0].inputs[0], answers[0].numbers[0]
    result = torch.tensor(found, dtype=torch.float64).view(given.shape)
    if (result[..., 0, :] - given[..., 0, :]).abs().max() > 1e-4:
        return wrong(
            "moves-position-zero",
            "Position 0 changed. There cos is 1 and sin is 0, so x must come back as"
            " it was.")
    norms = (result.norm(dim=-1) - given.double().norm(dim=-1)).abs().max()
    if norms > 1e-4:
        return wrong(
            "changes-the-norm",
            f"The length of the vectors changes by up to {norms:.2g}: this is not a"
            " rotation.")
    return None


def check_apply_rotary(f, *, layout: str = "interleaved") -> Diagnosis:
    """Check ``f(x, cos, sin) -> like x``, x [batch, heads, seq, head_dim].

    cos and sin are [seq, head_dim/2]. ``layout`` says which is wanted, "interleaved"
    or "half"; ValueError for another.

    >>> check_apply_rotary(rope.apply_rotary).status
    'right'
    """
    if layout not in ("interleaved", "half"):
        raise ValueError(f"layout must be 'interleaved' or 'half', got {layout!r}")
    cases = []
    for seed, first in ((1, 0), (2, 0), (3, 11)):
        x = _random(2, 3, 5, 8, seed=seed)
        cos, sin = rope.rotary_tables(torch.arange(first, first + 5),
                                      rope.inverse_frequencies(8))
        wanted = _turned(x.double(), cos.double(), sin.double(), layout)
        cases.append(case((x, cos, sin), wanted))
    return check(f, cases, _mistakes("check_apply_rotary", _rotations(layout)),
                 f"A rotation in the {layout} layout: position 0 stays, norms are"
                 " kept.",
                 hint=_rotation_hint)


# --------------------------------------------------------------------- partial rotary
def _part(x, width, exponent_width, base, layout="interleaved"):
    """Rotate the first ``width`` numbers at positions 0, 1, ...; pass the rest."""
    frequencies = rope.inverse_frequencies(exponent_width, base)[:width // 2]
    cos, sin = _both(_angles(torch.arange(x.shape[-2]), frequencies))
    turned = _turned(x[..., :width].double(), cos, sin, layout).to(x.dtype)
    return torch.cat([turned, x[..., width:]], dim=-1)


def _partners_across_the_head(x, r, base):
    half, x = x.shape[-1] // 2, x.clone()
    pairs = torch.cat([x[..., :r // 2], x[..., half:half + r // 2]], dim=-1)
    turned = _part(pairs, r, r, base, "half")
    x[..., :r // 2], x[..., half:half + r // 2] = turned.chunk(2, dim=-1)
    return x


_PARTS = (
    ("exponents-from-the-head-width",
     lambda x, r, base: _part(x, r, x.shape[-1], base),
     "The exponents are divided by the head width. Partial rotary treats the rotated"
     " part as a head of its own: divide by rotary_dim. (The other rule exists under"
     " its own name, proportional.)"),
    ("rotates-everything", lambda x, r, base: _part(x, x.shape[-1], x.shape[-1], base),
     "All numbers turn. Only the first rotary_dim do, the rest passes through bit for"
     " bit."),
    ("rotates-the-last-part",
     lambda x, r, base: torch.cat([x[..., :-r], _part(x[..., -r:], r, r, base)], -1),
     "You rotate the last rotary_dim numbers. Wanted are the first."),
    ("drops-the-rest", lambda x, r, base: _part(x, r, r, base)[..., :r],
     "The numbers that do not turn are gone. They pass through, behind the rotated"
     " ones."),
    ("clears-the-rest",
     lambda x, r, base: torch.nn.functional.pad(_part(x, r, r, base)[..., :r],
                                                (0, x.shape[-1] - r)),
     "The numbers that do not turn became zero. They pass through as they are."),
    ("half-layout", lambda x, r, base: _part(x, r, r, base, "half"),
     "The rotated part is in the half layout. Wanted here are neighbours."),
    ("partners-across-the-head", _partners_across_the_head,
     "A partner half a head away, taken from the head width: in the half layout it is"
     " half of rotary_dim, and here the partners are neighbours."),
    ("passes-everything", lambda x, r, base: x,
     "Nothing turns. The first rotary_dim numbers must."),
)


def check_partial_rotary(f) -> Diagnosis:
    """Check ``f(x, rotary_dim, base) -> like x``; positions 0, 1, ... along axis -2.

    The first rotary_dim numbers turn, neighbours paired, with exponents over
    rotary_dim; the others pass through.

    >>> check_partial_rotary(lambda x, r, base: _part(x, r, r, base)).status
    'right'
    """
    cases = []
    for seed, width, base in ((1, 4, 1e4), (2, 4, 1e4), (3, 6, 5e5)):
        x = _random(1, 2, 5, 12, seed=seed)
        cases.append(case((x, width, base), _part(x.double(), width, width, base)))
    return check(f, cases, _mistakes("check_partial_rotary", _PARTS),
                 "The first part turns as a head of its own, the rest is untouched.")


# -------------------------------------------------------------------------- the layouts
def _row_order(head_dim: int) -> list[int]:
    return [*range(0, head_dim, 2), *range(1, head_dim, 2)]


def _reordered(weight, n_heads, order=None):
    head_dim = weight.shape[0] // n_heads
    rows = weight.unflatten(0, (n_heads, head_dim))
    return rows[:, order or _row_order(head_dim)].flatten(0, 1)


def _inverse_order(head_dim: int) -> list[int]:
    return sorted(range(head_dim), key=_row_order(head_dim).__getitem__)


def _head_axis_last(weight, n_heads):
    head_dim = weight.shape[0] // n_heads
    rows = weight.unflatten(0, (head_dim, n_heads))
    return rows[_row_order(head_dim)].flatten(0, 1)


def _columns(weight, n_heads):
    if weight.dim() == 1:
        return weight
    return _reordered(weight.T.contiguous(), n_heads).T


def _first_head_only(weight, n_heads):
    head_dim = weight.shape[0] // n_heads
    return torch.cat([_reordered(weight[:head_dim], 1), weight[head_dim:]])


def _with_signs(weight, n_heads):
    head_dim = weight.shape[0] // n_heads
    rows = _reordered(weight, n_heads).unflatten(0, (n_heads, 2, head_dim // 2)).clone()
    rows[:, 1] *= -1
    return rows.flatten(0, 2)


_LAYOUTS = (
    ("wrong-direction",
     lambda w, n: _reordered(w, n, _inverse_order(w.shape[0] // n)),
     "This is the way back, from half to interleaved. For heads of 4 the two agree;"
     " take a head of 8 to see the difference."),
    ("forgets-the-heads", lambda w, n: _reordered(w, 1),
     "The whole matrix was sorted as if it were one head, so rows moved from one head"
     " to another. Split the rows into heads first."),
    ("permutes-the-columns", _columns,
     "You moved the columns (what the matrix reads) instead of the rows (what it"
     " writes). In torch a weight is [out, in]: a head is a block of rows."),
    ("nothing-moved", lambda w, n: w,
     "The weight came back as it was. Position 0 would pass, every other position"
     " fails."),
    ("fixed-number-of-heads", lambda w, n: _reordered(w, 4),
     "The number of heads is fixed in your function. With grouped queries the keys have"
     " fewer heads than the queries: use n_heads."),
    ("head-axis-last", _head_axis_last,
     "The rows were split as [head_dim, n_heads]. They lie head by head: [n_heads,"
     " head_dim]."),
    ("only-the-first-head", _first_head_only,
     "Only the first head was converted. Every head needs it."),
    ("changes-signs", _with_signs,
     "The order is right, but half of the rows changed sign. Converting moves rows, it"
     " never changes a number."),
    ("halves-swapped",
     lambda w, n: w.unflatten(0, (n, 2, -1)).flip(1).flatten(0, 2),
     "You swapped the two halves of each head. Wanted: first all first numbers of the"
     " pairs, then all second numbers."),
)


def check_convert_layout(f) -> Diagnosis:
    """Check ``f(weight, n_heads) -> like weight``: rows from interleaved to half.

    Called with W_q (4 heads), W_k (2 heads, grouped queries) and a bias (one axis).

    >>> check_convert_layout(lambda w, n: rope.convert_layout(w, n, to="half")).status
    'right'
    """
    weights = ((_random(32, 32, seed=1), 4), (_random(16, 32, seed=2), 2),
               (_random(16, 32, seed=3), 2), (_random(32, seed=4), 4))
    cases = [case(one, _reordered(*one)) for one in weights]
    found = check(f, cases[:3], _mistakes("check_convert_layout", _LAYOUTS), "")
    if not found:
        return found
    whole = check(f, cases, _mistakes("check_convert_layout", _LAYOUTS),
                  "W_q, W_k with fewer heads, and a bias: every head in its place.")
    if whole.status == "wrong":
        return wrong(
            "forgets-the-bias",
            "Right for matrices, not for a bias [heads * head_dim]: a bias has the"
            f" same rows and must move with them. {whole.message}")
    return whole


# --------------------------------------------------------------------------- decoding
def _counted(mask):
    return mask.long().cumsum(-1) - 1


def _right_positions(mask, n_new):
    return _counted(mask).clamp(min=0)[:, mask.shape[1] - n_new:]


def _row(values, mask):
    return values.expand(mask.shape[0], -1)


_DECODING = (
    ("starts-at-zero-again",
     lambda mask, n: _row(torch.arange(n), mask),
     "New tokens start at position 0 again. They follow what is in the cache: without"
     " this, every decoded token sits at the start of the text."),
    ("counts-the-padding",
     lambda mask, n: _row(torch.arange(mask.shape[1])[-n:], mask),
     "Padding was counted. A position is the number of real tokens before this one in"
     " the same prompt."),
    ("one-row-for-all", lambda mask, n: _row(_right_positions(mask[:1], n), mask),
     "All prompts got the positions of the first. Each prompt has its own padding."),
    ("counts-from-one",
     lambda mask, n: mask.long().cumsum(-1)[:, mask.shape[1] - n:],
     "One too far: the first real token is at position 0."),
    ("adds-the-prompt-twice",
     lambda mask, n: _right_positions(mask, n) + mask.shape[1] - n,
     "The length of the cache was added to positions that already contain it."),
    ("takes-the-first-columns",
     lambda mask, n: _counted(mask).clamp(min=0)[:, :n],
     "These are the positions of the first tokens. The new ones are the last n_new."),
    ("stops-at-n-new",
     lambda mask, n: _row(torch.tensor([*range(mask.shape[1] - n, n)]), mask),
     "The count runs from the cache length up to n_new. It must run up to the cache"
     " length plus n_new."),
    ("one-position-for-all-new",
     lambda mask, n: _counted(mask).clamp(min=0)[:, -1:].expand(-1, n),
     "All new tokens got the position of the last. Each is one further than the one"
     " before."),
    ("one-step-behind",
     lambda mask, n: (_right_positions(mask, n) - 1).clamp(min=0),
     "One too few: the new token got the position of the last token in the cache."),
)


def _position_hint(answers: list[Answer], cases: list[Case]) -> Diagnosis | None:
    if any(value < 0 for answer in answers for value in answer.numbers[0]):
        return wrong(
            "negative-positions",
            "A padding token got a negative position. It is masked, so any position"
            " from 0 up will do, but a table has no row below 0.")
    if any(dtype.is_floating_point for answer in answers for dtype in answer.dtypes):
        return wrong(
            "floating-positions",
            "Positions are integers. In half precision floating positions collide"
            " from 256 on.")
    return None


def check_decode_positions(f) -> Diagnosis:
    """Check ``f(mask, n_new) -> [batch, n_new]``, the positions of the last tokens.

    mask [batch, cached + n_new] is 1 at real tokens, 0 at padding (on the left). The
    result holds integers; at padding any position from 0 up is accepted.

    >>> check_decode_positions(_right_positions).status
    'right'
    """
    masks = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    other = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]])
    cases = [case((mask, n), _right_positions(mask, n), tolerance=(0.25,),
                  counts=mask[:, mask.shape[1] - n:].bool())
             for mask, n in ((masks, 1), (masks, 2), (masks, 6), (other, 2),
                             (other, 5))]
    return check(f, cases, _mistakes("check_decode_positions", _DECODING),
                 "Each new token follows the real tokens of its own prompt.",
                 hint=_position_hint, also=_position_hint)


# --------------------------------------------------------------------------- catalogue
def _mistakes(check_name: str, rows: tuple) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, check_name, function, explanation)
                 for name, function, explanation in rows)


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs that the checks of this lesson know by name.

    >>> {mistake.check for mistake in known_mistakes()} == {
    ...     "check_rotate_pairs", "check_inverse_frequencies", "check_rotary_tables",
    ...     "check_apply_rotary", "check_partial_rotary", "check_convert_layout",
    ...     "check_decode_positions"}
    True
    """
    catalogue = (("check_rotate_pairs", _QUARTERS),
                 ("check_inverse_frequencies", _FREQUENCIES),
                 ("check_rotary_tables", _TABLES),
                 ("check_apply_rotary", _rotations("interleaved")),
                 ("check_partial_rotary", _PARTS),
                 ("check_convert_layout", _LAYOUTS),
                 ("check_decode_positions", _DECODING))
    return tuple(mistake for name, rows in catalogue
                 for mistake in _mistakes(name, rows))
