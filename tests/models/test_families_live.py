"""Every family against the installed transformers: frequencies, layers, layout.

The oracle is the family's own config class and rotary module, from a small config.
"""

import os
import re
import warnings

import pytest
import torch

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
from transformers.utils import logging as transformers_logging  # noqa: E402

from apex_lessons.models import rope_from_config  # noqa: E402
from apex_lessons.models.families import families  # noqa: E402
from tests.models import library  # noqa: E402

transformers_logging.set_verbosity(50)
# transformers itself cannot build the rotary module of these from their class defaults.
NO_DEFAULT = {"cohere_compass_text": "rope_parameters is empty by default",
              "dots3_note_text": "head sizes differ by layer",
              "fuyu": "its config wraps another one",
              "glm4_moe": "4096 / 96 is no whole head", "glm4v_moe_text": "4096 / 96",
              "qwen3_omni_moe_text": "2048 / 28 is no whole head"}
ROTARY = sorted(name for name, family in families().items()
                if family.rotary and name == family.model_type
                and library.has_config(name)
                and library.rotary_name(name) is not None
                and name not in ("gptj", "codegen"))  # these keep a table of sines
FLAT = [name for name in ROTARY if not families()[name].sets
        and families()[name].scaling_read]
SCALINGS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 1024},
    "yarn": {"rope_type": "yarn", "factor": 4.0,
             "original_max_position_embeddings": 1024,
             "beta_fast": 32, "beta_slow": 1},
    "yarn unrounded": {"rope_type": "yarn", "factor": 4.0, "truncate": False,
                       "original_max_position_embeddings": 1024, "mscale": 0.8,
                       "mscale_all_dim": 0.5},
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def same(ours, library_sets, label="all"):
    """Our frequencies are the library's float32 ones to 5e-7, its factor to 1e-12."""
    inv_freq, factor = library_sets[label]
    torch.testing.assert_close(ours.scaled.inv_freq, inv_freq, rtol=5e-7, atol=0.0)
    assert ours.scaled.attention_factor == pytest.approx(factor, rel=1e-12)


def test_the_table_covers_every_text_family_of_transformers_that_turns():
    assert len(ROTARY) > 180
    known = set(families())
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    from apex_lessons.models.families import composites
    missing = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES) - known - set(composites())
    assert missing <= {"gemma4_assistant", "gemma4_unified_assistant",
                       "evolla"}, missing


@pytest.mark.parametrize("model_type",
                         [name for name in ROTARY if name not in NO_DEFAULT])
def test_class_defaults(model_type):
    """What a family takes where the file says nothing, from its saved config."""
    config = library.config_class(model_type)()
    saved = config.to_dict()
    sets = library.frequencies(library.rotary_class(model_type)(config))
    ours = rope_from_config({"text_config": stated(model_type, saved),
                             "model_type": "x"})
    if not ours:  # switched off by default (granitemoehybrid, zamba2)
        assert families()[model_type].needs
        return
    if model_type == "ernie4_5_vl_moe_text":  # it stores height and width pairs apart
        sets = {"all": (sets["all"][0].sort(descending=True).values, sets["all"][1])}
    for label in ours:
        same(ours[label], sets, label)
    silent = rope_from_config({"text_config": {"model_type": model_type},
                               "model_type": "x"})
    for label in silent:
        same(silent[label], sets, label)


def stated(model_type, saved):
    """A saved config as a file has it; MLA classes save the rotary part as head_dim."""
    if families()[model_type].latent is not None:
        saved = {key: value for key, value in saved.items() if key != "head_dim"}
    return saved


@pytest.mark.parametrize("kind", SCALINGS)
def test_each_method_in_the_old_spelling(kind):
    """rope_theta and rope_scaling outside, as files of every flat family had them."""
    compared, failed = 0, []
    # Their classes lose the share, and the whole block, in the old spelling.
    for model_type in sorted(set(FLAT) - {"mistral4", "cohere2_moe"}):
        family = families()[model_type]
        config = old_spelling(model_type, SCALINGS[kind])
        try:
            library_config = library.config_class(model_type)(**{
                key: value for key, value in config.items() if key != "model_type"})
            sets = library.frequencies(library.rotary_class(model_type)(library_config))
        except Exception:  # noqa: BLE001 - the class refuses this method
            continue
        ours = rope_from_config({**config, **(family.needs or {})})
        try:
            same(ours[ours.main], sets, "all")
            compared += 1
        except AssertionError as error:
            failed.append((model_type, str(error)[:200]))
    assert not failed, failed
    assert compared > 100


def old_spelling(model_type, scaling):
    family = families()[model_type]
    width = 160 if model_type.startswith("moonshine") else 256  # 0.9 of 64 would be odd
    config = {"model_type": model_type, "hidden_size": width, "num_attention_heads": 4,
              "max_position_embeddings": 4096, "rope_scaling": dict(scaling)}
    if "rope_theta" in family.base_keys:
        config["rope_theta"] = 123456.0
    if family.latent is not None:
        config["qk_rope_head_dim"] = family.latent
    return config


@pytest.mark.parametrize("model_type", sorted(
    name for name in ROTARY if families()[name].layers
    or families()[name].no_rope_layers))
def test_layer_types_by_rule(model_type):
    """Which layer is of which type where the file does not list them."""
    from apex_lessons.models.layers import layer_types
    from apex_lessons.models.remarks import Remarks
    from apex_lessons.models.values import Settings

    config = library.config_class(model_type)()
    count = config.num_hidden_layers
    settings = Settings({"model_type": model_type}, Remarks(), "text_config")
    family = families()[model_type]
    if family.no_rope_layers:
        from apex_lessons.models.layers import switches
        assert switches(settings, "no_rope_layers", count, family.no_rope_layers) == [
            bool(turns) for turns in config.no_rope_layers]
        return
    theirs = getattr(config, "layer_types", None)
    assert layer_types(settings, family, count) == list(theirs)


LAYOUT = [name for name in ROTARY
          if re.search(r"^def apply_rotary_pos_emb(_interleave)?\(",
                       library.modeling_text(name), re.MULTILINE)]


def mixed_dimensions(function, width):
    """The input dimension that turns together with dimension 0, by unit vectors."""
    units = torch.eye(width).reshape(width, 1, 1, width)  # [batch, heads, seq, dim]
    angles = torch.arange(1.0, width // 2 + 1)
    cos, sin = (torch.cat([table, table]).expand(width, 1, width)
                for table in (angles.cos(), angles.sin()))
    turned = function(units, units, cos, sin)[0].reshape(width, width)
    touched = turned.abs() > 1e-6
    partners = [j for j in range(1, width) if bool((touched[0] & touched[j]).any())]
    return partners


@pytest.mark.parametrize("model_type", LAYOUT)
def test_layout_by_turning_unit_vectors(model_type):
    module, family = library.modeling(model_type), families()[model_type]
    name = "apply_rotary_pos_emb"
    if family.layout == "interleaved" and hasattr(module, f"{name}_interleave"):
        name = f"{name}_interleave"
    function = getattr(module, name)
    try:
        partners = mixed_dimensions(function, 8)
    except (TypeError, IndexError, RuntimeError):
        partners = other_signature(module, family, function)
    assert partners == [1 if family.layout == "interleaved" else 4], model_type


def other_signature(module, family, function):
    """Families that turn one tensor a call, or take other tables."""
    width = 8
    units = torch.eye(width).reshape(width, 1, 1, width)
    angles = torch.arange(1.0, width // 2 + 1)
    for cos, sin in ((torch.cat([angles, angles]).cos(),
                      torch.cat([angles, angles]).sin()),
                     (angles.cos(), angles.sin())):
        tables = [table.reshape(1, 1, -1).expand(width, 1, -1) for table in (cos, sin)]
        for call in (lambda c, s: function(units, c, s),
                     lambda c, s: function(units, units, c, s)[0]):
            try:
                turned = call(*tables).reshape(width, width)
            except (TypeError, IndexError, RuntimeError):
                continue
            touched = turned.abs() > 1e-6
            return [j for j in range(1, width) if bool((touched[0] & touched[j]).any())]
    raise AssertionError(f"no way to turn a unit vector with {function}")


SOFTMAX = sorted(name for name in ROTARY if families()[name].softmax)


@pytest.mark.parametrize("model_type", SOFTMAX)
def test_softmax_factor_of_latent_attention(model_type):
    block = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "mscale": 1.0,
             "mscale_all_dim": 0.707, "original_max_position_embeddings": 4096}
    theirs = library.modeling(model_type).yarn_apply_mscale(block, 1.0)
    ours = rope_from_config({"model_type": model_type, "hidden_size": 64,
                             "qk_rope_head_dim": 64, "max_position_embeddings": 163840,
                             "rope_parameters": block})
    assert ours["all"].softmax_factor == pytest.approx(theirs, rel=1e-12)


def test_the_other_families_put_nothing_on_the_softmax_scale():
    for model_type in ROTARY:
        has = hasattr(library.modeling(model_type), "yarn_apply_mscale")
        assert has == families()[model_type].softmax, model_type


@pytest.mark.parametrize("model_type", ["gptj", "codegen"])
def test_families_that_keep_a_table_of_sines(model_type):
    table = library.modeling(model_type).create_sinusoidal_positions(50, 64)  # [50, 64]
    ours = rope_from_config({"model_type": model_type, "n_embd": 4096, "n_head": 16,
                             "n_positions": 50, "rotary_dim": 64})["all"]
    angles = torch.arange(50.0, dtype=torch.float64)[:, None] * ours.scaled.inv_freq
    torch.testing.assert_close(table[:, :32].double(), angles.sin(), rtol=0, atol=4e-6)
    assert (ours.layout, ours.rotary_dim, ours.head_dim) == ("interleaved", 64, 256)


def build(model_type, **settings):
    config = library.config_class(model_type)(**settings)
    return library.frequencies(library.rotary_class(model_type)(config))


@pytest.mark.parametrize("model_type", ["phi3", "minicpm3"])
def test_longrope_short_list(model_type):
    pairs = 16
    short = [1.0 + 0.01 * i for i in range(pairs)]
    block = {"type": "longrope", "short_factor": short, "long_factor": [4.0] * pairs,
             "original_max_position_embeddings": 4096}
    settings = {"hidden_size": 128, "num_attention_heads": 4, "rope_scaling": block,
                "num_key_value_heads": 4, "max_position_embeddings": 16384,
                "original_max_position_embeddings": 4096}
    if model_type == "minicpm3":
        settings |= {"qk_rope_head_dim": 32, "qk_nope_head_dim": 64}
    ours = rope_from_config({"model_type": model_type, **settings})["all"]
    theirs = build(model_type, **{key: value for key, value in settings.items()
                                  if model_type == "phi3" or "original" not in key})
    same(ours, theirs)
    long = rope_from_config({"model_type": model_type, **settings}, length=5000)["all"]
    torch.testing.assert_close(long.scaled.inv_freq, ours.plain / 4.0, rtol=1e-12,
                               atol=0)


def test_phi_moe_scales_cos_and_sin_by_its_own_numbers():
    pairs = 16
    block = {"type": "longrope", "short_factor": [1.0] * pairs,
             "long_factor": [2.0] * pairs,
             "short_mscale": 1.25, "long_mscale": 1.5,
             "original_max_position_embeddings": 64}
    settings = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 4,
                "max_position_embeddings": 256, "rope_scaling": block}
    config = library.config_class("phimoe")(**settings)
    rotary = library.rotary_class("phimoe")(config)
    cos, _ = rotary(torch.zeros(1), torch.arange(10)[None])
    ours = rope_from_config({"model_type": "phimoe", **settings})["all"]
    assert cos[0, 0, 0].item() == ours.scaled.attention_factor == 1.25
    long = rope_from_config({"model_type": "phimoe", **settings}, length=200)["all"]
    assert long.scaled.attention_factor == 1.5


@pytest.mark.parametrize("model_type", ["hunyuan_v1_dense", "hunyuan_v1_moe"])
def test_hunyuan_fixed_alpha(model_type):
    settings = {"hidden_size": 256, "num_attention_heads": 4, "head_dim": 64,
                "max_position_embeddings": 32768, "rope_theta": 10000.0,
                "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0,
                                 "beta_fast": 32, "beta_slow": 1, "mscale": 1.0,
                                 "mscale_all_dim": 1.0}}
    ours = rope_from_config({"model_type": model_type, **settings})
    same(ours["all"], build(model_type, **settings))
    assert ours.warnings == () and any("alpha" in note for note in ours.notes)


def test_two_bases_of_the_old_gemma3_and_modernbert_files():
    gemma = {"hidden_size": 256, "num_attention_heads": 2, "head_dim": 128,
             "num_hidden_layers": 6, "rope_theta": 1e6, "rope_local_base_freq": 2e4,
             "rope_scaling": {"rope_type": "linear", "factor": 8.0}}
    bert = {"hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 6,
            "global_rope_theta": 1.6e5, "local_rope_theta": 5e3}
    for model_type, settings in (("gemma3_text", gemma), ("modernbert", bert)):
        theirs = build(model_type, **settings)
        ours = rope_from_config({"model_type": model_type, **settings})
        assert set(ours) == {"full_attention", "sliding_attention"}
        for label in ours:
            same(ours[label], theirs, label)


@pytest.mark.parametrize("length", [1, 4096, 4097, 60_000])
def test_dynamic_at_a_length(length):
    settings = {"hidden_size": 256, "num_attention_heads": 4,
                "max_position_embeddings": 4096,
                "rope_theta": 10000.0,
                "rope_scaling": {"type": "dynamic", "factor": 2.0}}
    config = library.config_class("llama")(**settings)
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    theirs, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=length)
    ours = rope_from_config({"model_type": "llama", **settings}, length=length)["all"]
    torch.testing.assert_close(ours.scaled.inv_freq, theirs.double(), rtol=5e-7, atol=0)
