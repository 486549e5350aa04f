"""The files of a training as plain data for the board. They are read again when they change, also while the training runs."""

import math
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.reporting import estimates
from esbas.reporting.figures import observed
from esbas.reporting.results import CONFIG
from esbas.training.folder import TrainingFolder, open_without_task, task_of
from esbas.training.reports import curves
from esbas.training.reports.training_report import MEMBER_HEADER, TrainingSummary
from esbas.training.runs.episode_log import Episodes
from esbas.training.runs.one_run import is_finished, run_folder

LISTED = 100  # rows of each list
EPOCHS = 20  # of each run
PATIENCE = 10  # a folder that takes a second to read is read every ten seconds
_FILES = "episodes.csv", "faults.csv", "evaluations.csv", "best.npz", "clock.json"


class WatchedTraining:
    """A training that is read again when its files have changed.

    Args:
        number: from 1.
        name: for people.
        folder: written by `esbas train`.
        trust: see `open_folder`.
    """

    def __init__(self, number: int, name: str, folder: Path, *, trust: bool) -> None:
        self.number, self.name, self.folder, self._trust = number, name, folder, trust
        self._lock = threading.Lock()
        self._seen: object = None
        self._next = -math.inf  # when it may be read again
        self._data: dict[str, Any] = {}
        self._version = 0
        self._training = open_without_task(folder, trust=trust)

    def about(self) -> dict[str, Any]:
        """A line in the list of trainings."""
        return {"number": self.number, "name": self.name, "folder": str(self.folder)}

    def data(self) -> dict[str, Any]:
        """The state of the training. `version` changes with it. What cannot be read at the moment raises an error."""
        with self._lock:
            if time.monotonic() >= self._next:
                start, seen = time.monotonic(), self._stamp()
                if seen != self._seen:
                    self._data = self.about() | self._read()
                    self._seen, self._version = seen, self._version + 1
                self._next = time.monotonic() + PATIENCE * (time.monotonic() - start)
            return self._data | {"version": self._version}

    def _read(self) -> dict[str, Any]:
        training = self._training = open_without_task(self.folder, trust=self._trust)  # seeds and budget can be extended
        changed = [
            path.stat().st_mtime
            for seed in training.seeds
            for path in [run_folder(self.folder, seed) / _FILES[0]]
            if path.exists()
        ]
        return training_data(training) | {"changed": max(changed, default=None)}

    def _stamp(self) -> object:
        paths = [self.folder / CONFIG]
        paths += [run_folder(self.folder, seed) / name for seed in self._training.seeds for name in _FILES]
        return [(found.st_mtime_ns, found.st_size) if (found := _stat(path)) else None for path in paths]


def _stat(path: Path) -> Any:
    try:
        return path.stat()
    except OSError:
        return None


def watch(folders: Sequence[Path], *, trust: bool) -> list[WatchedTraining]:
    """The trainings in these folders. Their names are those of the folders, or their paths if names are not unique."""
    places = [folder.resolve() for folder in folders]
    by_name = len({place.name for place in places}) == len(places)
    named = zip(folders, places, strict=True)
    return [
        WatchedTraining(number, place.name if by_name else str(folder), folder, trust=trust)
        for number, (folder, place) in enumerate(named, 1)
    ]


def training_data(training: TrainingFolder) -> dict[str, Any]:
    """What the board shows of a training, as plain data."""
    summary, plan = TrainingSummary(training), training.plan
    runs, best = list(summary.runs.values()), summary.evaluations.best
    budget = f"{plan.steps:,} steps" if plan.steps else f"{plan.episodes or 0:,} episodes"
    parts = [run.steps[-1] / plan.steps if plan.steps else len(run) / (plan.episodes or 1) for run in runs]
    finished = all(is_finished(training.folder, seed) for seed in training.seeds)
    faults: list[dict[str, Any]] = [
        {"seed": seed, "episode": episode, "learner": learner, "where": where, "dismissed": dismissed, "message": message}
        for seed, found in summary.faults.items()
        for episode, learner, where, dismissed, message in found
    ]
    return {
        "task": task_of(training.folder),
        "selector": plan.selector,
        "objective": summary.unit,
        "maximize": summary.objective.maximize,
        "budget": f"{budget} of {len(training.seeds)} {'run' if len(training.seeds) == 1 else 'runs'}",
        "progress": 1.0 if finished else sum(min(1.0, float(part)) for part in parts) / len(training.seeds),
        "finished": finished,
        "columns": list(MEMBER_HEADER[1:]),
        "arms": {str(row[0]): row[1:] for row in summary.members()} if runs else {name: [] for name in summary.names},
        "runs": [_run(seed, run, len(summary.faults[seed])) for seed, run in summary.runs.items()],
        "window": curves.window_text(runs) if runs else "",
        "moving": curves.moving_text(runs) if runs else "",
        **(_curves(runs, summary.names) if runs else {}),
        "faults": sorted(faults, key=lambda each: -each["episode"])[:LISTED],
        "faults_total": len(faults),
        "epochs": [row for seed, run in summary.runs.items() for row in _epochs(seed, run)],
        "best": None if best is None else _best(best),
        "last": _last(summary.runs),
    }


def _run(seed: int, run: Episodes, faults: int) -> dict[str, Any]:
    counts = {"episodes": len(run), "steps": int(run.steps[-1]), "faults": faults}
    return {"seed": seed, **counts, "end": curves.last_mean(run), "arm": str(run.learners[-1])}


def _curves(runs: Sequence[Episodes], names: Sequence[str]) -> dict[str, Any]:
    """Values and shares of control up to the end of the longest run: means over the runs that have got there."""
    runs = sorted(runs, key=lambda run: -int(run.steps[-1]))
    first, last = (int(run.steps[k]) for run, k in ((max(runs, key=lambda run: int(run.steps[0])), 0), (runs[0], -1)))
    at = np.unique(np.linspace(min(first, last), last, curves.POINTS).astype(np.int64))
    values = np.array([curves.values(run, at) for run in runs])  # (R, X)
    shares = np.array([curves.shares(run, names, at) for run in runs])  # (R, K, X)
    there = (np.array([run.steps[-1] for run in runs])[:, None] >= at).sum(axis=0)  # (X,): how many runs have got there
    mean, half, control = np.empty(len(at)), np.empty(len(at)), np.empty((len(names), len(at)))
    for count in np.unique(there):
        columns = there == count
        mean[columns], half[columns] = estimates(values[:count, columns])
        control[:, columns] = shares[:count][:, :, columns].mean(axis=0)
    now = np.mean([curves.shares(run, names, run.steps[-1:])[:, 0] for run in runs], axis=0)
    within = observed(np.concatenate([run.values for run in runs]))
    low, high = np.clip(mean - half, *within), np.clip(mean + half, *within)
    listed = {"mean": _floats(mean), "low": _floats(low), "high": _floats(high)}
    by_name = {name: _floats(row) for name, row in zip(names, control, strict=True)}
    return {
        "values": {"steps": at.tolist(), **listed},
        "control": {"steps": at.tolist(), "shares": by_name, "now": dict(zip(names, _floats(now), strict=True))},
    }


def _floats(numbers: Array) -> list[float]:
    return [float(number) for number in numbers]


def _epochs(seed: int, run: Episodes) -> list[dict[str, Any]]:
    """Where the last epochs started. Selectors without epochs have one only."""
    starts = np.flatnonzero(np.diff(run.epochs, prepend=run.epochs[:1] - 1))
    if len(starts) < 2:
        return []
    before = np.concatenate([[0], run.steps])  # steps at the start of each episode
    return [
        {"seed": seed, "epoch": int(run.epochs[k]), "episode": int(k) + 1, "steps": int(before[k])} for k in starts[::-1][:EPOCHS]
    ]


def _best(best: Any) -> dict[str, Any]:
    again = float(np.mean(best.rescored)) if best.rescored else None
    return {"learner": best.learner, "seed": best.seed, "steps": best.steps, "mean": best.mean, "rescored": again}


def _last(runs: dict[int, Episodes]) -> list[dict[str, Any]]:
    """The last episodes of all runs, those with most steps first."""
    rows = [
        {
            "seed": seed,
            "episode": k + 1,
            "steps": int(run.steps[k]),
            "arm": str(run.learners[k]),
            "value": float(run.values[k]),
            "length": int(run.lengths[k]),
            "epoch": int(run.epochs[k]),
        }
        for seed, run in runs.items()
        for k in range(max(0, len(run) - LISTED // len(runs)), len(run))
    ]
    return sorted(rows, key=lambda row: -row["steps"])
