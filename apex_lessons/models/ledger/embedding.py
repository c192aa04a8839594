"""Claims about the embedding, its scale and weight tying."""

from __future__ import annotations

import math

import torch

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.models.apex1 import apex1_config
from apex_lessons.models.ledger.claim import Ledger, computed
from apex_lessons.models.published import published
from apex_lessons.norm import rms_norm

LEDGER = Ledger("embedding")
VOCABULARY = 151_643
EXAMPLE = (
    (0.01, -0.03, 0.02, 0.01),
    (-0.02, 0.04, -0.01, 0.03),
    (0.03, 0.01, -0.04, 0.02),
)
PRINTED = (  # the example after the factor 2, for the ids 1, 0, 2
    (-0.04, 0.08, -0.02, 0.06),
    (0.02, -0.06, 0.04, 0.02),
    (0.06, 0.02, -0.08, 0.04),
)


def _table(d_model: int, init_std: float, seed: int = 0) -> ScaledEmbedding:
    generator = torch.Generator().manual_seed(seed)
    return ScaledEmbedding(500, d_model, init_std=init_std, generator=generator)


def _tied(word: str) -> dict[str, bool]:
    rows = {row.model: row.tie_word_embeddings for row in published()}
    return {name: tied for name, tied in rows.items() if word in name}


@LEDGER.measured(
    "E01",
    "reference",
    "section 2.3, line 60",
    "Embedding entries, drawn with std 0.02, have variance about 1/d.",
    "wrong",
    "The variance is 0.02^2 = 0.0004 whatever d is; it equals 1/d at d = 2500 only."
    " 1/d belongs to another init, std d^(-1/2).",
    "APEX-1 apex_model.py L91-98; tensor2tensor layers/modalities.py L478",
)
def _variance_of_rows():
    small, large = (_table(d, 0.02).weight.var().item() for d in (512, 7168))
    return computed(
        f"measured variance {small:.6f} at d=512 (1/d = {1 / 512:.6f}), {large:.6f} at"
        f" d=7168 (1/d = {1 / 7168:.6f})",
        abs(small - 4e-4) < 1e-5 > abs(large - 4e-4)
        and min(abs(small - 1 / 512), abs(large - 1 / 7168)) > 2e-4,
        small=small,
        large=large,
        crossing=1 / 0.02**2,
    )


@LEDGER.measured(
    "E02",
    "reference",
    "section 2.2, line 56, and 2.3, line 60",
    "Times the square root of d, the activations have variance about 1.",
    "wrong",
    "0.0004 d: 0.2048 at 512, 0.8192 at 2048, 2.867 at 7168; 1 at d = 2500 only.",
    "computed; tensor2tensor layers/modalities.py L478, L502-503 for the other init",
)
def _variance_after_scaling():
    found = {
        d: (_table(d, 0.02).weight * math.sqrt(d)).var().item()
        for d in (512, 2048, 7168)
    }
    right = all(abs(value / (4e-4 * d) - 1) < 0.02 for d, value in found.items())
    shown = ", ".join(f"{value:.3f} at d={d}" for d, value in found.items())
    return computed(
        f"measured variance after scaling: {shown}",
        right and found[512] < 0.25 and found[7168] > 2.5,
        small=found[512],
        medium=found[2048],
        large=found[7168],
    )


@LEDGER.measured(
    "E03",
    "reference",
    "section 2.4, lines 68-86",
    "The worked example shows the scaling at work.",
    "inconsistent",
    "Its arithmetic is right, but its mean square goes from 0.000625 to 0.0025, not"
    " to 1: with d = 4 that would need entries of std 0.5.",
    "computed",
)
def _worked_example():
    table = torch.tensor(EXAMPLE, dtype=torch.float64)
    scaled = table[[1, 0, 2]] * math.sqrt(4)
    gap = (scaled - torch.tensor(PRINTED, dtype=torch.float64)).abs().max().item()
    before, after = (x.square().mean().item() for x in (table, scaled))
    return computed(
        f"printed and computed rows agree to 1e-12; mean square {before:.6f} before,"
        f" {after:.6f} after the factor 2",
        gap < 1e-12 and abs(before - 0.000625) < 1e-12 and after < 0.01,
        before=before,
        after=after,
    )


@LEDGER.measured(
    "E04",
    "tutorial",
    "sections 2, 3 and 9, lines 16-25 and 105",
    "nn.Embedding(vocab, d) as shown starts with a std of about 0.02.",
    "misleading",
    "nn.Embedding draws from N(0, 1). The 0.02 comes from an initialisation that the"
    " text does not show; the code as shown gives variance d after scaling.",
    "torch nn/modules/sparse.py; APEX-1 apex_model.py L97-98",
)
def _stock_table():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        weight = torch.nn.Embedding(2000, 512).weight.detach()
    std, scaled = weight.std().item(), (weight * math.sqrt(512)).var().item()
    return computed(
        f"nn.Embedding(2000, 512): std {std:.3f}; variance times sqrt(512)"
        f" {scaled:.0f}",
        abs(std - 1) < 0.01 and abs(scaled / 512 - 1) < 0.02,
        std=std,
        scaled=scaled,
    )


@LEDGER.measured(
    "E05",
    "reference",
    "section 2.3, line 64",
    "T5, PaLM and Gemma, and APEX-1, scale the input by the square root of d.",
    "wrong",
    "Gemma yes; T5 (1.0, whose table is tied) and PaLM take rows of variance 1 as they"
    " are and divide the logits by the square root of d. The usual origin is Vaswani et"
    " al. 2017, section 3.4.",
    "t5x examples/t5/network.py L280-284, L307; PaLM (arXiv:2204.02311) section 5;"
    " gemma_pytorch gemma/model.py L597-598",
)
def _who_scales():
    rows = {row.model: row for row in published()}
    names = ("T5-base v1.0", "PaLM 540B", "Gemma-2-2B")
    t5, palm, gemma = (rows[name].embedding_multiplier for name in names)
    divided = [
        round(1 / rows[name].output_logit_multiplier, 9)
        == round(math.sqrt(rows[name].hidden_size), 9)
        for name in names
    ]
    return computed(
        f"input multipliers in their own code: T5 {t5:g}, PaLM {palm:g}, Gemma-2-2B"
        f" {gemma:g} = sqrt(2304); logits divided by sqrt(d): {divided}",
        t5 == palm == 1
        and gemma == math.sqrt(2304)
        and divided == [True, True, False],
        t5=t5,
        palm=palm,
        gemma=gemma,
    )


@LEDGER.measured(
    "E06",
    "reference",
    "section 2.3, line 63",
    "The scaling matches the input scale that RMSNorm expects.",
    "wrong",
    "RMSNorm expects none: RMSNorm(c x) = RMSNorm(x) up to eps. What the factor does"
    " change is the residual stream's size against what the blocks add.",
    "Zhang and Sennrich 2019, section 4 (re-scaling invariance)",
)
def _norm_forgets_scale():
    x = _table(512, 0.02).weight.detach()
    change, without = (
        (rms_norm(x, eps=eps) / rms_norm(x * math.sqrt(512), eps=eps) - 1)
        .abs()
        .mean()
        .item()
        for eps in (1e-6, 0.0)
    )
    return computed(
        f"norm of x and of sqrt(512) x differ by {change:.2%}, and by less than 1e-6"
        " where eps is 0",
        change < 0.002 and without < 1e-6,
        change=change,
    )


@LEDGER.measured(
    "E07",
    "reference",
    "section 2.3, line 62 (and docs/04 in the repository, line 60)",
    "Without the factor activations vanish in early layers.",
    "misleading",
    "Every sub-layer sees a normalised input, whatever the size of the embedding. That"
    " small rows drown in added positions holds for added sinusoids; rotary positions"
    " add nothing.",
    "APEX-1 block.py L89-110; APEX-1-Model-Architecture.md",
)
def _nothing_vanishes():
    x = _table(512, 0.02).weight.detach()
    after = rms_norm(x).square().mean().sqrt().item()
    return computed(
        f"rows of RMS 0.02, unscaled, leave the first norm with RMS {after:.4f}",
        abs(after - 1) < 0.01,
        after=after,
    )


@LEDGER.measured(
    "E08",
    "tutorial",
    "section 4, line 33",
    "GPT-2, Llama, DeepSeek and others tie their weights.",
    "wrong",
    "GPT-2 does. Llama 2, 3 and 3.1 and DeepSeek-V3 have a separate output"
    " matrix; of the Llama text models read here only 3.2 1B and 3B share.",
    "gpt-2 src/model.py L171; llama llama/model.py L446; llama-models"
    " models/llama3_2/MODEL_CARD.md L9-11; DeepSeek-V3 README_WEIGHTS.md L21",
)
def _who_ties():
    llama, deepseek, gpt2 = _tied("Llama-"), _tied("DeepSeek-V3"), _tied("GPT-2")
    untied = sum(tied is False for tied in llama.values())
    shared = [name for name, tied in llama.items() if tied]
    return computed(
        f"released configs: {untied} of {len(llama)} Llama rows untied ({shared[0]} is"
        " tied), DeepSeek-V3 untied, GPT-2 tied",
        untied == len(llama) - 1
        and shared == ["Llama-3.2-1B-Instruct"]
        and list(deepseek.values()) == [False]
        and list(gpt2.values()) == [True],
        untied=untied,
    )


@LEDGER.measured(
    "E09",
    "tutorial",
    "section 4, line 31; reference section 2.5, line 94",
    "Tying saves 77.6 million parameters, huge for the Small model.",
    "misleading",
    "77,641,216 is right: 13 % of what Small would have untied. But Small also has"
    " four untied output heads of that size for predicting further tokens: 59 % of its"
    " 523,150,860 parameters.",
    "APEX-1 multi_token_head.py L47-49; counted by apex1_config('small')",
)
def _what_tying_saves():
    counts = apex1_config("small").parameter_counts()
    saved, heads, total = (
        counts[part] for part in ("embedding", "multi-token head", "total")
    )
    return computed(
        f"saved {saved:,}, {saved / (total + saved):.1%} of the untied model; untied"
        f" heads {heads:,}, {heads / total:.0%} of {total:,}",
        (saved, heads, total) == (77_641_216, 310_564_864, 523_150_860),
        saved=saved,
        heads=heads,
    )


@LEDGER.measured(
    "C01",
    "tutorial",
    "section 1, lines 4-9",
    "Vectors of similar words are near each other.",
    "correct",
    "As an illustration: cat-dog 0.173 apart, cat-Paris 1.212.",
    "computed",
)
def _three_words():
    cat, dog, paris = (
        torch.tensor(v, dtype=torch.float64)
        for v in ((0.8, 0.2, 0.9), (0.7, 0.3, 0.8), (0.1, 0.9, 0.2))
    )
    near, far = (cat - dog).norm().item(), (cat - paris).norm().item()
    return computed(
        f"distances {near:.3f} and {far:.3f}", near < far, near=near, far=far
    )


@LEDGER.measured(
    "C02",
    "tutorial",
    "section 1, line 10",
    "Vectors have 512 to 7168 dimensions.",
    "correct",
    "Small to Large; Tiny has 64.",
    "APEX-1 configs/apex1_*.yaml",
)
def _widths():
    small, large = (apex1_config(size).d_model for size in ("small", "large"))
    return computed(
        f"Small {small}, Large {large}",
        (small, large) == (512, 7168),
        small=small,
        large=large,
    )


LEDGER.cited(
    "E42",
    "tutorial",
    "section 2, lines 12-14",
    "Ids 9906 (Hello) and 1917 (world) go with a vocabulary of 151,643.",
    "misleading",
    "Those are ids of cl100k and Llama 3. In Qwen's vocabulary of 151,643 'Hello world'"
    " is [9707, 1879]. All of these are legal rows of the table, so nothing fails.",
    "the published vocabularies: tiktoken cl100k_base, Llama 3, Qwen2",
)


@LEDGER.measured(
    "E43",
    "tutorial",
    "sections 2 and 3, lines 12-14 against line 25",
    "Sample rows hold 0.231 and 0.897, while values start near 0.02.",
    "inconsistent",
    "0.897 is 45 standard deviations of N(0, 0.02^2): a trained row, which should be"
    " said.",
    "computed",
)
def _sample_rows():
    deviations = 0.897 / 0.02
    return computed(
        f"0.897 / 0.02 = {deviations:.1f} standard deviations",
        deviations > 40,
        deviations=deviations,
    )


LEDGER.rests_on(
    "C03",
    "tutorial",
    "section 2, lines 12-14",
    "Token ids with sample rows.",
    ("E42", "E43"),
)


@LEDGER.measured(
    "C04",
    "tutorial",
    "section 2, lines 16-19",
    "151,643 x 512 is about 77.6 million numbers.",
    "correct",
    "77,641,216.",
    "computed",
)
def _table_size():
    numbers = VOCABULARY * 512
    return computed(
        f"{numbers:,}",
        numbers == apex1_config("small").parameter_counts()["embedding"] == 77_641_216,
        entries=numbers,
    )


@LEDGER.measured(
    "C05",
    "tutorial",
    "section 2, lines 20-22",
    "Each id selects a row; the result is [batch, seq, d_model].",
    "correct",
    "A look-up equals a one-hot product.",
    "computed",
)
def _row_selection():
    table = _table(8, 0.02)
    ids = torch.tensor([[1, 0, 2]])
    with torch.no_grad():
        one_hot = torch.nn.functional.one_hot(ids, 500).float() @ table.weight
        gap = (one_hot * table.scale - table(ids)).abs().max().item()
    return computed(
        f"shape {list(table(ids).shape)}; look-up and one-hot product agree to 1e-6",
        gap < 1e-6 and table(ids).shape == (1, 3, 8),
        gap=gap,
    )


LEDGER.rests_on(
    "C06",
    "tutorial",
    "section 3, lines 23-25",
    "APEX-1 multiplies by sqrt(d) because values start tiny.",
    ("E02", "E04", "E07"),
    "misleading",
    "The multiplication is right for APEX-1; the reasons given are not: E02, E04, E07.",
)


@LEDGER.measured(
    "C07",
    "tutorial",
    "section 3, lines 26-27",
    "The factors are sqrt(512) and sqrt(7168).",
    "correct",
    "22.627 and 84.664; bfloat16 rounds them to 22.625 and 84.5.",
    "computed",
)
def _factors():
    small, large = math.sqrt(512), math.sqrt(7168)
    rounded = torch.tensor([small, large]).bfloat16().tolist()
    return computed(
        f"{small:.3f}, {large:.3f}; in bfloat16 {rounded[0]}, {rounded[1]}",
        rounded == [22.625, 84.5],
        small=small,
        large=large,
    )


def _tie_of_apex():
    table = _table(8, 0.02)
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(2, 3, 8, generator=generator)
    with torch.no_grad():
        logits = table.logits(hidden)
        gap = (logits - torch.einsum("bsd,vd->bsv", hidden, table.weight)).abs().max()
        table.weight[7] = 0.0  # one tensor: the head sees the change at once
        silent = table.logits(hidden)[..., 7].abs().max()
    return computed(
        f"hidden [2, 3, 8] gives logits {list(logits.shape)}, equal to h W^T to 1e-6;"
        " zeros written into row 7 of the table silence its logit",
        logits.shape == (2, 3, 500) and gap < 1e-6 and silent == 0,
        vocabulary=logits.shape[-1],
    )


LEDGER.measured(
    "C08",
    "tutorial",
    "section 4, line 28",
    "The output layer reuses the embedding.",
    "correct",
    "logits = h W^T with the table W.",
    "APEX-1 apex_model.py L173",
)(_tie_of_apex)
LEDGER.rests_on(
    "C09",
    "tutorial",
    "section 4, line 31",
    "Tying saves 77.6 million.",
    ("E09",),
)
LEDGER.cited(
    "C10",
    "tutorial",
    "section 4, line 32",
    "Both matrices represent the same tokens.",
    "correct",
    "Reasonable; Press and Wolf find that the tied matrix behaves more like the output"
    " embedding than the input one.",
    "Press and Wolf 2017 (arXiv:1608.05859), abstract",
)
LEDGER.rests_on(
    "C11",
    "tutorial",
    "section 4, line 33",
    "Who ties: GPT-2, Llama, DeepSeek.",
    ("E08",),
)
LEDGER.cited(
    "C27",
    "tutorial",
    "section 9, lines 99-121",
    "The excerpt of the model's code.",
    "correct",
    "It agrees with the repository.",
    "APEX-1 apex_model.py L44-45, L123, L172-173",
)


@LEDGER.measured(
    "C28",
    "tutorial",
    "section 9, line 107",
    "math.sqrt serves, since the factor is a constant.",
    "correct",
    "A Python float, by which torch multiplies a 16-bit table without rounding it"
    " first;"
    " Gemma and this course round the factor to the table's dtype.",
    "APEX-1 apex_model.py L45",
)
def _constant():
    factor = math.sqrt(512)
    x = _table(512, 0.02).weight.detach().bfloat16()
    as_float = torch.equal(x * factor, (x.float() * factor).bfloat16())
    rounded = torch.tensor(factor).bfloat16()
    differ = (x * factor != x * rounded).float().mean().item()
    return computed(
        f"in bfloat16: times {factor:.6f} itself; times {rounded.item()} would change"
        f" {differ:.0%} of the numbers",
        as_float and differ > 0,
        exact=factor,
        rounded=rounded.item(),
    )


LEDGER.measured(
    "C29",
    "tutorial",
    "section 9, lines 118-119",
    "x W^T gives [batch, seq, vocab].",
    "correct",
    "As said.",
    "APEX-1 apex_model.py L173",
)(_tie_of_apex)
LEDGER.rests_on(
    "C30",
    "tutorial",
    "section 10, line 126",
    "The scale gives stable magnitudes.",
    ("E02",),
)
LEDGER.cited(
    "C31",
    "tutorial",
    "section 10, lines 127-130",
    "Tying reuses the embedding; RMSNorm keeps the signal's magnitude stable.",
    "correct",
    "For a sub-layer's input; the residual stream itself is not normalised.",
    "APEX-1 block.py L89-110",
)
LEDGER.rests_on(
    "C42",
    "reference",
    "section 2.1, line 47",
    "sqrt(d) stabilises the variance early.",
    ("E02",),
)


@LEDGER.measured(
    "C43",
    "reference",
    "section 2.2, lines 51-55",
    "X = Embed(tokens) sqrt(d), table [V, d].",
    "correct",
    "As said.",
    "APEX-1 apex_model.py L123",
)
def _formula():
    table = ScaledEmbedding(3, 4)
    with torch.no_grad():
        table.weight.copy_(torch.tensor(EXAMPLE))
        out = table(torch.tensor([1]))[0].tolist()
    right = torch.tensor([-0.04, 0.08, -0.02, 0.06])
    return computed(
        f"row of id 1 times 2: {[round(value, 2) for value in out]}",
        torch.allclose(torch.tensor(out), right),
        first=out[0],
    )


LEDGER.rests_on(
    "C44",
    "reference",
    "sections 2.2 and 2.3, lines 56-60",
    "Variance 1/d, restored to 1.",
    ("E01", "E02"),
)
LEDGER.rests_on(
    "C45",
    "reference",
    "section 2.3, lines 62-63",
    "Vanishing activations; RMSNorm's scale.",
    ("E07", "E06"),
)
LEDGER.rests_on(
    "C46",
    "reference",
    "section 2.3, line 64",
    "Used by T5, PaLM, Gemma.",
    ("E05",),
)
LEDGER.rests_on(
    "C47",
    "reference",
    "section 2.4, lines 66-86",
    "Worked look-up and doubling.",
    ("E03",),
    "correct",
    "The arithmetic is right; what it illustrates is not: E03.",
)
LEDGER.measured(
    "C48",
    "reference",
    "section 2.5, line 92",
    "logits = h W_E^T.",
    "correct",
    "As said.",
    "APEX-1 apex_model.py L173",
)(_tie_of_apex)


@LEDGER.measured(
    "C49",
    "reference",
    "section 2.5, line 94",
    "Tying saves 151,643 x 7168 = 1.09 billion for Large.",
    "correct",
    "1,086,977,024; but see E09 for the untied heads.",
    "computed",
)
def _large_table():
    saved = apex1_config("large").parameter_counts()["embedding"]
    return computed(f"{saved:,}", saved == 1_086_977_024, saved=saved)
