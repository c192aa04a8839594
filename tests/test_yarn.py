"""Scaled frequencies against released libraries and written-out formulas."""

import math

import pytest
import torch

from apex_lessons.rope import inverse_frequencies, wavelengths
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
from tests import oracles

GOLDEN = oracles.golden("frequencies.json")
CASES = {case["name"]: case for case in GOLDEN["cases"]}
EDGES = {case["name"]: case for case in GOLDEN["edge_cases"]}
YARN_NAMES = [name for name, case in CASES.items() if case["kind"] == "yarn"]
LIBRARY, EXACT = 5e-7, 1e-12

# Peers that compute the same rule in float32; llama.cpp multiplies its way from pair to
# pair, so its rounding adds up.
SAME_RULE = {
    "jquesnelle/yarn": LIBRARY,
    "deepseek-ai/DeepSeek-V3": LIBRARY,
    "torchtitan _yarn_inv_freq": LIBRARY,
    "llama.cpp (float32 transcription)": 5e-6,
}
APEX_PEER = "APEX-1 apply_yarn_scaling"
PAPER_PEER = "paper arXiv:2309.00071, ramp linear in rotations (float64)"


def assert_frequencies(got, want, rtol):
    assert got.dtype == torch.float64 and got.device.type == "cpu"
    want = torch.tensor(want, dtype=torch.float64)
    torch.testing.assert_close(got, want, rtol=rtol, atol=0.0)


def yarn_of(config, **more):
    """Our yarn for a golden configuration."""
    settings = {
        key: config[key]
        for key in ("base", "factor", "beta_fast", "beta_slow", "truncate")
    }
    length = config.get("original_max_position_embeddings", config.get("L"))
    for key in ("mscale", "mscale_all_dim"):
        if config.get(key) is not None:
            settings[key] = config[key]
    return yarn(config["dim"], trained_length=length, **{**settings, **more})


def scaled_of(case):
    """Our answer to a golden case of any kind."""
    kind, config = case["kind"], case["config"]
    dim, base = config["dim"], config["base"]
    if kind == "yarn":
        return yarn_of(config)
    if kind == "default":
        return ScaledFrequencies(inverse_frequencies(dim, base), 1.0)
    if kind == "linear":
        return position_interpolation(dim, base=base, factor=config["factor"])
    if kind == "dynamic":
        trained = config["max_position_embeddings"]
        return dynamic_ntk(
            dim,
            base=base,
            factor=config["factor"],
            trained_length=trained,
            length=config["seq_len"] or trained,
        )
    if kind == "longrope":
        trained = config["original_max_position_embeddings"]
        return longrope(
            dim,
            base=base,
            factor=config["max_position_embeddings"] / trained,
            trained_length=trained,
            factors=config["short_factor"],
        )
    if kind == "proportional":
        return proportional(
            dim, base=base, partial_rotary_factor=config["partial_rotary_factor"]
        )
    assert kind == "llama3"
    return llama3(
        dim,
        base=base,
        factor=config["factor"],
        trained_length=config["original_max_position_embeddings"],
        low_freq_factor=config["low_freq_factor"],
        high_freq_factor=config["high_freq_factor"],
    )


# --- golden numbers ---


@pytest.mark.parametrize("name", CASES)
def test_golden_frequencies_and_factor(name):
    case = CASES[name]
    scaled = scaled_of(case)
    assert_frequencies(scaled.inv_freq, case["inv_freq"], LIBRARY)
    assert_frequencies(scaled.inv_freq, case["inv_freq_f64"], EXACT)
    assert scaled.attention_factor == pytest.approx(case["attention_factor"], rel=EXACT)
    assert isinstance(scaled.attention_factor, float)


@pytest.mark.parametrize("peer", SAME_RULE)
@pytest.mark.parametrize("name", YARN_NAMES)
def test_golden_peers_with_the_same_rule(name, peer):
    scaled = yarn_of(CASES[name]["config"])
    want = CASES[name]["peers"][peer]["inv_freq"]
    assert_frequencies(scaled.inv_freq, want, SAME_RULE[peer])


def test_golden_llama3_in_torchtune():
    case = CASES["Llama-3.1"]
    want = case["peers"]["torchtune Llama3ScaledRoPE"]["inv_freq"]
    assert_frequencies(scaled_of(case).inv_freq, want, LIBRARY)


@pytest.mark.parametrize("name", YARN_NAMES)
def test_golden_apex1_rule_is_another_rule(name):
    case = CASES[name]
    config = case["config"]
    scaled = apex1(config["dim"], base=config["base"], factor=config["factor"])
    want = case["peers"][APEX_PEER]["inv_freq"]
    assert_frequencies(scaled.inv_freq, want, LIBRARY)
    assert scaled.attention_factor == 1.0
    # A program that calls YaRN here is off by up to 97 %.
    gap = (scaled.inv_freq / yarn_of(config).inv_freq - 1).abs().max()
    assert gap > 0.7


@pytest.mark.parametrize("name", YARN_NAMES)
def test_golden_ramp_of_the_paper(name):
    case = CASES[name]
    want = case["peers"][PAPER_PEER]["inv_freq"]
    scaled = yarn_of(case["config"], ramp="rotations")
    assert_frequencies(scaled.inv_freq, want, EXACT)
    # The two ramps differ where they ramp, so one cannot stand in for the other.
    assert (scaled.inv_freq / yarn_of(case["config"]).inv_freq - 1).abs().max() > 0.4


@pytest.mark.parametrize("name", YARN_NAMES)
def test_golden_ramp_range(name):
    """Below low every pair is plain, from high on every pair is divided."""
    case = CASES[name]
    config, span = case["config"], case["range"]
    plain = inverse_frequencies(config["dim"], config["base"])
    ratio = yarn_of(config).inv_freq / plain
    low, high = span["low"], span["high"]
    assert bool((ratio[: low + 1] == 1).all())
    torch.testing.assert_close(
        ratio[high:],
        torch.full_like(ratio[high:], 1 / config["factor"]),
        rtol=EXACT,
        atol=0,
    )
    inside = ratio[low + 1 : high]
    assert bool(((inside < 1) & (inside > 1 / config["factor"])).all())


DOCUMENTED = [
    "L=32, dim 16: low raw negative",
    "L=64, dim 8, base 100",
    "truncate=False nearly equal low/high (not caught by ==)",
    "factor=1 must be the identity",
]
REFUSED = [
    "dim 8, L=4, truncate=True: low == high == 0",
    "dim 64, L=4, truncate=True: NEGATIVE ramp width",
    "swapped betas (beta_fast 1, beta_slow 32)",
]


def test_every_edge_case_is_judged():
    assert set(DOCUMENTED) | set(REFUSED) == set(EDGES)


@pytest.mark.parametrize("name", DOCUMENTED)
def test_edge_case_has_the_documented_value(name):
    edge = EDGES[name]
    scaled = yarn_of(edge["config"])
    assert_frequencies(scaled.inv_freq, edge["hf"]["inv_freq"], LIBRARY)
    assert scaled.attention_factor == pytest.approx(
        edge["hf"]["attention_factor"], rel=EXACT
    )


@pytest.mark.parametrize("name", REFUSED)
def test_edge_case_where_libraries_are_silently_wrong_is_refused(name):
    with pytest.raises(ValueError):
        yarn_of(EDGES[name]["config"])


@pytest.mark.parametrize("name", [*DOCUMENTED, *REFUSED[:2]])
def test_edge_case_with_the_ramp_of_the_paper(name):
    """Counting turns needs no pair index, so a tiny trained length is fine there."""
    edge = EDGES[name]
    scaled = yarn_of(edge["config"], ramp="rotations")
    assert_frequencies(scaled.inv_freq, edge["paper_linear_in_rotations_f64"], EXACT)


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("dim, length", [(64, 4), (8, 4), (32, 6), (128, 1)])
def test_a_length_in_which_no_pair_turns_once_is_refused(dim, length, truncate):
    with pytest.raises(ValueError, match=str(length)):
        yarn(dim, base=1e4, factor=4, trained_length=length, truncate=truncate)


@pytest.mark.parametrize("length", [10**9, 10**11, 10**13])
@pytest.mark.parametrize("truncate", [True, False])
def test_a_length_in_which_every_pair_turns_often_keeps_every_pair(length, truncate):
    """Libraries clamp the upper end below the lower one here and divide every pair."""
    plain = inverse_frequencies(8, 1e4)
    assert min(oracles.turns(8, 1e4, length)) > 32
    scaled = yarn(8, base=1e4, factor=4, trained_length=length, truncate=truncate)
    assert torch.equal(scaled.inv_freq, plain)


# --- the two ramps, by formula ---

SETTINGS = [
    (128, 1e4, 16, 4096),
    (64, 1.5e5, 32, 4096),
    (64, 1e4, 40, 4096),
    (32, 1e4, 32, 4096),
    (128, 1e6, 4, 32768),
    (64, 1e4, 4, 131072),
    (256, 5e5, 2.5, 8192),
    (16, 1e4, 4, 32),
]


@pytest.mark.parametrize("truncate", [True, False])
@pytest.mark.parametrize("dim, base, factor, length", SETTINGS)
def test_pair_ramp_by_formula(dim, base, factor, length, truncate):
    ramp = oracles.pair_ramp(dim, base, length, 32.0, 1.0, truncate)
    scaled = ntk_by_parts(
        dim, base=base, factor=factor, trained_length=length, truncate=truncate
    )
    assert_frequencies(scaled.inv_freq, oracles.blend(dim, base, factor, ramp), EXACT)
    assert scaled.attention_factor == 1.0


@pytest.mark.parametrize("dim, base, factor, length", SETTINGS)
def test_rotations_ramp_by_formula(dim, base, factor, length):
    ramp = oracles.rotations_ramp(dim, base, length, 32.0, 1.0)
    scaled = ntk_by_parts(
        dim, base=base, factor=factor, trained_length=length, ramp="rotations"
    )
    assert_frequencies(scaled.inv_freq, oracles.blend(dim, base, factor, ramp), EXACT)


def test_rotations_ramp_has_no_rounded_ends():
    """``truncate`` rounds pair indices; the ramp over turns has none to round."""
    one, other = (
        yarn(
            64,
            base=1e4,
            factor=8,
            trained_length=4096,
            ramp="rotations",
            truncate=truncate,
        ).inv_freq
        for truncate in (True, False)
    )
    assert torch.equal(one, other)


@pytest.mark.parametrize("ramp", ["pair", "rotations"])
def test_other_betas_by_formula(ramp):
    betas = {"beta_fast": 16.0, "beta_slow": 2.0}
    if ramp == "pair":
        share = oracles.pair_ramp(64, 1e4, 4096, 16.0, 2.0, True)
    else:
        share = oracles.rotations_ramp(64, 1e4, 4096, 16.0, 2.0)
    scaled = yarn(64, base=1e4, factor=8, trained_length=4096, ramp=ramp, **betas)
    assert_frequencies(scaled.inv_freq, oracles.blend(64, 1e4, 8, share), EXACT)


@pytest.mark.parametrize("ramp", ["pair", "rotations"])
@pytest.mark.parametrize("truncate", [True, False])
def test_equal_betas_are_a_step(ramp, truncate):
    """Kimi-K2 ships 1 and 1; a division by the ramp's zero width would give nan."""
    scaled = yarn(
        64,
        base=5e4,
        factor=64,
        trained_length=4096,
        beta_fast=1.0,
        beta_slow=1.0,
        ramp=ramp,
        truncate=truncate,
    )
    plain = inverse_frequencies(64, 5e4)
    turns = torch.tensor(oracles.turns(64, 5e4, 4096))
    want = torch.where(turns > 1, plain, plain / 64)
    torch.testing.assert_close(scaled.inv_freq, want, rtol=EXACT, atol=0)


def test_section_5_6_of_the_reference_worked_correctly():
    """head_dim 32, base 1e4, 4096 tokens, factor 32, to four digits."""
    common = {"base": 1e4, "factor": 32.0}
    trained = {**common, "trained_length": 4096}
    columns = {
        "rotations": yarn(32, **trained, ramp="rotations"),
        "pair": yarn(32, **trained),
        "unrounded": yarn(32, **trained, truncate=False),
        "apex1": apex1(32, **common),
    }
    rows = {
        4: (0.1, 0.1, 0.1, 0.003125),
        6: (0.02037, 0.02725, 0.02774, 0.0009882),
        8: (0.002037, 0.005848, 0.005553, 0.0003125),
        10: (2.037e-4, 9.741e-4, 7.383e-4, 9.882e-5),
        11: (6.442e-5, 3.017e-4, 1.290e-4, 5.557e-5),
        12: (3.125e-5,) * 4,
        15: (5.557e-6,) * 4,
    }
    for pair, row in rows.items():
        got = [columns[name].inv_freq[pair].item() for name in columns]
        assert got == pytest.approx(row, rel=3e-4), pair


# --- the other methods, by formula ---


@pytest.mark.parametrize("factor", [1, 2, 4.0, 40])
def test_position_interpolation_divides_every_pair(factor):
    want = [f / factor for f in oracles.plain_frequencies(64, 1e4)]
    scaled = position_interpolation(64, base=1e4, factor=factor)
    assert_frequencies(scaled.inv_freq, want, EXACT)
    assert scaled.attention_factor == 1.0


@pytest.mark.parametrize("factor, base", [(2, 20221), (8, 82685), (32, 338097)])
def test_ntk_aware_is_a_larger_base(factor, base):
    larger = 1e4 * factor ** (128 / 126)
    assert larger == pytest.approx(base, rel=1e-4)
    scaled = ntk_aware(128, base=1e4, factor=factor)
    assert_frequencies(scaled.inv_freq, oracles.plain_frequencies(128, larger), EXACT)
    assert scaled.inv_freq[0] == 1.0
    last = oracles.plain_frequencies(128, 1e4)[-1]
    assert scaled.inv_freq[-1].item() == pytest.approx(last / factor, rel=EXACT)


@pytest.mark.parametrize(
    "length, base", [(1, 1e4), (4096, 1e4), (8192, 30527.7367488067)]
)
def test_dynamic_ntk_follows_the_length(length, base):
    scaled = dynamic_ntk(128, base=1e4, factor=2, trained_length=4096, length=length)
    assert_frequencies(scaled.inv_freq, oracles.plain_frequencies(128, base), EXACT)


def test_llama3_by_formula_and_by_count():
    scaled = llama3(128, base=5e5, factor=8, trained_length=8192)
    assert_frequencies(scaled.inv_freq, oracles.llama3(128, 5e5, 8, 8192), EXACT)
    plain = inverse_frequencies(128, 5e5)
    assert torch.equal(scaled.inv_freq[:29], plain[:29])
    torch.testing.assert_close(scaled.inv_freq[35:], plain[35:] / 8, rtol=EXACT, atol=0)


def test_llama3_with_other_bounds_by_formula():
    scaled = llama3(
        64,
        base=1e4,
        factor=32,
        trained_length=4096,
        low_freq_factor=2,
        high_freq_factor=9,
    )
    want = oracles.llama3(64, 1e4, 32, 4096, low=2, high=9)
    assert_frequencies(scaled.inv_freq, want, EXACT)


@pytest.mark.parametrize("kind", [list, tuple])
def test_longrope_divides_by_its_list(kind):
    factors = [1.0, 1.5, 4.0, 31.5]
    plain = oracles.plain_frequencies(8, 1e4)
    scaled = longrope(
        8, base=1e4, factor=32, trained_length=4096, factors=kind(factors)
    )
    want = [f / by for f, by in zip(plain, factors, strict=True)]
    assert_frequencies(scaled.inv_freq, want, EXACT)
    assert scaled.attention_factor == pytest.approx(1.1902380714238083, rel=EXACT)


def test_longrope_factor_given_by_hand_wins():
    scaled = longrope(
        4,
        base=1e4,
        factor=32,
        trained_length=4096,
        factors=[1, 2],
        attention_factor=1.25,
    )
    assert scaled.attention_factor == 1.25


def test_proportional_keeps_the_exponent_of_the_whole_head():
    """Not partial rotary, whose exponent divides by the rotary width: [1, 0.01]."""
    scaled = proportional(8, base=1e4, partial_rotary_factor=0.5)
    torch.testing.assert_close(
        scaled.inv_freq, torch.tensor([1, 0.1, 0, 0], dtype=torch.float64)
    )
    halved = proportional(8, base=1e4, partial_rotary_factor=0.5, factor=2.0)
    torch.testing.assert_close(halved.inv_freq, scaled.inv_freq / 2)
    assert wavelengths(scaled.inv_freq)[2:].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(
    "dim, base, factor",
    [
        (128, 1e4, 4),
        (128, 1e4, 32),
        (128, 1e4, 64),
        (64, 1e4, 128),
        (32, 5e5, 40),
        (128, 1e6, 8),
        (16, 1e4, 2),
        (64, 1e4, 1),
    ],
)
def test_apex1_by_its_printed_rule(dim, base, factor):
    scaled = apex1(dim, base=base, factor=factor)
    assert_frequencies(scaled.inv_freq, oracles.apex1(dim, base, factor), EXACT)


def test_apex1_middle_divides_by_the_wavelength():
    """factor 64: five pairs in the middle, divided by their own wavelength."""
    plain = inverse_frequencies(128, 1e4)
    divisor = plain / apex1(128, base=1e4, factor=64).inv_freq
    middle = divisor[(divisor > 1.5) & (divisor < 63.5)]
    assert middle.tolist() == pytest.approx(
        [35.333, 40.802, 47.117, 54.410, 62.832], rel=2e-5
    )


@pytest.mark.parametrize("factor", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("base", [1e4, 5e5, 1e6])
@pytest.mark.parametrize("dim", [32, 64, 128])
def test_apex1_is_a_step_up_to_factor_32(dim, base, factor):
    plain = inverse_frequencies(dim, base)
    want = torch.where(2 * math.pi / plain < 32, plain, plain / factor)
    torch.testing.assert_close(
        apex1(dim, base=base, factor=factor).inv_freq, want, rtol=1e-15, atol=0
    )


# --- attention factors ---

TRAINED = {"base": 1e4, "trained_length": 4096}


@pytest.mark.parametrize("factor", [1, 2, 4, 32, 40, 128])
def test_default_attention_factor(factor):
    got = yarn(64, factor=factor, **TRAINED).attention_factor
    assert got == pytest.approx(0.1 * math.log(factor) + 1, rel=EXACT)
    assert apex1_score_factor(factor) == pytest.approx(got, rel=EXACT)


@pytest.mark.parametrize("given", [1, 1.0, 0.5, 1.3689])
@pytest.mark.parametrize("scales", [{}, {"mscale": 1.0, "mscale_all_dim": 0.5}])
def test_an_attention_factor_given_by_hand_is_used_as_it_is(given, scales):
    scaled = yarn(64, factor=40, attention_factor=given, **scales, **TRAINED)
    assert scaled.attention_factor == given


@pytest.mark.parametrize(
    "mscale, all_dim, ratio",
    [
        (1.0, 1.0, 1.0),
        (0.707, 0.707, 1.0),
        (1.0, 0.707, 1.0857263992561355),
    ],
)
def test_two_scales_give_their_ratio(mscale, all_dim, ratio):
    scaled = yarn(64, factor=40, mscale=mscale, mscale_all_dim=all_dim, **TRAINED)
    assert scaled.attention_factor == pytest.approx(ratio, rel=EXACT)


def test_only_yarn_and_longrope_have_a_factor():
    others = [
        position_interpolation(64, base=1e4, factor=4),
        ntk_aware(64, base=1e4, factor=4),
        dynamic_ntk(64, factor=4, length=9000, **TRAINED),
        ntk_by_parts(64, factor=4, **TRAINED),
        llama3(64, factor=4, **TRAINED),
        proportional(64, base=1e4, partial_rotary_factor=0.5),
        apex1(64, base=1e4, factor=4),
    ]
    assert [scaled.attention_factor for scaled in others] == [1.0] * len(others)


# --- regimes ---


def counts(plain, scaled, factor):
    got = regimes(plain, scaled.inv_freq, factor)
    assert got.dtype == torch.int8 and got.shape == plain.shape
    return [int((got == value).sum()) for value in (0, 1, 2)]


@pytest.mark.parametrize(
    "dim, base, factor, length, by_turns, apex",
    [
        (128, 1e4, 32, 4096, [21, 25, 18], [12, 0, 52]),
        (64, 1e4, 4, 8192, [13, 12, 7], [6, 0, 26]),
        (32, 1e4, 4, 8192, [7, 6, 3], [3, 0, 13]),
        (128, 5e5, 4, 65536, [29, 17, 18], [8, 0, 56]),
        (128, 1e6, 8, 131072, [31, 16, 17], [8, 0, 56]),
        (64, 1e4, 40, 4096, [11, 12, 9], [6, 1, 25]),
    ],
)
def test_regimes_counted(dim, base, factor, length, by_turns, apex):
    plain = inverse_frequencies(dim, base)
    paper = yarn(dim, base=base, factor=factor, trained_length=length, ramp="rotations")
    assert counts(plain, paper, factor) == by_turns
    assert counts(plain, apex1(dim, base=base, factor=factor), factor) == apex


@pytest.mark.parametrize("factor, want", [(32, 0), (40, 1), (64, 5), (128, 9)])
def test_regimes_of_apex1_by_factor(factor, want):
    plain = inverse_frequencies(128, 1e4)
    kept, middle, _ = counts(plain, apex1(128, base=1e4, factor=factor), factor)
    assert (kept, middle) == (12, want)


def test_regimes_of_the_plain_cases():
    plain = inverse_frequencies(64)
    linear = position_interpolation(64, base=1e4, factor=4)
    assert counts(plain, linear, 4) == [0, 0, 32]
    assert counts(plain, ScaledFrequencies(plain, 1.0), 4) == [32, 0, 0]
    assert counts(plain, ScaledFrequencies(plain, 1.0), 1) == [32, 0, 0]
    assert counts(plain, ntk_aware(64, base=1e4, factor=4), 4) == [1, 30, 1]
    assert counts(
        inverse_frequencies(128, 5e5),
        llama3(128, base=5e5, factor=8, trained_length=8192),
        8,
    ) == [29, 6, 29]


def test_regimes_of_a_pair_that_does_not_turn():
    """0 divided by the factor is 0: unchanged comes first."""
    plain = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert regimes(plain, plain / 4, 4).tolist() == [2, 0]
