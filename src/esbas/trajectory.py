"""Trajectories (the paper's ε) and the growing set of them that all learners share (the paper's D)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from esbas.columns import Array, Columns, frozen
from esbas.errors import require


class Transition(NamedTuple):
    """One step: what was seen, done and received, and how likely the acting policy was to do it (NaN if it cannot tell)."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool
    probability: float = float("nan")


class Transitions(NamedTuple):
    """Many steps, as columns of equal length."""

    observations: Array  # (N, ...)
    actions: Array  # (N, ...)
    rewards: Array  # (N,)
    next_observations: Array  # (N, ...)
    terminated: Array  # (N,) bool: nothing follows, do not bootstrap
    probabilities: Array  # (N,)
    trajectory: Array  # (N,) int: which trajectory the step belongs to


@dataclass(frozen=True, eq=False, slots=True)
class Trajectory:
    """One episode. Its arrays are read-only."""

    observations: Array  # (T + 1, ...): the last one is where the episode ended
    actions: Array  # (T, ...)
    rewards: Array  # (T,)
    terminated: bool
    truncated: bool
    probabilities: Array = field(default_factory=lambda: np.empty(0))  # (T,): of each action as the policy told it, or NaN

    def __post_init__(self) -> None:
        told = self.probabilities if len(self.probabilities) else np.full(len(self.rewards), np.nan)
        floats = {"rewards": np.asarray(self.rewards, float), "probabilities": np.asarray(told, float)}
        for name in _STEPWISE:
            object.__setattr__(self, name, frozen(floats.get(name, getattr(self, name))))
        lengths = len(self.observations) - 1, len(self.actions), len(self.rewards), len(self.probabilities)
        require(len(set(lengths)) == 1 and lengths[0] > 0, "T >= 1 steps, T + 1 observations", T=lengths)
        require(bool(np.isfinite(self.rewards).all()), "rewards are finite", "mend the environment", rewards=self.rewards)

    def __len__(self) -> int:
        return len(self.rewards)

    def transitions(self) -> Iterator[Transition]:
        """The steps in order; the last one carries `terminated` and `truncated`."""
        for t, (action, reward, likely) in enumerate(zip(self.actions, self.rewards, self.probabilities, strict=True)):
            ends = t == len(self) - 1
            seen, following = self.observations[t], self.observations[t + 1]
            yield Transition(seen, action, reward, following, ends and self.terminated, ends and self.truncated, likely)


_STEPWISE = "observations", "actions", "rewards", "probabilities"


class TrajectorySet:
    """All trajectories so far, in order: append-only, in growing columns, handed out as read-only views."""

    def __init__(self) -> None:
        self._columns = Columns()
        self.arms: list[str] = []  # who controlled each; to be looked at
        self._starts = [0]  # trajectory i has the transitions starts[i] .. starts[i + 1] - 1

    def append(self, trajectory: Trajectory, *, arm: str = "") -> None:
        """Add a trajectory that `arm` controlled."""
        ended = np.array([[trajectory.terminated, trajectory.truncated]])
        self._columns.extend({name: getattr(trajectory, name) for name in _STEPWISE} | {"ended": ended})
        self._starts.append(self._starts[-1] + len(trajectory))
        self.arms.append(arm)

    def __len__(self) -> int:
        return len(self.arms)

    def __getitem__(self, i: int) -> Trajectory:
        i = range(len(self))[i]
        start, end, column = self._starts[i], self._starts[i + 1], self._columns
        seen = column["observations"][start + i : end + i + 1]  # each trajectory has one observation more than steps
        actions, rewards, likely = (column[name][start:end] for name in _STEPWISE[1:])
        terminated, truncated = column["ended"][i].tolist()
        return Trajectory(seen, actions, rewards, terminated, truncated, likely)

    def since(self, i: int) -> list[Trajectory]:
        """What is new since the set had i trajectories."""
        return [self[k] for k in range(i, len(self))]

    def by(self, arm: str) -> list[Trajectory]:
        """The trajectories that `arm` controlled."""
        return [self[k] for k, name in enumerate(self.arms) if name == arm]

    def transitions(self, since: int = 0) -> Transitions:
        """All steps of the trajectories from number `since` on, as columns."""
        require(0 <= since < len(self), "0 <= since < number of trajectories", since=since, trajectories=len(self))
        first, last, column = self._starts[since], self._starts[-1], self._columns
        index = np.repeat(np.arange(since, len(self)), np.diff(self._starts[since:]))  # (N,)
        seen, row = column["observations"], np.arange(first, last) + index
        terminated = np.zeros(last - first, bool)
        terminated[np.array(self._starts[since + 1 :]) - first - 1] = column["ended"][since:, 0]
        actions, rewards, likely = (column[name][first:last] for name in _STEPWISE[1:])
        return Transitions(seen[row], actions, rewards, seen[row + 1], terminated, likely, index)

    def state_dict(self) -> dict[str, Any]:
        """Everything as arrays and plain data."""
        return {"arms": list(self.arms), "starts": list(self._starts), "columns": self._columns.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the set that `state_dict` told of."""
        self.arms, self._starts = list(state["arms"]), list(state["starts"])
        self._columns.load_state_dict(state["columns"])
