"""Claims about rotary positions."""

from __future__ import annotations

import math

import torch

from apex_lessons.models.apex1 import apex1_config
from apex_lessons.models.ledger.claim import Ledger, computed
from apex_lessons.models.published import published
from apex_lessons.rope import (
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    rotate_pairs,
    wavelengths,
)

LEDGER = Ledger("rope")
QUERY = torch.tensor([[1.0, 0.5, 0.3, -0.2]], dtype=torch.float64)
PAPER = "RoFormer (arXiv:2104.09864)"


def _turned(
    x: torch.Tensor, position: int, layout: str = "interleaved"
) -> torch.Tensor:
    inv_freq = inverse_frequencies(x.shape[-1])
    tables = rotary_tables(torch.tensor([position]), inv_freq, dtype=torch.float64)
    return apply_rotary(x, *tables, layout=layout)


def _pair_of_vectors() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, 1, 8, generator=generator, dtype=torch.float64)
    return q, k


@LEDGER.measured(
    "E18",
    "reference",
    "section 4.3, lines 178-182",
    "For d_h = 8 the frequencies are 1, 0.0316, 0.001, 0.00003.",
    "wrong",
    "1, 0.1, 0.01, 0.001 with wavelengths 6.283, 62.83, 628.3, 6283. The printed column"
    " is that of base 10^6.",
    f"{PAPER}, Eq. 15; computed",
)
def _frequency_table():
    right = inverse_frequencies(8).tolist()
    million = inverse_frequencies(8, 1e6).tolist()
    printed = (1.0, 0.0316, 0.0010, 0.00003)
    fits = all(abs(a - b) <= 0.06 * b for a, b in zip(printed, million))
    waves = wavelengths(inverse_frequencies(8, 1e6)).tolist()
    fits = fits and all(
        abs(a / b - 1) < 1e-3 for a, b in zip((6.28, 198.7, 6283, 198_692), waves)
    )
    wanted = (1.0, 0.1, 0.01, 0.001)
    return computed(
        f"base 10^4: {[round(v, 6) for v in right]}; base 10^6:"
        f" {[round(v, 6) for v in million]}",
        fits and all(abs(a - b) < 1e-12 for a, b in zip(right, wanted)),
        second=right[1],
        second_of_million=million[1],
    )


@LEDGER.measured(
    "E19",
    "reference",
    "section 4.2, line 172, and the summary, line 319",
    "10,000 is the standard base, and the summary's frequency formula has it fixed.",
    "inconsistent",
    "It is RoFormer's, and one of several now. APEX-1: Small 10,000, Medium 500,000,"
    " Large 1,000,000. Others: 10,000 (Llama 2),"
    " 150,000 (gpt-oss), 500,000 (Llama 3), 10^6 (Qwen2.5 and 3).",
    "APEX-1 configs/apex1_*.yaml; the table of released models",
)
def _bases():
    own = [apex1_config(size).rope_base for size in ("small", "medium", "large")]
    others = sorted({row.rope_theta for row in published() if row.rope_theta})
    return computed(
        f"APEX-1 {own}; released models {others}",
        own == [1e4, 5e5, 1e6] and {1e4, 1.5e5, 5e5, 1e6} <= set(others),
        small=own[0],
        large=own[2],
    )


@LEDGER.measured(
    "E20",
    "reference",
    "section 4.4, lines 190-192",
    "'rotate-half' maps [x0, x1, x2, x3] to [-x1, x0, -x3, x2].",
    "misleading",
    "The formula is right, is what APEX-1 runs, and rotary-embedding-torch uses the"
    " name"
    " in the same way. But in transformers' Llama and in GPT-NeoX rotate_half pairs i"
    " with i + d/2. Weights do not carry over without reordering rows.",
    f"{PAPER}, Eq. 34; transformers modeling_llama.py and modeling_gptj.py;"
    " rotary_embedding_torch.py",
)
def _two_layouts():
    q, k = _pair_of_vectors()
    score = {
        layout: (_turned(q, 5, layout) @ _turned(k, 2, layout).T).item()
        for layout in ("interleaved", "half")
    }
    moved = [convert_layout(x[0], 1, to="half")[None] for x in (q, k)]
    again = (_turned(moved[0], 5, "half") @ _turned(moved[1], 2, "half").T).item()
    return computed(
        f"same q and k: {score['interleaved']:.4f} interleaved, {score['half']:.4f}"
        f" half; after reordering {again:.4f}",
        abs(again - score["interleaved"]) < 1e-12
        and abs(score["half"] - score["interleaved"]) > 0.1,
        **score,
        reordered=again,
    )


LEDGER.cited(
    "E21",
    "reference",
    "section 4.5, line 200",
    "Relative encoding is crucial for generalising to longer sequences.",
    "misleading",
    "The relative property is right; it does not give length generalisation: LLaMA-7B,"
    " trained at 2048, has perplexity 7.20 there and above 1000 at 4096. Section 5.2 of"
    " the same text says that extrapolation fails.",
    "YaRN (arXiv:2309.00071), abstract; Position Interpolation (arXiv:2306.15595),"
    " table 1",
)


@LEDGER.measured(
    "E22",
    "reference",
    "section 4.6, line 231",
    "The norm of q is about 1.187.",
    "wrong",
    "1.1747, before and after. Every other number of the example is right.",
    "computed",
)
def _norm_of_query():
    before, after = QUERY.norm().item(), _turned(QUERY, 3).norm().item()
    return computed(
        f"{before:.4f} before, {after:.4f} after",
        abs(before - 1.1747) < 1e-4 and abs(before - after) < 1e-12,
        before=before,
        after=after,
    )


@LEDGER.measured(
    "C59",
    "reference",
    "sections 4.1 and 4.2, lines 160-166",
    "Pairs (2i, 2i+1) turn by m theta_i.",
    "correct",
    "As said.",
    f"{PAPER}, Eq. 13-15, 34",
)
def _one_turn():
    out = _turned(torch.tensor([[1.0, 0.0]], dtype=torch.float64), 1)[0].tolist()
    return computed(
        f"[1, 0] at position 1: {[round(v, 4) for v in out]}",
        abs(out[0] - math.cos(1)) < 1e-12 > abs(out[1] - math.sin(1)),
        cos=out[0],
        sin=out[1],
    )


@LEDGER.measured(
    "C60",
    "reference",
    "sections 4.2 and 4.3, lines 171, 176",
    "theta_i = b^(-2i/d_h), i from 0.",
    "correct",
    "As said; RoFormer counts from 1.",
    f"{PAPER}, Eq. 15",
)
def _exponent():
    values = inverse_frequencies(4).tolist()
    return computed(f"d_h = 4: {values}", values == [1.0, 0.01], second=values[1])


LEDGER.rests_on(
    "C61",
    "reference",
    "section 4.2, line 172",
    "b = 10,000 is standard.",
    ("E19",),
)
LEDGER.rests_on(
    "C62",
    "reference",
    "section 4.3, lines 178-182",
    "The frequency table.",
    ("E18",),
)


@LEDGER.measured(
    "C63",
    "reference",
    "section 4.3, line 184",
    "Low dimensions turn fast, high ones slowly.",
    "correct",
    "Right; 'local' and 'global' are interpretation.",
    "computed",
)
def _fast_first():
    waves = wavelengths(inverse_frequencies(128))
    return computed(
        f"wavelengths rise from {waves[0]:.2f} to {waves[-1]:.0f} tokens",
        (waves.diff() > 0).all(),
        first=waves[0],
        last=waves[-1],
    )


@LEDGER.measured(
    "C64",
    "reference",
    "section 4.4, lines 190-192",
    "The compact form.",
    "correct",
    "The formula is right; its name misleads (E20).",
    f"{PAPER}, Eq. 34",
    see=("E20",),
)
def _compact_form():
    cos, sin = (
        t.repeat_interleave(2, -1)
        for t in rotary_tables(
            torch.tensor([3]), inverse_frequencies(4), dtype=torch.float64
        )
    )
    gap = (
        (QUERY * cos + rotate_pairs(QUERY) * sin - _turned(QUERY, 3)).abs().max().item()
    )
    return computed(
        "compact form and pairwise rotation agree to 1e-12", gap < 1e-12, gap=gap
    )


@LEDGER.measured(
    "C65",
    "reference",
    "section 4.5, lines 196-198",
    "Scores depend on m - n alone.",
    "correct",
    "As said.",
    f"{PAPER}, Eq. 16",
)
def _distance_alone():
    q, k = _pair_of_vectors()
    near = (_turned(q, 5) @ _turned(k, 2).T).item()
    far = (_turned(q, 505) @ _turned(k, 502).T).item()
    other = (_turned(q, 5) @ _turned(k, 3).T).item()
    return computed(
        f"{near:.6f} at (5, 2), {far:.6f} at (505, 502), {other:.6f} at (5, 3)",
        abs(near - far) < 1e-10 and abs(near - other) > 0.01,
        near=near,
        far=far,
    )


LEDGER.rests_on(
    "C66",
    "reference",
    "section 4.5, line 200",
    "Crucial for length generalisation.",
    ("E21",),
)


@LEDGER.measured(
    "C67",
    "reference",
    "section 4.6, lines 204-229",
    "The worked example at m = 3.",
    "correct",
    "Every number: [-1.061, -0.354, 0.306, -0.191].",
    "computed",
)
def _worked_example():
    out = [round(v, 3) for v in _turned(QUERY, 3)[0].tolist()]
    return computed(f"q' = {out}", out == [-1.061, -0.354, 0.306, -0.191], first=out[0])


LEDGER.rests_on(
    "C68",
    "reference",
    "section 4.6, line 231",
    "The magnitude is kept, 1.187.",
    ("E22",),
    "wrong",
    "Kept: right. The number is 1.1747.",
)


@LEDGER.measured(
    "C69",
    "reference",
    "section 4.7, lines 235-240",
    "Tables are computed once, [max_seq_len, d_head].",
    "correct",
    "As said; APEX-1 has two, for d_head and d_head_rope.",
    "APEX-1 rope.py L39-48",
)
def _tables():
    cos, _ = rotary_tables(torch.arange(16), inverse_frequencies(8))
    doubled = cos.repeat_interleave(2, -1)
    wanted = math.cos(5 * inverse_frequencies(8)[1])
    return computed(
        f"ours [16, 4], one column a pair; repeated for both {list(doubled.shape)}",
        doubled.shape == (16, 8)
        and doubled[5, 2] == doubled[5, 3]
        and abs(doubled[5, 2] - wanted) < 1e-6,
        rows=16,
    )
