"""YaRN and its relatives: settings in, scaled inverse frequencies out.

Everything here is plain float64 arithmetic on the CPU. Each method answers one
question for each pair of dimensions: by what number is its frequency divided when a
model trained on ``trained_length`` tokens shall read ``factor`` times as many?

Reference, section 5. Papers: YaRN (arXiv:2309.00071v2), Position Interpolation
(arXiv:2306.15595), LongRoPE (arXiv:2402.13753).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from apex_lessons.errors import (
    floating_tensor,
    one_of,
    real_number,
    whole_number,
    yes_or_no,
)
from apex_lessons.rope import inverse_frequencies, wavelengths

RAMPS = ("pair", "rotations")


class ScaledFrequencies(NamedTuple):
    """What a scaling method gives to the rotary embedding.

    ``inv_freq``: float64 [head_dim/2], radians per token. ``attention_factor``: a float
    that multiplies cos and sin; both q and k carry it, so scores get its square.
    """

    inv_freq: Tensor
    attention_factor: float


def position_interpolation(
    head_dim: int, *, base: float, factor: float
) -> ScaledFrequencies:
    """Position interpolation ("linear"): every frequency divided by the factor.

    Formula: inv_freq'_i = inv_freq_i / factor.
    Returns float64 [head_dim/2]. Raises ValueError for factor < 1.
    Source: Position Interpolation, Eq. 4; YaRN, Eq. 10.

    >>> position_interpolation(4, base=10_000.0, factor=4.0).inv_freq.tolist()
    [0.25, 0.0025]
    """
    factor = _factor(factor)
    # inv_freq' = inv_freq / factor
    return ScaledFrequencies(inverse_frequencies(head_dim, base) / factor, 1.0)


def ntk_aware(head_dim: int, *, base: float, factor: float) -> ScaledFrequencies:
    """NTK-aware scaling: a larger base, chosen so that the slowest pair is divided by
    factor.

    Formula: base' = base * factor ** (d / (d - 2)) with d = head_dim.
    Returns float64 [head_dim/2]; the fastest pair is unchanged. Raises ValueError for
    head_dim <= 2 (one pair cannot be both) and factor < 1.
    Source: YaRN, Definition 1, Eq. 14-16.

    >>> scaled = ntk_aware(8, base=10_000.0, factor=4.0).inv_freq
    >>> [round(value, 6) for value in scaled.tolist()]
    [1.0, 0.062996, 0.003969, 0.00025]
    """
    # base' = base * factor^(d / (d - 2))
    larger_base = _stretched_base(head_dim, base, _factor(factor))
    return ScaledFrequencies(inverse_frequencies(head_dim, larger_base), 1.0)


def dynamic_ntk(
    head_dim: int, *, base: float, factor: float, trained_length: int, length: int
) -> ScaledFrequencies:
    """Dynamic NTK: the base grows with the length of the text at hand.

    Formula: base' = base * (factor * length / trained - (factor - 1)) ** (d / (d - 2)),
    d = head_dim; plain RoPE while length <= trained_length. Lengths are in tokens.
    Returns float64 [head_dim/2]. Keys cached under another length carry another base:
    cache them before the rotation. Raises ValueError for head_dim <= 2, factor < 1.
    Source: YaRN, section 3.3; the formula is that of transformers' "dynamic" type.

    >>> scaled = dynamic_ntk(8, base=10_000.0, factor=2.0, trained_length=64, length=64)
    >>> bool((scaled.inv_freq == inverse_frequencies(8)).all())
    True
    """
    factor, trained_length = _factor(factor), _trained_length(trained_length)
    length = whole_number("length", length, at_least=1)
    # base' = base * (factor * length / trained - (factor - 1))^(d / (d - 2))
    grown = factor * length / trained_length - (factor - 1)
    stretch = grown if length > trained_length else 1.0
    larger_base = _stretched_base(head_dim, base, stretch)
    return ScaledFrequencies(inverse_frequencies(head_dim, larger_base), 1.0)


def ntk_by_parts(
    head_dim: int,
    *,
    base: float,
    factor: float,
    trained_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "pair",
    truncate: bool = True,
) -> ScaledFrequencies:
    """NTK-by-parts: fast pairs kept, slow pairs divided by factor, a ramp between.

    Formula: inv_freq' = (1 - ramp) * inv_freq + ramp * inv_freq / factor. A pair that
    turns more than ``beta_fast`` times in ``trained_length`` tokens has ramp 0, one
    that turns less than ``beta_slow`` times has ramp 1. Between, ``ramp="pair"`` is
    linear in the pair's index (the authors' code and every library),
    ``ramp="rotations"`` in the number of turns (the paper's Eq. 18). ``truncate``
    rounds the pair ramp's ends outwards. Returns float64 [head_dim/2], attention_factor
    1.0. Raises ValueError for factor < 1, beta_fast < beta_slow, and a trained length
    in which no pair makes beta_slow turns. Source: YaRN, Definition 2, Eq. 17-20.

    >>> ntk_by_parts(8, base=1e4, factor=4.0, trained_length=4096).inv_freq.tolist()
    [1.0, 0.1, 0.00625, 0.00025]
    """
    factor, trained_length = _factor(factor), _trained_length(trained_length)
    beta_fast, beta_slow = _betas(beta_fast, beta_slow)
    plain = inverse_frequencies(head_dim, base)
    if one_of("ramp", ramp, RAMPS) == "pair":
        share = pair_ramp(
            head_dim, base, trained_length, beta_fast, beta_slow, truncate
        )
    else:
        share = rotations_ramp(plain, trained_length, beta_fast, beta_slow)
    # inv_freq' = (1 - ramp) * inv_freq + ramp * inv_freq / factor
    return ScaledFrequencies(torch.lerp(plain, plain / factor, share), 1.0)


def yarn(
    head_dim: int,
    *,
    base: float,
    factor: float,
    trained_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    ramp: str = "pair",
    truncate: bool = True,
    attention_factor: float | None = None,
    mscale: float | None = None,
    mscale_all_dim: float | None = None,
) -> ScaledFrequencies:
    """YaRN: the frequencies of ``ntk_by_parts`` and a temperature on the scores.

    Formula: attention_factor = 0.1 * ln(factor) + 1 unless given; with ``mscale`` and
    ``mscale_all_dim`` it is the ratio g(mscale) / g(mscale_all_dim), where g(m) = 0.1 *
    m * ln(factor) + 1. The factor goes on cos and sin, so scores get its square. A
    given ``attention_factor`` is used as it is, whatever the two scales say. Returns
    float64 [head_dim/2] and a float. Raises ValueError as ``ntk_by_parts`` does, and
    where one of mscale and mscale_all_dim comes alone. Source: YaRN, Definition 3, Eq.
    21-22; DeepSeek-V3's inference code for the scales.

    >>> round(yarn(64, base=1e4, factor=40.0, trained_length=4096).attention_factor, 6)
    1.368888
    """
    inv_freq, _ = ntk_by_parts(
        head_dim, base=base, factor=factor, trained_length=trained_length,
        beta_fast=beta_fast, beta_slow=beta_slow, ramp=ramp, truncate=truncate,
    )
    if (mscale is None) != (mscale_all_dim is None):
        raise ValueError(
            f"mscale={mscale} and mscale_all_dim={mscale_all_dim}: give both"
            " (the factor is their ratio) or neither"
        )
    chosen = _temperature(factor, attention_factor, mscale, mscale_all_dim)
    return ScaledFrequencies(inv_freq, chosen)


def _temperature(factor, attention_factor, mscale, mscale_all_dim) -> float:
    """The attention factor: as given, the ratio of the two scales, or YaRN's own."""
    if attention_factor is not None:
        return real_number("attention_factor", attention_factor, above=0.0)
    if mscale is None:
        return yarn_attention_factor(factor)
    # attention_factor = g(mscale) / g(mscale_all_dim)
    above, below = (yarn_attention_factor(factor, m) for m in (mscale, mscale_all_dim))
    return above / below


def llama3(
    head_dim: int,
    *,
    base: float,
    factor: float,
    trained_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
) -> ScaledFrequencies:
    """Llama 3.1's rule: by parts as well, linear in the turns, between 1 and 4 of them.

    Formula: r = trained_length / wavelength; r > high: kept; r < low: divided by
    factor; between: (1 - s) * inv_freq / factor + s * inv_freq with s = (r - low) /
    (high - low). Returns float64 [head_dim/2], attention_factor 1.0. Raises ValueError
    for factor < 1 and high_freq_factor < low_freq_factor. Source:
    meta-llama/llama-models, models/llama3/model.py, apply_scaling.

    >>> scaled = llama3(128, base=500_000.0, factor=8.0, trained_length=8192)
    >>> plain = inverse_frequencies(128, 500_000.0)
    >>> regimes(plain, scaled.inv_freq, 8.0).bincount().tolist()
    [29, 6, 29]
    """
    factor, trained_length = _factor(factor), _trained_length(trained_length)
    low = real_number("low_freq_factor", low_freq_factor, above=0.0)
    high = real_number("high_freq_factor", high_freq_factor, above=0.0)
    if high < low:
        raise ValueError(
            f"high_freq_factor {high:g} is below low_freq_factor {low:g}: both"
            " count turns in the trained length, the fast end comes first"
        )
    plain = inverse_frequencies(head_dim, base)
    share = rotations_ramp(plain, trained_length, high, low)
    return ScaledFrequencies(torch.lerp(plain, plain / factor, share), 1.0)


def longrope(
    head_dim: int,
    *,
    base: float,
    factor: float,
    trained_length: int,
    factors: Sequence[float] | Tensor,
    attention_factor: float | None = None,
) -> ScaledFrequencies:
    """LongRoPE: a divisor for each pair, found by search and shipped with the model.

    Formula: inv_freq'_i = inv_freq_i / factors_i;
    attention_factor = sqrt(1 + ln(factor) / ln(trained_length)) unless given.
    ``factors``: head_dim/2 positive numbers (the short or the long list of the model).
    Returns float64 [head_dim/2] and a float. Raises ValueError for a list of another
    length, for a divisor that is not positive, and for factor < 1.
    Source: LongRoPE, Eq. 3; microsoft/LongRoPE, rope/longrope.py.

    >>> settings = {"base": 1e4, "factor": 32.0, "trained_length": 4096}
    >>> longrope(4, **settings, factors=[1, 4]).inv_freq.tolist()
    [1.0, 0.0025]
    """
    factor = _factor(factor)
    trained_length = whole_number(
        "trained_length", trained_length, at_least=2,
        hint="the attention factor divides by its logarithm",
    )
    plain = inverse_frequencies(head_dim, base)
    divisors = _divisors(factors)
    if len(divisors) != len(plain):
        raise ValueError(f"factors has {len(divisors)} entries, head_dim {head_dim} has"
                         f" {len(plain)} pairs: give one divisor a pair")
    if attention_factor is None:
        # attention_factor = sqrt(1 + ln(factor) / ln(trained_length))
        attention_factor = math.sqrt(1 + math.log(factor) / math.log(trained_length))
    chosen = real_number("attention_factor", attention_factor, above=0.0)
    # inv_freq'_i = inv_freq_i / factors_i
    return ScaledFrequencies(plain / plain.new_tensor(divisors), chosen)


def proportional(
    head_dim: int, *, base: float, partial_rotary_factor: float, factor: float = 1.0
) -> ScaledFrequencies:
    """Proportional RoPE: the first share of the pairs turns, the others stand still.

    Formula: inv_freq_i = base^(-2i/head_dim) / factor for i < partial_rotary_factor *
    head_dim / 2, else 0. Unlike partial rotary, the exponent keeps the whole head_dim.
    Returns float64 [head_dim/2], attention_factor 1.0. Raises ValueError for a share
    outside (0, 1] and factor < 1. Source: transformers 5, rope type "proportional".

    >>> proportional(8, base=1e4, partial_rotary_factor=0.5).inv_freq.tolist()
    [1.0, 0.1, 0.0, 0.0]
    """
    share = real_number("partial_rotary_factor", partial_rotary_factor, above=0.0)
    if share > 1:
        raise ValueError(
            f"partial_rotary_factor must be at most 1, got {share:g}: it is the"
            " share of the pairs that turn"
        )
    plain = inverse_frequencies(head_dim, base) / _factor(factor)
    turning_pairs = int(share * head_dim // 2)
    if turning_pairs == 0:
        raise ValueError(
            f"partial_rotary_factor {share:g} of head_dim {head_dim} leaves no pair"
            f" that turns: use at least {2 / head_dim:g}"
        )
    turning = torch.arange(len(plain), device="cpu") < turning_pairs
    return ScaledFrequencies(torch.where(turning, plain, 0.0), 1.0)


def apex1(
    head_dim: int,
    *,
    base: float,
    factor: float,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
) -> ScaledFrequencies:
    """APEX-1's rule as printed: it compares wavelengths in tokens, not turns.

    Formula, with w = 2 pi / inv_freq: w < beta_fast: kept; w > beta_slow * factor:
    divided by factor; between: divided by t * factor + (1 - t), t = (w / beta_slow - 1)
    / (factor - 1), which is w / beta_slow. Where two conditions hold, the first wins,
    as in its code. No trained length enters; lesson 04 shows what that does. Kept as it
    is for comparison. Returns float64 [head_dim/2], attention_factor 1.0 (its code
    computes one and never applies it). Raises ValueError for factor < 1 and beta_fast <
    beta_slow. Source: reference, sections 5.3 and 5.4; APEX-1, apex/model/rope.py.

    >>> apex1(32, base=1e4, factor=32.0).inv_freq[8].item()  # YaRN: 0.00585
    0.0003125
    """
    factor = _factor(factor)
    beta_fast, beta_slow = _betas(beta_fast, beta_slow)
    plain = inverse_frequencies(head_dim, base)
    if factor == 1:
        return ScaledFrequencies(plain, 1.0)
    wavelength = wavelengths(plain)
    # t = (w / beta_slow - 1) / (factor - 1);  divisor = t * factor + (1 - t)
    t = (wavelength / beta_slow - 1) / (factor - 1)
    scaled = plain / (t * factor + (1 - t))
    scaled = torch.where(wavelength > beta_slow * factor, plain / factor, scaled)
    return ScaledFrequencies(torch.where(wavelength < beta_fast, plain, scaled), 1.0)


def apex1_score_factor(factor: float) -> float:
    """The printed temperature of APEX-1: 0.1 * ln(factor) + 1, on the scores, once.

    YaRN's scores get the square of this number. Raises ValueError for factor < 1.
    Source: reference, section 5.5.

    >>> round(apex1_score_factor(32.0), 6)
    1.346574
    """
    return yarn_attention_factor(factor)


def yarn_attention_factor(factor: float, mscale: float = 1.0) -> float:
    """YaRN's factor on cos and sin: 0.1 * mscale * ln(factor) + 1; scores get its
    square.

    1.0 for factor 1. Raises ValueError for factor < 1 and for mscale <= 0 (a model
    file's 0 means "not set": leave it out). Source: YaRN, Eq. 22; DeepSeek's mscale.

    >>> round(yarn_attention_factor(4.0), 6), round(yarn_attention_factor(4.0) ** 2, 6)
    (1.138629, 1.296477)
    """
    mscale = real_number("mscale", mscale, above=0.0, hint="leave it out to have none")
    # sqrt(1/t) = 0.1 * mscale * ln(factor) + 1
    return 0.1 * mscale * math.log(_factor(factor)) + 1.0


def rotations(inv_freq: Tensor, trained_length: int) -> Tensor:
    """Turns that each pair makes in ``trained_length`` tokens: r = trained_length /
    wavelength.

    Same shape as ``inv_freq``, float64. Source: YaRN, Eq. 17.

    >>> round(rotations(inverse_frequencies(4), 4096)[0].item(), 1)
    651.9
    """
    # r = trained_length / wavelength = trained_length * inv_freq / (2 pi)
    return _trained_length(trained_length) / wavelengths(inv_freq)


def pair_at_rotations(
    turns: float, head_dim: int, base: float, trained_length: int
) -> float:
    """The pair index, unrounded, that makes ``turns`` turns in ``trained_length``
    tokens.

    Formula: i = d * ln(trained_length / (2 pi turns)) / (2 ln base), d = head_dim.
    Source: YaRN's released code, find_correction_dim (which returns a pair index).

    >>> round(pair_at_rotations(1.0, 128, 10_000.0, 4096), 6)
    45.026881
    """
    head_dim = whole_number("head_dim", head_dim, at_least=2, even=True)
    trained_length = _trained_length(trained_length)
    turns = real_number("turns", turns, above=0.0)
    # i = d * ln(L / (2 pi turns)) / (2 ln base)
    return (
        head_dim
        * math.log(trained_length / (2 * math.pi * turns))
        / (2 * math.log(_base(base)))
    )


def pair_ramp(
    head_dim: int,
    base: float,
    trained_length: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Tensor:
    """YaRN's ramp as everybody's code has it: 0 keeps a pair, 1 divides it by the
    factor.

    Formula: (i - low) / (high - low), clamped to [0, 1]; low and high are the pair
    indices that make beta_fast and beta_slow turns, rounded outwards if ``truncate``.
    Returns float64 [head_dim/2]. Equal betas give a step. Raises ValueError where even
    the fastest pair makes fewer than beta_slow turns: libraries then switch scaling off
    in silence.

    >>> pair_ramp(8, 10_000.0, 4096).tolist()
    [0.0, 0.0, 0.5, 1.0]
    """
    beta_fast, beta_slow = _betas(beta_fast, beta_slow)
    low = pair_at_rotations(beta_fast, head_dim, base, trained_length)
    high = pair_at_rotations(beta_slow, head_dim, base, trained_length)
    if high < 0:
        raise ValueError(
            f"trained_length {trained_length} is too short: even the fastest pair"
            f" makes fewer than beta_slow={beta_slow:g} turns (2 pi tokens each);"
            " use ramp='rotations' or position_interpolation"
        )
    if yes_or_no("truncate", truncate):
        low, high = math.floor(low), math.ceil(high)
    # The clamp at head_dim - 1 and the 0.001 are those of the authors' code.
    low, high = max(low, 0), min(high, head_dim - 1)
    if high <= low:
        high = low + 0.001
    index = torch.arange(head_dim // 2, dtype=torch.float64, device="cpu")
    return ((index - low) / (high - low)).clamp(0.0, 1.0)


def rotations_ramp(
    inv_freq: Tensor, trained_length: int, beta_fast: float, beta_slow: float
) -> Tensor:
    """The paper's ramp: 1 - (r - beta_slow) / (beta_fast - beta_slow), clamped to [0,
    1].

    r are the turns in the trained length; 0 keeps a pair, 1 divides it by the factor.
    Same shape as ``inv_freq``, float64. Equal betas give a step. Source: YaRN, Eq. 18.

    >>> rotations_ramp(inverse_frequencies(4), 4096, 32.0, 1.0)[0].item()
    0.0
    """
    beta_fast, beta_slow = _betas(beta_fast, beta_slow)
    turns = rotations(inv_freq, trained_length)
    if beta_fast == beta_slow:
        return (turns <= beta_slow).double()
    # 1 - gamma(r);  gamma = (r - beta_slow) / (beta_fast - beta_slow)
    return ((beta_fast - turns) / (beta_fast - beta_slow)).clamp(0.0, 1.0)


def regimes(plain: Tensor, scaled: Tensor, factor: float) -> Tensor:
    """Which regime each pair is in: 0 unchanged, 2 divided by factor, 1 in between.

    int8, same shape as ``plain``; with factor 1 every pair is 0. Two frequencies count
    as equal when they agree to 1e-9. Raises ValueError for factor < 1 or unequal
    shapes.

    >>> plain = inverse_frequencies(8)
    >>> scaled = ntk_by_parts(8, base=1e4, factor=4.0, trained_length=4096).inv_freq
    >>> regimes(plain, scaled, 4.0).tolist()
    [0, 0, 1, 2]
    """
    factor = _factor(factor)
    floating_tensor("plain", plain)
    if plain.shape != floating_tensor("scaled", scaled).shape:
        raise ValueError(
            f"plain has shape {tuple(plain.shape)}, scaled {tuple(scaled.shape)}:"
            " give the frequencies of the same pairs"
        )
    between = torch.ones_like(plain, dtype=torch.int8)
    kept = torch.isclose(scaled, plain, rtol=1e-9, atol=0.0)
    divided = torch.isclose(scaled, plain / factor, rtol=1e-9, atol=0.0)
    return between.masked_fill(divided, 2).masked_fill(kept, 0)


def _stretched_base(head_dim: int, base: float, stretch: float) -> float:
    """base * stretch^(d / (d - 2)): the slowest pair gets divided by ``stretch``."""
    hint = "one pair cannot be both the unchanged and the interpolated one"
    head_dim = whole_number("head_dim", head_dim, at_least=4, even=True, hint=hint)
    try:
        larger = _base(base) * stretch ** (head_dim / (head_dim - 2))
    except OverflowError:
        larger = math.inf
    if larger == math.inf:
        raise ValueError(
            f"base {base:g} with a factor that stretches it by {stretch:g} overflows"
            " float64; use a smaller factor or length"
        )
    return larger


def _divisors(factors) -> list[float]:
    listed = factors.tolist() if isinstance(factors, Tensor) else factors
    if not isinstance(listed, (list, tuple)):
        raise TypeError(
            f"factors must be a list of numbers, one a pair, got {factors!r}"
        )
    return [
        real_number(f"factors[{i}]", value, above=0.0) for i, value in enumerate(listed)
    ]


def _factor(factor: float) -> float:
    hint = "it says how many times longer the text gets"
    if isinstance(factor, (int, float)) and 0 < factor < 1:
        hint += f", did you mean {1 / factor:g}?"
    return real_number("factor", factor, at_least=1.0, hint=hint)


def _base(base: float) -> float:
    return real_number("base", base, above=1.0, hint="the usual one is 10000")


def _trained_length(trained_length: int) -> int:
    hint = (
        "give the number of tokens the model was trained on (a config's"
        " original_max_position_embeddings)"
    )
    return whole_number("trained_length", trained_length, at_least=1, hint=hint)


def _betas(beta_fast: float, beta_slow: float) -> tuple[float, float]:
    beta_slow = real_number("beta_slow", beta_slow, above=0.0)
    beta_fast = real_number("beta_fast", beta_fast, above=0.0)
    if beta_fast < beta_slow:
        raise ValueError(
            f"beta_fast {beta_fast:g} is below beta_slow {beta_slow:g}: both count"
            " turns in the trained length, swap them"
        )
    return beta_fast, beta_slow
