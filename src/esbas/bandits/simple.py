"""Bandits to compare with: epsilon-greedy, uniform, round robin."""

import math
from collections.abc import Collection
from typing import Any

import numpy as np

from esbas.bandits.bandit import Floats, Rng
from esbas.bandits.memory_bandit import AllRounds, Memory
from esbas.bandits.memory_bandit import MemoryBandit
from esbas.errors import require


class EpsilonGreedyBandit(MemoryBandit):
    """The arm with the best mean, but with probability ε any arm; an arm without a pull goes first.

    `indices()` tells the probabilities, infinite for an arm that goes first.
    """

    any_scale = True

    def __init__(self, n_arms: int, *, epsilon: float = 0.1, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=memory or AllRounds(n_arms), rng=rng)
        require(0 <= epsilon <= 1, "0 <= epsilon <= 1", epsilon=epsilon)
        self.epsilon = epsilon

    def _index(self, arm: int) -> float:
        return self._mean(arm) if self.memory.counts[arm] else math.inf

    def choose(self, among: Collection[int] | None = None) -> int:
        """Greedy or any."""
        best = super().choose(among)
        if self.memory.counts[best] and self.rng.random() < self.epsilon:
            arms = self._arms(among)
            return arms[int(self.rng.integers(len(arms)))]
        return best

    def indices(self) -> Floats:
        """(K,): probabilities."""
        chances = np.full(self.n_arms, self.epsilon / self.n_arms)
        chances[super().choose()] += 1 - self.epsilon
        return np.where(np.asarray(self.memory.counts) > 0, chances, math.inf)


class UniformBandit(MemoryBandit):
    """Every arm with the same probability, which `indices()` tells."""

    any_scale = True

    def __init__(self, n_arms: int, *, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=memory or AllRounds(n_arms), rng=rng)

    def _index(self, arm: int) -> float:
        del arm
        return 1 / self.n_arms

    def choose(self, among: Collection[int] | None = None) -> int:
        """Any."""
        arms = self._arms(among)
        return arms[int(self.rng.integers(len(arms)))]


class RoundRobin(MemoryBandit):
    """One arm after the other, in the order of their numbers. The index is minus the arms to go through before it."""

    any_scale = True

    def __init__(self, n_arms: int, *, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=memory or AllRounds(n_arms), rng=rng)
        self._last = -1

    def _index(self, arm: int) -> float:
        return float(-((arm - self._last - 1) % self.n_arms))

    def pull(self, arm: int) -> int:
        """Start a round; the arm behind it is next."""
        ticket = super().pull(arm)
        self._last = arm
        return ticket

    def _forget(self, keep: Collection[int]) -> None:
        del keep
        self._last = -1

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        self._last -= self._last >= arm

    def state_dict(self) -> dict[str, Any]:
        """The memory and who was last."""
        return super().state_dict() | {"last": self._last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._last = state["last"]
