"""Which layer is of which type, and which layers turn nothing.

Everything works with 0-based layer numbers. Rules for files that do not list their
layers come from the family's line of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apex_lessons.models.families import Family
from apex_lessons.models.remarks import ConfigError, shown
from apex_lessons.models.values import Settings, list_value, nearest

MOST_LAYERS = 100_000  # released models stay below 200
FULL, SLIDING, LINEAR = "full_attention", "sliding_attention", "linear_attention"
OLD_NAMES = {"attention": FULL, "global": FULL, "local": SLIDING, "mamba": LINEAR,
             "recurrent": LINEAR, "global_attention": FULL, "local_attention": SLIDING}
KNOWN_TYPES = (FULL, SLIDING, LINEAR, "chunked_attention", "conv", "hybrid",
               "hybrid_sliding", "indexed_attention", "compressed_sparse_attention",
               "heavily_compressed_attention", "minimax_m3_sparse", "mlp", "moe",
               "reference_sliding_attention")


def layer_count(settings: Settings, family: Family | None) -> int | None:
    """How many layers: from the file, else the family's default, else None."""
    key = settings.key_of("num_hidden_layers")
    if key is not None and settings.has(key):
        return settings.whole(key, at_most=MOST_LAYERS)
    if family is None or not settings.path:
        return None
    return family.default_size("num_hidden_layers")


def layer_types(settings: Settings, family: Family | None,
                count: int | None) -> list[str] | None:
    """Each layer's type, from the file or by the family's rule; None if unknown."""
    for key in ("layer_types", "layers_block_type"):
        if settings.has(key):
            return _listed_types(settings, key, count)
    if family is None or family.layers is None or count is None:
        return None
    rule = family.layers
    if isinstance(rule, str):
        return SPECIAL_RULES[rule](settings, count)
    return _by_rule(settings, rule, count)


def _listed_types(settings: Settings, key: str, count: int | None) -> list[str]:
    """The file's own list, with a warning where it does not fit the model."""
    listed = list_value(key, settings.values[key])[:MOST_LAYERS]
    for entry in listed:
        if not isinstance(entry, str):
            raise ConfigError("layers-values", f"{key} must hold names of layer types,"
                              f" got {shown(entry)}")
    extra = settings.values.get("num_nextn_predict_layers")
    extra = extra if isinstance(extra, int) and not isinstance(extra, bool) else 0
    if count is not None and len(listed) not in (count, count + extra):
        settings.remarks.warn("layers-length", f"{key} has {len(listed)} entries for"
                              f" {count} layers (num_hidden_layers)")
    types = [OLD_NAMES.get(entry, entry) for entry in listed]
    for entry in sorted(set(types) - set(KNOWN_TYPES))[:3]:
        settings.remarks.warn("layers-values", f"{key} names {shown(entry)}, which is"
                              " no layer type of"
                              f" transformers{nearest(entry, KNOWN_TYPES)}")
    return types if count is None else types[:count]


def _by_rule(settings: Settings, rule: Mapping[str, Any], count: int) -> list[str]:
    """A pattern that repeats: every n-th layer, a cycle, or a list of numbers."""
    if "cycle" in rule:
        cycle = _cycle(settings, rule)
        return [cycle[i % len(cycle)] for i in range(count)]
    if "indices" in rule:
        return _by_numbers(settings, rule, count)
    special, other = rule["special"], rule["other"]
    period = rule["period"]
    key = rule.get("key")
    if key and settings.has(key):
        if isinstance(settings.values[key], str):  # EXAONE 4: "LLLG"
            letters = settings.values[key]
            return _by_letters(key, letters, count, special, other)
        period = settings.whole(key, at_most=MOST_LAYERS)
    offset = {"end": lambda i: i + 1, "start": lambda i: i,
              "last": lambda i: count - 1 - i}[rule.get("at", "end")]
    types = [special if offset(i) % period == 0 else other for i in range(count)]
    if rule.get("last") and types:
        types[-1] = rule["last"]
    return types


def _by_letters(key: str, letters: str, count: int, special: str,
                other: str) -> list[str]:
    if not letters or set(letters) - set("LG") or len(letters) > 1000:
        raise ConfigError("layers-values", f"{key} must be a number or letters L"
                          f" (local) and G (global), got {shown(letters)}")
    types = [special if letters[i % len(letters)] == "G" else other
             for i in range(count)]
    return types


def _cycle(settings: Settings, rule: Mapping[str, Any]) -> list[str]:
    key = rule.get("key")
    if not key or not settings.has(key):
        return rule["cycle"]
    names = [OLD_NAMES.get(name, name) if isinstance(name, str) else None
             for name in list_value(key, settings.values[key])]
    if not names or None in names:
        raise ConfigError("layers-values", f"{key} must hold names of layer types")
    # RecurrentGemma's attention is local
    return [SLIDING if name == FULL else name for name in names]


def _by_numbers(settings: Settings, rule: Mapping[str, Any], count: int) -> list[str]:
    key = rule["indices"]
    if not settings.has(key):
        return [rule["special"] if rule.get("all_without") else rule["other"]] * count
    chosen = set(layer_numbers(key, settings.values[key]))
    return [rule["special"] if i in chosen else rule["other"] for i in range(count)]


def layer_numbers(key: str, value) -> list[int]:
    """A list of 0-based layer numbers; ConfigError for anything else."""
    numbers = list_value(key, value)
    for number in numbers:
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ConfigError("layers-values", f"{key} must hold layer numbers, got"
                              f" {shown(number)}")
    return numbers


def switches(settings: Settings, key: str, count: int | None,
             interval: int | None) -> list[bool] | None:
    """``no_rope_layers``: 1 for a layer that turns, 0 for one that does not."""
    step_key = "no_rope_layer_interval"
    if not settings.values.get(key):
        if count is None or interval is None:
            return None
        if settings.has(step_key):
            interval = settings.whole(step_key, at_most=MOST_LAYERS)
        return [(i + 1) % interval != 0 for i in range(count)]
    listed = list_value(key, settings.values[key])[:MOST_LAYERS]
    for entry in listed:
        if entry not in (0, 1) or isinstance(entry, float):
            raise ConfigError("layers-values", f"{key} must hold 1 (the layer turns) or"
                              " 0 (it does not), one for each layer; got"
                              f" {shown(entry)}")
    if count is not None and len(listed) != count:
        settings.remarks.warn("layers-length", f"{key} has {len(listed)} entries for"
                              f" {count} layers (num_hidden_layers)")
    return [bool(entry) for entry in listed]


def numbers_text(numbers: list[int] | tuple[int, ...], most: int = 12) -> str:
    """Layer numbers for a sentence: "3, 7, 11, ..., 47".

    >>> numbers_text(range(3, 48, 4)), numbers_text([0])
    ('3, 7, 11, ..., 47', '0')
    """
    numbers = list(numbers)
    if len(numbers) <= most - 4:
        return ", ".join(map(str, numbers))
    return f"{numbers[0]}, {numbers[1]}, {numbers[2]}, ..., {numbers[-1]}"


def _flint(settings: Settings, count: int) -> list[str]:
    return [FULL if i < 2 or i % 4 == 1 or i == count - 1 else SLIDING
            for i in range(count)]


def _mimo_v2_flash(settings: Settings, count: int) -> list[str]:
    return [FULL if i == 0 or (i + 1) % 6 == 0 else SLIDING for i in range(count)]


def _lfm3(settings: Settings, count: int) -> list[str]:
    return [FULL if i % 4 == 2 else SLIDING if i % 4 == 0 and i else "conv"
            for i in range(count)]


def _dots3_note(settings: Settings, count: int) -> list[str]:
    full = FULL if settings.values.get("use_dsa") is False else "indexed_attention"
    return [full if i < 2 or i % 4 == 1 else SLIDING for i in range(count)]


def _deepseek_v4(settings: Settings, count: int) -> list[str]:
    return ["heavily_compressed_attention" if i < 2 or i % 2 == 0
            else "compressed_sparse_attention" for i in range(count)]


def _cohere2_moe(settings: Settings, count: int) -> list[str]:
    dense = settings.whole("first_k_dense_replace", at_least=0, at_most=MOST_LAYERS) \
        if settings.has("first_k_dense_replace") else 0
    before = settings.whole("prefix_dense_sliding_window_pattern") \
        if settings.has("prefix_dense_sliding_window_pattern") else 1
    after = settings.whole("sliding_window_pattern") \
        if settings.has("sliding_window_pattern") else 4
    dense = min(dense, count)
    return ([SLIDING if (i + 1) % before else FULL for i in range(dense)]
            + [SLIDING if (i + 1) % after else FULL for i in range(count - dense)])


def _zamba2(settings: Settings, count: int) -> list[str]:
    pattern = ([LINEAR] + ([LINEAR] * 5 + ["hybrid"]) * 7 + [LINEAR] * 4 + ["hybrid"]
               + [LINEAR] * 3 + ["hybrid"] + [LINEAR] * 2)
    return (pattern + [LINEAR] * count)[:count]


def _attn_type_list(settings: Settings, count: int) -> list[str]:
    """MiniMax: 1 is softmax attention, 0 is linear; every eighth by default."""
    if not settings.has("attn_type_list"):
        return [FULL if (i + 1) % 8 == 0 else LINEAR for i in range(count)]
    listed = list_value("attn_type_list", settings.values["attn_type_list"])[:count]
    for entry in listed:
        if entry not in (0, 1):
            raise ConfigError("layers-values", "attn_type_list must hold 0 (linear) or"
                              f" 1 (softmax attention), got {shown(entry)}")
    return [FULL if entry else LINEAR for entry in listed]


def _plamo2(settings: Settings, count: int) -> list[str]:
    """One attention layer amid every mamba_step layers, or the last of few."""
    step = 2
    if settings.has("mamba_step"):
        step = settings.whole("mamba_step", at_most=MOST_LAYERS)
    if settings.values.get("mamba_enabled") is False:
        return [FULL] * count
    if count <= step // 2:
        return [LINEAR] * (count - 1) + [FULL]
    return [FULL if i % step == step // 2 else LINEAR for i in range(count)]


SPECIAL_RULES = {"plamo2": _plamo2, "flint": _flint, "mimo_v2_flash": _mimo_v2_flash,
                 "lfm3": _lfm3,
                 "dots3_note": _dots3_note, "deepseek_v4": _deepseek_v4,
                 "cohere2_moe": _cohere2_moe, "zamba2": _zamba2,
                 "attn_type_list": _attn_type_list}
