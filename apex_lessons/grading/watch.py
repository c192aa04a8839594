"""One start of a sandbox, watched from outside: time, memory, processes, answers.

What the sandbox reports is read as it comes, never more than a cap, and nothing of it
is believed but that it was reported. Whoever oversteps a limit is killed with all its
processes; what had been reported by then stays.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field

from apex_lessons.grading import sandbox
from apex_lessons.grading.sandbox import Limits

CANCELLED = threading.Event()  # set: every sandbox of this process is ended
INTERVAL = 0.05  # seconds between two looks at a sandbox
CHUNK = 1 << 16
MOST_EVENTS = 20_000
DEEPEST = 40  # lists in lists: what the runner reports needs half of that
ANSWER = {"undefined": bool, "nothing": bool, "error": str, "message": str,
          "cell": str, "line": int}  # and a value of any kind
MARGIN = 8  # bubblewrap's own processes, and what comes and goes


@dataclass
class Usage:
    """What all processes of a sandbox use together."""

    seconds: float = 0.0  # of processor time, those that ended included
    memory: float = 0.0  # MB that are no file's; what forks share counts for each
    processes: int = 0  # threads included


@dataclass
class Attempt:
    """What one start of the sandbox brought."""

    events: list[dict] = field(default_factory=list)  # before the inputs were sent
    answers: list[dict] = field(default_factory=list)  # after that: may hold inputs
    told: bool = False  # were the inputs sent?
    step: str | None = None  # the one that was running at the end
    stopped: str = ""  # why it did not reach its end: a key of feedback.STOPPED
    seconds: float = 0.0  # of processor time in steps
    clock: float = 0.0  # seconds on the clock in steps
    complaint: str = ""  # the end of its standard error

    @property
    def started(self) -> bool:
        """Did Python and torch come up?"""
        return any(event["event"] == "started" for event in self.events)


def usage(process: int) -> Usage:
    """What a process and all its descendants use now; they may end meanwhile."""
    total, waiting = Usage(), [process]
    while waiting:
        number = waiting.pop()
        try:
            waiting += _children(number)
            _add(number, total)
        except (OSError, IndexError, ValueError):
            continue  # it has ended since it was listed
    return total


def _children(process: int) -> list[int]:
    found: list[int] = []
    for thread in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{thread}/children", "rb") as listed:
            found += map(int, listed.read().split())
    return found


def _add(process: int, total: Usage) -> None:
    with open(f"/proc/{process}/stat", "rb") as file:
        # what follows the name, which may hold anything, brackets too
        fields = file.read().rpartition(b") ")[2].split()
    with open(f"/proc/{process}/status", "rb") as file:
        sizes = dict(line.split(b":", 1) for line in file if line.startswith(b"Rss"))
    total.seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    total.processes += int(fields[17])
    for kind in (b"RssAnon", b"RssShmem"):
        total.memory += int(sizes.get(kind, b"0 kB").split()[0]) / 1024


def event_of(line: bytes) -> dict | None:
    """What a line reports, or None: it has not the form of anything the runner says.

    >>> event_of(b'{"event": "begin", "step": "cell 1"}')
    {'event': 'begin', 'step': 'cell 1'}
    >>> event_of(b'{"event": "answer", "answer": {"error": 7}}') is None
    True
    """
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    answer = event.get("answer", {})
    fits = isinstance(answer, dict) and not _too_deep(event) and all(
        type(answer[key]) is kind for key, kind in ANSWER.items() if key in answer)
    return event if fits else None


def _too_deep(data: object) -> bool:
    """Are there more than DEEPEST levels? Level by level, so that no depth can harm."""
    level = [data]
    for _ in range(DEEPEST):
        level = [inner for group in level for inner in
                 (group.values() if isinstance(group, dict) else group)
                 if isinstance(inner, (dict, list))]
    return bool(level)


class Watch:
    """Feeds one runner, reads its events and keeps its limits."""

    def __init__(self, process: subprocess.Popen, job: dict, notebook: bytes,
                 inputs: list, limits: Limits, left: tuple[float, float]):
        self.process, self.limits, self.inputs = process, limits, inputs
        self.left = left  # seconds for all steps: of processor time, on the clock
        self.asked = {criterion["step"] for criterion in inputs}
        self.cell = -1  # the number of the last cell that began
        self.attempt = Attempt()
        self.target = self.attempt.events
        self.unread, self.size, self.ended = b"", 0, False
        self.now = Usage()
        self.all_steps = self.one_step = None  # (processor, clock) where they began
        self.clock = time.monotonic()
        self.selector = selectors.DefaultSelector()
        for stream in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(stream.fileno(), False)
        self.selector.register(process.stdout, selectors.EVENT_READ)
        self._send(_frame(json.dumps(job).encode()) + _frame(notebook))

    def run(self) -> Attempt:
        """Watch until the runner ends or is ended."""
        looked = self.clock
        while not self.ended and not self.attempt.stopped:
            for key, _ in self.selector.select(INTERVAL):
                if key.fileobj is self.process.stdin:
                    self._write()
                else:
                    self._read()
            if time.monotonic() - looked >= INTERVAL:
                self._look()
                looked = time.monotonic()
        return self._finish()

    def _send(self, data: bytes) -> None:
        self.outgoing = memoryview(data)
        if self.process.stdin not in self.selector.get_map():
            self.selector.register(self.process.stdin, selectors.EVENT_WRITE)

    def _write(self) -> None:
        try:
            sent = os.write(self.process.stdin.fileno(), self.outgoing[:CHUNK])
            self.outgoing = self.outgoing[sent:]
        except BrokenPipeError:
            self.outgoing = self.outgoing[:0]
        if not self.outgoing:
            self.selector.unregister(self.process.stdin)

    def _read(self) -> None:
        """Take in what has come."""
        data = os.read(self.process.stdout.fileno(), CHUNK)
        self.size += len(data)
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self._take(line)
        if self.size > self.limits.answers << 20 or len(self.target) > MOST_EVENTS:
            self.attempt.stopped = "answers"
        self.ended |= not data

    def _take(self, line: bytes) -> None:
        event = event_of(line)
        if event is None:
            return
        name, step = event["event"], event.get("step")
        self.target.append(event)
        if self._begins(name, step):
            self._new_step(step if name == "begin" else None)
        if name == "end":
            self.attempt.step = None
        self.ended |= name == "bye"
        if name == "ready" and not self.attempt.told:
            self.attempt.told, self.target = True, self.attempt.answers
            self._send(_frame(json.dumps(self.inputs).encode()))

    def _begins(self, name, step) -> bool:
        """Can that be? Cells one after the other; then what was asked, each once."""
        if name != "begin":
            return (name == "started" and self.all_steps is None
                    or name == "ready" and not self.attempt.told)
        if self.attempt.told:
            expected = isinstance(step, str) and step in self.asked
            self.asked -= {step} if expected else set()
            return expected
        last, self.cell = self.cell, max(self.cell, number_of_cell(step))
        return self.cell > last

    def _new_step(self, step: str | None) -> None:
        self._measure()
        self.attempt.step = step
        self.one_step = self.now.seconds, time.monotonic()
        self.all_steps = self.all_steps or self.one_step

    def _measure(self) -> None:
        now = usage(self.process.pid)
        now.seconds = max(now.seconds, self.now.seconds)  # what has ended counts still
        self.now = now
        if self.all_steps:
            self.attempt.seconds = now.seconds - self.all_steps[0]
            self.attempt.clock = time.monotonic() - self.all_steps[1]

    def _look(self) -> None:
        """Compare what is used with the limits."""
        if CANCELLED.is_set():
            raise InterruptedError("grading was interrupted")
        self._measure()
        limits, start = self.limits, (0.0, self.clock)
        if self.all_steps is None:
            late = self._late(start, limits.both(limits.start))
        else:
            late = (self._late(self.one_step, limits.both(limits.step))
                    or self._late(self.all_steps, self.left))
        if late:
            self.attempt.stopped = "time"
        elif self.now.memory > limits.memory:
            self.attempt.stopped = "memory"
        elif self.now.processes > limits.processes + MARGIN:
            self.attempt.stopped = "processes"

    def _late(self, began: tuple[float, float], most: tuple[float, float]) -> bool:
        processor, clock = self.now.seconds - began[0], time.monotonic() - began[1]
        return processor > most[0] or clock > most[1]

    def _finish(self) -> Attempt:
        self._measure()
        kill(self.process)
        self.attempt.complaint = _rest(self.process.stderr)
        self.selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        said = {event["event"] for event in self.attempt.events + self.attempt.answers}
        if not self.attempt.stopped and not {"bye", "unreadable"} & said:
            self.attempt.stopped = "exit"
        return self.attempt


def watch(mode: str, job: dict, notebook: bytes, inputs: list, limits: Limits,
          left: tuple[float, float], hide: tuple[str, ...] = ()) -> Attempt:
    """Start a runner and watch it to its end.

    ``left``: what all its steps may take, seconds of processor time and on the clock.
    """
    process = sandbox.start(mode, hide)
    try:
        return Watch(process, job, notebook, inputs, limits, left).run()
    finally:
        kill(process)


def number_of_cell(step) -> int:
    """The number of a cell's step, -1 for anything else.

    >>> number_of_cell("cell 7"), number_of_cell("cell 07"), number_of_cell(["cell 7"])
    (7, -1, -1)
    """
    found = isinstance(step, str) and re.fullmatch("cell (0|[1-9][0-9]{0,3})", step)
    return int(found[1]) if found else -1


def kill(process: subprocess.Popen) -> None:
    """End a runner and everything it started.

    In a sandbox all ends with its first process; without one, what is known is ended.
    """
    home = getattr(process, "home", None)
    if process.poll() is None and home:
        for number in [process.pid, *_descendants(process.pid)]:
            _signal(number)
    process.kill()
    process.wait()
    if home:
        shutil.rmtree(home, ignore_errors=True)


def _descendants(process: int) -> list[int]:
    try:
        children = _children(process)
    except OSError:
        return []
    return children + [number for child in children for number in _descendants(child)]


def _signal(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it was quicker


def _frame(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _rest(stream) -> str:
    try:
        return os.read(stream.fileno(), CHUNK).decode("utf-8", "replace")[-500:]
    except BlockingIOError:
        return ""
