"""Environments with discrete states and actions whose dynamics are a table of outcomes."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import gymnasium
from gymnasium import spaces

from esbas.errors import require


class TableOutcome(NamedTuple):
    """What an action can lead to."""

    probability: float
    state: int
    reward: float
    terminated: bool = False


class TableEnv(gymnasium.Env[Any, Any]):
    """An environment from a table of outcomes. Observations are the states.

    Args:
        outcomes: for each state and action, the possible outcomes; their probabilities add up to 1.
        starts: the states in which an episode starts, drawn uniformly.
        max_episode_steps: an episode is truncated after this many steps.
    """

    def __init__(
        self,
        outcomes: Sequence[Sequence[Sequence[TableOutcome]]],
        *,
        starts: Sequence[int],
        max_episode_steps: int,
    ) -> None:
        require(
            max_episode_steps >= 1,
            f"`max_episode_steps` must be at least 1, but got {max_episode_steps!r}.",
        )
        self.outcomes = outcomes
        self.starts = tuple(starts)
        self.max_episode_steps = max_episode_steps
        self.observation_space = spaces.Discrete(len(outcomes))
        self.action_space = spaces.Discrete(len(outcomes[0]))
        self._limits = [[_limits(row) for row in rows] for rows in outcomes]
        self._state = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._state = self.starts[int(self.np_random.integers(len(self.starts)))]
        self._steps = 0
        return self._state, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        drawn = bisect_right(self._limits[self._state][action], self.np_random.random())
        _, self._state, reward, terminated = self.outcomes[self._state][action][drawn]
        self._steps += 1
        truncated = not terminated and self._steps >= self.max_episode_steps
        return self._state, reward, terminated, truncated, {}


def _limits(outcomes: Sequence[TableOutcome]) -> list[float]:
    """Return the cumulative probabilities, without the last one: a draw always has an outcome."""
    cumulative = list(accumulate(outcome.probability for outcome in outcomes))
    return cumulative[:-1]
