"""A memory of the most recent rounds, exact after any number of them."""

import math
from array import array
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from esbas import schema
from esbas.bandits.memory_bandit import ARMS, Arm, Round
from esbas.errors import require
from esbas.schema import COUNT, AnyOf, Number


@dataclass(slots=True)
class WindowArm(Arm):
    """Adds exact sums of the rewards and of their squares: integers in units of 2^-1074 and 2^-2148."""

    units: int = 0
    squares: int = 0


class Window:
    """Remembers the last `size(τ)` rounds before round τ. Sums are integers in units of 2^-1074, so they never drift.

    A round keeps its place in the window from its pull on; a reward that arrives after its round has left has no effect.
    `size` may grow by at most one per round. Work per round is O(1) on average.
    """

    def __init__(self, n_arms: int, *, size: Callable[[int], int]) -> None:
        require(callable(size), "size is a function of the round number", size=size)
        self.size, self.rounds, self.total = size, 0, 0
        self.arms: list[Arm] = [WindowArm() for _ in range(n_arms)]
        self._numbers, self._rewards = array("i"), array("d")  # of the rounds from `first` on; arm -1: withdrawn, NaN: in flight
        self._first = self._start = 0  # round number of entry 0; entry at which the window starts
        self._squaring = False  # squares are summed from the first request for a variance on

    def variance(self, k: int) -> float:
        """The exact variance of the window's rewards, rounded once."""
        if not self._squaring:
            self._squaring = True
            self._recount(len(self.arms))
        arm: Any = self.arms[k]
        n, units = arm.rewards, arm.units
        try:
            return (n * arm.squares - units * units) / (n * n << 2 * _BITS) if n else math.nan
        except OverflowError:  # rewards beyond 1e154
            return math.inf

    def prior(self) -> float:
        """The exact mean over all arms."""
        arms: list[Any] = self.arms
        rewards = sum(arm.rewards for arm in arms)
        return sum(arm.units for arm in arms) / (rewards << _BITS) if rewards else 0.0

    def pull(self, k: int) -> int:
        """Append the round and drop those that leave the window."""
        ticket, self.rounds = self.rounds, self.rounds + 1
        self._numbers.append(k)
        self._rewards.append(math.nan)
        self.arms[k].pulls += 1
        self.total += 1
        self._expire()
        return ticket

    def settle(self, ticket: int, reward: float) -> Round | None:
        entry = ticket - self._first
        if not self._start <= entry < len(self._numbers) or self._numbers[entry] < 0 or not math.isnan(self._rewards[entry]):
            return None
        self._rewards[entry] = reward
        arm = self.arms[self._numbers[entry]]
        self._add(arm, reward, 1)
        return Round(arm)

    def withdraw(self, ticket: int) -> None:
        """Leave a hole in the window."""
        entry = ticket - self._first
        if self._start <= entry < len(self._numbers) and self._numbers[entry] >= 0 and math.isnan(self._rewards[entry]):
            self.arms[self._numbers[entry]].pulls -= 1
            self.total -= 1
            self._numbers[entry] = -1

    def reset(self, keep: Collection[int]) -> None:
        """Leave holes in place of the arms that are not kept and of rounds in flight."""
        for entry in range(self._start, len(self._numbers)):
            if self._numbers[entry] not in keep or math.isnan(self._rewards[entry]):
                self._numbers[entry] = -1
        self._recount(len(self.arms))

    def add_arm(self) -> None:
        self.arms.append(WindowArm())

    def remove_arm(self, k: int) -> None:
        """Leave holes in place of the arm."""
        for entry in range(self._start, len(self._numbers)):
            number = self._numbers[entry]
            self._numbers[entry] = -1 if number == k else number - (number > k)
        self._recount(len(self.arms) - 1)

    def state_dict(self) -> dict[str, Any]:
        """The rounds in the window; everything else follows from them."""
        rewards = [None if math.isnan(reward) else reward for reward in self._rewards[self._start :]]
        numbers = self._numbers[self._start :].tolist()
        return {"n_arms": len(self.arms), "rounds": self.rounds, "arms": numbers, "rewards": rewards}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where, rewards = "the memory of a bandit", [AnyOf(float, None)]
        shape = {"n_arms": ARMS, "rounds": COUNT, "arms": [Number(min=-1, whole=True)], "rewards": rewards}
        schema.check(state, shape, where)
        sizes = {"rounds": state["rounds"], "arms": len(state["arms"]), "rewards": len(state["rewards"])}
        fits = sizes["rounds"] >= sizes["arms"] == sizes["rewards"]
        schema.require(fits, "there are one arm and one reward per round", where, **sizes)
        largest, n_arms = max(state["arms"], default=-1), state["n_arms"]
        schema.require(largest < n_arms, "rounds name arms", where, arm=largest, n_arms=n_arms)
        self._numbers = array("i", state["arms"])
        self._rewards = array("d", [math.nan if reward is None else reward for reward in state["rewards"]])
        self.rounds, self._start = state["rounds"], 0
        self._first = self.rounds - len(self._numbers)
        self._recount(state["n_arms"])  # exact sums do not depend on the order

    def _expire(self) -> None:
        keep_from = self.rounds - self.size(self.rounds + 1) - self._first
        while self._start < min(keep_from, len(self._numbers)):
            k, reward = self._numbers[self._start], self._rewards[self._start]
            if k >= 0:
                self.arms[k].pulls -= 1
                self.total -= 1
                if reward == reward:  # not in flight
                    self._add(self.arms[k], reward, -1)
            self._start += 1
        if self._start > 1024 and self._start > len(self._numbers) // 2:  # drop the dead half: O(1) on average
            del self._numbers[: self._start], self._rewards[: self._start]
            self._first, self._start = self._first + self._start, 0

    def _add(self, arm: Any, reward: float, by: int, *, mean: bool = True) -> None:
        numerator, denominator = reward.as_integer_ratio()  # the denominator is a power of two
        shift = _BITS + 1 - denominator.bit_length()
        arm.rewards += by
        arm.units += by * numerator << shift
        if self._squaring:
            arm.squares += by * numerator * numerator << 2 * shift
        if mean:
            arm.mean = arm.units / (arm.rewards << _BITS) if arm.rewards else 0.0  # exact, rounded once

    def _recount(self, n_arms: int) -> None:
        self.arms, self.total = [WindowArm() for _ in range(n_arms)], 0
        arms = self.arms
        last = [math.nan] * n_arms  # the mean is computed with the last reward of each arm
        for k, reward in zip(self._numbers[self._start :], self._rewards[self._start :], strict=True):
            if k >= 0:
                arms[k].pulls += 1
                self.total += 1
                if reward == reward:
                    if last[k] == last[k]:
                        self._add(arms[k], last[k], 1, mean=False)
                    last[k] = reward
        for arm, reward in zip(arms, last, strict=True):
            if reward == reward:
                self._add(arm, reward, 1)


_BITS = 1074  # the smallest positive float is 2^-1074
