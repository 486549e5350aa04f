"""R-less-UCB: for arms that improve no matter which one is played, as learners that share their data do."""

import math
from array import array
from dataclasses import dataclass, field
from typing import Annotated, Any

from esbas import schema
from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import AllRounds, Arm, MemoryBandit, Round
from esbas.errors import require
from esbas.schema import Count


def rising_bonus(sigma: float, alpha: float, time: float, pulls: float, window: float) -> float:
    """σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³) with δ_t = t^-α."""
    return sigma * (time - pulls + window - 1.0) * math.sqrt(10.0 * alpha * math.log(time) / window**3)


@dataclass(slots=True)
class RisingArm(Arm):
    """Adds the rewards x(1), ..., x(n) and four sums over l = n - h + 1, ..., n, updated in O(1), where h = ⌊ε n⌋."""

    history: Annotated["array[float]", [float]] = field(default_factory=lambda: array("d"))
    window: Count = 0  # h
    recent: float = 0.0  # Σ x(l)
    early: float = 0.0  # Σ x(l - h)
    recent_timed: float = 0.0  # Σ l x(l)
    early_timed: float = 0.0  # Σ l x(l - h)

    def add(self, reward: float, epsilon: float) -> None:
        """Append a reward: the window moves by one, or grows by one."""
        self.history.append(reward)
        n, h = len(self.history), math.floor(epsilon * len(self.history))
        if h == self.window:
            middle, first = self._at(n - h), self._at(n - 2 * h)  # x(n - h) moves from one half to the other, x(n - 2 h) leaves
            self.recent += reward - middle
            self.early += middle - first
            self.recent_timed += n * reward - (n - h) * middle
            self.early_timed += n * middle - (n - h) * first
        else:
            joining = self._at(n - 2 * h + 1)  # all l - h decrease by one, and so does the first of them
            self.recent += reward
            self.early += joining
            self.recent_timed += n * reward
            self.early_timed += self.early + (n - h) * joining
        self.window = h

    def _at(self, number: int) -> float:
        return self.history[number - 1]

    def estimate(self, time: float) -> float:
        """1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h)."""
        rise = time * (self.recent - self.early) - (self.recent_timed - self.early_timed)
        return self.recent / self.window + rise / self.window**2

    def state_dict(self) -> dict[str, Any]:
        return Arm.state_dict(self) | {"history": self.history.tolist()}  # super() does not work in a class with slots

    def load_state_dict(self, state: dict[str, Any]) -> None:
        Arm.load_state_dict(self, state)
        self.history = array("d", state["history"])


@BANDITS.register("rlessucb")
class RLessUCB(MemoryBandit):
    """The expected reward of arm k in round t if it keeps improving at its rate, plus a bonus: R-less-UCB, Metelli et al. (2022).

    1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h) over its last h = ⌊ε n_k⌋ rewards x(l), l = n_k - h + 1, ..., n_k, plus
    σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³). An arm without a window (h = 0) goes first. Rewards count in the order in which
    they arrive; while an arm has enough pulls but too few rewards, the mean of all arms is used.

    Args:
        n_arms: K.
        epsilon: ε, the size of the window as a share of the arm's pulls.
        alpha: δ_t = t^-α.
        sigma: σ, the standard deviation of rewards in units of `spread`; 1/2 is safe for all.
        rng: not used.
    """

    arm_type = RisingArm
    any_scale = True
    setting = "learning arms"
    use = "arms that improve no matter which one is played, ever more slowly: learners that share their data"
    guarantee = "Õ(T^(2/3)) if they improve fast enough"
    memory: AllRounds

    def __init__(self, n_arms: int, *, epsilon: float = 0.25, alpha: float = 4.0, sigma: float = 0.5, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        require(0 < epsilon < 0.5, "0 < epsilon < 1/2", epsilon=epsilon)
        require(alpha > 0, "alpha > 0", alpha=alpha)
        require(sigma >= 0, "sigma >= 0", sigma=sigma)
        self.epsilon, self.alpha, self.sigma = epsilon, alpha, sigma

    def _index(self, k: int) -> float:
        arm: RisingArm = self.memory.arms[k]
        time = self.memory.total + 1
        if arm.window:
            estimate, pulls, window = arm.estimate(time), arm.rewards, arm.window
        else:
            estimate, pulls, window = self._mean(arm), arm.pulls, math.floor(self.epsilon * arm.pulls)
        if not window:
            return math.inf
        return estimate + self.spread * rising_bonus(self.sigma, self.alpha, time, pulls, window)

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        del state
        for arm in self.memory.arms:
            sizes = {"rewards": arm.rewards, "history": len(arm.history), "window": arm.window}
            fits = arm.rewards == len(arm.history) and arm.window == math.floor(self.epsilon * len(arm.history))
            schema.require(fits, "the history has all rewards, and the window its share of them", where, **sizes)

    def _learn(self, settled: Round, reward: float) -> None:
        settled.arm.add(reward, self.epsilon)
