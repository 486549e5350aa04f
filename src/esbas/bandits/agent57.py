"""The bandit of Agent57, which chooses among policies that learn: UCB on a short window, and often a random arm."""

import math
from collections.abc import Collection

from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import IndexBandit
from esbas.bandits.window import Window
from esbas.errors import require


@BANDITS.register("agent57")
class Agent57(IndexBandit):
    """The largest x_k + β / √n_k on the last w rounds; with probability ε any arm, uniformly: Badia et al. (2020), appendix D.

    n_k pulls and mean x_k of arm k within the window. An arm without a pull there goes first; the lowest number wins ties. For
    rewards in a range of width `spread`, the bonus is multiplied by it. `indices()` returns the values that are compared.

    Args:
        n_arms: K.
        window: w. Their actors use 160 episodes, their evaluator 3,600; public reimplementations use 90.
        beta: β.
        epsilon: ε. Their actors use 1/2, their evaluator 0.01.
        rng: for random arms.
    """

    any_scale = True
    deterministic = False
    setting = "learning arms"
    use = "as a baseline: the meta-controller of Agent57"
    guarantee = "none: regret grows with ε T"

    def __init__(self, n_arms: int, *, window: int = 160, beta: float = 1.0, epsilon: float = 0.5, rng: Rng = None) -> None:
        require(window >= 1, "window >= 1", window=window)
        require(math.isfinite(beta) and beta >= 0, "beta >= 0", beta=beta)
        require(0 <= epsilon <= 1, "0 <= epsilon <= 1", epsilon=epsilon)
        super().__init__(n_arms, memory=Window(n_arms, size=lambda _: window), rng=rng)
        self.beta, self.epsilon = beta, epsilon

    def index(self, mean: float, pulls: float) -> float:
        return mean + self.spread * self.beta / math.sqrt(pulls)

    def choose(self, among: Collection[int] | None = None) -> int:
        best = super().choose(among)
        if self.memory.arms[best].pulls and self.rng.random() < self.epsilon:
            arms = self._arms(among)
            return arms[int(self.rng.integers(len(arms)))]
        return best

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float:
        best = super().choose(among)
        if not self.memory.arms[best].pulls:
            return float(arm == best)
        return self.epsilon / len(self._arms(among)) + (1 - self.epsilon) * (arm == best)
