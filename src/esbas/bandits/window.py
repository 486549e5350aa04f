"""A memory of the most recent rounds, exact after any number of them."""

import math
from array import array
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.bandits.memory_bandit import ARMS, Arm, Round
from esbas.errors import require


@dataclass(slots=True)
class WindowArm(Arm):
    """Adds exact sums: of the rewards in units of 2^-1074, of their squares in units of 2^-2148."""

    units: int = 0
    squares: int = 0


class Window:
    """Remembers the last `size(τ)` rounds before round τ.

    Sums are integers in units of 2^-1074, so they never drift. A round is in the window from its
    pull on; a reward that arrives after its round has left has no effect. Work per round is O(1) on
    average.

    Args:
        n_arms: K.
        size: the size of the window before round τ. It may grow by at most one per round.
    """

    def __init__(self, n_arms: int, *, size: Callable[[int], int]) -> None:
        require(callable(size), f"`size` must be a function of the round number, but got {size!r}.")
        self.size = size
        self.rounds = 0
        self.total = 0
        self.arms: list[Arm] = [WindowArm() for _ in range(n_arms)]
        # One entry per round, from round `_first` on. The window starts at entry `_start`.
        self._numbers = array("i")  # arms; -1: withdrawn or forgotten
        self._rewards = array("d")  # NaN: in flight
        self._first = 0
        self._start = 0
        self._squaring = False  # squares are summed from the first request for a variance on

    def variance(self, k: int) -> float:
        """Return the exact variance of the arm's rewards, rounded once; NaN without a reward."""
        if not self._squaring:
            self._squaring = True
            self._recount(len(self.arms))
        arm: Any = self.arms[k]
        n = arm.rewards
        units = arm.units
        if not n:
            return math.nan
        try:
            variance: float = (n * arm.squares - units * units) / (n * n << 2 * _BITS)
        except OverflowError:  # rewards beyond 1e154
            return math.inf
        return variance

    def prior(self) -> float:
        """Return the exact mean over all arms, 0 without a reward."""
        arms: list[Any] = self.arms
        rewards = sum(arm.rewards for arm in arms)
        units = sum(arm.units for arm in arms)
        return units / (rewards << _BITS) if rewards else 0.0

    def pull(self, k: int) -> int:
        """Append the round and drop those that leave the window."""
        ticket = self.rounds
        self.rounds += 1
        self._numbers.append(k)
        self._rewards.append(math.nan)
        self.arms[k].pulls += 1
        self.total += 1
        self._expire()
        return ticket

    def settle(self, ticket: int, reward: float) -> Round | None:
        """Add the reward of a round and return the round.

        None: the round has left the window, and the reward has no effect.
        """
        entry = ticket - self._first
        if not self._in_flight(entry):
            return None
        self._rewards[entry] = reward
        arm = self.arms[self._numbers[entry]]
        self._add(arm, reward, 1)
        return Round(arm)

    def withdraw(self, ticket: int) -> None:
        """Leave a hole in the window."""
        entry = ticket - self._first
        if self._in_flight(entry):
            self.arms[self._numbers[entry]].pulls -= 1
            self.total -= 1
            self._numbers[entry] = -1

    def _in_flight(self, entry: int) -> bool:
        return (
            self._start <= entry < len(self._numbers)
            and self._numbers[entry] >= 0
            and math.isnan(self._rewards[entry])
        )

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
            if number == k:
                self._numbers[entry] = -1
            elif number > k:
                self._numbers[entry] = number - 1
        self._recount(len(self.arms) - 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the rounds in the window; everything else follows from them."""
        rewards = self._rewards[self._start :]
        return {
            "n_arms": len(self.arms),
            "rounds": self.rounds,
            "arms": self._numbers[self._start :].tolist(),
            "rewards": [None if math.isnan(reward) else reward for reward in rewards],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        schema.check(state, STATE, "the memory of a bandit")
        n_arms = state["n_arms"]
        numbers = state["arms"]
        rewards = state["rewards"]
        require(
            len(numbers) == len(rewards),
            "The memory of a bandit must have one arm and one reward per round, but has "
            f"{len(numbers)} arms and {len(rewards)} rewards: go back to an earlier copy.",
        )
        largest = max(numbers, default=-1)
        require(
            largest < n_arms,
            "The memory of a bandit must have the arm of every round, but has "
            f"{n_arms} arms and a round of arm {largest}: go back to an earlier copy.",
        )
        self._numbers = array("i", numbers)
        self._rewards = array("d", [math.nan if reward is None else reward for reward in rewards])
        self.rounds = state["rounds"]
        self._start = 0
        self._first = self.rounds - len(numbers)
        self._recount(n_arms)  # exact sums do not depend on the order

    def _expire(self) -> None:
        keep_from = self.rounds - self.size(self.rounds + 1) - self._first
        while self._start < min(keep_from, len(self._numbers)):
            k = self._numbers[self._start]
            reward = self._rewards[self._start]
            if k >= 0:
                self.arms[k].pulls -= 1
                self.total -= 1
                if reward == reward:  # not in flight
                    self._add(self.arms[k], reward, -1)
            self._start += 1
        # Drop the entries before the window once they are the larger half: O(1) on average.
        if self._start > 1024 and self._start > len(self._numbers) // 2:
            del self._numbers[: self._start]
            del self._rewards[: self._start]
            self._first += self._start
            self._start = 0

    def _add(self, arm: Any, reward: float, by: int, *, mean: bool = True) -> None:
        numerator, denominator = reward.as_integer_ratio()  # the denominator is a power of two
        shift = _BITS + 1 - denominator.bit_length()
        arm.rewards += by
        arm.units += by * numerator << shift
        if self._squaring:
            arm.squares += by * numerator * numerator << 2 * shift
        if mean:
            # The exact mean, rounded once.
            arm.mean = arm.units / (arm.rewards << _BITS) if arm.rewards else 0.0

    def _recount(self, n_arms: int) -> None:
        """Compute the statistics of all arms from the rounds in the window."""
        arms: list[Arm] = [WindowArm() for _ in range(n_arms)]
        self.arms = arms
        self.total = 0
        # Means are divisions of large integers. Each is computed once, with the arm's last reward.
        last: list[float | None] = [None] * n_arms
        numbers = self._numbers[self._start :]
        rewards = self._rewards[self._start :]
        for k, reward in zip(numbers, rewards, strict=True):
            if k < 0:
                continue
            arms[k].pulls += 1
            self.total += 1
            if math.isnan(reward):
                continue
            before = last[k]
            if before is not None:
                self._add(arms[k], before, 1, mean=False)
            last[k] = reward
        for arm, last_reward in zip(arms, last, strict=True):
            if last_reward is not None:
                self._add(arm, last_reward, 1)


_BITS = 1074  # the smallest positive float is 2^-1074
STATE = {
    "n_arms": ARMS,
    "rounds": COUNT,
    "arms": [Number(min=-1, whole=True)],
    "rewards": [AnyOf(float, None)],
}
