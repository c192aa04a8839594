"""The installed transformers as an oracle: a family's rotary module and rotation."""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path

import transformers
from transformers.models.auto.configuration_auto import (CONFIG_MAPPING_NAMES,
                                                         model_type_to_module_name)

MODELS = Path(transformers.__file__).parent / "models"
# Families whose code is another family's, in transformers' own mapping.
CODE_OF = {"exaone": "llama", "internlm3": "llama", "iquestcoder": "llama",
           "sarvam_mla": "deepseek_v3", "sarvam_moe": "glm4_moe", "fuyu": "persimmon",
           "granite4_vision_text": "granite"}
CLASS_OF = {"qwen2_5_omni_talker": "Qwen2_5OmniRotaryEmbedding",
            "qwen3_omni_moe_talker_code_predictor": "Qwen3OmniMoeRotaryEmbedding",
            "hy_v4_vl_text": "HYV4VLRotaryEmbedding"}


@cache
def config_class(model_type):
    """The config class of a model_type, or None where transformers has none."""
    if model_type not in CONFIG_MAPPING_NAMES:
        return None
    directory = model_type_to_module_name(model_type)
    for file in (MODELS / directory).glob("configuration_*.py"):
        module = importlib.import_module(f"transformers.models.{directory}.{file.stem}")
        found = getattr(module, CONFIG_MAPPING_NAMES[model_type], None)
        if found is not None:
            return found
    return None


@cache
def modeling(model_type):
    """The module with the family's modeling code."""
    directory = model_type_to_module_name(CODE_OF.get(model_type, model_type))
    file = next((MODELS / directory).glob("modeling_*.py"))
    return importlib.import_module(f"transformers.models.{directory}.{file.stem}")


@cache
def rotary_class(model_type):
    """The family's RotaryEmbedding class, by the name of its config class, or None."""
    module = modeling(model_type)
    found = {name: item for name, item in inspect.getmembers(module, inspect.isclass)
             if name.endswith("RotaryEmbedding") and item.__module__ == module.__name__
             and "Vision" not in name}
    if model_type in CLASS_OF:
        return found[CLASS_OF[model_type]]
    wanted = re.sub(r"(Text)?(Config|)$", "", CONFIG_MAPPING_NAMES[model_type])
    for name, item in found.items():
        if re.sub(r"(Text)?RotaryEmbedding$", "", name) == wanted:
            return item
    return next(iter(found.values())) if len(found) == 1 else None


def frequencies(rotary):
    """{layer type or "all": (inv_freq, attention factor)} of a rotary module."""
    result = {}
    for name, buffer in rotary.named_buffers():
        label = name.removesuffix("inv_freq").rstrip("_")
        if name.endswith("inv_freq") and "original" not in name:
            factor = getattr(rotary, f"{label}_attention_scaling" if label
                             else "attention_scaling")
            result[label or "all"] = (buffer.double(), float(factor))
    return result
