"""Selectors that do not learn: one arm always, and chance."""

from collections.abc import Iterable, Sequence

from esbas.selectors.choice import Pick
from esbas.selectors.selector import SELECTORS, Selector


class Fixed(Selector):
    """The canonical meta-algorithm σ^α: always the same arm (or, while that one is not available, the first other one)."""

    def __init__(
        self, arms: Iterable[str], *, arm: str | None = None, epochs: Sequence[int] | None = None, seed: int = 0
    ) -> None:
        super().__init__(arms, epochs=epochs, seed=seed)
        self.arm = self._arms[0 if arm is None else self._index(arm)]

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        preferred = self.arm if self.arm in self._arms else self._arms[0]
        return Pick(preferred if preferred in among else min(among, key=self._arms.index))


@SELECTORS.register("uniform")
class Uniform(Selector):
    """Every arm with the same probability."""

    def pick(self, among: Sequence[str], context: tuple[float, ...] | None) -> Pick:
        del context
        arms = among if among is self._arms else sorted(among, key=self._arms.index)
        return Pick(arms[int(self.rng.integers(len(arms)))], 1 / len(arms))
