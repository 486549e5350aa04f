"""A memory that slides: the rounds that left it are forgotten, exactly."""

import math
from array import array
from collections.abc import Callable, Collection
from typing import Any

from esbas.errors import require


class Window:
    """Remembers the last `size(τ)` rounds before round τ, exactly: sums are integers in units of 2^-1074, so nothing ever drifts.

    A round keeps its place in the window from its pull on; a reward that arrives after its round has left is of no effect.
    `size` may grow by at most one per round. Work per round is O(1) on average.
    """

    def __init__(self, n_arms: int, *, size: Callable[[int], int]) -> None:
        require(callable(size), "size is a function of the round number", size=size)
        self.size, self.rounds = size, 0
        self._arms, self._rewards = (array("i"), array("d"))  # of the rounds from `first` on; arm -1: withdrawn, NaN: in flight
        self._first = self._start = 0  # round number of entry 0; entry at which the window starts
        self._squaring = False  # squares are summed from the first question for a variance on
        self._clear(n_arms)

    def _clear(self, n_arms: int) -> None:
        self.counts, self.total = [0] * n_arms, 0
        self.settled, self._units, self._squares = [0] * n_arms, [0] * n_arms, [0] * n_arms
        self._means = [math.nan] * n_arms

    def mean(self, arm: int) -> float:
        """The exact mean of the window's rewards, rounded once."""
        return self._means[arm]

    def variance(self, arm: int) -> float:
        """The exact variance of the window's rewards, rounded once."""
        if not self._squaring:
            self._squaring = True
            self._recount(len(self.counts))
        settled, units = self.settled[arm], self._units[arm]
        return (settled * self._squares[arm] - units * units) / (settled * settled << 2 * _BITS) if settled else math.nan

    def prior(self) -> float:
        """The exact mean over all arms."""
        settled = sum(self.settled)
        return sum(self._units) / (settled << _BITS) if settled else 0.0

    def pull(self, arm: int) -> int:
        """Append the round and let the oldest leave."""
        ticket, self.rounds = self.rounds, self.rounds + 1
        self._arms.append(arm)
        self._rewards.append(math.nan)
        self._count(arm, 1)
        self._expire()
        return ticket

    def settle(self, ticket: int, reward: float) -> int | None:
        """Fill in the reward, if the round is still in the window."""
        entry = ticket - self._first
        if entry < self._start or self._arms[entry] < 0 or not math.isnan(self._rewards[entry]):
            return None
        self._rewards[entry] = reward
        self._add(self._arms[entry], reward, 1)
        return self._arms[entry]

    def withdraw(self, ticket: int) -> None:
        """Leave a hole in the window."""
        entry = ticket - self._first
        if entry >= self._start and self._arms[entry] >= 0 and math.isnan(self._rewards[entry]):
            self._count(self._arms[entry], -1)
            self._arms[entry] = -1

    def reset(self, keep: Collection[int]) -> None:
        """Holes in place of the arms that are not kept and of rounds in flight."""
        for entry in range(self._start, len(self._arms)):
            if self._arms[entry] not in keep or math.isnan(self._rewards[entry]):
                self._arms[entry] = -1
        self._recount(len(self.counts))

    def add_arm(self) -> None:
        """Append zeros."""
        self._recount(len(self.counts) + 1)

    def remove_arm(self, arm: int) -> None:
        """Holes in place of the arm."""
        for entry in range(self._start, len(self._arms)):
            k = self._arms[entry]
            self._arms[entry] = -1 if k == arm else k - (k > arm)
        self._recount(len(self.counts) - 1)

    def state_dict(self) -> dict[str, Any]:
        """The rounds in the window; all else follows from them."""
        rewards = [None if math.isnan(reward) else reward for reward in self._rewards[self._start :]]
        arms = self._arms[self._start :].tolist()
        return {"n_arms": len(self.counts), "rounds": self.rounds, "arms": arms, "rewards": rewards}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Count the rounds again: exact sums do not depend on the order."""
        self._arms = array("i", state["arms"])
        self._rewards = array("d", [math.nan if reward is None else reward for reward in state["rewards"]])
        self.rounds, self._start = state["rounds"], 0
        self._first = self.rounds - len(self._arms)
        self._recount(state["n_arms"])

    def _expire(self) -> None:
        keep_from = self.rounds - self.size(self.rounds + 1) - self._first
        while self._start < min(keep_from, len(self._arms)):
            arm, reward = self._arms[self._start], self._rewards[self._start]
            if arm >= 0:
                self._count(arm, -1)
                if reward == reward:  # not in flight
                    self._add(arm, reward, -1)
            self._start += 1
        if self._start > 1024 and self._start > len(self._arms) // 2:  # drop the dead half: O(1) on average
            del self._arms[: self._start], self._rewards[: self._start]
            self._first, self._start = self._first + self._start, 0

    def _count(self, arm: int, by: int) -> None:
        self.counts[arm] += by
        self.total += by

    def _add(self, arm: int, reward: float, by: int) -> None:
        numerator, denominator = reward.as_integer_ratio()  # the denominator is a power of two
        shift = _BITS + 1 - denominator.bit_length()
        self.settled[arm] += by
        self._units[arm] += by * numerator << shift
        if self._squaring:
            self._squares[arm] += by * numerator * numerator << 2 * shift
        settled = self.settled[arm]
        self._means[arm] = self._units[arm] / (settled << _BITS) if settled else math.nan

    def _recount(self, n_arms: int) -> None:
        self._clear(n_arms)
        for arm, reward in zip(self._arms[self._start :], self._rewards[self._start :], strict=True):
            if arm >= 0:
                self._count(arm, 1)
                if reward == reward:
                    self._add(arm, reward, 1)


_BITS = 1074  # the smallest positive float is 2^-1074
