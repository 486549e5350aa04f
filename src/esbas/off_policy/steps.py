"""Trajectories as columns, with the importance weight of the actions so far at each step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import InvalidValueError, require
from esbas.evaluation.weights import balance_log_weights
from esbas.trajectory import Trajectory, TrajectorySet

Trajectories = TrajectorySet | Sequence[Trajectory]
LogProbs = Any
"""A policy with `log_probs(observations, actions)`, or a sequence with one array (T,) for each trajectory."""


@dataclass(frozen=True, eq=False)
class WeightedSteps:
    """All steps of all trajectories in one column each, the first trajectory first."""

    trajectories: tuple[Trajectory, ...]
    lengths: Array  # (n,)
    rewards: Array  # (N,)
    log_weights: Array  # (N,): of the actions from the start of the episode to this step

    @property
    def last(self) -> Array:
        """(n,): the index of the last step of each trajectory."""
        return np.cumsum(self.lengths) - 1

    @property
    def final_log_weights(self) -> Array:
        """(n,): of whole trajectories."""
        return self.log_weights[self.last]

    def by_time(self, *columns: Array) -> Iterator[tuple[Array, ...]]:
        """For each time step the log-weights, (n,), and these columns; ended episodes keep their weight, and have zeros."""
        first = self.last + 1 - self.lengths
        for time in range(self.lengths.max(initial=0)):
            lasts = time < self.lengths
            rows = first + np.where(lasts, time, self.lengths - 1)
            yield self.log_weights[rows], *(np.where(lasts, column[rows], 0.0) for column in columns)


def weighted_steps(
    trajectories: Trajectories, policy: LogProbs, *, behaviours: Mapping[str, LogProbs] | None, arms: Sequence[str] | None
) -> WeightedSteps:
    """The steps with the weights of `policy` against the policies that acted; raises an error where they cannot be known."""
    if arms is None and isinstance(trajectories, TrajectorySet):
        arms = trajectories.arms
    given = tuple(trajectories[i] for i in range(len(trajectories)))
    require(len(given) > 0, "there is a trajectory", trajectories=0)
    target = _sums(policy, given, "the policy")
    if behaviours is None:
        recorded = [each.log_probs for each in given]
        log_weights = _difference(target, _sums(recorded, given, "the policy that acted", "record them, or pass `behaviours`"))
    else:
        log_weights = _against_mixture(target, given, behaviours, arms)
    lengths, rewards = np.array([len(each) for each in given]), np.concatenate([each.rewards for each in given])
    steps = WeightedSteps(given, lengths, rewards, log_weights)
    if np.isposinf(log_weights).any():
        raise InvalidValueError(
            "the policies that acted must be able to take the actions of their trajectories, but say that one is impossible: "
            "check that their log-probabilities belong to these trajectories"
        )
    if np.isneginf(steps.final_log_weights).all():
        message = "the policy must be able to take all actions of a trajectory, but it would never act as any of them does"
        raise InvalidValueError(f"{message}: use trajectories of policies that are more like this one")
    return steps


def _against_mixture(
    target: Array, trajectories: Sequence[Trajectory], behaviours: Mapping[str, LogProbs], arms: Sequence[str] | None
) -> Array:
    """Weights of the balance heuristic, for the actions up to each step."""
    known = arms is not None and len(arms) == len(trajectories) and set(arms) <= set(behaviours)
    got = {"arms": None if arms is None else sorted(set(arms)), "behaviours": list(behaviours)}
    require(known, "`arms` names for each trajectory which of the behaviours acted", "pass `arms`", **got)
    counts = [sum(arm == name for arm in arms or ()) for name in behaviours]
    acted = {name: source for (name, source), count in zip(behaviours.items(), counts, strict=True) if count}
    columns = [_sums(source, trajectories, f"policy {name!r}") for name, source in acted.items()]
    log_probs = np.stack([*columns, target], axis=1)  # (N, K + 1): the policy is an arm without trajectories
    return balance_log_weights(log_probs, np.array([*filter(None, counts), 0]))[:, -1]


def _sums(source: LogProbs, trajectories: Sequence[Trajectory], whose: str, remedy: str = "") -> Array:
    """(N,): the log-probability of all actions up to each step of its trajectory."""
    compute = getattr(source, "log_probs", None)
    if compute is None and not isinstance(source, Sequence | np.ndarray):
        message = f"{whose} must have `log_probs(observations, actions)`, but {type(source).__name__} has not"
        raise InvalidValueError(f"{message}: pass one array of log-probabilities for each trajectory")
    if compute is None:
        require(len(source) == len(trajectories), "there is an array for each trajectory", log_probs=len(source))
    sums = []
    for number, each in enumerate(trajectories):
        found = source[number] if compute is None else compute(each.observations[:-1], each.actions)
        log_probs = np.asarray(found, float)
        got = {"shape": log_probs.shape, "steps": len(each)}
        require(log_probs.shape == (len(each),), "there is one log-probability for each action", **got)
        if np.isnan(log_probs).any() or np.isposinf(log_probs).any():
            message = f"log-probabilities of the actions under {whose} must be known, but one of trajectory {number} is not"
            raise InvalidValueError(f"{message}: {remedy or 'leave out policies without probabilities'}")
        sums.append(np.cumsum(log_probs))
    return np.concatenate(sums)


def _difference(target: Array, behaviour: Array) -> Array:
    """The log-weights; 0 / 0 is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(target), -np.inf, target - behaviour)
