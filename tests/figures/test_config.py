"""The figure of a config: one point a pair, bands that hold every pair once."""

import math

import pytest

from apex_lessons.figures import config as figures
from apex_lessons.models import explain, rope_from_config

LLAMA = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8,
         "max_position_embeddings": 8192, "rope_theta": 10000.0}
BLOCKS = {
    "default": None,
    "linear": {"rope_type": "linear", "factor": 4.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0,
             "original_max_position_embeddings": 2048},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 2048},
    "proportional": {"rope_type": "proportional", "partial_rotary_factor": 0.25,
                     "factor": 2.0}}


def settings(method):
    block = {"rope_scaling": BLOCKS[method]} if BLOCKS[method] else {}
    return rope_from_config({**LLAMA, **block})["all"]


@pytest.mark.parametrize("regimes", [[], [0], [0, 0, 1, 2, 2], [0, 2, 0, 2], [1] * 7])
def test_every_pair_is_in_exactly_one_band(regimes):
    runs = figures.band_edges(regimes)
    rebuilt = [regime for first, last, regime in runs for _ in range(first, last + 1)]
    assert rebuilt == regimes
    assert all(left[2] != right[2] for left, right in zip(runs, runs[1:]))


@pytest.mark.parametrize("method", BLOCKS)
def test_the_lines_are_the_wavelengths(method):
    found = settings(method)
    axis = figures.regime_bands(found, title="a config").axes[0]
    lines = {line.get_label(): line for line in axis.get_lines()}
    turning = [(i, 2 * math.pi / f)
               for i, f in enumerate(found.scaled.inv_freq.tolist()) if f]
    drawn = lines[method if method != "default" else "plain"]
    assert drawn.get_xdata().tolist() == [pair for pair, _ in turning]
    assert drawn.get_ydata().tolist() == pytest.approx([wave for _, wave in turning])
    assert f"trained length, {found.trained_length} tokens" in lines
    assert axis.get_yscale() == "log" and axis.get_xlabel() and axis.get_ylabel()


def test_the_sentence_says_what_the_report_counts():
    counts = explain({**LLAMA, "rope_scaling": BLOCKS["yarn"]}).data()["counts"]
    words = figures.describe_regime_bands(settings("yarn"))
    assert words.startswith(f"64 pairs: {counts['unchanged']} unchanged,"
                            f" {counts['blended']} blended, {counts['interpolated']}"
                            " divided by 4\n")
    assert sum(counts.values()) == 64 and min(counts.values()) > 0
    axis = figures.regime_bands(settings("yarn")).axes[0]
    assert [text.get_text() for text in axis.texts] == list(figures.REGIMES)


def test_a_title_with_dollars_stays_text():
    figure = figures.regime_bands(settings("linear"), title="$x_1$ " * 30)
    figure.canvas.draw()
    assert len(figure.axes[0].get_title()) < 150
