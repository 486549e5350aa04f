"""What the evaluations of a training showed: the best policy, the steps that they took, and whether anything was learnt."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from esbas.columns import Array
from esbas.objective import Objective
from esbas.reporting import estimate, figures
from esbas.reporting.colours import COLOURS
from esbas.training.policies.policy_file import BEST, StoredPolicy, best_of, read_policy
from esbas.training.reports import curves
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes, read_evaluations

FIRST = 20  # episodes at the start of a run with which its end is compared
NOISE = 2.0  # standard errors that count as noise
HEADER = "learner", "mean of its last evaluation", "min", "max", "episodes"
TRY = "more steps, other learners, more exploration, or rewards that lead towards the goal (a wrapper)"


class EvaluationSummary:
    """The evaluations of the runs of a training.

    Args:
        runs: the episodes of each run, by seed.
        directories: of these runs.
        objective: the value of an episode.
    """

    def __init__(self, runs: Mapping[int, Episodes], directories: Mapping[int, Path], objective: Objective) -> None:
        self._runs, self._objective = runs, objective
        self._kept = {seed: read_policy(directories[seed] / BEST) for seed in runs if (directories[seed] / BEST).exists()}
        clocks = [read_clock(directories[seed]) for seed in runs]
        self._finished = all(clock is not None and clock.finished for clock in clocks)
        rows = self._rows = {seed: read_evaluations(directories[seed]) for seed in runs}
        self._problems = [row.problem for of_run in rows.values() for row in of_run if row.problem]
        again = {seed: self._kept[seed].rescored_steps if seed in self._kept else 0 for seed in runs}
        self.steps = {seed: sum(row.played for row in rows[seed]) + again[seed] for seed in runs}  # by seed

    @property
    def best(self) -> StoredPolicy | None:
        """The best policy of all runs."""
        return best_of(self._kept.values(), self._objective)

    @property
    def learnt(self) -> bool | None:
        """Whether, in any run, the last episodes or the best policy are better than the first episodes, beyond noise.

        None before the end of all runs.
        """
        return None if not self._finished else any(self._has_learnt(seed, run) for seed, run in self._runs.items())

    def _has_learnt(self, seed: int, run: Episodes) -> bool:
        first = run.values[: max(2, min(FIRST, len(run) // 4))]
        last = run.values[-min(curves.WINDOW, curves.late(len(run))) :]
        kept = self._kept.get(seed)
        fresh = np.array(kept.rescored if kept is not None else ())
        return any(len(values) > 0 and self._is_better(values, first) for values in (last, fresh))

    def _is_better(self, values: Array, first: Array) -> bool:
        gain = self._objective.score(float(values.mean())) - self._objective.score(float(first.mean()))
        noise = math.sqrt(values.var() / len(values) + first.var() / len(first))
        return bool(gain > NOISE * noise + 1e-12 * abs(float(first.mean())))

    def last(self) -> list[list[object]]:
        """A row per learner, see `HEADER`: its last evaluation in each run, averaged over the runs."""
        latest = [{row.learner: row for row in rows} for rows in self._rows.values()]
        names = list(dict.fromkeys(name for of_run in latest for name in of_run))
        found: list[list[object]] = []
        for name in names:
            rows = [of_run[name] for of_run in latest if name in of_run and not math.isnan(of_run[name].mean)]
            if rows:
                episodes = sum(row.episodes for row in rows)
                mean = float(np.mean([row.mean for row in rows]))
                found.append([name, mean, min(row.min for row in rows), max(row.max for row in rows), episodes])
        return found

    def figure(self, title: str, unit: str) -> Figure | None:
        """Draw the means of all evaluations over the steps of the training; None if there was only one evaluation."""
        if max((len({row.steps for row in rows}) for rows in self._rows.values()), default=0) < 2:
            return None
        figure, axes = figures.new_figure()
        names = list(dict.fromkeys(row.learner for rows in self._rows.values() for row in rows))
        for number, name in enumerate(names):
            for rows in self._rows.values():
                own = [row for row in rows if row.learner == name]
                colour, label = COLOURS[number % len(COLOURS)], name if rows is next(iter(self._rows.values())) else "_"
                axes.plot([row.steps for row in own], [row.mean for row in own], ".-", color=colour, label=label, linewidth=1.4)
        figures.label(axes, x="environment steps", y=f"mean of an evaluation\n[{unit}]", title=title)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        figures.legend(axes)
        return figure

    def as_dict(self, seed: int | None = None) -> dict[str, Any]:
        """All numbers as plain data: of one run, or of the whole training."""
        best = self.best if seed is None else self._kept.get(seed)
        about: dict[str, Any] = {"evaluation steps": sum(self.steps.values()) if seed is None else self.steps[seed]}
        if seed is None:
            about["learnt"] = self.learnt
        if best is not None:
            mean = estimate(best.rescored) if best.rescored else None
            fresh = {"re-scored": {"mean": mean.mean, "ci95": mean.ci95, "episodes": mean.runs}} if mean is not None else {}
            where = {"learner": best.learner, "seed": best.seed, "steps": best.steps, "mean when selected": best.mean}
            about["best policy"] = where | fresh
        return about

    def sentences(self) -> list[str]:
        """The same as text."""
        trained = sum(int(run.steps[-1]) for run in self._runs.values())
        found = [f"{trained:,} training steps and {sum(self.steps.values()):,} evaluation steps."]
        best = self.best
        if best is not None:
            of_seed = f" (seed {best.seed})" if len(self._runs) > 1 else ""
            found.append(f"Best policy: {best.learner} at step {best.steps:,}{of_seed}, {_result(best)}.")
        elif self._problems:
            found.append(f"No best policy: no member could be evaluated ({self._problems[-1]}).")
        if self.learnt is False:
            compared = "neither the last episodes nor the best policy are better than the first episodes, beyond noise"
            found.append(f"No sign of learning: {compared}. Try {TRY}.")
        return found


def _result(best: StoredPolicy) -> str:
    if best.rescored:
        return f"re-scored: {estimate(best.rescored)} over {len(best.rescored)} fresh episodes"
    why = f" (it could not be scored again: {best.problem})" if best.problem else ""
    return f"{best.mean:.4g} in the evaluation that selected it{why}"
