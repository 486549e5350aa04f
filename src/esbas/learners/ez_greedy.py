"""Temporally extended ε-greedy exploration, "εz-greedy" (Dabney, Ostrovski and Barreto, 2021)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import require
from esbas.learners.epsilon_greedy import EpsilonGreedy, action_probability, best_action

LONGEST = 10_000
"""The largest number of times that a random action is taken in a row, as in the paper."""


def check_exponent(zeta: float) -> None:
    """Raise an error unless this can be the exponent of a zeta distribution."""
    require(1 < zeta < math.inf, f"`zeta` must be finite and greater than 1, but got {zeta!r}.")


def draw_repetitions(zeta: float, rng: np.random.Generator) -> int:
    """Draw how often an action is taken: n with probability ∝ n^-zeta, but at most `LONGEST`."""
    return min(int(rng.zipf(zeta)), LONGEST)


@dataclass(frozen=True, slots=True)
class EZGreedy:
    """ε-greedy exploration that takes a random action several times in a row.

    At a free step, with probability ε, it draws a random action and a number n with probability
    ∝ n^-zeta. It takes this action at this step and at the next n - 1 steps of the episode,
    whatever it observes. Then the next step is free again. So it goes far where single random
    actions would cancel out. The smaller the exponent, the longer the repetitions; the paper uses
    2.

    What is being repeated belongs to one episode, so `start` returns a new object for each. The
    probability of an action depends on the actions before it, so there are no `log_probs`.

    Args:
        policy: the ε-greedy policy whose random actions are repeated.
        zeta: the exponent, greater than 1.
    """

    policy: EpsilonGreedy
    zeta: float

    def start(self) -> "EZGreedyEpisode":
        return EZGreedyEpisode(self)

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """Draw the first action of an episode. Call `act` of what `start` returns for the rest."""
        return self.start().act(observation, rng)


class EZGreedyEpisode:
    """An εz-greedy policy in one episode: it remembers what it is repeating."""

    def __init__(self, policy: EZGreedy) -> None:
        self._policy = policy
        self._repeated = 0  # the action that is being repeated
        self._left = 0  # how often it will be taken

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        action, _ = self.act_with_log_prob(observation, rng)
        return action

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[int, float]:
        """Return an action and its log-probability, given the episode so far.

        While an action is being repeated, its probability is 1. At a free step, it is that of the
        ε-greedy policy.
        """
        if self._left > 0:
            self._left -= 1
            return self._repeated, 0.0
        policy = self._policy.policy
        values = policy.values(observation)
        epsilon = policy.epsilon() if callable(policy.epsilon) else policy.epsilon
        if rng.random() < epsilon:
            action = int(rng.integers(len(values)))
            self._repeated = action
            self._left = draw_repetitions(self._policy.zeta, rng) - 1
        else:
            action = best_action(values, rng)
        return action, _log_prob(values, action, epsilon)


def _log_prob(values: Array, action: int, epsilon: float) -> float:
    """Return the log-probability of an action of an ε-greedy policy."""
    first = values.argmax()
    best = values == values[first]
    best[first] = True  # also if the value is NaN
    ties = int(best.sum())
    return math.log(action_probability(bool(best[action]), ties, epsilon, len(values)))
