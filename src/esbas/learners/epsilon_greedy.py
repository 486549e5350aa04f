"""Epsilon-greedy policies over the values of discrete actions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas.columns import Array


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Takes the action with the highest value, a random one of them if several are equal; with probability ε any random action.

    Args:
        values: the values of all actions for an observation, (A,).
        epsilon: the probability of a random action: a number, or a function that returns it and is called at every step.
        batch_values: the same values for many observations, (N, ...) -> (N, A). Defaults to one call of `values` per observation.
    """

    values: Callable[[Any], Array]
    epsilon: float | Callable[[], float]
    batch_values: Callable[[Array], Array] | None = None

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """Draw one number to decide whether to explore; only then, or if several actions are best, draw a second one."""
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        if rng.random() < epsilon:
            return int(rng.integers(len(values)))
        first = values.argmax()
        best = (values == values[first]).nonzero()[0]  # empty if the value is NaN
        return int(best[int(rng.random() * len(best))]) if len(best) > 1 else int(first)

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[int, float]:
        """Draw as `act` does."""
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        first = action = int(values.argmax())
        best = (values == values[first]).nonzero()[0]
        if rng.random() < epsilon:
            action = int(rng.integers(len(values)))
        elif len(best) > 1:
            action = int(best[int(rng.random() * len(best))])
        is_best = action == first or (len(best) > 1 and bool(values[action] == values[first]))
        return action, math.log(action_probability(is_best, len(best) or 1, epsilon, len(values)))

    def log_probs(self, observations: Array, actions: Array) -> Array:
        if self.batch_values is not None:
            values = self.batch_values(observations)  # (N, A)
        else:
            values = np.array([self.values(observation) for observation in observations])
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        best = values == values.max(axis=1, keepdims=True)
        best[np.arange(len(values)), values.argmax(axis=1)] = True  # also if the value is NaN
        return action_log_probs(best, actions, epsilon=epsilon)


def action_probability(is_best: Any, ties: Any, epsilon: float, count: int) -> Any:
    """The probability ε / A of one of A actions, plus (1 - ε) / n for each of the n best ones."""
    return epsilon / count + (1 - epsilon) * is_best / ties


def action_log_probs(best: Array, actions: Array, *, epsilon: float) -> Array:
    """The log-probabilities, (N,), of actions (N,), given which actions 0, 1, ... are the best ones, (N, A); -inf for others."""
    actions, count = np.asarray(actions), best.shape[1]
    possible = (actions >= 0) & (actions < count)
    is_best = best[np.arange(len(best)), np.where(possible, actions, 0)]
    with np.errstate(divide="ignore"):  # log 0 = -inf
        return np.asarray(np.log(np.where(possible, action_probability(is_best, best.sum(axis=1), epsilon, count), 0.0)))
