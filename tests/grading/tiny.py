"""A tiny assignment and submissions to it: two functions, four lines in the rubric."""

import json

from apex_lessons.grading import judge, master, task


def head(name, markdown=False, **label):
    """The first line of a labelled cell of the master."""
    label = {"grade": False, "grade_id": name, "locked": False, "solution": False,
             "schema_version": 3} | label
    return f"# %% {'[markdown] ' * markdown}nbgrader={json.dumps(label)}\n"


MASTER = f'''\
{head("intro", markdown=True, locked=True)}# # Tiny

{head("imports", locked=True)}import torch

{head("scale", solution=True)}def scale(x, dim):
    ### BEGIN SOLUTION
    return x * torch.tensor(dim**0.5, dtype=x.dtype)
    ### END SOLUTION

{head("scale-check", grade=True, locked=True, points=3)}\
assert scale(torch.ones(1), 4) == 2

{head("norm", solution=True)}def norm(x, eps):
    ### BEGIN SOLUTION
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
    ### END SOLUTION

{head("norm-check", grade=True, locked=True, points=4)}\
assert norm(torch.ones(2), 0.0).sum() == 2

{head("why", markdown=True, grade=True, solution=True, points=2)}# Because.
'''

HIDDEN = '''\
import torch

from apex_lessons.grading.task import Assignment, Criterion, Task, WrongAnswer, Written


def scaled(*dtypes):
    def cases(generator):
        return [{"x": torch.rand(3, generator=generator).to(dtype) + 1, "dim": dim}
                for dtype in dtypes for dim in (9, 25)]
    return cases


def rows(size, eps):
    def cases(generator):
        return [{"x": size * torch.randn(2, 5, generator=generator), "eps": eps}
                for _ in range(2)]
    return cases


def scale(x, dim):
    return x * torch.tensor(dim**0.5, dtype=x.dtype)


def norm(x, eps):
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


ASSIGNMENT = Assignment("tiny", "A tiny assignment", (
    Task("scale", "scale", (
        Criterion("the factor", 2, scaled(torch.float32)),
        Criterion("half precision", 1, scaled(torch.bfloat16))), scale, (
        WrongAnswer("no-root", lambda x, dim: x * dim, "Take the root of dim.", 0),
        WrongAnswer("float32", lambda x, dim: x.float() * dim**0.5, "Keep the dtype.",
                    2))),
    Task("norm", "norm", (Criterion("rows", 3, rows(1.0, 0.0)),
                          Criterion("a large eps", 1, rows(1.0, 0.5))), norm, (
        WrongAnswer("no-eps", lambda x, eps: norm(x, 0.0), "Where is eps?", 3),)),
), (Written("why", 2),))
'''

SCALE = "def scale(x, dim):\n    return x * torch.tensor(dim**0.5, dtype=x.dtype)\n"
NORM = ("def norm(x, eps):\n"
        "    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()\n")
STUB = "def {}:\n    raise NotImplementedError\n"


def write_assignment(folder):
    """The two files of the assignment in ``folder/tiny``; returns that folder."""
    place = folder / "tiny"
    place.mkdir()
    (place / "tiny.py").write_text(MASTER, encoding="utf-8")
    (place / "hidden.py").write_text(HIDDEN, encoding="utf-8")
    return place


def load(folder):
    """(assignment, its master's cells, plan for seed 0)."""
    assignment, cells = task.load_assignment(folder), master.read(folder)
    return assignment, cells, judge.plan_of(assignment, cells, 0)


def code(source, name=None):
    """One code cell, labelled where it has a name."""
    label = {"nbgrader": {"grade_id": name}} if name else {}
    return {"cell_type": "code", "execution_count": None, "metadata": label,
            "outputs": [], "source": source}


def text(source, name):
    return {"cell_type": "markdown", "metadata": {"nbgrader": {"grade_id": name}},
            "source": source}


def cells(scale=SCALE, norm=NORM):
    """A student's cells; ``scale`` and ``norm`` stand in the solution cells."""
    return [code("import torch", "imports"), code(scale, "scale"),
            code("assert scale(torch.ones(1), 4) == 2", "scale-check"),
            code(norm, "norm"),
            code("assert norm(torch.ones(2), 0.0).sum() == 2", "norm-check"),
            text("Because.", "why")]


def notebook(cells, **metadata):
    """The bytes of an .ipynb file."""
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4,
                       "nbformat_minor": 5}).encode("utf-8")
