"""The command: run every method, estimate, tell."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from esbas import seeding
from esbas.engine import Finished, run_parts
from esbas.errors import require
from esbas.experiments.demo.task import METHODS, RATES, one_run
from esbas.reporting import Results


@dataclass(frozen=True, kw_only=True)
class Demo:
    """SSBAS and ESBAS choose among three Q-learners on a small noisy grid; each learner alone is shown for comparison."""

    runs: int = 10
    """How many independent runs of each method; intervals are over them."""
    episodes: int = 1000
    """Episodes per run."""
    seed: int = 0
    """Same seed, same results."""
    out: Path = Path("esbas-demo")
    """The folder for table, figure and report."""
    jobs: int = os.cpu_count() or 1
    """How many runs go at once; results do not depend on it."""


def main(config: Demo) -> None:
    """Run the demo; what is finished already is not run again."""
    require(config.runs >= 1, "runs >= 1", runs=config.runs)
    require(config.episodes >= 10, "episodes >= 10", episodes=config.episodes)
    require(config.jobs >= 1, "jobs >= 1", jobs=config.jobs)
    settings = {"runs": config.runs, "episodes": config.episodes, "seed": config.seed}
    seeds = [seeding.integer(config.seed, "demo", run) for run in range(config.runs)]
    results = Results(config.out, command="esbas demo", config=settings)
    done = run_parts(
        {
            f"{m}-{run}": partial(one_run, m, episodes=config.episodes, seed=seed)
            for run, seed in enumerate(seeds)
            for m in METHODS
        },
        load=results.part,
        store=results.store_part,
        jobs=config.jobs,
        description="demo",
        processes=True,
        note=_shares_so_far,
    )
    columns = (
        {method: np.array([done[f"{method}-{run}"][column] for run in range(config.runs)]) for method in METHODS}
        for column in ("steps", "arms")
    )
    from esbas.experiments.demo import account  # here, so that the processes that run parts do not load matplotlib

    account.tell(results, *columns)


def _shares_so_far(done: Finished) -> str:
    """Whom SSBAS chose in the runs that are finished."""
    parts = [part["arms"] for name, part in done.items() if name.startswith("online-SSBAS")]
    if not parts:
        return ""
    arms = np.concatenate(parts)
    shares = np.bincount(arms, minlength=len(RATES)) / len(arms)
    return "SSBAS chose " + ", ".join(f"{name} {share:.0%}" for name, share in zip(RATES, shares, strict=True))
