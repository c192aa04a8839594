"""The embedding explorer's numbers against closed forms and simulated tables."""

import math

import pytest
import torch

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.explorers.embedding import EmbeddingScale, expected_log_sum
from apex_lessons.norm import rms_norm
from tests.explorers.page import call_formulas, run_states


def facts(**settings):
    return EmbeddingScale(**settings).facts()


@pytest.mark.parametrize("init, std, rms", [
    ("fixed", 1.0, 22.627416997969522), ("fixed", 0.02, 0.4525483399593904),
    ("1/sqrt(d)", 0.02, 1.0)])
def test_emb_01_three_inits(init, std, rms):
    """EMB-01: the size of the stream for the three usual tables at width 512."""
    assert facts(init=init, init_std=std)["stream_std"] == pytest.approx(rms, rel=1e-12)


def test_tie_12_the_token_echoes():
    """TIE-12: own-token logit d sigma after the norm, sqrt(d) d sigma^2 without it."""
    found = facts(vocab_size=50257)
    assert found["own_token_logit"] == pytest.approx(10.24, rel=1e-5)
    assert found["other_logit_std"] == pytest.approx(0.452548, rel=1e-5)
    assert found["probability_own"] == pytest.approx(0.3346, abs=1e-4)
    assert facts(d_model=7168)["own_token_logit"] == pytest.approx(143.36, rel=1e-5)
    assert facts(init_std=1.0)["own_token_logit"] == pytest.approx(512, rel=1e-5)
    bare = facts(norm=False)["own_token_logit"]
    assert bare == pytest.approx(4.634095001184158, rel=1e-12)
    bare = facts(norm=False, init_std=1.0)["own_token_logit"]
    assert bare == pytest.approx(11585.237502960395, rel=1e-12)


def test_tie_01_which_init_survives():
    """TIE-01: width 768, V 50257, hidden states of RMS 1 without the target."""
    start = {"d_model": 768, "vocab_size": 50257, "tied": False, "factor": "none"}
    assert facts(**start, init_std=1 / 48)["loss"] == pytest.approx(10.991571786368747,
                                                                    rel=1e-3)
    assert facts(**start, init_std=0.02)["loss"] == pytest.approx(10.9785, rel=1e-3)
    wide = facts(**start, init_std=1.0)
    assert wide["other_logit_std"] == pytest.approx(27.7128, rel=1e-5)
    assert wide["loss"] == pytest.approx(117, abs=1)


def test_the_factor_changes_the_stream_and_hardly_a_normed_logit():
    plain, scaled = facts(factor="none"), facts()
    assert scaled["stream_std"] / plain["stream_std"] == pytest.approx(512 ** 0.5)
    assert scaled["own_token_logit"] / plain["own_token_logit"] - 1 == pytest.approx(
        0.0012, abs=1e-4)


def test_vaswani_and_t5_are_one_function_of_the_logits():
    """Vaswani's table and T5's give the same logits; only the stream differs."""
    shared = {"d_model": 768, "vocab_size": 32128}
    vaswani = facts(**shared, init="1/sqrt(d)", factor="sqrt(d)")
    t5 = facts(**shared, init_std=1.0, factor="none", logit_factor="1/sqrt(d)")
    for name in ("own_token_logit", "other_logit_std", "loss", "probability_own"):
        assert vaswani[name] == pytest.approx(t5[name], rel=1e-12), name
    assert vaswani["init_std"] != t5["init_std"]


@pytest.mark.parametrize("std", [0.02, 1 / math.sqrt(512), 0.3])
def test_a_real_tied_table_behaves_so(std):
    """The package's own layers, drawn and run: 128 tokens of a table of 4,000."""
    width, vocab, tokens = 512, 4000, 128
    layer = ScaledEmbedding(vocab, width, init_std=std)
    with torch.no_grad():
        layer.weight.normal_(0, std, generator=torch.Generator().manual_seed(3))
        ids = torch.arange(tokens)
        logits = layer.logits(rms_norm(layer(ids)))
        loss = torch.nn.functional.cross_entropy(logits, ids + tokens).item()
        share = logits.softmax(-1)[ids, ids].mean().item()
    expected = facts(vocab_size=vocab, init_std=std)
    assert logits[ids, ids].mean().item() == pytest.approx(expected["own_token_logit"],
                                                           rel=0.01)
    assert loss == pytest.approx(expected["loss"], rel=0.02)
    assert share == pytest.approx(expected["probability_own"], abs=0.02)


@pytest.mark.parametrize("spread, count, own", [
    (0.1, 300, -math.inf), (1.0, 300, -math.inf), (1.01, 300, -math.inf),
    (6.0, 300, -math.inf),
    (80.0, 300, -math.inf), (0.5, 300, 6.0), (2.0, 300, 9.0), (2.0, 300, 30.0)])
def test_expected_log_sum_is_what_dice_give(spread, count, own):
    draws = torch.randn(20000, count, dtype=torch.float64,
                        generator=torch.Generator().manual_seed(1)) * spread
    logits = torch.cat((draws, torch.full((len(draws), 1), own, dtype=torch.float64)),
                       dim=1)
    sums = logits.logsumexp(1)
    mean, share = expected_log_sum(spread, count, own)
    standard_error = (sums.std() / len(sums) ** 0.5).item()
    assert abs(mean - sums.mean().item()) < 5 * standard_error + 1e-12
    assert share == pytest.approx(torch.exp(own - sums).mean().item(), abs=0.005)


def test_expected_log_sum_has_its_limits():
    for count in (2, 1000, 262144):
        mean, _ = expected_log_sum(1e-9, count)
        assert mean == pytest.approx(math.log(count), rel=1e-12)
    mean, _ = expected_log_sum(1e6, 2)  # the larger of two: spread / sqrt(pi)
    assert mean / 1e6 == pytest.approx(1 / math.sqrt(math.pi), rel=1e-6)
    mean, share = expected_log_sum(0.2, 100, 800.0)
    assert mean == pytest.approx(800, rel=1e-12) and share == pytest.approx(1)


def test_erfc_is_the_librarys():
    points = [k / 100 for k in range(-400, 2500, 3)]
    for x, ours in zip(points,
                       call_formulas([("embedding.erfc", [x]) for x in points])):
        assert ours == pytest.approx(math.erfc(x), rel=1e-12), x


def test_the_lines_are_straight_where_they_should_be(tmp_path):
    """On log axes: std 0.02 rises by √d, 1/√d is flat, own logits rise by d."""
    (shown,) = run_states(tmp_path, EmbeddingScale, [EmbeddingScale().defaults()])
    frames = shown["frames"]
    slopes = {}
    for picture in ("stream", "logits"):
        for mark in frames[picture]["marks"]:
            if mark["kind"] == "line":
                x, y = mark["x"], mark["y"]
                slopes[mark["key"]] = math.log(y[-1] / y[0]) / math.log(x[-1] / x[0])
                assert x[0] == 64 and x[-1] == 8192 and x == sorted(x)
    assert slopes["small"] == pytest.approx(0.5) and slopes["one"] == pytest.approx(0.5)
    assert slopes["root"] == pytest.approx(0, abs=1e-12)
    assert slopes["own"] == pytest.approx(1, abs=1e-3)
    assert slopes["others"] == pytest.approx(0.5, abs=1e-3)
    assert slopes["norm"] == pytest.approx(0, abs=1e-3)
    now = next(m for m in frames["stream"]["marks"] if m["key"] == "now")
    assert (now["x"], now["y"]) == ([512.0], [shown["facts"]["stream_std"]])
    loss = {m["key"]: m["x"][0] for m in frames["loss"]["marks"] if m["kind"] == "dots"}
    assert loss == {"even": shown["facts"]["log_vocab"],
                    "tied": shown["facts"]["loss_tied"],
                    "untied": shown["facts"]["loss_untied"]}


def test_words_carry_the_facts(tmp_path):
    states = [EmbeddingScale().defaults(),
              {**EmbeddingScale().defaults(), "tied": False},
              {**EmbeddingScale().defaults(), "norm": False}]
    tied, untied, bare = (" ".join(page["words"])
                          for page in run_states(tmp_path, EmbeddingScale, states))
    for piece in ("**0.4525**", "**10.24**", "**14.3%**", "**11.93**", "**0.12%**"):
        assert piece in tied
    assert "no token is special" in untied and "own logit" not in untied
    assert "norm" not in bare and "**4.634**" in bare
