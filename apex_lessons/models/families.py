"""How each model family states its rotary positions: the table and its looking up.

The table is ``families.json`` beside this file, one line a family, each with its source
(a repository and a path in it; "transformers 5.24 models/llama" is that directory's
``configuration_*.py`` and ``modeling_*.py``). A test builds every family that the
installed transformers knows and compares frequencies, defaults and layers with it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

ROTARY = "rotary"


@dataclass(frozen=True)
class Family:
    """One family's conventions. What a line of the table leaves out is the usual value.

    Widths are elements, lengths are tokens, ``share`` is the part of a head that turns.
    """

    model_type: str
    source: str  # repository and path
    positions: str = ROTARY  # or "learned absolute", "sinusoidal", "ALiBi", "none", ...
    why: str = ""  # for a family without rotary positions
    aliases: tuple[str, ...] = ()  # other model_type names of the same conventions
    # pairs: "half" is (i, i + rotary_dim/2), "interleaved" is (2i, 2i + 1)
    layout: str = "half"
    layout_key: Mapping[str, str] | None = None  # a boolean key that decides it
    interleave_key: str | None = None  # DeepSeek's rope_interleave, true by default
    # base
    base: float = 10_000.0  # where the file has none
    base_keys: tuple[str, ...] = ("rope_theta",)  # outside the block; (): in the code
    base_scale_key: str | None = None  # a key that multiplies the base (ChatGLM)
    inside: str | None = None  # an inner object that holds attention's keys (DBRX, MPT)
    # widths
    # hidden_size, num_attention_heads, num_hidden_layers, max_position_embeddings
    sizes: tuple[int | None, ...] = (None, None, None, None)
    # usual name -> this family's names
    names: Mapping[str, list[str]] = field(default_factory=dict)
    head_dim: int | None = None  # where the file has none; None: hidden_size / heads
    head_dim_keys: tuple[str, ...] = ("head_dim",)
    head_ratio: int = 1  # Zamba2 attends over twice the width
    latent: int | None = None  # MLA: qk_rope_head_dim where the file has none
    nope: int | None = None  # MLA: qk_nope_head_dim where the file has none
    share: float = 1.0
    share_keys: tuple[str, ...] = ("partial_rotary_factor",)
    share_read: bool = False  # the plain kind reads a share as well
    share_fixed: bool = False  # whatever the file says
    share_without_block: bool = False  # ``share`` only where the file has no block
    rotary_dim: int | None = None
    rotary_dim_keys: tuple[str, ...] = ()
    # scaling
    scaling: Mapping[str, Any] | None = None  # the block where the file has none
    scaling_read: bool = True  # some classes never look at rope_scaling
    types: Mapping[str, str] = field(default_factory=dict)  # other names of methods
    original: int | None = None  # original_max_position_embeddings, outside the block
    alpha: bool = False  # Hunyuan: "dynamic" with a fixed alpha
    mscales: bool = False  # Phi-3.5-MoE: short_mscale and long_mscale on cos and sin
    softmax: bool = False  # DeepSeek: mscale_all_dim goes on the softmax scale
    query: str | None = None  # a factor on the queries, by position
    dynamic_switch: str | None = None  # Qwen 1: use_dynamic_ntk
    dynamic_factor: str | None = None  # nomic: a number beside that means dynamic NTK
    yarn_slope: float | None = None  # TeleChat3: 0.07 where others have 0.1
    rotary_block: str | None = None  # InternLM 1: {"base": ..., "type": ...}
    position_scale: str | None = None  # Phi-3-small: a factor on the positions
    # layers
    layers: Any = None  # the rule for layer types where the file lists none
    rotates: tuple[str, ...] | None = None  # layer types that turn; None: all
    all_rotate_without: str | None = None  # EXAONE 4: no sliding window, all turn
    no_rope_layers: int | None = None  # interval of the layers that do not turn
    layer_bases: str | None = None  # a base for each layer, 0 for none
    no_base_on: tuple[str, ...] = ()  # layer types without one, where it is not there
    without_rotary: Mapping[str, Any] | None = None  # a key that lists them
    # label -> what its set of frequencies reads
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    label_of: Mapping[str, str] | None = None  # layer type -> label of its set
    window: int | None = None
    # no rotary positions after all
    needs: Mapping[str, Any] | None = None  # a key, the value that switches rotary on
    needs_default: Any = None  # that key's value where the file has none
    otherwise: str = "none"  # the positions where it is off
    positions_key: Mapping[str, str] | None = None  # a key that means other positions
    alibi_unless: Mapping[str, Any] | None = None  # Baichuan: only the 7B turns
    alibi_key: str | None = None  # position_embedding_type "alibi"
    mpt: bool = False  # attn_config decides among ALiBi, rotary and learned
    ignored: tuple[str, ...] = ()  # keys that other families read and this one not
    notes: tuple[str, ...] = ()

    @property
    def rotary(self) -> bool:
        """Whether models of this family turn queries and keys at all."""
        return self.positions == ROTARY

    def default_size(self, name: str) -> int | None:
        """The class default of hidden_size, num_attention_heads, ..., or None."""
        return self.sizes[SIZE_NAMES.index(name)]


SIZE_NAMES = ("hidden_size", "num_attention_heads", "num_hidden_layers",
              "max_position_embeddings")


@cache
def families() -> Mapping[str, Family]:
    """Every family by model_type, aliases included: {model_type: Family}.

    >>> families()["cohere"].base, families()["gptj"].layout
    (500000.0, 'interleaved')
    """
    table = {}
    for model_type, line in _table()["families"].items():
        family = Family(model_type=model_type, **{key: _frozen(value)
                                                  for key, value in line.items()})
        for name in (model_type, *family.aliases):
            table[name] = family
    return table


@cache
def composites() -> Mapping[str, tuple[str, str]]:
    """Multimodal model types: {model_type: (key of the language model, its type)}.

    >>> composites()["llava"]
    ('text_config', 'llama')
    """
    return {name: tuple(pair) for name, pair in _table()["composites"].items()}


@cache
def family_of_architecture(name: str) -> Family | None:
    """The family whose class is called like this: "LlamaForCausalLM" is llama.

    >>> family_of_architecture("Qwen3MoeForCausalLM").model_type
    'qwen3_moe'
    """
    stem = re.sub(r"(For[A-Z]\w*|LMHeadModel|Model)$", "", name)
    return _by_class_name().get(_plain(stem))


@cache
def _by_class_name() -> Mapping[str, Family]:
    return {_plain(name): family for name, family in families().items()}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@cache
def _table() -> dict:
    file = resources.files(__package__).joinpath("families.json")
    return json.loads(file.read_text(encoding="utf-8"))


def _frozen(value):
    return tuple(value) if isinstance(value, list) else value
