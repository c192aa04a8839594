"""compare: pair by pair against closed forms, and the sentences that follow."""

import math

import pytest

from apex_lessons.models import ConfigError, compare

LLAMA = {"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
         "max_position_embeddings": 2048, "rope_theta": 10000.0}
LINEAR = {**LLAMA, "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
GEMMA = {"model_type": "gemma3_text", "hidden_size": 256, "num_attention_heads": 4,
         "num_hidden_layers": 6, "head_dim": 64, "max_position_embeddings": 2048}


def test_a_config_agrees_with_itself():
    data = compare(LLAMA, LLAMA).data()
    assert all(row["ratio"] == 1 and row["half_turn_apart"] is None
               for row in data["pairs"])
    assert data["first_apart"] is None and data["only_a"] == data["only_b"] == 0
    assert all(item["a"] == item["b"] for item in data["settings"].values())
    assert "All common pairs have the same frequencies." in compare(LLAMA, LLAMA).text()


def test_every_pair_against_its_closed_form():
    data = compare(LLAMA, LINEAR).data()
    assert len(data["pairs"]) == 32
    for row in data["pairs"]:
        plain = 10000.0 ** (-row["pair"] / 32)
        assert row["a_inv_freq"] == pytest.approx(plain, rel=1e-14)
        assert row["b_inv_freq"] == pytest.approx(plain / 4, rel=1e-14)
        assert row["ratio"] == pytest.approx(4, rel=1e-14)
        assert row["b_wavelength"] == pytest.approx(2 * math.pi * 4 / plain, rel=1e-14)
        # the angles differ by m * (3/4) plain; half a turn is pi
        assert row["half_turn_apart"] == pytest.approx(math.pi / (0.75 * plain),
                                                       rel=1e-14)
    assert data["first_apart"]["pair"] == 0
    assert data["settings"]["factor"] == {"a": 1.0, "b": 4.0}


def test_the_largest_ratio_is_found():
    other = {**LLAMA, "rope_theta": 1e6}
    data = compare(LLAMA, other).data()
    ratios = [100.0 ** (pair / 32) for pair in range(32)]
    assert data["largest_ratio"]["pair"] == 31
    assert [row["ratio"] for row in data["pairs"]] == pytest.approx(ratios, rel=1e-12)
    text = compare(LLAMA, other).text()
    assert "Largest disagreement: pair 31" in text and "differs" in text
    assert max(map(len, text.splitlines())) <= 88


def test_heads_of_other_widths_share_the_first_pairs():
    wide = {**LLAMA, "head_dim": 128}
    data = compare(LLAMA, wide).data()
    assert (data["only_a"], data["only_b"], len(data["pairs"])) == (0, 32, 32)
    words = " ".join(compare(LLAMA, wide).text().split())
    assert "only the first 32 can be compared" in words


def test_layouts_that_differ_are_said():
    other = {**LLAMA, "model_type": "cohere", "rope_theta": 10000.0}
    assert "The layouts differ" in compare(LLAMA, other).text()
    assert "The layouts differ" not in compare(LLAMA, LINEAR).text()


def test_sets_of_the_same_name_are_compared():
    data = compare(GEMMA, {**GEMMA, "rope_local_base_freq": 20000.0}).data()
    assert set(data["sets"]) == {"full_attention", "sliding_attention"}
    assert data["sets"]["full_attention"]["first_apart"] is None
    assert data["sets"]["sliding_attention"]["largest_ratio"]["ratio"] > 1


def test_sets_of_other_names_compare_the_main_ones():
    comparison = compare(LLAMA, {**GEMMA, "rope_theta": 10000.0})
    assert comparison.labels == (("all", "full_attention"),)
    assert "all (a) and full_attention (b)" in comparison.text()


def test_the_length_reaches_both():
    dynamic = {**LLAMA, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}
    assert compare(LLAMA, dynamic).data()["first_apart"] is None
    assert compare(LLAMA, dynamic, length=8192).data()["first_apart"] is not None


def test_a_pair_that_stands_has_no_ratio():
    block = {"rope_type": "proportional", "partial_rotary_factor": 0.5}
    data = compare(LLAMA, {**LLAMA, "rope_parameters": block}).data()
    assert [row["ratio"] is None for row in data["pairs"]] == [False] * 16 + [True] * 16
    assert data["pairs"][16]["b_wavelength"] is None


def test_nothing_to_compare():
    with pytest.raises(ConfigError, match="nothing to compare"):
        compare(LLAMA, {"model_type": "gpt2", "n_embd": 64, "n_head": 4})


def test_a_notebook_shows_the_text():
    comparison = compare(LLAMA, LINEAR)
    bundle = comparison._repr_mimebundle_()
    assert bundle == {"text/plain": comparison.text().rstrip("\n")}
