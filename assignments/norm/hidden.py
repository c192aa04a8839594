"""The teacher's half of the assignment on norms: it is not for students.

Right answers, the inputs they are judged on, and the wrong answers that are common,
with what each of them earns.
"""

from __future__ import annotations

import torch
from torch import Tensor

from apex_lessons.grading.inputs import normal, whole
from apex_lessons.grading.task import (
    Assignment,
    Criterion,
    Task,
    WrongAnswer,
    Written,
)


def some_epsilon(generator) -> float:
    """Large enough to be felt beside squares near 1."""
    return whole(generator, 1, 1000) / 10_000


def unit(x: Tensor, eps: float, dim=-1) -> Tensor:
    """x over its root mean square, in x's own dtype."""
    return x * torch.rsqrt(x.square().mean(dim=dim, keepdim=True) + eps)


# --- 1: a norm in groups -------------------------------------------------------------


def grouped_rms_norm(x: Tensor, weight: Tensor, groups: int, eps: float) -> Tensor:
    """Each of ``groups`` neighbouring chunks over its own RMS, then times weight."""
    chunks = x.float().unflatten(-1, (groups, -1))
    return (unit(chunks, eps).flatten(-2) * weight.float()).to(x.dtype)


def group_case(generator, *shape, groups, weight=None) -> dict:
    width = groups * whole(generator, 3, 6)
    sizes = torch.logspace(-1, 1, groups).repeat_interleave(width // groups)
    drawn = normal(generator, width) if weight is None else torch.full((width,), weight)
    return {"x": normal(generator, *shape, width) * sizes, "weight": drawn,
            "groups": groups, "eps": some_epsilon(generator)}


def half_group_case(generator, groups) -> dict:
    """float16 numbers whose squares are above 65,504."""
    case = group_case(generator, 4, groups=groups, weight=1.0)
    x = (case["x"] * 300).clamp(-20_000, 20_000)
    return case | {"x": x.half(), "weight": case["weight"].half()}


def _whole_vector(x, weight, groups, eps):
    return (unit(x.float(), eps) * weight.float()).to(x.dtype)


def _strided_groups(x, weight, groups, eps):
    chunks = x.float().unflatten(-1, (-1, groups))
    return (unit(chunks, eps, dim=-2).flatten(-2) * weight.float()).to(x.dtype)


def _across_groups(x, weight, groups, eps):
    chunks = x.float().unflatten(-1, (groups, -1))
    return (unit(chunks, eps, dim=-2).flatten(-2) * weight.float()).to(x.dtype)


def _weight_of_one_group(x, weight, groups, eps):
    repeated = weight[: len(weight) // groups].repeat(groups)
    return grouped_rms_norm(x, repeated, groups, eps)


def _sum_of_squares(x, weight, groups, eps):
    return grouped_rms_norm(x, weight, groups, eps) / (x.shape[-1] // groups) ** 0.5


def _half_statistics(x, weight, groups, eps):
    return unit(x.unflatten(-1, (groups, -1)), eps).flatten(-2) * weight


def _wide_result(x, weight, groups, eps):
    return grouped_rms_norm(x.float(), weight, groups, eps)


def _counts_width(x, weight, groups, eps):
    """Takes ``groups`` for the width of a group."""
    chunks = x.float().unflatten(-1, (-1, groups))
    return (unit(chunks, eps).flatten(-2) * weight.float()).to(x.dtype)


GROUPED = Task(
    name="grouped-rms-norm",
    function="grouped_rms_norm",
    answer=grouped_rms_norm,
    criteria=(
        Criterion("each chunk by its own root mean square", 2, lambda g: [
            group_case(g, 3, groups=2, weight=1.0),
            group_case(g, 2, groups=5, weight=1.0),
            group_case(g, 2, groups=3, weight=1.0)]),
        Criterion("a weight for every dimension, any leading dimensions", 1, lambda g: [
            group_case(g, 2, 3, groups=2), group_case(g, 1, 2, 2, groups=4)]),
        Criterion("float16 numbers in the hundreds", 1, lambda g: [
            half_group_case(g, 2), half_group_case(g, 3)]),
    ),
    wrong_answers=(
        WrongAnswer("one-size-for-all", _whole_vector,
            "One root mean square for the whole vector: that is the ordinary RMSNorm. A"
            " loud group then makes the others small. Each group has its own.", 0),
        WrongAnswer("groups-with-gaps", _strided_groups,
            "Your groups take every n-th number. Group 0 is the first d/groups"
            " dimensions, which lie side by side.", 0),
        WrongAnswer("mean-across-groups", _across_groups,
            "The mean runs across the groups (place by place) instead of inside each"
            " one. After `unflatten(-1, (groups, -1))` reduce over the last axis.", 0),
        WrongAnswer("width-for-groups", _counts_width,
            "You took `groups` for the width of a group. It is their number; the width"
            " of each is d/groups.", 0),
        WrongAnswer("sum-of-squares", _sum_of_squares,
            "You divide by the root of the *sum* of squares: each group comes out with"
            " length 1. Divide by the root of the mean.", 0),
        WrongAnswer("weight-of-one-group", _weight_of_one_group,
            "You use the first group's weights for all groups. The weight has d"
            " numbers, one for each dimension.", 3),
        WrongAnswer("half-statistics", _half_statistics,
            "The squares are taken in float16, where 256 squared is already infinite."
            " Widen x to float32 first and round once at the end.", 3),
        WrongAnswer("wide-result", _wide_result,
            "The numbers are right but come back as float32. A norm returns the dtype"
            " of x, or the next layer meets two dtypes.", 3),
    ),
)

# --- 2: a norm on q whose weight knows another layout ---------------------------------


def qk_norm(x: Tensor, weight: Tensor, eps: float, rotary_dim: int) -> Tensor:
    """RMSNorm a head; the weight comes in the half layout, x is interleaved."""
    pairs = rotary_dim // 2
    turned = torch.stack((weight[:pairs], weight[pairs:rotary_dim]), dim=-1).flatten()
    return unit(x, eps) * torch.cat((turned, weight[rotary_dim:]))


def head_case(generator, *, partial: bool) -> dict:
    batch, heads, length = (whole(generator, 2, 4) for _ in range(3))
    width = 2 * whole(generator, 4, 7)
    return {"x": normal(generator, batch, heads, length, width) * 3,
            "weight": 1 + normal(generator, width) / 2, "eps": some_epsilon(generator),
            "rotary_dim": width - 2 if partial else width}


def _as_stored(x, weight, eps, rotary_dim):
    return unit(x, eps) * weight


def _other_direction(x, weight, eps, rotary_dim):
    turning = weight[:rotary_dim]
    moved = torch.cat((turning[0::2], turning[1::2], weight[rotary_dim:]))
    return unit(x, eps) * moved


def _whole_head(x, weight, eps, rotary_dim):
    return qk_norm(x, weight, eps, len(weight))


def _all_heads_together(x, weight, eps, rotary_dim):
    size = x.square().mean(dim=(1, 3), keepdim=True)
    ones = torch.ones_like(x)
    return x * torch.rsqrt(size + eps) * qk_norm(ones, weight, 0.0, rotary_dim)


def _rotary_part_only(x, weight, eps, rotary_dim):
    turned = qk_norm(x[..., :rotary_dim], weight[:rotary_dim], eps, rotary_dim)
    return torch.cat((turned, x[..., rotary_dim:] * weight[rotary_dim:]), dim=-1)


def _moves_x_too(x, weight, eps, rotary_dim):
    turning = x[..., :rotary_dim]
    moved = torch.cat((turning[..., 0::2], turning[..., 1::2], x[..., rotary_dim:]), -1)
    return unit(moved, eps) * weight


def _over_the_sequence(x, weight, eps, rotary_dim):
    ones = torch.ones_like(x)
    return unit(x, eps, dim=-2) * qk_norm(ones, weight, 0.0, rotary_dim)


QK = Task(
    name="qk-norm",
    function="qk_norm",
    answer=qk_norm,
    criteria=(
        Criterion("a whole head, its weight reordered", 2, lambda g: [
            head_case(g, partial=False), head_case(g, partial=False)]),
        Criterion("partial rotary: only the turning part is reordered", 2, lambda g: [
            head_case(g, partial=True), head_case(g, partial=True)]),
    ),
    wrong_answers=(
        WrongAnswer("weight-as-stored", _as_stored,
            "The weight is used in the order it was stored in. It was trained for the"
            " half layout, where dimension i and i + P make a pair; x is interleaved,"
            " where the neighbours do. Its numbers must move with the rows of W_q.", 0),
        WrongAnswer("other-direction", _other_direction,
            "You reorder from interleaved to half. The way back is another permutation:"
            " entry i goes to place 2i, entry i + P to place 2i + 1.", 0),
        WrongAnswer("reorders-the-whole-head", _whole_head,
            "Right where the whole head turns. With partial rotary only the first"
            " rotary_dim weights have moved; the others stay where they are.", 2),
        WrongAnswer("all-heads-together", _all_heads_together,
            "The mean square runs over all heads of a token. QK-norm has one for each"
            " head: reduce over the last axis only.", 0),
        WrongAnswer("norms-the-rotary-part", _rotary_part_only,
            "The root mean square is that of the turning part. The norm was trained on"
            " the whole head; only the reordering stops at rotary_dim.", 2),
        WrongAnswer("reorders-x", _moves_x_too,
            "You moved x into the weight's layout and left it there. The rotation that"
            " follows expects interleaved pairs.", 0),
        WrongAnswer("over-the-sequence", _over_the_sequence,
            "The mean runs over the positions. Then a token's q depends on its"
            " neighbours, later ones too.", 0),
    ),
)

# --- 3: a norm's weight folded into what reads it -------------------------------------

READERS = {"input_norm": ("q", "k", "v"), "post_norm": ("gate", "up"),
           "final_norm": ("head",)}


def fold_norms(weights: dict, weight_offset: float, tied: bool) -> dict:
    """The same model with every norm weight folded into the layers that read it."""
    folded = dict(weights)
    for name, readers in READERS.items():
        if name == "final_norm" and tied:
            continue
        scale = weights[name].float() + weight_offset
        for reader in readers:
            folded[reader] = (weights[reader].float() * scale).to(weights[reader].dtype)
        folded[name] = torch.full_like(weights[name], 1 - weight_offset)
    return folded


def model_case(generator, *, offset=0.0, tied=False, dtype=torch.float32) -> dict:
    width = whole(generator, 3, 6)
    matrices = ("q", "k", "v", "o", "gate", "up", "down", "head")
    weights = {name: normal(generator, width, width, dtype=dtype) for name in matrices}
    for name in READERS:
        drawn = 1 - offset + normal(generator, width) / 4
        weights[name] = drawn.to(dtype)
    return {"weights": weights, "weight_offset": offset, "tied": tied}


def small_offset_case(generator) -> dict:
    """float16 weights that 1 + weight in float16 would round away.

    The matrices hold powers of two times 1.5, so that every product is exact in
    float32 and a right program has one rounding, whatever it computes in.
    """
    case = model_case(generator, offset=1.0, dtype=torch.float16)
    for name, value in case["weights"].items():
        if name in READERS:
            case["weights"][name] = value / 64
        else:
            power = 2.0 ** whole(generator, -2, 3, *value.shape)
            case["weights"][name] = (value.sign() * 1.5 * power).half()
    return case


def _refolded(weights, offset, tied, **changes):
    """The right result with some of its entries replaced."""
    return fold_norms(weights, offset, tied) | changes


def _rows(weights, weight_offset, tied):
    wrong = {}
    for name, readers in READERS.items():
        scale = weights[name].float() + weight_offset
        for reader in readers:
            wide = weights[reader].float() * scale[:, None]
            wrong[reader] = wide.to(weights[reader].dtype)
    if tied:
        wrong.pop("head")
    return _refolded(weights, weight_offset, tied, **wrong)


def _writers_too(weights, weight_offset, tied):
    wrong = {}
    for name, writer in {"input_norm": "o", "post_norm": "down"}.items():
        scale = weights[name].float() + weight_offset
        wrong[writer] = (weights[writer].float() * scale).to(weights[writer].dtype)
    return _refolded(weights, weight_offset, tied, **wrong)


def _without_offset(weights, weight_offset, tied):
    ones = {name: torch.full_like(weights[name], 1 - weight_offset) for name in READERS}
    folded = fold_norms(weights, 0.0, tied)
    done = {name: one for name, one in ones.items() if name != "final_norm" or not tied}
    return folded | done


def _norms_left(weights, weight_offset, tied):
    return _refolded(weights, weight_offset, tied,
                     **{name: weights[name].clone() for name in READERS})


def _always_one(weights, weight_offset, tied):
    ones = {name: torch.ones_like(weights[name]) for name in READERS}
    done = {name: one for name, one in ones.items() if name != "final_norm" or not tied}
    return _refolded(weights, weight_offset, tied, **done)


def _tied_head_too(weights, weight_offset, tied):
    return fold_norms(weights, weight_offset, False)


def _half_sum(weights, weight_offset, tied):
    rounded = {name: (weights[name] + weight_offset).float() - weight_offset
               for name in READERS}
    if tied:
        rounded.pop("final_norm")
    found = fold_norms(weights | rounded, weight_offset, tied)
    ones = {name: torch.full_like(weights[name], 1 - weight_offset) for name in rounded}
    return found | ones


def _one_norm_for_all(weights, weight_offset, tied):
    same = {name: weights["input_norm"] for name in ("input_norm", "post_norm")}
    return fold_norms(weights | same, weight_offset, tied)


FOLDED = Task(
    name="fold-norms",
    function="fold_norms",
    answer=fold_norms,
    tolerance=1e-5,  # one unit in the last place of float16 is seen
    criteria=(
        Criterion("every reader, no writer", 2, lambda g: [
            model_case(g), model_case(g)]),
        Criterion("Gemma's weight offset", 1, lambda g: [model_case(g, offset=1.0)]),
        Criterion("a tied head stays", 1, lambda g: [model_case(g, tied=True)]),
        Criterion("one rounding in float16", 1, lambda g: [
            small_offset_case(g), small_offset_case(g)]),
    ),
    wrong_answers=(
        WrongAnswer("scales-the-rows", _rows,
            "You multiply the rows of the matrices. `x @ W.T` reads x along the"
            " columns, so column j is multiplied by the norm's weight j.", 0),
        WrongAnswer("folds-into-writers", _writers_too,
            "`o` and `down` got a factor too. They read the attention's and the"
            " feed-forward layer's inner vectors, not a normalised stream.", 0),
        WrongAnswer("forgets-the-offset", _without_offset,
            "With an offset the norm multiplies by weight + offset. You folded the"
            " stored weight alone.", 3),
        WrongAnswer("norm-applied-twice", _norms_left,
            "The matrices are right, but the norms still hold their weights: now each"
            " weight counts twice. After folding they must do nothing.", 0),
        WrongAnswer("always-one", _always_one,
            "After folding a norm must multiply by 1. With an offset of 1 the stored"
            " weight for that is 0, not 1.", 3),
        WrongAnswer("folds-into-a-tied-head", _tied_head_too,
            "A tied head is also the look-up table. Folding the last norm into it"
            " changes every input of the model. Leave both as they are.", 4),
        WrongAnswer("offset-in-half", _half_sum,
            "1 + weight is added in float16, where numbers near 1 are a thousandth"
            " apart, and the fine part of the weight is lost. Add and multiply in"
            " float32, then round once.", 4),
        WrongAnswer("one-norm-for-all", _one_norm_for_all,
            "`gate` and `up` got the attention's norm. They read the stream through"
            " post_norm.", 0),
    ),
)

# --- 4: a vector that lies on several machines ----------------------------------------


def sharded_rms_norm(shards: list, weights: list, eps: float) -> list:
    """RMSNorm of a vector in pieces; each piece tells one number a row."""
    count = sum(shard.shape[-1] for shard in shards)
    total = sum(shard.float().square().sum(-1, keepdim=True) for shard in shards)
    inverse = torch.rsqrt(total / count + eps)
    return [(shard.float() * inverse * weight.float()).to(shard.dtype)
            for shard, weight in zip(shards, weights)]


def shard_case(generator, *widths, dtype=torch.float32, size=1.0) -> dict:
    rows = whole(generator, 2, 5)
    sizes = [size * (0.5 + number) for number in range(len(widths))]
    return {"shards": [(normal(generator, rows, width) * scale).to(dtype)
                       for width, scale in zip(widths, sizes)],
            "weights": [(1 + normal(generator, width) / 4).to(dtype)
                        for width in widths], "eps": some_epsilon(generator)}


def _pieces(shards, weights, inverse):
    return [(shard.float() * inverse * weight.float()).to(shard.dtype)
            for shard, weight in zip(shards, weights)]


def _mean_squares(shards):
    return [shard.float().square().mean(-1, keepdim=True) for shard in shards]


def _each_alone(shards, weights, eps):
    return [sharded_rms_norm([shard], [weight], eps)[0]
            for shard, weight in zip(shards, weights)]


def _mean_of_roots(shards, weights, eps):
    roots = [(mean + eps).sqrt() for mean in _mean_squares(shards)]
    return _pieces(shards, weights, len(roots) / sum(roots))


def _unweighted(shards, weights, eps):
    means = _mean_squares(shards)
    return _pieces(shards, weights, torch.rsqrt(sum(means) / len(means) + eps))


def _eps_from_each(shards, weights, eps):
    return sharded_rms_norm(shards, weights, eps * len(shards))


def _sum_of_means(shards, weights, eps):
    return _pieces(shards, weights, torch.rsqrt(sum(_mean_squares(shards)) + eps))


def _half_sums(shards, weights, eps):
    count = sum(shard.shape[-1] for shard in shards)
    total = sum(shard.square().sum(-1, keepdim=True) for shard in shards)
    return _pieces(shards, weights, torch.rsqrt(total.float() / count + eps))


def _joined(shards, weights, eps):
    return [torch.cat(sharded_rms_norm(shards, weights, eps), dim=-1)]


SHARDED = Task(
    name="sharded-rms-norm",
    function="sharded_rms_norm",
    answer=sharded_rms_norm,
    criteria=(
        Criterion("pieces of one width", 1, lambda g: [
            shard_case(g, 4, 4), shard_case(g, 3, 3, 3)]),
        Criterion("pieces of different widths", 1, lambda g: [
            shard_case(g, 2, 6), shard_case(g, 5, 3, 1)]),
        Criterion("float16 numbers in the hundreds", 1, lambda g: [
            shard_case(g, 4, 4, dtype=torch.float16, size=500.0)]),
    ),
    wrong_answers=(
        WrongAnswer("each-piece-alone", _each_alone,
            "Each piece is divided by its own root mean square. That is a grouped norm;"
            " here the pieces are one vector and must share one number.", 0),
        WrongAnswer("mean-of-roots", _mean_of_roots,
            "You average the roots. The root of a mean is not the mean of roots: let"
            " the pieces tell their sums of squares, and take one root at the end.", 0),
        WrongAnswer("unweighted-mean", _unweighted,
            "The mean of the pieces' mean squares counts a short piece as much as a"
            " long one. Add sums of squares, and divide by the number of all entries.",
            2),
        WrongAnswer("epsilon-from-each", _eps_from_each,
            "Epsilon is added once for every piece. It belongs to the one mean of the"
            " whole vector.", 1),
        WrongAnswer("sum-of-means", _sum_of_means,
            "You add the pieces' mean squares without dividing: two pieces then count"
            " twice.", 0),
        WrongAnswer("half-sums", _half_sums,
            "The squares are summed in float16 and overflow. Widen each piece first.",
            2),
        WrongAnswer("joined", _joined,
            "One long tensor comes back. The pieces live on different machines: return"
            " a list with one tensor for each.", 0),
    ),
)

ASSIGNMENT = Assignment(
    name="norm",
    title="Norms: in groups, on heads, folded away, in pieces",
    tasks=(GROUPED, QK, FOLDED, SHARDED),
    written=(Written("written-fold", 4),),
)
