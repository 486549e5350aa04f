"""The status of a run, for the live view and callbacks."""

import math
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import esbas
from esbas.loop import EpisodeRecord
from esbas.training.display.speed import SpeedMeter
from esbas.training.recent import RecentEpisodes

OWN = 20
"""Episodes in control over which the value of a learner is averaged.

The recent episodes of the run (esbas.training.recent) would not do here: a learner that loses has
controlled few of them or none, and its value would be noise, or unknown, exactly where users want
to know why it is not in control.
"""


@dataclass(frozen=True)
class LearnerStatus:
    """The state of one learner in a run."""

    name: str
    episodes: int  # in control so far
    share: float  # of control over the recent episodes of the run
    value: float  # mean of the last OWN episodes that it controlled, NaN if there are none
    faults: int
    away: int  # number of episodes for which it is still dismissed
    metrics: Mapping[str, float] = field(default_factory=dict)  # such as "loss"; for callbacks only


@dataclass(frozen=True)
class Status:
    """The state of one run."""

    seed: int
    episodes: int  # that have ended
    steps: int  # including those of the current episode
    progress: float  # of the budget, 0 to 1
    learner: str  # the learner that controls the current episode, or controlled the last one
    value: float  # mean of the recent episodes, NaN if there are none: esbas.training.recent
    speed: float  # steps per second, recently
    left: float  # estimated seconds until the end, NaN if unknown
    learners: tuple[LearnerStatus, ...]
    finished: bool = False
    current: int = 0  # steps of the episode that is still running; 0 between two episodes
    evaluated: int = 0  # environment steps of evaluations, beside those of the budget
    evaluating: bool = False  # policies play without learning
    notes: tuple[str, ...] = ()  # problems that do not end the run, such as a callback that failed


class StatusTracker:
    """Collects the episodes of a run and computes its status."""

    def __init__(self, run: esbas.Run, *, seed: int) -> None:
        self._run = run
        self._seed = seed
        self.recent = RecentEpisodes()
        self.evaluated = 0  # environment steps of evaluations so far
        self.evaluating = False
        self._last_learner = ""  # of the last episode that has ended
        self._own: dict[str, deque[float]] = {name: deque(maxlen=OWN) for name in run.selector.arms}
        self._episodes = Counter[str]()
        self._faults = Counter[str]()
        self._away = Counter[str]()  # the last episode without a dismissed learner
        self._meter = SpeedMeter(time.monotonic(), steps=run.steps, progress=self._progress(0))
        self.notes: list[str] = []  # problems that do not end the run

    def note(self, text: str) -> None:
        """Add a problem that does not end the run. The same text is added once."""
        if text not in self.notes:
            self.notes.append(text)

    def add_episode(self, learner: str, value: float, *, steps: int) -> None:
        """Add an episode; also for episodes from before an interruption.

        Args:
            learner: that was in control.
            value: of the episode.
            steps: environment steps after it.
        """
        self.recent.add(steps, value, learner)
        self._last_learner = learner
        self._own[learner].append(value)
        self._episodes[learner] += 1

    def add_fault(self, number: int, learner: str, dismissed: int) -> None:
        """Add a fault in episode `number`, after which the learner is dismissed for a while.

        Args:
            number: of the episode.
            learner: that failed.
            dismissed: the number of episodes without it.
        """
        self._faults[learner] += 1
        self._away[learner] = number + dismissed

    def add_record(self, record: EpisodeRecord) -> None:
        """Add an episode and its faults."""
        self.add_episode(record.learner, record.value, steps=self._run.steps)
        for fault in record.faults:
            self.add_fault(record.number, fault.learner, fault.dismissed)

    def status(self, *, current: int = 0, metrics: bool = False) -> Status:
        """Return the status now.

        Args:
            current: steps of the episode that is still running.
            metrics: whether to include the metrics of the learners.
        """
        steps = self._run.steps + current
        progress = self._progress(current)
        self._meter.add(time.monotonic(), steps=steps, progress=progress)
        found: dict[str, dict[str, float]] = {}
        if metrics:
            found = {learner.name: self._metrics(learner) for learner in self._run.learners}
        learners = tuple(self._learner_status(name, found.get(name, {})) for name in self._own)
        return Status(
            seed=self._seed,
            episodes=self._run.number,
            steps=steps,
            progress=progress,
            learner=self._in_control(),
            value=self.recent.mean,
            speed=self._meter.speed,
            left=self._meter.left,
            learners=learners,
            finished=self._run.done and not self.evaluating,
            current=current,
            evaluated=self.evaluated,
            evaluating=self.evaluating,
            notes=tuple(self.notes),
        )

    def _in_control(self) -> str:
        open_choices = self._run.selector.open_choices
        return open_choices[-1].arm if open_choices else self._last_learner

    def _learner_status(self, name: str, metrics: Mapping[str, float]) -> LearnerStatus:
        return LearnerStatus(
            name=name,
            episodes=self._episodes[name],
            share=self.recent.share(name),
            value=_mean(self._own[name]),
            faults=self._faults[name],
            away=max(0, self._away[name] - self._run.number),
            metrics=metrics,
        )

    def _metrics(self, learner: Any) -> dict[str, float]:
        """Return the finite numbers among the learner's metrics.

        If it raises an error, or returns something else, this is noted.
        """
        if not hasattr(learner, "metrics"):
            return {}
        try:
            numbers = {str(name): float(value) for name, value in dict(learner.metrics()).items()}
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            self.note(f"the metrics of {learner.name!r} are left out: {cause}")
            return {}
        return {name: value for name, value in numbers.items() if math.isfinite(value)}

    def _progress(self, current: int) -> float:
        """Return the part of the budget that is used, from 0 to 1."""
        budget = self._run.budget
        used = 0.0
        if budget.steps:
            used = (self._run.steps + current) / budget.steps
        if budget.episodes:
            used = max(used, self._run.number / budget.episodes)
        return min(1.0, used)


def _mean(values: deque[float]) -> float:
    return sum(values) / len(values) if values else math.nan
