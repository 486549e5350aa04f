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
from esbas.errors import InvalidValueError, IsolationError, describe
from esbas.isolation.server import Answer, LearnerInfo, Request, serve
from esbas.limits import too_slow

STATE_TIMEOUT = 120.0  # seconds to start a process, or to save or load a state; the time limit of calls does not apply to these

CHECK_EVERY = 0.5  # seconds between two checks of whether the process is alive, while it is working


class Child:
    """Starts the process when needed, kills it when it fails, and starts the next one from the last good state."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.seconds: float | None = None  # the maximum duration of a call
        self.snapshot: bytes | None = None  # the last good state; None: the initial state
        self.info: LearnerInfo | None = None
        self.generation = 0  # the number of processes started so far
        self.trajectories = 0  # the number of trajectories in the process
        self._dropped: list[int] = []  # policies of this process that are no longer needed
        self._connection: Connection | None = None
        self._unread = False  # an answer that was not read, because Ctrl-C ended the wait
        self._end: Callable[[], Any] = lambda: None
        self._require_picklable()
        self.start()

    def _require_picklable(self) -> None:
        try:
            pickle.dumps(self._make)
        except Exception as error:
            problem = f"pickling {self._make!r} failed ({describe(error)})"
            raise InvalidValueError(
                f"the function that builds an isolated learner must be picklable, but {problem}: define it at the top of a module"
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
        self._connection, self._process = ours, process
        self._end = weakref.finalize(self, _end, process, ours, os.getpid())
        self.generation, self.trajectories, self._dropped = self.generation + 1, 0, []
        try:
            self.info = self._take("its start", STATE_TIMEOUT)
            if self.snapshot is not None:
                self.call("load_state_dict", self.snapshot, seconds=STATE_TIMEOUT)
        except BaseException:  # never use a process that is only partly initialized
            self.kill()
            raise

    def kill(self) -> None:
        """End the process. The next call starts another one from the last good state."""
        self._end()
        self._connection = None

    def call(self, method: str, *arguments: Any, label: str = "", seconds: float | None = None) -> Any:
        """Call a method of the server within the time limit. A generator as the last argument advances as if it were used here.

        Args:
            method: the method of the server.
            arguments: its arguments.
            label: the name of the call in error messages. Defaults to `method`.
            seconds: the maximum duration. Defaults to the time limit.
        """
        self.start()
        connection, seconds = self._connection, seconds or self.seconds
        assert connection is not None
        if self._unread:
            self._answer(connection, label or method, seconds)
        dropped, self._dropped = self._dropped, []
        rng = arguments[-1] if arguments and isinstance(arguments[-1], np.random.Generator) else None
        if rng is not None:
            arguments = arguments[:-1]
        message = pickle.dumps(Request(method, arguments, None if rng is None else seeding.state_of(rng), dropped))
        try:
            self._unread = True
            connection.send_bytes(message)
        except OSError:
            pass  # the process has died since the last call: `_take` raises
        except BaseException:
            self.kill()
            raise
        return self._take(label or method, seconds, rng)

    def _take(self, method: str, seconds: float | None, rng: np.random.Generator | None = None) -> Any:
        """The value of the answer."""
        assert self._connection is not None
        answer = self._answer(self._connection, method, seconds)
        if rng is not None and answer.rng_state is not None:
            seeding.restore(rng, answer.rng_state)
        if answer.error:
            raise IsolationError(f"{self._label()} raised in {method}: {answer.error}")
        return answer.value

    def _answer(self, connection: Connection, method: str, seconds: float | None) -> Answer:
        if not self._wait(connection, seconds):  # if Ctrl-C ends the wait, the answer is still to be read
            self.kill()
            assert seconds is not None
            raise too_slow(seconds, f"{self._label()} did not finish {method} and was killed")
        try:
            if not connection.poll():
                raise EOFError
            answer: Answer = pickle.loads(connection.recv_bytes())  # noqa: S301  # from our child process
            self._unread = False
        except (EOFError, OSError):
            self._process.join(1.0)  # to know how it ended
            self.kill()
            remedy = "see its output" + ("" if self.info else ', and start the program under `if __name__ == "__main__":`')
            raise IsolationError(f"{self._label()} died in {method} ({_cause(self._process)}): {remedy}") from None
        except BaseException:
            self.kill()
            raise
        self.trajectories = answer.trajectories
        return answer

    def _wait(self, connection: Connection, seconds: float | None) -> bool:
        """Wait until there is an answer or the process has ended; False if neither happens in time.

        The end of the process need not close the connection: processes that it has forked can still have it open. They keep the
        sentinel of the process open, too, so the process itself is checked.
        """
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while not connection.poll(max(0.0, min(CHECK_EVERY, deadline - time.monotonic()))):
            if not self._process.is_alive():
                return True
            if time.monotonic() >= deadline:
                return False
        return True

    def _label(self) -> str:
        return f"the process of learner {self.info.attributes['name']!r}" if self.info else "the process of an isolated learner"

    def drop(self, generation: int, policy: int) -> None:
        """Release a policy that is no longer needed."""
        if generation == self.generation:
            self._dropped.append(policy)


def _start_without_interrupts(process: BaseProcess) -> None:
    """Start the process with SIGINT blocked, so that Ctrl-C does not end it before it ignores the signal."""
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
