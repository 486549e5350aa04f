"""The paper's regret bounds (Table 1, Theorems 1-3), checked on synthetic learners.

Other meta-algorithms run on the same learners for comparison. docs/theory.md describes the
experiment.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from esbas.errors import require
from esbas.experiments.bounds.analysis import BoundsAnalysis
from esbas.experiments.bounds.report import publish
from esbas.experiments.bounds.setup import checkpoints, compared_methods
from esbas.experiments.bounds.sweep import run_sweep
from esbas.experiments.options import SweepOptions


@dataclass(frozen=True, kw_only=True)
class Bounds(SweepOptions):
    """Check the paper's regret bounds on synthetic learners with known expectations.

    Other meta-algorithms are compared on the same learners.
    """

    command: ClassVar[str] = "esbas reproduce bounds"
    min_runs: ClassVar[int] = 2

    runs: int = 1000
    """Independent runs of ESBAS in each regime."""
    rival_runs: int | None = None
    """Independent runs of each other meta-algorithm. By default a tenth of the runs, but at least
    two."""
    horizon: int = 2**20
    """Trajectories of each run: a power of two, at least 256."""
    xi: float = 0.25
    """ξ of UCB1 in ESBAS and SSBAS, and of UCB1 itself. The paper has 1/4, which does not
    guarantee logarithmic regret."""
    safe_xi: float = 1.0
    """ξ of a second ESBAS. Above 1/2, UCB1 guarantees logarithmic regret, which Theorem 2 of the
    paper assumes."""

    @property
    def runs_of_rivals(self) -> int:
        """`rival_runs`, or its default."""
        if self.rival_runs is None:
            return max(self.runs // 10, 2)
        return self.rival_runs

    def check(self) -> None:
        super().check()
        rival_runs = self.runs_of_rivals
        require(rival_runs >= 2, f"`rival_runs` must be at least 2, but got {rival_runs!r}.")
        for name in ("xi", "safe_xi"):
            xi = getattr(self, name)
            require(0 <= xi < math.inf, f"`{name}` must be at least 0 and finite, but got {xi!r}.")
        checkpoints(self.horizon)  # raises an error if the horizon is invalid

    def settings(self) -> dict[str, object]:
        return super().settings() | {"rival_runs": self.runs_of_rivals}

    def run(self) -> None:
        results = self.open_results()
        methods = compared_methods(
            runs=self.runs, rival_runs=self.runs_of_rivals, xi=self.xi, safe_xi=self.safe_xi
        )
        regrets = run_sweep(self, results, methods, horizon=self.horizon)
        publish(results, BoundsAnalysis(regrets, methods, horizon=self.horizon, seed=self.seed))


EXPERIMENT = Bounds
