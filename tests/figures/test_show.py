"""The shared part of every picture: the house style, the PNG, the alt text."""

import base64
import struct

import matplotlib
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from apex_lessons import figures
from apex_lessons.figures import FAINT, INK, LINE_STYLES, MARKERS, PALETTE, PAPER

ALT = "a line that rises from zero to one"


def luminance(colour):
    def linear(channel):
        if channel <= 0.04045:
            return channel / 12.92
        return ((channel + 0.055) / 1.055) ** 2.4

    red, green, blue = map(linear, to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def line():
    figure, axis = figures.new_figure(4.0, 2.5)
    axis.plot([0, 1], [0, 1])
    return figure


@pytest.fixture
def shown(monkeypatch):
    """What `show` hands to the notebook: a list of (data, options)."""
    calls = []
    monkeypatch.setattr(figures, "display",
                        lambda data, **options: calls.append((data, options)))
    return calls


def test_new_figure_gives_one_axis_or_an_array():
    figure, axis = figures.new_figure()
    assert isinstance(figure, Figure)
    assert axis in figure.axes
    _, axes = figures.new_figure(columns=3, rows=2)
    assert axes.shape == (2, 3)


def test_nothing_global_is_left_behind():
    import matplotlib.pyplot as pyplot

    before, settings = pyplot.get_fignums(), dict(matplotlib.rcParams)
    figures.png(line())
    assert pyplot.get_fignums() == before
    assert dict(matplotlib.rcParams) == settings


def test_the_paper_is_opaque_so_that_dark_pages_can_read_it():
    figure, axis = figures.new_figure()
    assert figure.get_facecolor() == (*to_rgb(PAPER), 1.0)
    assert axis.get_facecolor() == (*to_rgb(PAPER), 1.0)


def test_text_and_lines_stand_out_from_the_paper():
    assert contrast(INK, PAPER) > 7
    assert contrast(FAINT, PAPER) < 2, "the grid stays behind the data"
    for colour in PALETTE[:3]:
        assert contrast(colour, PAPER) > 3, colour


def test_series_differ_by_more_than_their_colour():
    for series in (PALETTE, map(str, LINE_STYLES), MARKERS):
        assert len(set(series)) == 7


def test_the_same_picture_has_the_same_bytes():
    assert figures.png(line()) == figures.png(line())


def test_a_png_has_twice_the_pixels_of_its_size_and_no_software_stamp():
    data = figures.png(line())
    width, height = struct.unpack(">II", data[16:24])
    assert (width, height) == (800, 500)
    assert b"Software" not in data
    assert b"matplotlib" not in data


def test_show_displays_picture_alt_text_and_size_and_prints_the_numbers(shown, capsys):
    figures.show(line(), alt=ALT, numbers="from 0 to 1")
    ((data, options),) = shown
    assert base64.b64decode(data["image/png"]) == figures.png(line())
    assert data["text/plain"] == f"[picture] {ALT}"
    assert options["metadata"]["image/png"] == {"alt": ALT, "width": 400, "height": 250}
    assert options["raw"] is True
    assert capsys.readouterr().out == "from 0 to 1\n"


@pytest.mark.parametrize("alt", ["", "a line", " " * 40])
def test_a_picture_needs_alt_text(shown, alt):
    with pytest.raises(ValueError, match="30 characters"):
        figures.show(line(), alt=alt, numbers="1")
    assert not shown


@pytest.mark.parametrize("numbers", ["", "  \n"])
def test_a_picture_needs_its_numbers(shown, numbers):
    with pytest.raises(ValueError, match="numbers"):
        figures.show(line(), alt=ALT, numbers=numbers)
    assert not shown
