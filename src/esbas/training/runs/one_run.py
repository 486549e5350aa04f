"""One run of a training: it plays, logs, evaluates and saves checkpoints.

A run that is killed continues from its last checkpoint, with the same results.
"""

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import esbas
from esbas._internal.files import file_errors, write_atomically
from esbas.errors import EsbasError, FileError, NoLearnerError, SaveFileError, TrainingError
from esbas.loop import Budget, EpisodeRecord
from esbas.training.callbacks import Callback, CallbackSource, GuardedCallback, RunInfo
from esbas.training.display.counting import CountingEnv
from esbas.training.display.status import Status, StatusTracker
from esbas.training.runs.clock import Clock, read_clock, write_clock
from esbas.training.runs.episode_log import RunLog, one_line, read_episodes, read_faults
from esbas.training.runs.evaluation import Evaluator
from esbas.training.runs.lock import locked
from esbas.training.runs.plan import Plan, replay_folder
from esbas.training.runs.resuming import how_to_resume
from esbas.training.runs.stopping import Stop, StopRule, limits_of, read_stop, write_stop
from esbas.training.runs.working import LearnerWatch, watch_of

CHECKPOINT = "checkpoint.npz"
SAVING_SHARE = 0.05  # checkpoints take at most this share of the time
REPORT_EVERY = 0.25  # seconds
REPORT_WITHIN = 1.0  # seconds between two reports within one episode


@dataclass(frozen=True, kw_only=True)
class SaveOptions:
    """What a run saves, and in how many processes it trains. Results do not depend on it."""

    checkpoint_every: float = 30.0  # seconds
    tensorboard: bool = True
    callbacks: tuple[CallbackSource, ...] = ()
    processes: int = 1  # that train networks with convolutions


def run_folder(folder: Path, seed: int) -> Path:
    """Return the folder of the run with this seed, within the folder of the training."""
    return folder / "runs" / f"seed-{seed}"


def is_finished(folder: Path, seed: int) -> bool:
    """Return whether the run with this seed has used up its budget."""
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

    A run in which no learner can act or learn raises a NoLearnerError, after its files are written:
    see `esbas.training.runs.working`.

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
            problem = _train(plan, seed, directory, saving, report, stop)
        except EsbasError:
            raise
        # Of the environment: errors of learners do not end a run. An exit, of either, must not end
        # the program as if the training had succeeded.
        except (Exception, SystemExit) as error:
            with suppress(FileError):  # the error itself is more important
                write_atomically(trace, traceback.format_exc().encode("utf-8", "replace"))
            cause = one_line(f"{type(error).__name__}: {error}").removesuffix(":")
            remedy = f"fix the error, then {how_to_resume(plan, folder)} continues"
            raise TrainingError(
                f"The run of seed {seed} failed: {cause} (traceback: {trace}). To go on, {remedy}."
            ) from error
    if problem:
        raise no_learner_error(plan, folder, seed, problem)


def no_learner_error(plan: Plan, folder: Path, seed: int, problem: str) -> NoLearnerError:
    """Return the error for a run in which no learner was able to act or learn."""
    log = run_folder(folder, seed) / "faults.csv"
    if is_finished(folder, seed):
        remedy = "fix it, then train again in another folder"
    else:
        remedy = f"fix it, then {how_to_resume(plan, folder)} continues"
    return NoLearnerError(
        f"The run of seed {seed} failed, because {problem}; all faults are in {log}: {remedy}."
    )


def problem_of_finished(folder: Path, seed: int, names: Sequence[str]) -> str:
    """Return why a run that has used up its budget has failed; "" if it has not."""
    watch = watch_of(run_folder(folder, seed), names)
    return _with_fault(watch.unable_at_end(), watch)


def _with_fault(problem: str, watch: LearnerWatch) -> str:
    if not problem:
        return ""
    return f"{problem}; the most frequent fault was {watch.most_frequent_fault()}"


def _train(
    plan: Plan,
    seed: int,
    directory: Path,
    saving: SaveOptions,
    report: Callable[[Status], None],
    stop: Callable[[], bool],
) -> str:
    """Train, and return why no learner was able to act or learn; "" if one was."""
    path = directory / CHECKPOINT
    clock = read_clock(directory)
    if clock is not None and not path.exists():
        message = f"The run has started, but its checkpoint {str(path)!r} is missing"
        raise SaveFileError(f"{message}: restore it, or remove {str(directory)!r} to start again.")
    run = _start_or_resume(plan, seed, directory, saving)
    try:
        return _Session(plan, seed, directory, saving, run, clock, report, stop).play()
    finally:
        plan.close(run)


def _start_or_resume(plan: Plan, seed: int, directory: Path, saving: SaveOptions) -> esbas.Run:
    path = directory / CHECKPOINT
    if path.exists():
        run = plan.resume(path, seed, processes=saving.processes)
    else:
        run = plan.start(seed, folder=replay_folder(directory), processes=saving.processes)
    stopped = read_stop(directory, plan.config)
    if stopped is not None:  # by a limit, and then killed before its end was saved
        run.budget = Budget(steps=stopped.steps)
    return run


class _Session:
    """A run from its start, or from its last checkpoint, to its end or to an interruption."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        directory: Path,
        saving: SaveOptions,
        run: esbas.Run,
        clock: Clock | None,
        report: Callable[[Status], None],
        stop: Callable[[], bool],
    ) -> None:
        self._plan = plan
        self._seed = seed
        self._directory = directory
        self._saving = saving
        self._run = run
        self._report = report
        self._interrupted = stop
        self._callbacks: list[Callback] = []
        self._tracker = StatusTracker(run, seed=seed)
        self._checkpoints = _Checkpoints(directory, saving.checkpoint_every, clock)
        self._stop_rule = StopRule(plan.config, run.objective, self._checkpoints.seconds)
        self._watch = LearnerWatch(run.selector.arms)
        if run.number:
            self._add_earlier()
        self._evaluator = Evaluator(plan, seed, directory, run)
        self._tracker.evaluated = self._evaluator.played
        self._reported = time.monotonic()

    def play(self) -> str:
        """Play the remaining episodes, and evaluate the policies when it is time.

        Returns why no learner was able to act or learn, so that the run has failed; "" otherwise.
        """
        run = self._run
        with (
            RunLog(self._directory, upto=run.number, steps=run.steps) as log,
            self._evaluator,
            self._started_callbacks() as self._callbacks,
        ):
            # The evaluator keeps the plain environment: its steps are not those of the training.
            env = CountingEnv(run.env, self._report_status, every=REPORT_WITHIN)
            run.env = env
            run.note = lambda text: self._note_in_episode(text, env.steps)
            self._report(self._tracker.status())
            unable = ""
            for record in run:
                log.add(record, steps=run.steps)
                self._observe(record)
                self._stop_if_due()
                self._evaluate(record)
                if not run.done:
                    unable = self._watch.unable_to_act(run.budget)
                ends = run.done or bool(unable) or self._interrupted()
                if ends or self._checkpoints.is_due():
                    # The logs come first, so that they have all episodes of the checkpoint.
                    log.flush(to_disk=True)
                    self._evaluator.flush()
                    self._checkpoints.save(run)
                if ends or self._is_report_due():
                    self._report_status()
                    env.restart()
                if ends:
                    break
            if run.done:
                # This changes a learner, so it comes after the last checkpoint.
                self._evaluator.score_best(tick=self._report_evaluation)
            self._tracker.evaluated = self._evaluator.played
            self._tracker.evaluating = False
            self._report_status()
        if self._tracker.notes:  # a callback may have failed at its end
            self._report(self._tracker.status())
        self._checkpoints.write_clock(run, finished=run.done)
        if run.done:
            unable = self._watch.unable_at_end()
        return _with_fault(unable, self._watch)

    def _note_in_episode(self, text: str, current: int) -> None:
        """Report a note at once, because the episode may take long."""
        self._tracker.note(text)
        self._report_status(current)

    def _observe(self, record: EpisodeRecord) -> None:
        steps = self._run.steps
        self._tracker.add_record(record)
        self._watch.add(
            record.number,
            record.learner,
            length=record.length,
            steps=steps,
            epoch=record.epoch,
            faults=record.faults,
        )
        self._stop_rule.add(steps, record.value)
        for callback in self._callbacks:
            if callback.on_episode(record, steps=steps) is True:
                self._stop_rule.asked = True

    def _stop_if_due(self) -> None:
        """End the run here if a limit is reached, and store where."""
        if self._run.done:
            return
        reason = self._stop_rule.reason()
        if reason is not None:
            stop = Stop(steps=self._run.steps, reason=reason, limits=limits_of(self._plan.config))
            write_stop(self._directory, stop)
            self._run.budget = Budget(steps=self._run.steps)

    def _evaluate(self, record: EpisodeRecord) -> None:
        for evaluation in self._evaluator.after(record, tick=self._report_evaluation):
            for callback in self._callbacks:
                if callback.on_evaluation(evaluation) is True:
                    self._stop_rule.asked = True
        self._tracker.evaluated = self._evaluator.played
        # A run that is done is not finished before its best policy is scored again.
        self._tracker.evaluating = self._run.done

    def _is_report_due(self) -> bool:
        return time.monotonic() - self._reported >= REPORT_EVERY

    def _report_status(self, current: int = 0) -> None:
        """Report the status; `current` is the number of steps of an unfinished episode."""
        status = self._tracker.status(current=current, metrics=bool(self._callbacks))
        self._report(status)
        self._reported = time.monotonic()
        for callback in self._callbacks:
            callback.on_status(status)

    def _report_evaluation(self, evaluated: int) -> None:
        """Report how many steps evaluations have taken, while one is running."""
        if self._is_report_due():
            self._tracker.evaluated = evaluated
            self._tracker.evaluating = True
            self._report(self._tracker.status())
            self._reported = time.monotonic()

    def _add_earlier(self) -> None:
        """Add the episodes from before an interruption."""
        run = self._run
        episodes = read_episodes(self._directory, upto=run.number)
        names = episodes.learners.tolist()
        values = episodes.values.tolist()
        unknown_names = sorted(set(names) - set(run.selector.arms))
        if unknown_names:
            path = str(self._directory / "episodes.csv")
            message = (
                f"{path!r} has the learner {unknown_names[0]!r}, which is not in the portfolio"
            )
            raise SaveFileError(f"{message}: restore an earlier copy.")
        for learner, value, steps in zip(names, values, episodes.steps.tolist(), strict=True):
            self._tracker.add_episode(learner, value, steps=steps)
            self._stop_rule.add(steps, value)
        for fault in read_faults(self._directory):
            if fault.episode <= run.number:
                self._tracker.add_fault(fault.episode, fault.learner, fault.dismissed)
        self._watch = watch_of(self._directory, run.selector.arms, upto=run.number)

    @contextmanager
    def _started_callbacks(self) -> Iterator[list[Callback]]:
        """Start the callbacks of the run; end them when the block ends, in any way."""
        run = self._run
        note = self._tracker.note
        given = self._saving.callbacks
        callbacks: list[Callback] = [GuardedCallback(source, note) for source in given]
        if self._saving.tensorboard:
            from esbas.training.display.tensorboard import TensorBoardWriter  # needs an extra

            callbacks.append(TensorBoardWriter())
        info = RunInfo(
            env=self._plan.config.env_name,
            selector=self._plan.config.selector_name,
            seed=self._seed,
            folder=self._directory,
            learners=run.selector.arms,
            steps=run.steps,
        )
        with ExitStack() as started:
            for callback in callbacks:
                callback.on_start(info)
                started.callback(_end, callback, run)
            yield callbacks


def _end(callback: Callback, run: esbas.Run) -> None:
    callback.on_end(finished=run.done)


class _Checkpoints:
    """Saves the run when it is time, and measures its time over all interruptions."""

    def __init__(self, directory: Path, every: float, clock: Clock | None) -> None:
        self._directory = directory
        self._every = every
        self._seconds_before = 0.0 if clock is None else clock.seconds  # until the last checkpoint
        self._last = time.monotonic()
        self._pause = every

    def seconds(self) -> float:
        """Return how long the run has been trained, over all interruptions."""
        return self._seconds_before + time.monotonic() - self._last

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self._pause

    def save(self, run: esbas.Run) -> None:
        start = time.monotonic()
        run.save(self._directory / CHECKPOINT)
        now = time.monotonic()
        self._seconds_before += now - self._last
        self._last = now
        self._pause = max(self._every, (now - start) / SAVING_SHARE)  # large runs take long to save
        self.write_clock(run, finished=False)

    def write_clock(self, run: esbas.Run, *, finished: bool) -> None:
        """Write clock.json.

        It is also written at the end, because a kill may have come between checkpoint and clock.
        """
        seconds = round(self._seconds_before, 3)
        clock = Clock(seconds=seconds, episodes=run.number, steps=run.steps, finished=finished)
        write_clock(self._directory, clock)
