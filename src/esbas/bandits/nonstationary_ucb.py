"""UCB1 for arms that change, with three memories: a window, a growing window, a discount."""

import math

from esbas.bandits.bandit import BANDITS, DEFAULT_HORIZON, Rng
from esbas.bandits.discounted import Discounted
from esbas.bandits.memory_bandit import Memory
from esbas.bandits.ucb import UCB1, ucb_bonus
from esbas.bandits.window import Window
from esbas.errors import require


@BANDITS.register("swucb")
class SWUCB(UCB1):
    """UCB1 on the last w rounds, x_k + √(ξ ln min(t, w) / n_k).

    SW-UCB of Garivier & Moulines (2011).

    Args:
        n_arms: K.
        window: w, by default `⌈4 √(T ln T)⌉`, as in their experiments. If the breaks are known:
            2 √(T ln T / breaks).
        horizon: T, used only if `window` is not given.
        xi: ξ; their bound holds for ξ > 1/2, their experiments use 1/2.
        rng: not used.
    """

    setting = "changing arms"
    use = "arms that change abruptly, a few times"
    guarantee = "O(√(B T ln T)) for B breaks known in advance and w = 2 √(T ln T / B)"

    def __init__(
        self,
        n_arms: int,
        *,
        window: int | None = None,
        horizon: int = DEFAULT_HORIZON,
        xi: float = 0.5,
        rng: Rng = None,
    ) -> None:
        super().__init__(n_arms, xi=xi, memory=window_memory(n_arms, window, horizon), rng=rng)


@BANDITS.register("swucbsharp")
class SWUCBSharp(UCB1):
    """After t rounds, x_k + √((1 + α) ln t / n_k) over the last min(⌈λ t^α⌉, t) of them.

    SW-UCB# of Wei & Srivastava (2018). λ = 1/2 and α = 1 give the window of SSBAS. For T^ν breaks
    they use α = (1 - ν) / 2.
    """

    setting = "changing arms"
    use = "as SWUCB, without a horizon"
    guarantee = "O(T^((1+ν)/2) ln T) for T^ν breaks with α = (1-ν)/2"

    def __init__(
        self, n_arms: int, *, lam: float = 1.0, alpha: float = 0.5, rng: Rng = None
    ) -> None:
        require(lam > 0, f"`lam` must be greater than 0, but got {lam!r}.")
        require(0 < alpha <= 1, f"`alpha` must be greater than 0 and at most 1, but got {alpha!r}.")
        window = Window(n_arms, size=lambda tau: min(math.ceil(lam * (tau - 1) ** alpha), tau - 1))
        super().__init__(n_arms, xi=1 + alpha, memory=window, rng=rng)

    def index(self, mean: float, pulls: float) -> float:
        # t counts all rounds, not those in the window.
        return mean + self.spread * ucb_bonus(self.xi, self.memory.rounds, pulls)


@BANDITS.register("discounteducb")
class DiscountedUCB(UCB1):
    """x_k + 2 √(ξ ln n / n_k), where a round followed by s others has weight γ^s.

    D-UCB of Garivier & Moulines (2011).

    Args:
        n_arms: K.
        discount: γ, by default `0.99, or 1 - √(breaks / T) / 4 with a horizon`.
        horizon: T.
        breaks: how often the arms change within the horizon.
        xi: ξ; their bound holds for ξ > 1/2, their experiments use 1/2. The factor 2 is theirs.
        rng: not used.
    """

    setting = "changing arms"
    use = "arms that drift"
    guarantee = "O(√(B T) ln T) for B breaks known in advance"

    def __init__(
        self,
        n_arms: int,
        *,
        discount: float | None = None,
        horizon: int | None = None,
        breaks: int = 1,
        xi: float = 0.5,
        rng: Rng = None,
    ) -> None:
        memory = discounted_memory(n_arms, discount, horizon, breaks)
        super().__init__(n_arms, xi=xi, memory=memory, rng=rng)

    def index(self, mean: float, pulls: float) -> float:
        return mean + 2 * self.spread * ucb_bonus(self.xi, self.memory.total, pulls)


def swucb_window(horizon: float) -> int:
    """Return ⌈4 √(T ln T)⌉, the window in the experiments of Garivier & Moulines (2011)."""
    return math.ceil(4 * math.sqrt(horizon * math.log(horizon)))


def window_memory(n_arms: int, window: int | None, horizon: int) -> Memory:
    """Return a window of fixed size, by default computed from the horizon."""
    require(window is None or window >= 1, f"`window` must be at least 1, but got {window!r}.")
    require(horizon >= 2, f"`horizon` must be at least 2, but got {horizon!r}.")
    size = swucb_window(horizon) if window is None else window
    return Window(n_arms, size=lambda _: size)


def discounted_memory(
    n_arms: int, discount: float | None, horizon: int | None, breaks: int
) -> Memory:
    """Return a discounted memory; by default, the discount depends on horizon and breaks."""
    require(discount is None or horizon is None, "Give `discount` or `horizon`, not both.")
    require(
        horizon is None or 0 < breaks <= horizon,
        f"`breaks` must be between 1 and `horizon`, but got {breaks!r} for {horizon!r} rounds.",
    )
    if discount is None:
        discount = 0.99 if horizon is None else 1 - math.sqrt(breaks / horizon) / 4
    return Discounted(n_arms, discount=discount)
