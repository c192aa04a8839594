"""Numbers in, one matplotlib Figure out: the pictures of the course.

Every figure is ``name(settings...) -> matplotlib.figure.Figure``. It is made without
pyplot, so nothing is global and nothing has to be closed, and the numbers it draws
come from a pure function beside it.
"""

from __future__ import annotations

import base64
import importlib
import io

import numpy as np
from IPython.display import display
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

# Okabe and Ito's colours: told apart by readers with any colour vision.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PAPER, INK, FAINT = "#fcfcf8", "#1b1b1b", "#d5d5cd"
PIXELS_PER_INCH, SCREEN_SCALE = 100, 2


def new_figure(width: float = 7.0, height: float = 3.6, columns: int = 1, rows: int = 1,
               **subplot_options):
    """An empty figure in the house style and its axes; sizes in inches.

    The paper is opaque, so that a picture reads the same on a light and a dark page.
    Returns ``(figure, axes)``; ``axes`` is a single Axes, or an array of them.
    """
    figure = Figure(figsize=(width, height), dpi=PIXELS_PER_INCH, facecolor=PAPER,
                    layout="constrained")
    axes = figure.subplots(rows, columns, **subplot_options)
    for axis in figure.axes:
        house_style(axis)
    return figure, axes


def house_style(axis) -> None:
    """Quiet axes: two spines, a faint grid behind the data, ink-coloured text."""
    axis.set_facecolor(PAPER)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(INK)
    axis.tick_params(colors=INK, labelsize=9)
    axis.grid(True, which="major", color=FAINT, linewidth=0.6)
    axis.set_axisbelow(True)


def png(figure: Figure) -> bytes:
    """The figure as a PNG at twice the screen's density, the same bytes every time."""
    buffer, size = io.BytesIO(), figure.dpi
    figure.dpi = PIXELS_PER_INCH * SCREEN_SCALE
    canvas = FigureCanvasAgg(figure)
    canvas.draw()  # once; savefig would lay out and draw a second time
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # 256 colours are enough for lines and letters; the page gets a third of the weight.
    picture = picture.quantize(256, method=Image.Quantize.FASTOCTREE,
                               dither=Image.Dither.NONE)
    picture.save(buffer, "png", dpi=(figure.dpi, figure.dpi))
    figure.dpi = size
    return buffer.getvalue()


def show(figure: Figure, *, alt: str, numbers: str) -> None:
    """Display a figure with its alt text, and print the numbers behind it under it.

    ``alt`` says what the picture shows; it goes into the output's metadata.
    ``numbers`` is a line or two of the values drawn: what a notebook test compares,
    and what a reader reads who cannot see the picture.
    Raises ValueError when either is missing.
    """
    if len(alt.strip()) < 30:
        raise ValueError(f"alt text of at least 30 characters wanted, got {alt!r}")
    if not numbers.strip():
        raise ValueError("numbers: give a line with the values that the picture draws")
    width, height = (int(inches * PIXELS_PER_INCH)
                     for inches in figure.get_size_inches())
    picture = base64.b64encode(png(figure)).decode("ascii")
    display({"image/png": picture, "text/plain": f"[picture] {alt}"}, raw=True,
            metadata={"image/png": {"alt": alt, "width": width, "height": height}})
    print(numbers)


def __getattr__(name: str):
    """A lesson's pictures (``figures.rope``), imported when first asked for."""
    if name in ("claims", "embedding", "extrapolation", "norm", "rope", "yarn"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
