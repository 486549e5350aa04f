"""Epsilon-greedy policies over the values of discrete actions."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal.columns import Array


@dataclass(frozen=True, slots=True)
class EpsilonGreedy:
    """Takes the action with the highest value, and with probability ε a random action.

    If several actions have the highest value, it takes a random one of them.

    Args:
        values: the values of all actions for an observation, (A,).
        epsilon: the probability of a random action: a number, or a function that returns it and is
            called at every step.
        batch_values: the same values for many observations, (N, ...) -> (N, A). Defaults to one
            call of `values` per observation.
    """

    values: Callable[[Any], Array]
    epsilon: float | Callable[[], float]
    batch_values: Callable[[Array], Array] | None = None

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """Draw an action.

        One number decides whether to explore. A second one is drawn only to explore, or if several
        actions are the best.
        """
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        return _draw(values, epsilon, rng)

    def act_batch(self, observations: Array, rng: np.random.Generator) -> Array:
        """Return the actions for many observations, (N,), drawn in order as `act` draws them."""
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        actions = [_draw(values, epsilon, rng) for values in self._values_of(observations)]
        return np.array(actions, np.int64)

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[int, float]:
        """Draw as `act` does."""
        values = self.values(observation)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        first = int(values.argmax())
        action = first
        best = (values == values[first]).nonzero()[0]
        if rng.random() < epsilon:
            action = int(rng.integers(len(values)))
        elif len(best) > 1:
            action = int(best[int(rng.random() * len(best))])
        is_best = action == first or (len(best) > 1 and bool(values[action] == values[first]))
        ties = len(best) or 1  # none is equal to the highest value if that is NaN
        return action, math.log(action_probability(is_best, ties, epsilon, len(values)))

    def log_probs(self, observations: Array, actions: Array) -> Array:
        values = self._values_of(observations)
        epsilon = self.epsilon() if callable(self.epsilon) else self.epsilon
        best = values == values.max(axis=1, keepdims=True)
        best[np.arange(len(values)), values.argmax(axis=1)] = True  # also if the value is NaN
        return action_log_probs(best, actions, epsilon=epsilon)

    def _values_of(self, observations: Array) -> Array:
        """Return the values of all actions for many observations, (N, A)."""
        if self.batch_values is not None:
            return self.batch_values(observations)
        return np.array([self.values(observation) for observation in observations])


def _draw(values: Array, epsilon: float, rng: np.random.Generator) -> int:
    """Draw an action, given the values of all actions, (A,)."""
    if rng.random() < epsilon:
        return int(rng.integers(len(values)))
    return best_action(values, rng)


def best_action(values: Array, rng: np.random.Generator) -> int:
    """Return the action with the highest value; of several, a random one."""
    first = values.argmax()
    best = (values == values[first]).nonzero()[0]  # empty if the value is NaN
    return int(best[int(rng.random() * len(best))]) if len(best) > 1 else int(first)


def action_probability(is_best: Any, ties: Any, epsilon: float, count: int) -> Any:
    """Return the probability of one of A actions: ε / A, plus (1 - ε) / n for the n best ones."""
    return epsilon / count + (1 - epsilon) * is_best / ties


def action_log_probs(best: Array, actions: Array, *, epsilon: float) -> Array:
    """Return the log-probabilities of actions, (N,); -inf for actions that do not exist.

    Args:
        best: which actions 0, 1, ... are the best ones, (N, A).
        actions: the actions, (N,).
        epsilon: the probability of a random action.
    """
    actions = np.asarray(actions)
    count = best.shape[1]
    possible = (actions >= 0) & (actions < count)
    is_best = best[np.arange(len(best)), np.where(possible, actions, 0)]
    probabilities = action_probability(is_best, best.sum(axis=1), epsilon, count)
    with np.errstate(divide="ignore"):  # log 0 = -inf
        return np.asarray(np.log(np.where(possible, probabilities, 0.0)))
