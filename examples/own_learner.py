"""Your own learner in a portfolio with built-in learners: ESBAS on a Gymnasium task.

Run it with `python examples/own_learner.py`.
"""

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np

import esbas
from esbas.learners import EpsilonGreedy, TabularQ


class MonteCarlo:
    """Every-visit Monte Carlo control: the value of an action is the mean of the returns that followed it.

    It is not off-policy: from episodes of other learners, it estimates returns under their policies. The selector does not rely
    on these estimates; it measures how well the learner performs when it acts.
    """

    stationary = False

    def __init__(self, name: str, *, states: int, actions: int, gamma: float = 0.95, epsilon: float = 0.1) -> None:
        self.name, self.gamma, self.epsilon = name, gamma, epsilon
        self.sums, self.visits = np.zeros((states, actions)), np.zeros((states, actions))
        self.learnt = 0  # trajectories

    def learn(self, data: esbas.TrajectorySet) -> None:
        """Add the returns of the trajectories that are new since the last call."""
        for trajectory in data.since(self.learnt):
            value = 0.0
            for state, action, reward, *_ in reversed(list(trajectory.transitions())):
                value = reward + self.gamma * value
                self.sums[state, action] += value
                self.visits[state, action] += 1
        self.learnt = len(data)

    def policy(self) -> EpsilonGreedy:
        """Epsilon-greedy; actions that have never been taken go first."""
        values = np.where(self.visits > 0, self.sums / np.maximum(self.visits, 1), np.inf)  # (S, A)
        return EpsilonGreedy(lambda state: values[state], self.epsilon)

    def state_dict(self) -> dict[str, Any]:
        return {"sums": self.sums.copy(), "visits": self.visits.copy(), "learnt": self.learnt}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.sums, self.visits, self.learnt = state["sums"].copy(), state["visits"].copy(), state["learnt"]


def main() -> None:
    """Play 2,047 episodes (epochs 0 to 10) of FrozenLake and print the success rate and the choices of each epoch."""
    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    tables = [TabularQ(f"Q {rate}", states=16, actions=4, rate=rate, gamma=0.95) for rate in (0.02, 0.3)]
    portfolio = esbas.Portfolio([MonteCarlo("Monte Carlo", states=16, actions=4), *tables])
    selector = esbas.ESBAS(arms=portfolio.names, seed=0)
    values: dict[int, list[float]] = {}
    chosen: dict[int, Counter[str]] = {}
    for record in esbas.run(env, portfolio, selector, episodes=2047, objective=esbas.total_return(), seed=0):
        values.setdefault(record.epoch, []).append(record.value)
        chosen.setdefault(record.epoch, Counter())[record.arm] += 1
    for epoch in values:
        print(f"epoch {epoch:2d}: success {np.mean(values[epoch]):.2f}, chosen {dict(chosen[epoch])}")


if __name__ == "__main__":
    main()
