"""The process of an isolated learner as its parent sees it."""

import multiprocessing
import os
import pickle
import signal
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np

from esbas import seeding
from esbas.errors import InvalidValueError, IsolationError
from esbas.learners._own_process import About, Answer, Request, serve
from esbas.limits import too_slow

PATIENCE = 120.0  # seconds to start a process, or to tell or take a state: what has no limit of its own


class Child:
    """Starts the process when it is needed, kills it when it fails, and starts the next one from the last good state."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self.seconds: float | None = None  # that a call may take
        self.snapshot: bytes | None = None  # the last good state; None: as built
        self.about: About | None = None
        self.generation = 0  # of the process: how many have been started
        self.trajectories = 0  # how many it has been sent
        self._dropped: list[int] = []  # policies of this generation that nobody needs any more
        self._connection: Connection | None = None
        self._owed = False  # an answer that was not waited for, because of Ctrl-C
        self._end: Callable[[], Any] = lambda: None
        self._require_picklable()
        self.start()

    def _require_picklable(self) -> None:
        try:
            pickle.dumps(self._make)
        except Exception as error:
            told = f"but pickling {self._make!r} failed ({type(error).__name__}: {error})"
            remedy = "define it at the top of a module"
            raise InvalidValueError(
                f"what builds an isolated learner must be sent to another process, {told}: {remedy}"
            ) from error

    @property
    def running(self) -> bool:
        """Whether there is a process to talk to."""
        return self._connection is not None

    def start(self) -> None:
        """Start a process unless there is one."""
        if self._connection is not None:
            return
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks
        ours, theirs = context.Pipe()
        process = context.Process(target=serve, args=(theirs, self._make), daemon=True)
        try:
            _start_without_interrupts(process)
        finally:
            theirs.close()  # or the end of the process would not end the line
        self._connection, self._process = ours, process
        self._end = weakref.finalize(self, _end, process, ours, os.getpid())
        self.generation, self.trajectories, self._dropped = self.generation + 1, 0, []
        try:
            self.about = self._take("its start", PATIENCE)
            if self.snapshot is not None:
                self.call("load_state_dict", self.snapshot, seconds=PATIENCE)
        except BaseException:  # nobody is to talk to one that is half built
            self.kill()
            raise

    def kill(self) -> None:
        """End the process; the next call starts another one from the last good state."""
        self._end()
        self._connection = None

    def call(self, method: str, *arguments: Any, rng: np.random.Generator | None = None, seconds: float | None = None) -> Any:
        """Call a method over there, within the time limit; `rng` comes back with the draws made."""
        self.start()
        connection, seconds = self._connection, seconds or self.seconds
        assert connection is not None
        if self._owed:
            self._answer(connection, method, seconds)
        dropped, self._dropped = self._dropped, []
        message = pickle.dumps(Request(method, arguments, None if rng is None else seeding.state_of(rng), dropped))
        try:
            self._owed = True
            connection.send_bytes(message)
        except OSError:
            pass  # it died while nobody talked to it: noticed below
        except BaseException:
            self.kill()
            raise
        return self._take(method, seconds, rng)

    def _take(self, method: str, seconds: float | None, rng: np.random.Generator | None = None) -> Any:
        """What it answers."""
        assert self._connection is not None
        answer = self._answer(self._connection, method, seconds)
        if rng is not None and answer.draws is not None:
            seeding.restore(rng, answer.draws)
        if answer.error:
            raise IsolationError(f"{self._whose()} raised in {method}: {answer.error}")
        return answer.value

    def _answer(self, connection: Connection, method: str, seconds: float | None) -> Answer:
        if not connection.poll(seconds):  # if Ctrl-C ends the waiting, the answer is still owed
            self.kill()
            assert seconds is not None
            raise too_slow(seconds, f"{self._whose()} went on with {method} and was killed")
        try:
            answer: Answer = pickle.loads(connection.recv_bytes())  # noqa: S301  # from a process of ours
            self._owed = False
        except (EOFError, OSError):
            self._process.join(1.0)  # to hear how it ended
            self.kill()
            remedy = "see what it printed" + ("" if self.about else ', and start the program under `if __name__ == "__main__":`')
            raise IsolationError(f"{self._whose()} died in {method} ({_cause(self._process)}): {remedy}") from None
        except BaseException:
            self.kill()
            raise
        self.trajectories = answer.trajectories
        return answer

    def _whose(self) -> str:
        return f"the process of learner {self.about.name!r}" if self.about else "the process of an isolated learner"

    def drop(self, generation: int, policy: int) -> None:
        """Nobody needs this policy any more."""
        if generation == self.generation:
            self._dropped.append(policy)


def _start_without_interrupts(process: BaseProcess) -> None:
    """Start it with SIGINT blocked, so that Ctrl-C does not hit it before it can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):
        process.start()
        return
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _end(process: BaseProcess, connection: Connection, owner: int) -> None:
    """Kill the process; a fork of its parent leaves it alone."""
    connection.close()
    if os.getpid() == owner:
        process.kill()
        process.join()


def _cause(process: BaseProcess) -> str:
    code = process.exitcode
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
