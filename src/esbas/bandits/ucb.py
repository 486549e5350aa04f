"""UCB1 on all rounds (inside ESBAS) and on a sliding window (inside SSBAS)."""

import math

from esbas.bandits.bandit import BANDITS, Rng
from esbas.bandits.memory_bandit import IndexBandit, Memory
from esbas.bandits.window import Window
from esbas.errors import require


def ucb_bonus(xi: float, total: float, pulls: float) -> float:
    """Return √(ξ ln n / n_k); 0 if discounted counts add up to less than 1."""
    return math.sqrt(xi * math.log(max(total, 1.0)) / pulls)


@BANDITS.register("ucb1")
class UCB1(IndexBandit):
    """x_k + √(ξ ln n / n_k), the index of Pseudo-code 2 of the paper.

    Arm k has n_k pulls and the mean x_k; there are n pulls in total. An arm without a pull goes
    first; the lowest number wins ties. For rewards in a range of width `spread`, the bonus is
    multiplied by it. The paper has ξ = 1/4; Auer, Cesa-Bianchi & Fischer (2002) have ξ = 2.
    """

    any_scale = True
    use = "arms that do not change: inside ESBAS"
    guarantee = (
        "regret O(Σ ln T / Δ) for ξ > 1/2; none for the paper's 1/4, which does better in practice"
    )

    def __init__(
        self,
        n_arms: int,
        *,
        xi: float = 0.25,
        spread: float = 1.0,
        memory: Memory | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, memory=memory, rng=rng)
        require(
            math.isfinite(xi) and xi >= 0, f"`xi` must be finite and at least 0, but got {xi!r}."
        )
        self.xi = xi
        self.spread = spread

    def index(self, mean: float, pulls: float) -> float:
        return mean + self.spread * ucb_bonus(self.xi, self.memory.total, pulls)


@BANDITS.register("slidingucb")
class SlidingUCB(UCB1):
    """UCB1 on the last floor(τ · fraction) rounds before round τ.

    With fraction = 1/2, it is the bandit of SSBAS (Section 5 of the paper).
    """

    setting = "learning arms"
    guarantee = "none proven"
    use = "arms that learn: the bandit of SSBAS"

    def __init__(
        self,
        n_arms: int,
        *,
        xi: float = 0.25,
        fraction: float = 0.5,
        spread: float = 1.0,
        rng: Rng = None,
    ) -> None:
        require(
            0 < fraction <= 1,
            f"`fraction` must be greater than 0 and at most 1, but got {fraction!r}.",
        )
        memory = Window(n_arms, size=lambda tau: math.floor(tau * fraction))
        super().__init__(n_arms, xi=xi, spread=spread, memory=memory, rng=rng)
