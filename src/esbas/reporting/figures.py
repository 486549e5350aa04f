"""The style of all figures: no global state, colors for the color-blind, units on every axis."""

import io
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from numpy.typing import ArrayLike

from esbas.reporting.colors import COLORS, GRID, INK, MINOR_GRID, PAPER, QUIET

LONGEST = 32
"""Characters of a line in a legend. Longer names are wrapped."""
STYLES = ("-", "--", ":")
"""Of lines, when all colors are used."""
SHARP = 2
"""Pixels of a figure per pixel of its size in a notebook, for screens with a high resolution."""


class NotebookFigure(Figure):
    """A figure that a notebook shows as an image, although it was made without pyplot."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the image, and the size at which it is shown."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=SHARP * self.dpi)
        width, height = self.get_size_inches() * self.dpi
        return buffer.getvalue(), {"width": round(width), "height": round(height)}


def new_figure(width: float = 8.0, height: float = 4.5) -> tuple[Figure, Axes]:
    """Create a figure with one panel. Sizes are in inches."""
    figure, (axes,) = new_panels(1, width=width, height=height)
    return figure, axes


def new_panels(
    rows: int, *, columns: int = 1, width: float = 8.0, height: float = 7.0, share_x: bool = False
) -> tuple[Figure, list[Axes]]:
    """Create a figure with several panels, listed row by row."""
    figure = NotebookFigure(
        figsize=(width, height),
        layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08),
        facecolor=PAPER,
    )
    grid = figure.subplots(rows, columns, sharex=share_x, squeeze=False)
    panels: list[Axes] = [axes for row in grid for axes in row]
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(QUIET)
        axes.tick_params(which="both", colors=QUIET, labelcolor=INK, labelsize=10)
        axes.grid(True, color=GRID, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_prop_cycle(color=COLORS)
    return figure, panels


def label(axes: Axes, *, x: str, y: str, title: str = "", math: bool = False) -> None:
    """Label the axes, with units in brackets: "meta-time τ [episodes]".

    `$` starts a formula only if `math` is set.
    """
    axes.set_xlabel(x, fontsize=11, color=INK, parse_math=math)
    axes.set_ylabel(y, fontsize=11, color=INK, parse_math=math)
    if title:
        axes.set_title(
            title, loc="left", fontsize=12, fontweight="bold", color=INK, parse_math=math
        )


def legend(
    axes: Axes, *, outside: bool = True, title: str = "", reverse: bool = False, math: bool = False
) -> None:
    """Add a legend to the right of the panel, or inside it where it covers least.

    Use `reverse` for stacked areas. `$` in labels starts a formula only if `math` is set: names
    of learners are shown as they are.
    """
    look: dict[str, Any] = {"title": title, "reverse": reverse, "fontsize": 10, "labelcolor": INK}
    if outside:
        new = axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, alignment="left", **look
        )
    else:
        new = axes.legend(loc="best", framealpha=0.9, edgecolor="none", **look)
    _set_math(new, math)


def shared_legend(figure: Figure, axes: Axes) -> None:
    """Add the legend of one panel below the whole figure."""
    handles, labels = axes.get_legend_handles_labels()
    new = figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(labels),
        frameon=False,
        fontsize=11,
        labelcolor=INK,
    )
    _set_math(new, False)


def curve(
    axes: Axes, x: ArrayLike, y: ArrayLike, label: str, *, color: str, style: str = "-"
) -> None:
    """Plot a line; with a style such as "-o", also its points."""
    axes.plot(x, y, style, color=color, label=_visible(label), linewidth=1.6, markersize=4)


def curve_with_band(
    axes: Axes,
    x: ArrayLike,
    mean: ArrayLike,
    ci95: ArrayLike,
    label: str,
    *,
    within: tuple[float, float] = (-np.inf, np.inf),
    color: str | None = None,
    style: str = "-",
    width: float = 1.8,
) -> None:
    """Plot a mean over runs, (X,), with its 95 % interval as a band. A band of NaN is not drawn.

    `within` holds the least and the largest possible value: Student's t knows no limits, so the
    band is cut off there.
    """
    middle = np.asarray(mean, np.float64)
    half = np.asarray(ci95, np.float64)
    (line,) = axes.plot(x, middle, style, color=color, label=_visible(label), linewidth=width)
    if np.isfinite(half).any():
        low = np.maximum(middle - half, within[0])
        high = np.minimum(middle + half, within[1])
        axes.fill_between(np.asarray(x), low, high, color=line.get_color(), alpha=0.18, linewidth=0)


def observed(samples: ArrayLike) -> tuple[float, float]:
    """Return the least and the largest of the samples, for `within`."""
    values = np.asarray(samples, np.float64)
    return float(values.min()), float(values.max())


def stacked_shares(
    axes: Axes,
    x: ArrayLike,
    shares: ArrayLike,
    labels: Sequence[str],
    *,
    colors: Sequence[str] = COLORS,
) -> None:
    """Plot shares of the arms, (K, X), as stacked areas, with the first arm at the top.

    The shares add up to 1.
    """
    percent = 100 * np.asarray(shares, np.float64)  # (K, X)
    shown = [_visible(name) for name in labels]
    cycled = [colors[k % len(colors)] for k in range(len(labels))]
    # The first area that is drawn is at the bottom.
    areas = axes.stackplot(
        np.asarray(x), *percent[::-1], colors=cycled[::-1], labels=shown[::-1], alpha=0.85
    )
    for area in areas:
        area.set_edgecolor(PAPER)
        area.set_linewidth(0.6)
    axes.set_ylim(0, 100)
    axes.margins(x=0)


def share_lines(
    axes: Axes,
    x: ArrayLike,
    shares: ArrayLike,
    labels: Sequence[str],
    *,
    colors: Sequence[str] = COLORS,
) -> None:
    """Plot shares of the arms, (K, X), as lines in percent."""
    for k, (share, name) in enumerate(zip(np.asarray(shares, np.float64), labels, strict=True)):
        axes.plot(
            np.asarray(x),
            100 * share,
            color=colors[k % len(colors)],
            label=_visible(name),
            linewidth=1.8,
        )
    axes.set_ylim(-2, 102)


def _visible(name: str) -> str:
    """Return the name as a label, in a few lines if it is long.

    Legends leave out labels that begin with an underscore, so that a space is put before it.
    """
    shown = name
    if any(len(line) > LONGEST for line in name.splitlines()):
        shown = textwrap.fill(name, LONGEST, max_lines=3, placeholder=" ...")
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
