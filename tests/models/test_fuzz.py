"""Arbitrary JSON values under known keys: a report or a ConfigError, nothing else."""

import json
import string

from hypothesis import HealthCheck, given, settings, strategies as st

from apex_lessons.cli import main
from apex_lessons.models import ConfigError, compare, explain, rope_from_config
from apex_lessons.models.families import composites, families
from apex_lessons.models.methods import ANY_KEYS, METHOD_KEYS
from apex_lessons.models.remarks import RULES

SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture]
READ_BY_A_METHOD = {key for keys in METHOD_KEYS.values() for key in keys}
BLOCK_KEYS = sorted(READ_BY_A_METHOD | ANY_KEYS | {
    "alpha", "short_mscale", "long_mscale", "llama_4_scaling_beta", "full_attention",
    "sliding_attention", "main", "compress", "hybrid"})
TOP_KEYS = sorted({
    "hidden_size", "num_attention_heads", "num_hidden_layers", "head_dim",
    "max_position_embeddings", "rope_theta", "rope_scaling", "rope_parameters",
    "text_config", "llm_config", "thinker_config", "layer_types", "alibi",
    "no_rope_layers", "no_rope_layer_interval", "sliding_window_pattern",
    "sliding_window", "qk_rope_head_dim", "qk_nope_head_dim", "architectures",
    "partial_rotary_factor", "rotary_dim", "position_embedding_type", "attn_config",
    "rope_interleave", "original_max_position_embeddings",
    "attn_temperature_tuning", "floor_scale", "attn_scale", "block_types",
    "full_attn_idxs", "attn_layer_indices", "layer_rope_theta", "kv_channels",
    "cross_attention_layers", "partial_rotary_factors", "rope_ratio", "rotary",
    "use_dynamic_ntk", "seq_length", "attn_type_list", "dim", "n_heads",
    "use_scaled_rope", "rope_scaling_factor", "high_freq_factor", "use_dsa",
    "num_nextn_predict_layers", "first_k_dense_replace", "original_rope",
    "global_head_dim", "swa_rope_theta", "rope_local_base_freq",
    "layers_block_type", "rotary_emb_base", "rotary_pct"} | {
    key for family in families().values()
    for key in (*family.base_keys, *family.head_dim_keys)})
TYPES = sorted({*families(), *composites()})
METHODS = [*METHOD_KEYS, "su", "mrope", "xdrope", "deepseek_yarn", "YaRN", ""]

numbers = st.one_of(
    st.integers(-5, 300),
    st.sampled_from([0, 1, 2, 64, 128, 4096, 8192, 10**9, 10**18, 10**400]),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([1e-300, 1e300, 0.5, 4.0]))
plain = st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=8),
                  st.sampled_from([*METHODS, "full_attention", "rope", "absolute",
                                   "LLLG"]))
values = st.recursive(plain, lambda inner: st.one_of(
    st.lists(inner, max_size=4),
    st.dictionaries(st.sampled_from(BLOCK_KEYS), inner, max_size=4),
    st.dictionaries(st.text(string.printable, max_size=6), inner, max_size=2)),
                      max_leaves=8)
SENSIBLE = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 6,
            "max_position_embeddings": 4096, "rope_theta": 10000.0}


# Values that make sense under a key, so that most configs get past the first check.
PLAUSIBLE = {
    "factor": [1, 2.0, 4.0, 8.0, 40, None], "beta_fast": [32, 4, 1, 1.0, None],
    "beta_slow": [1, 1.0, 32, None], "mscale": [1.0, 0, 0.707],
    "mscale_all_dim": [1.0, 0, 0.7],
    "attention_factor": [1.0, 1.2, None], "truncate": [True, False, None],
    "original_max_position_embeddings": [4096, 8192, 1024, 4096.0, 4, None],
    "low_freq_factor": [1.0, 4.0, None], "high_freq_factor": [4.0, 1.0, None],
    "short_factor": [[1.0] * 32, [1.5] * 32, [1.0] * 31, [0.0] * 32, 2.0],
    "long_factor": [[4.0] * 32, [1.5] * 32], "alpha": [1000.0, 0],
    "rope_theta": [1e4, 5e5, 1e6],
    "partial_rotary_factor": [0.5, 0.25, 1.0, 0.334, 25], "mrope_section": [[16, 8, 8]],
    "rope_type": METHODS, "type": METHODS, "short_mscale": [1.2], "long_mscale": [1.4],
    "hidden_size": [256, 256.0, 512, 250], "num_attention_heads": [4, 8, 3],
    "head_dim": [64, 128, 63, None], "num_hidden_layers": [6, 4, 48],
    "max_position_embeddings": [4096, 32768, 131072, None, 4096.0],
    "qk_rope_head_dim": [64, 32], "qk_nope_head_dim": [128],
    "rotary_dim": [32, 64, None],
    "layer_types": [["full_attention"] * 6, ["sliding_attention", "full_attention"] * 3,
                    ["linear_attention"] * 4],
    "no_rope_layers": [[1, 1, 1, 0, 1, 1], [1] * 4, [0] * 6, []], "architectures":
        [["LlamaForCausalLM"], ["NobodyForCausalLM"], []],
        "sliding_window": [512, None],
    "position_embedding_type": ["rope", "rotary", "alibi", "absolute", None],
    "alibi": [True, False], "text_config": [SENSIBLE, {"model_type": "llama"}, {}],
    "layer_rope_theta": [[1e4, 0, 1e6, 0, 1e4, 1e4]], "use_dynamic_ntk": [True],
    "llama_4_scaling_beta": [0.1, 0.0],
    "attn_config": [{"rope_theta": 5e5}, {"rope": True, "alibi": False}]}


@st.composite
def settings_of(draw, keys, most):
    """Some of ``keys``, three in four of them with a value that makes sense there."""
    chosen = draw(st.lists(st.sampled_from(keys), max_size=most, unique=True))
    return {key: draw(st.sampled_from(PLAUSIBLE[key]) if key in PLAUSIBLE
                      and draw(st.integers(0, 3)) else values) for key in chosen}


@st.composite
def configs(draw):
    """Mostly sensible, with wild values under some known keys."""
    config = dict(SENSIBLE) if draw(st.integers(0, 7)) else {}
    config["model_type"] = draw(st.sampled_from(TYPES)
                                if draw(st.integers(0, 9)) else values)
    config |= draw(settings_of(TOP_KEYS, 3))
    if draw(st.integers(0, 3)):
        block = draw(settings_of(BLOCK_KEYS, 5))
        block["rope_type"] = draw(st.sampled_from(METHODS))
        block.setdefault("factor", draw(st.sampled_from(PLAUSIBLE["factor"])))
        block.setdefault("short_factor", [1.0] * 32)
        block.setdefault("long_factor", [2.0] * 32)
        config[draw(st.sampled_from(["rope_scaling", "rope_parameters"]))] = block
    return config


@settings(max_examples=500, deadline=None, suppress_health_check=SLOW)
@given(config=configs(), length=st.one_of(st.none(), st.integers(1, 10**6)))
def test_a_report_or_a_clear_refusal(config, length):
    try:
        report = explain(config, length)
    except ConfigError as error:
        assert error.rule in RULES and 0 < len(str(error)) < 1200
        return
    text, data = report.text(), json.dumps(report.data(), allow_nan=False)
    assert all(31 < ord(letter) < 127 or letter == "\n" for letter in text)
    assert len(text) < 200_000 and data
    for value in report.settings.values():
        assert value.rotary_dim % 2 == 0 and value.rotary_dim <= value.head_dim
        assert len(value.scaled.inv_freq) == value.rotary_dim // 2
        assert bool((value.scaled.inv_freq >= 0).all())
        assert value.layout in ("half", "interleaved")


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(config=configs())
def test_the_command_gives_zero_or_two(config, tmp_path_factory, capsys):
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    status = main(["explain", str(path)])
    streams = capsys.readouterr()
    assert status in (0, 2) and "Traceback" not in streams.err
    assert (status == 2) == streams.err.startswith("apex_lessons: ")


@settings(max_examples=100, deadline=None, suppress_health_check=SLOW)
@given(data=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(
    lambda text: text.encode("utf-8", "surrogatepass"))))
def test_any_bytes_as_a_file(data, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "bytes.json"
    path.write_bytes(data)
    try:
        rope_from_config(path)
    except ConfigError as error:
        assert error.rule in RULES


@settings(max_examples=60, deadline=None, suppress_health_check=SLOW)
@given(first=configs(), second=configs())
def test_compare_any_two(first, second):
    try:
        comparison = compare(first, second)
    except ConfigError:
        return
    json.dumps(comparison.data(), allow_nan=False)
    assert comparison.text()
