"""Tables, figures and the report."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esbas.experiments.gridworld.analysis import GridworldAnalysis, title
from esbas.experiments.gridworld.setup import RATES
from esbas.reporting import Results, Section, estimates, terminal
from esbas.reporting.colors import COLORS, INK, QUIET
from esbas.reporting.figures import (
    curve_with_band,
    label,
    legend,
    logarithmic,
    new_panels,
    observed,
    share_lines,
)

_TIME = "meta-time τ [episodes]"


def publish(results: Results, analysis: GridworldAnalysis) -> None:
    """Write tables, figures, summary and report, and print the tables."""
    runs = len(analysis.transitions("ssbas"))
    header, rows = analysis.table()
    claims = analysis.claims()
    claim_header = ["the paper", "measured", "verdict"]
    claim_rows = [[claim.paper, claim.measured, claim.verdict] for claim in claims]
    results.table("meta_algorithms", header, rows)
    results.table("claims", claim_header, claim_rows)
    results.table("curves", *_curves(analysis))
    results.figure("selection", selection_figure(analysis))
    results.figure("time", time_figure(analysis))
    results.summary(analysis.summary() | {"claims": [vars(claim) for claim in claims]})
    optimum = analysis.setup.grid.optimum()
    last = ""
    if len(analysis.edges) > 1:
        last = f"The last bin starts at episode {analysis.edges[-2] + 1:,}."
    about = f"""{runs:,} runs of {analysis.setup.episodes:,} episodes for each meta-algorithm, with
        95 % intervals. SSBAS chooses among four Q-learners that differ in their learning rate; each
        of them learns from every transition. The other meta-algorithms are one learner alone. The
        objective is the number of steps until all fruits are eaten, or 200 if 100 steps were not
        enough. {last} The optimal policy needs {optimum:.3f} steps on average."""
    sections = [
        Section("The map", "\n\n".join(f"`{row}`" for row in analysis.setup.grid.rows)),
        Section(
            "The paper's claims",
            table=(claim_header, claim_rows),
            text="A claim holds if the whole interval agrees with it.",
        ),
        Section(
            "Selections",
            figure="selection",
            caption="Share of each learning rate in the selections (Figure 5 of the paper).",
        ),
        Section(
            "Time per episode",
            figure="time",
            caption="Mean objective with 95 % bands, within the range of the single runs, and the"
            " optimum (dotted).",
        ),
        Section("Meta-algorithms", table=(header, rows), text=about),
    ]
    results.report("Fruit grid: SSBAS over learning rates", sections)
    terminal.print_table(
        f"{runs:,} runs of {analysis.setup.episodes:,} episodes, 95 % intervals:",
        header,
        rows,
        bold=[0],
    )
    terminal.print_table("The paper's claims:", claim_header, claim_rows)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def selection_figure(analysis: GridworldAnalysis) -> Figure:
    """Draw Figure 5: the selection ratios over time, one panel per selector."""
    selectors = [name for name in analysis.names if len(analysis.arms[name]) > 1]
    count = len(selectors)
    figure, panels = new_panels(count, width=8, height=1 + 3 * count, share_x=True)
    for axes, name in zip(panels, selectors, strict=True):
        shares = analysis.shares(name).mean(axis=0).T  # (K, bins)
        rates = [f"rate {arm}" for arm in analysis.arms[name]]
        share_lines(axes, analysis.edges, shares, rates)
        logarithmic(axes)
        label(axes, x=_TIME if axes is panels[-1] else "", y="selections [%]", title=title(name))
        # The first episodes try every arm once.
        axes.set_xlim(min(10, analysis.edges[-1] / 2), analysis.edges[-1])
        legend(axes)
    return figure


def time_figure(analysis: GridworldAnalysis) -> Figure:
    """Draw the mean time per episode: the whole run, and its later part enlarged."""
    figure, (whole, late) = new_panels(2, width=8, height=8)
    for axes in (whole, late):
        for name in analysis.names:
            color, style, width = _look(name)
            steps = analysis.objective(name)  # (R, bins)
            mean, ci95 = estimates(steps)
            curve_with_band(
                axes,
                analysis.edges,
                mean,
                ci95,
                title(name),
                within=observed(steps),
                color=color,
                style=style,
                width=width,
            )
        axes.axhline(analysis.setup.grid.optimum(), color=QUIET, linestyle=":", label="optimum")
        logarithmic(axes)
    logarithmic(whole, x=False, y=True)
    whole.set_xlim(min(10, analysis.edges[-1] / 2), analysis.edges[-1])
    ticks = [20, 30, 50, 100, 200]
    whole.set_yticks(ticks, [str(tick) for tick in ticks])
    whole.set_yticks([], minor=True)
    label(whole, x="", y="mean time per episode [steps]", title="The whole run")
    legend(whole)
    _enlarge(late, analysis)
    label(late, x=_TIME, y="mean time per episode [steps]", title="The later part")
    return figure


def _enlarge(axes: Axes, analysis: GridworldAnalysis) -> None:
    """Show the last two decades, from just below the optimum to where most curves are."""
    first = analysis.edges[-1] / 100
    last = analysis.edges[-1]
    optimum = analysis.setup.grid.optimum()
    within = analysis.edges >= first
    middle = np.median([analysis.objective(name).mean(axis=0)[within] for name in analysis.names])
    above = middle - optimum
    axes.set_xlim(first, last)
    axes.set_ylim(optimum - 0.1 * above, optimum + 2.5 * above + 1e-3)


def _look(name: str) -> tuple[str, str, float]:
    """Return color, style and width.

    A learning rate has the same color as in the selection figure.
    """
    rates = [str(rate) for rate in RATES]
    if name in rates:
        return COLORS[rates.index(name)], "-", 1.6
    if name == "ssbas":
        return INK, "-", 2.6
    if name == "annealed":
        return COLORS[5], "--", 1.8
    return COLORS[6], "-.", 1.8


def _curves(analysis: GridworldAnalysis) -> tuple[list[str], list[list[object]]]:
    """Return every point of every curve."""
    arms = sorted({arm for own in analysis.arms.values() for arm in own})
    header = ["meta-algorithm", "until episode", "objective", "ci95"]
    header += [f"share of {arm}" for arm in arms]
    rows: list[list[object]] = []
    for name in analysis.names:
        mean, ci95 = estimates(analysis.objective(name))
        shares = analysis.shares(name).mean(axis=0)
        for b, edge in enumerate(analysis.edges):
            chosen = dict(zip(analysis.arms[name], shares[b], strict=True))
            rows.append([name, edge, mean[b], ci95[b], *(chosen.get(arm) for arm in arms)])
    return header, rows
