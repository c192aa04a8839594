"""Read long texts with a trained model and measure: loss, answers, attention entropy.

Loss is the mean of -ln p(next byte), in nats a byte. Everything is measured on the same
texts for all methods and seeds, so that differences between methods are not
differences between texts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from apex_lessons.errors import one_of, whole_number
from apex_lessons.extrapolation.decoder import Decoder
from apex_lessons.extrapolation.methods import Reading, reading
from apex_lessons.extrapolation.text import natural_text, recall

TEXTS = ("recall", "natural")
TEXT_SEED = 2026  # of the recall texts that everything is measured on
TEXT_BYTES = 32_768  # of each text at each length: 64 rows of 512, 8 of 4,096
ROWS = 64  # at most, however short they are
BIN = 128  # bytes of a position bin
# Distance bins of the answers: 1 to 7 bytes back, 8 to 31, and so on.
DISTANCES = (1, 8, 32, 128, 256, 512, 1024, 2048, 4096)


@dataclass(frozen=True)
class TextRows:
    """Rows to measure on: ``ids`` and ``distance`` [rows, length] as in Recall."""

    ids: Tensor
    distance: Tensor


@dataclass(frozen=True)
class Measured:
    """What one reading of a text gave.

    ``loss``: mean over all bytes but each row's first. ``by_position``: means over bins
    of 128 bytes. ``accuracy``: share of right answers, None for natural text.
    ``by_distance``: right answers and answers, for each bin of ``DISTANCES``; those
    4,096 bytes back and further count in ``accuracy`` alone.
    """

    loss: float
    by_position: tuple[float, ...]
    accuracy: float | None
    by_distance: tuple[tuple[int, int], ...]


def text_for(text: str, length: int, *, size: int = TEXT_BYTES) -> TextRows:
    """The rows of ``length`` bytes that are measured on, about ``size`` in all.

    At least one row, at most ``ROWS``. Raises ValueError for a text of another name, a
    length below 2 and more natural text than there is.
    """
    one_of("text", text, TEXTS)
    length = whole_number("length", length, at_least=2)
    size = whole_number("size", size, at_least=1)
    rows = min(ROWS, max(1, size // length))
    if text == "natural":
        ids = natural_text().test_rows(length, rows)
        return TextRows(ids, torch.zeros_like(ids))
    made = recall(length, rows, torch.Generator().manual_seed(TEXT_SEED))
    return TextRows(made.ids, made.distance)


@torch.inference_mode()
def read(decoder: Decoder, ids: Tensor, how: Reading) -> tuple[Tensor, Tensor]:
    """Loss and rightness of each next byte of a row, each [length - 1], on the CPU."""
    row = ids.to(decoder.embedding.weight.device)[None]
    logits = decoder(row, how.scaled, score_factor=how.score_factor)[0, :-1]
    losses = F.cross_entropy(logits.float(), row[0, 1:], reduction="none")
    return losses.cpu(), (logits.argmax(-1) == row[0, 1:]).cpu()


def read_by(
    decoder: Decoder,
    ids: Tensor,
    method: str,
    factor: float | None = None,
    *,
    on_read: Callable[[int], None] = lambda read: None,
) -> tuple[Tensor, Tensor]:
    """As ``read``, with the frequencies that ``method`` has for this length.

    Dynamic NTK has other frequencies for every length, as a text grows: each trained
    length's worth of bytes is read with the frequencies of the text up to its end.
    ``on_read`` is told how many more bytes were read.
    """
    if method == "dynamic_ntk":
        return _read_dynamic(decoder, ids, on_read)
    how = reading(method, decoder.settings, len(ids), factor=factor)
    found = read(decoder, ids, how)
    on_read(len(ids))
    return found


def _read_dynamic(
    decoder: Decoder, ids: Tensor, on_read: Callable[[int], None]
) -> tuple[Tensor, Tensor]:
    settings, parts = decoder.settings, []
    for start in range(0, len(ids), settings.trained_length):
        end = min(start + settings.trained_length, len(ids))
        losses, right = read(decoder, ids[:end], reading("dynamic_ntk", settings, end))
        first = max(0, start - 1)  # the byte at `start` is foretold by the one before
        parts.append((losses[first:], right[first:]))
        on_read(end - start)
    losses, right = zip(*parts, strict=True)
    return torch.cat(losses), torch.cat(right)


def measure(
    decoder: Decoder,
    text: TextRows,
    method: str,
    factor: float | None = None,
    *,
    on_read: Callable[[int], None] = lambda read: None,
) -> Measured:
    """Read every row of a text with one method and take the means.

    ``factor`` None: length / trained length; a number: static scaling. ``on_read``: as
    in ``read_by``.
    """
    rows = [
        read_by(decoder, ids, method, factor, on_read=on_read) for ids in text.ids
    ]
    losses = torch.stack([row[0] for row in rows]).double()  # [rows, length - 1]
    right = torch.stack([row[1] for row in rows])
    distance = text.distance[:, 1:]
    answers = distance > 0
    counted = _by_distance(right, distance)
    accuracy = right[answers].double().mean().item() if answers.any() else None
    return Measured(losses.mean().item(), _by_position(losses), accuracy, counted)


def _by_position(losses: Tensor) -> tuple[float, ...]:
    """Means over columns, in bins of positions 0 to 127, 128 to 255, ..."""
    padded = F.pad(losses.mean(0), (1, 0))  # a text's first byte has no loss
    bins = [part[1:] if at == 0 else part for at, part in enumerate(padded.split(BIN))]
    return tuple(part.mean().item() for part in bins if len(part))


def _by_distance(right: Tensor, distance: Tensor) -> tuple[tuple[int, int], ...]:
    edges = zip(DISTANCES[:-1], DISTANCES[1:], strict=True)
    inside = [(distance >= low) & (distance < high) for low, high in edges]
    return tuple((int(right[bin].sum()), int(bin.sum())) for bin in inside)


@torch.inference_mode()
def attention_entropy(decoder: Decoder, ids: Tensor, how: Reading) -> Tensor:
    """Entropy of each head's attention, in nats: -sum p ln p, [n_layers, n_heads].

    The mean over the last quarter of one row's queries, ``ids`` [length].
    """
    row = ids.to(decoder.embedding.weight.device)[None]
    cos, sin = decoder.tables(len(ids), how.scaled)
    scale = decoder.scale(how.score_factor)
    x = decoder.embedding(row)
    entropies = []
    for block in decoder.blocks:
        normed = block.attention_norm(x)
        log_p = block.attention.log_weights(normed, cos, sin, scale)[0]  # [h, s, s]
        late = log_p[:, -len(ids) // 4 :]
        # where p is 0, p ln p is 0 as well
        entropies.append(-torch.nan_to_num(late.exp() * late).sum(-1).mean(-1))
        x = block(x, cos, sin, scale)
    return torch.stack(entropies).cpu()
