"""Claims as an HTML table, for a page and for its filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape

from apex_lessons.models.ledger.claim import VERDICTS, Claim

COLUMNS = (
    "id",
    "where it stands",
    "what it says, in our words",
    "verdict",
    "what is right",
    "evidence, computed now",
)


def chosen(
    rows: Sequence[Claim], section: str = "all", verdict: str = "all"
) -> tuple[Claim, ...]:
    """The rows of one section and one verdict; "all" takes every one.

    >>> from apex_lessons.models import claims
    >>> [row.id for row in chosen(claims(), "rope", "wrong")]
    ['E18', 'E22', 'C62', 'C68']
    """
    return tuple(
        row
        for row in rows
        if section in ("all", row.section) and verdict in ("all", row.verdict)
    )


def summary(rows: Sequence[Claim]) -> str:
    """One line: how many rows, and how many of each verdict.

    >>> from apex_lessons.models import claims
    >>> summary(chosen(claims(), "rope", "wrong"))
    '4 claims: 4 wrong'
    """
    counts = Counter(row.verdict for row in rows)
    parts = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]
    )
    return f"{len(rows)} claims" + (f": {parts}" if parts else "")


def as_html(rows: Sequence[Claim]) -> str:
    """The rows as a table with a caption and header cells, and nothing but HTML."""
    head = "".join(f'<th scope="col">{column}</th>' for column in COLUMNS)
    body = "".join(_row(row) for row in rows)
    return (
        f"<table><caption>{summary(rows)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _row(row: Claim) -> str:
    evidence = row.evidence()
    seen = (
        evidence.statement if evidence.kind == "computed" else f"Citation: {row.source}"
    )
    cells = (f"{row.text}, {row.where}", row.claim, row.verdict, row.right_value, seen)
    columns = "".join(
        f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells
    )
    return f'<tr><th scope="row">{row.id}</th>{columns}</tr>'
