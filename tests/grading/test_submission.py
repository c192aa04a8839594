"""What is carried from one start of a submission to the next."""

import pytest

from apex_lessons.grading import submission
from apex_lessons.grading.sandbox import Limits
from apex_lessons.grading.watch import Attempt
from tests.grading import tiny

STARTED, READY = {"event": "started"}, {"event": "ready"}
BEGIN = {"event": "begin", "step": "cell 1", "label": "scale"}


@pytest.fixture
def starts(monkeypatch, tmp_path):
    """Runs a submission whose starts bring ``attempts``; gives what each was told."""
    _, _, plan = tiny.load(tiny.write_assignment(tmp_path))

    def run(*attempts, limits=Limits()):
        coming, told = iter(attempts), []

        def watch(mode, job, notebook, waiting, limits, left, hide):
            told.append((list(job["skip"]), left))
            return next(coming)

        monkeypatch.setattr(submission, "watch", watch)
        record = submission.run_submission(b"", plan, limits, "none")
        return record, told

    return run


def stopped(why, step, *events, told=False, **used):
    return Attempt([STARTED, *events], told=told, step=step, stopped=why, **used)


def test_a_cell_that_ends_the_process_is_left_out_of_the_next_start(starts):
    record, told = starts(stopped("exit", "cell 1", BEGIN), Attempt([STARTED, READY]))
    assert [skip for skip, _ in told] == [[], ["cell 1"]]
    assert record.stopped == {"scale": "exit"}


def test_what_has_seen_an_input_tells_the_next_start_nothing(starts):
    """Neither through the cells that are left out nor through what cells then say."""
    says = [BEGIN, {"event": "end", "label": "scale", "error": "x is 0.1234"},
            {"event": "unreadable", "why": "x is 0.1234"}]
    record, told = starts(stopped("exit", "scale/0", READY, told=True),
                          stopped("exit", "cell 1", *says))
    assert [skip for skip, _ in told] == [[], []]
    assert (record.cells, record.unreadable) == ({}, "")
    assert record.stopped == {"scale/0": "exit", "scale/1": "budget",
                              "norm/0": "budget", "norm/1": "budget"}


def test_a_step_of_its_own_naming_is_not_told_to_the_next_start(starts):
    _, told = starts(stopped("exit", "cell 731", READY, told=True),
                     stopped("exit", None, READY, told=True))
    assert [skip for skip, _ in told] == [[], []]


def test_all_starts_share_the_clock_and_the_processor(starts):
    steps = ["scale/0", "scale/1", "norm/0", "norm/1"]
    record, told = starts(*[stopped("time", step, told=True, clock=40, seconds=1)
                            for step in steps], limits=Limits(seconds=20))
    assert [left for _, left in told] == [(20, 100), (19, 60), (18, 20)]
    assert record.stopped == dict.fromkeys(steps[:3], "time") | {"norm/1": "budget"}


def test_a_long_notebook_does_not_report_more_than_is_allowed(tmp_path):
    """Of its cells' text, 12 MB in all, only a part travels to the judge."""
    _, _, plan = tiny.load(tiny.write_assignment(tmp_path))
    long = [tiny.code("#" * 80_000)] * 150
    record = submission.run_submission(tiny.notebook([*long, *tiny.cells()]), plan,
                                       Limits())
    assert record.stopped == {} and len(record.answers) == 4
    assert len(record.sources) == 153
    assert sum(map(len, record.sources.values())) <= 1_000_000
