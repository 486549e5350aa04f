"""Selectors that do not learn: one arm always, and chance."""

from collections.abc import Iterable, Sequence

from esbas.selectors.epochs import Epochs
from esbas.selectors.selector import Selector


class Fixed(Selector):
    """The canonical meta-algorithm σ^α: one arm, always (or, while that one is not to be had, the first other)."""

    def __init__(
        self, arms: Iterable[str], *, arm: str | None = None, epochs: Sequence[int] | Epochs | None = None, seed: int = 0
    ) -> None:
        super().__init__(arms, epochs=epochs, seed=seed)
        self.arm = self._arms[0 if arm is None else self._index(arm)]

    def _pick(self, among: list[int] | None) -> int:
        index = self._arms.index(self.arm) if self.arm in self._arms else 0
        return index if among is None or index in among else min(among)


class Uniform(Selector):
    """Every arm with the same probability."""

    def _pick(self, among: list[int] | None) -> int:
        arms = range(len(self._arms)) if among is None else sorted(among)
        return arms[int(self.rng.integers(len(arms)))]
