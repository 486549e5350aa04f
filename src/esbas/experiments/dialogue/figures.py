"""Figure 2 of the paper, and its table as a figure."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esbas.experiments.dialogue.analysis import AS_GOOD, BETTER, WORSE, DialogueAnalysis, RowResult
from esbas.experiments.dialogue.setup import EPOCHS, FIGURE
from esbas.experiments.dialogue.sweep import EpochSums, alone
from esbas.reporting import Estimate, estimates
from esbas.reporting.colors import COLORS, INK, QUIET
from esbas.reporting.figures import curve_with_band, label, legend, new_panels, observed

READING_COLORS = {WORSE: "#d55e00", BETTER: "#009e73", AS_GOOD: QUIET}
_BLUE = "#0072b2"
_LETTERS = {1: "ab", 2: "acbd", 3: "acebdf"}
"""Letters of the panels, first row by row, by the number of columns."""


def shown(analysis: DialogueAnalysis) -> list[RowResult]:
    """Return the rows of Figure 2 of the paper, or the first three rows if none of them was run."""
    by_name = {result.row.name: result for result in analysis.rows}
    found = [by_name[name] for name in FIGURE if name in by_name]
    return found if found else analysis.rows[:3]


def performance_figure(analysis: DialogueAnalysis, *, shared: bool = False) -> Figure:
    """Draw the performance by epoch (a, c, e) and the selection ratios (b, d, f) of each portfolio.

    Both are those of ESBAS or, if `shared`, of shared evidence.
    """
    results = shown(analysis)
    columns = len(results)
    letters = _LETTERS[columns]
    figure, panels = new_panels(2, columns=columns, width=5.2 * columns, height=8.4)
    for column, result in enumerate(results):
        upper = panels[column]
        _performance(upper, analysis, result, shared=shared)
        title = f"{letters[column]}) {result.row.name}"
        label(upper, x="epoch β", y="mean return of a dialogue", title=title)
        lower = panels[columns + column]
        _ratios(lower, result, shared=shared)
        title = f"{letters[columns + column]}) {result.row.name}"
        label(lower, x="epoch β", y="selections [%]", title=title)
    return figure


def _performance(
    axes: Axes, analysis: DialogueAnalysis, result: RowResult, *, shared: bool
) -> None:
    for one, color in zip(alone(result.row), COLORS, strict=False):
        _curve(axes, analysis.canonical[one.name], one.name, color=color, width=1.4)
    _curve(axes, result.outcome, "ESBAS", color=INK, style="--", width=1.4 if shared else 2.2)
    if shared and result.shared is not None:
        _curve(axes, result.shared, "shared evidence", color=INK, width=2.2)
    legend(axes, outside=False)


def _curve(axes: Axes, outcome: EpochSums, name: str, **look: Any) -> None:
    """Draw the mean return by epoch."""
    returns = outcome.returns / np.array(EPOCHS)  # (R, epochs)
    mean, ci95 = estimates(returns)
    epochs = range(len(EPOCHS))
    curve_with_band(axes, epochs, mean, ci95, name, within=observed(returns), **look)


def _ratios(axes: Axes, result: RowResult, *, shared: bool) -> None:
    shares, ci95 = result.shares(shared=shared)
    learners = result.row.learners
    for k, learner in enumerate(learners):
        name = learner.name
        if learners.count(learner) > 1:
            number = learners[: k + 1].count(learner)
            name = f"{name} #{number}"
        curve_with_band(
            axes,
            range(len(EPOCHS)),
            100 * shares[:, k],
            100 * ci95[:, k],
            name,
            within=(0, 100),
            color=COLORS[k % len(COLORS)],
            width=1.4,
        )
    axes.set_ylim(-2, 102)
    legend(axes, outside=False)


def table_figure(analysis: DialogueAnalysis) -> Figure:
    """Draw the paper's numbers and ours with intervals, against the best and the worst learner."""
    height = 1.6 + 0.32 * len(analysis.rows)
    figure, (left, right) = new_panels(1, columns=2, width=13, height=height)
    heights = np.arange(len(analysis.rows))[::-1]  # the first row is on top
    for y, result in zip(heights, analysis.rows, strict=True):
        _draw_estimate(left, y, result.w_best, color=READING_COLORS[result.reading])
        _draw_estimate(right, y, result.w_worst, color=_BLUE)
        if result.paper is not None:
            left.plot(result.paper.w_best, y, "x", color=INK, markersize=6)
            right.plot(result.paper.w_worst, y, "x", color=INK, markersize=6)
    left.axvline(0, color=QUIET, linewidth=1)
    left.set_yticks(heights, [result.row.name for result in analysis.rows])
    right.set_yticks(heights, [])
    right.set_xscale("symlog", linthresh=100)
    ticks = [-5000, -2000, -1000, -500, -200, -100, -50, 0]
    right.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=45)
    right.minorticks_off()
    right.set_xlim(right=60)
    for axes in (left, right):
        axes.set_ylim(-0.7, len(analysis.rows) - 0.3)
    label(
        left,
        x="regret against the best alone [return over the run]",
        y="",
        title="w. best: paper ×, measured ●",
    )
    label(right, x="regret against the worst alone [return over the run]", y="", title="w. worst")
    return figure


def _draw_estimate(axes: Axes, y: float, value: Estimate, *, color: str) -> None:
    """Draw a dot with its interval, or without it for a single run."""
    half_width = value.ci95 if np.isfinite(value.ci95) else 0.0
    axes.errorbar(
        value.mean,
        y,
        xerr=half_width,
        fmt="o",
        color=color,
        markersize=5,
        capsize=2.5,
        linewidth=1.5,
    )


def difference_figure(analysis: DialogueAnalysis) -> Figure:
    """Draw the return of ESBAS minus the return with shared evidence, for each row."""
    height = 1.6 + 0.32 * len(analysis.rows)
    figure, (axes,) = new_panels(1, columns=1, width=9, height=height)
    heights = np.arange(len(analysis.rows))[::-1]  # the first row is on top
    for y, result in zip(heights, analysis.rows, strict=True):
        if result.difference is not None and result.shared_reading is not None:
            color = READING_COLORS[result.shared_reading]
            _draw_estimate(axes, y, result.difference, color=color)
    axes.axvline(0, color=QUIET, linewidth=1)
    axes.set_yticks(heights, [result.row.name for result in analysis.rows])
    axes.set_ylim(-0.7, len(analysis.rows) - 0.3)
    label(
        axes,
        x="ESBAS minus shared evidence [return over the run]",
        y="",
        title="shared evidence: better to the left",
    )
    return figure
