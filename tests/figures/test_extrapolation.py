"""The numbers behind the pictures of lesson 05: they are those that were stored."""

import io
import math
import warnings

import pytest
from matplotlib.figure import Figure

from apex_lessons.extrapolation import LENGTHS, METHODS, Band, band, seeds, select
from apex_lessons.extrapolation.measuring import DISTANCES
from apex_lessons.figures import extrapolation as pictures

FOUR = list(pictures.PAPERS)
FIGURES = {
    "training": ((), {}),
    "loss_by_position": ((FOUR,), {"length": 4096, "text": "natural"}),
    "loss_by_length": ((FOUR,), {"value": "entropy"}),
    "accuracy_by_distance": ((FOUR,), {"length": 2048, "seed": 0}),
    "unnamed": (({"A": [Band(2, 1, 3)] * 8, "B": [Band(1, 1, 1)] * 8},), {}),
    "near_and_far": ((), {"length": 4096}),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_draws_the_same_bytes_twice_without_a_warning(name):
    given, settings = FIGURES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = (
            drawn(getattr(pictures, name)(*given, **settings)) for _ in range(2)
        )
    assert first == second and len(first) > 5000


def drawn(figure):
    assert isinstance(figure, Figure)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=40)
    return buffer.getvalue()


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_its_numbers_in_words(name):
    given, settings = FIGURES[name]
    words = getattr(pictures, f"describe_{name}")(*given, **settings)
    assert any(letter.isdigit() for letter in words)
    assert all(len(line) < 250 for line in words.splitlines())


def test_every_method_has_its_own_look():
    assert set(pictures.LOOKS) == set(METHODS)
    assert len(set(pictures.LOOKS.values())) == len(METHODS)


def test_a_position_curve_is_the_band_of_the_stored_bins():
    (curve,) = pictures.position_curves(["yarn"], length=1024)
    rows = [r.by_position for r in select(method="yarn", length=1024)]
    assert len(rows) == len(seeds()) and len(curve.x) == 8
    assert curve.x[:2] == (64, 192)
    assert curve.bands[3] == band(row[3] for row in rows)


def test_one_seed_has_no_band():
    (curve,) = pictures.position_curves(["none"], length=512, seed=0)
    assert all(b.low == b.mean == b.high for b in curve.bands)


def test_distances_are_bins_with_answers():
    (curve,) = pictures.distance_curves(["none"], length=512)
    assert len(curve.x) == 5  # beyond 512 bytes nothing is asked in 512 bytes
    assert curve.x[0] == math.sqrt(DISTANCES[0] * DISTANCES[1])
    shares = [
        r.by_distance[0][0] / r.by_distance[0][1]
        for r in select(method="none", length=512)
    ]
    assert curve.bands[0] == band(shares)


@pytest.mark.parametrize("text", ["natural", "recall"])
def test_the_table_s_cells_are_the_stored_means(text):
    table = pictures.loss_table(text)
    assert [row[0] for row in table.rows] == [name for name, _ in METHODS.values()]
    mean = band(
        r.loss for r in select(method="yarn", length=LENGTHS[2], text=text)
    ).mean
    (row,) = [row for row in table.rows if row[0] == METHODS["yarn"][0]]
    assert row[3].startswith(f"{mean:.3f} (")
    assert len({row[1] for row in table.rows}) == 1  # at 1x all are one


def test_a_table_is_read_by_a_screen_reader_and_a_terminal():
    table = pictures.Table("A <b>", ["method", "x"], [["one & two", "3"]])
    shown = table._repr_html_()
    assert "<caption>A &lt;b&gt;</caption>" in shown and "one &amp; two" in shown
    assert shown.count('scope="col"') == 2 and shown.count('scope="row"') == 1
    assert repr(table) == "method     x\none & two  3"


def test_static_and_tuned_tables_hold_what_is_stored():
    (_, yarn), (_, tuned) = (
        pictures.static_table("natural", ["yarn"]).rows,
        [None, *pictures.tuned_table("natural", ["yarn"]).rows],
    )
    mean = band(
        r.loss for r in select(method="yarn", length=512, text="natural", factor=8.0)
    ).mean
    assert yarn[2].startswith(f"{mean:.3f}")
    after = band(
        r.loss
        for r in select(
            method="yarn", length=2048, text="natural", factor=4.0, tuned=True
        )
    ).mean
    assert tuned[2].startswith(f"{after:.3f}")


def test_near_and_far_are_shares_of_all_answers_in_their_bins():
    (row,) = pictures.near_and_far_shares(["yarn"], length=2048)
    counts = [r.by_distance for r in select(method="yarn", length=2048)]
    assert DISTANCES[3] == 128 and DISTANCES[5] == 512
    near = [sum(r for r, n in c[:3]) / sum(n for r, n in c[:3]) for c in counts]
    far = [sum(r for r, n in c[5:]) / sum(n for r, n in c[5:]) for c in counts]
    assert row.near == band(near) and row.far == band(far)
    assert row.far_answers == sum(n for r, n in counts[0][5:])


def test_unnamed_curves_are_told_by_their_letters():
    words = pictures.describe_unnamed({"A": [Band(i, i, i) for i in range(16)]})
    assert words == "A: first 512 bytes 1.500, last quarter 13.500"
