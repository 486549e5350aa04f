"""The status of a run, for the live view and TensorBoard."""

import time
from collections import Counter, deque
from dataclasses import dataclass

import esbas
from esbas.runner import EpisodeRecord

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


@dataclass(frozen=True)
class Status:
    """The state of one run."""

    seed: int
    episodes: int
    steps: int
    progress: float  # of the budget, 0 to 1
    arm: str  # the learner that controlled the last episode
    value: float  # mean of the last episodes
    speed: float  # steps per second, in this process
    left: float  # estimated seconds until the end, NaN if unknown
    members: tuple[MemberStatus, ...]
    finished: bool = False
    evaluated: int = 0  # environment steps of evaluations, beside those of the budget


class StatusTracker:
    """Collects the episodes of a run and computes its status."""

    def __init__(self, run: esbas.Run, *, seed: int) -> None:
        self._run, self._seed = run, seed
        self.evaluated = 0  # environment steps of evaluations so far
        self._values: deque[float] = deque(maxlen=RECENT)
        self._arms: deque[str] = deque(maxlen=WINDOW)
        self._own: dict[str, deque[float]] = {name: deque(maxlen=OWN) for name in run.selector.arms}
        self._episodes, self._faults, self._away = Counter[str](), Counter[str](), Counter[str]()
        self._control = Counter[str]()  # of the last episodes
        self._start, self._first, self._begun = time.monotonic(), run.steps, self._progress()

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

    def status(self) -> Status:
        steps, elapsed, progress = self._run.steps, time.monotonic() - self._start, self._progress()
        speed = (steps - self._first) / elapsed if elapsed > 0 else 0.0
        gained = progress - self._begun
        left = elapsed * (1 - progress) / gained if gained > 0 else float("nan")
        members = tuple(self._member(name) for name in self._own)
        arm, mean = self._arms[-1] if self._arms else "", _mean(self._values)
        ends = self._run.done, self.evaluated
        return Status(self._seed, self._run.number, steps, progress, arm, mean, speed, left, members, *ends)

    def _member(self, name: str) -> MemberStatus:
        share = self._control[name] / max(len(self._arms), 1)
        away = max(0, self._away[name] - self._run.number)
        return MemberStatus(name, self._episodes[name], share, _mean(self._own[name]), self._faults[name], away)

    def _progress(self) -> float:
        run = self._run
        budgets = (run.steps, run.budget.steps), (run.number, run.budget.episodes)
        parts = [done / limit for done, limit in budgets if limit]
        return min(1.0, max(parts, default=0.0))


def _mean(values: deque[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
