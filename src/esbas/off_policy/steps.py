"""Trajectories as columns, with the importance weight of the actions so far at each step."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, require
from esbas.off_policy.weights import balance_log_weights
from esbas.trajectory import Trajectory, TrajectorySet

Trajectories = TrajectorySet | Sequence[Trajectory]
LogProbs = Any
"""A policy with `log_probs(observations, actions)`, or one array (T,) for each trajectory."""


@dataclass(frozen=True, eq=False)
class WeightedSteps:
    """All steps of all trajectories in one column each, the first trajectory first."""

    trajectories: tuple[Trajectory, ...]
    lengths: Array  # (n,)
    rewards: Array  # (N,)
    log_weights: Array  # (N,): of the actions from the start of the episode to this step

    @property
    def last(self) -> Array:
        """The index of the last step of each trajectory, (n,)."""
        return np.cumsum(self.lengths) - 1

    @property
    def final_log_weights(self) -> Array:
        """The log-weights of whole trajectories, (n,)."""
        return self.log_weights[self.last]

    def by_time(self, *columns: Array) -> Iterator[tuple[Array, ...]]:
        """Yield the log-weights, (n,), and these columns, (n,) each, for each time step.

        Episodes that have ended keep their weight, and have zeros in the columns.
        """
        first = self.last + 1 - self.lengths
        for time in range(self.lengths.max(initial=0)):
            goes_on = time < self.lengths
            rows = first + np.where(goes_on, time, self.lengths - 1)
            values = [np.where(goes_on, column[rows], 0.0) for column in columns]
            yield self.log_weights[rows], *values


def weighted_steps(
    trajectories: Trajectories,
    policy: LogProbs,
    *,
    behaviors: Mapping[str, LogProbs] | None,
    arms: Sequence[str] | None,
) -> WeightedSteps:
    """Return the steps with the weights of `policy` against the policies that acted.

    Raises an error where the weights cannot be known.
    """
    if arms is None and isinstance(trajectories, TrajectorySet):
        arms = trajectories.arms
    given = tuple(trajectories[i] for i in range(len(trajectories)))
    require(len(given) > 0, "`trajectories` must not be empty.")
    target = _sums(policy, given, "the policy")
    if behaviors is None:
        recorded = [each.log_probs for each in given]
        remedy = "record them, or pass `behaviors`"
        acted = _sums(recorded, given, "the policy that acted", remedy)
        log_weights = _difference(target, acted)
    else:
        log_weights = _against_mixture(target, given, behaviors, arms)
    lengths = np.array([len(each) for each in given])
    rewards = np.concatenate([each.rewards for each in given])
    steps = WeightedSteps(given, lengths, rewards, log_weights)
    if np.isposinf(log_weights).any():
        raise InvalidValueError(
            "The policies that acted must be able to take the actions of their trajectories, but "
            "one of the actions has probability 0: check that the log-probabilities belong to "
            "these trajectories."
        )
    if np.isneginf(steps.final_log_weights).all():
        raise InvalidValueError(
            "The policy must be able to take all actions of a trajectory, but each trajectory has "
            "an action that it would never take: use trajectories of policies that are more like "
            "this one."
        )
    return steps


def _against_mixture(
    target: Array,
    trajectories: Sequence[Trajectory],
    behaviors: Mapping[str, LogProbs],
    arms: Sequence[str] | None,
) -> Array:
    """Return the log-weights of the balance heuristic, for the actions up to each step, (N,)."""
    if arms is None or len(arms) != len(trajectories) or not set(arms) <= set(behaviors):
        names = None if arms is None else sorted(set(arms))
        raise InvalidValueError(
            "`arms` must name for each trajectory which of the behaviors acted, but got "
            f"{names} with the behaviors {list(behaviors)}: pass `arms`."
        )
    counts = []
    columns = []
    for name, source in behaviors.items():
        count = list(arms).count(name)
        if count > 0:
            counts.append(count)
            columns.append(_sums(source, trajectories, f"policy {name!r}"))
    # The policy itself is an arm without trajectories.
    log_probs = np.stack([*columns, target], axis=1)  # (N, K + 1)
    return balance_log_weights(log_probs, np.array([*counts, 0]))[:, -1]


def _sums(
    source: LogProbs,
    trajectories: Sequence[Trajectory],
    whose: str,
    remedy: str = "leave out policies without probabilities",
) -> Array:
    """Return the log-probability of all actions up to each step of its trajectory, (N,)."""
    compute = getattr(source, "log_probs", None)
    if compute is None and not isinstance(source, Sequence | np.ndarray):
        kind = type(source).__name__
        raise InvalidValueError(
            f"{whose[0].upper()}{whose[1:]} must have `log_probs(observations, actions)`, but "
            f"{kind} does not: pass one array of log-probabilities for each trajectory."
        )
    if compute is None:
        require(
            len(source) == len(trajectories),
            f"There must be one array of log-probabilities for each of {len(trajectories)} "
            f"trajectories, but got {len(source)}.",
        )
    sums = []
    for number, each in enumerate(trajectories):
        found = source[number] if compute is None else compute(each.observations[:-1], each.actions)
        log_probs = np.asarray(found, float)
        require(
            log_probs.shape == (len(each),),
            f"There must be one log-probability for each of {len(each)} actions, but got an array "
            f"of shape {log_probs.shape}.",
        )
        if np.isnan(log_probs).any() or np.isposinf(log_probs).any():
            raise InvalidValueError(
                f"The log-probabilities of the actions under {whose} must be known, but one of "
                f"trajectory {number} is not: {remedy}."
            )
        sums.append(np.cumsum(log_probs))
    return np.concatenate(sums)


def _difference(target: Array, behavior: Array) -> Array:
    """Return the log-weights; 0 / 0 is 0."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(target), -np.inf, target - behavior)
