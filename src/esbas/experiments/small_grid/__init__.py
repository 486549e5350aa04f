"""SSBAS and ESBAS over four learning rates on a small grid, in a minute."""

from dataclasses import dataclass
from typing import ClassVar

from esbas.experiments.options import SweepOptions
from esbas.experiments.small_grid.report import publish
from esbas.experiments.small_grid.setup import setups
from esbas.experiments.small_grid.sweep import run_sweep


@dataclass(frozen=True, kw_only=True)
class SmallGrid(SweepOptions):
    """SSBAS and ESBAS choose among Q-learners with four learning rates.

    This is the paper's fruit grid (Section 5.1) in small.
    """

    command: ClassVar[str] = "esbas reproduce small_grid"

    runs: int = 40
    episodes: int = 100_000
    """Episodes of each run. Runs of ESBAS have at most 16,383."""

    def run(self) -> None:
        compared = setups(self.episodes)  # checks the number of episodes
        results = self.open_results()
        publish(results, run_sweep(self, results, compared))


EXPERIMENT = SmallGrid
