"""The paper's fruit grid (Section 5.1, Figure 5): SSBAS over four learning rates.

SSBAS is compared with each learning rate alone and with an annealed learning rate.
docs/gridworld.md describes the experiment.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from esbas.experiments.gridworld.analysis import GridworldAnalysis
from esbas.experiments.gridworld.report import publish
from esbas.experiments.gridworld.setup import COMPILED, Setup, canonical, read_map
from esbas.experiments.gridworld.sweep import run_sweep
from esbas.experiments.options import SweepOptions


@dataclass(frozen=True, kw_only=True)
class Gridworld(SweepOptions):
    """Reproduce the fruit grid of Section 5.1.

    SSBAS chooses among Q-learners with four learning rates, episode by episode.
    """

    command: ClassVar[str] = "esbas reproduce gridworld"
    extensible: ClassVar[tuple[str, ...]] = ("also",)

    runs: int = 3000
    """Independent runs of each meta-algorithm. The paper has 3,000 (about 40 minutes on two cores);
    100 show every effect."""
    episodes: int = 1_000_000
    """Episodes of each run."""
    gamma: float = 0.9
    """Discount factor of the learners. Not given in the paper."""
    epsilon: float = 0.01
    """Exploration in the first episode. It decreases linearly to 0 after 100,000 episodes. Not
    given in the paper."""
    map: str | None = None
    """A file with a map, one row per line (F fruit, # wall, . free), or the rows themselves,
    separated by slashes."""
    also: tuple[str, ...] = ()
    """More meta-algorithms by name: esbas and kalman-thompson (compiled), or any bandit of the
    library (not compiled, 1,000 times slower)."""

    @cached_property
    def setup(self) -> Setup:
        """What is compared."""
        return Setup(
            grid=read_map(self.map), gamma=self.gamma, epsilon=self.epsilon, episodes=self.episodes
        )

    @property
    def more_names(self) -> list[str]:
        """The additional meta-algorithms, each once."""
        names = dict.fromkeys(canonical(name) for name in self.also)
        return [name for name in names if name not in COMPILED]

    def check(self) -> None:
        super().check()
        setup = self.setup  # raises an error if map, gamma, epsilon or episodes are invalid
        for name in self.more_names:
            setup.selector(name, seed=self.seed)

    def settings(self) -> dict[str, object]:
        grid = None if self.map is None else "/".join(self.setup.grid.rows)
        return super().settings() | {"map": grid, "also": self.more_names or None}

    def run(self) -> None:
        results = self.open_results()
        counters = run_sweep(self, results, self.setup, [*COMPILED, *self.more_names])
        publish(results, GridworldAnalysis(self.setup, counters))


EXPERIMENT = Gridworld
