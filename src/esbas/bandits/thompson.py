"""Thompson sampling: pull the arm whose sample from its posterior is the largest. `indices()` tells the posterior means."""

import math
from abc import abstractmethod
from collections.abc import Collection

from esbas.bandits.bandit import DEFAULT_HORIZON, Rng
from esbas.bandits.memory_bandit import AllRounds, Memory
from esbas.bandits.memory_bandit import MemoryBandit
from esbas.bandits.nonstationary_ucb import fading, sliding
from esbas.errors import require


class Thompson(MemoryBandit):
    """The posterior knows the rewards that arrived; rounds in flight tell nothing yet."""

    @abstractmethod
    def _sample(self, arm: int) -> float:
        """A sample of the arm's posterior mean reward."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm with the largest sample."""
        return max(self._arms(among), key=self._sample)


class GaussianThompson(Thompson):
    """A sample of N((a m + S_k) / (a + n_k), σ² / (a + n_k)) per arm, for S_k the sum of n_k rewards: Agrawal & Goyal (2013).

    Args:
        n_arms: K.
        sigma: the standard deviation σ of rewards, in units of `spread`; 1/2 is the largest there is. They have 1.
        prior_mean, prior_pulls: m and a, the prior N(m, σ² / a). Without prior pulls the prior is flat, each arm is tried first,
            and rewards may be of any size; with them rewards lie in [0, 1]. They have m = 0 and a = 1.
        memory: which rounds count; all by default.
        rng: of the samples.
    """

    def __init__(
        self,
        n_arms: int,
        *,
        sigma: float = 0.5,
        prior_mean: float = 0.5,
        prior_pulls: float = 0.0,
        memory: Memory | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, memory=memory or AllRounds(n_arms), rng=rng)
        require(sigma > 0, "sigma > 0", sigma=sigma)
        require(0 <= prior_mean <= 1, "0 <= prior_mean <= 1", prior_mean=prior_mean)
        require(prior_pulls >= 0, "prior_pulls >= 0", prior_pulls=prior_pulls)
        self.sigma, self.prior_mean, self.prior_pulls = sigma, prior_mean, prior_pulls
        self.any_scale = not prior_pulls

    def _posterior(self, arm: int) -> tuple[float, float]:
        """Mean and weight; with a flat prior and no reward yet, one reward at the mean of all arms stands in."""
        settled = self.memory.settled[arm]
        weight = self.prior_pulls + settled
        if not weight:
            return self._mean(arm), 1.0
        return (self.prior_pulls * self.prior_mean + (settled * self.memory.mean(arm) if settled else 0.0)) / weight, weight

    def _first(self, arm: int) -> bool:
        return not self.prior_pulls and not self.memory.counts[arm]

    def _index(self, arm: int) -> float:
        return math.inf if self._first(arm) else self._posterior(arm)[0]

    def _sample(self, arm: int) -> float:
        if self._first(arm):
            return math.inf
        mean, weight = self._posterior(arm)
        return mean + self.sigma * self.spread * float(self.rng.standard_normal()) / math.sqrt(weight)


class BetaThompson(Thompson):
    """A sample of Beta(a + S_k, b + n_k - S_k) per arm, for S_k the sum of n_k rewards in [0, 1]: Agrawal & Goyal (2012).

    A reward between 0 and 1 counts as that part of a success; they toss a coin with that probability instead.
    """

    def __init__(
        self, n_arms: int, *, successes: float = 1.0, failures: float = 1.0, memory: Memory | None = None, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=memory or AllRounds(n_arms), rng=rng)
        require(successes > 0 and failures > 0, "the prior's successes and failures > 0", successes=successes, failures=failures)
        self.successes, self.failures = successes, failures

    def posterior(self, arm: int) -> tuple[float, float]:
        """The two parameters of the Beta distribution."""
        settled = self.memory.settled[arm]
        mean = min(max(self.memory.mean(arm), 0.0), 1.0) if settled else 0.0
        return self.successes + settled * mean, self.failures + settled * (1.0 - mean)

    def _index(self, arm: int) -> float:
        a, b = self.posterior(arm)
        return a / (a + b)

    def _sample(self, arm: int) -> float:
        return float(self.rng.beta(*self.posterior(arm)))


class SlidingThompson(BetaThompson):
    """Beta Thompson sampling on the last w rounds: SW-TS of Trovò, Paladino, Restelli & Gatti (2020).

    Args:
        n_arms: K.
        window: w; by default 4 √(T ln T), as in SW-UCB.
        horizon: T, of use without `window` alone.
        rng: of the samples.
    """

    def __init__(self, n_arms: int, *, window: int | None = None, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=sliding(n_arms, window, horizon), rng=rng)


class DiscountedThompson(BetaThompson):
    """Beta Thompson sampling where a round that s others followed counts γ^s: dTS of Raj & Kalyani (2017).

    Args:
        n_arms: K.
        discount: γ; by default 0.99, or 1 - √(breaks / T) / 4 where `horizon` is given, as in D-UCB.
        horizon: T.
        breaks: how often the arms change within the horizon.
        rng: of the samples.
    """

    def __init__(
        self, n_arms: int, *, discount: float | None = None, horizon: int | None = None, breaks: int = 1, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=fading(n_arms, discount, horizon, breaks), rng=rng)
