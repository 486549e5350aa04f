"""Observations as rows of numbers, for learners that take vectors."""

import math
from typing import Any

import numpy as np

from esbas import spaces
from esbas.columns import Array
from esbas.errors import SpaceError


class Inputs:
    """Converts observations to vectors: integers are one-hot encoded, arrays are flattened.

    Args:
        space: Discrete, Box or another space of arrays.
        owner: the learner that needs the vectors, for error messages.
    """

    def __init__(self, space: Any, *, owner: str) -> None:
        self._labels = int(space.n) if spaces.is_discrete(space) else 0
        self._first = int(space.start) if self._labels else 0
        shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
        if not self._labels and (shape is None or dtype is None):
            raise SpaceError(
                f"the observations of {owner} must be Discrete, Box or another space of arrays, but are {space}: leave it out"
            )
        self.size = self._labels or math.prod(shape or ())  # d

    def __call__(self, observations: Array, dtype: type[np.floating[Any]] = np.float64) -> Array:
        """Vectors, (N, d), for observations, (N, ...)."""
        if not self._labels:
            return np.asarray(observations, dtype).reshape(len(observations), self.size)
        rows = np.zeros((len(observations), self.size), dtype)
        rows[np.arange(len(observations)), np.asarray(observations) - self._first] = 1
        return rows


def discrete_actions(space: Any, *, owner: str) -> int:
    """The number n of actions, which must be 0, 1, ..., n - 1."""
    if not (spaces.is_discrete(space) and int(space.start) == 0):
        raise SpaceError(f"the actions of {owner} must be 0, 1, ..., n - 1, but are {space}: leave it out")
    return int(space.n)
