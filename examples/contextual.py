"""Contextual selection: two kinds of start states, and a good learner for each kind.

A robot starts in the middle of a corridor. The first observation shows at which end a parcel is
waiting. One learner always drives left and the other one always drives right, so each is correct in
half of the episodes. Only a selector that uses the first observation can do better.

Run it with `python examples/contextual.py`.
"""

from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

import esbas
from esbas.learners import Constant
from esbas.reporting import estimate

SELECTORS = (
    "uniform",
    "fixed:drives left",
    "fixed:drives right",
    "ssbas",
    "esbas",
    "gaussianthompson",
    "exp3s",
    "linear-thompson",
)


class Parcels:
    """A corridor of seven cells.

    The observation is the position (-3 to 3), and the end with the parcel (-1 or 1) plus noise.
    """

    action_space = Discrete(2)  # 0: one cell to the left, 1: one cell to the right
    observation_space = None

    def reset(self, *, seed: int | None = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self._rng = np.random.default_rng(seed)
        self._position = 0
        self._steps = 0
        self._parcel = int(self._rng.choice([-1, 1]))
        return self._observation(), {}

    def step(self, action: int) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        move = 1 if action else -1
        slips = self._rng.random() <= 0.1
        self._position += -move if slips else move
        self._steps += 1
        reward = float(self._position == 3 * self._parcel)  # the parcel is delivered
        terminated = abs(self._position) == 3
        truncated = self._steps >= 30
        return self._observation(), reward, terminated, truncated, {}

    def _observation(self) -> NDArray[Any]:
        return np.array([self._position, self._parcel + 0.3 * self._rng.normal()])


def success(name: str, *, seed: int, episodes: int = 300) -> float:
    """Return the share of episodes in which the parcel is delivered, in a run with a selector."""
    learners = [Constant("drives left", lambda _: 0), Constant("drives right", lambda _: 1)]
    run = esbas.run(Parcels(), learners, name, episodes=episodes, objective="return", seed=seed)
    return float(np.mean([record.value for record in run]))


def main(runs: int = 10) -> None:
    """Print the share of delivered parcels for each selector, with 95 % intervals over runs."""
    print(f"{'selector':<22}share of parcels delivered")
    for name in SELECTORS:
        shares = [success(name, seed=seed) for seed in range(runs)]
        print(f"{name:<22}{estimate(shares)}")


if __name__ == "__main__":
    main()
