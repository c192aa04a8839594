"""Train the small decoder: a seed always gives the same model, a stop costs nothing.

Each step reads four rows of recall text and four of natural text, all of the trained
length. Answers far back are learned only after near ones, so the distances start short
and grow to the trained length while the model learns.
"""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from apex_lessons.errors import real_number, whole_number
from apex_lessons.extrapolation.decoder import Decoder, DecoderSettings
from apex_lessons.extrapolation.text import natural_text, recall
from apex_lessons.yarn import ScaledFrequencies

LOG_EVERY = 25  # steps; each line of a log is the mean over so many


@dataclass(frozen=True)
class TrainingSettings:
    """How a decoder is trained; ``rows`` of each kind of text a step.

    The learning rate rises over ``warmup`` steps, then falls along a cosine to a
    twentieth. ``first_reach``: the largest distance at the start, in bytes; it grows
    evenly on a logarithmic scale between ``grow_from`` and ``grow_to`` of the steps.
    Raises ValueError or TypeError for what cannot be done.
    """

    steps: int = 900
    rows: int = 4
    learning_rate: float = 3e-3
    warmup: int = 50
    weight_decay: float = 0.1
    clip: float = 1.0
    first_reach: int = 8
    grow_from: float = 0.15
    grow_to: float = 0.65

    def __post_init__(self) -> None:
        for name in ("steps", "rows", "warmup", "first_reach"):
            whole_number(name, getattr(self, name), at_least=1)
        for name in ("learning_rate", "clip"):
            real_number(name, getattr(self, name), above=0.0)
        real_number("weight_decay", self.weight_decay, at_least=0.0)
        start = real_number("grow_from", self.grow_from, at_least=0.0)
        later = "it must come after grow_from"
        real_number("grow_to", self.grow_to, above=start, hint=later)

    def rate(self, step: int) -> float:
        """The learning rate of one step, counted from 0."""
        # rate = peak * rise * (1/20 + 19/20 * (1 + cos(pi * step / steps)) / 2)
        rise = min(1.0, (step + 1) / self.warmup)
        fall = 0.05 + 0.95 * (1 + math.cos(math.pi * step / self.steps)) / 2
        return self.learning_rate * rise * fall

    def reach(self, step: int, length: int) -> int:
        """The largest distance of an answer in one step, in bytes."""
        done = (step / self.steps - self.grow_from) / (self.grow_to - self.grow_from)
        share = min(1.0, max(0.0, done))
        # reach = first^(1 - share) * length^share
        return round(self.first_reach ** (1 - share) * length**share)


@dataclass(frozen=True)
class LogLine:
    """Means over the ``LOG_EVERY`` steps before ``step``; losses in nats a byte.

    ``accuracy``: the share of recall answers whose digit got the largest logit.
    """

    step: int
    recall: float
    natural: float
    answers: float
    accuracy: float


class Stopped(Exception):
    """Raised by an ``on_step`` that wants no further step."""


class Trainer:
    """A model on its way: weights, optimiser, generator and step, all resumable.

    ``seed`` sets the weights and the order of the text. On a GPU the text is drawn on
    the CPU as well, so it is the same. ``seconds``: that the steps took, stops left
    out. Raises ValueError or TypeError for a seed that is no whole number from 0 on.
    """

    def __init__(
        self,
        seed: int,
        decoder: DecoderSettings | None = None,
        training: TrainingSettings | None = None,
        *,
        device: torch.device | str = "cpu",
    ):
        self.seed = whole_number("seed", seed, at_least=0)
        self.device = torch.device(device)
        self.training = training or TrainingSettings()
        self.generator = torch.Generator().manual_seed(seed)
        self.decoder = Decoder(decoder or DecoderSettings(), self.generator).to(device)
        self.optimiser = torch.optim.AdamW(
            self.decoder.parameters(),
            lr=self.training.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=self.training.weight_decay,
        )
        self.step, self.seconds = 0, 0.0
        self.log: list[LogLine] = []
        self._recent: list[Tensor] = []

    def run(self, until: int | None = None) -> Iterator[int]:
        """Train up to step ``until`` (None: all steps); yields each step when done."""
        last = self.training.steps if until is None else min(until, self.training.steps)
        while self.step < last:
            began = time.perf_counter()
            self._recent.append(self._one_step())
            self.seconds += time.perf_counter() - began
            self.step += 1
            if self.step % LOG_EVERY == 0:
                means = torch.stack(self._recent).mean(0).tolist()
                self.log.append(LogLine(self.step, *(round(mean, 4) for mean in means)))
                self._recent = []
            yield self.step

    def _one_step(self) -> Tensor:
        length, settings = self.decoder.settings.trained_length, self.training
        reach = settings.reach(self.step, length)
        made = recall(length, settings.rows, self.generator, reach=reach)
        natural = natural_text().rows(length, settings.rows, self.generator)
        rate = settings.rate(self.step)
        ids = torch.cat([made.ids, natural])
        return step(
            self.decoder, self.optimiser, ids, made.distance, rate, settings.clip
        )

    def save(self, path: Path) -> None:
        """All that is needed to go on later, written so that a crash leaves the old."""
        state = {
            "settings": self._settings(),
            "decoder": self.decoder.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "generator": self.generator.get_state(),
            "step": self.step,
            "seconds": self.seconds,
            "log": [asdict(line) for line in self.log],
            "recent": self._recent,
        }
        unfinished = path.with_suffix(".unfinished")
        torch.save(state, unfinished)
        unfinished.replace(path)

    def load(self, path: Path) -> None:
        """Go on from a saved state; ValueError if it was made with other settings."""
        state = _state(path, self.device)
        if state["settings"] != self._settings():
            raise ValueError(
                f"{path} was made with other settings or another standard library;"
                " delete it to start anew"
            )
        self.decoder.load_state_dict(state["decoder"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.generator.set_state(state["generator"].cpu())
        self.step, self.seconds = state["step"], state["seconds"]
        self.log = [LogLine(**line) for line in state["log"]]
        self._recent = state["recent"]

    def _settings(self) -> dict:
        return {
            "seed": self.seed,
            "decoder": asdict(self.decoder.settings),
            "training": asdict(self.training),
            "natural_text": natural_text().sha256,
        }


def _state(path: Path, device: torch.device) -> dict:
    """What ``Trainer.save`` wrote; ValueError for a file that it did not write."""
    try:
        state = torch.load(path, map_location=device, weights_only=True)
        missing = {"settings", "step", "seconds"} - state.keys()
    except (RuntimeError, EOFError, AttributeError, pickle.UnpicklingError) as error:
        raise ValueError(f"{path} cannot be read; delete it to start anew") from error
    if missing:
        raise ValueError(
            f"{path} has no {', '.join(sorted(missing))}: another program wrote it;"
            " delete it to start anew"
        )
    return state


def step(
    decoder: Decoder,
    optimiser: torch.optim.Optimizer,
    ids: Tensor,
    distance: Tensor,
    rate: float,
    clip: float,
    scaled: ScaledFrequencies | None = None,
) -> Tensor:
    """One step on ``ids`` [rows, length], the recall rows first.

    Returns the four means of a LogLine, on the CPU.
    """
    ids = ids.to(decoder.embedding.weight.device)
    for group in optimiser.param_groups:
        group["lr"] = rate
    logits = decoder(ids, scaled)[:, :-1]  # [rows, length - 1, 256]
    losses = F.cross_entropy(logits.mT, ids[:, 1:], reduction="none")
    optimiser.zero_grad()
    losses.mean().backward()
    torch.nn.utils.clip_grad_norm_(decoder.parameters(), clip)
    optimiser.step()
    return _means(logits.detach(), losses.detach(), ids, distance)


def _means(logits: Tensor, losses: Tensor, ids: Tensor, distance: Tensor) -> Tensor:
    """Recall loss, natural loss, loss and accuracy of the answers."""
    rows = len(distance)
    answers = (distance[:, 1:] > 0).to(ids.device)
    right = logits[:rows].argmax(-1) == ids[:rows, 1:]
    return torch.stack(
        [
            losses[:rows].mean(),
            losses[rows:].mean(),
            losses[:rows][answers].mean(),
            right[answers].float().mean(),
        ]
    ).cpu()


def train(
    trainer: Trainer, folder: Path, *, on_step: Callable[[], None] = lambda: None
) -> None:
    """Train to the end, saving to ``folder`` as it goes; goes on where it was.

    ``on_step`` may raise Stopped, which is passed on after saving.
    """
    path = state_file(folder, trainer.seed)
    if path.exists():
        trainer.load(path)
        for _ in range(trainer.step):
            on_step()
    for done in trainer.run():
        try:
            on_step()
        except Stopped:
            trainer.save(path)
            raise
        if done % (4 * LOG_EVERY) == 0:
            trainer.save(path)
    trainer.save(path)


def state_file(folder: Path, seed: int) -> Path:
    """Where ``train`` keeps the state of one seed."""
    return folder / f"training-{seed}.pt"
