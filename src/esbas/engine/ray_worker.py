"""What runs on the machines of a Ray cluster: jobs, and the mailbox between them and the engine."""

import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple

import ray
from ray import cloudpickle

from esbas.engine.machine import describe_machine
from esbas.engine.protocol import JobContext
from esbas.engine.ray_inputs import unpack_job
from esbas.engine.worker import in_words, sendable
from esbas.errors import EngineError

FULL = 256 * 2**20  # bytes in a mailbox from which on it takes no more


class Surroundings(NamedTuple):
    """What a job needs of the caller's process.

    Attributes:
        path: `sys.path`.
        folder: the current folder.
        period: seconds between two visits to the mailbox.
    """

    path: list[str]
    folder: str
    period: float


class Start(NamedTuple):
    """Where an attempt runs."""

    node: str
    machine: dict[str, str]


class Mailbox:
    """Messages of running jobs, and the request to stop. A Ray actor, which reserves no CPU."""

    def __init__(self) -> None:
        self._messages: list[tuple[int, bytes]] = []
        self._starts: list[tuple[int, Start]] = []
        self._stopping = False
        self._size = 0

    def exchange(
        self, attempt: int, start: Start | None, messages: Sequence[bytes]
    ) -> tuple[bool, bool]:
        """Take the messages of a job; return whether to stop, and whether they were taken."""
        if start is not None:
            self._starts.append((attempt, start))
        taken = self._size < FULL
        if taken:
            self._messages.extend((attempt, message) for message in messages)
            self._size += sum(map(len, messages))
        return self._stopping, taken

    def collect(self) -> tuple[list[tuple[int, Start]], list[tuple[int, bytes]]]:
        """Return to the engine what has arrived since the last call."""
        found = self._starts, self._messages
        self._starts = []
        self._messages = []
        self._size = 0
        return found

    def stop(self) -> None:
        self._stopping = True


class Result(NamedTuple):
    """What an attempt returns.

    Attributes:
        start: where it ran.
        messages: those that were not put into the mailbox.
        outcome: an exception, or a tuple of the value alone.
    """

    start: Start
    messages: list[bytes]
    outcome: Any


def run_attempt(
    surroundings: Surroundings, attempt: int, mailbox: Any, job: bytes, *shared: bytes
) -> bytes:
    """Run a job once, in the main thread, where signals and timers work; return a `Result`."""
    _adopt(surroundings)
    start = Start(ray.get_runtime_context().get_node_id(), describe_machine())
    with _Link(mailbox, attempt, start, surroundings.period) as link:
        outcome = _outcome(link, job, shared)
    try:
        content: bytes = cloudpickle.dumps(Result(start, link.unsent, outcome))
    except Exception as error:  # pickling calls code of the content's classes
        problem = EngineError(f"A result must be picklable, but {in_words(error)}.")
        content = cloudpickle.dumps(Result(start, link.unsent, problem))
    return content


def _adopt(surroundings: Surroundings) -> None:
    """Take over the folders of the caller. Other machines may lack some of them."""
    for folder in surroundings.path:
        if folder not in sys.path:
            sys.path.append(folder)
    with suppress(OSError):
        os.chdir(surroundings.folder)


def _outcome(link: "_Link", job: bytes, shared: Sequence[bytes]) -> Any:
    context = JobContext(report=link.report, stopping=link.is_stopping)
    try:
        function, arguments = unpack_job(job, shared)
        return (function(context, *arguments),)
    except Exception as error:
        return sendable(error)


class _Link:
    """Exchanges messages with the mailbox from a second thread.

    So neither `report` nor `stopping` waits.
    """

    def __init__(self, mailbox: Any, attempt: int, start: Start, period: float) -> None:
        self._mailbox = mailbox
        self._attempt = attempt
        self._period = period
        self._start: Start | None = start
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._stopping = False
        self.unsent: list[bytes] = []
        self._thread = threading.Thread(target=self._run, daemon=True)

    def report(self, message: Any) -> None:
        content = cloudpickle.dumps(message)
        with self._lock:
            self.unsent.append(content)

    def is_stopping(self) -> bool:
        return self._stopping

    def __enter__(self) -> "_Link":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(self._period):
            with self._lock:
                messages = self.unsent
                self.unsent = []
            try:
                self._stopping, taken = ray.get(
                    self._mailbox.exchange.remote(self._attempt, self._start, messages)
                )
            except ray.exceptions.RayError:  # the engine is gone, and its caller too
                self._stopping = True
                return
            self._start = None
            if not taken:
                with self._lock:
                    self.unsent = messages + self.unsent
