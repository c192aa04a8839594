"""The installed transformers as an oracle: a family's rotary module and rotation.

Which families have what is read from transformers' text; their modules, which take
seconds to import, are imported by the tests that run them.
"""

import importlib
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


def has_config(model_type):
    """Whether ``config_class`` finds a class, from the text of the files."""
    if model_type not in CONFIG_MAPPING_NAMES:
        return False
    written = re.compile(rf"^class {CONFIG_MAPPING_NAMES[model_type]}\b", re.MULTILINE)
    files = (MODELS / model_type_to_module_name(model_type)).glob("configuration_*.py")
    return any(written.search(file.read_text(encoding="utf-8")) for file in files)


@cache
def modeling_file(model_type):
    """The file with the family's modeling code."""
    directory = model_type_to_module_name(CODE_OF.get(model_type, model_type))
    return next((MODELS / directory).glob("modeling_*.py"))


@cache
def modeling_text(model_type):
    return modeling_file(model_type).read_text(encoding="utf-8")


def modeling(model_type):
    """The module with the family's modeling code."""
    file = modeling_file(model_type)
    folder = f"transformers.models.{file.parent.name}"
    return importlib.import_module(f"{folder}.{file.stem}")


def rotary_name(model_type):
    """The family's RotaryEmbedding class, by the name of its config class, or None."""
    if model_type in CLASS_OF:
        return CLASS_OF[model_type]
    written = re.findall(r"^class (\w*RotaryEmbedding)\b", modeling_text(model_type),
                         re.MULTILINE)
    found = [name for name in written if "Vision" not in name]
    wanted = re.sub(r"(Text)?(Config|)$", "", CONFIG_MAPPING_NAMES[model_type])
    for name in found:
        if re.sub(r"(Text)?RotaryEmbedding$", "", name) == wanted:
            return name
    return found[0] if len(found) == 1 else None


def rotary_class(model_type):
    return getattr(modeling(model_type), rotary_name(model_type))


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
