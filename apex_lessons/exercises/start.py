"""Checks of page 00: a tiny exercise, and a two-minute look at what you know."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from apex_lessons.exercises.diagnosis import (
    Diagnosis,
    Mistake,
    agrees,
    judge,
    problem,
)

# --- the tiny exercise -------------------------------------------------------------


def check_turns(function: Callable) -> Diagnosis:
    """Check ``f(radians)``: how many full turns an angle is, a number.

    >>> check_turns(lambda radians: radians / math.pi).mistake
    'half-turns'
    """
    cases = [(1.0,), (-7.5,), (0.0,), (100.0,)]
    return judge(function, cases, lambda radians: radians / math.tau, TURN_MISTAKES,
                 praise="Right: one turn is two pi radians. Angles in this course are"
                        " in radians.")


TURN_MISTAKES = tuple(Mistake(name, "check_turns", function, words)
                      for name, function, words in (
    ("half-turns", lambda radians: radians / math.pi,
     "You count half turns. A full turn brings you back to where you started; how many"
     " radians is that?"),
    ("degrees", lambda radians: radians / 360,
     "You divide by the degrees of a turn, but the angle is in radians."),
    ("converts-to-degrees", lambda radians: math.degrees(radians),
     "You convert to degrees. One turn is 360 of them: one step is missing."),
    ("multiplies", lambda radians: radians * math.tau,
     "You multiply. This turns a number of turns into radians, the other way round."),
    ("whole-turns-only", lambda radians: float(math.floor(radians / math.tau)),
     "You drop the fraction. Half a turn is 0.5 turns."),
    ("rest-of-a-turn", lambda radians: radians % math.tau / math.tau,
     "You keep only the part after the last full turn. All turns count, and a negative"
     " angle gives a negative number."),
    ("no-sign", lambda radians: abs(radians) / math.tau,
     "You lose the sign. A negative angle turns the other way."),
))

# --- the two-minute check ----------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question with its right answer, and what each wrong answer shows."""

    name: str
    text: str
    answer: Any
    praise: str
    wrong: tuple[tuple[Any, str, str], ...]  # (answer, name of the mistake, words)
    remedy: str


QUESTIONS = (
    Question(
        "dot", "the dot product of (1, 2, 3) and (4, 0, -1)", 1,
        "multiply in pairs, then add.",
        ((3, "products-wrong", "1·4 + 2·0 + 3·(−1): what is 2·0?"),
         (7, "lost-the-sign", "the last product is negative."),
         (9, "added-everything", "you added all six numbers: multiply in pairs first."),
         ((4, 0, -3), "not-added", "these are the three products; now add them.")),
        "A dot product multiplies numbers in pairs and adds the products."),
    Question(
        "shape", "the shape of A @ B for A of shape (5, 3) and B of shape (3, 2)",
        (5, 2),
        "the inner sizes meet and vanish.",
        (((2, 5), "turned-round", "rows come from A, columns from B."),
         ((3, 3), "inner-sizes", "the inner sizes are summed over and vanish."),
         ((5, 3, 3, 2), "joined", "the inner sizes are summed over and vanish."),
         ((15, 6), "multiplied", "sizes are not multiplied: each entry is one dot"
          " product of a row of A and a column of B.")),
        "(n, k) @ (k, m) gives (n, m)."),
    Question(
        "broadcast", "the shape of x * w for x of shape (2, 5, 4) and w of shape (4,)",
        (2, 5, 4), "w is used again for every row.",
        (((4,), "shrunk", "nothing is summed by `*`; x keeps all its numbers."),
         ((2, 5), "summed", "`*` multiplies number by number; it does not sum."),
         ((2, 5, 4, 4), "outer", "the last sizes are equal, so they are matched, not"
          " added."),
         ("error", "refused", "it works: sizes are matched from the right.")),
        "Shapes are matched from the right; a missing size is repeated."),
    Question(
        "std", "the standard deviation of a number drawn from N(0, 0.02²), after × 10",
        0.2, "a factor goes through to the standard deviation.",
        ((0.02, "unchanged", "every number became ten times as large."),
         (2.0, "squared-factor", "100 times is right for the variance."),
         (0.04, "variance", "this is the new variance; the question is for its root."),
         (0.0004, "old-variance", "this is the old variance.")),
        "std(c·x) = |c| · std(x); the variance gets c²."),
    Question(
        "radians", "a right angle, a quarter of a turn, in radians (two decimals)",
        1.57,
        "a full turn is 2π = 6.28.",
        ((90, "degrees", "these are degrees."),
         (0.25, "turns", "these are turns."),
         (3.14, "half-a-turn", "this is half a turn."),
         (0.79, "eighth-of-a-turn", "this is an eighth of a turn.")),
        "A full turn is 2π radians."),
)


def check_prerequisites(answers: Mapping[str, Any]) -> "Report":
    """Check the answers to the five questions: a diagnosis each.

    ``answers``: the names "dot", "shape", "broadcast", "std" and "radians" with what
    the learner thinks; ``...`` or nothing is "not attempted".

    >>> check_prerequisites({"dot": 1}).diagnoses["dot"].status
    'right'
    """
    unknown = sorted(set(answers) - {question.name for question in QUESTIONS})
    if unknown:
        raise ValueError(f"no question is called {', '.join(unknown)}; the names are"
                         f" {', '.join(question.name for question in QUESTIONS)}")
    return Report({question.name: judged(question, answers.get(question.name, ...))
                   for question in QUESTIONS})


def judged(question: Question, given: Any) -> Diagnosis:
    """The diagnosis of one answer."""
    if given is None or given is ...:
        return Diagnosis("not attempted", None, f"What is {question.text}?")
    if _same(given, question.answer):
        return Diagnosis("right", None, question.praise)
    for answer, name, words in question.wrong:
        if _same(given, answer):
            return Diagnosis("wrong", name, words)
    return Diagnosis("wrong", "other", question.remedy)


def _same(given: Any, answer: Any) -> bool:
    """Equal numbers (two decimals), equal sequences of whole numbers, equal words."""
    if isinstance(answer, str):
        return isinstance(given, str) and given.strip().lower() == answer
    if isinstance(answer, tuple):
        return isinstance(given, (tuple, list)) and list(given) == list(answer)
    return problem(given, 1.0) is None and agrees(given, float(answer), 0.005)


@dataclass(frozen=True)
class Report:
    """One diagnosis a question; shows itself as a short list."""

    diagnoses: Mapping[str, Diagnosis]

    def __bool__(self) -> bool:
        return all(self.diagnoses.values())

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {said!r}" for name, said in self.diagnoses.items())

    def _repr_mimebundle_(self, include=None, exclude=None):
        boxes = "".join(
            f"<div><b>{name}</b>{said._repr_mimebundle_()['text/html']}</div>"
            for name, said in self.diagnoses.items())
        return {"text/plain": repr(self), "text/html": boxes}


def known_mistakes() -> tuple[Mistake, ...]:
    """The wrong programs of this page.

    >>> known_mistakes()[0].check
    'check_turns'
    """
    return TURN_MISTAKES
