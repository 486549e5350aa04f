"""D³RB and ED²RB: balance the regret of arms that learn, without prior knowledge about them.

An arm that learns well has a regret of at most d √n after n pulls. Both bandits estimate d from the
rewards and pull the arm with the smallest balancing potential, d √n. `indices()` returns minus the
potentials. An arm without a pull has an infinite index and goes first.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from esbas._internal.schema import Number
from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import AllRounds, Arm, MemoryBandit, Round
from esbas.errors import require


def balancing_radius(c: float, n_arms: float, delta: float, pulls: float) -> float:
    """Return the radius c √(ln(K ln n / δ) / n) of a confidence bound.

    ln n is replaced by 1 if it is smaller, since ln ln 1 is -∞.
    """
    return c * math.sqrt(math.log(n_arms * max(math.log(pulls), 1.0) / delta) / pulls)


@dataclass(slots=True)
class BalancedArm(Arm):
    """Adds the coefficient d (D³RB) or the potential φ (ED²RB)."""

    value: Annotated[float, Number(min=1e-300)] = 1.0


class RegretBalancing(MemoryBandit):
    """Potentials and confidence bounds, for both bandits.

    Args:
        n_arms: K.
        d_min: the smallest d.
        c: the constant of the confidence bounds, in units of `spread`.
        delta: δ, the probability that a bound fails.
        rng: not used.
    """

    any_scale = True
    setting = "learning arms"
    use = "algorithms that learn, nothing else is known"
    guarantee = "Õ(d K √T + d² √(K T)) if the best has a regret of d √n after n of its own rounds"
    memory: AllRounds

    def __init__(
        self,
        n_arms: int,
        *,
        d_min: float = 1.0,
        c: float = 1.0,
        delta: float = 0.1,
        rng: Rng = None,
    ) -> None:
        require(d_min > 0, f"`d_min` must be greater than 0, but got {d_min!r}.")
        require(c >= 0, f"`c` must be at least 0, but got {c!r}.")
        require(0 < delta < 1, f"`delta` must lie between 0 and 1, but got {delta!r}.")
        memory = AllRounds(n_arms, arm=partial(BalancedArm, value=d_min))
        super().__init__(n_arms, memory=memory, rng=rng)
        self.d_min = d_min
        self.c = c
        self.delta = delta

    @abstractmethod
    def _potential(self, arm: BalancedArm) -> float:
        """Return the quantity to balance, for an arm with at least one pull."""

    def _index(self, k: int) -> float:
        arm = self.memory.arms[k]
        return -self._potential(arm) if arm.pulls else math.inf

    def _radius(self, arm: BalancedArm) -> float:
        return self.spread * balancing_radius(self.c, self.n_arms, self.delta, arm.rewards)

    def _upper(self, arm: BalancedArm) -> float:
        return arm.mean + self._radius(arm)

    def _best_lower(self) -> float:
        arms: list[BalancedArm] = self.memory.arms
        return max(arm.mean - self._radius(arm) for arm in arms if arm.rewards)


@BANDITS.register("d3rb")
class D3RB(RegretBalancing):
    """Pull argmin d_i √n_i, and double d_i if arm i falls short of its bound.

    The test is x_i + d_i / √n_i + r(n_i) < max_j (x_j - r(n_j)), for the arm i that received a
    reward. x_i is the mean of n_i rewards, and r(n) = c √(ln(K ln n / δ) / n). Pacchiano, Dann &
    Gentile (2023).
    """

    @property
    def coefficients(self) -> tuple[float, ...]:
        """(K,): d."""
        return tuple(arm.value for arm in self.memory.arms)

    def _potential(self, arm: BalancedArm) -> float:
        return arm.value * math.sqrt(arm.pulls)

    def _learn(self, settled: Round, reward: float) -> None:
        del reward
        arm: BalancedArm = settled.arm
        allowance = self.spread * arm.value / math.sqrt(arm.rewards)
        if self._upper(arm) + allowance < self._best_lower():
            arm.value *= 2


@BANDITS.register("ed2rb")
class ED2RB(RegretBalancing):
    """As D³RB, with d_i = max(d_min, √n_i (max_j (x_j - r(n_j)) - x_i - r(n_i))).

    When a reward arrives, the potential φ_i of its arm becomes d_i √n_i, but at least φ_i and at
    most 2 φ_i. With rounds in flight it grows as √n. Pacchiano, Dann & Gentile (2023).
    """

    def _potential(self, arm: BalancedArm) -> float:
        return arm.value * math.sqrt(arm.pulls / max(arm.rewards, 1))

    def _learn(self, settled: Round, reward: float) -> None:
        del reward
        arm: BalancedArm = settled.arm
        potential = arm.value
        root = math.sqrt(arm.rewards)
        shortfall = self._best_lower() - self._upper(arm)
        d = max(self.d_min, root * shortfall / self.spread)
        arm.value = min(max(d * root, potential), 2 * potential)
