"""The text the small model reads: recall text from a generator, and Python's own.

**Recall text** is made so that some of its bytes can be known only by looking back. It
is invented words with facts between them. A fact is one byte, 128 + 8 r + v: register r
now holds v. Later the register's letter stands there, and its value as a digit, ``D5``:
known to a reader who finds the register's last fact, to anybody else one digit in
eight. How far back the fact lies is drawn evenly on a logarithmic scale and recorded.
The same generator makes the same bytes on every machine.

**Natural text** is the source code and documentation in Python's standard library: on
every machine, but not the same in every version of Python.
"""

from __future__ import annotations

import hashlib
import heapq
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from apex_lessons.errors import whole_number

REGISTERS, VALUES = 16, 8
FACT = 128  # the first of the 128 bytes that are facts; ASCII text has none of them
LETTER, DIGIT = ord("A"), ord("0")
WORDS = 150
FACT_SHARE = 0.8  # a fact, where a register is free; else a word
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"


@dataclass(frozen=True)
class Recall:
    """Recall text as bytes, and where the answers are.

    ``ids``: int64 [batch, length]. ``distance``: int64 [batch, length], at an answer's
    digit the bytes from the register's letter back to the fact, elsewhere 0.
    """

    ids: Tensor
    distance: Tensor


def recall(
    length: int, batch: int, generator: torch.Generator, *, reach: int | None = None
) -> Recall:
    """``batch`` recall texts of ``length`` bytes.

    Distances are about reach**u with u even on [0, 1]; ``reach`` None: the length.
    Raises ValueError or TypeError for a length, batch or reach below 1.

    >>> made = recall(64, 1, torch.Generator().manual_seed(0))
    >>> readable(made.ids[0])[:34]
    'fome [M=1][E=3][J=3]E3M1[K=4]J3[C='
    """
    length = whole_number("length", length, at_least=1)
    batch = whole_number("batch", batch, at_least=1)
    reach = length if reach is None else whole_number("reach", reach, at_least=1)
    rows = [_row(length, reach, generator) for _ in range(batch)]
    ids, distance = zip(*rows, strict=True)
    return Recall(torch.tensor(ids), torch.tensor(distance))


def _row(length: int, reach: int, generator: torch.Generator) -> tuple[list, list]:
    """One text: in each step an answer that is due, or a new fact, or a word."""
    draws = torch.rand(length, 4, generator=generator, dtype=torch.float64).tolist()
    ids: list[int] = []
    distance: list[int] = []
    waiting: list[tuple] = []  # (when it is due, when it was written, register, value)
    free = list(range(REGISTERS))
    for kind, which, value, far in draws:
        now = len(ids)
        if waiting and waiting[0][0] <= now:
            _, written, register, held = heapq.heappop(waiting)
            free.append(register)
            new, back = [LETTER + register, DIGIT + held], now - written
        elif kind < FACT_SHARE and free:
            register, held = free.pop(int(which * len(free))), int(value * VALUES)
            heapq.heappush(waiting, (now + int(reach**far), now, register, held))
            new, back = [FACT + VALUES * register + held], 0
        else:
            # the square makes some words common and most of them rare
            new, back = words()[int(WORDS * value**2)], 0
        ids += new
        distance += [0] * (len(new) - 1) + [back]
        if len(ids) >= length:
            break
    return ids[:length], distance[:length]


@cache
def words() -> tuple[list[int], ...]:
    """The invented words, two or three syllables and a space, as bytes."""
    generator = torch.Generator().manual_seed(1)
    syllables = torch.randint(2, 4, (WORDS,), generator=generator).tolist()
    return tuple(_word(count, generator) for count in syllables)


def _word(syllables: int, generator: torch.Generator) -> list[int]:
    consonants = torch.randint(len(CONSONANTS), (syllables,), generator=generator)
    vowels = torch.randint(len(VOWELS), (syllables,), generator=generator)
    pairs = zip(consonants.tolist(), vowels.tolist(), strict=True)
    spelt = "".join(CONSONANTS[c] + VOWELS[v] for c, v in pairs)
    return list((spelt + " ").encode())


def readable(ids: Tensor) -> str:
    """Bytes [length] as text; a fact is shown as [D=5]."""
    return "".join(_shown(byte) for byte in ids.tolist())


def _shown(byte: int) -> str:
    if byte < FACT:
        return chr(byte)
    register, value = divmod(byte - FACT, VALUES)
    return f"[{chr(LETTER + register)}={value}]"


@dataclass(frozen=True)
class NaturalText:
    """The standard library's source, split into a part to train on and one to test on.

    ``train``, ``test``: uint8 [bytes], ASCII only. ``sha256`` of both together.
    """

    train: Tensor
    test: Tensor
    sha256: str

    def rows(self, length: int, batch: int, generator: torch.Generator) -> Tensor:
        """``batch`` random windows of the training part, int64 [batch, length]."""
        starts = torch.randint(
            len(self.train) - length, (batch,), generator=generator
        ).tolist()
        return torch.stack([self.train[at : at + length] for at in starts]).long()

    def test_rows(self, length: int, batch: int) -> Tensor:
        """``batch`` windows spread evenly over the test part, int64 [batch, length]."""
        if batch * length > len(self.test):
            raise ValueError(
                f"the test part has {len(self.test):,} bytes, too few for {batch}"
                f" windows of {length}"
            )
        starts = torch.linspace(0, len(self.test) - length, batch).long().tolist()
        return torch.stack([self.test[at : at + length] for at in starts]).long()


@cache
def natural_text() -> NaturalText:
    """The modules of Python's standard library, every eighth of them for testing.

    Bytes that are not ASCII are left out (recall text uses them for facts).
    """
    folder = Path(sysconfig.get_path("stdlib"))
    texts = [_ascii(file.read_bytes()) for file in sorted(folder.glob("*.py"))]
    test = b"".join(texts[::8])
    train = b"".join(text for at, text in enumerate(texts) if at % 8)
    digest = hashlib.sha256(train + test).hexdigest()
    return NaturalText(_bytes(train), _bytes(test), digest)


def _ascii(text: bytes) -> bytes:
    return bytes(byte for byte in text if byte < FACT)


def _bytes(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)
