"""Wrappers that number what consists of discrete parts: all combinations of actions or of observations are 0, ..., n - 1."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from esbas.errors import SpaceError
from esbas.spaces import is_discrete

MOST_ACTIONS = 10_000
MOST_OBSERVATIONS = 1_000_000


class DiscreteActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Numbers the actions of a task whose action space is MultiDiscrete, MultiBinary, or Discrete with another start than 0."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.action_space
        n = number_of(space) if isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary) else None
        if n is None:
            message = f"DiscreteActions needs MultiDiscrete, MultiBinary or Discrete actions, but the action space is {space}"
            raise SpaceError(f"{message}: remove it, or use DiscretizeAction for continuous actions")
        if n > MOST_ACTIONS:
            message = f"a task must have at most {MOST_ACTIONS:,} actions for DiscreteActions, but {space} has {_short(n)}"
            raise SpaceError(f"{message}: write a wrapper of your own with the actions that are needed, as module:Class")
        self._space = space
        self.action_space = spaces.Discrete(n)

    def action(self, action: Any) -> Any:
        """The action of the task with this number."""
        number, space = int(action), self._space
        if isinstance(space, spaces.Discrete):
            return number + int(space.start)
        digits = []
        for base in reversed(_bases(space)):
            number, digit = divmod(number, base)
            digits.append(digit)
        return (np.array(digits[::-1]).reshape(space.shape) + getattr(space, "start", 0)).astype(space.dtype)


class DiscreteObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Numbers the observations of a task whose observation space has discrete parts only.

    These are Discrete with any start, MultiDiscrete, MultiBinary, and Tuple and Dict of such parts.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        n = number_of(space)
        if n is None:
            message = f"DiscreteObservations needs observations with discrete parts only, but the observation space is {space}"
            raise SpaceError(f"{message}: remove it, or use DiscretizeObservation for vectors")
        if n > MOST_OBSERVATIONS:
            rule = f"a task must have at most {MOST_OBSERVATIONS:,} observations for DiscreteObservations"
            raise SpaceError(f"{rule}, but {space} has {_short(n)}: use FlattenObservation instead")
        self._space = space
        self.observation_space = spaces.Discrete(n)

    def observation(self, observation: Any) -> int:
        """The number of this observation."""
        return _number(self._space, observation)


def number_of(space: Any) -> int | None:
    """The number of elements of a space with discrete parts; None for other spaces."""
    if is_discrete(space):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return math.prod(_bases(space))
    if isinstance(space, spaces.Dict | spaces.Tuple):
        numbers = [number_of(part) for _, part in parts_of(space)]
        return None if None in numbers else math.prod(number for number in numbers if number is not None)
    return None


def parts_of(space: Any) -> list[tuple[Any, Any]]:
    """Key and space of each part of a Dict or Tuple."""
    return list(space.items()) if isinstance(space, spaces.Dict) else list(enumerate(space))


def _number(space: Any, element: Any) -> int:
    """The number of an element, 0, ..., `number_of(space)` - 1: its parts are digits, the last one changes fastest."""
    if is_discrete(space):
        return int(element) - int(space.start)
    number = 0
    if isinstance(space, spaces.Dict | spaces.Tuple):
        for key, part in parts_of(space):
            number = number * (number_of(part) or 0) + _number(part, element[key])
        return number
    digits = np.asarray(element) - getattr(space, "start", 0)
    for base, digit in zip(_bases(space), digits.ravel().tolist(), strict=True):
        number = number * base + int(digit)
    return number


def _bases(space: Any) -> list[int]:
    """The numbers of values of all components of a MultiDiscrete or MultiBinary."""
    return [2] * math.prod(space.shape) if isinstance(space, spaces.MultiBinary) else [int(n) for n in space.nvec.ravel()]


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 10^{math.log10(number):.0f}"
