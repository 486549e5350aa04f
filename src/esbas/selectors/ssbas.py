"""SSBAS: Sliding Stochastic Bandit Algorithm Selection (the paper's Section 5)."""

from collections.abc import Iterable
from functools import partial

from esbas.bandits import SlidingUCB
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.scale import ScaleSpec


class SSBAS(BanditSelector):
    """Learners learn all the time; UCB1 on the last floor(τ · fraction) selections follows them.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        fraction: the window's share of the selections so far, the paper's 1/2 by default.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        seed: of the selector's random stream.
    """

    def __init__(
        self, arms: Iterable[str], *, xi: float = 0.25, fraction: float = 0.5, scale: ScaleSpec = "auto", seed: int = 0
    ) -> None:
        super().__init__(arms, bandit=partial(SlidingUCB, xi=xi, fraction=fraction), scale=scale, seed=seed)
