"""The teacher's half of the assignment on embeddings: it is not for students.

Right answers, the inputs they are judged on, and the wrong answers that are common,
with what each of them earns.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from apex_lessons.grading.inputs import normal, whole
from apex_lessons.grading.task import (
    Assignment,
    Criterion,
    Task,
    WrongAnswer,
    Written,
)

# --- 1: a table in two factors -------------------------------------------------------


def factorised_lookup(ids, table, projection, table_std, projection_std) -> Tensor:
    """Rows of the narrow table, widened, at variance 1."""
    # variance of a sum of e products = e * table_std^2 * projection_std^2
    root = math.sqrt(table.shape[1])
    return table[ids] @ projection / (root * table_std * projection_std)


def factor_case(generator, *ids_shape, dtype=torch.float32) -> dict:
    vocab, narrow, wide = 11, whole(generator, 3, 7), whole(generator, 9, 14)
    table_std = (0.02, 0.05, 0.5)[whole(generator, 0, 3)]
    projection_std = (0.1, 0.3)[whole(generator, 0, 2)]
    return {"ids": whole(generator, 0, vocab, *ids_shape),
            "table": normal(generator, vocab, narrow, dtype=dtype) * table_std,
            "projection": normal(generator, narrow, wide, dtype=dtype) * projection_std,
            "table_std": table_std, "projection_std": projection_std}


def _unscaled(ids, table, projection):
    return table[ids] @ projection


def _root_of_width(ids, table, projection, table_std, projection_std):
    return _unscaled(ids, table, projection) * math.sqrt(projection.shape[1])


def _root_of_wrong_width(ids, table, projection, table_std, projection_std):
    root = math.sqrt(projection.shape[1])
    return _unscaled(ids, table, projection) / (root * table_std * projection_std)


def _no_sum(ids, table, projection, table_std, projection_std):
    return _unscaled(ids, table, projection) / (table_std * projection_std)


def _variances(ids, table, projection, table_std, projection_std):
    variance = table.shape[1] * table_std**2 * projection_std**2
    return _unscaled(ids, table, projection) / variance


def _first_factor_only(ids, table, projection, table_std, projection_std):
    return _unscaled(ids, table, projection) / (math.sqrt(table.shape[1]) * table_std)


def _measured(ids, table, projection, table_std, projection_std):
    x = _unscaled(ids, table, projection)
    return x / x.std()


def _one_sequence(ids, **others):
    return factorised_lookup(ids.flatten(), **others)


FACTORISED = Task(
    name="factorised-lookup",
    function="factorised_lookup",
    answer=factorised_lookup,
    criteria=(
        Criterion("variance 1 for every pair of widths", 2, lambda g: [
            factor_case(g, 5), factor_case(g, 7), factor_case(g, 4)]),
        Criterion("ids of any shape, and the table's dtype", 1, lambda g: [
            factor_case(g, 2, 3), factor_case(g, 1, 4, dtype=torch.float64),
            factor_case(g, 2, 1, 3)]),
    ),
    wrong_answers=(
        WrongAnswer("root-of-the-width", _root_of_width,
            "You multiply by the root of d, as with an ordinary table. That factor"
            " fits entries of standard deviation 1/√d; here the widths and the two"
            " standard deviations decide. Work out the variance of one entry of the"
            " product.", 0),
        WrongAnswer("wrong-width", _root_of_wrong_width,
            "The root is taken of the outer width d. One entry of the product is a sum"
            " of as many terms as the narrow table has columns.", 0),
        WrongAnswer("forgets-the-sum", _no_sum,
            "You divide by the two standard deviations alone. That is right for one"
            " product; an entry is a sum of e independent products, so its variance is"
            " e times as large.", 0),
        WrongAnswer("divides-by-the-variance", _variances,
            "You divide by the variance. To bring a variance to 1, divide by its root.",
            0),
        WrongAnswer("forgets-the-projection", _first_factor_only,
            "Your scale knows the table's standard deviation but not the projection's."
            " Both factors are random.", 0),
        WrongAnswer("measured", _measured,
            "You divide by the standard deviation of the batch at hand. Then a token's"
            " vector depends on the other tokens of the batch. The scale is one number"
            " that follows from the settings.", 0),
        WrongAnswer("flattens-the-ids", _one_sequence,
            "Right for a single sequence; ids of more dimensions come back flattened."
            " Index with the ids as they are: `table[ids]` keeps their shape.", 2),
    ),
)

# --- 2: eight bits a number ----------------------------------------------------------


def quantise_rows(table: Tensor):
    """int8 codes, and one float32 scale a row."""
    largest = table.abs().amax(dim=-1)
    scales = torch.where(largest > 0, largest / 127, torch.ones_like(largest))
    return (table / scales[:, None]).round().to(torch.int8), scales


def _steps(largest):
    return torch.where(largest > 0, largest / 127, torch.ones_like(largest))


def signed_table(generator, rows, width, sign) -> Tensor:
    """Rows whose largest entry has the given sign."""
    table = normal(generator, rows, width)
    place = table.abs().argmax(dim=-1, keepdim=True)
    turned = sign * table.gather(-1, place).sign() * table
    return turned * torch.logspace(-2, 0, rows)[:, None]


def with_zero_row(generator) -> dict:
    table = signed_table(generator, 6, 8, 1)
    table[whole(generator, 0, 6)] = 0.0
    return {"table": table}


def _one_scale(table):
    scale = table.abs().max() / 127
    return (table / scale).round().to(torch.int8), scale.expand(len(table)).clone()


def _scale_a_column(table):
    scales = _steps(table.abs().amax(dim=0))
    return (table / scales).round().to(torch.int8), scales


def _without_abs(table):
    scales = _steps(table.amax(dim=-1).clamp(min=0))
    codes = (table / scales[:, None]).round().clamp(-128, 127)
    return codes.to(torch.int8), scales


def _cuts_off(table):
    scales = _steps(table.abs().amax(dim=-1))
    return (table / scales[:, None]).to(torch.int8), scales


def _of_128(table):
    largest = table.abs().amax(dim=-1)
    scales = torch.where(largest > 0, largest / 128, torch.ones_like(largest))
    codes = (table / scales[:, None]).round().clamp(-128, 127)
    return codes.to(torch.int8), scales


def _zero_scale(table):
    codes, scales = quantise_rows(table)
    return codes, torch.where(table.abs().amax(dim=-1) > 0, scales, 0.0)


def _inverse_scale(table):
    codes, scales = quantise_rows(table)
    return codes, 1 / scales


def _float_codes(table):
    codes, scales = quantise_rows(table)
    return codes.float(), scales


QUANTISED = Task(
    name="quantise-rows",
    function="quantise_rows",
    answer=quantise_rows,
    criteria=(
        Criterion("one scale a row, codes to the nearest", 2, lambda g: [
            {"table": signed_table(g, 5, 7, 1)}, {"table": signed_table(g, 4, 4, 1)}]),
        Criterion("the largest size counts, also below zero", 1, lambda g: [
            {"table": signed_table(g, 5, 7, -1)},
            {"table": signed_table(g, 6, 6, -1)}]),
        Criterion("a row of zeros", 1, lambda g: [with_zero_row(g), with_zero_row(g)]),
    ),
    wrong_answers=(
        WrongAnswer("one-scale-for-all", _one_scale,
            "One scale for the whole table: rows that are short beside the longest lose"
            " most of their eight bits. Give each row its own scale.", 0),
        WrongAnswer("scale-a-column", _scale_a_column,
            "Your scales belong to columns. A look-up reads one row, so a row is what"
            " shares a scale: reduce over the last axis.", 0),
        WrongAnswer("largest-not-largest-size", _without_abs,
            "You take the largest entry with its sign. In a row whose extreme entry is"
            " negative the codes then run past -127. Take the largest magnitude.", 3),
        WrongAnswer("cuts-off", _cuts_off,
            "The codes are cut off towards zero: `.to(torch.int8)` drops the fraction."
            " Round to the nearest first; that halves the largest error.", 0),
        WrongAnswer("divides-by-128", _of_128,
            "int8 ends at 127 above and at -128 below. With 128 steps the largest entry"
            " of a row does not fit.", 0),
        WrongAnswer("zero-scale", _zero_scale,
            "A row of zeros gets the scale 0, so the division gives NaN before it is"
            " turned into codes, and no later update of the row can be represented."
            " The specification asks for scale 1 there.", 3),
        WrongAnswer("inverse-scale", _inverse_scale,
            "You return what the row was multiplied by. The specification wants the"
            " other direction: codes times scale gives the row back.", 0),
        WrongAnswer("codes-are-floats", _float_codes,
            "The codes have whole values but are stored in four bytes each, so nothing"
            " is saved. Their dtype is torch.int8.", 0),
    ),
)

# --- 3: who pulls at the table? ------------------------------------------------------


def gradient_shares(table: Tensor, ids: Tensor, targets: Tensor, *, rows=None,
                    normed=True, count=None):
    """The gradients of the loss by the look-up and by the head, each [vocab, d]."""
    as_input = table.detach().clone().requires_grad_()
    as_head = table.detach().clone().requires_grad_()
    hidden = as_input[ids] * math.sqrt(table.shape[1])
    if normed:
        hidden = hidden * torch.rsqrt(hidden.square().mean(-1, keepdim=True) + 1e-6)
    losses = F.cross_entropy(hidden @ as_head.T, targets, ignore_index=-1,
                             reduction="none")
    loss = losses.sum() / ((targets >= 0).sum() if count is None else count)
    return torch.autograd.grad(loss, (as_input, as_head))


def share_case(generator, ids, targets) -> dict:
    table = normal(generator, 6, 5, dtype=torch.float64)
    return {"table": table, "ids": torch.tensor(ids), "targets": torch.tensor(targets)}


def once(generator) -> list[dict]:
    first, second = (whole(generator, 0, 6) for _ in range(2))
    return [share_case(generator, [first], [(first + 1) % 6]),
            share_case(generator, [second], [second])]


def repeated(generator) -> list[dict]:
    token, other = whole(generator, 0, 3), whole(generator, 3, 6)
    return [share_case(generator, [token, other, token], [other, token, 5 - token]),
            share_case(generator, [other, other, token, other], [0, 1, 2, 3])]


def masked(generator) -> list[dict]:
    token, other = whole(generator, 0, 3), whole(generator, 3, 6)
    return [share_case(generator, [token, other, token], [other, -1, token]),
            share_case(generator, [other, other, token, token], [0, -1, -1, 3])]


def _swapped(table, ids, targets):
    return gradient_shares(table, ids, targets)[::-1]


def _sum_twice(table, ids, targets):
    total = sum(gradient_shares(table, ids, targets))
    return total, total.clone()


def _summed(table, ids, targets):
    return gradient_shares(table, ids, targets, count=1)


def _over_all(table, ids, targets):
    return gradient_shares(table, ids, targets, count=len(ids))


def _no_norm(table, ids, targets):
    return gradient_shares(table, ids, targets, normed=False)


def _masked_is_last(table, ids, targets):
    return gradient_shares(table, ids, targets % len(table))


def _last_wins(table, ids, targets):
    """The look-up's part written row by row: a repeated id keeps its last place."""
    head = gradient_shares(table, ids, targets)[1]
    kept = torch.zeros_like(table)
    count = int((targets >= 0).sum())
    for place, token in enumerate(ids.tolist()):
        one = slice(place, place + 1)
        kept[token] = gradient_shares(table, ids[one], targets[one],
                                      count=count)[0][token]
    return kept, head


SHARES = Task(
    name="gradient-shares",
    function="gradient_shares",
    answer=gradient_shares,
    criteria=(
        Criterion("one token, two paths", 1, once),
        Criterion("a token that occurs several times", 2, repeated),
        Criterion("positions without a target", 2, masked),
    ),
    wrong_answers=(
        WrongAnswer("swapped", _swapped,
            "The two parts have changed places: first the look-up's, then the head's."
            " The look-up's has rows of zeros for tokens that are not in the text.", 0),
        WrongAnswer("sum-for-both", _sum_twice,
            "Both results are the whole gradient of the tied table. Use two copies of"
            " the table that require gradients, one for each use.", 0),
        WrongAnswer("sums-the-loss", _summed,
            "Your loss is the sum over positions; wanted is the mean over those that"
            " have a target. With one position nobody can tell.", 1),
        WrongAnswer("mean-over-all-positions", _over_all,
            "The mean runs over all positions, those without a target included. They"
            " have no loss and must not count.", 3),
        WrongAnswer("without-the-norm", _no_norm,
            "The hidden vectors skip the RMSNorm between the look-up and the head.", 0),
        WrongAnswer("minus-one-is-a-row", _masked_is_last,
            "A target of -1 was used as an index, and in Python that means the last"
            " row. It stands for: no target, no loss.", 3),
        WrongAnswer("last-place-wins", _last_wins,
            "Where a token occurs twice, the later gradient overwrites the earlier one."
            " Gradients of several places add (`index_add_`, or let autograd do it).",
            1),
    ),
)

# --- 4: capped logits ----------------------------------------------------------------


def capped_logits(hidden: Tensor, table: Tensor, cap: float) -> Tensor:
    """float32 logits of a T5-style tied head, softly kept within -cap and cap."""
    logits = hidden.float() @ table.float().T / math.sqrt(table.shape[1])
    return cap * torch.tanh(logits / cap)


def cap_case(generator, *shape, dtype=torch.float32, size=4.0) -> dict:
    width, cap = whole(generator, 5, 9), (5.0, 8.0, 30.0)[whole(generator, 0, 3)]
    return {"hidden": (normal(generator, *shape, width) * size).to(dtype),
            "table": (normal(generator, 7, width) * size).to(dtype), "cap": cap}


def _plain_logits(hidden, table):
    return hidden.float() @ table.float().T / math.sqrt(table.shape[1])


def _clamped(hidden, table, cap):
    return _plain_logits(hidden, table).clamp(-cap, cap)


def _tanh_of_logits(hidden, table, cap):
    return cap * torch.tanh(_plain_logits(hidden, table))


def _scaled_last(hidden, table, cap):
    root = math.sqrt(table.shape[1])
    return cap * torch.tanh(_plain_logits(hidden, table) * root / cap) / root


def _no_root(hidden, table, cap):
    return cap * torch.tanh(hidden.float() @ table.float().T / cap)


def _not_back(hidden, table, cap):
    return torch.tanh(_plain_logits(hidden, table) / cap)


def _half_product(hidden, table, cap):
    logits = (hidden @ table.T).float() / math.sqrt(table.shape[1])
    return cap * torch.tanh(logits / cap)


def _half_result(hidden, table, cap):
    return capped_logits(hidden, table, cap).to(hidden.dtype)


CAPPED = Task(
    name="capped-logits",
    function="capped_logits",
    answer=capped_logits,
    criteria=(
        Criterion("scale, then the soft cap", 2, lambda g: [
            cap_case(g, 3), cap_case(g, 2, 3), cap_case(g, 4)]),
        Criterion("float16 in, float32 all the way", 2, lambda g: [
            cap_case(g, 3, dtype=torch.float16, size=2.0),
            cap_case(g, 4, dtype=torch.float16, size=200.0)]),
    ),
    wrong_answers=(
        WrongAnswer("hard-cap", _clamped,
            "You cut the logits off at the cap. There the gradient is zero and the"
            " model stops learning; a soft cap uses tanh.", 0),
        WrongAnswer("not-divided-by-the-cap", _tanh_of_logits,
            "The tanh sees the logits themselves, so everything above 2 or so is"
            " already at the cap. Divide by the cap first: small logits then pass"
            " unchanged.", 0),
        WrongAnswer("scaled-after-the-cap", _scaled_last,
            "You divide by √d after the cap. Then the largest possible logit is"
            " cap/√d. T5's factor belongs to the logits, and the cap comes last.", 0),
        WrongAnswer("no-root", _no_root,
            "The factor 1/√d of a T5-style tied head is missing.", 0),
        WrongAnswer("not-multiplied-back", _not_back,
            "All your logits lie between -1 and 1: multiply by the cap after the tanh.",
            0),
        WrongAnswer("half-precision-product", _half_product,
            "The product is made in float16 and widened afterwards: by then it is"
            " rounded, and above 65,504 infinite. Widen hidden and table first.", 2),
        WrongAnswer("half-precision-result", _half_result,
            "The logits come back in the dtype of hidden. The loss subtracts large"
            " numbers from each other, so the specification wants float32.", 2),
    ),
)

ASSIGNMENT = Assignment(
    name="embedding",
    title="Tables: two factors, eight bits, two gradients",
    tasks=(FACTORISED, QUANTISED, SHARES, CAPPED),
    written=(Written("written-int8", 4),),
)
