"""Which policies changed when an epoch started.

Each policy computes again the log-probabilities of the last steps of the epoch before.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.errors import InvalidValueError, require
from esbas.evidence import Evidence
from esbas.trajectory import Trajectory

# The numbers in all observations and actions that are kept, so that states stay small.
NUMBERS = 4096
# Of log-probabilities, absolute and relative: a batch of another size is rounded differently.
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class PolicyProbe:
    """A trajectory, or its first steps, with log-probabilities under the policies of an epoch."""

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
        """Keep a trajectory, or as many of its first steps as fit.

        Nothing is kept if a single step does not fit, or if observations or actions are not finite
        numbers.
        """
        numbers_per_step = trajectory.observations[0].size + trajectory.actions[0].size
        steps = min(len(trajectory), NUMBERS // numbers_per_step - 1)
        if steps < 1:
            return
        observations = trajectory.observations[: steps + 1]
        actions = trajectory.actions[:steps]
        if not _finite(observations) or not _finite(actions):
            return
        known = {arm: each[:steps] for arm, each in log_probs.items() if (each < np.inf).all()}
        self._append(_probe(observations, actions, known))

    def _append(self, probe: PolicyProbe) -> None:
        self._probes.append(probe)
        self._size += probe.size
        while self._size > NUMBERS:
            self._size -= self._probes.popleft().size

    def unchanged(self, arm: str, evidence: Evidence) -> bool:
        """Return whether the arm's policy finds all of the steps as probable as before.

        Args:
            arm: the name of the arm.
            evidence: evidence of a later epoch, which knows the policies of that epoch.
        """
        known = [probe for probe in self._probes if arm in probe.log_probs]
        ask = evidence.log_probs_on
        if not known or ask is None:
            return False
        for probe in known:
            before = probe.log_probs[arm]
            now = ask(probe.trajectory, arm)
            if now is None or not np.allclose(now, before, rtol=TOLERANCE, atol=TOLERANCE):
                return False
        return True

    def forget(self, arm: str) -> None:
        """Forget the log-probabilities of an arm."""
        for probe in self._probes:
            probe.log_probs.pop(arm, None)

    def state_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"epoch": self.epoch, "trajectories": [_saved(probe) for probe in self._probes]}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "PolicyProbes":
        """Return the probes that `state_dict` describes.

        A state that does not fit raises an error.
        """
        schema.check(state, STATE, "the kept trajectories")
        probes = cls(state["epoch"])
        for saved in state["trajectories"]:
            probes._append(_loaded(saved))
        return probes


_COLUMN = (str, [Any])
_PROBE = {
    "observations": _COLUMN,
    "actions": _COLUMN,
    "log_probs": {str: [AnyOf(Number(min=-1e300, max=1e300), None)]},
}
STATE = {"epoch": COUNT, "trajectories": [_PROBE]}


def _finite(column: Array) -> bool:
    return column.dtype.kind in "biuf" and bool(np.isfinite(column).all())


def _probe(observations: Array, actions: Array, log_probs: dict[str, Array]) -> PolicyProbe:
    """Return a probe; the rewards of its trajectory do not matter."""
    trajectory = Trajectory(
        observations, actions, rewards=np.zeros(len(actions)), terminated=False, truncated=True
    )
    return PolicyProbe(trajectory, log_probs, observations.size + actions.size)


def _saved(probe: PolicyProbe) -> dict[str, Any]:
    log_probs = {}
    for arm, row in probe.log_probs.items():
        log_probs[arm] = [None if each == -np.inf else each for each in row.tolist()]
    return {
        "observations": _saved_column(probe.trajectory.observations),
        "actions": _saved_column(probe.trajectory.actions),
        "log_probs": log_probs,
    }


def _saved_column(column: Array) -> list[Any]:
    return [column.dtype.str, column.tolist()]


def _loaded(saved: dict[str, Any]) -> PolicyProbe:
    log_probs = {}
    for arm, row in saved["log_probs"].items():
        log_probs[arm] = np.array([-np.inf if each is None else each for each in row], float)
    try:
        observations = _loaded_column(*saved["observations"])
        actions = _loaded_column(*saved["actions"])
        probe = _probe(observations, actions, log_probs)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidValueError(
            f"The kept trajectories must have observations and actions, but {error}: "
            "go back to an earlier copy."
        ) from error
    steps = len(actions)
    require(
        all(len(row) == steps for row in log_probs.values()),
        f"The kept trajectories must have a log-probability for each of {steps} steps: "
        "go back to an earlier copy.",
    )
    return probe


def _loaded_column(kind: str, rows: list[Any]) -> Array:
    return np.array(rows, _numeric(kind))


def _numeric(text: str) -> np.dtype[Any]:
    if re.fullmatch(r"[<>|=]?[biuf]\d{1,2}", text) is None:
        raise TypeError(f"got values of type {text[:20]!r}")
    return np.dtype(text)
