"""The whole measurement, from trained models to stored results.

A list of jobs is made first, so that it can be counted, shared between processes and
shown with a progress bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from apex_lessons.extrapolation.checkpoints import DATA, load_checkpoint
from apex_lessons.extrapolation.decoder import Decoder
from apex_lessons.extrapolation.finetuning import FINE_TUNED, FineTuning, fine_tune
from apex_lessons.extrapolation.measuring import (
    TEXTS,
    attention_entropy,
    measure,
    text_for,
)
from apex_lessons.extrapolation.methods import METHODS, reading
from apex_lessons.extrapolation.results import DIGITS, LENGTHS, Result

STATIC = (4.0, 8.0)  # factors that short text is read with
text_rows = lru_cache(text_for)


@dataclass(frozen=True)
class Job:
    """One measurement to make."""

    seed: int
    text: str
    method: str
    factor: float | None
    length: int
    tuned: bool = False


def zero_shot(
    seeds: Sequence[int],
    methods: Sequence[str] = tuple(METHODS),
    lengths: Sequence[int] = LENGTHS,
    texts: Sequence[str] = TEXTS,
    trained_length: int = LENGTHS[0],
) -> list[Job]:
    """Every method at every length, with the factor that the length asks for.

    Up to the trained length all methods are plain RoPE, so it is measured once.
    """
    return [
        Job(seed, text, method, None, length)
        for seed in seeds
        for text in texts
        for length in lengths
        for method in (("none",) if length <= trained_length else methods)
    ]


def static_scaling(seeds: Sequence[int]) -> list[Job]:
    """Short text read with a factor that was set for long text."""
    methods = [m for m in METHODS if m not in ("none", "dynamic_ntk")]
    return [
        Job(seed, text, method, factor, LENGTHS[0])
        for seed in seeds
        for text in TEXTS
        for method in methods
        for factor in STATIC
    ]


def after_tuning(seed: int, method: str) -> list[Job]:
    """One tuned model: short, at the length it was tuned for, and beyond it."""
    settings = ((LENGTHS[0], 4.0), (LENGTHS[2], 4.0), (LENGTHS[3], 8.0))
    return [
        Job(seed, text, method, factor, length, tuned=True)
        for text in TEXTS
        for length, factor in settings
    ]


def run_job(decoder: Decoder, job: Job) -> Result:
    """Measure one job with its model."""
    text = text_rows(job.text, job.length)
    got = measure(decoder, text, job.method, job.factor)
    how = reading(job.method, decoder.settings, job.length, factor=job.factor)
    entropy = attention_entropy(decoder, text.ids[0], how).mean().item()
    return Result(
        **vars(job),
        loss=round(got.loss, DIGITS),
        by_position=tuple(round(value, DIGITS) for value in got.by_position),
        accuracy=None if got.accuracy is None else round(got.accuracy, DIGITS),
        by_distance=got.by_distance,
        entropy=round(entropy, DIGITS),
    )


def loss_of(job: Job, device: str = "cpu", folder: Path = DATA) -> float:
    """The loss alone, of the job's trained model, in nats a byte, as it is stored."""
    decoder = model_of(job.seed, device, folder)
    if job.factor is None and job.length <= decoder.settings.trained_length:
        job = replace(job, method="none")  # as every method is, so short
    return _loss(job, device, folder)


@lru_cache
def _loss(job: Job, device: str, folder: Path) -> float:
    decoder = model_of(job.seed, device, folder)
    text = text_rows(job.text, job.length)
    return round(measure(decoder, text, job.method, job.factor).loss, DIGITS)


@lru_cache(maxsize=1)
def model_of(seed: int, device: str, folder: Path) -> Decoder:
    """The trained model of a seed; the last one used is kept."""
    return load_checkpoint(seed, device=device, folder=folder)


def measured(job: Job, device: str = "cpu", folder: Path = DATA) -> Result:
    """``run_job`` with the trained model of the job's seed."""
    return run_job(model_of(job.seed, device, folder), job)


def tuned_results(
    seed: int,
    method: str,
    *,
    device: str = "cpu",
    folder: Path = DATA,
    settings: FineTuning | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Iterator[Result]:
    """Fine-tune one trained model with one method and measure what came out."""
    decoder = load_checkpoint(seed, device=device, folder=folder)
    for _ in fine_tune(decoder, method, seed, settings):
        on_step()
    for job in after_tuning(seed, method):
        yield run_job(decoder, job)


def all_tunings(seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Every seed with every method that is tuned."""
    return [(seed, method) for seed in seeds for method in FINE_TUNED]
