"""ESBAS: Epochal Stochastic Bandit Algorithm Selection (the paper's Section 3, Pseudo-code 2)."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from esbas.bandits.bandit import BanditFactory
from esbas.bandits.ucb import UCB1
from esbas.errors import require
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.scale import ScaleSpec
from esbas.selectors.selector import SELECTORS


@SELECTORS.register("esbas")
class ESBAS(BanditSelector):
    """Learners learn when an epoch starts; within it, a new bandit chooses among frozen policies.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        bandit: a bandit other than UCB1 (then without xi), called as `bandit(n_arms,
            rng=generator)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw
            values, as in the paper).
        epochs: the lengths of the epochs; by default 1, 2, 4, ...; after the last given one,
            lengths double.
        stationary: arms whose learners never learn; the bandit keeps what it knows about them ("no
            reset").
        seed: seed of the selector's random stream.
    """

    resets = True

    def __init__(
        self,
        arms: Iterable[str],
        *,
        xi: float | None = None,
        bandit: BanditFactory | None = None,
        scale: ScaleSpec = "auto",
        epochs: Sequence[int] | None = None,
        stationary: Collection[str] = (),
        seed: int = 0,
    ) -> None:
        require(
            xi is None or bandit is None,
            "Give `xi` or `bandit`, not both: a bandit with a parameter is "
            "functools.partial(esbas.UCB1, xi=...).",
        )
        if bandit is None:
            bandit = partial(UCB1, xi=0.25 if xi is None else xi)
        if epochs is None:
            epochs = [1]  # 1, 2, 4, ...: the paper's 2^β
        super().__init__(
            arms, bandit=bandit, scale=scale, epochs=epochs, stationary=stationary, seed=seed
        )
