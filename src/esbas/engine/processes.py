"""An engine of processes, for jobs in plain Python and for jobs that may crash."""

import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import Any

from esbas.engine.protocol import GeneratorEngine, Job, Outcome, Resources
from esbas.engine.worker import IGNORED, JOB, OUTCOME, REPORT, STOP, in_words, serve
from esbas.errors import EngineError

TICK = 0.2  # seconds between two calls of `stop`
PATIENCE = 10.0  # seconds for an idle process to end


class Processes(GeneratorEngine):
    """Runs each job in a separate process. Processes are spawned, and used again for other jobs.

    The function, the arguments, the messages and the results must be picklable. The processes
    ignore Ctrl-C: the caller decides. They are killed when the iteration is closed, and end by
    themselves if this process is killed.
    """

    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        processes: list[_JobProcess] = []
        stopped = False
        try:
            while True:
                if not stopped and stop():
                    stopped = True
                    waiting.clear()
                    for process in processes:
                        process.send(STOP)
                while waiting and not stop():
                    free = _free(processes, resources.jobs)
                    if free is None:
                        break
                    failure = free.start(function, waiting.popleft())
                    if failure is not None:
                        yield failure
                busy = [process for process in processes if process.job is not None]
                if not busy:
                    break
                for ready in _ready(busy):
                    event = ready.receive()
                    if not ready.alive:
                        processes.remove(ready)
                    if isinstance(event, Outcome):
                        yield event
                    else:
                        report(*event)
            for process in processes:
                process.dismiss()
        finally:
            for process in processes:
                process.kill()


def _ready(busy: "list[_JobProcess]") -> "list[_JobProcess]":
    """Wait a moment; return the processes that sent something or ended.

    The end of a process does not always close its connection, or its sentinel: a process that the
    job forked holds both.
    """
    sent = wait([process.connection for process in busy], TICK)
    return [process for process in busy if process.connection in sent or not process.is_running()]


def _free(processes: "list[_JobProcess]", most: int) -> "_JobProcess | None":
    """Return an idle process, or a new one if there may be more of them."""
    for process in processes:
        if process.job is None:
            return process
    if len(processes) >= most:
        return None
    process = _JobProcess()
    processes.append(process)
    return process


class _JobProcess:
    """A process and the job that it runs."""

    def __init__(self) -> None:
        # A fork would copy the locks of other threads.
        context = multiprocessing.get_context("spawn")
        self.connection, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, os.getpid()))
        with _signals_blocked():
            self._process.start()
        other.close()  # so that this end reports the end of the process
        self.job: str | None = None
        self.alive = True

    def is_running(self) -> bool:
        return self._process.is_alive()

    def start(self, function: Callable[..., Any], job: Job) -> Outcome | None:
        """Send a job; return an outcome if it cannot be sent."""
        try:
            packed = pickle.dumps((function, job.arguments))
        except Exception as error:  # pickling calls code of the job's classes
            problem = _failure(f"must be picklable, but {in_words(error)}", job.name)
            return Outcome(name=job.name, error=problem)
        self.job = job.name
        self.send((JOB, packed))
        return None

    def send(self, message: Any) -> None:
        with suppress(OSError):  # if the process ended: `receive` reports it
            self.connection.send(message)

    def receive(self) -> Outcome | tuple[str, Any]:
        """Return the next message of the job, with its name, or its outcome."""
        name = self.job or ""
        try:
            if not self.is_running() and not self.connection.poll():
                raise EOFError
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            return Outcome(name=name, error=self._end(name))
        except Exception as error:  # unpickling calls code of the content's classes
            kind = OUTCOME
            content = _failure(f"must send what can be unpickled, but {in_words(error)}", name)
        if kind == REPORT:
            return name, content
        self.job = None
        if isinstance(content, Exception):
            return Outcome(name=name, error=content)
        return Outcome(name=name, value=content[0])

    def _end(self, name: str) -> EngineError:
        """Clean up after a process that ended during its job; return the error of the job."""
        self.alive = False
        self._process.join(PATIENCE)
        self.kill()  # if it closed its pipe, but did not end
        code = self._process.exitcode
        return _failure(f"must run to its end, but its process ended with exit code {code}", name)

    def dismiss(self) -> None:
        """Let the idle process end."""
        self.connection.close()
        self._process.join(PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block Ctrl-C in processes that are started within the block; `serve` then ignores it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # would unblock the signals if it were started within
    former = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def _failure(why: str, name: str) -> EngineError:
    return EngineError(f"Job {name!r} {why}.")
