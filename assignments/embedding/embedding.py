# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Assignment: Tables
#
# Two factors, eight bits, two gradients. You know from
# page 01 (Embedding scaling) what a table does: its rows
# are what token ids become, and, if it is tied, also what hidden vectors are compared
# with. Here you make one smaller, store it in bytes, and ask who moves it.
#
# **Goals.** After this assignment you can
#
# - derive a scale from variances instead of remembering one;
# - store a table in int8 and say what a row loses;
# - tell apart what a tied table learns as a look-up and as a head;
# - keep logits in range without stopping the gradient.
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
import math

import torch
from torch import float16, float64, tensor
from torch.nn import functional as F

from apex_lessons.exercises.examples import check_example

torch.set_num_threads(1)

# %% [markdown]
# ## 1. A table in two factors
#
# With a vocabulary of 128,000 and a width of 4,096 a table has half a billion numbers.
# A *factorised* table has two smaller ones: a narrow table [vocab, e] and a projection
# [e, d]. A token's vector is its narrow row times the projection.
#
# **Write** `factorised_lookup(ids, table, projection, table_std, projection_std)`.
#
# | argument | meaning |
# |---|---|
# | `ids` | integers, any shape `[...]` |
# | `table` | `[vocab, e]`, entries of mean 0 and standard deviation `table_std` |
# | `projection` | `[e, d]`, mean 0, standard deviation `projection_std`, independent |
# | result | `[..., d]` in the table's dtype: the product times **one number** |
#
# The number follows from `e`, `table_std` and `projection_std` alone, such that an
# entry of the result has variance 1 over random tables. Nothing is measured. Derive it
# on paper: an entry is a sum; of how many products, each with which variance?

# %% nbgrader={"grade_id": "factorised-lookup", "solution": true}
def factorised_lookup(ids, table, projection, table_std, projection_std):
    ### BEGIN SOLUTION
    # variance of one entry: e * table_std^2 * projection_std^2
    e = table.shape[1]
    scale = 1 / (math.sqrt(e) * table_std * projection_std)
    return table[ids] @ projection * scale
    ### END SOLUTION


# %% nbgrader={"grade_id": "factorised-lookup-1", "grade": true, "points": 2}
# Two tokens, e = 2, d = 3.
check_example(
    factorised_lookup,
    {"ids": tensor([1, 0]), "table": tensor([[0.04, 0.12], [-0.08, 0.04]]),
     "projection": tensor([[0.1, 0.2, -0.3], [0.3, 0.1, 0.2]]), "table_std": 0.08,
     "projection_std": 0.2},
    wanted=tensor([[0.17678, -0.53033, 1.4142], [1.7678, 0.88388, 0.53033]]),
    hints={
        -0.057981: "This is the product times √d. Where do your standard deviations "
                   "come in?",
        -1.2079: "You take the root of d. How many products does one entry add up?",
        -2.0922: "One entry is a sum, so its variance is larger than one product's.",
        -65.381: "You divide by the variance, not by its root.",
        -0.29588: "The projection is random too; its standard deviation is missing.",
    },
)

# %% nbgrader={"grade_id": "factorised-lookup-2", "grade": true, "points": 1}
# Ids of shape [2, 1], and a table in float64.
check_example(
    factorised_lookup,
    {"ids": tensor([[1], [0]]), "table": tensor([[2.0], [3.0]], dtype=float64),
     "projection": tensor([[0.5, -1.0]], dtype=float64), "table_std": 2.0,
     "projection_std": 0.5},
    wanted=tensor([[[1.5, -3.0]], [[1.0, -2.0]]], dtype=float64),
)

# %% [markdown]
# ## 2. Eight bits a number
#
# In a model that is served, the table is often stored as int8 with one scale a row.
# Reading a token is then `codes[id] * scale[id]`.
#
# **Write** `quantise_rows(table)`, which returns a tuple `(codes, scales)`.
#
# - `table`: float32 `[vocab, d]`.
# - `scales`: float32 `[vocab]`. A row's scale is its largest **magnitude** divided by
#   127. A row of zeros has scale 1.
# - `codes`: int8 `[vocab, d]`, each number divided by its row's scale and rounded to
#   the **nearest** whole number.

# %% nbgrader={"grade_id": "quantise-rows", "solution": true}
def quantise_rows(table):
    ### BEGIN SOLUTION
    largest = table.abs().amax(dim=-1)  # [vocab]
    scales = torch.where(largest == 0, 1.0, largest / 127)
    codes = torch.round(table / scales[:, None])  # [vocab, d]
    return codes.to(torch.int8), scales
    ### END SOLUTION


# %% nbgrader={"grade_id": "quantise-rows-1", "grade": true, "points": 2}
# A short row and a long one.
check_example(
    quantise_rows,
    {"table": tensor([[0.7, -0.2, 1.0], [3.0, 0.1, -2.0]])},
    wanted=[
        tensor([[89, -25, 127], [127, 4, -85]], dtype=torch.int8),
        tensor([0.007874, 0.023622]),
    ],
    hints={
        -185.52: "All rows have one scale. Each row has its own.",
        -181.1: "Your scales belong to columns.",
        -230.31: "The codes are cut off towards zero, not rounded.",
        -229.77: "The largest code is 127, not 128.",
        -141.14: "The scale is upside down: codes times scale gives the row.",
    },
)

# %% nbgrader={"grade_id": "quantise-rows-2", "grade": true, "points": 1}
# The largest magnitude is negative.
check_example(
    quantise_rows,
    {"table": tensor([[0.4, -1.0, 0.3]])},
    wanted=[tensor([[51, -127, 38]], dtype=torch.int8), tensor([0.007874])],
    hints={
        27.834: "The largest number is not the largest magnitude.",
    },
)

# %% nbgrader={"grade_id": "quantise-rows-3", "grade": true, "points": 1}
# A row of zeros, as a padding row is.
check_example(
    quantise_rows,
    {"table": tensor([[0.0, 0.0], [0.3, -1.0]])},
    wanted=[tensor([[0, 0], [38, -127]], dtype=torch.int8), tensor([1.0, 0.007874])],
    hints={
        45.401: "A row of zeros has scale 1 here, not 0.",
    },
)

# %% [markdown]
# ## 3. Who moves a tied table?
#
# A tied table gets one gradient, the sum of two: one because it was looked up, one
# because it made the logits. You separate them for a small model with a norm between:
#
# $$h_t = \mathrm{RMSNorm}(\sqrt d\;W[\mathrm{id}_t]),\qquad
# \mathrm{logits}_t = h_t W^\top$$
#
# RMSNorm has no weight and $\varepsilon = 10^{-6}$, inside the root. The loss is the
# **mean** cross-entropy (natural logarithm) over the positions that **have a target**.
#
# **Write** `gradient_shares(table, ids, targets)`.
#
# - `table`: `[vocab, d]`, float64; `ids`: integers `[seq]`, some may repeat;
#   `targets`: integers `[seq]`, -1 means: no target here. At least one is there.
# - Result: a tuple `(by_lookup, by_head)`, each `[vocab, d]`. They add up to the
#   gradient of the tied table.
#
# By hand or with autograd: both are right.

# %% nbgrader={"grade_id": "gradient-shares", "solution": true}
def gradient_shares(table, ids, targets):
    ### BEGIN SOLUTION
    # one copy for each use, so that autograd keeps them apart
    looked_up = table.detach().clone().requires_grad_()
    head = table.detach().clone().requires_grad_()
    x = math.sqrt(table.shape[1]) * looked_up[ids]  # [seq, d]
    hidden = x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + 1e-6)
    loss = F.cross_entropy(hidden @ head.T, targets, ignore_index=-1)
    return torch.autograd.grad(loss, (looked_up, head))
    ### END SOLUTION


# %% nbgrader={"grade_id": "gradient-shares-1", "grade": true, "points": 1}
# One position.
check_example(
    gradient_shares,
    {"table": tensor([[1.0, 0.5], [-0.5, 1.0], [0.3, -0.8]], dtype=float64),
     "ids": tensor([1]), "targets": tensor([0])},
    wanted=[
        tensor([[0.0, 0.0], [-1.0645, -0.53227], [0.0, 0.0]], dtype=float64),
        tensor(
            [[0.5298, -1.0596], [-0.49894, 0.99787],
             [-0.030867, 0.061733]], dtype=float64),
    ],
    hints={
        2.036: "The two parts have changed places: the look-up's comes first.",
        3.6606: "Both parts are the whole gradient. Make a copy for each use.",
        1.6601: "The norm between look-up and head is missing.",
    },
)

# %% nbgrader={"grade_id": "gradient-shares-2", "grade": true, "points": 2}
# Token 1 occurs twice.
check_example(
    gradient_shares,
    {"table": tensor([[1.0, 0.5], [-0.5, 1.0], [0.3, -0.8]], dtype=float64),
     "ids": tensor([1, 2, 1]), "targets": tensor([0, 0, 2])},
    wanted=[
        tensor([[0.0, 0.0], [-0.25433, -0.12716], [-0.4667, -0.17501]], dtype=float64),
        tensor(
            [[0.0087225, 0.071663], [-0.32482, 0.64444],
             [0.3161, -0.71611]], dtype=float64),
    ],
    hints={
        -2.4511: "This belongs to the sum of the losses; wanted is their mean.",
        -1.2843: "Where token 1 is read twice, only the last place counted.",
    },
)

# %% nbgrader={"grade_id": "gradient-shares-3", "grade": true, "points": 2}
# The middle position has no target.
check_example(
    gradient_shares,
    {"table": tensor([[1.0, 0.5], [-0.5, 1.0], [0.3, -0.8]], dtype=float64),
     "ids": tensor([1, 2, 1]), "targets": tensor([0, -1, 2])},
    wanted=[
        tensor([[0.0, 0.0], [-0.38149, -0.19075], [0.0, 0.0]], dtype=float64),
        tensor(
            [[0.21358, -0.42715], [-0.49894, 0.99787],
             [0.28536, -0.57072]], dtype=float64),
    ],
    hints={
        -0.091674: "You divide by three positions; two have a target.",
        0.11347: "-1 was taken for the last row. It means: no target.",
    },
)

# %% [markdown]
# ## 4. Logits with a soft cap
#
# T5 divides the logits of its tied head by $\sqrt d$. Gemma 2 keeps logits in range
# with $c \tanh(z / c)$. Put the two together, for a model that runs in float16.
#
# **Write** `capped_logits(hidden, table, cap)`.
#
# - `hidden`: `[..., d]`, `table`: `[vocab, d]`, both float32 or both float16.
# - First the logits, the product divided by $\sqrt d$; then the soft cap.
# - Everything is computed in **float32**, the product too; the result is float32
#   `[..., vocab]` for both dtypes.

# %% nbgrader={"grade_id": "capped-logits", "solution": true}
def capped_logits(hidden, table, cap):
    ### BEGIN SOLUTION
    logits = hidden.float() @ table.float().T / math.sqrt(table.shape[1])
    return cap * torch.tanh(logits / cap)
    ### END SOLUTION


# %% nbgrader={"grade_id": "capped-logits-1", "grade": true, "points": 2}
# Two tokens, cap 5.
check_example(
    capped_logits,
    {"hidden": tensor([[2.0, -1.0, 4.0, 0.5]]),
     "table": tensor([[1.0, 0.5, 2.0, 3.0], [-1.0, 2.0, 0.5, 1.0]]), "cap": 5.0},
    wanted=tensor([[4.0025, -0.74443]]),
    hints={
        3.0136: "The logits are cut off at the cap. A soft cap uses tanh.",
        4.023: "The tanh must see the logit divided by the cap.",
        1.6211: "√d comes before the cap, not after it.",
        3.2421: "The division by √d is missing.",
        0.49447: "Multiply by the cap after the tanh.",
    },
)

# %% nbgrader={"grade_id": "capped-logits-2", "grade": true, "points": 2}
# float16 in, float32 out.
check_example(
    capped_logits,
    {"hidden": tensor([[1.7, 3.9]], dtype=float16), "cap": 30.0,
     "table": tensor([[-2.7, 3.3], [-4.2, 1.6]], dtype=float16)},
    wanted=tensor([[5.7851, -0.63658]]),
    hints={
        3.3892: "The product was rounded to float16 on the way.",
    },
)

# %% [markdown]
# ## 5. In your own words
#
# A team serves a model with a **tied** table of 128,000 rows and stores it as in task
# 2. The text it writes gets slightly worse. One colleague says: "That is the look-up:
# each input vector now has an error." Another says: "That is the head."
#
# Which use is hurt more, and why? Say (a) what the rounding error of a row does to the
# input vector of a token, after the first norm; (b) what it does to the logits, and
# which comparison it can turn round; (c) one measurement with your functions from above
# that would decide; (d) a way out, with its price. About 150 words.

# %% [markdown] nbgrader={"grade_id": "written-int8", "grade": true, "solution": true}
# (a) Each number of a row is off by at most half a step, 1/254 of the row's largest
# magnitude. The norm divides by the row's size, so the relative error stays: for normal
# numbers about one per cent of the vector's length, mostly noise, and the same each
# time the token is read. (b) A logit is a sum of d products. The errors of a row add up
# with random signs, so they grow with the root of d, and each row has its own: two
# tokens whose logits are close can change places. Every step compares 128,000 rows,
# while a look-up reads one. (c) Replace the table in one use at a time by `codes *
# scales`, keep the other exact, and compare the loss, or count how often the best token
# changes. (d) Keep the head in 16 bits and only the look-up in eight (no longer one
# tensor: the memory of the head comes back), or use smaller groups than a row (more
# scales to store).
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) the error is bounded by half a step of the row, relative to the row;
#   the norm leaves the relative error as it is.
# - 1 point: (b) the head compares all rows, each with its own error, and close logits
#   can change places.
# - 1 point: (c) one use exact, the other quantised; a loss or a count of changed best
#   tokens.
# - 1 point: (d) a way out **and** its price in memory or time.
#
# No points for "int8 is less precise" alone. Full points for the opposite conclusion if
# the measurement in (c) would really decide.
# ### END MARK SCHEME

# %% [markdown]
# **Before you hand in:** restart the kernel, run all cells, save. A check that is not
# passed stops the run there; that costs nothing, the others are still graded.
