"""An engine for Ray: jobs run on the machines of a cluster."""

import os
import sys
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from esbas.engine.machine import describe_machine, differences
from esbas.engine.protocol import GeneratorEngine, Job, Outcome, Resources
from esbas.engine.ray_cluster import connect, import_ray, missing_resources, task_options
from esbas.engine.worker import in_words
from esbas.errors import EngineError, WorkerLostError

TICK = 0.2  # seconds between two calls of `stop`
EXCHANGES = 500  # visits of jobs to the mailbox per second
GRACE = 2.0  # seconds after `stop` in which started jobs report it; the others are canceled
MOST_ENDS = 3  # how often a job may end its worker
MOST_LOSSES = 10  # how often the machine of a job may be lost


class RayEngine(GeneratorEngine):
    """Runs each job as a Ray task, on any machine of a cluster.

    If a worker or a machine is lost, its jobs run again. A job that ended its worker three times
    yields a `WorkerLostError`, and other jobs continue. Differences between the versions and CPU
    types of the machines and this one are printed, because results may depend on them. Jobs are
    sent with cloudpickle, so functions of a script or a notebook work, too.

    Args:
        address: of a cluster, as `ray.init` takes it: "auto", "HOST:PORT" or "ray://HOST:PORT".
            None: Ray is started on this machine, and visible to it alone, until the process ends or
            calls `ray.shutdown()`.
    """

    remote = True

    def __init__(self, address: str | None = None) -> None:
        import_ray(address)
        self.address = address

    def outcomes(
        self,
        function: Callable[..., Any],
        waiting: deque[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
        stop: Callable[[], bool],
    ) -> Generator[Outcome, None, None]:
        if not waiting:
            return
        ray = connect(self.address)
        problem = missing_resources(ray, resources)
        if problem and self.address is None:
            raise EngineError(f"{problem}: ask for less.")
        if problem:
            print(f"esbas: note: {problem}: waiting for a larger one.", file=sys.stderr)
        stopped = False
        attempts = _Attempts(ray, function, list(waiting), resources, report)
        try:
            while True:
                if not stopped and stop():
                    stopped = True
                    waiting.clear()
                    attempts.stop()
                while waiting and len(attempts) < resources.jobs and not stop():
                    failure = attempts.start(waiting.popleft())
                    if failure is not None:
                        yield failure
                if not len(attempts):
                    return
                for end in attempts.ended():
                    if isinstance(end, Outcome):
                        yield end
                    elif end is None:
                        continue
                    elif stopped:
                        problem = f"Job {end.name!r} lost its worker while it stopped."
                        yield Outcome(name=end.name, error=WorkerLostError(problem))
                    else:
                        waiting.appendleft(end)
        finally:
            attempts.close()


class _Attempts:
    """The jobs that are running, and how often each was lost."""

    def __init__(
        self,
        ray: Any,
        function: Callable[..., Any],
        jobs: list[Job],
        resources: Resources,
        report: Callable[[str, Any], None],
    ) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from esbas.engine.ray_inputs import JobPacker
        from esbas.engine.ray_worker import Mailbox, Surroundings, run_attempt

        self._ray = ray
        self._report = report
        self._packer = JobPacker(function, jobs, ray.put)
        self._running: dict[Any, tuple[int, Job]] = {}  # by the reference to the result
        self._names: dict[int, str] = {}  # of running attempts
        self._known: set[int] = set()  # attempts that are known to have started
        self._deadline: float | None = None  # after which attempts that are not are canceled
        self._started = 0
        self._ends: dict[str, int] = {}
        self._losses: dict[str, int] = {}
        self._compared: set[str] = set()  # machines
        self._task = ray.remote(**task_options(resources))(run_attempt)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        self._mailbox = ray.remote(num_cpus=0, scheduling_strategy=here)(Mailbox).remote()
        self._period = max(TICK, resources.jobs / EXCHANGES)
        self._surroundings = ray.put(Surroundings(list(sys.path), _current_folder(), self._period))

    def __len__(self) -> int:
        return len(self._running)

    def start(self, job: Job) -> Outcome | None:
        """Start a job; return an outcome if it cannot be sent."""
        try:
            content, shared = self._packer.pack(job)
        except Exception as error:  # pickling calls code of the job's classes
            return _failed(job, f"must be picklable, but {in_words(error)}")
        self._started += 1
        self._names[self._started] = job.name
        reference = self._task.remote(
            self._surroundings, self._started, self._mailbox, content, *shared
        )
        self._running[reference] = self._started, job
        return None

    def ended(self) -> Generator[Outcome | Job | None, None, None]:
        """Wait a moment and deliver messages; yield how jobs ended.

        A job ends with an outcome. A job that has to run again is yielded itself, and None for a
        canceled one.
        """
        if self._deadline is not None and time.monotonic() > self._deadline:
            self._deadline = None
            for reference, (number, _) in self._running.items():
                if number not in self._known:  # it waits for a machine
                    self._ray.cancel(reference)
        done, _ = self._ray.wait(list(self._running), num_returns=1, timeout=TICK)
        self._deliver()
        for reference in done:
            number, job = self._running.pop(reference)
            end = self._end(reference, job)
            del self._names[number]
            yield end

    def stop(self) -> None:
        self._mailbox.stop.remote()
        self._deadline = time.monotonic() + self._period + GRACE

    def close(self) -> None:
        """End what is running."""
        with suppress(Exception):  # the cluster may be gone
            for reference in self._running:
                self._ray.cancel(reference, force=True)
            self._ray.kill(self._mailbox)

    def _deliver(self) -> None:
        try:
            starts, messages = self._ray.get(self._mailbox.collect.remote())
        except self._ray.exceptions.RayError as error:
            problem = f"The Ray cluster must keep running, but {in_words(error)}"
            raise EngineError(f"{problem}: start it, then try again.") from error
        for number, start in starts:
            self._known.add(number)
            self._compare(start)
        for number, message in messages:
            if number in self._names:  # otherwise from a worker that was taken for lost
                self._report(self._names[number], self._unpack(message))

    def _end(self, reference: Any, job: Job) -> Outcome | Job | None:
        errors = self._ray.exceptions
        try:
            result = self._unpack(self._ray.get(reference))
        except (errors.NodeDiedError, errors.ObjectLostError) as error:
            why = f"its machine was lost {MOST_LOSSES} times"
            return self._lost(job, self._losses, MOST_LOSSES, why, error)
        except (errors.WorkerCrashedError, errors.OutOfMemoryError) as error:
            why = f"it ended its worker {MOST_ENDS} times"
            return self._lost(job, self._ends, MOST_ENDS, why, error)
        except errors.TaskCancelledError:
            return None
        except Exception as error:  # what a worker cannot import, or this process cannot unpickle
            return _failed(job, f"must return, but {in_words(error)}")
        self._compare(result.start)
        for message in result.messages:
            self._report(job.name, self._unpack(message))
        if isinstance(result.outcome, Exception):
            return Outcome(name=job.name, error=result.outcome)
        return Outcome(name=job.name, value=result.outcome[0])

    def _lost(
        self, job: Job, counts: dict[str, int], most: int, why: str, error: Exception
    ) -> Outcome | Job:
        """Count a loss; return the job, to run it again, or an outcome if it was lost too often."""
        counts[job.name] = counts.get(job.name, 0) + 1
        if counts[job.name] < most:
            return job
        reason = str(error).partition("\n")[0].rstrip(".")
        problem = f"Job {job.name!r} must run to its end, but {why}: {reason}."
        return Outcome(name=job.name, error=WorkerLostError(problem))

    def _compare(self, start: Any) -> None:
        """Print once for each machine what is different there."""
        if start.node in self._compared:
            return
        self._compared.add(start.node)
        found = differences(start.machine, describe_machine())
        if found:
            reason = f"node {start.node[:8]} has {', '.join(found)}"
            message = f"results may differ from those of this machine, because {reason}"
            print(f"esbas: note: {message}", file=sys.stderr)

    def _unpack(self, content: bytes) -> Any:
        return self._ray.cloudpickle.loads(content)


def _failed(job: Job, why: str) -> Outcome:
    return Outcome(name=job.name, error=EngineError(f"Job {job.name!r} {why}."))


def _current_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109  # as text
    except OSError:  # deleted
        return "/"
