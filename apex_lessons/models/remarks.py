"""What a reader of config files says: named rules, and words that are safe to print."""

from __future__ import annotations

from dataclasses import dataclass, field

# Every kind of mistake and every surprise has one name; tests walk this table.
RULES = {
    # a file that cannot be read
    "file-missing": "no file and no released model of that name",
    "file-kind": "a directory, a device or a pipe instead of a file",
    "file-unreadable": "the system refuses to open it",
    "file-empty": "nothing in it",
    "file-too-large": "larger than any config file",
    "file-not-text": "bytes that are no UTF-8 text",
    "file-byte-order-mark": "an invisible mark at the start that libraries refuse",
    "file-html": "a web page, often a sign-in or a 404 page",
    "file-python": "a Python dictionary printed with str, not JSON",
    "file-json": "not JSON, or cut off",
    "file-nesting": "brackets nested too deep",
    "file-repeated-key": "a key that stands twice: the last one counts",
    "file-not-an-object": "JSON, but not an object",
    "file-wrong-one": "another file of the same model",
    # types and sizes of single values
    "value-type": "a string, a list or true where a number is needed",
    "value-null": "null where a number is needed",
    "value-range": "zero, negative or out of range",
    "value-not-finite": "NaN or infinite",
    "value-written-as-float": "a whole number written 4096.0",
    "value-suspicious": "possible, but far from any released model",
    "size-missing": "no width: hidden_size, heads or head_dim is not there",
    "size-not-divisible": "hidden_size is no multiple of the number of heads",
    "size-odd": "an odd number of rotary dimensions",
    # which model
    "family-unknown": "the table of families does not know this model_type",
    "family-by-architecture": "no model_type; the architecture's name tells the family",
    "family-nested": "the language model's settings are inside text_config or the like",
    "family-nested-type": "the inner settings name no model_type of their own",
    "family-note": "a surprise of this family",
    "family-no-rotary": "the model has no rotary positions",
    # where a number comes from
    "default-used": "not in the file; the family's default counts",
    "head-dim-stated": "head_dim is not hidden_size / heads, and that is fine",
    "latent-attention": "only a part of each query and key turns (MLA)",
    "share-cut": "head_dim times the share is not whole and is cut",
    "share-ignored": "a partial_rotary_factor that this family does not read",
    "key-ignored": "a key that this family does not read",
    "key-misspelt": "a key that looks like a misspelt one",
    "key-misplaced": "a scaling's key outside its block",
    "key-twice": "a setting in two places, with two values",
    "spelling-both": "rope_scaling and rope_parameters side by side",
    "layout-assumed": "the file does not say which dimensions form a pair",
    # the scaling's block
    "block-not-an-object": "rope_scaling or rope_parameters is not an object",
    "block-empty": "an empty block: no scaling",
    "block-not-nested": "one set where the family has one for each layer type",
    "block-nested": "sets for layer types in a family that has one set",
    "block-set-missing": "a layer type without its set",
    "block-unknown-key": "a key that no scaling method has",
    "block-key-without-effect": "a key that another method reads",
    "type-unknown": "no scaling method has this name",
    "type-conflict": "type and rope_type disagree",
    "type-missing": "a block without a type is read as the plain kind",
    "type-alias": "another name for a known method",
    "factor-missing": "no factor",
    "factor-range": "a factor below 1",
    "factor-from-lengths": "the factor is the ratio of the two lengths",
    "factor-mismatch": "the factor is not the ratio of the two lengths",
    "original-missing": "no original_max_position_embeddings",
    "original-larger": "the original length is larger than the stretched one",
    "original-equal": "the file's length was not raised: it still is the original one",
    "betas-swapped": "beta_fast below beta_slow",
    "betas-equal": "equal betas: a step instead of a ramp",
    "bands-swapped": "high_freq_factor below low_freq_factor",
    "bands-default": "low_freq_factor or high_freq_factor is not in the block",
    "mscale-alone": "one of mscale and mscale_all_dim without the other",
    "mscale-zero": "a zero mscale counts as absent",
    "mscale-and-factor": "attention_factor and mscale are both set",
    "softmax-factor": "the temperature is on the softmax scale, not on cos and sin",
    "list-missing": "no short_factor or long_factor",
    "list-shape": "a list of another length, or no list",
    "list-values": "a divisor that is not a positive number",
    "lists-by-length": "two lists, one for short texts and one for long ones",
    "lists-equal": "both lists are the same",
    "dynamic-length": "the frequencies depend on the length of the text",
    "fixed-alpha": "called dynamic, but a fixed alpha makes it static",
    "factor-one": "a factor of 1 stretches nothing",
    "truncate-off": "the ends of the ramp are not rounded",
    "pairs-that-stand": "some pairs never turn at all",
    "method-refused": "the formula refuses these numbers",
    "sections": "pairs shared out among time, height and width",
    # layers
    "layers-without-rotary": "some layers use no rotary positions",
    "layers-sets": "layer types with sets of their own",
    "layers-length": "a list of layers that is longer or shorter than the model",
    "layers-values": "a list of layers that holds something else",
    "layers-temperature": "queries scaled by their position",
}


class ConfigError(ValueError):
    """A config that cannot be explained: ``rule`` names why, the text what to do."""

    def __init__(self, rule: str, text: str):
        super().__init__(text)
        self.rule = _known(rule)


@dataclass(frozen=True)
class Remark:
    """One thing worth saying: ``level`` "note" or "warning", ``rule`` from RULES."""

    level: str
    rule: str
    text: str


@dataclass
class Remarks:
    """The remarks about one config, in the order they were made, each one once."""

    items: list[Remark] = field(default_factory=list)

    def note(self, rule: str, text: str) -> None:
        """Something the reader should know; nothing is wrong."""
        self._add(Remark("note", _known(rule), text))

    def warn(self, rule: str, text: str) -> None:
        """Probably a mistake, or something that libraries do in silence."""
        self._add(Remark("warning", _known(rule), text))

    def texts(self, level: str) -> tuple[str, ...]:
        """The texts of one level."""
        return tuple(item.text for item in self.items if item.level == level)

    def _add(self, remark: Remark) -> None:
        if remark not in self.items:
            self.items.append(remark)


def shown(value, limit: int = 60) -> str:
    """A value for a message: one short line of ASCII, no control characters.

    >>> shown("a\\nb"), shown("x" * 100, limit=12)
    ("'a\\\\nb'", "'xxxxxxxx...")
    """
    if isinstance(value, str):
        text = ascii(value[: limit + 1])
    elif isinstance(value, dict):
        text = f"an object with {len(value)} keys"
    elif isinstance(value, (list, tuple)):
        text = f"a list of {len(value)}"
    elif isinstance(value, bool) or value is None:
        text = {True: "true", False: "false", None: "null"}[value]
    else:
        text = number_text(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def number_text(value) -> str:
    """A number as a person writes it: 4096, 500000, 0.25, 1e+30.

    >>> number_text(500000.0), number_text(0.334), number_text(1e30)
    ('500000', '0.334', '1e+30')
    """
    if isinstance(value, int):
        return str(value) if abs(value) < 10**19 else f"{float(value):.6g}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.7g}" if isinstance(value, float) else ascii(value)


def _known(rule: str) -> str:
    """The rule's name; KeyError for one that the table does not have."""
    return rule if RULES[rule] else rule
