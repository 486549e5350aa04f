"""Learners that cannot act or learn, or that end the program."""

import sys
from typing import Any

import numpy as np

from training.odd_learners import Wandering


class CannotAct(Wandering):
    def act(self, observation: Any, rng: np.random.Generator) -> int:
        raise ValueError("no action today")


class ActsOutside(Wandering):
    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return 99


class CannotStep(Wandering):
    def step(self, transition: Any) -> None:
        raise ValueError("no step today")


class CannotLearn:
    """Is to learn from whole trajectories."""

    stationary = False

    def __init__(self, name: str) -> None:
        self.name = name

    def policy(self) -> "CannotLearn":
        return self

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return int(rng.integers(2))

    def learn(self, data: Any) -> None:
        raise ValueError("nothing learnt today")

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


class LeavesInAct(Wandering):
    def act(self, observation: Any, rng: np.random.Generator) -> int:
        sys.exit(0)


class LeavesInStep(Wandering):
    def step(self, transition: Any) -> None:
        sys.exit()


class LeavesAtOnce(Wandering):
    def __init__(self, name: str, *, action_space: Any, seed: int) -> None:
        sys.exit(0)
