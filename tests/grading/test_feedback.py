"""Words for the student: enough to go on, nothing that was hidden."""

import pytest
import torch

from apex_lessons.grading import feedback
from apex_lessons.grading.feedback import (Trouble, difference, known_message,
                                           outputs_from)
from apex_lessons.grading.submission import Record
from apex_lessons.grading.values import Other
from tests.grading import tiny

SOURCES = {"scale": "def scale(x, dim):\n    return rotate(x)\n"}


@pytest.mark.parametrize(("message", "shown"), [
    ("name 'rotate' is not defined", ": name 'rotate' is not defined"),
    ("name 'rotate' is not defined. Did you mean: '1.234'?",
     ": name 'rotate' is not defined"),
    ("name 'x1234' is not defined", ""), ("1.2345", ""), (None, ""), ([1], ""),
    ("'Tensor' object has no attribute 'rotate'",
     ": 'Tensor' object has no attribute 'rotate'"),
    ("'Tensor' object has no attribute 'v1234'", ""),
    ("scale() missing 1 required positional argument: 'dim'",
     ": scale() missing 1 required positional argument: 'dim'"),
    ("scale() got an unexpected keyword argument 'x'",
     ": scale() got an unexpected keyword argument 'x'")])
def test_only_messages_that_are_known_beforehand_pass(message, shown):
    assert known_message(message, SOURCES["scale"]) == shown


def outputs(answer, tmp_path, **about):
    assignment, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    record = Record(sources=SOURCES, answers={"scale/0": {0: answer}}, **about)
    return outputs_from(record, assignment.tasks[0], plan)


@pytest.mark.parametrize(("answer", "kind", "said"), [
    ({"error": "NameError", "message": "name 'rotate' is not defined",
      "cell": "scale", "line": 2},
     "NameError", "is not defined (cell scale, line 2: `return rotate(x)`)"),
    ({"error": "ValueError", "message": "1.2345", "cell": "scale", "line": 99},
     "ValueError", ""),
    ({"error": "V1_2345", "message": "1.2345"}, "an exception of its own", ""),
    ({"error": ["V"], "cell": {}, "line": "2"}, "an exception of its own", "")])
def test_exceptions_are_told_by_type_and_own_line(tmp_path, answer, kind, said):
    trouble = outputs(answer, tmp_path)[0][0]
    assert (trouble.kind, trouble.what) == ("exception", kind)
    assert said in trouble.said and "2345" not in trouble.said


def test_a_message_is_no_choice_among_many_words(tmp_path):
    """Names from elsewhere in the notebook do not pass: there could be thousands."""
    answer = {"error": "NameError", "message": "name 'return' is not defined",
              "cell": "scale", "line": 1}
    (trouble, *_), _ = outputs(answer, tmp_path)
    assert trouble.said == " (cell scale, line 1: `def scale(x, dim):`)"


def test_a_line_is_no_choice_among_thousands(monkeypatch, tmp_path):
    monkeypatch.setattr(feedback, "MOST_LINES", 1)
    answer = {"error": "NameError", "message": "name 'x' is not defined",
              "cell": "scale", "line": 2}
    (trouble, *_), _ = outputs(answer, tmp_path)
    assert trouble.said == ": name 'x' is not defined"


def test_a_function_whose_cell_went_wrong_is_not_unattempted(tmp_path):
    wrong = {"scale": "SyntaxError"}
    trouble = outputs({"undefined": True}, tmp_path, cells=wrong)[0][0]
    assert trouble.kind == "broken" and "the cell scale" in trouble.said


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
    ([1], [1, 2], "another length"), ([1, 3], [1, 2], "not the right one"),
    (7.25, 3.25, "The number is not the right one."),
    ("a", 3, "`int` is wanted, `str` came"), ({}, {"a": 1}, "not right"),
    (1, Trouble("exception", "ValueError"), "ValueError is wanted"),
    (Trouble("nothing"), ONE, "still to be written")])
def test_a_difference_in_words_without_numbers(got, want, words):
    said = difference(got, want)
    assert words in said
    assert "1.5" not in said and "25" not in said and "1234" not in said
