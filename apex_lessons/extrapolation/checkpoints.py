"""The trained models that come with the course: half precision, one file a seed.

``data/seed-0.safetensors`` and its neighbours hold the weights; ``data/training.json``
their settings, log and hashes, and with what they were made. ``make train`` remakes
them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path

import torch

from apex_lessons.extrapolation.decoder import Decoder, DecoderSettings
from apex_lessons.extrapolation.training import LogLine, Trainer

DATA = Path(__file__).resolve().parent / "data"


@cache
def training_record(folder: Path = DATA) -> dict:
    """Settings, log and hash of every shipped model, as plain values.

    Raises ValueError where the folder has no such record.
    """
    return read_record(folder / "training.json", "train", _check)


def read_record(path: Path, work: str, check: Callable[[dict], None]) -> dict:
    """A JSON file that ``work``, train or measure, has written.

    ``check`` is given what was read and raises a KeyError, TypeError or ValueError for
    anything else. Raises ValueError naming the file and what to do.
    """
    command = f"python -m apex_lessons.extrapolation {work} --out {path.parent}"
    try:
        record = json.loads(path.read_bytes())
        check(record)
    except FileNotFoundError as error:
        raise ValueError(f"there is no {path}; make it with `{command}`") from error
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise ValueError(
            f"{path} is not what `{work}` writes ({reason}); make it anew with"
            f" `{command}`"
        ) from error
    return record


def _check(record: dict) -> None:
    DecoderSettings(**record["decoder"])
    for entry in (*record["models"].values(), *record["left_out"].values()):
        [LogLine(**line) for line in entry["log"]]
    for seed, entry in record["models"].items():
        if str(int(seed)) != seed or Path(entry["file"]).name != entry["file"]:
            raise ValueError(f"seed {seed!r} with the file {entry['file']!r}")
        str(entry["sha256"])


def trained_length(folder: Path = DATA) -> int:
    """The length that the models of a folder were trained with, in bytes."""
    return DecoderSettings(**training_record(folder)["decoder"]).trained_length


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

    Raises ValueError for a seed that was not trained, for a file whose hash is not the
    recorded one and for weights of other sizes than the record says.
    """
    entry = _entry(seed, folder)
    content = _content(folder / entry["file"])
    if hashlib.sha256(content).hexdigest() != entry["sha256"]:
        raise ValueError(
            f"{entry['file']} is not the file that was trained: its hash differs. Fetch"
            " it anew, or remake it with `make train`"
        )
    settings = DecoderSettings(**training_record(folder)["decoder"])
    decoder = Decoder(settings, torch.Generator().manual_seed(seed))
    _fill(decoder, content, folder / entry["file"])
    return decoder.to(device).requires_grad_(False)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ValueError(
            f"there is no {path}, which training.json names: put it back or remake both"
            f" with `python -m apex_lessons.extrapolation train --out {path.parent}`"
        ) from error


def _fill(decoder: Decoder, content: bytes, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights = {name: weight.float() for name, weight in load(content).items()}
        decoder.load_state_dict(weights)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path} does not hold weights of the sizes in training.json; remake both:"
            f" `python -m apex_lessons.extrapolation train --out {path.parent}`"
        ) from error


def _entry(seed: int, folder: Path) -> dict:
    models = training_record(folder)["models"]
    if not models:
        raise ValueError(
            f"{folder} has no model: none that was trained learned to look back; train"
            " for more steps or with other seeds"
        )
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
    training_record.cache_clear()


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
