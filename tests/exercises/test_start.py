"""Checks of page 00: the tiny exercise and the two-minute questions."""

import math

import numpy
import pytest
import torch

from apex_lessons.exercises.start import (
    QUESTIONS,
    check_prerequisites,
    check_turns,
    known_mistakes,
)


@pytest.mark.parametrize("right", [
    lambda radians: radians / (2 * math.pi), lambda radians: radians / torch.pi / 2,
    lambda radians: math.degrees(radians) / 360,
    lambda radians: torch.tensor(radians, dtype=torch.float64) / math.tau,
    lambda radians: numpy.float64(radians) / math.tau])
def test_right_turns(right):
    assert check_turns(right).status == "right"


@pytest.mark.parametrize("mistake", known_mistakes(), ids=lambda mistake: mistake.name)
def test_each_mistake_is_named(mistake):
    said = check_turns(mistake.function)
    assert (said.status, said.mistake) == ("wrong", mistake.name)


def test_stub_and_nonsense():
    assert check_turns(lambda radians: ...).status == "not attempted"
    assert check_turns(lambda radians: math.nan).mistake == "nan"
    assert check_turns(lambda radians: "one").mistake == "not-a-number"


def test_all_right_answers_are_right():
    report = check_prerequisites({question.name: question.answer
                                  for question in QUESTIONS})
    assert report
    assert all(said.status == "right" for said in report.diagnoses.values())


def test_the_answers_are_what_torch_says():
    a, b = torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 0, -1])
    drawn = torch.randn(100_000, generator=torch.Generator().manual_seed(0)) * 0.02 * 10
    assert check_prerequisites({
        "dot": (a @ b).item(),
        "shape": tuple((torch.ones(5, 3) @ torch.ones(3, 2)).shape),
        "broadcast": list((torch.ones(2, 5, 4) * torch.ones(4)).shape),
        "std": round(drawn.std().item(), 2), "radians": round(math.tau / 4, 2)})


@pytest.mark.parametrize(("name", "given"), [
    ("radians", math.pi / 2), ("std", 2e-1), ("dot", torch.tensor(1)), ("dot", 1.0),
    ("shape", [5, 2]), ("shape", torch.Size([5, 2]))])
def test_other_ways_to_write_a_right_answer(name, given):
    assert check_prerequisites({name: given}).diagnoses[name].status == "right"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_each_wrong_answer_has_its_own_diagnosis(question):
    names = set()
    for answer, name, words in question.wrong:
        said = check_prerequisites({question.name: answer}).diagnoses[question.name]
        assert (said.status, said.mistake, said.message) == ("wrong", name, words)
        names.add(name)
    assert len(names) == len(question.wrong)


@pytest.mark.parametrize("given", ["", "five", float("nan"), [1, 2, 3, 4, 5], object(),
                                   -99])
def test_any_other_answer_is_wrong_with_the_rule(given):
    for question in QUESTIONS:
        said = check_prerequisites({question.name: given}).diagnoses[question.name]
        assert (said.status, said.mistake) == ("wrong", "other")
        assert said.message == question.remedy


def test_nothing_is_not_attempted():
    report = check_prerequisites({"dot": ..., "std": None})
    assert not report
    assert {said.status for said in report.diagnoses.values()} == {"not attempted"}


def test_a_misspelled_name_is_refused():
    with pytest.raises(ValueError, match="brodcast.*broadcast"):
        check_prerequisites({"brodcast": (4,)})


def test_the_report_shows_every_question():
    report = check_prerequisites({"dot": 3})
    for question in QUESTIONS:
        assert question.name in repr(report)
        assert question.name in report._repr_mimebundle_()["text/html"]
