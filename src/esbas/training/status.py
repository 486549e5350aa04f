"""How a run is doing: what the live view and TensorBoard show."""

import time
from collections import Counter, deque
from dataclasses import dataclass

import esbas
from esbas.runner import EpisodeRecord

RECENT = 50  # episodes over which returns are averaged
WINDOW = 100  # episodes over which shares of control are counted
OWN = 20  # episodes in control over which a member's own return is averaged


@dataclass(frozen=True)
class MemberStatus:
    """One learner at this moment."""

    name: str
    episodes: int  # in control so far
    share: float  # of the last episodes
    value: float  # mean of its own last episodes, NaN if it had none
    faults: int
    away: int  # episodes for which it is still dismissed


@dataclass(frozen=True)
class Status:
    """One run at this moment."""

    seed: int
    episodes: int
    steps: int
    progress: float  # of the budget, 0 to 1
    arm: str  # who controlled the last episode
    value: float  # mean of the last episodes
    speed: float  # steps per second, in this process
    left: float  # seconds until the end, about; NaN if unknown
    members: tuple[MemberStatus, ...]
    finished: bool = False


class Meter:
    """Watches a run and tells its status."""

    def __init__(self, run: esbas.Run, *, seed: int) -> None:
        self._run, self._seed = run, seed
        names = run.loop.roster.names
        self._values: deque[float] = deque(maxlen=RECENT)
        self._arms: deque[str] = deque(maxlen=WINDOW)
        self._own: dict[str, deque[float]] = {name: deque(maxlen=OWN) for name in names}
        self._episodes, self._faults, self._away = Counter[str](), Counter[str](), Counter[str]()
        self._control = Counter[str]()  # of the last episodes
        self._start, self._first, self._begun = time.monotonic(), run.loop.steps, self._progress()

    def see(self, arm: str, value: float) -> None:
        """An episode, also one of before an interruption."""
        if len(self._arms) == WINDOW:
            self._control[self._arms[0]] -= 1
        self._control[arm] += 1
        self._values.append(value)
        self._arms.append(arm)
        self._own[arm].append(value)
        self._episodes[arm] += 1

    def see_fault(self, number: int, arm: str, dismissed: int) -> None:
        """A fault in episode `number`, and for how many episodes behind it the member is dismissed."""
        self._faults[arm] += 1
        self._away[arm] = number + dismissed

    def see_record(self, record: EpisodeRecord) -> None:
        """An episode and its faults."""
        self.see(record.arm, record.value)
        for fault in record.faults:
            self.see_fault(record.number, fault.arm, fault.dismissed)

    def status(self) -> Status:
        """At this moment."""
        loop, elapsed, progress = self._run.loop, time.monotonic() - self._start, self._progress()
        speed = (loop.steps - self._first) / elapsed if elapsed > 0 else 0.0
        gained = progress - self._begun
        left = elapsed * (1 - progress) / gained if gained > 0 else float("nan")
        members = tuple(self._member(name) for name in self._own)
        arm, mean = self._arms[-1] if self._arms else "", _mean(self._values)
        return Status(self._seed, loop.number, loop.steps, progress, arm, mean, speed, left, members, self._run.done)

    def _member(self, name: str) -> MemberStatus:
        share = self._control[name] / max(len(self._arms), 1)
        away = max(0, self._away[name] - self._run.number)
        return MemberStatus(name, self._episodes[name], share, _mean(self._own[name]), self._faults[name], away)

    def _progress(self) -> float:
        run = self._run
        parts = [done / limit for done, limit in ((run.loop.steps, run.steps), (run.number, run.episodes)) if limit]
        return min(1.0, max(parts, default=0.0))


def _mean(values: deque[float]) -> float:
    return sum(values) / len(values) if values else float("nan")
