"""Every claim of the two source texts: each has its verdict, and its evidence bears it
out."""

from __future__ import annotations

from collections import Counter

import pytest

from apex_lessons.models import claims
from apex_lessons.models.ledger import SECTIONS, VERDICTS
from apex_lessons.models.ledger.claim import Ledger, computed

ROWS = claims()
BY_ID = {row.id: row for row in ROWS}
WANTED = [f"E{i:02d}" for i in range(1, 45)] + [f"C{i:02d}" for i in range(1, 88)]


def test_every_erratum_and_every_claim_of_the_ledger_is_there_once():
    assert [row.id for row in ROWS] == WANTED


def test_the_verdicts_count_up_to_the_ledgers_own_totals():
    errata = Counter(row.verdict for row in ROWS if row.id.startswith("E"))
    assert errata == {
        "wrong": 22,
        "inconsistent": 11,
        "misleading": 10,
        "unverifiable": 1,
    }


def test_in_the_texts_themselves_42_places_are_in_doubt():
    inside = [
        row for row in ROWS if row.id.startswith("E") and row.text != "repository"
    ]
    assert {row.id for row in ROWS if row.text == "repository"} == {"E17", "E44"}
    assert Counter(row.verdict for row in inside) == {
        "wrong": 21,
        "inconsistent": 11,
        "misleading": 10,
    }


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_the_evidence_bears_the_verdict_out(row):
    evidence = row.evidence()
    assert evidence.supports, evidence.statement
    assert evidence.kind in ("computed", "citation")
    assert (
        evidence.numbers
        if evidence.kind == "computed"
        else evidence.statement == row.source
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_a_row_says_where_what_and_whence(row):
    assert row.verdict in VERDICTS and row.section in SECTIONS
    for words in (row.where, row.claim, row.right_value, row.source):
        assert words.strip() and "  " not in words
    assert set(row.see) <= set(BY_ID)


def test_a_row_of_the_ledger_that_rests_on_errata_is_not_called_correct_by_accident():
    """C47, C58 and C77 are right although the erratum beside them is not."""
    soft = {row.id for row in ROWS if row.see and row.verdict == "correct"}
    assert soft == {"C47", "C58", "C64", "C77"}


def test_evidence_that_fails_is_seen():
    ledger = Ledger("rope")
    ledger.measured(
        "E99", "reference", "nowhere", "cos 0 is 0", "wrong", "1", "computed"
    )(lambda: computed("cos 0 = 1", 1.0 == 0.0, value=1.0))
    assert not ledger.claims[0].evidence().supports


NUMBERS = [
    ("E02", "large", 2.867, 0.02),
    ("E03", "after", 0.0025, 1e-9),
    ("E13", "mean", 0.548, 1e-3),
    ("E15", "norm", 22.627, 1e-3),
    ("E18", "second", 0.1, 1e-12),
    ("E22", "after", 1.1747, 1e-4),
    ("E24", "last", 0.0753, 1e-4),
    ("E27", "first", 35.333, 1e-3),
    ("E29", "scores", 1.81326, 1e-5),
    ("E31", "theta", 1.778e-4, 1e-7),
    ("E32", "code", 5.848e-3, 1e-6),
    ("E39", "large", 2.571, 1e-3),
    ("E43", "deviations", 44.85, 1e-9),
    ("C13", "gain", 1.334, 1e-3),
    ("C01", "far", 1.212, 1e-3),
]


@pytest.mark.parametrize("id, name, value, tolerance", NUMBERS)
def test_numbers_of_the_fact_check(id, name, value, tolerance):
    assert BY_ID[id].evidence().numbers[name] == pytest.approx(value, abs=tolerance)
