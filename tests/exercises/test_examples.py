"""Examples: right, wrong with a hint's words, wrong without, and never silent."""

import math

import pytest
import torch

from apex_lessons.exercises.examples import (
    Unsolved,
    check_example,
    diagnosed,
    has_mark,
    mark,
    same,
)

GIVEN = {"x": torch.tensor([1.0, 2.0])}
WANTED = torch.tensor([2.0, 4.0])
HINTS = {mark(torch.tensor([4.0, 2.0])): "The order is reversed."}


def said_of(function, wanted=WANTED, hints=HINTS):
    return diagnosed(function, GIVEN, wanted, hints)


def test_a_right_answer_is_right_and_raises_nothing():
    assert check_example(lambda x: 2 * x, GIVEN, WANTED, HINTS).status == "right"


def test_a_wrong_answer_raises_so_that_a_grader_sees_it():
    with pytest.raises(Unsolved, match="The order is reversed") as caught:
        check_example(lambda x: 2 * x.flip(0), GIVEN, WANTED, HINTS)
    assert isinstance(caught.value, AssertionError)
    assert caught.value._render_traceback_() == [str(caught.value)]


def test_a_stub_is_not_attempted():
    def stub(x):
        raise NotImplementedError
    assert said_of(stub).status == "not attempted"
    assert "NotImplementedError" in said_of(stub).message
    assert said_of(lambda x: None).status == "not attempted"


@pytest.mark.parametrize(("function", "mistake"), [
    (lambda x: 6 * x, "constant-factor"),
    (lambda x: x + 5, "other"),
    (lambda x: (2 * x).double(), "dtype"),
    (lambda x: 2 * x[:1], "shape"),
    (lambda x: x / 0, "infinite"),
    (lambda x: x.mul_(2), "changes-its-input"),
    (lambda x: 1 / 0, "exception"),
    (lambda x: [2.0, 4.0], "not-a-tensor"),
])
def test_an_answer_without_a_hint_is_described(function, mistake):
    assert said_of(function).mistake == mistake


def test_a_dtype_is_named_and_no_rule_is_made_of_it():
    said = said_of(lambda x: (2 * x).double())
    assert "torch.float64, wanted is torch.float32." in said.message
    assert "keeps the dtype" not in said.message


def test_the_given_tensors_stay_for_the_next_run():
    given = {"x": torch.tensor([1.0])}
    diagnosed(lambda x: x.mul_(3), given, torch.tensor([3.0]), {})
    assert given["x"].item() == 1.0


@pytest.mark.parametrize(("answer", "words"), [
    ([torch.tensor([1.0])], "2 parts are wanted"),
    (torch.tensor([1.0]), "A list or tuple of 2 is wanted"),
    ([torch.tensor([1.0]), 3.0], r"In the result\[1\]"),
])
def test_a_part_that_differs_is_named(answer, words):
    said = diagnosed(lambda: answer, {}, (torch.tensor([1.0]), 2.0), {})
    assert words.replace("\\", "") in said.message


def test_a_dict_is_compared_key_by_key():
    wanted = {"q": torch.ones(2), "k": torch.zeros(2)}
    assert diagnosed(lambda: {"q": torch.ones(2)}, {}, wanted, {}).mistake == "parts"
    said = diagnosed(lambda: wanted | {"k": torch.ones(2)}, {}, wanted, {})
    assert "['k']" in said.message
    assert diagnosed(lambda: dict(wanted), {}, wanted, {})


def test_lists_of_words_have_hints_too():
    hints = {"": "Something is missing.", "b a": "Sort them."}
    for answer, words in (([], hints[""]), (["b", "a"], hints["b a"])):
        said = diagnosed(lambda: answer, {}, ["a", "b"], hints)
        assert said.message == words
    assert "'c' is not 'a'" in diagnosed(lambda: ["c", "b"], {}, ["a", "b"], {}).message


@pytest.mark.parametrize("value", [3, 4.5, True])
def test_numbers_that_are_no_tensors_have_marks(value):
    assert mark(value) == pytest.approx(float(value) * math.cos(1))


def test_a_mark_tells_orders_and_signs_apart():
    values = torch.tensor([1.0, -2.0, 3.5, 0.0])
    marks = {round(mark(one), 4) for one in (values, -values, values.flip(0),
                                             values.roll(1), values.sort().values)}
    assert len(marks) == 5


def test_a_mark_is_met_to_five_digits_of_the_answers_size():
    large = torch.tensor([1000.0, 1e-3])
    assert has_mark(large, round(mark(large), 1))
    assert not has_mark(large, mark(large) + 1.0)
    assert not has_mark(large, "words")


def test_same_wants_the_same_kind():
    assert not same(1.0, torch.tensor([1.0, 2.0]))
    assert not same("1.0", 1.0) and not same(None, "a") and not same({}, [])
    assert not same(torch.ones(2, dtype=torch.float64), torch.ones(2))
