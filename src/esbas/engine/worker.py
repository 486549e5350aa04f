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

JOB, STOP = "job", "stop"  # from the parent
REPORT, OUTCOME = "report", "outcome"  # from a worker
PARENT_CHECK = 1.0  # seconds
IGNORED = signal.SIGINT, signal.SIGTERM


def serve(connection: Connection, parent: int) -> None:
    """Run jobs that arrive through the connection until the parent (the number of its process) closes it, or is killed."""
    for number in IGNORED:  # Ctrl-C reaches every process of a terminal; the parent decides when to stop
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED)
    _JobServer(connection, parent).run()


class _JobServer:
    """Runs jobs in the main thread, where signals and timers work, while a second thread listens to the parent."""

    def __init__(self, connection: Connection, parent: int) -> None:
        self._connection, self._parent = connection, parent
        self._jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sending = threading.Lock()  # a job may report from threads
        self._stopping = self._cooperative = False
        self._received = self._finished = 0  # jobs

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        while (task := self._jobs.get()) is not None:
            self._cooperative = False
            self._send((OUTCOME, self._outcome(task)))
            self._finished += 1

    def _listen(self) -> None:
        """Receive from the parent until it ends."""
        try:
            while (message := self._receive()) != STOP:
                self._received += 1
                self._jobs.put(message[1])
            self._stopping = True
            self._receive()  # until the end
        except (EOFError, OSError):
            pass
        self._stopping = True
        if self._received > self._finished and not self._cooperative:  # the result is lost, and this job cannot be asked to stop
            os._exit(1)
        self._jobs.put(None)

    def _receive(self) -> Any:
        """The next message. An EOFError if the parent ended: the pipe stays open if another process of the parent holds it."""
        while not self._connection.poll(PARENT_CHECK):
            if os.name != "nt" and os.getppid() != self._parent:
                raise EOFError
        return self._connection.recv()

    def _outcome(self, task: bytes) -> Any:
        """A tuple of the value alone, or an exception."""
        try:
            function, arguments = pickle.loads(task)  # noqa: S301  # from the parent
            value = function(JobContext(self._report, self._is_stopping), *arguments)
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
            self._connection.send((OUTCOME, sendable(EngineError(f"a result must be picklable, but {in_words(error)}"))))


def sendable(error: Exception) -> Exception:
    """The error with the worker's traceback as a note; an EngineError if it cannot be sent as it is."""
    trace = "".join(traceback.format_exception(error))
    try:
        same = type(pickle.loads(pickle.dumps(error))) is type(error)  # noqa: S301  # made in this line
    except Exception:  # pickling calls code of the error's class
        same = False
    kept = error if same else EngineError(in_words(error))
    kept.add_note(f"In a worker process:\n{trace}")
    return kept


def in_words(error: BaseException) -> str:
    """The type and the message of an error."""
    return f"{type(error).__name__}: {error}"
