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
# # Lesson 04: YaRN
#
# A model was trained on texts of 4,096 tokens. Now it shall read 131,072. Its weights
# stay as they are; what we may change are the speeds at which its
# [rotary pairs](03-rope.ipynb) turn. This page shows which pairs must slow down, which
# must not, and how YaRN and its relatives decide. At its end you can look at the
# `rope_scaling` block of a model and say what each number does to each pair.
#
# **Goals.** After this page you can
#
# - say which pairs meet angles they never saw, and measure it;
# - write position interpolation, NTK-aware scaling and YaRN, and tell them apart;
# - count a model's unchanged, blended and divided pairs from its own settings;
# - say where the temperature goes, and why scores get its square;
# - name the price: short texts, caches, fine-tuning.
#
# **Time.** 45 minutes; the exercises are about half of it.
#
# **Before you start.** You know from [page 03](03-rope.ipynb) that pair $i$ turns by
# $\theta_i = b^{-2i/d}$ radians a token, and that its wavelength
# $\lambda_i = 2\pi/\theta_i$ is the number of tokens for one turn.

# %%
import math

import ipywidgets as widgets
import torch

from apex_lessons import explorers

torch.set_num_threads(1)

# %%
from apex_lessons.exercises.yarn import (
    check_attention_factor, check_position_interpolation, check_regime_counts,
    check_scaled_scores, check_yarn)
from apex_lessons.figures import png, show, yarn as draw
from apex_lessons.models import apex1_config, published, rope_from_config
from apex_lessons.rope import (
    apply_rotary, inverse_frequencies, rotary_tables, wavelengths)
from apex_lessons.yarn import (
    apex1, apex1_score_factor, dynamic_ntk, ntk_aware, ntk_by_parts, pair_at_rotations,
    pair_ramp, position_interpolation, regimes, rotations, yarn, yarn_attention_factor)

# %% [markdown]
# ## 1. What goes wrong past the trained length
#
# *You will be able to say which pairs are in trouble, and to measure how much.*
#
# Our example for the whole page is Llama 2 7B: head width 128, so 64 pairs; base
# 10,000; trained on $L = 4096$ tokens.
#
# **Predict.** Which pairs meet angles that they never saw in training: the fast ones,
# with short wavelengths, or the slow ones?
#
# <details><summary>Answer</summary>
# The slow ones. A fast pair turned hundreds of times in training: it has seen every
# angle. A slow pair did not get around once; read on, and its hand goes where it never
# was.
# </details>
#
# How often does a pair turn in training? This number decides everything on this page:
#
# $$r_i = \frac{L}{\lambda_i} = \frac{L\,\theta_i}{2\pi} \quad\text{turns}$$

# %%
plain = inverse_frequencies(128, 10_000.0)  # [64], radians per token
turns = rotations(plain, 4096)  # [64]
print(f"pair 0 turns {turns[0]:.0f} times, pair 63 {turns[63]:.3f} times")
never = (turns < 1).sum().item()
print(f"{never} of 64 pairs never finish a turn: pairs {64 - never} to 63")
assert never == 18 and turns[45] > 1 > turns[46]

# %% [markdown]
# Below, one column for each of five pairs. The ring shows the angles that the pair's
# hand reaches: **blue** in 4,096 tokens of training, **hatched** for the first time
# when we read four times as many. The black hand stands where **one** token turns it.

# %%
show(draw.clock_arcs(),
     alt="Fifteen dials, five pairs by three ways. With nothing changed, pairs 50 and"
         " 63 reach new angles; with position interpolation and YaRN none does. Under"
         " interpolation one token turns pair 0 by 14 degrees, else by 57.",
     numbers=draw.describe_clock_arcs())

# %% [markdown]
# **Notice.** First row: the two slow pairs run into angles that no training text ever
# showed them. Second row: position interpolation (the next section) cures that, and
# pays: one token now turns the fastest pair by 14 degrees, not by 57, so neighbours
# look alike. Third row: YaRN cures the one without the other.
#
# The same, measured. For each pair we take every angle of the longer text and look for
# the nearest angle that training had:

# %%
show(draw.unseen_angles(),
     alt="Largest distance in degrees from a new angle to a trained one, by pair, log"
         " axis. Below pair 46 all three ways stay under two degrees; from pair 46 on,"
         " with nothing changed, it is 20 to 150 degrees, and tiny for the other two.",
     numbers=draw.describe_unseen_angles())

# %%
gaps = draw.angle_gaps(plain, plain, 4096, 16_384)  # [64], degrees
assert gaps[:46].max() < 2 and gaps[46:].min() > 20

# %% [markdown]
# **Notice.** A fast pair finds a trained angle within two degrees of every new one. A
# pair that never finished its turn ends up to 152 degrees away from anything it knows.
#
# That scores depend on distance alone ([page 03](03-rope.ipynb)) does not help here: a
# *distance* of 10,000 was never trained either. Section 7 has the numbers that others
# measured on whole models.
#
# > **The reference prints** that "high-frequency dimensions see angles they never
# > trained on". It is the low-frequency ones. See
# > [page 06](06-the-reference-checked.ipynb), E24 and, for length generalisation, E21.
#
# **Recap.** Count turns in the trained length. More than one: all angles seen. Less
# than one: the hand walks into the unknown.

# %% [markdown]
# ## 2. The first idea: squeeze the positions
#
# *You will be able to write position interpolation and to name its price.*
#
# **Position interpolation** (Chen et al. 2023) divides each position by the factor
# $s = L'/L$. Position 16,383 then has the angle that position 4,095.75 would have had:
#
# $$\frac{m}{s}\,\theta_i = m\,\frac{\theta_i}{s}$$
#
# Dividing the positions is dividing **every** frequency. No position is cut off: what
# is longer than $sL$ simply goes on.

# %%
squeezed = position_interpolation(128, base=10_000.0, factor=4.0).inv_freq  # [64]
assert torch.equal(squeezed, plain / 4)
positions = torch.arange(16_384)
reach = (positions.max() * squeezed[63] / (4096 * plain[63])).item()
print(f"pair 63 reaches {reach:.4f} of its trained arc")
print(f"pair 0: {math.degrees(plain[0]):.1f} degrees a token became"
      f" {math.degrees(squeezed[0]):.1f}")

# %% [markdown]
# The factor is 1 or more, and says how many times longer the text gets. Some programs
# store the inverse (0.25 for four times); these functions refuse it and say so:

# %%
for wrong in (0.25, 0.0, float("nan")):
    try:
        position_interpolation(128, base=10_000.0, factor=wrong)
    except ValueError as message:
        print(message)

# %% [markdown]
# ### Exercise 4.1: Position interpolation
#
# **Difficulty** ●○○ · **4 minutes**
#
# Return the angles, [seq, head_dim/2], for integer `positions` [seq]. One of the
# arguments is not needed. A well-known teaching notebook divided the positions and then
# *clamped* them to the trained length; its model wrote gibberish after a few sentences.
#
# <details><summary>Hint 1</summary>
# <code>inverse_frequencies(head_dim, base)</code> gives the frequencies, [head_dim/2].
# </details>
#
# <details><summary>Hint 2</summary>
# <code>torch.outer(a, b)</code> multiplies each of a with each of b. A position may
# become a fraction.
# </details>

# %%
def interpolated_angles(positions, head_dim, base, factor, trained_length):
    ...

# %%
check_position_interpolation(interpolated_angles)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def interpolated_angles(positions, head_dim, base, factor, trained_length):
#     return torch.outer(positions / factor, inverse_frequencies(head_dim, base))
# ```
#
# </details>
#
# **Recap.** Interpolation brings the slow pairs home and blurs the fast ones. It treats
# all pairs alike, and they are not alike.

# %% [markdown]
# ## 3. Eight methods, one question
#
# *You will be able to describe each method by one list: the divisor of each pair.*
#
# All methods here answer one question: **by what number is the frequency of pair $i$
# divided?** ($d$ = head width, $s$ = factor, $L$ = trained length)
#
# | method | $\theta'_i$ | source |
# |---|---|---|
# | position interpolation ("linear") | $\theta_i / s$ | Chen et al. 2023, eq. 4 |
# | NTK-aware | base $b' = b\,s^{d/(d-2)}$ | YaRN paper, eq. 14-16 |
# | dynamic NTK | the same, with $s$ growing with the text | YaRN paper, section 3.3 |
# | NTK-by-parts | fast pairs kept, slow pairs $\theta_i/s$, a ramp between | eq. 17-20 |
# | **YaRN** | NTK-by-parts **and a temperature** (section 6) | eq. 21-22 |
# | Llama 3 | by parts as well, cuts at 4 turns and 1 turn | llama-models |
# | LongRoPE | a list of divisors, found by search | Ding et al. 2024 |
# | proportional | the first share of the pairs turns, the rest stands still | transformers |
#
# So YaRN is more than its ramp: the ramp alone is called NTK-by-parts, and the
# frequencies of the two are the same.
#
# **Predict.** NTK-aware scaling with factor 8: what are the divisors of pair 0 and of
# the last pair?
#
# <details><summary>Answer</summary>
# 1 and 8. The exponent d/(d-2) is made for that: pair 0 has exponent 0 whatever the
# base, and the last pair gets exactly the factor.
# </details>

# %%
for factor in (2.0, 8.0, 32.0):
    scaled = ntk_aware(128, base=10_000.0, factor=factor).inv_freq  # [64]
    base = 10_000 * factor ** (128 / 126)
    assert torch.allclose(scaled, inverse_frequencies(128, base), rtol=1e-12)
    print(f"factor {factor:g}: base {base:,.0f}; pair 0 divided by"
          f" {plain[0] / scaled[0]:.2f}, pair 63 by {plain[63] / scaled[63]:.2f}")

# %%
phi = draw.PHI_3_5_MINI_LONG  # 48 divisors shipped with Phi-3.5-mini
show(draw.divisors_by_pair(32.0, phi),
     alt="Divisor of each pair at factor 32 for all methods, log axis. Interpolation is"
         " flat at 32; NTK-aware and dynamic NTK are straight lines; YaRN and Llama 3"
         " stay at 1, then rise to 32 at one turn; LongRoPE's list rises early, to 65.",
     numbers=draw.describe_divisors_by_pair(32.0, phi))

# %% [markdown]
# **Notice.**
#
# - Interpolation, the flat line, divides the fast pairs for nothing.
# - NTK-aware scaling leaves pair 0 alone and divides each pair a bit more than the one
#   before. Pairs that turn less than once, but are not the last, are divided by **less
#   than the factor**: their hands still walk past the trained arc.
# - YaRN and Llama 3 bend where the turns say so.
# - The LongRoPE list was not derived from a formula. It even goes past the factor (64.8
#   for $s = 32$; the search space of the paper ends at $1.25\,s = 40$).
# - In "proportional" the slow pairs do not turn at all: they carry no position, at any
#   length.

# %%
by_ntk = plain / ntk_aware(128, base=10_000.0, factor=32.0).inv_freq  # [64]
past = ((turns < 1) & (turns * 32 / by_ntk > turns * 1.001)).sum().item()
print(f"NTK-aware: {past} of the {never} slow pairs still go past their trained arc")
print(f"largest divisor in the LongRoPE list: {max(phi)}; 1.25 s = {1.25 * 32:g}")
assert past == 17 and max(phi) > 1.25 * 32

# %% [markdown]
# ### An explorer of your own
#
# Ten lines: a slider, `observe`, and a picture. Change them: put another method on the
# slider, or another figure.

# %%
slider = widgets.FloatLogSlider(value=32, base=2, min=0, max=7, step=0.5,
                                description="factor")
picture = widgets.Image(value=png(draw.divisors_by_pair(slider.value)), width=700)

def redraw(change):
    picture.value = png(draw.divisors_by_pair(change["new"]))

slider.observe(redraw, names="value")
widgets.VBox([slider, picture])

# %%
show(draw.divisors_by_pair(4.0),
     alt="The divisors of all methods again, without the LongRoPE list, at factor 4:"
         " the same shapes between 1 and 4.",
     numbers=draw.describe_divisors_by_pair(4.0))

# %% [markdown]
# **Recap.** A method is a list of divisors. Interpolation: all equal. NTK-aware:
# growing evenly. By parts: 1, a ramp, $s$.

# %% [markdown]
# ## 4. The variable that decides, and the three regimes
#
# *You will be able to count the pairs in each regime for any model.*
#
# YaRN asks each pair: how many turns did you make in training?
#
# | regime | turns $r$ | what happens | why |
# |---|---|---|---|
# | unchanged | more than $\beta_\text{fast} = 32$ | $\theta$ | has seen all angles, tells neighbours apart |
# | blended | between | a mixture | |
# | divided | fewer than $\beta_\text{slow} = 1$ | $\theta / s$ | must stay on its trained arc |
#
# **A beta is a number of turns in the trained length.** It is not a wavelength, not a
# pair number and not a number of tokens. (The paper writes $\beta$ for `beta_fast` and
# $\alpha$ for `beta_slow`.) As wavelengths the cuts are $L/32$ and $L$: 128 and 4,096
# tokens for Llama 2. **The factor moves neither of them.**
#
# Solve $r_i = n$ for $i$ and you have the pair number at which a model turns $n$ times:
#
# $$i(n) = \frac{d\,\ln\!\big(L / (2\pi n)\big)}{2 \ln b}$$
#
# The result counts **pairs**, not dimensions. The check is simple: at $i(1)$ the
# wavelength must be $L$.

# %%
for n in (32, 1):
    index = pair_at_rotations(n, 128, 10_000.0, 4096)
    wavelength = 2 * math.pi * 10_000 ** (2 * index / 128)  # of that (real) pair number
    print(f"{n} turns: pair {index:.3f}, wavelength {wavelength:.1f} tokens")
    assert math.isclose(wavelength, 4096 / n)

# %% [markdown]
# So the trained length cannot be left out. Two models with the same frequencies, one
# trained on 2,048 tokens and one on 131,072, have different slow pairs:

# %%
for length in (2_048, 32_768, 131_072):
    low, high = (pair_at_rotations(n, 128, 1_000_000.0, length) for n in (32, 1))
    print(f"base 1,000,000, trained on {length:,}: the band goes from pair"
          f" {math.floor(low)} to pair {math.ceil(high)}")
try:
    yarn(128, base=1_000_000.0, factor=4.0, trained_length=None)
except TypeError as message:
    print(message)

# %% [markdown]
# **Notice.** This is the commonest mistake in real configs: the block says nothing
# about the original length, a library takes `max_position_embeddings` instead, and that
# is already the *extended* length. The band moves by seven pairs, and nothing fails.
#
# Here are seven released models, each by its own settings. One dot is one pair:

# %%
models = draw.released_models()
show(draw.three_regimes(models),
     alt="One row a model, one dot a pair, placed by its turns in the trained length:"
         " blue circles left of 32 turns, green diamonds between, vermilion squares"
         " right of one turn. Kimi-K2 has no diamonds; Llama 3.1 cuts at 4 turns.",
     numbers=draw.describe_three_regimes(models))

# %%
for m in models:
    on_tables, on_softmax = m.scaled().attention_factor, m.softmax_factor()
    print(f"{m.name}: base {m.base:,.0f}, {m.trained_length:,} x {m.factor:g}, betas"
          f" {m.beta_fast:g} and {m.beta_slow:g}; cos and sin x {on_tables:.4f},"
          f" softmax scale x {on_softmax:.4f}")
counts = {m.name: draw.regime_counts(m) for m in models}
assert counts["Llama 2 128K"] == (21, 25, 18) and counts["DeepSeek-V3"] == (11, 12, 9)
assert counts["Kimi-K2-0905"] == (20, 0, 12) and counts["Llama-3.1-8B"] == (29, 6, 29)
assert {m.model: m.factor for m in published()}["Llama-3.2-1B-Instruct"] == 32

# %% [markdown]
# **Notice.**
#
# - The dots differ, the cuts are the same: 32 turns and one turn, for bases from 10,000
#   to a million.
# - **Kimi-K2 ships `beta_fast = beta_slow = 1`.** Equal betas are not an error: they
#   make a step. Its rotary width (64) is **inferred** from DeepSeek-V3's architecture,
#   which it shares; so are the counts that follow from it.
# - For Llama 3.1 the two cuts are called `high_freq_factor = 4` and
#   `low_freq_factor = 1`; they count turns as well. It has no temperature. It is not
#   YaRN, and its factor is a setting: Llama 3.1 has 8, Llama 3.2 1B has 32.
# - Qwen2.5 ships without scaling; the block with factor 4 is documented as an option.
# - The last two columns printed above are the subject of section 6.

# %% [markdown]
# ### Exercise 4.2: Count the regimes
#
# **Difficulty** ●●○ · **6 minutes**
#
# Return three whole numbers: unchanged (more than `beta_fast` turns), blended, divided
# (fewer than `beta_slow`). One of the arguments is not needed. Which one, and why?
#
# <details><summary>Hint 1</summary>
# Turns are the trained length times the frequency, over 2 pi.
# </details>
#
# <details><summary>Hint 2</summary>
# <code>(r &gt; beta_fast).sum().item()</code> counts. What is left over is blended.
# </details>

# %%
def regime_counts(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    ...

# %%
check_regime_counts(regime_counts)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def regime_counts(head_dim, base, factor, trained_length, beta_fast, beta_slow):
#     r = trained_length * inverse_frequencies(head_dim, base) / (2 * math.pi)
#     unchanged = (r > beta_fast).sum().item()
#     divided = (r < beta_slow).sum().item()
#     return unchanged, head_dim // 2 - unchanged - divided, divided
# ```
#
# The factor is not needed: how often a pair turned in training does not depend on how
# far we want to go now.
#
# </details>
#
# **Recap.** Betas are turns in the trained length. No trained length, no YaRN.

# %% [markdown]
# ## 5. The ramp: there are two
#
# *You will be able to write YaRN's frequencies, and to say which ramp a program has.*
#
# Between the two cuts a pair is a mixture of its two ends:
#
# $$\theta'_i = (1 - \rho_i)\,\theta_i + \rho_i\,\frac{\theta_i}{s}$$
#
# (We write $\rho$ for the share that is divided; the paper's $\gamma$ is $1 - \rho$.)
# But what grows evenly from 0 to 1?
#
# - **The paper's equations** (17 to 20): the *turns*,
#   $\gamma = (r - \beta_\text{slow}) / (\beta_\text{fast} - \beta_\text{slow})$.
# - **The code of the authors**, and with it transformers, DeepSeek, gpt-oss, llama.cpp:
#   the *pair number*, $\rho = (i - \text{low}) / (\text{high} - \text{low})$, with
#   $\text{low} = \lfloor i(\beta_\text{fast}) \rfloor$ and
#   $\text{high} = \lceil i(\beta_\text{slow}) \rceil$.
#
# A head of width 8 is small enough to do by hand ($b = 10^4$, $L = 4096$, $s = 4$):

# %%
low, high = (pair_at_rotations(n, 8, 10_000.0, 4096) for n in (32, 1))
print(f"the band: pair {low:.3f} to {high:.3f}, rounded outwards: 1 to 3")
toy = {"base": 10_000.0, "factor": 4.0, "trained_length": 4096}
code = ntk_by_parts(8, **toy).inv_freq  # [4]
paper = ntk_by_parts(8, **toy, ramp="rotations").inv_freq  # [4]
print("ramp:", pair_ramp(8, 10_000.0, 4096).tolist(), "->", code.tolist())
print("paper:", [float(f"{value:.4g}") for value in paper.tolist()])
assert code.tolist() == [1.0, 0.1, 0.00625, 0.00025]  # 0.5 * 0.01 + 0.5 * 0.0025

# %% [markdown]
# **Predict.** In the middle of the band, which of the two divides more?
#
# <details><summary>Answer</summary>
# The paper's. Turns fall by the same <i>factor</i> from pair to pair, so by far the
# most turns are lost at the fast end: a few pairs into the band, r is already far below
# 32, and the share is close to 1.
# </details>

# %%
show(draw.two_ramps(),
     alt="Left: the share that is divided by pair; the code's ramp is a straight line"
         " from pair 20 to 46, the paper's rises fast and flattens. Right: the code's"
         " frequency over the paper's, 1 outside the band, up to 3.96 at pair 40.",
     numbers=draw.describe_two_ramps())

# %%
for name, head_dim, factor in (("Llama 2 128K", 128, 32.0), ("DeepSeek-V3", 64, 40.0)):
    ratio = draw.ramp_ratio(factor, head_dim=head_dim)  # [pairs]
    print(f"{name}: the code's frequency is up to {ratio.max():.2f} times the paper's")
    assert ratio.max() > 3.9

# %% [markdown]
# **Notice.** The same name, the same end points, and frequencies that differ up to four
# times between them. The models named on this page run with the code's ramp, so this
# course follows the code (`ramp="pair"`) unless it says otherwise (`ramp="rotations"`).
# If you compare your reading of the paper with a library, expect this difference.
#
# ### Rounding, and where the ramp may end
#
# The code rounds the two ends outwards. **gpt-oss does not** (`truncate: false`), and a
# program that rounds anyway gets other frequencies:

# %%
gpt_oss = {"base": 150_000.0, "factor": 32.0, "trained_length": 4096}
low, high = (pair_at_rotations(n, 64, 150_000.0, 4096) for n in (32, 1))
rounded = ntk_by_parts(64, **gpt_oss).inv_freq  # [32]
exact = ntk_by_parts(64, **gpt_oss, truncate=False).inv_freq  # [32]
off = rounded / exact - 1
print(f"gpt-oss: the band goes from {low:.4f} to {high:.4f}, rounded 8 to 18;"
      f" pair {off.argmax().item()} is {off.max():.0%} off when rounded")
assert off.argmax() == 17 and 0.755 < off.max() < 0.765

# %% [markdown]
# The authors clamp the upper end at $d - 1$, not at the last pair $d/2 - 1$. That is
# seen only when training was long: then the ramp ends *beyond* the last pair and stays
# below 1 there. A test with $L = 4096$ cannot tell the two apart.

# %%
low, high = (pair_at_rotations(n, 64, 10_000.0, 131_072) for n in (32, 1))
ramp = pair_ramp(64, 10_000.0, 131_072)  # [32]
print(f"trained on 131,072: the ramp goes from pair {math.floor(low)} to"
      f" {math.ceil(high)}, there are 32 pairs; the last one gets {ramp[31]:.4f}")
assert math.isclose(ramp[31], 9 / 13)  # cut at pair 31 it would be 1

# %% [markdown]
# ### Four more things that go wrong
#
# - **Swapped betas.** The ramp runs backwards: fast pairs divided, slow ones left
#   alone.
# - **A very short trained length.** Where even pair 0 makes fewer than `beta_slow`
#   turns, several libraries switch the scaling off without a word.
# - **A factor of 1** must give plain RoPE, to the last bit.
# - **Blending wavelengths.** The mixture above is of frequencies. To mix the
#   wavelengths (or the divisors) is allowed by a footnote of the paper; the equations
#   and the code do not, and the result is slower.

# %%
for wrong in ({"beta_fast": 1.0, "beta_slow": 32.0}, {"trained_length": 4}):
    try:
        yarn(64, **{**toy, **wrong})
    except ValueError as message:
        print(message)
same = yarn(64, base=10_000.0, factor=1.0, trained_length=4096)
assert torch.equal(same.inv_freq, inverse_frequencies(64))
assert same.attention_factor == 1
share = pair_ramp(8, 10_000.0, 4096)  # [4]
print("wavelengths mixed:", (inverse_frequencies(8) / (1 + 3 * share)).tolist())

# %% [markdown]
# ### Exercise 4.3: The frequencies of YaRN
#
# **Difficulty** ●●● · **12 minutes**
#
# Write the code's version: rounded bounds, clamped to 0 and `head_dim - 1`, a ramp in
# the pair number, a mixture of frequencies. Equal betas are among the settings of the
# check. Afterwards, if you like: write the paper's version and try
# `check_yarn(f, ramp="rotations")`.
#
# <details><summary>Hint 1</summary>
# Begin with a small function that returns i(n), the formula of section 4.
# </details>
#
# <details><summary>Hint 2</summary>
# beta_fast gives the lower end of the ramp, since fast pairs have small numbers.
# </details>
#
# <details><summary>Hint 3</summary>
# <code>((torch.arange(head_dim // 2) - low) / (high - low)).clamp(0, 1)</code> is the
# share that is divided.
# </details>

# %%
def yarn_frequencies(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    ...

# %%
check_yarn(yarn_frequencies)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def yarn_frequencies(head_dim, base, factor, trained_length, beta_fast, beta_slow):
#     def pair_with(turns):
#         ratio = trained_length / (2 * math.pi * turns)
#         return head_dim * math.log(ratio) / (2 * math.log(base))
#
#     low = max(math.floor(pair_with(beta_fast)), 0)
#     high = min(math.ceil(pair_with(beta_slow)), head_dim - 1)
#     width = max(high - low, 0.001)  # a step where both ends fall on one pair
#     pair = torch.arange(head_dim // 2, dtype=torch.float64)
#     share = ((pair - low) / width).clamp(0, 1)
#     plain = inverse_frequencies(head_dim, base)
#     return (1 - share) * plain + share * plain / factor
# ```
#
# </details>
#
# **Recap.** Mix frequencies, along the pair number, between rounded bounds. When
# numbers differ in the middle only, ask which ramp the other program has.

# %% [markdown]
# ## 6. The temperature
#
# *You will be able to say where the factor goes, and what the scores get.*
#
# More tokens to attend to means more tokens to share attention with: the **entropy** of
# the attention weights grows with the length, about as $\ln n$. Attention becomes
# flatter. YaRN sharpens it again by a temperature $t$ in the softmax,
#
# $$\text{softmax}\!\left(\frac{q^\top k}{t\,\sqrt d}\right),
# \qquad \sqrt{1/t} = 0.1 \ln s + 1$$
#
# (eq. 21 and 22; the constants were fitted on LLaMA 7B to 65B, without fine-tuning).
#
# **Predict.** The factor is $\sqrt{1/t} = 1.3466$ at $s = 32$. It multiplies cos and
# sin. By how much are the scores multiplied?
#
# <details><summary>Answer</summary>
# By its square, 1.8133. q is turned with these tables and gets the factor, k is turned
# with them and gets it too, and the score is their product.
# </details>

# %%
generator = torch.Generator().manual_seed(4)
q, k = torch.randn(2, 1, 1, 6, 8, generator=generator)  # [1, 1, 6, 8] each
inv_freq, factor = yarn(8, base=10_000.0, factor=32.0, trained_length=4096)
scores = []
for on_tables in (factor, 1.0):
    cos, sin = rotary_tables(torch.arange(6), inv_freq, attention_factor=on_tables)
    scores.append(apply_rotary(q, cos, sin) @ apply_rotary(k, cos, sin).mT)
ratio = (scores[0] / scores[1]).mean().item()
print(f"factor {factor:.6f}: scores are multiplied by {ratio:.4f}")
assert torch.allclose(scores[0], factor ** 2 * scores[1], rtol=1e-3, atol=1e-5)

# %%
for s in (4, 8, 16, 32, 40, 64):
    a = yarn_attention_factor(s)
    first = [torch.softmax(times * torch.tensor([2.0, 1.0, 0.0]), 0)[0]
             for times in (1, a, a * a)]
    print(f"s = {s}: on cos and sin {a:.4f}, on scores {a * a:.4f}; first weight of"
          f" softmax([2, 1, 0]): {first[0]:.4f}, with the factor once {first[1]:.4f},"
          f" squared {first[2]:.4f}")
assert math.isclose(yarn_attention_factor(32) ** 2, 1.8132604340394958)
assert math.isclose(yarn_attention_factor(4) ** 2, 1.2964769927807063)

# %%
show(draw.entropy_by_length(),
     alt="Entropy of attention against length, 4,096 to 131,072 tokens. Without a"
         " temperature it rises by 3.4 nats, with the factor once by 2.5, with YaRN's"
         " square by 0.8; the line of equal weights rises by 3.5.",
     numbers=draw.describe_entropy_by_length())

# %% [markdown]
# **Notice.** The scores here are random numbers with standard deviation 1.5; how much
# the factor takes back depends on that spread. With flatter scores it takes back less,
# with sharper ones more than all of it:

# %%
for spread in (1.0, 1.5, 2.0):
    rows = draw.entropies((4096, 131_072), spread)
    rise = {name: after - before for name, (before, after) in rows.items()}
    print(f"spread {spread}: entropy changes by {rise['no temperature']:+.2f} nats"
          f" without, {rise['factor once, as printed']:+.2f} with the factor once,"
          f" {rise['YaRN: factor squared']:+.2f} with its square")

# %% [markdown]
# So the temperature is a fitted number that pulls in the right direction; it is not a
# law that keeps the entropy equal.
#
# > **The reference prints** that the factor "is multiplied into attention scores":
# > once. It multiplies q and k, so scores get the square. Its formula, and 1.347 for
# > $s = 32$, are right. See [page 06](06-the-reference-checked.ipynb), E29; and E30:
# > the code of APEX-1 computes the factor and never applies it.
#
# > **The code of APEX-1 says** that the factor prevents an "entropy collapse". Entropy
# > *grows* with length, as the reference itself says; collapse is the opposite failure.
# > See [page 06](06-the-reference-checked.ipynb), E44.

# %%
assert math.isclose(apex1_score_factor(32.0), 1.3465735902799727)  # printed, once
assert yarn(128, base=1e4, factor=32.0, trained_length=4096,
            attention_factor=1.0).attention_factor == 1.0  # an explicit one wins

# %% [markdown]
# ### DeepSeek puts it on the softmax scale
#
# In DeepSeek-V3 only 64 of the 192 query and key dimensions turn. Longer cos and sin
# would sharpen one part of the score and not the other. So its code leaves cos and sin
# alone and multiplies the softmax scale by the **square**. In a config file, with
# $g(s, m) = 0.1\,m \ln s + 1$, transformers reads it like this:
#
# $$\text{cos, sin} \times
# \frac{g(s, \texttt{mscale})}{g(s, \texttt{mscale\_all\_dim})},
# \qquad \text{softmax scale} \times g(s, \texttt{mscale\_all\_dim})^2$$
#
# With both equal, as shipped, the ratio is 1: a program that looks at the ratio alone
# loses the whole temperature.

# %%
for name, s, m in (("DeepSeek-V3", 40, 1.0), ("DeepSeek-V2-Lite", 40, 0.707),
                   ("Kimi-K2-0905", 64, 1.0)):
    ratio = yarn(64, base=10_000.0, factor=s, trained_length=4096, mscale=m,
                 mscale_all_dim=m).attention_factor
    print(f"{name}: cos and sin x {ratio:.1f}, softmax scale x"
          f" {yarn_attention_factor(s, m) ** 2:.6f}")
without, turned = torch.randn(2, 10_000, generator=generator)  # two parts of a score
partly = without + yarn_attention_factor(40) ** 2 * turned
print(f"longer tables instead: correlation with the sharpened score"
      f" {torch.corrcoef(torch.stack((partly, without + turned)))[0, 1]:.3f}")

# %% [markdown]
# (Kimi-K2's softmax factor is **derived** from its settings and DeepSeek's formula; its
# own file does not state it.) The names are a trap: the YaRN paper calls
# $0.1 \ln s + 1$ the root of $1/t$, the DeepSeek reports call the same number the root
# of $t$. LongRoPE has its own factor on cos and sin, $\sqrt{1 + \ln s / \ln L}$:

# %%
factor = math.sqrt(1 + math.log(32) / math.log(4096))
row = next(m for m in published() if m.model == "Phi-3-mini-128k-instruct")
print(f"s = 32, L = 4096: LongRoPE {factor:.6f}, YaRN {yarn_attention_factor(32):.6f}")
assert math.isclose(factor, row.attention_factor, abs_tol=1e-6)

# %% [markdown]
# ### Exercise 4.4: The attention factor
#
# **Difficulty** ●○○ · **2 minutes**
#
# Return what multiplies cos and sin. `factor` is a Python number of 1 or more.
#
# <details><summary>Hint</summary>
# <code>math.log</code> is the natural logarithm. What must come out for a factor of 1?
# </details>

# %%
def attention_factor(factor):
    ...

# %%
check_attention_factor(attention_factor)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def attention_factor(factor):
#     return 0.1 * math.log(factor) + 1
# ```
#
# </details>

# %% [markdown]
# ### Exercise 4.5: Scores with the temperature
#
# **Difficulty** ●●○ · **5 minutes**
#
# `q` and `k` are [batch, heads, seq, head_dim], `cos` and `sin` are plain tables.
# Return the scores before the softmax, with the usual $1/\sqrt d$ and with YaRN's
# temperature. Leave the given tables as they are.
#
# <details><summary>Hint 1</summary>
# You may put the factor on the tables, or its square on the scores. Not both.
# </details>
#
# <details><summary>Hint 2</summary>
# <code>apply_rotary(q, cos, sin)</code> turns q; <code>k.mT</code> is k with its last
# two dimensions swapped.
# </details>

# %%
def scaled_scores(q, k, cos, sin, factor):
    ...

# %%
check_scaled_scores(scaled_scores)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def scaled_scores(q, k, cos, sin, factor):
#     longer = 0.1 * math.log(factor) + 1
#     q = apply_rotary(q, cos * longer, sin * longer)
#     k = apply_rotary(k, cos * longer, sin * longer)
#     return q @ k.mT / math.sqrt(q.shape[-1])
# ```
#
# </details>
#
# **Recap.** $0.1 \ln s + 1$ on cos and sin, its square on scores. Exactly one place.

# %% [markdown]
# ## 7. The price
#
# *You will be able to say what scaling costs short texts, caches and training time.*
#
# ### Short texts
#
# Scaling is usually **static**: once set, it is on at every length, also for a text of
# 50 tokens. How well does such a text still find the scores that the model learnt? For
# random q and k the answer has a closed form: the correlation of a score before and
# after, at distance $m$, is the mean over the pairs of
# $\cos\big(m(\theta_i - \theta'_i)\big)$.
#
# **Predict.** Which method disturbs neighbours most?
#
# <details><summary>Answer</summary>
# Position interpolation: it changes the fastest pair, the one that neighbours are told
# apart by.
# </details>

# %%
show(draw.agreement_by_distance(),
     alt="Correlation of scores before and after scaling against distance, factor 4."
         " Dynamic NTK stays at 1; YaRN stays near 1 up to about 100 tokens; NTK-aware"
         " drops after 10; position interpolation drops at once.",
     numbers=draw.describe_agreement_by_distance())

# %% [markdown]
# **Notice.** YaRN leaves short distances nearly alone and pays at distances of several
# hundred tokens, where the blended pairs work. (The curve is about a model that was
# *not* trained further: fine-tuning teaches it the new angles.) Qwen ships its models
# without scaling and warns in its documentation that a static block may cost quality on
# short texts.
#
# ### Dynamic scaling, and what a cache does to it
#
# **Dynamic NTK** changes nothing until the text is longer than the trained length, and
# then a little more with each token: $b' = b\,\big(s\,\ell/L - (s - 1)\big)^{d/(d-2)}$,
# for a text of $\ell$ tokens. (That is transformers' formula; with $s = 1$ the stretch
# is $\ell/L$, as in the paper.) So the base changes while the model writes. A key that
# was turned and stored under an older base does not fit the new query:

# %%
def mean_score(query_freq, key_freq, m=8_191, n=8_181):  # all pairs aligned: at most 1
    return (m * query_freq - n * key_freq).cos().mean().item()

setting = {"base": 10_000.0, "factor": 2.0, "trained_length": 4096}
new = dynamic_ntk(128, **setting, length=8_192).inv_freq  # [64]
for length in (8_182, 8_000, 6_000):
    old = dynamic_ntk(128, **setting, length=length).inv_freq  # [64]
    print(f"distance 10; key stored when the text had {length:,} tokens:"
          f" {mean_score(new, old):+.3f} instead of {mean_score(new, new):+.3f}")

# %% [markdown]
# **Notice.** Same tokens, same distance, other scores. So with dynamic scaling, cache
# keys **before** they are turned (YaRN paper, section 3.3), or fix one base for the
# whole text. And reset it: a short text after a long one must get its plain base back.

# %%
after_long = dynamic_ntk(128, **setting, length=100).inv_freq
assert torch.equal(after_long, plain)  # no state: 100 tokens are plain RoPE again

# %% [markdown]
# ### Fine-tuning
#
# Does YaRN work "without retraining"? The models that carry its name were fine-tuned:

# %%
reported = (  # who, from, to, training after the change, where that is said
    ("YaRN, Llama 2 64K", 4096, 65_536, "400 steps", "YaRN, section 4.1"),
    ("YaRN, Llama 2 128K", 4096, 131_072, "200 steps more", "YaRN, section 4.1"),
    ("DeepSeek-V3", 4096, 131_072, "2 x 1000 steps", "report, section 4.3"),
    ("Position Interpolation, LLaMA", 2048, 32_768, "1000 steps", "PI, section 3.1"),
    ("Qwen3, YaRN and DCA", 32_768, 131_072, "none", "report, section 3.2"))
for name, start, end, training, where in reported:
    print(f"{name}: {start:,} -> {end:,} ({end // start} times): {training} ({where})")

# %% [markdown]
# - The YaRN paper claims "more than 2x" without fine-tuning, for *dynamic* YaRN.
# - Nothing changed: LLaMA 7B has a perplexity of 7.2 at its 2,048 tokens and more than
#   1,000 at 4,096 (PI, table 1).
# - Position interpolation without fine-tuning: perplexity 16.1 at 4 times and 112 at 8
#   times the length, about 7 after 200 steps (PI, table 3).
# - Qwen3 is the fair counter-example: trained at 32K, stretched 4 times at inference
#   only.
# - DeepSeek-V3 went in two phases, 4K to 32K to 128K. Its config says `factor: 40`,
#   which reaches 163,840.
#
# > **The reference prints** "without retraining" for 4K to 128K. See
# > [page 06](06-the-reference-checked.ipynb), E23.

# %%
reported_perplexity = {  # LLaMA 7B, trained on 2,048; Position Interpolation's tables
    "nothing changed": {"1x": 7.2, "2x": "above 1,000"},
    "interpolation, no tuning": {"4x": 16.1, "8x": 112},
    "interpolation, 200 steps": {"4x and 8x": "about 7"}}
for name, numbers in reported_perplexity.items():
    print(f"{name}: {numbers}")
assert 4096 * 40 == 163_840 and 32_768 * 4 == 131_072

# %% [markdown]
# **Recap.** Static scaling costs distances of a few hundred tokens; dynamic scaling
# costs care with the cache; large factors want fine-tuning.

# %% [markdown]
# ## 8. What the reference prints instead
#
# *You will be able to say in which variable the printed rule is wrong.*
#
# Section 5.3 of the reference has the same three regimes and the same 32 and 1. Its
# conditions are about **wavelengths in tokens**: unchanged if $\lambda < 32$, divided
# if $\lambda > 1 \cdot s$, else divided by $t s + (1 - t)$ with
# $t = (\lambda - 1)/(s - 1)$.
#
# **Predict.** Put that $t$ into the divisor. What comes out?
#
# <details><summary>Answer</summary>
# t s + 1 - t = 1 + t (s - 1) = 1 + (lambda - 1) = lambda. The factor cancels: the
# divisor is the wavelength itself.
# </details>

# %%
wave = torch.tensor([35.0, 50.0, 60.0], dtype=torch.float64)
for s in (64.0, 100.0):
    t = (wave - 1) / (s - 1)
    print(f"factor {s:g}: wavelengths {wave.tolist()} are divided by"
          f" {[round(value, 9) for value in (t * s + (1 - t)).tolist()]}")

# %%
show(draw.printed_rule(),
     alt="Divisor against wavelength. Left, the reference's rule: a jump at 32 tokens"
         " to the factor, or for factor 128 to 32 and then along the wavelength. Right,"
         " YaRN: 1 up to L/32, a slope, 32 from L on, for two trained lengths.",
     numbers=draw.describe_printed_rule())

# %% [markdown]
# **Notice.**
#
# - **No trained length.** The left picture has one curve a factor, for all models. The
#   right one moves with $L$.
# - **An empty middle.** It needs $32 \le \lambda \le s$. For every factor below 32
#   there is nothing there, and at 32 a single point; APEX-1's configs have 1, 4 and 8.
#   The rule is then a **step at 32 tokens**.
# - **The jump.** Even for larger factors the divisor jumps from 1 to 32 at a wavelength
#   of 32.
# - **The shape is not the fault.** At $s = 32$ the paper's own divisor in the band is
#   $\lambda / (L/32)$: also proportional to the wavelength, but in units of $L/32$.

# %%
waves = wavelengths(plain)  # [64]
for s in (2.0, 4.0, 8.0, 16.0, 32.0):
    rule = apex1(128, base=10_000.0, factor=s).inv_freq
    assert torch.equal(rule, torch.where(waves < 32, plain, plain / s))  # just a step
middle = waves[(waves > 128) & (waves < 4096)]
assert torch.allclose(draw.yarn_divisors(32.0, middle, 4096), middle / (4096 / 32))
for s in (8.0, 32.0, 64.0, 128.0):
    kinds = regimes(plain, apex1(128, base=10_000.0, factor=s).inv_freq, s)
    print(f"factor {s:g}: unchanged / blended / divided by the printed rule:",
          " / ".join(map(str, kinds.bincount(minlength=3).tolist())))

# %% [markdown]
# In the picture of section 3, with the printed rule added:

# %%
show(draw.divisors_by_pair(32.0, phi, printed=True),
     alt="The divisors of all methods at factor 32 with the reference's rule: it"
         " follows 1 up to pair 11 and 32 from pair 12 on, so it joins position"
         " interpolation where YaRN still leaves pairs alone.",
     numbers=draw.describe_divisors_by_pair(32.0, phi, printed=True))

# %%
small, large = apex1_config("small"), apex1_config("large")
for name, d, b, L, s in (("Llama 2", 128, 1e4, 4096, 32.0),
                         ("APEX-1 Small", small.d_head, small.rope_base, 8192, 4.0),
                         ("APEX-1 Large", large.d_head, large.rope_base, 131_072, 8.0)):
    f = inverse_frequencies(d, b)
    right = regimes(f, yarn(d, base=b, factor=s, trained_length=L).inv_freq, s)
    printed = regimes(f, apex1(d, base=b, factor=s).inv_freq, s)
    lost = [((printed == 2) & (right == kind)).sum().item() for kind in (0, 1)]
    print(f"{name}: divides {lost[0]} pairs that YaRN leaves alone and {lost[1]} that"
          " it blends")

# %% [markdown]
# (For APEX-1 the trained length is taken to be the length of its cache, 8,192 and
# 131,072.) So the printed rule is nearer to position interpolation than to YaRN.
#
# > **The reference prints** the cuts as wavelengths, a middle that is empty for every
# > factor below 32, a blend that turns out to be the wavelength, and a summary formula
# > without $L$. See [page 06](06-the-reference-checked.ipynb), E25, E26, E27 and E28.
#
# ### Its worked example, done right
#
# Section 5.6 stretches 4K to 128K. It never states the head width. Its pair 8 has
# $\theta = 0.01$, which asks for a width of 32; its pair 15 has $\theta = 0.0001$,
# which asks for 30. With width 32, $L = 4096$, $s = 32$:

# %%
assert math.isclose(10_000 ** (-2 * 8 / 32), 0.01) and 10_000 ** (-2 * 15 / 30) == 1e-4
setting = {"base": 10_000.0, "factor": 32.0, "trained_length": 4096}
f = inverse_frequencies(32)  # [16]
columns = (f, wavelengths(f), rotations(f, 4096),
           ntk_by_parts(32, **setting, ramp="rotations").inv_freq,
           ntk_by_parts(32, **setting).inv_freq,
           apex1(32, base=10_000.0, factor=32.0).inv_freq)
print("pair | theta | wavelength | turns | paper | code | printed rule")
for i in (0, 4, 5, 6, 8, 10, 11, 12, 15):
    print(i, *(f"{column[i]:.4g}" for column in columns), sep=" | ")

# %% [markdown]
# **Notice.** Pair 0 is unchanged everywhere, and with 652 turns rightly so. Pair 8
# turned 6.5 times: it is in the *blended* band of YaRN, and divided in full by the
# printed rule. Pair 15 is divided in full; its frequency is $5.557 \cdot 10^{-6}$.
#
# > **The reference prints** $\theta = 0.0001$ and $\theta' = 0.000003125$ for pair 15
# > (that frequency would be pair 16, which does not exist); that 628 lies between 32
# > and 32; that $t = 20.2$ is "clamped", which nothing does (unclamped, the divisor is
# > 628); and no head width. See [page 06](06-the-reference-checked.ipynb), E31, E32,
# > E33 and E34.

# %%
assert math.isclose(columns[4][15].item(), 5.557e-6, rel_tol=1e-3)
assert math.isclose((628 - 1) / (32 - 1), 20.226, rel_tol=1e-4)
t = (wavelengths(f)[8].item() - 1) / 31
print(f"pair 8, unclamped: the frequency is divided by {t * 32 + 1 - t:.1f}")

# %% [markdown]
# ### Its table of models, corrected
#
# | the reference prints | what the sources say | erratum |
# |---|---|---|
# | Llama 2: 4K to 32K, position interpolation | the PI paper stretched LLaMA **1**, 2,048 to 32,768; a Llama 2 32K with PI is Together's; Meta's own long Llama 2 raised the base to 500,000 | E35 |
# | KIMI: 128K to 1M+, YaRN | Kimi-K2: trained at 4K, then 32K, then YaRN **to** 128K (K2-0905: factor 64, 262,144). The 1M model, Kimi-Linear, has **no** rotary positions in its full-attention (MLA) layers | E36 |
# | DeepSeek-V3: 128K, native, base 1M | trained at **4K**, YaRN with factor 40, base **10,000** | E37 |
# | APEX-1 Small: 8K to 32K, YaRN, $s = 4$ | its config has factor 1 | E38 |
# | APEX-1 Large: 128K to 1M+, $s = 8$ and more | factor 8 with 131,072 cache rows: position 131,072 fails. The scaling is on at every length, and in training | E38 |

# %%
known = {m.model: m for m in published()}
v3 = known["DeepSeek-V3 (and R1, same architecture)"]
kimi, linear = known["Kimi-K2-Instruct-0905"], known["Kimi-Linear-48B-A3B"]
print("DeepSeek-V3:", v3.original_max_position_embeddings, v3.factor, v3.rope_theta)
print("Kimi-K2-0905:", kimi.original_max_position_embeddings, kimi.factor)
print("Kimi-Linear:", linear.remarks["rope_scaling_type"])
print("APEX-1:", small.rope_factor, large.rope_factor, large.max_seq_len)
assert kimi.original_max_position_embeddings * kimi.factor == 262_144
assert (v3.rotary_dims, v3.head_dim) == (64, 192)

# %% [markdown]
# > **See** [page 06](06-the-reference-checked.ipynb), E35, E36, E37 and E38, for the
# > sources.
#
# **Recap.** Right idea, right numbers, wrong variable. Turns in the trained length, not
# tokens in a wavelength.

# %% [markdown]
# ## 9. Read a `rope_scaling` block
#
# *You will be able to say what each number of a block does to each pair.*
#
# | key | what it does |
# |---|---|
# | `rope_type` (old spelling: `type`) | names the method: `linear`, `dynamic`, `yarn`, `llama3`, `longrope`, `proportional` |
# | `rope_theta` | the base $b$: every frequency, before scaling |
# | `factor` | slow pairs are divided by it; $0.1 \ln s + 1$ comes from it |
# | `original_max_position_embeddings` | the trained length $L$: decides *which* pairs are slow |
# | `beta_fast`, `beta_slow` | the two cuts, in turns; 32 and 1 if absent |
# | `truncate` | round the ends of the ramp; true if absent |
# | `attention_factor` | on cos and sin, exactly as written; wins over the formula |
# | `mscale`, `mscale_all_dim` | their ratio on cos and sin; in DeepSeek's classes the second, squared, on the softmax scale; 0 counts as absent |
# | `low_freq_factor`, `high_freq_factor` | Llama 3's cuts, in turns |
# | `short_factor`, `long_factor` | LongRoPE's divisors up to $L$, and beyond |
# | `partial_rotary_factor` | the share of a head that turns at all |
#
# **Predict.** Say for this block: which pairs stay, which are divided, what do scores
# get?

# %%
gpt_oss_config = {
    "model_type": "gpt_oss", "head_dim": 64, "rope_theta": 150_000,
    "max_position_embeddings": 131_072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0,
                     "beta_slow": 1.0, "truncate": False,
                     "original_max_position_embeddings": 4096}}
model = rope_from_config(gpt_oss_config)["all"]
kinds = regimes(model.plain, model.scaled.inv_freq, model.factor)
print(model.method, "on", len(kinds), "pairs:", kinds.bincount(minlength=3).tolist())
print(f"scores x {model.score_factor:.4f}")

# %% [markdown]
# <details><summary>Answer</summary>
# 32 pairs. 32 turns in 4,096 tokens are made at pair 8.09, one turn at pair 17.40, not
# rounded: pairs 0 to 8 stay, 9 to 17 are blended, 18 to 31 are divided by 32. cos and
# sin are multiplied by 1.3466, so scores by 1.8133.
# </details>
#
# Now the commonest mistake. Take the trained length away, and the same file is read
# with the extended length in its place:

# %%
del gpt_oss_config["rope_scaling"]["original_max_position_embeddings"]
guessed = rope_from_config(gpt_oss_config)
kinds = regimes(guessed["all"].plain, guessed["all"].scaled.inv_freq, 32.0)
print(kinds.bincount(minlength=3).tolist())
for warning in guessed.warnings:
    print("warning:", warning)

# %% [markdown]
# ### The regimes laboratory
#
# All of this page in one place. Choose a model or move the sliders; compare two
# methods; or paste the text of a `config.json` and look at your own model. Things to
# try:
#
# 1. Choose **Llama 2 128K** and compare YaRN with "YaRN, the other ramp".
# 2. Choose **Kimi-K2**: where has the band gone?
# 3. Make the trained length four times as long. Which pairs change sides? Now move the
#    factor: which do?
# 4. Choose **APEX-1 Large** and read how many fast pairs are slowed down.
# 5. Set the text to read to twice factor times trained length. Which pairs meet new
#    angles?

# %%
explorers.yarn.RegimesLaboratory()

# %%
llama = explorers.yarn.RegimesLaboratory(other="yarn-other").facts()
print(f"the ramps differ most at pair {llama['pair_1']}: {llama['ratio_1']:.2f} times")
apex = explorers.yarn.RegimesLaboratory()
apex.set(**apex.presets["APEX-1 Large"])
print(f"APEX-1 Large slows {apex.facts()['fast_slowed']} pairs that turn over 32 times")

# %% [markdown]
# **Recap.** Three numbers place the cuts: base, trained length, betas. One number says
# how far the slow pairs are divided: the factor. One more sharpens the scores.

# %% [markdown]
# ## The page in short
#
# - Past the trained length the **slow** pairs meet new angles. Count turns:
#   $r = L/\lambda$.
# - YaRN leaves a pair alone above 32 turns, divides it by $s$ below one, blends
#   between.
# - The trained length is part of the rule; the factor moves no cut.
# - The code's ramp is linear in the pair number, the paper's in the turns: up to four
#   times apart in the band.
# - $0.1 \ln s + 1$ goes on cos and sin; scores get its square. DeepSeek puts that
#   square on the softmax scale.
# - Static scaling costs at middle distances, dynamic scaling needs unturned keys in the
#   cache, large factors want fine-tuning.
#
# ## What people get wrong
#
# | wrong sentence | what is true | where |
# |---|---|---|
# | "The fast pairs see new angles." | The slow ones do. | section 1, `gaps` |
# | "YaRN divides (and clamps) positions." | It divides frequencies, each by its own number. | section 2, exercise 4.1 |
# | "The scale is 0.25." | The factor is 1 or more. | section 2 |
# | "YaRN raises the base." | NTK-aware does; YaRN keeps the base. | section 3 |
# | "The factor belongs inside the power." | $(sb)^{-2i/d}$ is another base. Divide after the power. | exercise 4.3 |
# | "32 and 1 are wavelengths." | They are turns in the trained length. | sections 4 and 8 |
# | "The trained length can be guessed from the config's maximum." | That may be the extended one; the band moves. | section 4 |
# | "The bounds count dimensions, so step by 2." | They count pairs. | section 4, `pair_at_rotations` |
# | "Llama 3 uses YaRN." | By parts too, with cuts at 4 and 1 and no temperature. | section 4 |
# | "Paper and code agree." | At the ends only. | section 5, `two_ramps` |
# | "Rounding does not matter." | 76 % at one pair of gpt-oss. | section 5 |
# | "Clamp at the last pair." | The code clamps at $d - 1$. | section 5 |
# | "Equal betas are an error." | They are a step; Kimi-K2 ships them. | section 4 |
# | "Swapped betas would crash." | Most programs run, with the ramp reversed. | section 5 |
# | "Scores are multiplied by $0.1 \ln s + 1$." | By its square. | section 6 |
# | "Multiply the tables and the scores, to be sure." | Then it counts four times. Exactly one place. | exercise 4.5 |
# | "A factor below 1 shrinks the context." | The formula would give a number below 1, and flatter attention; it is refused. | section 2 |
# | "`mscale / mscale_all_dim` = 1 means no temperature." | The square is on the softmax scale. | section 6 |
# | "Long context makes entropy collapse." | It makes it grow. | section 6 |
# | "YaRN needs no training." | Large factors were fine-tuned. | section 7 |
#
# ## What if
#
# 1. What if a model was trained so long that every pair turns more than 32 times? What
#    do YaRN and position interpolation then do?
# 2. What if you scale twice: a model that was stretched by YaRN and fine-tuned gets
#    stretched again? Which trained length do you give?
# 3. What if beta_slow were 0.5? Which pairs change, and would their hands stay on the
#    trained arc?
#
# ## Further reading
#
# - Peng et al. 2023, *YaRN* (arXiv:2309.00071, version 2): 3.1 and 3.2 for the regimes,
#   3.3 for dynamic scaling, 3.4 for the temperature, 4.1 for the training.
# - Chen et al. 2023, *Position Interpolation* (arXiv:2306.15595): section 2 (theorem
#   2.1 is the bound) and 3.
# - Ding et al. 2024, *LongRoPE* (arXiv:2402.13753): equation 3.
# - DeepSeek-V3 technical report (arXiv:2412.19437), 4.3.
# - The code of the authors: `jquesnelle/yarn`, `scaled_rope/`.
#
# Next: [page 05](05-length-extrapolation.ipynb), where small models are read past their
# trained length, and each method of this page is measured.
