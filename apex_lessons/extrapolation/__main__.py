"""Remake what is shipped: ``python -m apex_lessons.extrapolation train``, ``measure``.

``train`` makes the models (stopped, it goes on where it was); ``measure`` reads all
texts with them, fine-tunes and writes the results. Both share the work between
processes of one thread each, which is faster on small machines than threads are.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import platform
import shutil
import sys
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path
from queue import Empty

import torch

from apex_lessons.extrapolation import checkpoints, study
from apex_lessons.extrapolation.decoder import DecoderSettings
from apex_lessons.extrapolation.progress import progress_bar
from apex_lessons.extrapolation.results import Result, save_results
from apex_lessons.extrapolation.text import natural_text
from apex_lessons.extrapolation.training import (
    Trainer,
    TrainingSettings,
    state_file,
    train,
)

SEEDS = (0, 1, 2, 3)  # that are trained


def main(argv: list[str] | None = None) -> int:
    """Run one of the two; returns the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        {"train": _train, "measure": _measure}[arguments.work](arguments)
    except (ValueError, OSError) as error:
        print(f"apex_lessons.extrapolation: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m apex_lessons.extrapolation")
    parser.add_argument("work", choices=("train", "measure"))
    parser.add_argument("--seeds", type=int, nargs="+", help="default: all")
    parser.add_argument("--processes", type=int, default=_processes())
    parser.add_argument("--device", default="cpu", help="cpu, cuda or mps")
    parser.add_argument(
        "--out",
        type=Path,
        default=checkpoints.DATA,
        help="the folder of the models and results",
    )
    other = parser.add_argument_group("train another model (with --out)")
    other.add_argument("--steps", type=int, default=TrainingSettings().steps)
    for field in fields(DecoderSettings):
        flag = "--" + field.name.replace("_", "-")
        kind = type(field.default)
        other.add_argument(flag, type=kind, default=field.default)
    return parser


def _processes() -> int:
    return max(1, min(4, os.cpu_count() or 1))


def _train(arguments: argparse.Namespace) -> None:
    seeds = arguments.seeds or SEEDS
    sizes = {f.name: getattr(arguments, f.name) for f in fields(DecoderSettings)}
    settings = DecoderSettings(**sizes), TrainingSettings(steps=arguments.steps)
    unfinished = arguments.out / "unfinished"
    unfinished.mkdir(parents=True, exist_ok=True)
    jobs = [(_train_one, n, settings, unfinished, arguments.device) for n in seeds]
    _share(jobs, arguments.processes, arguments.steps * len(seeds), "training")
    trainers = [Trainer(seed, *settings) for seed in seeds]
    for trainer in trainers:
        trainer.load(state_file(unfinished, trainer.seed))
    checkpoints.save_checkpoints(trainers, made_with(), arguments.out)
    shutil.rmtree(unfinished)


def _train_one(seed: int, settings: tuple, folder: Path, device: str) -> None:
    train(Trainer(seed, *settings, device=device), folder, on_step=_tell)


def _measure(arguments: argparse.Namespace) -> None:
    where = arguments.device, arguments.out
    record = checkpoints.training_record(arguments.out)
    seeds = arguments.seeds or checkpoints.seeds(arguments.out)
    length = record["decoder"]["trained_length"]
    jobs = study.zero_shot(seeds, trained_length=length) + study.static_scaling(seeds)
    tunings = study.all_tunings(seeds)
    work = [(_tune_one, *tuning, *where) for tuning in tunings]
    work += [(_measure_one, job, *where) for job in jobs]
    total = len(jobs) + len(tunings) * study.FineTuning().steps
    done = _share(work, arguments.processes, total, "measuring")
    found = sorted((result for some in done for result in some), key=_order)
    read = {str(seed): record["models"][str(seed)]["sha256"] for seed in seeds}
    save_results(found, made_with() | {"checkpoints_sha256": read}, arguments.out)


def _order(result: Result) -> tuple:
    key = (result.tuned, result.text, result.length, result.factor or 0.0)
    return (*key, list(study.METHODS).index(result.method), result.seed)


def _tune_one(seed: int, method: str, device: str, folder: Path) -> list[Result]:
    where = {"device": device, "folder": folder}
    return list(study.tuned_results(seed, method, **where, on_step=_tell))


def _measure_one(job: study.Job, device: str, folder: Path) -> list[Result]:
    result = study.measured(job, device, folder)
    _tell()
    return [result]


def made_with() -> dict:
    """What the numbers may depend on."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "natural_text_sha256": natural_text().sha256,
    }


# --- sharing the work between processes ---------------------------------------------

_told = None  # the queue on which a worker says that one more step is done


def _tell() -> None:
    _told.put(1)


def _start_worker(queue) -> None:
    global _told
    _told = queue
    torch.set_num_threads(1)


def _share(jobs: list[tuple], processes: int, total: int, what: str) -> list:
    """Run (function, *arguments) tuples in processes, with one progress bar."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        queue = manager.Queue()
        pool = ProcessPoolExecutor(processes, context, _start_worker, (queue,))
        with pool, progress_bar(what, total) as advance:
            futures = [pool.submit(*job) for job in jobs]
            return _collected(futures, queue, advance)


def _collected(futures: list[Future], queue, advance: Callable[[int], None]) -> list:
    """The results in the order of the jobs; the first error stops it all."""
    while not all(future.done() for future in futures) or not queue.empty():
        failed = [f for f in futures if f.done() and f.exception()]
        if failed:
            for future in futures:
                future.cancel()
            failed[0].result()
        with contextlib.suppress(Empty):
            advance(queue.get(timeout=0.5))
    return [future.result() for future in futures]


if __name__ == "__main__":
    sys.exit(main())
