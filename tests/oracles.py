"""Independent answers for the tests: plain Python floats, mpmath and torch float64.

Nothing here imports the package, so that a fault in it cannot hide on both sides.
"""

import json
import math
from pathlib import Path

import mpmath
import torch

GOLDEN = Path(__file__).parent / "golden"


def golden(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64).to(dtype)


# --- frequencies ---


def plain_frequencies(head_dim, base):
    return [float(base) ** (-2.0 * pair / head_dim) for pair in range(head_dim // 2)]


def turns(head_dim, base, trained_length):
    return [
        trained_length * f / (2 * math.pi) for f in plain_frequencies(head_dim, base)
    ]


def pair_that_turns(count, head_dim, base, trained_length):
    return (
        head_dim
        * math.log(trained_length / (2 * math.pi * count))
        / (2 * math.log(base))
    )


def pair_ramp(head_dim, base, trained_length, beta_fast, beta_slow, truncate):
    low = pair_that_turns(beta_fast, head_dim, base, trained_length)
    high = pair_that_turns(beta_slow, head_dim, base, trained_length)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, head_dim - 1)
    if low == high:
        high += 0.001
    return [min(1.0, max(0.0, (i - low) / (high - low))) for i in range(head_dim // 2)]


def rotations_ramp(head_dim, base, trained_length, beta_fast, beta_slow):
    kept = [
        (r - beta_slow) / (beta_fast - beta_slow)
        for r in turns(head_dim, base, trained_length)
    ]
    return [1.0 - min(1.0, max(0.0, value)) for value in kept]


def blend(head_dim, base, factor, ramp):
    plain = plain_frequencies(head_dim, base)
    return [f / factor * r + f * (1 - r) for f, r in zip(plain, ramp, strict=True)]


def llama3(head_dim, base, factor, trained_length, low=1.0, high=4.0):
    out = []
    for f in plain_frequencies(head_dim, base):
        wavelength = 2 * math.pi / f
        if wavelength < trained_length / high:
            out.append(f)
        elif wavelength > trained_length / low:
            out.append(f / factor)
        else:
            smooth = (trained_length / wavelength - low) / (high - low)
            out.append((1 - smooth) * f / factor + smooth * f)
    return out


def apex1(head_dim, base, factor, beta_fast=32.0, beta_slow=1.0):
    out = []
    for f in plain_frequencies(head_dim, base):
        wavelength = 2 * math.pi / f
        if factor == 1 or wavelength < beta_fast:
            out.append(f)
        elif wavelength > beta_slow * factor:
            out.append(f / factor)
        else:
            t = (wavelength / beta_slow - 1) / (factor - 1)
            out.append(f / (t * factor + (1 - t)))
    return out


# --- rotation ---


def exact_tables(positions, head_dim, base, digits=40):
    """cos and sin of position * base^(-2i/d), each rounded once to float64."""
    with mpmath.workdps(digits):
        freq = [
            mpmath.mpf(base) ** (-mpmath.mpf(2 * i) / head_dim)
            for i in range(head_dim // 2)
        ]
        cos = [[float(mpmath.cos(p * f)) for f in freq] for p in positions]
        sin = [[float(mpmath.sin(p * f)) for f in freq] for p in positions]
    return (
        torch.tensor(cos, dtype=torch.float64),
        torch.tensor(sin, dtype=torch.float64),
    )


def to_pairs(x, layout):
    """[..., d] -> [..., d/2, 2], whichever way the layout stores its pairs."""
    if layout == "interleaved":
        return x.unflatten(-1, (-1, 2))
    return x.unflatten(-1, (2, -1)).transpose(-1, -2)


def from_pairs(pairs, layout):
    if layout == "interleaved":
        return pairs.flatten(-2)
    return pairs.transpose(-1, -2).flatten(-2)


def rotate(x, positions, frequencies, layout, factor=1.0):
    """Each pair turned by a 2x2 matrix, float64; trailing dimensions pass through."""
    x = x.double()
    freq = torch.as_tensor(frequencies, dtype=torch.float64)
    width = 2 * len(freq)
    angle = torch.as_tensor(positions, dtype=torch.float64)[..., None] * freq
    if angle.dim() == 3:
        angle = angle[:, None]  # [batch, 1, seq, pairs]
    cos, sin = angle.cos() * factor, angle.sin() * factor
    matrix = torch.stack(
        [torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2
    )
    pairs = to_pairs(x[..., :width], layout)
    turned = (matrix @ pairs[..., None])[..., 0]
    return torch.cat([from_pairs(turned, layout), x[..., width:]], -1)


# --- norm ---


def rms_norm(x, weight=None, eps=1e-6, offset=0.0):
    """x / sqrt(mean(x^2) + eps) * (offset + weight) in float64, without overflow."""
    x = x.double()
    out = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    return out if weight is None else out * (offset + weight.double())


# --- rounding ---


def half_step(value, dtype):
    """Half the distance to the next number of ``dtype``: what one rounding moves."""
    info = torch.finfo(dtype)
    exponent = torch.floor(torch.log2(value.abs().double().clamp_min(info.tiny)))
    return torch.exp2(exponent) * info.eps / 2


def assert_rounded_once(got, exact, slack=0.0):
    """``got`` is ``exact`` rounded once; ``slack`` is the error of float32 arithmetic.

    All but one element in a thousand are the nearest number of the dtype; the others
    sit beside a midpoint, where float32 arithmetic may fall to the other side.
    """
    error = (got.double() - exact).abs()
    allowed = half_step(exact, got.dtype) * (1 + 1e-6) + slack
    worst = (error - allowed).max().item() if error.numel() else 0.0
    assert worst <= 0, f"{worst:.3g} beyond one rounding to {got.dtype}"
    nearest = (
        (got == exact.to(got.dtype)).double().mean().item() if error.numel() else 1
    )
    assert nearest >= 0.999, (
        f"only {nearest:.4f} of the elements are the nearest number"
    )
