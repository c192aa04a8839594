"""Length extrapolation, measured: a small decoder, its training, its curves.

``decoder`` is the model, ``text`` what it reads, ``training`` and ``finetuning`` how it
learns; ``methods`` and ``measuring`` read long texts with it, ``study`` does so for
every method, length and seed, ``checkpoints`` and ``results`` hold what is shipped.
``python -m apex_lessons.extrapolation train`` and ``measure`` remake it.
"""

from apex_lessons.extrapolation.checkpoints import (
    left_out,
    load_checkpoint,
    seeds,
    training_log,
    training_record,
)
from apex_lessons.extrapolation.decoder import Decoder, DecoderSettings
from apex_lessons.extrapolation.measuring import (
    attention_entropy,
    measure,
    read_by,
    text_for,
)
from apex_lessons.extrapolation.methods import METHODS, Reading, reading
from apex_lessons.extrapolation.results import (
    LENGTHS,
    Band,
    Result,
    band,
    provenance,
    select,
    stored,
)
from apex_lessons.extrapolation.text import natural_text, readable, recall
from apex_lessons.extrapolation.training import Trainer, TrainingSettings

__all__ = [
    "LENGTHS",
    "METHODS",
    "Band",
    "Decoder",
    "DecoderSettings",
    "Reading",
    "Result",
    "Trainer",
    "TrainingSettings",
    "attention_entropy",
    "band",
    "left_out",
    "load_checkpoint",
    "measure",
    "natural_text",
    "provenance",
    "read_by",
    "readable",
    "reading",
    "recall",
    "seeds",
    "select",
    "stored",
    "text_for",
    "training_log",
    "training_record",
]
