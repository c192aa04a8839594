"""Every named rule has a config that brings it out, and a near one that does not."""

import functools

import pytest

from apex_lessons.models import ConfigError, rope_from_config
from apex_lessons.models.remarks import RULES

LLAMA = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
         "num_hidden_layers": 32, "max_position_embeddings": 32768,
         "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8192}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
LONG = {"rope_type": "longrope", "short_factor": [1.0] * 64, "long_factor": [2.0] * 64,
        "original_max_position_embeddings": 8192}
DEEPSEEK = {"model_type": "deepseek_v3", "hidden_size": 7168,
            "num_attention_heads": 128,
            "num_hidden_layers": 61, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
            "max_position_embeddings": 163840, "rope_theta": 10000.0}
GEMMA = {"model_type": "gemma3_text", "hidden_size": 2560, "num_attention_heads": 8,
         "head_dim": 256, "num_hidden_layers": 6, "max_position_embeddings": 131072}
SETS = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        "full_attention": {"rope_type": "default", "rope_theta": 1e6}}


def llama(**changes):
    return {**LLAMA, **changes}


def scaled(block, **changes):
    return llama(rope_scaling={**block, **changes})


def without(block, *keys):
    return {key: value for key, value in block.items() if key not in keys}


# rule -> the bytes of a file that must bring it out; None: see the test
FILES = {
    "file-missing": None, "file-kind": None, "file-unreadable": None,
    "file-empty": b" \n", "file-too-large": b" " * (17 * 2**20),
    "file-not-text": b"\xe9{}",
    "file-html": b"<!DOCTYPE html>", "file-python": b"{'a': True}",
    "file-json": b'{"a": 1,}',
    "file-nesting": b"[" * 100_000 + b"]" * 100_000, "file-not-an-object": b"[1]",
    "file-byte-order-mark": b'\xef\xbb\xbf{"model_type": "gpt2"}',
    "file-repeated-key": b'{"model_type": "gpt2", "a": 1, "a": 2}',
}
MROPE = {"type": "mrope", "mrope_section": [16, 24, 24]}
# rule -> configs that must bring it out
EXAMPLES = {
    "file-nesting": [{"a": functools.reduce(lambda inner, _: [inner], range(99), 1)}],
    "file-wrong-one": [{"tokenizer_class": "X"}, {"a": 1}, {},
                       {"r": 3, "peft_type": "LORA"}],
    "value-type": [llama(num_attention_heads="32"), llama(rope_theta="1e4"),
                   llama(rope_theta=[1e4]), llama(hidden_size=4096.5),
                   scaled(YARN, truncate="false"), scaled(YARN, factor=True),
                   scaled(YARN, original_max_position_embeddings="8192"),
                   scaled(YARN, mscale="1", mscale_all_dim=1), llama(text_config=3,
                   model_type="gemma3"), llama(model_type=3)],
    "value-null": [llama(num_attention_heads=None), llama(rope_theta=None),
                   scaled({"type": "linear", "factor": None})],
    "value-range": [llama(num_attention_heads=0), llama(hidden_size=-1),
                    llama(head_dim=0),
                    llama(head_dim=1), llama(max_position_embeddings=-1),
                    llama(rope_theta=1),
                    llama(rope_theta=0.5), scaled(YARN, beta_slow=0),
                    scaled(YARN, beta_fast=-1),
                    scaled(YARN, attention_factor=0), scaled(YARN, mscale=-1),
                    llama(head_dim=10**9), llama(num_hidden_layers=10**9),
                    llama(model_type="stablelm", partial_rotary_factor=25),
                    llama(model_type="gptj", rotary_dim=512)],
    "value-not-finite": [llama(rope_theta=float("nan")), llama(rope_theta=float("inf")),
                         llama(rope_theta=10**400), scaled(YARN, factor=float("inf"))],
    "value-written-as-float": [llama(hidden_size=4096.0)],
    "value-suspicious": [llama(rope_theta=1e30), llama(rope_theta=10),
                         llama(max_position_embeddings=10**18),
                         scaled(YARN, factor=1e6),
                         scaled(YARN, attention_factor=50.0)],
    "size-missing": [without(LLAMA, "hidden_size"),
                     without(LLAMA, "num_attention_heads"),
                     {"model_type": "internlm2", "hidden_size": 64, "head_dim": 8,
                      "max_position_embeddings": None, "rope_scaling":
                      {"type": "dynamic", "factor": 2.0}}],
    "size-not-divisible": [llama(num_attention_heads=30)],
    "size-odd": [llama(head_dim=127), {**DEEPSEEK, "qk_rope_head_dim": 63},
                 llama(model_type="stablelm", head_dim=80,
                       partial_rotary_factor=0.1625)],
    "family-unknown": [llama(model_type="nobody_knows"), without(LLAMA, "model_type")],
    "family-by-architecture": [llama(model_type="x",
                                     architectures=["MistralForCausalLM"])],
    "family-nested": [{"model_type": "llava", "text_config": {"model_type": "llama"}}],
    "family-nested-type": [{"model_type": "llava",
                            "text_config": {"hidden_size": 4096}}],
    "family-note": [llama(model_type="nanochat")],
    "family-no-rotary": [{"model_type": "gpt2"}, llama(model_type="falcon", alibi=True),
                         {"model_type": "baichuan", "hidden_size": 5120,
                          "num_attention_heads": 40}],
    "default-used": [without(LLAMA, "rope_theta"), llama(model_type="gptj")],
    "head-dim-stated": [llama(head_dim=64), llama(head_dim=64, num_attention_heads=30)],
    "latent-attention": [DEEPSEEK],
    "share-cut": [llama(model_type="glm4", head_dim=192, partial_rotary_factor=0.334)],
    "share-ignored": [llama(partial_rotary_factor=0.5),
                      {**scaled(YARN), "partial_rotary_factor": 0.5},
                      llama(model_type="bamba", partial_rotary_factor=0.25)],
    "key-ignored": [llama(rotary_emb_base=5e5), llama(rotary_pct=0.25),
                    llama(no_rope_layers=[1] * 32),
                    llama(model_type="minimax", rotary_dim=64),
                    llama(model_type="gptj", rope_theta=5e5),
                    {"model_type": "gpt2",
                     "rope_scaling": {"type": "linear", "factor": 2}},
                    llama(model_type="gptj",
                          rope_scaling={"type": "linear", "factor": 2})],
    "key-misspelt": [llama(rope_tetha=1e6), llama(rope_scalling={}),
                     llama(rope_thetas=1),
                     {**without(LLAMA, "max_position_embeddings"),
                      "max_position_embedding": 4096}],
    "key-misplaced": [llama(rope_type="linear", factor=4.0), llama(beta_fast=32),
                      llama(original_max_position_embeddings=4096)],
    "key-twice": [llama(rope_parameters={"rope_type": "default", "rope_theta": 1e6}),
                  llama(model_type="phi", partial_rotary_factor=0.5, rope_parameters={
                      "rope_type": "default", "partial_rotary_factor": 0.25}),
                  llama(model_type="phi3", original_max_position_embeddings=4096,
                        rope_scaling=LONG)],
    "spelling-both": [{**scaled(YARN), "rope_parameters": {"rope_type": "default"}}],
    "layout-assumed": [llama(model_type="nobody_knows")],
    "block-not-an-object": [llama(rope_scaling="linear"), llama(rope_scaling=True),
                            llama(rope_parameters=[]), llama(rope_scaling=4.0),
                            {**GEMMA,
                             "rope_parameters": {**SETS, "full_attention": 3}}],
    "block-empty": [llama(rope_scaling={})],
    "block-not-nested": [{**GEMMA, "rope_parameters": {"rope_type": "default",
                                                       "rope_theta": 1e6}}],
    "block-nested": [llama(rope_parameters=SETS)],
    "block-set-missing": [{**GEMMA,
                           "rope_parameters": without(SETS, "full_attention")}],
    "block-unknown-key": [scaled(YARN, orignal_max_position_embeddings=1),
                          scaled(YARN, x=1)],
    "block-key-without-effect": [scaled({"rope_type": "default", "factor": 4.0}),
                                 scaled({"rope_type": "linear", "factor": 4.0,
                                         "beta_fast": 9}),
                                 scaled(LLAMA3, attention_factor=1.5)],
    "type-unknown": [scaled(YARN, rope_type="ntk-by-magic"),
                     scaled(YARN, rope_type="YaRN"),
                     scaled(YARN, rope_type=3)],
    "type-conflict": [scaled(YARN, type="linear")],
    "type-missing": [scaled({"factor": 4.0}),
                     scaled({"rope_type": None, "factor": 4.0})],
    "type-alias": [llama(model_type="qwen2_vl", rope_scaling=MROPE),
                   scaled(LONG, rope_type="su")],
    "factor-missing": [scaled({"type": "linear"}), scaled(without(YARN, "factor"))],
    "factor-range": [scaled(YARN, factor=0), scaled(YARN, factor=0.25),
                     scaled({"type": "linear", "factor": -2})],
    "factor-from-lengths": [scaled(YARN, factor=None), scaled(LONG)],
    "factor-mismatch": [scaled(YARN, factor=8.0), scaled(LLAMA3, factor=8.0)],
    "original-missing": [scaled(without(YARN, "original_max_position_embeddings")),
                         scaled(without(LLAMA3, "original_max_position_embeddings"))],
    "original-larger": [scaled(YARN, original_max_position_embeddings=131072)],
    "original-equal": [scaled(YARN, original_max_position_embeddings=32768)],
    "betas-swapped": [scaled(YARN, beta_fast=1, beta_slow=32)],
    "betas-equal": [scaled(YARN, beta_fast=1, beta_slow=1)],
    "bands-swapped": [scaled(LLAMA3, low_freq_factor=4, high_freq_factor=1),
                      scaled(LLAMA3, low_freq_factor=4, high_freq_factor=4)],
    "bands-default": [scaled(without(LLAMA3, "low_freq_factor"))],
    "mscale-alone": [scaled(YARN, mscale=1.0), scaled(YARN, mscale_all_dim=1.0)],
    "mscale-zero": [scaled(YARN, mscale=1.0, mscale_all_dim=0)],
    "mscale-and-factor": [scaled(YARN, mscale=1, mscale_all_dim=1,
                                 attention_factor=1.2)],
    "softmax-factor": [{**DEEPSEEK, "rope_scaling": {
        "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096,
        "mscale": 1.0, "mscale_all_dim": 1.0}}],
    "list-missing": [scaled(without(LONG, "long_factor"))],
    "list-shape": [scaled(LONG, short_factor=[1.0] * 63),
                   scaled(LONG, short_factor=2.0)],
    "list-values": [scaled(LONG, long_factor=[0.0] * 64),
                    scaled(LONG, long_factor=["a"] * 64),
                    scaled(LONG, long_factor=[float("nan")] * 64)],
    "lists-by-length": [scaled(LONG)],
    "lists-equal": [scaled(LONG, short_factor=[2.0] * 64)],
    "dynamic-length": [scaled({"type": "dynamic", "factor": 2.0}),
                       {"model_type": "qwen", "hidden_size": 256,
                        "num_attention_heads": 2,
                        "kv_channels": 128, "seq_length": 8192,
                        "use_dynamic_ntk": True}],
    "fixed-alpha": [llama(model_type="hunyuan_v1_dense", rope_scaling={
        "type": "dynamic", "alpha": 1000.0, "factor": 1.0})],
    "factor-one": [scaled({"type": "linear", "factor": 1})],
    "truncate-off": [scaled(YARN, truncate=False)],
    "pairs-that-stand": [scaled({"rope_type": "proportional",
                                 "partial_rotary_factor": 0.25})],
    "method-refused": [scaled(YARN, original_max_position_embeddings=4)],
    "sections": [llama(model_type="qwen2_vl", rope_scaling=MROPE)],
    "layers-without-rotary": [llama(model_type="smollm3"), llama(model_type="cohere2")],
    "layers-sets": [{**GEMMA, "rope_parameters": SETS}],
    "layers-length": [llama(layer_types=["full_attention"] * 3, model_type="qwen3"),
                      llama(model_type="smollm3", no_rope_layers=[1] * 10)],
    "layers-values": [llama(model_type="smollm3", no_rope_layers=[3, 7] * 16),
                      llama(layer_types=[1] * 32),
                      llama(layer_types=["ful_attention"] * 32),
                      llama(model_type="lfm2", full_attn_idxs=["a"])],
    "layers-temperature": [llama(model_type="llama4_text", head_dim=128)],
}


def rules_of(config):
    try:
        return {item.rule for item in rope_from_config(config).remarks}
    except ConfigError as error:
        return {error.rule}


def test_every_rule_has_its_examples():
    assert set(EXAMPLES) | set(FILES) == set(RULES)


@pytest.mark.parametrize("rule", FILES)
def test_rule_about_files(rule, tmp_path):
    path = tmp_path / "config.json"
    if FILES[rule] is not None:
        path.write_bytes(FILES[rule])
    source = {"file-kind": tmp_path, "file-unreadable": "a" * 5000}.get(rule, path)
    assert rule in rules_of(source)


@pytest.mark.parametrize("rule", EXAMPLES)
def test_rule(rule):
    for number, config in enumerate(EXAMPLES[rule]):
        assert rule in rules_of(config), (rule, number, rules_of(config))


def test_a_right_config_brings_out_no_rule():
    for config in (LLAMA, scaled(LLAMA3), scaled(YARN), without(DEEPSEEK, "nothing")):
        assert rules_of(config) <= {"latent-attention"}
    assert rope_from_config(scaled(YARN)).warnings == ()


def test_messages_name_the_key_the_value_and_what_to_do():
    for config, words in (
            (llama(num_attention_heads=-32),
             ("num_attention_heads", "-32", "at least 1")),
            (scaled(YARN, factor=0.25), ("factor", "0.25", "did you mean 4?")),
            (scaled(YARN, rope_type="yarm"), ("yarm", "did you mean yarn?", "llama3")),
            (without(LLAMA, "hidden_size") | {"hiden_size": 4096},
             ("hidden_size", "hiden_size")),
            (scaled(YARN, beta_fast=1, beta_slow=32),
             ("beta_fast", "beta_slow", "swap"))):
        with pytest.raises(ConfigError) as error:
            rope_from_config(config)
        for word in words:
            assert word in str(error.value)


def test_errors_are_value_errors_and_name_their_rule():
    with pytest.raises(ValueError) as error:
        rope_from_config(llama(rope_theta=1))
    assert error.value.rule == "value-range"


@pytest.mark.parametrize("length", [0, -1, 2**60])
def test_length_out_of_range(length):
    with pytest.raises(ConfigError, match="length"):
        rope_from_config(LLAMA, length=length)


@pytest.mark.parametrize("length", [1.0, "8", True])
def test_length_of_another_type(length):
    with pytest.raises(TypeError, match="length"):
        rope_from_config(LLAMA, length=length)


@pytest.mark.parametrize("source", [None, 3, [LLAMA], b"x" * 3])
def test_source_of_another_type(source):
    with pytest.raises((TypeError, ValueError)):
        rope_from_config(source)
