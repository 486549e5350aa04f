"""Wrappers that number what consists of discrete parts.

All combinations of actions or of observations become 0, ..., n - 1.
"""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from esbas._internal.spaces import is_discrete
from esbas.errors import SpaceError

MOST_ACTIONS = 10_000
MOST_OBSERVATIONS = 1_000_000


class DiscreteActions(gymnasium.ActionWrapper[Any, Any, Any]):
    """Numbers the actions of an environment.

    Its action space is MultiDiscrete, MultiBinary, Discrete with another start than 0, or a Tuple
    or Dict of such parts.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.action_space
        n = number_of(space)
        if n is None:
            raise SpaceError(
                "DiscreteActions needs actions with discrete parts only, such as MultiDiscrete, "
                f"but the action space is {space}: remove it, or use DiscretizeAction for "
                "continuous actions."
            )
        if n > MOST_ACTIONS:
            raise SpaceError(
                f"An environment must have at most {MOST_ACTIONS:,} actions for DiscreteActions, "
                f"but {space} has {_short(n)}: write a wrapper with the actions that are needed, "
                "and pass it as module:Class."
            )
        self._space = space
        self.action_space = spaces.Discrete(n)

    def action(self, action: Any) -> Any:
        """Return the action of the environment with this number."""
        return _element(self._space, int(action))


class DiscreteObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Numbers the observations of an environment whose observation space has discrete parts only.

    These are Discrete with any start, MultiDiscrete, MultiBinary, and Tuple and Dict of such parts.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        n = number_of(space)
        if n is None:
            raise SpaceError(
                "DiscreteObservations needs observations with discrete parts only, "
                f"but the observation space is {space}: remove it, or use DiscretizeObservation "
                "for vectors."
            )
        if n > MOST_OBSERVATIONS:
            raise SpaceError(
                f"An environment must have at most {MOST_OBSERVATIONS:,} observations for "
                f"DiscreteObservations, but {space} has {_short(n)}: use FlattenObservation."
            )
        self._space = space
        self.observation_space = spaces.Discrete(n)

    def observation(self, observation: Any) -> int:
        """Return the number of this observation."""
        return _number(self._space, observation)


def number_of(space: Any) -> int | None:
    """Return the number of elements of a space with discrete parts; None for other spaces."""
    if is_discrete(space):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary):
        return math.prod(_bases(space))
    if isinstance(space, spaces.Dict | spaces.Tuple):
        product = 1
        for _, part in parts_of(space):
            number = number_of(part)
            if number is None:
                return None
            product *= number
        return product
    return None


def parts_of(space: Any) -> list[tuple[Any, Any]]:
    """Return key and space of each part of a Dict or Tuple."""
    return list(space.items()) if isinstance(space, spaces.Dict) else list(enumerate(space))


def _number(space: Any, element: Any) -> int:
    """Return the number of an element, 0, ..., `number_of(space)` - 1.

    Its parts are digits; the last one changes fastest.
    """
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


def _element(space: Any, number: int) -> Any:
    """Return the element with this number: the inverse of `_number`."""
    if is_discrete(space):
        return number + int(space.start)
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = parts_of(space)
        numbers = _digits(number, [number_of(part) or 1 for _, part in parts])
        found = {}
        for (key, part), each in zip(parts, numbers, strict=True):
            found[key] = _element(part, each)
        return found if isinstance(space, spaces.Dict) else tuple(found.values())
    digits = np.array(_digits(number, _bases(space))).reshape(space.shape)
    return (digits + getattr(space, "start", 0)).astype(space.dtype)


def _digits(number: int, bases: list[int]) -> list[int]:
    """Return the digits of a number; the last one changes fastest."""
    digits = []
    for base in reversed(bases):
        number, digit = divmod(number, base)
        digits.append(digit)
    return digits[::-1]


def _bases(space: Any) -> list[int]:
    """Return the numbers of values of all components of a MultiDiscrete or MultiBinary."""
    if isinstance(space, spaces.MultiBinary):
        return [2] * math.prod(space.shape)
    return [int(n) for n in space.nvec.ravel()]


def _short(number: int) -> str:
    return f"{number:,}" if number < 10**12 else f"about 10^{math.log10(number):.0f}"
