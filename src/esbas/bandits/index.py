"""Index bandits: pull the arm with the largest index; an arm without a pull goes first."""

import math
from abc import abstractmethod

from esbas.bandits.memory_bandit import MemoryBandit


class IndexBandit(MemoryBandit):
    """A formula over a memory. A new one is written by giving `index`."""

    @abstractmethod
    def index(self, mean: float, pulls: float) -> float:
        """The index of an arm with this mean and at least one pull."""

    def _index(self, arm: int) -> float:
        pulls = self.memory.counts[arm]
        return self.index(self._mean(arm), pulls) if pulls else math.inf
