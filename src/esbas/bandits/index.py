"""Index bandits: pull the arm with the largest index; an arm without a pull goes first."""

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.bandits.bandit import Bandit, Floats
from esbas.bandits.memory import Memory
from esbas.errors import require


class IndexBandit(Bandit):
    """A formula over a memory. A new one is written by giving `index`."""

    def __init__(self, n_arms: int, *, memory: Memory, rng: np.random.Generator | None = None) -> None:
        super().__init__(n_arms, rng=rng)
        self.memory = memory

    @abstractmethod
    def index(self, mean: float, pulls: float) -> float:
        """The index of an arm with this mean and at least one pull."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm with the largest index, the first of equals."""
        arms = range(self.n_arms) if among is None else sorted(among)
        return max(arms, key=self._index)  # max takes the first of equals

    def _index(self, arm: int) -> float:
        pulls = self.memory.counts[arm]
        if not pulls:
            return math.inf
        mean = self.memory.mean(arm)
        return self.index(mean if mean == mean else self.memory.prior(), pulls)  # NaN: all its rounds are in flight

    def indices(self) -> Floats:
        """(K,)."""
        return np.array([self._index(arm) for arm in range(self.n_arms)])

    @property
    def counts(self) -> NDArray[Any]:
        """(K,)."""
        return np.array(self.memory.counts)

    @property
    def means(self) -> Floats:
        """(K,)."""
        return np.array([self.memory.mean(arm) for arm in range(self.n_arms)])

    def pull(self, arm: int) -> int:
        """Start a round."""
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        return self.memory.pull(arm)

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End a round."""
        require(math.isfinite(reward), "a reward is finite", reward=reward)
        self.memory.settle(self.pull(arm) if pull is None else pull, float(reward))

    def withdraw(self, pull: int) -> None:
        """Undo a pull."""
        self.memory.withdraw(pull)

    def reset(self, keep: Collection[int] = ()) -> None:
        """Forget."""
        self.memory.reset(keep)

    def add_arm(self) -> None:
        """One more arm."""
        self.n_arms += 1
        self.memory.add_arm()

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        require(self.n_arms > 1, "one arm stays", n_arms=self.n_arms)
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        self.n_arms -= 1
        self.memory.remove_arm(arm)

    def state_dict(self) -> dict[str, Any]:
        """The memory and the number of arms."""
        return {"n_arms": self.n_arms, "memory": self.memory.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        self.n_arms = state["n_arms"]
        self.memory.load_state_dict(state["memory"])
