"""One run: play, log, and save checkpoints. A run that is killed continues from its last checkpoint with the same results."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import esbas
from esbas.errors import EsbasError, FileError, SaveFileError, TrainingError
from esbas.files import file_errors, write_atomically
from esbas.training.callbacks import Callback, RunInfo
from esbas.training.display.status import Status, StatusTracker
from esbas.training.runs.clock import Clock, read_clock, write_clock
from esbas.training.runs.episode_log import RunLog, one_line, read_episodes, read_faults
from esbas.training.runs.lock import locked
from esbas.training.runs.plan import Plan

SAVING_SHARE = 0.05  # checkpoints take at most this share of the time
REPORT_EVERY = 0.25  # seconds


@dataclass(frozen=True, kw_only=True)
class SaveOptions:
    """What a run saves. It does not affect results."""

    checkpoint_every: float = 30.0  # seconds
    tensorboard: bool = True


def run_folder(folder: Path, seed: int) -> Path:
    """The folder of the run with this seed, within the folder of the training."""
    return folder / "runs" / f"seed-{seed}"


def is_finished(folder: Path, seed: int) -> bool:
    """Whether the run with this seed has used up its budget."""
    clock = read_clock(run_folder(folder, seed))
    return clock is not None and clock.finished


def train_seed(
    plan: Plan,
    seed: int,
    folder: Path,
    *,
    saving: SaveOptions,
    report: Callable[[Status], None],
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Start or continue a run, until its budget is used up or `stop` returns True after an episode.

    Args:
        plan: what to run.
        seed: of the run.
        folder: of the training.
        saving: how often checkpoints are saved, and whether TensorBoard logs are written.
        report: receives the status of the run, several times per second and at its end.
        stop: called after every episode.
    """
    directory = run_folder(folder, seed)
    trace = directory / "error.txt"
    with file_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
    with locked(directory):
        with file_errors(trace):
            trace.unlink(missing_ok=True)
        try:
            _train(plan, seed, directory, saving, report, stop)
        except EsbasError:
            raise
        except Exception as error:  # of the environment: errors of learners do not end a run
            with suppress(FileError):  # the error itself is more important
                write_atomically(trace, traceback.format_exc().encode("utf-8", "replace"))
            message = f"the run of seed {seed} must reach its end, but {type(error).__name__}: {one_line(str(error))}"
            remedy = f"fix the error (its traceback is in {trace}), then `esbas resume {folder}` continues"
            raise TrainingError(f"{message}: {remedy}") from error


def _train(
    plan: Plan, seed: int, directory: Path, saving: SaveOptions, report: Callable[[Status], None], stop: Callable[[], bool]
) -> None:
    path = directory / "checkpoint.npz"
    clock = read_clock(directory)
    if clock is not None and not path.exists():
        message = f"a run that has started must have its checkpoint, but there is none at {str(path)!r}"
        raise SaveFileError(f"{message}: restore it, or remove {str(directory)!r} to start again")
    run = plan.resume(path, seed) if path.exists() else plan.start(seed)
    tracker, checkpoints = StatusTracker(run, seed=seed), _Checkpoints(directory, path, saving.checkpoint_every, clock)
    try:
        if run.number:
            _add_earlier(tracker, directory, run)
        with (
            RunLog(directory, upto=run.number, steps=run.steps) as log,
            _observing(saving, plan, seed, directory, run) as callbacks,
        ):
            report(tracker.status())
            reported = time.monotonic()
            for record in run:
                log.add(record, steps=run.steps)
                tracker.add_record(record)
                for each in callbacks:
                    each.on_episode(record, steps=run.steps)
                stopped = run.done or stop()
                if stopped or checkpoints.is_due():
                    log.flush(to_disk=True)  # first, so that the log has all episodes of the checkpoint
                    checkpoints.save(run)
                if stopped or time.monotonic() - reported >= REPORT_EVERY:
                    status, reported = tracker.status(), time.monotonic()
                    report(status)
                    for each in callbacks:
                        each.on_status(status)
                if stopped:
                    break
        checkpoints.write_clock(run)
    finally:
        run.close()


class _Checkpoints:
    """Saves the run when it is time, and adds up the time that the run has taken over all interruptions."""

    def __init__(self, directory: Path, path: Path, every: float, clock: Clock | None) -> None:
        self._directory, self._path, self._every = directory, path, every
        self._seconds = 0.0 if clock is None else clock.seconds
        self._last = time.monotonic()
        self._pause = every

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self._pause

    def save(self, run: esbas.Run) -> None:
        start = time.monotonic()
        run.save(self._path)
        now = time.monotonic()
        self._seconds += now - self._last
        self._last, self._pause = now, max(self._every, (now - start) / SAVING_SHARE)
        self.write_clock(run)

    def write_clock(self, run: esbas.Run) -> None:
        """Write clock.json. It is written again at the end, because a kill may have come between checkpoint and clock."""
        seconds = round(self._seconds, 3)
        write_clock(self._directory, Clock(seconds=seconds, episodes=run.number, steps=run.steps, finished=run.done))


@contextmanager
def _observing(saving: SaveOptions, plan: Plan, seed: int, directory: Path, run: esbas.Run) -> Iterator[list[Callback]]:
    """The callbacks of the run, started; they are told when the block ends, in any way."""
    callbacks: list[Callback] = []
    if saving.tensorboard and find_spec("tensorboard") is not None:
        from esbas.training.display.tensorboard import TensorBoardWriter  # needs an extra

        callbacks.append(TensorBoardWriter())
    learners = run.selector.arms
    info = RunInfo(task=plan.env_id, selector=plan.selector, seed=seed, folder=directory, learners=learners, steps=run.steps)
    with ExitStack() as started:
        for each in callbacks:
            each.on_start(info)
            started.callback(partial(_end, each, run))
        yield callbacks


def _end(callback: Callback, run: esbas.Run) -> None:
    callback.on_end(finished=run.done)


def _add_earlier(tracker: StatusTracker, directory: Path, run: esbas.Run) -> None:
    """Add the episodes from before an interruption."""
    episodes = read_episodes(directory, upto=run.number)
    strangers = sorted(set(episodes.learners.tolist()) - set(run.selector.arms))
    if strangers:
        message = f"{str(directory / 'episodes.csv')!r} must be the log of this run"
        raise SaveFileError(f"{message}, but its learner {strangers[0]!r} is not in the portfolio: restore an earlier copy")
    for arm, value in zip(episodes.learners.tolist(), episodes.values.tolist(), strict=True):
        tracker.add_episode(arm, value)
    for number, arm, _, dismissed, _ in read_faults(directory):
        if number <= run.number:
            tracker.add_fault(number, arm, dismissed)
