"""What the watcher sees of a process and its descendants."""

import json
import subprocess
import sys

import pytest

from apex_lessons.grading import values, watch

HELD = 60_000_000  # bytes
PROGRAM = """
import mmap, os, sys, threading, time
held = {}
if os.fork() == 0:
    threading.Thread(target=time.sleep, args=(60,)).start()
    {}
    print(flush=True)
    time.sleep(60)
time.sleep(60)
"""


@pytest.fixture
def running():
    """Starts a program of ours; it is killed with its child at the end."""
    started = []

    def start(program):
        started.append(subprocess.Popen([sys.executable, "-c", program],
                                        stdout=subprocess.PIPE, start_new_session=True))
        started[-1].stdout.readline()
        return started[-1]

    yield start
    for process in started:
        for number in [*watch._descendants(process.pid), process.pid]:
            watch._signal(number)
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("held", [f"bytearray({HELD})", f"mmap.mmap(-1, {HELD})"])
def test_memory_of_a_child_is_counted_shared_memory_too(running, held):
    program = PROGRAM.format("None", f"held = {held}; held[:] = b'a' * {HELD}")
    process = running(program)
    used = watch.usage(process.pid)
    assert used.processes == 3  # two processes, one of them with another thread
    assert HELD / 2**20 < used.memory < 3 * HELD / 2**20


def test_processor_time_of_a_child_that_ended_still_counts(running):
    program = ("import os, time\nif os.fork() == 0:\n"
               "    while time.process_time() < 0.3: pass\n    os._exit(0)\n"
               "os.wait()\nprint(flush=True)\ntime.sleep(60)\n")
    assert watch.usage(running(program).pid).seconds >= 0.29


def test_a_process_that_is_gone_uses_nothing():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert watch.usage(process.pid) == watch.Usage()


@pytest.mark.parametrize("line", [
    b"", b"\xff", b"7", b"[]", b"{}", b'{"event": 3}', b'{"event": "answer", "case": 1',
    b'{"event": "answer", "answer": [1]}', b'{"event": "x", "answer": {"error": 1}}',
    b'{"event": "x", "answer": {"error": "E", "cell": ["a"]}}',
    b'{"event": "x", "answer": {"error": "E", "line": true}}'])
def test_what_the_runner_never_says_is_no_event(line):
    assert watch.event_of(line) is None


@pytest.mark.parametrize("depth", [watch.DEEPEST, 100, 950, 100_000])
def test_an_event_nested_too_deep_is_dropped(depth):
    """Such a value could be read, but not be sent on to another process."""
    value = b"[" * depth + b"]" * depth
    assert watch.event_of(b'{"event": "answer", "answer": {"value": %b}}' % value) \
        is None


def test_the_deepest_value_that_can_be_told_is_kept():
    value = None
    for _ in range(values.DEEPEST):
        value = {"x": value}
    line = json.dumps({"event": "answer", "answer": {"value": values.encode(value)}})
    assert values.decode(watch.event_of(line.encode())["answer"]["value"]) == value
