# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 02: RMSNorm, every token at the same size
#
# A language model adds the outputs of many layers onto one vector per token. Before a
# layer reads that vector, a norm brings a copy of it to a known size. Many models of
# today use the simplest such norm: divide by the root of the mean of the squares. The
# formula has one line. On this page you take that line apart: what it removes, what it
# leaves, where half precision breaks it, where it stands in a model, and what it costs.
#
# **Goals.** After this page you can
#
# - compute RMSNorm by hand and in code, and say which axis and why;
# - say what LayerNorm removes that RMSNorm leaves in, and when the two agree;
# - choose epsilon, and put it in the right place;
# - write a norm that survives float16 and bfloat16;
# - read the weight of a released model the right way round;
# - measure what norms do to a stack of 72 blocks, and what they cost.
#
# **Time.** 45 minutes, exercises included.
#
# **Before you start.** Read [00 Start here](00-start-here.ipynb). You need the mean,
# the square root, and tensor shapes. [Page 01](01-embedding-scaling.ipynb) made the
# vectors that are normalised here.

# %%
import math
import time

import ipywidgets as widgets
import torch
from torch import nn

from apex_lessons import explorers, models, norm
from apex_lessons.exercises import norm as exercises
from apex_lessons.figures import norm as draw, png, show

torch.set_num_threads(1)

# %% [markdown]
# ## 1. One line, by hand
#
# **You will be able to** compute RMSNorm of four numbers on paper.
#
# *RMS* is read backwards: the **r**oot of the **m**ean of the **s**quares. For a vector
# $x$ of $d$ numbers, with a small $\varepsilon$ and a learned weight $\gamma$:
#
# $$\mathrm{RMS}(x) = \sqrt{\frac{1}{d}\sum_{i=1}^{d} x_i^2 + \varepsilon},
# \qquad \mathrm{RMSNorm}(x)_i = \frac{x_i}{\mathrm{RMS}(x)}\,\gamma_i$$
#
# **Predict.** $x = [2, -1, 0.5, 1.5]$ and $\gamma = 1$. What is the mean of the squares
# of the *result*?

# %%
x = torch.tensor([2.0, -1.0, 0.5, 1.5])
squares = x.pow(2)                              # [4]
mean_square = squares.sum() / 4                 # 7.5 / 4
root = torch.sqrt(mean_square + 1e-6)
out = x / root                                  # [4]
print("squares", squares.tolist(), "sum", squares.sum().item())
print(f"mean square {mean_square:.3f}, RMS {root:.4f}")
print("result", [round(value, 4) for value in out.tolist()])
print("its squares", [round(value, 3) for value in out.pow(2).tolist()],
      f"mean {out.pow(2).mean():.4f}")

# %% [markdown]
# **What to notice.** The mean square of the result is 1, and so is its RMS. The signs
# and the proportions stay: 2 is still four times 0.5. To be exact, the mean square is
# $1.875 / 1.875001$: epsilon takes a little away.
#
# These are the numbers of the reference's example (section 3.4), and all of them are
# right.

# %%
exact = norm.rms_norm(x.double())
assert abs(exact.square().mean().item() - 1.875 / 1.875001) < 1e-12
assert out[0] / out[2] == x[0] / x[2] == 4

# %% [markdown]
# ### As a function
#
# In a model, `x` has the shape `[batch, sequence, d]`, and each token has its own RMS.
# So the mean runs over the **last** axis, and `keepdim=True` keeps a place for it.

# %%
def rms_norm(x, weight, eps):
    mean_square = x.pow(2).mean(dim=-1, keepdim=True)     # [batch, seq, 1]
    return x / torch.sqrt(mean_square + eps) * weight     # [batch, seq, d]


tokens = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))
weight = torch.linspace(0.5, 1.5, 8)
ours, course = rms_norm(tokens, weight, 1e-6), norm.rms_norm(tokens, weight, 1e-6)
assert torch.allclose(ours, course, atol=1e-6)
print("RMS of the ten tokens before:", end=" ")
print(" ".join(f"{size:.2f}" for size in tokens.square().mean(-1).sqrt().flatten()))

# %% [markdown]
# PyTorch has had the same function since version 2.4. The course's own one,
# `norm.rms_norm`, is used below, so that every page also runs with older versions.

# %%
if hasattr(nn.functional, "rms_norm"):
    built_in = nn.functional.rms_norm(tokens, (8,), weight, eps=1e-6)
    assert torch.allclose(built_in, norm.rms_norm(tokens, weight, 1e-6), atol=1e-6)
    print("torch.nn.functional.rms_norm gives the same")
else:
    print("skipped: torch.nn.functional.rms_norm needs torch 2.4")

# %% [markdown]
# ### A test that needs no answer
#
# Double the input. Its RMS doubles too, so the result must stay. Here are five formulas
# that are seen in real programs and even in documentation. Which of them pass?

# %%
divisors = {
    "root of mean square": lambda x: x.square().mean().sqrt(),
    "no root": lambda x: x.square().mean(),
    "root of the RMS": lambda x: x.square().mean().sqrt().sqrt(),
    "sum, not mean": lambda x: x.square().sum().sqrt(),
    "root of squared mean": lambda x: x.mean().square().sqrt()}

# %%
for name, divisor in divisors.items():
    once, twice = x / divisor(x), 2 * x / divisor(2 * x)
    verdict = "same" if torch.allclose(once, twice) else "changes"
    print(f"{name:25} {verdict:8} RMS of the result {once.square().mean().sqrt():.3f}")

# %% [markdown]
# **What to notice.** One test is not enough. The sum passes the doubling test, but its
# result has RMS 0.5: the *length* is 1, not the RMS. Of all programs that divide $x$ by
# one positive number, only the right one gives RMS 1 for every $x$. "Root of the RMS"
# is a printed formula: PyTorch's own documentation had a root too many for a while, and
# at least four readers reported it.

# %% [markdown]
# ### Exercise 2.1: RMSNorm
#
# **Goal**: the formula over the last axis, with weight and epsilon; the result has the
# shape and the dtype of `x`. **Difficulty** ●○○. **Time** 5 minutes.
#
# <details><summary>Hint 1</summary>
#
# Three steps: square, mean over `dim=-1` with `keepdim=True`, root. Epsilon is added
# before the root.
#
# </details>
#
# <details><summary>Hint 2</summary>
#
# Make a new tensor. A function that writes into `x` spoils the caller's residual
# stream.
#
# </details>

# %%
def my_rms_norm(x, weight, eps):
    ...

# %%
exercises.check_rms_norm(my_rms_norm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_rms_norm(x, weight, eps):
#     mean_square = x.pow(2).mean(dim=-1, keepdim=True)
#     return x * torch.rsqrt(mean_square + eps) * weight
# ```
#
# `x * rsqrt(...)` and `x / sqrt(...)` differ in the last digit only. Both are right.
#
# </details>
#
# **Recap.** Square, mean, root; then divide. Each token by its own RMS.

# %% [markdown]
# ## 2. What LayerNorm removes and RMSNorm leaves in
#
# **You will be able to** say what the two norms have in common, and when they agree.
#
# LayerNorm is older. It first subtracts the mean $\mu$, then divides by the standard
# deviation $\sigma$. Without its weight and bias it is RMSNorm of the centred vector:
#
# $$\mathrm{LayerNorm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}
# = \mathrm{RMSNorm}(x - \mu)$$
#
# The two divisors are related, for every vector: $\mathrm{RMS}^2 = \sigma^2 + \mu^2$.
#
# **Predict.** The worked example has mean 0.75. What are the mean and the variance
# after RMSNorm: 0 and 1, or something else?

# %%
show(draw.before_and_after(),
     alt="Bars of the worked example before, after LayerNorm and after RMSNorm. "
         "LayerNorm moves the mean to zero; RMSNorm keeps all signs and a mean of "
         "0.55.",
     numbers=draw.describe_before_and_after())

# %%
facts = draw.statistics(x)
assert abs(facts["rms"] ** 2 - (facts["variance"] + facts["mean"] ** 2)) < 1e-12
after = draw.statistics(norm.rms_norm(x.double()))
print(f"after RMSNorm: mean {after['mean']:.3f}, variance {after['variance']:.3f}")
assert abs(after["variance"] + after["mean"] ** 2 - 1) < 1e-5

# %% [markdown]
# **What to notice.** After RMSNorm the mean is 0.548 and the variance 0.700; together,
# $0.700 + 0.548^2 = 1$. RMSNorm sets the mean square to 1, not the variance.
#
# > **The reference prints** "variance normalization: yes (via RMS)" for both norms. It
# > is true only for vectors with mean 0 ([page 06](06-the-reference-checked.ipynb),
# > E13).
#
# ### Move the vector, watch the results
#
# Add the same number to every entry. Here is a small explorer whose whole code you see;
# change it as you like.

# %%
shift = widgets.FloatSlider(0, min=-6, max=6, step=0.25, description="shift")
picture = widgets.Image(format="png")


def redraw(change=None):
    picture.value = png(draw.before_and_after(shift=shift.value))


shift.observe(redraw, names="value")
redraw()
widgets.VBox([shift, picture])

# %% [markdown]
# The same picture without widgets, with a shift of 4:

# %%
show(draw.before_and_after(shift=4),
     alt="Bars of the example plus 4: all entries positive. After LayerNorm the same as"
         " before; after RMSNorm four bars between 0.6 and 1.23.",
     numbers=draw.describe_before_and_after(shift=4))

# %% [markdown]
# And for all shifts at once, one curve per entry:

# %%
show(draw.what_a_shift_does(),
     alt="Outputs of four entries against the number added to all. Under LayerNorm "
         "four flat lines; under RMSNorm curves that run together towards -1 and 1.",
     numbers=draw.describe_what_a_shift_does())

# %% [markdown]
# **What to notice.** LayerNorm does not see a shift. RMSNorm does: with a large shift
# all entries come out near 1 (or -1), and their differences shrink. This is the price
# of leaving the mean in.

# %%
y = torch.randn(512, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
norms = {"RMSNorm": norm.rms_norm, "LayerNorm": draw.layer_norm}
for change, changed in {"times 7": 7 * y, "times -1": -y, "plus 5": y + 5}.items():
    moved = {name: (f(changed, eps=0.0) - f(y, eps=0.0)).abs().max().item()
             for name, f in norms.items()}
    print(f"{change:9} RMSNorm moves by {moved['RMSNorm']:.3f},"
          f" LayerNorm by {moved['LayerNorm']:.3f}")

centred = y - y.mean()
assert torch.allclose(norm.rms_norm(centred), draw.layer_norm(centred), atol=1e-12)

# %% [markdown]
# | change | RMSNorm | LayerNorm |
# |---|---|---|
# | every entry times a positive number | same | same |
# | every entry times -1 | sign flips | sign flips |
# | the same number added to every entry | **changes** | same |
#
# The last line of the cell: where the mean is 0, the two norms agree.
#
# ### Two numbers are enough to see it
#
# **Predict.** Take vectors of only two numbers. LayerNorm removes the length and the
# mean. What is left?

# %%
show(draw.two_dimensions(),
     alt="Three squares with 48 vectors of two numbers. After LayerNorm all lie on "
         "two points; after RMSNorm on a circle of radius 1.414, directions kept.",
     numbers=draw.describe_two_dimensions())

# %% [markdown]
# **What to notice.** RMSNorm keeps the direction and forgets the length: a circle. Its
# radius is $\sqrt 2$, because the RMS is 1 and the length is $\sqrt d$ times the RMS.
# LayerNorm also forgets everything along the line of equal numbers: of two dimensions
# one sign is left. With $d = 512$ it forgets one dimension of 512, which is much less.
#
# $$\mathrm{RMSNorm}(x) = \sqrt d\,\frac{x}{\lVert x\rVert}
# \qquad(\varepsilon = 0,\ \gamma = 1)$$

# %%
pair = torch.tensor([3.0, 4.0], dtype=torch.float64)
unit = nn.functional.normalize(pair, dim=0)          # length 1
normed = norm.rms_norm(pair, eps=0.0)                # RMS 1
assert torch.allclose(normed, math.sqrt(2) * unit)
print("normalize:", [round(v, 4) for v in unit.tolist()],
      " RMSNorm:", [round(v, 4) for v in normed.tolist()])
print(f"length after RMSNorm of 512 numbers: {norm.rms_norm(y).norm():.3f}")
assert abs(norm.rms_norm(y).norm().item() - math.sqrt(512)) < 1e-3

# %% [markdown]
# > **The reference prints** "scales all values to ~unit norm". The RMS is 1; the norm
# > (length) is $\sqrt d$, 22.627 at $d = 512$
# > ([page 06](06-the-reference-checked.ipynb), E15).
#
# LayerNorm also has a bias: $2d$ learned numbers against $d$. GPT-2 and BERT use it;
# Llama, DeepSeek-V3 and Qwen3 use RMSNorm. Does a model lose by leaving the mean in?
# The paper found "comparable" results and *supposes* that centring is not needed.

# %%
count = {type(m).__name__: sum(p.numel() for p in m.parameters())
         for m in (nn.LayerNorm(512), norm.RMSNorm(512))}
print(count)
assert count == {"LayerNorm": 2 * 512, "RMSNorm": 512}

# %% [markdown]
# > **The reference prints** "equal or better quality" and "the mean subtraction was not
# > adding value". That many models use it is not a measurement
# > ([page 06](06-the-reference-checked.ipynb), E12).
#
# ### Exercise 2.2: LayerNorm out of RMSNorm
#
# **Goal**: LayerNorm without weight and bias. **Difficulty** ●○○. **Time** 5 minutes.
#
# <details><summary>Hint</summary>
#
# Centre first. Then divide by the root of the mean square *of the centred vector*.
# torch's `var` divides by $d - 1$ unless you write `unbiased=False`.
#
# </details>

# %%
def my_layer_norm(x, eps):
    ...

# %%
exercises.check_layer_norm(my_layer_norm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_layer_norm(x, eps):
#     return norm.rms_norm(x - x.mean(dim=-1, keepdim=True), eps=eps)
# ```
#
# </details>
#
# **Recap.** RMSNorm forgets the length only. LayerNorm forgets length and mean. They
# agree where the mean is 0.

# %% [markdown]
# ## 3. Epsilon: small, but a part of the model
#
# **You will be able to** say at which size epsilon starts to matter.
#
# A vector of zeros has RMS 0. Epsilon avoids the division 0/0. It stands **inside** the
# root, beside the mean square, so it has the unit of $x^2$. It is felt where the RMS
# comes near $\sqrt\varepsilon$: for $\varepsilon = 10^{-6}$ that is 0.001.
#
# A vector with RMS $r$ comes out with RMS $r / \sqrt{r^2 + \varepsilon}$.
#
# **Predict.** All entries are 0.001 and $\varepsilon = 10^{-6}$. What comes out?

# %%
tiny = torch.full((4,), 1e-3, dtype=torch.float64)
inside = norm.rms_norm(tiny, eps=1e-6)[0]
outside = (tiny / (tiny.square().mean().sqrt() + 1e-6))[0]
print(f"epsilon inside the root: {inside:.4f}, outside: {outside:.4f}")
zeros = torch.zeros(4)
print("zeros stay zeros:", norm.rms_norm(zeros).tolist(),
      " without epsilon:", norm.rms_norm(zeros, eps=0.0).tolist())

# %%
show(draw.epsilon_curve(),
     alt="RMS after the norm against RMS before it on log axes. The curves are flat "
         "at 1 and bend down at 0.003, 0.001 and, for epsilon outside the root, at "
         "0.000001.",
     numbers=draw.describe_epsilon_curve())

# %% [markdown]
# **What to notice.** The same number $10^{-6}$ bends the curve at 0.001 inside the root
# and at 0.000001 outside. So a port must copy the *place* as well as the number. Below
# the bend the norm only multiplies, by $1/\sqrt\varepsilon$: tiny vectors stay tiny.
# That also limits the gradient.

# %%
at_zero = torch.zeros(4, requires_grad=True)
norm.rms_norm(at_zero, eps=1e-6)[0].backward()
print(f"slope at zero: {at_zero.grad[0]:.0f} = 1 / sqrt(1e-6)")
for eps in (1e-5, 1e-6):
    print(f"RMS 0.01 in, eps {eps:g}: RMS {draw.output_rms(0.01, eps).item():.4f} out")
ratio = (draw.output_rms(0.01, 1e-6) / draw.output_rms(0.01, 1e-5)).item()
assert 1.04 < ratio < 1.05

# %% [markdown]
# At RMS 0.01 the two epsilons in use differ by 4 %. That is enough to change the words
# that a model writes, and wrong epsilons in config files have done so. Take it from the
# model's config, and check that it arrives in every norm.

# %%
wanted = {"Llama-2-7B": 1e-5, "gpt-oss-20b": 1e-5, "Qwen3-8B": 1e-6, "Gemma-2-2B": 1e-6}
released = {row.model: row.norm_eps for row in models.published()}
print({name: released[name] for name in wanted})
assert wanted == {name: released[name] for name in wanted}

stack = nn.Sequential(*[norm.RMSNorm(16, eps=1e-5) for _ in range(3)])
arrived = {m.eps for m in stack.modules() if isinstance(m, norm.RMSNorm)}
assert arrived == {1e-5}

# %% [markdown]
# The paper's formula (Eq. 4) has no epsilon. Its authors' programs add $10^{-8}$, the
# PyTorch one outside the root, the TensorFlow one inside.
#
# ### Exercise 2.3: Which epsilon was it?
#
# **Goal**: from the RMS before and after, find epsilon. **Difficulty** ●●○. **Time** 5
# minutes.
#
# <details><summary>Hint</summary>
#
# Square both sides of $o = r / \sqrt{r^2 + \varepsilon}$ and solve for $\varepsilon$.
#
# </details>

# %%
def epsilon_for(input_rms, output_rms):
    ...

# %%
exercises.check_epsilon_for(epsilon_for)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def epsilon_for(input_rms, output_rms):
#     return input_rms**2 * (1 / output_rms**2 - 1)
# ```
#
# </details>
#
# **Recap.** Epsilon stands inside the root, matters below $\sqrt\varepsilon$, and
# belongs to the model.

# %% [markdown]
# ## 4. Each token by itself
#
# **You will be able to** say which numbers may share one RMS, and what leaks otherwise.
#
# **Predict.** Two tokens, [3, 4] and [6, 8]. What does RMSNorm make of each?

# %%
two = torch.tensor([[3.0, 4.0], [6.0, 8.0]], dtype=torch.float64)
right = norm.rms_norm(two, eps=0.0)
together = two / two.square().mean().sqrt()
over_time = two / two.square().mean(dim=0).sqrt()
for name, result in {"each token": right, "all together": together,
                     "over time": over_time}.items():
    print(f"{name:13}", result.round(decimals=4).tolist())
assert torch.allclose(right[0], right[1])

# %% [markdown]
# The second token is twice the first, so both come out the same. A popular notebook
# took one RMS for all tokens and features of a sequence. Two things break: the weight
# gets the shape `[time, d]` and the length is frozen; and a later token changes earlier
# outputs. The model can then see the future.

# %%
show(draw.which_axis(),
     alt="Three grids: which output moves when one token changes. Per token only the "
         "diagonal; in the other two every output, 15 cells framed as leaks from the "
         "future.",
     numbers=draw.describe_which_axis())

# %%
changed = tokens.clone()
changed[:, -1] += 10                                  # the last token of each sequence
earlier = (norm.rms_norm(tokens) - norm.rms_norm(changed))[:, :-1]
assert earlier.abs().max() == 0
assert norm.rms_norm(torch.empty(2, 0, 8)).shape == (2, 0, 8)   # no tokens, no problem
print("shape of the weight:", list(norm.RMSNorm(8).weight.shape))

# %% [markdown]
# ### pRMSNorm: look at a part
#
# The same paper tries a cheaper RMS: from a share $p$ of the numbers, the first
# $k = \lfloor d\,p \rfloor$ of them. All $d$ numbers are then divided by it. How near
# is it?

# %%
show(draw.partial(),
     alt="Partial RMS over full RMS against the share of numbers. For normal numbers "
         "the band narrows to 1; with one outlier the median is low and the band "
         "very wide.",
     numbers=draw.describe_partial())

# %% [markdown]
# **What to notice.** For well-mixed numbers a sixteenth is within about 19 %: the
# relative spread is near $\sqrt{(1-p) / 2k}$. If one entry is much larger than the
# others, the part usually misses it, and then the result is too large.

# %%
low, middle, high = draw.partial_spread()[draw.SHARES.index(1 / 16)].tolist()
assert 0.79 < low < 0.83 and 1.16 < high < 1.21
spread = math.sqrt((1 - 1 / 16) / (2 * 32))
print(f"5 % to 95 % expected: {1 - 1.645 * spread:.2f} to {1 + 1.645 * spread:.2f}")

# %% [markdown]
# **Recap.** One token, one RMS, the last axis.

# %% [markdown]
# ## 5. Half precision
#
# **You will be able to** predict where float16 breaks the formula, and write a version
# that does not break.
#
# float16 ends at 65,504. bfloat16 reaches as far as float32, but keeps 8 significant
# bits (float16: 11). The norm *squares* its input.
#
# **Predict.** What is the smallest whole number whose square does not fit into float16?

# %%
def printed_rms_norm(x, weight=1.0, eps=1e-6):           # the reference's code
    rms = x.pow(2).mean(dim=-1, keepdim=True).add(eps).sqrt()
    return (x / rms) * weight


print("255^2 =", 255**2, " 256^2 =", 256**2, " largest:", torch.finfo(torch.half).max)
for value in (255, 256, 1000):
    half = torch.full((4,), float(value), dtype=torch.float16)
    print(f"{value:5}: printed {printed_rms_norm(half)[0].item():.1f},"
          f" float32 inside {norm.rms_norm(half)[0].item():.1f}")

# %% [markdown]
# The square becomes infinite, and $1/\sqrt\infty = 0$: the token is **silenced**, with
# no error. At the other end, squares of small numbers vanish.

# %%
small = torch.full((4,), 1e-4, dtype=torch.float16)
print("1e-4 squared in float16:", small.pow(2)[0].item(),
      f" squares vanish below {math.sqrt(2**-25):.5f}")
for eps in (1e-6, 1e-8):
    print(f"eps {eps:g}: printed {printed_rms_norm(small, eps=eps)[0].item():.4f},"
          f" float32 inside {norm.rms_norm(small, eps=eps)[0].item():.4f},"
          f" exact {norm.rms_norm(small.double(), eps=eps)[0].item():.4f}")

# %%
show(draw.half_precision(),
     alt="Outputs for vectors of many sizes. All in float16 drops to 0 from 256 on "
         "and is infinite below 0.00017 for eps 1e-8; float32 inside and bfloat16 "
         "follow the formula.",
     numbers=draw.describe_half_precision())

# %% [markdown]
# **What to notice.** With $\varepsilon = 10^{-8}$, epsilon itself is 0 in float16, so
# tiny vectors divide by 0. The cure is one word: `x.float()` *before* the square, for
# both uses of `x`, and one cast back at the end. float32 has its own end, at
# $1.8 \cdot 10^{19}$: there the square overflows again. The course's function scales
# such rows first.

# %%
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    limit = torch.finfo(dtype)
    bits = 1 - round(math.log2(limit.eps))
    print(f"{str(dtype):15} {bits:2} bits, largest {limit.max:.3g}, squares fit up to"
          f" {math.sqrt(limit.max):.3g}")
huge = torch.full((4,), 1e20)
print("1e20 in float32: printed", printed_rms_norm(huge)[0].item(),
      " norm.rms_norm", norm.rms_norm(huge)[0].item())

# %% [markdown]
# ### When to cast back
#
# There are three orders in released models:
#
# | family | order | in `norm.rms_norm` |
# |---|---|---|
# | Llama, Mistral, Qwen | normalise in float32, cast, then times the weight | `order="cast-first"` |
# | gpt-oss, Olmo-3, Gemma | normalise and weight in float32, then cast | `order="cast-last"` |
# | T5 | cast to the weight's dtype (if that is a half type), then times the weight | `order="cast-to-weight"` |
#
# Does the order matter? Here is the smallest example, in bfloat16.

# %%
x16 = torch.tensor([1.0, 2.0, 2.0, 4.0], dtype=torch.bfloat16)
w16 = torch.full((4,), 1.0078125, dtype=torch.bfloat16)
for order in norm.ORDERS:
    print(f"{order:15}", norm.rms_norm(x16, w16, order=order).tolist())
exact = norm.rms_norm(x16.double(), w16.double())
print("exact          ", exact.round(decimals=6).tolist())

# %%
show(draw.cast_orders(),
     alt="Bars for three orders in bfloat16. Weight in float32 then cast never "
         "misses the nearest number; cast first misses in 26 %, all in bfloat16 in "
         "37 % of the elements.",
     numbers=draw.describe_cast_orders())

# %% [markdown]
# **What to notice.** Casting last is the most exact order: one rounding. Casting first
# gives another number in a quarter of the places. Neither is a fault: a model was
# trained with its order, and a port must copy it. With a half-precision weight, T5's
# order is Llama's. And a detail: if the weight is float32 and `x` is bfloat16, a plain
# product is float32. The next layer did not ask for that.

# %%
errors = draw.cast_errors()
assert errors["cast-last"].largest < 0.0040 < errors["cast-first"].largest < 0.0079
assert 0.24 < errors["cast-first"].not_nearest < 0.28
plain = torch.ones(4) * x16                      # float32 weight
print("float32 weight times bfloat16:", plain.dtype,
      " norm.rms_norm:", norm.rms_norm(x16, torch.ones(4)).dtype)

# %% [markdown]
# ### An epsilon that nobody wrote
#
# `nn.RMSNorm(d)` without `eps` takes the dtype's own step at 1, and *which* dtype's has
# changed between PyTorch versions. For bfloat16 that step is 0.0078, for float32
# 0.00000012: the same layer gives two results. This is what your version does:

# %% tags=["machine"] reason="the default epsilon depends on the version of torch"
quiet = (0.058 * torch.ones(8)).bfloat16()
for dtype in (torch.bfloat16, torch.float32):
    eps = torch.finfo(dtype).eps
    print(f"eps {eps:.2g} ({dtype}): {norm.rms_norm(quiet, eps=eps)[0].item():.3f}")
if hasattr(nn, "RMSNorm"):
    unset = nn.RMSNorm(8, dtype=torch.bfloat16)(quiet)[0].item()
    print(f"no eps, torch {torch.__version__}: {unset:.3f}")

# %% [markdown]
# So always write epsilon. `norm.rms_norm` refuses `eps=None`.
#
# ### Exercise 2.4: A norm for half precision
#
# **Goal**: exact for float16 and bfloat16, and the result has the dtype of `x`,
# whatever the weight's is. **Difficulty** ●●○. **Time** 5 minutes.
#
# <details><summary>Hint</summary>
#
# Cast `x` once, at the top, and use only the cast one. Cast once more, at the very end.
#
# </details>

# %%
def careful_rms_norm(x, weight, eps):
    ...

# %%
exercises.check_half_precision(careful_rms_norm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def careful_rms_norm(x, weight, eps):
#     wide = x.float()
#     wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
#     return (wide * weight.float()).to(x.dtype)
# ```
#
# </details>
#
# **Recap.** Square in float32. Cast back once. Write epsilon.

# %% [markdown]
# ## 6. The weight
#
# **You will be able to** load a norm's weight from any model.
#
# After the division every feature may get its own size back: $\gamma$ has one number
# per feature, shared by all tokens. It starts at 1.
#
# **Predict.** At the start, $\gamma = 1$. Is the layer then close to the identity?

# %%
wide = 3 * torch.randn(4, 512, generator=torch.Generator().manual_seed(2))
moved = (norm.RMSNorm(512)(wide) - wide).abs().max().item()
print(f"std-3 input: RMS {wide.square().mean().sqrt():.2f}, moved by up to {moved:.1f}")
steady = norm.rms_norm(wide)
again = (norm.rms_norm(steady) - steady).abs().max().item()
assert moved > 5 and again < 1e-5

# %% [markdown]
# No: it still divides by the RMS. Only a vector whose RMS is 1 already passes
# unchanged, as the second norm in a row shows.
#
# > **The reference prints** "initialized to 1.0 so at the start, RMSNorm is close to
# > identity" ([page 06](06-the-reference-checked.ipynb), E14).
#
# ### (1 + weight)
#
# Gemma stores the *distance from 1*: its scale is $1 + w$ and $w$ starts at 0. The two
# conventions hold the same models, but a file made for one is wrong in the other. And
# the 1 must be added in float32: in bfloat16 the sum is rounded.

# %%
stored = torch.zeros(4)
print("w = 0, plain:     all zeros", bool((norm.rms_norm(x, stored) == 0).all()))
shifted = norm.rms_norm(x, stored, weight_offset=1.0)
print("w = 0, (1 + w):  ", [round(value, 4) for value in shifted.tolist()])
for value in (15.8125, 0.00390625):
    w = torch.tensor(value, dtype=torch.bfloat16)
    print(f"1 + {value}: bfloat16 {(1 + w).item()}, float32 {1 + w.float().item()}")

# %% [markdown]
# > **The reference's code says** "used by" a row of models, Gemma and Claude among
# > them. Gemma's norm is this variant. For Claude there is no public source
# > ([page 06](06-the-reference-checked.ipynb), E17).
#
# A stored zero silences a plain norm. A norm may also have no weight at all: then there
# is nothing to learn and nothing to save.

# %%
bare = norm.RMSNorm(4, elementwise_affine=False)
print(bare)
assert bare.weight is None and not bare.state_dict() and not list(bare.parameters())
assert torch.allclose(bare(x), out)

# %% [markdown]
# ### Exercise 2.5: Gemma's norm
#
# **Goal**: $x / \mathrm{RMS}(x) \cdot (1 + w)$, exact in bfloat16: one rounding, at the
# end. **Difficulty** ●●○. **Time** 5 minutes.
#
# <details><summary>Hint</summary>
#
# Everything in float32: `x`, the sum `1 + w`, the product. Then one `.to(x.dtype)`.
#
# </details>

# %%
def gemma_norm(x, weight, eps):
    ...

# %%
exercises.check_gemma_weight(gemma_norm)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def gemma_norm(x, weight, eps):
#     wide = x.float()
#     wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + eps)
#     return (wide * (1 + weight.float())).to(x.dtype)
# ```
#
# </details>
#
# **Recap.** Know whether a file stores $\gamma$ or $\gamma - 1$.

# %% [markdown]
# ## 7. Where the norms stand
#
# **You will be able to** count the norms of a model, and measure what they do over 72
# blocks.
#
# A block has two sub-layers, attention and feed-forward. In APEX-1 each reads a
# normalised copy of the stream, and a last norm stands before the logits: $2L + 1$
# norms for $L$ blocks.

# %%
def block():
    return nn.ModuleDict({"before_attention": norm.RMSNorm(8),
                          "before_feed_forward": norm.RMSNorm(8)})


for size in ("tiny", "small", "medium", "large"):
    blocks = models.apex1_config(size).n_layers
    model = nn.ModuleList([*[block() for _ in range(blocks)], norm.RMSNorm(8)])
    norms = sum(isinstance(m, norm.RMSNorm) for m in model.modules())
    assert norms == 2 * blocks + 1
    print(f"{size:7} {blocks:3} blocks, {norms:3} norms")

# %% [markdown]
# > **The reference prints** in its tutorial "at three places in every transformer
# > block"; its own section 3.5 and its diagram have two, plus one at the end
# > ([page 06](06-the-reference-checked.ipynb), E16).
#
# This count is APEX-1's, not a law. DeepSeek-V3 has two more norms inside each
# attention layer, and Gemma-3 has four per block, and norms on queries and keys.
#
# ### A chain of amplifiers
#
# The reference compares a deep network with 72 amplifiers in a row. By how much must
# each multiply to make a sound a billion times louder?

# %%
gain = 1e9 ** (1 / 72)
print(f"{gain:.3f} per stage")
assert round(gain, 3) == 1.334

# %% [markdown]
# Now measure it. A residual step can be written in three ways. `draw.place` is the very
# function that the measurement below uses:
#
# - *no norm*: $x + f(x)$
# - *post-norm* (the transformer of 2017): $\mathrm{norm}(x + f(x))$
# - *pre-norm* (many models today): $x + f(\mathrm{norm}(x))$
#
# **Predict.** 72 blocks with fresh random weights. How large is the stream at the end,
# in each of the three?

# %%
def sublayer(h):
    return 2 * h                                 # stands for attention or feed-forward


for placement in ("none", "post", "pre"):
    result = draw.place(x, sublayer, placement)
    print(f"{placement:5}", [round(value, 3) for value in result.tolist()],
          f"RMS {result.square().mean().sqrt():.3f}")

# %%
show(draw.depth(),
     alt="RMS of the stream and of its gradient over 72 blocks, log axes. Without "
         "norms the stream grows to 1e17 and the gradient explodes; with norms both "
         "stay within tens.",
     numbers=draw.describe_depth())

# %%
none, post, pre = map(draw.through_depth, ("none", "post", "pre"))
overflow = next(block for block, size in enumerate(none.size) if size > 65504)
print("without norms, the stream leaves float16 after block", overflow)
assert none.size[-1] > 1e9 and none.gradient[0] > 1e9 * none.gradient[-1]
assert max(post.size[1:]) < 1.001 and 5 < pre.size[-1] < 20
print(f"pre-norm: RMS {pre.size[18]:.1f} after 18 blocks, {pre.size[72]:.1f} after 72,"
      f" ratio {pre.size[72] / pre.size[18]:.1f}")
assert round(pre.size[72] / pre.size[18], 1) == 2.4

# %% [markdown]
# **What to notice.**
#
# - Without norms each block multiplies. After 72 blocks the signal is about $10^{17}$
#   times larger, and so, going back, is the gradient. This is called *exploding*
#   activations and gradients.
# - Post-norm resets the stream to RMS 1 after every sub-layer.
# - Pre-norm does **not** normalise the stream: it grows, since every sub-layer adds
#   about the same amount. Independent additions add their squares, so the growth goes
#   with the root of the depth: four times the blocks, about twice the size (2.4 times
#   in this draw). Only what a sub-layer *reads* is normalised. This is why a last norm
#   is needed before the logits.
#
# > **The reference prints** that growing or shrinking numbers are "called internal
# > covariate shift". That term means another thing: the change of a layer's input
# > *distribution* while the layers before it are being trained. Whether it explains why
# > such norms help is disputed ([page 06](06-the-reference-checked.ipynb), E10).
#
# ### Which one is more stable?
#
# Look at the gradient of the last block's last matrix, at the start of training, for
# stacks of different depth.

# %%
show(draw.last_layer(),
     alt="Length of the last matrix's gradient for 4 to 72 blocks, log axes. "
         "Post-norm stays near 1.5; pre-norm falls from 0.9 to 0.2, along one over "
         "the root of the depth.",
     numbers=draw.describe_last_layer())

# %%
post_last, pre_last = draw.last_gradients("post"), draw.last_gradients("pre")
assert max(post_last) / min(post_last) < 2
assert 0.7 < (pre_last[0] / pre_last[-1]) / math.sqrt(72 / 4) < 1.4

# %% [markdown]
# **What to notice.** In post-norm the gradient near the output stays as large in a deep
# stack as in a shallow one. In pre-norm it falls with the root of the depth. Xiong et
# al. (2020) derive this for the start of training: with post-norm a large learning rate
# meets large gradients near the output, and a slow start of the learning rate
# (*warm-up*) helps. What you see here is the start only, at width 48, with one draw of
# the weights. It says nothing about the quality after training.
#
# **Recap.** Two norms a block and one at the end. Pre-norm normalises what is read, not
# the stream.

# %% [markdown]
# ## 8. Is it faster?
#
# **You will be able to** say what "faster" depends on, and measure it where you are.
#
# RMSNorm does less arithmetic: no mean, no subtraction, no bias. Count operations per
# number.

# %%
rms_norm_count = ["square", "mean of squares", "divide", "weight"]
layer_norm_count = ["mean", "subtract", *rms_norm_count, "bias"]
saved = 1 - len(rms_norm_count) / len(layer_norm_count)
print(len(layer_norm_count), "against", len(rms_norm_count), f"= {saved:.0%} fewer")
assert round(100 * saved) == 43

# %% [markdown]
# **Predict.** 43 % fewer operations. How much faster is PyTorch's RMSNorm than its
# LayerNorm, on your processor?

# %% tags=["machine"] reason="timings differ between machines"
shape, d = (1, 256, 1024), 1024
big = torch.randn(shape, generator=torch.Generator().manual_seed(3))
ones, bias, upstream = torch.ones(d), torch.zeros(d), torch.randn(shape)
F = nn.functional
programs = {"a copy": lambda x, w: x.clone(),
            "LayerNorm (torch)": lambda x, w: F.layer_norm(x, (d,), w, bias, 1e-6),
            "RMSNorm, the formula": lambda x, w: rms_norm(x, w, 1e-6),
            "RMSNorm, this course": lambda x, w: norm.rms_norm(x, w, 1e-6)}
if hasattr(F, "rms_norm"):
    programs["RMSNorm (torch)"] = lambda x, w: F.rms_norm(x, (d,), w, 1e-6)

# %% tags=["machine"] reason="timings differ between machines"
def best(run, repeats=9):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)                     # milliseconds

# %% tags=["machine"] reason="timings differ between machines"
def there_and_back(program):
    x, w = big.clone().requires_grad_(), ones.clone().requires_grad_()
    return lambda: torch.autograd.grad(program(x, w), [x, w], upstream,
                                       allow_unused=True)


times = {name: {"forward": best(lambda: program(big, ones)),
                "forward and backward": best(there_and_back(program))}
         for name, program in programs.items()}
show(draw.speed(times), numbers=draw.describe_speed(times),
     alt="Bars of the times measured on this machine: a copy, LayerNorm and "
         "RMSNorms.")

# %%
forward = {name: row["forward"] for name, row in times.items()}
both = {name: row["forward and backward"] for name, row in times.items()}
assert forward["RMSNorm, the formula"] > 0.7 * forward["LayerNorm (torch)"]
assert both["RMSNorm, the formula"] > 1.2 * both["LayerNorm (torch)"]    # wide margins

# %% [markdown]
# **What to notice.** The stored picture comes from a small virtual machine with one
# thread. There RMSNorm was not faster but *slower* than LayerNorm, and the formula's
# backward pass much slower. Yours may differ. Why can less arithmetic take more time?
#
# Look at what PyTorch really runs. It keeps a note of each operation, for the way back.

# %% tags=["machine"] reason="the list of operations depends on the version of torch"
def operations(result):
    found, waiting = {}, [result.grad_fn]
    while waiting:
        step = waiting.pop()
        if step is not None and "Accumulate" not in step.name():
            found[step] = step.name().split("Backward")[0]
            waiting += [before for before, _ in step.next_functions]
    return list(found.values())

# %% tags=["machine"] reason="the list of operations depends on the version of torch"
traced = big.clone().requires_grad_()
listed = {name: operations(programs[name](traced, ones)) for name in programs
          if name not in ("a copy", "RMSNorm, this course")}
for name, steps in listed.items():
    print(f"{name:21} {len(steps)}:", ", ".join(reversed(steps)))

# %% [markdown]
# LayerNorm is *fused*: one program that reads each number, keeps it in the processor's
# cache, and writes the result once. The formula is a row of separate programs. Each of
# them reads a whole tensor from memory, writes a whole new one, and the next reads it
# again. Arithmetic is cheap; moving numbers is not.

# %%
fused = {"read x": 1, "write y": 1}
formula = {"square": 2, "mean": 1, "divide": 2, "weight": 2}   # tensors read or written
print("whole tensors moved:", sum(formula.values()), "against", sum(fused.values()))
assert sum(formula.values()) == 7

# %% [markdown]
# If a compiler joins the formula into one program, most of this difference goes away.
# Compiling takes a minute and needs a C++ compiler, so this page does not do it. Here
# is a stored measurement of 2048 tokens of width 1024: torch 2.13, one thread of a busy
# AMD EPYC machine, best of some 400 runs, freed memory reused. The times with the way
# back differed by a factor of two between sessions.

# %%
measured = {"LayerNorm, eager (fused)": (1.52, 5.03),
            "LayerNorm, compiled": (2.61, 11.17),
            "RMSNorm formula, eager": (6.50, 48.84),
            "RMSNorm formula, compiled": (1.73, 12.90)}
stored = {name: {"forward": there, "forward and backward": both}
          for name, (there, both) in measured.items()}
show(draw.speed(stored), numbers=draw.describe_speed(stored),
     alt="Bars of stored times, forward, and forward and backward. The eager formula "
         "of RMSNorm takes far longer than the other three.")

# %% [markdown]
# **What to notice.** Compiled, the same formula is more than three times faster
# forward. It then takes a third less time than a compiled LayerNorm, and about as much
# as the hand-fused one. With the way back, the hand-fused LayerNorm stays ahead.

# %%
eager, compiled = stored["RMSNorm formula, eager"], stored["RMSNorm formula, compiled"]
assert eager["forward"] / compiled["forward"] > 3
saved = 1 - compiled["forward"] / stored["LayerNorm, compiled"]["forward"]
print(f"{saved:.0%} less time than LayerNorm, both compiled, forward")

# %%
REPEAT_COMPILED = False          # True: needs a C++ compiler and a minute or two
if REPEAT_COMPILED:
    for name in ("LayerNorm (torch)", "RMSNorm, the formula"):
        compiled = torch.compile(programs[name])
        print(name, "compiled:", f"forward {best(lambda: compiled(big, ones)):.2f} ms,",
              f"forward and backward {best(there_and_back(compiled)):.2f} ms")
else:
    print("not repeated: set REPEAT_COMPILED = True")

# %% [markdown]
# > **The reference prints** "20-40 % faster" and "20-40 % fewer operations". No source
# > gives these numbers. The paper reports 7 % to 64 % less running time, of whole
# > models, on the programs and machines of 2019
# > ([page 06](06-the-reference-checked.ipynb), E11).
#
# So: RMSNorm *can* be faster, where it is fused. And a norm is one part of a model's
# step. Ask "which program, on which machine, forward or backward, compared with what?"
#
# **Recap.** Fewer operations are not less time. Measure.

# %% [markdown]
# ## 9. Move it yourself
#
# One vector, both norms, everything from this page: add a mean, an outlier, a scale;
# change epsilon and the dtype; go deeper. Find a setting where the vector is silenced.

# %%
explorers.norm.NormExplorer()

# %% [markdown]
# ## Recap
#
# - RMSNorm: square, mean over the last axis, add epsilon, root, divide; then the
#   weight.
# - It sets the RMS to 1 and the length to $\sqrt d$. It keeps the direction and the
#   mean's part; LayerNorm also removes the mean. They agree where the mean is 0.
# - $\mathrm{RMS}^2 = \sigma^2 + \mu^2$.
# - Epsilon is inside the root and matters below $\sqrt\varepsilon$. It belongs to the
#   model.
# - Square in float32: float16 silences a token from 256 on.
# - Weight: $\gamma$, or $1 + w$; cast before or after. Copy the model's convention.
# - $2L + 1$ norms in a plain pre-norm model. The stream itself is not normalised.
# - Speed is a property of a program on a machine.

# %% [markdown]
# ## Misconceptions
#
# | often said | what is true | shown in |
# |---|---|---|
# | "RMSNorm is LayerNorm." | It leaves the mean in, and has no bias. | section 2 |
# | "RMSNorm sets the variance to 1." | The mean square: $\sigma^2 + \mu^2 = 1$. | section 2 |
# | "The result is a unit vector." | Its RMS is 1; its length is $\sqrt d$. | sections 1 and 2 |
# | "Take the root of the RMS." | The RMS is already a root. Doubling $x$ tells. | section 1 |
# | "It ignores a shift." | Scale yes, shift no. | section 2 |
# | "Epsilon only avoids 0/0; any place, any size will do." | Near $\sqrt\varepsilon$ it changes the result; place and size are part of the model. | section 3 |
# | "Leave `eps` out, there is a default." | The default depends on dtype and version. | section 5 |
# | "Average over the whole sequence." | Then the future leaks. One RMS per token. | section 4 |
# | "float16 has enough range." | Squares overflow from 256 on, and vanish below 0.00017. | section 5 |
# | "Casting one use of `x` is enough." | The square and the quotient both need float32. | exercise 2.4 |
# | "The cast order is a detail." | A quarter of the bfloat16 results differ. | section 5 |
# | "The weight of any model fits." | Gemma stores $\gamma - 1$. | section 6 |
# | "At the start the layer is the identity." | Only for vectors of RMS 1. | section 6 |
# | "Three norms a block." | Two a block and one at the end: $2L + 1$. | section 7 |
# | "Growing activations are internal covariate shift." | That is about distributions during training. | section 7 |
# | "Pre-norm keeps the stream at size 1." | It grows with the root of the depth. | section 7 |
# | "RMSNorm is 20 to 40 % faster." | It depends; here, in eager PyTorch on a CPU, it was slower than the fused LayerNorm. | section 8 |
# | "Everybody uses it, so it is better." | The paper says comparable; use is not a measurement. | section 2 |

# %% [markdown]
# ## What if
#
# 1. ... you replace every LayerNorm of a trained GPT-2 by an RMSNorm with the same
#    weight? When would nothing change?
# 2. ... every row of the embedding table is multiplied by 10 in a pre-norm model
#    without blocks? And with blocks?
# 3. ... one entry of every vector is 1000 times larger than the others? What does
#    RMSNorm make of the others, and what could the weight do about it?
#
# <details><summary>Some answers</summary>
#
# 1. Nothing changes if the means are 0 and the biases too: centring can be moved into
#    the matrices that write to the stream.
# 2. Without blocks nothing, up to epsilon: the norm forgets the length. With blocks
#    each block adds a tenth of what it added before, compared with the embedding.
# 3. The RMS is about $1000/\sqrt d$, so the others come out near $\sqrt d / 1000$. The
#    weight can shrink that one feature and enlarge the others; the order of the two
#    steps stays.
#
# </details>

# %% [markdown]
# ## Further reading
#
# - Zhang and Sennrich 2019, *Root Mean Square Layer Normalization* (arXiv:1910.07467):
#   Eq. 4 the formula, section 4 the invariances; also pRMSNorm.
# - Ba et al. 2016, *Layer Normalization* (arXiv:1607.06450).
# - Xiong et al. 2020, *On Layer Normalization in the Transformer Architecture*
#   (arXiv:2002.04745): pre-norm and post-norm at the start of training.
# - Ioffe and Szegedy 2015, *Batch Normalization* (arXiv:1502.03167), section 2: what
#   "internal covariate shift" means. Santurkar et al. 2018 (arXiv:1805.11604) test it.
# - The reference, sections 3.1 to 3.5; what is wrong there, with evidence:
#   [page 06](06-the-reference-checked.ipynb).
#
# Next: [RoPE](03-rope.ipynb), which gives the tokens their places.
