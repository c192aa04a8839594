"""Pictures of the reference, checked."""

from __future__ import annotations

from collections import Counter

from matplotlib.figure import Figure

from apex_lessons.figures import INK, PALETTE, new_figure
from apex_lessons.models import claims
from apex_lessons.models.ledger import SECTIONS, VERDICTS

HATCHES = ("", "//", "..", "xx", "--")
COLOURS = (PALETTE[2], PALETTE[1], PALETTE[4], PALETTE[3], PALETTE[5])


def verdict_counts() -> dict[str, dict[str, int]]:
    """Section -> verdict -> how many claims of the ledger (C01 to C87)."""
    ledger = [row for row in claims() if row.id.startswith("C")]
    counts = Counter((row.section, row.verdict) for row in ledger)
    return {
        section: {verdict: counts[section, verdict] for verdict in VERDICTS}
        for section in SECTIONS
    }


def verdicts_by_section() -> Figure:
    """One bar a section, one piece a verdict, with its number."""
    figure, axis = new_figure(7.0, 2.9)
    counts = verdict_counts()
    start = dict.fromkeys(SECTIONS, 0)
    box = {"facecolor": "white", "pad": 1.5, "edgecolor": "none"}
    for verdict, colour, hatch in zip(VERDICTS, COLOURS, HATCHES):
        values = [counts[section][verdict] for section in SECTIONS]
        if not any(values):
            continue
        axis.barh(SECTIONS, values, left=[start[section] for section in SECTIONS],
                  color=colour, hatch=hatch, edgecolor="white", label=verdict)
        for section, value in zip(SECTIONS, values):
            if value:
                axis.text(start[section] + value / 2, section, str(value), ha="center",
                          va="center", color=INK, bbox=box, fontsize=9)
            start[section] += value
    axis.invert_yaxis()
    axis.set_xlabel("checkable claims of the two texts")
    axis.set_xlim(0, 26)
    axis.grid(False, axis="y")
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    return figure


def describe_verdicts_by_section() -> str:
    """The bars in words, a line a section."""
    return "\n".join(
        f"{section}: "
        + ", ".join(
            f"{number} {verdict}" for verdict, number in pieces.items() if number
        )
        for section, pieces in verdict_counts().items()
    )
