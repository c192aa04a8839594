"""The trained models that come with the course: half precision, one file a seed.

``data/seed-0.safetensors`` and its neighbours hold the weights; ``data/training.json``
their settings, log and hashes, and with what they were made. ``make train`` remakes
them.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

from apex_lessons.extrapolation.decoder import Decoder, DecoderSettings
from apex_lessons.extrapolation.training import LogLine, Trainer

DATA = Path(__file__).resolve().parent / "data"


@cache
def training_record(folder: Path = DATA) -> dict:
    """Settings, log and hash of every shipped model, as plain values."""
    return json.loads((folder / "training.json").read_text(encoding="utf-8"))


def seeds(folder: Path = DATA) -> tuple[int, ...]:
    """The seeds of the shipped models.

    >>> seeds()
    (0, 1, 2)
    """
    return tuple(sorted(int(seed) for seed in training_record(folder)["models"]))


def training_log(seed: int, folder: Path = DATA) -> list[LogLine]:
    """The log of one model's training."""
    return [LogLine(**line) for line in _entry(seed, folder)["log"]]


def left_out(folder: Path = DATA) -> dict[int, list[LogLine]]:
    """Seeds that were trained and did not learn to look back, with their logs."""
    entries = training_record(folder)["left_out"]
    return {int(k): [LogLine(**line) for line in v["log"]] for k, v in entries.items()}


def load_checkpoint(
    seed: int, *, device: torch.device | str = "cpu", folder: Path = DATA
) -> Decoder:
    """The trained model of one seed, its half-precision weights as float32.

    Raises ValueError for a seed that was not trained and for a file whose hash is not
    the recorded one.
    """
    from safetensors.torch import load

    entry = _entry(seed, folder)
    content = (folder / entry["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ValueError(
            f"{entry['file']} is not the file that was trained: its hash differs. Fetch"
            " it anew, or remake it with `make train`"
        )
    settings = DecoderSettings(**training_record(folder)["decoder"])
    decoder = Decoder(settings, torch.Generator().manual_seed(seed))
    decoder.load_state_dict({name: w.float() for name, w in load(content).items()})
    return decoder.to(device).requires_grad_(False)


def _entry(seed: int, folder: Path) -> dict:
    models = training_record(folder)["models"]
    if type(seed) is not int or str(seed) not in models:
        raise ValueError(f"seed must be one of {', '.join(models)}, got {seed!r}")
    return models[str(seed)]


LEARNED = 0.5  # share of answers found at the end of training; guessing gives 0.125


def save_checkpoints(trainers: list[Trainer], made_with: dict, folder: Path) -> None:
    """Write the weights in half precision and the record of finished trainings.

    A seed that still guesses at the end of its training (less than ``LEARNED`` of the
    answers found) is left out: what it cannot find near by says nothing about far
    away. Its log is kept in the record.
    """
    learned = [trainer for trainer in trainers if trainer.log[-1].accuracy >= LEARNED]
    record = {
        "made_by": "make train",
        "made_with": made_with,
        "decoder": asdict(trainers[0].decoder.settings),
        "training": asdict(trainers[0].training),
        "models": {str(trainer.seed): _saved(trainer, folder) for trainer in learned},
        "left_out": {
            str(trainer.seed): {"log": _log(trainer)}
            for trainer in trainers
            if trainer not in learned
        },
    }
    text = json.dumps(record, indent=1)
    (folder / "training.json").write_text(text + "\n", encoding="utf-8")


def _saved(trainer: Trainer, folder: Path) -> dict:
    """Write one model's weights; returns its entry of the record."""
    from safetensors.torch import save

    weights = trainer.decoder.state_dict()
    content = save({name: weight.half().cpu() for name, weight in weights.items()})
    name = f"seed-{trainer.seed}.safetensors"
    (folder / name).write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    return {"file": name, "sha256": digest, "log": _log(trainer)}


def _log(trainer: Trainer) -> list[dict]:
    return [asdict(line) for line in trainer.log]
