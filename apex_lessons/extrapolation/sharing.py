"""Share work between processes of one thread each, with one progress bar.

A worker does not hear Ctrl-C: the parent does, and lets each worker end its step and
save. A worker whose parent is gone does the same by itself.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from multiprocessing import resource_tracker

import torch

from apex_lessons.extrapolation.progress import progress_bar
from apex_lessons.extrapolation.training import Stopped

PATIENCE = 20.0  # seconds in which a worker without a parent can still save

# --- in a worker --------------------------------------------------------------------

_told = None  # the queue on which a worker says that one more step is done
_stop = None  # shared memory: 1 once the work is to end


def tell() -> None:
    """One more step is done. Raises Stopped if there is to be no other."""
    go_on()
    _told.put(1)


def go_on() -> None:
    """Raises Stopped if the work is to end."""
    if _stop.value:
        raise Stopped


def _start_worker(queue, stop) -> None:
    global _told, _stop
    _told, _stop = queue, stop
    torch.set_num_threads(1)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    multiprocessing.parent_process().join()
    _stop.value = 1
    time.sleep(PATIENCE)
    os._exit(1)


# --- in the parent ------------------------------------------------------------------


def share(jobs: list[tuple], processes: int, total: int, what: str) -> list:
    """Run (function, *arguments) tuples in processes; their results, in order.

    The functions call ``tell`` ``total`` times in all. The first error, or a
    KeyboardInterrupt here, stops all of them after their step and is raised.
    """
    context = multiprocessing.get_context("spawn")
    queue, stop = context.SimpleQueue(), context.RawValue("b", 0)
    workers = min(processes, len(jobs))
    pool = ProcessPoolExecutor(workers, context, _start_worker, (queue, stop))
    try:
        with progress_bar(what, total) as advance:
            with _deaf_to_interrupts():
                futures = [pool.submit(*job) for job in jobs]
            return _collected(futures, queue, advance)
    finally:
        stop.value = 1
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Processes that start meanwhile never hear Ctrl-C; here it comes afterwards."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # which would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _collected(futures: list[Future], queue, advance: Callable[[int], None]) -> list:
    """The results in the order of the jobs; the first error is raised."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, timeout=0.2, return_when=FIRST_EXCEPTION)
        while not queue.empty():
            advance(queue.get())
        for future in done:
            future.result()
    return [future.result() for future in futures]
