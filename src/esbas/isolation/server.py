"""The code that runs in the process of an isolated learner.

It handles one request at a time and ends with its parent.
"""

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
from esbas.errors import describe, require
from esbas.learner import LEARNER_ATTRIBUTES, LEARNER_METHODS, POLICY_METHODS
from esbas.trajectory import Trajectory, TrajectorySet


class Request(NamedTuple):
    """A call of a method of the server."""

    method: str
    arguments: tuple[Any, ...]
    rng_state: dict[str, Any] | None  # of the generator that is passed as the last argument
    dropped: list[int]  # numbers of policies that are no longer needed


class Reply(NamedTuple):
    """The result of a request."""

    value: Any
    error: str  # empty on success
    rng_state: dict[str, Any] | None  # the state of the generator after the call
    trajectories: int  # the number of trajectories in this process


class LearnerInfo(NamedTuple):
    """The reply to the first request: what the learner has."""

    attributes: dict[str, Any]  # name, stationary, and those optional attributes that it has
    methods: tuple[str, ...]  # those optional methods that it has


class PolicyInfo(NamedTuple):
    """A policy in this process."""

    number: int
    methods: tuple[str, ...]  # those optional methods that it has


def serve(connection: Connection, make: Callable[[], Any]) -> None:
    """Build the learner and handle requests until the parent closes the connection or ends."""
    # Ctrl-C reaches the parent, too, which decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    # A fork must not keep the connection open after the end of this process.
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=connection.close)
    server = _LearnerServer()
    process = os.getpid()
    request = pickle.dumps(Request("build", (make,), None, []))
    with contextlib.suppress(EOFError, OSError):
        while True:
            reply = server.reply(request)
            if os.getpid() != process:  # the learner forked: only one process replies
                os._exit(1)
            connection.send_bytes(reply)
            request = connection.recv_bytes()


class _LearnerServer:
    """The learner, the policies that are in use, and the trajectories received so far."""

    def __init__(self) -> None:
        self._learner: Any = None
        self._policies: dict[int, Any] = {}
        self._created = 0  # number of policies so far
        self._data = TrajectorySet()
        self._shared = self._data.read_only()  # what the learner sees
        self._generators: dict[str, np.random.Generator] = {}  # by the name of the bit generator

    def reply(self, message: bytes) -> bytes:
        """Handle a request. Errors of any kind become part of the reply."""
        rng = None
        try:
            # The bytes come from the parent process.
            method, arguments, rng_state, dropped = pickle.loads(message)  # noqa: S301
            for number in dropped:
                self._policies.pop(number, None)
            if rng_state is not None:
                rng = self._generator(rng_state)
                arguments = (*arguments, rng)
            value = getattr(self, method)(*arguments)
            return self._packed(value, "", rng)
        except BaseException as reason:  # the process stays alive even after SystemExit
            return self._packed(None, describe(reason), rng)

    def _packed(self, value: Any, error: str, rng: np.random.Generator | None) -> bytes:
        rng_state = None if rng is None else seeding.state_of(rng)
        return pickle.dumps(Reply(value, error, rng_state, len(self._data)))

    def _generator(self, state: dict[str, Any]) -> np.random.Generator:
        kind = state["bit_generator"]
        if kind not in self._generators:
            self._generators[kind] = np.random.Generator(getattr(np.random, kind)())
        seeding.restore(self._generators[kind], state)
        return self._generators[kind]

    def build(self, make: Callable[[], Any]) -> LearnerInfo:
        learner = make()
        self._learner = learner
        attributes = {"name": learner.name, "stationary": learner.stationary}
        for name in _present(learner, LEARNER_ATTRIBUTES):
            attributes[name] = getattr(learner, name)
        return LearnerInfo(attributes, _present(learner, LEARNER_METHODS))

    def call_learner(self, method: str, *arguments: Any) -> Any:
        return getattr(self._learner, method)(*arguments)

    def learn(self, since: int, new: list[tuple[Trajectory, str]]) -> None:
        """Add new trajectories with the names of their arms, then learn from all of them."""
        if since == 0:
            self._data = TrajectorySet()
            self._shared = self._data.read_only()
        require(
            since == len(self._data),
            f"Trajectory {len(self._data)} must be the next one, but got number {since}.",
        )
        for trajectory, arm in new:
            self._data.append(trajectory, arm=arm)
        self._learner.learn(self._shared)

    def state_dict(self) -> bytes:
        """Return the learner's state, pickled: the parent can keep it without unpickling it."""
        return pickle.dumps(self._learner.state_dict())

    def load_state_dict(self, state: bytes) -> None:
        # The bytes come from the parent process.
        self._learner.load_state_dict(pickle.loads(state))  # noqa: S301

    def policy(self, kind: str) -> PolicyInfo:
        """Create a policy by the learner's method `kind`."""
        return self._keep(getattr(self._learner, kind)(), f"{kind}()")

    def start(self, number: int) -> PolicyInfo | None:
        """Start an episode, and keep the object that acts in it, if there is one, as a policy."""
        acting = self._policies[number].start()
        if acting is None:
            return None
        return self._keep(acting, "start()")

    def call_policy(self, number: int, method: str, *arguments: Any) -> Any:
        return getattr(self._policies[number], method)(*arguments)

    def _keep(self, policy: Any, source: str) -> PolicyInfo:
        if not hasattr(policy, "act"):
            raise TypeError(f"{source} returned {policy!r}, which cannot act")
        self._created += 1
        self._policies[self._created] = policy
        return PolicyInfo(self._created, _present(policy, POLICY_METHODS))


def _present(part: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the names that the learner or policy has."""
    return tuple(name for name in names if hasattr(part, name))


def _end_with_parent() -> None:
    """End when the parent does, even if it is killed, and even if the learner hangs."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
    # Compiled code may block all threads: use a signal, too.
    with contextlib.suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
        flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
        # Send SIGIO when the parent's end is closed.
        fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)
