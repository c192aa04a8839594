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
# # Lesson 05: Past the trained length
#
# Everybody says that rotary models fail past the length they were trained on, and that
# YaRN rescues them. Here you see it happen: three small models, trained on 512 bytes at
# a time, read texts of up to 4,096. We measure where they fail, what each
# [method of page 04](04-yarn.ipynb) saves, and what does **not** come out as the papers
# say. You can train such a model yourself, on a laptop, at the end of this page.
#
# **Goals.** After this page you can
#
# - say what breaks past the trained length, and show it as a curve;
# - rank the methods without training, on your own measurement, with error bands;
# - separate what YaRN's ramp does from what its temperature does;
# - name the price on short texts, and what a short fine-tuning changes;
# - tell which of the papers' findings hold for a model of this size.
#
# **Time.** 45 minutes; the exercises are about a third of it.
#
# **Before you start.** From [page 04](04-yarn.ipynb): a pair turns
# $r = L/\lambda$ times in the trained length $L$; YaRN keeps pairs with $r > 32$,
# divides those with $r < 1$ by the factor, and blends between.

# %%
import inspect
import math
import time

import ipywidgets as widgets
import torch

from apex_lessons import explorers
from apex_lessons.exercises.extrapolation import (
    check_entropy, check_found_beyond, check_loss_by_position, check_three_curves,
    curves_without_names)

torch.set_num_threads(1)

# %%
from apex_lessons.extrapolation import (
    LENGTHS, METHODS, DecoderSettings, Trainer, band, left_out, load_checkpoint,
    provenance, read_by, readable, reading, recall, seeds, select, text_for,
    training_log)
from apex_lessons.extrapolation.decoder import Block
from apex_lessons.figures import extrapolation as draw, png, show
from apex_lessons.yarn import regimes

# %% [markdown]
# ## 1. A model small enough to train yourself
#
# *You will be able to read the whole model, and to say why it has these sizes.*
#
# The model is a decoder built of this course's parts and nothing else: the scaled, tied
# embedding of [page 01](01-embedding-scaling.ipynb), the norm of [page
# 02](02-rmsnorm.ipynb) before each part, the rotation of [page 03](03-rope.ipynb) in
# each attention, a gated MLP. One byte is one token. The file
# `apex_lessons/extrapolation/decoder.py` is read in ten minutes; its heart is this:

# %%
print(inspect.getsource(Block.forward))

# %%
sizes = DecoderSettings()
model = load_checkpoint(0)
weights = sum(weight.numel() for weight in model.parameters())
print(f"{weights:,} weights, {sizes.n_layers} layers, {sizes.n_heads} heads of"
      f" {sizes.head_dim}, trained length {sizes.trained_length} bytes")

# %% [markdown]
# **Predict.** Why few heads of width 64, and not many of width 32? Think of how many
# pairs would be unchanged, blended and divided by YaRN.
#
# <details><summary>Answer</summary>
# A pair is kept only if it turns more than 32 times in the trained length, so its
# wavelength must be below 512/32 = 16 bytes. Narrow heads have few pairs, hence very
# few below 16. To tell the methods apart, each regime needs several pairs.
# </details>

# %%
for trained, width in ((256, 32), (512, 32), (512, 64)):
    small = DecoderSettings(head_dim=width, trained_length=trained)
    scaled = reading("yarn", small, 4 * trained).scaled.inv_freq
    counts = torch.bincount(regimes(small.plain.inv_freq, scaled, 4.0).long())
    print(f"{trained} bytes, heads of {width}: {counts[0]} kept, {counts[1]} blended,"
          f" {counts[2]} divided")
assert counts.tolist() == [4, 12, 16]

# %% [markdown]
# `make train` trains them from their seeds. Shaded is the range from the least to the
# greatest of the three, here and in all pictures below. It says how much the **models**
# differ; all of them read the same texts, so it does not say what other texts would
# give.

# %%
show(draw.training(),
     alt="Left: loss on both kinds of text falls over 900 steps. Right: the share of"
         " answers found stays at one in eight, then jumps above 0.9, for two models at"
         " step 200, for the last at step 450.",
     numbers=draw.describe_training())

# %% [markdown]
# **Notice.** For a while nothing is found; then, within some fifty steps, a model
# learns to look back: two near step 200, one near 450. What it looks for is the next
# section. A fourth seed was trained too, and still guessed at its end. A model that
# finds nothing near by says nothing about far away, so it is left out, by a rule on the
# training text alone; its log is shipped with the others.

# %%
for seed, log in left_out().items():
    print(f"seed {seed}, left out: {log[-1].accuracy:.2f} of the answers found")
for seed in seeds():
    log = training_log(seed)
    learned = next(line.step for line in log if line.accuracy > 0.5)
    print(f"seed {seed}: half found at step {learned}, at the end"
          f" {log[-1].accuracy:.2f}")

# %% [markdown]
# **Recap.** 0.7 million weights, 512 bytes, heads of 64: all three regimes have pairs.

# %% [markdown]
# ## 2. A text that needs a long memory
#
# *You will be able to say what a model must do to read this text, and how far back.*
#
# Natural text can be guessed fairly well from its last few words. To see whether a
# model can still look **far** back we need bytes that nothing else tells. So a
# generator makes **recall text**: invented words, and between them facts about sixteen
# registers. A fact is one byte, shown here as `[D=5]`: register D now holds 5. Later
# the letter `D` stands in the text; the next byte must be `5`.

# %%
made = recall(512, 1, torch.Generator().manual_seed(0))
print(readable(made.ids[0])[:250])
distances = made.distance[made.distance > 0]
print(f"\n{len(distances)} answers in 512 bytes, {distances.min()} to"
      f" {distances.max()} bytes back")

# %% [markdown]
# Who does not find the fact guesses one digit in eight. Old facts about the same
# register stay in the text, so the model must find the **last** one: it needs content
# and order, which is what rotary positions are for. How far back the fact lies is
# spread evenly on a logarithmic scale, and recorded: that gives accuracy **by
# distance**.
#
# **Predict.** A model that has learned this: which share does it find in texts of the
# trained length?
#
# <details><summary>Answer</summary>
# Nearly all: the next cell counts.
# </details>
#
# The other half of the training was natural text: the modules of Python's own standard
# library, which is on every machine. It differs between versions of Python, so live
# numbers on this page are on recall text; the stored ones are on both.

# %%
text = text_for("recall", 512, size=8192)
loss, found = zip(*(read_by(model, row, "none") for row in text.ids))
asked = text.distance[:, 1:] > 0
share = torch.stack(found)[asked].double().mean().item()
print(f"trained length: {share:.2f} of {asked.sum()} answers found")
assert share > 0.9

# %% [markdown]
# **Recap.** Recall text asks for facts at known distances; guessing gives 1/8.

# %% [markdown]
# ## 3. Past the trained length
#
# *You will be able to show where a model fails, and what it fails at.*
#
# **Predict.** The model reads 4,096 bytes with nothing changed. What does its loss do
# at byte 512: jump at once, rise slowly, or stay? And the answers that lie near?
#
# <details><summary>Answer</summary>
# It rises, and goes on rising: at byte 600 only a few keys are farther than 512 away,
# at byte 4,000 most are. Near answers suffer less: their distances are known.
# </details>

# %%
show(draw.loss_by_position(["none"], length=4096, text="natural"),
     alt="Loss along 4,096 bytes of natural text without scaling. It is lowest inside"
         " the trained 512 bytes and climbs to almost one nat more.",
     numbers=draw.describe_loss_by_position(["none"], length=4096, text="natural"))

# %% [markdown]
# More context should make the next byte **easier** to foretell. Here it makes it
# harder. And this is what became of the memory:

# %%
show(draw.accuracy_by_distance(["none"], length=4096),
     alt="Share of answers found by distance, without scaling, in 4,096 bytes. Near"
         " answers are nearly all found; beyond 256 bytes it drops towards guessing.",
     numbers=draw.describe_accuracy_by_distance(["none"], length=4096))

# %%
(row,) = draw.near_and_far_shares(["none"], length=4096)
print(f"512 bytes back or more: {row.far.mean:.2f} of {row.far_answers} answers found")
assert row.far.mean < 0.4

# %% [markdown]
# **Notice.** Facts that lie farther back than any training text was long are all but
# lost. Distances that **were** trained suffer too, if the text is long:

# %%
short, long = (draw.distance_curves(["none"], length=n)[0].bands[4]
               for n in (512, 4096))
print(f"256 to 511 bytes back: {short.mean:.2f} found in short texts,"
      f" {long.mean:.2f} in long ones")
assert long.mean < short.mean - 0.2

# %% [markdown]
# The words for all this: the model **does not extrapolate**. Positions are not too
# large for the formula; some pairs stand at angles that no weight ever met ([page 04,
# section 1](04-yarn.ipynb)), and those keys get attention that they should not have.
#
# > **The reference prints** that relative positions are "crucial for generalization to
# > longer sequences". They are not enough. See
# > [page 06](06-the-reference-checked.ipynb), E21.
#
# ### Exercise 5.1: Loss by position
#
# **Difficulty** ●○○ · **4 minutes**
#
# You have the `losses` of several texts, [rows, length]. Return their mean in each bin
# of `width` neighbouring positions, [length / width], over all texts.
#
# <details><summary>Hint</summary>
# <code>losses.unflatten(1, (-1, width))</code> cuts the second dimension into bins.
# </details>

# %%
def loss_by_position(losses, width):
    ...

# %%
check_loss_by_position(loss_by_position)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def loss_by_position(losses, width):
#     return losses.unflatten(1, (-1, width)).mean(dim=(0, 2))
# ```
#
# </details>
#
# **Recap.** One mean over everything hides the failure; positions and distances show
# it.

# %% [markdown]
# ## 4. What rescues it, without training
#
# *You will be able to rank the methods on a measurement, and to say why each is there.*
#
# The weights stay. Only the frequencies change, by the rules of
# [page 04](04-yarn.ipynb), with factor $s$ = length / 512.
#
# **Predict.** Order these from worst to best at 8x: no scaling, position interpolation,
# NTK-aware, YaRN.
#
# <details><summary>Answer</summary>
# By loss: interpolation, no scaling, NTK-aware, YaRN. By what is found far away the
# order is another one; read on.
# </details>

# %%
show(draw.loss_by_position(draw.PAPERS, length=4096, text="natural"),
     alt="Loss along 4,096 bytes of natural text for four methods. Interpolation is far"
         " above all others from the first bytes on. No scaling climbs past 512."
         " NTK-aware climbs less, YaRN not at all.",
     numbers=draw.describe_loss_by_position(draw.PAPERS, length=4096, text="natural"))

# %% [markdown]
# **Notice.** Interpolation is bad from the very first bytes: it slows the fast pairs as
# well, and with them the model reads its nearest neighbours. NTK-aware scaling and YaRN
# keep those. Of the three that start low, YaRN alone ends lower than it starts. The
# memory tells it from the other side:

# %%
show(draw.accuracy_by_distance(draw.PAPERS, length=4096),
     alt="Share of answers found by distance for four methods in 4,096 bytes. Without"
         " scaling far answers are lost; YaRN and interpolation find most of them up to"
         " 2,048 bytes back, but interpolation fails more of the near ones.",
     numbers=draw.describe_accuracy_by_distance(draw.PAPERS, length=4096))

# %% [markdown]
# **Notice.** Here interpolation is as good as YaRN: far away all its angles are known.
# What it lost is near by. So a method has **two** things to keep, and one number cannot
# say both. Each method as a point, near answers to the right, far answers up:

# %%
show(draw.near_and_far(length=4096),
     alt="Eleven methods as points, near answers found against far ones, 4,096 bytes."
         " No scaling: near 0.97, far 0.23. Interpolation, printed rule: far 0.7, near"
         " 0.83. YaRN: near 0.95, far 0.63; NTK-aware: near 0.94, far 0.46.",
     numbers=draw.describe_near_and_far(length=4096))

# %% [markdown]
# **Notice.** Dividing the slow pairs is what finds far facts: every method that does it
# is high up. Keeping the fast pairs is what finds near ones: interpolation and the
# printed rule, which divide pairs that short texts need, are on the left. YaRN is best
# at neither, and good at both.
#
# Now all eleven readings, on both texts, at every length. At 1x they are one and the
# same: with factor 1 every rule is plain RoPE. Rows compare; columns do not, since a
# longer text is another text.

# %%
draw.loss_table("natural")

# %%
draw.loss_table("recall")

# %%
def mean_loss(method, length, text="natural", **settings):
    found = select(method=method, length=length, text=text, **settings)
    return band(result.loss for result in found).mean

for length in LENGTHS[1:]:
    order = sorted(METHODS, key=lambda name: mean_loss(name, length))
    print(f"{length // 512}x, best first: {', '.join(order[:3])}; worst: {order[-1]}")
    assert order[-1] == "position_interpolation"

# %% [markdown]
# **Notice**, row by row:
#
# - **Position interpolation** has a higher loss than doing nothing, at every length.
# - **NTK-aware** and **dynamic NTK** use the same formula. Dynamic scaling grows with
#   the text, so its first 512 bytes are read as in training; its end is the same.
# - **NTK-by-parts** and **Llama 3** are by parts, with other cuts; they are close.
# - **YaRN** adds the temperature; the next section takes the two apart.
# - **APEX-1's printed rule** looks at wavelengths, not at turns in the trained length.
#   It divides pairs that should be kept; in the picture above it stands beside
#   interpolation. Its loss against doing nothing, seed by seed:

# %%
def saved(method, length, text):
    """Loss that a method saves against no scaling, for each seed."""
    pairs = zip(select(method="none", length=length, text=text),
                select(method=method, length=length, text=text))
    return [nothing.loss - result.loss for nothing, result in pairs]

# %%
for method in ("apex1", "apex1_scores", "yarn"):
    for text_name in ("natural", "recall"):
        gains = saved(method, 4096, text_name)
        print(f"{method}, 8x, {text_name}:", *(f"{gain:+.3f}" for gain in gains))
        printed = [gain for rule in ("apex1", "apex1_scores")
                   for gain in saved(rule, 4096, text_name)]
        assert method != "yarn" or min(gains) > max(printed)

# %% [markdown]
# **Notice.** What the printed rule saves at 8x has no sign: better for one seed, worse
# for another. With its printed factor on the scores it saves a little more. YaRN's
# smallest saving is above the printed rule's largest.
#
# > **The reference prints** conditions on wavelengths in tokens, with no trained length
# > in them. See [page 06](06-the-reference-checked.ipynb), E25.

# %% [markdown]
# ### Exercise 5.2: Three curves without names
#
# **Difficulty** ●●○ · **5 minutes**
#
# Below are no scaling, APEX-1's printed rule and YaRN on natural text of 4,096 bytes.
# Which is which, and what gives it away? Methods: `"none"`, `"apex1"`, `"yarn"`. Clues
# (one fits none of them):
#
# - `"new-angles"`: as trained up to 512, then worse and worse;
# - `"neighbours"`: worse from the first bytes on, and not much worse later;
# - `"kept"`: good at the start and still good at the end;
# - `"cut-off"`: as if only the last 512 bytes were read.
#
# <details><summary>Hint</summary>
# Look at two places: the first bytes, where nothing is unknown yet, and the end.
# </details>

# %%
show(draw.unnamed(curves_without_names()),
     alt="Three unnamed curves of loss by position over 4,096 bytes. A starts low and"
         " climbs to the top. B is high from the start and stays there. C starts low"
         " and stays low.",
     numbers=draw.describe_unnamed(curves_without_names()))

# %%
def three_curves():
    ...  # return {"A": (method, clue), "B": (method, clue), "C": (method, clue)}

# %%
check_three_curves(three_curves)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def three_curves():
#     return {"A": ("none", "new-angles"), "B": ("apex1", "neighbours"),
#             "C": ("yarn", "kept")}
# ```
#
# </details>
#
# **Recap.** Divide the slow pairs for the far text, keep the fast ones for the near.

# %% [markdown]
# ## 5. The ramp and the temperature, apart
#
# *You will be able to say how much of YaRN is its ramp and how much its temperature.*
#
# NTK-by-parts **is** YaRN without the temperature. And the ramp exists twice: linear in
# the pair's number (everybody's code) and linear in its turns (the paper's equations;
# [page 04](04-yarn.ipynb)). The temperature multiplies cos and sin by
#
# $$0.1 \ln s + 1,$$
#
# so scores, which hold two rotated vectors, get its square.
#
# **Predict.** Attention spreads over more keys as texts grow. Does the temperature
# sharpen it, or flatten it?
#
# <details><summary>Answer</summary>
# It sharpens: scores are multiplied by more than 1, by (0.1 ln 8 + 1)² = 1.46 at 8x.
# </details>

# %%
factor = reading("yarn", sizes, 4096).scaled.attention_factor
print(f"on cos and sin at 8x: {factor:.3f}; on scores: {factor**2:.2f}")
assert abs(factor - (0.1 * math.log(8) + 1)) < 1e-12

# %% [markdown]
# How widely attention is spread is measured by its entropy: ln n where it is even over
# n keys. Below, the mean over all heads, in the last quarter of one text:

# %%
PARTS = ["none", "ntk_by_parts", "ntk_by_parts_rotations", "yarn", "yarn_rotations"]
show(draw.loss_by_length(PARTS, text="natural", value="entropy"),
     alt="Mean attention entropy against length. Without a temperature it grows by"
         " about two nats from 512 to 4,096 bytes; with it, it stays almost level.",
     numbers=draw.describe_loss_by_length(PARTS, text="natural", value="entropy"))

# %%
show(draw.loss_by_length(PARTS, text="natural"),
     alt="Loss against length on natural text for the two ramps with and without the"
         " temperature. At 8x the pair ramp with it is lowest; each ramp with it lies"
         " below the same ramp without it.",
     numbers=draw.describe_loss_by_length(PARTS, text="natural"))

# %%
for length in LENGTHS[1:]:
    ramp = mean_loss("none", length) - mean_loss("ntk_by_parts", length)
    warm = mean_loss("ntk_by_parts", length) - mean_loss("yarn", length)
    print(f"{length // 512}x: ramp saves {ramp:.3f}, temperature {warm:.3f} more")
assert 0.35 < warm / ramp < 0.45

# %%
for kind in ("", "_rotations"):
    (row,) = draw.near_and_far_shares(["yarn" + kind], length=4096)
    print(f"yarn{kind} at 8x: loss {mean_loss('yarn' + kind, 4096):.3f}, near"
          f" {row.near.mean:.2f}, far {row.far.mean:.2f}")

# %% [markdown]
# **Notice.** (Columns are different texts, so compare lines at one length.) At 2x the
# temperature does next to nothing; at 8x it saves four tenths of what the ramp saves.
# Without it entropy grows as the text does; with it the heads stay about as sharp on
# natural text as they were trained. And the two ramps: everybody's has the lower loss,
# the paper's finds more that is far. It divides more of the blended pairs almost fully,
# which is the same choice again: near or far.
#
# ### Exercise 5.3: Entropy
#
# **Difficulty** ●●○ · **4 minutes**
#
# Write the entropy $-\sum_j p_j \ln p_j$ of attention `weights` [..., queries, keys],
# in nats: [..., queries]. A causal mask makes many weights exactly 0.
#
# <details><summary>Hint</summary>
# ln 0 is minus infinity, and 0 times that is not a number. What should such a key add?
# </details>

# %%
def entropy(weights):
    ...

# %%
check_entropy(entropy)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def entropy(weights):
#     return -torch.special.xlogy(weights, weights).sum(-1)
# ```
#
# </details>
#
# **Recap.** Ramp: no unknown angles. Temperature: attention about as sharp as trained.
# The longer the text, the more the second counts.

# %% [markdown]
# ## 6. The price on short texts
#
# *You will be able to say what a config with scaling costs where none is needed.*
#
# A model file fixes **one** factor, and a program that reads the file may use it for
# all texts, short ones too (static scaling). So we read 512 bytes, the trained length,
# with factors that were set for 4x and 8x.
#
# **Predict.** Which method costs least where nothing would be needed?
#
# <details><summary>Answer</summary>
# Those that change least of what near neighbours look like: NTK-aware and the by-parts
# family. Which of them is cheapest depends on the text.
# </details>

# %%
STATIC = ["position_interpolation", "ntk_aware", "ntk_by_parts", "yarn", "llama3",
          "apex1"]
draw.static_table("natural", STATIC)

# %%
draw.static_table("recall", STATIC)

# %%
plain = mean_loss("none", 512)
costs = {m: mean_loss(m, 512, factor=4.0) - plain for m in STATIC}
print("; ".join(f"{m} costs {cost:.3f}" for m, cost in costs.items()))
assert min(costs.values()) > 0 and max(costs, key=costs.get) == STATIC[0]
assert 4 < costs["apex1"] / costs["yarn"] < 6
assert 20 < costs[STATIC[0]] / costs["yarn"] < 30

# %% [markdown]
# **Notice.** Nothing is free: every static rule costs something on short texts. YaRN's
# cost is small; the printed rule's is five times as large, interpolation's almost
# thirty times. Qwen's documentation says the same of static YaRN: switch it on only
# where long texts are read ([page 04, section 7](04-yarn.ipynb)).
#
# **Recap.** Set the factor for the text you read, not for the longest you might.

# %% [markdown]
# ## 7. A little training changes the order
#
# *You will be able to say which methods need fine-tuning, and what it gives.*
#
# The papers do not stop at changed frequencies: they train on. Each of our models was
# trained 100 more steps, on texts of 2,048 bytes, with the frequencies of one method at
# factor 4. The same texts for all.
#
# **Predict.** Does position interpolation stay last?
#
# <details><summary>Answer</summary>
# The table knows. Its angles are all inside the trained range, so there is nothing
# unknown to learn, only a blurred scale to get used to.
# </details>

# %%
draw.tuned_table("natural", draw.PAPERS)

# %%
draw.tuned_table("recall", draw.PAPERS)

# %%
tuned = {"factor": 4.0, "tuned": True}
gain = {m: mean_loss(m, 2048) - mean_loss(m, 2048, **tuned) for m in draw.PAPERS}
print("loss saved at 4x by 100 steps:",
      ", ".join(f"{m} {saved:.3f}" for m, saved in gain.items()))
assert max(gain, key=gain.get) == "position_interpolation"

# %% [markdown]
# By loss, three of the four are level now, the one without any scaling among them. Has
# it learned to read long texts? Ask for far facts:

# %%
show(draw.accuracy_by_distance(draw.PAPERS, length=2048, factor=4.0, tuned=True),
     alt="Share of answers by distance in 2,048 bytes after fine-tuning at that length."
         " Without scaling, far answers are still lost; interpolation and YaRN find two"
         " thirds of them, NTK-aware a little less.",
     numbers=draw.describe_accuracy_by_distance(draw.PAPERS, length=2048, factor=4.0,
                                                tuned=True))

# %%
for method in draw.PAPERS:
    (before,) = draw.near_and_far_shares([method], length=2048)
    (after,) = draw.near_and_far_shares([method], length=2048, **tuned)
    print(f"{method}: far {before.far.mean:.2f} before, {after.far.mean:.2f} after;"
          f" near {before.near.mean:.2f}, {after.near.mean:.2f}")
    if method == "none":
        assert after.far.mean < 0.4

# %% [markdown]
# **Notice.** No. A hundred steps taught the model without scaling to do without the far
# text: its loss is as low as YaRN's and its memory hardly longer. Interpolation
# gained most: the near text is back, nearly, and the far text was never lost. YaRN
# gains little; it had lost little. A low loss alone would have told none of this.
#
# ### Exercise 5.4: What is found far away
#
# **Difficulty** ●●○ · **5 minutes**
#
# `counts` are pairs (right, answers), one for each bin of distances; bin $i$ begins at
# `edges[i]` bytes. Return the share of right answers in all bins that begin at
# `distance` bytes or farther. Bins hold very different numbers of answers, some none.
#
# <details><summary>Hint</summary>
# Add up the right ones, add up the answers, divide once.
# </details>

# %%
def found_beyond(counts, edges, distance):
    ...

# %%
check_found_beyond(found_beyond)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def found_beyond(counts, edges, distance):
#     far = [pair for pair, low in zip(counts, edges) if low >= distance]
#     return sum(right for right, n in far) / sum(n for right, n in far)
# ```
#
# </details>
#
# **Recap.** Ask what a result was trained on, and ask twice: for the loss, and for what
# lies far back.

# %% [markdown]
# ## 8. The papers' findings, point by point
#
# *You will be able to say which findings hold for a model of this size.*
#
# Two papers stand behind most configs: *Position Interpolation* (Chen et al. 2023,
# "PI") and *YaRN* (Peng et al. 2023). They measured models of 7 to 65 billion weights,
# trained on 2,048 or 4,096 tokens. We ask each of their findings of ours. Their
# perplexities are per token, ours would be per byte: compare directions, not numbers.
#
# **Predict.** Which of these will a model of 0.7 million weights **not** show: doing
# nothing is a catastrophe; NTK-aware beats interpolation without training; after
# training it is the other way round?
#
# <details><summary>Answer</summary>
# The first and the last, by loss. By far memory the last one holds.
# </details>

# %%
def early_and_late(method):
    """Loss in the first 512 bytes and in the last quarter, of the same 8x texts."""
    (curve,) = draw.position_curves([method], length=4096, text="natural")
    means = [b.mean for b in curve.bands]
    return sum(means[:4]) / 4, sum(means[-8:]) / 8

begin, end = early_and_late("none")
print(f"1. no scaling, along 4,096 bytes: {begin:.2f} to {end:.2f} nats a byte")
assert 0.5 < end - begin < 1.5

# %%
def gains(better, worse, text="natural"):
    """Loss saved by the first method against the second, by length and seed."""
    return [[b.loss - a.loss for a, b in zip(select(method=better, length=n, text=text),
                                             select(method=worse, length=n, text=text))]
            for n in LENGTHS[1:]]

def always(rows):
    return ", ".join("yes" if min(row) > 0 else "no" if max(row) < 0 else "by seed"
                     for row in rows)

# %%
for number, better, worse in (
        (2, "position_interpolation", "none"),
        (3, "ntk_aware", "position_interpolation"),
        (4, "ntk_by_parts", "ntk_aware"), (4, "ntk_by_parts_rotations", "ntk_aware"),
        (5, "yarn", "ntk_by_parts"), (5, "yarn_rotations", "ntk_by_parts_rotations")):
    print(f"{number}. {better} lower than {worse} at 2x, 4x, 8x, with every seed:",
          always(gains(better, worse)))

# %%
def helped(seed):
    """Whether the temperature lowers the loss, for each 128 bytes of the 8x texts."""
    with_it, without = (select(method=m, length=4096, text="natural")[seed].by_position
                        for m in ("yarn", "ntk_by_parts"))
    return [a < b for a, b in zip(with_it, without)]

first = [help for seed in range(len(seeds())) for help in helped(seed)[:4]]
later = [help for seed in range(len(seeds())) for help in helped(seed)[4:]]
print(f"5. the temperature helps in {sum(first)} of {len(first)} stretches of the first"
      f" 512 bytes, in {sum(later)} of {len(later)} later ones")
assert sum(first) < len(first) / 2 and sum(later) > 0.95 * len(later)

# %%
for number, what, length, settings in (
        (6, "zero-shot, 8x", 4096, {}), (7, "tuned, 4x", 2048, tuned),
        (8, "tuned at 4x, read at 8x", 4096, {"factor": 8.0, "tuned": True})):
    rows = draw.near_and_far_shares(draw.PAPERS, length=length, **settings)
    for row in rows:
        loss = mean_loss(row.method, length, **settings)
        print(f"{number}. {what}, {row.method}: loss {loss:.3f},"
              f" far {row.far.mean:.2f}")

# %%
short = {m: mean_loss(m, 512, **tuned) - plain for m in draw.PAPERS}
print("9. tuned at 4x, cost at 1x:",
      ", ".join(f"{m} {cost:.3f}" for m, cost in short.items()))

# %% [markdown]
# | | they found | here |
# |---|---|---|
# | 1 | PI, table 1: with nothing changed, perplexity jumps to over 1,000 at twice the length | the loss climbs by about a nat a byte along 8x: a fault, no collapse |
# | 2 | PI, table 3: interpolation without training is poor (perplexity 16 at 4x, 112 at 8x, against 7) but far better than nothing | by loss **worse** than nothing; by far memory far better |
# | 3 | YaRN, section 3.1: without training NTK-aware is much better than PI | holds by loss, at every length and seed; not by far memory |
# | 4 | YaRN, section 3.2: by parts is better than NTK-aware | with everybody's ramp at 4x; at 2x and 8x it depends on the seed. With the paper's own ramp it does not come out |
# | 5 | YaRN, section 3.4: the temperature lowers the loss wherever one looks | in nearly all stretches past the trained length; within the first 512 bytes mostly not. At 2x it is worth hundredths |
# | 6 | PI 3.3, YaRN 4.3.2: passkeys far back are found (their models were tuned) | already without tuning, for every method that divides the slow pairs |
# | 7 | PI, table 3: 200 steps make interpolation good. YaRN, 3.1: tuned, NTK-aware is worse than PI | 100 steps take most of interpolation's loss away. Tuned NTK-aware is **better** by loss, worse by far memory |
# | 8 | YaRN, 4.2: a tuned model reads longer texts than it was tuned on (ours: another factor, too) | holds for YaRN and interpolation by far memory; by loss YaRN is best by a hair |
# | 9 | PI, 3.4: on short texts a little is lost by the extension | a little for three, more for interpolation; also **without** scaling: it is the tuning that costs |
#
# Why the sizes differ we can only guess: most of a byte is told by its neighbours,
# which stay near, so a fault far away costs less, and blurred neighbours cost more.
# What a model of this size cannot show is anything about words, knowledge or tasks.
# What it shows is the mechanism, since its parts are those of the large ones.
#
# **Recap.** Most directions agree, some turn round, and the sizes differ: measure your
# own model.
#
# ## 9. Explore it
#
# *You will be able to ask the stored measurements your own questions.*
#
# All curves of this page and many more, by method, length, text, seed and position. It
# needs no kernel; its state is in the link.

# %%
explorers.extrapolation.ExtrapolationExplorer()

# %% [markdown]
# The next one **computes**: choose a method and a length, and a shipped model reads a
# recall text while you wait.

# %% tags=["machine"] reason="read live: on another processor a count may differ by one"
explorers.extrapolation.LiveExtrapolation()

# %% [markdown]
# The same by hand. A text of 1,024 bytes, three readings, the loss in its second half:

# %%
sample = text_for("recall", 1024, size=8192)
for method in ("none", "position_interpolation", "yarn"):
    read = [read_by(model, row, method)[0] for row in sample.ids]
    print(f"{method}: {torch.stack(read)[:, 511:].double().mean():.2f}")

# %% [markdown]
# ### An explorer of your own
#
# Ten lines: a slider, `observe`, and a picture. Put another text or method in.

# %%
slider = widgets.SelectionSlider(options=LENGTHS[1:], value=4096, description="length")
picture = widgets.Image(value=png(draw.accuracy_by_distance(draw.PAPERS, length=4096)),
                        width=700)

def redraw(change):
    picture.value = png(draw.accuracy_by_distance(draw.PAPERS, length=change["new"]))

slider.observe(redraw, names="value")
widgets.VBox([slider, picture])

# %%
show(draw.accuracy_by_distance(draw.PAPERS, length=1024),
     alt="The answers by distance again, for texts of 1,024 bytes: without scaling far"
         " answers are found less than with YaRN.",
     numbers=draw.describe_accuracy_by_distance(draw.PAPERS, length=1024))

# %% [markdown]
# ## 10. Train it yourself
#
# *You will have trained the model whose curves you saw.*
#
# The button trains the first hundred steps of seed 0, some minutes at most, and
# compares the loss with the shipped log. `make train` in a terminal trains all seeds to
# their end (it can be stopped, and goes on where it was), `make measure` measures them
# anew.

# %%
button, bar = widgets.Button(description="Train"), widgets.IntProgress(max=100)
said = widgets.HTML(value="not started")

def train_now(pressed):
    trainer, start = Trainer(seed=0), time.monotonic()
    for bar.value in trainer.run(until=bar.max):
        left = (time.monotonic() - start) * (bar.max / bar.value - 1)
        said.value = f"step {bar.value} of {bar.max}, {left:.0f} seconds left"
    losses = trainer.log[-1].recall, training_log(0)[3].recall
    said.value = "loss on recall text: {:.2f} here, {:.2f} in the log".format(*losses)

# %%
button.on_click(train_now)
widgets.VBox([button, bar, said])

# %% [markdown]
# The same without a button, three steps of it:

# %%
trainer = Trainer(seed=0)
print("steps done:", *trainer.run(until=3))
logged = training_log(0)[3]
print(f"shipped log, step {logged.step}: {logged.recall:.2f} nats a byte")

# %% [markdown]
# Other things to try: `DecoderSettings(base=500_000.0)` or `head_dim=32`, each with
# `Trainer(seed, settings)`, or in a terminal
# `make train TRAIN_OPTIONS="--base 500000 --out mine"`.
#
# **Recap.** The same seed gives the same model, so a doubt can be settled.
#
# All measured numbers above are stored with what they were made with; a test reads a
# sample of them again from the shipped models:

# %%
made_with = provenance()
print("torch", made_with["torch"], "| Python", made_with["python"], "| models",
      *(digest[:8] for digest in made_with["checkpoints_sha256"].values()))

# %% [markdown]
# ## The page in short
#
# - Past the trained length the loss rises and far facts are lost, though more text
#   should help.
# - A method must keep two things: the near text (fast pairs kept) and the far text
#   (slow pairs divided). Interpolation and the printed rule give up the first, no
#   scaling the second; YaRN is good at both.
# - The temperature counts the more the longer the text; within the trained length it
#   does not help.
# - Every static factor costs something on short texts.
# - After a short fine-tuning losses are level, and far memory is not.
#
# ## What people get wrong
#
# | wrong sentence | what is true | where |
# |---|---|---|
# | "RoPE extrapolates, since scores depend on distance alone." | Far distances were never trained either. | section 3 |
# | "It fails at once." | It fails the more, the more keys are too far. | section 3 |
# | "Interpolation always helps." | Without training its loss is higher than with nothing. | section 4 |
# | "Interpolation is useless without training." | It finds far facts as well as YaRN does. | section 4 |
# | "YaRN is its ramp." | At 8x the temperature saves a third as much again. | section 5 |
# | "Scaling costs nothing on short texts." | Each static rule costs. | section 6 |
# | "A low loss on long texts means the far text is used." | Ask for facts at known distances. | section 7 |
# | "The band shows how sure we are." | It shows how models differ, on the same texts. | section 1 |
#
# ## What if
#
# 1. What if the base had been 500,000? Which pairs would be in trouble at 8x, and would
#    the curve of no scaling be better or worse? Train it and see.
# 2. What if all rows of the training had been cut at random lengths up to 512?
# 3. What if YaRN were used with the temperature of factor 4 at every length?
#
# ## Further reading
#
# - Chen et al. 2023, *Position Interpolation* (arXiv:2306.15595): section 3.2 for loss
#   by length, 3.3 for the effective window, 2.3 for the bound.
# - Peng et al. 2023, *YaRN* (arXiv:2309.00071, version 2): section 4.3 for evaluation,
#   3.4 for the temperature.
# - Press et al. 2022, *ALiBi* (arXiv:2108.12409), section 2: positions that were never
#   trained, measured.
# - Kazemnejad et al. 2023 (arXiv:2305.19466): length generalisation of small decoders,
#   several kinds of positions.
#
# Next: [page 06](06-the-reference-checked.ipynb), where every claim of the reference is
# checked.
