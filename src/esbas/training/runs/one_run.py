"""One run: play, log, and save checkpoints. A run that is killed continues from its last checkpoint with the same results."""

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import esbas
from esbas.errors import EsbasError, FileError, SaveFileError, TrainingError
from esbas.files import file_errors, write_atomically
from esbas.training.callbacks import Callback, CallbackSource, GuardedCallback, RunInfo
from esbas.training.display.counting import CountingTask
from esbas.training.display.status import Status, StatusTracker
from esbas.training.runs.clock import Clock, read_clock, write_clock
from esbas.training.runs.episode_log import RunLog, one_line, read_episodes, read_faults
from esbas.training.runs.evaluation import Evaluator
from esbas.training.runs.lock import locked
from esbas.training.runs.plan import Plan, replay_folder

CHECKPOINT = "checkpoint.npz"
SAVING_SHARE = 0.05  # checkpoints take at most this share of the time
REPORT_EVERY = 0.25  # seconds
REPORT_WITHIN = 1.0  # seconds between two reports within one episode


@dataclass(frozen=True, kw_only=True)
class SaveOptions:
    """What a run saves, and in how many processes it trains. It does not affect results."""

    checkpoint_every: float = 30.0  # seconds
    tensorboard: bool = True
    callbacks: tuple[CallbackSource, ...] = ()
    processes: int = 1  # that train networks with convolutions


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
    path = directory / CHECKPOINT
    clock = read_clock(directory)
    if clock is not None and not path.exists():
        message = f"a run that has started must have its checkpoint, but there is none at {str(path)!r}"
        raise SaveFileError(f"{message}: restore it, or remove {str(directory)!r} to start again")
    if path.exists():
        run = plan.resume(path, seed, processes=saving.processes)
    else:
        run = plan.start(seed, folder=replay_folder(directory), processes=saving.processes)
    tracker, checkpoints = StatusTracker(run, seed=seed), _Checkpoints(directory, path, saving.checkpoint_every, clock)
    try:
        if run.number:
            _add_earlier(tracker, directory, run)
        evaluator = Evaluator(plan, seed, directory, run)
        tracker.evaluated = evaluator.played
        with (
            RunLog(directory, upto=run.number, steps=run.steps) as log,
            evaluator,
            _observing(saving, plan, seed, directory, run, tracker) as callbacks,
        ):

            def report_status(current: int = 0) -> None:
                status = tracker.status(current=current, metrics=bool(callbacks))
                report(status)
                for each in callbacks:
                    each.on_status(status)

            run.env = task = CountingTask(run.env, report_status, every=REPORT_WITHIN)
            report(tracker.status())
            reported = time.monotonic()

            def report_evaluation(evaluated: int) -> None:
                nonlocal reported
                if time.monotonic() - reported >= REPORT_EVERY:
                    tracker.evaluated, tracker.evaluating, reported = evaluated, True, time.monotonic()
                    report(tracker.status())

            for record in run:
                log.add(record, steps=run.steps)
                tracker.add_record(record)
                for each in callbacks:
                    each.on_episode(record, steps=run.steps)
                for evaluation in evaluator.after(record, tick=report_evaluation):
                    for each in callbacks:
                        each.on_evaluation(evaluation)
                tracker.evaluated, tracker.evaluating = evaluator.played, False
                stopped = run.done or stop()
                if stopped or checkpoints.is_due():
                    log.flush(to_disk=True)  # first, so that the log has all episodes of the checkpoint
                    evaluator.flush()
                    checkpoints.save(run)
                if stopped or time.monotonic() - reported >= REPORT_EVERY:
                    report_status()
                    reported = time.monotonic()
                    task.restart()
                if stopped:
                    break
        if tracker.notes:  # of a callback that failed at the end
            report(tracker.status())
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
def _observing(
    saving: SaveOptions, plan: Plan, seed: int, directory: Path, run: esbas.Run, tracker: StatusTracker
) -> Iterator[list[Callback]]:
    """The callbacks of the run, started; they are told when the block ends, in any way."""
    callbacks: list[Callback] = [GuardedCallback(source, tracker.note) for source in saving.callbacks]
    if saving.tensorboard:
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
