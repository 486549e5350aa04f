"""D³RB and ED²RB: balance the regret of algorithms that learn, of which nothing is known in advance.

An arm that learns well has a regret of at most d √n after n pulls. Both estimate d from the rewards and pull the arm with the
smallest balancing potential, d √n. `indices()` tells minus the potentials, infinite for an arm without a pull, which goes first.
"""

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from esbas.bandits.bandit import Rng
from esbas.bandits.memory_bandit import AllRounds
from esbas.bandits.memory_bandit import MemoryBandit
from esbas.errors import require


def balancing_radius(c: float, n_arms: float, delta: float, pulls: float) -> float:
    """The radius c √(ln(K ln n / δ) / n), with 1 for ln n below that: ln ln 1 is -∞."""
    return c * math.sqrt(math.log(n_arms * max(math.log(pulls), 1.0) / delta) / pulls)


class RegretBalancing(MemoryBandit):
    """What the two share: potentials and confidence bounds.

    Args:
        n_arms: K.
        d_min: the smallest d.
        c: the constant of the confidence bounds, in units of `spread`.
        delta: δ, the probability that a bound fails.
        rng: not used.
    """

    any_scale = True

    def __init__(self, n_arms: int, *, d_min: float = 1.0, c: float = 1.0, delta: float = 0.1, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=AllRounds(n_arms), rng=rng)
        require(d_min > 0, "d_min > 0", d_min=d_min)
        require(c >= 0, "c >= 0", c=c)
        require(0 < delta < 1, "0 < delta < 1", delta=delta)
        self.d_min, self.c, self.delta = d_min, c, delta
        self._values = [d_min] * n_arms  # (K,) what the subclass keeps of each arm

    @abstractmethod
    def _potential(self, arm: int) -> float:
        """What is balanced, for an arm with at least one pull."""

    def _index(self, arm: int) -> float:
        return -self._potential(arm) if self.memory.counts[arm] else math.inf

    def _radius(self, arm: int) -> float:
        return self.spread * balancing_radius(self.c, self.n_arms, self.delta, self.memory.settled[arm])

    def _upper(self, arm: int) -> float:
        return self.memory.mean(arm) + self._radius(arm)

    def _best_lower(self) -> float:
        settled = [arm for arm in range(self.n_arms) if self.memory.settled[arm]]
        return max(self.memory.mean(arm) - self._radius(arm) for arm in settled)

    def _forget(self, keep: Collection[int]) -> None:
        self._values = [value if arm in keep else self.d_min for arm, value in enumerate(self._values)]

    def add_arm(self) -> None:
        """One more arm."""
        super().add_arm()
        self._values.append(self.d_min)

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        del self._values[arm]

    def state_dict(self) -> dict[str, Any]:
        """The memory and what is kept of each arm."""
        return super().state_dict() | {"values": list(self._values)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._values = list(state["values"])


class D3RB(RegretBalancing):
    """Pull argmin d_i √n_i; double d_i if x_i + d_i / √n_i + r(n_i) < max_j (x_j - r(n_j)): Pacchiano, Dann & Gentile (2023).

    x_i is the mean of n_i rewards, r(n) = c √(ln(K ln n / δ) / n). The test is made for the arm whose reward has arrived.
    """

    @property
    def coefficients(self) -> tuple[float, ...]:
        """(K,): d."""
        return tuple(self._values)

    def _potential(self, arm: int) -> float:
        return self._values[arm] * math.sqrt(self.memory.counts[arm])

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        del reward, ticket
        allowance = self.spread * self._values[arm] / math.sqrt(self.memory.settled[arm])
        if self._upper(arm) + allowance < self._best_lower():
            self._values[arm] *= 2


class ED2RB(RegretBalancing):
    """As D³RB, with the estimate d_i = max(d_min, √n_i (max_j (x_j - r(n_j)) - x_i - r(n_i))): Pacchiano, Dann & Gentile (2023).

    When a reward arrives, the potential φ_i of its arm becomes d_i √n_i, but at least φ_i and at most 2 φ_i. Rounds in flight let
    it grow as √n.
    """

    def _potential(self, arm: int) -> float:
        return self._values[arm] * math.sqrt(self.memory.counts[arm] / max(self.memory.settled[arm], 1))

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        del reward, ticket
        root, potential = math.sqrt(self.memory.settled[arm]), self._values[arm]
        estimate = max(self.d_min, root * (self._best_lower() - self._upper(arm)) / self.spread)
        self._values[arm] = min(max(estimate * root, potential), 2 * potential)
