"""Who runs the submissions: threads that watch sandboxes here, or a Dask cluster.

Both take ``work(data) -> Record`` and pairs (name, data), and give pairs (name, Record)
in the order in which they are done. Only a few dozen submissions are in memory at once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait)

from apex_lessons.grading import watch
from apex_lessons.grading.sandbox import NoSandbox
from apex_lessons.grading.submission import Record

Work = Callable[[bytes], Record]
Jobs = Iterable[tuple[str, bytes]]
AT_ONCE = 64  # submissions that a cluster holds
CONNECT_SECONDS = 15  # to a scheduler


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") \
        else os.cpu_count() or 1


def here(work: Work, jobs: Jobs, workers: int) -> Iterator[tuple[str, Record]]:
    """On this machine: a thread for each worker, each watching one sandbox."""
    pool, running = ThreadPoolExecutor(workers), {}
    try:
        for name, data in jobs:
            running[pool.submit(work, data)] = name
            if len(running) >= 2 * workers:
                yield from _done(running)
        while running:
            yield from _done(running)
    finally:
        watch.CANCELLED.set()  # after an error or Ctrl-C: do not wait for what runs
        pool.shutdown(cancel_futures=True)
        watch.CANCELLED.clear()


def _done(running: dict[Future, str]) -> Iterator[tuple[str, Record]]:
    for future in wait(running, return_when=FIRST_COMPLETED).done:
        yield running.pop(future), _record(future)


def cluster(work: Work, jobs: Jobs, address: str) -> Iterator[tuple[str, Record]]:
    """On the workers of a Dask scheduler, such as ``tcp://host:8786``.

    The submission's bytes travel there, what it did comes back; the judge stays here.
    Dask gives a lost worker's submissions to another one. OSError: no scheduler there.
    """
    from distributed import as_completed

    with _client(address) as client:
        jobs, names = iter(jobs), {}

        def submit(job: tuple[str, bytes]):
            future = client.submit(work, job[1], pure=False)
            names[future.key] = job[0]
            return future

        running = as_completed(map(submit, itertools.islice(jobs, AT_ONCE)))
        for future in running:
            for job in itertools.islice(jobs, 1):
                running.add(submit(job))
            yield names.pop(future.key), _record(future)


def _client(address: str):
    from distributed import Client

    try:
        return Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {address}: {error}") from None


def _record(future) -> Record:
    """What came of one submission; a failure of a machine is no mark, and ends nothing.

    NoSandbox goes up: without one, nothing else can be graded either. So does what a
    cluster cancels when its scheduler is lost.
    """
    try:
        return future.result()
    except (NoSandbox, CancelledError):
        raise
    except Exception as error:  # whatever it is: the others must be graded
        if type(error).__name__ == "KilledWorker":  # Dask's own; Dask may not be here
            return Record(failed="the workers that ran it died, again and again")
        machine = isinstance(error, OSError)  # other messages may hold hidden inputs
        return Record(failed=str(error)[:500] if machine else type(error).__name__)
