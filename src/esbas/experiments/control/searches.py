"""Searches: members that train alone, each on its own episodes, compete for one budget of environment steps.

This is what people do without online selection: train candidates separately, and keep the best one.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

import esbas


@dataclass
class Candidate:
    """A member that trains alone. Returns and starts are those of its episodes; starts count its own steps."""

    run: esbas.Run
    starts: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    def play(self) -> esbas.EpisodeRecord:
        """One more episode."""
        self.starts.append(self.run.steps)
        record = next(self.run)
        self.returns.append(record.value)
        return record

    def recent(self, since: int) -> float:
        """The mean return of the episodes in the later half of its steps after the first `since`; -inf without any."""
        middle = (since + self.run.steps) / 2
        returns = [value for start, value in zip(self.starts, self.returns, strict=True) if start >= middle]
        returns = returns or self.returns[-1:]
        return float(np.mean(returns)) if returns else -math.inf


def rungs_of(members: int, steps: int, *, commit_share: float | None = None) -> list[tuple[int, float]]:
    """How many members remain in each rung, and its environment steps.

    Successive halving (Karnin et al., 2013; Jamieson & Talwalkar, 2016) gives every rung the same number of steps and keeps the
    better half, down to one member. With `commit_share`, this share of the steps goes to all members, and the rest to the best.
    """
    if commit_share is not None:
        return [(members, commit_share * steps), (1, (1 - commit_share) * steps)]
    counts = [members]
    while counts[-1] > 1:
        counts.append(math.ceil(counts[-1] / 2))
    return [(count, steps / len(counts)) for count in counts]


def search(
    candidates: Sequence[Candidate],
    rungs: Sequence[tuple[int, float]],
    *,
    report: Callable[[int, int, esbas.EpisodeRecord], None],
) -> int:
    """Spend the budget; returns the number of the member that remains.

    Within a rung, the member that has the fewest steps in it plays next, so that the order of members does not matter for the
    curve. `report` gets the number of the member, the environment steps of all members so far, and the record of each episode.
    """
    alive, total, limit = list(range(len(candidates))), 0, 0.0
    since = [0] * len(candidates)
    for count, steps in rungs:
        alive.sort(key=lambda k: (-candidates[k].recent(since[k]), k))
        alive = sorted(alive[:count])
        since = [candidate.run.steps for candidate in candidates]
        limit += steps
        while total < limit:
            k = min(alive, key=lambda k: (candidates[k].run.steps - since[k], k))
            before = total
            record = candidates[k].play()
            total += record.length
            report(k, before, record)
    return alive[0]
