"""A short fine-tuning at four times the trained length, as the papers do it.

The model goes on learning with the frequencies of one method at a fixed factor, on rows
of factor * trained_length bytes. Only results are kept, not weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from apex_lessons.errors import real_number, whole_number
from apex_lessons.extrapolation.decoder import Decoder
from apex_lessons.extrapolation.methods import reading
from apex_lessons.extrapolation.text import natural_text, recall
from apex_lessons.extrapolation.training import step

FINE_TUNED = ("none", "position_interpolation", "ntk_aware", "yarn")


@dataclass(frozen=True)
class FineTuning:
    """How a trained model is tuned: ``rows`` of each kind of text a step.

    Raises ValueError or TypeError for what cannot be done: no step, a factor below 1.
    """

    steps: int = 100
    factor: float = 4.0
    rows: int = 1
    learning_rate: float = 5e-4
    warmup: int = 10
    clip: float = 1.0

    def __post_init__(self) -> None:
        for name in ("steps", "rows", "warmup"):
            whole_number(name, getattr(self, name), at_least=1)
        for name in ("learning_rate", "clip"):
            real_number(name, getattr(self, name), above=0.0)
        real_number("factor", self.factor, at_least=1.0)


def fine_tune(
    decoder: Decoder, method: str, seed: int, settings: FineTuning | None = None
) -> Iterator[int]:
    """Tune ``decoder`` in place with one method; yields each step when done.

    The text is the same for every method; ``seed`` draws it.
    """
    settings = settings or FineTuning()
    generator = torch.Generator().manual_seed(1000 + seed)
    length = round(settings.factor * decoder.settings.trained_length)
    how = reading(method, decoder.settings, length, factor=settings.factor)
    decoder.requires_grad_(True)
    optimiser = torch.optim.AdamW(decoder.parameters(), betas=(0.9, 0.95))
    for done in range(settings.steps):
        made = recall(length, settings.rows, generator)
        natural = natural_text().rows(length, settings.rows, generator)
        rate = settings.learning_rate * min(1.0, (done + 1) / settings.warmup)
        ids = torch.cat([made.ids, natural])
        step(decoder, optimiser, ids, made.distance, rate, settings.clip, how.scaled)
        yield done + 1
    decoder.requires_grad_(False)
