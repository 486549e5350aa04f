"""Bandits that rule arms out and commit: successive elimination, median elimination, explore then commit.

They pull the surviving arm with the fewest pulls. A survivor's index is minus its pulls, -∞ for an arm that is out.
"""

import math
from abc import abstractmethod
from collections.abc import Collection
from typing import Any

from esbas.bandits.bandit import DEFAULT_HORIZON, Rng
from esbas.bandits.memory_bandit import AllRounds
from esbas.bandits.memory_bandit import MemoryBandit
from esbas.errors import require


def elimination_radius(n_arms: float, pulls: float, delta: float) -> float:
    """√(ln(5 K n² / δ) / n): Even-Dar et al. take any constant above 4; it is 5 here."""
    return math.sqrt(math.log(5.0 * n_arms * pulls * pulls / delta) / pulls)


def median_elimination_pulls(stage: int, epsilon: float, delta: float) -> int:
    """⌈4 / ε_l² · ln(3 / δ_l)⌉ in stage l = 1, 2, ... with ε_l = ε / 4 · (3/4)^(l - 1) and δ_l = δ / 2^l."""
    return math.ceil(4.0 / (epsilon / 4.0 * 0.75 ** (stage - 1)) ** 2 * math.log(3.0 * 2.0**stage / delta))


class Elimination(MemoryBandit):
    """What the three share: the survivors, and a test whenever a reward has arrived."""

    any_scale = True

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=AllRounds(n_arms), rng=rng)
        self.survivors = list(range(n_arms))

    @abstractmethod
    def _test(self) -> None:
        """Rule out what can be ruled out."""

    @abstractmethod
    def _restart(self) -> None:
        """The survivors are others than before: begin the stages anew."""

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        del arm, reward, ticket
        if len(self.survivors) > 1:
            self._test()

    def _pulls(self, arm: int) -> float:
        return self.memory.counts[arm]

    def _index(self, arm: int) -> float:
        return float(-self._pulls(arm)) if arm in self.survivors else -math.inf

    def choose(self, among: Collection[int] | None = None) -> int:
        """The survivor with the fewest pulls; if none is among the arms, the best of those."""
        allowed = range(self.n_arms) if among is None else set(among)
        pool = [arm for arm in self.survivors if arm in allowed]
        if pool:
            return min(pool, key=self._pulls)
        return max(sorted(allowed), key=lambda arm: self._mean(arm) if self.memory.counts[arm] else math.inf)

    def _leader(self) -> int:
        return max(self.survivors, key=self.memory.mean)

    def _forget(self, keep: Collection[int]) -> None:
        del keep
        self.survivors = list(range(self.n_arms))
        self._restart()

    def add_arm(self) -> None:
        """One more arm, which survives so far."""
        super().add_arm()
        self.survivors.append(self.n_arms - 1)
        self._restart()

    def remove_arm(self, arm: int) -> None:
        """One arm less; if it was the last survivor, all others are in again."""
        super().remove_arm(arm)
        rest = [k - (k > arm) for k in self.survivors if k != arm]
        self.survivors = rest or list(range(self.n_arms))
        if not rest:
            self._restart()

    def state_dict(self) -> dict[str, Any]:
        """The memory and the survivors."""
        return super().state_dict() | {"survivors": list(self.survivors)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self.survivors = list(state["survivors"])


class SuccessiveElimination(Elimination):
    """After each pull of all survivors, those with x_k + α(n_k) <= max_j (x_j - α(n_j)) are out: Even-Dar et al. (2002).

    α(n) = √(ln(5 K n² / δ) / n). With n equal for all, it is their x_max - x_k >= 2 α; unequal n occur after a reset that keeps
    arms. The last survivor is optimal with probability 1 - δ.

    Args:
        n_arms: K.
        delta: δ, the probability to rule out the best arm.
        epsilon: the error that is accepted, in units of `spread`: once α <= ε / 2, the leader is the only survivor.
        rng: not used.
    """

    def __init__(self, n_arms: int, *, delta: float = 0.1, epsilon: float = 0.0, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(0 < delta < 1, "0 < delta < 1", delta=delta)
        require(epsilon >= 0, "epsilon >= 0", epsilon=epsilon)
        self.delta, self.epsilon, self._tested = delta, epsilon, 0

    def _test(self) -> None:
        fewest = min(int(self.memory.settled[arm]) for arm in self.survivors)
        if fewest <= self._tested:
            return  # not every survivor has a new reward yet
        self._tested = fewest
        if elimination_radius(self.n_arms, fewest, self.delta) <= self.epsilon / 2:
            self.survivors = [self._leader()]
            return
        radius = {k: self.spread * elimination_radius(self.n_arms, self.memory.settled[k], self.delta) for k in self.survivors}
        bar = max(self.memory.mean(k) - radius[k] for k in self.survivors)
        self.survivors = [k for k in self.survivors if self.memory.mean(k) + radius[k] > bar]

    def _restart(self) -> None:
        self._tested = 0

    def state_dict(self) -> dict[str, Any]:
        """The survivors and how many pulls of each the last test saw."""
        return super().state_dict() | {"tested": self._tested}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._tested = state["tested"]


class MedianElimination(Elimination):
    """In each stage every survivor gets the same number of fresh rewards, and the better half survives: Even-Dar et al. (2002).

    The last survivor is within ε of the best with probability 1 - δ. The better half of S arms has ⌈S / 2⌉; they keep all at or
    above the median, which is the same without ties and never ends with them. A reward belongs to the stage in which it arrives.

    Args:
        n_arms: K.
        epsilon: ε, in units of `spread`.
        delta: δ.
        rng: not used.
    """

    def __init__(self, n_arms: int, *, epsilon: float = 0.2, delta: float = 0.1, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(0 < epsilon <= 1, "0 < epsilon <= 1", epsilon=epsilon)
        require(0 < delta < 1, "0 < delta < 1", delta=delta)
        self.epsilon, self.delta = epsilon, delta
        self._restart()

    def _restart(self) -> None:
        self._stage = 0
        self._next_stage()

    def _next_stage(self) -> None:
        self._stage += 1
        self._fresh, self._sums = [0] * self.n_arms, [0.0] * self.n_arms  # (K,) rewards that arrived in this stage

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        self._fresh[arm] += 1
        self._sums[arm] += reward
        super()._learn(arm, reward, ticket)

    def _test(self) -> None:
        needed = median_elimination_pulls(self._stage, self.epsilon, self.delta)
        if min(self._fresh[k] for k in self.survivors) >= needed:
            ranked = sorted(self.survivors, key=lambda k: -self._sums[k] / self._fresh[k])  # stable: low numbers first
            self.survivors = sorted(ranked[: math.ceil(len(ranked) / 2)])
            self._next_stage()

    def _pulls(self, arm: int) -> float:
        return self._fresh[arm] + self.memory.counts[arm] - self.memory.settled[arm]

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        if len(self._fresh) > self.n_arms:  # no restart
            del self._fresh[arm], self._sums[arm]

    def state_dict(self) -> dict[str, Any]:
        """The survivors, the stage and its rewards."""
        return super().state_dict() | {"stage": self._stage, "fresh": list(self._fresh), "stage_sums": list(self._sums)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._stage, self._fresh, self._sums = state["stage"], list(state["fresh"]), list(state["stage_sums"])


class ExploreThenCommit(Elimination):
    """Each arm m times, then the one with the best mean for good.

    Args:
        n_arms: K.
        pulls: m; by default ⌈(T / K)^(2/3)⌉, for a regret of order K^(1/3) T^(2/3), up to a logarithm, whatever the arms.
        horizon: T, of use without `pulls` alone.
        rng: not used.
    """

    def __init__(self, n_arms: int, *, pulls: int | None = None, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(pulls is None or pulls >= 1, "pulls >= 1", pulls=pulls)
        require(horizon >= 1, "horizon >= 1", horizon=horizon)
        self.pulls = math.ceil((horizon / n_arms) ** (2 / 3)) if pulls is None else pulls

    def _test(self) -> None:
        if min(self.memory.settled[arm] for arm in self.survivors) >= self.pulls:
            self.survivors = [self._leader()]

    def _restart(self) -> None:
        """There is one stage, and the memory knows all of it."""
