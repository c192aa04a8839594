"""``extrapolate``: read long texts with the shipped models, live, method by method."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from apex_lessons import cli

LONGEST = 32_768  # bytes; beyond it a row alone takes a minute and more
HELP = "measure the course's small models past their trained length, live"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``extrapolate``; the first three may be given several times."""
    several = {"action": "append"}
    parser.add_argument("--length", type=int, metavar="BYTES", **several,
                        help="a text length (default: 1, 2, 4 and 8 times the trained"
                        " length; of those shipped 512 1024 2048 4096)")
    parser.add_argument("--method", metavar="NAME", **several,
                        help="none, yarn, ntk-aware, ... (default: all)")
    parser.add_argument("--seed", type=int, metavar="N", **several,
                        help="a model's seed (default: all)")
    parser.add_argument("--text", choices=("recall", "natural"), default="recall",
                        help="recall text, the same everywhere (default), or Python's"
                        " own library, which differs between versions of Python")
    parser.add_argument("--models", type=Path, metavar="FOLDER",
                        help="models of your own training (default: those shipped)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or mps")
    parser.add_argument("--json", action="store_true",
                        help="{method: {length: {seed: loss}}}")


def run(arguments: argparse.Namespace) -> int:
    """Measure and print the table; returns the exit status."""
    from apex_lessons.extrapolation import study
    from apex_lessons.extrapolation.progress import progress_bar

    jobs, folder = _jobs(arguments), folder_of(arguments)
    table: dict[str, dict] = {}
    total = sum(map(study.bytes_of, jobs))
    with progress_bar("reading bytes", total) as advance:
        for job in jobs:
            of_method = table.setdefault(job.method, {})
            of_length = of_method.setdefault(str(job.length), {})
            of_length[str(job.seed)] = study.loss_of(
                job, arguments.device, folder, on_read=advance)
    print(json.dumps(table, indent=2) if arguments.json else _printed(table, arguments))
    sys.stdout.flush()
    return cli.OK


def folder_of(arguments: argparse.Namespace) -> Path:
    """Where the models are."""
    from apex_lessons.extrapolation.checkpoints import DATA

    return arguments.models or DATA


def _jobs(arguments: argparse.Namespace) -> list:
    """What to measure, one model after the other; ValueError for what cannot be."""
    from apex_lessons.errors import one_of
    from apex_lessons.extrapolation import METHODS, load_checkpoint, seeds
    from apex_lessons.extrapolation.device import usable_device
    from apex_lessons.extrapolation.study import Job

    usable_device(arguments.device)
    asked = [name.replace("-", "_") for name in arguments.method or METHODS]
    methods = [one_of("--method", name, tuple(METHODS)) for name in asked]
    folder = folder_of(arguments)
    lengths = _lengths(arguments, folder)
    wanted = arguments.seed or seeds(folder) or (0,)  # without models 0 says so
    for seed in wanted:
        load_checkpoint(seed, folder=folder)
    return [
        Job(seed, arguments.text, method, None, length)
        for seed in dict.fromkeys(wanted)
        for method in dict.fromkeys(methods)
        for length in dict.fromkeys(lengths)
    ]


def _lengths(arguments: argparse.Namespace, folder: Path) -> list[int]:
    """Those asked for, or what the models' results are stored for."""
    from apex_lessons.errors import whole_number
    from apex_lessons.extrapolation.checkpoints import trained_length
    from apex_lessons.extrapolation.results import lengths_of

    if arguments.length is None:
        return [n for n in lengths_of(trained_length(folder)) if 2 <= n <= LONGEST]
    for length in arguments.length:
        whole_number("--length", length, at_least=2)
        if length > LONGEST:
            raise ValueError(f"--length must be at most {LONGEST} bytes, got {length}")
    return arguments.length


def _printed(table: dict, arguments: argparse.Namespace) -> str:
    """One line a method, one column a length: mean over the seeds, and range."""
    from apex_lessons.extrapolation import METHODS

    lengths = list(next(iter(table.values())))
    seeds = list(table[next(iter(table))][lengths[0]])
    which = f"seed {seeds[0]}" if len(seeds) == 1 else "mean over seeds (range)"
    head = f"{'method':<34}" + "".join(f"{length + ' bytes':>24}" for length in lengths)
    lines = [f"Loss on {arguments.text} text, nats a byte: {which}", "", head]
    for method, of_method in table.items():
        cells = [_cell(list(of_method[length].values())) for length in lengths]
        lines.append(f"{METHODS[method][0]:<34}" + "".join(f"{c:>24}" for c in cells))
    return "\n".join(lines)


def _cell(losses: list[float]) -> str:
    from apex_lessons.extrapolation import band

    b = band(losses)
    spread = f" ({b.low:.3f} to {b.high:.3f})" if len(losses) > 1 else ""
    return f"{b.mean:.3f}{spread}"
