"""The scaling methods that are compared, each as settings in, frequencies out.

A method is asked for a length: with trained length T and text of L tokens the factor is
L / T. Everything is computed by ``apex_lessons.yarn``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apex_lessons import yarn
from apex_lessons.errors import one_of, real_number, whole_number
from apex_lessons.extrapolation.decoder import DecoderSettings
from apex_lessons.yarn import ScaledFrequencies


class Reading(NamedTuple):
    """How a trained model is read: its frequencies, and a factor on the scores."""

    scaled: ScaledFrequencies
    score_factor: float = 1.0


def _none(s: DecoderSettings, factor: float, length: int) -> Reading:
    return Reading(s.plain)


def _interpolation(s: DecoderSettings, factor: float, length: int) -> Reading:
    return Reading(yarn.position_interpolation(s.head_dim, base=s.base, factor=factor))


def _ntk_aware(s: DecoderSettings, factor: float, length: int) -> Reading:
    return Reading(yarn.ntk_aware(s.head_dim, base=s.base, factor=factor))


def _dynamic(s: DecoderSettings, factor: float, length: int) -> Reading:
    # the factor is taken from the length at hand, so the setting itself is 1
    return Reading(
        yarn.dynamic_ntk(
            s.head_dim,
            base=s.base,
            factor=1.0,
            trained_length=s.trained_length,
            length=length,
        )
    )


def _by_parts(ramp: str, temperature: bool) -> Callable[..., Reading]:
    def read(s: DecoderSettings, factor: float, length: int) -> Reading:
        method = yarn.yarn if temperature else yarn.ntk_by_parts
        return Reading(
            method(
                s.head_dim,
                base=s.base,
                factor=factor,
                trained_length=s.trained_length,
                ramp=ramp,
            )
        )

    return read


def _llama3(s: DecoderSettings, factor: float, length: int) -> Reading:
    return Reading(
        yarn.llama3(
            s.head_dim, base=s.base, factor=factor, trained_length=s.trained_length
        )
    )


def _apex1(s: DecoderSettings, factor: float, length: int) -> Reading:
    return Reading(yarn.apex1(s.head_dim, base=s.base, factor=factor))


def _apex1_scores(s: DecoderSettings, factor: float, length: int) -> Reading:
    printed = yarn.apex1(s.head_dim, base=s.base, factor=factor)
    return Reading(printed, yarn.apex1_score_factor(factor))


# name -> (what it is called on the page, the method)
METHODS: dict[str, tuple[str, Callable[..., Reading]]] = {
    "none": ("no scaling", _none),
    "position_interpolation": ("position interpolation", _interpolation),
    "ntk_aware": ("NTK-aware", _ntk_aware),
    "dynamic_ntk": ("dynamic NTK", _dynamic),
    "ntk_by_parts": ("NTK-by-parts, pair ramp", _by_parts("pair", False)),
    "ntk_by_parts_rotations": (
        "NTK-by-parts, rotations ramp",
        _by_parts("rotations", False),
    ),
    "yarn": ("YaRN, pair ramp", _by_parts("pair", True)),
    "yarn_rotations": ("YaRN, rotations ramp", _by_parts("rotations", True)),
    "llama3": ("Llama 3", _llama3),
    "apex1": ("APEX-1's printed rule", _apex1),
    "apex1_scores": ("APEX-1's printed rule and factor", _apex1_scores),
}


def reading(
    method: str,
    settings: DecoderSettings,
    length: int,
    *,
    factor: float | None = None,
) -> Reading:
    """How ``method`` reads a text of ``length`` tokens.

    ``factor`` None: length / trained_length, at least 1; a number: as set beforehand,
    whatever the text (static scaling). Raises ValueError for an unknown method, a
    length below 1, a factor below 1.

    >>> reading("yarn", DecoderSettings(), 2048).scaled.attention_factor
    1.138629436111989
    """
    one_of("method", method, tuple(METHODS))
    length = whole_number("length", length, at_least=1)
    if factor is None:
        factor = max(1.0, length / settings.trained_length)
    factor = real_number("factor", factor, at_least=1.0)
    return METHODS[method][1](settings, factor, length)
