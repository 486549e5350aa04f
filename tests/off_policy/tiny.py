"""A task of two steps whose trajectories can be enumerated.

Policies as tables of probabilities.
"""

import itertools
from dataclasses import dataclass

import numpy as np

from esbas import Trajectory

TRANSITIONS = np.array([[[0.3, 0.7], [0.8, 0.2]], [[0.5, 0.5], [0.1, 0.9]]])  # (S, A, S)
REWARDS = np.array([[1.0, -2.0], [3.0, 0.5]])  # (S, A)
START = np.array([0.6, 0.4])
STOPS = np.array([0.25, 0.0])  # the probability that an episode ends after its first step, by state
GAMMA = 0.9


@dataclass(frozen=True)
class TablePolicy:
    probabilities: np.ndarray  # (S, A)

    def act(self, observation, rng):
        return int(rng.choice(len(self.probabilities[0]), p=self.probabilities[observation]))

    def log_probs(self, observations, actions):
        with np.errstate(divide="ignore"):
            return np.log(self.probabilities[observations, actions])


TARGET = TablePolicy(np.array([[0.9, 0.1], [0.2, 0.8]]))
FIRST = TablePolicy(np.array([[0.4, 0.6], [0.7, 0.3]]))
SECOND = TablePolicy(np.array([[0.8, 0.2], [0.5, 0.5]]))
ONLY_ZERO = TablePolicy(np.array([[1.0, 0.0], [1.0, 0.0]]))


def episode(states, actions, rewards, policy):
    """A trajectory whose recorded log-probabilities are those of the policy."""
    states = np.array(states)
    actions = np.array(actions)
    log_probs = policy.log_probs(states[:-1], actions)
    return Trajectory(
        states,
        actions,
        np.array(rewards, float),
        terminated=True,
        truncated=False,
        log_probs=log_probs,
    )


def every_trajectory(policy):
    """All trajectories and their probabilities under the policy."""
    found = []
    for s, a, following in itertools.product(range(2), repeat=3):
        reach = START[s] * policy.probabilities[s, a]
        found.append(
            (
                reach * STOPS[s] * TRANSITIONS[s, a, following],
                episode([s, following], [a], [REWARDS[s, a]], policy),
            )
        )
        goes_on = reach * (1 - STOPS[s]) * TRANSITIONS[s, a, following]
        for b, last in itertools.product(range(2), repeat=2):
            probability = (
                goes_on * policy.probabilities[following, b] * TRANSITIONS[following, b, last]
            )
            rewards = [REWARDS[s, a], REWARDS[following, b]]
            found.append((probability, episode([s, following, last], [a, b], rewards, policy)))
    return [(probability, each) for probability, each in found if probability > 0]


def exact_value(policy):
    return sum(
        probability * (each.rewards @ GAMMA ** np.arange(len(each)))
        for probability, each in every_trajectory(policy)
    )


def simulated(policy, count, seed):
    """Trajectories of the policy."""
    probabilities, trajectories = zip(*every_trajectory(policy), strict=True)
    drawn = np.random.default_rng(seed).choice(
        len(trajectories), size=count, p=np.array(probabilities)
    )
    return [trajectories[i] for i in drawn]
