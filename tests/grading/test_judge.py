"""Plain values in, points out."""

import pytest
import torch

from apex_lessons.grading import judge
from apex_lessons.grading.feedback import Trouble
from apex_lessons.grading.judge import cases_of, judge_values, outputs_of, same
from apex_lessons.grading.task import Criterion, Task
from apex_lessons.grading.values import Other
from tests.grading import tiny


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judge")
    assignment, _, _ = tiny.load(tiny.write_assignment(folder))
    return {task.name: task for task in assignment.tasks}


def test_the_right_answer_earns_all(tasks):
    for task in tasks.values():
        result = judge_values(task, outputs_of(task, task.answer, 0), seed=0)
        assert (result.status, result.points) == ("right", task.points)
        assert result.mistake is None


def test_each_typical_mistake_is_named_and_earns_what_the_rubric_says(tasks):
    for task in tasks.values():
        for wrong in task.wrong_answers:
            result = judge_values(task, outputs_of(task, wrong.function, 0), seed=0)
            assert (result.points, result.mistake) == (wrong.earns, wrong.name)
            assert result.message == wrong.explanation


def test_a_mistake_must_explain_every_answer(tasks):
    task = tasks["scale"]
    mixed = outputs_of(task, task.wrong_answers[0].function, 0)[:1]
    mixed += outputs_of(task, task.wrong_answers[1].function, 0)[1:]
    assert judge_values(task, mixed, seed=0).mistake is None


def test_one_wrong_case_costs_its_line_only(tasks):
    task = tasks["norm"]
    outputs = [list(group) for group in outputs_of(task, task.answer, 0)]
    outputs[1][1] = outputs[1][1] * 1.001
    result = judge_values(task, outputs, seed=0)
    assert (result.status, result.points) == ("partly", 3)
    assert [line.points for line in result.criteria] == [3, 0]
    assert result.criteria[1].message.startswith("Hidden input 2 of 2: ")


def test_nothing_at_all_is_not_attempted(tasks):
    task = tasks["norm"]
    result = judge_values(task, [[Trouble("nothing")] * 2] * 2, seed=0)
    assert (result.status, result.points, result.mistake) == ("not attempted", 0, None)


def test_inputs_depend_on_the_seed_alone(tasks):
    task = tasks["norm"]
    one, two, other = (cases_of.__wrapped__(task, seed) for seed in (1, 1, 2))
    assert torch.equal(one[0][0]["x"], two[0][0]["x"])
    assert not torch.equal(one[0][0]["x"], other[0][0]["x"])
    assert not torch.equal(one[0][0]["x"], one[1][0]["x"])  # each line draws its own


def test_answers_cannot_change_the_inputs(tasks):
    """A right or wrong function that writes into its input spoils no other case."""
    task = tasks["scale"]
    before = [case["x"].clone() for cases in cases_of(task, 0) for case in cases]
    outputs_of(task, lambda x, dim: x.mul_(0), 0)
    after = [case["x"] for cases in cases_of(task, 0) for case in cases]
    assert all(map(torch.equal, before, after))


def test_setup_wraps_every_function_that_is_compared():
    task = Task("t", "f", (Criterion("c", 1, lambda generator: [{"x": 2.0}]),),
                lambda x: 3 * x, setup="_f = f\ndef f(x): return [_f(x), x]\n")
    assert outputs_of(task, task.answer, 0) == [[[6.0, 2.0]]]
    assert judge_values(task, [[[6.0, 2.0]]], seed=0).points == 1
    assert judge_values(task, [[6.0]], seed=0).points == 0


def test_an_exception_can_be_the_right_answer():
    def answer(x):
        raise ValueError(x)

    task = Task("t", "f", (Criterion("c", 1, lambda generator: [{"x": 2.0}]),), answer)
    raised = Trouble("exception", "ValueError", " (cell t, line 1)")
    assert judge_values(task, [[raised]], seed=0).points == 1
    assert judge_values(task, [[Trouble("exception", "KeyError")]], seed=0).points == 0


ONE = torch.tensor([1.0, -2.0, 0.0])


@pytest.mark.parametrize(("got", "want", "agree"), [
    (ONE + 1e-7, ONE, True), (ONE + 1e-4, ONE, False), (ONE.double(), ONE, False),
    (ONE[None], ONE, False), (ONE.tolist(), ONE, False), (Other("Tensor"), ONE, False),
    (ONE / 0, ONE / 0, True), (ONE / 0, ONE, False), (ONE, ONE / 0, False),
    (torch.tensor([float("inf")]), torch.tensor([-float("inf")]), False),
    (ONE.bfloat16() * 1.004, ONE.bfloat16(), True),
    (ONE.bfloat16() * 1.05, ONE.bfloat16(), False),
    (torch.tensor([3]), torch.tensor([3]), True),
    (torch.tensor([3]), torch.tensor([4]), False),
    (ONE > 0, ONE > 0, True), (ONE > 0, ONE < 0, False), (ONE > 0, ONE, False),
    (torch.empty(0), torch.empty(0), True), (ONE.requires_grad_(), ONE.detach(), True),
    (ONE.cfloat() + 1e-9j, ONE.cfloat(), True),
    (ONE.cfloat() + 1j, ONE.cfloat(), False),
    (2.0, 2, True), (2, 2.0, True), (torch.tensor(2.0), 2.0, True), (True, 1, False),
    (1, True, False), (True, True, True), ("2", 2, False), (10**400, 2.0, False),
    (float("nan"), 2.0, False), (1 + 1j, 1.0, False), ([1, 2], (1, 2), True),
    ([1, 2], [1, 2, 3], False), ({"a": ONE}, {"a": ONE}, True), ({}, {"a": 1}, False),
    (None, None, True), ("θ", "θ", True), (torch.float32, torch.float32, True),
    (torch.float32, torch.float16, False), (Other("x"), Other("x"), False),
    (Trouble("nothing"), ONE, False)])
def test_same(got, want, agree):
    assert same(got, want) is agree


def test_a_tolerance_of_ones_own():
    assert same(ONE * 1.01, ONE, 0.1) and not same(ONE * 1.01, ONE, 0.001)
    assert same(1.01, 1.0, 0.1) and not same(1.01, 1.0)
    assert judge.same([1.01], [1.0], 0.1)
