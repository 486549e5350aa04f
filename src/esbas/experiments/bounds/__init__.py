"""The paper's theory by experiment: Table 1 and Theorems 1-3 on synthetic learners, and rivals on the same learners."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from esbas.errors import require
from esbas.experiments.bounds.analysis import BoundsAnalysis
from esbas.experiments.bounds.report import publish
from esbas.experiments.bounds.setup import checkpoints
from esbas.experiments.bounds.sweep import methods, sweep
from esbas.experiments.checks import check_sweep
from esbas.reporting import Results


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Check the paper's regret bounds on synthetic learners, whose expectations are known, and see who is best where."""

    runs: int = 1000
    """Independent runs of ESBAS in each regime."""
    rival_runs: int | None = None
    """Independent runs of each other meta-algorithm. By default a tenth of the runs, and two at least."""
    horizon: int = 2**20
    """Trajectories of each run: a power of two from 256 on."""
    xi: float = 0.25
    """ξ of UCB1 in ESBAS and SSBAS, and of UCB1 itself: the paper's 1/4, which guarantees no logarithmic regret."""
    safe_xi: float = 1.0
    """ξ of a second ESBAS: above 1/2 UCB1 guarantees a logarithmic regret, as the paper's Theorem 2 supposes."""
    seed: int = 0
    """Same seed, same numbers."""
    jobs: int = field(default_factory=lambda: os.cpu_count() or 1)
    """How many blocks of runs go at once. The numbers do not depend on it."""
    out: Path | None = None
    """Where the results go: tables, figures, report.html, summary.json. By default ./esbas-bounds."""


def main(config: Bounds) -> None:
    """Run what is not finished yet, and write tables, figures and the report."""
    check_sweep(runs=config.runs, seed=config.seed, jobs=config.jobs, least=2)
    rival_runs = max(config.runs // 10, 2) if config.rival_runs is None else config.rival_runs
    require(rival_runs >= 2, "rival_runs >= 2", rival_runs=rival_runs)
    for name, xi in (("xi", config.xi), ("safe_xi", config.safe_xi)):
        require(0 <= xi < float("inf"), f"{name} >= 0", **{name: xi})
    checkpoints(config.horizon)  # refuses a bad horizon before there is a folder
    counts = {"runs": config.runs, "rival_runs": rival_runs, "horizon": config.horizon}
    options = counts | {"xi": config.xi, "safe_xi": config.safe_xi, "seed": config.seed}
    folder = Path("esbas-bounds") if config.out is None else config.out
    results = Results(folder, command="esbas reproduce bounds", config=options)
    compared = methods(runs=config.runs, rival_runs=rival_runs, xi=config.xi, safe_xi=config.safe_xi)
    regrets = sweep(results, compared, horizon=config.horizon, seed=config.seed, jobs=config.jobs)
    publish(results, BoundsAnalysis(regrets, compared, horizon=config.horizon, seed=config.seed), Console())
