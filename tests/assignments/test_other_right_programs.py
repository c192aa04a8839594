"""Right programs that are written another way earn all points as well."""

import math

import numpy
import pytest
import torch

from apex_lessons import norm, rope
from apex_lessons.grading import judge
from tests.assignments import course

SEEDS = (0, 1, 2)


# --- embedding ---------------------------------------------------------------------

def factorised_lookup(ids, table, projection, table_std, projection_std):
    rows = torch.nn.functional.embedding(ids, table / table_std)
    return rows @ (projection / projection_std) * len(projection) ** -0.5


def quantise_rows(table):
    rows, scales = table.numpy(), []
    for row in rows:
        scales.append(numpy.abs(row).max() / numpy.float32(127) if row.any() else 1.0)
    scales = numpy.array(scales, dtype=numpy.float32)
    codes = numpy.rint(rows / scales[:, None]).astype(numpy.int8)
    return [torch.from_numpy(codes), torch.from_numpy(scales)]


def gradient_shares(table, ids, targets):
    """By hand: softmax minus one-hot, then back through the norm."""
    d, has = table.shape[1], targets >= 0
    x = table[ids] * math.sqrt(d)
    r = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    hidden = x * r
    error = (hidden @ table.T).softmax(-1)
    error[has, targets[has]] -= 1
    error = error * has[:, None] / has.sum()
    back = error @ table
    back = r * (back - hidden * (back * hidden).mean(-1, keepdim=True)) * math.sqrt(d)
    return torch.zeros_like(table).index_add_(0, ids, back), error.T @ hidden


def capped_logits(hidden, table, cap):
    logits = hidden.double() @ table.double().T / table.shape[1] ** 0.5
    return (torch.tanh(logits / cap) * cap).float()


# --- norm --------------------------------------------------------------------------

def grouped_rms_norm(x, weight, groups, eps):
    pairs = zip(x.chunk(groups, dim=-1), weight.chunk(groups))
    return torch.cat([norm.rms_norm(part, own, eps) for part, own in pairs], dim=-1)


def qk_norm(x, weight, eps, rotary_dim):
    moved = rope.convert_layout(weight, 1, to="interleaved", rotary_dim=rotary_dim)
    return norm.rms_norm(x, moved, eps)


def fold_norms(weights, weight_offset, tied):
    """In float64, with the scale as a diagonal matrix."""
    folded = {name: value.clone() for name, value in weights.items()}
    readers = {"input_norm": "q k v", "post_norm": "gate up", "final_norm": "head"}
    for name in list(readers)[: 2 if tied else 3]:
        diagonal = torch.diag(weights[name].double() + weight_offset)
        for matrix in readers[name].split():
            product = weights[matrix].double() @ diagonal
            folded[matrix] = product.to(weights[matrix].dtype)
        folded[name].fill_(1 - weight_offset)
    return folded


def sharded_rms_norm(shards, weights, eps):
    widths = [shard.shape[-1] for shard in shards]
    whole = norm.rms_norm(torch.cat(shards, dim=-1), torch.cat(weights), eps)
    return whole.split(widths, dim=-1)


# --- rope --------------------------------------------------------------------------

def axial_tables(height, width, head_dim, base):
    angles = [[place * base ** (-4 * i / head_dim) for place in (row, column)
               for i in range(head_dim // 4)]
              for row in range(height) for column in range(width)]
    return [torch.tensor([[function(angle) for angle in row] for row in angles])
            for function in (math.cos, math.sin)]


def move_keys(keys, old_positions, new_positions, inv_freq):
    """Turned with positive steps only: a whole turn may be added to an angle."""
    step = (new_positions - old_positions).double()[..., None] * inv_freq
    angle = (step % (2 * math.pi)).float()
    return rope.apply_rotary(keys, angle.cos(), angle.sin())


def convert_lora(a, b, n_heads, n_kv_heads, head_dim):
    turning = (n_heads + n_kv_heads) * head_dim
    rows = rope.convert_layout(b[:turning], n_heads + n_kv_heads, to="half")
    return [a, torch.cat((rows, b[turning:]))]


def sectioned_tables(positions, sections, inv_freq):
    cos, sin = [], []
    for line, part in zip(positions, inv_freq.split(sections)):
        for table, group in zip(rope.rotary_tables(line, part), (cos, sin)):
            group.append(table)
    return torch.cat(cos, dim=-1), torch.cat(sin, dim=-1)


def scores_by_distance(q, k, inv_freq, distances):
    """By really turning q; the distances are shifted so that none is below zero."""
    shift = int(-distances.min().clamp(max=0))

    def turned(x, positions):
        tables = rope.rotary_tables(positions, inv_freq, dtype=torch.float64)
        return rope.apply_rotary(x.expand(len(positions), -1), *tables)
    (key,) = turned(k, torch.tensor([shift]))
    return turned(q, distances + shift) @ key


# --- yarn --------------------------------------------------------------------------

def log_ramp(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    found = []
    for i in range(head_dim // 2):
        f = base ** (-2 * i / head_dim)
        r = trained_length / (2 * math.pi / f)
        w = math.log(beta_fast / r, beta_fast / beta_slow)
        found.append(f * math.exp(-min(max(w, 0), 1) * math.log(factor)))
    return torch.tensor(found, dtype=torch.float64)


def fold_factor(weight_q, n_heads, rotary_dim, attention_factor):
    folded, head_dim = weight_q.clone(), len(weight_q) // n_heads
    for row in range(len(weight_q)):
        if row % head_dim < rotary_dim:
            folded[row] *= attention_factor * attention_factor
    return folded


def decode_scores(q, k, cached_k, start, inv_freq):
    """All keys but the cached ones through a RotaryEmbedding of the half layout."""
    turn = rope.RotaryEmbedding(q.shape[-1], layout="half")
    turn.inv_freq = inv_freq
    q, k = turn(q, k, offset=start)
    scores = torch.cat((q @ cached_k.mT, q @ k.mT), dim=-1)
    return scores / q.shape[-1] ** 0.5


PROGRAMS = {"embedding": (factorised_lookup, quantise_rows, gradient_shares,
                          capped_logits),
            "norm": (grouped_rms_norm, qk_norm, fold_norms, sharded_rms_norm),
            "rope": (axial_tables, move_keys, convert_lora, sectioned_tables,
                     scores_by_distance),
            "yarn": (log_ramp, fold_factor), "capstone": (decode_scores,)}
EACH = [(name, program) for name, programs in PROGRAMS.items() for program in programs]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("name", "program"), EACH,
                         ids=[program.__name__ for _, program in EACH])
def test_a_right_program_earns_all(name, program, seed):
    (task,) = (one for one in course.assignment(name).tasks
               if one.function == program.__name__)
    outputs = judge.outputs_of(task, program, seed)
    result = judge.judge_values(task, outputs, seed=seed)
    assert (result.points, result.status) == (task.points, "right"), result


@pytest.mark.parametrize(("name", "program"), EACH,
                         ids=[program.__name__ for _, program in EACH])
def test_a_right_program_passes_the_examples(name, program):
    (task,) = (one.name for one in course.assignment(name).tasks
               if one.function == program.__name__)
    own = course.solution_namespace(name) | {program.__name__: program}
    checks = course.checks_of(course.notebooks(name)["student"], task)
    assert [course.said_by(check, own) for check in checks] == [None] * len(checks)
