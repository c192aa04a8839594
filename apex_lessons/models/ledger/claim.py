"""What a claim is: where it stands, what it says, what is true, and how one can see
it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

Verdict = Literal["correct", "wrong", "misleading", "inconsistent", "unverifiable"]
Text = Literal["tutorial", "reference", "repository"]
VERDICTS = ("correct", "wrong", "misleading", "inconsistent", "unverifiable")
SECTIONS = ("notation", "embedding", "rmsnorm", "rope", "yarn")


@dataclass(frozen=True)
class Evidence:
    """What bears a verdict out: numbers computed here, or a citation."""

    kind: Literal["computed", "citation"]
    statement: str
    supports: bool  # whether the numbers bear the verdict out; a citation cannot be run
    numbers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        return f"[{self.kind}] {self.statement}"


@dataclass(frozen=True)
class Claim:
    """One checkable claim of the two source texts (or, where it says so, of their
    repository).

    ``claim`` is in our words; ``text`` and ``where`` say where it stands: the sections
    are the text's own, the lines those of the plain-text copy read; ``see`` names
    the errata that a row of the ledger rests on. ``evidence()`` computes the numbers,
    once a process.
    """

    id: str  # E01 ... E44 (errata), C01 ... C87 (the ledger of all claims)
    text: Text
    where: str
    section: str
    claim: str
    verdict: Verdict
    right_value: str
    source: str
    evidence: Callable[[], Evidence] = field(repr=False)
    see: tuple[str, ...] = ()


def computed(statement: str, supports, **numbers: float) -> Evidence:
    """Evidence that was computed; ``supports`` is the comparison that bears the verdict
    out."""
    plain = {name: float(value) for name, value in numbers.items()}
    return Evidence("computed", statement, bool(supports), MappingProxyType(plain))


FIELDS = ("id", "text", "where", "claim", "verdict", "right_value", "source")


class Ledger:
    """Collects the claims of one section, in the order they are written down.

    A row is written as its texts in the order of ``FIELDS``.
    """

    def __init__(self, section: str):
        self.section, self.claims = section, []

    def _add(self, row: tuple[str, ...], evidence: Callable[[], Evidence],
             see=()) -> None:
        words = dict(zip(FIELDS, row, strict=True))
        claim = Claim(**words, section=self.section, evidence=evidence, see=tuple(see))
        self.claims.append(claim)

    def measured(self, *row: str, see: tuple[str, ...] = ()):
        """Decorator: the function under it computes the evidence."""

        def keep(function: Callable[[], Evidence]):
            # Nothing in it changes between calls; several rows may rest on one proof.
            once = functools.cache(function)
            self._add(row, once, see)
            return once

        return keep

    def cited(self, *row: str) -> None:
        """A claim that cannot be run: its source, the last text, is its evidence."""
        evidence = Evidence("citation", row[-1], True)
        self._add(row, lambda: evidence)

    def rests_on(self, id, text, where, claim, see, verdict=None,
                 right_value="") -> None:
        """A row whose evidence, and what is not given, is that of an erratum here."""
        first = next(c for c in self.claims if c.id == see[0])
        rest = (verdict or first.verdict, right_value or first.right_value,
                first.source)
        self._add((id, text, where, claim, *rest), first.evidence, see)
