"""What the logs of the runs say: scores, selections, evaluations."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.experiments.qbert.setup import MEMBERS, QbertSetup
from esbas.reporting import Estimate, estimate
from esbas.training.folder import TrainingFolder
from esbas.training.policies.finding import find_best
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.reports import curves
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes, EvaluationRow, read_episodes, read_evaluations
from esbas.training.runs.one_run import run_folder

LAST = 100
"""Episodes at the end of a run."""
WINDOWS = 100, 50, 20, 10, 5, 2, 1
"""Episodes of a running mean: the first of these that is not more than a tenth of the shortest run."""
POINTS = 400
METHOD_HEADER = (
    "method",
    "episodes",
    "agent steps",
    f"score, last {LAST} episodes",
    "score, whole run",
    "best policy, no exploration",
    "hours",
)
EVALUATION_HEADER = "method", "network", "mean score", "min", "max", "episodes"


class QbertAnalysis:
    """All runs of all methods.

    Args:
        setup: what was compared.
        trainings: of each method; the first is that of the selector.
        random: the scores of random games, (N,).
    """

    def __init__(self, setup: QbertSetup, trainings: Mapping[str, TrainingFolder], random: Array) -> None:
        self.setup, self.trainings, self.random = setup, trainings, random
        self.selector, *_ = trainings
        self.seeds = trainings[self.selector].seeds
        folders = {name: [run_folder(training.folder, seed) for seed in self.seeds] for name, training in trainings.items()}
        self.runs = {name: [read_episodes(each) for each in own] for name, own in folders.items()}
        self.evaluations = {name: [read_evaluations(each) for each in own] for name, own in folders.items()}
        self.kept = {name: find_best(training) for name, training in trainings.items()}
        shortest = min(len(run) for runs in self.runs.values() for run in runs)
        self.window = next((window for window in WINDOWS if 10 * window <= shortest), 1)

    @property
    def best(self) -> tuple[str, StoredPolicy] | None:
        """The method and the policy with the best games without exploration."""
        found = [(name, kept) for name, kept in self.kept.items() if kept is not None]
        return max(found, key=lambda each: (bool(each[1].rescored), each[1].expected), default=None)

    def grid(self, method: str, *, steps: bool) -> Array:
        """(X,): episodes, or agent steps, that all runs of the method have reached."""
        runs = self.runs[method]
        if steps:
            return curves.grid(runs)
        return np.unique(np.linspace(1, min(map(len, runs)), POINTS).astype(np.int64))

    def scores(self, method: str, at: Array, *, steps: bool) -> Array:
        """(R, X): running means of the score."""
        return np.array([curves.values(run, _steps(run, at, steps), window=self.window) for run in self.runs[method]])

    def running_mean(self, run: Episodes) -> Array:
        """(N,): the same for every episode of a run."""
        return curves.values(run, run.steps, window=self.window)

    def shares(self, at: Array, *, steps: bool) -> Array:
        """(R, K, X): the share of each network in the selections, over the same episodes as the means."""
        runs = self.runs[self.selector]
        return np.array([curves.shares(run, MEMBERS, _steps(run, at, steps), window=self.window) for run in runs])

    def last(self, method: str) -> Estimate:
        """The mean score of the last episodes: over runs, or over the episodes of the only run."""
        runs = self.runs[method]
        return estimate([curves.last_mean(run, window=LAST) for run in runs] if len(runs) > 1 else runs[0].values[-LAST:])

    def method_table(self) -> list[list[object]]:
        """A row per method, see METHOD_HEADER, and one for random games."""
        rows: list[list[object]] = []
        for name, runs in self.runs.items():
            kept, directories = self.kept[name], [run_folder(self.trainings[name].folder, seed) for seed in self.seeds]
            seconds = [clock.seconds for each in directories if (clock := read_clock(each)) is not None]
            played = float(np.mean([len(run) for run in runs])), float(np.mean([run.steps[-1] for run in runs]))
            whole = float(np.mean([run.values.mean() for run in runs]))
            policy = None if kept is None else estimate(kept.rescored) if kept.rescored else kept.mean
            rows.append([name, *map(round, played), self.last(name), whole, policy, sum(seconds) / 3600])
        level = estimate(self.random)
        return [*rows, ["random actions", len(self.random), None, level, level.mean, None, None]]

    def evaluation_table(self) -> list[list[object]]:
        """A row per method and network, see EVALUATION_HEADER: greedy policies at the end of the runs."""
        rows: list[list[object]] = []
        for name, of_runs in self.evaluations.items():
            latest = [{row.learner: row for row in rows} for rows in of_runs]
            for network in self.trainings[name].plan.recipe.names:
                found = [each[network] for each in latest if network in each and each[network].episodes]
                rows.append([name, network, *_summary(found)])
        return rows

    def summary(self) -> dict[str, Any]:
        best, at = self.best, self.grid(self.selector, steps=False)
        about = None if best is None else {"method": best[0], "network": best[1].learner, "mean": best[1].expected}
        return {
            "game": self.setup.game,
            "runs": len(self.seeds),
            "window": self.window,
            "random": estimate(self.random),
            "methods": {str(row[0]): dict(zip(METHOD_HEADER[1:], row[1:], strict=True)) for row in self.method_table()[:-1]},
            "evaluations": [dict(zip(EVALUATION_HEADER, row, strict=True)) for row in self.evaluation_table()],
            "best policy": about,
            "selections": dict(zip(MEMBERS, self.selected().tolist(), strict=True)),
            "selection ratio": {"episode": at, **dict(zip(MEMBERS, self.shares(at, steps=False).mean(axis=0), strict=True))},
        }

    def selected(self) -> Array:
        """(K,): the share of each network in all selections of the selector."""
        counts = [[(run.learners == name).mean() for name in MEMBERS] for run in self.runs[self.selector]]
        return np.asarray(np.mean(counts, axis=0))


def _steps(run: Episodes, at: Array, steps: bool) -> Array:
    """The steps at which these episodes ended, unless `at` are steps."""
    return at if steps else run.steps[at - 1]


def _summary(rows: list[EvaluationRow]) -> list[object]:
    if not rows:
        return [None, None, None, 0]
    mean = float(np.mean([row.mean for row in rows]))
    return [mean, min(row.min for row in rows), max(row.max for row in rows), sum(row.episodes for row in rows)]
