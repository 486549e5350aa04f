"""Thompson sampling: pull the arm whose sample from its posterior is the largest. `indices()` returns the posterior means."""

import math
from abc import abstractmethod
from collections.abc import Collection

from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.memory_bandit import Memory, MemoryBandit
from esbas.bandits.nonstationary_ucb import discounted_memory, window_memory
from esbas.errors import require


class Thompson(MemoryBandit):
    """The posterior uses the rewards that have arrived and ignores rounds in flight."""

    deterministic = False

    @abstractmethod
    def _sample(self, k: int) -> float:
        """A sample of arm k's posterior mean reward."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm with the largest sample."""
        return max(self._arms(among), key=self._sample)


@BANDITS.register("gaussianthompson")
class GaussianThompson(Thompson):
    """A sample of N((a m + S_k) / (a + n_k), σ² / (a + n_k)) per arm, for S_k the sum of n_k rewards: Agrawal & Goyal (2013).

    Args:
        n_arms: K.
        sigma: the standard deviation σ of rewards, in units of `spread`; 1/2 is the largest possible. The article has 1.
        prior_mean, prior_pulls: m and a, the prior N(m, σ² / a). With a = 0 the prior is flat, each arm is tried first, and
            rewards may have any size; otherwise rewards lie in [0, 1]. The article has m = 0 and a = 1.
        memory: the rounds that count; all by default.
        rng: for the samples.
    """

    use = "rewards of any size; many rounds in flight"
    guarantee = "O(√(K T ln K)) with their prior and σ = 1"

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
        super().__init__(n_arms, memory=memory, rng=rng)
        require(sigma > 0, "sigma > 0", sigma=sigma)
        require(0 <= prior_mean <= 1, "0 <= prior_mean <= 1", prior_mean=prior_mean)
        require(prior_pulls >= 0, "prior_pulls >= 0", prior_pulls=prior_pulls)
        self.sigma, self.prior_mean, self.prior_pulls = sigma, prior_mean, prior_pulls
        self.any_scale = not prior_pulls

    def _posterior(self, k: int) -> tuple[float, float]:
        """Mean and weight. With a flat prior and no reward yet: the mean of all arms, and the weight of one reward."""
        arm = self.memory.arms[k]
        weight = self.prior_pulls + arm.rewards
        if not weight:
            return self._mean(arm), 1.0
        return (self.prior_pulls * self.prior_mean + (arm.rewards * arm.mean if arm.rewards else 0.0)) / weight, weight

    def _first(self, k: int) -> bool:
        return not self.prior_pulls and not self.memory.arms[k].pulls

    def _index(self, k: int) -> float:
        return math.inf if self._first(k) else self._posterior(k)[0]

    def _sample(self, k: int) -> float:
        if self._first(k):
            return math.inf
        mean, weight = self._posterior(k)
        return mean + self.sigma * self.spread * float(self.rng.standard_normal()) / math.sqrt(weight)


@BANDITS.register("betathompson")
class BetaThompson(Thompson):
    """A sample of Beta(a + S_k, b + n_k - S_k) per arm, for S_k the sum of n_k rewards in [0, 1]: Agrawal & Goyal (2012).

    A reward between 0 and 1 counts as a fraction of a success; the article draws a success with that probability instead.
    """

    use = "0/1 rewards; many rounds in flight"
    guarantee = "the smallest possible for 0/1 rewards as T grows"

    def __init__(
        self, n_arms: int, *, successes: float = 1.0, failures: float = 1.0, memory: Memory | None = None, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(successes > 0 and failures > 0, "the prior's successes and failures > 0", successes=successes, failures=failures)
        self.successes, self.failures = successes, failures

    def posterior(self, k: int) -> tuple[float, float]:
        """The two parameters of arm k's Beta distribution."""
        arm = self.memory.arms[k]
        mean = min(max(arm.mean, 0.0), 1.0) if arm.rewards else 0.0
        return self.successes + arm.rewards * mean, self.failures + arm.rewards * (1.0 - mean)

    def _index(self, k: int) -> float:
        a, b = self.posterior(k)
        return a / (a + b)

    def _sample(self, k: int) -> float:
        return float(self.rng.beta(*self.posterior(k)))


@BANDITS.register("slidingthompson")
class SlidingThompson(BetaThompson):
    """Beta Thompson sampling on the last w rounds: SW-TS of Trovò, Paladino, Restelli & Gatti (2020).

    Args:
        n_arms: K.
        window: w, by default `⌈4 √(T ln T)⌉`, as in SW-UCB.
        horizon: T, used only if `window` is not given.
        rng: for the samples.
    """

    setting = "changing arms"
    use = "as SWUCB, for rewards in [0, 1]"
    guarantee = "sublinear for few breaks or slow drift"

    def __init__(self, n_arms: int, *, window: int | None = None, horizon: int = DEFAULT_HORIZON, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=window_memory(n_arms, window, horizon), rng=rng)


@BANDITS.register("discountedthompson")
class DiscountedThompson(BetaThompson):
    """Beta Thompson sampling where a round followed by s others has weight γ^s: dTS of Raj & Kalyani (2017).

    Args:
        n_arms: K.
        discount: γ, by default `0.99, or 1 - √(breaks / T) / 4 with a horizon`, as in D-UCB.
        horizon: T.
        breaks: how often the arms change within the horizon.
        rng: for the samples.
    """

    setting = "changing arms"
    use = "as DiscountedUCB, for rewards in [0, 1]"
    guarantee = "none proven"

    def __init__(
        self, n_arms: int, *, discount: float | None = None, horizon: int | None = None, breaks: int = 1, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=discounted_memory(n_arms, discount, horizon, breaks), rng=rng)
