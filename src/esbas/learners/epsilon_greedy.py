"""Epsilon-greedy policies over the values of discrete actions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.columns import Array


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Takes the action with the highest value, the first one if several are equal; with probability ε a uniformly random action.

    Args:
        values: the values of all actions for an observation, (A,).
        epsilon: the probability of a random action: a number, or a function that returns it and is called at every step.
        batch_values: the same values for many observations, (N, ...) -> (N, A). Defaults to one call of `values` per observation.
    """

    values: Callable[[Any], Array]
    epsilon: float | Callable[[], float]
    batch_values: Callable[[Array], Array] | None = None

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """Draw one number to decide whether to explore and, only if so, a second one for the action."""
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        return int(rng.integers(len(values))) if rng.random() < epsilon else int(values.argmax())

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[int, float]:
        """Draw as `act` does."""
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        best = int(values.argmax())
        action = int(rng.integers(len(values))) if rng.random() < epsilon else best
        return action, math.log(action_probability(action == best, epsilon, len(values)))

    def log_probs(self, observations: Array, actions: Array) -> Array:
        if self.batch_values is not None:
            values = self.batch_values(observations)  # (N, A)
        else:
            values = np.array([self.values(observation) for observation in observations])
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        return action_log_probs(values.argmax(axis=1), actions, epsilon=epsilon, count=values.shape[1])


def action_probability(is_best: Any, epsilon: float, count: int) -> Any:
    """The probability ε / A of one of A actions, plus 1 - ε for the best one."""
    return epsilon / count + (1 - epsilon) * is_best


def action_log_probs(best: Array, actions: Array, *, epsilon: float, count: int) -> Array:
    """The log-probabilities, (N,), of actions (N,) if `best` (N,) are the best ones of 0 .. count - 1; -inf for others."""
    actions = np.asarray(actions)
    possible = (actions >= 0) & (actions < count)
    with np.errstate(divide="ignore"):  # log 0 = -inf
        return np.asarray(np.log(np.where(possible, action_probability(actions == best, epsilon, count), 0.0)))
