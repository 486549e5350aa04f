"""The parent's side of the connection to the process of an isolated learner."""

import math
import multiprocessing
import os
import pickle
import signal
import time
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from esbas import seeding
from esbas._internal.limits import too_slow
from esbas.errors import InvalidValueError, IsolationError, describe
from esbas.isolation.server import LearnerInfo, Reply, Request, serve

# Seconds to start a process, or to save or load a state. The time limit of calls does not apply.
STATE_TIMEOUT = 120.0

CHECK_EVERY = 0.5  # seconds between two checks of whether the process is alive, while it is working


class Child:
    """The process of a learner.

    It is started when needed and killed when it fails. The next one starts from the last good
    state.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.seconds: float | None = None  # the maximum duration of a call
        self.snapshot: bytes | None = None  # the last good state; None: the initial state
        self.info: LearnerInfo | None = None
        self.generation = 0  # the number of processes started so far
        self.trajectories = 0  # the number of trajectories in the process
        self._dropped: list[int] = []  # policies of this process that are no longer needed
        self._connection: Connection | None = None
        self._unread = False  # whether a reply was not read, because Ctrl-C ended the wait
        self._end: Callable[[], Any] | None = None  # kills the process
        self._require_picklable()
        self.start()

    def _require_picklable(self) -> None:
        try:
            pickle.dumps(self._make)
        except Exception as error:
            raise InvalidValueError(
                "The function that builds an isolated learner must be picklable, but pickling "
                f"{self._make!r} failed ({describe(error)}): define it at the top of a module."
            ) from error

    @property
    def running(self) -> bool:
        return self._connection is not None

    def start(self) -> None:
        """Start a process unless one is running."""
        if self._connection is not None:
            return
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._make), daemon=True)
        try:
            _start_without_interrupts(process)
        finally:
            theirs.close()  # otherwise the end of the process would not close the connection
        self._connection = ours
        self._process = process
        self._end = weakref.finalize(self, _end, process, ours, os.getpid())
        self.generation += 1
        self.trajectories = 0
        self._dropped = []
        try:
            self.info = self._receive("its start", STATE_TIMEOUT)
            if self.snapshot is not None:
                self.call("load_state_dict", self.snapshot, seconds=STATE_TIMEOUT)
        except BaseException:  # never use a process that is only partly initialized
            self.kill()
            raise

    def kill(self) -> None:
        """End the process. The next call starts another one from the last good state."""
        if self._end is not None:
            self._end()
        self._connection = None

    def call(
        self, method: str, *arguments: Any, label: str = "", seconds: float | None = None
    ) -> Any:
        """Call a method of the server within the time limit.

        Args:
            method: the method of the server.
            arguments: its arguments. A generator as the last one advances as if it were used here.
            label: the name of the call in error messages. Defaults to `method`.
            seconds: the maximum duration. Defaults to the time limit.
        """
        self.start()
        connection = self._connection
        assert connection is not None
        label = label or method
        seconds = seconds or self.seconds
        if self._unread:
            self._read(connection, label, seconds)
        rng = None
        rng_state = None
        if arguments and isinstance(arguments[-1], np.random.Generator):
            rng = arguments[-1]
            rng_state = seeding.state_of(rng)
            arguments = arguments[:-1]
        dropped = self._dropped
        self._dropped = []
        message = pickle.dumps(Request(method, arguments, rng_state, dropped))
        try:
            self._unread = True
            connection.send_bytes(message)
        except OSError:
            pass  # the process has died since the last call: `_receive` raises
        except BaseException:
            self.kill()
            raise
        return self._receive(label, seconds, rng)

    def _receive(
        self, method: str, seconds: float | None, rng: np.random.Generator | None = None
    ) -> Any:
        """Return the value of the reply, and let the generator advance."""
        assert self._connection is not None
        reply = self._read(self._connection, method, seconds)
        if rng is not None and reply.rng_state is not None:
            seeding.restore(rng, reply.rng_state)
        if reply.error:
            raise IsolationError(
                f"The process of {self._owner()} raised an error in {method}: {reply.error}"
            )
        return reply.value

    def _read(self, connection: Connection, method: str, seconds: float | None) -> Reply:
        # If Ctrl-C ends the wait, the reply is still to be read.
        if not self._wait(connection, seconds):
            self.kill()
            assert seconds is not None
            reason = f"the process of {self._owner()} did not finish {method} and was killed"
            raise too_slow(seconds, reason)
        try:
            if not connection.poll():
                raise EOFError
            # The bytes come from our child process.
            reply: Reply = pickle.loads(connection.recv_bytes())  # noqa: S301
            self._unread = False
        except (EOFError, OSError):
            self._process.join(1.0)  # to know how it ended
            self.kill()
            raise self._death(method) from None
        except BaseException:
            self.kill()
            raise
        self.trajectories = reply.trajectories
        return reply

    def _death(self, method: str) -> IsolationError:
        remedy = "see its output"
        if self.info is None:  # it never started
            remedy += ', and start the program under `if __name__ == "__main__":`'
        cause = _cause(self._process)
        return IsolationError(
            f"The process of {self._owner()} died in {method} ({cause}): {remedy}."
        )

    def _wait(self, connection: Connection, seconds: float | None) -> bool:
        """Wait until there is a reply or the process has ended; return False if neither happens.

        The end of the process need not close the connection: processes that it has forked can still
        have it open. They keep the sentinel of the process open, too, so the process itself is
        checked.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not connection.poll(max(0.0, min(CHECK_EVERY, deadline - time.monotonic()))):
            if not self._process.is_alive():
                return True
            if time.monotonic() >= deadline:
                return False
        return True

    def _owner(self) -> str:
        if self.info is None:
            return "an isolated learner"
        return f"learner {self.info.attributes['name']!r}"

    def drop(self, generation: int, policy: int) -> None:
        """Release a policy that is no longer needed."""
        if generation == self.generation:
            self._dropped.append(policy)


def _start_without_interrupts(process: BaseProcess) -> None:
    """Start the process with SIGINT blocked.

    Otherwise, Ctrl-C could end it before it ignores the signal.
    """
    if not hasattr(signal, "pthread_sigmask"):
        process.start()
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _end(process: BaseProcess, connection: Connection, owner: int) -> None:
    """Kill the process, unless this is a fork of its parent."""
    connection.close()
    if os.getpid() == owner:
        process.kill()
        process.join()


def _cause(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
