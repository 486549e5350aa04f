"""SSBAS: Sliding Stochastic Bandit Algorithm Selection (the paper's Section 5)."""

import math
from collections.abc import Iterable
from functools import partial

from esbas.bandits.bandit import BanditFactory
from esbas.bandits.on_window import on_window
from esbas.bandits.ucb import SlidingUCB
from esbas.errors import require
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.scale import ScaleSpec
from esbas.selectors.selector import SELECTORS


@SELECTORS.register("ssbas")
class SSBAS(BanditSelector):
    """Learners learn all the time; UCB1 on the last floor(τ · fraction) selections follows them.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        fraction: the window's share of the selections so far, the paper's 1/2 by default.
        bandit: a bandit other than UCB1 (then without xi) on that window; see
            `esbas.bandits.on_window`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw
            values, as in the paper).
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
        require(
            xi is None or bandit is None,
            "Give `xi` or `bandit`, not both: a bandit with a parameter is "
            "functools.partial(esbas.UCB1, xi=...).",
        )
        require(
            0 < fraction <= 1,
            f"`fraction` must be greater than 0 and at most 1, but got {fraction!r}.",
        )
        if bandit is None:
            sliding: BanditFactory = partial(
                SlidingUCB, xi=0.25 if xi is None else xi, fraction=fraction
            )
        else:
            sliding = on_window(bandit, size=lambda tau: math.floor(tau * fraction))
        super().__init__(arms, bandit=sliding, scale=scale, seed=seed)
