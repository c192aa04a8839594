"""The trained table: its shape, its neighbours, and a missing package."""

import importlib.util
import logging

import pytest
import torch

from apex_lessons.models.trained_table import trained_table


def test_shape_dtype_and_names():
    table = trained_table()
    assert table.weight.shape == (32_000, 256)
    assert table.weight.dtype == torch.float32
    assert table.weight.isfinite().all()
    assert len(table.tokens) == 32_000
    assert table.tokens[table.row("king")] == "▁king"
    assert trained_table() is table


@pytest.mark.parametrize(("word", "neighbour", "cosine"), [
    ("king", "▁King", 0.89), ("king", "▁monarch", 0.56), ("Paris", "▁France", 0.62)])
def test_neighbours(word, neighbour, cosine):
    near = dict(trained_table().nearest(word, 5))
    assert abs(near[neighbour] - cosine) < 0.01
    assert "▁" + word not in near
    assert list(near.values()) == sorted(near.values(), reverse=True)


def test_a_word_of_several_tokens_is_refused_with_advice():
    with pytest.raises(KeyError, match="unbelievable.*common"):
        trained_table().row("unbelievable")


def test_without_the_package_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    trained_table.cache_clear()
    with pytest.raises(ImportError, match="pip install wordllama"):
        trained_table()


def test_the_package_itself_is_not_imported():
    """Importing it would switch on logging for the whole notebook."""
    import sys

    trained_table.cache_clear()
    trained_table()
    assert "wordllama" not in sys.modules
    assert not logging.getLogger().isEnabledFor(logging.INFO)
