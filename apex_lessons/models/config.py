"""A model's config.json in, its rotary settings out: ``rope_from_config``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from apex_lessons import rope, yarn
from apex_lessons.models.families import (Family, composites, families,
                                          family_of_architecture)
from apex_lessons.models.layers import (FULL, layer_count, layer_numbers, layer_types,
                                        numbers_text, switches)
from apex_lessons.models.methods import (ANY_KEYS, LENGTH, METHOD_KEYS, ORIGINAL, Block,
                                         Job, Method, method_of, qwen_dynamic)
from apex_lessons.models.reading import ConfigFile, Unreadable, read_config
from apex_lessons.models.remarks import ConfigError, Remark, Remarks, number_text, shown
from apex_lessons.models.values import (LONGEST_TEXT, USUAL_NAMES, WIDEST_HEAD,
                                        Settings,
                                        flag_value, nearest, real_value)
from apex_lessons.yarn import ScaledFrequencies

SUB_KEYS = ("text_config", "llm_config", "language_config", "thinker_config",
            "language_model_config", "decoder", "decoder_config")
LARGEST_USUAL_BASE, SMALLEST_USUAL_BASE = 1e12, 100.0


@dataclass(frozen=True)
class RopeSettings:
    """How one set of layers turns its queries and keys.

    ``head_dim``: width of a head, of its rotary part in latent attention (MLA).
    ``rotary_dim``: the elements that turn. ``layout``: "half" or "interleaved" pairs.
    ``scaled``: the frequencies in use and the factor on cos and sin.
    ``softmax_factor``: what the softmax scale is multiplied by. ``trained_length``:
    tokens before stretching, None where the file does not say. ``method``: "default",
    "linear", "dynamic", "yarn", "longrope", "llama3", "proportional", ... ``defaults``:
    what the file does not state, {name: value used}. ``notes``: every remark, warnings
    first.
    """

    head_dim: int
    rotary_dim: int
    layout: str
    base: float
    scaled: ScaledFrequencies
    softmax_factor: float
    trained_length: int | None
    method: str
    defaults: Mapping[str, Any]
    notes: tuple[str, ...]
    factor: float = 1.0  # as the formula uses it; longrope: the ratio of the lengths
    plain: Tensor | None = None  # float64 [rotary_dim/2], before scaling
    parameters: Mapping[str, Any] = field(default_factory=dict)
    longest_length: int | None = None  # max_position_embeddings, tokens
    query_key_dims: int | None = None  # MLA: width of a whole query
    long: ScaledFrequencies | None = None  # longrope beyond the trained length
    layers: tuple[int, ...] | None = None  # 0-based, where the file tells

    @property
    def score_factor(self) -> float:
        """What a score of fully rotary heads is multiplied by."""
        # attention_factor^2 * softmax_factor
        return self.scaled.attention_factor ** 2 * self.softmax_factor


class RopeByLayerType(dict):
    """{layer type: RopeSettings}; empty for a model without rotary positions.

    One key "all" for most models. ``notes`` and ``warnings`` are texts, ``remarks`` the
    same with the names of their rules.
    """

    def __init__(self, sets: Mapping[str, RopeSettings], *, name: str,
                 model_type: str | None,
                 family: Family | None, positions: str, why: str = "",
                 layer_count: int | None = None,
                 layers_without_rotary: tuple[int, ...] | None = None,
                 query_factor: Mapping[str, Any] | None = None,
                 remarks: tuple[Remark, ...] = ()):
        super().__init__(sets)
        self.name, self.model_type, self.family = name, model_type, family
        self.positions, self.why, self.layer_count = positions, why, layer_count
        self.layers_without_rotary = layers_without_rotary
        self.query_factor, self.remarks = query_factor, remarks

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to know."""
        return tuple(item.text for item in self.remarks if item.level == "note")

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is probably a mistake."""
        return tuple(item.text for item in self.remarks if item.level == "warning")

    @property
    def main(self) -> str | None:
        """The set that stands for the model: "all", full attention, else the first."""
        for label in ("all", FULL, "compress", *self):
            if label in self:
                return label
        return None


def rope_from_config(config, *, length: int | None = None) -> RopeByLayerType:
    """What a Hugging Face ``config.json`` says about rotary positions.

    ``config``: a dictionary, a path, or a directory with a config.json; never changed.
    ``length``: tokens of the text at hand, for the two methods that depend on it
    (dynamic, longrope); None means not longer than the trained length.
    Returns {layer type: RopeSettings}: one key "all" for most models, two for Gemma-3,
    {} (with notes) for a model without rotary positions. Frequencies are float64.
    Raises ConfigError, a ValueError, that names the key, the value seen and what to do.
    Source: the table of families and its sources; transformers 5.

    >>> config = {"model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32,
    ...           "max_position_embeddings": 8192, "rope_theta": 500000.0,
    ...           "rope_scaling": {"rope_type": "linear", "factor": 4.0}}
    >>> settings = rope_from_config(config)["all"]
    >>> settings.layout, settings.head_dim, settings.scaled.inv_freq[0].item()
    ('half', 128, 0.25)
    """
    if length is not None and (isinstance(length, bool) or not isinstance(length, int)):
        raise TypeError(f"length must be a whole number of tokens, got {shown(length)}")
    if length is not None and not 1 <= length <= 2**53:
        raise ConfigError("value-range", "length must be 1 to 2^53 tokens, got"
                          f" {shown(length)}")
    return Reader(read_config(config), length).read()


class Reader:
    """Reads one config once: the steps share what they found."""

    def __init__(self, file: ConfigFile, length: int | None):
        self.file, self.length, self.remarks = file, length, file.remarks
        values, path, model_type = self._language_model(from_params_json(file.values))
        self.model_type = model_type
        self.family = self._family(values, model_type)
        self._check_is_model(values)
        names = self.family.names if self.family else {}
        self.settings = Settings(values, self.remarks, path, names)
        self.inner = self._inner()
        self.used: set[str] = set()

    # --- which model ------------------------------------------------------------------

    def _language_model(self, values) -> tuple[dict, str, str | None]:
        """The language model's settings, maybe inside: (values, path, type)."""
        path, model_type = [], self._type_of(values)
        for _ in range(4):
            key = self._sub_key(values, model_type)
            if key is None:
                break
            inner = values[key]
            if not isinstance(inner, dict):
                raise ConfigError("value-type", f"{key} must be an object with the"
                                  f" language model's settings, got {shown(inner)}")
            path.append(key)
            default = self._default_type(model_type, key)
            values, model_type = inner, self._type_of(inner)
            if model_type is None:
                model_type = default
                self.remarks.note("family-nested-type", f"{'.'.join(path)} names no"
                                  f" model_type: {default or 'nothing'} is assumed")
        if path:
            self.remarks.note("family-nested", "the language model's settings are"
                              f" inside {'.'.join(path)}")
        while model_type in composites():  # a flat file of a multimodal model
            model_type = composites()[model_type][1]
        return values, ".".join(path), model_type

    def _type_of(self, values) -> str | None:
        model_type = values.get("model_type")
        if model_type is not None and not isinstance(model_type, str):
            raise ConfigError("value-type", "model_type must be a name, got"
                              f" {shown(model_type)}")
        return model_type or None

    def _sub_key(self, values, model_type: str | None) -> str | None:
        """The key of the language model's own settings, if they are inside."""
        preferred = composites().get(model_type, (None,))[0]
        for key in (preferred, *SUB_KEYS):
            if key is None or values.get(key) is None:
                continue
            if model_type in composites() or model_type not in families():
                return key
            if not any(values.get(name) is not None
                       for name in USUAL_NAMES["hidden_size"]):
                return key
        return None

    def _default_type(self, model_type: str | None, key: str) -> str | None:
        if model_type in composites():
            return composites()[model_type][1]
        return model_type

    def _family(self, values, model_type: str | None) -> Family | None:
        """The line of the table for this model, or None with a warning."""
        if model_type in families():
            return families()[model_type]
        names = values.get("architectures")
        for name in names[:4] if isinstance(names, list) else ():
            if not isinstance(name, str):
                continue
            family = family_of_architecture(name[:80])
            if family is not None:
                self.remarks.warn("family-by-architecture", "model_type "
                                  f"{shown(model_type)} tells no family; the"
                                  f" architecture {shown(name)} does:"
                                  f" {family.model_type}")
                return family
        return None

    def _check_is_model(self, values) -> None:
        """Refuse another file of the same model, by the keys that such a file has."""
        if self.family is not None and (values or self.model_type):
            return
        likely = {*USUAL_NAMES["hidden_size"], *USUAL_NAMES["num_attention_heads"],
                  "head_dim",
                  "qk_rope_head_dim", "rope_theta", "rope_scaling", "rope_parameters"}
        if any(key in values for key in likely):
            if self.family is None:
                self.remarks.warn("family-unknown",
                                  f"model_type {shown(self.model_type)} is not"
                                  " in the table of families: what follows is read from"
                                  " the keys that are there, and the usual ways are"
                                  " assumed for the rest")
            return
        for key, kind in WRONG_FILES.items():
            if key in values:
                raise ConfigError("file-wrong-one", f"this looks like {kind}: there is"
                                  " no hidden_size and no num_attention_heads; give the"
                                  " model's config.json")
        raise ConfigError("file-wrong-one", "this is no model's config: there is no"
                          " hidden_size, no num_attention_heads and no known"
                          " model_type")

    def _inner(self) -> Mapping[str, Any]:
        """The object that holds attention's own keys (DBRX, MPT), else the settings."""
        key = self.family.inside if self.family else None
        if key is None or not self.settings.has(key):
            return self.settings.values
        inner = self.settings.values[key]
        if not isinstance(inner, dict):
            raise ConfigError("value-type", f"{key} must be an object, got"
                              f" {shown(inner)}")
        return {**self.settings.values, **inner}

    # --- the whole --------------------------------------------------------------------

    def read(self) -> RopeByLayerType:
        """The result: sets by layer type, or none with the reason."""
        off = self._no_rotary()
        if off is not None:
            return self._without_rotary(*off)
        count = layer_count(self.settings, self.family)
        types = layer_types(self.settings, self.family, count)
        still = self._layers_without_rotary(types, count)
        sets = {}
        for label, block, numbers in self._blocks(types, still):
            sets[label] = self._set(label, block, numbers)
        query = self._query_factor(count, still)
        self._check_keys()
        self._say_layers(sets, still, types, count)
        if self.family:
            for text in self.family.notes:
                self.remarks.note("family-note", text)
        remarks = tuple(self.remarks.items)
        ordered = tuple(item.text for level in ("warning", "note") for item in remarks
                        if item.level == level)
        finished = {label: _with_notes(value, ordered) for label, value in sets.items()}
        return RopeByLayerType(
            finished, name=self.file.name, model_type=self.model_type,
            family=self.family,
            positions="rotary", layer_count=count, query_factor=query, remarks=remarks,
            layers_without_rotary=None if still is None else tuple(still))

    def _without_rotary(self, positions: str, why: str) -> RopeByLayerType:
        self.remarks.note("family-no-rotary", f"no rotary positions: {positions}"
                          + (f" ({why})" if why else ""))
        if self.settings.has("rope_scaling") or self.settings.has("rope_parameters"):
            self.remarks.warn("key-ignored", "the rope settings in the file have no"
                              " effect: this model has no rotary positions")
        count = layer_count(self.settings, self.family)
        return RopeByLayerType({}, name=self.file.name, model_type=self.model_type,
                               family=self.family, positions=positions, why=why,
                               layer_count=count, remarks=tuple(self.remarks.items))

    def _no_rotary(self) -> tuple[str, str] | None:
        """Other positions than rotary ones, with why; None where the model turns."""
        family, has = self.family, self.settings.has
        if family is None:
            return self._no_rotary_by_keys()
        if family.mpt:
            return self._mpt()
        if not family.rotary:
            key = family.alibi_key
            if key and self.settings.values.get(key) == "alibi":
                return "ALiBi", f"{key} is alibi"
            return family.positions, family.why
        for key, positions in (family.positions_key or {}).items():
            if has(key) and self.settings.flag(key):
                return positions, f"{key} is true"
        for key, value in (family.alibi_unless or {}).items():
            name = self.settings.key_of(key)
            if name and has(name) and self.settings.values[name] != value:
                return "ALiBi", f"only the model with {key} {value} turns"
        for key, value in (family.needs or {}).items():
            stated = self.settings.values.get(key, family.needs_default)
            if stated != value:
                return family.otherwise, f"{key} is {shown(stated)}, not {shown(value)}"
        return None

    def _no_rotary_by_keys(self) -> tuple[str, str] | None:
        """An unknown family: what its keys say against rotary positions."""
        values = self.settings.values
        kind = values.get("position_embedding_type")
        if values.get("alibi") is True or kind == "alibi":
            return "ALiBi", "the file says alibi"
        if any(ROPE_WORDS.search(key) for key in values):
            return None
        if isinstance(kind, str) and kind not in ("rope", "rotary"):
            return "unknown", f"position_embedding_type is {shown(kind)}"
        if self.family is None and "qk_rope_head_dim" not in values:
            return "unknown", ("the family is unknown and no key of the file speaks of"
                               " rotary positions")
        return None

    def _mpt(self) -> tuple[str, str] | None:
        if self.inner.get("alibi", True) is True:
            return "ALiBi", "attn_config.alibi is true"
        if self.inner.get("rope") is True:
            return None
        return "learned absolute", "attn_config.alibi is false and rope is not set"

    # --- layers -----------------------------------------------------------------------

    def _layers_without_rotary(self, types, count) -> list[int] | None:
        """0-based numbers of the layers that turn nothing; None where all turn."""
        family, settings = self.family, self.settings
        if family is None or family.no_rope_layers is not None:
            return self._switched_off("no_rope_layers", count)
        if family.without_rotary:
            key = family.without_rotary["key"]
            listed = settings.values.get(key)
            if family.without_rotary.get("switches"):
                return self._switched_off(key, count)
            numbers = layer_numbers(key, listed) if listed is not None \
                else family.without_rotary["default"]
            return [i for i in numbers if count is None or i < count]
        if family.layer_bases and settings.has(family.layer_bases):
            return [i for i, base in enumerate(self._layer_bases()) if base == 0]
        if types is None:
            return None
        if family.layer_bases:
            return [i for i, kind in enumerate(types)
                    if kind in family.no_base_on] or None
        if family.rotates is None or self._all_rotate():
            return None
        return [i for i, kind in enumerate(types) if kind not in family.rotates]

    def _switched_off(self, key: str, count) -> list[int] | None:
        """A list with 1 for a layer that turns and 0 for one that does not."""
        interval = self.family.no_rope_layers if self.family else None
        if interval is None and not self.settings.has(key):
            return None
        turns = switches(self.settings, key, count, interval)
        return None if turns is None else [i for i, on in enumerate(turns) if not on]

    def _layer_bases(self) -> list[float]:
        key = self.family.layer_bases
        listed = self.settings.values[key]
        if not isinstance(listed, list):
            raise ConfigError("layers-values", f"{key} must be a list with a base for"
                              f" each layer, got {shown(listed)}")
        return [real_value(f"{key}[{i}]", base, at_least=0)
                for i, base in enumerate(listed[:10_000])]

    def _all_rotate(self) -> bool:
        key = self.family.all_rotate_without
        return bool(key) and key in self.settings.values and not self.settings.has(key)

    def _say_layers(self, sets, still, types, count) -> None:
        if still:
            of = f" of {count}" if count else ""
            kinds = sorted({types[i] for i in still if i < len(types)}) if types else []
            why = f" ({', '.join(KIND_WORDS.get(kind, 'other') for kind in kinds)})"
            if self.family is None or self.family.no_rope_layers is not None:
                why = " (no_rope_layers: 0 means no rotation there)"
            self.remarks.note("layers-without-rotary", f"{len(still)}{of} layers"
                              + (why if kinds or "no_rope" in why else "")
                              + f" use no rotary positions: {numbers_text(still)}")
        if len(sets) > 1:
            parts = [label + (f" ({len(value.layers)} layers:"
                              f" {numbers_text(value.layers)})" if value.layers else "")
                     for label, value in sets.items()]
            many = "two" if len(sets) == 2 else str(len(sets))
            self.remarks.note("layers-sets", f"{many} sets of frequencies, by layer"
                              " type: "
                              + "; ".join(parts))

    # --- blocks -----------------------------------------------------------------------

    def _blocks(self, types, still) -> list[tuple[str, Block, tuple[int, ...] | None]]:
        """The sets of the model: (label, block, layer numbers)."""
        given, origin = self._given_block()
        labels = self._set_labels(given)
        if not labels:
            if self.family and self.family.layer_bases and self.settings.has(
                    self.family.layer_bases):
                return self._blocks_by_base(given, origin)
            numbers = None if still is None or types is None else tuple(
                i for i in range(len(types)) if i not in set(still))
            return [("all", self._with_defaults(given, origin), numbers)]
        nested = any(label in given for label in labels)
        if given and not nested:
            self._say_not_nested(origin, labels)
        found = []
        for label in labels:
            numbers = self._layers_of(label, types, still)
            if numbers == () and types is not None:
                continue
            block = self._set_block(label, given, origin, nested)
            if block is not None:
                found.append((label, block, numbers))
        if not found:
            raise ConfigError("block-set-missing", "no layer type of this file has a"
                              f" set of rotary settings: {', '.join(labels)}")
        return found

    def _given_block(self) -> tuple[Mapping[str, Any], str]:
        """rope_scaling or rope_parameters as the file has it, and which one."""
        found = {key: value for key in ("rope_scaling", "rope_parameters")
                 if (value := self._object(key))}
        if not found:
            return {}, "the defaults"
        if self.family and not self.family.scaling_read:
            key = next(iter(found))
            plain = {"rope_type", "type", "rope_theta"}
            if set(found[key]) - plain or self.family.base_keys == ():
                self.remarks.warn("key-ignored", f"{key} has no effect: the code of"
                                  f" {self.family.model_type} never reads it")
            return {}, "the defaults"
        if len(found) == 2 and found["rope_scaling"] != found["rope_parameters"]:
            self.remarks.warn("spelling-both", "rope_scaling and rope_parameters are"
                              " both there: transformers 5 replaces rope_parameters"
                              " whole by rope_scaling")
        key = next(iter(found))
        return found[key], key

    def _set_labels(self, given) -> tuple[str, ...]:
        """The labels of this model's sets; () for a model with one set."""
        if self.family and self.family.sets:
            return tuple(self.family.sets)
        inner = [key for key, value in given.items()
                 if isinstance(value, dict) or value is None
                 and key.endswith("_attention")]
        labels = tuple(key for key in inner if LABEL.fullmatch(key))
        if labels and self.family:
            self.remarks.warn("block-nested", f"{self.family.model_type} has one set of"
                              " frequencies for all layers, the file has sets for "
                              + ", ".join(shown(label) for label in labels[:4]))
        return labels[:20]

    def _layers_of(self, label, types, still) -> tuple[int, ...] | None:
        if types is None:
            return None
        rename = (self.family.label_of if self.family else None) or {}
        skip = set(still or ())
        return tuple(i for i, kind in enumerate(types)
                     if rename.get(kind, rename.get("*", kind)) == label
                     and i not in skip)

    def _set_block(self, label, given, origin, nested) -> Block | None:
        """The block of one layer type with its defaults; None: those layers stand."""
        spec = self.family.sets.get(label, {}) if self.family else {}
        if nested:
            if label not in given:
                raise ConfigError("block-set-missing", f"{origin} has no set for"
                                  f" {label}, which is among the layer types"
                                  " (transformers may fill one in without a word)")
            own = given[label]
            if own is None:
                return None
            if not isinstance(own, dict):
                raise ConfigError("block-not-an-object", f"{origin}.{label} must be an"
                                  f" object or null, got {shown(own)}")
            return self._merged(own, f"{origin}.{label}", spec)
        if spec.get("block", {}) is None and not given:
            return None
        own = given if spec.get("scaled") else {}
        return self._merged(own, origin if own else "the defaults", spec)

    def _merged(self, own, origin, spec) -> Block:
        """The stated keys, and the set's usual type where the file names none."""
        usual = spec.get("block") or {}
        values = dict(own)
        if not own and usual.get("rope_type", "default") != "default":
            values["rope_type"] = usual["rope_type"]
        if values.get("rope_type", values.get("type")) == "yarn":
            for key, value in spec.get("block_extra", {}).items():
                values.setdefault(key, value)
        return Block(values, origin)

    def _with_defaults(self, given, origin) -> Block:
        if not given and self.family and self.family.scaling:
            self.remarks.note("default-used", "no scaling in the file: "
                              f"{self.family.model_type} then takes"
                              f" {self.family.scaling['rope_type']} with factor"
                              f" {number_text(self.family.scaling['factor'])}")
            return Block(dict(self.family.scaling), "the defaults of"
                         f" {self.family.model_type}")
        return Block(given, origin)

    def _say_not_nested(self, origin, labels) -> None:
        if origin == "rope_parameters":
            self.remarks.warn("block-not-nested", f"{self.family.model_type} has a set"
                              f" for each layer type ({', '.join(labels)});"
                              " rope_parameters has one, which transformers does not"
                              " read for them")

    def _blocks_by_base(self, given, origin):
        """One set for each base that layer_rope_theta lists, 0 left out."""
        bases = self._layer_bases()
        different = sorted({base for base in bases if base}, reverse=True)
        if not different:
            raise ConfigError("layers-values", f"{self.family.layer_bases} is 0 for"
                              " every layer")
        found = []
        for base in different[:20]:
            label = "all" if len(different) == 1 else f"rope_theta {number_text(base)}"
            numbers = tuple(i for i, value in enumerate(bases) if value == base)
            found.append((label, Block({**given, "rope_theta": base}, origin), numbers))
        return found

    # --- one set ----------------------------------------------------------------------

    def _set(self, label: str, block: Block, numbers) -> RopeSettings:
        """Widths, base and method of one set."""
        spec = self.family.sets.get(label, {}) if self.family and label != "all" else {}
        block = self._rotary_block(block)
        defaults: dict[str, Any] = {}
        head_dim = self._head_dim(spec, defaults)
        share, rotary_dim = self._share(head_dim, block, spec, numbers, defaults)
        base = self._base(block, spec, numbers, defaults)
        longest = self._longest(defaults)
        job = Job(self.family, block, self.remarks, rotary_dim, base, share, longest,
                  self.length, self.settings.values, defaults)
        method = self._method(job)
        return RopeSettings(
            head_dim, rotary_dim, self._layout(defaults), base, method.scaled,
            method.softmax_factor, method.trained_length, method.name, defaults, (),
            factor=method.factor, plain=method.plain, parameters=method.parameters,
            longest_length=longest, query_key_dims=self._query_key_dims(head_dim),
            long=method.long, layers=numbers)

    def _method(self, job: Job) -> Method:
        switch = self.family.dynamic_switch if self.family else None
        if switch and self.settings.has(switch) and self.settings.flag(switch):
            if job.longest is None:
                raise ConfigError("size-missing", f"{switch} needs seq_length")
            return qwen_dynamic(job, job.longest)
        return method_of(job)

    def _rotary_block(self, block: Block) -> Block:
        """InternLM 1 has a block of another name, nomic one number."""
        key = self.family.dynamic_factor if self.family else None
        if key and self.settings.has(key) and not block.values:
            return Block({"rope_type": "dynamic", "factor": self.settings.values[key]},
                         key)
        key = self.family.rotary_block if self.family else None
        if not key or not self.settings.has(key) or block.values:
            return block
        inner = self.settings.values[key]
        if not isinstance(inner, dict):
            raise ConfigError("block-not-an-object", f"{key} must be an object, got"
                              f" {shown(inner)}")
        renamed = {"rope_theta": inner.get("base"), "type": inner.get("type"),
                   "factor": 1.0}
        if inner.get("type") in (None, "origin"):
            renamed = {"rope_theta": inner.get("base")}
        return Block({name: value for name, value in renamed.items()
                      if value is not None}, key)

    def _head_dim(self, spec, defaults) -> int:
        """Width of a head; of its rotary part in latent attention."""
        family, settings = self.family, self.settings
        if family is not None and family.latent is not None or (
                family is None and settings.has("qk_rope_head_dim")):
            return self._latent_dim(spec, defaults)
        keys = spec.get("head_dim_keys") or (family.head_dim_keys if family else
                                             ("head_dim", "kv_channels",
                                              "attention_head_dim"))
        for key in keys:
            if settings.has(key):
                head_dim = settings.whole(key, at_least=2, at_most=WIDEST_HEAD)
                self._say_stated(key, head_dim)
                return head_dim
        constant = spec.get("head_dim") or (family.head_dim if family else None)
        if constant is not None:
            defaults["head_dim"] = constant
            self.remarks.note("default-used", f"{keys[0]} is not in the file;"
                              f" {constant} is the default for {family.model_type}")
            return constant
        return self._computed_head_dim()

    def _latent_dim(self, spec, defaults) -> int:
        keys = spec.get("head_dim_keys") or ("qk_rope_head_dim",)
        for key in (*keys, "qk_rope_head_dim") if not spec else keys:
            if self.settings.has(key):
                width = self.settings.whole(key, at_least=2, at_most=WIDEST_HEAD)
                break
        else:
            width = defaults["qk_rope_head_dim"] = self.family.latent
            self.remarks.note("default-used", "qk_rope_head_dim is not in the file;"
                              f" {width} is the default for {self.family.model_type}")
        whole = self._query_key_dims(width)
        self.remarks.note("latent-attention", f"latent attention (MLA): {width}"
                          + (f" of {whole}" if whole else "") + " query and key dims"
                          " turn")
        return width

    def _query_key_dims(self, width: int) -> int | None:
        family, settings = self.family, self.settings
        latent = family is not None and family.latent is not None
        if not latent and not settings.has("qk_rope_head_dim"):
            return None
        if family is not None and family.latent is None:
            return None
        if settings.has("qk_nope_head_dim"):
            return width + settings.whole("qk_nope_head_dim", at_least=0,
                                          at_most=WIDEST_HEAD)
        return width + family.nope if family and family.nope is not None else None

    def _say_stated(self, key: str, head_dim: int) -> None:
        """head_dim often is not hidden_size / heads; say so, it is no mistake."""
        pair = []
        for name in ("hidden_size", "num_attention_heads"):
            found = self.settings.key_of(name)
            value = self.settings.values.get(found) if found else None
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                return
            pair.append(value)
        width, heads = pair
        if width % heads:
            self.remarks.note("head-dim-stated", f"{width} / {heads} is not whole,"
                              f" which is fine: {key} {head_dim} is stated")
        elif width // heads != head_dim:
            self.remarks.note("head-dim-stated", f"{key} {head_dim} is stated;"
                              f" hidden_size / heads = {width // heads}")

    def _computed_head_dim(self) -> int:
        """hidden_size / num_attention_heads, which must be whole."""
        width, heads = self._size("hidden_size"), self._size("num_attention_heads")
        ratio = self.family.head_ratio if self.family else 1
        if ratio * width % heads:
            raise ConfigError("size-not-divisible", f"hidden_size {width} is no"
                              f" multiple of num_attention_heads {heads}: state"
                              " head_dim")
        head_dim = ratio * width // heads
        if not 2 <= head_dim <= WIDEST_HEAD:
            raise ConfigError("value-range", f"hidden_size {width} /"
                              f" num_attention_heads {heads} = {head_dim}: a head has 2"
                              f" to {WIDEST_HEAD} dimensions")
        return head_dim

    def _size(self, name: str) -> int:
        """hidden_size or num_attention_heads: stated, or an inner config's default."""
        key = self.settings.key_of(name)
        if key is not None:
            return self.settings.whole(key)
        default = self.family.default_size(name) if self.family else None
        if default is None or not self.settings.path:
            hint = nearest_key(name, self.settings.values)
            raise ConfigError("size-missing", f"{name} is not in the file{hint}, and"
                              " there is no head_dim to do without it")
        self.remarks.note("default-used", f"{name} is not in {self.settings.path};"
                          f" {default} is the default for {self.family.model_type}")
        return default

    def _share(self, head_dim, block, spec, numbers, defaults) -> tuple[float, int]:
        """The share of a head that turns, and the dimensions: (share, rotary_dim)."""
        family = self.family
        if family is not None and family.latent is not None:
            return 1.0, _even(head_dim, "qk_rope_head_dim")
        keys = family.rotary_dim_keys if family else ("rotary_dim", "rotary_ndims")
        for key in keys:
            if self.settings.has(key):
                stated = self.settings.whole(key, at_least=2)
                if stated > head_dim:
                    raise ConfigError("value-range", f"{key} {stated} is wider than the"
                                      f" head ({head_dim})")
                self.used.add(key)
                return stated / head_dim, _even(stated, key)
            if key in self.settings.values:
                return 1.0, _even(head_dim, "head_dim")
        share, key = self._stated_share(block, spec, numbers)
        if share is None and family is not None and family.rotary_dim is not None:
            key, width = family.rotary_dim_keys[0], min(family.rotary_dim, head_dim)
            defaults[key] = width
            return width / head_dim, _even(width, key)
        return self._share_of(head_dim, share, key, block, spec, defaults)

    def _share_of(self, head_dim, share, key, block, spec,
                  defaults) -> tuple[float, int]:
        """The share, stated or usual, and the whole number of dimensions it makes."""
        usual = spec.get("block") or {}
        kind = block.values.get("rope_type", block.values.get("type"))
        if share is None or self.family and self._ignores_share(share, key, kind):
            share = self._usual_share(block, usual, key, defaults)
        if (kind or usual.get("rope_type")) == "proportional":
            return share, _even(head_dim, "head_dim")
        exact = head_dim * share
        rotary_dim = int(exact)
        if rotary_dim != exact:
            self.remarks.note("share-cut", f"{number_text(share)} x {head_dim} ="
                              f" {number_text(exact)}, cut to {rotary_dim}")
        if rotary_dim < 2:
            raise ConfigError("value-range", f"{key or 'partial_rotary_factor'}"
                              f" {number_text(share)} of head_dim {head_dim} leaves no"
                              " pair that turns")
        what = f"head_dim {head_dim}" + ("" if share == 1 else
                                         f" x {key or 'partial_rotary_factor'} {share}")
        return share, _even(rotary_dim, what)

    def _usual_share(self, block, usual, key: str | None, defaults) -> float:
        """What turns where the file is silent: the set's share, the family's or 1."""
        family = self.family
        share = usual.get("partial_rotary_factor", family.share if family else 1.0)
        if family and family.share_without_block and block.values:
            share = 1.0
        if share != 1:
            keys = family.share_keys if family else ()
            defaults[key or (keys or SHARE_KEYS)[0]] = share
        return share

    def _object(self, key: str) -> Mapping[str, Any] | None:
        """The object under ``key``; ConfigError where something else stands there."""
        value = self.settings.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise ConfigError("block-not-an-object", f"{key} must be an object like"
                              ' {"rope_type": "linear", "factor": 4.0} or null,'
                              f" got {shown(value)}")
        if value == {}:
            self.remarks.note("block-empty", f"{key} is empty: no scaling")
        return value

    def _stated_share(self, block, spec, numbers) -> tuple[float | None, str | None]:
        """The share as the file states it, and under which key."""
        keys = spec.get("share_keys")
        if not keys:
            keys = self.family.share_keys if self.family else SHARE_KEYS
        found = []
        if block.has("partial_rotary_factor"):
            found.append((SHARE_KEYS[0], block.values["partial_rotary_factor"]))
        for key in keys:
            if self.settings.has(key):
                self.used.add(key)
                value = self._of_layer(key, self.settings.values[key], numbers)
                found.append((key, value))
        if not found:
            return None, None
        if len(found) > 1 and found[1][1] != found[0][1]:
            self.remarks.warn("key-twice", f"{found[0][0]} is {shown(found[0][1])} in"
                              f" {block.origin} and {shown(found[1][1])} outside it;"
                              " the inner one counts")
        return self._checked_share(*found[0]), found[0][0]

    def _checked_share(self, key: str, value) -> float:
        """A share above 0 and at most 1; a percentage is refused with a hint."""
        share = real_value(key, value, hint="it is the part of a head that turns, above"
                           " 0 and at most 1")
        if not 0 < share <= 1:
            percent = f", did you mean {number_text(share / 100)}?"
            hint = percent if 2 <= share <= 100 else ""
            raise ConfigError("value-range", f"{key} must be above 0 and at most 1 (the"
                              f" part of a head that turns), got {shown(value)}{hint}")
        return float(share)

    def _ignores_share(self, share: float, key: str, kind) -> bool:
        """A share that the family's code does not read, said once."""
        family = self.family
        if family.share_fixed:
            if share != family.share:
                self.remarks.warn("share-ignored", f"{key} {number_text(share)} has no"
                                  f" effect: {family.model_type} turns"
                                  f" {number_text(family.share)} of a head whatever the"
                                  " file says")
            return True
        if family.share_read or share == 1 or key != "partial_rotary_factor":
            return False
        if kind in (None, "default", "mrope"):
            self.remarks.warn("share-ignored", "partial_rotary_factor"
                              f" {number_text(share)}: transformers' class of"
                              f" {family.model_type} does not read it for the plain"
                              " kind, so the whole head turns; its linear, yarn and"
                              " llama3 functions would obey it")
            return True
        self.remarks.warn("share-ignored", "partial_rotary_factor"
                          f" {number_text(share)}: the frequencies obey it, but the"
                          f" attention code of {family.model_type} turns the whole"
                          " head, so the shapes will not fit")
        return False

    def _of_layer(self, key: str, value, numbers):
        """One entry of a list with a value for each layer (Step-3.5)."""
        if not isinstance(value, list) or not numbers:
            return value
        if numbers[0] >= len(value):
            raise ConfigError("layers-length", f"{key} has {len(value)} entries, layer"
                              f" {numbers[0]} has none")
        return value[numbers[0]]

    def _base(self, block, spec, numbers, defaults) -> float:
        """The base of the frequencies, above 1."""
        keys = spec.get("base_keys")
        if keys is None:
            keys = self.family.base_keys if self.family else BASE_KEYS
        found = []
        if "rope_theta" in block.values and block.origin != "the defaults":
            found.append(("rope_theta", block.values["rope_theta"]))
        for key in keys:
            if key in self.inner:
                self.used.add(key)
                found.append((key, self._of_layer(key, self.inner[key], numbers)))
        found = [(key, value) for key, value in found if value is not None] or found[:1]
        if not found:
            return self._default_base(block, spec, keys, defaults) * self._base_scale()
        key, value = found[0]
        base = float(real_value(key, value, above=1, hint="the usual one is 10000"))
        if len(found) > 1 and found[1][1] != value:
            self.remarks.warn("key-twice", f"{key} is {shown(value)} inside"
                              f" {block.origin} and {found[1][0]} is"
                              f" {shown(found[1][1])} outside it; the inner one counts")
        self._say_unusual_base(key, base)
        if spec.get("base_keys") and key != "rope_theta":
            self.remarks.note("layers-sets", f"{key} {number_text(base)} is the base of"
                              " one layer type; the others have their own")
        return base * self._base_scale()

    def _default_base(self, block, spec, keys, defaults) -> float:
        usual = (spec.get("block") or {}).get("rope_theta")
        base = float(usual if usual is not None else
                     self.family.base if self.family else 10_000.0)
        if keys == ():
            self.remarks.note("default-used", f"base {number_text(base)} is in the"
                              " code; there is no key for it")
        else:
            who = self.family.model_type if self.family else "most families"
            self.remarks.note("default-used", f"{keys[0]} is not in the file;"
                              f" {number_text(base)} is the default for {who}")
        defaults[keys[0] if keys else "base"] = base
        return base

    def _base_scale(self) -> float:
        key = self.family.base_scale_key if self.family else None
        if not key or not self.settings.has(key):
            return 1.0
        scale = self.settings.real(key, above=0)
        if scale != 1:
            self.remarks.note("family-note", f"{key} {number_text(scale)} multiplies"
                              " the base")
        return float(scale)

    def _say_unusual_base(self, key: str, base: float) -> None:
        if base > LARGEST_USUAL_BASE:
            self.remarks.warn("value-suspicious", f"{key} {number_text(base)} is far"
                              " above any released model's (10000 to 100000000000)")
        if base < SMALLEST_USUAL_BASE:
            self.remarks.warn("value-suspicious", f"{key} {number_text(base)} is far"
                              " below any released model's: is a zero missing?")

    def _longest(self, defaults) -> int | None:
        """max_position_embeddings under its name in this family; None where unknown."""
        key = self.settings.key_of(LENGTH)
        if key is not None and self.settings.has(key):
            longest = self.settings.whole(key, hint="it counts tokens")
            if longest > LONGEST_TEXT:
                self.remarks.warn("value-suspicious", f"{key} {number_text(longest)} is"
                                  " longer than any released model's")
            return longest
        default = self.family.default_size(LENGTH) if self.family else None
        if default is not None and key is None:
            defaults[LENGTH] = default
            say = self.remarks.note if self.settings.path else self.remarks.warn
            say("default-used", f"{LENGTH} is not in the file; {default} is the default"
                f" for {self.family.model_type}")
        return default if key is None else None

    def _layout(self, defaults) -> str:
        """Which dimensions form a pair: (i, i + r/2) or (2i, 2i + 1)."""
        family, values = self.family, self.settings.values
        if family is None:
            latent = values.get("qk_rope_head_dim") is not None
            layout = "interleaved" if latent else "half"
            if isinstance(values.get("rope_interleave"), bool):
                return "interleaved" if values["rope_interleave"] else "half"
            defaults["layout"] = layout
            self.remarks.warn("layout-assumed", "which dimensions form a pair cannot"
                              f" be told from the file: {layout} is assumed")
            return layout
        key = family.layout_key["key"] if family.layout_key else None
        if key and values.get(key) is not None:
            return family.layout_key["true" if self.settings.flag(key) else "false"]
        key = family.interleave_key
        if key and values.get(key) is not None:
            return "interleaved" if self.settings.flag(key) else "half"
        return family.layout

    # --- the queries' temperature -----------------------------------------------------

    def _query_factor(self, count, still) -> dict[str, Any] | None:
        """A factor on the queries by position, as {position: factor}."""
        kind = self.family.query if self.family else None
        if kind == "attn_temperature_tuning":
            return self._llama4_temperature(still)
        if kind == "llama_4_scaling_beta":
            return self._ministral_temperature()
        return None

    def _llama4_temperature(self, still) -> dict[str, Any] | None:
        values = self.settings.values
        stated = values.get("attn_temperature_tuning", True)
        if not isinstance(stated, bool):
            if stated not in (0, 1, 4):
                flag_value("attn_temperature_tuning", stated)
            self.remarks.note("layers-temperature", "attn_temperature_tuning is the"
                              f" number {stated}, meant as"
                              f" {'true' if stated else 'false'}")
        if not stated or not still:
            return None
        has = self.settings.has
        floor = self.settings.whole("floor_scale") if has("floor_scale") else 8192
        scale = self.settings.real("attn_scale") if has("attn_scale") else 0.1
        self.remarks.note("layers-temperature", "attn_temperature_tuning scales the"
                          " queries of the unrotated layers only, by position: 1 +"
                          f" {number_text(scale)} ln(1 + floor((m + 1) / {floor}))")
        # 1 + scale * ln(1 + floor((m + 1) / floor))
        places = (0, floor - 2, floor - 1, 8 * floor - 1, 16 * floor - 1,
                  128 * floor - 1)
        return {"on": "layers without rotary", "at": {
            max(m, 0): 1 + scale * math.log1p((m + 1) // floor) for m in places}}

    def _ministral_temperature(self) -> dict[str, Any] | None:
        block, origin = self._given_block()
        block = block or (self.family.scaling or {})
        beta = block.get("llama_4_scaling_beta")
        if beta is None:
            return None
        beta = real_value("llama_4_scaling_beta", beta, at_least=0)
        original = block.get(ORIGINAL)
        if not beta or not isinstance(original, int) or isinstance(original, bool):
            return None
        self.remarks.note("layers-temperature", "llama_4_scaling_beta scales all"
                          f" queries by position: 1 + {number_text(beta)} ln(1 +"
                          f" floor(m / {original}))")
        # 1 + beta * ln(1 + floor(m / original))
        places = (0, original - 1, original, 4 * original, 16 * original)
        return {"on": "all layers", "at": {
            max(m, 0): 1 + beta * math.log1p(m // max(original, 1)) for m in places}}

    # --- keys that nobody reads -------------------------------------------------------

    def _check_keys(self) -> None:
        """A word on rotary keys of the file that this family does not read."""
        values = self.settings.values
        reads = self._keys_read()
        for key in list(values)[:5000]:
            if key in reads or values[key] is None or key in ORDINARY_KEYS:
                continue
            if key in BLOCK_ONLY and not isinstance(values[key], dict):
                self.remarks.warn("key-misplaced", f"{key} beside the model's settings"
                                  " is not read by anything: it belongs inside"
                                  " rope_scaling or rope_parameters")
            elif key == ORIGINAL:
                if ORIGINAL not in self._given_block()[0]:
                    self.remarks.warn("key-misplaced", f"{key} outside the block is not"
                                      f" read by {self._who()}")
            elif key in all_rotary_keys():
                self._say_ignored(key, values[key])
            else:
                self._say_misspelt(key, reads)

    def _keys_read(self) -> set[str]:
        family = self.family
        reads = {"rope_scaling", "rope_parameters", "model_type", "layer_types",
                 "layers_block_type", *USUAL, *self.used}
        if family is None:
            return reads | all_rotary_keys()
        reads |= {*family.base_keys, *family.share_keys, *family.head_dim_keys,
                  *family.rotary_dim_keys,
                  "rope_theta" if family.base_keys != () else ""}
        if (family.base_keys and "rope_theta" not in family.base_keys
                and not family.sets):
            reads.discard("rope_theta")
        for spec in family.sets.values():
            reads |= {*spec.get("base_keys", ()), *spec.get("head_dim_keys", ()),
                      *spec.get("share_keys", ())}
        return (reads | self._keys_of_one_family()) - set(family.ignored)

    def _keys_of_one_family(self) -> set[str]:
        """The keys that only this family or a few like it read."""
        family = self.family
        reads = {getattr(family, name) for name in (
            "base_scale_key", "interleave_key", "inside", "dynamic_switch",
            "rotary_block", "position_scale", "layer_bases", "dynamic_factor")}
        for keyed in (family.layout_key, family.without_rotary):
            reads.add((keyed or {}).get("key"))
        if family.latent is not None:
            reads |= {"qk_rope_head_dim", "qk_nope_head_dim", "head_dim"}
        if family.original is not None:
            reads.add(ORIGINAL)
        if family.no_rope_layers is not None:
            reads |= {"no_rope_layers", "no_rope_layer_interval"}
        reads |= {*(family.needs or ()), *(family.positions_key or ())}
        return reads - {None}

    def _say_ignored(self, key: str, value) -> None:
        """Another family reads this key; warn only where it would change something."""
        if isinstance(value, Unreadable) or value in (False, 1, 1.0, 0) or value == []:
            return
        if key in ("kv_channels", "head_dim") or key.endswith("head_dim"):
            width = [self.settings.values.get(name) for name in ("hidden_size",
                                                                 "num_attention_heads")]
            if all(isinstance(item, int) and not isinstance(item, bool) and item > 0
                   for item in width) and value == width[0] // width[1]:
                return
        base = self.family.base if self.family else None
        if key in ("rope_theta", "rotary_emb_base") and value == base:
            return
        self.remarks.warn("key-ignored", f"{key} {shown(value)} is read by other"
                          f" families; {self._who()} does not read it")

    def _say_misspelt(self, key: str, reads) -> None:
        known = {*(name for name in reads if name), *USUAL_NAMES}
        wanted = known - set(self.settings.values)
        close = nearest(key, wanted, cutoff=0.86)
        if close:
            self.remarks.warn("key-misspelt", f"{shown(key)} is not read by"
                              f" anything{close}")
        elif ROPE_WORDS.search(key) and not isinstance(self.settings.values[key], dict):
            close = nearest(key, all_rotary_keys(), cutoff=0.75)
            self.remarks.warn("key-misspelt", f"{shown(key)} is not read by"
                              f" {self._who()}{close}")

    def _who(self) -> str:
        return self.family.model_type if self.family else "this family"


def from_params_json(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The params.json of an original release in the words of a config.json.

    Source: meta-llama/llama-models models/llama3/args.py, model.py (use_scaled_rope).

    >>> from_params_json({"dim": 64, "n_heads": 4})["model_type"]
    'meta-params'
    """
    if not ("dim" in values and "n_heads" in values) or "hidden_size" in values:
        return values
    renamed = {"model_type": "meta-params", **values}
    if values.get("use_scaled_rope") is True:
        renamed["rope_scaling"] = {
            "rope_type": "llama3", "factor": values.get("rope_scaling_factor", 8.0),
            "low_freq_factor": 1.0,
            "high_freq_factor": values.get("high_freq_factor", 4.0),
            ORIGINAL: 8192}
    return {key: value for key, value in renamed.items()
            if key not in ("use_scaled_rope", "rope_scaling_factor",
                           "high_freq_factor")}


def _with_notes(settings: RopeSettings, notes: tuple[str, ...]) -> RopeSettings:
    values = {name: getattr(settings, name) for name in settings.__dataclass_fields__}
    return RopeSettings(**{**values, "notes": notes})


def _even(width: int, what: str) -> int:
    """``width`` if it is even; ConfigError otherwise: two dimensions form a pair."""
    if width % 2:
        raise ConfigError("size-odd", f"{what} gives {width} rotary dimensions, an odd"
                          " number: two of them form a pair")
    return width


def nearest_key(name: str, values: Mapping[str, Any]) -> str:
    """A hint at a key of the file that looks like ``name``.

    >>> nearest_key("hidden_size", {"hiden_size": 1})
    " (there is 'hiden_size')"
    """
    found = [key for key in list(values)[:5000] if nearest(key, [name], cutoff=0.86)]
    return f" (there is {shown(found[0])})" if found else ""


def all_rotary_keys() -> set[str]:
    """The keys outside a block by which any family states something rotary."""
    if not _ROTARY_KEYS:
        for family in families().values():
            _ROTARY_KEYS.update((*family.base_keys, *family.share_keys,
                                 *family.rotary_dim_keys,
                                 *family.head_dim_keys))
            for name in ("base_scale_key", "interleave_key", "dynamic_switch",
                         "layer_bases"):
                _ROTARY_KEYS.add(getattr(family, name) or "")
            for spec in family.sets.values():
                _ROTARY_KEYS.update((*spec.get("base_keys", ()),
                                     *spec.get("share_keys", ())))
        _ROTARY_KEYS.update({"no_rope_layers", "no_rope_layer_interval",
                             "qk_rope_head_dim",
                             "rope_theta"})
        _ROTARY_KEYS.discard("")
    return _ROTARY_KEYS


_ROTARY_KEYS: set[str] = set()
LABEL = re.compile(r"[a-z0-9_]{0,40}attention|hybrid|hybrid_sliding|main|compress")
KIND_WORDS = {FULL: "full attention", "sliding_attention": "sliding-window attention",
              "linear_attention": "linear attention", "conv": "convolution",
              "hybrid": "hybrid"}
ROPE_WORDS = re.compile(r"rope|rotary|yarn|(^|_)theta|(^|_)ntk")
USUAL = {name for names in USUAL_NAMES.values() for name in names}
# What any family is read by where the table does not know it.
BASE_KEYS = ("rope_theta", "rotary_emb_base", "rope_base", "rotary_base",
             "rope_freq_constant")
SHARE_KEYS = ("partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction",
              "rotary_percent")
BLOCK_ONLY = {"rope_type", *(key for keys in METHOD_KEYS.values() for key in keys
                             if key != ORIGINAL)}
# Ordinary keys that look like rotary ones, or like misspelt usual ones.
ORDINARY_KEYS = {
    "v_head_dim", "index_head_dim", "indexer_head_dim", "linear_head_dim",
    "mamba_head_dim", "linear_key_head_dim", "linear_value_head_dim", "qk_head_dim",
    "qk_nope_head_dim",
    "num_key_value_heads", "indexer_rope_interleave", "rope_interleaved",
    "rope_traditional",
    "original_rope", "rotary", "use_rope", "rope_scaling_layers", "use_mem_rope",
    "use_rotary_embedding", "rotary_value", "hidden_sizes", "cross_head_dim", "type",
    "max_position_embedding_size", "linear_num_key_heads", "linear_num_value_heads",
    "num_nextn_predict_layers", "mtp_layer_types", "mlp_layer_types", "head_dims",
    "swa_num_attention_heads", "swa_num_key_value_heads", "swa_v_head_dim",
    "num_hidden_layers_per_stage", "rope_freqs_for_global", "yarn_only_types",
    "rotary_emb_scale_base"}
# A key that gives another file of the same model away, and what that file is.
WRONG_FILES = {
    "tokenizer_class": "tokenizer_config.json",
    "added_tokens_decoder": "tokenizer_config.json",
    "added_tokens": "tokenizer.json", "weight_map": "the index of the weights",
    "peft_type": "adapter_config.json (a LoRA)",
    "base_model_name_or_path": "an adapter's config",
    "do_sample": "generation_config.json", "temperature": "generation_config.json",
    "_from_model_config": "generation_config.json", "image_processor_type":
        "preprocessor_config.json",
        "feature_extractor_type": "preprocessor_config.json",
    "processor_class": "processor_config.json",
    "_class_name": "a diffusion model's config",
    "chat_template": "a chat template", "bos_token_id": "generation_config.json"}
