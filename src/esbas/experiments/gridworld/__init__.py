"""The paper's fruit grid (Section 5.1, Figure 5): SSBAS over four learning rates, against each alone and an annealed one."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from esbas.experiments.checks import check_sweep
from esbas.experiments.gridworld.analysis import GridworldAnalysis
from esbas.experiments.gridworld.report import publish
from esbas.experiments.gridworld.setup import COMPILED, Setup, read_map
from esbas.experiments.gridworld.sweep import sweep
from esbas.reporting import Results


@dataclass(frozen=True, kw_only=True)
class Gridworld:
    """Reproduce the fruit grid of Section 5.1: SSBAS chooses among Q-learners with four learning rates, episode by episode."""

    runs: int = 3000
    """Independent runs of each meta-algorithm. 3,000 are the paper's, about 40 minutes on two cores; 100 show every effect."""
    episodes: int = 1_000_000
    """Episodes of each run."""
    gamma: float = 0.9
    """Discount of the learners (the paper does not tell)."""
    epsilon: float = 0.01
    """Exploration in the first episode; it falls linearly and ends after 100,000 episodes (the paper does not tell)."""
    map: str | None = None
    """A file with a map, one row per line: F fruit, # wall, . free; or the rows themselves with slashes between them."""
    also: tuple[str, ...] = ()
    """More meta-algorithms by name: esbas (compiled), or any bandit of the library on the learning arms (1,000 times slower)."""
    seed: int = 0
    """Same seed, same numbers."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many blocks of runs go at once. The numbers do not depend on it."""
    out: Path | None = None
    """Where the results go: table, figures, report.html, summary.json. By default ./esbas-gridworld."""


def main(config: Gridworld) -> None:
    """Run what is not finished yet, and write tables, figures and the report."""
    check_sweep(runs=config.runs, seed=config.seed, jobs=config.jobs)
    setup = Setup(grid=read_map(config.map), gamma=config.gamma, epsilon=config.epsilon, episodes=config.episodes)
    also = tuple(dict.fromkeys(name.lower() for name in config.also if name.lower() not in COMPILED))
    for name in also:
        setup.selector(name, seed=config.seed)
    options: dict[str, object] = {
        "runs": config.runs,
        "episodes": config.episodes,
        "gamma": config.gamma,
        "epsilon": config.epsilon,
        "map": None if config.map is None else "/".join(setup.grid.rows),
        "also": list(also) or None,
        "seed": config.seed,
    }
    folder = Path("esbas-gridworld") if config.out is None else config.out
    results = Results(folder, command="esbas reproduce gridworld", config=options)
    counters = sweep(results, setup, [*COMPILED, *also], runs=config.runs, seed=config.seed, jobs=config.jobs)
    publish(results, GridworldAnalysis(setup, counters))
