"""Whether the learners of a run work: a run in which none can act or learn is a failure.

- A run ends early when its actions have been random, because all learners failed to act, in all
  episodes of a tenth of its budget, and in at least 20 episodes.
- A run that has used up its budget has failed if all learners were dismissed throughout its recent
  episodes (`esbas.training.recent`), and in at least 20 episodes, or in all of a shorter run.
- It has also failed if every learner had a fault in every episode in which it was to learn.

All of this follows from the log alone, so a run that continues comes to the same result.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas.errors import counted
from esbas.loop import Budget
from esbas.training.recent import PARTS, SETTLED, RecentEpisodes
from esbas.training.runs.episode_log import one_line, read_episodes, read_faults

_LONGEST_FAULT = 300  # characters of a fault in a message


@dataclass
class _Stretch:
    """The last episodes that were all alike."""

    episodes: int = 0
    steps: int = 0

    def add(self, length: int, *, alike: bool) -> None:
        self.episodes = self.episodes + 1 if alike else 0
        self.steps = self.steps + length if alike else 0


class LearnerWatch:
    """Follows whether the learners of a run can act and learn.

    Args:
        names: of the learners.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._away = dict.fromkeys(names, 0)  # the last episode without a dismissed learner
        self._faults = Counter[tuple[str, str]]()  # by method and message
        self._first_learner: dict[tuple[str, str], str] = {}  # with this fault
        self._recent = RecentEpisodes()
        self._dismissed = _Stretch()  # episodes without any learner
        self._random = _Stretch()  # episodes that random actions ended
        self._number = 0
        self._epoch = 0
        # Whether a learner that was not dismissed had no fault after the first episode, when there
        # is something to learn from; likewise at the start of an epoch after the first.
        self._works = False
        self._works_by_epochs = False

    def add(
        self,
        number: int,
        learner: str,
        *,
        length: int,
        steps: int,
        epoch: int,
        faults: Iterable[Any],
    ) -> None:
        """Add an episode.

        Args:
            number: of the episode.
            learner: that was chosen.
            length: steps of the episode.
            steps: environment steps of the run after it.
            epoch: of the selector; always 0 if learners learn in every episode.
            faults: with `learner`, `where`, `message` and `dismissed`.
        """
        present = {name for name, last in self._away.items() if last < number}
        is_unable = False  # the chosen learner failed to act
        for fault in faults:
            present.discard(fault.learner)
            self._away[fault.learner] = number + fault.dismissed
            kind = (fault.where, one_line(fault.message))
            self._faults[kind] += 1
            self._first_learner.setdefault(kind, fault.learner)
            if fault.learner == learner and fault.where in ("act", "policy"):
                is_unable = True
        all_dismissed = all(last >= number for last in self._away.values())
        self._recent.add(steps, 0.0)
        self._dismissed.add(length, alike=all_dismissed)
        self._random.add(length, alike=all_dismissed and is_unable)
        if present and number > 1:
            self._works = True
        if present and epoch > self._epoch:
            self._works_by_epochs = True
        self._number = number
        self._epoch = epoch

    def unable_to_act(self, budget: Budget) -> str:
        """Return why the run ends before its budget is used up; "" if it does not."""
        found = self._random
        is_long = found.episodes >= SETTLED
        if budget.steps is not None:
            is_long = is_long and PARTS * found.steps >= budget.steps
        if budget.episodes is not None:
            is_long = is_long and PARTS * found.episodes >= budget.episodes
        if not is_long:
            return ""
        return f"no learner was able to act in {_last(found)}, so actions were random"

    def unable_at_end(self) -> str:
        """Return why a run with a used-up budget has failed; "" if it has not."""
        # A few episodes are no proof, however long they were.
        least = max(1, math.ceil(self._recent.weight), min(SETTLED, self._number))
        if self._random.episodes >= least:
            return f"no learner was able to act in {_last(self._random)}, so actions were random"
        if self._dismissed.episodes >= least:
            return f"all learners were dismissed in {_last(self._dismissed)}"
        works = self._works_by_epochs if self._epoch else self._works
        if self._number > 1 and not works and self._faults:
            return (
                f"no learner was able to learn in {counted(self._number, 'episode')} "
                "(each had a fault whenever it was to learn)"
            )
        return ""

    def most_frequent_fault(self) -> str:
        """Return the fault that is most frequent in the run, in words."""
        [(kind, count)] = self._faults.most_common(1)
        where, message = kind
        if len(message) > _LONGEST_FAULT:
            message = f"{message[:_LONGEST_FAULT]}..."
        total = counted(self._faults.total(), "fault")
        return f"{message!r} (in `{where}` of {self._first_learner[kind]!r}, {count} of {total})"


def watch_of(directory: Path, names: Sequence[str], *, upto: int | None = None) -> LearnerWatch:
    """Return the watch after the first `upto` episodes in the log of a run, or after all."""
    watch = LearnerWatch(names)
    episodes = read_episodes(directory, upto=upto)
    faults: dict[int, list[Any]] = {}
    for fault in read_faults(directory):
        faults.setdefault(fault.episode, []).append(fault)
    columns = zip(
        episodes.learners.tolist(),
        episodes.lengths.tolist(),
        episodes.steps.tolist(),
        episodes.epochs.tolist(),
        strict=True,
    )
    for number, (learner, length, steps, epoch) in enumerate(columns, 1):
        watch.add(
            number,
            learner,
            length=length,
            steps=steps,
            epoch=epoch,
            faults=faults.get(number, ()),
        )
    return watch


def _last(found: _Stretch) -> str:
    episodes = "episode" if found.episodes == 1 else f"{found.episodes:,} episodes"
    return f"the last {episodes} ({counted(found.steps, 'step')})"
