"""``grade``: all submissions of a class, in a sandbox, with one command."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from apex_lessons import cli

HELP = "grade a folder of submitted notebooks (for teachers)"
EPILOG = """SUBMISSIONS may be laid out as nbgrader collects them
(submitted/<student>/<assignment>/*.ipynb), with one folder for each student, or as
files <student>.ipynb. OUT then holds grades.csv, overview.html, written.html,
students/<student>.html (what a student may see) and results/<student>.json. The same
command again grades only what is new or changed, also after a crash.

A submission is a stranger's program: it runs in a bubblewrap sandbox without network.
Exit status: 0 all is graded; 2 refused, or some could not be graded (run it again)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``grade``."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("assignment", help="the name of one of the course's"
                        " assignments, or a folder with one")
    parser.add_argument("submissions", type=_path, help="the folder with the"
                        " submissions")
    parser.add_argument("--out", required=True, type=_path, help="the folder for the"
                        " results")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=_whole, default=0, metavar="N",
                       help="submissions at once (default: one for each core)")
    where.add_argument("--scheduler", default="", metavar="ADDRESS",
                       help="a Dask scheduler, such as tcp://host:8786")
    parser.add_argument("--seed", type=int, default=0, help="of the hidden inputs")
    parser.add_argument("--time-limit", type=_seconds, default=60.0, metavar="S",
                        help="seconds of processor time for a submission (default 60);"
                        " one cell, or one line of the rubric, gets a sixth")
    parser.add_argument("--memory-limit", type=_whole, default=2000, metavar="MB",
                        help="memory for a submission (default 2000)")
    parser.add_argument("--unsafe-without-sandbox", action="store_true",
                        help="grade with process limits alone: a submission can then"
                        " read and write whatever you can")


def run(arguments: argparse.Namespace) -> int:
    """Grade a class; returns the exit status."""
    from apex_lessons.grading.classroom import Class, Settings
    from apex_lessons.grading.sandbox import Limits
    from apex_lessons.models.report import clean

    settings = Settings(
        arguments.seed, Limits(arguments.time_limit, arguments.memory_limit),
        arguments.workers, arguments.scheduler, arguments.unsafe_without_sandbox)
    if settings.unsafe:
        cli.warn("no sandbox: the submissions run with your own rights")
    print(f"Preparing {clean(arguments.assignment, 60)}: hidden inputs, submissions",
          file=sys.stderr, flush=True)
    group = Class(folder_of(arguments.assignment), arguments.submissions,
                  arguments.out, settings)
    began = time.monotonic()
    results = with_progress(group)
    return report(results, group, time.monotonic() - began)


def folder_of(assignment: str) -> Path:
    """The folder of an assignment that is given by name or by path."""
    from apex_lessons.grading.task import HIDDEN

    course = Path(__file__).resolve().parents[2] / "assignments"
    for folder in (Path(assignment), course / assignment):
        if (folder / HIDDEN).is_file():
            return folder
    names = sorted(path.parent.name for path in course.glob(f"*/{HIDDEN}"))
    raise ValueError(f"{assignment!r} is no assignment. Give one of"
                     f" {', '.join(names) or '(none is here)'} or a folder with"
                     f" {HIDDEN}")


def with_progress(group) -> list[dict]:
    """Grade under a progress bar on standard error."""
    from rich.console import Console
    from rich.progress import (BarColumn, MofNCompleteColumn, Progress, TextColumn,
                               TimeRemainingColumn)

    columns = TextColumn("Grading"), BarColumn(), MofNCompleteColumn(), \
        TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("", total=len(group.submissions))
        return group.grade(lambda: progress.advance(bar))


def report(results: list[dict], group, seconds: float) -> int:
    """Say on standard output what came out; returns the exit status."""
    from apex_lessons.models.report import clean

    states: dict[str, int] = {}
    for one in results:
        states[one["status"]] = states.get(one["status"], 0) + 1
        if one["status"] != "graded":
            print(f"{clean(one['student'], 60)}: {clean(one['status'])}."
                  f" {clean(one['reason'], 300)}")
    print(f"{len(results)} submissions in {seconds:.1f} s: "
          + ", ".join(f"{count} {state}" for state, count in sorted(states.items())))
    print(f"The class at a glance: {group.out / 'overview.html'}")
    sys.stdout.flush()
    return cli.REFUSED if "not graded" in states else cli.OK


def _path(text: str) -> Path:
    if not text:  # `make grade` without its folders
        raise argparse.ArgumentTypeError("a folder is needed")
    return Path(text)


def _whole(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 10**6:
        raise argparse.ArgumentTypeError("a whole number is needed, 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError("a number of seconds is needed, 1 to 86400")
    return seconds
