"""The regret of every bandit on arms that do not change, as a reference.

docs/bandits.md shows the results.
"""

from dataclasses import dataclass
from typing import ClassVar

from esbas.errors import require
from esbas.experiments.options import SweepOptions
from esbas.experiments.stationary.report import publish
from esbas.experiments.stationary.setup import Arms
from esbas.experiments.stationary.sweep import run_sweep


@dataclass(frozen=True, kw_only=True)
class Stationary(SweepOptions):
    """The regret of every bandit on Bernoulli arms that do not change."""

    command: ClassVar[str] = "esbas reproduce stationary"

    runs: int = 200
    """Independent runs of each bandit."""
    rounds: int = 5000
    """Rounds of each run."""
    means: tuple[float, ...] = (0.6, 0.5, 0.4)
    """The probability of a reward, for each arm."""

    def check(self) -> None:
        super().check()
        require(self.rounds >= 2, f"`rounds` must be at least 2, but got {self.rounds!r}.")
        require(len(self.means) >= 1, "`means` must not be empty.")
        require(
            all(0 <= mean <= 1 for mean in self.means),
            f"`means` must be between 0 and 1, but got {self.means!r}.",
        )

    def run(self) -> None:
        results = self.open_results()
        arms = Arms(means=self.means, rounds=self.rounds)
        publish(results, run_sweep(self, results, arms), arms)


EXPERIMENT = Stationary
