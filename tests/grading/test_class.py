"""A class of three hundred, and a department's cluster that loses a worker."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from apex_lessons import cli
from apex_lessons.grading import engines
from tests.grading import tiny

pytestmark = pytest.mark.slow
STUDENTS, WORKERS = 300, 2
LOOP = "def scale(x, dim):\n    while True: pass\n"
# Claims answers nested so deep that no other process could be told of them.
DEEP = """
import os

def scale(x, dim):
    for channel in range(3, 20):
        for depth in range(900, 1000):
            line = ('{"event": "answer", "step": "scale/0", "case": 0, "answer":'
                    ' {"error": %s}}\\n' % ("[" * depth + "]" * depth))
            try:
                os.write(channel, line.encode())
            except OSError:
                pass
    return x * torch.tensor(dim**0.5, dtype=x.dtype)
"""
KINDS = [  # what stands in the cell of scale, points for scale, the mistake's name
    (tiny.SCALE, 3, None), ("def scale(x, dim):\n    return x * dim\n", 0, "no-root"),
    ("def scale(x, dim):\n    return x.float() * dim**0.5\n", 2, "float32"),
    (tiny.STUB.format("scale(x, dim)"), 0, None)]


def hand_in(folder, count):
    """``count`` submissions of all kinds; student -> (points, mistake)."""
    submitted, wanted = folder / "submitted", {}
    for number in range(count):
        source, points, mistake = KINDS[number % len(KINDS)]
        student = f"student {number:03}"
        place = submitted / student / "tiny" / "tiny.ipynb"
        place.parent.mkdir(parents=True)
        place.write_bytes(tiny.notebook(tiny.cells(scale=source)))
        wanted[student] = points + 4, mistake
    return submitted, wanted


def graded(out):
    """student -> (points, mistake in scale), from the results that were written."""
    found = {}
    for path in (out / "results").glob("*.json"):
        one = json.loads(path.read_text(encoding="utf-8"))
        found[one["student"]] = one["points"], one["tasks"][0]["mistake"]
    return found


def start_seconds():
    """Processor seconds of a Python that imports torch: what no submission can save."""
    program = "import torch, resource; print(resource.getrusage(0))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True,
                          encoding="utf-8", check=True)
    times = re.findall(r"ru_[us]time=([\d.]+)", done.stdout)
    return sum(map(float, times))


def test_three_hundred_on_this_machine(tmp_path, capsys):
    """Measured, with the bound: a start of Python and torch for each, on two cores."""
    tiny.write_assignment(tmp_path)
    submitted, wanted = hand_in(tmp_path, STUDENTS)
    start, began = min(start_seconds() for _ in range(3)), time.monotonic()
    status = cli.main(["grade", str(tmp_path / "tiny"), str(submitted), "--out",
                       str(tmp_path / "out"), "--workers", str(WORKERS)])
    seconds = time.monotonic() - began
    bound = STUDENTS * start / min(WORKERS, engines.cores())
    with capsys.disabled():
        print(f"\n{STUDENTS} submissions in {seconds:.0f} s; the bound, {start:.2f} s"
              f" of start each on {WORKERS} cores, is {bound:.0f} s")
    assert status == 0 and graded(tmp_path / "out") == wanted


def wait_for(condition, seconds):
    """Until something is so; fails when it is not so in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.1)


class Cluster:
    """A Dask scheduler and workers as processes of this machine."""

    def __init__(self, folder, workers):
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes = [self.start("scheduler", "--port", "0", "--no-dashboard",
                                     "--scheduler-file", str(self.file))]
        wait_for(self.file.exists, 60)
        about = json.loads(self.file.read_text(encoding="utf-8"))
        self.address = about["address"]
        self.workers = [self.start("worker", self.address, "--nthreads", "1",
                                   "--no-nanny", "--no-dashboard", "--local-directory",
                                   str(folder / f"worker-{number}"))
                        for number in range(workers)]

    def start(self, what, *words):
        log = open(self.folder / f"{what}.log", "ab")
        process = subprocess.Popen([sys.executable, "-m",
                                    "distributed.cli.dask_" + what,
                                    *words], stdout=log, stderr=log, env=os.environ,
                                   cwd=Path(__file__).parents[2])
        log.close()
        return process

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in [*self.workers, *self.processes]:
            process.kill()
            process.wait()


def test_a_worker_that_dies_costs_nobody_a_point(tmp_path):
    """Hostile ones among them; the dead worker's submissions go to the others."""
    tiny.write_assignment(tmp_path)
    submitted, wanted = hand_in(tmp_path, 24)
    bad = submitted / "student 000" / "tiny" / "tiny.ipynb"
    bad.write_bytes(tiny.notebook(tiny.cells(scale=LOOP)))
    wanted["student 000"] = 4, None
    deep = submitted / "student 004" / "tiny" / "tiny.ipynb"
    deep.write_bytes(tiny.notebook(tiny.cells(scale=DEEP)))  # right all the same
    results = tmp_path / "out" / "results"
    with Cluster(tmp_path, 3) as cluster:
        command = [sys.executable, "-m", "apex_lessons", "grade",
                   str(tmp_path / "tiny"),
                   str(submitted), "--out", str(tmp_path / "out"), "--time-limit", "12",
                   "--scheduler", cluster.address]
        grading = subprocess.Popen(command, cwd=Path(__file__).parents[2],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        wait_for(lambda: results.is_dir() and len(list(results.iterdir())) >= 4, 300)
        cluster.workers[0].kill()
        assert grading.poll() is None, "it was killed too late to matter"
        said = grading.communicate(timeout=600)[0].decode()
        alive = [worker.poll() for worker in cluster.workers]
    assert grading.returncode == 0, said
    assert graded(tmp_path / "out") == wanted
    assert alive[1:] == [None, None]


def test_a_scheduler_that_is_not_there(tmp_path, capsys, monkeypatch):
    tiny.write_assignment(tmp_path)
    submitted, _ = hand_in(tmp_path, 1)
    monkeypatch.setattr(engines, "CONNECT_SECONDS", 1)
    assert cli.main(["grade", str(tmp_path / "tiny"), str(submitted), "--out",
                     str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:9"]) == 2
    assert "tcp://127.0.0.1:9" in capsys.readouterr().err


def test_a_grader_that_is_killed_goes_on_where_it_stopped(tmp_path):
    """SIGKILL in the middle: its sandboxes end with it, what was done is not redone."""
    tiny.write_assignment(tmp_path)
    submitted, wanted = hand_in(tmp_path, 8)
    results = tmp_path / "out" / "results"
    command = [sys.executable, "-m", "apex_lessons", "grade", str(tmp_path / "tiny"),
               str(submitted), "--out", str(tmp_path / "out"), "--workers", "2"]
    first = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    wait_for(lambda: results.is_dir() and len(list(results.glob("*.json"))) >= 3, 300)
    first.kill()
    first.wait()
    done = {path.name: path.stat().st_mtime_ns for path in results.glob("*.json")}
    subprocess.run(command, cwd=Path(__file__).parents[2], check=True, timeout=600)
    assert graded(tmp_path / "out") == wanted
    assert done.items() <= {path.name: path.stat().st_mtime_ns
                            for path in results.glob("*.json")}.items()
