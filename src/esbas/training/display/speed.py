"""The speed of a run and the remaining time, estimated from the recent past."""

import math
from collections import deque
from typing import NamedTuple

# Needed for an estimate of the remaining time:
MIN_SECONDS = 5.0
MIN_PROGRESS = 0.02
ENOUGH_SECONDS = 60.0  # of a long run, whatever its progress is


class _Sample(NamedTuple):
    time: float
    steps: int
    progress: float


class SpeedMeter:
    """Measures speed over the last half of the elapsed time.

    The start of a run says little about the rest: deep learners make no updates until their memory
    has some data, code is compiled, and episodes become longer. So the remaining time is unknown at
    first.

    Args:
        now: in seconds.
        steps: so far, before an interruption for example.
        progress: so far, from 0 to 1.
    """

    def __init__(self, now: float, *, steps: int, progress: float) -> None:
        self._first = self._last = _Sample(now, steps, progress)
        self._samples = deque([self._first])  # the first one is the start of the recent past

    def add(self, now: float, *, steps: int, progress: float) -> None:
        """Add a measurement."""
        self._last = _Sample(now, steps, progress)
        elapsed = now - self._first.time
        if now - self._samples[-1].time >= elapsed / 200:  # so that there are few
            self._samples.append(self._last)
        recent = now - max(elapsed / 2, 1.0)
        while len(self._samples) > 2 and self._samples[1].time <= recent:
            self._samples.popleft()

    @property
    def speed(self) -> float:
        """Steps per second."""
        seconds = self._last.time - self._samples[0].time
        if seconds <= 0:
            return 0.0
        return (self._last.steps - self._samples[0].steps) / seconds

    @property
    def left(self) -> float:
        """Seconds until the end, NaN if unknown."""
        elapsed = self._last.time - self._first.time
        gained = self._last.progress - self._first.progress
        is_known = elapsed >= MIN_SECONDS and (gained >= MIN_PROGRESS or elapsed >= ENOUGH_SECONDS)
        recent_time = self._last.time - self._samples[0].time
        recent_progress = self._last.progress - self._samples[0].progress
        if self._last.progress >= 1 or not is_known or recent_progress <= 0:
            return math.nan
        return recent_time * (1 - self._last.progress) / recent_progress
