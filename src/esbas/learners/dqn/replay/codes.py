"""Numbers for observations, so that their visits can be counted."""

from typing import Any

import numpy as np

from esbas import seeding
from esbas._internal import spaces
from esbas._internal.columns import Array

BITS = 16
LARGEST_BOUND = 1e6  # bounds that are larger say nothing about the size of observations


class ObservationCodes:
    """Gives each observation a number: a label itself, and the SimHash of an array.

    SimHash (Charikar, 2002; for exploration Tang et al., 2017): bit i is whether a_i · x > 0, where
    the numbers in a_i are drawn from N(0, 1), always the same. So arrays with a small angle between
    them mostly have the same code. x is the flattened observation, each number scaled to [-1, 1] by
    its bounds if it has any, followed by a 1. With this 1, the bits also tell apart short and long
    vectors in the same direction, which matters if there are few numbers.

    Args:
        space: of the observations: numbers from the start of a Discrete space, or arrays.
    """

    def __init__(self, space: Any) -> None:
        self._labels: range | None = None
        if spaces.is_discrete(space):
            self._labels = spaces.allowed_actions(space)
            self.count = len(self._labels)
            return
        self.count = 2**BITS
        self._center, self._scale = _scaling(space)
        rng = seeding.generator(0, "observation codes")
        self._directions = rng.standard_normal((BITS, len(self._center) + 1))  # (bits, x)
        self._values = 2 ** np.arange(BITS)  # of the bits

    def of(self, observation: Array) -> int:
        """Return the code, from 0 to `count` - 1."""
        if self._labels is not None:
            return int(observation) - self._labels.start
        x = (observation.reshape(-1) - self._center) / self._scale
        sides = self._directions[:, :-1] @ x + self._directions[:, -1] > 0
        return int(self._values @ sides)


def _scaling(space: Any) -> tuple[Array, Array]:
    """Return by which number each one of an observation is shifted, and by which divided."""
    size = int(np.prod(space.shape))
    low = np.zeros(size)
    high = np.ones(size)
    if hasattr(space, "low"):
        low = np.asarray(space.low, float).reshape(-1)
        high = np.asarray(space.high, float).reshape(-1)
    bounded = (low > -LARGEST_BOUND) & (high < LARGEST_BOUND) & (low < high)
    low = np.where(bounded, low, -1.0)
    high = np.where(bounded, high, 1.0)
    return (low + high) / 2, (high - low) / 2
