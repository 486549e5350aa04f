"""The bandit of Agent57, which chooses among policies that learn.

It is UCB on a short window, and often a random arm.
"""

import math
from collections.abc import Collection

from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import IndexBandit
from esbas.bandits.window import Window
from esbas.errors import require


@BANDITS.register("agent57")
class Agent57(IndexBandit):
    """The largest x_k + β / √n_k on the last w rounds; with probability ε any arm, uniformly.

    Arm k has n_k pulls and the mean x_k within the window. An arm without a pull there goes first;
    the lowest number wins ties. For rewards in a range of width `spread`, the bonus is multiplied
    by it. `indices()` returns the values that are compared. Badia et al. (2020), appendix D.

    Args:
        n_arms: K.
        window: w. Their actors use 160 episodes, their evaluator 3,600. Public reimplementations
            use 90.
        beta: β.
        epsilon: ε. Their actors use 1/2, their evaluator 0.01.
        rng: for random arms.
    """

    any_scale = True
    deterministic = False
    setting = "learning arms"
    use = "as a baseline: the meta-controller of Agent57"
    guarantee = "none: regret grows with ε T"

    def __init__(
        self,
        n_arms: int,
        *,
        window: int = 160,
        beta: float = 1.0,
        epsilon: float = 0.5,
        rng: Rng = None,
    ) -> None:
        require(window >= 1, f"`window` must be at least 1, but got {window!r}.")
        require(
            math.isfinite(beta) and beta >= 0,
            f"`beta` must be finite and at least 0, but got {beta!r}.",
        )
        require(0 <= epsilon <= 1, f"`epsilon` must be between 0 and 1, but got {epsilon!r}.")
        super().__init__(n_arms, memory=Window(n_arms, size=lambda _: window), rng=rng)
        self.beta = beta
        self.epsilon = epsilon

    def index(self, mean: float, pulls: float) -> float:
        return mean + self.spread * self.beta / math.sqrt(pulls)

    def choose(self, among: Collection[int] | None = None) -> int:
        best = super().choose(among)
        if self.memory.arms[best].pulls and self.rng.random() < self.epsilon:
            return self._draw(self._arms(among))
        return best

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float:
        best = super().choose(among)
        if not self.memory.arms[best].pulls:
            return float(arm == best)
        return self.epsilon / len(self._arms(among)) + (1 - self.epsilon) * (arm == best)
