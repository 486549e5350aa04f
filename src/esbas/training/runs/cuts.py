"""Episodes of a training that were cut: the environment did not end them."""

from collections.abc import Iterable
from typing import Any

import gymnasium

from esbas.loop import length_of_cut, may_be_long
from esbas.training.config import TrainingConfig


class CutEpisodes:
    """Follows how long the episodes of a run are, and whether any was cut.

    It is known from the log alone, so a run that continues comes to the same result.

    Args:
        config: of the training.
        env: the environment.

    Attributes:
        longest: the steps of the longest episode that was not cut.
        any: whether an episode was cut.
        is_endless: whether episodes were cut at the end of the budget, and no other was played: how
            long an episode is, is not known.
    """

    def __init__(self, config: TrainingConfig, env: Any) -> None:
        self._limit = config.max_episode_steps
        self._budget = config.steps if may_be_long(env) else None
        self._steps = 0
        self.longest = 0
        self.any = False
        self.is_endless = False
        self._has_length = False

    def add(self, length: int) -> None:
        """Add the length of the next episode."""
        if self._is_cut(length):
            self.any = True
        else:
            self.longest = max(self.longest, length)
        if self.longest or length == self._limit:
            self._has_length = True
        self.is_endless = self.any and not self._has_length
        self._steps += length

    def add_all(self, lengths: Iterable[int]) -> None:
        """Add the lengths of several episodes."""
        for length in lengths:
            self.add(length)

    def limited(self, env: Any, limit: int) -> Any:
        """Return the environment for evaluations, with a time limit if any episode was cut.

        Otherwise, a policy that does not end an episode is stuck.
        """
        return gymnasium.wrappers.TimeLimit(env, limit) if self.any else env

    def _is_cut(self, length: int) -> bool:
        if length == self._limit:
            return True
        if self._budget is None or self._steps + length < self._budget:
            return False
        return length == length_of_cut(self._budget, self._steps)
