"""Checks of lesson 01: a learner's lookup, scale, conversion, logits and gradients.

Each check calls the learner's function on small random tables, compares the answers
with ours, and names the mistake if it is one of ``known_mistakes()``. No message
contains a number of the right answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch.nn import functional as F

from apex_lessons.exercises.diagnosis import (
    Diagnosis,
    Mistake,
    agrees,
    judge,
    run_learner,
)


def known_mistakes() -> tuple[Mistake, ...]:
    """All wrong programs that the checks of this lesson recognise, one a misconception.

    >>> {mistake.check for mistake in known_mistakes()} >= {"check_scaled_embedding"}
    True
    """
    return (*LOOKUP_MISTAKES, *SCALE_MISTAKES, *DTYPE_MISTAKES, *CONVERT_MISTAKES,
            *LOGIT_MISTAKES, *GRADIENT_MISTAKES, *OWN_LOGIT_MISTAKES)


def _mistakes(check: str, *rows: tuple[str, Callable, str]) -> tuple[Mistake, ...]:
    return tuple(Mistake(name, check, function, words)
                 for name, function, words in rows)


def _table(rows: int, width: int, seed: int, dtype=torch.float32, std: float = 1.0):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, width, generator=generator) * std).to(dtype)


def _lookup_cases() -> list[tuple]:
    """Tables of several shapes and dtypes; ids repeated, unsorted and batched."""
    return [
        (_table(4, 7, 0), torch.tensor([1, 0, 3, 2])),
        (_table(5, 9, 1), torch.tensor([[4, 4, 1], [0, 2, 3]])),
        (_table(6, 6, 2, torch.float64), torch.tensor([5, 3, 3, 0])),
        (_table(3, 8, 3), torch.tensor([2])),
        (_table(8, 24, 4, torch.bfloat16), torch.tensor([[7, 2]])),
    ]


# --- what both lookups must do beside the numbers ----------------------------------

_SILENT = ("silent-out-of-range",
           "An id that is not in the table came back as numbers: yours answers for a"
           " row that does not exist. A wrong id is a bug upstream, so let it raise.")
_CUT = ("cuts-the-gradient",
        "The numbers are right, but no gradient reaches the table, so it would never"
        " learn. Look for `.data`, `.detach()`, `torch.tensor(...)`, `.tolist()`,"
        " `.numpy()` or `torch.no_grad()`.")
_DENSE = ("gradient-elsewhere",
          "The numbers are right, but the gradient does not arrive where it should:"
          " each use of a row should add to the gradient of that row, and to no other.")


def _check_lookup(function: Callable, right: Callable, mistakes: tuple[Mistake, ...],
                  factor: float, praise: str) -> Diagnosis:
    """Numbers first, then unknown ids, then gradients.

    A program that refuses another dtype than float32 is right, with a remark: an error
    is honest, a wrong number is not.
    """
    cases = [case for case in _lookup_cases() if not _refuses_dtype(function, *case)]
    if len(cases) < len(_lookup_cases()):
        praise += (" One remark: it raises where the table is not float32. Convert with"
                   " `.to(table.dtype)` instead of `.float()`.")
    said = judge(function, cases, right, mistakes, praise=praise)
    if not said:
        return said
    found = _answers_unknown_ids(function, mistakes)
    if found is None:
        found = _stops_gradients(function, factor)
    return said if found is None else found


def _refuses_dtype(function: Callable, table: torch.Tensor, ids: torch.Tensor) -> bool:
    if table.dtype == torch.float32:
        return False
    _, trouble = run_learner(function, table, ids)
    return trouble is not None and trouble.mistake == "exception"


def _answers_unknown_ids(function: Callable, mistakes: tuple[Mistake, ...]):
    """A diagnosis if the learner's function answers for ids that have no row."""
    case = _table(5, 8, 5), torch.tensor([1, 6])
    result, trouble = run_learner(function, *case)
    if trouble is not None:
        return None if trouble.mistake == "exception" else trouble
    for mistake in mistakes:
        guess, trouble = run_learner(mistake.function, *case)
        if trouble is None and agrees(result, guess):
            return Diagnosis("wrong", mistake.name, mistake.explanation)
    return Diagnosis("wrong", *_SILENT)


def _stops_gradients(function: Callable, factor: float) -> Diagnosis | None:
    """A diagnosis if sum(f(table, ids)) does not teach exactly the rows used.

    The table is 5 x 4 and the ids are 3, 1, 3, so the gradient of row 3 is twice that
    of row 1, which is ``factor``.
    """
    table = _table(5, 4, 6).requires_grad_()
    result, trouble = run_learner(partial(function, table), torch.tensor([3, 1, 3]))
    if trouble is not None or not result.requires_grad:  # .numpy() raises here
        return Diagnosis("wrong", *_CUT)
    (gradient,) = torch.autograd.grad(result.sum(), table, allow_unused=True)
    if gradient is None:
        return Diagnosis("wrong", *_CUT)
    uses = torch.tensor([0.0, 1.0, 0.0, 2.0, 0.0])[:, None].expand(5, 4)
    return None if agrees(gradient, factor * uses) else Diagnosis("wrong", *_DENSE)


# --- exercise 1.1: lookup as a product ---------------------------------------------

def check_one_hot_lookup(function: Callable) -> Diagnosis:
    """Check ``f(table, ids)``: rows of the table as ``one_hot(ids) @ table``.

    table [vocab, d], ids of any shape; wanted is [..., d] in the table's dtype. Any way
    of selecting rows is right.

    >>> check_one_hot_lookup(lambda table, ids: table[ids]).status
    'right'
    """
    return _check_lookup(function, lambda table, ids: table[ids], LOOKUP_MISTAKES, 1.0,
                         "Right: a lookup is a product with a one-hot matrix, and the"
                         " gradient touches only the rows that were used.")


def _one_hot(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    return F.one_hot(ids, len(table)).to(table.dtype)


def _set_by_hand(table, ids):
    one_hot = torch.zeros(*ids.shape, len(table), dtype=table.dtype)
    return (ids[..., None] == torch.arange(len(table))).to(one_hot) @ table


LOOKUP_MISTAKES = _mistakes(
    "check_one_hot_lookup",
    ("returns-the-one-hot", lambda table, ids: _one_hot(ids, table),
     "This is the one-hot matrix itself. It still has to be multiplied by the table."),
    ("columns-not-rows", lambda table, ids: table[:, ids],
     "You select columns. The table is [vocab, d]: one row for each token, so the"
     " one-hot matrix stands on the left."),
    ("table-made-integer",
     lambda table, ids: (F.one_hot(ids, len(table)) @ table.long()).to(table.dtype),
     "`F.one_hot` gives integers, and you turned the table into integers to match it:"
     " that throws every fraction away. Convert the one-hot matrix instead."),
    ("adds-the-rows", lambda table, ids: table[ids].sum(-2, keepdim=True),
     "You add the rows of all tokens into one vector. Each token keeps its own vector:"
     " the result has one row for every id."),
    ("counts-from-one", lambda table, ids: table[ids - 1],
     "Every row is that of the token before. Ids count from zero: id 0 is the first"
     " row."),
    ("loses-the-order",
     lambda table, ids: table[ids.flatten().sort()[0].view(ids.shape)],
     "The rows are right, but sorted by id. They should stand in the order of the"
     " ids."),
    ("flattens-the-batch", lambda table, ids: table[ids.flatten()],
     "The batch dimension is gone. Ids [batch, seq] give rows [batch, seq, d]."),
    ("first-id-only", lambda table, ids: table[ids[0]],
     "Only the first id was looked up. Give all ids at once: `table[ids]` takes a whole"
     " tensor of them."),
    (_SILENT[0], _set_by_hand, _SILENT[1]),
    (_CUT[0], lambda table, ids: table.detach()[ids], _CUT[1]),
    ("changes-its-input", lambda table, ids: table.mul_(1.0).add_(1.0)[ids] - 1.0,
     "It writes into the table it was given."),
)


# --- exercise 1.2: the scaled embedding --------------------------------------------

def check_scaled_embedding(function: Callable) -> Diagnosis:
    """Check ``f(table, ids)``: the selected rows times sqrt(d).

    table [vocab, d], ids of any shape; wanted is [..., d] in the table's dtype. The
    root may be taken in any precision, the rows may be selected in any way.

    >>> check_scaled_embedding(lambda table, ids: table[ids] / 2).status
    'wrong'
    """
    def right(table, ids):
        return table[ids] * math.sqrt(table.shape[1])

    return _check_lookup(function, right, SCALE_MISTAKES, 2.0,
                         "Right: one row for each id, times the square root of the"
                         " vector size, in the table's dtype.")


def _root(table: torch.Tensor) -> float:
    return math.sqrt(table.shape[-1])


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return F.normalize(rows, dim=-1)


SCALE_MISTAKES = _mistakes(
    "check_scaled_embedding",
    ("no-scale", lambda table, ids: table[ids],
     "These are the rows as they stand in the table. The factor is missing."),
    ("divides", lambda table, ids: table[ids] / _root(table),
     "You divide where the embedding multiplies. Dividing by a root belongs to"
     " attention, where a sum of many products has grown; here nothing was summed."),
    ("no-root", lambda table, ids: table[ids] * table.shape[1],
     "Every number is too large by the same factor, and that factor grows with the"
     " width: the root is missing, or it was applied twice."),
    ("root-of-vocabulary", lambda table, ids: table[ids] * math.sqrt(len(table)),
     "Your factor changes with the number of rows. It should depend on the length of"
     " one vector: `table.shape[1]`, not `table.shape[0]`."),
    ("root-of-sequence", lambda table, ids: table[ids] * math.sqrt(ids.shape[-1]),
     "Your factor changes with the number of tokens. A token's vector may not depend on"
     " how many others came along."),
    ("attention-scale", lambda table, ids: table[ids] * 64 ** -0.5,
     "This is the 1/√d_head of attention, with a head of 64. The embedding uses the"
     " size of the whole vector, and it multiplies."),
    ("adds-the-scale", lambda table, ids: table[ids] + _root(table),
     "You add the factor. It multiplies."),
    ("normalises-the-rows", lambda table, ids: _unit(table[ids]),
     "Every row comes out with length 1, so the table's own sizes are lost. The factor"
     " is the same for all rows."),
    ("norm-instead-of-scale", lambda table, ids: _unit(table[ids]) * _root(table),
     "Every row comes out with RMS 1: this is an RMSNorm. The factor does not look at"
     " the row; a long row stays longer than a short one."),
    ("divides-by-the-std", lambda table, ids: table[ids] / table.std(),
     "You measure the table and divide by its standard deviation. The factor comes from"
     " the width alone and does not change while the table learns."),
    ("table-made-integer",
     lambda table, ids: (table.long()[ids] * _root(table)).to(table.dtype),
     "The fractions were thrown away on the way. Look for `.long()` or `.int()`: only"
     " the ids are integers."),
    ("padding-row-zeroed",
     lambda table, ids: table[ids] * _root(table) * (ids != 0)[..., None],
     "The row of id 0 came out as zeros. Nobody said that id 0 is padding; here it is a"
     " token like the others."),
    ("counts-from-one", lambda table, ids: table[ids - 1] * _root(table),
     "The factor is right, the rows are those of the tokens before. Ids count from"
     " zero."),
    ("flattens-the-batch", lambda table, ids: table[ids.flatten()] * _root(table),
     "The batch dimension is gone. Ids [batch, seq] give vectors [batch, seq, d]."),
    ("transposed", lambda table, ids: (table[ids] * _root(table)).transpose(-1, -2),
     "The last two dimensions have changed places. Wanted is [..., d]: the vector runs"
     " along the last dimension."),
    ("other-dtype", lambda table, ids: table[ids].double() * _root(table),
     "The result is float64. An answer keeps the dtype of its table: a bfloat16 model"
     " must not turn into float64 at its first step. Look for `.double()` or numpy."),
    ("precision-lost", lambda table, ids: (table.half()[ids] * _root(table))
     .to(table.dtype),
     "The numbers are close, but they went through a 16-bit type on the way."),
    ("clamps-ids",
     lambda table, ids: table[ids.clamp(max=len(table) - 1)] * _root(table),
     "An id that is too large got the last row, in silence. A wrong id is a bug"
     " upstream (often a tokenizer with more tokens than the table has rows): let it"
     " raise."),
    ("wraps-ids", lambda table, ids: table[ids % len(table)] * _root(table),
     "An id that is too large was wrapped round to a small one, in silence. A wrong id"
     " is a bug upstream: let it raise."),
    (_CUT[0], lambda table, ids: table.detach()[ids] * _root(table), _CUT[1]),
    ("changes-its-input", lambda table, ids: table.mul_(_root(table))[ids],
     "It scales the shared table in place."),
)


# --- the scale that a half-precision model really multiplies by --------------------

def check_rounded_scale(function: Callable) -> Diagnosis:
    """Check ``f(d_model, dtype)``: sqrt(d_model) rounded once to ``dtype``, a number.

    >>> check_rounded_scale(lambda d_model, dtype: math.sqrt(d_model)).mistake
    'not-rounded'
    """
    cases = [(512, torch.bfloat16), (7168, torch.bfloat16), (3072, torch.float16),
             (363, torch.bfloat16), (2049, torch.float16), (100, torch.float32)]
    return judge(function, cases, _rounded_root, DTYPE_MISTAKES, tolerance=1e-12,
                 praise="Right: the factor is rounded once, to the dtype of the table,"
                        " so it is part of the model's definition.")


def _rounded_root(d_model: int, dtype: torch.dtype) -> float:
    return torch.tensor(math.sqrt(d_model), dtype=torch.float64).to(dtype).item()


def _truncated_root(d_model: int, dtype: torch.dtype) -> float:
    rounded = torch.tensor(_rounded_root(d_model, dtype), dtype=dtype)
    if rounded.item() <= math.sqrt(d_model):
        return rounded.item()
    return torch.nextafter(rounded, torch.zeros_like(rounded)).item()


DTYPE_MISTAKES = _mistakes(
    "check_rounded_scale",
    ("not-rounded", lambda d_model, dtype: math.sqrt(d_model),
     "This is the root at full precision. A table in a 16-bit type multiplies by the"
     " nearest number which that type has."),
    ("whole-number", lambda d_model, dtype: float(round(math.sqrt(d_model))),
     "You round to a whole number. The 16-bit types have fractions, only fewer of"
     " them."),
    ("cuts-off", _truncated_root,
     "You always round towards zero. Conversion takes the nearest number, above or"
     " below."),
    ("always-bfloat16", lambda d_model, dtype: _rounded_root(d_model, torch.bfloat16),
     "You round to bfloat16 whatever is asked. Use the dtype that was given."),
    ("always-float16", lambda d_model, dtype: _rounded_root(d_model, torch.float16),
     "You round to float16 whatever is asked. Use the dtype that was given."),
    ("rounds-the-width",
     lambda d_model, dtype: _rounded_root(
         torch.tensor(d_model).to(dtype).item(), dtype),
     "You round the width before the root is taken, and the root once more. Take the"
     " root at full precision, then round once."),
)


# --- exercise 1.3: from one convention to the other --------------------------------

def check_convert_table(function: Callable) -> Diagnosis:
    """Check ``f(table)``: T5's tied table turned into Vaswani's, the same function.

    T5 uses the rows as they are and divides the logits by sqrt(d); Vaswani multiplies
    the rows by sqrt(d) and leaves the logits alone. Wanted is [vocab, d], the table of
    the second that gives the inputs and logits of the first.

    >>> check_convert_table(lambda table: table).mistake
    'unchanged'
    """
    cases = [(_table(5, 4, 10),), (_table(7, 12, 11),),
             (_table(6, 6, 12, torch.float64),)]
    return judge(function, cases, lambda table: table / _root(table), CONVERT_MISTAKES,
                 praise="Right: both models now give the same inputs and the same"
                        " logits. They are one function, stored in two sizes.")


CONVERT_MISTAKES = _mistakes(
    "check_convert_table",
    ("unchanged", lambda table: table.clone(),
     "The table is unchanged, so the new model's inputs are √d times too large."),
    ("multiplies", lambda table: table * _root(table),
     "Wrong way round: the new model multiplies by √d itself, so its stored rows must"
     " be smaller than T5's, not larger."),
    ("no-root", lambda table: table / table.shape[1],
     "You divide by d. Try it on one row: which factor do the new model's inputs get"
     " back?"),
    ("root-of-vocabulary", lambda table: table / math.sqrt(len(table)),
     "Your factor changes with the number of rows. It should depend on the length of"
     " one vector."),
    ("normalises-the-rows", _unit,
     "Every row comes out with length 1. Then long and short rows look alike, and the"
     " model is another function."),
    ("divides-by-the-std", lambda table: table / table.std(),
     "You divide by the measured standard deviation. The two models differ by a factor"
     " that comes from the width alone."),
    ("redraws-the-table", lambda table: _table(*table.shape, 0, table.dtype) * 0.02,
     "These are new random numbers. A conversion keeps what the model has learned."),
    ("transposed", lambda table: (table / _root(table)).T,
     "The table is transposed. Both models store it as [vocab, d]."),
    ("changes-its-input", lambda table: table.div_(_root(table)),
     "It divides the given table in place."),
)


# --- tied logits -------------------------------------------------------------------

def check_tied_logits(function: Callable) -> Diagnosis:
    """Check ``f(hidden, table)``: the logits of a tied head, hidden times the rows.

    hidden [..., d], table [vocab, d]; wanted is [..., vocab], without any factor, and
    gradients that reach both.

    >>> check_tied_logits(lambda hidden, table: hidden @ table.T).status
    'right'
    """
    cases = [(_table(3, 4, 20), _table(6, 4, 21)),
             (_table(6, 8, 22).view(2, 3, 8), _table(5, 8, 23)),
             (_table(4, 4, 24, torch.float64), _table(4, 4, 25, torch.float64)),
             (_table(0, 5, 26), _table(3, 5, 27))]
    said = judge(function, cases, lambda hidden, table: hidden @ table.T,
                 LOGIT_MISTAKES,
                 praise="Right: one logit for each row of the table, a dot product"
                        " each, and the gradient reaches the shared tensor.")
    if not said:
        return said
    given = [_table(3, 4, seed).requires_grad_() for seed in (28, 29)]
    result, trouble = run_learner(partial(function, *given))
    if trouble is not None or not result.requires_grad:
        return Diagnosis("wrong", *_HEAD_CUT)
    reached = torch.autograd.grad(result.sum(), given, allow_unused=True)
    return Diagnosis("wrong", *_HEAD_CUT) if None in reached else said


_HEAD_CUT = (
    "cuts-the-gradient",
    "The numbers are right, but the head would not learn: no gradient reaches the"
    " shared table (or the hidden vectors). A copy, `.data`, `.detach()` or a new"
    " Parameter is not tied.")
LOGIT_MISTAKES = _mistakes(
    "check_tied_logits",
    ("scales-again", lambda hidden, table: hidden @ table.T * _root(table),
     "Your logits are multiplied by √d. That factor belongs to the way in only."),
    ("t5-scale", lambda hidden, table: hidden @ table.T / _root(table),
     "Your logits are divided by √d. T5 and PaLM do that, and do not multiply on the"
     " way in; this head has no factor."),
    ("transposed", lambda hidden, table: (hidden @ table.T).transpose(-1, -2),
     "The last two dimensions have changed places. Wanted is one row of logits for each"
     " hidden vector: [..., vocab]."),
    ("probabilities", lambda hidden, table: (hidden @ table.T).softmax(-1),
     "These are probabilities: they are positive and add up to 1. The head returns"
     " logits; the loss applies the softmax itself."),
    ("log-probabilities", lambda hidden, table: (hidden @ table.T).log_softmax(-1),
     "These are logarithms of probabilities. The head returns logits; the loss applies"
     " the softmax itself."),
    ("cosines", lambda hidden, table: _unit(hidden) @ _unit(table).T,
     "All your numbers lie between -1 and 1: you divide by the lengths. A logit is a"
     " dot product, and the length of a row counts."),
    ("uses-the-columns", lambda hidden, table: hidden @ table[:table.shape[1]]
     if len(table) >= table.shape[1] else hidden @ F.pad(
         table, (0, 0, 0, table.shape[1] - len(table))),
     "You multiply by the table as it stands. Each logit belongs to one row, so the"
     " table has to be transposed."),
    (_HEAD_CUT[0], lambda hidden, table: hidden @ table.detach().T, _HEAD_CUT[1]),
    ("changes-its-input", lambda hidden, table: hidden.mul_(2) @ table.T / 2,
     "It writes into the hidden vectors."),
)


# --- exercise 1.4: two paths, one gradient ------------------------------------------

def check_tied_gradient(function: Callable) -> Diagnosis:
    """Check ``f(table, token, target)``: the gradient of a tied table, [vocab, d].

    hidden = sqrt(d) * table[token]; logits = table @ hidden; the loss is the cross
    entropy with ``target`` (nats). By hand or with autograd, both are right.

    >>> check_tied_gradient(lambda table, token, target: table * 0).status
    'wrong'
    """
    def double(rows, width, seed):
        return _table(rows, width, seed, torch.float64, std=0.5)

    cases = [(double(2, 2, 30), 0, 1), (double(4, 9, 31), 2, 0),
             (double(5, 3, 32), 1, 1), (_table(6, 4, 33, std=0.5), 5, 3)]
    return judge(function, cases, tied_gradient, GRADIENT_MISTAKES,
                 praise="Right: the row of the input learns from both paths, every"
                        " other row from the head alone, and one tensor gets the sum.")


def tied_gradient(table: torch.Tensor, token: int, target: int, *, lookup: float = 1.0,
                  head: float = 1.0, chain: float | None = None) -> torch.Tensor:
    """The two paths in closed form, each with a weight: [vocab, d].

    error = softmax(logits) - one_hot(target); the head path is error x hidden; the
    lookup path adds sqrt(d) * (error @ table) to the token's row. ``chain`` replaces
    that sqrt(d), as a learner does who forgets the chain rule.
    """
    scale = _root(table)
    hidden = scale * table[token]  # [d]
    error = (table @ hidden).softmax(0)  # [vocab]
    error[target] -= 1.0
    gradient = head * torch.outer(error, hidden)  # [vocab, d]
    gradient[token] += lookup * (scale if chain is None else chain) * (error @ table)
    return gradient


def _probabilities_only(table, token, target):
    hidden = _root(table) * table[token]
    chances = (table @ hidden).softmax(0)
    gradient = torch.outer(chances, hidden)
    gradient[token] += _root(table) * (chances @ table)
    return gradient


def _unscaled(table, token, target):
    hidden = table[token]
    error = (table @ hidden).softmax(0) - F.one_hot(torch.tensor(target), len(table))
    gradient = torch.outer(error, hidden)
    gradient[token] += error @ table
    return gradient.to(table.dtype)


def _only_one_row(table, token, target):
    used = F.one_hot(torch.tensor(token), len(table)).bool()
    return tied_gradient(table, token, target) * used[:, None]


GRADIENT_MISTAKES = _mistakes(
    "check_tied_gradient",
    ("head-path-only", lambda *given: tied_gradient(*given, lookup=0.0),
     "This is the gradient of the table as a head. The same tensor was also looked up"
     " to make the hidden vector; that path adds to the row of the input token."),
    ("lookup-path-only", lambda *given: tied_gradient(*given, head=0.0),
     "This is the gradient through the lookup. The same tensor also made the logits;"
     " that path adds to every row."),
    ("average-of-the-paths", lambda *given: tied_gradient(*given, lookup=0.5, head=0.5),
     "You take the mean of the two paths. Gradients of several uses add."),
    ("difference-of-the-paths", lambda *given: tied_gradient(*given, head=-1.0),
     "You subtract one path from the other. Gradients of several uses add."),
    ("forgets-the-chain-rule", lambda *given: tied_gradient(*given, chain=1.0),
     "The lookup path lacks the factor √d: hidden is √d times the row, so the row feels"
     " √d times the gradient of hidden."),
    ("uphill", lambda *given: -tied_gradient(*given),
     "Every sign is turned round. This is the step that the optimiser will take, not"
     " the gradient."),
    ("forgets-the-target", _probabilities_only,
     "You use the probabilities themselves. The gradient of the logits is probabilities"
     " minus the one-hot target, so it adds up to zero."),
    ("no-scale", _unscaled,
     "This is the gradient of a model without √d. Here hidden is √d times the row."),
    ("only-the-token-row", _only_one_row,
     "Only the row of the input token has a gradient. As a head, the table is used"
     " whole: every row gets some, the target's most of all."),
    ("transposed", lambda *given: tied_gradient(*given).T,
     "The gradient is transposed. It has the shape of the table, [vocab, d]."),
)


# --- exercise 1.5: the echo ---------------------------------------------------------

def check_own_token_logit(function: Callable) -> Diagnosis:
    """Check ``f(d_model, init_std)``: the own token's logit at the start, a number.

    table ~ N(0, init_std²) -> × sqrt(d) -> RMSNorm -> tied head, no blocks. Within 2 %,
    so a simulation with a few rows is right too.

    >>> check_own_token_logit(lambda d_model, init_std: d_model * init_std).status
    'right'
    """
    cases = [(512, 0.02), (64, 0.05), (2048, 0.01), (300, 1.0)]
    return judge(function, cases, lambda d_model, init_std: d_model * init_std,
                 OWN_LOGIT_MISTAKES, tolerance=0.02,
                 praise="Right: the norm gives the vector the length √d, its own row"
                        " has the length std·√d, and the two point the same way.")


OWN_LOGIT_MISTAKES = _mistakes(
    "check_own_token_logit",
    ("another-tokens-logit", lambda d_model, init_std: init_std * math.sqrt(d_model),
     "This is the typical size of the other tokens' logits: sums of products with"
     " random signs grow with √d. The own row has no random signs."),
    ("forgets-the-norm", lambda d_model, init_std: init_std ** 2 * d_model ** 1.5,
     "This is the logit without the RMSNorm. The norm takes the vector's own size away,"
     " so init_std enters once, not twice."),
    ("no-norm-no-scale", lambda d_model, init_std: init_std ** 2 * d_model,
     "This is the row times itself, without factor and without norm."),
    ("forgets-the-head", lambda d_model, init_std: float(d_model),
     "This is the squared length of the normed vector. The logit is its dot product"
     " with the row as it stands in the table."),
    ("norm-twice", lambda d_model, init_std: math.sqrt(d_model),
     "You norm the row of the head to length 1 as well. The head uses the table as it"
     " is."),
    ("scale-after-norm", lambda d_model, init_std: init_std * d_model ** 1.5,
     "You multiply by √d after the norm. The factor comes before it, and the norm takes"
     " it away."),
    ("cosine", lambda d_model, init_std: 1.0,
     "This is a cosine. A logit is a dot product: multiply by both lengths."),
)
