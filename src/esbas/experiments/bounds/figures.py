"""The experiment's figures."""

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from esbas.experiments import regrets as regret
from esbas.experiments.bounds.analysis import FIT_EPOCHS, BoundsAnalysis, Cell
from esbas.experiments.bounds.setup import Floats, Integers, Regime
from esbas.reporting import estimates
from esbas.reporting.colors import COLORS, DARK_TEXT, INK, LIGHT_TEXT, QUIET
from esbas.reporting.figures import (
    curve_with_band,
    label,
    legend,
    logarithmic,
    new_figure,
    new_panels,
    observed,
)

TIME = "meta-time T [trajectories]"
STYLES = ("-", "--", ":", "-.")
DOTTED = (0, (1, 0.6))
SIGNS = {"short_sighted": "ρ_ss", "absolute": "ρ_abs"}


def gap_text(regime: Regime) -> str:
    """Return a text such as "gap T^-0.35"."""
    if not regime.fitted:
        return regime.name
    if regime.gap == 0:
        return "gap 1"
    if regime.gap == 1:
        return "gap 1/T"
    return f"gap T^-{regime.gap:g}"


def own_text(regime: Regime) -> str:
    """Return a text such as "own T^0.5": the regret of the best learner alone."""
    return f"own {regret.canonical_growth(regime.own)}"


def typeset(text: str, *, bold: bool = False) -> str:
    """Return the text with superscripts and subscripts for matplotlib."""
    font = r"\\mathbf" if bold else r"\\mathrm"
    text = re.sub(r"(T|log)\^(-?[\d.]+)", rf"${font}{{\1}}^{{{font}{{\2}}}}$", text)
    return re.sub(r"ρ_(ss|abs)", r"$ρ_{\\mathrm{\1}}$", text)


def brief(value: float) -> str:
    """Return a number with three significant digits, or up to four digits before the point.

    From 10,000 on, it is in thousands.
    """
    if value >= 10_000:
        return f"{value / 1000:.3g}k"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def exponents_figure(analysis: BoundsAnalysis) -> Figure:
    """Draw every cell of Table 1: the exponents of the bound and of the measured regret."""
    rows = _grouped(analysis.cells[analysis.esbas[0]])
    figure, axes = new_figure(8.5, 1.4 + 0.28 * len(rows))
    for y, cell in enumerate(rows):
        if cell is not None:
            _exponent_row(axes, y, cell, analysis)
    axes.set_yticks(range(len(rows)), ["" if cell is None else _cell_text(cell) for cell in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    label(
        axes,
        x="exponent of growth [1], with the logarithms of the bound",
        y="",
        title="Measured growth and Table 1",
    )
    handles = [
        Line2D([], [], color=COLORS[k], marker="o", markersize=4.5, label=name)
        for k, name in enumerate(analysis.esbas)
    ]
    handles.append(Line2D([], [], color=INK, linewidth=2.5, label="Table 1"))
    handles.append(
        Line2D(
            [],
            [],
            color=QUIET,
            linewidth=2.5,
            linestyle=DOTTED,
            label="Theorem 3, where it differs",
        )
    )
    figure.legend(
        handles=handles,
        loc="outside lower center",
        frameon=False,
        fontsize=10,
        ncols=4,
        labelcolor=INK,
    )
    return figure


def _grouped(cells: list[Cell]) -> list[Cell | None]:
    """Return the cells of Table 1 by column, with None between the columns."""
    own_is_log = [cell for cell in cells if cell.regime.own == 1]
    own_is_larger = [cell for cell in cells if cell.regime.own != 1]
    return [
        *(cell for cell in own_is_log if cell.quantity == "short-sighted"),
        None,
        *(cell for cell in own_is_log if cell.quantity == "absolute"),
        None,
        *(cell for cell in own_is_larger if cell.quantity == "absolute"),
    ]


def _cell_text(cell: Cell) -> str:
    if cell.quantity == "short-sighted":
        return typeset(f"ρ_ss, {gap_text(cell.regime)}")
    return typeset(f"ρ_abs, {gap_text(cell.regime)}, {own_text(cell.regime)}")


def _exponent_row(axes: Axes, y: float, cell: Cell, analysis: BoundsAnalysis) -> None:
    span = [y - 0.4, y + 0.4]
    if cell.printed is not None:
        axes.plot(
            [cell.printed.exponent] * 2, span, color=INK, linewidth=2.5, solid_capstyle="butt"
        )
    if cell.printed != cell.proven:
        axes.plot([cell.proven.exponent] * 2, span, color=QUIET, linewidth=2.5, linestyle=DOTTED)
    for k, name in enumerate(analysis.esbas):
        for other in analysis.cells[name]:
            if other.regime != cell.regime or other.quantity != cell.quantity:
                continue
            fit = other.fit
            height = y - 0.18 if k == 0 else y + 0.18
            axes.plot([fit.low, fit.high], [height] * 2, color=COLORS[k], linewidth=1.6)
            axes.plot([fit.exponent], [height], "o", color=COLORS[k], markersize=4.5)


def growth_figure(analysis: BoundsAnalysis, regimes: list[Regime], *, quantity: str) -> Figure:
    """Draw regret against meta-time, one panel per regime.

    The bound is scaled to the regret where the fit starts.
    """
    figure, panels = _grid(len(regimes), columns=4, height=3.1)
    for axes, regime in zip(panels, regimes, strict=False):
        for k, name in enumerate(analysis.esbas):
            runs = analysis.runs[regime.name, name]
            samples = getattr(runs, quantity)
            mean, ci95 = estimates(samples)
            curve_with_band(
                axes, runs.times, mean, ci95, name, within=observed(samples), color=COLORS[k]
            )
            late = runs.times >= analysis.horizon >> FIT_EPOCHS
            _bound(axes, regime, quantity, runs.times[late], mean[late], color=COLORS[k])
        _log_log(axes, first=8, last=analysis.horizon)
        title = gap_text(regime)
        if quantity == "absolute":
            title += f", {own_text(regime)}"
        label(
            axes,
            x=TIME,
            y=typeset(f"{SIGNS[quantity]}(T) [return]"),
            title=typeset(title, bold=True),
            math=True,
        )
    handles, names = panels[0].get_legend_handles_labels()
    handles.append(Line2D([], [], color=QUIET, linestyle="--", linewidth=1.2))
    panels[len(regimes)].legend(
        handles,
        [*names, "shape of the bound"],
        loc="center",
        frameon=False,
        fontsize=12,
        labelcolor=INK,
    )
    return figure


def _bound(
    axes: Axes, regime: Regime, quantity: str, times: Integers, mean: Floats, *, color: str
) -> None:
    growth = regret.short_sighted_growth(regime.gap)
    if quantity == "absolute":
        growth = regret.absolute_growth(regime.gap, regime.own)
    values = growth(times)
    axes.plot(times, values * (mean[0] / values[0]), "--", color=color, linewidth=1.2)


def _grid(panels: int, *, columns: int, height: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels, followed by at least one empty panel for the legend."""
    rows = panels // columns + 1
    figure, all_axes = new_panels(rows, columns=columns, width=13, height=height * rows)
    for axes in all_axes[panels:]:
        axes.set_axis_off()
    return figure, all_axes


def _log_log(axes: Axes, *, first: int, last: int) -> None:
    """Make the axes logarithmic, from `first` to `last`. Bands do not influence the limits."""
    logarithmic(axes, y=True)
    axes.set_xlim(first, last)
    shown: list[float] = []
    for line in axes.get_lines():
        x = np.asarray(line.get_xdata())
        y = np.asarray(line.get_ydata())
        shown += y[(x >= first) & (y > 0)].tolist()
    if shown:
        axes.set_ylim(min(shown) / 1.2, max(shown) * 1.2)
        if max(shown) < 100 * min(shown):  # few decades: more ticks
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.minorticks_off()  # there are many panels, and minor ticks are slow to draw


def theorem_3_figure(analysis: BoundsAnalysis) -> Figure:
    """Draw ρ_abs divided by the right side of Theorem 3 without κ log T.

    Below 1, no κ is needed.
    """
    figure, axes = new_figure(9, 5)
    own = sorted({regime.own for regime in analysis.fitted}, reverse=True)
    gaps = sorted({regime.gap for regime in analysis.fitted})
    for regime in analysis.fitted:
        theorem = analysis.theorems[regime.name, analysis.esbas[0]]
        color = COLORS[gaps.index(regime.gap) % len(COLORS)]
        style = STYLES[own.index(regime.own) % len(STYLES)]
        text = typeset(f"{gap_text(regime)}, {own_text(regime)}")
        axes.plot(
            theorem.times_3,
            theorem.share_3,
            linestyle=style,
            color=color,
            linewidth=1.6,
            label=text,
        )
    axes.axhline(1.0, color=INK, linewidth=1.2)
    logarithmic(axes)
    axes.set_ylim(0, 1.1)
    label(
        axes,
        x=TIME,
        y=typeset("ρ_abs(T) / (7 ρ*(T/6) + ρ_ss(T)) [1]"),
        title="Theorem 3 along the run",
        math=True,
    )
    legend(axes, math=True)
    return figure


def rivals_figure(analysis: BoundsAnalysis) -> Figure:
    """Draw the regret of every meta-algorithm against the oracle, one panel per regime."""
    figure, panels = _grid(len(analysis.compared), columns=3, height=3.7)
    for axes, regime in zip(panels, analysis.compared, strict=False):
        for k, name in enumerate(analysis.methods):
            runs = analysis.runs[regime.name, name]
            mean, ci95 = estimates(runs.oracle)
            curve_with_band(
                axes,
                runs.times,
                mean,
                ci95,
                name,
                within=observed(runs.oracle),
                color=COLORS[k % len(COLORS)],
                style=STYLES[k // len(COLORS)],
                width=2.4 if k < 3 else 1.3,
            )
        _log_log(axes, first=64, last=analysis.horizon)
        label(
            axes,
            x=TIME,
            y="regret against the oracle [return]",
            title=typeset(gap_text(regime), bold=True),
            math=True,
        )
    handles, names = panels[0].get_legend_handles_labels()
    panels[len(analysis.compared)].legend(
        handles, names, loc="center", frameon=False, fontsize=11, ncols=2, labelcolor=INK
    )
    return figure


def best_figure(analysis: BoundsAnalysis) -> Figure:
    """Draw the regret against the oracle at the horizon.

    Colors show its ratio to the smallest regret in the regime.
    """
    names = list(analysis.methods)
    means = np.empty((len(names), len(analysis.compared)))
    for row, name in enumerate(names):
        for column, regime in enumerate(analysis.compared):
            means[row, column] = analysis.final(regime, name, "oracle").mean
    times_best = np.log10(means / means.min(axis=0))
    figure, axes = new_figure(10, 0.42 * len(names) + 1.4)
    axes.imshow(times_best, cmap="YlOrRd", vmin=0, vmax=3, aspect="auto")
    for column, regime in enumerate(analysis.compared):
        leaders = analysis.leaders(regime)
        for row, name in enumerate(names):
            axes.text(
                column,
                row,
                brief(means[row, column]),
                ha="center",
                va="center",
                fontsize=10,
                fontweight="bold" if name in leaders else "normal",
                color=LIGHT_TEXT if times_best[row, column] > 2 else DARK_TEXT,
            )
    gaps = [typeset(gap_text(regime)) for regime in analysis.compared]
    axes.set_xticks(range(len(gaps)), gaps)
    axes.set_yticks(range(len(names)), names)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    title = f"Regret against the oracle at T = {analysis.horizon:,} [return]; bold: the smallest"
    label(axes, x="", y="", title=title)
    return figure
