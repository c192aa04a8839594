# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Assignment: Longer texts
#
# A new rule, a folded temperature, two investigations. Page 04 (YaRN) decided which
# pairs must slow down. Here you build a rule that nobody has published from its
# specification alone, move a factor to where it costs nothing, and find out what others
# did from what they left behind.
#
# **Goals.** After this assignment you can
#
# - turn a written specification into frequencies, with its units;
# - say where the temperature may stand, and where it may not;
# - read factor and betas out of a list of frequencies;
# - find the faults of a `rope_scaling` block.
#
# **Time.** 100 minutes. **Points.** 20: four programs with 16, a written question with
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
from torch import float64, tensor

from apex_lessons import rope, yarn
from apex_lessons.exercises.examples import check_example

torch.set_num_threads(1)

# %% [markdown]
# ## 1. A rule from its specification
#
# > **Logarithmic ramp.** A pair with frequency $f$ makes $r = L f / 2\pi$ turns in the
# > trained length $L$. Its share is
# >
# > $$w = \frac{\ln(\beta_\mathrm{fast} / r)}{\ln(\beta_\mathrm{fast} /
# > \beta_\mathrm{slow})},$$
# >
# > cut off below at 0 and above at 1. Its frequency becomes $f' = f \cdot s^{-w}$ with
# > the factor $s$. Nothing is rounded, and there is no temperature.
#
# So a pair halfway up the ramp is divided by the *root* of the factor. This is not
# YaRN, and no library has it.
#
# **Write** `log_ramp(head_dim, base, factor, trained_length, beta_fast, beta_slow)`.
#
# - $f_i$ = base^(-2i/head_dim); `beta_fast` > `beta_slow` > 0; `factor` ≥ 1.
# - Result: float64 `[head_dim/2]`, the frequencies $f'$ in radians per token.

# %% nbgrader={"grade_id": "log-ramp", "solution": true}
def log_ramp(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    ### BEGIN SOLUTION
    f = rope.inverse_frequencies(head_dim, base)  # [head_dim/2]
    r = trained_length * f / (2 * math.pi)
    w = torch.log(beta_fast / r) / math.log(beta_fast / beta_slow)
    return f / factor ** w.clamp(0.0, 1.0)
    ### END SOLUTION


# %% nbgrader={"grade_id": "log-ramp-1", "grade": true, "points": 2}
# Two pairs are kept, two are divided by 4.
check_example(
    log_ramp,
    {"head_dim": 8, "base": 10_000.0, "factor": 4.0, "trained_length": 20,
     "beta_fast": 1.05, "beta_slow": 1.0},
    wanted=tensor([1.0, 0.025, 0.0025, 0.00025], dtype=float64),
    hints={
        0.082907: "The ramp runs backwards: fast pairs are kept.",
        2.6197e+13: "w leaves the range from 0 to 1.",
        0.49605: "r counts turns: L f is an angle, and a turn has 2π.",
        0.48813: "The betas are turns, not wavelengths.",
        0.5057: "The factor belongs to the frequency, not to the base.",
    },
)

# %% nbgrader={"grade_id": "log-ramp-2", "grade": true, "points": 3}
# The pairs between are on the ramp.
check_example(
    log_ramp,
    {"head_dim": 8, "base": 10_000.0, "factor": 4.0, "trained_length": 1000,
     "beta_fast": 32.0, "beta_slow": 1.0},
    wanted=tensor([1.0, 0.075625, 0.0030107, 0.00025], dtype=float64),
    hints={
        0.50134: "This is a linear blend of two frequencies, as in YaRN.",
        0.51733: "w is linear in the logarithm of r, not in r.",
        0.51145: "The divisor is factor to the power w, not 1 + w (factor - 1).",
    },
)

# %% [markdown]
# ## 2. Fold the temperature into the weights
#
# YaRN multiplies cos and sin by an attention factor, so that every score carries it
# **twice**, once from q and once from k. A program for phones has plain tables that it
# cannot change. Put the factor into W_q instead, and leave W_k alone.
#
# **Write** `fold_factor(weight_q, n_heads, rotary_dim, attention_factor)`.
#
# - `weight_q`: `[n_heads·head_dim, d_model]`, head after head, used as
#   `x @ weight_q.T`. There is no norm between W_q and the rotation.
# - In each head the first `rotary_dim` dimensions turn; the others pass through and
#   meet no cos and no sin.
# - Result: a new matrix of the same shape and dtype. With plain tables (factor 1) the
#   scores are those of the old matrix with YaRN's tables.

# %% nbgrader={"grade_id": "fold-factor", "solution": true}
def fold_factor(weight_q, n_heads, rotary_dim, attention_factor):
    ### BEGIN SOLUTION
    head_dim = len(weight_q) // n_heads
    turns = torch.arange(len(weight_q)) % head_dim < rotary_dim  # [n_heads * head_dim]
    scale = torch.where(turns, attention_factor**2, 1.0).to(weight_q.dtype)
    return weight_q * scale[:, None]
    ### END SOLUTION


# %% nbgrader={"grade_id": "fold-factor-1", "grade": true, "points": 1}
# One head, all of it turns.
check_example(
    fold_factor,
    {"weight_q": tensor([[1.0, -2.0], [3.0, 5.0]]), "n_heads": 1, "rotary_dim": 2,
     "attention_factor": 1.2},
    wanted=tensor([[1.44, -2.88], [4.32, 7.2]]),
    hints={
        -5.8387: "A score has the factor from q and from k.",
        -3.3789: "You divide. The factor makes scores larger.",
        -10.089: "The square of the factor, not its fourth power.",
    },
)

# %% nbgrader={"grade_id": "fold-factor-2", "grade": true, "points": 1}
# Two heads of two.
check_example(
    fold_factor,
    {"weight_q": tensor([[1.0], [3.0], [5.0], [-2.0]]), "n_heads": 2, "rotary_dim": 2,
     "attention_factor": 1.2},
    wanted=tensor([[1.44], [4.32], [7.2], [-2.88]]),
    hints={
        -4.6624: "Only the first head is scaled.",
    },
)

# %% nbgrader={"grade_id": "fold-factor-3", "grade": true, "points": 1}
# One head of six, of which the first four turn.
check_example(
    fold_factor,
    {"weight_q": tensor([[1.0], [3.0], [5.0], [-2.0], [4.0], [7.0]]), "n_heads": 1,
     "rotary_dim": 4, "attention_factor": 1.2},
    wanted=tensor([[1.44], [4.32], [7.2], [-2.88], [4.0], [7.0]]),
    hints={
        5.0472: "The last two rows meet no cos and no sin.",
        5.3588: "The first dimensions of a head turn, not the last.",
    },
)

# %% [markdown]
# ## 3. What did they set?
#
# You find a list of frequencies in a file, and a note: "YaRN, pair ramp, unrounded".
# The base and the trained length are known. Page 04, section 5, has the ramp: the share
# is a straight line in the pair's number $i$, 0 where a pair makes `beta_fast` turns in
# the trained length, 1 where it makes `beta_slow`; these two places may lie *between*
# pairs. A pair with share $w$ has the frequency $(1 - w) f + w f / s$.
#
# **Write** `recover_settings(inv_freq, base, trained_length)`.
#
# - `inv_freq`: float64 `[head_dim/2]`. At least two pairs are on the ramp (share
#   strictly between 0 and 1); the first pair has share 0, the last one share 1.
# - Result: a list of three floats `[factor, beta_fast, beta_slow]`, right to 1e-6.

# %% nbgrader={"grade_id": "recover-settings", "solution": true}
def recover_settings(inv_freq, base, trained_length):
    ### BEGIN SOLUTION
    head_dim = 2 * len(inv_freq)
    f = rope.inverse_frequencies(head_dim, base)
    factor = (f[-1] / inv_freq[-1]).item()
    w = (1 - inv_freq / f) / (1 - 1 / factor)  # the share of each pair
    i = [n for n, share in enumerate(w.tolist()) if 1e-9 < share < 1 - 1e-9]
    slope = (w[i[-1]] - w[i[0]]).item() / (i[-1] - i[0])
    low = i[0] - w[i[0]].item() / slope
    ends = low, low + 1 / slope
    betas = [trained_length / (2 * math.pi) * base ** (-2 * n / head_dim) for n in ends]
    return [factor, *betas]
    ### END SOLUTION


# %% nbgrader={"grade_id": "recover-settings-1", "grade": true, "points": 1}
# YaRN with its usual betas.
check_example(
    recover_settings,
    {"inv_freq": yarn.yarn(64, base=10_000.0, factor=8.0, trained_length=4096,
                           beta_fast=32.0, beta_slow=1.0, truncate=False).inv_freq,
     "base": 10_000.0, "trained_length": 4096},
    wanted=[8.0, 32.0, 1.0],
    hints={
        -27.773: "The betas have changed places.",
        -14.239: "The factor is upside down.",
        -11.794: "The ends of the ramp lie between pairs: prolong the line.",
        -81.06: "head_dim is twice the number of pairs.",
        -85.569: "A turn has 2π radians.",
        -4104.0: "These are wavelengths. A beta is a number of turns.",
    },
)

# %% nbgrader={"grade_id": "recover-settings-2", "grade": true, "points": 3}
# Other betas.
check_example(
    recover_settings,
    {"inv_freq": yarn.yarn(64, base=10_000.0, factor=8.0, trained_length=4096,
                           beta_fast=20.0, beta_slow=2.5, truncate=False).inv_freq,
     "base": 10_000.0, "trained_length": 4096},
    wanted=[8.0, 20.0, 2.5],
    hints={
        -9.9843: "The betas are not always 32 and 1. Read them off.",
        -6.2972: "The ends of the ramp lie between pairs: prolong the line.",
    },
)

# %% [markdown]
# ## 4. What is wrong with this block?
#
# **Write** `config_faults(config)`: the names of all broken rules, as a **sorted list**
# of strings; `[]` if there is none.
#
# `config` is a dict with `max_position_embeddings` and perhaps `rope_scaling` (a dict,
# or None). Its method stands under `rope_type`, or, in older files, under `type`. Only
# blocks of the method `"yarn"` are held to these rules; all of them have a `factor`.
#
# | name | broken when |
# |---|---|
# | `no-trained-length` | `original_max_position_embeddings` is not there |
# | `lengths-disagree` | it is there, and `max_position_embeddings` ≠ factor · it |
# | `betas-swapped` | `beta_fast` < `beta_slow`; an absent one is 32 or 1 |
# | `one-mscale` | one of `mscale`, `mscale_all_dim` is there, the other is not |
# | `factor-below-one` | `factor` < 1 |

# %% nbgrader={"grade_id": "config-faults", "solution": true}
def config_faults(config):
    ### BEGIN SOLUTION
    block = config.get("rope_scaling") or {}
    if "yarn" not in (block.get("rope_type"), block.get("type")):
        return []
    faults, factor = [], block["factor"]
    trained = block.get("original_max_position_embeddings")
    if trained is None:
        faults.append("no-trained-length")
    elif config["max_position_embeddings"] != factor * trained:
        faults.append("lengths-disagree")
    if block.get("beta_fast", 32) < block.get("beta_slow", 1):
        faults.append("betas-swapped")
    if len({"mscale", "mscale_all_dim"} & block.keys()) == 1:
        faults.append("one-mscale")
    if factor < 1:
        faults.append("factor-below-one")
    return sorted(faults)
    ### END SOLUTION


# %% nbgrader={"grade_id": "config-faults-1", "grade": true, "points": 1}
# A sound block: linear scaling needs no trained length.
check_example(
    config_faults,
    {"config": {"max_position_embeddings": 16384,
                "rope_scaling": {"rope_type": "linear", "factor": 4.0,
                "beta_fast": 1.0, "beta_slow": 1.0}}},
    wanted=[],
    hints={
        "no-trained-length": "Only blocks of YaRN are held to these rules.",
    },
)

# %% nbgrader={"grade_id": "config-faults-2", "grade": true, "points": 1}
# A sound block: equal betas are a step, and both scales are there.
check_example(
    config_faults,
    {"config": {"max_position_embeddings": 16384,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 1.0,
                "mscale": 1.0, "mscale_all_dim": 1.0,
                "original_max_position_embeddings": 4096}}},
    wanted=[],
    hints={
        "betas-swapped": "Equal betas are no fault.",
    },
)

# %% nbgrader={"grade_id": "config-faults-3", "grade": true, "points": 1}
# One fault: an absent beta has its default.
check_example(
    config_faults,
    {"config": {"max_position_embeddings": 16384,
                "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0.5,
                "original_max_position_embeddings": 4096}}},
    wanted=["betas-swapped"],
    hints={
        "": "A beta that is not there has its default, 32 or 1.",
        "betas-swapped one-mscale": "Neither mscale is there, and that is no fault.",
    },
)

# %% nbgrader={"grade_id": "config-faults-4", "grade": true, "points": 1}
# Three faults, and the older key.
check_example(
    config_faults,
    {"config": {"max_position_embeddings": 16384, "rope_scaling": {"type": "yarn",
                "factor": 0.5, "mscale": 1.0}}},
    wanted=["factor-below-one", "no-trained-length", "one-mscale"],
    hints={
        "": "The method may stand under `type`.",
        "no-trained-length": "All faults are wanted, not the first one alone.",
        "no-trained-length one-mscale factor-below-one": "The list is not sorted.",
    },
)

# %% [markdown]
# ## 5. In your own words
#
# A model norms each head's q and k (QK-norm) between W_q, W_k and the rotation. The
# team folds YaRN's factor into W_q with your `fold_factor`, and the long texts come out
# as badly as before.
#
# (a) Why does the folded factor do nothing? (b) Name two places where it would work,
# and say for each what must be multiplied and by which power. (c) The team also serves
# short texts with the same weights. What does the factor do there, and what would you
# measure before you decide? (d) The cache holds keys that were made before the change.
# Are they still good? About 150 words.

# %% [markdown] nbgrader={"grade_id": "written-place", "grade": true, "solution": true}
# (a) The norm divides by the size of what W_q gives: a factor before it cancels, up to
# epsilon, where the whole head turns; where only a part does, the norm makes the rest
# smaller instead. (b) On the weight of the q-norm, on its rotary dimensions, with the
# square of the factor. Or on the softmax scale, with the square, if the whole head
# turns. Or on cos and sin, each with the first power. (c) The factor sharpens attention
# at every length, so short texts change as well: compare loss and a few tasks at short
# length with and without it, next to the long ones. (d) With the factor on q's side
# (weight of the q-norm, or softmax scale) keys do not change, so the cache is good. If
# cos and sin carry it, cached keys lack it, and mixing both kinds is wrong. (If the
# frequencies change as well, the cache is void in any case.)
#
# ### BEGIN MARK SCHEME
# - 1 point: (a) the norm divides the factor away.
# - 1 point: (b) two places, each with its power (square on one side or on the scores,
#   first power on cos and sin).
# - 1 point: (c) sharper at all lengths, and a measurement at short length.
# - 1 point: (d) depends on the side: good if only q or the scores changed, not good if
#   cos and sin did.
# ### END MARK SCHEME

# %% [markdown]
# **Before you hand in:** restart the kernel, run all cells, save. A check that is not
# passed stops the run there; that costs nothing, the others are still graded.
