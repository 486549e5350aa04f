"""UCB-V and UCB-tuned: arms whose rewards vary little need less exploration."""

import math
from abc import abstractmethod

from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import Memory, MemoryBandit
from esbas.errors import require


def ucb_v_bonus(zeta: float, c: float, variance: float, time: float, pulls: float) -> float:
    """Return √(2 V E) + 3 c E with E = ζ ln t / n_k, for rewards in a range of width 1."""
    exploration = zeta * math.log(max(time, 1.0)) / pulls
    return math.sqrt(2.0 * variance * exploration) + 3.0 * c * exploration


def ucb_tuned_bonus(variance: float, total: float, pulls: float) -> float:
    """Return √(ln n / n_k · min(1/4, V + √(2 ln n / n_k))), for rewards in a range of width 1."""
    rate = math.log(max(total, 1.0)) / pulls
    return math.sqrt(rate * min(0.25, variance + math.sqrt(2.0 * rate)))


LARGEST_VARIANCE = 0.25  # of rewards in a range of width 1


class VarianceBandit(MemoryBandit):
    """x_k plus a bonus that depends on the variance V_k.

    While all rounds of an arm are in flight, V_k is the largest possible variance.
    """

    any_scale = True

    @abstractmethod
    def bonus(self, variance: float, pulls: float) -> float:
        """Return the bonus for rewards in a range of width 1."""

    def _index(self, k: int) -> float:
        arm = self.memory.arms[k]
        if not arm.pulls:
            return math.inf
        variance = self._standardized_variance(k)
        return self._mean(arm) + self.spread * self.bonus(variance, arm.pulls)

    def _standardized_variance(self, k: int) -> float:
        """Return the variance for rewards in a range of width 1."""
        squared_spread = self.spread**2 if self.spread < 1e150 else math.inf
        variance = self.memory.variance(k) / squared_spread
        return LARGEST_VARIANCE if math.isnan(variance) else variance


@BANDITS.register("ucbv")
class UCBV(VarianceBandit):
    """x_k + √(2 V_k ζ ln t / n_k) + 3 c ζ ln t / n_k.

    V_k is the variance of the arm's rewards (with 1 / n_k), and t the number of the next round.
    Audibert, Munos & Szepesvári (2009), Theorem 4, which has ζ > 1 and c = 1.
    """

    use = "rewards that vary little within a known range"
    guarantee = "O(Σ (σ²/Δ + 1) ln T) for ζ > 1, c = 1"

    def __init__(
        self,
        n_arms: int,
        *,
        zeta: float = 1.2,
        c: float = 1.0,
        memory: Memory | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(zeta > 0, f"`zeta` must be greater than 0, but got {zeta!r}.")
        require(c >= 0, f"`c` must be at least 0, but got {c!r}.")
        self.zeta = zeta
        self.c = c

    def bonus(self, variance: float, pulls: float) -> float:
        return ucb_v_bonus(self.zeta, self.c, variance, self.memory.total + 1, pulls)


@BANDITS.register("ucbtuned")
class UCBTuned(VarianceBandit):
    """x_k + √(ln n / n_k · min(1/4, V_k + √(2 ln n / n_k))).

    Auer, Cesa-Bianchi & Fischer (2002), Section 4.
    """

    use = "as UCBV, for short runs"

    def bonus(self, variance: float, pulls: float) -> float:
        return ucb_tuned_bonus(variance, self.memory.total, pulls)
