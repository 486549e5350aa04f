"""Observations as rows of numbers, for learners that take vectors."""

import math
from typing import Any

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
from esbas.errors import SpaceError


class Inputs:
    """Converts observations to vectors: integers are one-hot encoded, arrays are flattened.

    Args:
        space: Discrete, Box or another space of arrays.
        owner: the learner that needs the vectors, for error messages.
    """

    def __init__(self, space: Any, *, owner: str) -> None:
        self._one_hot = spaces.is_discrete(space)
        if self._one_hot:
            self._first = int(space.start)
            self.size = int(space.n)  # d
            return
        shape = getattr(space, "shape", None)
        if shape is None or getattr(space, "dtype", None) is None:
            raise SpaceError(
                f"The observations of {owner} must be Discrete, Box or another space of arrays, "
                f"but are {space}: leave this learner out."
            )
        self.size = math.prod(shape)

    def __call__(self, observations: Array, dtype: type[np.floating[Any]] = np.float64) -> Array:
        """Return vectors, (N, d), for observations, (N, ...)."""
        if not self._one_hot:
            return np.asarray(observations, dtype).reshape(len(observations), self.size)
        rows = np.zeros((len(observations), self.size), dtype)
        rows[np.arange(len(observations)), np.asarray(observations) - self._first] = 1
        return rows


def discrete_actions(space: Any, *, owner: str) -> int:
    """Return the number n of actions, which must be 0, 1, ..., n - 1."""
    if not (spaces.is_discrete(space) and int(space.start) == 0):
        raise SpaceError(
            f"The actions of {owner} must be 0, 1, ..., n - 1, but are {space}: "
            "leave this learner out."
        )
    return int(space.n)
