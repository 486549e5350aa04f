"""Figure 6 of the paper: scores and selections."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from esbas.experiments.qbert.analysis import QbertAnalysis
from esbas.experiments.qbert.setup import MEMBERS
from esbas.reporting import estimates
from esbas.reporting.colours import COLOURS, INK, QUIET, SPOTS
from esbas.reporting.figures import curve_with_band, label, legend, new_panels, observed, stacked_shares

COLOUR_OF = dict(zip(MEMBERS, (COLOURS[k] for k in (0, 4, 1, 5, 6, 3)), strict=True))
"""The two initialisations of a network have similar colours."""
_X = {False: "episodes (games)", True: "agent steps"}
SHOWN = 0.99  # of the single games; the highest would squeeze the curves


def score_figure(analysis: QbertAnalysis, *, steps: bool = False) -> Figure:
    """Scores of all methods, and the selections of the selector below; over episodes as in the paper, or over agent steps."""
    figure, (above, below) = new_panels(2, width=9.0, height=7.6, share_x=True)
    if len(analysis.seeds) == 1:
        _single_games(above, analysis, steps=steps)
    for name in reversed(analysis.runs):  # the selector is drawn last, on top
        at = analysis.grid(name, steps=steps)
        scores, chosen = analysis.scores(name, at, steps=steps), name == analysis.selector
        within = observed(np.concatenate([run.values for run in analysis.runs[name]]))
        title, colour, width = (name, INK, 2.6) if chosen else (f"{name} alone", COLOUR_OF[name], 1.6)
        curve_with_band(above, at, *estimates(scores), title, within=within, colour=colour, width=width)
    above.axhline(float(analysis.random.mean()), color=QUIET, linestyle=":", linewidth=1.6, label="random actions")
    over = f"{len(analysis.seeds)} runs, 95 % bands" if len(analysis.seeds) > 1 else "one run"
    means = f"running mean of {analysis.window} games" if analysis.window > 1 else "single games"
    label(above, x="", y="score of a game [points]", title=f"{analysis.setup.game}: {means}, {over}")
    _score_legend(above, single=len(analysis.seeds) == 1 and analysis.window > 1)
    at = analysis.grid(analysis.selector, steps=steps)
    shares = analysis.shares(at, steps=steps).mean(axis=0)
    stacked_shares(below, at, shares, MEMBERS, colours=list(COLOUR_OF.values()))
    below.set_xlim(0, None)
    games = "game" if analysis.window == 1 else f"{analysis.window} games"
    label(below, x=_X[steps], y=f"share of the last {games} [%]", title=f"Network that plays, selected by {analysis.selector}")
    below.xaxis.set_major_formatter("{x:,.0f}")
    above.yaxis.set_major_formatter("{x:,.0f}")
    legend(below, reverse=True)
    return figure


def _single_games(axes: Axes, analysis: QbertAnalysis, *, steps: bool) -> None:
    """Dots for the games of the selector, in the colour of the network that played."""
    (run,) = analysis.runs[analysis.selector]
    at = run.steps if steps else np.arange(1, len(run) + 1)
    size = float(np.clip(60 / np.sqrt(len(run)), 1.8, 5.0))
    for name, colour in COLOUR_OF.items():
        own = run.learners == name
        (dots,) = axes.plot(at[own], run.values[own], "o", color=colour, alpha=0.5, markersize=size, markeredgewidth=0)
        dots.set_rasterized(True)  # there can be 100,000
    means = [analysis.scores(name, analysis.grid(name, steps=steps), steps=steps).max() for name in analysis.runs]
    axes.set_ylim(top=1.05 * max(*means, float(np.quantile(run.values, SHOWN)), 1.0))


def _score_legend(axes: Axes, *, single: bool) -> None:
    handles = axes.get_legend_handles_labels()[0]
    *alone, selector, random = handles
    shown = [selector, *reversed(alone), random]
    if single:
        dots = "single games, in the colour\nof the network that played"
        shown.append(Line2D([], [], linestyle="", marker=".", color=SPOTS, alpha=0.8, label=dots))
    axes.legend(
        handles=shown, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, alignment="left", fontsize=10, labelcolor=INK
    )
