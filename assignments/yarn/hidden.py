"""The teacher's half of the assignment on longer texts: it is not for students.

Right answers, the inputs they are judged on, and the wrong answers that are common,
with what each of them earns.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from apex_lessons import yarn
from apex_lessons.grading.inputs import normal, whole
from apex_lessons.grading.task import (
    Assignment,
    Criterion,
    Task,
    WrongAnswer,
    Written,
)

# --- 1: a rule from its specification -------------------------------------------------


def log_ramp(head_dim, base, factor, trained_length, beta_fast, beta_slow) -> Tensor:
    """Divide by factor^w, w linear in the logarithm of the turns."""
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow)
    return plain(head_dim, base) * factor**-share


def plain(head_dim, base) -> Tensor:
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    return base**-exponent


def turns(head_dim, base, trained_length) -> Tensor:
    return trained_length * plain(head_dim, base) / (2 * math.pi)


def shares(head_dim, base, trained_length, beta_fast, beta_slow, clamp=True) -> Tensor:
    gone = math.log(beta_fast) - turns(head_dim, base, trained_length).log()
    share = gone / math.log(beta_fast / beta_slow)
    return share.clamp(0.0, 1.0) if clamp else share


def ends_case(generator) -> dict:
    """Betas so near each other that no pair lies between them."""
    head_dim, base = 16, (10_000.0, 500_000.0)[whole(generator, 0, 2)]
    last_kept = whole(generator, 3, 5)
    length = round(2 * math.pi * base ** ((2 * last_kept + 1) / head_dim))
    return {"head_dim": head_dim, "base": base, "factor": (4.0, 16.0)[last_kept - 3],
            "trained_length": length, "beta_fast": 1.05, "beta_slow": 1.0}


def ramp_case(generator) -> dict:
    return {"head_dim": 2 * whole(generator, 16, 40),
            "base": 1000.0 * whole(generator, 5, 500),
            "factor": float(whole(generator, 2, 20)),
            "trained_length": 1024 * whole(generator, 2, 9),
            "beta_fast": float(whole(generator, 16, 40)),
            "beta_slow": float(whole(generator, 1, 4))}


def _blends(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow)
    fast = plain(head_dim, base)
    return (1 - share) * fast + share * fast / factor


def _linear_in_turns(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    gone = beta_fast - turns(head_dim, base, trained_length)
    share = (gone / (beta_fast - beta_slow)).clamp(0.0, 1.0)
    return plain(head_dim, base) * factor**-share


def _blends_wavelengths(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow)
    return plain(head_dim, base) / (1 + share * (factor - 1))


def _reversed(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow)
    return plain(head_dim, base) * factor ** (share - 1)


def _without_clamp(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow, clamp=False)
    return plain(head_dim, base) * factor**-share


def _forgets_two_pi(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    longer = trained_length * 2 * math.pi
    return log_ramp(head_dim, base, factor, longer, beta_fast, beta_slow)


def _wavelengths(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    gone = math.log(beta_fast) - (2 * math.pi / plain(head_dim, base)).log()
    share = (gone / math.log(beta_fast / beta_slow)).clamp(0.0, 1.0)
    return plain(head_dim, base) * factor**-share


def _in_the_base(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    share = shares(head_dim, base, trained_length, beta_fast, beta_slow)
    exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
    return (base * factor**share) ** -exponent


LOG_RAMP = Task(
    name="log-ramp",
    function="log_ramp",
    answer=log_ramp,
    criteria=(
        Criterion("pairs that are kept, pairs that are divided", 2, lambda g: [
            ends_case(g), ends_case(g)]),
        Criterion("pairs on the ramp", 3, lambda g: [ramp_case(g) for _ in range(3)]),
    ),
    wrong_answers=(
        WrongAnswer("blends-frequencies", _blends,
            "You blend the two frequencies linearly, as YaRN does. This rule divides by"
            " factor to the power w: halfway up the ramp that is the root of the"
            " factor.", 2),
        WrongAnswer("linear-in-turns", _linear_in_turns,
            "Your w is linear in the number of turns. The specification wants it linear"
            " in the logarithm of the turns: ln(beta_fast / r) over ln(beta_fast /"
            " beta_slow).", 2),
        WrongAnswer("blends-wavelengths", _blends_wavelengths,
            "You blend wavelengths linearly: the divisor is 1 + w (factor - 1). Wanted"
            " is factor to the power w.", 2),
        WrongAnswer("reversed", _reversed,
            "The ramp runs backwards: fast pairs are divided and slow ones kept. A pair"
            " with many turns has w = 0.", 0),
        WrongAnswer("not-clamped", _without_clamp,
            "w leaves the range from 0 to 1: very fast pairs get faster, very slow ones"
            " slower than divided by the factor.", 0),
        WrongAnswer("forgets-two-pi", _forgets_two_pi,
            "The turns lack 2π: trained_length times frequency is an angle in radians;"
            " a turn has 2π of them.", 0),
        WrongAnswer("wavelengths-for-turns", _wavelengths,
            "You compare wavelengths with the betas. The betas count turns within the"
            " trained length.", 0),
        WrongAnswer("in-the-base", _in_the_base,
            "The factor went into the base, so it is raised to the pair's exponent too."
            " Divide the finished frequency.", 0),
    ),
)

# --- 2: the temperature moved into the weights ----------------------------------------


def fold_factor(weight_q, n_heads, rotary_dim, attention_factor) -> Tensor:
    """W_q whose rotary rows carry the square of the factor on cos and sin."""
    heads = weight_q.clone().unflatten(0, (n_heads, -1))
    heads[:, :rotary_dim] *= attention_factor**2
    return heads.flatten(0, 1)


def query_case(generator, n_heads, *, partial=False) -> dict:
    head_dim, width = 2 * whole(generator, 3, 6), whole(generator, 5, 9)
    return {"weight_q": normal(generator, n_heads * head_dim, width),
            "n_heads": n_heads, "rotary_dim": head_dim - 2 if partial else head_dim,
            "attention_factor": 1 + 0.1 * math.log(whole(generator, 2, 40))}


def _once(weight_q, n_heads, rotary_dim, attention_factor):
    return fold_factor(weight_q, n_heads, rotary_dim, attention_factor**0.5)


def _all_rows(weight_q, n_heads, rotary_dim, attention_factor):
    return weight_q * attention_factor**2


def _divided(weight_q, n_heads, rotary_dim, attention_factor):
    return fold_factor(weight_q, n_heads, rotary_dim, 1 / attention_factor)


def _first_head(weight_q, n_heads, rotary_dim, attention_factor):
    folded = weight_q.clone()
    folded[:rotary_dim] *= attention_factor**2
    return folded


def _fourth_power(weight_q, n_heads, rotary_dim, attention_factor):
    return fold_factor(weight_q, n_heads, rotary_dim, attention_factor**2)


def _rest_of_the_head(weight_q, n_heads, rotary_dim, attention_factor):
    width = len(weight_q) // n_heads
    heads = weight_q.clone().unflatten(0, (n_heads, -1))
    heads[:, width - rotary_dim:] *= attention_factor**2
    return heads.flatten(0, 1)


FOLDED = Task(
    name="fold-factor",
    function="fold_factor",
    answer=fold_factor,
    criteria=(
        Criterion("one head that turns as a whole", 1, lambda g: [
            query_case(g, 1), query_case(g, 1)]),
        Criterion("several heads", 1, lambda g: [query_case(g, 3), query_case(g, 2)]),
        Criterion("partial rotary", 1, lambda g: [
            query_case(g, 2, partial=True), query_case(g, 1, partial=True)]),
    ),
    wrong_answers=(
        WrongAnswer("factor-once", _once,
            "The factor stands on both q and k, so a score carries its square. What"
            " moves into W_q alone must be the square.", 0),
        WrongAnswer("all-rows", _all_rows,
            "Every row is scaled. Cos and sin never touch the dimensions that do not"
            " turn, so their part of the score had no factor, and must not get one.",
            2),
        WrongAnswer("divided", _divided,
            "You divide. The factor is above 1 and makes scores larger.", 0),
        WrongAnswer("first-rows-only", _first_head,
            "Only the first head's rows are scaled. Rows come head after head; each"
            " head has its own rotary part.", 1),
        WrongAnswer("squared-twice", _fourth_power,
            "The fourth power: the scores already had the square, not the tables.", 0),
        WrongAnswer("end-of-the-head", _rest_of_the_head,
            "You scale the last rotary_dim rows of a head. The first ones turn.", 2),
    ),
)

# --- 3: settings recovered from a list of frequencies ---------------------------------


def recover_settings(inv_freq, base, trained_length) -> list[float]:
    """[factor, beta_fast, beta_slow] of an unrounded YaRN with the pair ramp."""
    head_dim = 2 * len(inv_freq)
    ratio = inv_freq / plain(head_dim, base)
    factor = float(1 / ratio[-1])
    return [factor, *(turns_at(i, head_dim, base, trained_length)
                      for i in ends(ratio, factor))]


def turns_at(pair, head_dim, base, trained_length) -> float:
    return trained_length / (2 * math.pi) * base ** (-2 * pair / head_dim)


def ends(ratio, factor) -> tuple[float, float]:
    """Where the line of the ramp meets 0 and 1, in pairs."""
    share = (1 - ratio) / (1 - 1 / factor)
    blended = ((share > 1e-9) & (share < 1 - 1e-9)).nonzero().flatten()
    first, second = blended[:2].tolist()
    step = float(share[second] - share[first])
    low = first - float(share[first]) / step
    return low, low + 1 / step


def scaled_case(generator, beta_fast, beta_slow) -> dict:
    base, length = (10_000.0, 150_000.0)[whole(generator, 0, 2)], 4096
    length *= whole(generator, 1, 3)
    found = yarn.yarn(64, base=base, factor=float(whole(generator, 2, 40)),
                      trained_length=length, beta_fast=beta_fast, beta_slow=beta_slow,
                      truncate=False)
    return {"inv_freq": found.inv_freq, "base": base, "trained_length": length}


def other_betas(generator) -> list[dict]:
    return [scaled_case(generator, whole(generator, 10, 30) + 0.5, 2.0),
            scaled_case(generator, 48.0, whole(generator, 3, 6) + 0.25)]


def _usual(inv_freq, base, trained_length):
    return [recover_settings(inv_freq, base, trained_length)[0], 32.0, 1.0]


def _swapped(inv_freq, base, trained_length):
    factor, fast, slow = recover_settings(inv_freq, base, trained_length)
    return [factor, slow, fast]


def _upside_down(inv_freq, base, trained_length):
    factor, fast, slow = recover_settings(inv_freq, base, trained_length)
    return [1 / factor, fast, slow]


def _whole_pairs(inv_freq, base, trained_length):
    head_dim = 2 * len(inv_freq)
    ratio = inv_freq / plain(head_dim, base)
    factor = float(1 / ratio[-1])
    low = int((ratio > 1 - 1e-9).sum()) - 1
    high = int((ratio > 1 / factor + 1e-9).sum())
    return [factor, *(turns_at(i, head_dim, base, trained_length) for i in (low, high))]


def _half_exponent(inv_freq, base, trained_length):
    ratio = inv_freq / plain(2 * len(inv_freq), base)
    factor = float(1 / ratio[-1])
    return [factor, *(turns_at(i, 4 * len(inv_freq), base, trained_length)
                      for i in ends(ratio, factor))]


def _no_two_pi(inv_freq, base, trained_length):
    factor, fast, slow = recover_settings(inv_freq, base, trained_length)
    return [factor, fast * 2 * math.pi, slow * 2 * math.pi]


def _as_wavelengths(inv_freq, base, trained_length):
    factor, fast, slow = recover_settings(inv_freq, base, trained_length)
    return [factor, trained_length / fast, trained_length / slow]


RECOVERED = Task(
    name="recover-settings",
    function="recover_settings",
    answer=recover_settings,
    tolerance=1e-6,
    criteria=(
        Criterion("the usual betas", 1, lambda g: [
            scaled_case(g, 32.0, 1.0), scaled_case(g, 32.0, 1.0)]),
        Criterion("any betas", 3, other_betas),
    ),
    wrong_answers=(
        WrongAnswer("assumes-the-usual", _usual,
            "The factor is found, the betas are assumed. They can be read off: the"
            " share is a straight line in the pair's number.", 1),
        WrongAnswer("swapped", _swapped,
            "The betas have changed places: more turns is faster.", 0),
        WrongAnswer("upside-down", _upside_down,
            "Your factor is below 1: the last pair's plain frequency is divided by it.",
            0),
        WrongAnswer("whole-pairs", _whole_pairs,
            "You take the first and the last whole pair of the ramp for its ends. The"
            " ends lie between pairs: prolong the line to shares 0 and 1.", 0),
        WrongAnswer("half-the-exponent", _half_exponent,
            "The frequency at pair i is base^(-2i/head_dim), and head_dim is twice the"
            " number of pairs. Your exponent is half of that.", 0),
        WrongAnswer("forgets-two-pi", _no_two_pi,
            "Your betas are angles in the trained length, 2π times the turns.", 0),
        WrongAnswer("wavelengths", _as_wavelengths,
            "You return the wavelengths at the two ends. The betas are turns: the"
            " trained length over the wavelength.", 0),
    ),
)

# --- 4: what is wrong with this block? ------------------------------------------------


def config_faults(config: dict) -> list[str]:
    """The names of the broken rules, sorted."""
    block = config.get("rope_scaling") or {}
    if block.get("rope_type", block.get("type")) != "yarn":
        return []
    trained = block.get("original_max_position_embeddings")
    longest = config["max_position_embeddings"]
    faults = {
        "no-trained-length": trained is None,
        "lengths-disagree": trained is not None
        and longest != block["factor"] * trained,
        "betas-swapped": block.get("beta_fast", 32.0) < block.get("beta_slow", 1.0),
        "one-mscale": ("mscale" in block) != ("mscale_all_dim" in block),
        "factor-below-one": block["factor"] < 1}
    return sorted(name for name, broken in faults.items() if broken)


def block_case(generator, *, key="rope_type", longest=None, **changes) -> dict:
    """A sound YaRN block with some keys replaced; None takes a key out."""
    trained, factor = 1024 * whole(generator, 2, 9), float(whole(generator, 2, 9))
    block = {key: "yarn", "factor": factor, "original_max_position_embeddings": trained}
    block |= changes
    block = {name: value for name, value in block.items() if value is not None}
    length = int(block["factor"] * trained) if longest is None else longest
    return {"config": {"max_position_embeddings": length, "rope_scaling": block}}


def sound(generator) -> list[dict]:
    return [block_case(generator), block_case(generator, beta_fast=1.0, beta_slow=1.0),
            block_case(generator, mscale=1.0, mscale_all_dim=1.0)]


def not_yarn(generator) -> list[dict]:
    linear = {"rope_type": "linear", "factor": 4.0}
    dynamic = {"type": "dynamic", "factor": 0.5, "mscale": 1.0}
    blocks = [{}] + [{"rope_scaling": block} for block in (None, linear, dynamic)]
    return [{"config": {"max_position_embeddings": 4096} | block} for block in blocks]


def one_fault(generator) -> list[dict]:
    return [block_case(generator, original_max_position_embeddings=None),
            block_case(generator, longest=999), block_case(generator, mscale=1.0),
            block_case(generator, beta_fast=2.0, beta_slow=16.0),
            block_case(generator, factor=0.5)]


def several(generator) -> list[dict]:
    return [block_case(generator, key="type", beta_fast=0.5, mscale_all_dim=1.0),
            block_case(generator, key="type", beta_slow=64.0, longest=999),
            block_case(generator, original_max_position_embeddings=None, mscale=0.7)]


def _silent(config):
    return []


def _new_key_only(config):
    block = config.get("rope_scaling") or {}
    return config_faults(config) if "rope_type" in block else []


def _every_block(config):
    block = config.get("rope_scaling") or {}
    return config_faults(config | {"rope_scaling": block | {"rope_type": "yarn"}}
                         ) if block else []


def _changed(config, **changes):
    block = config.get("rope_scaling") or {}
    return config | {"rope_scaling": block | changes} if block else config


def _equal_betas(config):
    block = config.get("rope_scaling") or {}
    equal = block.get("beta_fast", 32.0) == block.get("beta_slow", 1.0)
    return config_faults(_changed(config, beta_fast=0.0) if equal else config)


def _both_given(config):
    """Compares the betas only where the block names both."""
    block = config.get("rope_scaling") or {}
    both = "beta_fast" in block and "beta_slow" in block
    return config_faults(config if both else _changed(config, beta_fast=2.0,
                                                      beta_slow=1.0))


def _first_found(config):
    order = ("no-trained-length", "lengths-disagree", "betas-swapped", "one-mscale",
             "factor-below-one")
    found = config_faults(config)
    return [name for name in order if name in found][:1]


def _as_printed(config):
    order = ("no-trained-length", "lengths-disagree", "betas-swapped", "one-mscale",
             "factor-below-one")
    found = config_faults(config)
    return [name for name in order if name in found]


def _wants_both_mscales(config):
    block = config.get("rope_scaling") or {}
    missing = "mscale" not in block or "mscale_all_dim" not in block
    changed = _changed(config, mscale=1.0)
    if missing:
        changed["rope_scaling"] = {
            key: value for key, value in (changed.get("rope_scaling") or {}).items()
            if key != "mscale_all_dim"}
    return config_faults(changed)


FAULTS = Task(
    name="config-faults",
    function="config_faults",
    answer=config_faults,
    criteria=(
        Criterion("other methods, and no block", 1, not_yarn),
        Criterion("sound blocks of YaRN", 1, sound),
        Criterion("one broken rule", 1, one_fault),
        Criterion("several broken rules, the older key `type`", 1, several),
    ),
    wrong_answers=(
        WrongAnswer("says-nothing", _silent,
            "No fault is ever reported. That is right for sound configs only.", 2),
        WrongAnswer("new-key-only", _new_key_only,
            "Blocks with the older key `type` are passed over. Many files on people's"
            " disks have it.", 3),
        WrongAnswer("every-block", _every_block,
            "You hold every block to YaRN's rules. Linear scaling, for one, needs no"
            " trained length.", 3),
        WrongAnswer("equal-betas", _equal_betas,
            "Equal betas are reported. They make the ramp a step; Kimi-K2 ships them.",
            3),
        WrongAnswer("no-defaults", _both_given,
            "You compare the betas only where both are given. An absent one has its"
            " default, 32 or 1, and takes part.", 3),
        WrongAnswer("first-fault-only", _first_found,
            "You stop at the first broken rule. All of them are wanted, sorted.", 3),
        WrongAnswer("not-sorted", _as_printed,
            "All faults are there, in the order of the rules. Wanted is a sorted list,"
            " so that two reports can be compared.", 3),
        WrongAnswer("wants-both-mscales", _wants_both_mscales,
            "A block without any mscale is reported. Neither is fine, both are fine;"
            " one alone is the fault.", 1),
    ),
)

ASSIGNMENT = Assignment(
    name="yarn",
    title="Longer texts: a new rule, a folded temperature, two investigations",
    tasks=(LOG_RAMP, FOLDED, RECOVERED, FAULTS),
    written=(Written("written-place", 4),),
)
