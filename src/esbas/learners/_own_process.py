"""What runs in the process of an isolated learner: it answers one request after the other, and ends with its parent."""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from esbas import seeding
from esbas.errors import require
from esbas.trajectory import Trajectory, TrajectorySet, Transition

OPTIONAL = "learn", "step", "greedy_policy", "state_dict", "load_state_dict"  # methods that a learner may or may not have


class Request(NamedTuple):
    """What the parent asks for."""

    method: str
    arguments: tuple[Any, ...]
    draws: dict[str, Any] | None  # the state of the generator to act with
    dropped: list[int]  # policies that nobody needs any more


class Answer(NamedTuple):
    """What it gets: a value, or what went wrong."""

    value: Any
    error: str  # empty if all went well
    draws: dict[str, Any] | None  # the generator's state afterwards
    trajectories: int  # how many are here


class About(NamedTuple):
    """What the parent must know of the learner: the first answer."""

    name: str
    stationary: bool
    observation_space: Any
    action_space: Any
    time_limit: float | None
    methods: tuple[str, ...]  # those of `OPTIONAL` that it has


def serve(connection: Connection, make: Callable[[], Any]) -> None:
    """The life of the process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, too, and that one decides
    _end_with_parent()
    servant = _Servant()
    connection.send_bytes(servant.answer(pickle.dumps(Request("build", (make,), None, []))))
    with contextlib.suppress(EOFError, OSError):  # the parent has closed the line, or is gone
        while True:
            connection.send_bytes(servant.answer(connection.recv_bytes()))


class _Servant:
    """The learner, its policies that somebody may still act with, and the data that it has been sent."""

    def __init__(self) -> None:
        self._learner: Any = None
        self._policies: dict[int, Any] = {}
        self._created = 0  # policies so far
        self._data = TrajectorySet()
        self._generators: dict[str, np.random.Generator] = {}  # by the kind of their bits
        self._rng: np.random.Generator | None = None  # of this request

    def answer(self, message: bytes) -> bytes:
        """The answer to a request, whatever happens."""
        self._rng, value, error = None, None, ""
        try:
            method, arguments, draws, dropped = pickle.loads(message)  # noqa: S301  # from the process that started this one
            for number in dropped:
                self._policies.pop(number, None)
            if draws is not None:
                self._rng = self._generator(draws)
            value = getattr(self, method)(*arguments)
            return self._packed(value, error)
        except BaseException as reason:  # a SystemExit is no reason to go either
            return self._packed(None, f"{type(reason).__name__}: {reason}")

    def _packed(self, value: Any, error: str) -> bytes:
        draws = None if self._rng is None else seeding.state_of(self._rng)
        return pickle.dumps(Answer(value, error, draws, len(self._data)))

    def _generator(self, draws: dict[str, Any]) -> np.random.Generator:
        kind = draws["bit_generator"]
        if kind not in self._generators:
            self._generators[kind] = np.random.Generator(getattr(np.random, kind)())
        seeding.restore(self._generators[kind], draws)
        return self._generators[kind]

    def build(self, make: Callable[[], Any]) -> About:
        """Build the learner."""
        self._learner = learner = make()
        seen, done, limit = (getattr(learner, name, None) for name in ("observation_space", "action_space", "time_limit"))
        methods = tuple(name for name in OPTIONAL if hasattr(learner, name))
        return About(learner.name, learner.stationary, seen, done, limit, methods)

    def learn(self, since: int, new: list[tuple[Trajectory, str]]) -> None:
        """Learn from the trajectories so far; those that are here are not sent again."""
        if since == 0:
            self._data = TrajectorySet()
        require(since == len(self._data), "trajectories come in order", since=since, trajectories=len(self._data))
        for trajectory, arm in new:
            self._data.append(trajectory, arm=arm)
        self._learner.learn(self._data)

    def step(self, transition: Transition) -> None:
        """Learn from one transition."""
        self._learner.step(transition)

    def policy(self, kind: str) -> tuple[int, bool, bool]:
        """Keep a policy of this kind; returns its number and whether it can `start` and tell a `probability`."""
        policy = getattr(self._learner, kind)()
        if not hasattr(policy, "act"):
            raise TypeError(f"{kind}() returned {policy!r}, which cannot act")
        self._created += 1
        self._policies[self._created] = policy
        return self._created, hasattr(policy, "start"), hasattr(policy, "probability")

    def start(self, number: int) -> None:
        """An episode begins."""
        self._policies[number].start()

    def act(self, number: int, observation: Any) -> Any:
        """An action, drawn with the parent's generator."""
        return self._policies[number].act(observation, self._rng)

    def probability(self, number: int, observation: Any, action: Any) -> float:
        """Of an action."""
        return float(self._policies[number].probability(observation, action))

    def state_dict(self) -> bytes:
        """The learner's state, packed, so that the parent can keep it without unpacking it."""
        return pickle.dumps(self._learner.state_dict())

    def load_state_dict(self, state: bytes) -> None:
        """From what `state_dict` told."""
        self._learner.load_state_dict(pickle.loads(state))  # noqa: S301  # as above


def _end_with_parent() -> None:
    """End when the parent does, even by `kill -9`, and even if the learner hangs and reads no requests."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    with contextlib.suppress(
        ImportError, AttributeError, OSError
    ):  # compiled code may let no thread run: then the kernel ends it
        import fcntl

        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)  # sends SIGIO when the parent's end is closed
