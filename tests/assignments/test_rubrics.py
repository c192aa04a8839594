"""What every program earns: the solution all, the stub nothing, a mistake its share."""

import ast
import inspect

import pytest

from apex_lessons.exercises.diagnosis import copied
from apex_lessons.grading import judge
from tests.assignments import course
from tests.assignments.course import NAMES, TASKS

SEEDS = (0, 1)
every_task = pytest.mark.parametrize(("name", "task"), TASKS,
                                     ids=[task for _, task in TASKS])
WRONG = [(name, task, wrong.name) for name, task in TASKS
         for wrong in course.task_of(name, task).wrong_answers]
every_wrong_answer = pytest.mark.parametrize(("name", "task", "wrong"), WRONG,
                                             ids=["-".join(one[1:]) for one in WRONG])


def judged(task, function, seed=0):
    return judge.judge_values(task, judge.outputs_of(task, function, seed), seed=seed)


def wrong_answer(name, task, wrong):
    return next(found for found in course.task_of(name, task).wrong_answers
                if found.name == wrong)


@every_task
@pytest.mark.parametrize("seed", SEEDS)
def test_the_solution_earns_all(name, task, seed):
    found = course.task_of(name, task)
    result = judged(found, course.solution_namespace(name)[found.function], seed)
    assert (result.status, result.points) == ("right", found.points), result


@every_task
def test_the_untouched_stub_earns_nothing(name, task):
    found = course.task_of(name, task)
    result = judged(found, course.student_namespace(name)[found.function])
    assert (result.status, result.points) == ("not attempted", 0)


@every_wrong_answer
@pytest.mark.parametrize("seed", SEEDS)
def test_a_typical_wrong_answer_earns_its_share_and_is_named(name, task, wrong, seed):
    """Named as itself and not as another: no two are confused."""
    known = wrong_answer(name, task, wrong)
    result = judged(course.task_of(name, task), known.function, seed)
    assert (result.points, result.mistake) == (known.earns, wrong)
    assert result.message == known.explanation


@every_wrong_answer
def test_a_typical_wrong_answer_does_not_pass_the_examples(name, task, wrong):
    known, found = wrong_answer(name, task, wrong), course.task_of(name, task)
    namespace = course.solution_namespace(name) | {found.function: known.function}
    checks = course.checks_of(course.notebooks(name)["student"], task)
    said = [course.said_by(check, namespace) for check in checks]
    assert any(one is not None for one in said)


@every_task
def test_every_hint_belongs_to_a_typical_wrong_answer(name, task):
    """So the marks in the examples, which are typed numbers, are right."""
    found, student = course.task_of(name, task), course.notebooks(name)["student"]
    for check in course.checks_of(student, task):
        words = set()
        for wrong in found.wrong_answers:
            own = course.solution_namespace(name) | {found.function: wrong.function}
            said = course.said_by(check, own)
            words |= {said.message} if said is not None else set()
        for hint in hints_of(check):
            assert hint in words, hint


def hints_of(check):
    """The words of an example's hints, as its cell holds them."""
    (call,) = (node.value for node in ast.parse(check.source).body)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return list(ast.literal_eval(named["hints"]).values()) if "hints" in named else []


@pytest.mark.parametrize("name", NAMES)
def test_there_are_many_typical_wrong_answers_for_every_task(name):
    tasks = course.assignment(name).tasks
    known = [wrong for task in tasks for wrong in task.wrong_answers]
    assert len(known) >= 10 and all(len(task.wrong_answers) >= 5 for task in tasks)
    for task in tasks:
        words = [wrong.explanation for wrong in task.wrong_answers]
        assert len(set(words)) == len(words)
    assert all(len(wrong.explanation) > 40 for wrong in known)


@pytest.mark.parametrize("name", NAMES)
def test_the_rubric_tells_shares_apart(name):
    """Some wrong answers earn part of the points: the lines are not all or nothing."""
    earned = {wrong.earns for task in course.assignment(name).tasks
              for wrong in task.wrong_answers}
    assert 0 in earned and len(earned) >= 3


@every_task
def test_a_program_that_ignores_an_argument_does_not_earn_all(name, task):
    """Each argument of the right program in turn keeps the value of the first input."""
    found = course.task_of(name, task)
    first = judge.cases_of(found, 0)[0][0]
    names = list(inspect.signature(found.answer).parameters)
    for argument in names:
        def careless(*values, **given):
            given |= dict(zip(names, values)) | {argument: copied(first[argument])}
            return found.answer(**given)
        assert judged(found, careless).points < found.points, argument
