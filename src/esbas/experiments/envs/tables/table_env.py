"""Environments with discrete states and actions whose dynamics are a table of outcomes."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import gymnasium
from gymnasium import spaces

from esbas.errors import require


class Outcome(NamedTuple):
    """What an action can lead to."""

    probability: float
    state: int
    reward: float
    terminated: bool = False


class TableTask(gymnasium.Env[Any, Any]):
    """An environment from a table of outcomes. Observations are the states.

    Args:
        outcomes: for each state and action, the possible outcomes; their probabilities add up to 1.
        starts: the states in which an episode starts, drawn uniformly.
        max_steps: an episode is truncated after this many steps.
    """

    def __init__(self, outcomes: Sequence[Sequence[Sequence[Outcome]]], *, starts: Sequence[int], max_steps: int) -> None:
        require(max_steps >= 1, "max_steps >= 1", max_steps=max_steps)
        self.outcomes, self.starts, self.max_steps = outcomes, tuple(starts), max_steps
        self.observation_space = spaces.Discrete(len(outcomes))
        self.action_space = spaces.Discrete(len(outcomes[0]))
        self._limits = [[list(accumulate(each.probability for each in row))[:-1] for row in rows] for rows in outcomes]
        self._state = self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._state, self._steps = self.starts[int(self.np_random.integers(len(self.starts)))], 0
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        drawn = bisect_right(self._limits[self._state][action], self.np_random.random())
        _, self._state, reward, terminated = self.outcomes[self._state][action][drawn]
        self._steps += 1
        return self._state, reward, terminated, not terminated and self._steps >= self.max_steps, {}
