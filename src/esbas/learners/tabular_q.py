"""Q-learning with a table (Watkins, 1989), for discrete observations and actions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from esbas.errors import require
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.spaces import Discrete
from esbas.trajectory import TrajectorySet, Transition

Schedule = float | Callable[[int], float]


def q_update(q: float, rate: float, reward: float, gamma: float, best_next: float) -> float:
    """Q + rate (r + γ max_a' Q' - Q)."""
    return q + rate * (reward + gamma * best_next - q)


class TabularQ:
    """Learns from each transition; its policy is a live view of the table.

    The learning rate `rate` and the exploration `epsilon` are numbers or functions of the number of the episode, from 1.
    """

    stationary = False

    def __init__(
        self, name: str, *, states: int, actions: int, rate: Schedule = 0.1, gamma: float = 0.99, epsilon: Schedule = 0.1
    ) -> None:
        require(states >= 1 and actions >= 1, "states >= 1 and actions >= 1", states=states, actions=actions)
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        self.name, self.gamma = name, gamma
        self.observation_space, self.action_space = Discrete(states), Discrete(actions)
        self._rate, self._epsilon = rate, epsilon
        self.table, self._episode = np.zeros((states, actions)), 1

    def policy(self) -> EpsilonGreedy:
        rows = self.table.__getitem__  # works for one observation and for many
        epsilon = self._epsilon(self._episode) if callable(self._epsilon) else self._epsilon
        return EpsilonGreedy(rows, epsilon, batch_values=rows)

    def greedy_policy(self) -> EpsilonGreedy:
        rows = self.table.__getitem__
        return EpsilonGreedy(rows, 0.0, batch_values=rows)

    def step(self, transition: Transition) -> None:
        """Update once. The next value counts unless the episode terminated, so it does after a truncation."""
        s, a, terminated = transition.observation, transition.action, transition.terminated
        best_next = 0.0 if terminated else self.table[transition.next_observation].max()
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        self.table[s, a] = q_update(self.table[s, a], rate, transition.reward, self.gamma, best_next)
        self._episode += terminated or transition.truncated

    def learn(self, data: TrajectorySet) -> None:
        """Step through the new trajectories: this learner has seen `episode - 1` of them."""
        for trajectory in data.since(self._episode - 1):
            for transition in trajectory.transitions():
                self.step(transition)

    def state_dict(self) -> dict[str, Any]:
        return {"table": self.table.copy(), "episode": self._episode}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.table[:], self._episode = state["table"], state["episode"]
