"""What a bandit remembers of its rounds. Index formulas read it and never write."""

import math
from collections.abc import Collection, Sequence
from typing import Any, Protocol


class Memory(Protocol):
    """Counts, means and variances per arm, from rounds that may still be in flight. Counts may be fractions (`Discounted`)."""

    @property
    def counts(self) -> Sequence[float]:
        """(K,): pulls, rounds in flight included."""
        ...

    @property
    def settled(self) -> Sequence[float]:
        """(K,): rewards that arrived."""
        ...

    @property
    def total(self) -> float:
        """The sum of the counts."""
        ...

    @property
    def rounds(self) -> int:
        """How many rounds were ever started."""
        ...

    def mean(self, arm: int) -> float:
        """The arm's mean reward, NaN without a reward."""
        ...

    def variance(self, arm: int) -> float:
        """The mean squared distance of the arm's rewards from their mean, NaN without a reward."""
        ...

    def prior(self) -> float:
        """The mean reward over all arms, 0 without any: stands in for an arm that has only rounds in flight."""
        ...

    def pull(self, arm: int) -> int:
        """Start a round."""
        ...

    def settle(self, ticket: int, reward: float) -> int | None:
        """The reward of a round arrives; returns the round's arm, or None if the round is forgotten: then it has no effect."""
        ...

    def withdraw(self, ticket: int) -> None:
        """A round ends without a reward."""
        ...

    def reset(self, keep: Collection[int]) -> None:
        """Forget the arms that are not to be kept, and all rounds in flight."""
        ...

    def add_arm(self) -> None:
        """One more arm."""
        ...

    def remove_arm(self, arm: int) -> None:
        """One arm less; those behind it move up."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Plain data."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        ...


def grown_variance(variance: float, before: float, weight: float, distance: float) -> float:
    """The variance of rewards of total weight `before`, once one of this weight joins at this distance from their mean.

    It only adds what is positive (West 1979), so that nothing cancels.
    """
    share = weight / (before + weight)
    return (1 - share) * (variance + share * distance * distance)


class AllRounds:
    """Remembers every round, as counts, sums and variances."""

    def __init__(self, n_arms: int) -> None:
        self.counts, self.total, self.rounds = [0] * n_arms, 0, 0
        self.settled, self._sums, self._variances = [0] * n_arms, [0.0] * n_arms, [0.0] * n_arms
        self._open: dict[int, int] = {}  # ticket -> arm

    def mean(self, arm: int) -> float:
        """Sum over count of the rewards that arrived."""
        return self._sums[arm] / self.settled[arm] if self.settled[arm] else math.nan

    def variance(self, arm: int) -> float:
        """Of the rewards that arrived."""
        return self._variances[arm] if self.settled[arm] else math.nan

    def prior(self) -> float:
        """Sum over count of all arms."""
        settled = sum(self.settled)
        return sum(self._sums) / settled if settled else 0.0

    def pull(self, arm: int) -> int:
        """Count the pull now, its reward later."""
        self.rounds += 1
        self._open[self.rounds] = arm
        self.counts[arm] += 1
        self.total += 1
        return self.rounds

    def settle(self, ticket: int, reward: float) -> int | None:
        """Add to the sum."""
        arm = self._open.pop(ticket, None)
        if arm is not None:
            before = self.settled[arm]
            if before:
                distance = reward - self._sums[arm] / before
                self._variances[arm] = grown_variance(self._variances[arm], before, 1, distance)
            self.settled[arm] += 1
            self._sums[arm] += reward
        return arm

    def withdraw(self, ticket: int) -> None:
        """Take the pull back."""
        if ticket in self._open:
            self.counts[self._open.pop(ticket)] -= 1
            self.total -= 1

    def reset(self, keep: Collection[int]) -> None:
        """Kept arms keep the rounds whose rewards arrived."""
        for arm in range(len(self.counts)):
            if arm not in keep:
                self.settled[arm], self._sums[arm], self._variances[arm] = 0, 0.0, 0.0
        self._open.clear()
        self.counts, self.total = list(self.settled), sum(self.settled)

    def add_arm(self) -> None:
        """Append zeros."""
        self.counts.append(0)
        self.settled.append(0)
        self._sums.append(0.0)
        self._variances.append(0.0)

    def remove_arm(self, arm: int) -> None:
        """Delete the arm's column and its rounds in flight."""
        self.total -= self.counts[arm]
        for column in (self.counts, self.settled, self._sums, self._variances):
            del column[arm]
        self._open = {ticket: k - (k > arm) for ticket, k in self._open.items() if k != arm}

    def state_dict(self) -> dict[str, Any]:
        """Counts, sums, variances and rounds in flight."""
        rounds = {"rounds": self.rounds, "open": [[ticket, arm] for ticket, arm in self._open.items()]}
        return {"settled": list(self.settled), "sums": list(self._sums), "variances": list(self._variances)} | rounds

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The counts follow from what was settled and what is in flight."""
        self.settled, self._sums, self._variances = list(state["settled"]), list(state["sums"]), list(state["variances"])
        self.rounds, self._open = state["rounds"], dict(state["open"])
        self.counts = list(self.settled)
        for arm in self._open.values():
            self.counts[arm] += 1
        self.total = sum(self.counts)
