"""The checks of lesson 03: wrong programs are named, right ones pass, tricks do not."""

import itertools
import math

import numpy as np
import pytest
import torch

from apex_lessons import rope
from apex_lessons.exercises import rope as exercises

MISTAKES = exercises.known_mistakes()
CHECKS = sorted({mistake.check for mistake in MISTAKES})


def run(name, function, **options):
    return getattr(exercises, name)(function, **options)


def turn(x, cos, sin, layout="interleaved"):
    """The formula, once more and by another road: a matrix for each pair."""
    half = x.shape[-1] // 2
    pairs = (x.unflatten(-1, (half, 2)) if layout == "interleaved"
             else x.unflatten(-1, (2, half)).transpose(-1, -2))
    matrix = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)],
                         -2)
    turned = (matrix.to(x.dtype) @ pairs.unsqueeze(-1)).squeeze(-1)
    return (turned.flatten(-2) if layout == "interleaved"
            else turned.transpose(-1, -2).flatten(-2))


def complex_numbers(x, cos, sin):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)


def repeated_tables(x, cos, sin):
    return (x * cos.repeat_interleave(2, -1)
            + rope.rotate_pairs(x) * sin.repeat_interleave(2, -1))


def half_with_chunks(x, cos, sin):
    first, second = x.chunk(2, dim=-1)
    return (x * torch.cat([cos, cos], -1)
            + torch.cat([-second, first], -1) * torch.cat([sin, sin], -1))


def slot_by_slot(x, cos, sin):
    out = torch.empty_like(x)
    for i in range(cos.shape[-1]):
        out[..., 2 * i] = x[..., 2 * i] * cos[:, i] - x[..., 2 * i + 1] * sin[:, i]
        out[..., 2 * i + 1] = x[..., 2 * i] * sin[:, i] + x[..., 2 * i + 1] * cos[:, i]
    return out


def partial_by_package(x, r, base):
    frequencies = rope.inverse_frequencies(r, base)
    cos, sin = rope.rotary_tables(torch.arange(x.shape[-2]), frequencies)
    return rope.apply_rotary(x, cos, sin)


def move_rows(weight, n_heads):
    rows = list(range(weight.shape[0]))
    d = weight.shape[0] // n_heads
    order = []
    for head in range(n_heads):
        block = rows[head * d:(head + 1) * d]
        order += block[0::2] + block[1::2]
    return weight[order]


def counted(mask, n_new):
    positions = mask.cumsum(-1) - 1
    return positions.masked_fill(mask == 0, 1)[:, -n_new:]


def counted_in_a_loop(mask, n_new):
    rows = []
    for row in mask.tolist():
        seen, places = 0, []
        for real in row:
            places.append(seen)
            seen += real
        rows.append(places[len(places) - n_new:])
    return torch.tensor(rows)


RIGHT = {
    "check_rotate_pairs": {
        "stack and flatten": rope.rotate_pairs,
        "reshape": lambda x: torch.stack([-x.reshape(*x.shape[:-1], -1, 2)[..., 1],
                                          x.reshape(*x.shape[:-1], -1, 2)[..., 0]],
                                         -1).reshape(x.shape),
        "complex": lambda x: torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * 1j).flatten(-2),
        "float64": lambda x: rope.rotate_pairs(x.double()),
    },
    "check_inverse_frequencies": {
        "float64": lambda d, base: base ** -(torch.arange(0, d, 2).double() / d),
        "float32": lambda d, base: 1.0 / (base ** (torch.arange(0, d, 2).float() / d)),
        "exponential": lambda d, base: torch.exp(
            -torch.arange(0, d, 2) * math.log(base) / d),
        "a list": lambda d,
        base: torch.tensor([base ** (-2 * i / d) for i in range(d // 2)]),
        "a parameter": lambda d,
        base: torch.nn.Parameter(rope.inverse_frequencies(d, base)),
    },
    "check_rotary_tables": {
        "the package": rope.rotary_tables,
        "float64": lambda p, w: (torch.cos(p[:, None] * w), torch.sin(p[:, None] * w)),
        "float32": lambda p, w: (torch.cos(torch.outer(p.float(), w.float())),
                                 torch.sin(torch.outer(p.float(), w.float()))),
        "einsum": lambda p, w: (torch.einsum("i,j->ij", p.double(), w).cos().float(),
                                torch.einsum("i,j->ij", p.double(), w).sin().float()),
        "a list of two": lambda p, w: [*rope.rotary_tables(p, w)],
        "polar": lambda p, w: (lambda z: (z.real, z.imag))(
            torch.polar(torch.ones(len(p), len(w)).double(), p[:, None] * w)),
    },
    "check_apply_rotary": {
        "the package": rope.apply_rotary, "matrix": turn, "complex": complex_numbers,
        "repeated tables": repeated_tables, "slot by slot": slot_by_slot,
        "float64": lambda x, cos, sin: turn(x.double(), cos.double(), sin.double()),
        "float64, cast back": lambda x, cos, sin: turn(
            x.double(), cos.double(), sin.double()).to(x.dtype),
        "with gradients": lambda x, cos, sin: turn(x.requires_grad_(), cos, sin),
    },
    "check_partial_rotary": {"the package": partial_by_package},
    "check_convert_layout": {
        "the package": lambda w, n: rope.convert_layout(w, n, to="half"),
        "row by row": move_rows,
        "view and transpose": lambda w, n: w.reshape(
            n, w.shape[0] // n // 2, 2, -1).transpose(1, 2).reshape(w.shape),
    },
    "check_decode_positions": {
        "filled with one": counted, "loop": counted_in_a_loop,
        "int32": lambda mask, n: counted(mask, n).to(torch.int32),
    },
}


@pytest.mark.parametrize("name, label", [(n, k) for n in RIGHT for k in RIGHT[n]])
def test_right_programs_pass(name, label):
    diagnosis = run(name, RIGHT[name][label])
    assert diagnosis.status == "right" and diagnosis.mistake is None, diagnosis


@pytest.mark.parametrize("program", [
    lambda x, cos, sin: turn(x, cos, sin, "half"), half_with_chunks,
    lambda x, cos, sin: rope.apply_rotary(x, cos, sin, layout="half")])
def test_right_programs_pass_in_the_half_layout(program):
    assert run("check_apply_rotary", program, layout="half").status == "right"


def test_every_check_has_right_programs_and_mistakes():
    assert sorted(RIGHT) == CHECKS
    assert all(callable(getattr(exercises, name)) for name in CHECKS)


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: f"{m.check}:{m.name}")
def test_each_known_mistake_is_called_by_its_name(mistake):
    diagnosis = run(mistake.check, mistake.function)
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", mistake.name), diagnosis
    assert len(diagnosis.message) > 40


@pytest.mark.parametrize("name, function, _", exercises._rotations("half"),
                         ids=lambda value: value if isinstance(value, str) else "")
def test_mistakes_in_the_half_layout_are_named_too(name, function, _):
    diagnosis = run("check_apply_rotary", function, layout="half")
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", name), diagnosis


@pytest.mark.parametrize("check", CHECKS)
def test_names_and_explanations_are_unique_within_a_check(check):
    rows = [mistake for mistake in MISTAKES if mistake.check == check]
    assert len({mistake.name for mistake in rows}) == len(rows)
    assert len({mistake.explanation for mistake in rows}) == len(rows)


# inputs like those of the checks, but drawn anew, to see that no two programs are alike
def fresh_inputs(check):
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(99))
    cos, sin = rope.rotary_tables(torch.arange(3, 8), rope.inverse_frequencies(8))
    mask = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]])
    return {
        "check_rotate_pairs": [(x[0, 0, :4],)],
        "check_inverse_frequencies": [(16, 50_000.0)],
        "check_rotary_tables": [(torch.tensor([0, 3, 300, 3001]),
                                 rope.inverse_frequencies(8))],
        "check_apply_rotary": [(x, cos, sin)],
        "check_partial_rotary": [(x, 4, 1e4)],
        "check_convert_layout": [(torch.arange(512.0).view(16, 32), 2)],
        "check_decode_positions": [(mask, 2), (mask, 6)],
    }[check]


def results(function, inputs):
    found = []
    for one in inputs:
        result = function(*(v.clone() if isinstance(v, torch.Tensor) else v
                            for v in one))
        parts = result if isinstance(result, tuple) else (result,)
        found += [(tuple(part.shape), part.double().flatten().tolist())
                  for part in parts]
    return found


@pytest.mark.parametrize("check", CHECKS)
def test_no_two_wrong_programs_are_alike(check):
    inputs = fresh_inputs(check)
    found = {m.name: results(m.function, inputs) for m in MISTAKES if m.check == check}
    for first, second in itertools.combinations(found, 2):
        same = all(a[0] == b[0] and np.allclose(a[1], b[1], rtol=1e-6, atol=1e-6)
                   for a, b in zip(found[first], found[second]))
        assert not same, f"{first} and {second} answer alike"


# ------------------------------------------------------------------------------ tricks
class AlwaysEqual:
    """Says yes to every comparison."""

    shape = dtype = property(lambda self: self)

    def __eq__(self, other):
        return True

    def __getattr__(self, name):
        return lambda *args, **kwargs: self


class EqualTensor(torch.Tensor):
    """A tensor that claims to be close to anything."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if "close" in function.__name__ or "eq" in function.__name__:
            return True
        return super().__torch_function__(function, types, args, kwargs or {})


def first_answers(check):
    """A right program's answer to its first call, for ever."""
    kept = []
    program = next(iter(RIGHT[check].values()))

    def remembered(*inputs):
        if not kept:
            kept.append(program(*inputs))
        return kept[0]
    return remembered


@pytest.mark.parametrize("check", CHECKS)
def test_an_object_that_equals_everything_is_refused(check):
    diagnosis = run(check, lambda *inputs: AlwaysEqual())
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", "not-a-tensor")
    posing = run(check, lambda *inputs: torch.zeros(2).as_subclass(EqualTensor))
    assert posing.status == "wrong"


@pytest.mark.parametrize("check", CHECKS)
def test_a_patched_torch_allclose_does_not_help(check, monkeypatch):
    monkeypatch.setattr(torch, "allclose", lambda *a, **k: True)
    monkeypatch.setattr(torch, "equal", lambda *a, **k: True)
    monkeypatch.setattr(torch, "isclose", lambda a, *r, **k: torch.ones_like(a).bool())
    for mistake in MISTAKES:
        if mistake.check == check and mistake.name != "changes-its-input":
            assert run(check, mistake.function).status == "wrong"


@pytest.mark.parametrize("check", CHECKS)
def test_an_answer_kept_from_the_first_call_is_refused(check):
    assert run(check, first_answers(check)).status == "wrong"


def test_a_constant_is_told_as_a_constant():
    constant = run("check_apply_rotary", lambda x, cos, sin: torch.ones(2, 3, 5, 8))
    assert constant.mistake == "constant"
    assert run("check_inverse_frequencies", lambda d,
               b: torch.ones(4)).status == "wrong"


def poisoned(program, value):
    def wrong(*inputs):
        result = program(*inputs)
        parts = [part.double().clone() for part in
                 (result if isinstance(result, (tuple, list)) else [result])]
        parts[0].view(-1)[-1] = value
        return tuple(parts) if len(parts) > 1 else parts[0]
    return wrong


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_told(check, value):
    program = next(iter(RIGHT[check].values()))
    diagnosis = run(check, poisoned(program, value))
    assert (diagnosis.status, diagnosis.mistake) == ("wrong", "not-a-number")


@pytest.mark.parametrize("check", CHECKS)
def test_one_wrong_number_is_enough(check):
    program = next(iter(RIGHT[check].values()))
    assert run(check, poisoned(program, 123.25)).status == "wrong"


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("stub", [lambda *a: None, lambda *a: ..., None, ...])
def test_stubs_are_not_attempted(check, stub):
    assert run(check, stub).status == "not attempted"


def raises(error):
    def function(*inputs):
        raise error
    return function


@pytest.mark.parametrize("check", CHECKS)
def test_exceptions_are_told_with_their_line(check):
    assert run(check, raises(NotImplementedError())).status == "not attempted"
    diagnosis = run(check, raises(ZeroDivisionError("by hand")))
    assert diagnosis.mistake == "exception" and "raise error" in diagnosis.message


def scales_in_place(x, *rest):
    x.mul_(2)
    return x


@pytest.mark.parametrize("check", ["check_rotate_pairs", "check_apply_rotary",
                                   "check_partial_rotary", "check_convert_layout",
                                   "check_decode_positions", "check_rotary_tables"])
def test_writing_into_the_input_is_named(check):
    diagnosis = run(check, scales_in_place)
    assert diagnosis.mistake == "changes-its-input"
    assert "residual stream" in diagnosis.message


# ------------------------------------------------- wrong programs outside the catalogue
def changes_position_zero(x, cos, sin):
    return turn(x, cos, sin) + torch.nn.functional.one_hot(torch.tensor(0), 5)[:, None]


def shears(x, cos, sin):
    first, second = x[..., 0::2], x[..., 1::2]
    return torch.stack([first - second * sin, second], -1).flatten(-2)


@pytest.mark.parametrize("program, mistake", [
    (changes_position_zero, "moves-position-zero"), (shears, "changes-the-norm"),
    (lambda x, cos, sin: turn(x, cos, sin)[..., :4], "wrong-shape"),
    (lambda x, cos, sin: torch.view_as_complex(x.unflatten(-1, (-1, 2))),
     "complex-result"),
    (lambda x, cos, sin: turn(x, cos, sin).tolist(), "not-a-tensor"),
    (lambda x, cos, sin: turn(x.half().float(), cos.half().float(), sin.half().float()),
     "half-precision")])
def test_unknown_rotations_get_a_property_that_fails(program, mistake):
    assert run("check_apply_rotary", program).mistake == mistake


@pytest.mark.parametrize("program, mistake", [
    (lambda mask, n: mask.cumsum(-1)[:, -n:] - 1, "negative-positions"),
    (lambda mask, n: counted(mask, n).double(), "floating-positions"),
    (lambda mask, n: counted(mask, n)[0], "wrong-shape"),
    (lambda mask, n: counted(mask, n).tolist(), "not-a-tensor")])
def test_positions_of_the_wrong_kind(program, mistake):
    assert run("check_decode_positions", program).mistake == mistake


def test_a_bias_that_stays_behind_is_named():
    def matrices_only(weight, n_heads):
        return move_rows(weight, n_heads) if weight.dim() == 2 else weight
    assert run("check_convert_layout", matrices_only).mistake == "forgets-the-bias"


def test_a_right_result_of_another_dtype_is_right_with_a_word_about_it():
    diagnosis = run("check_apply_rotary", RIGHT["check_apply_rotary"]["float64"])
    assert diagnosis.status == "right" and "float64" in diagnosis.message


def test_tolerances_hold_from_both_sides():
    def off_by(share):
        return lambda d, base: rope.inverse_frequencies(d, base) * (1 + share)
    assert run("check_inverse_frequencies", off_by(1e-6)).status == "right"
    assert run("check_inverse_frequencies", off_by(1e-4)).status == "wrong"

    def angle(share):
        return lambda p, w: rope.rotary_tables(p, w * (1 + share))
    assert run("check_rotary_tables", angle(2.0**-24)).status == "right"
    assert run("check_rotary_tables", angle(1e-5)).status == "wrong"

    def shifted(by):
        return lambda x, cos, sin: turn(x, cos, sin) + by
    assert run("check_apply_rotary", shifted(1e-7)).status == "right"
    assert run("check_apply_rotary", shifted(1e-4)).status == "wrong"


def test_messages_print_no_right_value():
    wanted = [v for d, b in ((8, 1e4), (64, 5e5), (8, 1e6), (128, 1e4))
              for v in rope.inverse_frequencies(d, b).tolist() if 0 < v < 1]
    said = " ".join(mistake.explanation for mistake in MISTAKES)
    for value in wanted:
        assert f"{value:.3g}" not in said.replace("0.01 ", ""), value


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="'interleaved' or 'half', got 'quarter'"):
        exercises.check_apply_rotary(rope.apply_rotary, layout="quarter")


def test_the_oracles_of_the_checks_agree_with_numbers_worked_by_hand():
    x = torch.tensor([[[[1.0, 0.5, 0.3, -0.2]]]])
    cos, sin = rope.rotary_tables(torch.tensor([3]), rope.inverse_frequencies(4))
    expected = [-1.060552500630379, -0.3538762402403555, 0.3058641101651954,
                -0.1909113566890488]
    half = [-1.0323284990184056, 0.5057741169149929, -0.1558777409202664,
            -0.18491225664854968]
    for layout, wanted in (("interleaved", expected), ("half", half)):
        found = exercises._turned(x.double(), cos.double(), sin.double(), layout)
        assert found.flatten().tolist() == pytest.approx(wanted, abs=1e-7)
    assert exercises._row_order(8) == [0, 2, 4, 6, 1, 3, 5, 7]
    assert exercises._inverse_order(8) == [0, 4, 1, 5, 2, 6, 3, 7]
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    assert exercises._right_positions(mask, 5).tolist() == [[0, 0, 0, 1, 2]]
