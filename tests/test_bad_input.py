"""Bad input through every public function: refused, with a message a reader can use.

Each case holds a call and the words its message must contain: the value seen, and the
name of the setting. The error must come from the package, not from torch's inside.
"""

import math
from pathlib import Path

import pytest
import torch

import apex_lessons
from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.norm import RMSNorm, rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    rotate_pairs,
    wavelengths,
)
from apex_lessons.yarn import (
    ScaledFrequencies,
    apex1,
    apex1_score_factor,
    dynamic_ntk,
    llama3,
    longrope,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    proportional,
    regimes,
    yarn,
)

HOUSE = Path(apex_lessons.__file__).parent
NAN, INF = math.nan, math.inf
HUGE = 10**400  # a whole number that no float can hold
TRAINED = {"base": 1e4, "factor": 4.0, "trained_length": 4096}

# Each scaling method with settings that are fine.
METHODS = {
    position_interpolation: {"base": 1e4, "factor": 4.0},
    ntk_aware: {"base": 1e4, "factor": 4.0},
    dynamic_ntk: {**TRAINED, "length": 8192},
    ntk_by_parts: TRAINED,
    yarn: TRAINED,
    llama3: TRAINED,
    longrope: {**TRAINED, "factors": [1.0] * 4},
    proportional: {"base": 1e4, "partial_rotary_factor": 0.5, "factor": 4.0},
    apex1: {"base": 1e4, "factor": 4.0},
}
WITH_LENGTH = [f for f, settings in METHODS.items() if "trained_length" in settings]


def refusal(call, *words, kind=(ValueError, TypeError)):
    """The message of the error that ``call`` raises; it must be the package's own."""
    with pytest.raises(kind) as caught:
        call()
    raised_in = Path(str(caught.traceback[-1].path))
    message = str(caught.value)
    assert HOUSE in raised_in.parents, f"raised in {raised_in}: {message}"
    assert len(message) >= 25, f"too short to help: {message}"
    assert "\n" not in message
    for word in words:
        assert str(word) in message, f"{word!r} is missing from: {message}"
    return message


def shown(value):
    """What a message must hold of a value: 4 for 4.0, the start of a long one."""
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}"
    return str(value)[:20]


def short(value):
    """A name for a test."""
    return getattr(value, "__name__", repr(value)[:40])


# --- the settings that all scaling methods share ---

BAD_HEAD_DIMS = [65, 9, 1, 3, 0, -2, 2.5, 8.0, "8", None, True, NAN]
BAD_BASES = [1, 1.0, 0.5, 0, -10_000.0, NAN, INF, "10000", None, True, HUGE, [1e4], 1j]
BAD_FACTORS = [0.5, 0.25, 0, -2, NAN, INF, -INF, "4", None, True, HUGE, [4.0]]
BAD_LENGTHS = [None, 0, -1, -4096, NAN, INF, "4096", True, 2.5, [4096]]


@pytest.mark.parametrize("head_dim", BAD_HEAD_DIMS, ids=short)
@pytest.mark.parametrize("method", METHODS, ids=short)
def test_head_dim(method, head_dim):
    refusal(lambda: method(head_dim, **METHODS[method]), "head_dim", shown(head_dim))


@pytest.mark.parametrize("base", BAD_BASES, ids=short)
@pytest.mark.parametrize("method", METHODS, ids=short)
def test_base(method, base):
    settings = {**METHODS[method], "base": base}
    refusal(lambda: method(8, **settings), "base", shown(base))


@pytest.mark.parametrize("factor", BAD_FACTORS, ids=short)
@pytest.mark.parametrize("method", METHODS, ids=short)
def test_factor(method, factor):
    settings = {**METHODS[method], "factor": factor}
    refusal(lambda: method(8, **settings), "factor", shown(factor))


@pytest.mark.parametrize("length", BAD_LENGTHS, ids=short)
@pytest.mark.parametrize("method", WITH_LENGTH, ids=short)
def test_trained_length(method, length):
    settings = {**METHODS[method], "trained_length": length}
    refusal(lambda: method(8, **settings), "trained_length", shown(length))


@pytest.mark.parametrize("method", WITH_LENGTH, ids=short)
def test_trained_length_is_never_assumed(method):
    settings = {k: v for k, v in METHODS[method].items() if k != "trained_length"}
    with pytest.raises((TypeError, ValueError), match="trained_length"):
        method(8, **settings)


@pytest.mark.parametrize("method", METHODS, ids=short)
def test_unknown_setting(method):
    with pytest.raises(TypeError, match="scale"):
        method(8, **METHODS[method], scale=4.0)


@pytest.mark.parametrize("factor", [0.25, 0.5, 0.0625])
def test_a_factor_below_one_asks_whether_the_inverse_was_meant(factor):
    """Some libraries call 0.25 what others call 4."""
    message = refusal(lambda: position_interpolation(8, base=1e4, factor=factor))
    assert f"{1 / factor:g}" in message


@pytest.mark.parametrize(
    "value", [HUGE, 1e308, 10**308], ids=["beyond", "float", "int"]
)
def test_settings_near_the_end_of_the_floats_are_refused_or_finite(value):
    for method, settings in METHODS.items():
        for name in ("base", "factor", "trained_length", "length"):
            if name not in settings:
                continue
            changed = {**settings, name: int(value) if "length" in name else value}
            try:
                scaled = method(8, **changed)
            except (ValueError, TypeError) as error:
                assert name in str(error), f"{method.__name__}, {name}: {error}"
            else:
                assert bool(scaled.inv_freq.isfinite().all()), (method.__name__, name)
                assert math.isfinite(scaled.attention_factor)
                assert bool((scaled.inv_freq[:1] > 0).all())


# --- the settings of each method ---

BY_PARTS = {"ntk_by_parts": ntk_by_parts, "yarn": yarn}
SETTINGS = [
    ("beta_fast", [0.5, 0, -32, NAN, INF, "32", None, True, HUGE]),
    ("beta_slow", [33.0, 0, -1, NAN, INF, "1", None, True, HUGE]),
    ("ramp", ["linear", "Pair", "", None, 1, True]),
]


@pytest.mark.parametrize("method", BY_PARTS)
@pytest.mark.parametrize(
    "name, value", [(n, v) for n, values in SETTINGS for v in values], ids=short
)
def test_ramp_settings(method, name, value):
    call = BY_PARTS[method]
    for ramp in ("pair", "rotations"):
        settings = {"ramp": ramp, **TRAINED, name: value}
        refusal(lambda s=settings: call(8, **s), name, shown(value))


@pytest.mark.parametrize("method", BY_PARTS)
@pytest.mark.parametrize("fast, slow", [(1, 32), (1.0, 1.5), (0.5, 1)])
@pytest.mark.parametrize("ramp", ["pair", "rotations"])
def test_betas_the_wrong_way_round(method, fast, slow, ramp):
    call = BY_PARTS[method]
    refusal(
        lambda: call(64, **TRAINED, beta_fast=fast, beta_slow=slow, ramp=ramp),
        "beta_fast",
        "beta_slow",
        f"{fast:g}",
        f"{slow:g}",
        kind=ValueError,
    )


@pytest.mark.parametrize("value", ["yes", "false", None, 2, 0.0, [True]], ids=short)
def test_truncate_is_a_yes_or_no(value):
    """The string "false" of a configuration file counts as true in Python."""
    refusal(lambda: yarn(8, **TRAINED, truncate=value), "truncate", shown(value))


@pytest.mark.parametrize(
    "value", [0, 0.0, -1.0, NAN, INF, "1.2", True, HUGE], ids=short
)
@pytest.mark.parametrize("method", [yarn, longrope], ids=short)
def test_attention_factor(method, value):
    refusal(
        lambda: method(8, **METHODS[method], attention_factor=value),
        "attention_factor",
        shown(value),
    )


@pytest.mark.parametrize(
    "scales", [{"mscale": 1.0}, {"mscale_all_dim": 0.707}], ids=short
)
@pytest.mark.parametrize("more", [{}, {"attention_factor": 1.0}], ids=short)
def test_one_mscale_alone(scales, more):
    refusal(
        lambda: yarn(8, **TRAINED, **scales, **more),
        "mscale",
        "mscale_all_dim",
        next(iter(scales.values())),
        kind=ValueError,
    )


@pytest.mark.parametrize("value", [-1.0, NAN, INF, "1", True], ids=short)
@pytest.mark.parametrize("name", ["mscale", "mscale_all_dim"])
def test_mscales(name, value):
    scales = {"mscale": 1.0, "mscale_all_dim": 1.0, name: value}
    refusal(lambda: yarn(8, **TRAINED, **scales), "mscale", shown(value))


@pytest.mark.parametrize("dim", [2])
@pytest.mark.parametrize("method", [ntk_aware, dynamic_ntk], ids=short)
def test_ntk_needs_two_pairs(method, dim):
    """The exponent d / (d - 2) divides by zero."""
    refusal(lambda: method(dim, **METHODS[method]), "head_dim", dim, kind=ValueError)


@pytest.mark.parametrize("value", [0, -1, None, NAN, INF, 2.5, "8192", True], ids=short)
def test_dynamic_length(value):
    settings = {**METHODS[dynamic_ntk], "length": value}
    refusal(lambda: dynamic_ntk(8, **settings), "length", shown(value))


@pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "4", None, True], ids=short)
@pytest.mark.parametrize("name", ["low_freq_factor", "high_freq_factor"])
def test_llama3_bounds(name, value):
    refusal(lambda: llama3(8, **TRAINED, **{name: value}), name, shown(value))


def test_llama3_bounds_the_wrong_way_round():
    refusal(
        lambda: llama3(8, **TRAINED, low_freq_factor=4, high_freq_factor=1),
        "low_freq_factor",
        "high_freq_factor",
        "4",
        "1",
        kind=ValueError,
    )


@pytest.mark.parametrize(
    "factors, words",
    [
        ([1.0] * 3, ["3", "4"]),
        ([1.0] * 5, ["5", "4"]),
        ([], ["0", "4"]),
        ([1.0, 0.0, 1.0, 1.0], ["0"]),
        ([1.0, 1.0, -2.0, 1.0], ["-2"]),
        ([1.0, NAN, 1.0, 1.0], ["nan"]),
        ([INF, 1.0, 1.0, 1.0], ["inf"]),
        (["1", "1", "1", "1"], ["1"]),
        ([None] * 4, ["None"]),
        ([True] * 4, ["True"]),
        (None, ["None"]),
        (4.0, ["4.0"]),
        ("1234", ["1"]),
    ],
    ids=short,
)
def test_longrope_factors(factors, words):
    settings = {**METHODS[longrope], "factors": factors}
    refusal(lambda: longrope(8, **settings), "factors", *words)


def test_longrope_needs_more_than_one_trained_token():
    """ln(1) = 0 divides the attention factor."""
    refusal(
        lambda: longrope(8, **{**METHODS[longrope], "trained_length": 1}),
        "trained_length",
        "1",
        kind=ValueError,
    )


@pytest.mark.parametrize(
    "value", [0, 0.0, -0.5, 1.5, NAN, INF, "0.25", None, True], ids=short
)
def test_partial_rotary_factor(value):
    refusal(
        lambda: proportional(8, base=1e4, partial_rotary_factor=value),
        "partial_rotary_factor",
        shown(value),
    )


def test_a_share_so_small_that_no_pair_turns():
    """Half a pair rounds down to none: positions would be lost in silence."""
    refusal(
        lambda: proportional(8, base=1e4, partial_rotary_factor=0.1),
        "partial_rotary_factor",
        "0.1",
        kind=ValueError,
    )


@pytest.mark.parametrize("value", BAD_FACTORS, ids=short)
def test_apex1_score_factor(value):
    refusal(lambda: apex1_score_factor(value), "factor", shown(value))


@pytest.mark.parametrize("name", ["beta_fast", "beta_slow"])
@pytest.mark.parametrize("value", [0, -1, NAN, INF, "32", None, True], ids=short)
def test_apex1_bounds(name, value):
    refusal(lambda: apex1(8, base=1e4, factor=4, **{name: value}), name, shown(value))


def test_regimes_refuses_what_it_cannot_compare():
    plain = inverse_frequencies(8)
    refusal(lambda: regimes(plain, plain[:3], 4.0), "4", "3", kind=ValueError)
    for factor in BAD_FACTORS:
        refusal(lambda factor=factor: regimes(plain, plain, factor), "factor")
    for bad in ([1.0, 0.1], None, "plain", 1.0):
        refusal(lambda bad=bad: regimes(bad, plain, 4.0), kind=(TypeError, ValueError))
        refusal(lambda bad=bad: regimes(plain, bad, 4.0), kind=(TypeError, ValueError))


# --- rope ---


@pytest.mark.parametrize("head_dim", BAD_HEAD_DIMS, ids=short)
def test_inverse_frequencies_head_dim(head_dim):
    refusal(lambda: inverse_frequencies(head_dim), "head_dim", shown(head_dim))


@pytest.mark.parametrize("base", BAD_BASES, ids=short)
def test_inverse_frequencies_base(base):
    refusal(lambda: inverse_frequencies(8, base), "base", shown(base))


@pytest.mark.parametrize(
    "bad",
    [
        [1.0, 0.1],
        1.0,
        None,
        "1",
        torch.tensor([1, 2]),
        torch.tensor([-1.0]),
        torch.tensor([NAN]),
    ],
    ids=short,
)
def test_wavelengths(bad):
    refusal(lambda: wavelengths(bad), "inv_freq")


BAD_POSITIONS = {
    "floats": (torch.arange(4.0), "float32"),
    "bfloat16": (torch.arange(4).bfloat16(), "bfloat16"),
    "bool": (torch.ones(4, dtype=torch.bool), "bool"),
    "negative": (torch.tensor([0, 1, -1, 2]), "-1"),
    "very negative": (torch.tensor([0, -5000, 1, 2]), "-5000"),
    "a list": ([0, 1, 2, 3], "list"),
    "a number": (3, "int"),
    "a string": ("0123", "str"),
    "a scalar tensor": (torch.tensor(3), "()"),
    "three dimensions": (torch.zeros(1, 1, 4, dtype=torch.long), "(1, 1, 4)"),
}


@pytest.mark.parametrize("name", BAD_POSITIONS)
def test_positions(name):
    positions, word = BAD_POSITIONS[name]
    refusal(lambda: rotary_tables(positions, inverse_frequencies(8)), "positions", word)
    x = torch.zeros(1, 2, 4, 8)
    refusal(lambda: RotaryEmbedding(8)(x, x, positions), "positions", word)


def test_each_fault_of_positions_has_its_own_message():
    kinds = ["floats", "negative", "a list", "three dimensions"]
    messages = [
        refusal(lambda k=k: rotary_tables(BAD_POSITIONS[k][0], inverse_frequencies(8)))
        for k in kinds
    ]
    assert len(set(messages)) == len(kinds)


@pytest.mark.parametrize("shape", [(3,), (5,), (1, 3), (2, 4), (3, 4)])
def test_positions_that_do_not_fit_q(shape):
    x = torch.zeros(1, 2, 4, 8)
    refusal(
        lambda: RotaryEmbedding(8)(x, x, torch.zeros(shape, dtype=torch.long)),
        kind=ValueError,
    )


def test_no_positions_given_is_none_not_something_else():
    x = torch.zeros(1, 2, 4, 8)
    for bad in (False, 0, "none"):
        refusal(lambda bad=bad: RotaryEmbedding(8)(x, x, bad), "positions")


@pytest.mark.parametrize(
    "offset", [-1, -100, 1.0, 2.5, NAN, "3", None, True], ids=short
)
def test_offset(offset):
    x = torch.zeros(1, 2, 4, 8)
    refusal(lambda: RotaryEmbedding(8)(x, x, offset=offset), "offset", shown(offset))


def test_positions_and_offset_together():
    """One of the two would have to be ignored, or added: ask."""
    x = torch.zeros(1, 2, 4, 8)
    refusal(
        lambda: RotaryEmbedding(8)(x, x, torch.arange(4), offset=5),
        "offset",
        "positions",
        "5",
        kind=ValueError,
    )


@pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "1", None, True], ids=short)
def test_table_factor(value):
    refusal(
        lambda: rotary_tables(
            torch.arange(4), inverse_frequencies(8), attention_factor=value
        ),
        "attention_factor",
        shown(value),
    )


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, torch.bool, torch.complex64, "float32", None, float],
    ids=short,
)
def test_table_dtype(dtype):
    refusal(
        lambda: rotary_tables(torch.arange(4), inverse_frequencies(8), dtype=dtype),
        "dtype",
    )


@pytest.mark.parametrize(
    "bad",
    [
        [1.0, 0.1],
        1.0,
        None,
        torch.tensor([1, 2]),
        torch.tensor(1.0),
        torch.ones(2, 2),
        torch.tensor([-1.0]),
        torch.tensor([NAN]),
        torch.tensor([INF]),
    ],
    ids=short,
)
def test_table_frequencies(bad):
    refusal(lambda: rotary_tables(torch.arange(4), bad), "inv_freq")


@pytest.mark.parametrize(
    "bad",
    [torch.zeros(3), torch.zeros(2, 5), torch.tensor(1.0), [1.0, 2.0], None],
    ids=short,
)
def test_rotate_pairs(bad):
    refusal(lambda: rotate_pairs(bad))


def tables(seq=4, head_dim=8, batch=None):
    positions = (
        torch.arange(seq) if batch is None else torch.arange(seq).expand(batch, seq)
    )
    return rotary_tables(positions, inverse_frequencies(head_dim))


X = torch.zeros(2, 3, 4, 8)
BAD_ROTATIONS = {
    "tables shorter than the sequence": (X, *tables(3), ["3", "4"]),
    "tables of one position": (X, *tables(1), ["1", "4"]),
    "batched tables shorter": (X, *tables(3, batch=2), ["3", "4"]),
    "tables longer than the sequence": (X, *tables(5), ["5", "4"]),
    "tables of another batch": (X, *tables(4, batch=3), ["3", "2"]),
    "tables wider than the head": (X, *tables(4, 10), ["10", "8"]),
    "tables with each entry twice": (
        X,
        *(t.repeat(1, 2) for t in tables()),
        ["16", "8"],
    ),
    "cos and sin of different shapes": (
        X,
        tables()[0],
        tables(3)[1],
        ["(4, 4)", "(3, 4)"],
    ),
    "a table with no position axis": (X, tables()[0][0], tables()[1][0], ["(4,)"]),
    "four-dimensional tables": (
        X,
        tables()[0][None, None],
        tables()[1][None, None],
        ["(1, 1, 4, 4)"],
    ),
    "a vector": (X[0, 0, 0], *tables(), ["(8,)"]),
    "an odd head": (X[..., :7], *tables(), ["7", "8"]),
    "whole numbers": (X.long(), *tables(), ["int64"]),
    "booleans": (X.bool(), *tables(), ["bool"]),
    "complex numbers": (X.to(torch.complex64), *tables(), ["complex64"]),
    "integer tables": (X, *(t.long() for t in tables()), ["int64"]),
    "a list": (X.tolist(), *tables(), ["list"]),
    "a list for cos": (X, tables()[0].tolist(), tables()[1], ["list"]),
    "nothing for sin": (X, tables()[0], None, ["None"]),
}


@pytest.mark.parametrize("name", BAD_ROTATIONS)
@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_apply_rotary(name, layout):
    x, cos, sin, words = BAD_ROTATIONS[name]
    refusal(lambda: apply_rotary(x, cos, sin, layout=layout), *words)


def test_batched_tables_need_the_heads_axis():
    """[batch, seq, head_dim] with batched tables would pair batch rows with heads."""
    refusal(
        lambda: apply_rotary(X[:, 0], *tables(4, batch=2)), "(2, 4, 8)", kind=ValueError
    )


BAD_LAYOUTS = ["adjacent", "Half", "HALF", "", None, 0, True, ["half"]]


@pytest.mark.parametrize("layout", BAD_LAYOUTS, ids=short)
def test_layout(layout):
    for call in (
        lambda: apply_rotary(X, *tables(), layout=layout),
        lambda: RotaryEmbedding(8, layout=layout),
    ):
        refusal(call, "layout", shown(layout), "interleaved", "half")
    refusal(
        lambda: convert_layout(torch.zeros(8), 1, to=layout),
        shown(layout),
        "interleaved",
        "half",
    )


@pytest.mark.parametrize("head_dim", BAD_HEAD_DIMS, ids=short)
def test_module_head_dim(head_dim):
    """Refused when it is built, not at the first call."""
    refusal(lambda: RotaryEmbedding(head_dim), "head_dim", shown(head_dim))


@pytest.mark.parametrize("base", BAD_BASES, ids=short)
def test_module_base(base):
    refusal(lambda: RotaryEmbedding(8, base=base), "base", shown(base))


@pytest.mark.parametrize(
    "rotary_dim", [3, 1, 0, -2, 10, 4.0, "4", True, NAN], ids=short
)
def test_module_rotary_dim(rotary_dim):
    refusal(
        lambda: RotaryEmbedding(8, rotary_dim=rotary_dim),
        "rotary_dim",
        shown(rotary_dim),
    )


BAD_SCALINGS = {
    "another head_dim": position_interpolation(16, base=1e4, factor=4),
    "a name": "yarn",
    "a dict": {"type": "yarn", "factor": 4.0},
    "a number": 4.0,
    "frequencies alone": inverse_frequencies(8),
    "no factor": (inverse_frequencies(8), None),
    "a factor of zero": ScaledFrequencies(inverse_frequencies(8), 0.0),
    "a factor that is no number": ScaledFrequencies(inverse_frequencies(8), NAN),
    "a negative frequency": ScaledFrequencies(-inverse_frequencies(8), 1.0),
    "a frequency that is no number": ScaledFrequencies(
        inverse_frequencies(8) * NAN, 1.0
    ),
    "an infinite frequency": ScaledFrequencies(inverse_frequencies(8) * INF, 1.0),
    "whole frequencies": ScaledFrequencies(torch.ones(4, dtype=torch.long), 1.0),
    "a list": ScaledFrequencies([1.0, 0.1, 0.01, 0.001], 1.0),
    "true": True,
}


@pytest.mark.parametrize("name", BAD_SCALINGS)
def test_module_scaling(name):
    refusal(lambda: RotaryEmbedding(8, scaling=BAD_SCALINGS[name]))


def test_scaling_of_a_partly_rotating_head_needs_the_rotary_width():
    scaling = position_interpolation(8, base=1e4, factor=4)
    refusal(
        lambda: RotaryEmbedding(8, rotary_dim=4, scaling=scaling), "4", kind=ValueError
    )


BAD_QK = {
    "q of another head_dim": (torch.zeros(1, 2, 4, 16), X[:1]),
    "k of another head_dim": (X[:1], torch.zeros(1, 2, 4, 4)),
    "q and k of different lengths": (X[:1], torch.zeros(1, 3, 5, 8)),
    "q without heads and batch": (torch.zeros(8), X[:1]),
    "whole numbers": (X.long(), X.long()),
    "lists": (X.tolist(), X.tolist()),
    "nothing": (None, None),
    "no k": (X, None),
}


@pytest.mark.parametrize("name", BAD_QK)
@pytest.mark.parametrize("positions", [None, torch.arange(4)], ids=["default", "given"])
def test_module_input(name, positions):
    refusal(lambda: RotaryEmbedding(8)(*BAD_QK[name], positions))


@pytest.mark.parametrize(
    "weight, n_heads, words",
    [
        (torch.zeros(10, 4), 4, ["10", "4"]),
        (torch.zeros(9), 2, ["9", "2"]),
        (torch.zeros(4, 3), 8, ["4", "8"]),
        (torch.tensor(1.0), 1, ["()"]),
        (torch.zeros(6, 2), 2, ["3"]),  # heads of three rows hold no whole pairs
        (torch.zeros(0, 2), 1, ["0"]),
        ([1.0, 2.0], 1, []),
        (None, 1, []),
        ("W_q", 1, []),
    ],
    ids=short,
)
def test_convert_layout_rows(weight, n_heads, words):
    for to in ("half", "interleaved"):
        refusal(lambda to=to: convert_layout(weight, n_heads, to=to), *words)


@pytest.mark.parametrize("n_heads", [0, -1, 2.0, "2", None, True, NAN], ids=short)
def test_convert_layout_heads(n_heads):
    refusal(
        lambda: convert_layout(torch.zeros(8, 2), n_heads, to="half"),
        "n_heads",
        shown(n_heads),
    )


@pytest.mark.parametrize("rotary_dim", [3, 0, -2, 6, 4.0, "4", True], ids=short)
def test_convert_layout_rotary_dim(rotary_dim):
    refusal(
        lambda: convert_layout(torch.zeros(8, 2), 2, to="half", rotary_dim=rotary_dim),
        "rotary_dim",
        shown(rotary_dim),
    )


# --- norm ---

BAD_EPS = [-1e-6, -1, NAN, INF, None, "1e-6", True, HUGE]


@pytest.mark.parametrize("eps", BAD_EPS, ids=short)
def test_eps(eps):
    """None once meant the dtype's own eps, which halves a bfloat16 output."""
    refusal(lambda: rms_norm(torch.ones(4), eps=eps), "eps", shown(eps))
    refusal(lambda: RMSNorm(4, eps), "eps", shown(eps))


@pytest.mark.parametrize("offset", [NAN, INF, "1", None, True], ids=short)
def test_weight_offset(offset):
    refusal(
        lambda: rms_norm(torch.ones(4), torch.ones(4), weight_offset=offset),
        "weight_offset",
        shown(offset),
    )
    refusal(lambda: RMSNorm(4, weight_offset=offset), "weight_offset", shown(offset))


@pytest.mark.parametrize("order", ["llama", "cast-Last", "", None, 1, True], ids=short)
def test_order(order):
    refusal(
        lambda: rms_norm(torch.ones(4), order=order),
        "order",
        shown(order),
        "cast-last",
        "cast-first",
    )


@pytest.mark.parametrize(
    "weight, word",
    [
        (torch.ones(3), "3"),
        (torch.ones(5), "5"),
        (torch.ones(1), "1"),
        (torch.ones(2, 4), "(2, 4)"),
        (torch.tensor(1.0), "()"),
        (torch.ones(4).long(), "int64"),
        (torch.ones(4, dtype=torch.bool), "bool"),
        ([1.0] * 4, "list"),
        (1.0, "float"),
        ("ones", "str"),
    ],
    ids=short,
)
def test_norm_weight(weight, word):
    """A weight of one number, or of [2, 4], would broadcast in silence."""
    refusal(lambda: rms_norm(torch.ones(2, 4), weight), "weight", word)


@pytest.mark.parametrize(
    "x, word",
    [
        (torch.ones(4).long(), "int64"),
        (torch.ones(4, dtype=torch.bool), "bool"),
        (torch.ones(4, dtype=torch.complex64), "complex64"),
        (torch.tensor(2.0), "()"),
        (torch.ones(3, 0), "0"),
        ([1.0, 2.0], "list"),
        (None, "None"),
        (2.0, "float"),
    ],
    ids=short,
)
def test_norm_input(x, word):
    refusal(lambda: rms_norm(x), "x", word)


@pytest.mark.parametrize("d_model", [0, -1, 4.0, "4", None, True, NAN], ids=short)
def test_norm_width(d_model):
    refusal(lambda: RMSNorm(d_model), "d_model", shown(d_model))


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize(
    "x",
    [
        torch.ones(2, 3),
        torch.ones(4, 1),
        torch.tensor(1.0),
        torch.ones(4).long(),
        [1.0] * 4,
        None,
    ],
    ids=short,
)
def test_norm_module_input(x, affine):
    refusal(lambda: RMSNorm(4, elementwise_affine=affine)(x))


# --- embedding ---

BAD_SIZES = [0, -1, 4.0, 2.5, "4", None, True, NAN]


@pytest.mark.parametrize("size", BAD_SIZES, ids=short)
def test_table_sizes(size):
    refusal(lambda: ScaledEmbedding(size, 4), "vocab_size", shown(size))
    refusal(lambda: ScaledEmbedding(4, size), "d_model", shown(size))


@pytest.mark.parametrize("std", [-0.02, NAN, INF, "0.02", None, True, HUGE], ids=short)
def test_init_std(std):
    refusal(lambda: ScaledEmbedding(4, 4, init_std=std), "init_std", shown(std))


@pytest.mark.parametrize("scale", [NAN, INF, "sqrt", True, HUGE, [2.0]], ids=short)
def test_scale(scale):
    refusal(lambda: ScaledEmbedding(4, 4, scale=scale), "scale", shown(scale))


@pytest.mark.parametrize("padding_idx", [4, 5, -5, 1.0, "0", True], ids=short)
def test_padding_idx(padding_idx):
    refusal(
        lambda: ScaledEmbedding(4, 4, padding_idx=padding_idx),
        "padding_idx",
        shown(padding_idx),
    )


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_table_of_whole_numbers(dtype):
    refusal(lambda: ScaledEmbedding(4, 4, dtype=dtype), "dtype", dtype)


@pytest.mark.parametrize(
    "ids, word",
    [
        (torch.tensor([1.0, 2.0]), "float32"),
        (torch.tensor([1.7]), "float32"),
        (torch.tensor([1]).double(), "float64"),
        (torch.tensor([1]).bfloat16(), "bfloat16"),
        (torch.tensor([True, False]), "bool"),
        (torch.tensor([1]).to(torch.complex64), "complex64"),
        ([1, 2], "list"),
        (1, "int"),
        ("hello", "str"),
        (None, "None"),
    ],
    ids=short,
)
def test_token_ids(ids, word):
    refusal(lambda: ScaledEmbedding(4, 4)(ids), "ids", word)


@pytest.mark.parametrize("bad", [4, 100, -1])
def test_token_ids_out_of_range(bad):
    refusal(
        lambda: ScaledEmbedding(4, 4)(torch.tensor([[0, bad]])),
        str(bad),
        "4",
        kind=IndexError,
    )


@pytest.mark.parametrize(
    "hidden, word",
    [
        (torch.ones(2, 3), "3"),
        (torch.ones(2, 5), "5"),
        (torch.tensor(1.0), "()"),
        (torch.ones(4).long(), "int64"),
        (torch.ones(4).double(), "float64"),
        ([1.0] * 4, "list"),
        (None, "None"),
    ],
    ids=short,
)
def test_logits_input(hidden, word):
    refusal(lambda: ScaledEmbedding(7, 4).logits(hidden), word)
