"""Table, figure and report."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from esbas.experiments.stationary.setup import Arms, label
from esbas.reporting import Estimate, Results, Section, figures, terminal
from esbas.reporting.colors import COLORS

ABOUT = """
Each arm gives a reward of 1 with a fixed probability, otherwise 0. The regret is the expected
reward of the best arm minus that of the pulled arms, summed over all rounds. Every bandit has its
default parameters, and knows the number of rounds if it takes a horizon.

Arms that never change are the easiest case. Bandits for changing arms have a larger regret here,
and so have balancing bandits, which must give every arm the chance to learn: a bandit that is good
here need not be good on arms that learn.
"""


def publish(results: Results, regrets: Mapping[str, Estimate], arms: Arms) -> None:
    """Write table, figure, summary and report; print the table."""
    results.summary({"regret": regrets})
    numbers = []
    rows = []
    for name, each in regrets.items():
        numbers.append((label(name), each.mean, each.ci95, each.runs))
        rows.append((label(name), each))
    results.table("regrets", ("bandit", "regret", "ci95", "runs"), numbers)
    results.figure("regrets", regret_figure(regrets))
    means = ", ".join(str(mean) for mean in arms.means)
    runs = rows[0][1].runs
    note = (
        f"Regret after {arms.rounds:,} rounds on arms {means}: mean and 95 % interval, {runs} runs."
    )
    sections = [
        Section("What is measured", ABOUT),
        Section("Regrets", table=(("bandit", "regret"), rows), figure="regrets", caption=note),
    ]
    results.report("Every bandit on arms that do not change", sections)
    terminal.print_table(note, ("bandit", "regret"), rows)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def regret_figure(regrets: Mapping[str, Estimate]) -> Figure:
    """Draw one point per bandit, the best at the top.

    Intervals end at 0, since no regret is negative.
    """
    figure, axes = figures.new_figure(8.0, 0.28 * len(regrets) + 1.2)
    rows = np.arange(len(regrets))
    means = np.array([each.mean for each in regrets.values()])
    bars = np.array([each.ci95 if each.runs > 1 else 0.0 for each in regrets.values()])
    lengths = [np.minimum(bars, means), bars]
    axes.errorbar(means, rows, xerr=lengths, fmt="o", color=COLORS[0], capsize=3)
    axes.set_yticks(rows, [label(name) for name in regrets])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    figures.label(axes, x="regret [reward]", y="")
    return figure
