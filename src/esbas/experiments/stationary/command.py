"""The command: run every bandit, estimate its regret, tell."""

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from esbas.engine import run_parts
from esbas.errors import require
from esbas.experiments.checks import check_sweep
from esbas.experiments.stationary.entrants import BLOCK, ENTRANTS, block, label
from esbas.reporting import Estimate, Results, Section, estimate, figures, terminal

ABOUT = """
Arms pay 1 with a fixed probability, else 0. Regret is by how much the expectations of the arms pulled fall short of the best, in
all. Every bandit has its default parameters, and knows the number of rounds if it takes a horizon.

Arms that never change are the easiest case. Bandits that are made for changing arms pay for it here, and balancing bandits, which
must give every arm the chance to learn, pay too: who is good here need not be good on arms that learn.
"""


@dataclass(frozen=True, kw_only=True)
class Stationary:
    """The regret of every bandit on Bernoulli arms that do not change."""

    runs: int = 200
    """Independent runs of each bandit."""
    rounds: int = 5000
    """Rounds of each run."""
    means: tuple[float, ...] = (0.6, 0.5, 0.4)
    """The probabilities with which the arms pay."""
    seed: int = 0
    """Same seed, same numbers."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many blocks of runs go at once. The numbers do not depend on it."""
    out: Path | None = None
    """Where the results go: table, figure, report.html, summary.json. By default ./esbas-stationary."""


def main(config: Stationary) -> None:
    """Run what is not finished yet, and write table, figure and report."""
    check_sweep(runs=config.runs, seed=config.seed, jobs=config.jobs)
    require(config.rounds >= 2, "rounds >= 2", rounds=config.rounds)
    proper = len(config.means) >= 1 and all(0 <= mean <= 1 for mean in config.means)
    require(proper, "means are probabilities, one per arm", means=config.means)
    options = {"runs": config.runs, "rounds": config.rounds, "means": config.means, "seed": config.seed}
    folder = Path("esbas-stationary") if config.out is None else config.out
    results = Results(folder, command="esbas reproduce stationary", config=options)
    run_block = partial(block, means=config.means, rounds=config.rounds, seed=config.seed)
    firsts = range(0, config.runs, BLOCK)
    done = run_parts(
        {
            f"{name}-{first}": partial(run_block, name, first=first, last=min(first + BLOCK, config.runs))
            for name in ENTRANTS
            for first in firsts
        },
        load=results.part,
        store=results.store_part,
        jobs=config.jobs,
        description="stationary arms",
        processes=True,
    )
    regrets = {name: estimate(np.concatenate([done[f"{name}-{first}"]["regrets"] for first in firsts])) for name in ENTRANTS}
    tell(results, dict(sorted(regrets.items(), key=lambda item: item[1].mean)), config)


def tell(results: Results, regrets: dict[str, Estimate], config: Stationary) -> None:
    """Write table, figure, summary and report; print the table."""
    results.summary({"regret": regrets})
    columns = ("bandit", "regret", "ci95", "runs")
    results.table("regrets", columns, [(label(name), each.mean, each.ci95, each.runs) for name, each in regrets.items()])
    results.figure("regrets", draw(regrets))
    arms = ", ".join(map(str, config.means))
    note = f"Regret after {config.rounds:,} rounds on arms {arms}: mean and 95 % interval, {config.runs} runs."
    rows = [(label(name), each) for name, each in regrets.items()]
    sections = [
        Section("What is measured", ABOUT),
        Section("Regrets", table=(("bandit", "regret"), rows), caption=note),
        Section("The same as a figure", figure="regrets", caption=note),
    ]
    results.report("Every bandit on arms that do not change", sections)
    terminal.print_table(note, ("bandit", "regret"), rows)
    terminal.print_text(f"Report: {results.folder / 'report.html'}")


def draw(regrets: dict[str, Estimate]) -> Figure:
    """One point per bandit, the best on top."""
    figure, axes = figures.new_figure(8.0, 0.28 * len(regrets) + 1.2)
    rows = np.arange(len(regrets))
    bars = [each.ci95 if each.runs > 1 else 0.0 for each in regrets.values()]
    axes.errorbar([each.mean for each in regrets.values()], rows, xerr=bars, fmt="o", color=figures.COLOURS[0], capsize=3)
    axes.set_yticks(rows, [label(name) for name in regrets])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    figures.label(axes, x="regret [reward]", y="")
    return figure
