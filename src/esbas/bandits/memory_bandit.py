"""The book-keeping that all bandits share: rounds live in a memory, and the arm with the largest index is pulled."""

from abc import abstractmethod
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas.bandits.bandit import Bandit, Floats, Rng
from esbas.bandits.memory import Memory
from esbas.errors import require


class MemoryBandit(Bandit):
    """A bandit over a memory. A subclass gives `_index`; one that keeps more than the memory gives `_learn` and `_forget`."""

    def __init__(self, n_arms: int, *, memory: Memory, rng: Rng = None) -> None:
        super().__init__(n_arms, rng=rng)
        self.memory = memory

    @abstractmethod
    def _index(self, arm: int) -> float:
        """What `choose` compares."""

    def _learn(self, arm: int, reward: float, ticket: int) -> None:
        """A reward has arrived in the memory."""

    def _forget(self, keep: Collection[int]) -> None:
        """The memory has forgotten all arms but these."""

    def choose(self, among: Collection[int] | None = None) -> int:
        """The arm with the largest index, the first of equals."""
        return max(self._arms(among), key=self._index)  # max takes the first of equals

    def _arms(self, among: Collection[int] | None) -> Sequence[int]:
        return range(self.n_arms) if among is None else sorted(among)

    def _mean(self, arm: int) -> float:
        """The arm's mean; the mean of all arms while its rounds are all in flight."""
        mean = self.memory.mean(arm)
        return mean if mean == mean else self.memory.prior()

    def indices(self) -> Floats:
        """(K,)."""
        return np.array([self._index(arm) for arm in range(self.n_arms)], dtype=np.float64)

    @property
    def counts(self) -> NDArray[Any]:
        """(K,)."""
        return np.array(self.memory.counts)

    @property
    def means(self) -> Floats:
        """(K,)."""
        return np.array([self.memory.mean(arm) for arm in range(self.n_arms)])

    def pull(self, arm: int) -> int:
        """Start a round."""
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        return self.memory.pull(arm)

    def update(self, arm: int, reward: float, *, pull: int | None = None) -> None:
        """End a round."""
        self.check(reward)
        ticket = self.pull(arm) if pull is None else pull
        settled = self.memory.settle(ticket, float(reward))
        if settled is not None:
            self._learn(settled, float(reward), ticket)

    def withdraw(self, pull: int) -> None:
        """Undo a pull."""
        self.memory.withdraw(pull)

    def reset(self, keep: Collection[int] = ()) -> None:
        """Forget."""
        self.memory.reset(keep)
        self._forget(keep)

    def add_arm(self) -> None:
        """One more arm."""
        self.n_arms += 1
        self.memory.add_arm()

    def remove_arm(self, arm: int) -> None:
        """One arm less."""
        require(self.n_arms > 1, "one arm stays", n_arms=self.n_arms)
        require(0 <= arm < self.n_arms, "0 <= arm < n_arms", arm=arm, n_arms=self.n_arms)
        self.n_arms -= 1
        self.memory.remove_arm(arm)

    def state_dict(self) -> dict[str, Any]:
        """The memory and the number of arms; the generator belongs to whoever passed it in."""
        return {"n_arms": self.n_arms, "memory": self.memory.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        self.n_arms = state["n_arms"]
        self.memory.load_state_dict(state["memory"])
