"""Claims of the notation table and its symbols."""

from __future__ import annotations

from apex_lessons.models.apex1 import SIZES, apex1_config
from apex_lessons.models.ledger.claim import Ledger, computed

LEDGER = Ledger("notation")
CONFIGS = "APEX-1 configs/apex1_*.yaml"


def _values(field: str, sizes=SIZES) -> list[float]:
    return [getattr(apex1_config(size), field) for size in sizes]


def _within(
    field: str, low: float, high: float, sizes=("small", "medium", "large")
) -> bool:
    return all(low <= value <= high for value in _values(field, sizes))


def _rounded_up(width: int, multiple: int) -> int:
    """8/3 of the width, rounded up to the multiple."""
    return -(-8 * width // (3 * multiple)) * multiple


@LEDGER.measured(
    "E39",
    "reference",
    "section 1, line 24",
    "d_ff is 8/3 of d.",
    "misleading",
    "Small and Medium 2.6875 d, which is 8/3 d rounded up (to a multiple of 32 and of"
    " 128): close. Large is 2.571 d and Tiny 2 d. The rule is (2/3) 4d, rounded up.",
    f"{CONFIGS}; llama llama/model.py L331-335",
)
def _feed_forward():
    ratios = [ff / d for ff, d in zip(_values("d_ff"), _values("d_model"))]
    shown = ", ".join(f"{size} {ratio:.4f}" for size, ratio in zip(SIZES, ratios))
    return computed(
        f"d_ff / d: {shown}",
        ratios[1] == ratios[2] == 2.6875
        and (_rounded_up(512, 32), _rounded_up(2048, 128)) == (1376, 5504)
        and max(ratios[0], ratios[3]) < 2.6,
        tiny=ratios[0],
        small=ratios[1],
        medium=ratios[2],
        large=ratios[3],
    )


@LEDGER.measured(
    "E40",
    "reference",
    "section 1, lines 25-26 and 33",
    "d_kv is 256-512, d_q 192-1536, W 512-4096.",
    "inconsistent",
    "d_kv 64, 256, 512; d_q 96, 384, 768; W 512, 2048, 8192 (Small to Large).",
    CONFIGS,
)
def _latent_widths():
    sizes = ("small", "medium", "large")
    kv, q, w = (_values(field, sizes) for field in ("d_kv", "d_q", "sliding_window"))
    outside = min(kv) < 256 and min(q) < 192 and max(w) > 4096
    return computed(
        f"d_kv {kv}, d_q {q}, W {w}", outside, smallest_kv=min(kv), largest_w=max(w)
    )


@LEDGER.measured(
    "E41",
    "reference",
    "section 1, lines 20, 29 and 31",
    "S is 2048-131072, L 6-72, E 4-256.",
    "inconsistent",
    "The minima 6 and 4 are Tiny's, while d and d_h start at Small; S mixes trained"
    " lengths with the rows of a cache.",
    CONFIGS,
)
def _mixed_minima():
    layers, experts = _values("n_layers"), _values("n_experts")
    mixed = (
        layers[0] == 6
        and experts[0] == 4
        and min(layers[1:]) > 6
        and min(experts[1:]) > 4
    )
    trained = [apex1_config(size).training.seq_len for size in SIZES]
    rows = _values("max_seq_len")
    return computed(
        f"L {layers}, E {experts}; Tiny's d is {_values('d_model')[0]}, below the"
        f" printed 512; S {trained} in training, {rows} rows",
        mixed
        and _values("d_model")[0] < 512
        and (trained[1], trained[3], rows[3]) == (2048, 8192, 131_072),
        tiny_layers=layers[0],
        small_layers=layers[1],
    )


@LEDGER.measured(
    "C32",
    "reference",
    "section 1, line 19",
    "The batch size is 1 to 64.",
    "correct",
    "Plausible: the configs train with 2 to 32.",
    CONFIGS,
)
def _batches():
    batches = [apex1_config(size).training.batch_size for size in SIZES]
    return computed(
        f"batch sizes {batches}", all(1 <= b <= 64 for b in batches), most=max(batches)
    )


LEDGER.rests_on("C33", "reference", "section 1, line 20", "S is 2048-131072.", ("E41",))


@LEDGER.measured(
    "C34",
    "reference",
    "section 1, lines 21-23",
    "d 512-7168, d_h 64-128, d_r 32-64.",
    "correct",
    "Right for Small to Large.",
    CONFIGS,
)
def _widths():
    right = (
        _within("d_model", 512, 7168)
        and _within("d_head", 64, 128)
        and _within("d_head_rope", 32, 64)
    )
    return computed(
        f"d {_values('d_model')[1:]}, d_h {_values('d_head')[1:]},"
        f" d_r {_values('d_head_rope')[1:]}",
        right,
        largest=max(_values("d_model")),
    )


LEDGER.rests_on("C35", "reference", "section 1, line 24", "d_ff = 8/3 d.", ("E39",))
LEDGER.rests_on(
    "C36",
    "reference",
    "section 1, lines 25-26, 33",
    "d_kv, d_q and W.",
    ("E40",),
)


@LEDGER.measured(
    "C37",
    "reference",
    "section 1, lines 27-28, 32",
    "H_q 8-128, H_kv 2-8, K 2-8.",
    "correct",
    "Right for Small to Large.",
    CONFIGS,
)
def _heads():
    right = (
        _within("n_heads_q", 8, 128)
        and _within("n_heads_kv", 2, 8)
        and _within("n_active", 2, 8)
    )
    return computed(
        f"H_q {_values('n_heads_q')[1:]}, H_kv {_values('n_heads_kv')[1:]},"
        f" K {_values('n_active')[1:]}",
        right,
        most_heads=max(_values("n_heads_q")),
    )


LEDGER.rests_on(
    "C38",
    "reference",
    "section 1, lines 29, 31",
    "L 6-72, E 4-256.",
    ("E41",),
)


@LEDGER.measured(
    "C39",
    "reference",
    "section 1, line 30",
    "V is 151,643.",
    "correct",
    "Right for APEX-1 Small to Large. It is Qwen's count without control tokens:"
    " 151,646 with them, padded to 151,936 or 152,064 rows in released models.",
    f"{CONFIGS}; Qwen3 concepts.md L40, L51",
)
def _vocabulary():
    values = _values("vocab_size", ("small", "medium", "large"))
    return computed(f"V {values}", set(values) == {151_643}, vocabulary=values[0])


@LEDGER.measured(
    "C40",
    "reference",
    "section 1, lines 34-37",
    "eps is 1e-6, gamma starts at 1, m runs from 0.",
    "correct",
    "Right; eps cannot be set in the model's config.",
    "APEX-1 norm.py",
)
def _constants():
    small = apex1_config("small")
    return computed(
        f"eps {small.epsilon:g}, gamma {small.gamma_init:g}",
        (small.epsilon, small.gamma_init) == (1e-6, 1.0),
        epsilon=small.epsilon,
    )


LEDGER.cited(
    "C41",
    "reference",
    "section 1, line 41",
    "Shapes are [B, S, D] and [B, H, S, D_head].",
    "correct",
    "As said.",
    "APEX-1 apex/model/attention.py",
)
