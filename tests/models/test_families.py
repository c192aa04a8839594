"""The table of families: complete lines, names that resolve, rare conventions."""

import math

import pytest
import torch

from apex_lessons import rope, yarn
from apex_lessons.models import ConfigError, rope_from_config
from apex_lessons.models.families import composites, families
from apex_lessons.models.layers import SPECIAL_RULES
from apex_lessons.models.methods import METHODS

LLAMA = {"hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 4,
         "max_position_embeddings": 2048}


def test_every_line_names_its_source_and_known_conventions():
    for family in families().values():
        assert "/" in family.source or "Vaswani" in family.source, family.source
        assert family.layout in ("half", "interleaved"), family
        assert family.rotary or family.why, family
        assert family.base > 1 and 0 < family.share <= 1, family
        assert len(family.sizes) == 4, family
        assert set(family.types.values()) <= set(METHODS), family
        if isinstance(family.layers, str):
            assert family.layers in SPECIAL_RULES, family


def test_the_table_knows_hundreds_of_families_of_every_kind_of_position():
    lines = {family.model_type: family for family in families().values()}
    kinds = {family.positions for family in lines.values()}
    assert sum(family.rotary for family in lines.values()) > 240
    assert {"rotary", "learned absolute", "sinusoidal", "ALiBi", "relative bias",
            "none"} <= kinds
    assert sum(family.layout == "interleaved" for family in lines.values()) > 30


def test_every_language_model_inside_another_is_a_family():
    for model_type, (key, inner) in composites().items():
        assert key.endswith(("config", "decoder", "generator", "_cfg")), model_type
        while inner in composites():
            inner = composites()[inner][1]
        assert inner in families(), model_type


def test_a_model_type_means_one_thing():
    assert not set(families()) & set(composites())


def same(found, expected, rtol=1e-12):
    torch.testing.assert_close(found, expected.double(), rtol=rtol, atol=0)


def test_jina_v3_is_an_xlm_roberta_that_turns():
    plain = {"model_type": "xlm-roberta", **LLAMA}
    assert rope_from_config(plain) == {}
    assert rope_from_config(plain).positions == "learned absolute"
    rotary = {**plain, "position_embedding_type": "rotary", "rotary_emb_base": 20000.0}
    found = rope_from_config(rotary)["all"]
    assert found.base == 20000 and found.layout == "half"


def test_nomic_in_the_spelling_of_its_own_code():
    config = {"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 12,
              "n_positions": 8192, "max_trained_positions": 2048,
              "rotary_emb_base": 1000,
              "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
              "rotary_scaling_factor": 2}
    found = rope_from_config(config, length=8192)["all"]
    expected = yarn.dynamic_ntk(64, base=1000.0, factor=2.0, trained_length=2048,
                                length=8192)
    same(found.scaled.inv_freq, expected.inv_freq)
    plain = rope_from_config({**config, "rotary_scaling_factor": None})["all"]
    assert plain.method == "default"
    assert not rope_from_config(config).warnings


def test_telechat3_has_its_own_slope_in_the_attention_factor():
    block = {"type": "telechat3-yarn", "factor": 4.0,
             "original_max_position_embeddings": 512}
    config = {"model_type": "telechat3", **LLAMA, "rope_scaling": block}
    found = rope_from_config(config)["all"]
    expected = 0.07 * math.log(4) + 1
    assert found.scaled.attention_factor == pytest.approx(expected, rel=1e-12)
    block["type"] = "yarn"
    found = rope_from_config(config)["all"]
    expected = 0.1 * math.log(4) + 1
    assert found.scaled.attention_factor == pytest.approx(expected, rel=1e-12)


def test_plamo2_turns_in_its_attention_layers_only():
    config = {"model_type": "plamo2", **LLAMA, "hidden_size_per_head": 32}
    found = rope_from_config(config)
    assert found["all"].head_dim == 32
    assert found.layers_without_rotary == (0, 2)
    few = rope_from_config({**config, "mamba_step": 8})
    assert few.layers_without_rotary == (0, 1, 2)


def test_smallthinker_lists_the_layers_that_turn():
    config = {"model_type": "smallthinker", **LLAMA, "rope_layout": [1, 0, 1, 0]}
    found = rope_from_config(config)
    assert found.layers_without_rotary == (1, 3) and not found.warnings
    with pytest.raises(ConfigError, match="rope_layout"):
        rope_from_config({**config, "rope_layout": ["yes"]})


def test_an_outer_model_without_an_inner_config_states_its_keys_itself():
    found = rope_from_config({"model_type": "minicpmo", **LLAMA, "rope_theta": 1e6})
    assert found["all"].base == 1e6 and not found.warnings


@pytest.mark.parametrize("model_type, layout, base", [
    ("grok-1", "half", 1e4), ("step3_text", "half", 1e4),
    ("neobert", "interleaved", 1e4),
    ("progen", "interleaved", 1e4), ("llada", "half", 1e4), ("molmo", "half", 1e4),
    ("Dream", "half", 1e4), ("PanguEmbedded", "half", 1e4), ("ouro", "half", 1e4),
    ("codeshell", "half", 1e4), ("phi4mm", "half", 1e4)])
def test_families_of_other_libraries(model_type, layout, base):
    config = {"model_type": model_type, **LLAMA}
    found = rope_from_config(config)["all"]
    assert (found.layout, found.base) == (layout, base)
    same(found.scaled.inv_freq, rope.inverse_frequencies(found.rotary_dim, base))


def test_the_rule_of_apex1_belongs_to_apex1():
    block = {"rope_type": "apex1", "factor": 4.0}
    with pytest.raises(ConfigError, match="no scaling method"):
        rope_from_config({"model_type": "llama", **LLAMA, "rope_scaling": block})
