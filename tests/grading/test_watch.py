"""What the watcher sees of a process and its descendants."""

import json
import subprocess
import sys

import pytest

from apex_lessons.grading import values, watch
from apex_lessons.grading.sandbox import Limits

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


SAYS = """printf '{"event": "%s"}\\n' """
BEGINS = """printf '{"event": "begin", "step": "%s"}\\n' """


def watched(program, limits):
    """What the watcher makes of a shell's program in the runner's place."""
    words = ["sh", "-c", f"{SAYS} started; {program}"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        left = limits.both(limits.seconds)
        return watch.Watch(process, {}, b"", [{"step": "a/0"}], limits, left).run()
    finally:
        watch.kill(process)


@pytest.mark.parametrize("step", ['"x$n"', '"cell 1"', '"cell 0$n"', '"a/0"'])
def test_a_forged_step_does_not_set_the_clock_back(step):
    limits = Limits(seconds=6, patience=0.3)
    attempt = watched(f"n=0; {BEGINS} 'cell 1'; while n=$((n + 1)); do"
                      f" {BEGINS} {step}; sleep 0.02; done", limits)
    assert (attempt.stopped, attempt.step) == ("time", "cell 1")
    assert attempt.clock < 1.2  # 0.3 for one step, 1.8 for all


def test_after_the_inputs_only_what_was_asked_can_begin():
    attempt = watched(f"{SAYS} ready; {BEGINS} a/0; {BEGINS} 'cell 2'", Limits())
    assert (attempt.told, attempt.step, attempt.stopped) == (True, "a/0", "exit")
