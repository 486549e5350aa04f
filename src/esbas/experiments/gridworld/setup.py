"""What is compared: learners, meta-algorithms, bins.

docs/gridworld.md lists what the paper leaves open.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.errors import InvalidValueError, require
from esbas.experiments.envs import FruitGrid, FruitMap
from esbas.experiments.kernels.fruit_grid.whole_runs import (
    EPOCHAL,
    FAILURE,
    KALMAN,
    MAX_EPISODE_STEPS,
    Learning,
)
from esbas.learners import EpsilonGreedy, TabularQ, schedules
from esbas.objective import Objective, success_time
from esbas.selectors.registry import make_selector

RATES = (0.001, 0.01, 0.1, 0.5)
XI = 0.25
HORIZON = 100_000.0  # episodes until exploration is 0
DECAY = 0.0001  # of the annealed rate, 1 / (1 + 0.0001 τ)

COMPILED = ("ssbas", *map(str, RATES), "annealed")
"""The meta-algorithms that the paper compares. All of them are compiled."""
RULES = {"esbas": EPOCHAL, "kalman-thompson": KALMAN}
"""Other meta-algorithms that are compiled."""


class FirstBestQ(TabularQ):
    """Q-learning that takes the first of several best actions, as compiled runs do.

    The library's own policies take a random one of them.
    """

    def policy(self) -> EpsilonGreedy:
        return EpsilonGreedy(self._first_best, self.epsilon(), batch_values=self._first_best)

    def _first_best(self, observations: Any) -> NDArray[np.float64]:
        """Return 1 for the first of the best actions, 0 for the others, (..., A)."""
        best = self.table[observations].argmax(axis=-1)
        return np.asarray(np.eye(self.action_space.n)[best])


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
        require(self.episodes >= 1, f"`episodes` must be at least 1, but got {self.episodes!r}.")
        require(
            0 <= self.gamma < 1, f"`gamma` must be at least 0 and below 1, but got {self.gamma!r}."
        )
        require(
            0 <= self.epsilon <= 1, f"`epsilon` must be between 0 and 1, but got {self.epsilon!r}."
        )

    def learning(self, name: str) -> Learning:
        """Return the learners of this meta-algorithm: all four rates for a selector, else one."""
        rates: tuple[float, ...] = RATES
        decay = 0.0
        if name == "annealed":
            rates = (1.0,)
            decay = DECAY
        elif name in map(str, RATES):
            rates = (float(name),)
        return Learning(rates, decay, gamma=self.gamma, epsilon=self.epsilon, horizon=self.horizon)

    def portfolio(self, name: str = "ssbas") -> list[FirstBestQ]:
        """Return the same learners as objects.

        They have float32 tables and first best actions, as in compiled runs.
        """
        learning = self.learning(name)
        learners = []
        for rate in learning.rates:
            learner = FirstBestQ(
                str(rate) if learning.decay == 0 else name,
                states=self.grid.end + 1,
                actions=4,
                learning_rate=partial(schedules.hyperbolic, rate, learning.decay),
                gamma=learning.gamma,
                epsilon=partial(schedules.linear, learning.epsilon, learning.horizon),
            )
            learner.table = learner.table.astype(np.float32)
            learners.append(learner)
        return learners

    def selector(self, name: str, *, seed: int) -> esbas.Selector:
        """Return the meta-algorithm as a selector object."""
        arms = [learner.name for learner in self.portfolio(name)]
        if len(arms) == 1:
            return esbas.Fixed(arms, epochs=[1] if self.epochal else None)
        raw = name in ("ssbas", "esbas")  # as in the paper
        return make_selector(name, arms, scale=None if raw else "auto", seed=seed)

    def environment(self) -> FruitGrid:
        return FruitGrid(self.grid.text, max_episode_steps=MAX_EPISODE_STEPS)

    def objective(self) -> Objective:
        return success_time(failure=FAILURE)

    def edges(self) -> NDArray[np.int64]:
        """Return the last episode of each bin, (bins,).

        Bins are a tenth of a decade wide and end at 10^(k/10), rounded.
        """
        tenths = np.arange(10 * np.log10(self.episodes) + 1)
        edges = np.unique((10 ** (tenths / 10)).round().astype(np.int64))
        # The last bin is at least half as wide as the others.
        inner = edges[edges < self.episodes * 10**-0.05]
        return np.append(inner, self.episodes)


def canonical(name: str) -> str:
    """Return the name of a meta-algorithm in lower case.

    Those in `RULES` are as they are written there, also if dashes are missing.
    """
    name = name.lower()
    letters = "".join(letter for letter in name if letter.isalnum())
    for rule in RULES:
        if letters == rule.replace("-", ""):
            return rule
    return name


def read_map(given: str | None) -> FruitMap:
    """Return a map from a file, or from rows separated by slashes.

    None gives the map of the experiment.
    """
    if given is None:
        return FruitMap()
    if set(given) <= set("F#./"):
        return FruitMap(given.replace("/", "\n"))
    try:
        return FruitMap(Path(given).read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not text"
        raise InvalidValueError(
            f"`--map` must be a map, but {given!r}: {reason}: give a text file, or rows separated"
            " by slashes, such as F#.#F/...../F#.#F."
        ) from error
