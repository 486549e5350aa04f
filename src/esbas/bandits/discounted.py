"""A memory that fades: each round makes all earlier ones count less."""

import math
from collections.abc import Collection
from typing import Any

from esbas.bandits.memory import grown_variance
from esbas.errors import require


class Discounted:
    """A round that s others followed counts γ^s, with its reward or still in flight; a withdrawn round leaves a hole.

    A reward that arrives late gets the weight that its round has by then. Work per round is O(K).
    """

    def __init__(self, n_arms: int, *, discount: float) -> None:
        require(0 < discount <= 1, "0 < discount <= 1", discount=discount)
        self.discount, self.rounds = discount, 0
        self.counts, self.settled = [0.0] * n_arms, [0.0] * n_arms  # (K,)
        self._means, self._variances = [0.0] * n_arms, [0.0] * n_arms  # of the rewards; a common factor of weights leaves them
        self._open: dict[int, int] = {}  # ticket -> arm

    @property
    def total(self) -> float:
        """The sum of the counts."""
        return sum(self.counts)

    def mean(self, arm: int) -> float:
        """The weighted mean."""
        return self._means[arm] if self.settled[arm] else math.nan

    def variance(self, arm: int) -> float:
        """The weighted variance."""
        return self._variances[arm] if self.settled[arm] else math.nan

    def prior(self) -> float:
        """The weighted mean over all arms."""
        settled = sum(self.settled)
        return sum(w * x for w, x in zip(self.settled, self._means, strict=True)) / settled if settled else 0.0

    def pull(self, arm: int) -> int:
        """All that is known fades; the new round counts 1."""
        self.rounds += 1
        self.counts = [self.discount * count for count in self.counts]
        self.settled = [self.discount * weight for weight in self.settled]
        self.counts[arm] += 1.0
        self._open[self.rounds] = arm
        return self.rounds

    def settle(self, ticket: int, reward: float) -> int | None:
        """The reward counts as much as its round does by now."""
        arm = self._open.pop(ticket, None)
        weight = self._weight(ticket)
        if arm is not None and weight:
            before, distance = self.settled[arm], reward - self._means[arm]
            self.settled[arm] += weight
            self._variances[arm] = grown_variance(self._variances[arm], before, weight, distance) if before else 0.0
            self._means[arm] = self._means[arm] + weight / self.settled[arm] * distance if before else reward
        return arm

    def withdraw(self, ticket: int) -> None:
        """Count again what stays: a difference of weights would leave a rest."""
        arm = self._open.pop(ticket, None)
        if arm is not None:
            self.counts[arm] = self.settled[arm] + sum(self._weight(other) for other, k in self._open.items() if k == arm)

    def reset(self, keep: Collection[int]) -> None:
        """Kept arms keep the rounds whose rewards arrived."""
        self._open.clear()
        self.settled = [weight if arm in keep else 0.0 for arm, weight in enumerate(self.settled)]
        self.counts = list(self.settled)

    def add_arm(self) -> None:
        """Append zeros."""
        for column in (self.counts, self.settled, self._means, self._variances):
            column.append(0.0)

    def remove_arm(self, arm: int) -> None:
        """Delete the arm's column and its rounds in flight."""
        for column in (self.counts, self.settled, self._means, self._variances):
            del column[arm]
        self._open = {ticket: k - (k > arm) for ticket, k in self._open.items() if k != arm}

    def state_dict(self) -> dict[str, Any]:
        """Weights, means, variances and rounds in flight."""
        columns = {"counts": self.counts, "settled": self.settled, "means": self._means, "variances": self._variances}
        opened = [[ticket, arm] for ticket, arm in self._open.items()]
        return {name: list(column) for name, column in columns.items()} | {"rounds": self.rounds, "open": opened}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From plain data."""
        self.counts, self.settled = list(state["counts"]), list(state["settled"])
        self._means, self._variances = list(state["means"]), list(state["variances"])
        self.rounds, self._open = state["rounds"], dict(state["open"])

    def _weight(self, ticket: int) -> float:
        return float(self.discount ** (self.rounds - ticket))
