"""formulas.js against the package's own functions, at random settings, under node."""

import json
import math
import random

import pytest
import torch

from apex_lessons import norm, rope, yarn
from apex_lessons.explorers import base
from tests.explorers.page import call_formulas, close, run_node

COUNT = 250
HEADS = (4, 8, 16, 32, 64, 80, 96, 128, 256)
BASES = (100.0, 1e4, 5e4, 1.5e5, 5e5, 1e6)


def draw(seed):
    """One random setting of the methods that lengthen texts."""
    pick = random.Random(seed)
    beta_slow = pick.choice([0.5, 1.0, 1.0, 2.0])
    return {"head_dim": pick.choice(HEADS),
            "base": pick.choice([*BASES, pick.uniform(1.5, 2e6)]),
            "factor": pick.choice([1.0, 2.0, 4.0, 32.0, 40.0, pick.uniform(1, 128)]),
            "trained_length": pick.randint(64, 262144),
            "length": pick.randint(1, 2**20),
            "beta_slow": beta_slow,
            "beta_fast": beta_slow * pick.choice([1.0, 8.0, 32.0]),
            "ramp": pick.choice(["pair", "rotations"]), "truncate": pick.random() < 0.5,
            "mscale": pick.uniform(0.1, 2), "mscale_all_dim": pick.uniform(0.1, 2),
            "low_freq_factor": beta_slow,
            "high_freq_factor": beta_slow * pick.choice([1, 4, 7.5]),
            "share": pick.choice([0.25, 0.5, 1.0, pick.uniform(0.01, 1)]),
            "factors": [pick.uniform(1, 64) for _ in range(128)]}


SETTINGS = [draw(seed) for seed in range(COUNT)]


def keep(setting, *names):
    return {name: setting[name] for name in names}


METHODS = {
    "positionInterpolation": (yarn.position_interpolation,
                              lambda s: keep(s, "base", "factor")),
    "ntkAware": (yarn.ntk_aware, lambda s: keep(s, "base", "factor")),
    "dynamicNtk": (yarn.dynamic_ntk,
                   lambda s: keep(s, "base", "factor", "trained_length", "length")),
    "ntkByParts": (yarn.ntk_by_parts,
                   lambda s: keep(s, "base", "factor", "trained_length", "beta_fast",
                                  "beta_slow", "ramp", "truncate")),
    "yarn": (yarn.yarn,
             lambda s: keep(s, "base", "factor", "trained_length", "beta_fast",
                            "beta_slow", "ramp", "truncate",
                            *(["mscale", "mscale_all_dim"] * (s["share"] < 0.5)))),
    "llama3": (yarn.llama3, lambda s: keep(s, "base", "factor", "trained_length",
                                           "low_freq_factor", "high_freq_factor")),
    "longrope": (yarn.longrope,
                 lambda s: {**keep(s, "base", "factor", "trained_length"),
                            "factors": s["factors"][:s["head_dim"] // 2]}),
    "proportional": (yarn.proportional,
                     lambda s: {**keep(s, "base", "factor"),
                                "partial_rotary_factor": s["share"]}),
    "apex1": (yarn.apex1,
              lambda s: keep(s, "base", "factor", "beta_fast", "beta_slow")),
}


@pytest.mark.parametrize("name", METHODS)
def test_scaling_methods_agree(name):
    function, arguments = METHODS[name]
    calls = [(f"yarn.{name}", [s["head_dim"], arguments(s)]) for s in SETTINGS]
    compared = 0
    for setting, answer in zip(SETTINGS, call_formulas(calls)):
        try:
            expected = function(setting["head_dim"], **arguments(setting))
        except ValueError as refused:
            assert isinstance(answer, RuntimeError), (setting, str(refused))
            continue
        assert not isinstance(answer, RuntimeError), (setting, answer)
        assert close(answer["inv_freq"], expected.inv_freq.tolist()), setting
        assert close(answer["attention_factor"], expected.attention_factor), setting
        compared += 1
    assert compared >= 200


def test_the_pieces_of_the_ramps_agree():
    plain = [rope.inverse_frequencies(s["head_dim"], s["base"]) for s in SETTINGS]
    calls, expected = [], []
    for s, inv_freq in zip(SETTINGS, plain):
        betas = s["beta_fast"], s["beta_slow"]
        where = s["head_dim"], s["base"], s["trained_length"]
        calls += [("rope.inverseFrequencies", where[:2]),
                  ("rope.wavelengths", [inv_freq.tolist()]),
                  ("yarn.rotations", [inv_freq.tolist(), s["trained_length"]]),
                  ("yarn.pairAtRotations", [s["beta_slow"], *where]),
                  ("yarn.rotationsRamp",
                   [inv_freq.tolist(), s["trained_length"], *betas]),
                  ("yarn.yarnAttentionFactor", [s["factor"], s["mscale"]]),
                  ("yarn.longropeAttentionFactor", [s["factor"], s["trained_length"]])]
        expected += [inv_freq.tolist(), rope.wavelengths(inv_freq).tolist(),
                     yarn.rotations(inv_freq, s["trained_length"]).tolist(),
                     yarn.pair_at_rotations(s["beta_slow"], *where),
                     yarn.rotations_ramp(inv_freq, s["trained_length"],
                                         *betas).tolist(),
                     yarn.yarn_attention_factor(s["factor"], s["mscale"]),
                     math.sqrt(1
                               + math.log(s["factor"]) / math.log(s["trained_length"]))]
    for call, ours, theirs in zip(calls, call_formulas(calls), expected):
        assert close(ours, theirs), call


def test_pair_ramps_agree():
    calls = [("yarn.pairRamp",
              [s["head_dim"], s["base"], s["trained_length"], s["beta_fast"],
               s["beta_slow"], s["truncate"]]) for s in SETTINGS]
    for (_, given), answer in zip(calls, call_formulas(calls)):
        try:
            expected = yarn.pair_ramp(*given).tolist()
        except ValueError:
            assert isinstance(answer, RuntimeError), given
        else:
            # beside 1, not beside itself: near its ends the ramp is a small difference
            assert all(abs(a - b) < 1e-12 for a, b in zip(answer, expected)), given


def test_regimes_agree():
    calls, expected = [], []
    for s in SETTINGS:
        plain = rope.inverse_frequencies(s["head_dim"], s["base"])
        scaled = yarn.apex1(s["head_dim"], **keep(s, "base", "factor")).inv_freq
        calls.append(("yarn.regimes", [plain.tolist(), scaled.tolist(), s["factor"]]))
        expected.append(yarn.regimes(plain, scaled, s["factor"]).tolist())
    assert call_formulas(calls) == expected


def rotary_case(seed):
    pick = random.Random(seed)
    head_dim = pick.choice((2, 4, 8, 16, 32))
    rotary_dim = pick.choice((head_dim, max(2, head_dim // 2)))
    inv_freq = rope.inverse_frequencies(rotary_dim, pick.choice(BASES))
    draw = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, head_dim, dtype=torch.float64, generator=draw)
    return {"q": q, "k": k, "inv_freq": inv_freq, "m": pick.randint(0, 4096),
            "n": pick.randint(0, 4096), "layout": pick.choice(rope.LAYOUTS),
            "other": pick.choice(rope.LAYOUTS), "factor": pick.uniform(0.5, 2)}


def turned(x, position, inv_freq, layout, factor):
    cos, sin = rope.rotary_tables(torch.tensor([position]), inv_freq,
                                  dtype=torch.float64,
                                  attention_factor=factor)
    return rope.apply_rotary(x.reshape(1, 1, 1, -1), cos, sin,
                             layout=layout).reshape(-1)


def test_rotations_and_scores_agree():
    cases = [rotary_case(seed) for seed in range(COUNT)]
    calls, expected, sizes = [], [], []
    for c in cases:
        q, k, inv_freq = c["q"].tolist(), c["k"].tolist(), c["inv_freq"].tolist()
        query = turned(c["q"], c["m"], c["inv_freq"], c["layout"], c["factor"])
        key = turned(c["k"], c["n"], c["inv_freq"], c["other"], c["factor"])
        layouts = {"layout_q": c["layout"], "layout_k": c["other"],
                   "attention_factor": c["factor"]}
        rotation = {"layout": c["layout"], "attention_factor": c["factor"]}
        calls += [("rope.rotate", [q, c["m"], inv_freq, rotation]),
                  ("rope.score", [q, k, c["m"], c["n"], inv_freq, layouts]),
                  ("rope.scoreMatrix", [q, k, [c["m"]], [c["n"]], inv_freq, layouts])]
        expected += [query.tolist(), (query @ key).item(), [[(query @ key).item()]]]
        size = (c["q"].norm() * c["k"].norm() * c["factor"] ** 2).item()
        sizes += [c["q"].norm().item() * c["factor"], size, size]
    for call, ours, theirs, size in zip(calls, call_formulas(calls), expected, sizes):
        difference = torch.tensor(ours) - torch.tensor(theirs)
        assert difference.abs().max() <= 1e-11 * size, call


def test_pair_scores_add_up_to_the_score():
    calls = []
    for seed in range(COUNT):
        c = rotary_case(seed)
        head_dim = 2 * len(c["inv_freq"])
        q, k = c["q"][:head_dim].tolist(), c["k"][:head_dim].tolist()
        inv_freq, both = c["inv_freq"].tolist(), {"layout_q": c["layout"],
                                                  "layout_k": c["layout"]}
        calls += [("rope.pairScores",
                   [q, k, c["m"] - c["n"], inv_freq, {"layout": c["layout"]}]),
                  ("rope.score", [q, k, c["m"], c["n"], inv_freq, both])]
    answers = call_formulas(calls)
    for parts, score in zip(answers[0::2], answers[1::2]):
        assert sum(parts) == pytest.approx(score, abs=1e-10)


def test_norms_agree():
    calls, expected = [], []
    for seed in range(COUNT):
        draw = torch.Generator().manual_seed(seed)
        size = 10.0 ** random.Random(seed).uniform(-9, 150)
        width = random.Random(seed).choice((1, 2, 4, 8, 33))
        eps = random.Random(seed).choice((0.0, 1e-8, 1e-6, 1e-5, 1.0))
        x = torch.randn(width, dtype=torch.float64, generator=draw) * size
        weight = torch.randn(width, dtype=torch.float64, generator=draw)
        calls += [("norm.rmsNorm", [x.tolist(), {"weight": weight.tolist(), "eps": eps,
                                                 "weight_offset": 1.0}]),
                  ("norm.rmsNorm", [x.tolist(), {"eps": eps}])]
        expected += [norm.rms_norm(x, weight, eps, weight_offset=1.0).tolist(),
                     norm.rms_norm(x, None, eps).tolist()]
    for call, ours, theirs in zip(calls, call_formulas(calls), expected):
        assert close(ours, theirs), call


def test_layer_norm_agrees_with_torch():
    calls, expected = [], []
    for seed in range(COUNT):
        draw = torch.Generator().manual_seed(seed)
        x, weight, bias = torch.randn(3, 16, dtype=torch.float64, generator=draw)
        calls.append(("norm.layerNorm", [x.tolist(), {"weight": weight.tolist(),
                                                      "bias": bias.tolist(),
                                                      "eps": 1e-5}]))
        expected.append(torch.nn.functional.layer_norm(x, (16,), weight, bias, 1e-5))
    for ours, theirs in zip(call_formulas(calls), expected):
        assert (torch.tensor(ours, dtype=torch.float64) - theirs).abs().max() < 1e-12


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_rounding_is_torchs(dtype):
    pick = random.Random(1)
    values = [pick.choice([-1, 1]) * 10.0 ** pick.uniform(-46, 40) for _ in range(2000)]
    values += [pick.uniform(-70000, 70000) for _ in range(2000)]
    values += [65504.0, 65519.99, 65520.0, 2.0**-24, 2.0**-25, 3 * 2.0**-25, 256.5,
               257.0, 259.0,
               2.0**-149, 2.0**-150, 1.0 + 2.0**-8, 1.0 + 3 * 2.0**-9, 0.0]
    # by way of float32 where that changes nothing: torch rounds float64 that way
    values = [torch.tensor(value, dtype=torch.float32).double().item()
              if dtype != "float32" else value for value in values]
    expected = torch.tensor(values,
                            dtype=torch.float64).to(getattr(torch, dtype)).double()
    assert call_formulas([("norm.roundTo", [v, dtype])
                          for v in values]) == expected.tolist()


def test_the_comparison_can_fail():
    """A formula that is off by one part in 10^11 is found."""
    power = "base ** (-2 * i / head_dim)"
    source = base.read("formulas.js").replace(power, f"{power} * (1 + 1e-11)")
    given = run_node(f"{source}\nconsole.log(JSON.stringify("
                     "formulas.rope.inverseFrequencies(64, 10000)));", [])
    assert not close(given, rope.inverse_frequencies(64).tolist())
    assert json.dumps(given) != "[]"
