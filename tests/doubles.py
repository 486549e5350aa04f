"""Minimal learners, policies and environments for tests."""

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from esbas import TrajectorySet, Transition


class Faulty:
    """Always takes one action and is its own policy.

    Raises in `where` at the calls whose number (from 1) satisfies `fails`.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        where: str = "",
        *,
        fails: Callable[[int], bool] = lambda call: True,
        action: Any = 0,
    ) -> None:
        self.name = name
        self.action = action
        self._where = where
        self._fails = fails
        self.calls = dict.fromkeys(("policy", "start", "act", "log_probs", "learn", "step"), 0)

    def _call(self, where: str) -> None:
        self.calls[where] += 1
        if where == self._where and self._fails(self.calls[where]):
            raise RuntimeError(f"call {self.calls[where]} of {where}")

    def policy(self) -> "Faulty":
        self._call("policy")
        return self

    def start(self) -> None:
        self._call("start")

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        self._call("act")
        return self.action

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        return self.act(observation, rng), 0.0

    def log_probs(self, observations: Any, actions: Any) -> Any:
        self._call("log_probs")
        return np.where(np.asarray(actions) == self.action, 0.0, -np.inf)

    def learn(self, data: TrajectorySet) -> None:
        self._call("learn")

    def step(self, transition: Transition) -> None:
        self._call("step")

    def state_dict(self) -> dict[str, Any]:
        return {"calls": dict(self.calls)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.calls = dict(state["calls"])


class BatchRecorder:
    """Records the size of the data at each training.

    `plan` gives the action for the number of trainings so far.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        *,
        plan: Callable[[int], int] = lambda trainings: 0,
        fails: Callable[[int], bool] | None = None,
    ) -> None:
        self.name = name
        self._plan = plan
        self._fails = fails or (lambda training: False)
        self.sizes: list[int] = []

    def policy(self) -> "Always":
        return Always(self._plan(len(self.sizes)))

    def learn(self, data: TrajectorySet) -> None:
        self.sizes.append(len(data))
        if self._fails(len(self.sizes)):
            raise ArithmeticError("diverged")


class StepRecorder:
    """Records every transition."""

    stationary = False

    def __init__(self, name: str, *, action: int = 0) -> None:
        self.name = name
        self._action = action
        self.seen: list[Transition] = []

    def policy(self) -> "Always":
        return Always(self._action)

    def step(self, transition: Transition) -> None:
        self.seen.append(transition)


class Always:
    """A policy without log-probabilities."""

    def __init__(self, action: Any) -> None:
        self.action = action

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        return self.action


class Endless:
    """An environment whose episodes never end."""

    observation_space = action_space = None

    def reset(self, *, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        return 0, {}

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        return 0, 0.0, False, False, {}


def same_floats(one: list[float], other: list[float]) -> bool:
    """Whether the lists are equal; NaN equals NaN."""
    return len(one) == len(other) and all(
        a == b or (math.isnan(a) and math.isnan(b)) for a, b in zip(one, other, strict=True)
    )


def in_another_thread(function: Callable[[], Any]) -> Any:
    """Call the function in another thread; return its result or the exception that it raises."""
    outcomes: list[Any] = []

    def work() -> None:
        try:
            outcomes.append(function())
        except Exception as error:
            outcomes.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return outcomes[0]
