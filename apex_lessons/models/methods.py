"""The block of a scaling: which method, with which numbers, and what the formulas give.

The formulas are those of ``apex_lessons.yarn``; here is only what a config file adds:
names, defaults, and the mistakes people make.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from apex_lessons import rope, yarn
from apex_lessons.models.families import Family
from apex_lessons.models.remarks import ConfigError, Remarks, number_text, shown
from apex_lessons.models.values import flag_value, list_value, nearest, real_value
from apex_lessons.yarn import ScaledFrequencies

ORIGINAL = "original_max_position_embeddings"
LENGTH = "max_position_embeddings"
# The keys that each method reads, beside those that every block may have.
METHOD_KEYS = {
    "default": (), "linear": ("factor",), "dynamic": ("factor",), "ntk": ("factor",),
    "yarn": ("factor", ORIGINAL, "attention_factor", "beta_fast", "beta_slow", "mscale",
             "mscale_all_dim", "truncate"),
    "longrope": ("short_factor", "long_factor", "factor", ORIGINAL, "attention_factor"),
    "llama3": ("factor", ORIGINAL, "low_freq_factor", "high_freq_factor"),
    "proportional": ("factor",), "apex1": ("factor", "beta_fast", "beta_slow"),
}
ANY_KEYS = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section",
            "mrope_interleaved", "interleaved", "xdrope_section", "finetuned", LENGTH}
LIBRARY_METHODS = ("default", "linear", "dynamic", "yarn", "longrope", "llama3",
                   "proportional")
# Values that change nothing where a method does not read the key.
NEUTRAL = {"factor": (1,), "beta_fast": (32,), "beta_slow": (1,), "mscale": (0, 1),
           "mscale_all_dim": (0, 1), "attention_factor": (1,), "attn_factor": (1,),
           "truncate": (True,)}
LARGEST_USUAL_FACTOR = 4096.0


@dataclass
class Block:
    """One set of rotary settings as the file states it, and where it stands."""

    values: Mapping[str, Any]
    origin: str  # "rope_scaling", "rope_parameters.full_attention", "the defaults", ...

    def has(self, key: str) -> bool:
        """Whether the block states the key, null not counted."""
        return self.values.get(key) is not None


@dataclass
class Job:
    """All that a method needs: the pairs, the lengths, and where its remarks go."""

    family: Family | None
    block: Block
    remarks: Remarks
    rotary_dim: int
    base: float
    share: float
    longest: int | None  # max_position_embeddings, tokens
    length: int | None  # the length asked for, tokens
    outer: Mapping[str, Any]  # the settings around the block
    defaults: dict[str, Any] = field(default_factory=dict)

    def number(self, key: str, default: float, **limits) -> float:
        """A number of the block, or the method's default, which is noted down."""
        if not self.block.has(key):
            self.defaults[key] = default
            return default
        return real_value(key, self.block.values[key], **limits)

    @property
    def plain(self) -> Tensor:
        """The frequencies without scaling, float64 [rotary_dim/2]."""
        return rope.inverse_frequencies(self.rotary_dim, self.base)


@dataclass
class Method:
    """What a method came to."""

    name: str
    scaled: ScaledFrequencies
    trained_length: int | None
    factor: float = 1.0
    plain: Tensor | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    long: ScaledFrequencies | None = None  # LongRoPE beyond the trained length
    softmax_factor: float = 1.0


def method_of(job: Job) -> Method:
    """The method of one block, computed; ConfigError where it makes no sense."""
    name = method_name(job)
    _check_block_keys(job, name)
    try:
        method = METHODS[name](job)
    except ConfigError:
        raise
    except (ValueError, TypeError, OverflowError) as error:
        raise ConfigError("method-refused", f"{job.block.origin}: {error}") from None
    if method.plain is None:
        method.plain = job.plain
    _softmax_factor(job, method)
    _sections(job)
    return method


def method_name(job: Job) -> str:
    """The course's name of the block's method, aliases resolved."""
    values, origin = job.block.values, job.block.origin
    names = {}
    for key in ("rope_type", "type"):
        if values.get(key) is not None:
            names[key] = _known_method(job, key, values[key])
    if len(set(names.values())) > 1:
        raise ConfigError("type-conflict", f"{origin}: rope_type is"
                          f" {shown(values['rope_type'])} and type is"
                          f" {shown(values['type'])}; transformers takes rope_type"
                          " without a word: delete the wrong one")
    if names:
        return next(iter(names.values()))
    effect = [key for key in values if key not in ANY_KEYS and values[key] is not None]
    if effect:
        job.remarks.warn("type-missing", f"{origin} has no rope_type: it is read as the"
                         " plain kind, so"
                         f" {', '.join(shown(key) for key in effect[:4])} has no"
                         " effect")
    return "default"


def _known_method(job: Job, key: str, value) -> str:
    if not isinstance(value, str):
        raise ConfigError("type-unknown", f"{key} must be a name, got {shown(value)}")
    special = job.family.types if job.family else {"mrope": "default", "su": "longrope",
                                                   "deepseek_yarn": "yarn"}
    if value in special:
        if special[value] != value:
            job.remarks.note("type-alias", f"{key} {value!r} is read as"
                             f" {special[value]} here")
        return special[value]
    if value in LIBRARY_METHODS:
        return value
    if value == "apex1" and job.family and job.family.model_type == "apex1":
        return value
    if value in ("su", "mrope"):  # the old names of longrope and of the plain kind
        renamed = {"su": "longrope", "mrope": "default"}[value]
        job.remarks.warn("type-alias", f"{key} {value!r} is an old name of {renamed};"
                         " transformers' class of this family does not know it")
        return renamed
    hint = nearest(value.lower(), LIBRARY_METHODS, cutoff=0.6)
    raise ConfigError("type-unknown", f"{key} {shown(value)} is no scaling method"
                      f"{hint}; known are {', '.join(LIBRARY_METHODS)}")


def _check_block_keys(job: Job, name: str) -> None:
    """A word on each key of the block that the method does not read."""
    reads = set(METHOD_KEYS[name]) | ANY_KEYS
    family = job.family
    if family is None or family.query == "llama_4_scaling_beta":
        reads.add("llama_4_scaling_beta")
    if family and family.alpha:
        reads.add("alpha")
    if family and family.mscales:
        reads |= {"short_mscale", "long_mscale"}
    known = {key for keys in METHOD_KEYS.values() for key in keys}
    for key, value in list(job.block.values.items())[:100]:
        if key in reads or value is None:
            continue
        if key in known | {"attn_factor"}:
            neutral = value in NEUTRAL.get(key, ())
            level = job.remarks.note if neutral else job.remarks.warn
            if name == "dynamic" and family and family.alpha:
                level = job.remarks.note
            level("block-key-without-effect", f"{job.block.origin}: {key} has no effect"
                  f" with {name}")
        else:
            job.remarks.warn("block-unknown-key", f"{job.block.origin}: no method reads"
                             f" {shown(key)}{nearest(key, known | ANY_KEYS)}")


def _factor(job: Job, ratio_allowed: bool = False) -> float | None:
    """The block's factor, at least 1; None where the lengths' ratio stands for it."""
    values, origin = job.block.values, job.block.origin
    if values.get("factor") is None and ratio_allowed:
        return None
    if "factor" not in values:
        raise ConfigError("factor-missing", f"{origin} has no factor: say how many"
                          " times longer the text gets")
    factor = float(real_value("factor", values["factor"]))
    if factor < 1:
        hint = f", did you mean {number_text(1 / factor)}?" if factor > 0 else ""
        raise ConfigError("factor-range", f"factor must be at least 1, got"
                          f" {shown(values['factor'])}: it says how many times longer"
                          f" the text gets{hint}")
    if factor == 1:
        job.remarks.note("factor-one", f"{origin}: factor 1 stretches nothing")
    if factor > LARGEST_USUAL_FACTOR:
        job.remarks.warn("value-suspicious", f"factor {number_text(factor)} is far"
                         " above any released model's")
    return factor


def _original(job: Job, name: str) -> int:
    """original_max_position_embeddings: the length before stretching, tokens."""
    inner, outer = job.block.values.get(ORIGINAL), job.outer.get(ORIGINAL)
    outer_counts = job.family is None or job.family.original is not None
    if outer is not None and outer_counts:
        value = _length(ORIGINAL, outer)
        if inner is not None and _length(ORIGINAL, inner) != value:
            job.remarks.warn("key-twice", f"{ORIGINAL} is {value} outside and"
                             f" {shown(inner)} inside {job.block.origin}; the outer one"
                             " counts")
        return value
    if inner is not None:
        return _length(ORIGINAL, inner)
    if job.family is not None and job.family.original is not None:
        job.defaults[ORIGINAL] = job.family.original
        return job.family.original
    if job.longest is None:
        raise ConfigError("original-missing", f"{job.block.origin}: {name} needs"
                          f" {ORIGINAL}, the length of the training before stretching")
    where = "" if outer is None else f" (the {ORIGINAL} outside the block is not read)"
    job.remarks.warn("original-missing", f"{job.block.origin} has no {ORIGINAL}{where}:"
                     f" transformers then takes {LENGTH} {job.longest}; if that is the"
                     f" stretched length, {name} acts on the wrong pairs")
    job.defaults[ORIGINAL] = job.longest
    return job.longest


def _length(key: str, value) -> int:
    number = real_value(key, value)
    if not float(number).is_integer():
        raise ConfigError("value-type", f"{key} must be a whole number of tokens, got"
                          f" {shown(value)}")
    if number < 1:
        raise ConfigError("value-range", f"{key} must be at least 1, got"
                          f" {shown(value)}")
    return int(number)


def _compare_lengths(job: Job, name: str, factor: float | None, original: int) -> None:
    """Do the factor and the two lengths of the file tell the same story?"""
    if job.longest is None or ORIGINAL in job.defaults and job.longest == original:
        return
    ratio = job.longest / original
    if ratio < 1:
        job.remarks.warn("original-larger", f"{ORIGINAL} {original} is larger than"
                         f" {LENGTH} {job.longest}: swapped, or a shortened copy?")
    elif ratio == 1 and factor is not None and factor != 1:
        job.remarks.note("original-equal", f"{LENGTH} still is {job.longest}, the"
                         f" original length: the file was not raised to"
                         f" {number_text(original * factor)}; the factor as written is"
                         " used")
    elif factor is not None and not math.isclose(ratio, factor, rel_tol=1e-6):
        say = job.remarks.note if name == "llama3" else job.remarks.warn
        say("factor-mismatch", f"factor {number_text(factor)} is not {LENGTH} /"
            f" {ORIGINAL} = {job.longest} / {original} = {number_text(ratio)}; {name}"
            " uses the factor as written")


def _default(job: Job) -> Method:
    return Method("default", ScaledFrequencies(job.plain, 1.0), job.longest)


def _linear(job: Job) -> Method:
    factor = _factor(job)
    scaled = yarn.position_interpolation(job.rotary_dim, base=job.base, factor=factor)
    return Method("linear", scaled, job.longest, factor, parameters={"factor": factor})


def _proportional(job: Job) -> Method:
    factor = _factor(job) if job.block.has("factor") else None
    if factor is None:
        factor = job.defaults["factor"] = 1.0
    share = job.share
    scaled = yarn.proportional(job.rotary_dim, base=job.base,
                               partial_rotary_factor=share,
                               factor=factor)
    plain = yarn.proportional(job.rotary_dim, base=job.base,
                              partial_rotary_factor=share)
    still = int((plain.inv_freq == 0).sum())
    if still:
        job.remarks.note("pairs-that-stand",
                         f"proportional: {len(plain.inv_freq) - still} of"
                         f" {len(plain.inv_freq)} pairs turn, {still} have frequency 0;"
                         " the exponents keep the whole head")
    return Method("proportional", scaled, job.longest, factor, plain.inv_freq,
                  {"factor": factor, "partial_rotary_factor": share})


def _ntk(job: Job) -> Method:
    """Alibaba's "ntk": base times the factor, then every frequency / factor^(2/d)."""
    factor = _factor(job)
    # inv_freq' = (base * factor)^(-2i/d) / factor^(2/d)
    stretched = rope.inverse_frequencies(job.rotary_dim, job.base * factor)
    scaled = ScaledFrequencies(stretched / factor ** (2 / job.rotary_dim), 1.0)
    return Method("ntk", scaled, job.longest, factor, parameters={"factor": factor})


def _dynamic(job: Job) -> Method:
    if job.family and job.family.alpha and job.block.values.get("alpha"):
        return _fixed_alpha(job)
    factor = _factor(job)
    if job.longest is None:
        raise ConfigError("size-missing", f"dynamic needs {LENGTH}: nothing changes up"
                          " to it")
    length = max(job.length or job.longest, job.longest)
    scaled = yarn.dynamic_ntk(job.rotary_dim, base=job.base, factor=factor,
                              trained_length=job.longest, length=length)
    job.remarks.note("dynamic-length", f"dynamic: nothing changes up to {job.longest}"
                     " positions; beyond, the base grows with the length of the text,"
                     " so keys must be cached before they are turned")
    parameters = {"factor": factor}
    if length > job.longest:
        # base' from the second pair: inv_freq_1 = base'^(-2/d)
        second = scaled.inv_freq[1].item()
        parameters["base_at_length"] = second ** (-job.rotary_dim / 2)
    return Method("dynamic", scaled, job.longest, factor, parameters=parameters)


def _fixed_alpha(job: Job) -> Method:
    alpha = float(real_value("alpha", job.block.values["alpha"], at_least=1.0))
    scaled = yarn.ntk_aware(job.rotary_dim, base=job.base, factor=alpha)
    job.remarks.note("fixed-alpha", f"called dynamic, but alpha {number_text(alpha)}"
                     " makes it static: base * alpha^(d / (d - 2)) at every length"
                     " (NTK-aware); the factor beside it is not read")
    return Method("dynamic", scaled, job.longest, alpha, parameters={"alpha": alpha})


def qwen_dynamic(job: Job, seq_length: int) -> Method:
    """Qwen 1's use_dynamic_ntk: NTK-aware, its factor 1, 3, 7, ... by length.

    Formula: alpha = max(2^ceil(log2(length / trained) + 1) - 1, 1).
    """
    length = max(job.length or seq_length, 1)
    # alpha = 2^ceil(log2(length / trained) + 1) - 1
    alpha = max(2.0 ** math.ceil(math.log2(length / seq_length) + 1) - 1, 1.0)
    scaled = yarn.ntk_aware(job.rotary_dim, base=job.base, factor=alpha)
    job.remarks.note("dynamic-length", "use_dynamic_ntk: nothing changes up to"
                     f" {seq_length} positions; beyond, the base grows in steps with"
                     " the length of the text")
    return Method("dynamic", scaled, seq_length, alpha, job.plain, {"alpha": alpha})


def _llama3(job: Job) -> Method:
    factor, original = _factor(job), _original(job, "llama3")
    for key in ("low_freq_factor", "high_freq_factor"):
        if not job.block.has(key):
            job.remarks.warn("bands-default", f"{job.block.origin} has no {key}:"
                             " transformers refuses that; the value of Llama 3.1 is"
                             " used")
    low = job.number("low_freq_factor", 1.0, above=0)
    high = job.number("high_freq_factor", 4.0, above=0)
    if high <= low:
        raise ConfigError("bands-swapped", f"high_freq_factor {number_text(high)} must"
                          f" be above low_freq_factor {number_text(low)}: both count"
                          " turns in the original length, Llama 3.1 has 4 and 1")
    _compare_lengths(job, "llama3", factor, original)
    scaled = yarn.llama3(job.rotary_dim, base=job.base, factor=factor,
                         trained_length=original,
                         low_freq_factor=low, high_freq_factor=high)
    return Method("llama3", scaled, original, factor, parameters={
        "factor": factor, ORIGINAL: original, "low_freq_factor": low,
        "high_freq_factor": high})


def _yarn(job: Job) -> Method:
    factor = _factor(job, ratio_allowed="factor" in job.block.values)
    original = _original(job, "yarn")
    if factor is None:
        factor = _ratio(job, "yarn", original)
    else:
        _compare_lengths(job, "yarn", factor, original)
    fast, slow = _betas(job)
    truncate = _truncate(job)
    attention, scales = _attention(job, factor)
    scaled = yarn.yarn(job.rotary_dim, base=job.base, factor=factor,
                       trained_length=original, beta_fast=fast, beta_slow=slow,
                       truncate=truncate, attention_factor=attention, **scales)
    return Method("yarn", scaled, original, factor, parameters={
        "factor": factor, ORIGINAL: original, "beta_fast": fast, "beta_slow": slow,
        "truncate": truncate, "attention_factor": scaled.attention_factor, **scales})


def _betas(job: Job) -> tuple[float, float]:
    """beta_fast and beta_slow, in turns within the original length."""
    fast = job.number("beta_fast", 32.0, above=0)
    slow = job.number("beta_slow", 1.0, above=0)
    if fast < slow:
        raise ConfigError("betas-swapped", f"beta_fast {number_text(fast)} is below"
                          f" beta_slow {number_text(slow)}: both count turns in the"
                          " original length, the usual ones are 32 and 1; swap them")
    if fast == slow:
        job.remarks.note("betas-equal", "beta_fast equals beta_slow"
                         f" ({number_text(fast)}): a step between unchanged and divided"
                         " pairs; Kimi-K2 ships that, it is no mistake by itself")
    return fast, slow


def _ratio(job: Job, name: str, original: int) -> float:
    """The factor of a block that states none: max_position_embeddings / original."""
    if job.longest is None:
        raise ConfigError("factor-missing", f"{job.block.origin} has no factor, and"
                          f" {LENGTH} is not there to take it from")
    ratio = job.longest / original
    say = job.remarks.note if name == "longrope" else job.remarks.warn
    say("factor-from-lengths", f"{name}: the scale {job.longest}/{original} ="
        f" {number_text(ratio)} is not written, it is the ratio of the two lengths")
    return max(ratio, 1.0)


def _truncate(job: Job) -> bool:
    if not job.block.has("truncate"):
        job.defaults["truncate"] = True
        return True
    truncate = flag_value("truncate", job.block.values["truncate"])
    if not truncate:
        job.remarks.note("truncate-off", "truncate false: the ends of the ramp are not"
                         " rounded to whole pairs"
                         + (" (transformers 5.24 does not see it inside a set"
                                              " for one layer type)"
                                              if "." in job.block.origin else ""))
    return truncate


def _attention(job: Job, factor: float) -> tuple[float | None, dict[str, float]]:
    """YaRN's attention_factor as stated, and both mscales or neither."""
    scales = _mscales(job, factor)
    attention = _stated_attention(job)
    if attention is not None and scales:
        job.remarks.warn("mscale-and-factor", "attention_factor and mscale are both"
                         " set: attention_factor is used as it is, the mscales do not"
                         " change cos and sin")
    if len(scales) < 2:
        scales = {}
    if attention is not None:
        return attention, scales
    job.defaults["attention_factor"] = "0.1 ln factor + 1" if not scales else \
        "(0.1 mscale ln factor + 1) / (0.1 mscale_all_dim ln factor + 1)"
    slope = job.family.yarn_slope if job.family else None
    if slope and "yarn" not in (job.block.values.get("type"),
                                job.block.values.get("rope_type")):
        # TeleChat3's own kind of YaRN: 0.07 ln factor + 1
        attention = slope * math.log(factor) + 1
        job.defaults["attention_factor"] = f"{slope} ln factor + 1"
    return attention, scales


def _mscales(job: Job, factor: float) -> dict[str, float]:
    """mscale and mscale_all_dim where they are there and not 0."""
    block = job.block
    scales = {key: real_value(key, block.values[key], at_least=0.0)
              for key in ("mscale", "mscale_all_dim") if block.has(key)}
    zeros = [key for key, value in scales.items() if value == 0]
    for key in zeros:
        so = f", so the factor is 0.1 ln {number_text(factor)} + 1"
        job.remarks.note("mscale-zero", f"{key} 0 counts as absent"
                         + so * (not block.has("attention_factor")))
        scales.pop(key)
    if len(scales) == 1 and not zeros:
        job.remarks.warn("mscale-alone", f"{next(iter(scales))} stands alone: only the"
                         " ratio of mscale and mscale_all_dim is used, so it has no"
                         " effect on cos and sin")
    return scales


def _stated_attention(job: Job) -> float | None:
    """The block's attention_factor, for cos and sin; None where it has none."""
    if not job.block.has("attention_factor"):
        return None
    key = "attention_factor"
    attention = float(real_value(key, job.block.values[key], above=0))
    if attention > 10:
        job.remarks.warn("value-suspicious", f"{key} {number_text(attention)}"
                         " multiplies scores by its square")
    return attention


def _longrope(job: Job) -> Method:
    original = _original(job, "longrope")
    factor = _factor(job, ratio_allowed=True)
    _compare_lengths(job, "longrope", factor, original)
    if factor is None:
        factor = _ratio(job, "longrope", original)
    lists = {key: _divisors(job, key) for key in ("short_factor", "long_factor")}
    stated = _stated_attention(job)
    if stated is None:
        job.defaults["attention_factor"] = "sqrt(1 + ln factor / ln original length)"
    short, long = (yarn.longrope(job.rotary_dim, base=job.base, factor=factor,
                                 trained_length=original, factors=lists[key],
                                 attention_factor=_mscale(job, key, stated))
                   for key in lists)
    same = short.attention_factor == long.attention_factor
    _say_lists(job, lists, original, same)
    if original == job.longest:
        one = ", so the attention factor is 1" if stated is None else ""
        job.remarks.note("original-equal", f"original = max = {original}{one}")
    chosen = long if (job.length or 0) > original else short
    return Method("longrope", chosen, original, factor, long=long, parameters={
        "factor": factor, ORIGINAL: original,
        "attention_factor": chosen.attention_factor})


def _say_lists(job: Job, lists, original: int, same_factor: bool) -> None:
    """LongRoPE's two lists: when which counts, or that they are one."""
    if lists["short_factor"] != lists["long_factor"]:
        same = "; the factor on cos and sin is the same for both" * same_factor
        job.remarks.note("lists-by-length", f"two lists: short_factor up to {original}"
                         f" positions, long_factor beyond{same}; keys cached under one"
                         " list do not fit the other")
        return
    stretched = ", and it is not all ones: the frequencies differ from plain RoPE at" \
                " every length"
    job.remarks.note("lists-equal", "short_factor and long_factor are the same list"
                     + stretched * (set(lists["short_factor"]) != {1.0}))


def _mscale(job: Job, key: str, stated: float | None) -> float | None:
    """Phi-3.5-MoE puts short_mscale or long_mscale where others have one factor."""
    name = key.replace("_factor", "_mscale")
    if job.family and job.family.mscales and job.block.has(name):
        return float(real_value(name, job.block.values[name], above=0))
    return stated


def _divisors(job: Job, key: str) -> list[float]:
    """One of LongRoPE's lists, one positive divisor a pair."""
    pairs = job.rotary_dim // 2
    if job.block.values.get(key) is None:
        raise ConfigError("list-missing", f"{job.block.origin}: longrope needs {key}, a"
                          f" list of {pairs} divisors")
    divisors = list_value(key, job.block.values[key], "list-shape")
    if len(divisors) != pairs:
        raise ConfigError("list-shape", f"{key} has {len(divisors)} entries for {pairs}"
                          " pairs: one divisor a pair is needed")
    for index, value in enumerate(divisors):
        try:
            real_value(f"{key}[{index}]", value, above=0)
        except ConfigError as error:
            raise ConfigError("list-values", str(error)) from None
    return [float(value) for value in divisors]


def _apex1(job: Job) -> Method:
    factor = _factor(job)
    fast = job.number("beta_fast", 32.0, above=0)
    slow = job.number("beta_slow", 1.0, above=0)
    scaled = yarn.apex1(job.rotary_dim, base=job.base, factor=factor, beta_fast=fast,
                        beta_slow=slow)
    return Method("apex1", scaled, job.longest, factor, parameters={
        "factor": factor, "beta_fast": fast, "beta_slow": slow})


METHODS: Mapping[str, Callable[[Job], Method]] = {
    "default": _default, "linear": _linear, "dynamic": _dynamic, "yarn": _yarn,
    "longrope": _longrope, "llama3": _llama3, "proportional": _proportional,
    "ntk": _ntk,
    "apex1": _apex1}


def _softmax_factor(job: Job, method: Method) -> None:
    """DeepSeek: mscale_all_dim sharpens the whole score, through the softmax scale."""
    family, values = job.family, job.block.values
    if method.name == "default" or not values.get("mscale_all_dim"):
        return
    if family is not None and not family.softmax:
        return
    scale = real_value("mscale_all_dim", values["mscale_all_dim"], above=0)
    # (0.1 * mscale_all_dim * ln factor + 1)^2
    method.softmax_factor = yarn.yarn_attention_factor(method.factor, scale) ** 2
    job.remarks.note("softmax-factor", "mscale_all_dim multiplies the softmax scale by"
                     f" {method.softmax_factor:.6f}, so it sharpens the whole score;"
                     f" cos and sin get {method.scaled.attention_factor:.6g}")


def _sections(job: Job) -> None:
    """Multimodal RoPE: the pairs are shared out, the frequencies stay."""
    for key in ("mrope_section", "xdrope_section"):
        if job.block.has(key):
            listed = list_value(key, job.block.values[key])
            for entry in listed[:1000]:
                real_value(key, entry, at_least=0)
            text = ", ".join(number_text(entry) for entry in listed[:4])
            job.remarks.note("sections", f"{key} [{text}]: the pairs are shared out"
                             " among time, height and width; for text all of them count"
                             " tokens, so the frequencies are the plain ones")


def stacked(frequencies: Tensor) -> list[float]:
    """The frequencies as Python floats, for JSON.

    >>> stacked(torch.tensor([1.0, 0.5]))
    [1.0, 0.5]
    """
    return [float(value) for value in frequencies.double().tolist()]
