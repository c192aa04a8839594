"""Words for the student: enough to go on, nothing that was hidden."""

import pytest
import torch

from apex_lessons.grading import feedback
from apex_lessons.grading.feedback import Trouble, difference, outputs_from
from apex_lessons.grading.submission import Record
from apex_lessons.grading.values import Other
from tests.grading import tiny

SOURCES = {"scale": "def scale(x, dim):\n    return rotate(x)\n"}


def outputs(answer, tmp_path, **about):
    assignment, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    record = Record(sources=SOURCES, answers={"scale/0": {0: answer}}, **about)
    return outputs_from(record, assignment.tasks[0], plan)


@pytest.mark.parametrize(("answer", "kind"), [
    ({"error": "NameError", "message": "name 'rotate' is not defined",
      "cell": "scale", "line": 2}, "NameError"),
    ({"error": "AttributeError", "message": "'23' object has no attribute '45'",
      "cell": "scale", "line": 2}, "AttributeError"),
    ({"error": "V1_2345", "message": "1.2345"}, "an exception of its own"),
    ({"error": ["V"], "cell": {}, "line": "2"}, "an exception of its own")])
def test_of_an_exception_only_the_type_is_told(tmp_path, answer, kind):
    """Its line too could be chosen to tell an input, and so could its message."""
    trouble = outputs(answer, tmp_path)[0][0]
    assert feedback.message_of(trouble) == (
        f"Your function ended with {kind}; call it in your notebook to see where.")


def test_a_function_whose_cell_went_wrong_is_not_unattempted(tmp_path):
    wrong = {"scale": "SyntaxError"}
    trouble = outputs({"undefined": True}, tmp_path, cells=wrong)[0][0]
    assert trouble.kind == "broken" and "the cell scale" in trouble.said


def test_a_cell_without_a_name_is_called_by_its_number(tmp_path):
    record = Record(sources={"cell 1": "scale = 1/0"}, cells={"cell 1": "1/0"},
                    answers={"scale/0": {0: {"undefined": True}}})
    assignment, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    said = outputs_from(record, assignment.tasks[0], plan)[0][0].said
    assert "the cell 1 did not end well" in said


def test_a_function_that_nobody_wrote(tmp_path):
    trouble = outputs({"undefined": True}, tmp_path)[0][0]
    assert trouble.kind == "undefined"
    assert trouble.said == "The function scale is nowhere defined."


def test_what_never_came_tells_why(tmp_path):
    groups = outputs({"nothing": True}, tmp_path, stopped={"scale/1": "memory"})
    assert groups[0] == [Trouble("nothing"), Trouble("stopped", "exit")]
    assert groups[1] == [Trouble("stopped", "memory")] * 2
    assert "more memory" in feedback.message_of(groups[1][0])


ONE = torch.tensor([1.5, 2.5])


@pytest.mark.parametrize(("got", "want", "words"), [
    (Other("ndarray"), ONE, "`Tensor` is wanted, `ndarray` came back."),
    (Other("X1234"), ONE, "`Tensor` is wanted, something else came back."),
    (7.25, ONE, "`float` came back"), (ONE[None], ONE, "2 axes, wanted are 1"),
    (torch.ones(3), ONE, "another shape"),
    (ONE.double(), ONE, "wanted is torch.float32"), (ONE * float("nan"), ONE, "NaN"),
    (ONE / 0, ONE, "infinity"), (ONE * 2, ONE, "numbers are"),
    (ONE > 2, ONE > 0, "numbers are"),
    ([1], [1, 2], "another length"), ([1, 3], [1, 2], "not the right one"),
    (7.25, 3.25, "The number is not the right one."),
    ("a", 3, "`int` is wanted, `str` came"), ({}, {"a": 1}, "not right"),
    (1, Trouble("exception", "ValueError"), "ValueError is wanted"),
    (Trouble("nothing"), ONE, "still to be written")])
def test_a_difference_in_words_without_numbers(got, want, words):
    said = difference(got, want)
    assert words in said
    assert "1.5" not in said and "25" not in said and "1234" not in said
