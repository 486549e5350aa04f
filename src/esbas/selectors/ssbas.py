"""SSBAS: Sliding Stochastic Bandit Algorithm Selection (the paper's Section 5)."""

import math
from collections.abc import Iterable
from functools import partial

from esbas.bandits.bandit import BanditFactory
from esbas.bandits.on_window import on_window
from esbas.bandits.ucb import SlidingUCB
from esbas.errors import require
from esbas.selectors.bandit_selector import BanditSelector, ScaleSpec
from esbas.selectors.selector import SELECTORS


@SELECTORS.register("ssbas")
class SSBAS(BanditSelector):
    """Learners learn all the time; UCB1 on the last floor(τ · fraction) selections follows them.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        fraction: the window's share of the selections so far, the paper's 1/2 by default.
        bandit: a bandit other than UCB1 (then without xi) on that window; see `esbas.bandits.on_window`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        seed: seed of the selector's random stream.
    """

    def __init__(
        self,
        arms: Iterable[str],
        *,
        xi: float | None = None,
        fraction: float = 0.5,
        bandit: BanditFactory | None = None,
        scale: ScaleSpec = "auto",
        seed: int = 0,
    ) -> None:
        require(xi is None or bandit is None, "xi or bandit is given, not both", "give xi to the bandit", xi=xi, bandit=bandit)
        require(0 < fraction <= 1, "0 < fraction <= 1", fraction=fraction)
        if bandit is None:
            factory: BanditFactory = partial(SlidingUCB, xi=0.25 if xi is None else xi, fraction=fraction)
        else:
            factory = on_window(bandit, size=lambda tau: math.floor(tau * fraction))
        super().__init__(arms, bandit=factory, scale=scale, seed=seed)
