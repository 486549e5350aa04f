"""The files of a training as plain data for the board.

They are read again when they change, also while the training runs.
"""

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import counted
from esbas.reporting import estimates
from esbas.reporting.figures import observed
from esbas.reporting.results import CONFIG
from esbas.training import recent
from esbas.training.folder import TrainingFolder, open_folder
from esbas.training.reports import curves
from esbas.training.reports.training_report import LEARNER_HEADER, TrainingSummary
from esbas.training.runs.episode_log import Episodes
from esbas.training.runs.one_run import is_finished, run_folder

LISTED = 100  # rows of each list
EPOCHS = 20  # of each run
PATIENCE = 10  # a folder that takes a second to read is read every ten seconds
_EPISODES = "episodes.csv"
_FILES = (_EPISODES, "faults.csv", "evaluations.csv", "best.npz", "clock.json")


class WatchedTraining:
    """A training that is read again when its files have changed.

    Args:
        number: from 1.
        name: shown on the board.
        folder: written by `esbas train`.
        trust: see `open_folder`.
    """

    def __init__(self, number: int, name: str, folder: Path, *, trust: bool) -> None:
        self.number = number
        self.name = name
        self.folder = folder
        self._trust = trust
        self._lock = threading.Lock()
        self._seen: object = None
        self._next = -math.inf  # when it may be read again
        self._data: dict[str, Any] = {}
        self._version = 0
        self._training = open_folder(folder, trust=trust, needs_env=False)

    def about(self) -> dict[str, Any]:
        """Return the entry in the list of trainings."""
        return {"number": self.number, "name": self.name, "folder": str(self.folder)}

    def data(self) -> dict[str, Any]:
        """Return the state of the training; `version` changes with it.

        Files that cannot be read at the moment raise an error.
        """
        with self._lock:
            if time.monotonic() >= self._next:
                start = time.monotonic()
                seen = self._stamp()
                if seen != self._seen:
                    self._data = self.about() | self._read()
                    self._seen = seen
                    self._version += 1
                self._next = time.monotonic() + PATIENCE * (time.monotonic() - start)
            return self._data | {"version": self._version}

    def _read(self) -> dict[str, Any]:
        # Opened again, because seeds and budget can be extended
        training = open_folder(self.folder, trust=self._trust, needs_env=False)
        self._training = training
        changed = []
        for seed in training.seeds:
            path = run_folder(self.folder, seed) / _EPISODES
            if path.exists():
                changed.append(path.stat().st_mtime)
        return training_data(training) | {"changed": max(changed, default=None)}

    def _stamp(self) -> object:
        """Return the times and sizes of all files, which change when a file does."""
        paths = [self.folder / CONFIG]
        for seed in self._training.seeds:
            folder = run_folder(self.folder, seed)
            paths.extend(folder / name for name in _FILES)
        return [_file_stamp(path) for path in paths]


def _file_stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def watch(folders: Sequence[Path], *, trust: bool) -> list[WatchedTraining]:
    """Open the trainings in these folders.

    They are named after their folders; if these names are not unique, after the paths.
    """
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder) for folder in folders]
    trainings = []
    for number, (name, folder) in enumerate(zip(names, folders, strict=True), 1):
        trainings.append(WatchedTraining(number, name, folder, trust=trust))
    return trainings


def training_data(training: TrainingFolder) -> dict[str, Any]:
    """Return what the board shows of a training, as plain data."""
    summary = TrainingSummary(training)
    config = training.plan.config
    runs = list(summary.runs.values())
    best = summary.evaluations.best
    finished = all(is_finished(training.folder, seed) for seed in training.seeds)
    budget = f"{config.episodes or 0:,} episodes"
    if config.steps:
        budget = f"{config.steps:,} steps"
    arms: dict[str, Any] = {name: [] for name in summary.names}
    if runs:
        arms = {str(name): cells for name, *cells in summary.learner_rows()}
    faults = _faults(summary)
    data = {
        "env": training.config.env_name,
        "selector": config.selector_name,
        "objective": summary.unit,
        "maximize": summary.objective.maximize,
        "budget": f"{budget} of {counted(len(training.seeds), 'run')}",
        "progress": 1.0 if finished else _progress(training, runs),
        "finished": finished,
        "columns": list(LEARNER_HEADER[1:]),
        "arms": arms,
        "runs": [_run(seed, run, len(summary.faults[seed])) for seed, run in summary.runs.items()],
        "window": curves.window_text(runs) if runs else "",
        "moving": curves.moving_text(runs) if runs else "",
        "faults": sorted(faults, key=lambda fault: -fault["episode"])[:LISTED],
        "faults_total": len(faults),
        "epochs": [row for seed, run in summary.runs.items() for row in _epochs(seed, run)],
        "best": None if best is None else _best(best),
        "last": _last(summary.runs),
    }
    if runs:
        data |= _curves(runs, summary.names)
    return data


def _progress(training: TrainingFolder, runs: Sequence[Episodes]) -> float:
    """Return the share of the budget that the runs have used, between 0 and 1."""
    config = training.plan.config
    done = 0.0  # in runs
    for run in runs:
        if config.steps:
            done += min(1.0, float(run.steps[-1] / config.steps))
        else:
            done += min(1.0, len(run) / (config.episodes or 1))
    return done / len(training.seeds)


def _faults(summary: TrainingSummary) -> list[dict[str, Any]]:
    rows = []
    for seed, found in summary.faults.items():
        for episode, learner, where, dismissed, message in found:
            rows.append(
                {
                    "seed": seed,
                    "episode": episode,
                    "learner": learner,
                    "where": where,
                    "dismissed": dismissed,
                    "message": message,
                }
            )
    return rows


def _run(seed: int, run: Episodes, faults: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "episodes": len(run),
        "steps": int(run.steps[-1]),
        "faults": faults,
        "end": curves.last_mean(run),
        "arm": str(run.learners[-1]),
    }


def _curves(runs: Sequence[Episodes], names: Sequence[str]) -> dict[str, Any]:
    """Return values and shares of control up to the end of the longest run.

    These are means over the runs that have reached a number of steps.
    """
    # The longest run comes first: those that have reached a number of steps are the first ones.
    runs = sorted(runs, key=lambda run: -int(run.steps[-1]))
    # From here on, every run has a full window.
    first = max(int(run.steps[curves.enough(run, recent.LEAST) - 1]) for run in runs)
    last = int(runs[0].steps[-1])
    at = curves.steps_between(min(first, last), last)
    values = np.array([curves.values(run, at) for run in runs])  # (R, X)
    shares = np.array([curves.shares(run, names, at) for run in runs])  # (R, K, X)
    lengths = np.array([run.steps[-1] for run in runs])  # (R,)
    reached = (lengths[:, None] >= at).sum(axis=0)  # (X,): how many runs have so many steps
    mean = np.empty(len(at))  # (X,)
    half = np.empty(len(at))  # (X,)
    control = np.empty((len(names), len(at)))  # (K, X)
    for count in np.unique(reached):
        columns = reached == count
        mean[columns], half[columns] = estimates(values[:count, columns])
        control[:, columns] = shares[:count][:, :, columns].mean(axis=0)
    now = np.mean([curves.shares(run, names, run.steps[-1:])[:, 0] for run in runs], axis=0)
    within = observed(np.concatenate([run.values for run in runs]))
    low = np.clip(mean - half, *within)
    high = np.clip(mean + half, *within)
    values_over_steps = {
        "steps": at.tolist(),
        "mean": _floats(mean),
        "low": _floats(low),
        "high": _floats(high),
    }
    control_over_steps = {
        "steps": at.tolist(),
        "shares": {name: _floats(row) for name, row in zip(names, control, strict=True)},
        "now": dict(zip(names, _floats(now), strict=True)),
    }
    own_over_steps = {
        "steps": at.tolist(),
        "means": {name: _own_curve(runs, name, at) for name in names},
    }
    return {"values": values_over_steps, "control": control_over_steps, "own": own_over_steps}


def _own_curve(runs: Sequence[Episodes], name: str, at: Array) -> list[float | None]:
    """Return the values of a learner's own episodes at these steps; None outside of them."""
    own = curves.own_values(runs, name)
    if not len(own.steps):
        return [None] * len(at)
    shown = np.interp(at, own.steps, own.means, left=math.nan, right=math.nan)
    if np.isnan(shown).all():  # there is one mean, between two of the steps
        shown[np.abs(at - own.steps[0]).argmin()] = own.means[0]
    return [None if math.isnan(value) else float(value) for value in shown]


def _floats(numbers: Array) -> list[float]:
    return [float(number) for number in numbers]


def _epochs(seed: int, run: Episodes) -> list[dict[str, Any]]:
    """Return where the last epochs started. Selectors without epochs have only one."""
    starts = np.flatnonzero(np.diff(run.epochs, prepend=run.epochs[:1] - 1))
    if len(starts) < 2:
        return []
    before = np.concatenate([[0], run.steps])  # steps at the start of each episode
    newest_first = starts[::-1]
    return [
        {
            "seed": seed,
            "epoch": int(run.epochs[index]),
            "episode": int(index) + 1,
            "steps": int(before[index]),
        }
        for index in newest_first[:EPOCHS]
    ]


def _best(best: Any) -> dict[str, Any]:
    rescored = float(np.mean(best.rescored)) if best.rescored else None
    return {
        "learner": best.learner,
        "seed": best.seed,
        "steps": best.steps,
        "mean": best.mean,
        "rescored": rescored,
    }


def _last(runs: dict[int, Episodes]) -> list[dict[str, Any]]:
    """Return the last episodes of all runs, those with most steps first."""
    rows: list[dict[str, Any]] = []
    for seed, run in runs.items():
        first = max(0, len(run) - LISTED // len(runs))
        rows.extend(_episode(seed, run, index) for index in range(first, len(run)))
    return sorted(rows, key=lambda row: -row["steps"])


def _episode(seed: int, run: Episodes, index: int) -> dict[str, Any]:
    return {
        "seed": seed,
        "episode": index + 1,
        "steps": int(run.steps[index]),
        "arm": str(run.learners[index]),
        "value": float(run.values[index]),
        "length": int(run.lengths[index]),
        "epoch": int(run.epochs[index]),
    }
