"""Trajectories (the paper's ε) and the growing set of them that all learners share (the paper's D)."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from esbas import schema
from esbas.columns import Array, frozen, require_alike
from esbas.errors import require
from esbas.schema import ArrayOf


class Transition(NamedTuple):
    """One step of an episode."""

    observation: Any
    action: Any
    reward: float
    next_observation: Any
    terminated: bool
    truncated: bool
    log_prob: float = math.nan  # log-probability (or log-density) of the action under the acting policy; NaN if unknown
    stream: int = 0  # the environment that the step comes from, where several run at a time


class Transitions(NamedTuple):
    """Many steps, as columns of equal length."""

    observations: Array  # (N, ...)
    actions: Array  # (N, ...)
    rewards: Array  # (N,)
    next_observations: Array  # (N, ...)
    terminated: Array  # (N,) bool: the episode ends here, do not bootstrap
    log_probs: Array  # (N,)
    trajectory: Array  # (N,) int: the number of the trajectory that the step belongs to


@dataclass(frozen=True, eq=False, slots=True)
class Trajectory:
    """One episode. Its arrays are read-only."""

    observations: Array  # (T + 1, ...): the last one is where the episode ended
    actions: Array  # (T, ...)
    rewards: Array  # (T,)
    terminated: bool
    truncated: bool
    log_probs: Array = field(default_factory=lambda: np.empty(0))  # (T,): of each action under the acting policy, NaN if unknown

    def __post_init__(self) -> None:
        rewards = np.asarray(self.rewards, float)
        log_probs = np.asarray(self.log_probs, float) if len(self.log_probs) else np.full(len(rewards), math.nan)
        columns = {"observations": self.observations, "actions": self.actions, "rewards": rewards, "log_probs": log_probs}
        for name, column in columns.items():
            array = np.asarray(column)
            if array.flags.writeable:  # the caller could still change it
                array = array.copy()
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        steps = len(rewards)
        if not (steps and len(self.observations) == steps + 1 and len(self.actions) == steps == len(log_probs)):
            lengths = {name: len(column) for name, column in columns.items()}
            require(False, "T >= 1 steps and T + 1 observations", **lengths)
        if not np.isfinite(rewards).all():
            require(False, "rewards are finite", "fix the environment", rewards=rewards)

    def __len__(self) -> int:
        return len(self.rewards)

    def transitions(self) -> Iterator[Transition]:
        """The steps in order; `terminated` and `truncated` are set on the last one."""
        last = len(self.rewards) - 1
        columns = zip(self.observations, self.actions, self.rewards, self.observations[1:], self.log_probs, strict=False)
        for t, (observation, action, reward, following, log_prob) in enumerate(columns):
            ends = t == last
            yield Transition(observation, action, reward, following, ends and self.terminated, ends and self.truncated, log_prob)


class TrajectorySet:
    """All trajectories so far, in order. Append-only; what it hands out is read-only."""

    def __init__(self) -> None:
        self._trajectories: list[Trajectory] = []
        self._arms: list[str] = []
        self._kinds: tuple[Any, ...] = ()  # types and shapes of observations and actions

    @property
    def arms(self) -> tuple[str, ...]:
        """The arm that controlled each trajectory."""
        return tuple(self._arms)

    def append(self, trajectory: Trajectory, *, arm: str = "") -> None:
        """Add a trajectory that `arm` controlled. Its observations and actions must have the shape and type of the others."""
        columns = trajectory.observations, trajectory.actions
        kinds = columns[0].dtype, columns[0].shape[1:], columns[1].dtype, columns[1].shape[1:]
        if kinds != self._kinds:
            trajectory = _alike(trajectory, self._trajectories[0]) if self._trajectories else trajectory
            self._kinds = self._kinds or kinds
        self._trajectories.append(trajectory)
        self._arms.append(arm)

    def read_only(self) -> "TrajectorySet":
        """A view of this set that cannot be changed."""
        return _ReadOnlySet(self)

    def __len__(self) -> int:
        return len(self._trajectories)

    def __getitem__(self, i: int) -> Trajectory:
        return self._trajectories[i]

    def since(self, i: int) -> list[Trajectory]:
        """The trajectories from number i on: what is new since the set had i of them."""
        return self._trajectories[i:]

    def by(self, arm: str) -> list[Trajectory]:
        """The trajectories that `arm` controlled."""
        return [each for each, name in zip(self._trajectories, self._arms, strict=True) if name == arm]

    def transitions(self, since: int = 0) -> Transitions:
        """All steps of the trajectories from number `since` on, as columns."""
        require(0 <= since < len(self), "0 <= since < number of trajectories", since=since, trajectories=len(self))
        new = self._trajectories[since:]
        lengths = np.array([len(each) for each in new])
        terminated = np.zeros(lengths.sum(), bool)
        terminated[lengths.cumsum() - 1] = [each.terminated for each in new]
        columns = Transitions(
            observations=np.concatenate([each.observations[:-1] for each in new]),
            actions=np.concatenate([each.actions for each in new]),
            rewards=np.concatenate([each.rewards for each in new]),
            next_observations=np.concatenate([each.observations[1:] for each in new]),
            terminated=terminated,
            log_probs=np.concatenate([each.log_probs for each in new]),
            trajectory=np.repeat(np.arange(since, len(self)), lengths),
        )
        for column in columns:
            column.flags.writeable = False
        return columns

    def state_dict(self) -> dict[str, Any]:
        """Everything as arrays and plain data."""
        all_of = {name: [getattr(each, name) for each in self._trajectories] for name in _COLUMNS}
        ended = np.array([(each.terminated, each.truncated) for each in self._trajectories], bool).reshape(-1, 2)
        lengths = np.array([len(each) for each in self._trajectories], np.int64)
        columns = {name: np.concatenate(parts) for name, parts in all_of.items()} if self._trajectories else {}
        return {"arms": list(self._arms), "lengths": lengths, "ended": ended, "columns": columns}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned. A state that does not fit raises an error and changes nothing."""
        lengths, trajectories = _checked_lengths(state), []
        columns = {name: frozen(column) for name, column in state["columns"].items()}
        for i, (end, steps) in enumerate(zip(itertools.accumulate(lengths), lengths, strict=True)):
            first = end - steps
            rows = {name: columns[name][first:end] for name in _COLUMNS if name != "observations"}
            observations = columns["observations"][first + i : end + i + 1]  # one more than steps per trajectory
            terminated, truncated = state["ended"][i].tolist()
            trajectories.append(Trajectory(observations, terminated=terminated, truncated=truncated, **rows))
        loaded = TrajectorySet()
        for trajectory, arm in zip(trajectories, state["arms"], strict=True):
            loaded.append(trajectory, arm=arm)
        self._trajectories[:], self._arms[:], self._kinds = loaded._trajectories, loaded._arms, loaded._kinds  # views see it too


class _ReadOnlySet(TrajectorySet):
    """A view for members, which must not change what all share."""

    def __init__(self, data: TrajectorySet) -> None:
        self._trajectories, self._arms, self._kinds = data._trajectories, data._arms, ()

    def _refuse(self, *_: Any, **__: Any) -> None:
        raise TypeError("a learner must not change the shared trajectories: use another TrajectorySet")

    append = load_state_dict = _refuse


_COLUMNS = "observations", "actions", "rewards", "log_probs"


def _checked_lengths(state: Any) -> list[int]:
    """The lengths of the saved trajectories; raises an error unless all arrays of the state have the sizes that they imply."""
    where, shape = "the saved trajectories", {"arms": [str], "lengths": ArrayOf("iu", (None,)), "ended": np.ndarray}
    schema.check(state, shape | {"columns": {str: np.ndarray}}, where)
    lengths: list[int] = state["lengths"].tolist()
    n = len(state["arms"])
    fits = len(lengths) == n and min(lengths, default=1) >= 1
    schema.require(fits, "there is one length >= 1 per trajectory", where, arms=n, lengths=lengths)
    steps = sum(lengths)
    schema.check(state["ended"], ArrayOf("b", (n, 2)), f"`ended` of {where}")
    each = {"observations": np.ndarray, "actions": np.ndarray} | dict.fromkeys(("rewards", "log_probs"), ArrayOf("f", (steps,)))
    schema.check(state["columns"], each if n else {}, f"the columns of {where}")
    for name, rows in ("observations", steps + n), ("actions", steps):
        size = state["columns"][name].shape[:1] if n else (rows,)
        schema.require(size == (rows,), f"there are {rows} {name}", where, size=size)
    return lengths


def _alike(new: Trajectory, first: Trajectory) -> Trajectory:
    """The new trajectory with the types of the first one; raises an error if its arrays have another shape or kind."""
    cast = {}
    for name in ("observations", "actions"):
        got, kept = getattr(new, name), getattr(first, name)
        require_alike(name, got, kept)
        cast[name] = got.astype(kept.dtype)
    return replace(new, **cast)
