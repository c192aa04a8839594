"""The claims of the two source texts, each with its verdict and its evidence.

131 rows: 87 of the ledger (C01 to C87: every checkable claim, right and wrong) and 44
errata (E01 to E44). E17 and E44 stand in the model's repository, not in the texts.
Checked in 2026 against the papers and repositories that each row names; the model's
repository is AarambhDevHub/APEX-1 at 97b5855 (30 May 2026).
"""

from __future__ import annotations

from apex_lessons.models.ledger import embedding, norm, notation, rope, yarn
from apex_lessons.models.ledger.claim import SECTIONS, VERDICTS, Claim, Evidence

__all__ = ["SECTIONS", "VERDICTS", "Claim", "Evidence", "claims"]


def claims() -> tuple[Claim, ...]:
    """All claims, errata first, each group in the order of its numbers.

    >>> len(claims()), claims()[0].id, claims()[-1].id
    (131, 'E01', 'C87')
    """
    ledgers = (notation, embedding, norm, rope, yarn)
    rows = [row for module in ledgers for row in module.LEDGER.claims]
    return tuple(sorted(rows, key=lambda row: (row.id[0] != "E", row.id)))
