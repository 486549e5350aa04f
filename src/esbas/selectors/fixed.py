"""Selectors that do not learn: one arm always, and chance."""

from collections.abc import Iterable, Sequence

from esbas.selectors.choice import Pick
from esbas.selectors.selector import SELECTORS, Selector


class Fixed(Selector):
    """The canonical meta-algorithm σ^α: always the same arm.

    While that arm is not available, it is the first of the others.

    Args:
        arms: the names of the learners.
        arm: the name of the arm to choose; by default the first one.
        epochs: see `Selector`.
        seed: not used.
    """

    def __init__(
        self,
        arms: Iterable[str],
        *,
        arm: str | None = None,
        epochs: Sequence[int] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(arms, epochs=epochs, seed=seed)
        self.arm = self._arms[0] if arm is None else self._arms[self._index(arm)]

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        if self.arm in among:
            return Pick(self.arm)
        return Pick(min(among, key=self._arms.index))


@SELECTORS.register("uniform")
class Uniform(Selector):
    """Every arm with the same probability."""

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms = among if among is self._arms else sorted(among, key=self._arms.index)
        return Pick(arms[int(self.rng.integers(len(arms)))], 1 / len(arms))
