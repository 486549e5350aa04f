"""Table, figure and report of the experiment."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from esbas.experiments.gridworld.analysis import GridworldAnalysis, title
from esbas.experiments.gridworld.setup import RATES
from esbas.reporting import Estimate, Results, Section, estimate, estimates, figures, terminal
from esbas.reporting.colors import COLORS, INK, QUIET

TASK = """
An agent walks on a grid (N, E, S, W) and has to eat all fruits as fast as possible. A fruit gives a
reward of 1, but every reward has noise of variance 1, so a single reward says little. Four
Q-learners differ only in their learning rate: with a high rate a learner is useful early but stays
noisy; with a low rate it learns slowly and becomes precise. Which one to use is not known in
advance.

One learner acts in each episode, and all learners learn from every episode. `SSBAS` selects while
the learners learn from every step: it is a bandit on the last half of all episodes. `ESBAS` selects
among policies that stay fixed within an epoch; epochs have 1, 2, 4, ... episodes, and the learners
learn between them. That is harder, so ESBAS has an easier map and learners that explore more. For
comparison, each learner also acts and learns alone.

The task of ESBAS was chosen to show what selection can do; it is not an average case. Of eight
settings tried (four maps, each with two exploration schedules), this is the one in which ESBAS is
furthest ahead of the best learner alone. In one other setting it was slightly ahead, in five there
was no clear difference, and in one it was worse.

The objective is the number of steps until the last fruit is eaten, or 200 if 100 steps were not
enough. The last bin is the last tenth of a decade: about the last fifth of all episodes.
"""
COLUMNS = (
    "learning",
    "acting",
    "mean_steps",
    "ci95",
    "mean_steps_last_bin",
    "ci95_last_bin",
    "runs",
)
WHEN = {"ssbas": "from every step", "esbas": "by epochs"}
_RATES = [str(rate) for rate in RATES]


def publish(results: Results, analyses: Mapping[str, GridworldAnalysis]) -> None:
    """Write table, figure, summary and report; print table, findings and the path of the report."""
    header = ("learning", "acting", "steps, whole run", "steps, last bin")
    rows: list[tuple[str, str, Estimate, Estimate]] = []
    of_selectors = []  # their row numbers
    for selector, analysis in analyses.items():
        for name in analysis.names:
            if name == selector:
                of_selectors.append(len(rows))
            whole = estimate(analysis.whole(name))
            rows.append((WHEN[selector], _display_name(name), whole, analysis.final(name)))
    runs = rows[0][2].runs
    findings = [_finding(analysis, selector) for selector, analysis in analyses.items()]
    numbers = []
    for learning, acting, whole, last in rows:
        numbers.append((learning, acting, whole.mean, whole.ci95, last.mean, last.ci95, runs))
    results.table("methods", COLUMNS, numbers)
    results.summary({selector: analysis.summary() for selector, analysis in analyses.items()})
    results.figure("small_grid", draw(analyses))
    note = f"Steps to eat all fruits (fewer is better): mean and 95 % interval over {runs} runs."
    maps = "\n\n".join(
        f"Map of {title(name)}: `{'` `'.join(analysis.setup.grid.rows)}`"
        for name, analysis in analyses.items()
    )
    sections = [
        Section("The task", TASK + "\n\n" + maps),
        Section(
            "Learning curves and selections",
            "\n\n".join(findings),
            figure="small_grid",
            caption=f"Top: the selector, and each learner alone (dashed); means over {runs} runs"
            " with 95 % bands, within the range of the single runs. Bottom: how often the selector"
            " chose each learner.",
        ),
        Section("Results", table=(header, rows), caption=note),
    ]
    results.report("Which learner should control the next episode?", sections)
    terminal.print_table(note, header, rows, bold=of_selectors)
    terminal.print_text(*findings, f"Report: {results.folder / 'report.html'}")


def draw(analyses: Mapping[str, GridworldAnalysis]) -> Figure:
    """Draw learning curves above selection shares, for SSBAS on the left and ESBAS on the right."""
    figure, panels = figures.new_panels(2, columns=len(analyses), width=10, height=6.8)
    for column, (selector, analysis) in enumerate(analyses.items()):
        curves = panels[column]
        areas = panels[len(analyses) + column]
        optimum = analysis.setup.grid.optimum()
        shares = analysis.shares(selector).mean(axis=0).T  # (K, bins)
        for rate, color in zip(_RATES, COLORS, strict=False):
            _curve(curves, analysis, rate, title(rate), color=color, style="--")
        _curve(curves, analysis, selector, " / ".join(map(title, analyses)), color=INK, width=2.6)
        curves.axhline(optimum, color=QUIET, linestyle=":", label="optimum")
        figures.stacked_shares(areas, analysis.edges, shares, _RATES)
        for axes in (curves, areas):
            figures.logarithmic(axes)
            # The first episodes try every learner once.
            axes.set_xlim(min(10, analysis.edges[-1] / 2), analysis.edges[-1])
        figures.logarithmic(curves, x=False, y=True)
        ticks = [tick for tick in (5, 10, 20, 50, 100, 200) if tick > 0.9 * optimum]
        curves.set_yticks(ticks, [str(tick) for tick in ticks])
        curves.set_yticks([], minor=True)
        curves.set_ylim(0.85 * optimum, 230)
        figures.label(
            curves,
            x="",
            y="time per episode [steps]",
            title=f"{title(selector)}: learning {WHEN[selector]}",
        )
        figures.label(areas, x="meta-time τ [episodes]", y="selections [% of episodes]")
    figures.shared_legend(figure, panels[0])
    return figure


def _curve(axes: Axes, analysis: GridworldAnalysis, name: str, label: str, **look: Any) -> None:
    steps = analysis.objective(name)  # (R, bins)
    mean, ci95 = estimates(steps)
    within = figures.observed(steps)
    figures.curve_with_band(axes, analysis.edges, mean, ci95, label, within=within, **look)


def _display_name(name: str) -> str:
    return f"{title(name)} alone" if name in _RATES else title(name)


def _finding(analysis: GridworldAnalysis, selector: str) -> str:
    """Compare the selector with the best learner alone: mean difference over paired runs."""
    whole = {name: analysis.whole(name) for name in analysis.names}  # (R,) each
    last = {name: analysis.objective(name)[:, -1] for name in analysis.names}
    comparisons = []
    for when, steps in (("over the whole run", whole), ("in the last bin", last)):
        best = min(_RATES, key=lambda rate: steps[rate].mean())
        own = estimate(steps[selector])
        alone = estimate(steps[best])
        difference = estimate(steps[selector] - steps[best])
        comparisons.append(
            f"{when} {own} (best alone: {title(best)}, {alone}; difference {difference})"
        )
    return (
        f"Learning {WHEN[selector]}, {title(selector)} took, in steps per episode,"
        f" {' and '.join(comparisons)}."
    )
