"""The frequencies of a model's config: one point a pair, before and after scaling."""

from __future__ import annotations

import math

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from apex_lessons import rope, yarn
from apex_lessons.figures import INK, MARKERS, PALETTE, new_figure
from apex_lessons.models.config import RopeSettings

REGIMES = ("unchanged", "blended", "divided by the factor")


def band_edges(regimes: list[int]) -> list[tuple[int, int, int]]:
    """Runs of pairs in the same regime: (first pair, last pair, regime).

    >>> band_edges([0, 0, 1, 2, 2])
    [(0, 1, 0), (2, 2, 1), (3, 4, 2)]
    """
    runs: list[tuple[int, int, int]] = []
    for pair, regime in enumerate(regimes):
        if runs and runs[-1][2] == regime:
            runs[-1] = (runs[-1][0], pair, regime)
        else:
            runs.append((pair, pair, regime))
    return runs


def regime_bands(settings: RopeSettings, *, title: str = "") -> Figure:
    """Wavelength of each pair, plain and scaled, over bands for the three regimes.

    ``settings``: one set from ``rope_from_config``. A pair that never turns is left
    out. The dashed line is the trained length: pairs above it never complete a turn in
    it.
    """
    plain, scaled = (rope.wavelengths(source).tolist()
                     for source in (settings.plain, settings.scaled.inv_freq))
    regimes = yarn.regimes(settings.plain, settings.scaled.inv_freq,
                           settings.factor).tolist()
    figure, axis = new_figure(7.2, 3.9)
    _bands(axis, regimes, settings.method)
    _line(axis, plain, "-", 0, "plain")
    if plain != scaled:
        _line(axis, scaled, "--", 1, settings.method)
    if settings.trained_length is not None:
        axis.axhline(settings.trained_length, color=INK, linestyle=(0, (5, 3)),
                     linewidth=1,
                     label=f"trained length, {settings.trained_length} tokens")
    axis.set_yscale("log")
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_xlabel("pair")
    axis.set_ylabel("wavelength, tokens per turn")
    axis.set_title(f"Wavelength by pair: {title[:70]}".replace("$", r"\$"), fontsize=10,
                   color=INK)
    axis.legend(fontsize=8, loc="upper left")
    return figure


def _line(axis, waves: list[float], style: str, number: int, label: str) -> None:
    """One point for each pair that turns."""
    points = [(pair, wave) for pair, wave in enumerate(waves) if math.isfinite(wave)]
    axis.plot(*zip(*points), style, marker=MARKERS[2 * number], markersize=3,
              color=PALETTE[number], label=label)


def _bands(axis, regimes: list[int], method: str) -> None:
    """A shade and a word for each run of pairs; none where nothing is scaled."""
    if method == "default":
        return
    runs = band_edges(regimes)
    for first, last, regime in runs[:200]:
        axis.axvspan(first - 0.5, last + 0.5, color=PALETTE[(2, 4, 3)[regime]],
                     alpha=0.13,
                     linewidth=0)
        if last - first + 1 >= len(regimes) / 8:
            axis.text((first + last) / 2, 0.02, REGIMES[regime], ha="center",
                      fontsize=8,
                      color=INK, transform=axis.get_xaxis_transform())


def describe_regime_bands(settings: RopeSettings) -> str:
    """The numbers behind ``regime_bands``, in two lines."""
    regimes = yarn.regimes(settings.plain, settings.scaled.inv_freq,
                           settings.factor).tolist()
    counted = [regimes.count(regime) for regime in range(3)]
    waves = [rope.wavelengths(source)
             for source in (settings.plain, settings.scaled.inv_freq)]
    return (f"{len(regimes)} pairs: {counted[0]} unchanged, {counted[1]} blended,"
            f" {counted[2]} divided by {settings.factor:g}\n"
            f"slowest pair: {waves[0][-1].item():.4g} tokens per turn,"
            f" {settings.method} {waves[1][-1].item():.4g}")
