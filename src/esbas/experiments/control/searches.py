"""Searches: learners that train alone, on their own episodes, compete for one budget of steps.

This is the usual way without online selection: train candidates separately, and keep the best one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import esbas


@dataclass
class Candidate:
    """A learner that trains alone.

    Attributes:
        run: its run.
        starts: its own steps before each of its episodes.
        returns: the returns of its episodes.
    """

    run: esbas.Run
    starts: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def play(self) -> esbas.EpisodeRecord:
        """Play one more episode."""
        self.starts.append(self.run.steps)
        record = next(self.run)
        self.returns.append(record.value)
        return record

    def recent(self, since: int) -> float:
        """Return the mean return of the episodes in the later half of its steps after step `since`.

        If no episode starts there, the last episode counts; without any episode it is -inf.
        """
        if not self.returns:
            return -math.inf
        middle = (since + self.run.steps) / 2
        late = []
        for start, value in zip(self.starts, self.returns, strict=True):
            if start >= middle:
                late.append(value)
        if not late:
            return float(self.returns[-1])
        return float(np.mean(late))


def rungs_of(
    learners: int, steps: int, *, commit_share: float | None = None
) -> list[tuple[int, float]]:
    """Return how many learners remain in each rung, and its environment steps.

    Successive halving (Karnin et al., 2013; Jamieson & Talwalkar, 2016) gives every rung the same
    number of steps and keeps the better half, down to one learner. With `commit_share`, this share
    of the steps goes to all learners, and the rest to the best.
    """
    if commit_share is not None:
        return [(learners, commit_share * steps), (1, (1 - commit_share) * steps)]
    counts = [learners]
    while counts[-1] > 1:
        counts.append(math.ceil(counts[-1] / 2))
    return [(count, steps / len(counts)) for count in counts]


def search(
    candidates: Sequence[Candidate],
    rungs: Sequence[tuple[int, float]],
    *,
    report: Callable[[int, int, esbas.EpisodeRecord], None],
) -> int:
    """Spend the budget. Return the number of the learner that remains.

    Within a rung, the learner that has the fewest steps in it plays next, so that the order of
    learners does not matter for the curve. A rung keeps the learners that were best in the later
    half of their steps in the rung before it. `report` gets the number of the learner, the
    environment steps of all learners so far, and the record of each episode.
    """
    alive = list(range(len(candidates)))
    total = 0
    limit = 0.0
    since = [0] * len(candidates)  # steps of each candidate when the rung began

    def score(k: int) -> float:
        return candidates[k].recent(since[k])

    def steps_in_rung(k: int) -> int:
        return candidates[k].run.steps - since[k]

    for count, steps in rungs:
        # Of equal candidates, the first one comes first: sorting is stable.
        best_first = sorted(alive, key=score, reverse=True)
        alive = sorted(best_first[:count])
        since = [candidate.run.steps for candidate in candidates]
        limit += steps
        while total < limit:
            k = min(alive, key=steps_in_rung)
            before = total
            record = candidates[k].play()
            total += record.length
            report(k, before, record)
    return alive[0]
