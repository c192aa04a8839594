"""A class: every submission of a folder graded, its results and pages written.

``OUT/results/<student>.json`` holds all about one student, for the teacher;
``OUT/students/<student>.html`` is the feedback, without anything hidden;
``grades.csv`` and ``overview.html`` are about the class, ``written.html`` shows the
answers to the written questions. A result that is there already and was made from the
same submission, assignment, settings and program is taken as it is, so that grading
goes on after a crash where it stopped.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from apex_lessons.exercises import diagnosis
from apex_lessons.grading import collected, engines, feedback, judge, master, pages
from apex_lessons.grading import sandbox, store
from apex_lessons.grading.collected import Refused, Submission
from apex_lessons.grading.sandbox import Limits
from apex_lessons.grading.submission import Record, run_submission
from apex_lessons.grading.task import HIDDEN, Assignment, load_assignment

GRADED, NOTHING, UNREADABLE, FAILED = ("graded", "nothing handed in", "unreadable",
                                       "not graded")


@dataclass(frozen=True)
class Settings:
    """How a class is graded."""

    seed: int = 0
    limits: Limits = Limits()
    workers: int = 0  # 0: as many as there are cores
    scheduler: str = ""  # a Dask scheduler's address; "": this machine alone
    unsafe: bool = False  # without a sandbox, limits alone


class Class:
    """One assignment, one folder of submissions, one folder for the results."""

    def __init__(self, assignment: Path, submissions: Path, out: Path,
                 settings: Settings):
        folder, submissions, self.out = (
            Path(os.path.realpath(one)) for one in (assignment, submissions, out))
        self.settings = settings
        self.assignment: Assignment = load_assignment(folder)
        self.plan = judge.plan_of(self.assignment, master.read(folder), settings.seed)
        self.submissions = collected.find(submissions, folder.name, self.out)
        store.check_names([one.student for one in self.submissions])
        self.hidden_places = folder, submissions, self.out
        self.basis = [_program(), (folder / HIDDEN).read_bytes(),
                      (folder / f"{folder.name}.py").read_bytes(), settings.seed,
                      dataclasses.asdict(settings.limits), settings.unsafe]

    def grade(self, tick: Callable[[], None] = lambda: None) -> list[dict]:
        """Grade all, write all, return the results by student; ``tick`` after each.

        NoSandbox: this machine, or a worker of the cluster, has none.
        """
        results: dict[str, dict] = {}
        for student, record in self._records(self._jobs(results, tick)):
            results[student] = self._safely_judged(results[student], record)
            self._write(results[student])
            tick()
        ordered = [results[one.student] for one in self.submissions]
        self._write_class(ordered)
        return ordered

    def _jobs(self, results: dict, tick) -> Iterator[tuple[str, bytes]]:
        """Submissions that must be run; the others are settled on the way."""
        for one in self.submissions:
            result, data = self._begun(one)
            place = self._file("results", one.student, "json")
            stored = store.load(place, result["key"])
            results[one.student] = stored or result
            if stored is None and data is not None:
                yield one.student, data
                continue
            self._write(results[one.student], new=stored is None)
            tick()

    def _begun(self, one: Submission) -> tuple[dict, bytes | None]:
        """A result before the submission is run, and the bytes if they can be read."""
        status, reason, data = NOTHING, one.reason, None
        if one.path is not None:
            try:
                status, data = FAILED, collected.read(one.path)
            except Refused as refusal:
                status, reason = UNREADABLE, str(refusal)
        key = store.key_of(*self.basis, one.student, list(one.notes), reason,
                           data or b"")
        return {"key": key, "student": one.student, "status": status, "points": 0.0,
                "file": one.path.name if one.path else "", "reason": reason,
                "out_of": self.assignment.points, "notes": list(one.notes), "cells": [],
                "tasks": [], "written": {}, "for_the_teacher": []}, data

    def _records(self, jobs) -> Iterator[tuple[str, Record]]:
        settings, mode = self.settings, "none" if self.settings.unsafe else None
        work = functools.partial(_run, self.hidden_places, plan=self.plan,
                                 limits=settings.limits, mode=mode)
        if settings.scheduler:
            return engines.cluster(work, jobs, settings.scheduler)
        work = functools.partial(work, mode=mode or sandbox.find_mode())
        return engines.here(work, jobs, settings.workers or engines.cores())

    def _safely_judged(self, result: dict, record: Record) -> dict:
        """Judge; what the judge cannot cope with costs this submission alone."""
        try:
            judged = self._judged(result, record)
            pages.student_page(judged, self.assignment)
            return judged
        except Exception as error:  # its message may hold a hidden input
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}, line {last.lineno}"
            return result | {"reason": "The judge could not cope with what came back"
                             f" ({type(error).__name__} in {place})."}

    def _judged(self, result: dict, record: Record) -> dict:
        result = result | {"notes": result["notes"] + record.notes}
        if record.failed:
            return result | {"reason": f"It could not be run: {record.failed}"}
        if record.unreadable:
            return result | {"status": UNREADABLE, "reason": record.unreadable}
        seed = self.settings.seed
        tasks = [judge.judge_values(
            task, feedback.outputs_from(record, task, self.plan), seed=seed)
            for task in self.assignment.tasks]
        return result | {
            "status": GRADED, "points": sum(task.points for task in tasks),
            "cells": feedback.cells_in_words(record), "written": record.written,
            "tasks": [dataclasses.asdict(task) | {"message": task.message
                      + _about_copies(task, record)} for task in tasks],
            "for_the_teacher": feedback.raw_messages(record)}

    def _write(self, result: dict, new: bool = True) -> None:
        student = result["student"]
        page = self._file("students", student, "html")
        if new and result["status"] != FAILED:  # the machine's fault: tried again
            store.save(self._file("results", student, "json"), result)
        if new or not page.exists():
            store.write(page, pages.student_page(result, self.assignment))

    def _write_class(self, results: list[dict]) -> None:
        store.write(self.out / "grades.csv", store.table(pages.grades(
            results, self.assignment)))
        links = {one["student"]: f"students/{store.file_name(one['student'])}.html"
                 for one in results}
        store.write(self.out / "overview.html", pages.overview(
            results, self.assignment, links))
        if self.assignment.written:
            store.write(self.out / "written.html", pages.written_answers(
                results, self.assignment))

    def _file(self, folder: str, student: str, ending: str) -> Path:
        return self.out / folder / f"{store.file_name(student)}.{ending}"


def _about_copies(task: judge.TaskResult, record: Record) -> str:
    """Words for a task whose cell is there more than once, with nothing in the last."""
    copies = any(label.startswith(f"{task.name}, copy ") for label in record.sources)
    return " The last copy of this cell is still the stub, and the last copy counts." \
        if copies and task.status == "not attempted" else ""


def _run(hide: tuple[Path, ...], data: bytes, **settings) -> Record:
    """Run a submission, on whatever machine, out of sight of what must stay hidden."""
    return run_submission(data, hide=outermost(*hide, *course_folders()), **settings)


def outermost(*folders: Path) -> tuple[str, ...]:
    """Those folders that are there, without those that lie in another of them."""
    there = {folder for folder in folders if folder.is_dir()}
    return tuple(sorted(str(one) for one in there if there.isdisjoint(one.parents)))


def course_folders(root: Path = sandbox.PACKAGE.parent) -> list[Path]:
    """The folders of the course, answers and history among them, but for the package.

    None where the package is installed without the course. What Python stands on stays.
    """
    if not (root / "pyproject.toml").is_file():
        return []
    needed = [Path(one) for one in (*sandbox.python_folders(), sandbox.PACKAGE)]
    return [one for one in sorted(root.iterdir()) if one.is_dir()
            and not one.is_symlink()
            and not any(path.is_relative_to(one) for path in needed)]


@functools.cache
def _program() -> bytes:
    """The grading program's text and torch's version: others make other results."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(diagnosis.__file__)]
    return torch.__version__.encode() + b"".join(path.read_bytes() for path in files)
