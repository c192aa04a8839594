"""Checks of lesson 01: right variants pass, known mistakes are named, tricks fail."""

import math
import re

import pytest
import torch
from torch.nn import functional as F

from apex_lessons.exercises import embedding as exercises
from apex_lessons.exercises.embedding import (
    check_convert_table,
    check_one_hot_lookup,
    check_own_token_logit,
    check_rounded_scale,
    check_scaled_embedding,
    check_tied_gradient,
    check_tied_logits,
    known_mistakes,
    tied_gradient,
)

CHECKS = {check.__name__: check for check in (
    check_convert_table, check_one_hot_lookup, check_own_token_logit,
    check_rounded_scale, check_scaled_embedding, check_tied_gradient,
    check_tied_logits)}


def one_hot(table, ids):
    return F.one_hot(ids, len(table)).to(table.dtype)


def with_autograd(table, token, target):
    weight = table.detach().clone().requires_grad_()
    logits = weight @ (weight[token] * math.sqrt(weight.shape[1]))
    F.cross_entropy(logits[None], torch.tensor([target])).backward()
    return weight.grad


def gathered(table, ids):
    flat = ids.reshape(-1, 1).expand(-1, table.shape[1])
    return table.gather(0, flat).view(*ids.shape, -1)


def simulated(d_model, init_std):
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(400, d_model, generator=generator) * init_std
    hidden = rows * math.sqrt(d_model)
    hidden = hidden / (hidden.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    return (hidden * rows).sum(-1).mean().item()


ROOT = {
    "math": lambda table: math.sqrt(table.shape[1]),
    "power": lambda table: table.size(-1) ** 0.5,
    "tensor in the table's dtype": lambda table: torch.tensor(
        table.shape[1], dtype=table.dtype).sqrt(),
    "rounded as Gemma does": lambda table: torch.tensor(
        math.sqrt(table.shape[1]), dtype=table.dtype),
}
RIGHT = [
    (check_one_hot_lookup, "product", lambda t, i: one_hot(t, i) @ t),
    (check_one_hot_lookup, "indexing", lambda t, i: t[i]),
    (check_one_hot_lookup, "F.embedding", lambda t, i: F.embedding(i, t)),
    (check_one_hot_lookup, "einsum", lambda t, i: torch.einsum(
        "...v,vd->...d", one_hot(t, i), t)),
    *[(check_scaled_embedding, name, lambda t, i, root=root: t[i] * root(t))
      for name, root in ROOT.items()],
    (check_scaled_embedding, "F.embedding", lambda t, i: F.embedding(
        i, t) * t.size(1) ** 0.5),
    (check_scaled_embedding, "one-hot", lambda t, i: one_hot(
        t, i) @ t * t.size(1) ** 0.5),
    (check_scaled_embedding, "index_select", lambda t, i: t.index_select(
        0, i.flatten()).view(*i.shape, -1) * t.size(1) ** 0.5),
    (check_scaled_embedding, "gather", lambda t, i: gathered(t, i) * t.size(1) ** 0.5),
    (check_scaled_embedding, "scaled copy first", lambda t, i: (
        t * t.size(1) ** 0.5)[i]),
    (check_scaled_embedding, "float64 inside", lambda t, i: (
        t.double()[i] * t.size(1) ** 0.5).to(t.dtype)),
    (check_scaled_embedding, "float32 inside", lambda t, i: t[i] * t.size(1) ** 0.5
     if t.dtype == torch.float64 else (t.float()[i] * t.size(1) ** 0.5).to(t.dtype)),
    (check_scaled_embedding, "one-hot in float32", lambda t, i: F.one_hot(
        i, len(t)).float() @ t * t.size(1) ** 0.5),
    (check_one_hot_lookup, "one-hot in float32", lambda t, i: F.one_hot(
        i, len(t)).float() @ t),
    (check_scaled_embedding, "dividing by 1/√d", lambda t, i: t[i] / t.size(1) ** -0.5),
    (check_rounded_scale, "round once", lambda d, dtype: torch.tensor(
        d, dtype=torch.float64).sqrt().to(dtype).item()),
    (check_rounded_scale, "a 0-dimensional tensor", lambda d, dtype: torch.tensor(
        math.sqrt(d), dtype=dtype)),
    (check_convert_table, "divide", lambda t: t / math.sqrt(t.shape[1])),
    (check_convert_table, "multiply", lambda t: t * t.shape[1] ** -0.5),
    (check_convert_table, "float64 inside", lambda t: (
        t.double() / t.shape[1] ** 0.5).to(t.dtype)),
    (check_tied_logits, "product", lambda h, t: h @ t.T),
    (check_tied_logits, "F.linear", F.linear),
    (check_tied_logits, "einsum", lambda h, t: torch.einsum("...d,vd->...v", h, t)),
    (check_tied_gradient, "by hand", tied_gradient),
    (check_tied_gradient, "autograd", with_autograd),
    (check_own_token_logit, "formula", lambda d, std: d * std),
    (check_own_token_logit, "lengths", lambda d, std: math.sqrt(d) * (std * d ** 0.5)),
    (check_own_token_logit, "simulation", simulated),
]


@pytest.mark.parametrize(("check", "name", "function"), RIGHT,
                         ids=[f"{c.__name__[6:]}-{n}" for c, n, _ in RIGHT])
def test_right_variants_pass(check, name, function):
    said = check(function)
    assert said.status == "right", said
    assert said.mistake is None


@pytest.mark.parametrize("mistake", known_mistakes(),
                         ids=lambda mistake: f"{mistake.check[6:]}-{mistake.name}")
def test_each_known_mistake_gets_its_own_diagnosis(mistake):
    """So no two are alike on the inputs of their check: the first would take both."""
    said = CHECKS[mistake.check](mistake.function)
    assert said.status == "wrong"
    assert said.mistake == mistake.name
    if mistake.name != "changes-its-input":
        assert said.message == mistake.explanation


def test_names_are_unique_and_each_check_knows_several():
    names = [(mistake.check, mistake.name) for mistake in known_mistakes()]
    assert len(set(names)) == len(names)
    for check in CHECKS:
        assert sum(name[0] == check for name in names) >= 5, check
    assert len([n for n in names if n[0] == "check_scaled_embedding"]) >= 20


class AlwaysEqual:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return self

    def __call__(self, *args, **kwargs):
        return self


TRICKS = {
    "always equal": lambda *given: AlwaysEqual(),
    "a constant": lambda *given: 1.0,
    "zeros": lambda *given: torch.zeros(3, 4),
    "a list": lambda *given: [1.0],
    "text": lambda *given: "right",
    "its input": lambda *given: given[0],
    "nan": lambda *given: torch.full((4, 7), math.nan),
    "nan number": lambda *given: math.nan,
    "an error": lambda *given: 1 / 0,
    "a generator": lambda *given: (x for x in given),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_tricks_are_wrong_and_do_not_break_the_check(check, trick):
    said = check(trick)
    assert said.status == "wrong"
    assert said.mistake


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("stub", [
    lambda *given: None, lambda *given: ..., None, ...,
    lambda *given: (_ for _ in ()).throw(NotImplementedError)])
def test_stubs_are_not_attempted(check, stub):
    """AS-08: an untouched page passes no check."""
    assert check(stub).status == "not attempted"


def test_nan_in_one_place_is_named():
    def one_nan(table, ids):
        result = table[ids] * table.shape[1] ** 0.5
        return torch.where(torch.arange(table.shape[1]) == 0, math.nan, result).to(
            table.dtype)

    assert check_scaled_embedding(one_nan).mistake == "nan"


def test_in_place_on_the_ids_is_seen_too():
    def shifts(table, ids):
        ids += 1
        return table[ids - 1] * table.shape[1] ** 0.5

    assert check_scaled_embedding(shifts).mistake == "changes-its-input"


def test_a_program_that_raises_in_another_dtype_is_right_with_a_remark():
    said = check_one_hot_lookup(lambda t, i: F.one_hot(i, len(t)).float() @ t)
    assert said
    assert ".to(table.dtype)" in said.message
    assert ".to(table.dtype)" not in check_one_hot_lookup(lambda t, i: t[i]).message


def test_a_gradient_that_arrives_elsewhere_is_seen():
    def leaky(table, ids):
        rows = table[ids] * table.shape[1] ** 0.5
        return rows + 0.0 * rows + (table.sum() - table.sum().detach())

    assert check_scaled_embedding(leaky).mistake == "gradient-elsewhere"


@pytest.mark.parametrize("cut", [
    lambda t, i: t.data[i] * t.size(1) ** 0.5,
    lambda t, i: torch.tensor((t[i] * t.size(1) ** 0.5).tolist(), dtype=t.dtype).view(
        *i.shape, -1) if i.numel() else t[i],
    lambda t, i: torch.from_numpy(t.numpy()[i.numpy()]) * t.size(1) ** 0.5,
    lambda t, i: torch.nn.Embedding.from_pretrained(t)(i) * t.size(1) ** 0.5])
def test_ways_to_cut_the_gradient(cut):
    assert check_scaled_embedding(cut).mistake == "cuts-the-gradient"


@pytest.mark.parametrize("silent", [
    lambda t, i: torch.where((i < len(t))[..., None], t[i.clamp(max=len(t) - 1)], 0.0)
    * t.size(1) ** 0.5])
def test_answers_for_unknown_ids_are_wrong(silent):
    said = check_scaled_embedding(silent)
    assert (said.status, said.mistake) == ("wrong", "silent-out-of-range")


def test_another_librarys_scales_are_refused():
    """EMB-02 and E05: division, and T5's way in, are not this convention."""
    divided = check_scaled_embedding(lambda t, i: t[i] / t.size(1) ** 0.5)
    assert divided.mistake == "divides"
    assert check_scaled_embedding(lambda t, i: t[i]).mistake == "no-scale"
    divided = check_tied_logits(lambda h, t: h @ t.T / t.size(1) ** 0.5)
    assert divided.mistake == "t5-scale"


def test_dtype_must_be_kept():
    """EMB-04: no silent upcast of a 16-bit table."""
    said = check_scaled_embedding(
        lambda t, i: t[i] * torch.tensor([t.shape[1]], dtype=torch.float64).sqrt())
    assert said.mistake == "other-dtype"


def test_the_scale_of_half_types():
    """EMB-04: exact, bfloat16 and float16 values of √d."""
    rounded = exercises._rounded_root
    assert [rounded(d, torch.bfloat16) for d in (512, 768, 3072, 7168)] == [
        22.625, 27.75, 55.5, 84.5]
    assert [rounded(d, torch.float16) for d in (512, 768, 3072, 7168)] == [
        22.625, 27.71875, 55.4375, 84.6875]


def test_the_closed_form_of_the_tied_gradient():
    """TIE-09: W = I, scale √2, token 0, target 1."""
    found = tied_gradient(torch.eye(2, dtype=torch.float64), 0, 1)
    p0 = math.exp(math.sqrt(2)) / (1 + math.exp(math.sqrt(2)))
    root = math.sqrt(2)
    right = torch.tensor([[2 * root * p0, -root * p0], [-root * p0, 0.0]]).double()
    assert torch.allclose(found, torch.tensor(
        [[2.2752707339536427, -1.1376353669768213], [-1.1376353669768213, 0.0]],
        dtype=torch.float64), atol=1e-12)
    assert torch.allclose(found, right, atol=1e-7)


@pytest.mark.parametrize(("d_model", "std", "right"), [
    (512, 0.02, 10.24), (7168, 0.02, 143.36), (512, 1.0, 512.0)])
def test_the_own_tokens_logit(d_model, std, right):
    """TIE-12: d·σ, in the formula of the solution and in a simulation."""
    assert math.isclose(d_model * std, right)
    assert math.isclose(simulated(d_model, std), right, rel_tol=0.02)


def test_messages_never_print_the_answer():
    """AS-05: no diagnosis contains a number that the check's answers contain."""
    for mistake in known_mistakes():
        said = CHECKS[mistake.check](mistake.function)
        assert not re.search(r"\d\.\d{2,}", said.message), said


def test_constant_factors_are_described_by_their_ratio():
    said = check_scaled_embedding(lambda t, i: 3.0 * t[i] * t.size(1) ** 0.5)
    assert said.mistake == "constant-factor"
    assert "3 times" in said.message
