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
    TEXT_BYTES,
    TEXTS,
    attention_entropy,
    measure,
    text_for,
)
from apex_lessons.extrapolation.methods import METHODS, reading
from apex_lessons.extrapolation.results import DIGITS, LENGTHS, Result, lengths_of

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
    lengths: Sequence[int] | None = None,
    texts: Sequence[str] = TEXTS,
    trained_length: int = LENGTHS[0],
) -> list[Job]:
    """Every method at every length, with the factor that the length asks for.

    Up to the trained length all methods are plain RoPE, so it is measured once.
    ``lengths`` None: the trained length and its multiples, as ``lengths_of`` says.
    """
    return [
        Job(seed, text, method, None, length)
        for seed in seeds
        for text in texts
        for length in lengths or lengths_of(trained_length)
        for method in (("none",) if length <= trained_length else methods)
    ]


def static_scaling(
    seeds: Sequence[int], trained_length: int = LENGTHS[0]
) -> list[Job]:
    """Short text read with a factor that was set for long text."""
    methods = [m for m in METHODS if m not in ("none", "dynamic_ntk")]
    return [
        Job(seed, text, method, factor, trained_length)
        for seed in seeds
        for text in TEXTS
        for method in methods
        for factor in STATIC
    ]


def after_tuning(
    seed: int, method: str, trained_length: int = LENGTHS[0]
) -> list[Job]:
    """One tuned model: short, at the length it was tuned for, and beyond it."""
    short, _, tuned_for, beyond = lengths_of(trained_length)
    settings = ((short, 4.0), (tuned_for, 4.0), (beyond, 8.0))
    return [
        Job(seed, text, method, factor, length, tuned=True)
        for text in TEXTS
        for length, factor in settings
    ]


def run_job(
    decoder: Decoder,
    job: Job,
    *,
    size: int = TEXT_BYTES,
    on_read: Callable[[int], None] = lambda read: None,
) -> Result:
    """Measure one job with its model, on about ``size`` bytes."""
    text = text_rows(job.text, job.length, size=size)
    got = measure(decoder, text, job.method, job.factor, on_read=on_read)
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


def loss_of(
    job: Job,
    device: str = "cpu",
    folder: Path = DATA,
    *,
    on_read: Callable[[int], None] = lambda read: None,
) -> float:
    """The loss alone, of the job's trained model, in nats a byte, as it is stored.

    What was measured before is known and not read again. ``on_read`` is told how many
    more bytes were read, in all ``bytes_of(job)``.
    """
    decoder = model_of(job.seed, device, folder)
    if job.factor is None and job.length <= decoder.settings.trained_length:
        job = replace(job, method="none")  # as every method is, so short
    key = (job, device, folder)
    if key in _losses:
        on_read(bytes_of(job))
        return _losses[key]
    text = text_rows(job.text, job.length)
    loss = measure(decoder, text, job.method, job.factor, on_read=on_read).loss
    return _losses.setdefault(key, round(loss, DIGITS))


_losses: dict[tuple, float] = {}  # that were measured in this process


def bytes_of(job: Job) -> int:
    """How many bytes a job reads."""
    return text_rows(job.text, job.length).ids.numel()


@lru_cache(maxsize=1)
def model_of(seed: int, device: str, folder: Path) -> Decoder:
    """The trained model of a seed; the last one used is kept."""
    return load_checkpoint(seed, device=device, folder=folder)


def measured(
    job: Job, device: str = "cpu", folder: Path = DATA, **options
) -> Result:
    """``run_job`` with the trained model of the job's seed, and its options."""
    return run_job(model_of(job.seed, device, folder), job, **options)


def tuned_results(
    seed: int,
    method: str,
    *,
    device: str = "cpu",
    folder: Path = DATA,
    settings: FineTuning | None = None,
    on_step: Callable[[], None] = lambda: None,
    **options,
) -> Iterator[Result]:
    """Fine-tune one trained model with one method and measure what came out.

    ``options``: those of ``run_job``.
    """
    decoder = load_checkpoint(seed, device=device, folder=folder)
    for _ in fine_tune(decoder, method, seed, settings):
        on_step()
    for job in after_tuning(seed, method, decoder.settings.trained_length):
        yield run_job(decoder, job, **options)


def all_tunings(seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Every seed with every method that is tuned."""
    return [(seed, method) for seed in seeds for method in FINE_TUNED]
