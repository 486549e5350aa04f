"""Learners that end or block their process.

Functions that build learners in other processes.
"""

import collections
import ctypes
import itertools
import os
import signal
import sys
import time
from functools import partial
from typing import Any

import numpy as np

from doubles import Always, BatchRecorder, Faulty, StepRecorder
from esbas.learners import Constant, LinearFQI, TabularQ


def spin() -> None:
    while True:
        pass


def sleep() -> None:
    time.sleep(600)


def compiled() -> None:
    """Hang in compiled code, which blocks Python code in all threads."""
    collections.deque(itertools.repeat(None), maxlen=0)


def segfault() -> None:
    os.close(2)  # hide the system's message
    ctypes.string_at(0)


def leave() -> None:
    os._exit(3)


def be_killed() -> None:
    """End like a process that runs out of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


class Breaking(Faulty):
    """Calls `how` where `Faulty` raises.

    Its state counts its calls, which a new process takes from the last snapshot.
    """

    def __init__(self, name: str, where: str, how: Any, *, at: int = 3, action: int = 1) -> None:
        super().__init__(name, where, fails=lambda call: call == at, action=action)
        self._how = how

    def _call(self, where: str) -> None:
        try:
            super()._call(where)
        except RuntimeError:
            self._how()


class Rising(TabularQ):
    """Has a time limit."""

    learn_timeout = 7.5


class Chance:
    """A policy with a memory within the episode that draws several kinds of numbers."""

    def start(self) -> None:
        self.steps = 0

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        self.steps += 1
        return (
            int(rng.random() + rng.normal() / 10 > 0.5) if self.steps % 3 else int(rng.integers(2))
        )


class Unsavable:
    name = "unsavable"
    stationary = False

    def __init__(self) -> None:
        self.seen = 0

    def step(self, transition: Any) -> None:
        self.seen += 1
        if self.seen == 3:
            os._exit(1)

    def policy(self) -> Any:
        return Chance()


class Tidy(TabularQ):
    """Sometimes fails after a draw."""

    def policy(self) -> Any:
        return self

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        if rng.random() < 0.3:
            raise ArithmeticError("drew a bad number")
        return int(rng.integers(2))


class Census(BatchRecorder):
    """Its action depends on how many trajectories another member controlled."""

    def __init__(self) -> None:
        super().__init__("census", plan=lambda trainings: self.others % 2)
        self.others = 0

    def learn(self, data: Any) -> None:
        super().learn(data)
        self.others = len(data.by("good"))


class Plain(TabularQ):
    """Its policy has no log-probabilities, so that a check need not draw thousands of actions."""

    def policy(self) -> Any:
        return self

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return int(self.table[observation].argmax()) if rng.random() < 0.8 else int(rng.integers(2))


def plain() -> Plain:
    return Plain("plain", states=4, actions=2)


def tabular() -> TabularQ:
    return TabularQ(
        "table", states=4, actions=2, learning_rate=lambda episode: 1 / episode, epsilon=0.3
    )


def tidy() -> Tidy:
    return Tidy("table", states=4, actions=2)


def one_hot(observation: Any) -> Any:
    return np.eye(4)[observation]


def fitted() -> LinearFQI:
    return LinearFQI("fitted", one_hot, actions=2)


def chance() -> Constant:
    return Constant("chance", Chance())


def deep() -> Any:
    import gymnasium  # here, so that other processes start faster

    from esbas.learners import DQN, SharedReplay

    replay = SharedReplay(gymnasium.make("CartPole-v1"), buffer_size=5000)
    return DQN("deep", replay=replay, learning_starts=100, epsilon=(0.5, 0.1, 300), hidden=(16,))


def stepper() -> StepRecorder:
    return StepRecorder("steps", action=1)


rising = partial(Rising, "rising", states=4, actions=2)


def hasty() -> TabularQ:
    learner = tabular()
    learner.learn_timeout = -1.0  # type: ignore[attr-defined]
    return learner


class Greedy(Unsavable):
    def policy(self) -> Always:
        return Always(0)

    def greedy_policy(self) -> Always:
        return Always(1)


def refuse() -> None:
    raise ValueError("no such learner")


def silent() -> None:
    sys.exit("left")


def unpicklable() -> Faulty:
    return Faulty("bad", action=lambda: None)


class Counted:
    """A policy whose action is the number of its instances."""

    alive = 0

    def __init__(self) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1

    def act(self, observation: Any, rng: np.random.Generator) -> int:
        return Counted.alive


class Counting(Unsavable):
    def policy(self) -> Counted:
        return Counted()


def nothing() -> None:
    pass


class CompletePolicy:
    """Has all optional methods of a policy.

    The object that `start()` returns counts the steps of its episode.
    """

    def __init__(self) -> None:
        self.steps = 0

    def start(self) -> "CompletePolicy":
        return CompletePolicy()

    def act(self, observation: Any, rng: np.random.Generator) -> tuple[int, float]:
        self.steps += 1
        return self.steps, rng.random()

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        return self.act(observation, rng), -1.5 - observation

    def log_probs(self, observations: Any, actions: Any) -> Any:
        return -1.0 - observations * actions


class Complete(TabularQ):
    """Has all optional methods and attributes of a learner."""

    learn_timeout = 7.5

    def policy(self) -> Any:
        return CompletePolicy()


class Minimal:
    """Has no optional methods or attributes; the same holds for its policy."""

    name = "minimal"
    stationary = True

    def policy(self) -> Always:
        return Always(1)


complete = partial(Complete, "complete", states=4, actions=2)
