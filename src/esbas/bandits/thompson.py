"""Thompson sampling: pull the arm whose sample from its posterior is the largest.

`indices()` returns the posterior means.
"""

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
        """Draw a sample of arm k's posterior mean reward."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """Return the arm with the largest sample."""
        return max(self._arms(among), key=self._sample)


@BANDITS.register("gaussianthompson")
class GaussianThompson(Thompson):
    """A sample of N((a m + S_k) / (a + n_k), σ² / (a + n_k)) per arm, with n_k rewards of sum S_k.

    Agrawal & Goyal (2013). They have σ = 1, m = 0 and a = 1.

    Args:
        n_arms: K.
        sigma: the standard deviation σ of rewards, in units of `spread`; 1/2 is the largest
            possible.
        prior_mean: m, the mean of the prior N(m, σ² / a).
        prior_pulls: a. With a = 0 the prior is flat, each arm is tried first, and rewards may have
            any size; otherwise rewards lie in [0, 1].
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
        require(sigma > 0, f"`sigma` must be greater than 0, but got {sigma!r}.")
        require(
            0 <= prior_mean <= 1, f"`prior_mean` must be between 0 and 1, but got {prior_mean!r}."
        )
        require(prior_pulls >= 0, f"`prior_pulls` must be at least 0, but got {prior_pulls!r}.")
        self.sigma = sigma
        self.prior_mean = prior_mean
        self.prior_pulls = prior_pulls
        self.any_scale = not prior_pulls

    def _posterior(self, k: int) -> tuple[float, float]:
        """Return mean and weight.

        With a flat prior and no reward yet: the mean of all arms, and the weight of one reward.
        """
        arm = self.memory.arms[k]
        weight = self.prior_pulls + arm.rewards
        if not weight:
            return self._mean(arm), 1.0
        total = arm.rewards * arm.mean if arm.rewards else 0.0
        return (self.prior_pulls * self.prior_mean + total) / weight, weight

    def _first(self, k: int) -> bool:
        return not self.prior_pulls and not self.memory.arms[k].pulls

    def _index(self, k: int) -> float:
        return math.inf if self._first(k) else self._posterior(k)[0]

    def _sample(self, k: int) -> float:
        if self._first(k):
            return math.inf
        mean, weight = self._posterior(k)
        normal = float(self.rng.standard_normal())
        return mean + self.sigma * self.spread * normal / math.sqrt(weight)


@BANDITS.register("betathompson")
class BetaThompson(Thompson):
    """A sample of Beta(a + S_k, b + n_k - S_k) per arm, with n_k rewards of sum S_k.

    Rewards lie in [0, 1]. One between 0 and 1 counts as a fraction of a success; Agrawal & Goyal
    (2012) draw a success with that probability instead.

    Args:
        n_arms: K.
        successes: a.
        failures: b.
        memory: the rounds that count; all by default.
        rng: for the samples.
    """

    use = "0/1 rewards; many rounds in flight"
    guarantee = "the smallest possible for 0/1 rewards as T grows"

    def __init__(
        self,
        n_arms: int,
        *,
        successes: float = 1.0,
        failures: float = 1.0,
        memory: Memory | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(
            successes > 0 and failures > 0,
            "`successes` and `failures` must be greater than 0, "
            f"but got {successes!r} and {failures!r}.",
        )
        self.successes = successes
        self.failures = failures

    def posterior(self, k: int) -> tuple[float, float]:
        """Return the two parameters of arm k's Beta distribution."""
        arm = self.memory.arms[k]
        mean = min(max(arm.mean, 0.0), 1.0) if arm.rewards else 0.0
        return self.successes + arm.rewards * mean, self.failures + arm.rewards * (1.0 - mean)

    def _index(self, k: int) -> float:
        a, b = self.posterior(k)
        return a / (a + b)

    def _sample(self, k: int) -> float:
        a, b = self.posterior(k)
        return float(self.rng.beta(a, b))


@BANDITS.register("slidingthompson")
class SlidingThompson(BetaThompson):
    """Beta Thompson sampling on the last w rounds.

    SW-TS of Trovò, Paladino, Restelli & Gatti (2020).

    Args:
        n_arms: K.
        window: w, by default `⌈4 √(T ln T)⌉`, as in SW-UCB.
        horizon: T, used only if `window` is not given.
        rng: for the samples.
    """

    setting = "changing arms"
    use = "as SWUCB, for rewards in [0, 1]"
    guarantee = "sublinear for few breaks or slow drift"

    def __init__(
        self,
        n_arms: int,
        *,
        window: int | None = None,
        horizon: int = DEFAULT_HORIZON,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, memory=window_memory(n_arms, window, horizon), rng=rng)


@BANDITS.register("discountedthompson")
class DiscountedThompson(BetaThompson):
    """Beta Thompson sampling, where a round followed by s others has weight γ^s.

    dTS of Raj & Kalyani (2017).

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
        self,
        n_arms: int,
        *,
        discount: float | None = None,
        horizon: int | None = None,
        breaks: int = 1,
        rng: Rng = None,
    ) -> None:
        memory = discounted_memory(n_arms, discount, horizon, breaks)
        super().__init__(n_arms, memory=memory, rng=rng)
