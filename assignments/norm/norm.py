# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Assignment: Norms
#
# In groups, on heads, folded away, in pieces. Page 02 (RMSNorm) took one line apart.
# Models put that line in places where it needs care: here are four of them.
#
# **Goals.** After this assignment you can
#
# - norm groups of dimensions, in half precision;
# - move the weight of a head's norm between the two rotary layouts;
# - remove the weights of all norms from a model without changing what it computes;
# - norm a vector that no machine holds as a whole.
#
# **Time.** 90 minutes. **Points.** 20: four programs with 16, a written question with
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
from torch import float16, tensor

from apex_lessons.exercises.examples import check_example

torch.set_num_threads(1)

# %% [markdown]
# ## 1. A norm in groups
#
# State-space models and some attention outputs are normed in groups: the d dimensions
# are cut into `groups` chunks that lie side by side, all of one width.
#
# **Write** `grouped_rms_norm(x, weight, groups, eps)`.
#
# - `x`: `[..., d]`, float32 or float16; `weight`: `[d]`, the same dtype; d is a
#   multiple of `groups`.
# - Each chunk is divided by the root of its own mean square plus `eps` (inside the
#   root), then every dimension is multiplied by its weight.
# - Result: the shape and dtype of x, worked out in float32 and rounded once.

# %% nbgrader={"grade_id": "grouped-rms-norm", "solution": true}
def grouped_rms_norm(x, weight, groups, eps):
    ### BEGIN SOLUTION
    chunks = x.float().reshape(*x.shape[:-1], groups, -1)  # [..., groups, width]
    mean_square = chunks.pow(2).mean(dim=-1, keepdim=True)
    normed = chunks / torch.sqrt(mean_square + eps)
    return (normed.reshape(x.shape) * weight.float()).to(x.dtype)
    ### END SOLUTION


# %% nbgrader={"grade_id": "grouped-rms-norm-1", "grade": true, "points": 2}
# Two groups of three; the second is twenty times as loud.
check_example(
    grouped_rms_norm,
    {"x": tensor([[1.0, 2.0, 2.0, 40.0, -20.0, 40.0]]), "weight": torch.ones(6),
     "groups": 2, "eps": 0.0},
    wanted=tensor([[0.57735, 1.1547, 1.1547, 1.1547, -0.57735, 1.1547]]),
    hints={
        0.17597: "One root mean square for the whole vector. Each group has its own.",
        -0.26247: "Your groups take every second number. They lie side by side.",
        -0.076459: "The mean runs across the groups, not inside each one.",
        -0.1427: "`groups` is the number of groups, not the width of one.",
        -0.64753: "Divide by the root of the mean, not of the sum.",
    },
)

# %% nbgrader={"grade_id": "grouped-rms-norm-2", "grade": true, "points": 1}
# Two sequences, and a weight.
check_example(
    grouped_rms_norm,
    {"x": tensor([[[3.0, 4.0, 6.0, -8.0]], [[1.0, 1.0, 0.0, 2.0]]]),
     "weight": tensor([1.0, 2.0, 3.0, 4.0]), "groups": 2, "eps": 1.0},
    wanted=tensor(
        [[[0.8165, 2.1773, 2.5205, -4.4809]], [[0.70711, 1.4142, 0.0, 4.6188]]]),
    hints={
        1.3902: "You repeat the first weights. There is one for each dimension.",
        0.90225: "One root mean square for the whole vector. Each group has its own.",
    },
)

# %% nbgrader={"grade_id": "grouped-rms-norm-3", "grade": true, "points": 1}
# float16: 300 squared is more than it can hold.
check_example(
    grouped_rms_norm,
    {"x": tensor([[300.0, 400.0, -300.0, 300.0]], dtype=float16),
     "weight": torch.ones(4, dtype=float16), "groups": 2, "eps": 1e-5},
    wanted=tensor([[0.84863, 1.1318, -1.0, 1.0]], dtype=float16),
    hints={
        0.0: "The squares overflow in float16: widen x first.",
    },
)

# %% [markdown]
# ## 2. A norm on every head, from another library
#
# Qwen3 and others norm each head's q and k before they are rotated. The norm's weight
# `[head_dim]` is shared by all heads. You load a checkpoint whose weights are in the
# **half** layout (dimension i and i + P make a pair, P = rotary_dim/2) into a program
# that is **interleaved** (2i and 2i + 1 make a pair). W_q has been converted already,
# so x arrives interleaved. The norm's weight has not.
#
# **Write** `qk_norm(x, weight, eps, rotary_dim)`.
#
# - `x`: `[batch, heads, seq, head_dim]`, interleaved, not yet rotated.
# - `weight`: `[head_dim]`, as stored, in the half layout. Only the first `rotary_dim`
#   dimensions of a head make pairs; the rest is in the same order in both layouts.
# - Result: RMSNorm over each head's whole last axis (`eps` inside the root), times the
#   weight in x's layout. Interleaved, like x.

# %% nbgrader={"grade_id": "qk-norm", "solution": true}
def qk_norm(x, weight, eps, rotary_dim):
    ### BEGIN SOLUTION
    moved = weight.clone()  # [head_dim]
    moved[0:rotary_dim:2] = weight[: rotary_dim // 2]
    moved[1:rotary_dim:2] = weight[rotary_dim // 2 : rotary_dim]
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)
    return x / torch.sqrt(mean_square + eps) * moved
    ### END SOLUTION


# %% nbgrader={"grade_id": "qk-norm-1", "grade": true, "points": 2}
# Two heads of six dimensions, all of them rotary.
check_example(
    qk_norm,
    {"x": tensor([[[[1.0] * 6], [[-2.0] * 6]]]), "eps": 0.0,
     "weight": tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "rotary_dim": 6},
    wanted=tensor(
        [[[[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]], [[-1.0, -4.0, -2.0, -5.0, -3.0, -6.0]]]]),
    hints={
        1.8443: "The weight is still in the half layout.",
        0.76585: "You reorder in the wrong direction: from interleaved to half.",
        1.1246: "The mean square runs over both heads. Each has its own.",
    },
)

# %% nbgrader={"grade_id": "qk-norm-2", "grade": true, "points": 2}
# The last two of six dimensions do not turn.
check_example(
    qk_norm,
    {"x": tensor([[[[1.0, 1.0, -1.0, 1.0, 2.0, 2.0]]]]), "eps": 0.0,
     "weight": tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), "rotary_dim": 4},
    wanted=tensor([[[[0.70711, 2.1213, -1.4142, 2.8284, 7.0711, 8.4853]]]]),
    hints={
        7.6449: "Only the first rotary_dim weights move.",
        13.016: "The norm is over the whole head, not over its rotary part.",
        7.1748: "You moved x. It is interleaved already; the weight must move.",
    },
)

# %% [markdown]
# ## 3. Fold the norms away
#
# The weight of a norm and the matrix that reads it are two factors of one product.
# Before a model is quantised, people fold the first into the second.
#
# | norm | read by |
# |---|---|
# | `input_norm` | `q`, `k`, `v` |
# | `post_norm` | `gate`, `up` |
# | `final_norm` | `head` |
#
# `o` and `down` write to the stream and read no norm. A matrix `[out, in]` is used as
# `x @ matrix.T`.
#
# **Write** `fold_norms(weights, weight_offset, tied)`.
#
# - `weights`: a dict with one block's matrices and norms, `q k v o gate up down head
#   input_norm post_norm final_norm`; float32 or float16.
# - A norm multiplies by **weight + weight_offset** (Gemma: 1, others: 0).
# - `tied`: the head is the look-up table too. Then `head` and `final_norm` must stay as
#   they are.
# - Result: a new dict with the same keys and dtypes, that computes the same: matrices
#   folded, and each folded norm set to what makes it multiply by 1. Sum and product in
#   float32, rounded once to the matrix's dtype.

# %% nbgrader={"grade_id": "fold-norms", "solution": true}
def fold_norms(weights, weight_offset, tied):
    ### BEGIN SOLUTION
    reads = {"q": "input_norm", "k": "input_norm", "v": "input_norm",
             "gate": "post_norm", "up": "post_norm"}
    if not tied:
        reads["head"] = "final_norm"
    folded = dict(weights)
    for name, norm in reads.items():
        matrix, scale = weights[name], weights[norm].float() + weight_offset
        folded[name] = (matrix.float() * scale).to(matrix.dtype)  # a scale a column
        folded[norm] = torch.ones_like(weights[norm]) - weight_offset
    return folded
    ### END SOLUTION


# %% nbgrader={"grade_id": "toy-model", "locked": true}
def toy_model(input_norm, post_norm, final_norm, dtype=torch.float32):
    """A block of width 2: every matrix another multiple of one."""
    names = ("q", "k", "v", "o", "gate", "up", "down", "head")
    one = tensor([[1.0, -3.0], [5.0, 7.0]])
    matrices = {name: (n * one).to(dtype) for n, name in enumerate(names, start=1)}
    norms = {"input_norm": input_norm, "post_norm": post_norm, "final_norm": final_norm}
    return matrices | {name: tensor(norm, dtype=dtype) for name, norm in norms.items()}


# %% nbgrader={"grade_id": "fold-norms-1", "grade": true, "points": 2}
# Not tied, no offset. Names that are not listed stay.
check_example(
    fold_norms,
    {"weights": toy_model([2.0, 10.0], [0.5, 4.0], [3.0, 0.25]), "weight_offset": 0.0,
     "tied": False},
    wanted=toy_model([2.0, 10.0], [0.5, 4.0], [3.0, 0.25]) | {
        "q": tensor([[2.0, -30.0], [10.0, 70.0]]),
        "k": tensor([[4.0, -60.0], [20.0, 140.0]]),
        "v": tensor([[6.0, -90.0], [30.0, 210.0]]),
        "gate": tensor([[2.5, -60.0], [12.5, 140.0]]),
        "up": tensor([[3.0, -72.0], [15.0, 168.0]]),
        "head": tensor([[24.0, -6.0], [120.0, 14.0]]), "input_norm": tensor([1.0, 1.0]),
        "post_norm": tensor([1.0, 1.0]), "final_norm": tensor([1.0, 1.0]),
    },
    hints={
        193.04: "You scale rows. `x @ W.T` meets x along the columns.",
        -143.6: "`o` and `down` read no norm.",
        297.91: "The norms still hold their weights: they count twice now.",
    },
)

# %% nbgrader={"grade_id": "fold-norms-2", "grade": true, "points": 1}
# Gemma: the norm multiplies by 1 + weight.
check_example(
    fold_norms,
    {"weights": toy_model([0.0, 1.0], [-0.5, 0.5], [1.0, 2.0]), "weight_offset": 1.0,
     "tied": False},
    wanted=toy_model([0.0, 1.0], [-0.5, 0.5], [1.0, 2.0]) | {
        "q": tensor([[1.0, -6.0], [5.0, 14.0]]),
        "k": tensor([[2.0, -12.0], [10.0, 28.0]]),
        "v": tensor([[3.0, -18.0], [15.0, 42.0]]),
        "gate": tensor([[2.5, -22.5], [12.5, 52.5]]),
        "up": tensor([[3.0, -27.0], [15.0, 63.0]]),
        "head": tensor([[16.0, -72.0], [80.0, 168.0]]),
        "input_norm": tensor([0.0, 0.0]), "post_norm": tensor([0.0, 0.0]),
        "final_norm": tensor([0.0, 0.0]),
    },
    hints={
        44.784: "The norm multiplies by weight + offset.",
        177.67: "With an offset of 1, a norm that does nothing has weight 0.",
    },
)

# %% nbgrader={"grade_id": "fold-norms-3", "grade": true, "points": 1}
# A tied head.
check_example(
    fold_norms,
    {"weights": toy_model([2.0, 10.0], [0.5, 4.0], [3.0, 0.25]), "weight_offset": 0.0,
     "tied": True},
    wanted=toy_model([2.0, 10.0], [0.5, 4.0], [3.0, 0.25]) | {
        "q": tensor([[2.0, -30.0], [10.0, 70.0]]),
        "k": tensor([[4.0, -60.0], [20.0, 140.0]]),
        "v": tensor([[6.0, -90.0], [30.0, 210.0]]),
        "gate": tensor([[2.5, -60.0], [12.5, 140.0]]),
        "up": tensor([[3.0, -72.0], [15.0, 168.0]]), "input_norm": tensor([1.0, 1.0]),
        "post_norm": tensor([1.0, 1.0]),
    },
    hints={
        304.68: "A tied head is the look-up table: leave it as it is.",
    },
)

# %% nbgrader={"grade_id": "fold-norms-4", "grade": true, "points": 1}
# float16, and weights near 0 with an offset of 1.
check_example(
    fold_norms,
    {"weights": toy_model([0.0005, 0.0005], [0.0, 0.0005], [0.0, 0.0], float16),
     "weight_offset": 1.0, "tied": False},
    wanted=toy_model([0.0005, 0.0005], [0.0, 0.0005], [0.0, 0.0], float16) | {
        "q": tensor([[1.001, -3.002], [5.0039, 7.0039]], dtype=float16),
        "k": tensor([[2.002, -6.0039], [10.008, 14.008]], dtype=float16),
        "v": tensor([[3.002, -9.0078], [15.008, 21.016]], dtype=float16),
        "gate": tensor([[5.0, -15.008], [25.0, 35.031]], dtype=float16),
        "up": tensor([[6.0, -18.016], [30.0, 42.031]], dtype=float16),
        "input_norm": tensor([0.0, 0.0], dtype=float16),
        "post_norm": tensor([0.0, 0.0], dtype=float16),
    },
    hints={
        29.039: "1 + weight was rounded to float16 before the product.",
    },
)

# %% [markdown]
# ## 4. A vector in pieces
#
# With tensor parallelism the d dimensions of a vector lie on several machines. Before
# the norm each machine may tell the others **one number a row**; then each norms its
# own piece. The result must be that of the whole vector.
#
# **Write** `sharded_rms_norm(shards, weights, eps)`.
#
# - `shards`: a list of tensors `[rows, width]`, the pieces of one vector a row; widths
#   may differ. `weights`: a list of `[width]`, one for each piece. float32 or float16.
# - Result: a **list** of tensors, the pieces of RMSNorm of the whole vector times its
#   weight, each with its piece's shape and dtype. Worked out in float32.

# %% nbgrader={"grade_id": "sharded-rms-norm", "solution": true}
def sharded_rms_norm(shards, weights, eps):
    ### BEGIN SOLUTION
    # what each machine tells: its sum of squares
    told = [shard.float().pow(2).sum(dim=-1, keepdim=True) for shard in shards]
    width = sum(shard.shape[-1] for shard in shards)
    root = torch.sqrt(sum(told) / width + eps)  # [rows, 1]
    return [(shard.float() / root * weight.float()).to(shard.dtype)
            for shard, weight in zip(shards, weights)]
    ### END SOLUTION


# %% nbgrader={"grade_id": "sharded-rms-norm-1", "grade": true, "points": 1}
# Two pieces of two.
check_example(
    sharded_rms_norm,
    {"shards": [tensor([[3.0, 4.0]]), tensor([[0.0, 12.0]])],
     "weights": [torch.ones(2), tensor([1.0, 0.5])], "eps": 1.0},
    wanted=[tensor([[0.45617, 0.60823]]), tensor([[0.0, 0.91234]])],
    hints={
        -0.47091: "Each piece is normed alone. They are one vector.",
        -0.64912: "You average roots. Take one root, of the mean of all squares.",
        -0.42886: "The pieces' means are added, not averaged.",
        -0.59614: "Epsilon counts twice, once for each piece.",
    },
)

# %% nbgrader={"grade_id": "sharded-rms-norm-2", "grade": true, "points": 1}
# Pieces of one and of three.
check_example(
    sharded_rms_norm,
    {"shards": [tensor([[3.0]]), tensor([[1.0, 1.0, 4.0]])],
     "weights": [torch.ones(1), torch.ones(3)], "eps": 0.0},
    wanted=[tensor([[1.1547]]), tensor([[0.3849, 0.3849, 1.5396]])],
    hints={
        -0.87629: "The short piece counts as much as the long one.",
    },
)

# %% nbgrader={"grade_id": "sharded-rms-norm-3", "grade": true, "points": 1}
# float16.
check_example(
    sharded_rms_norm,
    {"shards": [tensor([[300.0, 400.0]], dtype=float16), tensor([[-500.0, 0.0]],
                dtype=float16)], "weights": [torch.ones(2, dtype=float16)] * 2,
     "eps": 1e-5},
    wanted=[
        tensor([[0.84863, 1.1318]], dtype=float16),
        tensor([[-1.4141, 0.0]], dtype=float16),
    ],
    hints={
        0.0: "The squares overflow in float16: widen each piece first.",
    },
)

# %% [markdown]
# ## 5. In your own words
#
# In task 3 the weights of `input_norm`, `post_norm` and `final_norm` were folded into
# the matrix **behind** the norm. A colleague wants to do the same with the weight of a
# QK-norm (task 2), and fold it into W_q, the matrix **before** the norm.
#
# (a) Why does that not give the same function? A counterexample with two dimensions is
# enough. (b) The score is q·k after the rotation. Can the weights of the q-norm and the
# k-norm be multiplied into one weight, used on q alone? Under which condition on a
# pair's two weights? (c) A checkpoint has passed through task 2's conversion, and the
# model's answers are slightly worse, not nonsense. Which single mistake of task 2 would
# look like that, and which one-line test finds it? About 150 words.

# %% [markdown] nbgrader={"grade_id": "written-fold", "grade": true, "solution": true}
# (a) The norm divides by the root mean square of what comes in, so a factor before it
# changes the divisor as well. With W_q x = (1, 1) and weight (3, 1): norm, then weight
# gives (3, 1); weight, then norm gives (3, 1)/√5. For equal weights the norm even
# removes the factor altogether. (b) Rotation mixes the two numbers of a pair. The
# weight commutes with it only if both numbers of a pair have the same weight; then the
# k-norm's weight can move through the rotation onto q, pair by pair. Trained weights do
# not obey that, so in general no. (c) The weight used as stored: its entries are all
# near 1, so exchanging them changes little. Test: give x = ones and compare the result
# with the weight in the order in which the rotation pairs it, or compare scores of both
# programs on one random input.
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) the divisor changes with the factor; a counterexample with numbers.
# - 2 points: (b) rotation mixes a pair, so both weights of a pair must be equal (1);
#   therefore not in general, or only then (1).
# - 1 point: (c) the order of the weight (or the wrong direction), **and** a test that
#   would find it.
#
# In (b) "no, because of the rotation" without the condition earns one point.
# ### END MARK SCHEME

# %% [markdown]
# **Before you hand in:** restart the kernel, run all cells, save. A check that is not
# passed stops the run there; that costs nothing, the others are still graded.
