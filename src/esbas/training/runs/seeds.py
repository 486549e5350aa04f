"""The runs of several seeds on an engine. Ctrl-C stops them between two episodes, after a checkpoint."""

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from esbas.engine import Engine, Job, JobContext, Resources, find_engine
from esbas.errors import FileError, TrainingError
from esbas.training.display.status import Status
from esbas.training.runs.one_run import SaveOptions, is_finished, train_seed
from esbas.training.runs.plan import Plan


class StopRequest:
    """Turns the first Ctrl-C or SIGTERM into a request to stop after the episode; a second one raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.made = False
        self._former: dict[int, Any] = {}

    def __enter__(self) -> "StopRequest":
        main = threading.current_thread() is threading.main_thread()  # only there handlers can be set
        for number in (signal.SIGINT, signal.SIGTERM) if main else ():
            self._former[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.made:
            raise KeyboardInterrupt
        self.made = True
        print("esbas: stopping after this episode; press Ctrl-C again to stop at once", file=sys.stderr)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
) -> None:
    """Start or continue the runs of all seeds, until all are finished.

    Raises KeyboardInterrupt if they were stopped before. If a run fails, the others stop after a checkpoint, and its error is
    raised.

    Args:
        plan: what to run.
        seeds: one run each.
        folder: of the training.
        jobs: how many runs go at the same time.
        saving: what is saved, and how often.
        report: receives the status of each run, several times per second.
        engine: where the runs go; None: in this thread, or in processes if several go at the same time.
    """
    waiting = [seed for seed in seeds if not is_finished(folder, seed)]
    chosen = engine or ("processes" if min(jobs, len(waiting)) > 1 else "sequential")
    work = {f"seed {seed}": Job(f"seed {seed}", (plan, seed, folder, saving)) for seed in waiting}
    failures: dict[str, Exception] = {}
    with StopRequest() as request:
        running = find_engine(chosen).map(
            _train_seed,
            work.values(),
            resources=Resources(jobs=jobs),
            report=lambda _, status: report(status),
            stop=lambda: request.made or bool(failures),
        )
        with running as outcomes:
            for outcome in outcomes:
                if outcome.error is not None:
                    failures[outcome.name] = outcome.error  # the others stop
    for name, error in failures.items():
        if len(seeds) == 1 or isinstance(error, TrainingError | FileError):
            raise error
        raise TrainingError(f"the run of {name} must reach its end, but {error}: `esbas resume {folder}` continues it") from error
    if request.made and not all(is_finished(folder, seed) for seed in seeds):
        raise KeyboardInterrupt


def _train_seed(context: JobContext, plan: Plan, seed: int, folder: Path, saving: SaveOptions) -> None:
    train_seed(plan, seed, folder, saving=saving, report=context.report, stop=context.stopping)
