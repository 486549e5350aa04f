"""The recent episodes of a run, over which a training averages returns and shares of control.

Recent is a window of environment steps: the last tenth of the steps so far, but at least the last
5 episodes, or all of them while there are fewer. "So far" ends with the last episode that has
ended. An episode counts with the part of it that is inside the window: one that began before the
window counts as a fraction, and every later one as 1.

A window over steps has the same meaning in every run: a tenth of what the run has seen. A number of
episodes does not, because the length of episodes differs between environments and changes while
learners learn: early episodes of CartPole are short, and 20 of them outweigh the long ones that
follow for thousands of steps. The least number keeps means of long episodes from being those of one
or two.

Episodes inside the window have equal weights. Weights in proportion to their lengths would follow
growing returns slightly faster, but would not show what episodes return: on FrozenLake-v1, where
failures last longer, 0.58 instead of 0.66.
"""

import math
from collections import Counter, deque
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from esbas._internal.columns import Array

PARTS = 10
"""The window is the last one of this many equal parts of the steps so far."""
LEAST = 5
"""Episodes that are recent in any case."""
SETTLED = 20
"""Episodes of a run before which no mean reaches a threshold or ends the run.

The first windows are short, and there are many of them: one of them could be lucky.
"""
RULE = f"the last tenth of the steps, at least {LEAST} episodes"
"""The window in words, for reports."""

Steps = TypeVar("Steps", int, NDArray[np.int64])


def last_old_step(steps: Steps) -> Steps:
    """Return the last environment step before the last tenth of `steps` steps; also for arrays.

    >>> last_old_step(1000)
    900
    >>> last_old_step(5)
    4
    """
    tenth = -(-steps // PARTS)  # rounded up, in integers
    return steps - tenth


class Windows(NamedTuple):
    """The recent episodes at several times: those from `first` to `last`, with their weights."""

    first: Array  # (X,): the index of the first recent episode
    part: Array  # (X,): the fraction of its steps that are recent; later episodes count as 1
    last: Array  # (X,): the index of the last one

    @property
    def weight(self) -> Array:
        """How many episodes there are, (X,), with fractions."""
        return np.asarray(self.last - self.first + self.part)


def recent_windows(steps: Array, counts: Array) -> Windows:
    """Return the recent episodes after each of several numbers of episodes.

    Args:
        steps: environment steps after each episode of a run, (N,), increasing.
        counts: numbers of episodes, (X,), from 1 to N.

    Example: of 500 episodes of 10 steps each, 50 are within the last tenth of the steps. Of the
    first 78, the last 7.8 are. Of the first 30, only three are, so the last 5 are recent. Of the
    first 3, all are.

    >>> windows = recent_windows(10 * np.arange(1, 501), np.array([500, 78, 30, 3]))
    >>> windows.first.tolist(), windows.part.tolist()
    ([450, 70, 25, 0], [1.0, 0.8, 1.0, 1.0])
    >>> windows.weight.tolist()
    [50.0, 7.8, 5.0, 3.0]
    """
    old = last_old_step(steps[counts - 1])  # (X,)
    within = np.searchsorted(steps, old, side="right")  # the first episode that ended later
    least = np.maximum(counts - LEAST, 0)  # the first of those that are recent in any case
    first = np.asarray(np.minimum(within, least))
    ends = steps[first]
    starts = np.where(first > 0, steps[first - 1], 0)
    is_cut = (within < least) & (starts < old)
    lengths = np.maximum(ends - starts, 1)
    part = np.where(is_cut, (ends - old) / lengths, 1.0)
    return Windows(first, part, counts - 1)


def recent_weights(steps: Array) -> Array:
    """Return the weights of the recent episodes at the end of a run, (recent_count(steps),).

    Args:
        steps: environment steps after each episode, (N,), increasing.

    >>> recent_weights(10 * np.arange(1, 79)).tolist()
    [0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    if not len(steps):
        return np.ones(0)
    windows = recent_windows(steps, np.array([len(steps)]))
    weights = np.ones(len(steps) - int(windows.first[0]))
    weights[0] = windows.part[0]
    return weights


def recent_count(steps: Array) -> int:
    """Return the number of recent episodes at the end of a run, with one that counts as a fraction.

    Args:
        steps: environment steps after each episode, (N,), increasing.
    """
    return len(recent_weights(steps))


class _Episode(NamedTuple):
    start: int  # environment steps before it
    end: int  # environment steps after it
    value: float
    learner: str


class RecentEpisodes:
    """The recent episodes of a run that is still running.

    Adding an episode takes constant time on average. The sum of the values is never computed by
    subtraction: it does not drift, and a huge value leaves no trace when it is not recent any more.
    It depends on the added episodes alone, to the last bit, so that a resumed run decides as an
    uninterrupted one.

    >>> recent = RecentEpisodes()
    >>> recent.add(10, 1.0)
    >>> recent.add(30, 2.0)
    >>> recent.weight, recent.mean
    (2.0, 1.5)
    """

    def __init__(self) -> None:
        self.added = 0  # episodes so far, recent or not
        self._steps = 0  # after the last one
        self._episodes: deque[_Episode] = deque()
        self._learners = Counter[str]()
        self._part = 1.0  # of the first episode
        # The window is a queue of two parts. Of the older part, there is a stack of sums: from each
        # of its episodes to the last one of the part, with the sum from its first episode on top.
        # Of the newer part, there is one sum.
        self._older_sums: list[float] = []
        self._newer_sum = 0.0

    def add(self, steps: int, value: float, learner: str = "") -> None:
        """Add an episode.

        Args:
            steps: environment steps after it.
            value: of the episode.
            learner: that was in control, for `share`.
        """
        self._episodes.append(_Episode(self._steps, steps, value, learner))
        self._steps = steps
        self.added += 1
        self._learners[learner] += 1
        self._newer_sum += value
        old = last_old_step(steps)
        while len(self._episodes) > LEAST and self._episodes[0].end <= old:
            self._drop_first()
        first = self._episodes[0]
        self._part = 1.0
        if len(self._episodes) > LEAST and first.start < old:
            self._part = (first.end - old) / (first.end - first.start)
            self._sum_older()  # here and not in `mean`: sums do not depend on who asks when

    @property
    def weight(self) -> float:
        """The number of recent episodes, with fractions."""
        return len(self._episodes) - 1 + self._part if self._episodes else 0.0

    @property
    def mean(self) -> float:
        """The mean value of the recent episodes; NaN if there are none."""
        if not self._episodes:
            return math.nan
        if self._part == 1:
            older_sum = self._older_sums[-1] if self._older_sums else 0.0
        else:
            without_first = self._older_sums[-2] if len(self._older_sums) > 1 else 0.0
            older_sum = without_first + self._part * self._episodes[0].value
        return (older_sum + self._newer_sum) / self.weight

    def share(self, learner: str) -> float:
        """Return a learner's share of control over the recent episodes; 0 if there are none."""
        if not self._episodes:
            return 0.0
        own: float = self._learners[learner]
        if self._episodes[0].learner == learner:
            own -= 1 - self._part
        return own / self.weight

    def _drop_first(self) -> None:
        self._sum_older()
        self._older_sums.pop()
        dropped = self._episodes.popleft()
        self._learners[dropped.learner] -= 1

    def _sum_older(self) -> None:
        """Let all episodes become the older part, if it is empty.

        Each episode gets there once, so the time is constant on average.
        """
        if self._older_sums:
            return
        total = 0.0
        for episode in reversed(self._episodes):
            total += episode.value
            self._older_sums.append(total)
        self._newer_sum = 0.0

    def __repr__(self) -> str:
        return f"<{self.weight:.4g} recent episodes, mean {self.mean:.4g}>"
