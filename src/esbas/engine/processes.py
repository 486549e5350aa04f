"""An engine of processes, for jobs in plain Python and for jobs that may crash."""

import multiprocessing
import os
import pickle
import signal
from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any

from esbas.engine.protocol import GeneratorEngine, Job, Outcome, Resources
from esbas.engine.worker import IGNORED, JOB, REPORT, STOP, serve
from esbas.errors import EngineError

TICK = 0.2  # seconds between two calls of `stop`
PATIENCE = 10.0  # seconds for an idle worker to end


class Processes(GeneratorEngine):
    """Runs each job in a worker process. Workers are spawned, and are used again for the next job.

    The function, the arguments, the messages and the results must be picklable. Workers ignore Ctrl-C: the caller decides. They
    are killed when the iteration is closed, and end by themselves if this process is killed.
    """

    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        workers: dict[Connection, _Worker] = {}
        stopped = False
        try:
            while True:
                if not stopped and stop():
                    stopped = True
                    waiting.clear()
                    for worker in workers.values():
                        worker.send(STOP)
                while waiting and not stop() and (free := _free(workers, resources.jobs)) is not None:
                    failure = free.start(function, waiting.popleft())
                    if failure is not None:
                        yield failure
                busy = [connection for connection, worker in workers.items() if worker.job is not None]
                if not busy:
                    break
                for ready in _ready(busy, workers):
                    event = workers[ready].receive()
                    if not workers[ready].alive:
                        del workers[ready]
                    if isinstance(event, Outcome):
                        yield event
                    else:
                        report(*event)
            for worker in workers.values():
                worker.dismiss()
        finally:
            for worker in workers.values():
                worker.kill()


def _ready(busy: "list[Connection]", workers: "dict[Connection, _Worker]") -> "list[Connection]":
    """The connections of workers that sent something or ended.

    The end of a process does not always close its connection, or its sentinel: a process that the job forked holds both.
    """
    sent = wait(busy, TICK)
    return [connection for connection in busy if connection in sent or not workers[connection].process.is_alive()]


def _free(workers: "dict[Connection, _Worker]", count: int) -> "_Worker | None":
    """An idle worker, or a new one if there may be more of them."""
    for worker in workers.values():
        if worker.job is None:
            return worker
    if len(workers) >= count:
        return None
    worker = _Worker()
    workers[worker.connection] = worker
    return worker


class _Worker:
    """A process and the job that it runs."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of other threads
        self.connection, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, os.getpid()))
        with _signals_blocked():
            self.process.start()
        other.close()  # so that this end reports the end of the process
        self.job: str | None = None
        self.alive = True

    def start(self, function: Callable[..., Any], job: Job) -> Outcome | None:
        """Send a job; returns an outcome if it cannot be sent."""
        try:
            task = pickle.dumps((function, job.arguments))
        except Exception as error:  # pickling calls code of the job's classes
            return Outcome(name=job.name, error=_failure(f"must be picklable, but {type(error).__name__}: {error}", job.name))
        self.job = job.name
        self.send((JOB, task))
        return None

    def send(self, message: Any) -> None:
        with suppress(OSError):  # if the process ended: `receive` reports it
            self.connection.send(message)

    def receive(self) -> Outcome | tuple[str, Any]:
        """The next message of the job, or its outcome."""
        name = self.job or ""
        try:
            if not self.process.is_alive() and not self.connection.poll():
                raise EOFError
            kind, content = self.connection.recv()
        except (EOFError, OSError):
            self.alive = False
            self.process.join(PATIENCE)
            self.process.kill()  # if it closed its pipe, but did not end
            self.process.join()
            self.connection.close()
            why = f"must run to its end, but its process ended with exit code {self.process.exitcode}"
            return Outcome(name=name, error=_failure(why, name))
        except Exception as error:  # unpickling calls code of the content's classes
            kind, content = "", _failure(f"must send what can be unpickled, but {type(error).__name__}: {error}", name)
        if kind == REPORT:
            return name, content
        self.job = None
        return Outcome(name=name, error=content) if isinstance(content, Exception) else Outcome(name=name, value=content[0])

    def dismiss(self) -> None:
        """Let the idle process end."""
        self.connection.close()
        self.process.join(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """A process that is started within ignores Ctrl-C from its first moment; `serve` takes over from there."""
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
    return EngineError(f"job {name!r} {why}")
