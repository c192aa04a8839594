"""The teacher's half of the capstone: it is not for students.

Right answers, the inputs they are judged on, and the wrong answers that are common,
with what each of them earns.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from apex_lessons import rope, yarn
from apex_lessons.grading.inputs import normal, whole
from apex_lessons.grading.task import (
    Assignment,
    Criterion,
    Task,
    WrongAnswer,
    Written,
)

# --- 1: repair: add, then norm --------------------------------------------------------

# The stream as it is after the call is judged as well, where a case asks for it.
WATCHED = """
_unwatched = add_and_norm
def add_and_norm(residual, x, weight, eps, watched):
    stream, normed = _unwatched(residual, x, weight, eps)
    return [stream, normed, residual] if watched else [stream, normed]
"""


def add_and_norm(residual, x, weight, eps):
    """The new stream, and its RMSNorm times (1 + weight)."""
    stream = (residual.float() + x.float()).to(residual.dtype)
    wide = stream.float()
    unit = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
    return stream, (unit * (1 + weight.float())).to(residual.dtype)


def stream_case(generator, *shape, dtype=torch.float32, weight_dtype=torch.float32,
                size=1.0, watched=False) -> dict:
    width = whole(generator, 4, 8)
    residual, x = (normal(generator, *shape, width) * size for _ in range(2))
    return {"residual": residual.to(dtype), "x": x.to(dtype),
            "eps": whole(generator, 50, 1000) / 10_000,
            "weight": (normal(generator, width) / 8).to(weight_dtype),
            "watched": watched}


def hundreds(generator) -> dict:
    """Every number of the sum has a size of 300 or more."""
    case = stream_case(generator, 3, dtype=torch.float16, weight_dtype=torch.float16)
    sign = case["residual"].sign()
    return case | {"residual": sign * 300 + case["residual"] * 8, "x": case["x"] * 4}


def _broken(residual, x, weight, eps):
    residual += x
    rms = x.pow(2).mean(dim=-1, keepdim=True).sqrt() + eps
    return residual, x / rms * (1 + weight)


def _norms_x(residual, x, weight, eps):
    stream = residual + x
    return stream, add_and_norm(torch.zeros_like(x), x, weight, eps)[1]


def _eps_outside(residual, x, weight, eps):
    stream, _ = add_and_norm(residual, x, weight, eps)
    wide = stream.float()
    root = wide.square().mean(-1, keepdim=True).sqrt()
    return stream, (wide / (root + eps) * (1 + weight.float())).to(residual.dtype)


def _in_place(residual, x, weight, eps):
    stream, normed = add_and_norm(residual, x, weight, eps)
    residual.copy_(stream)
    return residual, normed


def _half_statistics(residual, x, weight, eps):
    stream = residual + x
    unit = stream * torch.rsqrt(stream.square().mean(-1, keepdim=True) + eps)
    return stream, (unit.float() * (1 + weight.float())).to(residual.dtype)


def _half_offset(residual, x, weight, eps):
    rounded = (1 + weight).float() - 1
    return add_and_norm(residual, x, rounded, eps)


def _old_stream(residual, x, weight, eps):
    return residual.clone(), add_and_norm(residual, x, weight, eps)[1]


def _no_offset(residual, x, weight, eps):
    return add_and_norm(residual, x, weight - 1, eps)


ADDED = Task(
    name="add-and-norm",
    function="add_and_norm",
    answer=add_and_norm,
    setup=WATCHED,
    criteria=(
        Criterion("the norm reads the sum", 1, lambda g: [
            stream_case(g, 3), stream_case(g, 2, 3)]),
        Criterion("the caller's stream stays as it is", 1, lambda g: [
            stream_case(g, 3, watched=True)]),
        Criterion("float16 numbers of 300", 1, lambda g: [hundreds(g), hundreds(g)]),
        Criterion("float16 weights beside a float32 stream", 1, lambda g: [
            stream_case(g, 4, weight_dtype=torch.float16)]),
    ),
    wrong_answers=(
        WrongAnswer("as-it-was", _broken,
            "This is the broken program. Run the examples one by one: each shows"
            " another of its faults.", 0),
        WrongAnswer("norms-the-update", _norms_x,
            "The norm reads x, the layer's output. The next layer must see the whole"
            " stream, so the norm reads the sum.", 0),
        WrongAnswer("epsilon-outside", _eps_outside,
            "Epsilon is added to the root. It stands inside, beside the mean square.",
            1),
        WrongAnswer("writes-into-the-stream", _in_place,
            "The numbers are right, but the caller's tensor has changed: `+=` and"
            " `copy_` write into it. Whoever kept the old stream (another branch,"
            " autograd) now reads another one.", 3),
        WrongAnswer("half-statistics", _half_statistics,
            "The squares are taken in float16 and overflow from 256 on. Widen the sum"
            " to float32 before you square.", 3),
        WrongAnswer("offset-in-half", _half_offset,
            "1 + weight is added in the weight's float16 and loses its fine part."
            " Widen the weight first.", 3),
        WrongAnswer("returns-the-old-stream", _old_stream,
            "You return the stream without the update. The next block would miss this"
            " layer's work.", 0),
        WrongAnswer("forgets-the-offset", _no_offset,
            "The stored weight is used as it is. This model stores weight - 1.", 0),
    ),
)

# --- 2: repair: one more token --------------------------------------------------------


def turn(x: Tensor, positions: Tensor, inv_freq: Tensor) -> Tensor:
    """The half layout, angles in float64."""
    angles = positions.double()[:, None] * inv_freq
    cos, sin = angles.cos().float(), angles.sin().float()
    x0, x1 = x.chunk(2, dim=-1)
    return torch.cat((x0 * cos - x1 * sin, x1 * cos + x0 * sin), dim=-1)


def decode_scores(q, k, cached_k, start, inv_freq) -> Tensor:
    """Scores of new queries against the cached keys and the new ones."""
    positions = torch.arange(start, start + q.shape[-2])
    keys = torch.cat((cached_k, turn(k, positions, inv_freq)), dim=-2)
    return turn(q, positions, inv_freq) @ keys.mT / math.sqrt(q.shape[-1])


def decode_case(generator, cached, new, *, start=None) -> dict:
    heads, width = whole(generator, 1, 4), 2 * whole(generator, 3, 6)
    inv_freq = rope.inverse_frequencies(width, 1000.0 * whole(generator, 5, 500))
    start = cached if start is None else start
    old = torch.arange(start - cached, start)
    keys = turn(normal(generator, 2, heads, cached, width), old, inv_freq)
    return {"q": normal(generator, 2, heads, new, width),
            "k": normal(generator, 2, heads, new, width), "cached_k": keys,
            "start": start, "inv_freq": inv_freq}


def _broken_turn(x, positions, inv_freq):
    angles = positions.to(x.dtype)[:, None] * inv_freq.to(x.dtype)
    cos, sin = angles.cos(), angles.sin()
    x0, x1 = x[..., 0::2], x[..., 1::2]
    return torch.cat((x0 * cos - x1 * sin, x1 * cos + x0 * sin), dim=-1)


def scored(q, keys):
    return q @ keys.mT / math.sqrt(q.shape[-1])


def _broken_decode(q, k, cached_k, start, inv_freq):
    keys = torch.cat((cached_k, k), dim=-2)
    first, all_keys = torch.arange(q.shape[-2]), torch.arange(keys.shape[-2])
    return scored(_broken_turn(q, first, inv_freq),
                  _broken_turn(keys, all_keys, inv_freq))


def _from_zero(q, k, cached_k, start, inv_freq):
    return decode_scores(q, k, cached_k, 0, inv_freq)


def _cache_turned_again(q, k, cached_k, start, inv_freq):
    positions = torch.arange(start, start + q.shape[-2])
    old = torch.arange(start - cached_k.shape[-2], start)
    keys = torch.cat((turn(cached_k, old, inv_freq), turn(k, positions, inv_freq)), -2)
    return scored(turn(q, positions, inv_freq), keys)


def _key_from_zero(q, k, cached_k, start, inv_freq):
    new = torch.arange(q.shape[-2])
    keys = torch.cat((cached_k, turn(k, new, inv_freq)), dim=-2)
    return scored(turn(q, start + new, inv_freq), keys)


def _neighbours(x, positions, inv_freq):
    cos, sin = rope.rotary_tables(positions, inv_freq)
    return rope.apply_rotary(x, cos, sin, layout="interleaved")


def _interleaved(q, k, cached_k, start, inv_freq):
    positions = torch.arange(start, start + q.shape[-2])
    keys = torch.cat((cached_k, _neighbours(k, positions, inv_freq)), dim=-2)
    return scored(_neighbours(q, positions, inv_freq), keys)


def _float32_angles(q, k, cached_k, start, inv_freq):
    positions = torch.arange(start, start + q.shape[-2])
    rounded = positions.float()[:, None] * inv_freq.float()

    def turned(x):
        cos, sin = rounded.cos(), rounded.sin()
        x0, x1 = x.chunk(2, dim=-1)
        return torch.cat((x0 * cos - x1 * sin, x1 * cos + x0 * sin), dim=-1)
    return scored(turned(q), torch.cat((cached_k, turned(k)), dim=-2))


def _not_divided(q, k, cached_k, start, inv_freq):
    return decode_scores(q, k, cached_k, start, inv_freq) * math.sqrt(q.shape[-1])


def _length_of_the_cache(q, k, cached_k, start, inv_freq):
    return decode_scores(q, k, cached_k, cached_k.shape[-2], inv_freq)


DECODED = Task(
    name="decode-scores",
    function="decode_scores",
    answer=decode_scores,
    criteria=(
        Criterion("the first call: an empty cache", 1, lambda g: [
            decode_case(g, 0, 4), decode_case(g, 0, 1), decode_case(g, 0, 3)]),
        Criterion("new tokens after a cache", 1, lambda g: [
            decode_case(g, 5, 1), decode_case(g, 3, 3)]),
        Criterion("a window: the cache's start was dropped", 1, lambda g: [
            decode_case(g, 4, 2, start=50), decode_case(g, 3, 1, start=9)]),
        Criterion("positions near a million", 1, lambda g: [
            decode_case(g, 4, 2, start=999_983)]),
    ),
    wrong_answers=(
        WrongAnswer("as-it-was", _broken_decode,
            "This is the broken program. Run the examples one by one: each shows"
            " another of its faults.", 0),
        WrongAnswer("counts-from-zero", _from_zero,
            "The new tokens are turned as if they were the first of the text. They"
            " follow the cache: their positions begin at `start`.", 1),
        WrongAnswer("cache-turned-again", _cache_turned_again,
            "The cached keys are turned a second time. They were turned when they went"
            " into the cache.", 1),
        WrongAnswer("keys-from-zero", _key_from_zero,
            "q is at its place, the new k is not: it is turned from position 0 on.", 1),
        WrongAnswer("interleaved", _interleaved,
            "Neighbouring dimensions make your pairs. This model's halves do: i with"
            " i + head_dim/2.", 0),
        WrongAnswer("float32-angles", _float32_angles,
            "Right for short texts. Near position one million a float32 angle is off by"
            " up to 0.06 radians: multiply position and frequency in float64 and round"
            " cos and sin.", 3),
        WrongAnswer("not-divided", _not_divided,
            "The scores lack the division by the root of the head size.", 0),
        WrongAnswer("length-of-the-cache", _length_of_the_cache,
            "You count on from the number of cached keys. Where the oldest keys were"
            " dropped, that number is smaller than the position; use `start`.", 2),
    ),
)

# --- 3: repair: which temperature, and where ------------------------------------------


def sharpening(factor, mscale=1.0):
    return 0.1 * mscale * math.log(factor) + 1.0


def temperatures(block: dict, head_dim: int) -> list[float]:
    """[factor on cos and sin, factor on the scores before the softmax]."""
    first, second = block.get("mscale"), block.get("mscale_all_dim")
    if "attention_factor" in block:
        on_tables = block["attention_factor"]
    elif first is not None and second is not None:
        on_tables = sharpening(block["factor"], first) / sharpening(block["factor"],
                                                                    second)
    else:
        on_tables = sharpening(block["factor"])
    on_scores = head_dim**-0.5
    if second is not None:
        on_scores *= sharpening(block["factor"], second) ** 2
    return [on_tables, on_scores]


def block_case(generator, **more) -> dict:
    return {"block": {"factor": float(whole(generator, 2, 41))} | more,
            "head_dim": 16 * whole(generator, 3, 13)}


def _broken_temperatures(block, head_dim):
    on_tables = sharpening(block["factor"])
    if "mscale" in block:
        on_tables = sharpening(block["factor"], block["mscale"])
    return [on_tables, head_dim**-0.5 * on_tables**2]


def _ratio_only(block, head_dim):
    return [temperatures(block, head_dim)[0], head_dim**-0.5]


def _given_ignored(block, head_dim):
    kept = {name: value for name, value in block.items() if name != "attention_factor"}
    return temperatures(kept, head_dim)


def _not_squared(block, head_dim):
    on_tables, on_scores = temperatures(block, head_dim)
    return [on_tables, (on_scores * head_dim**-0.5) ** 0.5]


def _counted_twice(block, head_dim):
    on_tables, on_scores = temperatures(block, head_dim)
    return [on_tables, on_scores * on_tables**2]


def _other_mscale(block, head_dim):
    on_tables, _ = temperatures(block, head_dim)
    other = sharpening(block["factor"], block["mscale"]) if "mscale" in block else 1.0
    return [on_tables, head_dim**-0.5 * other**2]


def _no_ratio(block, head_dim):
    on_tables, on_scores = temperatures(block, head_dim)
    if "mscale" in block and "attention_factor" not in block:
        on_tables = sharpening(block["factor"], block["mscale"])
    return [on_tables, on_scores]


TEMPERATURES = Task(
    name="temperatures",
    function="temperatures",
    answer=temperatures,
    criteria=(
        Criterion("YaRN without any mscale", 1, lambda g: [
            block_case(g), block_case(g)]),
        Criterion("DeepSeek's two scales", 1, lambda g: [
            block_case(g, mscale=1.0, mscale_all_dim=1.0),
            block_case(g, mscale=1.0, mscale_all_dim=0.707)]),
        Criterion("a factor that is given", 1, lambda g: [
            block_case(g, attention_factor=1.0), block_case(g, attention_factor=1.25)]),
    ),
    wrong_answers=(
        WrongAnswer("as-it-was", _broken_temperatures,
            "This is the broken program. Run the examples one by one: each shows"
            " another of its faults.", 0),
        WrongAnswer("ratio-is-all", _ratio_only,
            "The ratio on the tables is right, but with mscale_all_dim the temperature"
            " stands on the scores: the square is missing there.", 2),
        WrongAnswer("given-factor-ignored", _given_ignored,
            "A block that names its attention_factor means it: use it as it is.", 2),
        WrongAnswer("not-squared", _not_squared,
            "The factor on the scores is applied once. In the tables it would count for"
            " q and for k, so on the scores it is the square.", 2),
        WrongAnswer("counted-twice", _counted_twice,
            "The factor is on the tables and once more on the scores. Each of the two"
            " belongs to exactly one place.", 0),
        WrongAnswer("other-mscale", _other_mscale,
            "The scores get mscale. It is mscale_all_dim that belongs there; the two"
            " differ in DeepSeek-V2-Lite.", 2),
        WrongAnswer("no-ratio", _no_ratio,
            "With both scales the tables get their ratio, not the first of them.", 2),
    ),
)

# --- 4: one token's whole path --------------------------------------------------------


def turn_token(token, position, weights, config) -> list[Tensor]:
    """[q, k] of one token, turned: [n_heads, head_dim] and [n_kv_heads, head_dim]."""
    scale = math.sqrt(weights["table"].shape[1]) if config["scale_embedding"] else 1.0
    x = weights["table"][token] * scale  # [d_model]
    inverse = torch.rsqrt(x.square().mean() + config["eps"])
    x = x * inverse * (weights["norm"] + config["norm_offset"])
    inv_freq, factor = frequencies(config)
    cos, sin = rope.rotary_tables(torch.tensor([position]), inv_freq,
                                  attention_factor=factor)
    return [headed(x, weights["q"], config["n_heads"], cos, sin, config["layout"]),
            headed(x, weights["k"], config["n_kv_heads"], cos, sin, config["layout"])]


def frequencies(config) -> tuple[Tensor, float]:
    if config["yarn"] is None:
        return rope.inverse_frequencies(config["head_dim"], config["base"]), 1.0
    return tuple(yarn.yarn(config["head_dim"], base=config["base"], **config["yarn"]))


def headed(x, weight, heads, cos, sin, layout) -> Tensor:
    vectors = (weight @ x).view(heads, 1, -1)
    return rope.apply_rotary(vectors, cos, sin, layout=layout)[:, 0]


def path_case(generator, **changes) -> dict:
    width, head_dim = whole(generator, 6, 10), 2 * whole(generator, 4, 7)
    base = 1000.0 * whole(generator, 5, 500)
    config = {"n_heads": 2, "n_kv_heads": 2, "head_dim": head_dim, "base": base,
              "layout": "interleaved", "scale_embedding": False, "norm_offset": 0.0,
              "eps": 1e-5, "yarn": None} | changes
    weights = {"table": normal(generator, 9, width) * 0.02,
               "norm": 1 - config["norm_offset"] + normal(generator, width) / 4,
               "q": normal(generator, config["n_heads"] * head_dim, width),
               "k": normal(generator, config["n_kv_heads"] * head_dim, width)}
    return {"token": whole(generator, 0, 9), "position": whole(generator, 20, 5000),
            "weights": weights, "config": config}


def yarn_case(generator) -> dict:
    block = {"factor": float(whole(generator, 4, 40)), "trained_length": 512}
    return path_case(generator, yarn=block)


def gemma_case(generator) -> dict:
    """An epsilon as large as the squares, so that the embedding's scale is felt."""
    return path_case(generator, scale_embedding=True, norm_offset=1.0, eps=1e-3)


def _with(case_change):
    """The right program on a changed config: one thing forgotten."""
    return lambda token, position, weights, config: turn_token(
        token, position, weights, config | case_change)


def _at_zero(token, position, weights, config):
    return turn_token(token, 0, weights, config)


def _key_not_turned(token, position, weights, config):
    turned, still = (turn_token(token, place, weights, config | {"yarn": None})
                     for place in (position, 0))
    return [turn_token(token, position, weights, config)[0], still[1]]


def _scores_only(token, position, weights, config):
    factor = frequencies(config)[1]
    q, k = turn_token(token, position, weights, config)
    return [q * factor, k / factor]


def _no_factor(token, position, weights, config):
    factor = frequencies(config)[1]
    return [vector / factor for vector in turn_token(token, position, weights, config)]


def _heads_last(token, position, weights, config):
    mixed = {name: weights[name].unflatten(0, (-1, config[heads])).transpose(0, 1)
             .flatten(0, 1) for name, heads in (("q", "n_heads"), ("k", "n_kv_heads"))}
    return turn_token(token, position, weights | mixed, config)


def _scale_after_norm(token, position, weights, config):
    unscaled = config | {"scale_embedding": False}
    root = math.sqrt(weights["table"].shape[1]) if config["scale_embedding"] else 1.0
    return [vector * root for vector in turn_token(token, position, weights, unscaled)]


PATH = Task(
    name="token-path",
    function="turn_token",
    answer=turn_token,
    criteria=(
        Criterion("norm, heads, rotation", 1, lambda g: [path_case(g), path_case(g)]),
        Criterion("half layout, grouped queries", 1, lambda g: [
            path_case(g, layout="half", n_heads=4),
            path_case(g, layout="half", n_heads=3, n_kv_heads=1)]),
        Criterion("a scaled embedding, a weight with an offset", 1, lambda g: [
            gemma_case(g), gemma_case(g)]),
        Criterion("YaRN: frequencies and factor", 2, lambda g: [
            yarn_case(g), yarn_case(g)]),
    ),
    wrong_answers=(
        WrongAnswer("position-ignored", _at_zero,
            "Your q and k do not depend on the position: the token stands at 0.", 0),
        WrongAnswer("key-not-turned", _key_not_turned,
            "q is turned, k is not. A score would then depend on the query's absolute"
            " position.", 0),
        WrongAnswer("embedding-not-scaled", _with({"scale_embedding": False}),
            "The embedding's factor √d is missing where the config asks for it. The"
            " norm takes most of it away, but epsilon does not scale with it.", 4),
        WrongAnswer("scaled-after-the-norm", _scale_after_norm,
            "√d is applied after the norm. It belongs to the look-up, before the norm.",
            4),
        WrongAnswer("offset-forgotten", _with({"norm_offset": 0.0}),
            "The norm's offset is missing: the scale is weight + norm_offset.", 4),
        WrongAnswer("always-interleaved", _with({"layout": "interleaved"}),
            "Your pairs are always neighbours. The config names the layout.", 4),
        WrongAnswer("plain-frequencies", _with({"yarn": None}),
            "The YaRN block is passed over: the pairs turn as in plain RoPE.", 3),
        WrongAnswer("factor-forgotten", _no_factor,
            "The frequencies are YaRN's, its attention factor is missing. It multiplies"
            " cos and sin, so both q and k carry it.", 3),
        WrongAnswer("factor-on-q-alone", _scores_only,
            "The factor's square is on q and nothing on k. Scores would be right, but"
            " the factor belongs on cos and sin, so on both.", 3),
        WrongAnswer("heads-and-dimensions-swapped", _heads_last,
            "The rows of W_q come head after head: view them as [heads, head_dim], not"
            " the other way round.", 0),
    ),
)

ASSIGNMENT = Assignment(
    name="capstone",
    title="Capstone: three repairs, one token's path, three claims",
    tasks=(ADDED, DECODED, TEMPERATURES, PATH),
    written=(Written("written-claims", 4),),
)
