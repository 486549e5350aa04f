"""The demo's task, its three learners, and one run of one method."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import esbas
from esbas.learners import TabularQ
from esbas.spaces import Discrete

RATES = {"fast": 0.3, "medium": 0.1, "slow": 0.02}
"""Learning rates: the fast learner is soon of use and stays blurred by the noise; the slow one needs long and ends sharp."""
TIME_LIMIT = 25
SELECTORS = {"online": "SSBAS", "epochs": "ESBAS"}
"""The two settings, learning from every transition and learning when an epoch starts, and who selects there."""
METHODS = [f"{setting}-{who}" for setting, selector in SELECTORS.items() for who in (selector, *RATES)]
"""In each setting the selector, and each learner alone."""
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""North, east, south, west, as (rows, columns)."""


class NoisyGrid:
    """Walk to the corner of an open square, in a Gymnasium-style environment.

    Four moves; one in ten slips into a random direction. The reward is 1 at the goal, and every reward carries noise N(0, 1/2).
    An episode starts anywhere but at the goal and is cut off after 25 steps.
    """

    def __init__(self, *, size: int = 3, slip: float = 0.1, noise: float = 0.5) -> None:
        self._slip, self._noise, self._goal = slip, noise, size * size - 1
        self._next = [[_move(cell, action, size) for action in range(4)] for cell in range(size * size)]
        self.observation_space, self.action_space = Discrete(size * size), Discrete(4)
        self._rng = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Start an episode; all its randomness is drawn here."""
        del options
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        directions = self._rng.integers(4, size=TIME_LIMIT)
        self._slips = np.where(self._rng.random(TIME_LIMIT) < self._slip, directions, -1).tolist()  # -1: none
        self._noises = self._rng.normal(0, self._noise, TIME_LIMIT).tolist()
        self._cell, self._steps = int(self._rng.integers(self._goal)), 0
        return self._cell, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """One move."""
        slip = self._slips[self._steps]
        self._cell = self._next[self._cell][action if slip < 0 else slip]
        reward = self._noises[self._steps] + (self._cell == self._goal)
        self._steps += 1
        terminated = self._cell == self._goal
        return self._cell, reward, terminated, not terminated and self._steps == TIME_LIMIT, {}


def _move(cell: int, action: int, size: int) -> int:
    """The next cell; at the border, the same."""
    row, column = cell // size + MOVES[action][0], cell % size + MOVES[action][1]
    return row * size + column if 0 <= row < size and 0 <= column < size else cell


def learners() -> list[TabularQ]:
    """New ones, who differ in their learning rate alone; all explore with probability n^-0.3 in episode n, 0.1 at least."""
    states = NoisyGrid().observation_space.n
    return [
        TabularQ(name, states=states, actions=4, rate=rate, gamma=0.9, epsilon=lambda episode: max(0.1, episode**-0.3))
        for name, rate in RATES.items()
    ]


def one_run(method: str, *, episodes: int, seed: int) -> dict[str, NDArray[Any]]:
    """Per episode the steps to the goal and the index of the learner that acted, (T,) each."""
    setting, who = method.split("-")
    team = [learner for learner in learners() if who in (learner.name, *SELECTORS.values())]
    names = [learner.name for learner in team]
    selector: esbas.Selector
    if who == "SSBAS":
        selector = esbas.SSBAS(names, xi=0.25, scale=None, seed=seed)
    elif who == "ESBAS":
        selector = esbas.ESBAS(names, xi=0.25, scale=None, seed=seed)
    else:
        selector = esbas.Fixed(names, epochs=esbas.selectors.Epochs() if setting == "epochs" else None)
    objective, keep_data = esbas.success_time(failure=TIME_LIMIT), not selector.online
    records = list(esbas.run(NoisyGrid(), team, selector, episodes=episodes, objective=objective, seed=seed, keep_data=keep_data))
    arms = [list(RATES).index(record.arm) for record in records]
    return {"steps": np.array([record.value for record in records]), "arms": np.array(arms, np.uint8)}
