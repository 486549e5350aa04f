"""One run: play, write down, save now and then. Killed at any moment, it continues from its last checkpoint as if nothing was."""

import json
import time
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import esbas
from esbas.errors import EsbasError, TrainingError
from esbas.reporting.files import write_json
from esbas.training.lock import locked
from esbas.training.log import RunLog, read_episodes, read_faults
from esbas.training.plan import Plan, close
from esbas.training.status import Meter, Status

SAVING_SHARE = 0.05  # of the time goes into checkpoints at most
TELL_EVERY = 0.25  # seconds


@dataclass(frozen=True, kw_only=True)
class Keeping:
    """What is kept besides the numbers: nothing of it changes them."""

    checkpoint_every: float = 30.0  # seconds
    tensorboard: bool = True


def run_folder(folder: Path, seed: int) -> Path:
    """Where the run of this seed keeps its files."""
    return folder / "runs" / f"seed-{seed}"


def is_finished(folder: Path, seed: int) -> bool:
    """Whether the run of this seed has used up its budget."""
    return bool(read_clock(run_folder(folder, seed)).get("finished", False))


def train_seed(
    plan: Plan,
    seed: int,
    folder: Path,
    *,
    keeping: Keeping,
    tell: Callable[[Status], None],
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Start the run, or continue it, until its budget is used up or `stop` says so between two episodes.

    Args:
        plan: what to run.
        seed: of the run.
        folder: of the whole training; the run has a folder of its own there.
        keeping: how often to save, and whether to log.
        tell: is told how the run is doing, a few times per second, and at its end.
        stop: asked after every episode.
    """
    home = run_folder(folder, seed)
    home.mkdir(parents=True, exist_ok=True)
    with locked(home):
        (home / "error.txt").unlink(missing_ok=True)
        try:
            _train(plan, seed, home, keeping, tell, stop)
        except EsbasError:
            raise
        except Exception as error:  # of the environment, or of the disk: learners cannot end a run
            (home / "error.txt").write_text(traceback.format_exc(), "utf-8")
            told = f"training must go on to its end, but {type(error).__name__}: {' '.join(str(error).split())}"
            where = f"{home / 'error.txt'} tells where"
            raise TrainingError(f"{told}: mend it ({where}), then `esbas resume {folder}` continues") from error


def _train(plan: Plan, seed: int, home: Path, keeping: Keeping, tell: Callable[[Status], None], stop: Callable[[], bool]) -> None:
    checkpoint = home / "checkpoint.npz"
    run = plan.resume(checkpoint, seed) if checkpoint.exists() else plan.start(seed)
    meter, clock = Meter(run, seed=seed), _Clock(home, checkpoint, keeping.checkpoint_every)
    try:
        with RunLog(home, upto=run.number) as log, _board(home, run.loop.steps, keeping) as board:
            _recall(meter, home)
            tell(meter.status())
            told = time.monotonic()
            for record in run:
                log.add(record, steps=run.loop.steps)
                meter.see_record(record)
                stopped = run.done or stop()
                if stopped or clock.is_due():
                    log.flush(to_disk=True)  # before the checkpoint, which must not know of episodes that the log lacks
                    clock.save(run)
                if stopped or time.monotonic() - told >= TELL_EVERY:
                    status, told = meter.status(), time.monotonic()
                    tell(status)
                    if board is not None:
                        board.add(record, status)
                if stopped:
                    break
        clock.note(run)
    finally:
        close(run)


class _Clock:
    """Says when to save, and keeps the time that the run took, over all interruptions."""

    def __init__(self, home: Path, checkpoint: Path, every: float) -> None:
        self._path, self._checkpoint, self._every = home / "clock.json", checkpoint, every
        self._seconds = float(read_clock(home).get("seconds", 0.0))
        self._last = time.monotonic()
        self._pause = every

    def is_due(self) -> bool:
        return time.monotonic() - self._last >= self._pause

    def save(self, run: esbas.Run) -> None:
        start = time.monotonic()
        run.save(self._checkpoint)
        now = time.monotonic()
        self._seconds += now - self._last
        self._last, self._pause = now, max(self._every, (now - start) / SAVING_SHARE)
        self.note(run)

    def note(self, run: esbas.Run) -> None:
        """Of the checkpoint; a kill may have come between it and the note."""
        told = {"seconds": round(self._seconds, 3), "episodes": run.number, "steps": run.loop.steps, "finished": run.done}
        write_json(self._path, told)


def read_clock(home: Path) -> dict[str, Any]:
    """Seconds, episodes and steps at the last checkpoint of a run, and whether it is finished; nothing before the first one."""
    try:
        return dict(json.loads((home / "clock.json").read_text("utf-8")))
    except (OSError, ValueError):
        return {}


def _board(home: Path, steps: int, keeping: Keeping) -> AbstractContextManager[Any]:
    if not keeping.tensorboard:
        return nullcontext()
    from esbas.training.board import Board  # needs an extra

    return Board(home / "tensorboard", steps=steps)


def _recall(meter: Meter, home: Path) -> None:
    """Show the meter what was before an interruption."""
    episodes = read_episodes(home)
    for arm, value in zip(episodes.learners.tolist(), episodes.values.tolist(), strict=True):
        meter.see(arm, value)
    for number, arm, _, dismissed, _ in read_faults(home):
        meter.see_fault(number, arm, dismissed)
