"""Bandits that draw an arm from probabilities and weigh its reward by one over its probability."""

from abc import abstractmethod
from collections.abc import Collection
from typing import Any

import numpy as np

from esbas.bandits.bandit import Floats, Rng
from esbas.bandits.memory_bandit import AllRounds
from esbas.bandits.memory_bandit import MemoryBandit


class RandomBandit(MemoryBandit):
    """A subclass gives `probabilities`, `_step` and what it forgets. `indices()` tells the probabilities.

    Each round keeps the probability with which its arm was drawn, so that rewards are weighed rightly, however late they come.
    `choose(among)` scales the probabilities of those arms to sum 1, and the round counts with that. An arm that is pulled without
    having been chosen counts with the probability it has at that time.
    """

    def __init__(self, n_arms: int, *, rng: Rng = None) -> None:
        super().__init__(n_arms, memory=AllRounds(n_arms), rng=rng)
        self._drawn: tuple[int, float] | None = None  # arm and probability of the last choice, until its round starts
        self._open: dict[int, tuple[int, float]] = {}  # ticket -> arm and probability

    @abstractmethod
    def probabilities(self) -> list[float]:
        """(K,): positive, with sum 1."""

    @abstractmethod
    def _step(self, arm: int, reward: float, probability: float) -> None:
        """Learn from a reward of an arm that was drawn with this probability."""

    def _index(self, arm: int) -> float:
        return self.probabilities()[arm]

    def indices(self) -> Floats:
        """(K,)."""
        return np.array(self.probabilities())

    def choose(self, among: Collection[int] | None = None) -> int:
        """Draw an arm."""
        chances, arms = self.probabilities(), self._arms(among)
        mass = 1.0 if among is None else sum(chances[arm] for arm in arms)
        point = self.rng.random() * mass
        for arm in arms:
            point -= chances[arm]
            if point < 0:
                break
        self._drawn = arm, chances[arm] / mass
        return arm

    def pull(self, arm: int, *, probability: float | None = None) -> int:
        """Start a round; `probability` is given if somebody else drew the arm."""
        ticket, drawn = super().pull(arm), self._drawn
        self._drawn = None
        if probability is None:
            probability = drawn[1] if drawn is not None and drawn[0] == arm else self.probabilities()[arm]
        self._open[ticket] = arm, probability
        return ticket

    def probability(self, pull: int) -> float:
        """With which probability the arm of this round in flight was drawn."""
        return self._open[pull][1]

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        if ticket in self._open:
            self._step(arm, reward, self._open.pop(ticket)[1])

    def withdraw(self, pull: int) -> None:
        """Undo a pull."""
        super().withdraw(pull)
        self._open.pop(pull, None)

    def reset(self, keep: Collection[int] = ()) -> None:
        """Forget."""
        self._drawn = None
        self._open.clear()
        super().reset(keep)

    def add_arm(self) -> None:
        """One more arm."""
        super().add_arm()
        self._drawn = None

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        super().remove_arm(arm)
        self._drawn = None
        self._open = {ticket: (k - (k > arm), chance) for ticket, (k, chance) in self._open.items() if k != arm}

    def state_dict(self) -> dict[str, Any]:
        """The memory and the probabilities of the rounds in flight."""
        opened = [[ticket, arm, chance] for ticket, (arm, chance) in self._open.items()]
        return super().state_dict() | {"probabilities": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        super().load_state_dict(state)
        self._drawn = None
        self._open = {ticket: (arm, chance) for ticket, arm, chance in state["probabilities"]}
