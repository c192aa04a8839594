"""The picture of the verdicts shows the ledger's counts."""

from __future__ import annotations

from apex_lessons.figures import claims as draw
from apex_lessons.figures import png
from apex_lessons.models import claims


def test_the_bars_add_up_to_the_ledger():
    counts = draw.verdict_counts()
    assert sum(sum(pieces.values()) for pieces in counts.values()) == 87
    rope = [row for row in claims() if row.id.startswith("C") and row.section == "rope"]
    assert counts["rope"]["correct"] == sum(row.verdict == "correct" for row in rope)


def test_the_picture_holds_a_bar_piece_for_each_count_and_the_words_name_it():
    figure = draw.verdicts_by_section()
    widths = {round(bar.get_width()) for axis in figure.axes for bar in axis.patches}
    wanted = {n for pieces in draw.verdict_counts().values() for n in pieces.values()
              if n}
    assert wanted <= widths
    assert png(figure).startswith(b"\x89PNG")
    assert "rope: 7 correct" in draw.describe_verdicts_by_section()
