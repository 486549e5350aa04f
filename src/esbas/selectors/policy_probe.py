"""Which policies changed when an epoch started: each is asked again how probable it finds the last steps of the epoch before."""

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


@dataclass(slots=True)
class PolicyProbe:
    """A trajectory, or its first steps, and their log-probabilities under the policies of an epoch."""

    epoch: int
    trajectory: Trajectory
    log_probs: dict[str, Array]  # by arm, (T,) each

    @property
    def size(self) -> int:
        """The number of numbers in its observations and actions."""
        return self.trajectory.observations.size + self.trajectory.actions.size

    @classmethod
    def of(cls, epoch: int, trajectory: Trajectory, log_probs: Mapping[str, Array]) -> "PolicyProbe | None":
        """The probe of a trajectory; None if its observations and actions are not finite numbers, or too many."""
        observations, actions = trajectory.observations, trajectory.actions
        if not all(column.dtype.kind in "biuf" and np.isfinite(column).all() for column in (observations, actions)):
            return None
        steps = min(len(trajectory), NUMBERS // (observations[0].size + actions[0].size) - 1)
        if steps < 1:
            return None
        known = {arm: each[:steps] for arm, each in log_probs.items() if (each < np.inf).all()}
        return cls(epoch, _steps(observations[: steps + 1], actions[:steps]), known)

    def state_dict(self) -> dict[str, Any]:
        """Plain data."""
        columns = {"observations": self.trajectory.observations, "actions": self.trajectory.actions}
        saved = {name: [column.dtype.str, column.tolist()] for name, column in columns.items()}
        found = {arm: [None if each == -np.inf else float(each) for each in row] for arm, row in self.log_probs.items()}
        return saved | {"epoch": self.epoch, "log_probs": found}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "PolicyProbe":
        """The probe that `state_dict` describes. A state that does not fit raises an error."""
        where = "the probe of an epoch"
        schema.check(state, STATE, where)
        try:
            observations, actions = (np.array(rows, _kind(kind)) for kind, rows in (state["observations"], state["actions"]))
            trajectory = _steps(observations, actions)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidValueError(f"{where} must have observations and actions, but {error}: {schema.REMEDY}") from error
        fits = all(len(row) == len(trajectory) for row in state["log_probs"].values())
        schema.require(fits, "there is a log-probability per step", where, steps=len(trajectory))
        found = {arm: np.array([-np.inf if each is None else each for each in row]) for arm, row in state["log_probs"].items()}
        return cls(state["epoch"], trajectory, found)


def last_probes(probes: list[PolicyProbe]) -> list[PolicyProbe]:
    """The last of these probes, as many as may be kept."""
    room, first = NUMBERS, len(probes)
    while first > 0 and (room := room - probes[first - 1].size) >= 0:
        first -= 1
    return probes[first:]


def unchanged(arm: str, probes: list[PolicyProbe], evidence: Evidence) -> bool:
    """Whether the arm's policy finds all of these steps as probable as before. Evidence is that of a later epoch."""
    known, ask = [probe for probe in probes if arm in probe.log_probs], evidence.log_probs_on
    if not known or ask is None:
        return False
    for probe in known:
        now = ask(probe.trajectory, arm)
        if now is None or not np.allclose(now, probe.log_probs[arm], rtol=TOLERANCE, atol=TOLERANCE):
            return False
    return True


def _steps(observations: Array, actions: Array) -> Trajectory:
    """A trajectory whose rewards do not matter."""
    steps = len(actions)
    return Trajectory(observations, actions, np.zeros(steps), False, True, np.full(steps, np.nan))


def _kind(text: str) -> np.dtype[Any]:
    kind = np.dtype(text)
    if kind.kind not in "biuf":
        raise TypeError(f"got values of type {text[:20]!r}")
    return kind


_COLUMN = (str, [Any])
STATE = {
    "epoch": COUNT,
    "observations": _COLUMN,
    "actions": _COLUMN,
    "log_probs": {str: [AnyOf(Number(min=-1e300, max=1e300), None)]},
}
