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
# # Lesson 06: The reference, checked
#
# This course started from two texts about a language model called APEX-1: a tutorial
# chapter on embeddings and RMSNorm, and part 1 of a mathematical reference. They are
# friendly, well arranged, and brave enough to print numbers. We took every claim in
# them that can be checked, and checked it. A little over half hold. This page shows all
# of them, and walks through the ten that teach most.
#
# The texts were read in 2026; the model's repository is `AarambhDevHub/APEX-1` at
# commit `97b5855` of 30 May 2026. Its author may have mended things since. Where a
# claim stands is given as a section of the text and as a line of the plain-text copy
# that we read, so your line numbers may differ. Nobody should feel small for a wrong
# number here: the paper that section 5 of the reference is about had one to mend too
# (section 11).
#
# **Goals.** After this page you can
#
# - look up what is true about any claim of the two texts, and run the evidence;
# - say which ten mistakes are worth knowing, and how one cell shows each;
# - check a number in a text you read, before you believe it.
#
# **Time.** 40 minutes, or two minutes for the one claim you came for.
#
# **Before you start.** Each section links to the lesson that explains its subject.

# %%
import math
import time

import ipywidgets as widgets
import torch
from IPython.display import HTML, display

from apex_lessons import embedding, figures, norm, rope, yarn
from apex_lessons.figures import show

# %%
from apex_lessons.exercises.reference import (
    check_divisor, check_variance, check_verdicts)
from apex_lessons.models import claims, published
from apex_lessons.models.ledger import SECTIONS, VERDICTS
from apex_lessons.models.ledger.table import as_html, chosen, summary

torch.set_num_threads(1)

# %% [markdown]
# ## 1. All claims, and how they came out
#
# *You will be able to look up any claim.*
#
# A **claim** is a sentence, a formula or a number of the texts that one can check. Each
# gets one of five verdicts:
#
# | verdict | it means |
# |---|---|
# | correct | it holds |
# | wrong | it does not |
# | misleading | true in part, and teaches the wrong thing |
# | inconsistent | it contradicts the same text, or the model's own code and settings |
# | unverifiable | no public primary source was found |
#
# **Predict.** Of 87 checkable claims, how many hold?

# %%
rows = claims()
ledger = [row for row in rows if row.id.startswith("C")]
errata = [row for row in rows if row.id.startswith("E")]
print("the ledger:", summary(ledger))
print("the errata:", summary(errata))
assert (len(ledger), len(errata)) == (87, 44)
held = sum(row.verdict == "correct" for row in ledger)
print(f"{held} of 87 hold, {held / 87:.0%}")
assert [row.id for row in ledger if row.id in ("C47", "C57", "C67", "C68")
        and row.verdict != "correct"] == ["C68"]

# %%
show(figures.claims.verdicts_by_section(),
     alt="Stacked bars of checkable claims by section. Correct claims are the largest"
         " piece everywhere but in the YaRN section, where more claims are wrong than"
         " right.",
     numbers=figures.claims.describe_verdicts_by_section())

# %% [markdown]
# **Notice.** The worked examples of sections 2 to 4 are right but for one number (the
# norm in C68). What goes wrong more often is the unit, the variable, or who does what:
# things that no typo check finds.
#
# The **ledger** (C01 to C87) lists every claim, right or wrong. An **erratum** (E01 to
# E44) is a claim in doubt, told in full. Two errata, E17 and E44, stand in the model's
# repository and not in the texts; that leaves 42 places in the texts themselves.

# %%
places = [row for row in errata if row.text != "repository"]
assert len(places) == 42
assert [row.id for row in errata if row.text == "repository"] == ["E17", "E44"]
print("in the texts:", summary(places))

# %% [markdown]
# Choose a section and a verdict. These are stock widgets and ten lines: change them.

# %%
section = widgets.Dropdown(options=["all", *SECTIONS], value="yarn",
                           description="section")
verdict = widgets.Dropdown(options=["all", *VERDICTS], value="wrong",
                           description="verdict")
table = widgets.HTML(as_html(chosen(errata, "yarn", "wrong")))

def redraw(change):
    table.value = as_html(chosen(rows, section.value, verdict.value))

section.observe(redraw, "value")
verdict.observe(redraw, "value")
widgets.VBox([section, verdict, table])

# %% [markdown]
# Below are all 44 errata, for reading and searching without a kernel. The last column
# is computed while this page runs, or is a citation where nothing can be run. The 87
# rows of the ledger come after the walk, in section 12.

# %%
display(HTML(as_html(errata)))

# %% [markdown]
# One row is an object; its evidence is a function that you can read and call:

# %%
row = next(row for row in rows if row.id == "E22")
print(row.id, "|", row.text, row.where, "|", row.verdict)
print("says:    ", row.claim)
print("is right:", row.right_value)
print("evidence:", row.evidence())

# %% [markdown]
# **Recap.** `claims()` has everything on this page as data; `.evidence()` runs the
# proof.

# %% [markdown]
# ## 2. Variance one? (E01, E02)
#
# *You will be able to say what the square root of d does to a table of std 0.02.*
#
# The reference says that embedding entries, drawn with std 0.02, have variance about
# $1/d$, and that times $\sqrt d$ it becomes 1. **Predict** the variance after scaling
# at $d = 512$ and at $d = 7168$.
#
# $$\operatorname{var}(\sqrt d\,x) = d\,\operatorname{var}(x) = 0.0004\,d$$

# %%
for d_model in (512, 2500, 7168):
    generator = torch.Generator().manual_seed(0)
    table_of_d = embedding.ScaledEmbedding(500, d_model, generator=generator)
    scaled = table_of_d.weight.detach() * table_of_d.scale
    print(f"d = {d_model}: variance {scaled.var():.2f}; drawn with 0.02^2 ="
          f" {0.02**2:.4f}, not with 1/d = {1 / d_model:.5f}")
    assert abs(scaled.var() / (0.0004 * d_model) - 1) < 0.02

# %% [markdown]
# **Notice.** Two initialisations got mixed. With std $d^{-1/2}$ (as in the first
# transformer's code) the sentence is true; with std 0.02 it is true at $d = 2500$ only.
# [Page 01](01-embedding-scaling.ipynb) draws both.
#
# **How to catch it:** put one number in. $0.02^2 = 0.0004$, and $1/512 = 0.00195$.
#
# ### Exercise 6.1: The variance after scaling
#
# **Difficulty** ●○○ · **3 minutes**
#
# Return the variance of the entries after the factor $\sqrt d$, for rows drawn with
# `init_std`.
#
# <details><summary>Hint 1</summary>
# The variance of c x is c squared times the variance of x.
# </details>

# %%
def variance_after_scaling(init_std, d_model):
    ...

# %%
check_variance(variance_after_scaling)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def variance_after_scaling(init_std, d_model):
#     return d_model * init_std**2
# ```
#
# </details>

# %% [markdown]
# ## 3. Who scales the input? (E05)
#
# *You will be able to name which of three models multiplies its embedding.*
#
# "Used by: T5, PaLM, Gemma, APEX-1" is a natural thing to write: all of them have a
# $\sqrt d$ in them. **Predict** in which of the first three it multiplies the input.

# %%
for name in ("T5-base v1.0", "PaLM 540B", "Gemma-2-2B"):
    model = next(model for model in published() if model.model == name)
    scale, width = model.embedding_multiplier, model.hidden_size
    print(f"{name}: input times {scale:g}, logits times"
          f" {model.output_logit_multiplier:.4f}"
          f"  (square root of {width} is {math.sqrt(width):.1f})")

# %% [markdown]
# **Notice.** Gemma multiplies the input. T5 and PaLM draw rows of variance 1 and divide
# the **logits**. As functions of the table the two are one, with the factor in another
# place ([page 01](01-embedding-scaling.ipynb) proves it). T5 here is version 1.0;
# version 1.1 has a separate output matrix and neither factor.
#
# **How to catch it:** read the model's own line of code, not a summary of it.

# %% [markdown]
# ## 4. Who ties? (E08)
#
# *You will be able to say which released models share one matrix.*
#
# "Well-established practice (used in GPT-2, Llama, DeepSeek, etc.)": **predict** which
# of the three do it.

# %%
tied = {True: [], False: []}
for model in published():
    if model.tie_word_embeddings is not None and "APEX" not in model.model:
        tied[model.tie_word_embeddings].append(model.model)
print("tied:  ", ", ".join(tied[True]))
print("untied:", ", ".join(tied[False]))
assert {"Llama-3.2-1B-Instruct", "Qwen3-0.6B", "PaLM 540B"} <= set(tied[True])
assert {"Llama-3.1-8B-Instruct", "Qwen3-8B", "phi-1 (1.3B)"} <= set(tied[False])

# %% [markdown]
# **Notice.** Within a family the smallest models often tie and the larger ones do not
# (Llama 3, Qwen3): the table is a large part of a small model and a small part of a
# large one. There are exceptions both ways, such as PaLM 540B and phi-1. "Llama ties"
# depends on which Llama.
#
# **How to catch it:** look for `tie_word_embeddings` in the `config.json`. Where the
# key is missing, the default of the model's family counts, and families differ.

# %% [markdown]
# ## 5. Faster by 20 to 40 per cent? (E11)
#
# *You will be able to say what the paper measured, and what you measure.*
#
# The paper's abstract says 7 to 64 per cent, of the running time of **whole models** on
# the hardware of 2019. Some of its models do lie between 20 and 40, but its Transformer
# gained 6.9, and we found no source that gives 20 to 40 as a rule.
# **Predict** what this machine says: is PyTorch's `rms_norm` faster than its
# `layer_norm`?

# %% tags=["machine"] reason="timings differ between machines"
x = torch.randn(1, 512, 2048, generator=torch.Generator().manual_seed(0))
times = {"layer_norm": [], "rms_norm": []}
for _ in range(15):
    for name, seconds in times.items():
        start = time.perf_counter()
        getattr(torch.nn.functional, name)(x, (2048,))
        seconds.append(time.perf_counter() - start)
best = {name: min(seconds) for name, seconds in times.items()}
print(f"rms_norm takes {best['rms_norm'] / best['layer_norm']:.2f} times as long here")

# %% [markdown]
# **Notice.** On a CPU without compilation PyTorch's RMSNorm is several steps and its
# LayerNorm is one fused loop, so the "simpler" norm can be the slower one. Counting
# operations predicts nothing when memory is the limit.
# [Page 02](02-rmsnorm.ipynb) measures forward, backward and compiled.
#
# **How to catch it:** a speed claim needs a machine, a shape and a program beside it.

# %% [markdown]
# ## 6. The variance that RMSNorm does not set (E13)
#
# *You will be able to tell RMS from standard deviation.*
#
# $$\operatorname{RMS}^2 = \operatorname{var} + \operatorname{mean}^2$$

# %%
out = norm.rms_norm(torch.tensor([2.0, -1.0, 0.5, 1.5]))
mean, variance = out.mean().item(), out.var(unbiased=False).item()
print(f"mean {mean:.3f}, variance {variance:.3f}, mean square {variance + mean**2:.3f}")
assert abs(variance - 0.700) < 1e-3 and abs(variance + mean**2 - 1) < 1e-5

# %% [markdown]
# **Notice.** This is the reference's own example, whose numbers are all right. Its
# output has mean square 1 and variance 0.7: RMSNorm sets the one, not the other.
#
# **How to catch it:** take an example with a mean that is not zero.

# %% [markdown]
# ## 7. A table from another base (E18)
#
# *You will be able to check a frequency table in one line.*
#
# For $d_h = 8$ and base 10,000 the reference prints the frequencies 1, 0.0316, 0.0010,
# 0.00003. **Predict**: which base do they belong to?

# %%
printed = torch.tensor([1.0, 0.0316, 0.0010, 0.00003])
for base in (10_000.0, 1_000_000.0):
    right = rope.inverse_frequencies(8, base)
    shown = ", ".join(f"{value:.5f}" for value in right.tolist())
    print(f"base {base:>9,.0f}: {shown}  largest error of the print"
          f" {((printed - right).abs() / right).max():.0%}")
waves = [float(f"{wave:.6g}") for wave in rope.wavelengths(right)]
print("wavelengths with base 1,000,000:", waves)
assert rope.inverse_frequencies(8)[1] == 10_000.0 ** -0.25

# %% [markdown]
# **Notice.** The printed column fits base one million, with its last number rounded.
# The printed wavelengths (6.28, 198.7, 6,283 and 198,692) fit it too, so the table
# looks right.
#
# **How to catch it:** the second frequency of four must be the base to the power of
# $-1/4$, here $1/10$. [Page 03](03-rope.ipynb) computes the table.

# %% [markdown]
# ## 8. Fast or slow? (E24)
#
# *You will be able to say which pairs meet new angles past the trained length.*
#
# The reference says that **high**-frequency dimensions see angles they never trained
# on.
# **Predict** how often the fastest and the slowest pair turn in 4,096 tokens (width
# 128).

# %%
turns = yarn.rotations(rope.inverse_frequencies(128), 4096)  # [64]
never = int((turns < 1).sum())
print(f"fastest pair {turns[0]:.0f} turns, slowest {turns[-1]:.3f};"
      f" {never} never finish one")
assert never == 18 and turns[0] > 650

# %% [markdown]
# **Notice.** After 652 turns a pair has seen every angle. The slow pairs are the ones
# that walk into the unknown. The fast ones have the opposite problem: interpolation
# makes neighbours look alike. [Page 04](04-yarn.ipynb) draws both.
#
# **How to catch it:** count turns.

# %% [markdown]
# ## 9. Regimes without a trained length (E25, E26, E28)
#
# *You will be able to say what the two betas of YaRN count.*
#
# The printed rule compares a wavelength **in tokens** with 32 and with $s$. YaRN's
# $\beta$ counts **turns in the trained length** $L$. Same 32, another unit. The rule as
# printed knows no $L$, so it treats a model trained on 4K and one trained on 128K
# alike, and its middle regime ($32 \le \lambda \le s$) is empty for every $s$ below 32.

# %%
plain = rope.inverse_frequencies(128)
for factor in (4.0, 32.0, 64.0):
    settings = {"base": 10_000.0, "factor": factor}
    printed_rule = yarn.apex1(128, **settings).inv_freq
    real = yarn.ntk_by_parts(128, **settings, trained_length=4096).inv_freq
    kinds = [yarn.regimes(plain, scaled, factor).long().bincount(minlength=3).tolist()
             for scaled in (printed_rule, real)]
    print(f"factor {factor:g}: kept/between/divided  printed {kinds[0]},"
          f" YaRN {kinds[1]}")
    assert kinds[0][1] == (5 if factor == 64 else 0)

# %%
show(figures.yarn.printed_rule(),
     alt="Divisor of each pair under the printed rule and under YaRN for several"
         " factors: the printed rule is a step at a wavelength of 32 tokens, YaRN a"
         " ramp that moves with the trained length.",
     numbers=figures.yarn.describe_printed_rule())

# %% [markdown]
# **Notice.** At factor 32 the rule divides 52 of 64 pairs, YaRN 18, and position
# interpolation all 64: by that count the rule is nearer to position interpolation.
#
# **How to catch it:** ask of each symbol what it counts. Tokens and turns are not the
# same unit. Then ask: what happens for a model trained on another length?

# %% [markdown]
# ## 10. The divisor that is the wavelength itself (E27)
#
# *You will be able to simplify the printed formula, and to see that s cancels.*
#
# With $\beta_\text{slow} = 1$, as printed:
#
# $$t = \frac{\lambda - 1}{s - 1}, \qquad
# t\,s + (1 - t) = 1 + t\,(s - 1) = 1 + (\lambda - 1) = \lambda$$

# %%
factor = 64.0
rule = yarn.apex1(128, base=10_000.0, factor=factor).inv_freq
middle = yarn.regimes(plain, rule, factor) == 1
for ratio, wave in zip((plain / rule)[middle], rope.wavelengths(plain)[middle]):
    print(f"divisor {ratio:.3f}   wavelength {wave:.3f} tokens")
    assert abs(ratio - wave) < 1e-9

# %% [markdown]
# **Notice.** The scaled frequency is $\theta^2/2\pi$ whatever the factor. Where the
# middle begins, the divisor jumps from 1 to 32. Blending divisors instead of
# frequencies would be allowed (the paper's footnote 4); the fault is the variable in
# $t$.
#
# **How to catch it:** put both ends into a ramp. At its start it must give 1.
#
# ### Exercise 6.2: A ramp that starts at one
#
# **Difficulty** ●●○ · **6 minutes**
#
# Return the divisor of a pair that turns `turns` times in the trained length: 1 from
# `beta_fast` turns up, `factor` from `beta_slow` down, and in between the **frequency**
# blends linearly in the turns (the paper's equations 18 to 20).
#
# <details><summary>Hint 1</summary>
# The share of the plain frequency is (turns - beta_slow) / (beta_fast - beta_slow),
# cut off at 0 and 1.
# </details>
#
# <details><summary>Hint 2</summary>
# The scaled frequency is share + (1 - share) / factor times the plain one; the divisor
# is one over that.
# </details>

# %%
def divisor(turns, factor, beta_fast, beta_slow):
    ...

# %%
check_divisor(divisor)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def divisor(turns, factor, beta_fast, beta_slow):
#     share = (turns - beta_slow) / (beta_fast - beta_slow)
#     share = min(max(share, 0.0), 1.0)
#     return 1 / (share + (1 - share) / factor)
# ```
#
# </details>

# %% [markdown]
# ## 11. The square of the factor, and a word about entropy (E29, E44)
#
# *You will be able to say what scores get, and in which direction the temperature
# works.*
#
# The factor $0.1 \ln s + 1$ goes on cos and sin, so q carries it **and** k carries it.
# The reference multiplies it into the scores, once.

# %%
for s in (4, 32, 64):
    once = yarn.yarn_attention_factor(s)
    print(f"s = {s}: on q and on k {once:.4f}, scores {once**2:.4f};"
          f" printed {once:.4f}")
assert round(yarn.yarn_attention_factor(32) ** 2, 4) == 1.8133

# %% [markdown]
# Why sharpen at all? With more keys the attention spreads: its **entropy** (how evenly
# it is shared, in nats) goes **up**. Random scores of variance 1 show it:

# %%
scores = torch.randn(16, 131_072, generator=torch.Generator().manual_seed(0))
squared = yarn.yarn_attention_factor(32) ** 2
for keys, multiplier in ((4096, 1.0), (131_072, 1.0), (131_072, squared)):
    p = (scores[:, :keys].double() * multiplier).softmax(dim=-1)
    entropy = -(p * p.log()).sum(dim=-1).mean()
    print(f"{keys:>7} keys, scores times {multiplier:.2f}: entropy {entropy:.2f} nats")

# %% [markdown]
# **Notice.** The reference has the direction right: entropy increases. A comment in the
# model's repository says that the factor prevents entropy *collapse*, which is the
# opposite failure. Such a slip is human. The first version of YaRN's own preprint (31
# August 2023) says in section 3.4 that entropy falls, and sets out to raise it; the
# second (2 November 2023) speaks of increased entropy. The cell shows what the second
# says: entropy rises, and larger scores bring it down again.
#
# **How to catch it:** for a direction, two numbers are enough.

# %% [markdown]
# ### The three long-context rows (E35, E36, E37)
#
# The table of context extensions has three rows about other people's models. Their own
# settings tell another story:

# %%
for name in ("Kimi-K2-Instruct-0905", "DeepSeek-V3"):
    model = next(model for model in published() if model.model.startswith(name))
    length, factor = model.original_max_position_embeddings, model.factor
    print(f"{name}: original length {length}, factor {factor:g}, room for"
          f" {length * factor:,.0f} tokens; base {model.rope_theta:,.0f}")
    assert length == 4096 and model.rope_theta < 1e6
for row in errata:
    if row.id in ("E35", "E36", "E37"):
        print(row.id, "|", row.claim, "|", row.right_value)

# %% [markdown]
# **Notice.** The one row called "native long" is the textbook case of YaRN (its
# settings leave room for more than the 128K that its report claims). The row said to
# reach a million by YaRN seems to mix two models, and the one that does reach a million
# has no rotary positions at all in its full-attention layers.
#
# **How to catch it:** `original_max_position_embeddings`, `factor` and `rope_theta`
# stand in the model's `config.json`.
#
# ### Exercise 6.3: Be the checker
#
# **Difficulty** ●●○ · **8 minutes**
#
# Give your verdict on four sentences of a kind that one often reads: `"correct"`,
# `"wrong"` or `"misleading"`. Use the package to find out; guessing right is not the
# point.
#
# - **a** "With head width 64 and base 10,000 the slowest pair needs about 47,000 tokens
#   for a turn."
# - **b** "RMSNorm gives each token a vector of norm 1."
# - **c** "YaRN with factor 1 is plain RoPE."
# - **d** "RoPE scores depend on distance alone, so RoPE models read longer texts than
#   they were trained on."
#
# <details><summary>Hint 1</summary>
# a: <code>rope.wavelengths(rope.inverse_frequencies(64))[-1]</code>. b: E15. d: E21;
# one half is true.
# </details>

# %%
def verdicts():
    ...

# %%
check_verdicts(verdicts)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def verdicts():
#     return {"a": "correct", "b": "wrong", "c": "correct", "d": "misleading"}
# ```
#
# </details>

# %% [markdown]
# ## 12. The whole ledger

# %%
display(HTML(as_html(ledger)))

# %%
unsupported = [row.id for row in rows if not row.evidence().supports]
cited = sum(row.evidence().kind == "citation" for row in rows)
print(f"{len(rows)} claims: {len(rows) - cited} computed on this page, {cited} cited;"
      f" verdicts without support: {len(unsupported)}")
assert not unsupported

# %% [markdown]
# ## Recap
#
# - A little over half of the checkable claims hold.
# - The mistakes that matter are units (turns, not tokens), missing variables (the
#   trained length), places (q **and** k, input **or** logits) and reports at second
#   hand (who does what).
# - Each is caught by one small habit: put a number in, put both ends in, count turns,
#   read the config.
#
# ## Misconceptions
#
# | one reads | what is true | shown in |
# |---|---|---|
# | times sqrt(d) gives variance 1 | 0.0004 d with std 0.02 | section 2 |
# | RMSNorm is 20-40 % faster | depends on the program and the machine | section 5 |
# | fast pairs see new angles | slow pairs do | section 8 |
# | beta is a wavelength | it counts turns in the trained length | section 9 |
# | the factor multiplies scores | its square does | section 11 |
#
# ## What if...
#
# - ...you changed the middle rule's variable from $\lambda$ to $L/\lambda$? Which part
#   of YaRN would you have?
# - ...`claims()` had a row about a text of your own? Write its evidence function.
# - ...a model were trained at $L = 32$? Which pairs would the printed rule get right?
#
# ## Further reading
#
# - Peng et al. 2023, YaRN, arXiv:2309.00071v2: sections 3.1 to 3.4, footnote 4.
# - Zhang and Sennrich 2019, RMSNorm, arXiv:1910.07467: section 4 and the tables.
# - Chen et al. 2023, Position Interpolation, arXiv:2306.15595: table 1.
# - Vaswani et al. 2017, arXiv:1706.03762: section 3.4.
