"""The teacher's half of the assignment on rotary positions: it is not for students.

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


def frequencies(width: int, base: float) -> Tensor:
    """base^(-2i / width), float64."""
    exponent = torch.arange(0, width, 2, dtype=torch.float64) / width
    return base**-exponent


def any_frequencies(generator, pairs: int) -> Tensor:
    """Those of a base that a program cannot guess."""
    return frequencies(2 * pairs, 1000.0 * whole(generator, 5, 500))


def tables(angles: Tensor) -> tuple[Tensor, Tensor]:
    return angles.cos().float(), angles.sin().float()


# --- 1: two-dimensional positions ----------------------------------------------------


def axial_tables(height: int, width: int, head_dim: int, base: float):
    """Half of the pairs turns by the row, the other half by the column."""
    inv_freq = frequencies(head_dim // 2, base)
    rows = torch.arange(height).repeat_interleave(width).double()
    columns = torch.arange(width).repeat(height).double()
    return tables(torch.cat((rows[:, None] * inv_freq, columns[:, None] * inv_freq), 1))


def _grid(height, width):
    rows = torch.arange(height).repeat_interleave(width).double()
    columns = torch.arange(width).repeat(height).double()
    return rows[:, None], columns[:, None]


def _frequencies_of_the_head(height, width, head_dim, base):
    inv_freq = frequencies(head_dim, base)[: head_dim // 4]
    rows, columns = _grid(height, width)
    return tables(torch.cat((rows * inv_freq, columns * inv_freq), 1))


def _one_list_split(height, width, head_dim, base):
    first, second = frequencies(head_dim, base).chunk(2)
    rows, columns = _grid(height, width)
    return tables(torch.cat((rows * first, columns * second), 1))


def _columns_first(height, width, head_dim, base):
    inv_freq = frequencies(head_dim // 2, base)
    rows, columns = _grid(height, width)
    return tables(torch.cat((columns * inv_freq, rows * inv_freq), 1))


def _read_down_the_columns(height, width, head_dim, base):
    inv_freq = frequencies(head_dim // 2, base)
    rows = torch.arange(height).repeat(width).double()[:, None]
    columns = torch.arange(width).repeat_interleave(height).double()[:, None]
    return tables(torch.cat((rows * inv_freq, columns * inv_freq), 1))


def _divides_by_the_height(height, width, head_dim, base):
    inv_freq = frequencies(head_dim // 2, base)
    patch = torch.arange(height * width)
    rows, columns = (patch // height).double(), (patch % height).double()
    return tables(torch.cat((rows[:, None] * inv_freq, columns[:, None] * inv_freq), 1))


def _one_line(height, width, head_dim, base):
    count = torch.arange(height * width).double()
    return tables(count[:, None] * frequencies(head_dim, base))


def _alternating(height, width, head_dim, base):
    inv_freq = frequencies(head_dim // 2, base)
    rows, columns = _grid(height, width)
    return tables(torch.stack((rows * inv_freq, columns * inv_freq), -1).flatten(1))


def _added(height, width, head_dim, base):
    rows, columns = _grid(height, width)
    return tables((rows + columns) * frequencies(head_dim, base))


def grid_case(generator, *, square: bool) -> dict:
    height = whole(generator, 3, 6)
    width = height if square else height + whole(generator, 1, 4)
    return {"height": height, "width": width, "head_dim": 4 * whole(generator, 2, 5),
            "base": (100.0, 10_000.0)[whole(generator, 0, 2)]}


AXIAL = Task(
    name="axial-tables",
    function="axial_tables",
    answer=axial_tables,
    criteria=(
        Criterion("square pictures", 1, lambda g: [
            grid_case(g, square=True), grid_case(g, square=True)]),
        Criterion("wide and high pictures", 2, lambda g: [
            grid_case(g, square=False),
            grid_case(g, square=False) | {"height": 7, "width": 2}]),
    ),
    wrong_answers=(
        WrongAnswer("frequencies-of-the-head", _frequencies_of_the_head,
            "The frequencies are those of the whole head, cut off in the middle, so no"
            " pair of either axis turns slowly. Each axis has head_dim/2 dimensions and"
            " a full list of its own.", 0),
        WrongAnswer("one-list-for-two-axes", _one_list_split,
            "You gave the fast half of one list to the rows and the slow half to the"
            " columns. A step to the right would then hardly be seen. Each axis has a"
            " full list of its own.", 0),
        WrongAnswer("axes-swapped", _columns_first,
            "Rows and columns have changed places: the first half of the pairs turns by"
            " the row.", 0),
        WrongAnswer("reads-down-the-columns", _read_down_the_columns,
            "Your patches are numbered down the columns. They come row by row, as one"
            " reads a page: patch number n is in row n // width.", 0),
        WrongAnswer("divides-by-the-height", _divides_by_the_height,
            "You divide the patch's number by the height. A row is `width` patches"
            " long: the number is divided by the width. In a square nobody can tell.",
            1),
        WrongAnswer("one-line", _one_line,
            "These are the tables of a line of height × width tokens. Two patches above"
            " each other are then as far apart as the picture is wide.", 0),
        WrongAnswer("alternating-pairs", _alternating,
            "Rows and columns take turns, pair by pair. The specification puts all"
            " pairs of the row first.", 0),
        WrongAnswer("adds-the-axes", _added,
            "Row and column are added to one position. Then all patches of a diagonal"
            " look the same.", 0),
    ),
)

# --- 2: a cache whose tokens move ----------------------------------------------------


def _turn(x: Tensor, angles: Tensor) -> Tensor:
    cos, sin = angles.cos(), angles.sin()
    x0, x1 = x[..., 0::2].double(), x[..., 1::2].double()
    turned = torch.stack((x0 * cos - x1 * sin, x1 * cos + x0 * sin), dim=-1)
    return turned.flatten(-2).to(x.dtype)


def _angles(positions: Tensor, inv_freq: Tensor) -> Tensor:
    """[B, S] positions -> [B, 1, S, P]."""
    return (positions.double()[..., None] * inv_freq).unsqueeze(1)


def move_keys(keys, old_positions, new_positions, inv_freq) -> Tensor:
    """Rotated keys as they would be at other positions: turned by the difference."""
    return _turn(keys, _angles(new_positions - old_positions, inv_freq))


def cache_case(generator, shift, *, batch=2, far=0) -> dict:
    length, pairs = whole(generator, 3, 6), whole(generator, 2, 5)
    old = far + torch.arange(length).expand(batch, length) * 2
    moved = old + torch.stack([torch.full((length,), step) for step in shift])
    inv_freq = any_frequencies(generator, pairs)
    unturned = normal(generator, batch, 2, length, 2 * pairs)
    return {"keys": _turn(unturned, _angles(old, inv_freq)), "old_positions": old,
            "new_positions": moved, "inv_freq": inv_freq}


def _turned_again(keys, old_positions, new_positions, inv_freq):
    return _turn(keys, _angles(new_positions, inv_freq))


def _backwards(keys, old_positions, new_positions, inv_freq):
    return _turn(keys, _angles(old_positions - new_positions, inv_freq))


def _size_of_the_step(keys, old_positions, new_positions, inv_freq):
    return _turn(keys, _angles((new_positions - old_positions).abs(), inv_freq))


def _first_of_the_batch(keys, old_positions, new_positions, inv_freq):
    step = (new_positions - old_positions)[:1].expand_as(old_positions)
    return _turn(keys, _angles(step, inv_freq))


def _float32_angles(keys, old_positions, new_positions, inv_freq):
    new = _angles(new_positions, inv_freq).float()
    old = _angles(old_positions, inv_freq).float()
    return _turn(keys, (new - old).double())


def _half_layout(keys, old_positions, new_positions, inv_freq):
    split = torch.stack(keys.chunk(2, dim=-1), dim=-1).flatten(-2)
    moved = move_keys(split, old_positions, new_positions, inv_freq)
    return torch.cat((moved[..., 0::2], moved[..., 1::2]), dim=-1)


def _only_turned_back(keys, old_positions, new_positions, inv_freq):
    return _turn(keys, _angles(-old_positions, inv_freq))


MOVED = Task(
    name="move-keys",
    function="move_keys",
    answer=move_keys,
    criteria=(
        Criterion("the whole cache moves forward", 1, lambda g: [
            cache_case(g, (3, 3)), cache_case(g, (5, 5))]),
        Criterion("backward: the context's start was dropped", 1, lambda g: [
            cache_case(g, (-4, -4), far=6), cache_case(g, (-9, -9), far=20)]),
        Criterion("each sequence by its own step", 1, lambda g: [
            cache_case(g, (2, 7)), cache_case(g, (0, 5))]),
        Criterion("positions near a million", 1, lambda g: [
            cache_case(g, (3, 3), far=999_983)]),
    ),
    wrong_answers=(
        WrongAnswer("turned-twice", _turned_again,
            "You turn the cached keys by their new positions. They have been turned by"
            " the old ones already; rotations add, so only the difference is missing.",
            0),
        WrongAnswer("turned-backwards", _backwards,
            "You turn by old minus new: every key ends up as far on the other side.",
            0),
        WrongAnswer("size-of-the-step", _size_of_the_step,
            "Your step is never negative. When the start of a context is dropped, the"
            " keys turn backward.", 3),
        WrongAnswer("first-of-the-batch", _first_of_the_batch,
            "All sequences move by the first one's step. Positions are [batch, seq]:"
            " the angles need a place for heads, [batch, 1, seq, pairs].", 3),
        WrongAnswer("float32-angles", _float32_angles,
            "Two large float32 angles are subtracted. Near position one million each is"
            " off by up to 0.06 radians. Subtract the positions, which are whole"
            " numbers, and then multiply, in float64.", 3),
        WrongAnswer("half-layout", _half_layout,
            "You pair dimension i with i + P. These keys are interleaved: neighbours"
            " make a pair.", 0),
        WrongAnswer("only-turned-back", _only_turned_back,
            "The keys come back unturned: the old angle was taken away and the new one"
            " not added.", 0),
    ),
)

# --- 3: a fused LoRA in another layout -----------------------------------------------


def _to_half(rows: Tensor, heads: int) -> Tensor:
    split = rows.unflatten(0, (heads, -1, 2))  # [heads, pairs, 2, rank]
    return split.transpose(1, 2).flatten(0, 2)


def convert_lora(a, b, n_heads, n_kv_heads, head_dim):
    """A fused qkv LoRA from interleaved to half: the rows of q and of k move."""
    queries, keys = n_heads * head_dim, n_kv_heads * head_dim
    q, k, v = b.split((queries, keys, keys))
    return a.clone(), torch.cat((_to_half(q, n_heads), _to_half(k, n_kv_heads), v))


def lora_case(generator, n_heads, n_kv_heads) -> dict:
    head_dim, rank = 2 * whole(generator, 3, 6), whole(generator, 2, 4)
    rows = (n_heads + 2 * n_kv_heads) * head_dim
    return {"a": normal(generator, rank, head_dim * n_heads),
            "b": normal(generator, rows, rank), "n_heads": n_heads,
            "n_kv_heads": n_kv_heads, "head_dim": head_dim}


def _values_too(a, b, n_heads, n_kv_heads, head_dim):
    return a.clone(), _to_half(b, n_heads + 2 * n_kv_heads)


def _queries_only(a, b, n_heads, n_kv_heads, head_dim):
    q, rest = b[: n_heads * head_dim], b[n_heads * head_dim:]
    return a.clone(), torch.cat((_to_half(q, n_heads), rest))


def _to_interleaved(rows, heads):
    split = rows.unflatten(0, (heads, 2, -1))
    return split.transpose(1, 2).flatten(0, 2)


def _other_way(a, b, n_heads, n_kv_heads, head_dim):
    queries, keys = n_heads * head_dim, n_kv_heads * head_dim
    q, k, v = b.split((queries, keys, keys))
    moved = _to_interleaved(q, n_heads), _to_interleaved(k, n_kv_heads)
    return a.clone(), torch.cat((*moved, v))


def _heads_ignored(a, b, n_heads, n_kv_heads, head_dim):
    queries, keys = n_heads * head_dim, n_kv_heads * head_dim
    q, k, v = b.split((queries, keys, keys))
    return a.clone(), torch.cat((_to_half(q, 1), _to_half(k, 1), v))


def _thirds(a, b, n_heads, n_kv_heads, head_dim):
    """Takes q, k and v for equally long, as in a model without grouped queries."""
    size = len(b) // 3
    parts = b[: 2 * size].split(size)
    moved = [torch.cat((part[0::2], part[1::2])) if size % head_dim
             else _to_half(part, size // head_dim) for part in parts]
    return a.clone(), torch.cat((*moved, b[2 * size:]))


def _a_too(a, b, n_heads, n_kv_heads, head_dim):
    _, moved = convert_lora(a, b, n_heads, n_kv_heads, head_dim)
    return torch.cat((a[:, 0::2], a[:, 1::2]), dim=1), moved


def _product(a, b, n_heads, n_kv_heads, head_dim):
    _, moved = convert_lora(a, b, n_heads, n_kv_heads, head_dim)
    return moved @ a


LORA = Task(
    name="convert-lora",
    function="convert_lora",
    answer=convert_lora,
    criteria=(
        Criterion("as many key heads as query heads", 1, lambda g: [
            lora_case(g, 2, 2), lora_case(g, 3, 3)]),
        Criterion("grouped queries", 2, lambda g: [
            lora_case(g, 4, 1), lora_case(g, 4, 2), lora_case(g, 5, 1)]),
    ),
    wrong_answers=(
        WrongAnswer("values-moved-too", _values_too,
            "The rows of v moved as well. Values are not rotated, so no layout applies"
            " to them, and W_o would read them in the wrong order.", 0),
        WrongAnswer("queries-only", _queries_only,
            "Only the rows of q moved. A score pairs q with k: both must change.", 0),
        WrongAnswer("other-direction", _other_way,
            "You convert from half to interleaved. Doing it in the wrong direction is"
            " not undone by the model; the two permutations differ for heads wider"
            " than 4.", 0),
        WrongAnswer("heads-ignored", _heads_ignored,
            "The rows move across the whole matrix. Pairs live inside one head: cut the"
            " rows into heads first.", 0),
        WrongAnswer("equal-thirds", _thirds,
            "You cut B into three equal parts. With grouped queries k and v have fewer"
            " heads than q.", 1),
        WrongAnswer("a-moved-too", _a_too,
            "The columns of A moved as well. A reads the stream, which has no layout;"
            " only the rows of B are dimensions of a head.", 0),
        WrongAnswer("product", _product,
            "You return the product B A. The adapter stays in two factors, or it can"
            " no longer be trained or added cheaply.", 0),
    ),
)

# --- 4: three axes, shared out among the pairs ----------------------------------------


def sectioned_tables(positions, sections, inv_freq):
    """Pair i turns by the axis in whose section it lies, with its own frequency."""
    axis = torch.arange(len(sections)).repeat_interleave(torch.tensor(sections))
    return tables(positions[axis].T.double() * inv_freq)


def section_case(generator, sections, *, text=False) -> dict:
    length = whole(generator, 4, 7)
    line = torch.arange(length) + whole(generator, 1, 9)
    drawn = [line if text else whole(generator, 0, 30, length) for _ in range(3)]
    return {"positions": torch.stack(drawn), "sections": list(sections),
            "inv_freq": any_frequencies(generator, sum(sections))}


def _time_only(positions, sections, inv_freq):
    return tables(positions[0].double()[:, None] * inv_freq)


def _in_turn(positions, sections, inv_freq):
    axis = torch.arange(len(inv_freq)) % len(sections)
    return tables(positions[axis].T.double() * inv_freq)


def _restarted(positions, sections, inv_freq):
    restarted = torch.cat([inv_freq[:count] for count in sections])
    return sectioned_tables(positions, sections, restarted)


def _dimensions(positions, sections, inv_freq):
    axis = torch.arange(len(sections)).repeat_interleave(torch.tensor(sections))
    axis = axis.repeat_interleave(2)[: len(inv_freq)]  # twice as long: cut off
    return tables(positions[axis].T.double() * inv_freq)


def _equal_sections(positions, sections, inv_freq):
    axis = torch.arange(len(inv_freq)) * len(sections) // len(inv_freq)
    return tables(positions[axis].T.double() * inv_freq)


def _axes_reversed(positions, sections, inv_freq):
    return sectioned_tables(positions.flip(0), sections, inv_freq)


def _float32_sections(positions, sections, inv_freq):
    axis = torch.arange(len(sections)).repeat_interleave(torch.tensor(sections))
    return tables(positions[axis].T.to(torch.bfloat16).double() * inv_freq)


SECTIONED = Task(
    name="sectioned-tables",
    function="sectioned_tables",
    answer=sectioned_tables,
    criteria=(
        Criterion("text: the three positions are equal", 1, lambda g: [
            section_case(g, (2, 3, 3), text=True), section_case(g, (4, 1, 1), text=True)
        ]),
        Criterion("pictures: each section has its axis", 2, lambda g: [
            section_case(g, (2, 3, 3)), section_case(g, (4, 1, 1)),
            section_case(g, (2, 3, 3)) | {"positions": whole(g, 300, 900, 3, 5)}]),
    ),
    wrong_answers=(
        WrongAnswer("time-only", _time_only,
            "Every pair turns by the first axis. For text that is right, since the"
            " three positions are equal; in a picture all patches of one moment then"
            " look alike.", 1),
        WrongAnswer("axes-in-turn", _in_turn,
            "The axes take turns pair by pair. Here the pairs of one axis lie side by"
            " side, as many as its section says.", 1),
        WrongAnswer("frequencies-restarted", _restarted,
            "Each section starts again at the fastest frequency. Every pair keeps its"
            " own frequency from the one list; only its position changes with the"
            " axis. For text the tables must be those of plain RoPE.", 0),
        WrongAnswer("sections-in-dimensions", _dimensions,
            "You take the sections for numbers of dimensions, two a pair. They count"
            " pairs: together they are as many as there are frequencies.", 1),
        WrongAnswer("equal-sections", _equal_sections,
            "You cut the pairs into equal parts. Their sizes are given, and need not be"
            " equal.", 1),
        WrongAnswer("axes-reversed", _axes_reversed,
            "The axes are in the wrong order. The first row of positions belongs to the"
            " first section.", 1),
        WrongAnswer("rounded-positions", _float32_sections,
            "The positions were rounded to bfloat16, where numbers above 256 collide."
            " Multiply in float64 and round the tables.", 1),
    ),
)

# --- 5: a score without a rotation ----------------------------------------------------


def scores_by_distance(q, k, inv_freq, distances):
    """sum over pairs of a cos(m f) + b sin(m f): the score at each distance m."""
    q0, q1, k0, k1 = q[0::2], q[1::2], k[0::2], k[1::2]
    angle = distances.double()[:, None] * inv_freq
    together, across = q0 * k0 + q1 * k1, q0 * k1 - q1 * k0
    return (together.double() * angle.cos() + across.double() * angle.sin()).sum(-1)


def distance_case(generator, distances, *, aligned=False) -> dict:
    pairs = whole(generator, 3, 6)
    q = normal(generator, 2 * pairs, dtype=torch.float64)
    k = q * 2 if aligned else normal(generator, 2 * pairs, dtype=torch.float64)
    return {"q": q, "k": k, "inv_freq": any_frequencies(generator, pairs),
            "distances": torch.tensor(distances)}


def _other_sign(q, k, inv_freq, distances):
    return scores_by_distance(q, k, inv_freq, -distances)


def _cosines_only(q, k, inv_freq, distances):
    angle = distances.double()[:, None] * inv_freq
    return ((q * k).unflatten(0, (-1, 2)).sum(-1) * angle.cos()).sum(-1)


def _absolute(q, k, inv_freq, distances):
    return scores_by_distance(q, k, inv_freq, distances.abs())


def _divided(q, k, inv_freq, distances):
    return scores_by_distance(q, k, inv_freq, distances) / len(q) ** 0.5


def _pairs_apart(q, k, inv_freq, distances):
    angle = distances.double()[:, None] * inv_freq
    q0, q1, k0, k1 = *q.chunk(2), *k.chunk(2)
    return ((q0 * k0 + q1 * k1) * angle.cos() + (q0 * k1 - q1 * k0) * angle.sin()
            ).sum(-1)


def _both_turned(q, k, inv_freq, distances):
    return scores_by_distance(q, k, inv_freq, 2 * distances)


SCORES = Task(
    name="scores-by-distance",
    function="scores_by_distance",
    answer=scores_by_distance,
    criteria=(
        Criterion("q and k that point the same way", 1, lambda g: [
            distance_case(g, [0, 1, 2, 5], aligned=True),
            distance_case(g, [3, 40, -7], aligned=True)]),
        Criterion("any q and k, the query later", 1, lambda g: [
            distance_case(g, [0, 1, 2, 5]), distance_case(g, [3, 40, 1000])]),
        Criterion("the key later: distances below zero", 1, lambda g: [
            distance_case(g, [-1, -6, -2]), distance_case(g, [4, -4, 30])]),
    ),
    wrong_answers=(
        WrongAnswer("other-sign", _other_sign,
            "The sine has the wrong sign: your score at distance m is that at -m. Try q"
            " = (1, 0), k = (0, 1) and turn q by a quarter.", 1),
        WrongAnswer("cosines-only", _cosines_only,
            "Only cosines. That is the whole score where q and k point the same way;"
            " otherwise a quarter turn brings the two together, and that is the sine's"
            " part, q0 k1 - q1 k0.", 1),
        WrongAnswer("distance-without-sign", _absolute,
            "You use the distance without its sign. A rotation knows before from after"
            " unless q and k are parallel.", 2),
        WrongAnswer("divided-by-the-root", _divided,
            "You divide by the root of the head size. Here the score is the bare dot"
            " product.", 0),
        WrongAnswer("half-layout", _pairs_apart,
            "You pair dimension i with i + P. Here neighbours make a pair.", 0),
        WrongAnswer("twice-the-angle", _both_turned,
            "Your angles are twice as large: only the distance between the two counts,"
            " once.", 0),
    ),
)

ASSIGNMENT = Assignment(
    name="rope",
    title="Rotations: two axes, a cache that moves, a fused adapter",
    tasks=(AXIAL, MOVED, LORA, SECTIONED, SCORES),
    written=(Written("written-axes", 4),),
)
