"""What the watcher sees of a process and its descendants."""

import subprocess
import sys

import pytest

from apex_lessons.grading import watch

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
