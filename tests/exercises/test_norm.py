"""The checks of lesson 02: wrong programs are named, right ones pass, tricks do not."""

import itertools
import math

import pytest
import torch
from torch.nn.functional import layer_norm

from apex_lessons import norm
from apex_lessons.exercises import norm as exercises

CASES = {
    "check_rms_norm": exercises.rms_norm_cases(),
    "check_layer_norm": exercises.layer_norm_cases(),
    "check_epsilon_for": exercises.epsilon_cases(),
    "check_half_precision": exercises.half_precision_cases(),
    "check_gemma_weight": exercises.gemma_cases(),
}
MISTAKES = exercises.known_mistakes()


def check(name):
    return getattr(exercises, name)


def mean_square(x):
    return (x * x).mean(dim=-1, keepdim=True)


def rounded_once(x, weight, eps):
    return norm.rms_norm(x.double(), weight.double(), eps).to(x.dtype)


def unit_float32(x, eps):
    return x.float() * torch.rsqrt(mean_square(x.float()) + eps)


def llama_order(x, weight, eps):
    unit = x.float() * torch.rsqrt(mean_square(x.float()) + eps)
    return (weight * unit.to(x.dtype)).to(x.dtype)


def t5_order(x, weight, eps):
    unit = x * torch.rsqrt(mean_square(x.float()) + eps)
    return (weight * unit.to(weight.dtype)).to(x.dtype)


RIGHT = {
    "check_rms_norm": {
        "division": lambda x, w, eps: x / torch.sqrt(mean_square(x) + eps) * w,
        "rsqrt": lambda x, w, eps: w * (x * (x.pow(2).mean(-1, True) + eps).rsqrt()),
        "power of a half": lambda x, w, eps: w * x * (mean_square(x) + eps) ** -0.5,
        "sum over d": lambda x, w, eps: (
            w * x / (x.square().sum(-1, keepdim=True) / x.shape[-1] + eps).sqrt()),
        "length over root d": lambda x, w, eps: (w * x / torch.sqrt(
            (x.norm(dim=-1, keepdim=True) / x.shape[-1] ** 0.5) ** 2 + eps)),
        "float64 inside": rounded_once,
        "float32 inside": lambda x, w, eps: (
            (x.float() * torch.rsqrt(mean_square(x.float()) + eps)) * w).to(x.dtype),
        "the package": norm.rms_norm,
        "the package, weight first": lambda x, w, eps: norm.rms_norm(
            x, w, eps, order="cast-first"),
        "LayerNorm's divisor with the mean put back": lambda x, w, eps: x / torch.sqrt(
            x.var(-1, keepdim=True, unbiased=False) + x.mean(-1, keepdim=True).square()
            + eps) * w,
        "dot product": lambda x, w, eps: (x / torch.sqrt(torch.einsum(
            "...i,...i->...", x, x).unsqueeze(-1) / x.shape[-1] + eps) * w),
        "a leaf with gradients": lambda x, w, eps: norm.rms_norm(
            x.requires_grad_(), w, eps),
    },
    "check_layer_norm": {
        "torch": lambda x, eps: layer_norm(x, x.shape[-1:], eps=eps),
        "out of RMSNorm": lambda x, eps: norm.rms_norm(
            x - x.mean(-1, keepdim=True), eps=eps),
        "by hand": lambda x, eps: (x - x.mean(-1, keepdim=True)) / torch.sqrt(
            x.var(-1, keepdim=True, unbiased=False) + eps),
        "float64 inside": lambda x, eps: layer_norm(
            x.double(), x.shape[-1:], eps=eps).float(),
    },
    "check_epsilon_for": {
        "as solved": lambda r, o: r * r * (1 / (o * o) - 1),
        "as a fraction": lambda r, o: (r / o) ** 2 - r**2,
        "a tensor": lambda r, o: torch.tensor(r**2, dtype=torch.float64) * (o**-2 - 1),
        "float32": lambda r, o: torch.tensor(r) ** 2 * (1 / torch.tensor(o) ** 2 - 1),
    },
    "check_half_precision": {
        "rounded once": rounded_once,
        "Llama": llama_order,
        "T5": t5_order,
        "the package": norm.rms_norm,
        "the package, Llama": lambda x, w, eps: norm.rms_norm(
            x, w, eps, order="cast-first"),
        "float32 inside": lambda x, w, eps: (
            x.float() / (mean_square(x.float()) + eps).sqrt() * w.float()).to(x.dtype),
        "weight cast to x": lambda x, w, eps: w.to(x.dtype) * (
            x.float() * torch.rsqrt(mean_square(x.float()) + eps)).to(x.dtype),
    },
    "check_gemma_weight": {
        "rounded once": lambda x, w, eps: rounded_once(x, 1 + w.double(), eps),
        "float32 inside": lambda x, w, eps: (
            unit_float32(x, eps) * (1 + w.float())).to(x.dtype),
        "multiplied out": lambda x, w, eps: (
            unit_float32(x, eps) + unit_float32(x, eps) * w.float()).to(x.dtype),
        "the package": lambda x, w, eps: norm.rms_norm(x, w, eps, weight_offset=1.0),
    },
}


@pytest.mark.parametrize("name, variant", [
    (name, variant) for name, variants in RIGHT.items() for variant in variants])
def test_every_right_variant_passes(name, variant):
    diagnosis = check(name)(RIGHT[name][variant])
    assert diagnosis.status == "right", diagnosis
    assert diagnosis.mistake is None


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.check}:{m.name}")
def test_every_known_mistake_gets_its_own_name(mistake):
    diagnosis = check(mistake.check)(mistake.function)
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", mistake.name), diagnosis
    if mistake.name != "changes-its-input":
        assert diagnosis.message == mistake.explanation


def outcome(function, case):
    """What a wrong program gives: numbers and dtype, or the exception's type."""
    try:
        result = function(*(v.clone() if isinstance(v, torch.Tensor) else v
                            for v in case.inputs))
    except Exception as error:  # noqa: BLE001 - any program may come
        return type(error).__name__
    if isinstance(result, float):
        return [result], None
    return result.double().flatten().tolist(), result.dtype


def far_apart(one, other, case):
    if isinstance(one, str) or isinstance(other, str) or one[1] != other[1]:
        return one != other
    return any(math.isfinite(a) != math.isfinite(b)
               or abs(a - b) > 4 * (case.slack * abs(b) + case.floor)
               for a, b in zip(one[0], other[0]))


@pytest.mark.parametrize("name", CASES)
def test_no_two_mistakes_look_alike_on_the_inputs_of_the_check(name):
    mistakes = [m for m in MISTAKES
                if m.check == name and m.name != "changes-its-input"]
    results = {m.name: [outcome(m.function, case) for case in CASES[name]]
               for m in mistakes}
    assert len(results) == len(mistakes) >= 8
    for (one, a), (other, b) in itertools.combinations(results.items(), 2):
        assert any(map(far_apart, a, b, CASES[name])), (one, other)


@pytest.mark.parametrize("name", CASES)
def test_every_mistake_is_far_from_right_on_some_input(name):
    for mistake in MISTAKES:
        if mistake.check != name or mistake.name == "changes-its-input":
            continue
        results = [outcome(mistake.function, case) for case in CASES[name]]
        rights = [(case.expected.flatten().tolist(),
                   case.dtype if case.expected.dim() else None) for case in CASES[name]]
        assert any(map(far_apart, results, rights, CASES[name])), mistake.name


class EqualsEverything:
    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *a, **k: self

    def __sub__(self, other):
        return self

    def __le__(self, other):
        return True

    def __abs__(self):
        return self


class EqualTensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ in ("eq", "allclose", "equal", "le", "isclose"):
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


def shaped(x):
    return x if isinstance(x, torch.Tensor) else torch.tensor(float(x))


TRICKS = {
    "equals everything": lambda x, *rest: EqualsEverything(),
    "equal tensor": lambda x, *rest: shaped(x).as_subclass(EqualTensor),
    "constant": lambda x, *rest: torch.ones_like(shaped(x)),
    "zeros": lambda x, *rest: torch.zeros_like(shaped(x)),
    "the input": lambda x, *rest: shaped(x).clone(),
    "nan": lambda x, *rest: torch.full_like(shaped(x), math.nan),
    "inf": lambda x, *rest: torch.full_like(shaped(x), math.inf),
    "true": lambda x, *rest: True,
    "text": lambda x, *rest: "right",
    "empty": lambda x, *rest: torch.empty(0),
    "a list": lambda x, *rest: shaped(x).tolist(),
    "integers": lambda x, *rest: torch.ones_like(shaped(x), dtype=torch.long),
    "complex": lambda x, *rest: torch.ones_like(shaped(x), dtype=torch.complex64),
    "meta": lambda x, *rest: torch.empty_like(shaped(x), device="meta"),
    "flattened": lambda x, *rest: torch.ones(shaped(x).numel() + 1),
    "raises": lambda x, *rest: 1 / 0,
    "wrong arguments": lambda: 1.0,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("trick", TRICKS)
def test_tricks_are_wrong_and_do_not_crash_the_check(name, trick):
    diagnosis = check(name)(TRICKS[trick])
    assert diagnosis.status == "wrong", diagnosis
    assert diagnosis.message


def not_implemented(*inputs):
    raise NotImplementedError


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("attempt", [
    None, ..., lambda *inputs: None, lambda *inputs: ..., not_implemented])
def test_nothing_written_yet_is_not_wrong(name, attempt):
    assert check(name)(attempt).status == "not attempted"


@pytest.mark.parametrize("name", ["check_rms_norm", "check_half_precision",
                                  "check_gemma_weight", "check_layer_norm"])
def test_writing_into_x_is_named_even_where_the_numbers_are_right(name):
    right = next(iter(RIGHT[name].values()))

    def in_place(x, *rest):
        x.copy_(right(x, *rest))
        return x

    diagnosis = check(name)(in_place)
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", "changes-its-input")


def test_writing_into_the_weight_is_named_too():
    def in_place(x, weight, eps):
        weight += 1
        return norm.rms_norm(x, weight - 1, eps)

    assert exercises.check_gemma_weight(in_place).mistake == "changes-its-input"


@pytest.mark.parametrize("name", CASES)
def test_messages_tell_no_answer(name):
    """No expected number, to three digits, in any message of a wrong program."""
    answers = {f"{abs(v):.4g}" for case in CASES[name]
               for v in case.expected.flatten().tolist() if v}
    answers = {a for a in answers if len(a.replace(".", "").strip("0")) >= 3}
    programs = [m.function for m in MISTAKES if m.check == name] + list(TRICKS.values())
    for program in programs:
        message = check(name)(program).message
        assert not any(answer in message for answer in answers), message


def test_a_plain_program_is_right_and_hears_about_half_precision():
    plain = exercises.check_rms_norm(RIGHT["check_rms_norm"]["division"])
    careful = exercises.check_rms_norm(RIGHT["check_rms_norm"]["float64 inside"])
    assert plain.status == careful.status == "right"
    assert "float16" in plain.message and "float16" not in careful.message


def test_the_tolerance_lets_rounding_pass_and_the_wrong_epsilon_not():
    def with_epsilon(used):
        return lambda x, w, eps: x * torch.rsqrt(mean_square(x) + used(eps)) * w

    for used, status in [(lambda eps: eps, "right"), (lambda eps: 1.01 * eps, "wrong"),
                         (lambda eps: eps + 1e-7, "wrong")]:
        assert exercises.check_rms_norm(with_epsilon(used)).status == status


def test_an_unlisted_mistake_is_told_by_its_relation():
    doubled = exercises.check_rms_norm(lambda x, w, eps: 2 * norm.rms_norm(x, w, eps))
    assert (doubled.status, doubled.mistake) == ("wrong", "unknown")
    assert "2 times" in doubled.message
    bent = exercises.check_rms_norm(lambda x, w, eps: norm.rms_norm(x, w, eps).tanh())
    assert "between" in bent.message


def test_a_wrong_shape_and_a_wrong_dtype_are_told_as_such():
    def flat(x, w, eps):
        return norm.rms_norm(x, w, eps).flatten()

    def wide(x, w, eps):
        return norm.rms_norm(x, w, eps).double()

    assert exercises.check_rms_norm(flat).mistake == "shape"
    assert exercises.check_rms_norm(wide).mistake == "dtype"


def test_checks_do_not_need_torchs_own_rms_norm(monkeypatch):
    monkeypatch.delattr(torch.nn.functional, "rms_norm", raising=False)
    monkeypatch.delattr(torch.nn, "RMSNorm", raising=False)
    for mistake in MISTAKES:
        assert check(mistake.check)(mistake.function).mistake == mistake.name


def test_a_check_that_compares_with_patched_torch_is_not_fooled(monkeypatch):
    monkeypatch.setattr(torch, "allclose", lambda *a, **k: True)
    monkeypatch.setattr(torch, "equal", lambda *a, **k: True)
    monkeypatch.setattr(torch.testing, "assert_close", lambda *a, **k: None)
    assert exercises.check_rms_norm(lambda x, w, eps: x * w).status == "wrong"


def test_two_mistakes_at_once_are_told_one_after_the_other():
    def twice(x, w, eps):
        return norm.rms_norm(x, w, eps) * w

    def outside_and_no_weight(x, w, eps):
        return x / (mean_square(x).sqrt() + eps)

    def lost_axis_and_no_epsilon(x, w, eps):
        return x / x.pow(2).mean(-1).sqrt() * w

    assert exercises.check_rms_norm(twice).mistake == "weight"
    both = exercises.check_rms_norm(outside_and_no_weight)
    assert both.mistake == "epsilon-outside-the-root" and "Two things" in both.message
    assert "keepdim" in exercises.check_rms_norm(lost_axis_and_no_epsilon).message
