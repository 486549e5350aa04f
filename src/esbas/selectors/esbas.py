"""ESBAS: Epochal Stochastic Bandit Algorithm Selection (the paper's Section 3, Pseudo-code 2)."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial

from esbas.bandits import UCB1, BanditFactory
from esbas.errors import require
from esbas.selectors.bandit_selector import BanditSelector
from esbas.selectors.epochs import Epochs
from esbas.selectors.scale import ScaleSpec


class ESBAS(BanditSelector):
    """Learners learn when an epoch starts and are frozen within it; in each epoch a new bandit chooses among frozen policies.

    Args:
        arms: the names of the learners.
        xi: the parameter of UCB1, the paper's 1/4 by default.
        bandit: another bandit than UCB1 (then without xi), called as `bandit(n_arms, rng=generator)`.
        scale: "auto" (from the values seen so far), (low, high), or None (the bandit sees raw values, as in the paper).
        epochs: the lengths of the epochs; by default 1, 2, 4, ...; behind the last given one, lengths double.
        stationary: arms whose learners never learn; the bandit keeps what it knows of them ("no reset").
        seed: of the selector's random stream.
    """

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
        super().__init__(arms, bandit=factory, scale=scale, epochs=Epochs(epochs), stationary=stationary, seed=seed)

    def _start_epoch(self) -> None:
        # A reset voids the rounds in flight: their values are recorded when they come, but never reach the new epoch's bandit.
        self.bandit.reset(keep=[k for k, name in enumerate(self._arms) if name in self._stationary])
