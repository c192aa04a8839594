"""Remake what is shipped: ``python -m apex_lessons.extrapolation train``, ``measure``.

``train`` makes the models (stopped, it goes on where it was); ``measure`` reads all
texts with them, fine-tunes and writes the results. Both share the work between
processes of one thread each, which is faster on small machines than threads are.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from dataclasses import fields
from pathlib import Path

import torch

from apex_lessons.errors import whole_number
from apex_lessons.extrapolation import checkpoints, study
from apex_lessons.extrapolation.decoder import DecoderSettings
from apex_lessons.extrapolation.device import usable_device
from apex_lessons.extrapolation.finetuning import FineTuning
from apex_lessons.extrapolation.measuring import TEXT_BYTES
from apex_lessons.extrapolation.results import Result, save_results
from apex_lessons.extrapolation.sharing import go_on, share, tell
from apex_lessons.extrapolation.text import natural_text
from apex_lessons.extrapolation.training import (
    LOG_EVERY,
    Trainer,
    TrainingSettings,
    state_file,
    train,
)

SEEDS = (0, 1, 2, 3)  # that are trained
REFUSED, INTERRUPTED = 2, 130  # exit statuses
ENDED = {"train": "the same command goes on from there",
         "measure": "nothing was written"}


def main(argv: list[str] | None = None) -> int:
    """Run one of the two; returns the exit status: 0, 2 refused or 130 interrupted."""
    arguments = _parser().parse_args(argv)
    try:
        with _terminated_as_interrupted():
            _checked(arguments)
            {"train": _train, "measure": _measure}[arguments.work](arguments)
    except KeyboardInterrupt:
        return _say(f"stopped; {ENDED[arguments.work]}", INTERRUPTED)
    except BrokenProcessPool:
        ended = "a process ended early, killed or short of memory"
        return _say(f"{ended}; {ENDED[arguments.work]}", REFUSED)
    except (MemoryError, torch.OutOfMemoryError):
        return _say("out of memory: use fewer --processes or smaller sizes", REFUSED)
    except (ValueError, TypeError, OSError) as error:
        return _say(str(error), REFUSED)
    return 0


def _say(sentence: str, status: int) -> int:
    print(f"apex_lessons.extrapolation: {sentence}", file=sys.stderr)
    return status


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """SIGTERM stops as Ctrl-C does, so that workers end and save."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --- options ------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m apex_lessons.extrapolation")
    parser.add_argument("work", choices=("train", "measure"))
    parser.add_argument("--seeds", type=int, nargs="+", help="default: all")
    parser.add_argument("--processes", type=int, default=_processes())
    parser.add_argument("--device", default="cpu", help="cpu, cuda or mps")
    parser.add_argument("--out", type=Path, default=checkpoints.DATA,
                        help="the folder of the models and results")
    other = parser.add_argument_group("train another model (with --out)")
    other.add_argument("--steps", type=int, default=TrainingSettings().steps,
                       help=f"a multiple of {LOG_EVERY}")
    for field in fields(DecoderSettings):
        kind = type(field.default)
        other.add_argument(_option(field.name), type=kind, default=field.default)
    less = parser.add_argument_group("measure less, for a quick look (with --out)")
    less.add_argument("--text-bytes", type=int, default=TEXT_BYTES,
                      help="of each text at each length, at least one row")
    less.add_argument("--tuning-steps", type=int, default=FineTuning().steps)
    return parser


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _processes() -> int:
    return max(1, min(4, os.cpu_count() or 1))


def _checked(arguments: argparse.Namespace) -> None:
    """ValueError naming the option that cannot be used, before anything is done."""
    for name in ("processes", "steps", "text_bytes", "tuning_steps"):
        whole_number(_option(name), getattr(arguments, name), at_least=1)
    if arguments.steps % LOG_EVERY:
        raise ValueError(
            f"--steps must be a multiple of {LOG_EVERY}, the steps of a line of the"
            f" log, got {arguments.steps}"
        )
    seeds = arguments.seeds or ()
    for seed in seeds:
        whole_number("--seeds", seed, at_least=0)
    if len(set(seeds)) < len(seeds):
        given = " ".join(map(str, seeds))
        raise ValueError(f"--seeds must differ from each other, got {given}")
    usable_device(arguments.device)


# --- train --------------------------------------------------------------------------


def _train(arguments: argparse.Namespace) -> None:
    seeds = arguments.seeds or SEEDS
    sizes = {f.name: getattr(arguments, f.name) for f in fields(DecoderSettings)}
    settings = DecoderSettings(**sizes), TrainingSettings(steps=arguments.steps)
    unfinished = arguments.out / "unfinished"
    unfinished.mkdir(parents=True, exist_ok=True)
    jobs = [(_train_one, n, settings, unfinished, arguments.device) for n in seeds]
    share(jobs, arguments.processes, arguments.steps * len(seeds), "training")
    trainers = [Trainer(seed, *settings) for seed in seeds]
    for trainer in trainers:
        trainer.load(state_file(unfinished, trainer.seed))
    seconds = {str(t.seed): round(t.seconds, 1) for t in trainers}
    made = made_with(arguments.device) | {"seconds": seconds}
    checkpoints.save_checkpoints(trainers, made, arguments.out)
    shutil.rmtree(unfinished)


def _train_one(seed: int, settings: tuple, folder: Path, device: str) -> None:
    train(Trainer(seed, *settings, device=device), folder, on_step=tell)


# --- measure ------------------------------------------------------------------------


def _measure(arguments: argparse.Namespace) -> None:
    folder, size = arguments.out, arguments.text_bytes
    seeds, digests = _models(arguments)
    length = checkpoints.trained_length(folder)
    jobs = study.zero_shot(seeds, trained_length=length)
    jobs += study.static_scaling(seeds, length)
    tunings = study.all_tunings(seeds)
    where = arguments.device, folder, size
    work = [(_tune_one, *t, *where, arguments.tuning_steps) for t in tunings]
    work += [(_measure_one, job, *where) for job in jobs]
    total = len(jobs) + len(tunings) * arguments.tuning_steps
    done = share(work, arguments.processes, total, "measuring")
    found = sorted((result for some, _ in done for result in some), key=_order)
    made = made_with(arguments.device) | {
        "text_bytes": size,
        "tuning_steps": arguments.tuning_steps,
        "seconds": _seconds_of_seeds(done),
        "checkpoints_sha256": digests,
    }
    save_results(found, made, folder)


def _models(arguments: argparse.Namespace) -> tuple[list[int], dict[str, str]]:
    """The seeds to measure, each of which can be loaded, and their files' hashes."""
    folder = arguments.out
    seeds = list(arguments.seeds or checkpoints.seeds(folder)) or [0]
    for seed in seeds:
        checkpoints.load_checkpoint(seed, folder=folder)
    models = checkpoints.training_record(folder)["models"]
    return seeds, {str(seed): models[str(seed)]["sha256"] for seed in seeds}


def _order(result: Result) -> tuple:
    key = (result.tuned, result.text, result.length, result.factor or 0.0)
    return (*key, list(study.METHODS).index(result.method), result.seed)


def _seconds_of_seeds(done: list[tuple[list[Result], float]]) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for results, took in done:
        seed = str(results[0].seed)
        seconds[seed] = seconds.get(seed, 0.0) + took
    return {seed: round(seconds[seed], 1) for seed in sorted(seconds, key=int)}


def _tune_one(
    seed: int, method: str, device: str, folder: Path, size: int, steps: int
) -> tuple[list[Result], float]:
    """The results of one tuning, and the seconds it took."""
    began = time.perf_counter()
    found = study.tuned_results(
        seed,
        method,
        device=device,
        folder=folder,
        settings=FineTuning(steps=steps),
        on_step=tell,
        size=size,
        on_read=_row_read,
    )
    return list(found), time.perf_counter() - began


def _measure_one(
    job: study.Job, device: str, folder: Path, size: int
) -> tuple[list[Result], float]:
    """One result, and the seconds it took."""
    began = time.perf_counter()
    result = study.measured(job, device, folder, size=size, on_read=_row_read)
    tell()
    return [result], time.perf_counter() - began


def _row_read(read: int) -> None:
    go_on()


def made_with(device: str = "cpu") -> dict:
    """What the numbers may depend on."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": device,
        "natural_text_sha256": natural_text().sha256,
    }
