"""What the core needs of Gymnasium's spaces, without importing Gymnasium."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Discrete:
    """The integers start, ..., start + n - 1; equal to `gymnasium.spaces.Discrete(n, start=start)` for `same`."""

    n: int
    start: int = 0

    def contains(self, x: Any) -> bool:
        """Whether x is one of the integers."""
        return membership(self)(x)

    def sample(self, rng: np.random.Generator) -> int:
        """One of the integers, uniformly."""
        return int(rng.integers(self.n)) + self.start


def is_discrete(space: Any) -> bool:
    """Whether the space is a range of integers."""
    return hasattr(space, "n") and hasattr(space, "start")


def same(one: Any, other: Any) -> bool:
    """Whether two spaces are equal, whoever made them."""
    if is_discrete(one) and is_discrete(other):
        return int(one.n) == int(other.n) and int(one.start) == int(other.start)
    return bool(one == other)


def membership(space: Any) -> Callable[[Any], bool]:
    """A fast test of whether an action lies in the space."""
    if not is_discrete(space):
        return lambda action: bool(space.contains(action))
    low, high = int(space.start), int(space.start) + int(space.n)

    def contains(action: Any) -> bool:
        try:
            return low <= operator.index(action) < high
        except TypeError:  # NaN, a float, a list
            return False

    return contains


def allowed_actions(space: Any) -> Any:
    """What an action must be `in`: a range of integers, or the space itself, or, without a space, None."""
    return range(int(space.start), int(space.start) + int(space.n)) if is_discrete(space) else space


def plain_action(chosen: Any, allowed: Any) -> Any:
    """What a policy chose (such as a tensor or a list) as an integer or an array, depending on the `allowed_actions`.

    None if it is not an integer where integers are allowed.
    """
    if isinstance(allowed, range):
        try:
            return operator.index(chosen)
        except TypeError:
            return None
    return chosen if getattr(allowed, "shape", None) is None else np.asarray(chosen, allowed.dtype)


def uniform_log_prob(space: Any) -> float:
    """The log-probability (log-density) of any action under the uniform distribution; NaN where there is none."""
    if is_discrete(space):
        return -math.log(int(space.n))
    low, high = getattr(space, "low", None), getattr(space, "high", None)
    if low is None or high is None or not (np.isfinite(low).all() and np.isfinite(high).all()):
        return math.nan
    return -float(np.log(np.asarray(high, float) - np.asarray(low, float)).sum())


def random_action(space: Any, rng: np.random.Generator) -> Any:
    """An action drawn uniformly with the given generator."""
    if is_discrete(space):
        return int(rng.integers(int(space.n))) + int(space.start)
    space.seed(int(rng.integers(2**31)))
    return space.sample()
