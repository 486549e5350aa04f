"""Your own learner in a portfolio with built-in learners: ESBAS on a Gymnasium environment.

Run it with `python examples/own_learner.py`.
"""

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np

import esbas
from esbas.learners import EpsilonGreedy, TabularQ


class MonteCarlo:
    """Every-visit Monte Carlo control: an action's value is the mean of the returns that followed.

    It is not off-policy: from episodes of other learners, it estimates returns under their
    policies. The selector does not rely on these estimates; it measures how well the learner
    performs when it acts.
    """

    stationary = False

    def __init__(
        self, name: str, *, states: int, actions: int, gamma: float = 0.95, epsilon: float = 0.1
    ) -> None:
        self.name = name
        self.gamma = gamma
        self.epsilon = epsilon
        self.sums = np.zeros((states, actions))
        self.visits = np.zeros((states, actions))
        self.learnt = 0  # trajectories

    def learn(self, data: esbas.TrajectorySet) -> None:
        """Add the returns of the trajectories that are new since the last call."""
        for trajectory in data.since(self.learnt):
            value = 0.0
            for transition in reversed(list(trajectory.transitions())):
                state, action, reward, *_ = transition
                value = reward + self.gamma * value
                self.sums[state, action] += value
                self.visits[state, action] += 1
        self.learnt = len(data)

    def policy(self) -> EpsilonGreedy:
        """Return an epsilon-greedy policy, which prefers actions that have never been taken."""
        values = np.where(self.visits > 0, self.sums / np.maximum(self.visits, 1), np.inf)  # (S, A)
        return EpsilonGreedy(lambda state: values[state], self.epsilon)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums.copy(), "visits": self.visits.copy(), "learnt": self.learnt}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums = state["sums"].copy()
        self.visits = state["visits"].copy()
        self.learnt = state["learnt"]


def main() -> None:
    """Play 2,047 episodes of FrozenLake, and print success and choices of each epoch (0 to 10)."""
    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    learners: list[esbas.Learner] = [
        MonteCarlo("Monte Carlo", states=16, actions=4),
        TabularQ.for_env(env, name="Q 0.02", learning_rate=0.02, gamma=0.95),
        TabularQ.for_env(env, name="Q 0.3", learning_rate=0.3, gamma=0.95),
    ]
    values: dict[int, list[float]] = {}
    chosen: dict[int, Counter[str]] = {}
    for record in esbas.run(env, learners, esbas.ESBAS, episodes=2047, objective="return", seed=0):
        values.setdefault(record.epoch, []).append(record.value)
        chosen.setdefault(record.epoch, Counter())[record.learner] += 1
    for epoch in values:
        success = np.mean(values[epoch])
        print(f"epoch {epoch:2d}: success {success:.2f}, chosen {dict(chosen[epoch])}")


if __name__ == "__main__":
    main()
