"""What came out of the demo: table, figure, report."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from esbas.experiments.demo.task import METHODS, RATES, SELECTORS, TIME_LIMIT
from esbas.reporting import Estimate, Results, Section, estimate, estimates, figures, terminal

Runs = dict[str, NDArray[Any]]  # by method, (R, T)

WHEN = {"online": "from every step", "epochs": "by epochs"}
TASK = f"""
A walker has to find the corner of a 3 × 3 grid in as few steps as it can, {TIME_LIMIT} at most.
One move in ten slips into a random direction, and rewards are noisy.
Three Q-learners differ in their learning rate alone: {", ".join(f"{name} ({rate:g})" for name, rate in RATES.items())}.
A fast learner is soon of use, but noise keeps it blurred; a slow one needs long and ends up sharp.
Nobody says in advance which one to take.

One learner acts per episode, and all learn from what happens, whoever acts.
`SSBAS` selects while the learners learn from every step, with a bandit on the last half of all episodes.
`ESBAS` selects among policies that stay as they are within an epoch: epochs have 1, 2, 4, ... episodes, and learners learn when
one starts.
For comparison, each learner acts and learns alone.
"""


def tell(results: Results, steps: Runs, arms: Runs) -> None:
    """Write table, figure, summary and report; print table, findings and where the report is."""
    runs, episodes = steps[METHODS[0]].shape
    whole = {method: estimate(steps[method].mean(axis=1)) for method in METHODS}
    last = {method: estimate(steps[method][:, -(episodes // 10) :].mean(axis=1)) for method in METHODS}
    shares = {
        selector: {name: float(np.mean(arms[f"{setting}-{selector}"] == k)) for k, name in enumerate(RATES)}
        for setting, selector in SELECTORS.items()
    }
    results.summary({"steps": whole, "steps_last_tenth": last, "shares": shares})
    columns = ("learning", "who_acts", "mean_steps", "ci95", "mean_steps_last_tenth", "ci95_last_tenth", "runs")
    numbers = [(whole[m].mean, whole[m].ci95, last[m].mean, last[m].ci95, runs) for m in METHODS]
    results.table("methods", columns, [(*_name(m), *row) for m, row in zip(METHODS, numbers, strict=True)])
    results.figure("demo", draw(steps, arms))
    header = ("learning", "who acts", "steps, whole run", "steps, last tenth")
    rows = [(*_name(method), whole[method], last[method]) for method in METHODS]
    findings = [_finding(setting, steps, whole) for setting in SELECTORS]
    note = f"Steps to the goal, fewer are better: mean and 95 % interval over {runs} runs of {episodes:,} episodes."
    sections = [
        Section("The task", TASK),
        Section("What came out", "\n\n".join(findings), (header, rows), caption=note),
        Section(
            "How it went",
            figure="demo",
            caption=f"Top: the selector, and each learner alone (dashed); means over {runs} runs with 95 % bands. "
            "Bottom: whom the selector chose.",
        ),
    ]
    results.report("Which learner should control the next episode?", sections)
    terminal.print_table(note, header, rows, bold=[k for k, m in enumerate(METHODS) if m.split("-")[1] in SELECTORS.values()])
    terminal.print_text(*findings, f"Report: {results.folder / 'report.html'}")


def draw(steps: Runs, arms: Runs) -> Figure:
    """Learning curves on top, selection shares below; SSBAS on the left, ESBAS on the right."""
    figure, panels = figures.new_panels(2, columns=2, width=10, height=6.5, share_x=True)
    edges = figures.log_bins(steps[METHODS[0]].shape[1])
    middles = figures.bin_middles(edges)
    for column, (setting, selector) in enumerate(SELECTORS.items()):
        curves, areas = panels[column], panels[2 + column]
        for name, colour in zip(RATES, figures.COLOURS, strict=False):
            band = estimates(figures.bin_means(steps[f"{setting}-{name}"], edges))
            figures.curve_with_band(curves, middles, *band, name, colour=colour, style="--")
        band = estimates(figures.bin_means(steps[f"{setting}-{selector}"], edges))
        figures.curve_with_band(curves, middles, *band, " / ".join(SELECTORS.values()), colour=figures.INK, width=2.6)
        chosen = [figures.bin_means(arms[f"{setting}-{selector}"] == k, edges).mean(axis=0) for k in range(len(RATES))]
        figures.stacked_shares(areas, middles, chosen, list(RATES))
        figures.logarithmic(areas)
        curves.set_ylim(0, TIME_LIMIT)
        figures.label(curves, x="", y="time to the goal [steps]", title=f"{selector}: learning {WHEN[setting]}")
        figures.label(areas, x="meta-time τ [episodes]", y="chosen to act [% of episodes]")
    figures.shared_legend(figure, panels[0])
    return figure


def _name(method: str) -> tuple[str, str]:
    setting, who = method.split("-")
    return WHEN[setting], who if who in SELECTORS.values() else f"{who} alone"


def _finding(setting: str, steps: Runs, whole: dict[str, Estimate]) -> str:
    """The selector against the learner that turned out best alone: the mean of the differences, run by run."""
    selector = f"{setting}-{SELECTORS[setting]}"
    best = min((f"{setting}-{name}" for name in RATES), key=lambda method: whole[method].mean)
    difference = estimate(steps[selector].mean(axis=1) - steps[best].mean(axis=1))
    name, selected, alone = best.split("-")[1], whole[selector], whole[best]
    return (
        f"Learning {WHEN[setting]}, {SELECTORS[setting]} took {selected} steps per episode over the whole run. "
        f"The best learner alone turned out to be {name}, with {alone}. The difference is {difference} (run by run)."
    )
