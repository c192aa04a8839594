"""The numbers behind the pictures of page 00."""

import math

import pytest
import torch

from apex_lessons.figures import png, start
from apex_lessons.models.apex1 import SIZES, apex1_config


def test_the_path_is_what_each_step_says():
    row, scaled, normed, query, turned = start.token_path(4, 7, width=16).values()
    assert torch.allclose(scaled, row * 4)
    assert math.isclose(normed.pow(2).mean().item(), 1.0, rel_tol=1e-3)
    assert torch.isclose(turned.norm(), query.norm())
    pairs, moved = query.view(-1, 2), turned.view(-1, 2)
    for at, frequency in enumerate(10_000.0 ** (-torch.arange(0, 16, 2) / 16)):
        angle = 7 * frequency.item()
        turn = torch.tensor([[math.cos(angle), -math.sin(angle)],
                             [math.sin(angle), math.cos(angle)]])
        assert torch.allclose(turn @ pairs[at], moved[at], atol=1e-6)


def test_position_zero_turns_nothing_and_changes_no_other_step():
    here, there = start.token_path(2, 0), start.token_path(2, 9)
    assert torch.equal(here["query"], here["turned, m = 0"])
    for name in ("row of the table", "× √d", "RMSNorm", "query"):
        assert torch.equal(here[name], there[name])


@pytest.mark.parametrize(("batch", "seq", "width"), [(1, 16, 64), (64, 131_072, 7168)])
def test_shapes_are_those_of_real_tensors(batch, seq, width):
    rows = {row.name: row for row in start.tensor_shapes(batch, seq, width)}
    heads = width // 64
    assert rows["embedded X"].sizes == (batch, seq, width)
    assert rows["queries Q"].sizes == (batch, heads, seq, 64)
    assert rows["queries Q"].numbers == rows["embedded X"].numbers
    assert rows["scores QKᵀ"].numbers == batch * heads * seq ** 2
    assert rows["logits"].sizes == (batch, seq, 151_643)
    q = torch.empty(rows["queries Q"].sizes, device="meta")
    assert (q @ q.transpose(-1, -2)).shape == rows["scores QKᵀ"].sizes


def test_every_bar_fits_into_the_picture():
    figure = start.shapes(64, 131_072, 7168)
    (axis,) = figure.axes
    assert max(row.numbers for row in start.tensor_shapes(64, 131_072, 7168)) < (
        axis.get_xlim()[1])


def test_the_notation_table_and_what_the_reference_prints():
    """E40 and E41, from the settings of the four sizes."""
    verdicts = {row.symbol: row.verdict for row in start.notation()}
    assert {s for s, verdict in verdicts.items() if verdict == "differs"} == {
        "d_kv", "d_q", "W"}
    assert {s for s, verdict in verdicts.items() if verdict == "all four"} == {
        "H_kv", "L", "E", "K"}
    assert {s for s, verdict in verdicts.items() if verdict == "Small to Large"} == {
        "d", "d_h", "d_r", "H_q", "V"}
    for row in start.notation():
        assert row.values == tuple(getattr(apex1_config(size), row.symbol)
                                   for size in SIZES)


def test_feed_forward_widths():
    """E39: 8/3 of d is right for none of the four sizes exactly."""
    ratios = [apex1_config(size).d_ff / apex1_config(size).d_model for size in SIZES]
    assert [round(ratio, 4) for ratio in ratios] == [2.0, 2.6875, 2.6875, 2.5714]


def test_the_table_is_aligned():
    lines = start.notation_table().splitlines()
    assert len(lines) == 1 + len(start.PRINTED)
    column = lines[0].index("printed bounds fit")
    for line, row in zip(lines[1:], start.notation()):
        assert line[column:] == row.verdict


@pytest.mark.parametrize(("name", "settings"), [
    ("path_of_a_token", (2, 3)), ("shapes", (2, 2048, 512))])
def test_figures_repeat_and_are_described(name, settings):
    draw, describe = getattr(start, name), getattr(start, f"describe_{name}")
    assert len(png(draw(*settings))) > 10_000
    assert describe(*settings) == describe(*settings)
    assert len(describe(*settings).splitlines()) <= 6
