"""`esbas demo`: SSBAS and ESBAS choose among four Q-learners on a small task, in about a minute.

It has the shape of an experiment, but it is a command (`esbas demo`).
"""

from dataclasses import dataclass
from typing import ClassVar

from esbas.experiments.demo.report import publish
from esbas.experiments.demo.setup import setups
from esbas.experiments.demo.sweep import run_sweep
from esbas.experiments.options import SweepOptions


@dataclass(frozen=True, kw_only=True)
class Demo(SweepOptions):
    """SSBAS and ESBAS choose among Q-learners with four learning rates: the paper's fruit grid (Section 5.1) in small."""

    command: ClassVar[str] = "esbas demo"

    runs: int = 40
    episodes: int = 100_000
    """Episodes of each run. Runs of ESBAS have at most 16,383."""

    def run(self) -> None:
        compared = setups(self.episodes)  # checks the number of episodes
        results = self.open_results()
        publish(results, run_sweep(self, results, compared))
