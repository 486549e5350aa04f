"""Bandits that draw an arm from probabilities and divide its reward by its probability."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from esbas._internal import schema
from esbas.bandits.bandit import Floats, Rng
from esbas.bandits.memory_bandit import AllRounds, MemoryBandit, Round
from esbas.errors import InvalidValueError

PROBABILITY = schema.Number(min=1e-300, max=1 + 1e-9)


class RandomBandit(MemoryBandit):
    """Subclasses implement `probabilities` and `_step`. `indices()` returns the probabilities.

    Each round keeps the probability with which its arm was drawn, so a late reward gets the right
    weight. `choose(among)` scales the probabilities of these arms to sum 1; pass
    `probability=propensity(arm, among)` to `pull` then.
    """

    deterministic = False
    memory: AllRounds
    note_shape: ClassVar[Any] = PROBABILITY
    """What each round in flight keeps."""

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)  # no `memory`: weights cannot forget single rounds

    @abstractmethod
    def probabilities(self) -> list[float]:
        """Return the probabilities of all arms, (K,): positive, with sum 1."""

    @abstractmethod
    def _step(self, arm: Any, reward: float, probability: float) -> None:
        """Learn from a reward of an arm that was drawn with this probability."""

    def _index(self, k: int) -> float:
        return self.probabilities()[k]

    def indices(self) -> Floats:
        return np.array(self.probabilities())

    def choose(self, among: Collection[int] | None = None) -> int:
        """Draw an arm by its probability."""
        return self.choose_with_propensity(among)[0]

    def choose_with_propensity(self, among: Collection[int] | None = None) -> tuple[int, float]:
        chances = self.probabilities()
        total = self._total(chances, among)
        point = self.rng.random() * total
        for k in self._arms(among):
            point -= chances[k]
            if point < 0:
                break
        return k, chances[k] / total

    def propensity(self, arm: int, among: Collection[int] | None = None) -> float:
        chances = self.probabilities()
        return chances[arm] / self._total(chances, among)

    def _total(self, chances: list[float], among: Collection[int] | None) -> float:
        if among is None:
            return 1.0
        return sum(chances[k] for k in self._arms(among))

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        if probability is not None and not 0 < probability <= 1:
            raise InvalidValueError(
                f"`probability` must be greater than 0 and at most 1, but got {probability!r}."
            )
        ticket = super().pull(arm)
        if probability is None:
            probability = self.probabilities()[arm]
        self.memory.open[ticket].note = float(probability)
        return ticket

    def _check_loaded(self, state: dict[str, Any], where: str) -> None:
        del state
        for ticket, each in self.memory.open.items():
            schema.check(each.note, self.note_shape, f"the round {ticket} in {where}")

    def _learn(self, settled: Round, reward: float) -> None:
        self._step(settled.arm, reward, settled.note)
