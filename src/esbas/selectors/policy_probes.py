"""Which policies changed when an epoch started: each is asked again how probable it finds the last steps of the epoch before."""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.errors import InvalidValueError
from esbas.evidence import Evidence
from esbas.schema import COUNT, AnyOf, Number
from esbas.trajectory import Trajectory

NUMBERS = 4096  # of all observations and actions that are kept, so that states stay small
TOLERANCE = 1e-6  # of log-probabilities, absolute and relative: a batch of another size is rounded differently


@dataclass(frozen=True, slots=True)
class PolicyProbe:
    """A trajectory, or its first steps, and their log-probabilities under the policies of an epoch."""

    trajectory: Trajectory
    log_probs: dict[str, Array]  # by arm, (T,) each
    size: int  # the number of numbers in its observations and actions


class PolicyProbes:
    """The last trajectories of an epoch, as many as may be kept."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch
        self._probes: deque[PolicyProbe] = deque()
        self._size = 0

    def add(self, trajectory: Trajectory, log_probs: Mapping[str, Array]) -> None:
        """Keep a trajectory, unless its observations and actions are not finite numbers, or too many for a single step."""
        observations, actions = trajectory.observations, trajectory.actions
        steps = min(len(trajectory), NUMBERS // (observations[0].size + actions[0].size) - 1)
        observations, actions = observations[: steps + 1], actions[: max(steps, 0)]
        if steps < 1 or not all(column.dtype.kind in "biuf" and np.isfinite(column).all() for column in (observations, actions)):
            return
        known = {arm: each[:steps] for arm, each in log_probs.items() if (each < np.inf).all()}
        self._append(PolicyProbe(_steps(observations, actions), known, observations.size + actions.size))

    def _append(self, probe: PolicyProbe) -> None:
        self._probes.append(probe)
        self._size += probe.size
        while self._size > NUMBERS:
            self._size -= self._probes.popleft().size

    def unchanged(self, arm: str, evidence: Evidence) -> bool:
        """Whether the arm's policy finds all of the steps as probable as before. Evidence is that of a later epoch."""
        known, ask = [probe for probe in self._probes if arm in probe.log_probs], evidence.log_probs_on
        if not known or ask is None:
            return False
        for probe in known:
            now = ask(probe.trajectory, arm)
            if now is None or not np.allclose(now, probe.log_probs[arm], rtol=TOLERANCE, atol=TOLERANCE):
                return False
        return True

    def forget(self, arm: str) -> None:
        """Forget the log-probabilities of an arm."""
        for probe in self._probes:
            probe.log_probs.pop(arm, None)

    def state_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"epoch": self.epoch, "trajectories": [_saved(probe) for probe in self._probes]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "PolicyProbes":
        """The probes that `state_dict` describes. A state that does not fit raises an error."""
        schema.check(state, STATE, WHERE)
        probes = cls(state["epoch"])
        for saved in state["trajectories"]:
            probes._append(_loaded(saved))
        return probes


WHERE = "the kept trajectories"
_COLUMN = (str, [Any])
_PROBE = {"observations": _COLUMN, "actions": _COLUMN, "log_probs": {str: [AnyOf(Number(min=-1e300, max=1e300), None)]}}
STATE = {"epoch": COUNT, "trajectories": [_PROBE]}


def _saved(probe: PolicyProbe) -> dict[str, Any]:
    columns = {"observations": probe.trajectory.observations, "actions": probe.trajectory.actions}
    saved = {name: [column.dtype.str, column.tolist()] for name, column in columns.items()}
    return saved | {
        "log_probs": {arm: [None if each == -np.inf else each for each in row.tolist()] for arm, row in probe.log_probs.items()}
    }


def _loaded(saved: dict[str, Any]) -> PolicyProbe:
    try:
        observations, actions = (np.array(rows, _numeric(kind)) for kind, rows in (saved["observations"], saved["actions"]))
        trajectory = _steps(observations, actions)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(f"{WHERE} must have observations and actions, but {error}: {schema.REMEDY}") from error
    fits = all(len(row) == len(trajectory) for row in saved["log_probs"].values())
    schema.require(fits, "there is a log-probability per step", WHERE, steps=len(trajectory))
    found = {arm: np.array([-np.inf if each is None else each for each in row], float) for arm, row in saved["log_probs"].items()}
    return PolicyProbe(trajectory, found, observations.size + actions.size)


def _steps(observations: Array, actions: Array) -> Trajectory:
    """A trajectory whose rewards do not matter."""
    steps = len(actions)
    return Trajectory(observations, actions, np.zeros(steps), False, True, np.full(steps, np.nan))


def _numeric(text: str) -> np.dtype[Any]:
    if re.fullmatch(r"[<>|=]?[biuf]\d{1,2}", text) is None:
        raise TypeError(f"got values of type {text[:20]!r}")
    return np.dtype(text)
