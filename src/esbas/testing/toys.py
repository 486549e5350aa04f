"""Small environments in the manner of Gymnasium, with NumPy alone. Everything in them follows from `reset(seed=...)`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas.errors import require
from esbas.spaces import Discrete

Step = tuple[int, float, bool, bool, dict[str, Any]]


class Corridor:
    """A walk in a corridor: start at the left end, get 1 for reaching the right end, which ends the episode.

    Actions: 0 is a step to the left, 1 to the right; with probability `slip` the step goes the other way. After `max_steps` steps
    the episode is cut off.
    """

    def __init__(self, length: int = 5, *, slip: float = 0.1, max_steps: int = 50) -> None:
        require(length >= 2, "length >= 2", length=length)
        require(0 <= slip <= 1, "0 <= slip <= 1", slip=slip)
        require(max_steps >= 1, "max_steps >= 1", max_steps=max_steps)
        self.length, self.slip, self.max_steps = length, slip, max_steps
        self.observation_space, self.action_space = Discrete(length), Discrete(2)
        self._rng, self._place, self._steps = np.random.default_rng(0), 0, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """To the left end."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._place, self._steps = 0, 0
        return 0, {}

    def step(self, action: int) -> Step:
        """One step."""
        if action not in (0, 1):
            require(False, "an action is 0 or 1", action=action)
        goes_right = bool(action) != (self._rng.random() < self.slip)
        self._place = min(max(self._place + (1 if goes_right else -1), 0), self.length - 1)
        self._steps += 1
        arrived = self._place == self.length - 1
        return self._place, float(arrived), arrived, not arrived and self._steps >= self.max_steps, {}


class OneStep:
    """A bandit as an environment: one observation, one action, one reward.

    Args:
        means: the mean reward of each action.
        noise: the standard deviation of the rewards, which are normal.
    """

    def __init__(self, means: Sequence[float] = (0.2, 0.5, 0.8), *, noise: float = 0.1) -> None:
        require(len(means) >= 1, "there is an action", means=means)
        require(noise >= 0, "noise >= 0", noise=noise)
        self.means, self.noise = tuple(means), noise
        self.observation_space, self.action_space = Discrete(1), Discrete(len(means))
        self._rng = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """There is one observation: 0."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        return 0, {}

    def step(self, action: int) -> Step:
        """The action's reward, and the end."""
        require(self.action_space.contains(action), f"an action is one of 0, ..., {len(self.means) - 1}", action=action)
        return 0, self.means[action] + self.noise * float(self._rng.normal()), True, False, {}
