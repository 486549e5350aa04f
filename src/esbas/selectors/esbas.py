"""ESBAS: Epochal Stochastic Bandit Algorithm Selection (the paper's Section 3, Pseudo-code 2)."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from esbas.bandits.bandit import BanditFactory
from esbas.bandits.ucb import UCB1
from esbas.errors import require
from esbas.selectors.bandit_selector import BanditSelector, ScaleSpec
from esbas.selectors.selector import SELECTORS


@SELECTORS.register("esbas")
class ESBAS(BanditSelector):
    """Learners learn when an epoch starts and are frozen within it; in each epoch a new bandit chooses among frozen policies.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        bandit: a bandit other than UCB1 (then without xi), called as `bandit(n_arms, rng=generator)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        epochs: the lengths of the epochs; by default 1, 2, 4, ...; after the last given one, lengths double.
        stationary: arms whose learners never learn; the bandit keeps what it knows about them ("no reset").
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
        require(xi is None or bandit is None, "xi or bandit is given, not both", "give xi to the bandit", xi=xi, bandit=bandit)
        factory = bandit or partial(UCB1, xi=0.25 if xi is None else xi)
        lengths = [1] if epochs is None else epochs  # 1, 2, 4, ...: the paper's 2^β
        super().__init__(arms, bandit=factory, scale=scale, epochs=lengths, stationary=stationary, seed=seed)
