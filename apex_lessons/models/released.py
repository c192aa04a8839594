"""A released model's name in, its settings out, from the table of released models."""

from __future__ import annotations

import re
from typing import Any

from apex_lessons.models.apex1 import SIZES, apex1_config
from apex_lessons.models.published import PublishedModel, published
from apex_lessons.models.remarks import ConfigError, shown
from apex_lessons.models.values import nearest

# Rows of the table by the start of their name, and the family that each belongs to.
FAMILY_OF_MODEL = {
    "Transformer base": "transformer", "GPT-2": "gpt2", "T5-base": "t5",
    "GPT-J": "gptj",
    "GPT-NeoX": "gpt_neox", "Pythia": "gpt_neox", "Falcon-7B": "falcon", "phi-1": "phi",
    "Llama-2": "llama", "Yarn-Llama-2": "llama", "Yarn-Mistral": "mistral",
    "Mistral-7B": "mistral", "Llama-3": "llama", "Qwen2.5": "qwen2", "Qwen3": "qwen3",
    "DeepSeek-V3": "deepseek_v3", "DeepSeek-V2": "deepseek_v2", "Kimi-K2": "kimi_k2",
    "Kimi-Linear": "kimi_linear", "gpt-oss": "gpt_oss", "Olmo-3": "olmo3",
    "Gemma-2": "gemma2", "Gemma-3": "gemma3_text", "Phi-3": "phi3"}


def released_names() -> tuple[str, ...]:
    """The names that ``explain`` knows: the table's rows and APEX-1's four sizes.

    >>> released_names()[-1]
    'APEX-1 Large'
    """
    rows = [row.model for row in published() if not row.model.startswith("APEX-1")]
    return (*rows, *(apex1_config(size).name for size in SIZES))


def released_config(name: str) -> dict[str, Any]:
    """The settings of a released model as a config dictionary.

    ``name``: a row of the table, its beginning where that is unique, or "APEX-1 Small";
    case, spaces and dashes do not matter. Raises ConfigError for an unknown name, with
    the nearest ones.

    >>> released_config("gpt-oss-20b")["rope_parameters"]["factor"]
    32.0
    """
    wanted = _plain(name)
    matches = [known for known in released_names() if _plain(known) == wanted]
    matches = matches or [known for known in released_names()
                          if wanted and _plain(known).startswith(wanted)]
    if len(matches) != 1:
        hint = f"; {', '.join(matches[:6])} begin like that" if matches else nearest(
            name, released_names(), cutoff=0.5)
        raise ConfigError("file-missing", f"there is no file and no released model"
                          f" {shown(name)}{hint}")
    for size in SIZES:
        if apex1_config(size).name == matches[0]:
            return _apex1(size)
    return _config(next(row for row in published() if row.model == matches[0]))


def _plain(name: str) -> str:
    """A name without case, spaces and dashes: "GPT-2" and "gpt2" are the same."""
    return re.sub(r"[^a-z0-9.]", "", name[:200].lower())


def _apex1(size: str) -> dict[str, Any]:
    config = apex1_config(size)
    kind = "apex1" if config.rope_factor != 1 else "default"
    scaling = {"rope_type": kind,
               "factor": config.rope_factor} if kind == "apex1" else None
    return {"model_type": "apex1", "d_model": config.d_model, "d_head": config.d_head,
            "d_head_rope": config.d_head_rope, "n_layers": config.n_layers,
            "max_seq_len": config.max_seq_len, "rope_base": config.rope_base,
            "rope_scaling": scaling}


def _config(row: PublishedModel) -> dict[str, Any]:
    """One row in the words of a config.json, without what the table does not know."""
    start = max((start for start in FAMILY_OF_MODEL if row.model.startswith(start)),
                key=len, default=None)
    if start is None:
        raise ConfigError("size-missing", "the table of released models does not know"
                          f" enough about {row.model}: no head size and no base"
                          f" (source: {row.source})")
    config = {"model_type": FAMILY_OF_MODEL[start], "hidden_size": row.hidden_size,
              "max_position_embeddings": row.max_position_embeddings}
    latent = row.labelled.get("attention_factor", {}).get("softmax scale") is not None
    width = "qk_rope_head_dim" if latent else "head_dim"
    config[width] = row.rotary_dims if latent else row.head_dim
    if config["model_type"] == "falcon":
        config["num_attention_heads"] = row.hidden_size // row.head_dim
    if config["model_type"] == "gptj":  # base in the code, width under n_embd
        config |= {"rotary_dim": row.rotary_dims, "n_embd": row.hidden_size,
                   "n_head": row.hidden_size // row.head_dim}
    else:
        config |= _rope_parameters(row)
    # An unknown length stays null: the family's default would be a guess.
    return {key: value for key, value in config.items()
            if value is not None or key == "max_position_embeddings"}


BLOCK_COLUMNS = ("factor", "beta_fast", "beta_slow", "low_freq_factor",
                 "high_freq_factor", "mscale", "mscale_all_dim", "truncate",
                 "original_max_position_embeddings")


def _block(row: PublishedModel) -> dict[str, Any]:
    """The method of a row and its parameters, without what the row does not know."""
    share = row.partial_rotary_factor
    block = {"rope_type": row.rope_scaling_type, "rope_theta": row.rope_theta}
    if row.labelled.get("attention_factor") is None and share not in (None, 1.0):
        block["partial_rotary_factor"] = share
    if row.rope_scaling_type == "longrope":
        raise ConfigError("list-missing", f"{row.model} ships two lists of divisors"
                          " with its weights, which the table of released models does"
                          " not have: give its config.json")
    if row.rope_scaling_type in (None, "none"):
        block["rope_type"] = "default"
    else:
        block |= {name: getattr(row, name) for name in BLOCK_COLUMNS}
    return {key: value for key, value in block.items() if value is not None}


def _rope_parameters(row: PublishedModel) -> dict[str, Any]:
    """The block of a row, in the new spelling; Gemma-3 has one for each layer type."""
    block = _block(row)
    if row.rope_theta is None:
        return {}
    bases = row.labelled.get("rope_theta")
    if bases:
        local = {"rope_type": "default", "rope_theta": bases["local"]}
        return {"rope_parameters": {"full_attention": block,
                                    "sliding_attention": local}}
    return {"rope_parameters": block} if row.model[:6] != "Olmo-3" else {
        "rope_theta": row.rope_theta, "rope_scaling": {
            key: value for key, value in block.items() if key != "rope_theta"}}
