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
# # Start here
#
# This course is about what happens to a token **before attention**: how a word becomes
# a vector, why the vector is normalised, how position enters by turning it, and how a
# model reads texts longer than those it was trained on. You will not be asked to
# believe anything: the numbers on these pages are computed in front of you, or read
# from a measurement that you can repeat, and you can change what they come from.
#
# **Goals.** After this page you know
#
# - what each page is about, and how a page works;
# - the path of one token, in real numbers;
# - the symbols and the shapes;
# - that your machine has what it needs, and that you do too.
#
# **Time.** 15 minutes.
#
# **Before you start.** Some Python and school mathematics. A two-minute check is below.

# %%
import ipywidgets as widgets
import torch

from apex_lessons.environment import check_environment
from apex_lessons.exercises.start import check_prerequisites, check_turns
from apex_lessons.figures import png, show, start
from apex_lessons.models.apex1 import SIZES, apex1_config

torch.set_num_threads(1)

# %% [markdown]
# ## 1. The pages
#
# | page | question | minutes |
# |---|---|---|
# | [01 Embedding scaling](01-embedding-scaling.ipynb) | How does an id become a vector, and why times √d? | 45 |
# | [02 RMSNorm](02-rmsnorm.ipynb) | What does dividing by the RMS keep, and what does it lose? | 45 |
# | [03 RoPE](03-rope.ipynb) | How can turning a vector tell its position? | 45 |
# | [04 YaRN](04-yarn.ipynb) | How are the frequencies changed for longer texts? | 45 |
# | [05 Past the trained length](05-length-extrapolation.ipynb) | What fails on longer texts, and what rescues it? | 45 |
# | [06 The reference, checked](06-the-reference-checked.ipynb) | Which claims of the source text are right? | 40, or to look up |
#
# The course follows the *APEX-1 Mathematical Reference, Part 1*. We call it **the
# reference**, and a chapter that comes with it **the tutorial**. Where they are wrong,
# the pages teach what is right and say so in one boxed line, with a link to page 06 and
# a number such as E01.

# %% [markdown]
# ## 2. How a page works
#
# A page is a row of cells. Run one with **Shift + Enter**, all of them with *Run > Run
# All Cells*. You cannot break anything: your copy is yours, and `make reset PAGE=00`
# brings this one back.
#
# Each section asks you to **predict** first. Do it before you open the answer; a wrong
# prediction is worth more than a right one that you only read.
#
# **Predict.** The angle of a full turn in radians?
#
# <details><summary>Answer</summary>
# 2π, about 6.283. You need it in the exercise below.
# </details>
#
# Each **exercise** has a stub with three dots and a cell that checks it. The check does
# not only say right or wrong: it names the mistake, if it knows it.
#
# ### Exercise 0.1: Turns
#
# **Difficulty** ●○○ · **2 minutes**
#
# Return how many full turns an angle is. Then make a mistake on purpose (divide by 360,
# say) and read the diagnosis.
#
# <details><summary>Hint 1</summary>
# One turn is 2π radians; torch.pi is π.
# </details>

# %%
def turns(radians):
    ...

# %%
check_turns(turns)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def turns(radians):
#     return radians / (2 * torch.pi)
# ```
#
# </details>

# %% [markdown]
# ## 3. The path of one token
#
# Here is the whole story in five rows of numbers, computed by the course's own
# functions with small random weights and vectors of eight numbers.
#
# 1. The **row** of the table that belongs to the token's id
#    ([page 01](01-embedding-scaling.ipynb)).
# 2. The row **times √d**.
# 3. **RMSNorm** divides the vector by its root mean square, RMS
#    ([page 02](02-rmsnorm.ipynb)).
# 4. A matrix makes the **query** of it: what this token asks the others.
# 5. **RoPE** turns each pair of numbers by an angle that grows with the position
#    ([page 03](03-rope.ipynb)). For long texts, [page 04](04-yarn.ipynb) changes the
#    angles.
#
# **Predict.** Which steps change the size (RMS) of the vector?

# %%
show(start.path_of_a_token(token=2, position=3),
     alt="Five rows of eight coloured numbers for token id 2: the row of the table, the"
         " row times √d, after RMSNorm with RMS 1, the query, and the query turned by"
         " its position 3, of the same size.",
     numbers=start.describe_path_of_a_token(token=2, position=3))

# %% [markdown]
# **Notice.** Times √8 makes every number 2.83 times as large. The norm makes the RMS 1,
# whatever it was. The matrix gives the query a size of its own. The turn changes the
# numbers but not their size. The last pairs hardly moved: they turn slowly, and page 03
# shows why.

# %%
steps = start.token_path(token=2, position=3)
row, scaled, normed, query, turned = steps.values()
assert torch.allclose(scaled, row * 8 ** 0.5) and round(8 ** 0.5, 2) == 2.83
assert torch.allclose(normed, scaled / scaled.pow(2).mean().sqrt(), rtol=1e-3)
assert torch.isclose(turned.norm(), query.norm())
print([round(length, 3) for length in (turned - query).view(4, 2).norm(dim=1).tolist()])

# %% [markdown]
# The last line says how far each of the four pairs moved.

# %% [markdown]
# ## 4. Symbols and shapes
#
# The reference uses these letters in every formula:
#
# | symbol | meaning |
# |---|---|
# | $B$, $S$ | sequences in a batch, tokens in a sequence |
# | $d$ | numbers in a token's vector |
# | $d_h$, $d_r$ | numbers in one head; the part of it that turns, in some layers |
# | $d_{ff}$, $d_{kv}$, $d_q$ | inner sizes of the feed-forward network, of compressed keys and values, of compressed queries |
# | $H_q$, $H_{kv}$ | heads of queries; of keys and values |
# | $L$, $V$ | layers, rows of the embedding table |
# | $E$, $K$, $W$ | experts, experts used by one token, tokens that a local layer looks back |
# | $\epsilon$, $\gamma$ | the small constant and the learned scale of RMSNorm |
# | $\theta_i$, $m$ | angle that pair $i$ turns per token, position of a token |
#
# A shape is written from the outside in: `[B, S, d]` is B sequences of S vectors of d
# numbers. Move the sliders. Which tensor grows fastest with S, and which with d?

# %%
batch = widgets.IntSlider(2, 1, 64, description="B")
seq = widgets.IntSlider(2048, 16, 131_072, step=16, description="S")
width = widgets.IntSlider(512, 64, 7168, step=64, description="d")
picture = widgets.Image(format="png")

def redraw(change=None):
    picture.value = png(start.shapes(batch.value, seq.value, width.value))

for control in (batch, seq, width):
    control.observe(redraw, names="value")
redraw()
widgets.VBox([batch, seq, width, picture])

# %% [markdown]
# These lines are the whole explorer: sliders, a function that draws, and a line that
# calls it when a slider moves. Change it as you like. The same picture without sliders:

# %%
show(start.shapes(2, 2048, 512),
     alt="Bars on a logarithmic axis: how many numbers token ids, embedded vectors,"
         " queries, cos and sin tables, scores and logits hold at B 2, S 2048, d 512.",
     numbers=start.describe_shapes(2, 2048, 512))

# %% [markdown]
# **Notice.** The scores hold $B \cdot H \cdot S^2$ numbers: twice the length, four
# times the numbers. (Fast attention programs compute them piece by piece and never hold
# them all.) Twice the d gives twice the vectors and queries, and twice the scores too,
# because there are twice as many heads. The logits are the largest tensor here, because
# V, 151,643, is larger than $H \cdot S = 8 \cdot 2048$.

# %%
two, four = (start.tensor_shapes(2, length, 512)[4] for length in (2048, 4096))
assert four.numbers == 4 * two.numbers
assert max(start.tensor_shapes(2, 2048, 512), key=lambda t: t.numbers).name == "logits"
growth = [wide.numbers / narrow.numbers for narrow, wide in
          zip(start.tensor_shapes(2, 2048, 512), start.tensor_shapes(2, 2048, 1024))]
assert growth == [1, 2, 2, 1, 2, 1] and 151_643 > 8 * 2048

# %% [markdown]
# ### The four sizes of APEX-1
#
# The reference prints "typical values" for its symbols. The model's own settings files
# have four sizes. Do they agree?

# %%
print(start.notation_table())

# %%
for size in SIZES:
    config = apex1_config(size)
    print(f"{size}: d_ff {config.d_ff:,} = {config.d_ff / config.d_model:.4f} d,"
          f" S {config.training.seq_len:,} in training, {config.max_seq_len:,} at most,"
          f" B {config.training.batch_size}")
small, large = apex1_config("small"), apex1_config("large")
assert small.d_kv < 256 and small.d_q < 192 and large.W > 4096

# %% [markdown]
# > **The reference prints** $d_{ff} = \frac83 d$ (2.667 d), and bounds for $d_{kv}$,
# > $d_q$ and $W$ that Small or Large lies outside of. Its bounds for $L$ and $E$ start
# > at Tiny, those for $d$ at Small; its $S$, 2,048 to 131,072, joins the training
# > length of Small to the longest text of Large. See [page
# > 06](06-the-reference-checked.ipynb), E39, E40 and E41. These pages always take the
# > settings files.

# %% [markdown]
# ## 5. Your machine
#
# Every page runs on a laptop without a graphics card. This cell says what was found
# here; what you see stored is from the machine that made the page.

# %% tags=["machine"] reason="versions and devices differ between machines"
check_environment()

# %% [markdown]
# If a line has a cross, the last column says what to do. One step repairs most of it:
# close JupyterLab and type `make lab` in the project's folder.

# %% [markdown]
# ## 6. A two-minute check
#
# Five questions. Replace the dots; a wrong answer tells you what it shows. Shapes are
# tuples such as `(5, 3)`.
#
# - `dot`: the dot product of (1, 2, 3) and (4, 0, -1)
# - `shape`: the shape of `A @ B`, A of shape (5, 3), B of shape (3, 2)
# - `broadcast`: the shape of `x * w`, x of shape (2, 5, 4), w of shape (4,)
# - `std`: the standard deviation of a number drawn from $N(0, 0.02^2)$, after × 10
# - `radians`: a right angle in radians, two decimals

# %%
answers = {"dot": ..., "shape": ..., "broadcast": ..., "std": ..., "radians": ...}
check_prerequisites(answers)

# %% [markdown]
# <details><summary>Answers</summary>
#
# ```python
# answers = {"dot": 1, "shape": (5, 2), "broadcast": (2, 5, 4), "std": 0.2,
#            "radians": 1.57}
# ```
#
# </details>
#
# Three or more right: go on. Fewer: read what the diagnoses say, and go on all the
# same; each page explains these things once more where they are needed.

# %% [markdown]
# ## 7. Glossary
#
# | term | symbol, unit | meaning | page |
# |---|---|---|---|
# | token, id | whole number | a piece of text and its number in the vocabulary | 01 |
# | embedding table | $W$, [V, d] | one row of numbers for each token | 01 |
# | one-hot vector | [V] | zeros with a single 1 at the token's id | 01 |
# | init | | how the numbers of a table are drawn before training | 01 |
# | standard deviation | $\sigma$, std | typical distance from the mean; its square is the variance | 01 |
# | root mean square | RMS | $\sqrt{\text{mean}(x^2)}$, the size of a number in a vector | 01, 02 |
# | tying | | the same tensor as embedding table and as output head | 01 |
# | logit | | the score of one token before softmax | 01 |
# | loss | nats | minus the logarithm of the right token's probability | 01 |
# | residual stream | [B, S, d] | the vector that each layer adds to | 01, 02 |
# | RMSNorm | $\epsilon$, $\gamma$ | division by the RMS, then a learned scale | 02 |
# | pre-norm, post-norm | | the norm before a layer, or after the addition | 02 |
# | head | $d_h$ | a slice of the vector with its own attention | 03 |
# | query, key | $q$, $k$ | what a token asks, and what it is found by; their dot product is the score | 00, 03 |
# | position | $m$, tokens | the place of a token, from 0 | 03 |
# | inverse frequency | $\theta_i$, radians per token | how fast pair $i$ turns | 03 |
# | base | $b$ | the number whose powers give the frequencies | 03 |
# | wavelength | $\lambda_i$, tokens | tokens for one full turn, $2\pi / \theta_i$ | 03 |
# | rotations | turns | full turns within the trained length | 04 |
# | layout | interleaved, half | which two numbers make a pair | 03 |
# | trained length | $L$, tokens | the longest text seen in training (elsewhere $L$ is layers) | 04 |
# | factor | $s$ | how many times longer the texts become | 04 |
# | interpolation | | angles divided by $s$, so that they stay in the known range | 04 |
# | extrapolation | | angles left as they are, beyond the known range | 04 |
# | ramp | 0 to 1 | how the two are mixed, pair by pair | 04 |
# | attention factor | | sharpens the scores of long texts | 04 |
# | perplexity | | $e^{\text{loss}}$: among how many tokens the model hesitates | 04 |

# %% [markdown]
# ## Recap
#
# - A page asks you to predict, then computes, then explains.
# - A token's path: row, times √d, norm, query, turn.
# - Shapes are read from the outside in; scores grow with the square of the length.
# - Printed ranges and real settings differ; the pages use the real ones.
#
# ## Misconceptions
#
# | often said | what is true | shown in |
# |---|---|---|
# | "An id is a quantity." | An id is a name; only its row has size and direction. | section 3 |
# | "Turning changes the size." | It keeps the length to the last digits. | section 3 |
# | "Attention's scores grow in step with the length." | With its square. | section 4 |
# | "d_ff is 8/3 of d." | In APEX-1 it is 2 to 2.69 of d. | section 4 |
#
# ## What if
#
# 1. ... you move the same token to position 0? Which of the five rows changes, and what
#    is the last one then?
# 2. ... you use another token at the same position? Which rows change?
# 3. ... d doubles and $d_h$ stays? What happens to the number of heads, and to the
#    scores?
#
# ## Further reading
#
# - The reference, section 1 (notation) and sections 2 to 5 (the pages 01 to 04).
# - Vaswani et al. 2017, *Attention Is All You Need* (arXiv:1706.03762), section 3.2:
#   what queries, keys and scores are for.
#
# Next: [Embedding scaling](01-embedding-scaling.ipynb).
