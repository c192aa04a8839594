# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 01: Embedding scaling
#
# A model reads numbers, not words. This page follows a token from its id to a vector,
# and answers the question that almost everybody asks at this line of code:
#
# $$X = \text{Embed}(\text{tokens}) \times \sqrt{d}$$
#
# **But why multiply by the square root of d?** The answer has three parts, and you will
# measure each of them here.
#
# <details><summary>The short answer, if you cannot wait</summary>
# In many models one table is both input and output. As output its rows should be short,
# because a score is a sum of d products. As input its numbers should stand beside
# others of size about one. The two sizes differ by √d, so a factor √d stands between
# the two uses. In 2017 it also kept added positions from drowning the token. In a model
# with norms and rotary positions it decides how loud the token is, at the start, beside
# what the layers add to it; a norm right after it takes it away.
# </details>
#
# **Goals.** After this page you can
#
# - say what a lookup computes, and which rows of the table learn from it;
# - predict the size of a vector from the way the table was drawn;
# - say what $\sqrt d$ does, what it does not do, and which conventions are one
#   function;
# - explain what tying shares, how its gradients add, and what it saves;
# - predict the first loss of a model before it has learned anything.
#
# **Time.** 45 minutes.
#
# **Before you start.** You can multiply two matrices and you know what a standard
# deviation is. If you are not sure, [page 00](00-start-here.ipynb) has a two-minute
# check.

# %%
import math

import ipywidgets as widgets
import torch
from safetensors.torch import save
from torch import nn
from torch.nn import functional as F

torch.set_num_threads(1)

# %%
from apex_lessons import explorers
from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.exercises.embedding import (
    check_convert_table, check_one_hot_lookup, check_own_token_logit,
    check_scaled_embedding, check_tied_gradient)
from apex_lessons.figures import embedding as draw, png, show
from apex_lessons.models import apex1_config, published
from apex_lessons.models.apex1 import SIZES
from apex_lessons.models.trained_table import trained_table
from apex_lessons.norm import rms_norm

# %% [markdown]
# ## 1. From an id to a vector
#
# *You will be able to say what a lookup computes, in two ways.*
#
# A tokenizer cuts text into tokens and gives each one a whole number, its **id**. An id
# has no size and no direction: token 17 is not larger than token 16 in any useful
# sense. So the model keeps a **table** with one row for each id. The row is the token's
# vector.
#
# The worked example of the reference (section 2.4) has three tokens and $d = 4$:

# %%
names = ("the", "cat", "sat")
table = torch.tensor([[0.01, -0.03, 0.02, 0.01],    # 0: the
                      [-0.02, 0.04, -0.01, 0.03],   # 1: cat
                      [0.03, 0.01, -0.04, 0.02]])   # 2: sat
ids = torch.tensor([1, 0, 2])  # "cat the sat"
rows = table[ids]  # [3, 4]
scaled = rows * math.sqrt(4)  # [3, 4]
print(draw.rounded_rows(rows, 2))
print(draw.rounded_rows(scaled, 2))

# %% [markdown]
# **Predict.** A lookup is also a matrix product. Which matrix stands on the left of the
# table, and what is its shape?
#
# <details><summary>Answer</summary>
# One row for each token of the sentence, with a single 1 in the column of its id: the
# <b>one-hot</b> matrix, [S, V]. Multiplied by the table [V, d] it gives [S, d].
# </details>
#
# $$\text{rows} = \underbrace{\text{onehot}(\text{ids})}_{[S,\ V]}\;
# \underbrace{W}_{[V,\ d]}$$

# %%
one_hot = F.one_hot(ids, num_classes=3).to(table.dtype)  # [3, 3]
assert torch.equal(one_hot @ table, rows)

learned = table.clone().requires_grad_()
learned[torch.tensor([1, 0, 0])].sum().backward()  # "cat the the"
print("gradient of each row:", learned.grad[:, 0].tolist())

# %%
show(draw.lookup(table, torch.tensor([1, 0, 0]), names),
     alt="Four matrices for the sentence cat the the: the one-hot matrix, times the"
         " table, gives the rows; the gradient is 2 for the, 1 for cat, 0 for sat.",
     numbers=draw.describe_lookup(table, torch.tensor([1, 0, 0])))

# %% [markdown]
# **Notice.** The product and the selection are equal to the last bit, because adding
# zeros changes nothing. Nobody computes the product: with 151,643 columns almost all of
# it is zeros. But the product explains the gradient: **a lookup teaches only the rows
# that were used**, and a row that was used twice gets twice the gradient. "sat" did not
# occur, so it learned nothing.

# %% [markdown]
# ### Exercise 1.1: A lookup by multiplication
#
# **Difficulty** ●○○ · **3 minutes**
#
# Write the lookup as a product with a one-hot matrix. `table` is [V, d], `ids` may have
# any shape, the result ends in d and has the dtype of the table.
#
# <details><summary>Hint 1</summary>
# <code>F.one_hot(ids, num_classes)</code> works for ids of any shape and puts the new
# dimension last.
# </details>
#
# <details><summary>Hint 2</summary>
# It returns integers, and a matrix product wants one dtype. Convert the one-hot matrix,
# not the table.
# </details>

# %%
def one_hot_lookup(table, ids):
    ...

# %%
check_one_hot_lookup(one_hot_lookup)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def one_hot_lookup(table, ids):
#     one_hot = F.one_hot(ids, num_classes=table.shape[0])
#     return one_hot.to(table.dtype) @ table
# ```
#
# </details>
#
# **Recap.** A lookup selects rows. It equals a one-hot product, and its gradient
# touches only the rows used.

# %% [markdown]
# ## 2. How large are the numbers?
#
# *You will be able to predict the size of a vector from the way its table was drawn.*
#
# Before training, the table is random. "Size" means here the **root mean square** (RMS)
# of the numbers in a vector; for random numbers with mean 0 it is their standard
# deviation. Three ways to draw a table are in use:
#
# | init | std of one number | who |
# |---|---|---|
# | $N(0, 1)$ | 1 | `torch.nn.Embedding`, if you do nothing; T5, PaLM |
# | $N(0, 0.02^2)$ | 0.02 | APEX-1, GPT-2 |
# | $N(0, 1/d)$ | $1/\sqrt d$ | tensor2tensor, the code of the 2017 Transformer |
#
# **Predict.** After $\times \sqrt{512}$, how large is one number, for each of the
# three?
#
# <details><summary>Answer</summary>
# 22.6, 0.45 and 1. The next cell measures them on 2,000 rows.
# </details>

# %%
for name, std in (("N(0, 1)", 1.0), ("std 0.02", 0.02), ("std 1/√d", 512 ** -0.5)):
    layer = ScaledEmbedding(2_000, 512, init_std=std, generator=draw.seeded(1))
    size = draw.root_mean_square(layer(torch.arange(2_000)))  # of [2000, 512]
    assert abs(size / (std * math.sqrt(512)) - 1) < 0.01
    print(f"{name}: after × √512 the size is {size:.3f}")

# %%
show(draw.scale_by_width(),
     alt="Two panels with logarithmic axes, widths 64 to 8192. As drawn, std 1 and std"
         " 0.02 are flat and 1/√d falls; they cross 0.02 at d = 2500. After the factor,"
         " 1/√d is flat at 1 and the other two rise with √d.",
     numbers=draw.describe_scale_by_width())

# %% [markdown]
# **Notice.** Multiplying by $\sqrt d$ makes the size 1 for **one** of the three inits,
# std $1/\sqrt d$. With std 0.02 the size depends on the width, and it is 1 at one width
# only: where $0.02 \sqrt d = 1$, so $d = 2500$. For the four APEX-1 models:

# %%
for size in SIZES:
    d = apex1_config(size).d_model
    print(f"{size}: d={d}, 1/d={1 / d:.6f}, variance as drawn {0.02 ** 2:.4f},"
          f" after × √d {0.02 ** 2 * d:.4f}, size {0.02 * d ** 0.5:.3f}")
assert math.isclose(0.02 ** 2 * 2500, 1.0)
before, after = (draw.root_mean_square(x) ** 2 for x in (rows, scaled))
print(f"worked example: mean square {before:.6f}, after × 2 {after:.4f}")

# %% [markdown]
# > **The reference prints** that unscaled vectors have variance about $1/d$ "since each
# > element is $N(0, 0.02^2)$", and that $\times \sqrt d$ makes it about 1. These are
# > two different inits in one sentence: $0.02^2$ is 0.0004 whatever $d$ is. Its own
# > example ends at 0.0025. See [page 06](06-the-reference-checked.ipynb), E01, E02 and
# > E03.
#
# > **The tutorial shows** a bare `nn.Embedding(vocab, d)` and says that its values have
# > std 0.02. `nn.Embedding` draws std 1; the 0.02 is set elsewhere in that code. Copied
# > as shown, a vector of 512 numbers has size 22.6 after scaling. See [page
# > 06](06-the-reference-checked.ipynb), E04.

# %%
torch.manual_seed(0)
bare = nn.Embedding(2_000, 512)
print(f"std of a fresh nn.Embedding: {bare.weight.std().item():.2f}")
assert 0.99 < bare.weight.std().item() < 1.01

# %% [markdown]
# ### Exercise 1.2: A scaled embedding
#
# **Difficulty** ●○○ · **4 minutes**
#
# Return the rows of the given ids, times $\sqrt d$, in the dtype of the table. The
# check knows many wrong programs by name: write a wrong one too, and read what it says.
#
# <details><summary>Hint 1</summary>
# d is the length of one row: <code>table.shape[1]</code>.
# </details>
#
# <details><summary>Hint 2</summary>
# Do not change the table itself: <code>table *= ...</code> would scale it again at
# every call.
# </details>

# %%
def scaled_embedding(table, ids):
    ...

# %%
check_scaled_embedding(scaled_embedding)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def scaled_embedding(table, ids):
#     return table[ids] * math.sqrt(table.shape[1])
# ```
#
# </details>
#
# **Recap.** The size after scaling is std × √d. Look at the init before you say what
# the factor does.

# %% [markdown]
# ## 3. Why multiply at all?
#
# *You will be able to give the three reasons, and to say which of them hold in APEX-1.*
#
# ### Reason one: one table has two jobs
#
# In many models the same table is used twice. On the way in, rows become vectors. On
# the way out, the model compares its last vector, called hidden here, with every row:
# the dot product is that token's score, its **logit**, and probabilities are made from
# the logits. Section 4 looks at this **tying** closely. Here we only ask: how large
# should a row be?
#
# - **On the way in** a vector is added to other vectors: to positions in 2017, to what
#   the layers say today. Its numbers should not be far smaller than theirs. Size 1 is
#   the natural choice.
# - **On the way out** a logit is a sum of $d$ products. A sum of $d$ random products of
#   size 1 has size $\sqrt d$. So for logits of size 1 the numbers should have size
#   $1/\sqrt d$.

# %%
hidden = draw.random_table(200, 512, 1.0, seed=2)  # [200, 512], size 1
for size in (1.0, 512 ** -0.5):
    table_out = draw.random_table(300, 512, size, seed=3)  # [300, 512]
    logits = hidden @ table_out.T  # [200, 300]
    print(f"numbers of size {size:.3f} -> logits of size {logits.std().item():.2f}")
    assert math.isclose(logits.std().item(), size * math.sqrt(512), rel_tol=0.02)

# %% [markdown]
# One tensor cannot have both sizes. They differ by $\sqrt d$, so whoever wants both
# needs **a factor $\sqrt d$ somewhere between the two uses**. Multiply on the way in,
# or divide on the way out: these are the conventions that you meet in real code. (Not
# everybody wants both: GPT-2 ties its table and has no factor.)

# %%
def vaswani(E, ids, h):         # drawn with std 1/√d
    return E[ids] * E.shape[1] ** 0.5, h @ E.T
def t5_and_palm(E, ids, h):     # drawn with std 1
    return E[ids], h @ E.T / E.shape[1] ** 0.5
def gemma(E, ids, h):           # the factor is rounded to E's dtype
    return E[ids] * torch.tensor(E.shape[1] ** 0.5, dtype=E.dtype), h @ E.T
def apex_1(E, ids, h):          # drawn with std 0.02
    return E[ids] * E.shape[1] ** 0.5, h @ E.T

# %% [markdown]
# **Predict.** Which of the four are the same function, if you may store the table in
# another size?
#
# <details><summary>Answer</summary>
# All four. Vaswani, Gemma and APEX-1 are the same line of code; Gemma only rounds the
# factor. T5's becomes Vaswani's when its table is divided by √d.
# </details>

# %%
E = draw.random_table(300, 512, 1.0, seed=4)  # [300, 512], a T5 table
ids = torch.arange(40)
want = t5_and_palm(E, ids, hidden)  # inputs [40, 512], logits [200, 300]
for convention in (vaswani, gemma, apex_1):
    got = convention(E / math.sqrt(512), ids, hidden)
    gaps = [(a - b).abs().max().item() for a, b in zip(got, want)]
    assert max(gaps) < 1e-5
print("three conventions, one table: inputs and logits agree to 1e-5")

# %% [markdown]
# What differs is where they **start**, because each draws its table in its own way. The
# picture shows both sizes at the start, for two widths. With a factor $\sqrt d$ between
# the two uses, both sizes are the same number (the dashed line), and the init chooses
# where on that line a model begins. GPT-2 has no factor: its input starts far smaller
# than its logits. Gemma is not in the picture: we found no source for how its table is
# drawn.

# %%
show(draw.conventions(),
     alt="A map with the size at the input on the horizontal axis and the size of the"
         " logits on the vertical one. Vaswani and T5 share the point (1, 1); APEX-1"
         " lies on the diagonal from 0.45 to 1.69; GPT-2 lies far to the left at 0.02.",
     numbers=draw.describe_conventions())

# %% [markdown]
# > **The reference prints** "Used by: T5, PaLM, Gemma, APEX-1". Gemma multiplies on the
# > way in. T5 and PaLM do not: they divide the logits (T5 in version 1.0; version 1.1
# > does not tie and has neither factor). See [page 06](06-the-reference-checked.ipynb),
# > E05.

# %% [markdown]
# ### The optimiser sees a difference
#
# The **optimiser** is the rule that turns a gradient into a step. SGD multiplies the
# gradient by the learning rate; Adam first divides it by its usual size.
#
# The same function in two storage sizes gets the same loss. It does not take the same
# step, because a step is measured in stored numbers. We take one step from the same
# start, at the same learning rate, and compare how far the *function's* table moved.
#
# **Predict.** Whose table moves further, Vaswani's small numbers or T5's large ones?
#
# <details><summary>Answer</summary>
# Vaswani's. With SGD by a factor d: the gradient is √d larger and the numbers are √d
# smaller. With Adam by a factor √d: its first step does not look at the gradient's
# size.
# </details>

# %%
show(draw.optimiser_step(),
     alt="Ratio of two first steps against width, logarithmic axes: a line of slope one"
         " for SGD, the ratio is d, and of slope one half for Adam, the ratio is √d.",
     numbers=draw.describe_optimiser_step())

# %% [markdown]
# **Notice.** So a convention is also a choice of learning rate for the table: divide
# Vaswani's rate by $d$ (SGD) or by $\sqrt d$ (Adam) and the steps agree. Seen from
# another side: Adam changes each number by about the learning rate, whatever its size.
# A number of size 1 needs fifty times as many steps to change by its own size as a
# number of size 0.02. That is why a table drawn with std 1 can seem not to learn at
# all, beside weights of size 0.02.

# %%
rate, d = 1e-3, 512
for std in (1.0, 0.02, d ** -0.5):
    print(f"std {std:.3f}: Adam's step is {rate / std:.2%} of a number's size")
assert math.isclose((rate / 0.02) / (rate / 1.0), 50)

# %% [markdown]
# With the rate divided, the two conventions do take the same step. Or take a rule whose
# rate is relative to the size of the tensor. Adafactor, with which T5 and PaLM were
# trained, does that, so their large numbers do not learn more slowly. The last line
# imitates it: Adam's step times the table's own size.

# %%
start = draw.random_table(12, 64, 1 / 8).double()  # [12, 64], Vaswani's table
for name, divisor in (("SGD", 64), ("Adam", 8)):
    ours = draw.first_move(start, 8.0, 1.0, name, 1e-3 / divisor)
    theirs = draw.first_move(start * 8, 1.0, 1 / 8, name, 1e-3) / 8
    assert torch.allclose(ours, theirs, rtol=1e-9)
    print(f"{name}, rate ÷ {divisor}: the same step")
moves = [draw.first_move(E, a, b, "Adam", 1e-3 * draw.root_mean_square(E)) / unit
         for E, a, b, unit in ((start, 8.0, 1.0, 1), (start * 8, 1.0, 1 / 8, 8))]
assert torch.allclose(*moves, rtol=1e-9)
print("rate relative to the table's size: the same step, nothing to divide")

# %% [markdown]
# ### Reason two, and the oldest: positions were added
#
# In 2017 the position of a token was **added** to its vector, as a table of sines and
# cosines. Each pair has $\sin^2 + \cos^2 = 1$, so the numbers of that table have size
# $1/\sqrt 2 = 0.71$ at every width. Vectors with numbers of size $1/\sqrt d$ would
# drown in it. The paper states the factor in one sentence (section 3.4) and gives no
# reason; the sizes speak for themselves.

# %%
positions = draw.sinusoids(64, 512)  # [64, 512]
print(f"size of the position table: {draw.root_mean_square(positions):.4f}")

# %%
show(draw.position_share(),
     alt="Share of the input that is position, against width. Without the factor almost"
         " all of it. With the factor one third at every width for std 1/√d, and a"
         " falling share for std 0.02.",
     numbers=draw.describe_position_share())

# %% [markdown]
# **Notice.** With the factor and std $1/\sqrt d$, one third of the input (of its
# squared length) is position, at every width. APEX-1 adds nothing to its embeddings: it
# uses [rotary positions](03-rope.ipynb), which turn queries and keys later. So **this
# reason does not hold in APEX-1.**
#
# > **The tutorial says** that small embeddings get overwhelmed by the positional
# > encoding, and **the reference** that the factor prevents vanishing activations. The
# > first is true of added positions only; the second is not true here, since every
# > sub-layer reads a normalised copy. See [page 06](06-the-reference-checked.ipynb),
# > E07.

# %% [markdown]
# ### Reason three: the residual stream keeps it
#
# APEX-1 is a chain of blocks, and each block has two sub-layers: attention, which lets
# tokens look at each other, and a feed-forward network. Every sub-layer first applies
# [RMSNorm](02-rmsnorm.ipynb), which divides a vector by its own size.
#
# **Predict.** What does a norm right after the embedding make of the factor?
#
# <details><summary>Answer</summary>
# It takes it away: the norm of 22.6 x is the norm of x. A rest of about 0.1 % stays,
# and comes from the small ε inside the root.
# </details>

# %%
x = draw.random_table(200, 512, 0.02, seed=5)  # [200, 512], as drawn
for eps in (1e-6, 0.0):
    plain, scaled = rms_norm(x, eps=eps), rms_norm(x * math.sqrt(512), eps=eps)
    gap = (plain - scaled).norm() / scaled.norm()
    print(f"eps {eps:g}: the outputs differ by {gap.item():.2%}")
    assert abs(gap.item() - eps / (2 * 0.02 ** 2)) < 1e-4

# %% [markdown]
# The gap is $\varepsilon / (2 \cdot 0.02^2) = 0.125\,\%$: the norm has no size that it
# expects of its input.
#
# > **The reference prints** that the factor "matches the expected input scale of
# > RMSNorm". Up to ε, RMSNorm gives the same output for every input size. See
# > [page 06](06-the-reference-checked.ipynb), E06.
#
# But a norm works on a **copy**. The vector itself goes on, past every block, in the
# *residual stream*; each sub-layer only adds to it: `x = x + layer(norm(x))`. What a
# layer adds has a size of its own, given by its weights. So the factor decides how loud
# the token is beside what the layers add. We send the same 32 tokens through the same
# twelve random blocks, with and without it. The blocks have the sizes of APEX-1 Small
# and weights of std 0.02, but plain attention and one plain feed-forward network each.

# %%
show(draw.residual_by_depth(),
     alt="Left: cosine of the stream with the token's own embedding over 24 sub-layers,"
         " falling slowly from 1 to 0.73 with the factor, and at once to 0.03 without"
         " it. Right: the sizes of stream and additions.",
     numbers=draw.describe_residual_by_depth())

# %% [markdown]
# **Notice.** Without the factor the token enters with size 0.02 and the first sub-layer
# adds more than three times as much: after one block the cosine with the token is 0.19,
# so 4 % of the stream's square is still the token. With the factor it enters with size
# 0.45, and at the end more than half of the stream's square is still the token
# ($0.73^2 = 0.53$). **This is what $\times \sqrt d$ does in APEX-1: it makes the token
# loud beside the first layers.** A larger init would do the same here, but it would
# change the logits too, since the table is tied. We come back to that in section 5. And
# this is the start: training can change it.

# %%
with_factor, without = draw.stream_by_depth((math.sqrt(512), 1.0))
assert 0.5 < with_factor.kept[-1] ** 2 < 0.6 and without.kept[-1] < 0.1
assert without.output[1] > 3 * without.stream[0]
assert 0.18 < without.kept[2] < 0.2 and 0.035 < without.kept[2] ** 2 < 0.04
assert with_factor.output[1] < with_factor.stream[0] / 3

# %% [markdown]
# ### Two square roots, side by side
#
# Readers often take $\times \sqrt d$ for a misprint, because they know a division by a
# root from attention. They are two different things:
#
# | | embedding | attention |
# |---|---|---|
# | formula | $X = W[\text{ids}] \cdot \sqrt d$ | $\text{scores} = q \cdot k / \sqrt{d_h}$ |
# | which size | the whole vector, $d$ | one head, $d_h$ |
# | direction | multiply | divide |
# | why | small numbers are made larger: nothing was summed | a sum of $d_h$ products has grown by $\sqrt{d_h}$ |
# | where | once, at the input | in every layer and head |

# %%
q, k = (draw.random_table(500, 64, 1.0, seed) for seed in (6, 7))  # [500, 64]
scores = q @ k.T  # [500, 500]
print(f"q·k: size {scores.std().item():.2f}, after ÷ √64 {scores.std().item() / 8:.2f}")
assert math.isclose(scores.std().item(), math.sqrt(64), rel_tol=0.02)
print("multiplied:", draw.rounded_rows(rows * 2, 3)[0])
print("divided, wrong:", draw.rounded_rows(rows / 2, 3)[0])

# %% [markdown]
# ### Exercise 1.3: From T5 to Vaswani
#
# **Difficulty** ●●○ · **4 minutes**
#
# You have the table of a trained model that uses T5's convention. Your own code uses
# Vaswani's. Return the table that gives the same inputs and the same logits there.
#
# <details><summary>Hint 1</summary>
# Write down the input of both models for one row, and ask which stored row makes them
# equal. Then see whether the logits agree too.
# </details>

# %%
def convert_table(t5_table):
    ...

# %%
check_convert_table(convert_table)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def convert_table(t5_table):
#     return t5_table / math.sqrt(t5_table.shape[1])
# ```
#
# </details>
#
# **Recap.** (1) A tied table has two jobs whose sizes differ by $\sqrt d$. (2) Added
# positions needed vectors of their own size; APEX-1 adds none. (3) A norm erases the
# factor, the residual stream keeps it. The first and the third hold in APEX-1. The
# optimiser sees the stored size.

# %% [markdown]
# ## 4. Tying: one tensor, two uses
#
# *You will be able to tell a tie from a copy, and to compute its gradient by hand.*
#
# $$\text{logits} = h \, W^\top \qquad \text{with the same } W \text{ as the lookup}$$
#
# "The same" means one object. Equal values are not enough, and shared memory is not
# enough either. The truth table, with a table of 7 x 4:

# %%
def tie(how):
    table, head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
    if how == "head.weight = table.weight":
        head.weight = table.weight
    elif how == "head.weight.data = table.weight.data":
        head.weight.data = table.weight.data
    else:
        head.weight = nn.Parameter(table.weight.clone())
    return nn.ModuleList([table, head])

# %%
for how in ("head.weight = table.weight", "head.weight.data = table.weight.data",
            "head.weight = Parameter(clone)"):
    table7, head7 = pair = tie(how)
    shared = table7.weight.data_ptr() == head7.weight.data_ptr()
    count = sum(parameter.numel() for parameter in pair.parameters())
    pair.double()  # new memory, as a move to another device
    after = table7.weight.data_ptr() == head7.weight.data_ptr()
    print(f"{how}: same object {head7.weight is table7.weight}, same memory {shared},"
          f" {count} parameters; after .double(), same memory {after}")

# %% [markdown]
# **Notice.** Only the first row is a tie. In the second row the two share memory until
# the first move, then part for ever, in silence. So test identity (`is`), not equality;
# and count parameters with `parameters()`, not by subtraction: a loader that clones the
# tensor gives the larger count. In a tied pair the same tensor has two names, so a loop
# over modules meets it twice; an optimiser refuses a parameter that is in two groups,
# so keep only what you have not met before. The next cell shows both.

# %%
pair = tie("head.weight = table.weight")
met = [parameter for module in pair for parameter in module.parameters()]
print(f"met {len(met)} times, {len({id(parameter) for parameter in met})} tensor")
try:
    torch.optim.SGD([{"params": [parameter]} for parameter in met], lr=0.1)
except ValueError:
    print("ValueError: the optimiser found one parameter in two groups")

# %% [markdown]
# The class of this course keeps the tie in the simplest way: it has one parameter with
# one name, and two methods that use it.

# %%
layer = ScaledEmbedding(7, 4, generator=draw.seeded(8))
print("names of its tensors:", list(layer.state_dict()))
before = layer.logits(torch.ones(4))[0].item()
with torch.no_grad():
    layer.weight[0, 0] += 1.0  # change it through one use, read it through the other
change = layer.logits(torch.ones(4))[0].item() - before
print(f"one entry of row 0 grew by 1, so its logit for (1, 1, 1, 1) by {change:.1f}")

# %% [markdown]
# One name in the file means: nothing to tie again after loading. Where one tensor has
# two names, the file format safetensors refuses to save them. Then drop one name when
# saving and tie again after loading; a clone would make the error go away, and the tie
# too.

# %%
try:
    save({"table": layer.weight.data, "head": layer.weight.data})
except RuntimeError as error:
    print("RuntimeError, they share memory:", "share memory" in str(error))

# %% [markdown]
# And where the vocabulary grows, replacing the table alone breaks the tie:

# %%
table7, head7 = pair = tie("head.weight = table.weight")
pair[0] = nn.Embedding(9, 4)  # two more tokens, old rows forgotten
print(list(pair[0].weight.shape), list(pair[1].weight.shape), "tied:",
      pair[0].weight is pair[1].weight)
grown = ScaledEmbedding(9, 4)
with torch.no_grad():
    grown.weight[:7] = layer.weight  # copy the old rows, keep one tensor
assert torch.equal(grown.weight[:7], layer.weight)
print("grown with its head:", list(grown.logits(torch.ones(4)).shape), "logits")

# %% [markdown]
# ### Gradients add
#
# **Predict.** The errors arrive at the two uses at different depths. Will a step of the
# optimiser separate the two?
#
# <details><summary>Answer</summary>
# No. There is one tensor, so there is one gradient: the sum over all uses.
# </details>
#
# Small enough for pencil and paper: $W = I_2$, token 0, target 1, scale $\sqrt 2$. The
# hidden vector is $(\sqrt 2, 0)$, the logits are $(\sqrt 2, 0)$, and
# $p_0 = e^{\sqrt 2} / (1 + e^{\sqrt 2})$. The error of the logits is $(p_0, -p_0)$.

# %%
identity = torch.eye(2, dtype=torch.float64)
p0 = math.exp(math.sqrt(2)) / (1 + math.exp(math.sqrt(2)))
paths = draw.tied_gradients(identity, token=0, target=1, scale=math.sqrt(2))
total = torch.tensor([[2 * math.sqrt(2) * p0, -math.sqrt(2) * p0],
                      [-math.sqrt(2) * p0, 0.0]], dtype=torch.float64)
assert torch.allclose(paths["total"], total, atol=1e-12)
assert torch.allclose(paths["lookup path"] + paths["head path"], total, atol=1e-12)
print(f"p0 = {p0:.6f}")

# %%
show(draw.gradient_paths(identity, 0, 1, math.sqrt(2)),
     alt="Three 2 by 2 heat maps. The lookup path fills row 0, the head path fills"
         " column 0; their sum is 2.2753 in the corner, minus 1.1376 beside and below"
         " it, 0.",
     numbers=draw.describe_gradient_paths(identity, 0, 1, math.sqrt(2)))

# %% [markdown]
# **Notice.** The lookup teaches one row. The head teaches **every** row: each token is
# pushed away a little from this hidden vector, and the target is pulled towards it. So
# a rare token's row still moves at every step, through the head. This fits a finding of
# Press and Wolf (2017): a tied table behaves more like an output table than like an
# input table.

# %% [markdown]
# ### What tying saves
#
# A second table would cost $V \cdot d$ parameters. How much is that?

# %%
show(draw.tying_savings(),
     alt="Bars of the four APEX-1 sizes, split into tied table, four untied multi-token"
         " heads and the rest, with the saving drawn beyond 100 percent: large for Tiny"
         " and Small, invisible for Large.",
     numbers=draw.describe_tying_savings())

# %% [markdown]
# > **The tutorial says** that tying saves 77.6 million parameters, "huge for the Small
# > model". The number is right: 12.9 % of what Small would have without it. But Small
# > also has four multi-token heads that are not tied, and they hold four times as much.
# > See [page 06](06-the-reference-checked.ipynb), E09. Another page of that project
# > says that tying saves about 550 million in Large; 1,087 million is right.

# %%
small = draw.savings()["small"]
assert small.table == 151_643 * 512 == 77_641_216
assert small.total == 523_150_860 and small.other_heads == 4 * small.table
assert draw.savings()["large"].table == 151_643 * 7168 == 1_086_977_024
print(f"Small: the heads hold {small.other_heads / small.total:.0%} of its parameters")

# %% [markdown]
# And who ties? From the released models in this course's table:

# %%
for tied in (True, False):
    found = [row.model.split(" (")[0] for row in published()
             if row.tie_word_embeddings is tied]
    print(f"{'tied' if tied else 'not tied'} ({len(found)}):", ", ".join(found))
llama = next(row for row in published() if row.model == "Llama-3.2-1B-Instruct")
saved = llama.vocab_size * llama.hidden_size
print(f"Llama-3.2-1B: tying saves {saved:,}")
assert 1_498_482_688 - saved == 1_235_814_400

# %% [markdown]
# > **The tutorial says** that tying is used in "GPT-2, Llama, DeepSeek, etc." GPT-2:
# > yes. Of the Llama text models read here only the small 3.2 ones share; DeepSeek-V3
# > does not. See [page 06](06-the-reference-checked.ipynb), E08.
#
# Llama-3.2-1B has 1,235,814,400 parameters. A teaching notebook once announced the tie
# and printed this number by subtraction, but its loader had cloned the tensor:
# 1,498,482,688 were in memory. Small models often tie, where a second table would be a
# large share of the model; large ones mostly do not. There are exceptions both ways:
# PaLM 540B, phi-1.

# %% [markdown]
# ### Exercise 1.4: The gradient of a tied table
#
# **Difficulty** ●●● · **8 minutes**
#
# hidden = $\sqrt d$ · table[token]; logits = table @ hidden; the loss is the cross
# entropy with `target`. Return the gradient of the loss on the table, [V, d]. By hand
# or with autograd: both are right.
#
# <details><summary>Hint 1</summary>
# The error of the logits is softmax(logits) minus the one-hot target.
# </details>
#
# <details><summary>Hint 2</summary>
# Head path: the outer product of that error and hidden, on all rows. Lookup path: error
# @ table is the gradient of hidden; hidden is √d times one row, so that row gets √d
# times it.
# </details>
#
# <details><summary>Hint 3</summary>
# With autograd: copy the table with <code>.detach().clone().requires_grad_()</code>,
# use the copy in both places, and return its <code>.grad</code>.
# </details>

# %%
def tied_gradient(table, token, target):
    ...

# %%
check_tied_gradient(tied_gradient)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def tied_gradient(table, token, target):
#     scale = math.sqrt(table.shape[1])
#     hidden = scale * table[token]
#     error = (table @ hidden).softmax(0)
#     error[target] -= 1.0
#     gradient = torch.outer(error, hidden)
#     gradient[token] += scale * (error @ table)
#     return gradient
# ```
#
# </details>
#
# **Recap.** A tie is one object. Its gradient is the sum of all uses: one row through
# the lookup, all rows through the head.

# %% [markdown]
# ## 5. The first logits and the first loss
#
# *You will be able to predict the loss of a model that has learned nothing.*
#
# The **loss** of a prediction is minus the logarithm of the probability that the right
# token got, in nats. A common health check says: before training, every token is
# equally likely, so the loss should be $\ln V$. That is almost right for an untied
# head: small random logits of size $s$ add $s^2/2$. (Small means well below $\sqrt{2
# \ln V}$, which is 4.9 for APEX-1's V; beyond it the few largest logits decide, and the
# rule gives too much.)
#
# **Predict.** Now tie the head, and let the blocks do nothing yet. Which token gets the
# largest logit?
#
# <details><summary>Answer</summary>
# The input token itself. Its vector points the same way as its own row: an echo.
# </details>
#
# The norm gives the vector the length $\sqrt d$. Its own row has the length $\sigma
# \sqrt d$ and the same direction. So
#
# $$\text{own logit} = \sqrt d \cdot \sigma \sqrt d = d\,\sigma, \qquad
# \text{other logits} \sim N(0,\ d\,\sigma^2).$$

# %%
found = draw.measured_start(512, 0.02, 50_257)
theory = draw.expected_start(512, 0.02, 50_257)
for key, words in (("own", "own token's logit"), ("spread", "std of the others"),
                   ("echo", "loss, tied"), ("blind", "loss, untied"),
                   ("uniform", "ln V")):
    print(f"{words}: expected {theory[key]:.2f}, measured {found[key]:.2f}")
    assert abs(found[key] - theory[key]) < 0.03 * theory[key] + 0.1
print(f"chance of the own token: {math.exp(theory['own'] - theory['echo']):.3f}")
assert round(math.sqrt(2 * math.log(151_643)), 1) == 4.9

# %%
show(draw.start_of_training(),
     alt="Left: the own token's logit rises with d, the spread of the others with √d."
         " Right: the first loss of a tied model rises from ln V to 164 at width 8192,"
         " that of an untied one stays near ln V.",
     numbers=draw.describe_start_of_training())

# %% [markdown]
# **Notice.** $\sqrt d$ is not in these formulas: the final norm has erased it. What
# remains is the std of the table, $d\,\sigma$. For the APEX-1 sizes, if the blocks did
# nothing:

# %%
for size in SIZES:
    config = apex1_config(size)
    start = draw.expected_start(config.d_model, 0.02, config.vocab_size)
    print(f"{size}: own logit {start['own']:.2f}, loss tied {start['echo']:.2f}, untied"
          f" {start['blind']:.2f}, ln V {start['uniform']:.2f}")

# %% [markdown]
# A first loss of 143 in Large would not be a bug, it would be the echo. In a real model
# the blocks weaken it, since they add to the stream. By how much? That is reason three
# again, seen from the far end: the cosine that was left after twelve blocks is the
# share of the echo that arrives.

# %%
for name, depth in (("× √d", with_factor), ("as drawn", without)):
    print(f"{name}: about {depth.kept[-1]:.2f} of the own logit is left,"
          f" {depth.kept[-1] * 512 * 0.02:.1f} instead of {512 * 0.02:.2f}")

# %% [markdown]
# **The direction of the tie matters.** `nn.Embedding` draws std 1, `nn.Linear` draws
# $1/\sqrt{3d}$. Whichever tensor survives keeps its own init. With hidden vectors that
# know nothing of the target:

# %%
normal = draw.random_table(20_000, 512, 1.0, seed=9)  # [V, d], std 1
unknown = rms_norm(draw.random_table(16, 512, 1.0, seed=10))  # [16, 512]
for name, std in (("table.weight = head.weight", 1 / math.sqrt(3 * 512)),
                  ("head.weight = table.weight", 1.0), ("both, drawn anew", 0.02)):
    loss = F.cross_entropy(unknown @ normal.T * std, torch.arange(16)).item()
    print(f"{name}: std {std:.3f}, first loss {loss:.1f}, ln V {math.log(20_000):.1f}")
linear = nn.Linear(512, 2_000, bias=False).weight.std().item()
assert abs(linear * math.sqrt(3 * 512) - 1) < 0.01

# %% [markdown]
# So: **tie, then initialise, then compare the first loss with what you expect**: with
# $\ln V$ for an untied head, with the echo for a tied one.
#
# ### Exercise 1.5: The own token's logit
#
# **Difficulty** ●●○ · **4 minutes**
#
# A table $N(0, \sigma^2)$, then $\times \sqrt d$, then RMSNorm, then the tied head; no
# blocks. Return the logit that a token gives to itself. Within 2 % is right, so you may
# also simulate it.
#
# <details><summary>Hint 1</summary>
# Two vectors with the same direction: their dot product is the product of their
# lengths.
# </details>

# %%
def own_token_logit(d_model, init_std):
    ...

# %%
check_own_token_logit(own_token_logit)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def own_token_logit(d_model, init_std):
#     length_after_norm = math.sqrt(d_model)
#     length_of_the_row = init_std * math.sqrt(d_model)
#     return length_after_norm * length_of_the_row
# ```
#
# </details>
#
# **Recap.** Untied: $\ln V + d\sigma^2/2$. Tied: the own token's logit is $d\sigma$,
# and a first loss above $\ln V$ need not be a bug.

# %% [markdown]
# ## 6. Corners
#
# *You will be able to say what happens to odd ids, padding and 16-bit tables.*
#
# **Which ids are legal?** Whole numbers from 0 to V - 1. torch's own lookup takes two
# dtypes; the course's class converts the other integers and refuses the rest, so that
# 1.7 never becomes 1 in silence.

# %%
def outcome(lookup, ids):
    try:
        return str(list(lookup(ids).shape))
    except (TypeError, RuntimeError, IndexError) as error:
        return type(error).__name__

# %%
small_table = ScaledEmbedding(5, 3, generator=draw.seeded(11))
for dtype in (torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool,
              torch.float32):
    ids = torch.ones(2, dtype=dtype)
    by_torch = outcome(lambda ids: F.embedding(ids, small_table.weight), ids)
    print(f"{dtype}: torch {by_torch}, ours {outcome(small_table, ids)}")

# %% [markdown]
# **How many rows?** At least the largest id + 1, special tokens included; often padded
# to a multiple of 128. The reference's 151,643 is Qwen's count of ordinary tokens: the
# first special token already has the id 151,643, one past the last row.

# %%
for vocab, width in ((151_643, 512), (151_936, 512), (151_643, 7168)):
    print(f"{vocab:,} x {width}: {vocab * width:,} parameters, {vocab % 128} past a"
          " multiple of 128")
try:
    ScaledEmbedding(151_643, 2)(torch.tensor([0, 151_643]))
except IndexError as error:
    print("IndexError:", error)

# %% [markdown]
# **Nothing at all** is legal too: an empty batch, or a sequence of length 0, keeps its
# shape through the table, the norm and the head.

# %%
for shape in ((2, 0), (0, 5)):
    vectors = small_table(torch.zeros(shape, dtype=torch.int64))  # [..., 3]
    logits = small_table.logits(rms_norm(vectors))  # [..., 5]
    print(f"ids {list(shape)} -> {list(vectors.shape)} -> {list(logits.shape)}")

# %% [markdown]
# **Padding.** `padding_idx` does two things: it zeroes the row when the table is made,
# and it keeps the *lookup's* gradient away from the row. It does not mask anything in
# the forward pass, and a weight that you put in later keeps its row. With a tied head
# the row still learns, through the logits:

# %%
padded = nn.Embedding(3, 2, padding_idx=0).double()
print("fresh:", padded(torch.tensor([0])).tolist())
padded.weight = nn.Parameter(torch.tensor([[0.5, 0.5], [1, 0], [0, 1]]).double())
print("weight replaced:", padded(torch.tensor([0])).tolist())
padded.weight.data[0] = 0.0
hidden1 = padded(torch.tensor([1]))  # [1, 2]
F.cross_entropy(hidden1 @ padded.weight.T, torch.tensor([2])).backward()
print("gradient of the padding row:", draw.rounded_rows(padded.weight.grad[:1]))
assert math.isclose(padded.weight.grad[0, 0].item(), 1 / (2 + math.e))

# %% [markdown]
# So in a tied model the padding row does not stay zero. What hides padding is the
# attention mask, and an ignore index keeps it out of the *loss*. And never give
# `padding_idx=0` where id 0 is a real token: it would never learn through the lookup.
#
# **16 bits.** A bfloat16 table cannot hold $\sqrt{512} = 22.627$. The factor that a
# model really used in training is part of its definition: Gemma's was rounded to the
# type of its activations. The course's class rounds in the same way and keeps the dtype
# of the table.

# %%
for d in (512, 768, 3072, 7168):
    exact = torch.tensor(math.sqrt(d), dtype=torch.float64)
    print(f"d={d}: exact {exact:.4f}, bfloat16 {exact.bfloat16().item()},"
          f" float16 {exact.half().item()}")

# %%
half = ScaledEmbedding(300, 512, dtype=torch.bfloat16, generator=draw.seeded(12))
ids = torch.arange(300)
rounded, _ = gemma(half.weight, ids, half.weight)  # factor 22.625
plain, _ = apex_1(half.weight, ids, half.weight)  # factor 22.627, a Python number
assert half(ids).dtype == torch.bfloat16 and torch.equal(half(ids), rounded)
print(f"{(rounded != plain).float().mean().item():.1%} of the numbers differ")

# %% [markdown]
# Two more checks, if you like: `check_rounded_scale(f)` wants `f(d_model, dtype)`, the
# factor that such a table multiplies by, and `check_tied_logits(f)` wants `f(hidden,
# table)`. Both are in `apex_lessons.exercises.embedding`.
#
# **Recap.** Bad ids raise. `padding_idx` has two effects, and hiding the token is
# neither. In the course's class the factor has the table's dtype.

# %% [markdown]
# ## 7. A trained table
#
# *You will be able to say what "similar words are near" means, and when it is true.*
#
# At the start the rows are random. Nearness is **learned**. Here is a real table,
# 32,000 tokens by 256 numbers, from the package `wordllama`. It began as the input rows
# of large language models and was trained further so that averages of rows describe
# texts. Nearness is measured by the **cosine** of the angle between two rows: 1 is the
# same direction, 0 is unrelated. The mark ▁ means: here a word begins.

# %%
trained = trained_table()
for word in ("king", "Paris", "dog", "cat"):
    near = ", ".join(f"{name} {cosine:.2f}"
                     for name, cosine in trained.nearest(word, 6))
    print(f"{word}: {near}")

# %%
words = ["king", "queen", "monarch", "dog", "animal", "pet", "cat", "Paris", "France"]
numbers = [trained.row(word) for word in words]
show(draw.word_cosines(trained.weight, numbers, words),
     alt="Heat map of the cosines between nine words: blocks of high values for king,"
         " queen, monarch, for dog, animal, pet, and for Paris, France; cat and pet"
         " 0.40, the rest at most 0.21.",
     numbers=draw.describe_word_cosines(trained.weight, numbers, words))

# %% [markdown]
# **Notice.** dog and animal, Paris and France: near, as promised. But look at **cat**.
# The tutorial has three made-up vectors in which cat is near dog and far from Paris. In
# this table both cosines are small, and the nearest to "cat" are other spellings of it
# and pieces of words. Near means *used alike in this training*, not "similar" in every
# sense. In a random table all of this is absent:

# %%
unit = F.normalize(draw.random_table(32_000, 256, 1.0, seed=13), dim=-1)
pair_cosines = (unit[:16_000] * unit[16_000:]).sum(-1)  # [16000]
print(f"random rows: cosine {abs(pair_cosines.mean().item()):.2f} ±"
      f" {pair_cosines.std().item():.3f}, and 1/√256 is {256 ** -0.5:.4f}")

# %%
three = [trained.row(word) for word in ("cat", "dog", "Paris")]
_, dog, paris = draw.cosines(trained.weight, three)[0].tolist()
print(f"trained: cat and dog {dog:.2f}, cat and Paris {paris:.2f}")
made_up = torch.tensor([[0.8, 0.2, 0.9], [0.7, 0.3, 0.8], [0.1, 0.9, 0.2]])
_, dog, paris = draw.cosines(made_up, [0, 1, 2])[0].tolist()
print(f"made up: cat and dog {dog:.2f}, cat and Paris {paris:.2f}")

# %% [markdown]
# And how large are trained rows? Drawn rows all have nearly the same size. Training
# gives each its own: here small for words that say little about a text, large for rare
# words that say much.

# %%
marks = {"the": trained.row("the"), "Napoli": trained.row("Napoli")}
show(draw.trained_sizes(trained.weight, marks),
     alt="Histogram of row sizes on logarithmic axes: two narrow peaks for random"
         " tables at 0.02 and 1, and a broad hill for the trained table from 0.02 to"
         " 2.4.",
     numbers=draw.describe_trained_sizes(trained.weight, marks))

# %% [markdown]
# **Notice.** The spread reaches a factor of 100. The factor $\sqrt d$ cannot give or
# take that: it multiplies all rows alike. And it shows how to read the tutorial's
# sample row for "Hello", which contains 0.897: that is 45 standard deviations of $N(0,
# 0.02^2)$, so it cannot be a fresh row; it reads as a trained one ([page
# 06](06-the-reference-checked.ipynb), E43).

# %%
assert round(0.897 / 0.02) == 45
sizes = draw.row_sizes(trained.weight)
assert 90 < (sizes.max() / sizes.min()).item() < 110

# %% [markdown]
# **Recap.** Nearness and row sizes come from training; init and factor only set the
# start.

# %% [markdown]
# ## 8. Move it yourself
#
# Choose a preset, then change one thing. Watch the size of the stream, the own token's
# logit and the first loss. Find the setting where a tied model starts at $\ln V$.

# %%
explorers.embedding.EmbeddingScale()

# %% [markdown]
# And a small explorer whose whole code you see. Change it: add a slider for the std
# (`draw.token_vector` has a parameter `std`).

# %%
width = widgets.IntSlider(512, 64, 8192, step=64, description="width d")
scale = widgets.Checkbox(True, description="× √d")
picture = widgets.Image(format="png")

def redraw(change=None):
    picture.value = png(draw.token_vector(width.value, scale.value))

for control in (width, scale):
    control.observe(redraw, names="value")
redraw()
widgets.VBox([width, scale, picture])

# %% [markdown]
# The same picture without widgets:

# %%
show(draw.token_vector(512, True),
     alt="Bars of the first 64 numbers of one token's vector at width 512 after the"
         " factor: sizes around 0.45.",
     numbers=draw.describe_token_vector(512, True))

# %% [markdown]
# ## Recap
#
# - A lookup selects rows; it equals a one-hot product; its gradient touches the rows
#   used.
# - The size after scaling is std × √d. It is 1 for std $1/\sqrt d$; for std 0.02 only
#   at $d = 2500$.
# - A tied table has two jobs whose handy sizes differ by √d. Vaswani and Gemma multiply
#   on the way in, T5 and PaLM divide on the way out: one function, different steps of
#   the optimiser.
# - Added positions were a reason in 2017. APEX-1 adds none.
# - A norm erases the factor (0.12 % stay, from ε); the residual stream keeps it, and
#   there it decides how much of the stream is the token.
# - Tying is one tensor; its gradients add; it saves V·d.
# - First loss: $\ln V + d\sigma^2/2$ untied; tied, the echo $d\sigma$.

# %% [markdown]
# ## Misconceptions
#
# | often said | what is true | shown in |
# |---|---|---|
# | "`nn.Embedding` starts with std 0.02." | It draws std 1; set 0.02 yourself. | section 2 |
# | "× √d makes the variance 1." | Only if the std was 1/√d. | section 2 |
# | "It is a misprint, one divides by √d." | Attention divides, by the root of the head size; here nothing was summed. | section 3, two square roots |
# | "T5 and PaLM multiply by √d." | They divide the logits; the same function in another size. | section 3 |
# | "Without it activations vanish." | Every sub-layer reads a normalised copy; the outputs differ by 0.12 %. | section 3 |
# | "The norm makes it useless." | The residual stream keeps it: cosine 0.73 against 0.03. | section 3 |
# | "Tied means equal values." | Tied means one object; copies part at the first step or move. | section 4 |
# | "A step will separate tied layers." | One tensor, one gradient: the sum. | section 4 |
# | "All modern models tie." | Small ones often do, large ones mostly do not. | section 4 |
# | "The first loss must be ln V." | A tied model echoes its input: d·σ. | section 5 |
# | "`padding_idx` masks the token." | It zeroes the row once and blocks the lookup's gradient; nothing is masked. | section 6 |
# | "`vocab_size` of the tokenizer is the number of rows." | Special tokens and padding come on top. | section 6 |
# | "Similar words are near." | After training, and near in the sense of that training. | section 7 |

# %% [markdown]
# ## What if
#
# 1. ... you remove the factor from a trained APEX-1 and multiply its table by √d
#    instead? Which part of the model notices?
# 2. ... the head is not tied? Which of the three reasons is left?
# 3. ... you grow the width from 512 to 2048 and keep std 0.02 and the learning rate of
#    Adam? Which numbers of this page change, and by how much?
#
# <details><summary>Some answers</summary>
#
# 1. The inputs stay, the logits grow by √d: the head notices.
# 2. Reason three; and then a larger init does the same as the factor.
# 3. The stream starts twice as large, the own logit and the echo four times; Adam's
#    relative step stays, since the std is the same.
#
# </details>

# %% [markdown]
# ## Further reading
#
# - Vaswani et al. 2017, *Attention Is All You Need* (arXiv:1706.03762), section 3.4:
#   the factor and the shared matrix; section 3.5: added positions.
# - Press and Wolf 2017, *Using the Output Embedding to Improve Language Models*
#   (arXiv:1608.05859): tying, and which of the two uses wins.
# - Chowdhery et al. 2022, *PaLM* (arXiv:2204.02311), section 5, "Weight
#   initialization": std 1 and logits divided by √d.
# - The reference, sections 2.1 to 2.5; what is wrong there, with evidence:
#   [page 06](06-the-reference-checked.ipynb).
#
# Next: [RMSNorm](02-rmsnorm.ipynb), the step that erases the factor.
