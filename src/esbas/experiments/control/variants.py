"""Learners for ablations.

One learns from its own episodes only, the other is good in a part of the states.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas.learner import Learner, Policy
from esbas.learners import TabularQ
from esbas.training.policies.scoring import greedy
from esbas.trajectory import Transition


class OwnData:
    """A learner that ignores the episodes of others.

    It learns from an episode if its policy was started for it.
    """

    stationary = False

    def __init__(self, learner: Any) -> None:
        self.name = learner.name
        self.learner = learner
        self._acting = False
        self.observation_space = learner.observation_space
        self.action_space = learner.action_space

    def policy(self) -> "_Started":
        return _Started(self, self.learner.policy())

    def greedy_policy(self) -> Policy:
        return greedy(self.learner)

    def step(self, transition: Transition) -> None:
        if self._acting:
            self.learner.step(transition)
            self._acting = not (transition.terminated or transition.truncated)

    def began(self) -> None:
        """Note that the next episode is its own."""
        self._acting = True


class _Started:
    """A policy that reports the start of an episode."""

    def __init__(self, owner: OwnData, policy: Policy) -> None:
        self._owner = owner
        self._policy = policy

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        return self._policy.act(observation, rng)

    def start(self) -> Policy:
        self._owner.began()
        start = getattr(self._policy, "start", None)
        if start is None:
            return self._policy
        return start() or self._policy


class Specialist(TabularQ):
    """Q-learning that acts at random outside its own states, though it learns from all.

    Args:
        name: the name of the learner.
        observation_space, action_space: of the environment, discrete.
        own: the first of its own states, and the first one after them.
        learning_rate, gamma, epsilon: see `TabularQ`.
    """

    def __init__(
        self,
        name: str,
        *,
        observation_space: Any,
        action_space: Any,
        own: Sequence[int],
        learning_rate: float = 0.1,
        gamma: float = 0.99,
        epsilon: float = 0.1,
    ) -> None:
        super().__init__(
            name,
            states=int(observation_space.n),
            actions=int(action_space.n),
            learning_rate=learning_rate,
            gamma=gamma,
            epsilon=epsilon,
        )
        self._own = range(*own)

    def policy(self) -> Any:
        return _PartlyRandom(super().policy(), self._own, self.action_space.n)

    def greedy_policy(self) -> Any:
        return _PartlyRandom(super().greedy_policy(), self._own, self.action_space.n)


class _PartlyRandom:
    """A policy that draws actions uniformly outside a range of states."""

    def __init__(self, policy: Policy, own: range, actions: int) -> None:
        self._policy = policy
        self._own = own
        self._actions = actions

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        if int(observation) in self._own:
            return self._policy.act(observation, rng)
        return int(rng.integers(self._actions))


def separate(learners: Sequence[Learner]) -> list[Learner]:
    """Return learners that share no data."""
    return [OwnData(learner) for learner in learners]
