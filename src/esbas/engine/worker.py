"""What a worker process of the engine `processes` does."""

import os
import pickle
import queue
import signal
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from esbas.engine.protocol import JobContext
from esbas.errors import EngineError

JOB = "job"  # from the parent
STOP = "stop"  # from the parent
REPORT = "report"  # from a worker
OUTCOME = "outcome"  # from a worker
PARENT_CHECK = 1.0  # seconds
IGNORED = signal.SIGINT, signal.SIGTERM


def serve(connection: Connection, parent: int) -> None:
    """Run jobs that arrive through the connection until the parent closes it, or is killed.

    Args:
        connection: to the parent.
        parent: the number of the parent's process.
    """
    # Ctrl-C reaches every process of a terminal. The parent decides when to stop.
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    _JobServer(connection, parent).run()


class _JobServer:
    """Runs jobs in the main thread, while a second thread listens to the parent.

    Signals and timers work in the main thread only.
    """

    def __init__(self, connection: Connection, parent: int) -> None:
        self._connection = connection
        self._parent = parent
        self._jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Lock()  # a job may report from threads
        self._stopping = False
        self._cooperative = False  # whether the current job asks if it should stop
        self._received = 0  # jobs
        self._finished = 0  # jobs

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            packed = self._jobs.get()
            if packed is None:
                return
            self._cooperative = False
            self._send((OUTCOME, self._outcome(packed)))
            self._finished += 1

    def _listen(self) -> None:
        """Receive from the parent until it ends."""
        try:
            message = self._receive()
            while message != STOP:
                self._received += 1
                self._jobs.put(message[1])
                message = self._receive()
            self._stopping = True
            self._receive()  # until the end
        except (EOFError, OSError):
            pass
        self._stopping = True
        # The result is lost, and this job cannot be asked to stop.
        if self._received > self._finished and not self._cooperative:
            os._exit(1)
        self._jobs.put(None)

    def _receive(self) -> Any:
        """Return the next message; raise an EOFError if the parent ended.

        The pipe stays open if another process of the parent holds it.
        """
        while not self._connection.poll(PARENT_CHECK):
            if os.name != "nt" and os.getppid() != self._parent:
                raise EOFError
        return self._connection.recv()

    def _outcome(self, packed: bytes) -> Any:
        """Run a job; return a tuple of the value alone, or an exception."""
        context = JobContext(report=self._report, stopping=self._is_stopping)
        try:
            function, arguments = pickle.loads(packed)  # noqa: S301  # from the parent
            value = function(context, *arguments)
        except Exception as error:
            return sendable(error)
        return (value,)

    def _is_stopping(self) -> bool:
        self._cooperative = True
        return self._stopping

    def _report(self, content: Any) -> None:
        self._send((REPORT, content))

    def _send(self, message: Any) -> None:
        try:
            with self._sending:
                self._connection.send(message)
        except OSError:  # the parent is gone; a job that looks at `stopping` still saves its work
            pass
        except Exception as error:  # pickling calls code of the content's classes
            if message[0] == REPORT:
                raise
            problem = EngineError(f"A result must be picklable, but {in_words(error)}.")
            self._connection.send((OUTCOME, sendable(problem)))


def sendable(error: Exception) -> Exception:
    """Return the error with the worker's traceback as a note.

    It becomes an EngineError if it cannot be sent as it is.
    """
    trace = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301  # made in this line
        can_be_sent = type(copy) is type(error)
    except Exception:  # pickling calls code of the error's class
        can_be_sent = False
    kept = error if can_be_sent else EngineError(in_words(error))
    kept.add_note(f"In a worker process:\n{trace}")
    return kept


def in_words(error: BaseException) -> str:
    """Return the type and the message of an error."""
    return f"{type(error).__name__}: {error}"
