"""When a run stops before its budget is used up.

The stop is stored, so that a resumed run ends at the same step.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas.objective import Objective
from esbas.reporting.files import write_json
from esbas.training.config import TrainingConfig
from esbas.training.recent import SETTLED, RecentEpisodes

NAME = "stop.json"
MINUTES = "minutes"
UNTIL = "until"
CALLBACK = "callback"
LIMITS = ("steps", "episodes", "minutes", "until")
_SHAPE = {"steps": schema.COUNT, "reason": str, "limits": dict}
_REMEDY = "remove the file, after which the run continues to its budget"


@dataclass(frozen=True, kw_only=True)
class Stop:
    """Where a run stopped.

    Attributes:
        steps: environment steps of the run.
        reason: "minutes", "until" or "callback".
        limits: those that the training had. With other limits, the run continues.
    """

    steps: int
    reason: str
    limits: dict[str, Any]


def limits_of(config: TrainingConfig) -> dict[str, Any]:
    """Return what limits the length of runs."""
    return {name: getattr(config, name) for name in LIMITS}


def read_stop(directory: Path, config: TrainingConfig) -> Stop | None:
    """Return where the run in this folder stopped.

    None if it did not, or if it has got other limits since.
    """
    path = directory / NAME
    content = read_file(path, missing=b"")
    if not content:
        return None
    data = schema.read_json(content, str(path), remedy=_REMEDY)
    schema.check(data, _SHAPE, str(path), remedy=_REMEDY)
    stop = Stop(**data)
    return stop if stop.limits == limits_of(config) else None


def write_stop(directory: Path, stop: Stop) -> None:
    """Store where the run stopped."""
    write_json(directory / NAME, asdict(stop))


class StopRule:
    """Decides after each episode whether a run stops.

    Args:
        config: has the limits.
        objective: the value of an episode.
        seconds: returns how long the run has been trained so far, over all interruptions.
    """

    def __init__(
        self, config: TrainingConfig, objective: Objective, seconds: Callable[[], float]
    ) -> None:
        self._minutes = config.minutes
        self._until = config.until
        self._objective = objective
        self._seconds = seconds
        self._recent = RecentEpisodes()
        self.asked = False  # set by a callback

    def add(self, steps: int, value: float) -> None:
        """Add an episode that ended after this many environment steps of the run."""
        self._recent.add(steps, value)

    def reason(self) -> str | None:
        """Return why the run stops now; None if it goes on."""
        if self.asked:
            return CALLBACK
        if self._has_reached_value():
            return UNTIL
        if self._minutes is not None and self._seconds() >= 60 * self._minutes:
            return MINUTES
        return None

    def _has_reached_value(self) -> bool:
        if self._until is None or self._recent.added < SETTLED:
            return False
        return self._objective.score(self._recent.mean) >= self._objective.score(self._until)
