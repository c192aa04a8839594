"""The shared part of every check: calling, comparing and naming."""

import math

import pytest
import torch

from apex_lessons.exercises.diagnosis import (
    TOLERANCES,
    Diagnosis,
    Mistake,
    agrees,
    copied,
    judge,
    problem,
    run_learner,
)

DOUBLED = Mistake("added", "check_square", lambda x: x + x, "You add; multiply.")
CASES = [(2.0,), (3.0,), (-1.5,)]


def square(x):
    return x * x


class AlwaysEqual:
    """Says yes to every comparison: `==`, `allclose`, a number it is turned into."""

    def __eq__(self, other):
        return True

    def __float__(self):
        return 4.0

    def __getattr__(self, name):
        return self


class LyingTensor(torch.Tensor):
    """A tensor whose every operation claims success."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return torch.tensor(True)


# --- how a diagnosis shows itself ---------------------------------------------------

def test_only_right_is_true():
    assert Diagnosis("right", None, "Yes.")
    assert not Diagnosis("wrong", "x", "No.")
    assert not Diagnosis("not attempted", None, "Later.")


def test_text_names_status_mistake_and_message():
    assert repr(Diagnosis("wrong", "no-scale", "Missing.")) == (
        "✘ wrong [no-scale]: Missing.")
    assert repr(Diagnosis("right", None, "Yes.")) == "✔ right: Yes."


def test_html_escapes_the_message_and_marks_code():
    bundle = Diagnosis("wrong", "a<b", "x < `y` & z")._repr_mimebundle_()
    assert "x &lt; <code>y</code> &amp; z" in bundle["text/html"]
    assert "a&lt;b" in bundle["text/html"]
    assert "a<b" not in bundle["text/html"]
    assert bundle["text/plain"].startswith("✘ wrong")


# --- calling a learner's function ---------------------------------------------------

def raises_not_implemented(x):
    raise NotImplementedError


@pytest.mark.parametrize("function", [
    None, ..., NotImplemented, lambda x: None, lambda x: ..., lambda x: NotImplemented,
    raises_not_implemented])
def test_not_attempted(function):
    result, trouble = run_learner(function, 1.0)
    assert result is None
    assert trouble.status == "not attempted"
    assert trouble.mistake is None
    assert "return" in trouble.message


@pytest.mark.parametrize("value", [3, "text", torch.ones(2), [1]])
def test_not_a_function(value):
    _, trouble = run_learner(value, 1.0)
    assert (trouble.status, trouble.mistake) == ("wrong", "not-a-function")
    assert type(value).__name__ in trouble.message


def divides_by_zero(x):
    wanted = x / 0
    return wanted


def test_an_exception_comes_with_the_learners_own_line():
    _, trouble = run_learner(divides_by_zero, 1.0)
    assert (trouble.status, trouble.mistake) == ("wrong", "exception")
    assert "ZeroDivisionError" in trouble.message
    assert "wanted = x / 0" in trouble.message


def uses_a_library_wrongly(x):
    return torch.nn.functional.layer_norm(x, (99,))


def test_an_exception_inside_a_library_names_the_learners_line_not_the_librarys():
    _, trouble = run_learner(uses_a_library_wrongly, torch.ones(3))
    assert "layer_norm(x, (99,))" in trouble.message
    assert "functional.py" not in trouble.message


def test_leaving_the_program_is_an_exception_too():
    def leaves(x):
        raise SystemExit(3)

    _, trouble = run_learner(leaves, 1.0)
    assert trouble.mistake == "exception"


def test_wrong_number_of_arguments_is_told():
    _, trouble = run_learner(lambda: 1, 1.0)
    assert trouble.mistake == "exception"
    assert "TypeError" in trouble.message


def test_the_caller_can_still_interrupt():
    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_learner(interrupted, 1.0)


@pytest.mark.parametrize("change", [
    lambda x: x.mul_(2), lambda x: x.t_(), lambda x: x.resize_(1),
    lambda x: x[0].fill_(5), lambda x: x.fill_(math.nan)])
def test_in_place_changes_are_named_and_do_not_reach_us(change):
    given = torch.arange(6.0).reshape(2, 3)
    before = given.clone()
    _, trouble = run_learner(lambda x: change(x) + 0, given)
    assert trouble.mistake == "changes-its-input"
    assert torch.equal(given, before)


@pytest.mark.parametrize("given", [
    torch.tensor([1, 2, 3]), torch.tensor([True, False]), torch.zeros(0),
    torch.tensor([math.nan, math.inf, 1.0])])
def test_reading_any_kind_of_tensor_is_no_change(given):
    result, trouble = run_learner(lambda x: x.clone(), given)
    assert trouble is None
    assert result.dtype == given.dtype


def test_changes_inside_lists_dicts_and_keywords_are_seen():
    for call in ({"inputs": ([torch.ones(2)],)}, {"inputs": ({"a": torch.ones(2)},)}):
        (container,) = call["inputs"]
        key = 0 if isinstance(container, list) else "a"
        _, trouble = run_learner(lambda c, key=key: c[key].add_(1), container)
        assert trouble.mistake == "changes-its-input"
    _, trouble = run_learner(lambda *, x: x.add_(1), x=torch.ones(2))
    assert trouble.mistake == "changes-its-input"


def test_a_copy_keeps_what_matters_and_shares_nothing():
    original = torch.ones(2, dtype=torch.float64, requires_grad=True)
    copy = copied(original)
    assert copy.requires_grad and copy.is_leaf and copy.dtype == torch.float64
    assert copy.data_ptr() != original.data_ptr()
    assert copied("text") == "text"


# --- comparing ----------------------------------------------------------------------

@pytest.mark.parametrize("dtype", list(TOLERANCES))
def test_tolerance_accepts_a_rounding_and_rejects_eight(dtype):
    right = torch.tensor([1.0, -3.0, 100.0], dtype=dtype)
    step = torch.finfo(dtype).eps
    assert agrees((right.double() * (1 + step / 2)).to(dtype), right)
    far = max(8 * step, 8 * TOLERANCES[dtype])
    assert not agrees((right.double() * (1 + far)).to(dtype), right)


def test_two_right_formulas_agree_and_a_wrong_epsilon_does_not():
    """AS-10: x * rsqrt against x / sqrt, and eps 1e-5 instead of 1e-6 at RMS 0.01."""
    x = torch.full((4,), 0.01)
    mean = x.pow(2).mean()
    right = x / (mean + 1e-6).sqrt()
    assert agrees(x * (mean + 1e-6).rsqrt(), right)
    assert not agrees(x / (mean + 1e-5).sqrt(), right)


def test_type_shape_and_dtype_must_agree():
    right = torch.ones(2, 3)
    assert problem(torch.ones(3, 2), right).mistake == "shape"
    assert problem(torch.ones(2, 3).double(), right).mistake == "dtype"
    assert problem([[1.0] * 3] * 2, right).mistake == "not-a-tensor"
    assert problem(torch.nn.Parameter(torch.ones(2, 3)), right) is None
    assert problem("one", 1.0).mistake == "not-a-number"
    assert problem(True, 1.0).mistake == "not-a-number"
    assert problem(torch.tensor(1.0), 1.0) is None


@pytest.mark.parametrize(("value", "name"), [(math.nan, "nan"), (math.inf, "infinite")])
def test_nan_and_infinity_are_named(value, name):
    assert problem(torch.tensor([1.0, value]), torch.ones(2)).mistake == name
    assert problem(value, 1.0).mistake == name
    assert not agrees(torch.tensor([1.0, value]), torch.ones(2))


@pytest.mark.parametrize("fraud", [
    AlwaysEqual(), torch.ones(2).as_subclass(LyingTensor), torch.zeros(2), 1.0, None])
def test_frauds_do_not_agree(fraud):
    assert not agrees(fraud, torch.ones(2))


def test_a_patched_library_does_not_help(monkeypatch):
    for name in ("allclose", "equal", "isclose"):
        monkeypatch.setattr(torch, name, lambda *a, **k: True)
    assert not agrees(torch.zeros(2), torch.ones(2))


# --- naming -------------------------------------------------------------------------

def test_right_known_and_unknown_answers():
    assert judge(square, CASES, square, [DOUBLED]).status == "right"
    named = judge(lambda x: 2 * x, CASES, square, [DOUBLED])
    assert (named.status, named.mistake) == ("wrong", "added")
    assert named.message == DOUBLED.explanation
    assert judge(lambda x: x ** 3, CASES, square, [DOUBLED]).mistake == "other"
    assert judge(lambda x: 3 * x * x, CASES, square, [DOUBLED]).mistake == (
        "constant-factor")
    assert judge(lambda x: ..., CASES, square, [DOUBLED]).status == "not attempted"


def test_a_mistake_is_named_only_if_it_explains_every_answer():
    """2 + 2 is 2 * 2: one input alone cannot show the difference."""
    said = judge(lambda x: x + x if x == 2.0 else 7.0, CASES, square, [DOUBLED])
    assert said.mistake == "other"


def test_a_mistake_that_raises_explains_nothing():
    broken = Mistake("broken", "check_square", divides_by_zero, "never")
    assert judge(lambda x: x ** 3, CASES, square, [broken]).mistake == "other"


def test_messages_do_not_contain_the_answer():
    """AS-05: relation and size of the error, never the number itself."""
    secret = 123.456
    for wrong in (0.0, 1.0, 2 * secret, -secret):
        said = judge(lambda x, wrong=wrong: wrong, [(1.0,)], lambda x: secret, [])
        assert said.status == "wrong"
        assert "123" not in said.message


def test_the_first_input_that_differs_is_named():
    said = judge(lambda x: 9.0 if x == 3.0 else x * x + (x < 0), CASES, square, [])
    assert "input 3 of 3" in said.message


def test_a_factor_that_changes_with_the_input_is_described_as_such():
    cases = [(torch.arange(1.0, n),) for n in (3, 5, 9)]

    def right(x):
        return x * 2

    said = judge(lambda x: x * len(x), cases, right, [])
    assert said.mistake == "varying-factor"
    assert judge(lambda x: x * 3, cases, right, []).mistake == "constant-factor"
    assert judge(lambda x: x * x, cases, right, []).mistake == "other"
