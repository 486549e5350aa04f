"""ε-greedy policies over values of discrete actions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from esbas.columns import Array


class EpsilonGreedy:
    """The best action, the first of equals; with probability ε one of all actions, uniformly.

    Args:
        values: the values of all actions for an observation, (A,).
        epsilon: the probability of a random action now.
    """

    def __init__(self, values: Callable[[Any], Array], epsilon: Callable[[], float]) -> None:
        self._values, self._epsilon = values, epsilon

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """One draw decides whether to explore, a second one, if so, on the action."""
        values = self._values(observation)
        return int(rng.integers(len(values))) if rng.random() < self._epsilon() else int(values.argmax())

    def probability(self, observation: Any, action: int) -> float:
        """ε / A, and 1 - ε more for the best action."""
        values, epsilon = self._values(observation), self._epsilon()
        return epsilon / len(values) + (1 - epsilon if action == int(values.argmax()) else 0.0)
