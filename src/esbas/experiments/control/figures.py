"""Figures: scores with intervals, curves over environment steps, and scores against CPU time."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from esbas.experiments.control import statistics
from esbas.experiments.control.analysis import ControlAnalysis
from esbas.experiments.control.scores import BEST, TaskScores
from esbas.experiments.control.setup import HALVING
from esbas.experiments.control.statistics import Interval
from esbas.reporting import figures
from esbas.reporting.colors import COLORS, INK, QUIET

COLUMNS = 2
POINTS = 25  # of a curve: its bins are averaged in pairs
RESAMPLES = 400  # for the bands of curves
LINE = 0.04  # height of a label, as a share of the axis


def aggregate_figure(analysis: ControlAnalysis) -> Figure | None:
    """Draw each method's interquartile mean over the confirmatory tasks that count.

    None if there are none.
    """
    found: dict[str, Interval] = {}
    for name in analysis.methods_on(analysis.counted):
        interval = analysis.interval(analysis.counted, name)
        if interval is not None:
            found[name] = interval
    if not found:
        return None
    names = sorted(found, key=lambda name: found[name].value)
    figure, axes = figures.new_figure(height=1.2 + 0.32 * len(names))
    for y, name in enumerate(names):
        each = found[name]
        color = _color(name, analysis)
        axes.plot(
            [each.low, each.high],
            [y, y],
            color=color,
            linewidth=5,
            alpha=0.35,
            solid_capstyle="butt",
        )
        axes.plot([each.value], [y], "o", color=color, markersize=5)
    axes.set_yticks(range(len(names)), names)
    axes.axvline(1.0, color=QUIET, linewidth=1, linestyle=":")
    figures.label(axes, x="score [0: random actions, 1: best learner alone]", y="")
    return figure


def _color(method: str, analysis: ControlAnalysis) -> str:
    return COLORS[1] if method == analysis.recommended else COLORS[0]


def curve_figure(analysis: ControlAnalysis, kind: str) -> Figure | None:
    """Draw mean returns over environment steps with their intervals, one panel for each task.

    None without tasks.
    """
    tasks = analysis.of_kind(kind)
    if not tasks:
        return None
    rows = math.ceil(len(tasks) / COLUMNS)
    figure, panels = figures.new_panels(rows, columns=COLUMNS, width=10, height=1.0 + 2.6 * rows)
    for axes, each in zip(panels, tasks, strict=False):
        _curves(axes, analysis, each)
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    # Not every method runs on every task.
    fullest = max(panels, key=lambda axes: len(axes.lines))
    figures.shared_legend(figure, fullest)
    return figure


def _curves(axes: Axes, analysis: ControlAnalysis, each: TaskScores) -> None:
    """Draw the curves of a task. A method has the same color in all panels."""
    shown = [analysis.recommended, analysis.chance, "ssbas", HALVING, each.reference]
    shown += analysis.external
    for name, color in zip(shown, COLORS, strict=False):
        if not each.has(name):
            continue
        curves = each.curves(name)
        points = min(POINTS, curves.shape[1])
        parts = np.array_split(curves, points, axis=1)
        curves = np.stack([part.mean(axis=1) for part in parts], axis=1)
        at = (np.arange(points) + 0.5) * each.task.steps / points
        rng = analysis.rng("curves", each.task.name, name)
        low, high = statistics.iqm_band(curves, resamples=RESAMPLES, rng=rng)
        axes.fill_between(at, low, high, color=color, alpha=0.15, linewidth=0)
        label = BEST if name == each.reference else name
        axes.plot(at, statistics.iqm(curves, axis=0), color=color, label=label, linewidth=1.6)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    figures.label(axes, x="environment steps", y="mean return", title=each.task.name)


def passive_figure(analysis: ControlAnalysis) -> Figure | None:
    """Draw the greedy score of each learner against its share of control.

    Only tasks in which all learners are evaluated are shown; None without such tasks.
    """
    tasks = [each for each in analysis.tasks.values() if each.task.evaluate_all]
    if not tasks:
        return None
    columns = min(COLUMNS, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    figure, panels = figures.new_panels(
        rows, columns=columns, width=7.0 * columns, height=1.0 + 3.2 * rows
    )
    for axes, each in zip(panels, tasks, strict=False):
        shares = []
        scores = []
        for name, method in each.methods.items():
            if len(method.recipe.names) > 1 and each.runs(name):
                shares.append(each.shares(name))
                scores.append(each.greedy(name))
        for k, learner in enumerate(each.learners):
            axes.plot(
                [values[k] for values in shares],
                [values[k] for values in scores],
                "o",
                color=COLORS[k % len(COLORS)],
                label=learner,
                markersize=5,
            )
        figures.label(axes, x="share of control", y="greedy score at the end", title=each.task.name)
        figures.legend(axes)
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    return figure


def cost_figure(analysis: ControlAnalysis) -> Figure | None:
    """Draw the aggregate score against CPU time relative to chance; None if nothing counts."""
    costs: dict[str, float] = {}
    scores: dict[str, Interval] = {}
    for name in analysis.methods_on(analysis.counted):
        cost = analysis.relative_cost(name)
        score = analysis.interval(analysis.counted, name)
        if score is not None and cost is not None:
            costs[name] = cost
            scores[name] = score
    if not costs:
        return None
    figure, axes = figures.new_figure()
    for name, score in scores.items():
        axes.errorbar(
            [costs[name]],
            [score.value],
            yerr=[[score.value - score.low], [score.high - score.value]],
            fmt="o",
            color=_color(name, analysis),
            markersize=5,
        )
    end = 1.1 * max(costs.values())
    axes.set_xlim(0, end)
    bottom, top = axes.get_ylim()
    height = LINE * (top - bottom)
    # A column of labels from top to bottom, none over another.
    written = math.inf
    for name in sorted(scores, key=lambda name: scores[name].value, reverse=True):
        value = scores[name].value
        written = min(value, written - height)
        axes.plot(
            [costs[name], end],
            [value, written],
            color=QUIET,
            linewidth=0.8,
            linestyle=":",
            zorder=1,
        )
        axes.annotate(
            name,
            (end, written),
            xytext=(4, 0),
            textcoords="offset points",
            fontsize=9,
            color=INK,
            va="center",
        )
    figures.label(axes, x="CPU time of a run [chance = 1]", y="score")
    return figure
