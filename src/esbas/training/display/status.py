"""The status of a run, for the live view and callbacks."""

import math
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import esbas
from esbas.runner import EpisodeRecord
from esbas.training.display.speed import SpeedMeter

RECENT = 50  # episodes over which values are averaged
WINDOW = 100  # episodes over which shares of control are counted
OWN = 20  # episodes in control over which the value of a learner is averaged


@dataclass(frozen=True)
class MemberStatus:
    """The state of one learner in a run."""

    name: str
    episodes: int  # in control so far
    share: float  # of control over the last episodes
    value: float  # mean of the last episodes that it controlled, NaN if there are none
    faults: int
    away: int  # number of episodes for which it is still dismissed
    metrics: Mapping[str, float] = field(default_factory=dict)  # its own numbers, such as "loss"; only for callbacks


@dataclass(frozen=True)
class Status:
    """The state of one run."""

    seed: int
    episodes: int  # that have ended
    steps: int  # including those of the current episode
    progress: float  # of the budget, 0 to 1
    arm: str  # the learner that controls the current episode, or controlled the last one
    value: float  # mean of the last episodes
    speed: float  # steps per second, recently
    left: float  # estimated seconds until the end, NaN if unknown
    members: tuple[MemberStatus, ...]
    finished: bool = False
    current: int = 0  # steps of the episode that is still running; 0 between two episodes
    evaluated: int = 0  # environment steps of evaluations, beside those of the budget
    evaluating: bool = False  # policies play, and nobody learns
    notes: tuple[str, ...] = ()  # problems that do not end the run, such as a callback that failed


class StatusTracker:
    """Collects the episodes of a run and computes its status."""

    def __init__(self, run: esbas.Run, *, seed: int) -> None:
        self._run, self._seed = run, seed
        self.evaluated = 0  # environment steps of evaluations so far
        self.evaluating = False
        self._values: deque[float] = deque(maxlen=RECENT)
        self._arms: deque[str] = deque(maxlen=WINDOW)
        self._own: dict[str, deque[float]] = {name: deque(maxlen=OWN) for name in run.selector.arms}
        self._episodes, self._faults, self._away = Counter[str](), Counter[str](), Counter[str]()
        self._control = Counter[str]()  # of the last episodes
        self._meter = SpeedMeter(time.monotonic(), steps=run.steps, progress=self._progress(0))
        self.notes: list[str] = []  # problems that do not end the run

    def note(self, text: str) -> None:
        """Add a problem that does not end the run. The same text is added once."""
        if text not in self.notes:
            self.notes.append(text)

    def add_episode(self, arm: str, value: float) -> None:
        """Add an episode; also for episodes from before an interruption."""
        if len(self._arms) == WINDOW:
            self._control[self._arms[0]] -= 1
        self._control[arm] += 1
        self._values.append(value)
        self._arms.append(arm)
        self._own[arm].append(value)
        self._episodes[arm] += 1

    def add_fault(self, number: int, arm: str, dismissed: int) -> None:
        """Add a fault in episode `number`; `dismissed` is the number of episodes after it without the learner."""
        self._faults[arm] += 1
        self._away[arm] = number + dismissed

    def add_record(self, record: EpisodeRecord) -> None:
        """Add an episode and its faults."""
        self.add_episode(record.arm, record.value)
        for fault in record.faults:
            self.add_fault(record.number, fault.arm, fault.dismissed)

    def status(self, *, current: int = 0, metrics: bool = False) -> Status:
        """The status now.

        Args:
            current: steps of the episode that is still running.
            metrics: whether to ask the learners for their metrics.
        """
        steps, progress = self._run.steps + current, self._progress(current)
        self._meter.add(time.monotonic(), steps=steps, progress=progress)
        found = {learner.name: self._metrics(learner) for learner in self._run.learners} if metrics else {}
        members = tuple(self._member(name, found.get(name, {})) for name in self._own)
        return Status(
            seed=self._seed,
            episodes=self._run.number,
            steps=steps,
            progress=progress,
            arm=self._in_control(),
            value=_mean(self._values),
            speed=self._meter.speed,
            left=self._meter.left,
            members=members,
            finished=self._run.done and not self.evaluating,
            current=current,
            evaluated=self.evaluated,
            evaluating=self.evaluating,
            notes=tuple(self.notes),
        )

    def _in_control(self) -> str:
        current = self._run.selector.open_choices
        return current[-1].arm if current else self._arms[-1] if self._arms else ""

    def _member(self, name: str, metrics: Mapping[str, float]) -> MemberStatus:
        share = self._control[name] / max(len(self._arms), 1)
        away = max(0, self._away[name] - self._run.number)
        return MemberStatus(name, self._episodes[name], share, _mean(self._own[name]), self._faults[name], away, metrics)

    def _metrics(self, learner: Any) -> dict[str, float]:
        """The finite numbers among the learner's metrics. What it raises, or returns instead, is noted and ignored."""
        if not hasattr(learner, "metrics"):
            return {}
        try:
            numbers = {str(name): float(value) for name, value in dict(learner.metrics()).items()}
        except Exception as error:
            self.note(f"the metrics of {learner.name!r} are left out: {type(error).__name__}: {error}")
            return {}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _progress(self, current: int) -> float:
        run = self._run
        budgets = (run.steps + current, run.budget.steps), (run.number, run.budget.episodes)
        parts = [done / limit for done, limit in budgets if limit]
        return min(1.0, max(parts, default=0.0))


def _mean(values: deque[float]) -> float:
    return sum(values) / len(values) if values else math.nan
