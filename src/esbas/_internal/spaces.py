"""What the core needs of Gymnasium's spaces, without importing Gymnasium."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Discrete:
    """The integers start, ..., start + n - 1.

    For `same`, it is equal to `gymnasium.spaces.Discrete(n, start=start)`.
    """

    n: int
    start: int = 0

    def contains(self, x: Any) -> bool:
        """Return whether x is one of the integers."""
        return membership(self)(x)

    def sample(self, rng: np.random.Generator) -> int:
        """Draw one of the integers, uniformly."""
        return int(rng.integers(self.n)) + self.start


def is_discrete(space: Any) -> bool:
    """Return whether the space is a range of integers."""
    return hasattr(space, "n") and hasattr(space, "start")


def is_text(space: Any) -> bool:
    """Return whether the elements are texts."""
    dtype = getattr(space, "dtype", None)
    return dtype is not None and np.dtype(dtype).kind == "U"


def is_vector(env: Any) -> bool:
    """Return whether this is a vector of environments that are stepped together."""
    return hasattr(env, "num_envs") and hasattr(env, "single_action_space")


def same(one: Any, other: Any) -> bool:
    """Return whether two spaces are equal, those of Gymnasium and of this module included."""
    if is_discrete(one) and is_discrete(other):
        return int(one.n) == int(other.n) and int(one.start) == int(other.start)
    return bool(one == other)


def membership(space: Any) -> Callable[[Any], bool]:
    """Return a fast test of whether an action is in the space."""
    if not is_discrete(space):
        return lambda action: bool(space.contains(action))
    low = int(space.start)
    high = int(space.start) + int(space.n)

    def contains(action: Any) -> bool:
        try:
            return low <= operator.index(action) < high
        except TypeError:  # NaN, a float, a list
            return False

    return contains


def allowed_actions(space: Any) -> Any:
    """Return what an action must be `in`: a range of integers, or the space itself.

    Without a space, it is None.
    """
    if not is_discrete(space):
        return space
    start = int(space.start)
    return range(start, start + int(space.n))


def plain_action(chosen: Any, allowed: Any) -> Any:
    """Convert what a policy chose, such as a tensor or a list, to an integer or an array.

    Which of them depends on the `allowed_actions`. The result is None if integers are allowed and
    this is not one.
    """
    if isinstance(allowed, range):
        try:
            return operator.index(chosen)
        except TypeError:
            return None
    if getattr(allowed, "shape", None) is None:
        return chosen
    return np.asarray(chosen, allowed.dtype)


def uniform_log_prob(space: Any) -> float:
    """Return the log-probability (log-density) of any action under the uniform distribution.

    NaN where there is no such distribution.
    """
    if is_discrete(space):
        return -math.log(int(space.n))
    low = getattr(space, "low", None)
    high = getattr(space, "high", None)
    if low is None or high is None or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return math.nan
    return -float(np.log(np.asarray(high, float) - np.asarray(low, float)).sum())


def random_action(space: Any, rng: np.random.Generator) -> Any:
    """Draw an action uniformly."""
    if is_discrete(space):
        return int(rng.integers(int(space.n))) + int(space.start)
    space.seed(int(rng.integers(2**31)))
    return space.sample()
