"""Contextual selection: two kinds of start states and two learners, each of which is good at one kind.

A robot starts in the middle of a corridor. The first observation shows at which end a parcel is waiting. One learner always
drives left and the other one always drives right, so each is correct in half of the episodes. Only a selector that uses the first
observation can do better.

Run it with `python examples/contextual.py`.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.learners import Constant
from esbas.reporting import estimate
from esbas.selectors import make_selector
from esbas.spaces import Discrete

ARMS = ["drives left", "drives right"]
SELECTORS = "uniform", "fixed:drives left", "fixed:drives right", "ssbas", "esbas", "gaussianthompson", "exp3s", "linear-thompson"


class Parcels:
    """A corridor of seven places. Observation: the place (-3 to 3), and the end with the parcel (-1 or 1) plus noise."""

    action_space = Discrete(2)  # 0: one place to the left, 1: one place to the right
    observation_space = None

    def reset(self, *, seed: int | None = None) -> tuple[NDArray[Any], dict[str, Any]]:
        self._rng = np.random.default_rng(seed)
        self._place, self._steps, self._parcel = 0, 0, int(self._rng.choice([-1, 1]))
        return self._observation(), {}

    def step(self, action: int) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        forward = 1 if action else -1
        self._place += forward if self._rng.random() > 0.1 else -forward  # the wheels slip
        self._steps += 1
        delivered = self._place == 3 * self._parcel
        return self._observation(), float(delivered), abs(self._place) == 3, self._steps >= 30, {}

    def _observation(self) -> NDArray[Any]:
        return np.array([self._place, self._parcel + 0.3 * self._rng.normal()])


def success(name: str, *, seed: int, episodes: int = 300) -> float:
    """The share of episodes in which the parcel is delivered, in a run with this selector."""
    learners = [Constant("drives left", lambda _: 0), Constant("drives right", lambda _: 1)]
    selector = make_selector(name, ARMS, stationary=ARMS, seed=seed)
    run = esbas.run(Parcels(), learners, selector, episodes=episodes, objective=esbas.total_return(), seed=seed)
    return float(np.mean([record.value for record in run]))


def main(runs: int = 10) -> None:
    """Print the share of delivered parcels for each selector, with 95 % intervals over runs."""
    print(f"{'selector':<22}share of parcels delivered")
    for name in SELECTORS:
        print(f"{name:<22}{estimate([success(name, seed=seed) for seed in range(runs)])}")


if __name__ == "__main__":
    main()
