"""R-less-UCB: for arms that improve no matter which one is played.

Learners that share their data are such arms.
"""

import math
from array import array
from dataclasses import dataclass, field
from typing import Annotated, Any

from esbas._internal.schema import Count
from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import AllRounds, Arm, MemoryBandit, Round
from esbas.errors import require


def rising_bonus(sigma: float, alpha: float, time: float, pulls: float, window: float) -> float:
    """Return σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³) with δ_t = t^-α."""
    deviation = math.sqrt(10.0 * alpha * math.log(time) / window**3)
    return sigma * (time - pulls + window - 1.0) * deviation


@dataclass(slots=True)
class RisingArm(Arm):
    """Adds the rewards x(1), ..., x(n), and four sums that are updated in O(1).

    The sums are over l = n - h + 1, ..., n, where h = ⌊ε n⌋.
    """

    history: Annotated["array[float]", [float]] = field(default_factory=lambda: array("d"))
    window: Count = 0  # h
    recent: float = 0.0  # Σ x(l)
    early: float = 0.0  # Σ x(l - h)
    recent_timed: float = 0.0  # Σ l x(l)
    early_timed: float = 0.0  # Σ l x(l - h)

    def add(self, reward: float, epsilon: float) -> None:
        """Append a reward: the window moves by one, or grows by one."""
        self.history.append(reward)
        n = len(self.history)
        h = math.floor(epsilon * n)
        if h == self.window:
            # x(n - h) moves from one half to the other, and x(n - 2 h) leaves.
            middle = self._at(n - h)
            first = self._at(n - 2 * h)
            self.recent += reward - middle
            self.early += middle - first
            self.recent_timed += n * reward - (n - h) * middle
            self.early_timed += n * middle - (n - h) * first
        else:
            # All l - h decrease by one, and so does the first of them.
            joining = self._at(n - 2 * h + 1)
            self.recent += reward
            self.early += joining
            self.recent_timed += n * reward
            self.early_timed += self.early + (n - h) * joining
        self.window = h

    def _at(self, number: int) -> float:
        return self.history[number - 1]

    def estimate(self, time: float) -> float:
        """Return 1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h)."""
        rise = time * (self.recent - self.early) - (self.recent_timed - self.early_timed)
        return self.recent / self.window + rise / self.window**2

    def state_dict(self) -> dict[str, Any]:
        # `super()` does not work in a dataclass with slots.
        return Arm.state_dict(self) | {"history": self.history.tolist()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        Arm.load_state_dict(self, state)
        self.history = array("d", state["history"])


@BANDITS.register("rlessucb")
class RLessUCB(MemoryBandit):
    """The expected reward of arm k in round t if it keeps improving at its rate, plus a bonus.

    1/h Σ (x(l) + (t - l) (x(l) - x(l - h)) / h) over its last h = ⌊ε n_k⌋ rewards x(l),
    l = n_k - h + 1, ..., n_k, plus σ (t - n_k + h - 1) √(10 ln(1 / δ_t) / h³): R-less-UCB of
    Metelli et al. (2022). An arm without a window (h = 0) goes first. Rewards count in the order in
    which they arrive; while an arm has enough pulls but too few rewards, the mean of all arms is
    used.

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
    use = (
        "arms that improve no matter which one is played, ever more slowly: "
        "learners that share their data"
    )
    guarantee = "Õ(T^(2/3)) if they improve fast enough"
    memory: AllRounds

    def __init__(
        self,
        n_arms: int,
        *,
        epsilon: float = 0.25,
        alpha: float = 4.0,
        sigma: float = 0.5,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, rng=rng)
        require(0 < epsilon < 0.5, f"`epsilon` must lie between 0 and 1/2, but got {epsilon!r}.")
        require(alpha > 0, f"`alpha` must be greater than 0, but got {alpha!r}.")
        require(sigma >= 0, f"`sigma` must be at least 0, but got {sigma!r}.")
        self.epsilon = epsilon
        self.alpha = alpha
        self.sigma = sigma

    def _index(self, k: int) -> float:
        arm: RisingArm = self.memory.arms[k]
        time = self.memory.total + 1
        if arm.window:
            estimate = arm.estimate(time)
            pulls = arm.rewards
            window = arm.window
        else:
            estimate = self._mean(arm)
            pulls = arm.pulls
            window = math.floor(self.epsilon * arm.pulls)
        if not window:
            return math.inf
        return estimate + self.spread * rising_bonus(self.sigma, self.alpha, time, pulls, window)

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        del state
        for arm in self.memory.arms:
            expected = math.floor(self.epsilon * len(arm.history))
            require(
                arm.window == expected,
                f"The windows in {where} must fit the histories, but one has {arm.window} instead "
                f"of {expected} rewards: build the bandit with the same `epsilon`.",
            )

    def _learn(self, settled: Round, reward: float) -> None:
        settled.arm.add(reward, self.epsilon)
