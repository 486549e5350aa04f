"""A learner of one's own beside one of ours, under ESBAS, on a Gymnasium task.

Run it with `python examples/own_learner.py`.
"""

from collections import Counter
from typing import Any

import gymnasium as gym
import numpy as np

import esbas
from esbas.learners import TabularQ


class MonteCarlo:
    """Every-visit Monte-Carlo control: the mean return behind each state and action, greedy with a little chance.

    Off-policy only roughly, as it averages over whatever others did; the selector finds out how good that is.
    """

    name, stationary = "Monte Carlo", False

    def __init__(self, states: int, actions: int) -> None:
        self.sums, self.visits = np.zeros((states, actions)), np.zeros((states, actions))
        self.learnt = 0

    def learn(self, data: esbas.TrajectorySet) -> None:
        """Add the returns of what is new since the last time."""
        for trajectory in data.since(self.learnt):
            value = 0.0
            for state, action, reward, *_ in reversed(list(trajectory.transitions())):
                value = reward + 0.95 * value
                self.sums[state, action] += value
                self.visits[state, action] += 1
        self.learnt = len(data)

    def policy(self) -> "MonteCarlo":
        """The learner is its own policy: it changes only inside `learn`."""
        return self

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        """The best action so far; an untried one first."""
        if rng.random() < 0.1:
            return int(rng.integers(self.sums.shape[1]))
        visits = self.visits[observation]
        return int(np.where(visits > 0, self.sums[observation] / np.maximum(visits, 1), np.inf).argmax())


def main() -> None:
    """2,000 episodes of a slippery frozen lake."""
    env = gym.make("FrozenLake-v1", map_name="4x4", is_slippery=True)
    rates = (0.02, 0.3)
    tables = [TabularQ(f"Q {rate}", states=16, actions=4, rate=rate, gamma=0.95) for rate in rates]
    portfolio = esbas.Portfolio([MonteCarlo(16, 4), *tables])
    selector = esbas.ESBAS(arms=portfolio.names, seed=0)
    epochs: dict[int, list[float]] = {}
    chosen: dict[int, Counter[str]] = {}
    for record in esbas.run(env, portfolio, selector, episodes=2047, objective=esbas.total_return(), seed=0):
        epochs.setdefault(record.epoch, []).append(record.value)
        chosen.setdefault(record.epoch, Counter())[record.arm] += 1
    for epoch, values in epochs.items():
        print(f"epoch {epoch:2d}: success {np.mean(values):.2f}, chosen {dict(chosen[epoch])}")


if __name__ == "__main__":
    main()
