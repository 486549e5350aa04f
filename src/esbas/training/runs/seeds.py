"""The runs of several seeds on an engine. Ctrl-C stops them after an episode and a checkpoint."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from esbas._internal.files import file_errors
from esbas.engine import Engine, Job, JobContext, find_engine, is_remote, read_resources
from esbas.errors import (
    BrokenEnvError,
    FileError,
    NoLearnerError,
    TrainingError,
    WorkerLostError,
)
from esbas.training.display.status import Status
from esbas.training.runs.lock import locked
from esbas.training.runs.one_run import (
    SaveOptions,
    is_finished,
    no_learner_error,
    problem_of_finished,
    run_folder,
    train_seed,
)
from esbas.training.runs.plan import Plan
from esbas.training.runs.remote import RunFiles, RunUpdate, train_elsewhere, write_update
from esbas.training.runs.resuming import how_to_resume


class StopRequest:
    """Turns the first Ctrl-C or SIGTERM into a request to stop after the episode.

    A second one raises KeyboardInterrupt. A context manager.
    """

    def __init__(self) -> None:
        self.made = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        # Only the main thread can set handlers.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        print(
            "esbas: stopping after this episode; press Ctrl-C again to stop at once",
            file=sys.stderr,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)


def train_seeds(
    plan: Plan,
    seeds: Sequence[int],
    folder: Path,
    *,
    jobs: int,
    saving: SaveOptions,
    report: Callable[[Status], None],
    engine: str | Engine | None = None,
    resources: Sequence[str] = (),
) -> None:
    """Start or continue the runs of all seeds, until all are finished.

    Raises KeyboardInterrupt if they were stopped before. If a run fails, the others stop after a
    checkpoint, and its error is raised. A run whose worker dies repeatedly, or in which no learner
    can act or learn, does not stop the others: its error is raised at the end.

    Args:
        plan: what to run.
        seeds: one run each.
        folder: of the training.
        jobs: how many runs go at the same time.
        saving: what is saved, and how often.
        report: receives the status of each run, several times per second.
        engine: where the runs go; None: in this thread, or in processes if several go at the same
            time.
        resources: of each run on a cluster, such as "cpus=2"; see `esbas.engine.read_resources`.
    """
    waiting = [seed for seed in seeds if not is_finished(folder, seed)]
    if not engine:
        engine = "processes" if min(jobs, len(waiting)) > 1 else "sequential"
    chosen = find_engine(engine)
    remote = is_remote(chosen)
    work = [_job(plan, seed, folder, saving, remote=remote) for seed in waiting]
    failures: dict[str, Exception] = {}  # by the names of jobs
    lost: dict[str, Exception] = {}  # likewise, of runs that do not stop the others
    for seed in seeds:
        if seed not in waiting:
            problem = problem_of_finished(folder, seed, plan.portfolio.names)
            if problem:  # it failed before
                lost[f"seed {seed}"] = no_learner_error(plan, folder, seed, problem)

    def receive(_: str, message: Status | RunUpdate) -> None:
        if isinstance(message, RunUpdate):
            write_update(run_folder(folder, message.seed), message)
        else:
            report(message)

    with StopRequest() as request, ExitStack() as locks:
        if remote:  # otherwise, the worker locks the folder
            for seed in waiting:
                locks.enter_context(_locked(run_folder(folder, seed)))
        running = chosen.map(
            _train_seed,
            work,
            resources=read_resources(resources, jobs=jobs, engine=chosen),
            report=receive,
            stop=lambda: request.made or bool(failures),
        )
        with running as outcomes:
            for outcome in outcomes:
                if isinstance(outcome.error, WorkerLostError | NoLearnerError):
                    lost[outcome.name] = outcome.error
                elif outcome.error is not None:
                    failures[outcome.name] = outcome.error
    for name, error in (failures | lost).items():  # raises the first one
        if len(seeds) == 1 or isinstance(error, TrainingError | FileError | BrokenEnvError):
            raise error
        cause = str(error).removesuffix(".")
        raise TrainingError(
            f"The run of {name} failed: {cause}. To continue it: {how_to_resume(plan, folder)}."
        ) from error
    if request.made and not all(is_finished(folder, seed) for seed in seeds):
        raise KeyboardInterrupt


def _job(plan: Plan, seed: int, folder: Path, saving: SaveOptions, *, remote: bool) -> Job:
    files = RunFiles(run_folder(folder, seed)) if remote else None
    return Job(f"seed {seed}", (plan, seed, folder, saving, files))


def _train_seed(
    context: JobContext,
    plan: Plan,
    seed: int,
    folder: Path,
    saving: SaveOptions,
    files: RunFiles | None,
) -> None:
    if files is None:
        train_seed(plan, seed, folder, saving=saving, report=context.report, stop=context.stopping)
    else:
        train_elsewhere(
            plan, seed, folder, files, saving=saving, report=context.report, stop=context.stopping
        )


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the folder of a run, which may be new."""
    with file_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        yield
