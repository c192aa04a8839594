"""Laws that hold for every setting, and the edges of the house: imports, time."""

import ast
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import apex_lessons
from apex_lessons.embedding import ScaledEmbedding
from apex_lessons.norm import rms_norm
from apex_lessons.rope import (
    RotaryEmbedding,
    apply_rotary,
    convert_layout,
    inverse_frequencies,
    rotary_tables,
    wavelengths,
)
from apex_lessons.yarn import (
    apex1,
    dynamic_ntk,
    llama3,
    longrope,
    ntk_aware,
    ntk_by_parts,
    position_interpolation,
    proportional,
    regimes,
    yarn,
)
from tests import oracles

law = settings(max_examples=25, deadline=None, derandomize=True, database=None)
LAYOUTS = st.sampled_from(["interleaved", "half"])
DTYPES = st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16])
# Multiples of 32 take a path of their own.
HEAD_DIMS = st.integers(1, 40).map(lambda pairs: 2 * pairs) | st.sampled_from(
    [32, 64, 128]
)
WIDE_HEAD_DIMS = st.integers(2, 64).map(lambda pairs: 2 * pairs)
BASES = st.floats(1.5, 1e7)
FACTORS = st.floats(1.0, 200.0)
POSITIONS = st.integers(0, 10_000_000)
SEEDS = st.integers(0, 10_000)
STEP = {
    torch.float64: 1e-15,
    torch.float32: 1e-7,
    torch.bfloat16: 8e-3,
    torch.float16: 1e-3,
}

METHODS = {
    "position_interpolation": lambda d, b, f, n: position_interpolation(
        d, base=b, factor=f
    ),
    "ntk_aware": lambda d, b, f, n: ntk_aware(d, base=b, factor=f),
    "dynamic_ntk": lambda d, b, f, n: dynamic_ntk(
        d, base=b, factor=f, trained_length=n, length=n
    ),
    "ntk_by_parts": lambda d, b, f, n: ntk_by_parts(
        d, base=b, factor=f, trained_length=n
    ),
    "yarn": lambda d, b, f, n: yarn(d, base=b, factor=f, trained_length=n),
    "yarn, not truncated": lambda d, b, f, n: yarn(
        d, base=b, factor=f, trained_length=n, truncate=False
    ),
    "yarn, ramp of the paper": lambda d, b, f, n: yarn(
        d, base=b, factor=f, trained_length=n, ramp="rotations"
    ),
    "llama3": lambda d, b, f, n: llama3(d, base=b, factor=f, trained_length=n),
    "longrope": lambda d, b, f, n: longrope(
        d, base=b, factor=f, trained_length=n, factors=[1.0] * (d // 2)
    ),
    "proportional": lambda d, b, f, n: proportional(
        d, base=b, partial_rotary_factor=1.0, factor=f
    ),
    "apex1": lambda d, b, f, n: apex1(d, base=b, factor=f),
}
# A table of divisors says nothing about the factor, and at the trained length dynamic
# NTK is plain RoPE whatever the factor.
RAMPED = [name for name in METHODS if name not in ("longrope", "dynamic_ntk")]


def assert_small(difference, allowed):
    assert difference.numel() == 0 or difference.abs().max().item() <= allowed


# --- rotation ---


@law
@given(HEAD_DIMS, LAYOUTS, st.lists(POSITIONS, min_size=1, max_size=5), SEEDS, BASES)
def test_rotation_keeps_every_norm(head_dim, layout, positions, seed, base):
    x = oracles.normal(1, 2, len(positions), head_dim, seed=seed)
    module = RotaryEmbedding(head_dim, layout=layout, base=base)
    y, _ = module(x, x, torch.tensor(positions))
    torch.testing.assert_close(
        y.double().norm(dim=-1), x.double().norm(dim=-1), rtol=1e-6, atol=0
    )


@law
@given(
    HEAD_DIMS,
    LAYOUTS,
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.integers(0, 10**6),
    SEEDS,
)
def test_score_depends_only_on_the_distance(head_dim, layout, m, n, shift, seed):
    q, k = (
        oracles.normal(1, 1, 1, head_dim, seed=seed + i, dtype=torch.float64)
        for i in (0, 1)
    )
    module = RotaryEmbedding(head_dim, layout=layout)

    def score(at, other):
        turned, _ = module(q, q, torch.tensor([at]))
        _, key = module(k, k, torch.tensor([other]))
        return (turned * key).sum()

    assert_small(score(m, n) - score(m + shift, n + shift), 1e-7 * head_dim)


@law
@given(HEAD_DIMS, LAYOUTS, POSITIONS, POSITIONS, SEEDS)
def test_two_turns_are_one_turn_by_the_sum(head_dim, layout, first, second, seed):
    x = oracles.normal(1, 1, 1, head_dim, seed=seed, dtype=torch.float64)
    module = RotaryEmbedding(head_dim, layout=layout)

    def turned(x, by):
        return module(x, x, torch.tensor([by]))[0]

    assert_small(turned(turned(x, first), second) - turned(x, first + second), 1e-6)


@law
@given(HEAD_DIMS, LAYOUTS, DTYPES, SEEDS)
def test_position_zero_changes_nothing(head_dim, layout, dtype, seed):
    x = oracles.normal(1, 2, 1, head_dim, seed=seed, dtype=dtype)
    y, _ = RotaryEmbedding(head_dim, layout=layout)(x, x)
    assert torch.equal(y, x)


@law
@given(HEAD_DIMS, LAYOUTS, DTYPES, st.integers(0, 40), SEEDS, st.data())
def test_one_rotation_in_every_dtype_width_and_position(
    head_dim, layout, dtype, seq, seed, data
):
    rotary_dim = 2 * data.draw(st.integers(1, head_dim // 2))
    offset = data.draw(st.integers(0, 2_000_000))
    x = oracles.normal(2, 1, seq, head_dim, seed=seed, dtype=dtype)
    module = RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)
    y, _ = module(x, x, offset=offset)
    exact = oracles.rotate(x, range(offset, offset + seq), module.inv_freq, layout)
    assert y.dtype == dtype and y.shape == x.shape
    # Half a step of the dtype on numbers up to 5, and float32 or float64 angles.
    assert_small(
        y.double() - exact,
        8 * STEP[dtype] / 2 + (1e-6 if dtype != torch.float64 else 1e-8),
    )
    assert torch.equal(y[..., rotary_dim:], x[..., rotary_dim:])


@law
@given(
    HEAD_DIMS,
    st.integers(1, 4),
    st.integers(1, 6),
    SEEDS,
    st.integers(1, 10**6),
    st.data(),
)
def test_layouts_are_equal_after_conversion(
    head_dim, heads, d_model, seed, start, data
):
    rotary_dim = 2 * data.draw(st.integers(1, head_dim // 2))
    hidden = oracles.normal(1, 3, d_model, seed=seed, dtype=torch.float64)
    weights = [
        oracles.normal(heads * head_dim, d_model, seed=seed + i, dtype=torch.float64)
        for i in (1, 2)
    ]

    def scores(weights, layout):
        module = RotaryEmbedding(head_dim, layout=layout, rotary_dim=rotary_dim)
        q, k = (
            (hidden @ w.T).unflatten(-1, (heads, head_dim)).transpose(1, 2)
            for w in weights
        )
        q, k = module(q, k, offset=start)
        return q @ k.transpose(-1, -2)

    half = [convert_layout(w, heads, to="half", rotary_dim=rotary_dim) for w in weights]
    want = scores(weights, "interleaved")
    torch.testing.assert_close(scores(half, "half"), want, rtol=1e-9, atol=1e-9)


@law
@given(st.integers(1, 12), st.integers(1, 5), st.data())
def test_conversion_is_a_permutation_with_an_inverse(pairs, heads, data):
    rotary_dim = 2 * data.draw(st.integers(1, pairs))
    rows = torch.arange(2 * pairs * heads)
    for to, back in (("half", "interleaved"), ("interleaved", "half")):
        there = convert_layout(rows, heads, to=to, rotary_dim=rotary_dim)
        assert torch.equal(there.sort().values, rows)
        assert torch.equal(
            there // (2 * pairs), rows // (2 * pairs)
        )  # no row leaves its head
        assert torch.equal(
            convert_layout(there, heads, to=back, rotary_dim=rotary_dim), rows
        )


@law
@given(HEAD_DIMS, LAYOUTS, DTYPES, st.integers(1, 30), SEEDS)
def test_step_by_step_equals_the_full_pass_exactly(head_dim, layout, dtype, seq, seed):
    x = oracles.normal(1, 2, seq, head_dim, seed=seed, dtype=dtype)
    module = RotaryEmbedding(head_dim, layout=layout)
    steps = [
        module(x[:, :, i : i + 1], x[:, :, i : i + 1], offset=i)[0] for i in range(seq)
    ]
    assert torch.equal(torch.cat(steps, dim=2), module(x, x)[0])


@law
@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.integers(0, 300), DTYPES),
        min_size=1,
        max_size=6,
    ),
    LAYOUTS,
)
def test_no_history_of_calls_changes_a_later_one(history, layout):
    """Longer, shorter, further, in another dtype: always a new module's tables."""
    module = RotaryEmbedding(6, layout=layout)
    for offset, seq, dtype in history:
        x = oracles.normal(1, 1, seq, 6, dtype=dtype)
        fresh, _ = RotaryEmbedding(6, layout=layout)(x, x, offset=offset)
        assert torch.equal(module(x, x, offset=offset)[0], fresh)


@law
@given(
    st.lists(st.lists(POSITIONS, min_size=4, max_size=4), min_size=1, max_size=4),
    LAYOUTS,
    DTYPES,
    SEEDS,
)
def test_a_batch_equals_its_rows_one_by_one(positions, layout, dtype, seed):
    x = oracles.normal(len(positions), 3, 4, 10, seed=seed, dtype=dtype)
    module = RotaryEmbedding(10, layout=layout, rotary_dim=6)
    whole, _ = module(x, x, torch.tensor(positions))
    for row, at in enumerate(positions):
        alone, _ = module(x[row : row + 1], x[row : row + 1], torch.tensor(at))
        assert torch.equal(whole[row : row + 1], alone)


@law
@given(HEAD_DIMS, BASES, st.lists(POSITIONS, min_size=1, max_size=3))
def test_tables_are_right_to_float32_everywhere(head_dim, base, positions):
    inv_freq = inverse_frequencies(head_dim, base)
    tables = rotary_tables(torch.tensor(positions), inv_freq)
    for got, exact in zip(
        tables, oracles.exact_tables(positions, head_dim, base), strict=True
    ):
        assert_small(got.double() - exact, 6e-8)


# --- scaled frequencies ---


@law
@given(WIDE_HEAD_DIMS, BASES)
def test_frequencies_fall_and_wavelengths_rise(head_dim, base):
    inv_freq = inverse_frequencies(head_dim, base)
    assert inv_freq[0] == 1.0 and bool((inv_freq.diff() < 0).all())
    assert inv_freq[-1].item() > 1 / base * 0.999999
    torch.testing.assert_close(
        wavelengths(inv_freq) * inv_freq,
        torch.full_like(inv_freq, 2 * math.pi),
        rtol=1e-15,
        atol=0,
    )


@pytest.mark.parametrize("method", METHODS)
@settings(law, max_examples=10)
@given(head_dim=WIDE_HEAD_DIMS, base=BASES, trained=st.integers(8, 10**6))
def test_factor_one_is_plain_rope_to_the_last_bit(method, head_dim, base, trained):
    scaled = METHODS[method](head_dim, base, 1, trained)
    assert torch.equal(scaled.inv_freq, inverse_frequencies(head_dim, base))
    assert scaled.attention_factor == 1.0
    plain = inverse_frequencies(head_dim, base)
    assert regimes(plain, scaled.inv_freq, 1).sum() == 0


@pytest.mark.parametrize("method", RAMPED)
@settings(law, max_examples=15)
@given(
    head_dim=WIDE_HEAD_DIMS, base=BASES, factor=FACTORS, trained=st.integers(8, 10**6)
)
def test_ramps_are_monotone_and_stay_between_their_ends(
    method, head_dim, base, factor, trained
):
    """The share of plain frequency falls from fast to slow, within 1 and 1/factor."""
    plain = inverse_frequencies(head_dim, base)
    ratio = METHODS[method](head_dim, base, factor, trained).inv_freq / plain
    assert bool((ratio <= 1 + 1e-12).all()) and bool(
        (ratio >= (1 - 1e-9) / factor).all()
    )
    assert bool((ratio.diff() <= 1e-12).all())


@settings(law, max_examples=60)
@given(
    WIDE_HEAD_DIMS,
    BASES,
    FACTORS,
    st.integers(7, 10**9),
    st.floats(0.25, 8),
    st.floats(1, 64),
    st.booleans(),
    st.sampled_from(["pair", "rotations"]),
)
def test_fast_pairs_are_kept_and_slow_pairs_divided(
    head_dim, base, factor, trained, slow, ratio, truncate, ramp
):
    """The promise, for any betas: never a silent no-op, never the wrong end."""
    turns = torch.tensor(oracles.turns(head_dim, base, trained), dtype=torch.float64)
    fast = slow * ratio
    assume(
        bool(
            ((turns / slow - 1).abs() > 1e-9).all()
            & ((turns / fast - 1).abs() > 1e-9).all()
        )
    )
    if turns[0] < slow and ramp == "pair":
        with pytest.raises(ValueError):
            yarn(
                head_dim,
                base=base,
                factor=factor,
                trained_length=trained,
                beta_fast=fast,
                beta_slow=slow,
                truncate=truncate,
            )
        return
    scaled = yarn(
        head_dim,
        base=base,
        factor=factor,
        trained_length=trained,
        beta_fast=fast,
        beta_slow=slow,
        truncate=truncate,
        ramp=ramp,
    ).inv_freq
    plain = inverse_frequencies(head_dim, base)
    assert torch.equal(scaled[turns > fast], plain[turns > fast])
    torch.testing.assert_close(
        scaled[turns < slow], plain[turns < slow] / factor, rtol=1e-12, atol=0
    )


@settings(law, max_examples=40)
@given(
    WIDE_HEAD_DIMS, st.floats(10, 1e7), FACTORS, st.integers(16, 10**6), st.booleans()
)
def test_pair_ramp_is_the_formula(head_dim, base, factor, trained, truncate):
    ends = [
        oracles.pair_that_turns(count, head_dim, base, trained) for count in (32, 1)
    ]
    assume(0 <= ends[1] and ends[0] <= head_dim - 1)
    assume(all(abs(end - round(end)) > 1e-9 for end in ends))
    ramp = oracles.pair_ramp(head_dim, base, trained, 32, 1, truncate)
    want = torch.tensor(
        oracles.blend(head_dim, base, factor, ramp), dtype=torch.float64
    )
    got = yarn(
        head_dim, base=base, factor=factor, trained_length=trained, truncate=truncate
    )
    torch.testing.assert_close(got.inv_freq, want, rtol=1e-12, atol=0)
    want_factor = 0.1 * math.log(factor) + 1
    assert got.attention_factor == pytest.approx(want_factor, rel=1e-12)


@law
@given(WIDE_HEAD_DIMS, BASES, FACTORS, st.integers(8, 10**6))
def test_llama3_and_the_papers_ramp_are_one_rule(head_dim, base, factor, trained):
    """Both are linear in turns: llama3's 1 and 4 are betas."""
    one = llama3(head_dim, base=base, factor=factor, trained_length=trained)
    other = ntk_by_parts(
        head_dim,
        base=base,
        factor=factor,
        trained_length=trained,
        beta_fast=4.0,
        beta_slow=1.0,
        ramp="rotations",
    )
    torch.testing.assert_close(one.inv_freq, other.inv_freq, rtol=1e-12, atol=0)
    want = torch.tensor(
        oracles.llama3(head_dim, base, factor, trained), dtype=torch.float64
    )
    torch.testing.assert_close(one.inv_freq, want, rtol=1e-10, atol=0)


@law
@given(WIDE_HEAD_DIMS, BASES, FACTORS)
def test_apex1_is_its_printed_rule(head_dim, base, factor):
    waves = wavelengths(inverse_frequencies(head_dim, base))
    assume(
        bool(
            ((waves / 32 - 1).abs() > 1e-9).all()
            & ((waves / factor - 1).abs() > 1e-9).all()
        )
    )
    want = torch.tensor(oracles.apex1(head_dim, base, factor), dtype=torch.float64)
    torch.testing.assert_close(
        apex1(head_dim, base=base, factor=factor).inv_freq, want, rtol=1e-12, atol=0
    )


@law
@given(WIDE_HEAD_DIMS, BASES, FACTORS, st.integers(1, 10**6), st.integers(1, 10**6))
def test_dynamic_ntk_only_grows_beyond_the_trained_length(
    head_dim, base, factor, trained, more
):
    def scaled(length):
        return dynamic_ntk(
            head_dim, base=base, factor=factor, trained_length=trained, length=length
        ).inv_freq

    plain = inverse_frequencies(head_dim, base)
    assert torch.equal(scaled(trained), plain) and torch.equal(scaled(1), plain)
    longer = scaled(trained + more)
    assert bool((longer <= plain).all()) and longer[0] == 1.0
    stretch = factor * (trained + more) / trained - (factor - 1)
    want = plain[-1].item() / stretch
    assert longer[-1].item() == pytest.approx(want, rel=1e-9)


@law
@given(st.integers(1, 32).map(lambda p: 2 * p), BASES, FACTORS, st.floats(0.01, 1))
def test_proportional_turns_the_first_share(head_dim, base, factor, share):
    pairs = int(share * head_dim // 2)
    assume(pairs > 0)
    got = proportional(
        head_dim, base=base, partial_rotary_factor=share, factor=factor
    ).inv_freq
    plain = inverse_frequencies(head_dim, base) / factor
    assert bool((got[pairs:] == 0).all())
    torch.testing.assert_close(got[:pairs], plain[:pairs], rtol=1e-15, atol=0)


# --- norm and embedding ---


@law
@given(st.integers(1, 5), st.integers(1, 80), DTYPES, SEEDS, st.floats(0, 0.1))
def test_norm_is_the_formula(rows, width, dtype, seed, eps):
    x = oracles.normal(rows, width, seed=seed, dtype=dtype)
    weight = oracles.normal(width, seed=seed + 1, dtype=dtype)
    got, exact = rms_norm(x, weight, eps), oracles.rms_norm(x, weight, eps)
    assert got.dtype == dtype
    allowed = exact.abs() * (
        STEP[dtype] / 2 + (4e-7 if dtype != torch.float64 else 4e-16)
    )
    tiny = torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
    assert bool(((got.double() - exact).abs() <= allowed + tiny).all())


@law
@given(st.integers(1, 40), st.floats(1e-4, 1e4), SEEDS)
def test_norm_does_not_see_the_size_of_its_input(width, scale, seed):
    x = oracles.normal(3, width, seed=seed, dtype=torch.float64) + 0.01
    torch.testing.assert_close(
        rms_norm(x * scale, eps=0.0), rms_norm(x, eps=0.0), rtol=1e-12, atol=0
    )


@law
@given(
    st.integers(1, 9),
    st.integers(1, 9),
    st.lists(st.integers(0, 8), max_size=12),
    SEEDS,
)
def test_lookup_is_row_selection(rows, width, ids, seed):
    torch.manual_seed(seed)
    table = ScaledEmbedding(rows, width, dtype=torch.float64)
    ids = torch.tensor([i % rows for i in ids], dtype=torch.long)
    torch.testing.assert_close(table(ids), table.weight[ids] * math.sqrt(width))


# --- the house ---

HOUSE = Path(apex_lessons.__file__).parent
MATHEMATICS = ["embedding", "norm", "rope", "yarn"]


PROBE = """
import json, sys, time
for name in ("matplotlib", "ipywidgets", "anywidget", "IPython", "transformers"):
    sys.modules[name] = None  # an import of these fails
import torch
before, start = set(sys.modules), time.process_time()
import apex_lessons
seconds = time.process_time() - start
import apex_lessons.embedding, apex_lessons.norm, apex_lessons.rope, apex_lessons.yarn
new = {m.split(".")[0] for m in set(sys.modules) - before}
new -= set(sys.stdlib_module_names)
print(json.dumps({"seconds": seconds, "new": sorted(new)}))
"""


def import_in_a_new_process():
    done = subprocess.run(
        [sys.executable, "-c", PROBE],
        capture_output=True,
        text=True,
        check=True,
        cwd=HOUSE.parent,
        encoding="utf-8",
    )
    return json.loads(done.stdout)


def test_import_pulls_in_torch_and_nothing_else_and_is_quick():
    """What is new after ``import torch`` is the package and Python's own library."""
    first = import_in_a_new_process()
    assert first["new"] == ["apex_lessons"]
    if first["seconds"] > 0.2:  # once more, in case the machine was busy
        assert import_in_a_new_process()["seconds"] <= 0.2


@pytest.mark.parametrize("module", MATHEMATICS)
def test_mathematics_imports_torch_and_its_own_floor_only(module):
    tree = ast.parse((HOUSE / f"{module}.py").read_text(encoding="utf-8"))
    allowed = set(sys.stdlib_module_names) | {"torch"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [node.module]
            own = node.module.startswith("apex_lessons")
            assert not own or not any(n.name.startswith("_") for n in node.names)
        elif isinstance(node, ast.Import):
            names = [n.name for n in node.names]
        else:
            continue
        for name in names:
            floor = name in {f"apex_lessons.{m}" for m in [*MATHEMATICS, "errors"]}
            assert floor or name.split(".")[0] in allowed, name


def test_calls_leave_the_random_state_and_the_settings_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
    x = oracles.normal(1, 2, 5, 8)
    RotaryEmbedding(8, scaling=yarn(8, base=1e4, factor=4, trained_length=4096))(x, x)
    rms_norm(x)
    apply_rotary(x, *rotary_tables(torch.arange(5), inverse_frequencies(8)))
    after = torch.get_rng_state(), torch.get_default_dtype(), torch.get_num_threads()
    assert torch.equal(before[0], after[0]) and before[1:] == after[1:]
