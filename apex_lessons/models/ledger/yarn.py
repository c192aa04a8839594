"""Claims about YaRN and context extension."""

from __future__ import annotations

import math

import torch

from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.models.apex1 import apex1_config
from apex_lessons.models.ledger.claim import Ledger, computed
from apex_lessons.models.published import published
from apex_lessons.norm import RMSNorm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    inverse_frequencies,
    rotary_tables,
    wavelengths,
)
from apex_lessons.yarn import (
    apex1,
    apex1_score_factor,
    ntk_by_parts,
    position_interpolation,
    regimes,
    rotations,
    yarn,
    yarn_attention_factor,
)

LEDGER = Ledger("yarn")
PAPER = "YaRN (arXiv:2309.00071v2)"
CODE = "jquesnelle/yarn, scaled_rope/LlamaYaRNScaledRotaryEmbedding.py"
EXAMPLE = {
    "base": 10_000.0,
    "factor": 32.0,
}  # section 5.6, whose i = 8 fits d_h = 32 only
LENGTH = 4096


def _row(model: str):
    return next(row for row in published() if row.model.startswith(model))


def _counts(scaled: torch.Tensor, plain: torch.Tensor, factor: float) -> list[int]:
    return regimes(plain, scaled, factor).long().bincount(minlength=3).tolist()


def _score(q, k, inv_freq: torch.Tensor, attention_factor: float) -> float:
    """The score of q at position 5 and k at position 2, with the factor on both."""
    settings = {"attention_factor": attention_factor, "dtype": torch.float64}
    turned = [
        apply_rotary(x, *rotary_tables(torch.tensor([position]), inv_freq, **settings))
        for x, position in ((q, 5), (k, 2))
    ]
    return (turned[0] * turned[1]).sum().item()


LEDGER.cited(
    "E23",
    "reference",
    "section 5.1, line 246",
    "4K to 128K without retraining.",
    "wrong",
    "The authors' 128K models were fine-tuned: 400 steps, then 200; DeepSeek-V3 twice"
    " 1000 steps. Without it the paper claims more than 2x, for dynamic scaling. Qwen3"
    " is"
    " a fair counter-example: 4x at inference only.",
    f"{PAPER}, sections 1 and 4.1; train.sh L5-14; DeepSeek-V3 report section 4.3;"
    " Qwen3 report section 3.2",
)


@LEDGER.measured(
    "E24",
    "reference",
    "section 5.2, line 252",
    "High-frequency dimensions see angles they never trained on.",
    "wrong",
    "The low-frequency ones do. In 4096 tokens pair 0 turns 652 times and pair 63 0.075"
    " times; pairs 46 to 63 never finish a turn.",
    f"{PAPER}, section 3.2",
)
def _who_is_new():
    turns = rotations(inverse_frequencies(128), LENGTH)
    never = int((turns < 1).sum())
    return computed(
        f"turns in 4096 tokens: pair 0 {turns[0]:.0f}, pair 63 {turns[63]:.3f}; {never}"
        " of 64 pairs never finish one",
        never == 18 and (turns[46:] < 1).all() and turns[0] > 650,
        first=turns[0],
        last=turns[63],
        never=never,
    )


@LEDGER.measured(
    "E25",
    "reference",
    "section 5.3, lines 259-264",
    "A pair is fast when its wavelength is below 32, slow when above s.",
    "wrong",
    "32 and 1 count turns in the trained length: kept above 32 turns (wavelength below"
    " L/32), divided below one (wavelength above L). At L = 4096 the cuts are 128 and"
    " 4096 tokens.",
    f"{PAPER}, Eq. 17-20; {CODE} L5-14, L74-81",
)
def _the_unit():
    plain = inverse_frequencies(128)
    ours = ntk_by_parts(
        128, base=1e4, factor=32.0, trained_length=LENGTH, ramp="rotations"
    ).inv_freq
    waves, kept = wavelengths(plain), regimes(plain, ours, 32.0)
    fast, slow = waves[kept == 0].max().item(), waves[kept == 2].min().item()
    return computed(
        f"longest kept wavelength {fast:.0f} tokens, shortest divided one {slow:.0f}",
        torch.equal(kept == 0, waves < 128) and torch.equal(kept == 2, waves > 4096),
        longest_kept=fast,
        shortest_divided=slow,
    )


@LEDGER.measured(
    "E26",
    "reference",
    "section 5.3, lines 262 and 268",
    "Between the two there is a smooth middle regime.",
    "inconsistent",
    "It needs 32 <= wavelength <= s: empty for every s below 32, and reached neither by"
    " the text's example (s = 32) nor by a shipped config (s = 1, 4, 8).",
    "APEX-1 rope.py L137-150; computed",
)
def _empty_middle():
    middle = [
        _counts(
            apex1(d, base=b, factor=float(s)).inv_freq, inverse_frequencies(d, b), s
        )[1]
        for d in (32, 64, 128)
        for b in (1e4, 5e5, 1e6)
        for s in (2, 4, 8, 16, 32)
    ]
    later = _counts(
        apex1(128, base=1e4, factor=64.0).inv_freq, inverse_frequencies(128), 64.0
    )
    return computed(
        f"pairs in the middle over {len(middle)} settings with s up to 32:"
        f" {sum(middle)};"
        f" at s = 64: {later[1]} of 64",
        sum(middle) == 0 and later[1] == 5,
        settings=len(middle),
        at_64=later[1],
    )


@LEDGER.measured(
    "E27",
    "reference",
    "section 5.4, lines 270-272",
    "The middle frequencies are theta / (t s + 1 - t), t = (wavelength - 1) / (s - 1)"
    " (with beta_slow = 1).",
    "wrong",
    "The divisor is the wavelength itself: s cancels. At wavelength 32 it jumps"
    " from 1 to 32.",
    f"algebra; computed; {PAPER}, Eq. 20 and footnote 4",
)
def _divisor_is_wavelength():
    plain = inverse_frequencies(128)
    scaled = apex1(128, base=1e4, factor=64.0).inv_freq
    middle = regimes(plain, scaled, 64.0) == 1
    gap = (
        (plain[middle] / scaled[middle] - wavelengths(plain)[middle]).abs().max().item()
    )
    first = (plain[middle] / scaled[middle])[0].item()
    formula = max(
        abs(t * s + 1 - t - wave)
        for s in (2, 4, 64, 1000)
        for wave in (7, 40, 628, 60_000)
        for t in [(wave - 1) / (s - 1)]
    )
    return computed(
        f"divisors and wavelengths agree to 1e-9; the first divisor is {first:.1f}",
        gap < 1e-9 and formula < 1e-9 and first > 32,
        gap=gap,
        first=first,
    )


@LEDGER.measured(
    "E28",
    "reference",
    "summary, line 321",
    "The scaled frequency depends on s, the wavelength and beta.",
    "wrong",
    "The trained length is missing: two models with equal"
    " frequencies, trained on 4K and on 128K, need different ramps.",
    f"{PAPER}, Eq. 17",
)
def _length_matters():
    plain = inverse_frequencies(128)
    short, long = (
        _counts(
            ntk_by_parts(128, base=1e4, factor=4.0, trained_length=n).inv_freq,
            plain,
            4.0,
        )
        for n in (4096, 131_072)
    )
    return computed(
        f"kept/blended/divided: {short} trained on 4K, {long} on 128K",
        short != long,
        kept_short=short[0],
        kept_long=long[0],
    )


@LEDGER.measured(
    "E29",
    "reference",
    "section 5.5, lines 280-282",
    "The factor 0.1 ln s + 1 is multiplied into the scores.",
    "wrong",
    "It goes on q and on k (through cos and sin), so scores get its square: 1.8133 at"
    " s = 32, not 1.3466.",
    f"{PAPER}, Eq. 21-22; {CODE} L53-54; DeepSeek-V3 inference/model.py L436-437",
)
def _the_square():
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 1, 1, 32, generator=generator, dtype=torch.float64)
    inv_freq, once = yarn(32, **EXAMPLE, trained_length=LENGTH)
    ratio = _score(q, k, inv_freq, once) / _score(q, k, inv_freq, 1.0)
    return computed(
        f"factor {once:.4f} on cos and sin; a score becomes {ratio:.4f} times as large",
        abs(ratio - 1.8133) < 1e-4 and abs(once - (0.1 * math.log(32) + 1)) < 1e-12,
        once=once,
        scores=ratio,
    )


LEDGER.cited(
    "E30",
    "reference",
    "section 5.5",
    "APEX-1 applies a temperature correction.",
    "inconsistent",
    "Its code stores the factor and never reads it; setting it to 99 leaves"
    " the logits as they are, bit for bit.",
    "APEX-1 apex_model.py L61, L70 (read and run on its tiny config at 97b5855)",
)


@LEDGER.measured(
    "E31",
    "reference",
    "section 5.6, lines 293-295",
    "Pair 15 has theta 0.0001 and wavelength 62,832.",
    "wrong",
    "With d_h = 32, the size that fits pair 8: 1.778e-4 and 35,333, scaled 5.557e-6."
    " 0.0001 would be pair 16, which is not there. The regime is right.",
    "computed",
)
def _pair_fifteen():
    theta = inverse_frequencies(32)[15].item()
    return computed(
        f"theta {theta:.4g}, wavelength {2 * math.pi / theta:.0f}, divided by 32"
        f" {theta / 32:.4g}",
        abs(theta - 1.778e-4) < 1e-7
        and abs(theta / 32 - 5.557e-6) < 1e-9
        and abs(1e4 ** (-2 * 16 / 32) - 1e-4) < 1e-12,
        theta=theta,
    )


@LEDGER.measured(
    "E32",
    "reference",
    "section 5.6, lines 297-298",
    "Pair 8, wavelength 628, is in the middle: 628 > 32 but 628 < 32.",
    "inconsistent",
    "By the text's own rule it is slow (theta/32 = 3.125e-4). YaRN proper, L = 4096:"
    " 2.037e-3 by the paper's equations, 5.848e-3 by the authors' code.",
    f"{PAPER}, Eq. 20; {CODE}; computed",
)
def _pair_eight():
    printed = apex1(32, **EXAMPLE).inv_freq[8].item()
    paper, code = (
        ntk_by_parts(32, **EXAMPLE, trained_length=LENGTH, ramp=ramp).inv_freq[8].item()
        for ramp in ("rotations", "pair")
    )
    return computed(
        f"printed rule {printed:.4g}, paper {paper:.4g}, code {code:.4g}",
        abs(printed - 3.125e-4) < 1e-12
        and abs(paper - 2.037e-3) < 1e-6
        and abs(code - 5.848e-3) < 1e-6,
        printed=printed,
        paper=paper,
        code=code,
    )


@LEDGER.measured(
    "E33",
    "reference",
    "section 5.6, lines 299-300",
    "t = 627/31 = 20.2, then clamped.",
    "wrong",
    "The printed formula has no clamp; without one the divisor would be 628, twenty"
    " times"
    " full interpolation. In the code the slow branch takes this pair before t counts,"
    " and divides by 32: the same result as a clamp, by another rule.",
    "APEX-1 rope.py L137-141; computed",
)
def _no_clamp():
    wave = wavelengths(inverse_frequencies(32))[8].item()
    t = (wave - 1) / 31
    divisor = t * 32 + 1 - t
    return computed(
        f"t = {t:.3f}, divisor {divisor:.1f} (wavelength {wave:.1f})",
        abs(divisor - wave) < 1e-9
        and divisor > 19 * 32
        and abs(apex1(32, **EXAMPLE).inv_freq[8].item() - 0.01 / 32) < 1e-12,
        t=t,
        divisor=divisor,
    )


@LEDGER.measured(
    "E34",
    "reference",
    "section 5.6, lines 289-297",
    "One head size fits the example.",
    "inconsistent",
    "theta_8 = 0.01 needs d_h = 32; theta_15 = 0.0001 needs d_h = 30, which has no"
    " pair 15.",
    "computed",
)
def _no_head_size():
    eighth = [
        d for d in range(18, 258, 2) if abs(inverse_frequencies(d)[8] - 0.01) < 1e-9
    ]
    fifteenth = [
        d for d in range(32, 258, 2) if abs(inverse_frequencies(d)[15] - 1e-4) < 1e-9
    ]
    return computed(
        f"d_h for i = 8: {eighth}; for i = 15, among sizes that have it: {fifteenth}",
        eighth == [32] and not fifteenth,
        for_pair_8=eighth[0],
    )


LEDGER.cited(
    "E35",
    "reference",
    "section 5.7, line 309",
    "Llama 2 went from 4K to 32K by position interpolation.",
    "misleading",
    "The paper extended the first LLaMA, 2048 to 32,768, with"
    " 1000 steps. A Llama-2 32K by interpolation is Together's; Meta's own raised the"
    " base.",
    "Position Interpolation (arXiv:2306.15595), section 3.1; Xiong et al. 2023"
    " (arXiv:2309.16039)",
)


@LEDGER.measured(
    "E36",
    "reference",
    "section 5.7, line 310",
    "Kimi went from 128K to over 1M by YaRN.",
    "wrong",
    "Kimi-K2 was trained on 4K, then 32K, then extended to 128K (0905: 256K) by"
    " YaRN. The 1M model is Kimi-Linear, which uses no positions in its full"
    " attention.",
    "Kimi-K2 report (arXiv:2507.20534), section 2; Kimi-Linear tech report",
)
def _kimi():
    k2 = _row("Kimi-K2")
    end = k2.original_max_position_embeddings * k2.factor
    return computed(
        f"K2-0905's own settings: {k2.original_max_position_embeddings} x"
        f" {k2.factor:g} = {end:,.0f} tokens",
        end == 262_144,
        end=end,
    )


@LEDGER.measured(
    "E37",
    "reference",
    "section 5.7, line 311",
    "DeepSeek-V3 is native 128K with base 1M.",
    "wrong",
    "Trained on 4K, then YaRN to 32K and 128K: factor 40, base 10,000.",
    "DeepSeek-V3 report (arXiv:2412.19437), section 4.3; inference/model.py L81-86",
)
def _deepseek():
    row = _row("DeepSeek-V3")
    right = (row.rope_theta, row.factor, row.original_max_position_embeddings) == (
        1e4,
        40,
        4096,
    )
    return computed(
        f"its own settings: base {row.rope_theta:g}, factor {row.factor:g}, original"
        f" length {row.original_max_position_embeddings}",
        right,
        base=row.rope_theta,
    )


@LEDGER.measured(
    "E38",
    "reference",
    "section 5.7, lines 312-313",
    "APEX-1 Small: 8K to 32K, s = 4; Large: 128K to over 1M, s = 8.",
    "inconsistent",
    "Small ships s = 1; Large has s = 8 but a cache of 131,072 rows, and trained"
    " lengths"
    " are 2048, 4096 and 8192.",
    "APEX-1 configs/apex1_*.yaml; apex_model.py L61-77",
)
def _own_rows():
    small, large = apex1_config("small"), apex1_config("large")
    lengths = [
        apex1_config(size).training.seq_len for size in ("small", "medium", "large")
    ]
    return computed(
        f"Small s = {small.rope_factor:g}, Large {large.max_seq_len:,} rows; trained on"
        f" {lengths}",
        small.rope_factor == 1
        and (large.rope_factor, large.max_seq_len) == (8, 131_072)
        and lengths == [2048, 4096, 8192],
        small=small.rope_factor,
        rows=large.max_seq_len,
    )


@LEDGER.measured(
    "E44",
    "repository",
    "apex/model/rope.py L152 and docs/05 L108",
    "The factor prevents entropy collapse.",
    "wrong",
    "Longer context raises the entropy of attention; the factor sharpens. Collapse is"
    " the"
    " opposite failure. The reference itself has the direction right. The first version"
    " of YaRN's preprint said that entropy falls; the second speaks of increased"
    " entropy.",
    f"{PAPER}, section 3.4; jquesnelle/yarn, paper/yarn.pdf at 533d064 (31 August 2023)"
    " and at 70d45d3 (2 November 2023)",
)
def _entropy_rises():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(16, 131_072, generator=generator, dtype=torch.float64)

    def entropy(width, factor=1.0):
        p = (scores[:, :width] * factor).softmax(dim=-1)
        return -(p * p.log()).sum(dim=-1).mean().item()

    short, long = entropy(4096), entropy(131_072)
    sharpened = entropy(131_072, yarn_attention_factor(32.0) ** 2)
    return computed(
        f"random scores: entropy {short:.2f} over 4K keys, {long:.2f} over 128K,"
        f" {sharpened:.2f} with the factor squared",
        short < sharpened < long,
        short=short,
        long=long,
        sharpened=sharpened,
    )


LEDGER.rests_on(
    "C70",
    "reference",
    "section 5.1, line 246",
    "C to sC, selectively, without retraining.",
    ("E23",),
)
LEDGER.rests_on(
    "C71",
    "reference",
    "section 5.2, line 252",
    "High-frequency dimensions are unseen.",
    ("E24",),
)


@LEDGER.measured(
    "C72",
    "reference",
    "section 5.2, line 253",
    "Dividing all frequencies hurts local patterns.",
    "correct",
    "Right in substance.",
    f"{PAPER}, sections 3.1-3.2",
)
def _local_blur():
    plain = inverse_frequencies(128)[0]
    squeezed = position_interpolation(128, base=1e4, factor=32.0).inv_freq[0]
    return computed(
        f"one token turns the fastest pair by {math.degrees(plain):.1f} degrees, then"
        " by"
        f" {math.degrees(squeezed):.2f}",
        squeezed * 32 == plain,
        before=plain,
        after=squeezed,
    )


@LEDGER.measured(
    "C73",
    "reference",
    "section 5.2, line 255",
    "Dimensions need different treatment.",
    "correct",
    "Right; this part is called NTK-by-parts, and YaRN adds the temperature.",
    f"{PAPER}, section 3.2, Definition 3",
)
def _by_parts():
    scaled = ntk_by_parts(128, base=1e4, factor=32.0, trained_length=LENGTH).inv_freq
    counts = _counts(scaled, inverse_frequencies(128), 32.0)
    return computed(
        f"Llama 2 at s = 32: {counts} pairs kept, blended, divided",
        counts == [21, 25, 18],
        kept=counts[0],
        blended=counts[1],
        divided=counts[2],
    )


LEDGER.rests_on(
    "C74",
    "reference",
    "section 5.3, lines 257-262",
    "Three regimes.",
    ("E25", "E26"),
    "wrong",
    "The idea is right, its conditions are not: E25, E26.",
)
LEDGER.rests_on(
    "C75",
    "reference",
    "section 5.3, line 264",
    "beta is 32 and 1.",
    ("E25",),
    "misleading",
    "The numbers are right, their unit is turns and not tokens.",
)
LEDGER.rests_on(
    "C76",
    "reference",
    "section 5.4, lines 270-274",
    "The middle formula; wavelength = 2 pi / theta.",
    ("E27",),
    "wrong",
    "The wavelength is right, the formula is not: E27.",
)
LEDGER.rests_on(
    "C77",
    "reference",
    "section 5.5, line 278",
    "Entropy rises at long context.",
    ("E44",),
    "correct",
    "As said.",
)


@LEDGER.measured(
    "C78",
    "reference",
    "section 5.5, lines 280-282",
    "The factor is 0.1 ln s + 1, on the scores.",
    "misleading",
    "The formula is right as the square root of 1/t; where it goes is not: E29, E30.",
    f"{PAPER}, Eq. 22",
    see=("E29", "E30"),
)
def _printed_factor():
    return computed(
        f"printed {apex1_score_factor(32.0):.4f} on scores; YaRN's scores get"
        f" {yarn_attention_factor(32.0) ** 2:.4f}",
        apex1_score_factor(32.0) < yarn_attention_factor(32.0) ** 2,
        printed=apex1_score_factor(32.0),
    )


@LEDGER.measured(
    "C79",
    "reference",
    "section 5.6, lines 286-287",
    "128K / 4K = 32, betas 32 and 1.",
    "correct",
    "As said.",
    "computed",
)
def _thirty_two():
    return computed("131,072 / 4096 = 32", 131_072 / 4096 == 32, factor=131_072 / 4096)


@LEDGER.measured(
    "C80",
    "reference",
    "section 5.6, lines 289-291",
    "Pair 0 is unchanged.",
    "correct",
    "Right; it turns 651.9 times in 4096 tokens, and 32 would be enough.",
    "computed",
)
def _pair_zero():
    scaled = ntk_by_parts(32, **EXAMPLE, trained_length=LENGTH).inv_freq[0].item()
    turns = rotations(inverse_frequencies(32), LENGTH)[0].item()
    return computed(
        f"frequency {scaled}, {turns:.1f} turns",
        scaled == 1.0 and abs(turns - 651.9) < 0.1,
        turns=turns,
    )


LEDGER.rests_on("C81", "reference", "section 5.6, lines 293-295", "Pair 15.", ("E31",))
LEDGER.rests_on(
    "C82",
    "reference",
    "section 5.6, lines 297-300",
    "Pair 8.",
    ("E32", "E33", "E34"),
)


@LEDGER.measured(
    "C83",
    "reference",
    "section 5.6, line 303",
    "0.1 x 3.466 + 1 = 1.347.",
    "correct",
    "1.346574.",
    "computed",
)
def _temperature():
    value = 0.1 * math.log(32) + 1
    return computed(f"{value:.6f}", abs(value - 1.346574) < 1e-6, value=value)


LEDGER.rests_on(
    "C84",
    "reference",
    "section 5.7, lines 309-313",
    "The table of models.",
    ("E37", "E35", "E36", "E38"),
)
@LEDGER.measured(
    "C85",
    "reference",
    "summary, lines 317-320",
    "V d, d, 0 and 0 parameters.",
    "correct",
    "As said; for the base see E19.",
    "computed",
)
def _parameters():
    parts = (ScaledEmbedding(11, 8), RMSNorm(8), RotaryEmbedding(8))
    counts = [sum(p.numel() for p in part.parameters()) for part in parts]
    return computed(
        f"table 11 x 8, norm of 8, rotary of 8: {counts} parameters",
        counts == [88, 8, 0],
        table=counts[0],
    )


LEDGER.rests_on(
    "C86",
    "reference",
    "summary, line 321",
    "YaRN's scale function.",
    ("E28",),
)
LEDGER.rests_on("C87", "reference", "summary, line 322", "The factor.", ("E29",))
