"""Baselines: epsilon-greedy, uniform, round robin."""

import math
from collections.abc import Collection
from typing import ClassVar

import numpy as np

from esbas._internal.schema import Number
from esbas.bandits.bandit import BANDITS, Floats, Rng
from esbas.bandits.memory_bandit import Memory, MemoryBandit
from esbas.errors import require


@BANDITS.register("epsilongreedy")
class EpsilonGreedyBandit(MemoryBandit):
    """The arm with the best mean; with probability ε any arm, uniformly.

    An arm without a pull goes first. `indices()` returns the probabilities, infinite for an arm
    that goes first.
    """

    deterministic = False
    any_scale = True
    use = "as a baseline"
    guarantee = "none: regret grows with ε T"

    def __init__(
        self, n_arms: int, *, epsilon: float = 0.1, memory: Memory | None = None, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(0 <= epsilon <= 1, f"`epsilon` must be between 0 and 1, but got {epsilon!r}.")
        self.epsilon = epsilon

    def _index(self, k: int) -> float:
        arm = self.memory.arms[k]
        return self._mean(arm) if arm.pulls else math.inf

    def choose(self, among: Collection[int] | None = None) -> int:
        best = super().choose(among)
        if self.memory.arms[best].pulls and self.rng.random() < self.epsilon:
            return self._draw(self._arms(among))
        return best

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float:
        best = super().choose(among)
        if not self.memory.arms[best].pulls:
            return float(arm == best)
        return self.epsilon / len(self._arms(among)) + (1 - self.epsilon) * (arm == best)

    def indices(self) -> Floats:
        chances = np.full(self.n_arms, self.epsilon / self.n_arms)
        chances[super().choose()] += 1 - self.epsilon
        return np.where(self.counts > 0, chances, math.inf)


@BANDITS.register("uniform")
class UniformBandit(MemoryBandit):
    """Every arm with the same probability, which `indices()` returns."""

    deterministic = False
    any_scale = True
    use = "as a baseline; to collect data"
    guarantee = "none"

    def _index(self, k: int) -> float:
        del k
        return 1 / self.n_arms

    def choose(self, among: Collection[int] | None = None) -> int:
        return self._draw(self._arms(among))

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float:
        del arm
        return 1 / len(self._arms(among))


@BANDITS.register("roundrobin")
class RoundRobin(MemoryBandit):
    """The arms in turn, in the order of their numbers.

    The index is minus the number of arms that come before the arm.
    """

    any_scale = True
    extra_state: ClassVar = {"last": Number(min=-1, whole=True)}
    use = "as a baseline; to collect data"
    guarantee = "none"

    def __init__(self, n_arms: int, *, memory: Memory | None = None, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        self.last = -1  # the arm that was pulled last

    def _index(self, k: int) -> float:
        return float(-((k - self.last - 1) % self.n_arms))

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        ticket = super().pull(arm, probability=probability)
        self.last = arm
        return ticket

    def reset(self, keep: Collection[int] = ()) -> None:
        super().reset(keep)
        self.last = -1

    def remove_arm(self, arm: int) -> None:
        super().remove_arm(arm)
        if self.last >= arm:
            self.last -= 1
