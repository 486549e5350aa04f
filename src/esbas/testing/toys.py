"""Small environments in the manner of Gymnasium, with NumPy alone.

Episodes depend on `reset(seed=...)` alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas._internal.spaces import Discrete
from esbas.errors import InvalidValueError, require

Step = tuple[int, float, bool, bool, dict[str, Any]]


class Corridor:
    """A walk in a corridor, from the left end to the right end.

    Reaching the right end has the reward 1 and ends the episode. Action 0 is a step to the left, 1
    to the right; with probability `slip` the step goes the other way. The info of each step has
    "is_success".

    Args:
        length: the number of positions.
        slip: the probability of a step in the other direction.
        max_episode_steps: the steps after which an episode is truncated.
    """

    def __init__(self, length: int = 5, *, slip: float = 0.1, max_episode_steps: int = 50) -> None:
        require(length >= 2, f"`length` must be at least 2, but got {length!r}.")
        require(0 <= slip <= 1, f"`slip` must be between 0 and 1, but got {slip!r}.")
        require(
            max_episode_steps >= 1,
            f"`max_episode_steps` must be at least 1, but got {max_episode_steps!r}.",
        )
        self.length = length
        self.slip = slip
        self.max_episode_steps = max_episode_steps
        self.observation_space = Discrete(length)
        self.action_space = Discrete(2)
        self._rng = np.random.default_rng(0)
        self._position = 0
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start at the left end."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._position = 0
        self._steps = 0
        return 0, {}

    def step(self, action: int) -> Step:
        """Go one step to the left or to the right."""
        if action not in (0, 1):
            raise InvalidValueError(f"Actions must be 0 or 1, but got {action!r}.")
        slips = self._rng.random() < self.slip
        goes_right = bool(action) != slips
        step = 1 if goes_right else -1
        self._position = min(max(self._position + step, 0), self.length - 1)
        self._steps += 1
        arrived = self._position == self.length - 1
        truncated = not arrived and self._steps >= self.max_episode_steps
        info = {"is_success": arrived}
        return self._position, float(arrived), arrived, truncated, info


class OneStep:
    """A bandit as an environment: one observation, one action, one reward.

    Args:
        means: the mean reward of each action.
        noise: the standard deviation of the rewards, which are normal.
    """

    def __init__(self, means: Sequence[float] = (0.2, 0.5, 0.8), *, noise: float = 0.1) -> None:
        require(len(means) >= 1, "`means` must not be empty.")
        require(noise >= 0, f"`noise` must be at least 0, but got {noise!r}.")
        self.means = tuple(means)
        self.noise = noise
        self.observation_space = Discrete(1)
        self.action_space = Discrete(len(means))
        self._rng = np.random.default_rng(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Start an episode. The only observation is 0."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        return 0, {}

    def step(self, action: int) -> Step:
        """Return the action's reward, and end the episode."""
        if not self.action_space.contains(action):
            largest = len(self.means) - 1
            raise InvalidValueError(f"Actions must be 0, ..., {largest}, but got {action!r}.")
        reward = self.means[action] + self.noise * float(self._rng.normal())
        return 0, reward, True, False, {}
