"""The installed transformers and rotary-embedding-torch, called side by side with ours.

These run on every machine that runs the tests; a new release that changes its numbers
shows up here.
"""

import importlib

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from rotary_embedding_torch import RotaryEmbedding as OutsideRotary
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.norm import rms_norm
from apex_lessons.rope import RotaryEmbedding, convert_layout, inverse_frequencies
from apex_lessons.yarn import (
    dynamic_ntk,
    llama3,
    longrope,
    ntk_aware,
    position_interpolation,
    proportional,
    yarn,
)
from tests import oracles


def released(model):
    return importlib.import_module(f"transformers.models.{model}.modeling_{model}")


def llama_config(head_dim=64, maximum=131_072, **rope):
    return transformers.LlamaConfig(
        hidden_size=2 * head_dim,
        num_attention_heads=2,
        head_dim=head_dim,
        max_position_embeddings=maximum,
        rope_parameters={"rope_theta": 1e4, **rope},
    )


def frequencies(kind, config, **kwargs):
    if kind == "default":
        make = released("llama").LlamaRotaryEmbedding.compute_default_rope_parameters
        return make(config)
    return ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"), **kwargs)


# --- frequencies of every rope type ---

LENGTH = {"original_max_position_embeddings": 4096}
OURS = {"base": 1e4, "trained_length": 4096}
SHORT = [1.0 + 0.05 * i for i in range(32)]
LONG = [1.5 + i for i in range(32)]
PAIRS = {
    "default": [({}, {}, lambda: (inverse_frequencies(64), 1.0))],
    "linear": [
        ({"factor": f}, {}, lambda f=f: position_interpolation(64, base=1e4, factor=f))
        for f in (1.0, 4.0, 7.5)
    ],
    "dynamic": [
        (
            {"factor": f},
            {"seq_len": n},
            lambda f=f, n=n: dynamic_ntk(
                64, base=1e4, factor=f, trained_length=4096, length=n
            ),
        )
        for f in (1.0, 2.0, 8.0)
        for n in (1, 4096, 4097, 32_768)
    ],
    "yarn": [
        (
            {"factor": f, **LENGTH, **more},
            {},
            lambda f=f, more=more: yarn(64, factor=f, **OURS, **more),
        )
        for f in (1.0, 4.0, 40.0)
        for more in (
            {},
            {"truncate": False},
            {"beta_fast": 16.0, "beta_slow": 2.0},
            {"attention_factor": 1.25},
            {"mscale": 1.0, "mscale_all_dim": 0.707},
            {"mscale": 0.707, "mscale_all_dim": 0.707},
        )
    ],
    "llama3": [
        (
            {"factor": f, "low_freq_factor": low, "high_freq_factor": high, **LENGTH},
            {},
            lambda f=f, low=low, high=high: llama3(
                64, factor=f, low_freq_factor=low, high_freq_factor=high, **OURS
            ),
        )
        for f in (1.0, 8.0, 32.0)
        for low, high in ((1.0, 4.0), (2.0, 8.0))
    ],
    "longrope": [
        (
            {"short_factor": SHORT, "long_factor": LONG, "factor": f, **LENGTH, **more},
            {"seq_len": n},
            lambda f=f, n=n, more=more: longrope(
                64, factor=f, factors=LONG if n > 4096 else SHORT, **OURS, **more
            ),
        )
        for f in (1.0, 32.0)
        for n in (4096, 5000)
        for more in ({}, {"attention_factor": 1.5})
    ],
    "proportional": [
        (
            {"partial_rotary_factor": share},
            {},
            lambda share=share: proportional(64, base=1e4, partial_rotary_factor=share),
        )
        for share in (0.25, 0.3, 0.5, 1.0)
    ],
}


def test_every_rope_type_of_the_installed_release_is_compared():
    assert set(ROPE_INIT_FUNCTIONS) | {"default"} == set(PAIRS)


@pytest.mark.parametrize(
    "kind, number",
    [(kind, i) for kind, rows in PAIRS.items() for i in range(len(rows))],
)
def test_frequencies_and_factor(kind, number):
    theirs, call, ours = PAIRS[kind][number]
    maximum = 4096 if kind == "dynamic" else 131_072
    config = llama_config(maximum=maximum, rope_type=kind, **theirs)
    want, factor = frequencies(kind, config, **call)
    inv_freq, ours_factor = ours()
    # Unrounded ends: the library's float32 ramp costs 7e-7 where it is nearly 1.
    rtol = 2e-6 if "truncate" in theirs else 5e-7
    torch.testing.assert_close(inv_freq, want.double(), rtol=rtol, atol=0)
    assert ours_factor == pytest.approx(factor, rel=1e-12)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    head_dim=st.sampled_from([8, 32, 64, 80, 128]),
    base=st.floats(100, 1e7),
    factor=st.floats(1, 128),
    trained=st.integers(64, 200_000),
    truncate=st.booleans(),
    slow=st.floats(0.5, 4),
    ratio=st.floats(1.5, 64),
)
def test_yarn_at_random_settings(
    head_dim, base, factor, trained, truncate, slow, ratio
):
    """Where our pair ramp accepts the settings, it is the library's."""
    config = llama_config(
        head_dim,
        rope_type="yarn",
        factor=factor,
        beta_fast=slow * ratio,
        beta_slow=slow,
        original_max_position_embeddings=trained,
        truncate=truncate,
    )
    config.rope_parameters["rope_theta"] = base
    low = oracles.pair_that_turns(slow * ratio, head_dim, base, trained)
    high = oracles.pair_that_turns(slow, head_dim, base, trained)
    near_a_step = any(abs(bound - round(bound)) < 1e-6 for bound in (low, high))
    if high < 0 or low > head_dim - 1 or near_a_step:
        return  # the library is wrong there, or its floor may fall on either side
    want, factor_there = frequencies("yarn", config)
    scaled = yarn(
        head_dim,
        base=base,
        factor=factor,
        trained_length=trained,
        beta_fast=slow * ratio,
        beta_slow=slow,
        truncate=truncate,
    )
    # The library's float32 ramp is off by up to 1e-7 of the factor's size.
    torch.testing.assert_close(
        scaled.inv_freq, want.double(), rtol=3e-7 * max(factor, 2), atol=0
    )
    assert scaled.attention_factor == pytest.approx(factor_there, rel=1e-12)


# --- rotation ---


def queries_and_keys(head_dim=16):
    return (
        oracles.normal(2, 4, 9, head_dim),
        oracles.normal(2, 2, 9, head_dim, seed=1),
    )


POSITIONS = torch.tensor(
    [[0, 1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 5, 60, 61, 62, 199, 200]]
)


def assert_rotation(ours, theirs):
    """float32 angles at position 200 are off by 1e-5."""
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=6e-5)


def released_tables(model, config, x):
    name = {
        "llama": "LlamaRotaryEmbedding",
        "cohere": "CohereRotaryEmbedding",
        "gpt_oss": "GptOssRotaryEmbedding",
        "gpt_neox": "GPTNeoXRotaryEmbedding",
        "deepseek_v3": "DeepseekV3RotaryEmbedding",
    }[model]
    return getattr(released(model), name)(config)(x, POSITIONS)


@pytest.mark.parametrize("kind", ["default", "linear", "yarn", "llama3"])
def test_llama_half(kind):
    rope = {
        "default": {},
        "linear": {"factor": 4.0},
        "yarn": {"factor": 4.0, **LENGTH},
        "llama3": {
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            **LENGTH,
        },
    }[kind]
    ours = {
        "default": None,
        "linear": position_interpolation(16, base=1e4, factor=4.0),
        "yarn": yarn(16, factor=4.0, **OURS),
        "llama3": llama3(16, factor=8.0, **OURS),
    }[kind]
    q, k = queries_and_keys()
    tables = released_tables("llama", llama_config(16, rope_type=kind, **rope), q)
    want = released("llama").apply_rotary_pos_emb(q, k, *tables)
    assert_rotation(
        RotaryEmbedding(16, layout="half", scaling=ours)(q, k, POSITIONS), want
    )
    wrong = RotaryEmbedding(16, scaling=ours)(q, k, POSITIONS)
    assert (wrong[0] - want[0]).abs().max() > 0.5


def test_gptj_interleaved_and_partial():
    q, k = queries_and_keys()
    make = released("gptj")
    sin, cos = make.create_sinusoidal_positions(256, 8)[POSITIONS].chunk(2, dim=-1)
    want = []
    for x in (q, k):
        by_token = x.transpose(1, 2)  # GPT-J: [batch, seq, heads, head_dim]
        turned = make.apply_rotary_pos_emb(by_token[..., :8], sin, cos)
        want.append(torch.cat([turned, by_token[..., 8:]], -1).transpose(1, 2))
    assert_rotation(RotaryEmbedding(16, rotary_dim=8)(q, k, POSITIONS), want)


def test_gpt_neox_half_and_partial():
    q, k = queries_and_keys()
    config = transformers.GPTNeoXConfig(
        hidden_size=32,
        num_attention_heads=2,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e4,
            "partial_rotary_factor": 0.25,
        },
    )
    tables = released_tables("gpt_neox", config, q)
    want = released("gpt_neox").apply_rotary_pos_emb(q, k, *tables)
    ours = RotaryEmbedding(16, layout="half", rotary_dim=4)
    assert_rotation(ours(q, k, POSITIONS), want)


def test_cohere_interleaved():
    q, k = queries_and_keys()
    config = transformers.CohereConfig(
        hidden_size=32,
        num_attention_heads=2,
        num_key_value_heads=2,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4},
    )
    tables = released_tables("cohere", config, q)
    want = released("cohere").apply_rotary_pos_emb(q, k, *tables)
    assert_rotation(RotaryEmbedding(16)(q, k, POSITIONS), want)


def test_gpt_oss_half_with_one_column_a_pair():
    q, k = queries_and_keys()
    rope = {
        "rope_type": "yarn",
        "rope_theta": 150_000.0,
        "factor": 32.0,
        "truncate": False,
        "original_max_position_embeddings": 4096,
    }
    config = transformers.GptOssConfig(
        hidden_size=32,
        num_attention_heads=2,
        head_dim=16,
        max_position_embeddings=131_072,
        rope_parameters=rope,
    )
    tables = released_tables("gpt_oss", config, q)
    want = released("gpt_oss").apply_rotary_pos_emb(q, k, *tables)
    scaling = yarn(16, base=150_000, factor=32, trained_length=4096, truncate=False)
    assert_rotation(
        RotaryEmbedding(16, layout="half", scaling=scaling)(q, k, POSITIONS), want
    )


def test_deepseek_reads_interleaved_and_writes_half():
    q, k = queries_and_keys()
    tables = released_tables("llama", llama_config(16, rope_type="default"), q)
    want = released("deepseek_v3").apply_rotary_pos_emb_interleave(q, k, *tables)
    ours = RotaryEmbedding(16)(q, k, POSITIONS)
    order = convert_layout(torch.arange(16), 1, to="half")
    assert_rotation([x[..., order] for x in ours], want)
    torch.testing.assert_close(
        ours[0][:, :2] @ ours[1].transpose(-1, -2),
        want[0][:, :2] @ want[1].transpose(-1, -2),
        rtol=0,
        atol=1e-3,
    )


@pytest.mark.parametrize("offset", [0, 3, 100])
def test_rotary_embedding_torch_interleaved_and_partial(offset):
    q, k = queries_and_keys()
    outside = OutsideRotary(8)
    want = [outside.rotate_queries_or_keys(x, offset=offset) for x in (q, k)]
    assert_rotation(RotaryEmbedding(16, rotary_dim=8)(q, k, offset=offset), want)


def test_rotary_embedding_torch_interpolation_and_larger_base():
    q, k = queries_and_keys()
    outside = OutsideRotary(16, interpolate_factor=4.0)
    want = [outside.rotate_queries_or_keys(x) for x in (q, k)]
    scaling = position_interpolation(16, base=1e4, factor=4.0)
    assert_rotation(RotaryEmbedding(16, scaling=scaling)(q, k), want)
    outside = OutsideRotary(16, theta_rescale_factor=4.0)
    want = [outside.rotate_queries_or_keys(x) for x in (q, k)]
    scaling = ntk_aware(16, base=1e4, factor=4.0)
    assert_rotation(RotaryEmbedding(16, scaling=scaling)(q, k), want)


@pytest.mark.parametrize("rotary_dim", [None, 8])
def test_converted_weights_in_the_released_half_code(rotary_dim):
    """Interleaved W_q and W_k, converted, give the same scores in transformers."""
    hidden = oracles.normal(2, 9, 24, seed=3)
    w_q, w_k = oracles.normal(64, 24), oracles.normal(32, 24, seed=1)

    def heads(weight, count):
        return (hidden @ weight.T).unflatten(-1, (count, 16)).transpose(1, 2)

    ours = RotaryEmbedding(16, rotary_dim=rotary_dim)
    q, k = ours(heads(w_q, 4), heads(w_k, 2), POSITIONS)
    half_q = heads(convert_layout(w_q, 4, to="half", rotary_dim=rotary_dim), 4)
    half_k = heads(convert_layout(w_k, 2, to="half", rotary_dim=rotary_dim), 2)
    width = rotary_dim or 16
    cos, sin = released_tables(
        "llama", llama_config(width, rope_type="default"), half_q
    )
    turned_q, turned_k = released("gpt_neox").apply_rotary_pos_emb(
        half_q, half_k, cos, sin
    )
    k, turned_k = (x.repeat_interleave(2, dim=1) for x in (k, turned_k))
    torch.testing.assert_close(
        q @ k.transpose(-1, -2),
        turned_q @ turned_k.transpose(-1, -2),
        rtol=0,
        atol=5e-3,
    )


# --- norm ---

NORMS = {
    "llama": ("LlamaRMSNorm", {"order": "cast-first"}),
    "gemma": ("GemmaRMSNorm", {"order": "cast-last", "weight_offset": 1.0}),
    "gpt_oss": ("GptOssRMSNorm", {"order": "cast-last"}),
    "t5": ("T5LayerNorm", {"order": "cast-to-weight"}),
}


def released_norm(model, width, eps, weight):
    module = getattr(released(model), NORMS[model][0])(width, eps=eps).to(weight.dtype)
    with torch.no_grad():
        module.weight.copy_(weight)
    return module


@pytest.mark.parametrize("eps", [1e-6, 1e-5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("model", NORMS)
def test_norm_forward_in_the_published_cast_order(model, dtype, eps):
    options = NORMS[model][1]
    x = oracles.normal(64, 256, dtype=dtype)
    weight = (
        0.3 * oracles.normal(256, seed=1) + 1 - options.get("weight_offset", 0)
    ).to(dtype)
    want = released_norm(model, 256, eps, weight)(x)
    got = rms_norm(x, weight, eps, **options)
    assert got.dtype == want.dtype == dtype
    if dtype == torch.float32:
        torch.testing.assert_close(got, want, rtol=1e-6, atol=0)
    else:  # equal but at a midpoint; another order moves a quarter of them
        assert (got != want).float().mean() < 2e-3


@pytest.mark.parametrize("model", NORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norm_gradients(model, dtype):
    options = NORMS[model][1]
    x = oracles.normal(16, 64, dtype=dtype)
    weight = (
        0.3 * oracles.normal(64, seed=1) + 1 - options.get("weight_offset", 0)
    ).to(dtype)
    grad = oracles.normal(16, 64, seed=2, dtype=dtype)
    module = released_norm(model, 64, 1e-6, weight)
    theirs = x.clone().requires_grad_()
    module(theirs).backward(grad)
    leaf, weight_leaf = x.clone().requires_grad_(), weight.clone().requires_grad_()
    rms_norm(leaf, weight_leaf, **options).backward(grad)
    tolerance = 2e-6 if dtype == torch.float32 else 4e-2
    torch.testing.assert_close(leaf.grad, theirs.grad, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(
        weight_leaf.grad, module.weight.grad, rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_norm_of_torch_itself(dtype):
    x, weight = (
        oracles.normal(64, 256, dtype=dtype),
        oracles.normal(256, seed=1, dtype=dtype),
    )
    want = torch.nn.functional.rms_norm(x, (256,), weight, 1e-6)
    got = rms_norm(x, weight)
    if dtype == torch.float32:
        torch.testing.assert_close(got, want, rtol=1e-6, atol=0)
    else:
        assert (got != want).float().mean() < 2e-3


# --- embedding ---


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gemma_scales_by_a_factor_rounded_to_the_stream(dtype):
    module = released("gemma3").Gemma3TextScaledWordEmbedding
    theirs = module(11, 640, 0, embed_scale=640**0.5).to(dtype)
    ours = ScaledEmbedding(11, 640, padding_idx=0, dtype=dtype)
    with torch.no_grad():
        ours.weight.copy_(theirs.weight)
    ids = torch.arange(11)
    assert torch.equal(ours(ids), theirs(ids))


def test_torch_embedding_gives_the_same_rows_and_gradients():
    ours, theirs = (
        ScaledEmbedding(7, 4, padding_idx=2, scale=1.0),
        torch.nn.Embedding(7, 4, 2),
    )
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
    ids = torch.tensor([[0, 2, 2], [6, 0, 1]])
    assert torch.equal(ours(ids), theirs(ids))
    for table in (ours, theirs):
        table(ids).square().sum().backward()
    assert torch.equal(ours.weight.grad, theirs.weight.grad)
