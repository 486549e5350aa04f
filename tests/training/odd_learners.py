"""Learners outside the package that are hard to evaluate."""

from typing import Any

import numpy as np

from esbas import seeding


class Wandering:
    """Draws from a generator of its own, and has no greedy policy."""

    stationary = False

    def __init__(self, name: str, *, action_space: Any, seed: int) -> None:
        self.name = name
        self._actions = int(action_space.n)
        self._rng = seeding.generator(seed, name)
        self.seen = 0

    def policy(self) -> "Wandering":
        return self

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return int(self._rng.integers(self._actions))

    def step(self, transition: Any) -> None:
        self.seen += 1

    def state_dict(self) -> dict[str, Any]:
        return {"rng": seeding.state_of(self._rng), "seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        seeding.restore(self._rng, state["rng"])
        self.seen = state["seen"]


class Failing(Wandering):
    """Cannot act greedily."""

    def greedy_policy(self) -> Any:
        raise RuntimeError("no\ngreedy policy today")


class Outside(Wandering):
    """Its greedy policy acts outside the action space."""

    def greedy_policy(self) -> Any:
        return type("Bad", (), {"act": lambda self, observation, rng: 99})()


class Stuck(Wandering):
    """Its greedy policy never ends an episode of the lane."""

    def greedy_policy(self) -> Any:
        return type("Left", (), {"act": lambda self, observation, rng: 0})()


class Compact(Wandering):
    """Says what acting needs. Its greedy policy always takes the action that it has seen most."""

    def __init__(self, name: str, *, action_space: Any, seed: int) -> None:
        super().__init__(name, action_space=action_space, seed=seed)
        self.counts = np.zeros(self._actions, np.int64)

    def step(self, transition: Any) -> None:
        super().step(transition)
        self.counts[transition.action] += transition.action

    def greedy_policy(self) -> Any:
        best = int(self.counts.argmax())
        return type("Steady", (), {"act": lambda self, observation, rng: best})()

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"counts": self.counts.copy(), "large": np.zeros(50_000)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.counts[:] = state["counts"]

    def policy_state(self) -> dict[str, Any]:
        return {"counts": self.counts.copy()}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        self.counts[:] = state["counts"]
