"""What is compared: learners, meta-algorithms, bins. docs/gridworld.md lists what the paper leaves open."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.envs import FruitGrid, FruitMap
from esbas.errors import InvalidValueError, require
from esbas.kernels.fruit_grid.whole_runs import BUDGETED, EPOCHAL, FAILURE, KALMAN, MAX_STEPS, Learning
from esbas.learners import EpsilonGreedy, TabularQ, schedules
from esbas.objective import Objective, success_time
from esbas.selectors.registry import make_selector

RATES = (0.001, 0.01, 0.1, 0.5)
XI = 0.25
HORIZON = 100_000.0  # episodes until exploration is 0
DECAY = 0.0001  # of the annealed rate, 1 / (1 + 0.0001 τ)

COMPILED = "ssbas", *map(str, RATES), "annealed"
"""The meta-algorithms that the paper compares. All of them are compiled."""
RULES = {"esbas": EPOCHAL, "kalman-thompson": KALMAN, "budgeted-thompson": BUDGETED}
"""Other meta-algorithms that are compiled."""


class FirstBestQ(TabularQ):
    """Takes the first of several best actions, as compiled runs do. The library's own policies take a random one of them."""

    def policy(self) -> EpsilonGreedy:
        return EpsilonGreedy(self._first_best, super().policy().epsilon, batch_values=self._first_best)

    def _first_best(self, observations: Any) -> NDArray[np.float64]:
        """1 for the first of the best actions, 0 for the others, (..., A)."""
        return np.asarray(np.eye(self.action_space.n)[self.table[observations].argmax(axis=-1)])


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Everything that determines the results of a run except its seed."""

    grid: FruitMap
    gamma: float
    epsilon: float
    episodes: int
    horizon: float = HORIZON
    epochal: bool = False  # learners learn when an epoch starts, as with ESBAS

    def __post_init__(self) -> None:
        require(self.episodes >= 1, "episodes >= 1", episodes=self.episodes)
        require(0 <= self.gamma < 1, "0 <= gamma < 1", gamma=self.gamma)
        require(0 <= self.epsilon <= 1, "0 <= epsilon <= 1", epsilon=self.epsilon)

    def learning(self, name: str) -> Learning:
        """The learners of this meta-algorithm: all four rates for a selector, otherwise one."""
        alone = {str(rate): (rate,) for rate in RATES} | {"annealed": (1.0,)}
        decay = DECAY if name == "annealed" else 0.0
        return Learning(alone.get(name, RATES), decay, gamma=self.gamma, epsilon=self.epsilon, horizon=self.horizon)

    def portfolio(self, name: str = "ssbas") -> list[FirstBestQ]:
        """The same learners as `TabularQ` objects, with float32 tables and first best actions as in compiled runs."""
        learning = self.learning(name)
        learners = [
            FirstBestQ(
                str(rate) if learning.decay == 0 else name,
                states=self.grid.end + 1,
                actions=4,
                rate=partial(schedules.hyperbolic, rate, learning.decay),
                gamma=learning.gamma,
                epsilon=partial(schedules.linear, learning.epsilon, learning.horizon),
            )
            for rate in learning.rates
        ]
        for learner in learners:
            learner.table = learner.table.astype(np.float32)
        return learners

    def selector(self, name: str, *, seed: int) -> esbas.Selector:
        """The meta-algorithm as a selector object."""
        arms = [learner.name for learner in self.portfolio(name)]
        if len(arms) == 1:
            return esbas.Fixed(arms, epochs=[1] if self.epochal else None)
        raw = name in ("ssbas", "esbas")  # as in the paper
        return make_selector(name, arms, scale=None if raw else "auto", seed=seed)

    def environment(self) -> FruitGrid:
        return FruitGrid(self.grid.text, max_steps=MAX_STEPS)

    def objective(self) -> Objective:
        return success_time(failure=FAILURE)

    def edges(self) -> NDArray[np.int64]:
        """(bins,): the last episode of each bin. Bins are a tenth of a decade wide and end at 10^(k/10), rounded."""
        edges = np.unique((10 ** (np.arange(10 * np.log10(self.episodes) + 1) / 10)).round().astype(np.int64))
        inner = edges[edges < self.episodes * 10**-0.05]  # the last bin is at least half as wide as the others
        return np.append(inner, self.episodes)


def canonical(name: str) -> str:
    """The name of a meta-algorithm in lower case; those in `RULES` as they are written there, also if dashes are missing."""
    known = {rule.replace("-", ""): rule for rule in RULES}
    return known.get("".join(filter(str.isalnum, name.lower())), name.lower())


def read_map(given: str | None) -> FruitMap:
    """A map from a file, or from rows separated by slashes. None gives the map of the experiment."""
    if given is None:
        return FruitMap()
    if set(given) <= set("F#./"):
        return FruitMap(given.replace("/", "\n"))
    try:
        return FruitMap(Path(given).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        remedy = "give a text file, or rows separated by slashes, such as F#.#F/...../F#.#F"
        raise InvalidValueError(f"`--map` must be a map, but {given!r}: {reason}: {remedy}") from error
