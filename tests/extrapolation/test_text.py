"""Recall text: the same everywhere, with answers that are true; Python's own text."""

import pytest
import torch

from apex_lessons.extrapolation import natural_text, readable, recall
from apex_lessons.extrapolation.text import DIGIT, FACT, LETTER, VALUES, words

MADE = recall(2048, 3, torch.Generator().manual_seed(0))


def test_the_same_generator_makes_the_same_bytes():
    again = recall(2048, 3, torch.Generator().manual_seed(0))
    assert torch.equal(MADE.ids, again.ids)
    assert torch.equal(MADE.distance, again.distance)
    other = recall(2048, 3, torch.Generator().manual_seed(1))
    assert not torch.equal(MADE.ids, other.ids)


def answers(made):
    """(row, position) of every answer's digit."""
    return [tuple(at) for at in (made.distance > 0).nonzero().tolist()]


def test_every_answer_is_the_register_s_last_fact():
    for row, at in answers(MADE):
        ids = MADE.ids[row].tolist()
        register, value = ids[at - 1] - LETTER, ids[at] - DIGIT
        facts = range(FACT + VALUES * register, FACT + VALUES * (register + 1))
        last = max(place for place in range(at) if ids[place] in facts)
        assert ids[last] == FACT + VALUES * register + value
        assert at - 1 - last == MADE.distance[row, at]


def test_nothing_but_the_fact_tells_the_answer():
    """A letter before a digit stands only where an answer is: no answer is repeated."""
    for row in range(3):
        ids = MADE.ids[row].tolist()
        letters = [
            at for at, byte in enumerate(ids[:-1]) if LETTER <= byte < LETTER + 16
        ]
        assert [at + 1 for at in letters] == [at for r, at in answers(MADE) if r == row]


def test_distances_reach_from_near_to_the_reach():
    far = recall(4096, 8, torch.Generator().manual_seed(0)).distance
    near = recall(4096, 8, torch.Generator().manual_seed(0), reach=16).distance
    assert far.max() > 3000
    assert 16 <= near.max() < 64  # an answer that is due may wait for others
    found = far[far > 0].double().log2()
    for low in range(0, 11, 2):  # spread over every scale, none of them rare
        assert ((found >= low) & (found < low + 2)).double().mean() > 0.05


def test_words_are_words():
    spelt = {bytes(word).decode() for word in words()}
    assert all(word.endswith(" ") and word[:-1].isalpha() for word in spelt)
    assert len(words()) == 150 and len(spelt) > 140


def test_a_fact_is_shown_as_register_and_value():
    ids = torch.tensor([FACT + VALUES * 3 + 5, ord("x"), LETTER + 3, DIGIT + 5])
    assert readable(ids) == "[D=5]xD5"


@pytest.mark.parametrize("given", [(0, 1), (8, 0), (8.5, 1), (-1, 1)])
def test_unusable_sizes_are_refused(given):
    with pytest.raises((ValueError, TypeError)):
        recall(*given, torch.Generator())


def test_natural_text_is_ascii_and_its_parts_are_apart():
    text = natural_text()
    assert text.train.max() < 128 and text.test.max() < 128
    assert len(text.train) > 2_000_000 and len(text.test) > 200_000
    rows = text.rows(64, 2, torch.Generator().manual_seed(0))
    inside = bytes(text.train.tolist())
    assert all(bytes(row.tolist()) in inside for row in rows)
    assert bytes(text.test_rows(4096, 2)[1].tolist()) not in inside


def test_more_natural_text_than_there_is_is_refused():
    with pytest.raises(ValueError, match="too few"):
        natural_text().test_rows(4096, 10_000)
