"""Figure 2 of the paper, and its table as a figure."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esbas.experiments.dialogue.analysis import AS_GOOD, BETTER, WORSE, DialogueAnalysis, RowResult
from esbas.experiments.dialogue.setup import EPOCHS, FIGURE
from esbas.experiments.dialogue.sweep import EpochSums, alone
from esbas.reporting import estimates
from esbas.reporting.colours import COLOURS, INK, QUIET
from esbas.reporting.figures import curve_with_band, label, legend, new_panels, observed

READING_COLOURS = {WORSE: "#d55e00", BETTER: "#009e73", AS_GOOD: QUIET}
_BLUE = "#0072b2"


def shown(analysis: DialogueAnalysis) -> list[RowResult]:
    """The rows of Figure 2 of the paper, or the first three rows if none of them was run."""
    by_name = {result.row.name: result for result in analysis.rows}
    return [by_name[name] for name in FIGURE if name in by_name] or analysis.rows[:3]


def performance_figure(analysis: DialogueAnalysis, *, shared: bool = False) -> Figure:
    """For each portfolio, the performance by epoch (a, c, e) and the selection ratios (b, d, f), of ESBAS or shared evidence."""
    results = shown(analysis)
    columns, letters = len(results), iter("acebdf" if len(results) == 3 else "acbd" if len(results) == 2 else "ab")
    figure, panels = new_panels(2, columns=columns, width=5.2 * columns, height=8.4)
    for axes, result in zip(panels[:columns], results, strict=True):
        _performance(axes, analysis, result, shared=shared)
        label(axes, x="epoch β", y="mean return of a dialogue", title=f"{next(letters)}) {result.row.name}")
    for axes, result in zip(panels[columns:], results, strict=True):
        _ratios(axes, result, shared=shared)
        label(axes, x="epoch β", y="selections [%]", title=f"{next(letters)}) {result.row.name}")
    return figure


def _performance(axes: Axes, analysis: DialogueAnalysis, result: RowResult, *, shared: bool) -> None:
    for one, colour in zip(alone(result.row), COLOURS, strict=False):
        _curve(axes, analysis.canonical[one.name], one.name, colour=colour, width=1.4)
    _curve(axes, result.outcome, "ESBAS", colour=INK, style="--", width=1.4 if shared else 2.2)
    if shared and result.shared is not None:
        _curve(axes, result.shared, "shared evidence", colour=INK, width=2.2)
    legend(axes, outside=False)


def _curve(axes: Axes, outcome: EpochSums, name: str, **look: Any) -> None:
    """The mean return by epoch."""
    returns = outcome.returns / np.array(EPOCHS)  # (R, epochs)
    curve_with_band(axes, range(len(EPOCHS)), *estimates(returns), name, within=observed(returns), **look)


def _ratios(axes: Axes, result: RowResult, *, shared: bool) -> None:
    shares, ci95 = result.shares(shared=shared)
    seen: dict[str, int] = {}
    for k, algorithm in enumerate(result.row.algorithms):
        seen[algorithm.name] = seen.get(algorithm.name, 0) + 1
        number = f" #{seen[algorithm.name]}" if result.row.algorithms.count(algorithm) > 1 else ""
        colour = COLOURS[k % len(COLOURS)]
        name = algorithm.name + number
        percent = 100 * shares[:, k], 100 * ci95[:, k]
        curve_with_band(axes, range(len(EPOCHS)), *percent, name, within=(0, 100), colour=colour, width=1.4)
    axes.set_ylim(-2, 102)
    legend(axes, outside=False)


def table_figure(analysis: DialogueAnalysis) -> Figure:
    """The paper's numbers and ours with intervals, against the best algorithm and against the worst."""
    height = 1.6 + 0.32 * len(analysis.rows)
    figure, (left, right) = new_panels(1, columns=2, width=13, height=height)
    places = np.arange(len(analysis.rows))[::-1]
    for place, result in zip(places, analysis.rows, strict=True):
        estimates_and_colours = (
            (left, result.w_best, READING_COLOURS[result.reading], result.paper and result.paper.w_best),
            (right, result.w_worst, _BLUE, result.paper and result.paper.w_worst),
        )
        for axes, ours, colour, theirs in estimates_and_colours:
            width = ours.ci95 if np.isfinite(ours.ci95) else 0.0
            axes.errorbar(ours.mean, place, xerr=width, fmt="o", color=colour, markersize=5, capsize=2.5, linewidth=1.5)
            if theirs is not None:
                axes.plot(theirs, place, "x", color=INK, markersize=6)
    left.axvline(0, color=QUIET, linewidth=1)
    left.set_yticks(places, [result.row.name for result in analysis.rows])
    right.set_yticks(places, [])
    right.set_xscale("symlog", linthresh=100)
    ticks = [-5000, -2000, -1000, -500, -200, -100, -50, 0]
    right.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45)
    right.minorticks_off()
    right.set_xlim(right=60)
    for axes in (left, right):
        axes.set_ylim(-0.7, len(analysis.rows) - 0.3)
    label(left, x="regret against the best alone [return over the run]", y="", title="w. best: paper ×, measured ●")
    label(right, x="regret against the worst alone [return over the run]", y="", title="w. worst")
    return figure


def difference_figure(analysis: DialogueAnalysis) -> Figure:
    """The return of ESBAS minus the return with shared evidence, for each row."""
    figure, (axes,) = new_panels(1, columns=1, width=9, height=1.6 + 0.32 * len(analysis.rows))
    places = np.arange(len(analysis.rows))[::-1]
    for place, result in zip(places, analysis.rows, strict=True):
        difference = result.difference
        if difference is not None and result.shared_reading is not None:
            width = difference.ci95 if np.isfinite(difference.ci95) else 0.0
            colour = READING_COLOURS[result.shared_reading]
            axes.errorbar(difference.mean, place, xerr=width, fmt="o", color=colour, markersize=5, capsize=2.5, linewidth=1.5)
    axes.axvline(0, color=QUIET, linewidth=1)
    axes.set_yticks(places, [result.row.name for result in analysis.rows])
    axes.set_ylim(-0.7, len(analysis.rows) - 0.3)
    label(axes, x="ESBAS minus shared evidence [return over the run]", y="", title="shared evidence: better to the left")
    return figure
