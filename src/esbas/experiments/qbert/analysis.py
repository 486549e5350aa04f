"""Scores, selections and evaluations from the logs of the runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.experiments.qbert.setup import LEARNERS, QbertSetup
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
"""Episodes of a running mean.

It has the first of these lengths that is not more than a tenth of the shortest run.
"""
POINTS = 400  # of a curve
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
        trainings: the training of each method; the first is that of the selector.
        random: the scores of random games, (N,).
    """

    def __init__(
        self, setup: QbertSetup, trainings: Mapping[str, TrainingFolder], random: Array
    ) -> None:
        self.setup = setup
        self.trainings = trainings
        self.random = random
        self.selector, *_ = trainings
        self.seeds = trainings[self.selector].seeds
        self.runs: dict[str, list[Episodes]] = {}
        self.evaluations: dict[str, list[list[EvaluationRow]]] = {}
        self.kept: dict[str, StoredPolicy | None] = {}
        lengths = []
        for name, training in trainings.items():
            folders = self._run_folders(name)
            self.runs[name] = [read_episodes(folder) for folder in folders]
            self.evaluations[name] = [read_evaluations(folder) for folder in folders]
            self.kept[name] = find_best(training)
            lengths += [len(run) for run in self.runs[name]]
        fitting = [window for window in WINDOWS if 10 * window <= min(lengths)]
        self.window = fitting[0] if fitting else 1

    def _run_folders(self, method: str) -> list[Path]:
        return [run_folder(self.trainings[method].folder, seed) for seed in self.seeds]

    @property
    def best(self) -> tuple[str, StoredPolicy] | None:
        """The method and the policy with the best games without exploration.

        A policy that was scored again on fresh games comes before one that was not.
        """
        ranks = {}
        for name, kept in self.kept.items():
            if kept is not None:
                ranks[name] = (bool(kept.rescored), kept.expected)
        if not ranks:
            return None
        method = max(ranks, key=ranks.__getitem__)
        policy = self.kept[method]
        assert policy is not None  # it has a rank
        return method, policy

    def grid(self, method: str, *, steps: bool) -> Array:
        """Return episodes, or agent steps, that all runs of the method have reached, (X,)."""
        runs = self.runs[method]
        if steps:
            return curves.grid(runs)
        shortest = min(len(run) for run in runs)
        return np.unique(np.linspace(1, shortest, POINTS).astype(np.int64))

    def scores(self, method: str, at: Array, *, steps: bool) -> Array:
        """Return running means of the score, (R, X)."""
        found = []
        for run in self.runs[method]:
            ends = _steps(run, at, steps)
            found.append(curves.values(run, ends, window=self.window))
        return np.array(found)

    def running_mean(self, run: Episodes) -> Array:
        """Return the running mean at every episode of a run, (N,)."""
        return curves.values(run, run.steps, window=self.window)

    def shares(self, at: Array, *, steps: bool) -> Array:
        """Return the share of each network in the selections, (R, K, X).

        The shares are over the same episodes as the running means.
        """
        found = []
        for run in self.runs[self.selector]:
            ends = _steps(run, at, steps)
            found.append(curves.shares(run, LEARNERS, ends, window=self.window))
        return np.array(found)

    def last(self, method: str) -> Estimate:
        """Return the mean score of the last episodes.

        It is over runs, or over the episodes of the only run.
        """
        runs = self.runs[method]
        if len(runs) == 1:
            return estimate(runs[0].values[-LAST:])
        return estimate([curves.last_mean(run, window=LAST) for run in runs])

    def method_table(self) -> list[list[object]]:
        """Return a row per method, see METHOD_HEADER, and one for random games."""
        rows: list[list[object]] = []
        for name, runs in self.runs.items():
            episodes = float(np.mean([len(run) for run in runs]))
            steps = float(np.mean([run.steps[-1] for run in runs]))
            rows.append(
                [
                    name,
                    round(episodes),
                    round(steps),
                    self.last(name),
                    float(np.mean([run.values.mean() for run in runs])),
                    self._score_of_kept(name),
                    self._seconds(name) / 3600,
                ]
            )
        level = estimate(self.random)
        rows.append(["random actions", len(self.random), None, level, level.mean, None, None])
        return rows

    def _score_of_kept(self, method: str) -> Estimate | float | None:
        """Return the mean score of the policy that the training kept, if there is one."""
        kept = self.kept[method]
        if kept is None:
            return None
        if kept.rescored:
            return estimate(kept.rescored)
        return kept.mean

    def _seconds(self, method: str) -> float:
        """Return the time that all runs took."""
        clocks = [read_clock(folder) for folder in self._run_folders(method)]
        return sum(clock.seconds for clock in clocks if clock is not None)

    def evaluation_table(self) -> list[list[object]]:
        """Return a row per method and network, see EVALUATION_HEADER.

        They are about the greedy policies at the end of the runs.
        """
        rows: list[list[object]] = []
        for name, of_runs in self.evaluations.items():
            for network in self.trainings[name].plan.portfolio.names:
                found = []
                for evaluations in of_runs:
                    own = [row for row in evaluations if row.learner == network]
                    if own and own[-1].episodes:  # the latest one
                        found.append(own[-1])
                rows.append([name, network, *_summary(found)])
        return rows

    def summary(self) -> dict[str, Any]:
        """Return the content of summary.json."""
        about_best = None
        if self.best is not None:
            method, policy = self.best
            about_best = {"method": method, "network": policy.learner, "mean": policy.expected}
        methods = {}
        for name, *cells in self.method_table()[:-1]:
            methods[str(name)] = dict(zip(METHOD_HEADER[1:], cells, strict=True))
        evaluated = self.evaluation_table()
        at = self.grid(self.selector, steps=False)
        shares = self.shares(at, steps=False).mean(axis=0)  # (K, X)
        return {
            "game": self.setup.game,
            "runs": len(self.seeds),
            "window": self.window,
            "random": estimate(self.random),
            "methods": methods,
            "evaluations": [dict(zip(EVALUATION_HEADER, row, strict=True)) for row in evaluated],
            "best policy": about_best,
            "selections": dict(zip(LEARNERS, self.selected().tolist(), strict=True)),
            "selection ratio": {"episode": at} | dict(zip(LEARNERS, shares, strict=True)),
        }

    def selected(self) -> Array:
        """Return the share of each network in all selections of the selector, (K,)."""
        shares = []
        for run in self.runs[self.selector]:
            own = [(run.learners == name).mean() for name in LEARNERS]
            shares.append(own)
        return np.asarray(np.mean(shares, axis=0))


def _steps(run: Episodes, at: Array, steps: bool) -> Array:
    """Return the steps at which these episodes ended, unless `at` are steps."""
    return at if steps else run.steps[at - 1]


def _summary(rows: list[EvaluationRow]) -> list[object]:
    if not rows:
        return [None, None, None, 0]
    mean = float(np.mean([row.mean for row in rows]))
    return [
        mean,
        min(row.min for row in rows),
        max(row.max for row in rows),
        sum(row.episodes for row in rows),
    ]
