"""Checks of settings: each names the value seen, what is allowed and what to do."""

from __future__ import annotations

import math
import numbers

import torch


def real_number(
    name: str,
    value,
    *,
    at_least: float | None = None,
    above: float | None = None,
    hint: str = "",
) -> float:
    """``value`` as a float; an error unless it is a finite number in range."""
    if isinstance(value, bool) or not isinstance(value, (int, float, numbers.Real)):
        raise TypeError(
            _sentence(f"{name} must be a number, got {_shown(value)}", hint)
        )
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(_sentence(f"{name} must be finite, got {_shown(value)}", hint))
    too_small = at_least is not None and number < at_least
    if too_small or (above is not None and number <= above):
        limit = f"at least {at_least:g}" if too_small else f"above {above:g}"
        raise ValueError(_sentence(f"{name} must be {limit}, got {value}", hint))
    return number


def whole_number(
    name: str, value, *, at_least: int, even: bool = False, hint: str = ""
) -> int:
    """``value`` as an int; TypeError or ValueError unless it is a whole number in
    range.

    Above 2^53 float64 skips whole numbers, so nothing larger is taken.
    """
    if isinstance(value, bool) or not isinstance(value, (int, numbers.Integral)):
        raise TypeError(
            _sentence(f"{name} must be a whole number, got {_shown(value)}", hint)
        )
    number = int(value)
    if number < at_least:
        raise ValueError(
            _sentence(f"{name} must be at least {at_least}, got {number}", hint)
        )
    if number > 2**53:
        raise ValueError(
            _sentence(f"{name} must be at most 2^53, got {_shown(number)}", hint)
        )
    if even and number % 2:
        raise ValueError(_sentence(f"{name} must be even, got {number}", hint))
    return number


def one_of(name: str, value, allowed: tuple):
    """``value`` itself; ValueError unless it is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        choices = " or ".join(repr(choice) for choice in allowed)
        raise ValueError(f"{name} must be {choices}, got {_shown(value)}")
    return value


def yes_or_no(name: str, value) -> bool:
    """``value`` itself; TypeError unless it is True or False ("false" is neither)."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {_shown(value)}")
    return value


def tensor(name: str, value, hint: str = "") -> torch.Tensor:
    """``value`` itself; TypeError unless it is a tensor."""
    if not isinstance(value, torch.Tensor):
        kind = f"{type(value).__name__} {_shown(value)}"
        raise TypeError(_sentence(f"{name} must be a tensor, got {kind}", hint))
    return value


def floating_tensor(name: str, value, hint: str = "") -> torch.Tensor:
    """``value`` itself; TypeError unless it is a tensor of a floating-point dtype."""
    if not tensor(name, value, hint).is_floating_point():
        problem = f"{name} must be of a floating-point dtype, got {value.dtype}"
        raise TypeError(_sentence(problem, hint or f"use {name}.float()"))
    if value.dtype.itemsize < 2:
        raise TypeError(
            f"{name} is {value.dtype}, which torch only stores: use {name}.bfloat16()"
        )
    return value


def floating_dtype(name: str, value) -> torch.dtype:
    """``value`` itself; TypeError unless it is a floating-point torch.dtype."""
    if not isinstance(value, torch.dtype) or not value.is_floating_point:
        raise TypeError(
            f"{name} must be a floating-point dtype, got {_shown(value)}; torch.float32"
            " for instance"
        )
    return value


def values_can_be_seen(x: torch.Tensor) -> bool:
    """False where a tensor has no values to check: on meta, and while compiling."""
    return not (x.is_meta or torch.compiler.is_compiling())


def _sentence(problem: str, hint: str) -> str:
    return f"{problem}; {hint}" if hint else problem


def _shown(value) -> str:
    """The value, short enough for one line of a message."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
