# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Assignment: Rotations
#
# Two axes, a cache that moves, a fused adapter. Page 03 (RoPE) turned pairs by one
# position. Here positions have two or three axes, keys move after they were turned, and
# a score is found without any rotation.
#
# **Goals.** After this assignment you can
#
# - make tables for pictures, and for text and pictures in one sequence;
# - shift a cache of rotated keys, also at position one million;
# - convert an adapter, knowing which of its numbers belong to a head;
# - write a score as a sum of cosines and sines of the distance.
#
# **Time.** 100 minutes. **Points.** 20: five programs with 16, a written question with
# 4.
#
# **How it works.** Replace `raise NotImplementedError()` by your program. Below each
# task are examples: they say in words what is wrong, and you may run them as often as
# you like. (The number before a hint stands for the wrong answer that it belongs to.)
# Points come from *other* inputs, of other sizes. You may use everything in torch and
# in `apex_lessons`, and write cells of your own. Cells marked as read-only are restored
# before grading.

# %% nbgrader={"grade_id": "imports", "locked": true}
import torch
from torch import float64, tensor

from apex_lessons import rope
from apex_lessons.exercises.examples import check_example

torch.set_num_threads(1)

# %% [markdown]
# ## 1. Positions with two axes
#
# A picture is cut into `height` × `width` patches, numbered row by row as one reads a
# page. Half of a head's pairs turn by the patch's row, the other half by its column.
#
# **Write** `axial_tables(height, width, head_dim, base)`.
#
# - `head_dim` is a multiple of 4. Each axis has head_dim/2 dimensions, that is
#   head_dim/4 pairs, and a full list of frequencies of its own:
#   `base ** (-2i / (head_dim/2))` for i = 0, 1, ..., head_dim/4 - 1.
# - Rows and columns are counted from 0.
# - Result: a tuple `(cos, sin)`, each float32 `[height·width, head_dim/2]`: first all
#   pairs of the row, then all pairs of the column. Angles in float64.

# %% nbgrader={"grade_id": "axial-tables", "solution": true}
def axial_tables(height, width, head_dim, base):
    ### BEGIN SOLUTION
    inv_freq = rope.inverse_frequencies(head_dim // 2, base)  # [head_dim/4]
    patch = torch.arange(height * width)
    by_row = rope.rotary_tables(patch // width, inv_freq)
    by_column = rope.rotary_tables(patch % width, inv_freq)
    return tuple(torch.cat(both, dim=-1) for both in zip(by_row, by_column))
    ### END SOLUTION


# %% nbgrader={"grade_id": "axial-tables-1", "grade": true, "points": 1}
# Patch 5 of a picture of 3 × 3: row 1, column 2.
check_example(
    lambda **given: [table[5] for table in axial_tables(**given)],
    {"height": 3, "width": 3, "head_dim": 8, "base": 100.0},
    wanted=[
        tensor([0.5403, 0.995, -0.41615, 0.98007]),
        tensor([0.84147, 0.099833, 0.9093, 0.19867]),
    ],
    hints={
        0.91798: "These are frequencies of the whole head. An axis has head_dim/2.",
        -1.0483: "One list is split between the axes. Each has a list of its own.",
        -0.74942: "The row comes first, then the column.",
        -0.33008: "These are the tables of a line of patches.",
        -0.0024241: "All pairs of the row come first, then all of the column.",
        -1.3446: "Row and column are added up.",
    },
)

# %% nbgrader={"grade_id": "axial-tables-2", "grade": true, "points": 2}
# Patch 6 of a picture of 2 × 4: row 1, column 2.
check_example(
    lambda **given: [table[6] for table in axial_tables(**given)],
    {"height": 2, "width": 4, "head_dim": 8, "base": 100.0},
    wanted=[
        tensor([0.5403, 0.995, -0.41615, 0.98007]),
        tensor([0.84147, 0.099833, 0.9093, 0.19867]),
    ],
    hints={
        0.54318: "Patches are numbered row by row: 6 is in row 6 // 4.",
        -2.2523: "A row is `width` patches long, not `height`.",
    },
)

# %% [markdown]
# ## 2. Move a cache
#
# A chat has grown too long, so its oldest tokens are dropped and the others move to
# smaller positions. The cache holds their keys **after** rotation. Computing them anew
# is dear. Turning them once more is cheap.
#
# **Write** `move_keys(keys, old_positions, new_positions, inv_freq)`.
#
# - `keys`: float32 `[batch, heads, seq, head_dim]`, interleaved, turned to
#   `old_positions`.
# - `old_positions`, `new_positions`: integers `[batch, seq]`; a step may be negative
#   and may differ from sequence to sequence.
# - `inv_freq`: float64 `[head_dim/2]`.
# - Result: the keys as if they had been turned to `new_positions`, float32. Right to
#   float32's precision also near position one million.

# %% nbgrader={"grade_id": "move-keys", "solution": true}
def move_keys(keys, old_positions, new_positions, inv_freq):
    ### BEGIN SOLUTION
    step = new_positions - old_positions  # [batch, seq], exact
    angle = (step.double()[..., None] * inv_freq)[:, None]  # [batch, 1, seq, pairs]
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(keys.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).float()
    ### END SOLUTION


# %% nbgrader={"grade_id": "move-keys-1", "grade": true, "points": 1}
# From position 2 to 5.
check_example(
    move_keys,
    {"keys": tensor([[[[1.0, 0.0, 0.0, 1.0]]]]),
     "inv_freq": tensor([1.0, 0.1], dtype=float64), "old_positions": tensor([[2]]),
     "new_positions": tensor([[5]])},
    wanted=tensor([[[[-0.98999, 0.14112, -0.29552, 0.95534]]]]),
    hints={
        0.45332: "The keys are turned by the whole new position, on top of the old "
                 "one.",
        -1.3932: "The step has the wrong sign.",
        -1.1761: "You pair i with i + head_dim/2. These keys are interleaved.",
        -0.68374: "The keys are back at position 0.",
    },
)

# %% nbgrader={"grade_id": "move-keys-2", "grade": true, "points": 1}
# Back from 5 to 3.
check_example(
    move_keys,
    {"keys": tensor([[[[1.0, 0.0, 0.0, 1.0]]]]),
     "inv_freq": tensor([1.0, 0.1], dtype=float64), "old_positions": tensor([[5]]),
     "new_positions": tensor([[3]])},
    wanted=tensor([[[[-0.41615, -0.9093, 0.19867, 0.98007]]]]),
    hints={
        -1.0472: "A step may be negative.",
        -0.92551: "The keys are turned by the whole new position, on top of the old "
                  "one.",
    },
)

# %% nbgrader={"grade_id": "move-keys-3", "grade": true, "points": 1}
# Two sequences, two steps.
check_example(
    move_keys,
    {"keys": tensor([[[[1.0, 0.0, 0.0, 1.0]]]] * 2),
     "inv_freq": tensor([1.0, 0.1], dtype=float64),
     "old_positions": tensor([[4], [4]]), "new_positions": tensor([[5], [9]])},
    wanted=tensor(
        [[[[0.5403, 0.84147, -0.099833, 0.995]]],
         [[[0.28366, -0.95892, -0.47943, 0.87758]]]]),
    hints={
        0.13139: "The second sequence moved by the first one's step.",
    },
)

# %% nbgrader={"grade_id": "move-keys-4", "grade": true, "points": 1}
# Near a million the angles themselves are large.
check_example(
    move_keys,
    {"keys": tensor([[[[1.0, 0.0, 0.0, 1.0]]]]),
     "inv_freq": tensor([1.0, 0.1], dtype=float64),
     "old_positions": tensor([[999_983]]), "new_positions": tensor([[999_985]])},
    wanted=tensor([[[[-0.41615, 0.9093, -0.19867, 0.98007]]]]),
    hints={
        -1.0437: "Two large float32 angles were subtracted. Subtract positions.",
    },
)

# %% [markdown]
# ## 3. A fused adapter in the other layout
#
# A LoRA adapter adds `B @ A` to a fused matrix W_qkv, whose rows are all heads of q,
# then all heads of k, then all heads of v. It was trained in the **interleaved**
# layout. Your model uses the **half** layout.
#
# **Write** `convert_lora(a, b, n_heads, n_kv_heads, head_dim)`.
#
# - `a`: `[rank, d_model]`; `b`: `[(n_heads + 2·n_kv_heads)·head_dim, rank]`.
# - Result: a tuple `(a, b)` of new tensors in the same shapes, such that the half
#   model with this adapter gives the scores and outputs of the interleaved one. Rows
#   that need not move stay.

# %% nbgrader={"grade_id": "convert-lora", "solution": true}
def convert_lora(a, b, n_heads, n_kv_heads, head_dim):
    ### BEGIN SOLUTION
    moved, turning = b.clone(), (n_heads + n_kv_heads) * head_dim
    for start in range(0, turning, head_dim):  # v is not rotated
        head = b[start : start + head_dim]
        moved[start : start + head_dim] = torch.cat((head[0::2], head[1::2]))
    return a.clone(), moved
    ### END SOLUTION


# %% nbgrader={"grade_id": "convert-lora-1", "grade": true, "points": 1}
# One head each for q, k and v.
check_example(
    convert_lora,
    {"a": torch.arange(6.0)[None], "b": torch.arange(18.0)[:, None], "n_heads": 1,
     "n_kv_heads": 1, "head_dim": 6},
    wanted=[
        tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]]),
        tensor(
            [[0.0], [2.0], [4.0], [1.0], [3.0], [5.0], [6.0], [8.0], [10.0], [7.0],
             [9.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0], [17.0]]),
    ],
    hints={
        -6.9055: "The rows of v moved. Values are not rotated.",
        -9.5587: "The rows of k must move too.",
        -8.8667: "This goes from half to interleaved.",
        -10.123: "A reads the stream, which has no layout.",
    },
)

# %% nbgrader={"grade_id": "convert-lora-2", "grade": true, "points": 2}
# Two heads of q share one of k and v.
check_example(
    convert_lora,
    {"a": torch.arange(8.0)[None], "b": torch.arange(16.0)[:, None], "n_heads": 2,
     "n_kv_heads": 1, "head_dim": 4},
    wanted=[
        tensor([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]]),
        tensor(
            [[0.0], [2.0], [1.0], [3.0], [4.0], [6.0], [5.0], [7.0], [8.0], [10.0],
             [9.0], [11.0], [12.0], [13.0], [14.0], [15.0]]),
    ],
    hints={
        -3.5785: "Pairs live inside one head: move the rows of each head alone.",
        -8.9257: "q, k and v do not have equally many rows here.",
    },
)

# %% [markdown]
# ## 4. Text and pictures in one sequence
#
# In Qwen2-VL a token has three positions: time, row, column. Text tokens have three
# equal ones. The pairs of a head are shared out in **sections**: the first
# `sections[0]` pairs turn by the first axis, the next `sections[1]` by the second, and
# so on. Each pair keeps its own frequency.
#
# **Write** `sectioned_tables(positions, sections, inv_freq)`.
#
# - `positions`: integers `[axes, seq]`; `sections`: a list of `axes` whole numbers, in
#   pairs; `inv_freq`: float64 `[pairs]`, with pairs = sum of the sections.
# - Result: a tuple `(cos, sin)`, each float32 `[seq, pairs]`, angles in float64.

# %% nbgrader={"grade_id": "sectioned-tables", "solution": true}
def sectioned_tables(positions, sections, inv_freq):
    ### BEGIN SOLUTION
    whole = positions.double()[:, :, None] * inv_freq  # [axes, seq, pairs]
    parts = [part[axis] for axis, part in enumerate(whole.split(sections, dim=-1))]
    angles = torch.cat(parts, dim=-1)  # [seq, pairs]
    return angles.cos().float(), angles.sin().float()
    ### END SOLUTION


# %% nbgrader={"grade_id": "sectioned-tables-1", "grade": true, "points": 1}
# Text: three equal positions give the tables of plain RoPE.
check_example(
    sectioned_tables,
    {"positions": tensor([[3], [3], [3]]), "sections": [1, 1, 2],
     "inv_freq": tensor([1.0, 0.1, 0.01, 0.001], dtype=float64)},
    wanted=[
        tensor([[-0.98999, 0.95534, 0.99955, 1.0]]),
        tensor([[0.14112, 0.29552, 0.029996, 0.003]]),
    ],
    hints={
        0.47164: "A section must not start again at the fastest frequency.",
    },
)

# %% nbgrader={"grade_id": "sectioned-tables-2", "grade": true, "points": 2}
# A patch at moment 301, row 20, column 40.
check_example(
    sectioned_tables,
    {"positions": tensor([[301], [20], [40]]), "sections": [1, 2, 1],
     "inv_freq": tensor([1.0, 0.1, 0.01, 0.001], dtype=float64)},
    wanted=[
        tensor([[0.82933, -0.41615, 0.98007, 0.9992]]),
        tensor([[-0.55876, 0.9093, 0.19867, 0.039989]]),
    ],
    hints={
        -0.33152: "Every pair turns by the first axis.",
        0.050192: "The axes take turns. Sections lie side by side.",
        -2.2214: "Sections count pairs, not dimensions.",
        -0.5906: "The first section belongs to the first axis.",
        -0.72869: "The position 301 was rounded on the way.",
    },
)

# %% [markdown]
# ## 5. A score without a rotation
#
# Turn q by m·f and k by 0, for one pair with frequency f, and multiply. The result is a
# cosine and a sine of m·f, with two numbers that depend on q and k alone. So the score
# at **every** distance follows from q and k as they are.
#
# **Write** `scores_by_distance(q, k, inv_freq, distances)`.
#
# - `q`, `k`: float64 `[head_dim]`, not rotated, interleaved; `inv_freq`: float64
#   `[head_dim/2]`.
# - `distances`: integers `[n]`, the query's position minus the key's; may be negative.
# - Result: float64 `[n]`, the dot product of the rotated q and k at each distance. Not
#   divided by anything.

# %% nbgrader={"grade_id": "scores-by-distance", "solution": true}
def scores_by_distance(q, k, inv_freq, distances):
    ### BEGIN SOLUTION
    # conj(k) q e^(i m f) = (k0 - i k1)(q0 + i q1)(cos + i sin); the real part
    pairs_q = torch.view_as_complex(q.view(-1, 2))
    pairs_k = torch.view_as_complex(k.view(-1, 2))
    angle = distances[:, None] * inv_freq  # [n, pairs]
    turned = pairs_q * pairs_k.conj() * torch.polar(torch.ones_like(angle), angle)
    return turned.real.sum(dim=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "scores-by-distance-1", "grade": true, "points": 1}
# q and k are the same vector.
check_example(
    scores_by_distance,
    {"q": tensor([1.0, 0.0, 2.0, 1.0], dtype=float64),
     "k": tensor([1.0, 0.0, 2.0, 1.0], dtype=float64),
     "inv_freq": tensor([1.0, 0.1], dtype=float64), "distances": tensor([0, 1])},
    wanted=tensor([6.0, 5.5153], dtype=float64),
    hints={
        0.47331: "You divide by √head_dim. Here nothing is divided.",
        1.7035: "You pair i with i + head_dim/2. Here neighbours make a pair.",
        1.3757: "The angle counts twice.",
    },
)

# %% nbgrader={"grade_id": "scores-by-distance-2", "grade": true, "points": 1}
# k is a quarter turn ahead of q.
check_example(
    scores_by_distance,
    {"q": tensor([1.0, 0.0, 1.0, 0.0], dtype=float64),
     "k": tensor([0.0, 1.0, 0.0, 1.0], dtype=float64),
     "inv_freq": tensor([1.0, 0.1], dtype=float64), "distances": tensor([0, 1, 2])},
    wanted=tensor([0.0, 0.9413, 1.108], dtype=float64),
    hints={
        1.4886: "The sine has the wrong sign.",
        0.0: "Only cosines: that is not all where q and k point apart.",
    },
)

# %% nbgrader={"grade_id": "scores-by-distance-3", "grade": true, "points": 1}
# The key stands after the query.
check_example(
    scores_by_distance,
    {"q": tensor([1.0, 0.0, 1.0, 0.0], dtype=float64),
     "k": tensor([0.0, 1.0, 0.0, 1.0], dtype=float64),
     "inv_freq": tensor([1.0, 0.1], dtype=float64), "distances": tensor([-1, -2])},
    wanted=tensor([-0.9413, -1.108], dtype=float64),
    hints={
        0.047512: "You use the distance without its sign.",
    },
)

# %% [markdown]
# ## 6. In your own words
#
# Someone proposes to number the patches of a picture row by row and to use ordinary,
# one-dimensional RoPE, "since attention can learn the rest".
#
# (a) Two patches are neighbours, one above the other, in a picture of width w. What is
# their distance in each scheme, and how does it change with the picture's size? (b)
# Name one thing that the one-dimensional scheme does better. (c) With your
# `axial_tables`: which pairs of patches have the same score, whatever q and k are? Show
# it with task 5's formula. (d) A picture larger than in training comes in. Which pairs
# meet angles they have not seen, in each scheme? About 150 words.

# %% [markdown] nbgrader={"grade_id": "written-axes", "grade": true, "solution": true}
# (a) In one dimension w, so the same neighbourhood is another distance in every picture
# width; with two axes it is (1, 0), always. (b) It needs no change to the model, all
# pairs serve one axis, so there are twice as many frequencies, and text and picture can
# share one numbering. (c) A score is a sum over the row's pairs, a function of the row
# distance, plus a sum over the column's pairs, a function of the column distance. So
# for fixed q and k it depends on the two differences only: all pairs of patches with
# the same (row difference, column difference) have the same score, wherever they are.
# (d) The slow pairs. In one dimension positions grow with the area, so a picture twice
# as wide and high reaches four times as far; with two axes each reaches twice as far.
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) w against 1 (or (1, 0)), and that w changes with the picture.
# - 1 point: (b) one true advantage: more frequencies an axis, no change to a text
#   model, one numbering.
# - 1 point: (c) the score splits into a sum for each axis, so it depends on both
#   differences only.
# - 1 point: (d) the slow pairs, **and** area against side length (four times against
#   twice).
# ### END MARK SCHEME

# %% [markdown]
# **Before you hand in:** restart the kernel, run all cells, save. A check that is not
# passed stops the run there; that costs nothing, the others are still graded.
