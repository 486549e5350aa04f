"""The interface of an engine: it runs named jobs and yields their outcomes.

The caller stores results and shows progress.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Any, Protocol

from esbas.errors import InvalidValueError, require


@dataclass(frozen=True, slots=True)
class Job:
    """One call of the function that is mapped: `function(context, *arguments)`."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a job ended: with a value, or with an error."""

    name: str
    value: Any = None
    error: Exception | None = None

    def result(self) -> Any:
        """Return the value, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What the jobs may use.

    Attributes:
        jobs: how many jobs run at the same time.
        cpus: CPU cores per job; for engines that start jobs on several machines.
        gpus: GPUs per job; likewise.
        memory: gigabytes per job; likewise. 0: not limited.
    """

    jobs: int = 1
    cpus: float = 1.0
    gpus: float = 0.0
    memory: float = 0.0

    def __post_init__(self) -> None:
        require(self.jobs >= 1, f"`jobs` must be at least 1, but got {self.jobs!r}.")
        require(self.cpus > 0, f"`cpus` must be greater than 0, but got {self.cpus!r}.")
        require(self.gpus >= 0, f"`gpus` must be at least 0, but got {self.gpus!r}.")
        require(self.memory >= 0, f"`memory` must be at least 0, but got {self.memory!r}.")


@dataclass(frozen=True, slots=True)
class JobContext:
    """What a job can do while it runs.

    Attributes:
        report: sends a message to the caller of `map`.
        stopping: whether the job should return soon. A job that calls it regularly can save its
            work before it returns.
    """

    report: Callable[[Any], None]
    stopping: Callable[[], bool]


def ignore_report(name: str, message: Any) -> None:
    """Drop a message; the default `report` of `Engine.map`."""


def never_stop() -> bool:
    """Return False; the default `stop` of `Engine.map`."""
    return False


class Engine(Protocol):
    """Runs jobs, some at the same time. `esbas.engine.check_engine` checks an implementation.

    The class is created without arguments if the engine is selected by name (see
    `esbas.engine.find_engine`).

    An engine whose jobs may run on other machines, and get the CPUs, GPUs and memory of `Resources`
    there, has an attribute `remote` that is true. It pickles the arguments of a job each time it
    starts it, also if it starts it again.
    """

    def map(
        self,
        function: Callable[..., Any],
        jobs: Iterable[Job],
        *,
        resources: Resources,
        report: Callable[[str, Any], None] = ignore_report,
        stop: Callable[[], bool] = never_stop,
    ) -> AbstractContextManager[Iterator[Outcome]]:
        """Call `function(context, *job.arguments)` for each job; yield outcomes as jobs finish.

        Each job that was started yields exactly one outcome; an exception in a job, or the end of
        its process, becomes an outcome with an error. Other jobs continue. Leaving the context ends
        the iteration: no more jobs are started, and running jobs are abandoned or killed.

        Args:
            function: the first argument is a `JobContext`. Engines that use processes need it to be
                picklable.
            jobs: with different names, started in this order.
            resources: how many jobs run at the same time, and what each may use.
            report: called in the caller's thread, while it iterates, with the name of a job and a
                message of that job.
            stop: asked regularly. Once it returns True, no more jobs are started, and
                `context.stopping()` returns True in those that are running; their outcomes are
                still yielded.
        """
        ...


class GeneratorEngine(ABC):
    """An engine that is a generator of outcomes; closing the context closes the generator."""

    def map(
        self,
        function: Callable[..., Any],
        jobs: Iterable[Job],
        *,
        resources: Resources,
        report: Callable[[str, Any], None] = ignore_report,
        stop: Callable[[], bool] = never_stop,
    ) -> closing[Generator[Outcome, None, None]]:
        return closing(self.outcomes(function, deque(checked_jobs(jobs)), resources, report, stop))

    @abstractmethod
    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        """Yield outcomes, as `Engine.map`; the names of the waiting jobs have been checked."""


def run_job(function: Callable[..., Any], job: Job, context: JobContext) -> Outcome:
    """Run a job in the current thread; an exception becomes an outcome with an error."""
    try:
        return Outcome(name=job.name, value=function(context, *job.arguments))
    except Exception as error:  # of the job; the caller decides what follows from it
        return Outcome(name=job.name, error=error)


def checked_jobs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs as a list; raise an InvalidValueError if two have the same name."""
    listed = list(jobs)
    names: set[str] = set()
    for job in listed:
        if job.name in names:
            raise InvalidValueError(
                f"Jobs must have different names, but two are named {job.name!r}: rename one."
            )
        names.add(job.name)
    return listed
