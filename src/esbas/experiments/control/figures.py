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
from esbas.reporting import figures
from esbas.reporting.colours import COLOURS, INK, QUIET

COLUMNS = 2
POINTS = 25  # of a curve: its bins are averaged in pairs
RESAMPLES = 400  # for the bands of curves
LINE = 0.04  # height of a label, as a share of the axis


def aggregate_figure(analysis: ControlAnalysis) -> Figure | None:
    """Each method's interquartile mean over the confirmatory tasks that count; None if there are none."""
    found = {name: analysis.interval(analysis.counted, name) for name in analysis.methods_on(analysis.counted)}
    rows = sorted(((name, each) for name, each in found.items() if each is not None), key=lambda row: row[1].value)
    if not rows:
        return None
    figure, axes = figures.new_figure(height=1.2 + 0.32 * len(rows))
    for place, (name, each) in enumerate(rows):
        colour = COLOURS[1] if name == analysis.recommended else COLOURS[0]
        axes.plot([each.low, each.high], [place, place], color=colour, linewidth=5, alpha=0.35, solid_capstyle="butt")
        axes.plot([each.value], [place], "o", color=colour, markersize=5)
    axes.set_yticks(range(len(rows)), [name for name, _ in rows])
    axes.axvline(1.0, color=QUIET, linewidth=1, linestyle=":")
    figures.label(axes, x="score [0: random actions, 1: best member alone]", y="")
    return figure


def curve_figure(analysis: ControlAnalysis, kind: str) -> Figure | None:
    """Mean returns over environment steps with their intervals, one panel for each task; None without tasks."""
    tasks = analysis.of_kind(kind)
    if not tasks:
        return None
    rows = math.ceil(len(tasks) / COLUMNS)
    figure, panels = figures.new_panels(rows, columns=COLUMNS, width=10, height=1.0 + 2.6 * rows)
    for axes, each in zip(panels, tasks, strict=False):
        _curves(axes, analysis, each)
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    figures.shared_legend(figure, max(panels, key=lambda axes: len(axes.lines)))  # not every method runs on every task
    return figure


def _curves(axes: Axes, analysis: ControlAnalysis, each: TaskScores) -> None:
    """A method has the same colour in all panels."""
    fixed, external = (analysis.recommended, analysis.chance, "ssbas", HALVING, each.reference), analysis.external
    for name, colour in zip((*fixed, *external), COLOURS, strict=False):
        if not each.has(name):
            continue
        curves = each.curves(name)
        points = min(POINTS, curves.shape[1])
        curves = np.stack([part.mean(axis=1) for part in np.array_split(curves, points, axis=1)], axis=1)
        at = (np.arange(points) + 0.5) * each.task.steps / points
        low, high = statistics.iqm_band(curves, resamples=RESAMPLES, rng=analysis.rng("curves", each.task.name, name))
        axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        label = BEST if name == each.reference else name
        axes.plot(at, statistics.iqm(curves, axis=0), color=colour, label=label, linewidth=1.6)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    figures.label(axes, x="environment steps", y="mean return", title=each.task.name)


def passive_figure(analysis: ControlAnalysis) -> Figure | None:
    """The greedy score of each member against its share of control, where all members are evaluated; None without such tasks."""
    tasks = [each for each in analysis.tasks.values() if each.task.evaluate_all]
    if not tasks:
        return None
    columns = min(COLUMNS, len(tasks))
    rows = math.ceil(len(tasks) / columns)
    figure, panels = figures.new_panels(rows, columns=columns, width=7.0 * columns, height=1.0 + 3.2 * rows)
    for axes, each in zip(panels, tasks, strict=False):
        several = [name for name, method in each.methods.items() if len(method.recipe.names) > 1 and each.runs(name)]
        for k, member in enumerate(each.members):
            colour = COLOURS[k % len(COLOURS)]
            shares, scores = ([values[k] for values in map(kind, several)] for kind in (each.shares, each.greedy))
            axes.plot(shares, scores, "o", color=colour, label=member, markersize=5)
        figures.label(axes, x="share of control", y="greedy score at the end", title=each.task.name)
        figures.legend(axes)
    for axes in panels[len(tasks) :]:
        axes.set_visible(False)
    return figure


def cost_figure(analysis: ControlAnalysis) -> Figure | None:
    """The aggregate score against CPU time relative to chance; None if nothing counts."""
    points = {}
    for name in analysis.methods_on(analysis.counted):
        cost = analysis.relative_cost(name)
        score = analysis.interval(analysis.counted, name)
        if score is not None and cost is not None:
            points[name] = cost, score
    if not points:
        return None
    figure, axes = figures.new_figure()
    for name, (cost, score) in points.items():
        colour = COLOURS[1] if name == analysis.recommended else COLOURS[0]
        lengths = [[score.value - score.low], [score.high - score.value]]
        axes.errorbar([cost], [score.value], yerr=lengths, fmt="o", color=colour, markersize=5)
    end = 1.1 * max(cost for cost, _ in points.values())
    axes.set_xlim(0, end)
    height, written = LINE * (axes.get_ylim()[1] - axes.get_ylim()[0]), math.inf
    for name, (cost, score) in sorted(points.items(), key=lambda point: -point[1][1].value):
        written = min(score.value, written - height)  # a column of labels from top to bottom, none over another
        axes.plot([cost, end], [score.value, written], color=QUIET, linewidth=0.8, linestyle=":", zorder=1)
        axes.annotate(name, (end, written), xytext=(4, 0), textcoords="offset points", fontsize=9, color=INK, va="center")
    figures.label(axes, x="CPU time of a run [chance = 1]", y="score")
    return figure
