"""Figure 6 of the paper: scores and selections."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esbas.experiments.qbert.analysis import QbertAnalysis
from esbas.experiments.qbert.setup import LEARNERS
from esbas.reporting import estimates
from esbas.reporting.colors import COLORS, INK, QUIET, SPOTS
from esbas.reporting.figures import (
    curve_with_band,
    label,
    legend,
    new_panels,
    observed,
    stacked_shares,
)

_COLOR_NUMBERS = (0, 4, 1, 5, 6, 3)
COLOR_OF = {name: COLORS[k] for name, k in zip(LEARNERS, _COLOR_NUMBERS, strict=True)}
"""The two initializations of a network have similar colors."""
SHOWN = 0.99  # share of the single games that is shown; the highest would squeeze the curves


def score_figure(analysis: QbertAnalysis, *, steps: bool = False) -> Figure:
    """Draw the scores of all methods and, below, the selections of the selector.

    Both are over episodes, as in the paper, or over agent steps.
    """
    figure, (above, below) = new_panels(2, width=9.0, height=7.6, share_x=True)
    _draw_scores(above, analysis, steps=steps)
    _draw_selections(below, analysis, steps=steps)
    return figure


def _draw_scores(above: Axes, analysis: QbertAnalysis, *, steps: bool) -> None:
    one_run = len(analysis.seeds) == 1
    if one_run:
        _draw_single_games(above, analysis, steps=steps)
    for name in reversed(analysis.runs):  # the selector is drawn last, on top
        _draw_curve(above, analysis, name, steps=steps)
    above.axhline(
        float(analysis.random.mean()),
        color=QUIET,
        linestyle=":",
        linewidth=1.6,
        label="random actions",
    )
    over = "one run" if one_run else f"{len(analysis.seeds)} runs, 95 % bands"
    means = f"running mean of {analysis.window} games" if analysis.window > 1 else "single games"
    title = f"{analysis.setup.game}: {means}, {over}"
    label(above, x="", y="score of a game [points]", title=title)
    above.yaxis.set_major_formatter("{x:,.0f}")
    _score_legend(above, single=one_run and analysis.window > 1)


def _draw_curve(axes: Axes, analysis: QbertAnalysis, name: str, *, steps: bool) -> None:
    at = analysis.grid(name, steps=steps)
    mean, ci95 = estimates(analysis.scores(name, at, steps=steps))
    within = observed(np.concatenate([run.values for run in analysis.runs[name]]))
    if name == analysis.selector:
        title = name
        color = INK
        width = 2.6
    else:
        title = f"{name} alone"
        color = COLOR_OF[name]
        width = 1.6
    curve_with_band(axes, at, mean, ci95, title, within=within, color=color, width=width)


def _draw_selections(below: Axes, analysis: QbertAnalysis, *, steps: bool) -> None:
    at = analysis.grid(analysis.selector, steps=steps)
    shares = analysis.shares(at, steps=steps).mean(axis=0)
    stacked_shares(below, at, shares, LEARNERS, colors=list(COLOR_OF.values()))
    below.set_xlim(0, None)
    games = "game" if analysis.window == 1 else f"{analysis.window} games"
    label(
        below,
        x="agent steps" if steps else "episodes (games)",
        y=f"share of the last {games} [%]",
        title=f"Network that plays, selected by {analysis.selector}",
    )
    below.xaxis.set_major_formatter("{x:,.0f}")
    legend(below, reverse=True)


def _draw_single_games(axes: Axes, analysis: QbertAnalysis, *, steps: bool) -> None:
    """Draw a dot for each game of the selector, in the color of the network that played."""
    (run,) = analysis.runs[analysis.selector]
    at = run.steps if steps else np.arange(1, len(run) + 1)
    size = float(np.clip(60 / np.sqrt(len(run)), 1.8, 5.0))
    for name, color in COLOR_OF.items():
        own = run.learners == name
        (dots,) = axes.plot(
            at[own],
            run.values[own],
            "o",
            color=color,
            alpha=0.5,
            markersize=size,
            markeredgewidth=0,
        )
        dots.set_rasterized(True)  # there can be 100,000
    highest = max(1.0, float(np.quantile(run.values, SHOWN)))
    for name in analysis.runs:
        grid = analysis.grid(name, steps=steps)
        highest = max(highest, analysis.scores(name, grid, steps=steps).max())
    axes.set_ylim(top=1.05 * highest)


def _score_legend(axes: Axes, *, single: bool) -> None:
    handles, _ = axes.get_legend_handles_labels()
    *alone, selector, random = handles
    shown = [selector, *reversed(alone), random]
    if single:
        dots = "single games, in the color\nof the network that played"
        shown.append(Line2D([], [], linestyle="", marker=".", color=SPOTS, alpha=0.8, label=dots))
    axes.legend(
        handles=shown,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        alignment="left",
        fontsize=10,
        labelcolor=INK,
    )
