"""R-less-UCB: arms that improve whoever plays, as learners do that share their data."""

import math
from array import array
from collections.abc import Collection
from typing import Any

from esbas.bandits.bandit import Rng
from esbas.bandits.memory_bandit import AllRounds
from esbas.bandits.memory_bandit import MemoryBandit
from esbas.errors import require


def rising_bonus(sigma: float, alpha: float, time: float, pulls: float, window: float) -> float:
    """σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³) with δ_t = t^-α."""
    return sigma * (time - pulls + window - 1.0) * math.sqrt(10.0 * alpha * math.log(time) / window**3)


class RisingArm:
    """The rewards x(1), ..., x(n) of an arm and four sums over l = n - h + 1, ..., n, kept up in O(1), where h = ⌊ε n⌋."""

    def __init__(self) -> None:
        self._rewards = array("d")
        self.window = 0  # h
        self._sums = [0.0] * 4  # of x(l), x(l - h), l x(l), l x(l - h)

    def add(self, reward: float, epsilon: float) -> None:
        """One more reward: the window moves by one, or grows by one."""
        self._rewards.append(reward)
        n, h = len(self._rewards), math.floor(epsilon * len(self._rewards))
        recent, early, recent_timed, early_timed = self._sums
        if h == self.window:
            middle, first = self._at(n - h), self._at(n - 2 * h)  # x(n - h) passes from one half to the other, x(n - 2 h) leaves
            recent += reward - middle
            early += middle - first
            recent_timed += n * reward - (n - h) * middle
            early_timed += n * middle - (n - h) * first
        else:
            joining = self._at(n - 2 * h + 1)  # all l - h move back by one, and so does the start
            recent += reward
            early += joining
            recent_timed += n * reward
            early_timed += early + (n - h) * joining
        self.window, self._sums = h, [recent, early, recent_timed, early_timed]

    def _at(self, number: int) -> float:
        return self._rewards[number - 1]

    @property
    def pulls(self) -> int:
        """The number of rewards, n."""
        return len(self._rewards)

    def estimate(self, time: float) -> float:
        """1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h)."""
        recent, early, recent_timed, early_timed = self._sums
        return recent / self.window + (time * (recent - early) - (recent_timed - early_timed)) / self.window**2

    def state_dict(self) -> dict[str, Any]:
        """The rewards and the sums."""
        return {"rewards": self._rewards.tolist(), "window": self.window, "sums": list(self._sums)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        self._rewards, self.window, self._sums = array("d", state["rewards"]), state["window"], list(state["sums"])


class RLessUCB(MemoryBandit):
    """Where arm k will be in round t, if it goes on improving as it did, and a bonus: R-less-UCB of Metelli et al. (2022).

    1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h) over its last h = ⌊ε n_k⌋ rewards x(l), l = n_k - h + 1, ..., n_k, plus
    σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³). An arm without a window (h = 0) goes first. Rewards count in the order in which
    they arrive; while an arm has enough pulls but too few rewards, the mean of all arms stands in.

    Args:
        n_arms: K.
        epsilon: ε, the window's share of the arm's pulls.
        alpha: δ_t = t^-α.
        sigma: how much rewards vary, in units of `spread`; 1/2 is safe for all.
        rng: not used.
    """

    any_scale = True

    def __init__(self, n_arms: int, *, epsilon: float = 0.25, alpha: float = 4.0, sigma: float = 0.5, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=AllRounds(n_arms), rng=rng)
        require(0 < epsilon < 0.5, "0 < epsilon < 1/2", epsilon=epsilon)
        require(alpha > 0, "alpha > 0", alpha=alpha)
        require(sigma >= 0, "sigma >= 0", sigma=sigma)
        self.epsilon, self.alpha, self.sigma = epsilon, alpha, sigma
        self._rising = [RisingArm() for _ in range(n_arms)]

    def _index(self, arm: int) -> float:
        time, record = self.memory.total + 1, self._rising[arm]
        if record.window:
            estimate, pulls, window = record.estimate(time), record.pulls, record.window
        else:
            estimate, pulls = self._mean(arm), int(self.memory.counts[arm])
            window = math.floor(self.epsilon * pulls)
        if not window:
            return math.inf
        return estimate + self.spread * rising_bonus(self.sigma, self.alpha, time, pulls, window)

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        del ticket
        self._rising[arm].add(reward, self.epsilon)

    def _forget(self, keep: Collection[int]) -> None:
        self._rising = [record if arm in keep else RisingArm() for arm, record in enumerate(self._rising)]

    def add_arm(self) -> None:
        """One more arm."""
        super().add_arm()
        self._rising.append(RisingArm())

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        del self._rising[arm]

    def state_dict(self) -> dict[str, Any]:
        """The memory and the rewards of each arm."""
        return super().state_dict() | {"rising": [record.state_dict() for record in self._rising]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._rising = [RisingArm() for _ in state["rising"]]
        for record, saved in zip(self._rising, state["rising"], strict=True):
            record.load_state_dict(saved)
