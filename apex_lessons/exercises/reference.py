"""Checks of page 06: is a claim true, and how does one see it?"""

from __future__ import annotations

import math
from collections.abc import Callable

from apex_lessons.exercises.diagnosis import Diagnosis, Mistake, judge, run_learner


def check_variance(function: Callable) -> Diagnosis:
    """Check ``f(init_std, d_model)``: the variance of the entries after the factor
    sqrt(d).

    >>> check_variance(lambda init_std, d_model: 1.0).mistake
    'always-one'
    """
    cases = [(0.02, 512), (0.02, 7168), (1.0, 64), (0.5, 4)]
    return judge(
        function,
        cases,
        lambda init_std, d_model: d_model * init_std**2,
        VARIANCE_MISTAKES,
        praise="Right: it is 1 only where the std is one over the root of the width.",
    )


VARIANCE_MISTAKES = tuple(
    Mistake(name, "check_variance", function, words)
    for name, function, words in (
        (
            "always-one",
            lambda init_std, d_model: 1.0,
            "You give 1 always, as the reference says. Put numbers in: what is the"
            " variance of a draw with std 0.02, and what does a factor do to it?",
        ),
        (
            "before-scaling",
            lambda init_std, d_model: init_std**2,
            "This is the variance before the factor.",
        ),
        (
            "root-of-the-width",
            lambda init_std, d_model: math.sqrt(d_model) * init_std**2,
            "A factor c goes into the variance as its square, and c is a root here.",
        ),
        (
            "standard-deviation",
            lambda init_std, d_model: math.sqrt(d_model) * init_std,
            "This is the standard deviation; its square is asked for.",
        ),
        (
            "std-not-squared",
            lambda init_std, d_model: d_model * init_std,
            "The standard deviation must be squared.",
        ),
        (
            "divides",
            lambda init_std, d_model: init_std**2 / d_model,
            "You divide by the width. That factor stands in attention, for another"
            " reason.",
        ),
        (
            "one-over-the-width",
            lambda init_std, d_model: 1 / d_model,
            "1/d is the variance of another initialisation, and before scaling.",
        ),
    )
)


def check_divisor(function: Callable) -> Diagnosis:
    """Check ``f(turns, factor, beta_fast, beta_slow)``: the divisor by the paper's
    ramp.

    >>> check_divisor(_right_divisor).status
    'right'
    """
    cases = [
        (652.0, 32.0, 32.0, 1.0),
        (0.5, 32.0, 32.0, 1.0),
        (6.5, 32.0, 32.0, 1.0),
        (2.0, 4.0, 16.0, 2.0),
        (10.0, 8.0, 20.0, 4.0),
        (31.0, 4.0, 32.0, 1.0),
    ]
    return judge(
        function,
        cases,
        _right_divisor,
        DIVISOR_MISTAKES,
        praise="Right: 1 at the fast end, the factor at the slow end, and no jump.",
    )


def _share(turns, beta_fast, beta_slow):
    return min(max((turns - beta_slow) / (beta_fast - beta_slow), 0.0), 1.0)


def _right_divisor(turns, factor, beta_fast, beta_slow):
    share = _share(turns, beta_fast, beta_slow)
    return 1 / (share + (1 - share) / factor)


def _upside_down(turns, factor, beta_fast, beta_slow):
    share = 1 - _share(turns, beta_fast, beta_slow)
    return 1 / (share + (1 - share) / factor)


def _blends_divisors(turns, factor, beta_fast, beta_slow):
    share = _share(turns, beta_fast, beta_slow)
    return share + (1 - share) * factor


def _never_cut_off(turns, factor, beta_fast, beta_slow):
    share = (turns - beta_slow) / (beta_fast - beta_slow)
    return 1 / (share + (1 - share) / factor)


def _a_step(turns, factor, beta_fast, beta_slow):
    return 1.0 if turns > beta_fast else factor


def _multiplier(turns, factor, beta_fast, beta_slow):
    return 1 / _right_divisor(turns, factor, beta_fast, beta_slow)


DIVISOR_MISTAKES = tuple(
    Mistake(name, "check_divisor", function, words)
    for name, function, words in (
        (
            "upside-down",
            _upside_down,
            "Your ramp runs the other way: it keeps the slow pairs and divides the"
            " fast ones.",
        ),
        (
            "blends-divisors",
            _blends_divisors,
            "You blend the divisors; the paper's equations blend the frequencies. Both"
            " ends agree, the middle does not.",
        ),
        (
            "never-cut-off",
            _never_cut_off,
            "Your share leaves the range from 0 to 1: cut it off at both ends.",
        ),
        ("a-step", _a_step, "There is no ramp between the two betas."),
        (
            "multiplier",
            _multiplier,
            "This is what the frequency is multiplied by. The divisor is one over it.",
        ),
        (
            "always-the-factor",
            lambda turns, factor, beta_fast, beta_slow: factor,
            "You divide every pair: that is position interpolation.",
        ),
    )
)

ANSWERS = {"a": "correct", "b": "wrong", "c": "correct", "d": "misleading"}
REMEDIES = {
    "a": "compute wavelengths(inverse_frequencies(64))[-1] and compare",
    "b": "the norm of the output depends on the width; print it for two widths",
    "c": "compare yarn(..., factor=1.0) with inverse_frequencies, and look at its "
         "factor",
    "d": "the first half holds; does the second follow from it? See E21",
}


def check_verdicts(function: Callable) -> Diagnosis:
    """Check ``f()``: a dict from "a" to "d" to "correct", "wrong" or "misleading".

    >>> check_verdicts(lambda: {"a": "wrong", "b": "wrong", "c": "correct"}).mistake
    'claims-missing'
    """
    answer, trouble = run_learner(function)
    if trouble is not None:
        return trouble
    if not isinstance(answer, dict) or set(answer) != set(ANSWERS):
        return Diagnosis(
            "wrong",
            "claims-missing",
            "Return a dict with the keys 'a', 'b', 'c' and 'd', nothing else.",
        )
    doubtful = [name for name, verdict in ANSWERS.items() if answer[name] != verdict]
    if doubtful:
        advice = "; ".join(f"{name}: {REMEDIES[name]}" for name in doubtful)
        return Diagnosis(
            "wrong", "verdict-" + "-".join(doubtful), f"Look again. {advice}."
        )
    return Diagnosis("right", None, "Right. You checked instead of believing.")


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs of this page that the checks know by name.

    >>> sorted({mistake.check for mistake in known_mistakes()})
    ['check_divisor', 'check_variance']
    """
    return VARIANCE_MISTAKES + DIVISOR_MISTAKES
