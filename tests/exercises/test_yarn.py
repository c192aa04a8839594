"""The checks of lesson 04 know every wrong program by name and pass every right one."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from apex_lessons.exercises import yarn as lesson
from apex_lessons.exercises import yarn_mistakes as wrong
from apex_lessons.rope import apply_rotary, inverse_frequencies

CHECKS = {name: getattr(lesson, name) for name in lesson.__all__
          if name.startswith("check_")}
MISTAKES = lesson.known_mistakes()


# Right programs


def by_pairs(head_dim, base, factor, trained_length, beta_fast, beta_slow,
             dtype=torch.float64):
    """The code of the authors, as many write it."""
    exponent = torch.arange(0, head_dim, 2, dtype=dtype) / head_dim
    extrapolated, interpolated = 1 / base**exponent, 1 / (factor * base**exponent)

    def dimension(rotations):
        return (head_dim * math.log(trained_length / (rotations * 2 * math.pi))
                / (2 * math.log(base)))
    low = max(math.floor(dimension(beta_fast)), 0)
    high = min(math.ceil(dimension(beta_slow)), head_dim - 1)
    ramp = (torch.arange(head_dim // 2, dtype=dtype) - low) / max(high - low, 0.001)
    mask = 1 - ramp.clamp(0, 1)
    return interpolated * (1 - mask) + extrapolated * mask


def by_pairs_without_torch(head_dim, base, factor, trained_length, beta_fast,
                           beta_slow):
    """The other formula of the bound: search for the pair instead of solving for it."""
    def pairs_turning_at_least(rotations):
        turns = [trained_length * base ** (-2 * i / head_dim) / (2 * math.pi)
                 for i in range(head_dim)]
        return sum(turn >= rotations for turn in turns)
    low = max(pairs_turning_at_least(beta_fast) - 1, 0)
    high = min(pairs_turning_at_least(beta_slow), head_dim - 1)
    result = []
    for i in range(head_dim // 2):
        theta = base ** (-2 * i / head_dim)
        share = min(max((i - low) / (high - low), 0), 1)
        result.append(theta + share * (theta / factor - theta))
    return result


def by_rotations(head_dim, base, factor, trained_length, beta_fast, beta_slow,
                 dtype=torch.float64):
    theta = base ** (-torch.arange(0, head_dim, 2, dtype=dtype) / head_dim)
    r = trained_length * theta / (2 * math.pi)
    gamma = ((r - beta_slow) / (beta_fast - beta_slow)).clamp(0, 1)
    return (1 - gamma) * theta / factor + gamma * theta


def by_rotations_with_branches(head_dim, base, factor, trained_length, beta, alpha):
    result = torch.empty(head_dim // 2)
    for i in range(head_dim // 2):
        theta = base ** (-2 * i / head_dim)
        r = trained_length / (2 * math.pi / theta)
        gamma = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        result[i] = (1 - gamma) * theta / factor + gamma * theta
    return result


def scores_from_tables(q, k, cos, sin, factor):
    longer = 0.1 * math.log(factor) + 1
    q, k = (apply_rotary(x, cos * longer, sin * longer) for x in (q, k))
    return q @ k.mT / q.shape[-1] ** 0.5


def scores_from_scale(q, k, cos, sin, factor):
    q, k = apply_rotary(q.float(), cos, sin), apply_rotary(k.float(), cos, sin)
    scale = (1 + math.log(factor) / 10) ** 2 / math.sqrt(q.shape[-1])
    return torch.einsum("bhqd,bhkd->bhqk", q, k) * scale


def counts(head_dim, base, factor, trained_length, beta_fast, beta_slow):
    r = trained_length * inverse_frequencies(head_dim, base) / (2 * math.pi)
    between = (r >= beta_slow) & (r <= beta_fast)
    return torch.stack(((r > beta_fast).sum(), between.sum(), (r < beta_slow).sum()))


def squeezed(positions, head_dim, base, factor, trained_length):
    return (positions / factor)[:, None] * inverse_frequencies(head_dim, base)


def slowed(positions, head_dim, base, factor, trained_length):
    return torch.outer(positions.double(), inverse_frequencies(head_dim, base) / factor)


RIGHT = [
    ("check_yarn", by_pairs), ("check_yarn", by_pairs_without_torch),
    ("check_yarn", lambda *given: by_pairs(*given, dtype=torch.float32)),
    ("check_yarn", lambda *given: by_pairs(*given, dtype=torch.float32).double()),
    ("check_yarn", lambda *given: by_pairs(*given).numpy()),
    ("check_yarn", lambda *given: by_pairs(*given).requires_grad_()),
    ("check_paper_yarn", by_rotations),
    ("check_paper_yarn", by_rotations_with_branches),
    ("check_paper_yarn", lambda *given: by_rotations(*given, dtype=torch.float32)),
    ("check_attention_factor", lambda s: 0.1 * math.log(s) + 1),
    ("check_attention_factor", lambda s: 1 + torch.tensor(s).log() / 10),
    ("check_attention_factor", lambda s: np.float64(0.1) * np.log(s) + 1),
    ("check_scaled_scores", scores_from_tables),
    ("check_scaled_scores", scores_from_scale),
    ("check_regime_counts", counts),
    ("check_regime_counts", lambda *given: tuple(int(n) for n in counts(*given))),
    ("check_position_interpolation", squeezed),
    ("check_position_interpolation", slowed),
    ("check_position_interpolation", lambda *given: squeezed(*given).float()),
]


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_right_programs_pass(number):
    check, program = RIGHT[number]
    diagnosis = CHECKS[check](program)
    assert diagnosis.status == "right" and diagnosis.mistake is None, diagnosis


# Known mistakes


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.name)
def test_every_mistake_gets_its_own_diagnosis(mistake):
    diagnosis = CHECKS[mistake.check](mistake.function)
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", mistake.name)
    assert diagnosis.message == mistake.explanation


def test_names_are_unique_and_every_check_has_mistakes():
    names = [mistake.name for mistake in MISTAKES]
    assert len(set(names)) == len(names)
    assert {mistake.check for mistake in MISTAKES} == set(CHECKS)


@pytest.mark.parametrize("inputs, checks", [
    (lesson.SETTINGS, ("check_yarn", "check_paper_yarn")),
    ([(factor,) for factor in lesson.FACTORS], ("check_attention_factor",)),
])
def test_no_two_programs_are_alike_on_the_inputs(inputs, checks):
    programs = {m.name: m.function for m in MISTAKES if m.check in checks}
    if "check_yarn" in checks:
        programs |= {"right by pairs": by_pairs, "right by rotations": by_rotations}
        for same in ("the-papers-ramp", "the-codes-ramp"):
            programs.pop(same)
    numbers = {name: torch.tensor([value for given in inputs
                                   for value in lesson._flat(f(*given))])
               for name, f in programs.items()}
    names = list(numbers)
    for at, one in enumerate(names):
        for other in names[at + 1:]:
            distance = (numbers[one] - numbers[other]).abs()
            apart = distance / numbers[other].abs().clamp(1e-12)
            assert apart.max() > 1e-3, (one, other)


def test_both_ramps_know_the_others_program():
    assert lesson.check_yarn(by_rotations).mistake == "the-papers-ramp"
    assert lesson.check_yarn(by_pairs, ramp="rotations").mistake == "the-codes-ramp"
    with pytest.raises(ValueError, match="'pair'.*'rotations'"):
        lesson.check_yarn(by_pairs, ramp="angles")


def test_a_mistake_without_a_name_is_still_explained():
    def late(head_dim, base, factor, *rest):  # right at both ends, wrong between
        good = by_pairs(head_dim, base, factor, *rest)
        plain = inverse_frequencies(head_dim, base)
        between = (good < plain * 0.99) & (good > plain / factor * 1.01)
        return torch.where(between, good * 1.005, good)

    def slow(head_dim, base, factor, *rest):
        return inverse_frequencies(head_dim, base) / (factor + 1)

    def fast(head_dim, *rest):
        return by_pairs(head_dim, *rest) * torch.linspace(0.9, 1, head_dim // 2)
    for check, program, name in (
            ("check_yarn", late, "blended-band"),
            ("check_yarn", slow, "outside-the-two-ends"),
            ("check_yarn", fast, "fast-pairs-changed"),
            ("check_attention_factor", lambda s: s**0.1, "other-growth"),
            ("check_attention_factor", lambda s: 2.0, "not-one-at-factor-one"),
            ("check_regime_counts", lambda d, *_: (1, 1, d // 2 - 2), "other-cuts"),
            ("check_regime_counts", lambda *given: (1, 2, 3), "counts-do-not-add-up"),
            ("check_position_interpolation", lambda *given: squeezed(*given) + 0.1,
             "other-angles"),
            ("check_scaled_scores", lambda *given: scores_from_tables(*given) * 3,
             "other-size"),
            ("check_scaled_scores", lambda *given: scores_from_tables(*given).mT,
             "other-scores")):
        assert CHECKS[check](program).mistake == name


# Programs that try to pass without being right


class EqualsEverything:
    """Says yes to every comparison and has the right shape and type, if asked."""

    shape, dtype, device = torch.Size([4]), torch.float64, torch.device("cpu")

    def __eq__(self, other):
        return True

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __hash__(self):
        return 0

    def __sub__(self, other):
        return self

    __rsub__ = __abs__ = __neg__ = lambda self, other=None: self

    def __bool__(self):
        return True


class TensorThatAgrees(torch.Tensor):
    """A tensor subclass that answers every torch function with True."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return True


def agreeing(*given):
    with torch._C.DisableTorchFunctionSubclass():
        return torch.zeros(4).as_subclass(TensorThatAgrees)


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("cheat", [
    lambda *given: EqualsEverything(), agreeing, lambda *given: 1.0,
    lambda *given: "right", lambda *given: torch.ones(4), lambda *given: math.nan,
    lambda *given: [math.nan] * 3, lambda *given: [True, True, True],
    lambda *given: {}, lambda *given: (torch.ones(4), 1.0),
    lambda *given: torch.full((4,), math.nan),
    lambda *given: torch.ones(2, 1, 5, 5) * math.inf,
    lambda *given: torch.empty(4, device="meta"),
    lambda *given: torch.ones(4, dtype=torch.cfloat),
    lambda *given: 1 / 0, lambda: 1.0,
], ids=range(16))
def test_nothing_else_passes(name, cheat):
    diagnosis = CHECKS[name](cheat)
    assert diagnosis.status == "wrong" and diagnosis.message


@pytest.mark.parametrize("name", CHECKS)
@pytest.mark.parametrize("stub", [lambda *given: ..., lambda *given: None, ..., None])
def test_a_stub_is_not_attempted(name, stub):
    assert CHECKS[name](stub).status == "not attempted"


@pytest.mark.parametrize("name", CHECKS)
def test_not_implemented_is_not_attempted(name):
    def stub(*given):
        raise NotImplementedError
    assert CHECKS[name](stub).status == "not attempted"


def test_half_precision_and_not_finite_are_named():
    for change, name in ((torch.Tensor.bfloat16, "half-precision"),
                         (lambda x: x * math.nan, "not-finite"),
                         (lambda x: x.repeat_interleave(2), "one-per-dimension")):
        assert lesson.check_yarn(lambda *g: change(by_pairs(*g))).mistake == name


def test_writing_into_the_inputs_is_named():
    def in_place(q, k, cos, sin, factor):
        result = scores_from_tables(q, k, cos, sin, factor)
        cos *= 0.1 * math.log(4) + 1
        return result

    def clamp(positions, head_dim, base, factor, trained_length):
        result = squeezed(positions, head_dim, base, factor, trained_length)
        positions.clamp_(max=3)
        return result
    assert lesson.check_scaled_scores(in_place).mistake == "changes-its-input"
    assert lesson.check_position_interpolation(clamp).mistake == "changes-its-input"


def test_the_setting_is_named_when_only_a_later_one_fails():
    def divides_by_zero(head_dim, base, factor, trained_length, beta_fast, beta_slow):
        good = by_pairs(head_dim, base, factor, trained_length, beta_fast, beta_slow)
        return good * ((beta_fast - beta_slow) / (beta_fast - beta_slow))
    diagnosis = lesson.check_yarn(divides_by_zero)
    assert diagnosis.mistake == "exception"
    assert "50000, 32, 4096, 1, 1" in diagnosis.message


def test_a_known_mistake_is_named_although_it_fails_on_a_later_setting():
    def swapped(head_dim, base, factor, trained_length, beta_fast, beta_slow):
        assert beta_fast > beta_slow  # fails on the last setting
        mistake = next(m for m in MISTAKES if m.name == "swapped-betas")
        return mistake.function(head_dim, base, factor, trained_length, beta_fast,
                                beta_slow)
    assert lesson.check_yarn(swapped).mistake == "swapped-betas"


def test_messages_do_not_hold_the_answer():
    """No frequency or factor of a checked setting stands in a message."""
    answers = {f"{0.1 * math.log(s) + 1:.{digits}f}" for s in lesson.FACTORS[1:]
               for digits in (2, 3, 4)}
    for setting in lesson.SETTINGS:
        answers |= {f"{value:.4g}" for value in by_pairs(*setting)[4:].tolist()}
    for mistake in MISTAKES:
        words = set(mistake.explanation.replace(",", " ").replace(".", ". ").split())
        assert not words & answers, mistake.name


def test_the_right_pieces_of_the_catalogue_are_right():
    for setting in (*lesson.SETTINGS, lesson.EQUAL_BETAS):
        head_dim, base, factor, *rest = setting
        plain = wrong.frequencies(head_dim, base)
        torch.testing.assert_close(plain, inverse_frequencies(head_dim, base))
        share = wrong.pair_share(head_dim, base, *rest)
        blended = wrong.blend(plain, factor, share)
        torch.testing.assert_close(blended, by_pairs(*setting))
