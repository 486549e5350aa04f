"""The common style of all figures: no global state, colours for the colour-blind, units on every axis."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from numpy.typing import ArrayLike

from esbas.reporting.colours import COLOURS, GRID, INK, MINOR_GRID, PAPER, QUIET

LONGEST = 32
"""Characters of a line in a legend. Longer names are wrapped."""


def new_figure(width: float = 8.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """A figure with one panel. Sizes are in inches."""
    figure, (axes,) = new_panels(1, width=width, height=height)
    return figure, axes


def new_panels(
    rows: int, *, columns: int = 1, width: float = 8.0, height: float = 7.0, share_x: bool = False
) -> tuple[Figure, list[Axes]]:
    """A figure with several panels, listed row by row."""
    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08), facecolor=PAPER)
    grid = figure.subplots(rows, columns, sharex=share_x, squeeze=False)
    panels: list[Axes] = [axes for row in grid for axes in row]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(QUIET)
        axes.tick_params(which="both", colors=QUIET, labelcolor=INK, labelsize=10)
        axes.grid(True, color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_prop_cycle(color=COLOURS)
    return figure, panels


def label(axes: Axes, *, x: str, y: str, title: str = "", math: bool = False) -> None:
    """Label the axes, with units in brackets: "meta-time τ [episodes]". `$` starts a formula only if `math` is set."""
    axes.set_xlabel(x, fontsize=11, color=INK, parse_math=math)
    axes.set_ylabel(y, fontsize=11, color=INK, parse_math=math)
    if title:
        axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=INK, parse_math=math)


def legend(axes: Axes, *, outside: bool = True, title: str = "", reverse: bool = False, math: bool = False) -> None:
    """Add a legend to the right of the panel, or inside it where it covers least. Use `reverse` for stacked areas.

    `$` in labels starts a formula only if `math` is set: names of learners are shown as they are.
    """
    look: dict[str, Any] = {"title": title, "reverse": reverse, "fontsize": 10, "labelcolor": INK}
    if outside:
        new = axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, alignment="left", **look)
    else:
        new = axes.legend(loc="best", framealpha=0.9, edgecolor="none", **look)
    _set_math(new, math)


def shared_legend(figure: Figure, axes: Axes) -> None:
    """Add the legend of one panel below the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    new = figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=11, labelcolor=INK
    )
    _set_math(new, False)


def curve_with_band(
    axes: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    ci95: ArrayLike,
    label: str,
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
    colour: str | None = None,
    style: str = "-",
    width: float = 1.8,
) -> None:
    """Plot a mean over runs, (X,), with its 95 % interval as a band. A band of NaN is not drawn.

    `within` holds the least and the largest possible value: Student's t knows no limits, so the band is cut off there.
    """
    middle, half = np.asarray(mean, np.float64), np.asarray(ci95, np.float64)
    (line,) = axes.plot(x, middle, style, color=colour, label=_visible(label), linewidth=width)
    if np.isfinite(half).any():
        low, high = np.maximum(middle - half, within[0]), np.minimum(middle + half, within[1])
        axes.fill_between(np.asarray(x), low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def observed(samples: ArrayLike) -> tuple[float, float]:
    """The least and the largest of the samples, for `within`."""
    values = np.asarray(samples, np.float64)
    return float(values.min()), float(values.max())


def stacked_shares(
    axes: Axes, x: ArrayLike, shares: ArrayLike, labels: Sequence[str], *, colours: Sequence[str] = COLOURS
) -> None:
    """Plot shares of the arms, (K, X), that add up to 1 as stacked areas, with the first arm at the top."""
    order = range(len(labels) - 1, -1, -1)
    percent = 100 * np.asarray(shares, np.float64)
    areas = axes.stackplot(
        np.asarray(x),
        *(percent[k] for k in order),
        colors=[colours[k % len(colours)] for k in order],
        labels=[_visible(labels[k]) for k in order],
        alpha=0.85,
    )
    for area in areas:
        area.set_edgecolor(PAPER)
        area.set_linewidth(0.6)
    axes.set_ylim(0, 100)
    axes.margins(x=0)


def share_lines(axes: Axes, x: ArrayLike, shares: ArrayLike, labels: Sequence[str], *, colours: Sequence[str] = COLOURS) -> None:
    """Plot shares of the arms, (K, X), as lines in percent."""
    for k, (share, name) in enumerate(zip(np.asarray(shares, np.float64), labels, strict=True)):
        axes.plot(np.asarray(x), 100 * share, color=colours[k % len(colours)], label=_visible(name), linewidth=1.8)
    axes.set_ylim(-2, 102)


def _visible(name: str) -> str:
    """The name as a label, in a few lines if it is long. Legends leave out labels that begin with an underscore."""
    fits = all(len(line) <= LONGEST for line in name.splitlines())
    shown = name if fits else textwrap.fill(name, LONGEST, max_lines=3, placeholder=" ...")
    return f" {shown}" if shown.startswith("_") else shown


def _set_math(legend: Legend, math: bool) -> None:
    for text in legend.get_texts():
        text.set_parse_math(math)


def logarithmic(axes: Axes, *, x: bool = True, y: bool = False) -> None:
    """Make axes logarithmic."""
    if x:
        axes.set_xscale("log")
    if y:
        axes.set_yscale("log")
    axes.grid(True, which="minor", color=MINOR_GRID, linewidth=0.6)
