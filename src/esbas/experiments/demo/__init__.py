"""`esbas demo`: which of four Q-learners should control the next episode, answered by SSBAS and by ESBAS in under a minute."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from esbas.envs import FruitMap
from esbas.experiments.checks import check_sweep
from esbas.experiments.demo.account import tell
from esbas.experiments.gridworld.analysis import GridworldAnalysis
from esbas.experiments.gridworld.setup import RATES, Setup
from esbas.experiments.gridworld.sweep import sweep
from esbas.kernels.fruit_grid.whole_runs import Counters
from esbas.reporting import Results

EASY_MAP = "F..F\n.##.\n...."
"""For ESBAS, whose policies change at the starts of epochs alone and so need an easier task and more exploration.

Picked to show a clear effect: see the text of the report.
"""
BLOCK = 5


@dataclass(frozen=True, kw_only=True)
class Demo:
    """SSBAS and ESBAS choose among Q-learners with four learning rates: the paper's fruit grid (Section 5.1) in small."""

    runs: int = 40
    """How many independent runs of each method; intervals are over them."""
    episodes: int = 100_000
    """Episodes per run; ESBAS plays 16,383 at most."""
    seed: int = 0
    """Same seed, same results."""
    out: Path = Path("esbas-demo")
    """The folder for table, figure and report."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many blocks of runs go at once; results do not depend on it."""


def main(config: Demo) -> None:
    """Run the demo; what is finished already is not run again."""
    check_sweep(runs=config.runs, seed=config.seed, jobs=config.jobs)
    setups = {
        "ssbas": Setup(grid=FruitMap(), gamma=0.9, epsilon=0.01, episodes=config.episodes),
        "esbas": Setup(
            grid=FruitMap(EASY_MAP), gamma=0.9, epsilon=1.0, episodes=min(config.episodes, 16_383), horizon=3000.0, epochal=True
        ),
    }
    settings = {"runs": config.runs, "episodes": config.episodes, "seed": config.seed}
    results = Results(config.out, command="esbas demo", config=settings)
    analyses = {}
    for selector, setup in setups.items():
        counters = sweep(
            results,
            setup,
            [selector, *map(str, RATES)],
            runs=config.runs,
            seed=config.seed,
            jobs=config.jobs,
            block_size=BLOCK,
            prefix=f"{selector}-demo-",
            description=f"demo, {selector.upper()}",
            note=partial(_shares_so_far, selector),
        )
        analyses[selector] = GridworldAnalysis(setup, counters)
    tell(results, analyses)


def _shares_so_far(selector: str, counters: Mapping[str, Counters]) -> str:
    """Whom the selector chose in the runs that are finished."""
    if selector not in counters:
        return ""
    chosen = counters[selector].selections.sum(axis=(0, 1))
    shares = ", ".join(f"{rate} {share:.0%}" for rate, share in zip(RATES, chosen / chosen.sum(), strict=True))
    return f"{selector.upper()} chose {shares}"
