"""The evaluations of a training: the best policy, the steps played, whether anything was learnt."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from esbas._internal.columns import Array
from esbas.errors import counted
from esbas.objective import Objective
from esbas.reporting import estimate, figures
from esbas.reporting.colors import COLORS
from esbas.reporting.estimate import FEWEST
from esbas.reporting.ranks import least_p, p_larger
from esbas.training.policies.policy_file import BEST, StoredPolicy, best_of, read_policy
from esbas.training.recent import PARTS, SETTLED, recent_count
from esbas.training.runs.clock import read_clock
from esbas.training.runs.episode_log import Episodes, EvaluationRow, read_evaluations

LEVEL = 0.01  # the chance of a sign of learning in a training in which no learner learns
MANY = 100  # episodes from which on an interval is shown, however wide it is
WIDE = 0.5  # with fewer, it is not shown if half of its width is more than this share of its scale
HEADER = ("learner", "mean of its last evaluation", "min", "max", "episodes")
ADVICE = (
    "Try more steps, other learners, more exploration, --normalize-observations if their "
    "components have very different sizes, or rewards that lead towards the goal (a wrapper)."
)


class EvaluationSummary:
    """The evaluations of the runs of a training.

    Args:
        runs: the episodes of each run, by seed.
        directories: of these runs.
        objective: the value of an episode.
    """

    def __init__(
        self, runs: Mapping[int, Episodes], directories: Mapping[int, Path], objective: Objective
    ) -> None:
        self._runs = runs
        self._objective = objective
        self._finished = True
        self._problems: list[str] = []
        # All of these have the seeds as keys.
        self._kept: dict[int, StoredPolicy] = {}
        self._rows: dict[int, list[EvaluationRow]] = {}
        self.steps: dict[int, int] = {}
        for seed in runs:
            self._read(seed, directories[seed])

    def _read(self, seed: int, directory: Path) -> None:
        """Read the evaluations of a run and its best policy."""
        clock = read_clock(directory)
        if clock is None or not clock.finished:
            self._finished = False
        rows = read_evaluations(directory)
        self._rows[seed] = rows
        self._problems += [row.problem for row in rows if row.problem]
        self.steps[seed] = sum(row.played for row in rows)
        best = directory / BEST
        if best.exists():
            self._kept[seed] = read_policy(best)
            self.steps[seed] += self._kept[seed].rescored_steps

    @property
    def best(self) -> StoredPolicy | None:
        """The best policy of all runs."""
        return best_of(self._kept.values(), self._objective)

    @property
    def learnt(self) -> bool | None:
        """Whether, in any run, the end or the best policy is better than the start, beyond chance.

        None before the end of all runs, and if they have too few episodes to tell.
        """
        if not self._finished:
            return None
        # Each run has up to four tests. If no learner learns, the chance that one of all says so
        # is at most LEVEL.
        level = LEVEL / (4 * len(self._runs))
        can_tell = False
        for seed in self._runs:
            tests = self._tests(seed)
            if any(self._p_better(*test) <= level for test in tests):
                return True
            # A best policy with two fresh episodes may be far better than the start: no test could
            # say so.
            able = [least_p(len(values), len(first)) <= level for values, first in tests]
            if able and all(able):
                can_tell = True
        return False if can_tell else None

    def _tests(self, seed: int) -> list[tuple[Array, Array]]:
        """Return the samples that are compared: values that may be better, and the first ones."""
        run = self._runs[seed]
        half = len(run) // 2  # of a short run, the end must not be its beginning
        if not half:
            return []
        recent = max(recent_count(run.steps), SETTLED)
        better = [run.values[len(run) - min(recent, half) :]]
        kept = self._kept.get(seed)
        if kept is not None and kept.rescored:
            better.append(np.array(kept.rescored))
        tests = []
        # Where much is learnt in the first tenth of the steps, only the very first episodes show
        # what was there before.
        for count in sorted({SETTLED, _first_count(run.steps)}):
            first = run.values[: min(count, half)]
            tests += [(values, first) for values in better]
        return tests

    def _p_better(self, values: Array, first: Array) -> float:
        """Return the p-value of "these values are not better than the first ones".

        Ranks are compared, because the first episodes often have a few values that are a hundred
        times as large as all others. Then the difference of means is smaller than its standard
        error, however good the end is.
        """
        sign = self._objective.score(1.0)  # larger is better, also of an objective to minimize
        return p_larger(sign * values, sign * first)

    def last(self) -> list[list[object]]:
        """Return a row per learner, with the columns of HEADER.

        It averages the last evaluation of the learner in each run.
        """
        last_rows: dict[str, list[EvaluationRow]] = {}
        for rows in self._rows.values():
            of_run = {row.learner: row for row in rows}  # later rows replace earlier ones
            for name, row in of_run.items():
                last_rows.setdefault(name, []).append(row)
        table: list[list[object]] = []
        for name, rows in last_rows.items():
            known = [row for row in rows if not math.isnan(row.mean)]
            if known:
                mean = float(np.mean([row.mean for row in known]))
                least = min(row.min for row in known)
                most = max(row.max for row in known)
                episodes = sum(row.episodes for row in known)
                table.append([name, mean, least, most, episodes])
        return table

    def figure(self, title: str, unit: str) -> Figure | None:
        """Draw the means of all evaluations over the steps of the training.

        None if no run has more than one evaluation.
        """
        has_several = any(len({row.steps for row in rows}) > 1 for rows in self._rows.values())
        if not has_several:
            return None
        figure, axes = figures.new_figure()
        colors: dict[str, str] = {}
        for rows in self._rows.values():
            for row in rows:
                colors.setdefault(row.learner, COLORS[len(colors) % len(COLORS)])
        for name, color in colors.items():
            label = name
            for rows in self._rows.values():
                own = [row for row in rows if row.learner == name]
                steps = [row.steps for row in own]
                means = [row.mean for row in own]
                axes.plot(steps, means, ".-", color=color, label=label, linewidth=1.4)
                label = "_"  # the legend names a learner once
        value = f"mean of an evaluation\n[{unit}]"
        figures.label(axes, x="environment steps", y=value, title=title)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        figures.legend(axes)
        return figure

    def as_dict(self, seed: int | None = None) -> dict[str, Any]:
        """Return all numbers as plain data: of one run, or of the whole training."""
        about: dict[str, Any] = {}
        if seed is None:
            best = self.best
            about["evaluation steps"] = sum(self.steps.values())
            about["learnt"] = self.learnt
        else:
            best = self._kept.get(seed)
            about["evaluation steps"] = self.steps[seed]
        if best is not None:
            about["best policy"] = self._described(best)
        return about

    def sentences(self) -> list[str]:
        """Return the same in sentences."""
        trained = sum(int(run.steps[-1]) for run in self._runs.values())
        found = [f"{trained:,} training steps and {sum(self.steps.values()):,} evaluation steps."]
        best = self.best
        if best is not None:
            of_seed = f" (seed {best.seed})" if len(self._runs) > 1 else ""
            where = f"{best.learner} at step {best.steps:,}{of_seed}"
            found.append(f"Best policy: {where}, {self._result(best)}.")
        elif self._problems:
            found.append(f"No best policy: no learner could be evaluated ({self._problems[-1]}).")
        if self.learnt is False:
            better = "better than the first episodes, beyond chance"
            compared = f"neither the last episodes nor the best policy are {better}"
            found.append(f"No sign of learning: {compared}. {ADVICE}")
        elif self.learnt is None and self._finished:
            found.append("There are too few episodes to tell whether anything was learnt.")
        return found

    def _described(self, best: StoredPolicy) -> dict[str, Any]:
        about: dict[str, Any] = {
            "learner": best.learner,
            "seed": best.seed,
            "steps": best.steps,
            "mean when selected": best.mean,
        }
        if best.rescored:
            fresh = estimate(best.rescored)
            ci95 = fresh.ci95 if self._has_useful_interval(best) else None
            about["re-scored"] = {"mean": fresh.mean, "ci95": ci95, "episodes": fresh.runs}
        return about

    def _result(self, best: StoredPolicy) -> str:
        if best.rescored:
            count = counted(len(best.rescored), "fresh episode") + self._cut(best)
            mean = estimate(best.rescored, over="episodes")
            if self._has_useful_interval(best):
                return f"re-scored: {mean.interval_text()} over {count}"
            return f"re-scored: {mean.mean:.4g} over {count}, too few for a useful interval"
        why = f" (it could not be scored again: {best.problem})" if best.problem else ""
        return f"{best.mean:.4g} in the evaluation that selected it{why}"

    def _cut(self, best: StoredPolicy) -> str:
        """Return that the fresh episodes were cut, if they were.

        They are if the only episode of the training did not end before its budget was used up: then
        nobody knows how long an episode is, and the evaluation has to choose a length.
        """
        run = self._runs[best.seed]
        length = best.rescored_steps // len(best.rescored)
        is_endless = len(run) == 1 and bool(run.truncated[0])
        if is_endless and length < run.lengths[0]:
            return f", each cut after {counted(length, 'step')}"
        return ""

    def _has_useful_interval(self, best: StoredPolicy) -> bool:
        """Return whether the interval of the fresh episodes says more than their number.

        Its scale is the mean, or what was gained since the first episodes, whichever is larger.
        """
        fresh = estimate(best.rescored)
        if fresh.runs < FEWEST:
            return False
        first = self._runs[best.seed].values[:SETTLED]
        scale = max(abs(fresh.mean), abs(fresh.mean - float(np.mean(first))))
        return fresh.runs >= MANY or fresh.ci95 <= WIDE * scale


def _first_count(steps: Array) -> int:
    """Return the number of episodes at the start of a run with which its end is compared.

    These are the episodes of the first tenth of its steps, and at least 20: as many steps as those
    of the recent episodes at its end.
    """
    within = int(np.searchsorted(steps, steps[-1] // PARTS, side="right"))
    return max(SETTLED, within)
