# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Lesson 03: RoPE, position as a rotation
#
# Attention alone cannot tell "my dog bites your cat" from "your cat bites my dog".
# This page builds the cure that most language models use today: turn the query and the
# key by an angle that grows with the position. You will see on clock faces what turns,
# measure that only the distance remains, and meet the places where real programs fail.
#
# **Goals.** After this page you can
#
# - compute the frequencies and wavelengths of a head, and say which pairs finish a
#   turn;
# - rotate a query by hand and in code;
# - prove, and measure, that scores see only the distance;
# - move weights between the two layouts;
# - decode token by token with the right positions;
# - say what RoPE does *not* promise.
#
# **Time.** 45 minutes, exercises included.
#
# **Before you start.** Read [00 Start here](00-start-here.ipynb). You need sine and
# cosine in radians, the dot product, and tensor shapes. A *score* is the dot product of
# a query q and a key k, divided by the square root of the head width, before softmax.

# %%
import math

import ipywidgets as widgets
import torch

from apex_lessons import explorers, figures, models, rope
from apex_lessons.exercises import rope as exercises
from apex_lessons.figures import png, show

torch.set_num_threads(1)

# %% [markdown]
# ## 1. Without positions, word order is lost
#
# **You will be able to** show that attention by itself ignores the order of the words.
#
# **Predict.** The word "bites" scores every word of "my dog bites your cat". Now write
# "your cat bites my dog". Which of its scores change?
#
# A score is $q \cdot k / \sqrt{d}$ with $q = W_q x$ and $k = W_k x$. Nothing in it says
# *where* the words stand.

# %%
generator = torch.Generator().manual_seed(0)
words, w_q, w_k = (torch.randn(n, 8, generator=generator) for n in (5, 8, 8))
scores = (words @ w_q) @ (words @ w_k).T / math.sqrt(8)  # [words, words]

order = torch.tensor([3, 4, 2, 0, 1])
swapped = words[order]
scores_swapped = (swapped @ w_q) @ (swapped @ w_k).T / math.sqrt(8)
assert torch.allclose(scores_swapped, scores[order][:, order], atol=1e-5)
print("the same scores, in another order")

# %%
show(figures.rope.shuffled_sentence(),
     alt="Two tables of attention scores, for my dog bites your cat and for your cat "
         "bites my dog. The framed score of bites with dog is the same in both.",
     numbers=figures.rope.describe_shuffled_sentence())

# %% [markdown]
# **What to notice.** Each number of the left table is somewhere in the right one. Who
# bites whom cannot be seen. A causal mask tells a token how many others it may look at,
# and a network can learn some order from that alone; but the scores themselves know no
# place.
#
# **Recap.** Scores move with the words. Position must be put in.

# %% [markdown]
# ## 2. A shifted wave is a turned hand
#
# **You will be able to** turn a pair of numbers, and say which way round.
#
# The transformer of 2017 *added* waves to each token: a pair
# $(\cos m\theta, \sin m\theta)$ at position $m$. Look at what moving on by $k$ tokens
# does to such a pair:
#
# $$\begin{pmatrix}\cos (m{+}k)\theta\\ \sin (m{+}k)\theta\end{pmatrix} =
# \begin{pmatrix}\cos k\theta & -\sin k\theta\\ \sin k\theta & \cos k\theta\end{pmatrix}
# \begin{pmatrix}\cos m\theta\\ \sin m\theta\end{pmatrix}$$
#
# The shift is a rotation by $k\theta$, the same wherever you start. RoPE makes this the
# design: it adds nothing. It takes two numbers of the query (or key) as the tip of a
# clock hand and turns the hand by $m\theta$. Here $\theta$ is a *frequency*: radians
# per token.
#
# **Predict.** The hand starts at (1, 0), at three o'clock, and $\theta = 1$. Where is
# it at position 3?

# %%
def turn(pair, angle):
    x, y = pair
    return (x * math.cos(angle) - y * math.sin(angle),
            x * math.sin(angle) + y * math.cos(angle))


m, k, theta = 4, 3, 0.1
shifted = turn((math.cos(m * theta), math.sin(m * theta)), k * theta)
angle = (m + k) * theta
assert math.dist(shifted, (math.cos(angle), math.sin(angle))) < 1e-12
for position in (1, 3):
    print("position {}: ({:.4f}, {:.4f})".format(position, *turn((1, 0), position)))

# %%
show(figures.rope.clock_face(frequencies=(1.0, 0.1), positions=range(6)),
     alt="Two clock faces with hands for the positions 0 to 5. At one radian a token "
         "the hands go four fifths of the way round; at a tenth they stay within 29 "
         "degrees.",
     numbers=figures.rope.describe_clock_face(frequencies=(1.0, 0.1),
                                              positions=range(6)))

# %% [markdown]
# **What to notice.** At position 3 the hand is almost at nine o'clock: 3 radians are
# nearly half a turn. At position 0 nothing turns. The turn goes counter-clockwise, and
# in radians, not in degrees: a full turn is $2\pi$. Some code turns clockwise. That
# works just as well, if the model was trained so; against weights of the other kind it
# fails.

# %%
counter_clockwise, clockwise = turn((1, 0), 1), turn((1, 0), -1)
assert abs(counter_clockwise[1] - 0.8414709848) < 1e-9
assert clockwise == (counter_clockwise[0], -counter_clockwise[1])

# %% [markdown]
# **Recap.** One pair of numbers, one frequency, one angle: position times frequency.

# %% [markdown]
# ## 3. One frequency for each pair
#
# **You will be able to** compute all frequencies of a head.
#
# A head of width $d$ has $d/2$ pairs, and pair $i$ turns with its own frequency:
#
# $$\theta_i = b^{-2i/d}, \qquad i = 0, 1, \dots, d/2 - 1, \qquad
# \lambda_i = \frac{2\pi}{\theta_i}$$
#
# $b$ is the *base*, often 10,000. $\lambda_i$ is the *wavelength*: tokens for one turn.
#
# **Predict.** For $d = 8$ and $b = 10{,}000$: by which factor does each pair turn
# slower than the one before?

# %%
frequencies = rope.inverse_frequencies(8, base=10_000)  # [4], radians per token
for i, (f, wave) in enumerate(zip(frequencies, rope.wavelengths(frequencies))):
    print(f"pair {i}: {f:.4f} radians per token, {wave:9,.3f} tokens per turn")
assert torch.allclose(frequencies, torch.tensor([1, 0.1, 0.01, 0.001]).double())
without_minus = [10_000 ** (2 * i / 8) for i in range(4)]
assert torch.allclose(torch.tensor(without_minus), torch.tensor([1.0, 10, 100, 1000]))

# %% [markdown]
# > **The reference prints** 1, 0.0316, 0.001, 0.00003 for this head: that column
# > belongs to base 1,000,000 (E18). It also calls 10,000 the standard base; its own
# > larger models use 500,000 and 1,000,000 (E19). Evidence: [06 The reference,
# > checked](06-the-reference-checked.ipynb).

# %%
printed = torch.tensor([1.0, 0.0316, 0.0010, 0.00003]).double()
assert torch.allclose(rope.inverse_frequencies(8, base=10**6), printed, rtol=0.06)
assert not torch.allclose(frequencies, printed, rtol=0.06)
bases = [models.apex1_config(size).rope_base for size in ("small", "medium", "large")]
print("APEX-1 bases:", ", ".join(f"{base:,.0f}" for base in bases))

# %% [markdown]
# **What to notice.** Each pair is ten times slower than the one before. Four things go
# wrong here in real programs.
#
# - *The minus is lost.* Then the "frequencies" rise: 1, 10, 100, 1000.
# - *Pairs are counted from 1.* The paper does, with $i - 1$ in the exponent. Code
#   starts at 0.
# - *The model's width stands for the head's.* Rotate after the split into heads: every
#   head has all the frequencies.
# - *The width is odd.* Four numbers are two pairs (not six: each number is in one
#   pair); nine numbers do not split into pairs at all.

# %%
whole = rope.inverse_frequencies(8)  # a model of width 8 with two heads of 4
print("right, in each head: ", rope.inverse_frequencies(4).tolist())
print("wrong, heads 0 and 1:", [round(f, 4) for f in whole[:2].tolist()],
      [round(f, 4) for f in whole[2:].tolist()])
for width in (9, 65):
    try:
        rope.inverse_frequencies(width)
    except ValueError as error:
        print(error)

# %% [markdown]
# ### Exercise 3.1: the frequencies
#
# **Goal:** write the formula. **Difficulty:** ●○○. **Minutes:** 4.
#
# Return a tensor of `head_dim / 2` frequencies, the fastest first.
#
# <details><summary>Hint 1</summary>
#
# `torch.arange(0, head_dim, 2)` holds $2i$ already.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Divide by `head_dim`, put a minus in front, raise `base` to that power.
#
# </details>

# %%
def my_inverse_frequencies(head_dim, base):
    ...

# %%
exercises.check_inverse_frequencies(my_inverse_frequencies)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_inverse_frequencies(head_dim, base):
#     exponent = torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim
#     return base ** -exponent
# ```
#
# </details>
#
# **Recap.** $\theta_i = b^{-2i/d}$: from one radian per token down towards $1/b$, by
# equal factors.

# %% [markdown]
# ## 4. Wavelengths, and pairs that never finish a turn
#
# **You will be able to** say how far a pair turns within a context.
#
# **Predict.** A head of width 128 with base 10,000 reads 4,096 tokens. How many of its
# 64 pairs do *not* finish one turn?

# %%
show(figures.rope.wavelength_ladder(head_dim=128, base=10_000, context_length=4096),
     alt="Wavelength of each of 64 pairs on a log axis, a straight line from 6.28 to "
         "54,410 tokens. The 18 slowest pairs lie above the context length 4,096.",
     numbers=figures.rope.describe_wavelength_ladder(128, 10_000, 4096))

# %%
waves = rope.wavelengths(rope.inverse_frequencies(128))
never = waves > 4096
assert int(never.sum()) == 18 and int(never.nonzero()[0]) == 46
turns = 4096 / waves
assert 651 < turns[0] < 652 and 0.075 < turns[63] < 0.076

# %% [markdown]
# **What to notice.** On the log axis the wavelengths lie on a line. The fastest pair
# turns 652 times within 4,096 tokens: it has seen every angle. Pairs 46 to 63 never
# come round. They know only a part of the circle, and beyond 4,096 tokens they reach
# angles that they never met in training. [04 YaRN](04-yarn.ipynb) is about those pairs.
#
# Fast pairs are often called "local" and slow ones "global". That is an interpretation:
# the formula fixes how a pair turns, not what the model uses it for.
#
# Move the clock: drag the position, then push the context length below it. (On GitHub
# you see a picture of the first state.)

# %%
explorers.rope.WavelengthClock()

# %% [markdown]
# And here is an explorer in ten lines, for you to change. Try another base, or another
# figure.

# %%
slider = widgets.IntSlider(value=128, min=8, max=256, step=8, description="Head width")
picture = widgets.Image(value=png(figures.rope.wavelength_ladder(slider.value)),
                        width=700)


def redraw(change):
    picture.value = png(figures.rope.wavelength_ladder(change.new))


slider.observe(redraw, names="value")
widgets.VBox([slider, picture])

# %% [markdown]
# Without widgets: the same picture for another head, of width 64.

# %%
show(figures.rope.wavelength_ladder(head_dim=64),
     alt="Wavelengths of 32 pairs on a log axis, from 6.28 to 47,117 tokens. The 9 "
         "slowest pairs lie above the context length 4,096.",
     numbers=figures.rope.describe_wavelength_ladder(head_dim=64))

# %% [markdown]
# **What does the base do?** The first pair always turns one radian a token. The base
# sets the last one.

# %%
show(figures.rope.ladders_by_base(bases=(1e4, 5e5, 1e6), context_length=8192),
     alt="Wavelengths of 64 pairs for bases 10,000, 500,000 and 1,000,000: three lines "
         "from the same first point, ever steeper; 14, 29 and 30 pairs stay above "
         "8,192.",
     numbers=figures.rope.describe_ladders_by_base(bases=(1e4, 5e5, 1e6)))

# %%
show(figures.rope.released_wavelengths(),
     alt="The wavelengths of six released models as rows of dots, with the length each "
         "was first trained at. In every model a quarter to a half of the pairs lie "
         "beyond it.",
     numbers=figures.rope.describe_released_wavelengths())

# %% [markdown]
# **What to notice.** A larger base stretches the slow pairs and leaves the fast ones
# nearly alone. So *more* pairs never finish a turn, and neighbouring tokens differ less
# in the slow pairs. Many models for longer texts use a larger base; DeepSeek-V3 keeps
# 10,000 and is stretched later. No base is "the standard". (The bar is the length of
# training *before* any stretching.)
#
# **Recap.** Wavelengths run from $2\pi$ to nearly $2\pi b$ tokens. Compare them with
# the context length.

# %%
shares = []
for row in figures.rope.released_models():
    waves = rope.wavelengths(rope.inverse_frequencies(row.rotary_dim, row.base))
    shares.append((waves > row.trained_length).double().mean().item())
assert 0.25 < min(shares) and max(shares) < 0.5
assert {row.rope_theta for row in models.published()} >= {1e4, 5e4, 1.5e5, 5e5, 1e6}

# %% [markdown]
# ## 5. The rotation in code
#
# **You will be able to** rotate a whole query, step by step.
#
# All pairs at once, with $\odot$ for "number by number" and each $\cos$ and $\sin$
# written twice, once for each number of its pair:
#
# $$x' = x \odot \cos(m\theta) + \mathrm{rotate\_pairs}(x) \odot \sin(m\theta), \qquad
# \mathrm{rotate\_pairs}(x) = [-x_1, x_0, -x_3, x_2, \dots]$$
#
# The worked example: $d = 4$, base 10,000, position $m = 3$, $q = [1, 0.5, 0.3, -0.2]$.
#
# **Predict.** Which half of q will change more?

# %%
q = torch.tensor([1.0, 0.5, 0.3, -0.2], dtype=torch.float64)
angles = 3 * rope.inverse_frequencies(4)  # [2] radians
cos, sin = angles.cos().repeat_interleave(2), angles.sin().repeat_interleave(2)  # [4]
turned = q * cos + rope.rotate_pairs(q) * sin  # [4]
for name, values in (("angles", angles), ("cos", cos), ("sin", sin),
                     ("rotate_pairs(q)", rope.rotate_pairs(q)), ("turned q", turned)):
    print(f"{name:16}", [round(v, 3) for v in values.tolist()])

# %%
expected = [-1.060552500630379, -0.3538762402403555, 0.3058641101651954,
            -0.1909113566890488]
assert torch.allclose(turned, torch.tensor(expected, dtype=torch.float64), atol=1e-12)
print(f"norm before: {q.norm():.4f}, after: {turned.norm():.4f}")
assert abs(turned.norm() - math.sqrt(1.38)) < 1e-12

# %% [markdown]
# > **The reference prints** 1.187 for this norm; it is $\sqrt{1.38} = 1.1747$, before
# > and after (E22). All other numbers of its example are right. Evidence: [06 The
# > reference, checked](06-the-reference-checked.ipynb).
#
# **What to notice.** The first pair turned by 3 radians, the second by 0.03: it hardly
# moved. The norm is the same before and after.
#
# In a model the angles of all positions are computed once, as two tables of cosines and
# sines, one row for each position and one column for each pair. (The reference stores
# each column twice, once for each number of the pair: the same numbers.)

# %%
cos, sin = rope.rotary_tables(torch.arange(5), rope.inverse_frequencies(4))  # [5, 2]
x = q.float().expand(1, 1, 5, 4)  # [batch, heads, seq, head_dim]
rotated = rope.apply_rotary(x, cos, sin)  # [1, 1, 5, 4]
assert torch.equal(rotated[0, 0, 0], q.float())  # position 0: nothing turns
assert torch.allclose(rotated[0, 0, 3].double(), turned, atol=1e-6)

# %% [markdown]
# ### Exercise 3.2: the tables
#
# **Goal:** angles of many positions. **Difficulty:** ●○○. **Minutes:** 4.
#
# From integer positions `[seq]` and frequencies `[pairs]` make `(cos, sin)`, each
# `[seq, pairs]`. Positions may start anywhere, and may be in the thousands.
#
# <details><summary>Hint</summary>
#
# `positions[:, None] * inv_freq` is a table of products. Do not round the positions to
# a half type on the way.
#
# </details>

# %%
def my_tables(positions, inv_freq):
    ...

# %%
exercises.check_rotary_tables(my_tables)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_tables(positions, inv_freq):
#     angles = positions[:, None] * inv_freq  # [seq, pairs], float64
#     return angles.cos().float(), angles.sin().float()
# ```
#
# </details>
#
# ### Exercise 3.3: the rotation
#
# **Goal:** rotate all heads and positions. **Difficulty:** ●●○. **Minutes:** 6.
#
# `x` is `[batch, heads, seq, head_dim]`, `cos` and `sin` are `[seq, head_dim / 2]`.
# Neighbours form a pair. Return a new tensor like `x`.
#
# <details><summary>Hint 1</summary>
#
# `x[..., 0::2]` are the first numbers of all pairs, `x[..., 1::2]` the second. The
# tables line up with their last two axes by themselves.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Put the two results together with `torch.stack(..., dim=-1)`, then `.flatten(-2)`.
#
# </details>

# %%
def my_rotation(x, cos, sin):
    ...

# %%
exercises.check_apply_rotary(my_rotation)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_rotation(x, cos, sin):
#     first, second = x[..., 0::2], x[..., 1::2]
#     return torch.stack([first * cos - second * sin,
#                         first * sin + second * cos], dim=-1).flatten(-2)
# ```
#
# </details>
#
# **Recap.** Angles, tables, one multiplication with the pair's matrix. Position 0 stays
# as it is, norms stay as they are.

# %% [markdown]
# ## 6. Scores see only distance
#
# **You will be able to** prove it in three lines, and measure it.
#
# Write $R_m$ for the rotation by $m\theta$ in every pair. Rotations turn back when
# transposed, and angles add up:
#
# $$\langle R_m q, R_n k\rangle = q^\top R_m^\top R_n k$$
# $$R_m^\top R_n = R_{-m} R_n = R_{n-m}$$
# $$\langle R_m q, R_n k\rangle = q^\top R_{n-m}\, k$$
#
# $m$ and $n$ are gone; only $n - m$ is left.
#
# **Predict.** One q and one k, put at all 2,304 pairs of positions from 0 to 47. How
# many different scores?

# %%
q, k = figures.rope.query_and_key(16)


def score(m, n, base=10_000.0):
    positions = torch.tensor([m, n])
    at_m, at_n = (figures.rope.rotated(v, positions, base=base) for v in (q, k))
    return (at_m[0] @ at_n[1]).item() / math.sqrt(16)


print([round(score(m, n), 10) for m, n in ((5, 2), (105, 102), (505, 502))])
assert abs(score(5, 2) - score(505, 502)) < 1e-12
assert abs(score(5, 2) - score(2, 5)) > 0.01

# %%
show(figures.rope.distance_collapse(),
     alt="Scores of one query and one key at 2,304 pairs of positions against their "
         "distance. All lie on one curve with 95 points.",
     numbers=figures.rope.describe_distance_collapse())

# %% [markdown]
# **What to notice.** 2,304 scores, 95 distances, one curve. The curve is not the same
# for m - n and n - m: RoPE knows before from after. Now q is rotated in one layout and
# k in another (section 9), a mistake that no error message reports:

# %%
show(figures.rope.distance_collapse(layout_k="half"),
     alt="The same scores with q interleaved and k in the half layout: a cloud. Scores "
         "of equal distance differ by up to 2.76.",
     numbers=figures.rope.describe_distance_collapse(layout_k="half"))

# %%
show(figures.rope.score_matrices(),
     alt="Two score matrices of one query and one key. With equal layouts every "
         "diagonal has one colour; with mixed layouts the colours change along the "
         "diagonals.",
     numbers=figures.rope.describe_score_matrices())

# %%
scores = figures.rope.score_matrix(48)
mixed = figures.rope.score_matrix(48, layout_k="half")
assert figures.rope.spread_at_equal_distance(scores) < 1e-12
assert figures.rope.spread_at_equal_distance(mixed) > 1
assert scores[0, 0] == mixed[0, 0]  # position 0 cannot show the mistake

# %% [markdown]
# Now you: shift both positions, then give the key the other layout and shift again.

# %%
explorers.rope.RotationInvariance()

# %% [markdown]
# **Recap.** One q, one k: the score is a function of the distance alone, and the matrix
# is constant along its diagonals. A test at position 0 proves nothing; start at 1.

# %% [markdown]
# ## 7. What stays, and why V is not turned
#
# **You will be able to** say what a rotation keeps.
#
# A rotation keeps every length. So no score gets above $|q|\,|k| / \sqrt{d}$, the limit
# it had without RoPE.
#
# **Predict.** Attention looks at a single token, so its weight is 1. Its value is
# $v = (1, 0)$, at position 1. What comes out if V is rotated like K?

# %%
x = torch.randn(1, 4, 17, 32, generator=torch.Generator().manual_seed(1))
tables = rope.rotary_tables(torch.arange(17), rope.inverse_frequencies(32))
change = rope.apply_rotary(x, *tables).norm(dim=-1) - x.norm(dim=-1)
assert change.abs().max() < 1e-5

v = torch.tensor([[1.0, 0.0]])  # [seq 1, head_dim 2]
tables = rope.rotary_tables(torch.tensor([1]), rope.inverse_frequencies(2))
print("V left alone:", v[0].tolist())
print("V rotated:   ", [round(n, 4) for n in rope.apply_rotary(v, *tables)[0].tolist()])

# %% [markdown]
# **What to notice.** The weights already hold the position. V carries the content; if
# it turns, the output depends on where the token stands in absolute terms. Only q and k
# are rotated.
#
# **Recap.** Lengths stay. V stays.

# %% [markdown]
# ## 8. What is not true
#
# **You will be able to** tell a bound from a law.
#
# **Two sentences are often heard.** "With RoPE, attention falls with distance." And:
# "Relative positions carry over to longer texts."
#
# For the first, the paper has a *bound*: a score is at most a number that belongs to q
# and k, times an average that depends on the distance $r$ only. It averages $|S_j|$,
# the length of the sum of the first $j$ hands:
#
# $$\frac{1}{d/2}\sum_{j=1}^{d/2} |S_j|, \qquad
# S_j = \sum_{i<j} e^{\mathrm{i}\, r\theta_i}$$
#
# **Predict.** Does this average fall at every step?

# %%
show(figures.rope.decay(head_dim=64, base=10_000, favourite=100),
     alt="On log axes the bound falls from 16 to about 2 with many rises, and stays "
         "above 1. The score of q = k falls irregularly; a query that looks 100 tokens "
         "back scores highest at distance 100.",
     numbers=figures.rope.describe_decay(64, 10_000, 100))

# %%
average = figures.rope.decay_mean(64, 10_000.0, torch.arange(20_001))  # by distance
assert average[0] == 16.5
assert average[100] > average[50] and average[1000] > average[500]
assert average.min() > 1  # for q = k a score above |q| |k| was impossible anyway
rises = (average[1:] > average[:-1]).double().mean()
print(f"the average rises at {rises:.0%} of the steps; "
      f"its smallest value is {average.min():.3f}")

# %% [markdown]
# **What to notice.** The average falls in the long run, but it rises at about every
# second step. It bounds the score from above: for $q = k = (1, \dots, 1)$ it never gets
# below the limit of 1 that holds anyway. And a query can be made to score highest at
# *any* distance: turn it back by 100 tokens, and its favourite is 100 tokens away.
# Models can learn this; RoPE only makes it possible.
#
# Which pairs tell a distance from a shorter one? A pair that has passed half a turn
# repeats the cosine of a shorter distance; one that has hardly moved says 1 to all of
# them. What is left is a band.

# %%
show(figures.rope.pairs_and_distances(),
     alt="A map of cos(distance times frequency) for 32 pairs and distances from 1 to "
         "10,000. A diagonal band of pairs tells the distance; faster pairs repeat, "
         "slower ones have not moved.",
     numbers=figures.rope.describe_pairs_and_distances())

# %%
explorers.rope.PairsAndDistances()

# %% [markdown]
# The second sentence confuses two things. A distance of 5,000 gives the same score
# everywhere; that does not mean that a model trained on 4,096 tokens has ever seen a
# distance of 5,000. Its slow pairs then stand at angles that are new to it.

# %%
frequencies = rope.inverse_frequencies(128)
seen, later = 4095 * frequencies, 8191 * frequencies  # largest angles, radians
new = (seen < 2 * math.pi) & (later > seen)
print(f"{int(new.sum())} of 64 pairs meet angles beyond 4,096 tokens that training at "
      "4,096 never showed")
assert int(new.sum()) == 18

# %% [markdown]
# > **The reference says** that relative positions are "crucial for generalization to
# > longer sequences". RoPE is relative, and models with RoPE fail beyond their trained
# > length all the same (E21). The evidence is in [06](06-the-reference-checked.ipynb).
#
# **Recap.** Falling with distance is a bound on an average, not a law. Relative is not
# the same as ready for longer texts.

# %% [markdown]
# ## 9. Two layouts, and how to convert weights
#
# **You will be able to** move weights from one layout to the other.
#
# Any fixed way to pair the numbers of a head will do. Two are in use: *interleaved*
# pairs neighbours (RoFormer, GPT-J, Meta's Llama code, DeepSeek, APEX-1); *half* pairs
# a number with the one half a head away (GPT-NeoX, Hugging Face's Llama and Qwen,
# Gemma, gpt-oss).

# %%
show(figures.rope.two_layouts(8),
     alt="Eight boxes x0 to x7, twice. Interleaved: arcs join neighbours. Half: arcs "
         "join x0 with x4, x1 with x5, x2 with x6, x3 with x7.",
     numbers=figures.rope.describe_two_layouts(8))

# %% [markdown]
# **Predict.** The same q at position 3, rotated in both layouts: equal? Equal norms?

# %%
q = torch.tensor([[1.0, 0.5, 0.3, -0.2]], dtype=torch.float64)
tables = rope.rotary_tables(torch.tensor([3]), rope.inverse_frequencies(4),
                            dtype=torch.float64)
results = {name: rope.apply_rotary(q, *tables, layout=name)[0]
           for name in ("interleaved", "half")}
for name, turned in results.items():
    print(f"{name:11}", [round(v, 4) for v in turned.tolist()],
          f"norm {turned.norm():.4f}")
assert abs(results["half"][0] + 1.0323284990184056) < 1e-12

# %% [markdown]
# > **The reference calls** the neighbour form "rotate-half". In Hugging Face's Llama a
# > function of that name does the *other* layout; GPT-J calls this one
# > `rotate_every_two` (E20). Here: `rotate_pairs`, and a `layout` argument.
# > Evidence: [06](06-the-reference-checked.ipynb).
#
# Both are right by themselves, and both are in use:

# %%
for layout in ("interleaved", "half"):
    names = [row.model for row in models.published() if row.rope_layout == layout]
    print(f"{layout}: {len(names)} of our released models, {', '.join(names[:4])}, ...")

# %% [markdown]
# What fails is a *mixture*: tables repeated for one layout
# and the swap of the other. That is not even a rotation.

# %%
wide_cos, wide_sin = (table.repeat_interleave(2, dim=-1) for table in tables)
first, second = q.chunk(2, dim=-1)
mixture = q * wide_cos + torch.cat([-second, first], dim=-1) * wide_sin
print(f"norm of the mixture: {mixture.norm():.4f} instead of {q.norm():.4f}")
assert abs(mixture.norm() - q.norm()) > 0.01

# %% [markdown]
# To use weights of the other layout, reorder the **rows** of $W_q$ and $W_k$ inside
# each head: first all first numbers, then all second ones. The same for a bias of q or
# k and for a norm weight that acts on each head. $W_v$ and $W_o$ stay. With grouped
# queries, k has fewer heads: give the number of heads *of that matrix*.

# %%
eight = torch.arange(8)
once = rope.convert_layout(eight, 1, to="half")
print("interleaved to half:", once.tolist())
print("and back:           ", rope.convert_layout(eight, 1, to="interleaved").tolist())
print("two heads of 4:     ", rope.convert_layout(eight, 2, to="half").tolist())
assert rope.convert_layout(once, 1, to="half").tolist() != list(range(8))
assert rope.convert_layout(once, 1, to="interleaved").tolist() == list(range(8))
of_four = rope.convert_layout(torch.arange(4), 1, to="half")
assert rope.convert_layout(of_four, 1, to="half").tolist() == [0, 1, 2, 3]

# %%
hidden, w_q, w_k = (torch.randn(n, 32, generator=generator) for n in (6, 32, 16))
w_q, w_k = w_q / math.sqrt(32), w_k / math.sqrt(32)


def attention_scores(w_q, w_k, layout):  # 4 heads of q share 2 heads of k
    q, k = ((hidden @ w.T).unflatten(-1, (-1, 8)).transpose(0, 1)[None]
            for w in (w_q, w_k))
    q, k = rope.RotaryEmbedding(8, layout=layout)(q, k)  # [1, heads, 6, 8]
    return q @ k.repeat_interleave(2, dim=1).mT / math.sqrt(8)  # [1, 4, 6, 6]

# %%
moved = [rope.convert_layout(w, n, to="half") for w, n in ((w_q, 4), (w_k, 2))]
wanted = attention_scores(w_q, w_k, "interleaved")
assert torch.allclose(attention_scores(*moved, "half"), wanted, atol=1e-5)
gap = (attention_scores(w_q, w_k, "half") - wanted).abs()
forgot_k = (attention_scores(moved[0], w_k, "half") - wanted).abs()
print(f"not converted: position 0 differs by {gap[..., 0, 0].max():.1f}, others up to "
      f"{gap.max():.1f}; k forgotten: up to {forgot_k.max():.1f}")
assert gap[..., 0, 0].max() < 1e-5 and gap.max() > 0.5 and forgot_k.max() > 0.5

# %% [markdown]
# ### Exercise 3.4: convert a weight
#
# **Goal:** interleaved to half, head by head. **Difficulty:** ●●●. **Minutes:** 7.
#
# `weight` is `[heads * head_dim, in]` (or a bias, `[heads * head_dim]`); `n_heads` is
# the number of heads of *this* weight. Return the reordered rows.
#
# <details><summary>Hint 1</summary>
#
# `weight.unflatten(0, (n_heads, -1))` gives each head its own axis.
#
# </details>
# <details><summary>Hint 2</summary>
#
# Inside a head take rows 0, 2, 4, ... and then rows 1, 3, 5, ...
#
# </details>

# %%
def my_conversion(weight, n_heads):
    ...

# %%
exercises.check_convert_layout(my_conversion)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_conversion(weight, n_heads):
#     heads = weight.unflatten(0, (n_heads, -1))  # [heads, head_dim, ...]
#     return torch.cat([heads[:, 0::2], heads[:, 1::2]], dim=1).flatten(0, 1)
# ```
#
# </details>
#
# **Recap.** Two layouts, one rotation. Convert the rows of everything that makes q and
# k, per head, and test at position 1 or later.

# %% [markdown]
# ## 10. Caches and decoding
#
# **You will be able to** generate step by step and get what one pass gives.
#
# A decoder reads the prompt at once and then one token at a time, with old keys in a
# cache. Without being told, a program sees a sequence of length 1 and puts it at
# position 0.
#
# **Predict.** Five new tokens after a prompt of six: which positions?

# %%
rotary = rope.RotaryEmbedding(16)
q, k = torch.randn(2, 1, 4, 11, 16, generator=generator)  # [1, heads, seq, head_dim]
all_q, all_k = rotary(q, k)
cache = [rotary(q[:, :, :6], k[:, :, :6])[1]]  # the prompt
for position in (6, 7, 8, 9, 10):
    new = slice(position, position + 1)
    new_q, new_k = rotary(q[:, :, new], k[:, :, new], offset=position)
    cache.append(new_k)
    assert torch.equal(new_q, all_q[:, :, new])
assert torch.equal(torch.cat(cache, dim=2), all_k)

# %%
at_zero = rotary(q[:, :, 10:], k[:, :, 10:])[0]  # the offset forgotten
wrong = (at_zero @ all_k.mT - all_q[:, :, 10:] @ all_k.mT).abs().max()
print(f"step by step equals all at once; offset forgotten: off by up to {wrong:.1f}")
rows_5_to_7 = rotary(q[:, :, 5:8], k[:, :, 5:8], offset=5)[0]
assert torch.equal(rows_5_to_7, all_q[:, :, 5:8])  # offset 5, three tokens: 5, 6, 7
from_0 = rotary(q[:, :, 5:8], k[:, :, 5:8])[0]  # the offset forgotten: 0, 1, 2
assert not torch.equal(from_0, rows_5_to_7)
one = torch.ones(1, 4, 1, 2)
turned, _ = rope.RotaryEmbedding(2)(one, one, offset=1)
assert torch.equal(turned, turned[:, :1].expand_as(turned))  # every head turns

# %% [markdown]
# **What to notice.** Rotated queries and keys are equal to the last bit. Real programs
# added the prompt's length twice, stopped counting at the number of new tokens, or kept
# the table of an earlier call: each breaks this equality, so test it.
#
# **Padding on the left.** A batch of prompts of different length is often padded in
# front. Count only real tokens. Pure RoPE forgives a shift that all tokens of a prompt
# share; it does not forgive cached keys counted one way and new queries another.

# %%
mask = torch.tensor([[0, 0, 1, 1, 1]])
positions = (mask.cumsum(-1) - 1).clamp(min=0)
print("positions:", positions[0].tolist())
q, k = figures.rope.query_and_key(16)
shared, mixed_up = score(105, 103) - score(5, 3), score(105, 3) - score(5, 3)
print(f"both shifted by 100: {abs(shared):.4f}; only the query: {abs(mixed_up):.4f}")
assert abs(shared) < 1e-12 and abs(mixed_up) > 0.01

# %% [markdown]
# **Store keys before or after the rotation?** With fixed frequencies both give equal
# scores, and after is cheaper. If the frequencies change while the text grows (dynamic
# NTK, [04 YaRN](04-yarn.ipynb)), only keys stored *before* the rotation can be turned
# anew.
#
# | what is cached | frequencies fixed | frequencies change |
# |---|---|---|
# | rotated keys | right, cheaper | wrong: old keys carry old angles |
# | plain keys, rotated at each step | right | right |

# %%
positions = torch.tensor([7, 3])
q_new = figures.rope.rotated(q, positions, base=20_000.0)[0]  # the base has changed
old_key, new_key = (figures.rope.rotated(k, positions, base=base)[1]
                    for base in (10_000.0, 20_000.0))
assert abs(q_new @ new_key / 4 - score(7, 3, base=20_000.0)) < 1e-12
assert abs(q_new @ old_key - q_new @ new_key) > 1e-3

# %% [markdown]
# ### Exercise 3.5: positions of new tokens
#
# **Goal:** positions for a padded batch with a cache. **Difficulty:** ●●○.
# **Minutes:** 6.
#
# `mask` is `[batch, cached + new]`, 1 at real tokens and 0 at padding (in front).
# Return integer positions `[batch, n_new]` of the last `n_new` tokens. At padding any
# position from 0 up will do.
#
# <details><summary>Hint 1</summary>
#
# The position of a real token is the number of real tokens before it.
#
# </details>
# <details><summary>Hint 2</summary>
#
# `mask.cumsum(-1)` counts the token itself as well.
#
# </details>

# %%
def my_positions(mask, n_new):
    ...

# %%
exercises.check_decode_positions(my_positions)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def my_positions(mask, n_new):
#     positions = (mask.cumsum(-1) - 1).clamp(min=0)  # [batch, cached + new]
#     return positions[:, -n_new:]
# ```
#
# </details>
#
# **Recap.** A decoder must pass positions or an offset. Step by step must equal all at
# once.

# %% [markdown]
# ## 11. Partial rotary
#
# **You will be able to** rotate only a part of each head.
#
# Some models turn only the first $r$ numbers of a head and pass the rest through.
#
# **Predict.** Head width 8, $r = 4$: is the second frequency 0.01 or 0.1?

# %%
part = rope.RotaryEmbedding(8, rotary_dim=4)
x = torch.randn(1, 1, 8, 8, generator=generator)
turned, _ = part(x, x)
print("frequencies:", part.inv_freq.tolist())
assert torch.equal(turned[..., 4:], x[..., 4:])  # bit for bit
assert not torch.equal(turned[..., 1:, :4], x[..., 1:, :4])
assert torch.equal(turned[..., 0, :], x[..., 0, :])  # position 0 shows nothing
partial = [row for row in models.published() if (row.partial_rotary_factor or 1) < 1]
print(", ".join(f"{row.model} {row.rotary_dims} of {row.head_dim}"
                for row in partial[:4]))

# %% [markdown]
# **What to notice.** The rotated part is a head of its own: its width $r$ stands in the
# exponent, and in the half layout the partner is $r/2$ away. The other rule, exponents
# of the whole head with most pairs standing still, also exists, under its own name:
# *proportional*. Position 0 cannot tell them apart.

# %%
from apex_lessons import yarn

sliced = rope.inverse_frequencies(4)
proportional = yarn.proportional(8, base=10_000, partial_rotary_factor=0.5).inv_freq
print("sliced:", sliced.tolist(), "  proportional:",
      [round(f, 4) for f in proportional.tolist()])
assert sliced.tolist() != proportional[:2].tolist()
x = torch.eye(8)[0].expand(1, 1, 2, 8)  # a one in place 0, at positions 0 and 1
turned, _ = rope.RotaryEmbedding(8, rotary_dim=4, layout="half")(x, x)
assert turned[0, 0, 1].nonzero().flatten().tolist() == [0, 2]  # the partner is 2, not 4

# %% [markdown]
# **Recap.** Rotary width in the exponent, the rest untouched.

# %% [markdown]
# ## 12. Precision, and where the tables live
#
# **You will be able to** say in which dtype angles must be made.
#
# **Predict.** bfloat16 has 8 significant bits. How many of the positions 0 to 4,095
# stay different from each other?

# %%
for name, dtype in (("bfloat16", torch.bfloat16), ("float16", torch.float16)):
    counts = [torch.arange(n).to(dtype).float().unique().numel() for n in (1024, 4096)]
    print(f"{name}: {counts[0]:,} of 1,024 positions and {counts[1]:,} of 4,096 differ")
assert torch.tensor([257, 511, 15962]).bfloat16().tolist() == [256, 512, 15936]
assert torch.tensor(2049).half() == 2048
assert torch.tensor(16_777_217).float() == 16_777_216  # float32 has a limit as well

# %%
show(figures.rope.precision(),
     alt="Largest error of the cosine by position, log axes. bfloat16 positions: 1 to "
         "2, useless. float32 angles: rising from 3e-5 to 6e-2 at a million. float64: "
         "3e-8 throughout.",
     numbers=figures.rope.describe_precision())

# %% [markdown]
# **What to notice.** The positions collapse in bfloat16: different tokens get one
# angle. float32 is good, not exact: its error grows with the angle, and at a million
# tokens it is 0.06. Angles made in float64 and rounded once at the end are right
# everywhere. Rounding *frequencies* does the same harm, later: `model.bfloat16()`
# rounds a buffer.
#
# So here the frequencies are no buffer at all. They are a plain float64 attribute on
# the CPU, made from the settings: nothing is saved, nothing can be missing, and no move
# or cast spoils them. (Apple's GPUs have no float64: tables are finished on the CPU.)

# %%
rotary = rope.RotaryEmbedding(64)
print("saved with the model:", list(rotary.state_dict()))
print("unexpected in a file:", rotary.load_state_dict(
    {"inv_freq": torch.ones(32)}, strict=False).unexpected_keys)
with torch.device("meta"):
    model = torch.nn.Sequential(rope.RotaryEmbedding(64))
model.to_empty(device="cpu").bfloat16()
assert model[0].inv_freq[0] == 1.0 and model[0].inv_freq.dtype == torch.float64
x = torch.ones(1, 1, 3, 64)
assert rotary(x, x)[0].device == x.device  # the tables follow q

# %%
x = torch.ones(1, 1, 2048, 64, dtype=torch.float64)
exact = rotary(x, x)[0]
in_bfloat16 = rotary(x.bfloat16(), x.bfloat16())[0]
gap = (in_bfloat16.double() - exact).abs()
assert (gap <= 2**-8 * exact.abs() + 1e-6).all()  # one rounding, at the end
assert torch.equal(rotary(x, x)[0], exact)  # and it spoilt nothing for the next call
small_head = rope.RotaryEmbedding(4)
assert small_head.inv_freq.tolist() == [1.0, 0.01]

# %% [markdown]
# **Recap.** Integer positions, float64 angles, one rounding at the end. Tables are
# computed, never saved.

# %% [markdown]
# ## Recap
#
# - Attention alone ignores order. RoPE turns each pair of q and of k by position times
#   frequency, and adds nothing.
# - $\theta_i = b^{-2i/d}$; wavelengths from $2\pi$ to nearly $2\pi b$ tokens. Compare
#   them with the context length: the slow pairs never come round.
# - $\langle R_m q, R_n k\rangle$ depends on $n - m$ only. Norms stay. V is not rotated.
# - Falling with distance is a bound, not a law; relative is not ready for longer texts.
# - Layout, direction, dtype, offset: four conventions to agree on, and position 0 shows
#   none of them.
#
# ## Misconceptions
#
# | you may hear | what is true | shown in |
# |---|---|---|
# | "RoPE adds a position vector." | It multiplies: q and k turn, the embedding stays. | 2, 5 |
# | "The exponent is $+2i/d$, or starts at 1." | $b^{-2i/d}$ with $i$ from 0. | 3 |
# | "Every two numbers form a pair." | $d/2$ pairs, each number in exactly one. | 3 |
# | "The model's width sets the frequencies." | The head's width does. | 3 |
# | "High-frequency pairs see unseen angles in long texts." | The slow pairs do. | 4, 8 |
# | "10,000 is the standard base." | Models use 10,000 to 1,000,000. | 3, 4 |
# | "A larger base lets more pairs finish a turn." | Fewer do. | 4 |
# | "The library has a bug: it pairs $i$ with $i + d/2$." | A layout; weights must agree. | 9 |
# | "Permute twice and you are back." | Only in heads of 2 or 4; the way back is another. | 9 |
# | "Clockwise is wrong." | A convention; weights must agree. | 2 |
# | "Attention falls with distance." | A bound on an average falls. | 8 |
# | "Relative means it works on longer texts." | New distances are new angles. | 8 |
# | "V is rotated too." | Then outputs would depend on absolute position. | 7 |
# | "The next token starts a new sequence at 0." | It follows the cache. | 10 |
# | "Left padding breaks RoPE." | Mixing two ways of counting does. | 10 |
# | "Rotate, then cache, always." | Not if the frequencies change. | 10 |
# | "Partial rotary uses the head's exponents." | The rotary width's. | 11 |
# | "bfloat16 is fine for positions." | From 256 on they collide. | 12 |
# | "The tables belong in the checkpoint." | They follow from the settings. | 12 |
#
# ## What if ...
#
# 1. ... q is rotated at position $m + 1$ and k at $n + 1$? Which scores change? Test it
#    with `score` from section 6.
# 2. ... the base is 10? Use `WavelengthClock` and look at the longest wavelength. Which
#    distances would such a head confuse?
# 3. ... only the slow half of the pairs is rotated, and the fast half stands still?
#    What happens to the scores of neighbours? Start from `rope.rotary_tables` with some
#    frequencies set to 0.
#
# ## Further reading
#
# - Su et al., *RoFormer* (2021), arXiv:2104.09864: section 3.2 (the idea), 3.4.1 to
#   3.4.2 (the rotation and equation 34), 3.4.3 (the bound).
# - Vaswani et al., *Attention Is All You Need* (2017), section 3.5: the waves that are
#   added.
# - Peng et al., *YaRN* (2023), arXiv:2309.00071, section 2 and 3: wavelengths, and what
#   happens beyond the trained length.
# - Next: [04 YaRN](04-yarn.ipynb). Before: [02 RMSNorm](02-rmsnorm.ipynb).
