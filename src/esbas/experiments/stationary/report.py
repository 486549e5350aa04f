"""Table, figure and report."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from esbas.experiments.stationary.setup import Arms, label
from esbas.reporting import Estimate, Results, Section, figures, terminal
from esbas.reporting.colours import COLOURS

ABOUT = """
Each arm gives a reward of 1 with a fixed probability, otherwise 0. The regret is the expected reward of the best arm minus that
of the pulled arms, summed over all rounds. Every bandit has its default parameters, and knows the number of rounds if it takes a
horizon.

Arms that never change are the easiest case. Bandits for changing arms have a larger regret here, and so have balancing bandits,
which must give every arm the chance to learn: a bandit that is good here need not be good on arms that learn.
"""


def publish(results: Results, regrets: Mapping[str, Estimate], arms: Arms) -> None:
    """Write table, figure, summary and report; print the table."""
    results.summary({"regret": regrets})
    columns = ("bandit", "regret", "ci95", "runs")
    results.table("regrets", columns, [(label(name), each.mean, each.ci95, each.runs) for name, each in regrets.items()])
    results.figure("regrets", regret_figure(regrets))
    means, runs = ", ".join(map(str, arms.means)), next(iter(regrets.values())).runs
    note = f"Regret after {arms.rounds:,} rounds on arms {means}: mean and 95 % interval, {runs} runs."
    rows = [(label(name), each) for name, each in regrets.items()]
    sections = [
        Section("What is measured", ABOUT),
        Section("Regrets", table=(("bandit", "regret"), rows), figure="regrets", caption=note),
    ]
    results.report("Every bandit on arms that do not change", sections)
    terminal.print_table(note, ("bandit", "regret"), rows)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def regret_figure(regrets: Mapping[str, Estimate]) -> Figure:
    """One point per bandit, the best at the top. Intervals end at 0, since no regret is negative."""
    figure, axes = figures.new_figure(8.0, 0.28 * len(regrets) + 1.2)
    rows = np.arange(len(regrets))
    means = np.array([each.mean for each in regrets.values()])
    bars = np.array([each.ci95 if each.runs > 1 else 0.0 for each in regrets.values()])
    axes.errorbar(means, rows, xerr=[np.minimum(bars, means), bars], fmt="o", color=COLOURS[0], capsize=3)
    axes.set_yticks(rows, [label(name) for name in regrets])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    figures.label(axes, x="regret [reward]", y="")
    return figure
