# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Capstone: repair, build, judge
#
# Three programs are broken. Each has several faults of kinds that were found in
# released software, and none of the faults raises an exception. You repair them, then
# you build a token's whole path, and at the end you judge three claims.
#
# **Goals.** After this assignment you can
#
# - find faults that raise no exception, one example at a time;
# - put embedding, norm and rotation together from a config;
# - weigh a claim about a model with a number of your own.
#
# **Time.** 120 minutes. **Points.** 20: four programs with 16, a written question with
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

from apex_lessons import norm, rope, yarn
from apex_lessons.exercises.examples import check_example

torch.set_num_threads(1)

# %% [markdown]
# ## 1. Repair: add, then norm
#
# Between two layers a model adds the layer's output x to the residual stream and norms
# the sum for the next layer. This is how it was written:

# %% nbgrader={"grade_id": "broken-add-and-norm", "locked": true}
def broken_add_and_norm(residual, x, weight, eps):
    residual += x
    rms = x.pow(2).mean(dim=-1, keepdim=True).sqrt() + eps
    return residual, x / rms * (1 + weight)


# %% [markdown]
# **Write** `add_and_norm(residual, x, weight, eps)` as it should be.
#
# - `residual`, `x`: `[..., d]`, both float32 or both float16; `weight`: `[d]`, float32
#   or float16, stored as scale minus 1 (Gemma).
# - Result: a tuple `(stream, normed)`, both in the dtype of residual. `stream` is the
#   sum, a **new** tensor. `normed` is the RMSNorm of **stream** (after it was rounded
#   to its dtype), `eps` inside the root, times 1 + weight; worked out in float32 and
#   rounded once.
# - The caller's tensors stay as they are.

# %% nbgrader={"grade_id": "add-and-norm", "solution": true}
def add_and_norm(residual, x, weight, eps):
    ### BEGIN SOLUTION
    stream = residual + x
    normed = norm.rms_norm(stream, weight.float(), eps, weight_offset=1.0)
    return stream, normed
    ### END SOLUTION


# %% nbgrader={"grade_id": "add-and-norm-1", "grade": true, "points": 1}
# The stream [1, 2] and an update.
check_example(
    add_and_norm,
    {"residual": tensor([[1.0, 2.0]]), "x": tensor([[2.0, -4.0]]),
     "weight": tensor([0.5, -0.25]), "eps": 0.01},
    wanted=[tensor([[3.0, -2.0]]), tensor([[1.7637, -0.5879]])],
    hints={
        2.1343: "The norm reads the sum, not x.",
        1.0957: "Epsilon stands inside the root, beside the mean square.",
        -1.6538: "The first result is the sum.",
        1.7431: "The weight is stored as scale minus 1.",
    },
)

# %% nbgrader={"grade_id": "add-and-norm-2", "grade": true, "points": 1}
# Two sequences. The tensors that were given are compared afterwards.
check_example(
    add_and_norm,
    {"residual": tensor([[[1.0, 2.0]], [[0.0, 3.0]]]),
     "x": tensor([[[1.0, 1.0]], [[4.0, 0.0]]]), "weight": tensor([0.0, 1.0]),
     "eps": 0.01},
    wanted=[
        tensor([[[2.0, 3.0]], [[4.0, 3.0]]]),
        tensor([[[0.78386, 2.3516]], [[1.1309, 1.6964]]]),
    ],
    hints={
        -2.8302: "The norm reads the sum, not x.",
    },
)

# %% nbgrader={"grade_id": "add-and-norm-3", "grade": true, "points": 1}
# float16: squares above 65,504.
check_example(
    add_and_norm,
    {"residual": tensor([[300.0, -300.0]], dtype=float16),
     "x": tensor([[100.0, 50.0]], dtype=float16), "weight": tensor([0.0, 0.0]),
     "eps": 0.01},
    wanted=[
        tensor([[400.0, -250.0]], dtype=float16),
        tensor([[1.1992, -0.74951]], dtype=float16),
    ],
    hints={
        320.16: "The squares overflow: widen the sum to float32 first.",
    },
)

# %% nbgrader={"grade_id": "add-and-norm-4", "grade": true, "points": 1}
# A float16 weight beside a float32 stream.
check_example(
    add_and_norm,
    {"residual": tensor([[1.0, -2.0]]), "x": tensor([[0.5, 0.5]]),
     "weight": tensor([0.0004, -0.0004], dtype=float16), "eps": 0.01},
    wanted=[tensor([[1.5, -1.5]]), tensor([[0.99818, -0.99739]])],
    hints={
        1.0988: "1 + weight was rounded to float16: widen the weight first.",
    },
)

# %% [markdown]
# ## 2. Repair: one more token
#
# A decoder keeps the keys of earlier tokens, already turned, and gets the q and k of
# the new ones, not yet turned. This is how its scores were computed:

# %% nbgrader={"grade_id": "broken-decode-scores", "locked": true}
def broken_decode_scores(q, k, cached_k, start, inv_freq):
    def turn(x):
        angle = torch.arange(x.shape[-2]).to(x.dtype)[:, None] * inv_freq.to(x.dtype)
        x0, x1 = x[..., 0::2], x[..., 1::2]
        return torch.cat((x0 * angle.cos() - x1 * angle.sin(),
                          x1 * angle.cos() + x0 * angle.sin()), dim=-1)
    return turn(q) @ turn(torch.cat((cached_k, k), dim=-2)).mT / q.shape[-1] ** 0.5


# %% [markdown]
# **Write** `decode_scores(q, k, cached_k, start, inv_freq)` as it should be.
#
# - `q`, `k`: float32 `[batch, heads, new, head_dim]`, **half** layout, not turned. The
#   new tokens stand at the positions start, start + 1, ...
# - `cached_k`: float32 `[batch, heads, cached, head_dim]`, already turned. It may be
#   empty, and it may be shorter than `start`, when old keys were dropped.
# - `inv_freq`: float64 `[head_dim/2]`. Angles in float64: positions go up to a million.
# - Result: float32 `[batch, heads, new, cached + new]`, the scores of every new query
#   with every key, cached ones first, divided by √head_dim. No mask.

# %% nbgrader={"grade_id": "decode-scores", "solution": true}
def decode_scores(q, k, cached_k, start, inv_freq):
    ### BEGIN SOLUTION
    positions = start + torch.arange(q.shape[-2])
    cos, sin = rope.rotary_tables(positions, inv_freq)
    q = rope.apply_rotary(q, cos, sin, layout="half")
    k = rope.apply_rotary(k, cos, sin, layout="half")
    keys = torch.cat((cached_k, k), dim=-2)  # [batch, heads, cached + new, head_dim]
    return q @ keys.mT / math.sqrt(q.shape[-1])
    ### END SOLUTION


# %% nbgrader={"grade_id": "decode-scores-1", "grade": true, "points": 1}
# Two tokens, nothing cached.
check_example(
    decode_scores,
    {"q": tensor([[[[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 1.0, 0.0]]]]),
     "k": tensor([[[[0.0, 2.0, 1.0, 0.0], [1.0, 0.0, 1.0, 3.0]]]]),
     "cached_k": torch.zeros(1, 1, 0, 4), "start": 0,
     "inv_freq": tensor([1.0, 0.1], dtype=float64)},
    wanted=tensor([[[[1.0, 1.2312], [1.2652, 0.5]]]]),
    hints={
        -1.2158: "You pair neighbours. This model pairs i with i + head_dim/2.",
        -3.1027: "The division by √head_dim is missing.",
    },
)

# %% nbgrader={"grade_id": "decode-scores-2", "grade": true, "points": 1}
# A third token after two cached keys.
check_example(
    decode_scores,
    {"q": tensor([[[[1.0, 0.0, 0.0, 0.0]]]]), "k": tensor([[[[0.0, 2.0, 1.0, 0.0]]]]),
     "cached_k": tensor([[[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]]]), "start": 2,
     "inv_freq": tensor([1.0, 0.1], dtype=float64)},
    wanted=tensor([[[[-0.20807, 0.45465, 0.0]]]]),
    hints={
        0.27015: "The new token is turned as if it were the first.",
        -0.28751: "The cached keys were turned a second time.",
        -0.75172: "q is at its place, the new k is at 0.",
    },
)

# %% nbgrader={"grade_id": "decode-scores-3", "grade": true, "points": 1}
# The token at 7; the cache holds the last two keys only.
check_example(
    decode_scores,
    {"q": tensor([[[[1.0, 0.0, 0.0, 0.0]]]]), "k": tensor([[[[0.0, 2.0, 1.0, 0.0]]]]),
     "cached_k": tensor([[[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]]]), "start": 7,
     "inv_freq": tensor([1.0, 0.1], dtype=float64)},
    wanted=tensor([[[[0.37695, 0.32849, 0.0]]]]),
    hints={
        -0.30162: "You count from the length of the cache. Use `start`.",
        0.27015: "The new token is turned as if it were the first.",
    },
)

# %% nbgrader={"grade_id": "decode-scores-4", "grade": true, "points": 1}
# Near a million.
check_example(
    decode_scores,
    {"q": tensor([[[[0.0, 1.0, 0.0, 0.0]]]]), "k": tensor([[[[0.0, 2.0, 1.0, 0.0]]]]),
     "cached_k": tensor([[[[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]]]),
     "start": 999_983, "inv_freq": tensor([1.0, 0.1], dtype=float64)},
    wanted=tensor([[[[0.0, 0.49321, 1.0]]]]),
    hints={
        -1.1954: "The angle was rounded to float32 before its cosine.",
    },
)

# %% [markdown]
# ## 3. Repair: which temperature, and where
#
# YaRN's temperature may stand on cos and sin, or on the scores before the softmax.
# DeepSeek's models use both places. This is how somebody read their config:

# %% nbgrader={"grade_id": "broken-temperatures", "locked": true}
def broken_temperatures(block, head_dim):
    on_tables = 0.1 * math.log(block["factor"]) + 1
    if "mscale" in block:
        on_tables = 0.1 * block["mscale"] * math.log(block["factor"]) + 1
    return [on_tables, head_dim**-0.5 * on_tables**2]


# %% [markdown]
# **Write** `temperatures(block, head_dim)` as it should be: a list of two floats,
# `[on_tables, on_scores]`. With $g(m) = 0.1\,m \ln(\text{factor}) + 1$:
#
# | | value |
# |---|---|
# | `on_tables` | `attention_factor`, if the block has it; |
# | | else g(mscale) / g(mscale_all_dim), if it has both; |
# | | else g(1) |
# | `on_scores` | 1/√head_dim, |
# | | times g(mscale_all_dim)², if the block has mscale_all_dim |
#
# `factor` is always there and at least 1; no value is None.

# %% nbgrader={"grade_id": "temperatures", "solution": true}
def temperatures(block, head_dim):
    ### BEGIN SOLUTION
    def g(m):
        return 0.1 * m * math.log(block["factor"]) + 1
    on_scores = 1 / math.sqrt(head_dim)
    if "mscale_all_dim" in block:
        on_scores *= g(block["mscale_all_dim"]) ** 2
    if "attention_factor" in block:
        return [block["attention_factor"], on_scores]
    if {"mscale", "mscale_all_dim"} <= block.keys():
        return [g(block["mscale"]) / g(block["mscale_all_dim"]), on_scores]
    return [g(1), on_scores]
    ### END SOLUTION


# %% nbgrader={"grade_id": "temperatures-1", "grade": true, "points": 1}
# Plain YaRN.
check_example(
    temperatures,
    {"block": {"factor": 40.0}, "head_dim": 64},
    wanted=[1.3689, 0.125],
    hints={
        0.64214: "Without mscale_all_dim the scores get 1/√head_dim and no more.",
    },
)

# %% nbgrader={"grade_id": "temperatures-2", "grade": true, "points": 1}
# DeepSeek-V2-Lite has 0.707 twice; here the two differ.
check_example(
    temperatures,
    {"block": {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.707},
     "head_dim": 192},
    wanted=[1.0857, 0.11472],
    hints={
        0.55659: "The square of g(mscale_all_dim) is missing on the scores.",
        0.54875: "On the scores g(mscale_all_dim) counts squared.",
        0.53034: "The scores take mscale_all_dim, not mscale.",
        0.69187: "With both scales the tables take their ratio.",
    },
)

# %% nbgrader={"grade_id": "temperatures-3", "grade": true, "points": 1}
# A factor that is given.
check_example(
    temperatures,
    {"block": {"factor": 40.0, "attention_factor": 1.0}, "head_dim": 64},
    wanted=[1.0, 0.125],
    hints={
        0.68759: "The block gives its attention_factor.",
    },
)

# %% [markdown]
# ## 4. One token's whole path
#
# id → embedding → norm → q and k → turned to its position.
#
# **Write** `turn_token(token, position, weights, config)`: a list `[q, k]`, float32
# `[n_heads, head_dim]` and `[n_kv_heads, head_dim]`.
#
# `weights`: float32 tensors `table [vocab, d]`, `norm [d]`,
# `q [n_heads·head_dim, d]` and `k [n_kv_heads·head_dim, d]`, head after head, used as
# `W @ x`.
#
# | `config[...]` | meaning |
# |---|---|
# | `n_heads`, `n_kv_heads`, `head_dim` | sizes |
# | `scale_embedding` | True: the embedding is multiplied by √d |
# | `norm_offset`, `eps` | RMSNorm multiplies by norm + norm_offset; eps in the root |
# | `base`, `layout` | frequencies; `"interleaved"` or `"half"` |
# | `yarn` | None, or a dict with `factor` and `trained_length`: YaRN as in |
# | | `apex_lessons.yarn.yarn` with its defaults, attention factor on cos and sin |

# %% nbgrader={"grade_id": "token-path", "solution": true}
def turn_token(token, position, weights, config):
    ### BEGIN SOLUTION
    x = weights["table"][token]  # [d]
    if config["scale_embedding"]:
        x = x * math.sqrt(len(x))
    x = norm.rms_norm(x, weights["norm"], config["eps"],
                      weight_offset=config["norm_offset"])
    scaling = config["yarn"] and yarn.yarn(
        config["head_dim"], base=config["base"], **config["yarn"])
    turn = rope.RotaryEmbedding(config["head_dim"], base=config["base"],
                                layout=config["layout"], scaling=scaling)
    q = (weights["q"] @ x).view(1, config["n_heads"], 1, -1)
    k = (weights["k"] @ x).view(1, config["n_kv_heads"], 1, -1)
    return [turned[0, :, 0] for turned in turn(q, k, torch.tensor([position]))]
    ### END SOLUTION


# %% nbgrader={"grade_id": "toy-path", "locked": true}
TOY = {"n_heads": 2, "n_kv_heads": 2, "head_dim": 4, "base": 100.0, "eps": 1e-5,
       "layout": "interleaved", "scale_embedding": False, "norm_offset": 0.0,
       "yarn": None}


def toy_weights(n_heads=2, n_kv_heads=2):
    """A table of two tokens and width 2; small whole numbers in the matrices."""
    def rows(heads):
        return (torch.arange(8.0 * heads) % 5 - 1).view(4 * heads, 2)
    return {"table": tensor([[0.03, -0.04], [0.02, 0.01]]), "norm": tensor([1.0, 0.5]),
            "q": rows(n_heads), "k": 2 - rows(n_kv_heads)}


# %% nbgrader={"grade_id": "token-path-1", "grade": true, "points": 1}
# The token 0 at position 3.
check_example(
    turn_token,
    {"token": 0, "position": 3, "weights": toy_weights(), "config": TOY},
    wanted=[
        tensor(
            [[0.87645, 0.15963, 3.127, 0.37752], [0.11927, 0.8367, -1.1849, 2.8772]]),
        tensor(
            [[-1.5138, -0.63792, -2.7552, 0.32726],
             [-0.75658, -1.315, 1.5567, -2.1725]]),
    ],
    hints={
        -3.0767: "The token stands at position 0.",
        -1.973: "k must be turned too.",
        -0.6744: "The rows come head after head: [heads, head_dim].",
    },
)

# %% nbgrader={"grade_id": "token-path-2", "grade": true, "points": 1}
# Half layout; two heads of q, one of k.
check_example(
    turn_token,
    {"token": 0, "position": 3, "weights": toy_weights(2, 1),
     "config": TOY | {"layout": "half", "n_kv_heads": 1}},
    wanted=[
        tensor(
            [[0.39938, -0.10263, -3.1872, -0.62152],
             [0.039756, -1.7232, 0.2789, 2.7107]]),
        tensor([[-1.0367, 0.47439, 2.7089, 1.3263]]),
    ],
    hints={
        -1.2316: "The config names the half layout.",
    },
)

# %% nbgrader={"grade_id": "token-path-3", "grade": true, "points": 1}
# A scaled embedding, a norm with an offset, and a large epsilon.
check_example(
    turn_token,
    {"token": 0, "position": 3, "weights": toy_weights(),
     "config": TOY | {"scale_embedding": True, "norm_offset": 1.0, "eps": 1e-3}},
    wanted=[
        tensor([[1.6223, 1.2175, 5.9047, 0.32521], [1.6223, 1.2175, -3.0656, 5.057]]),
        tensor(
            [[-1.6223, -1.2175, -5.9047, -0.32521],
             [-1.6223, -1.2175, 3.0656, -5.057]]),
    ],
    hints={
        -3.5556: "The embedding is not scaled.",
        -5.0283: "√d comes before the norm.",
        -1.0183: "The norm multiplies by norm + norm_offset.",
    },
)

# %% nbgrader={"grade_id": "token-path-4", "grade": true, "points": 2}
# YaRN.
check_example(
    turn_token,
    {"token": 0, "position": 3, "weights": toy_weights(),
     "config": TOY | {"yarn": {"factor": 16.0, "trained_length": 64}}},
    wanted=[
        tensor(
            [[1.1195, 0.20389, 4.0221, -0.082379],
             [0.15234, 1.0687, -0.98342, 3.8508]]),
        tensor(
            [[-1.9335, -0.81478, -3.4258, 0.90712],
             [-0.96635, -1.6796, 1.5797, -3.0261]]),
    ],
    hints={
        -1.2001: "The frequencies are not YaRN's.",
        0.11468: "The attention factor is missing.",
        -1.6849: "cos and sin carry the factor, so q and k both do.",
    },
)

# %% [markdown]
# ## 5. Three claims
#
# Somebody reviews a model with this config: width 4,096, vocabulary 128,000, head width
# 128, base 10,000, trained on 4,096 tokens, YaRN with factor 16, tied, 32 layers. The
# review says:
#
# 1. "Tying saves half of the model's parameters."
# 2. "All pairs of a head finish a turn within the trained length, so YaRN has nothing
#    to do."
# 3. "The attention factor is 1.28, so scores grow by 28 %."
#
# Judge each: true, false, or not enough is said. Support every verdict with a number
# that you computed, and with the one line that computes it. About 150 words.

# %% [markdown] nbgrader={"grade_id": "written-claims", "grade": true, "solution": true}
# 1. Tying saves one table: 128,000 × 4,096 = 524 million. Untied, the model has two
#    such tables and the rest, and one table is half of that only if the rest is empty.
#    Thirty-two layers are not empty, so false, whatever their sizes.
# 2. `(rope.wavelengths(rope.inverse_frequencies(128)) > 4096).sum()` gives 18 of 64
#    pairs that never finish a turn: false.
# 3. The factor is 0.1 ln 16 + 1 = 1.277 on cos and sin, so a score gets its square,
#    1.63: it grows by 63 %. False.
#
# ### BEGIN MARK SCHEME
# - 1 point: claim 1 false: one table, 524 million, is half of the untied model only if
#   the rest is empty (or: any sound lower bound for the layers).
# - 1 point: claim 2 false, with the number of pairs (18 of 64).
# - 1 point: claim 3 false, with the square (1.63).
# - 1 point: each number comes with a line that computes it and runs.
# ### END MARK SCHEME

# %% [markdown]
# **Before you hand in:** restart the kernel, run all cells, save. A check that is not
# passed stops the run there; that costs nothing, the others are still graded.
