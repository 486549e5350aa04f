"""KL-UCB: an upper confidence bound for rewards in [0, 1]."""

import math

from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import IndexBandit, Memory
from esbas.errors import require


def bernoulli_kl(p: float, q: float) -> float:
    """Return kl(p, q) = p ln(p / q) + (1 - p) ln((1 - p) / (1 - q)), for 0 < q < 1."""
    of_ones = p * math.log(p / q) if p > 0.0 else 0.0
    of_zeros = (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0
    return of_ones + of_zeros


def kl_ucb_level(time: float, c: float) -> float:
    """Return max(ln t + c ln ln t, 0); the limit 0 where t <= 1, since ln ln 1 is -∞."""
    if time <= 1.0:
        return 0.0
    return max(math.log(time) + c * math.log(math.log(time)), 0.0)


def kl_upper_bound(mean: float, divergence: float) -> float:
    """Return the largest q in [mean, 1] with kl(mean, q) <= divergence.

    Newton's method from above: kl is convex in q, so each step ends between the solution and the
    last iterate. It starts from the smaller of two bounds: Pinsker's inequality, and
    kl(p, q) >= p ln p + (1 - p) ln((1 - p) / (1 - q)).
    """
    if mean >= 1.0 or divergence <= 0.0:
        return mean
    entropy = mean * math.log(mean) if mean > 0.0 else 0.0
    by_pinsker = mean + math.sqrt(divergence / 2.0)
    by_entropy = 1.0 - (1.0 - mean) * math.exp((entropy - divergence) / (1.0 - mean))
    q = min(by_pinsker, by_entropy)
    for _ in range(50):  # about five in practice
        if q <= mean or q >= 1.0:
            break
        step = (bernoulli_kl(mean, q) - divergence) * q * (1.0 - q) / (q - mean)
        if step <= 1e-16:
            break
        q -= step
    return max(q, mean)


@BANDITS.register("klucb")
class KLUCB(IndexBandit):
    """The largest q with n_k kl(x_k, q) <= ln t + c ln ln t, for rewards in [0, 1].

    Arm k has n_k pulls and the mean x_k; t is the number of the next round, one more than the pulls
    so far. Garivier & Cappé (2011), Algorithm 1; they recommend c = 0.
    """

    use = "0/1 rewards, or any in [0, 1]"
    guarantee = "the smallest possible for 0/1 rewards as T grows (proof with c = 3)"

    def __init__(
        self, n_arms: int, *, c: float = 0.0, memory: Memory | None = None, rng: Rng = None
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(c >= 0, f"`c` must be at least 0, but got {c!r}.")
        self.c = c

    def index(self, mean: float, pulls: float) -> float:
        level = kl_ucb_level(self.memory.total + 1, self.c)
        return kl_upper_bound(min(max(mean, 0.0), 1.0), level / pulls)
