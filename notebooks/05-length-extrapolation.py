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

import ipywidgets as widgets
import torch

from apex_lessons.exercises.extrapolation import (
    CURVES, check_entropy, check_loss_by_position, check_three_curves)
from apex_lessons.figures import extrapolation as draw, png, show

torch.set_num_threads(1)

# %%
from apex_lessons.extrapolation import (
    LENGTHS, METHODS, DecoderSettings, Trainer, band, left_out, load_checkpoint,
    provenance, read_by, readable, reading, recall, seeds, select, text_for,
    training_log)
from apex_lessons.extrapolation.decoder import Block
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
# greatest of the three, here and in all pictures below:

# %%
show(draw.training(),
     alt="Left: loss on both kinds of text falls over 900 steps. Right: the share of"
         " answers found stays at one in eight, then jumps above 0.9, for one model at"
         " step 200, for the last at step 450.",
     numbers=draw.describe_training())

# %% [markdown]
# **Notice.** For a while nothing is found; then, within some fifty steps, a model
# learns to look back: two near step 200, one near 450. What it looks for is the next
# section. A fourth seed was trained too, and never got there: it still guessed when the
# distances grew. A model that finds nothing near by says nothing about far away, so it
# is left out, by a rule on the training text alone; its log is shipped with the others.

# %%
for seed, log in left_out().items():
    print(f"seed {seed}, left out: {log[-1].accuracy:.2f} of the answers found")
print("shipped:", {seed: training_log(seed)[-1].accuracy for seed in seeds()})

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
# spread evenly over near and far, and recorded: that gives accuracy **by distance**.
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
far = [r.by_distance[5:] for r in select(method="none", length=4096)]
right, n = (sum(b[i] for bins in far for b in bins) for i in (0, 1))
print(f"beyond 512 bytes: {right} of {n} answers found, {right / n:.2f}")
assert right / n < 0.4

# %% [markdown]
# **Notice.** Facts that lie farther back than any training text was long are all but
# lost. Even those 256 to 511 bytes back, a distance that was trained, are found half as
# often as in short texts: there are more keys to choose from, and section 5 measures
# that. The words for it: the model **does not extrapolate**. Positions are not too
# large for the formula; some pairs stand at angles that no weight ever met
# ([page 04, section 1](04-yarn.ipynb)).
#
# > **The reference prints** that RoPE "generalises to lengths unseen in training". See
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
# Look at the picture: the papers' best is the best here; their second worst is our
# worst.
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
# keep those. YaRN alone still improves towards the end of the text. The memory tells it
# from the other side:

# %%
show(draw.accuracy_by_distance(draw.PAPERS, length=4096),
     alt="Share of answers found by distance for four methods in 4,096 bytes. Without"
         " scaling far answers are lost; YaRN and interpolation find most of them up to"
         " 2,048 bytes back, but interpolation fails more of the near ones.",
     numbers=draw.describe_accuracy_by_distance(draw.PAPERS, length=4096))

# %% [markdown]
# **Notice.** Here interpolation is as good as YaRN: far away all its angles are known.
# What it lost is near by. And YaRN is not free: facts 128 to 255 bytes back, a distance
# that was trained, it finds a little less often than plain RoPE does.
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
# - **Position interpolation** is worse than doing nothing, at every length.
# - **NTK-aware** and **dynamic NTK** use the same formula. Dynamic scaling grows with
#   the text, so its first 512 bytes are read as in training; its end is the same.
# - **NTK-by-parts** and **Llama 3** are by parts, with other cuts; they are close.
# - **YaRN** adds the temperature; the next section takes the two apart.
# - **APEX-1's printed rule** looks at wavelengths, not at turns in the trained length
#   ([page 06](06-the-reference-checked.ipynb), E25). It divides pairs that should be
#   kept. Is it better than nothing? A little at 2x and 4x; at 8x it depends on the
#   text:

# %%
for text_name in ("natural", "recall"):
    gains = [mean_loss("none", n, text_name) - mean_loss("apex1", n, text_name)
             for n in LENGTHS[1:]]
    print(f"{text_name}: loss saved by the printed rule at 2x, 4x, 8x:",
          ", ".join(f"{gain:+.3f}" for gain in gains))
    yarn_gain = mean_loss("none", 4096, text_name) - mean_loss("yarn", 4096, text_name)
    assert abs(gains[-1]) < 0.2 * yarn_gain

# %% [markdown]
# ### Exercise 5.2: Three curves without names
#
# **Difficulty** ●●○ · **5 minutes**
#
# Below are no scaling, position interpolation and YaRN on recall text of 2,048 bytes.
# Which is which, and what gives it away? Methods: `"none"`, `"position_interpolation"`,
# `"yarn"`. Clues: `"neighbours"` (worse from the first bytes on), `"new-angles"` (as
# trained up to 512, then worse and worse), `"kept"` (good at the start and at the end).
#
# <details><summary>Hint</summary>
# Look at two places: the first bytes, where nothing is unknown yet, and the end.
# </details>

# %%
show(draw.anonymous(list(CURVES.values()), length=2048),
     alt="Three unnamed curves of loss by position over 2,048 bytes. A is high from the"
         " start. B and C start low together; past 512 bytes C stays above B.",
     numbers=draw.describe_anonymous(list(CURVES.values()), length=2048))

# %%
def three_curves():
    ...  # return {"A": ("yarn", "kept"), "B": ..., "C": ...}, but rightly

# %%
check_three_curves(three_curves)

# %% [markdown]
# <details><summary>Solution</summary>
#
# ```python
# def three_curves():
#     return {"A": ("position_interpolation", "neighbours"), "B": ("yarn", "kept"),
#             "C": ("none", "new-angles")}
# ```
#
# </details>
#
# **Recap.** Keep the fast pairs, divide the slow ones: that is most of the rescue.

# %% [markdown]
# ## 5. The ramp and the temperature, apart
#
# *You will be able to say how much of YaRN is its ramp and how much its temperature.*
#
# NTK-by-parts **is** YaRN without the temperature. And the ramp exists twice: linear in
# the pair's number (everybody's code) and linear in its turns (the paper's equations;
# [page 04](04-yarn.ipynb)).
#
# **Predict.** Attention spreads over more keys as texts grow. Does the temperature
# sharpen it, or flatten it?
#
# <details><summary>Answer</summary>
# It sharpens: scores are multiplied by more than 1.
# </details>

# %%
PARTS = ["none", "ntk_by_parts", "ntk_by_parts_rotations", "yarn", "yarn_rotations"]
show(draw.loss_by_length(PARTS, text="natural", value="entropy"),
     alt="Mean attention entropy against length. Without a temperature it grows by"
         " about two nats from 512 to 4,096 bytes; with it, it stays almost level.",
     numbers=draw.describe_loss_by_length(PARTS, text="natural", value="entropy"))

# %%
show(draw.loss_by_length(PARTS, text="natural"),
     alt="Loss against length on natural text for the two ramps with and without the"
         " temperature. The two with it lie below the two without, the more the longer"
         " the text.",
     numbers=draw.describe_loss_by_length(PARTS, text="natural"))

# %%
for length in LENGTHS[1:]:
    ramp = mean_loss("none", length) - mean_loss("ntk_by_parts", length)
    warm = mean_loss("ntk_by_parts", length) - mean_loss("yarn", length)
    print(f"{length // 512}x: the ramp saves {ramp:.3f}, the temperature {warm:+.3f}")
assert warm > 0.05

# %% [markdown]
# **Notice.** At 2x the temperature does nothing yet; at 8x it saves as much as the
# ramp or more. Without it entropy grows like the logarithm of the length, which is what
# evenly spread attention would do; with it, the heads stay about as sharp as trained.
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
# **Recap.** Ramp: no unknown angles. Temperature: attention as sharp as trained. The
# longer the text, the more the second counts.

# %% [markdown]
# ## 6. The price on short texts
#
# *You will be able to say what a config with scaling costs where none is needed.*
#
# A model file fixes **one** factor. Most servers then use it for all texts, short ones
# too (static scaling). So we read 512 bytes, the trained length, with factors that were
# set for 4x and 8x.
#
# **Predict.** Which method costs least where nothing would be needed?
#
# <details><summary>Answer</summary>
# The one that changes least of what the near neighbours look like.
# </details>

# %%
STATIC = ["position_interpolation", "ntk_aware", "ntk_by_parts", "yarn", "llama3",
          "apex1"]
draw.static_table("natural", STATIC)

# %%
plain = mean_loss("none", 512)
costs = {m: mean_loss(m, 512, factor=4.0) - plain for m in STATIC}
print("; ".join(f"{m} costs {cost:.3f}" for m, cost in costs.items()))
assert min(costs.values()) > 0 and max(costs, key=costs.get) == STATIC[0]

# %% [markdown]
# **Notice.** Nothing is free: every static rule costs something on short texts. That
# is why model cards say to switch scaling on only for long ones, and why dynamic
# scaling exists.
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
# **Notice.** Interpolation gains most and is still last. YaRN gains next to nothing: it
# had lost next to nothing. And the model **without** scaling has caught up: a hundred
# steps on long texts taught this small model the new angles themselves. So the rule
# matters most where nobody trains, and for a large model, where training is dear.
#
# **Recap.** Ask what a result was trained on before you compare methods.

# %% [markdown]
# ## 8. The papers' findings, point by point
#
# *You will be able to say which findings hold for a model of this size.*
#
# Two papers stand behind most configs: *Position Interpolation* (Chen et al. 2023,
# "PI") and *YaRN* (Peng et al. 2023). They measured models of 7 to 65 billion weights,
# trained on 2,048 or 4,096 tokens. We ask each of their findings of ours.

# %%
def accuracy_beyond(method, low, length=4096):
    """Share of answers found whose fact lies at least so many bytes back."""
    found = select(method=method, length=length)
    bins = [counts for result in found for counts in result.by_distance[low:]]
    return sum(right for right, n in bins) / sum(n for right, n in bins)

nothing = mean_loss("none", 4096)
print(f"1. no scaling at 8x: {nothing:.2f} nats, {nothing - plain:+.2f}; perplexity x"
      f" {2.718281828 ** (nothing - plain):.1f}")
assert nothing > plain + 0.4

# %%
inter, aware, parts, best = (
    [mean_loss(m, n) for n in LENGTHS[1:]]
    for m in ("position_interpolation", "ntk_aware", "ntk_by_parts", "yarn"))
print("2. interpolation minus no scaling, untrained:",
      [f"{a - mean_loss('none', n):+.2f}" for a, n in zip(inter, LENGTHS[1:])])
print("3. NTK-aware minus interpolation:",
      [f"{a - b:+.2f}" for a, b in zip(aware, inter)])
print("4. by parts minus NTK-aware:", [f"{a - b:+.3f}" for a, b in zip(parts, aware)])
assert all(a < b for a, b in zip(aware, inter))

# %%
with_it, without = (select(method=m, length=4096, text="natural")
                    for m in ("yarn", "ntk_by_parts"))
pairs = [pair for a, b in zip(with_it, without)
         for pair in zip(a.by_position, b.by_position)]
better = sum(y < p for y, p in pairs) / len(pairs)
print(f"5. the temperature lowers the loss in {better:.0%} of the stretches at 8x")
far = {m: accuracy_beyond(m, 5) for m in ("none", "ntk_aware", "yarn")}
print("6. answers found beyond 512 bytes:",
      ", ".join(f"{m} {share:.2f}" for m, share in far.items()))
assert far["yarn"] > far["none"] + 0.2

# %%
after = {m: mean_loss(m, 2048, **tuned) for m in draw.PAPERS}
beyond = {m: mean_loss(m, 4096, factor=8.0, tuned=True) for m in draw.PAPERS}
short = {m: mean_loss(m, 512, **tuned) - plain for m in draw.PAPERS}
for number, what, values in ((7, "after tuning, at 4x", after),
                             (8, "tuned at 4x, read at 8x", beyond),
                             (9, "tuned at 4x, cost at 1x", short)):
    print(f"{number}. {what}:", ", ".join(f"{m} {v:.3f}" for m, v in values.items()))

# %% [markdown]
# | | they found | here | why |
# |---|---|---|---|
# | 1 | PI, table 1: with nothing changed, perplexity goes from 7 to over 1,000 | it rises too, but about twofold | most of a byte can be told from its neighbours, which stay near; four layers pass less of a fault on |
# | 2 | PI, table 3: interpolation alone, no training: perplexity 16 at 4x, far better than nothing | worse than nothing at every length | a byte model lives on neighbours even more than a model of words, and doing nothing is no catastrophe here |
# | 3 | YaRN, section 3.1: NTK-aware scaling beats interpolation without training | holds, by far | it keeps the fast pairs |
# | 4 | YaRN, section 3.2: by parts is better than NTK-aware | holds in the mean; clear of the seeds' range only at 4x | see the table's bands |
# | 5 | YaRN, section 3.4: the temperature lowers the loss at all positions | nearly everywhere at 8x; nothing to see at 2x | entropy has hardly grown at 2x |
# | 6 | both: facts far back are found again | holds for YaRN; without scaling they are lost | section 3 |
# | 7 | PI, table 3: 200 steps make interpolation as good as the short model | 100 steps take most of its loss away; it is still last | few steps, small model |
# | 8 | YaRN, section 4.2: tuned at one factor, it reads twice that, the others do not | it does, and is best by a hair; NTK-aware and plain RoPE do as well | the tuning taught a small model the new angles |
# | 9 | PI, table 1: short texts lose a little after tuning | holds | 100 steps were on long texts |
#
# What a model of this size cannot show: anything about words, knowledge or tasks. What
# it shows is the mechanism, since its parts are those of the large ones.
#
# **Recap.** Directions agree, sizes do not: measure your own model.
#
# ## 9. Explore it
#
# *You will be able to ask the stored measurements your own questions.*
#
# All curves of this page and many more, by method, length, text, seed and position. It
# needs no kernel; its state is in the link.

# %%
from apex_lessons import explorers

explorers.extrapolation.ExtrapolationExplorer()

# %% [markdown]
# The next one **computes**: choose a method and a length, and a shipped model reads a
# recall text while you wait (half a second for 1,024 bytes).

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
# The button trains the first hundred steps of seed 0, about a minute on a laptop, and
# compares the loss with the shipped log. `make train` in a terminal trains all seeds to
# their end (it can be stopped, and goes on where it was), `make measure` measures them
# anew.

# %%
button, bar = widgets.Button(description="Train"), widgets.IntProgress(max=100)
said = widgets.HTML(value="not started")

def train_now(pressed):
    trainer = Trainer(seed=0)
    for bar.value in trainer.run(until=bar.max):
        said.value = f"step {bar.value} of {bar.max}"
    said.value += f": loss on recall text {trainer.log[-1].recall:.2f}"

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
# Other things to try: `DecoderSettings(base=500_000.0)`, `head_dim=32`, or
# `trained_length=256`, each with `Trainer(seed, settings)`.
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
# - Interpolation blurs the neighbours: worse than nothing without training, and the one
#   that gains most from it.
# - Keeping fast pairs and dividing slow ones is most of the rescue; the temperature is
#   the rest, and it counts the more the longer the text.
# - Every static factor costs something on short texts.
# - A rule must know the trained length. The printed one does not.
#
# ## What people get wrong
#
# | wrong sentence | what is true | where |
# |---|---|---|
# | "RoPE extrapolates, since scores depend on distance alone." | Far distances were never trained either. | section 3 |
# | "It fails at once." | It fails the more, the more keys are too far. | section 3 |
# | "Interpolation always helps." | Without training it is worse than nothing here. | section 4 |
# | "YaRN is its ramp." | At 8x the temperature counts as well. | section 5 |
# | "Scaling costs nothing on short texts." | Each static rule costs. | section 6 |
# | "After fine-tuning YaRN is still far ahead." | Three of four methods are level. | section 7 |
# | "One number tells it." | Position and distance do. | section 3, exercise 5.1 |
# | "A low loss at 8x means the far text is used." | Ask for facts at known distances. | section 3 |
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
