"""Scores on one scale, intervals, comparisons with the recommended selector, and verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from esbas import seeding
from esbas._internal.columns import Array
from esbas.experiments.control import statistics
from esbas.experiments.control.protocol import CONFIRMATORY
from esbas.experiments.control.scores import ANY, BEST, TaskScores
from esbas.experiments.control.setup import ALONE, COMMIT, EXTERNAL, FIXED, HALVING
from esbas.experiments.control.statistics import Interval
from esbas.experiments.control.sweep import Cells

if TYPE_CHECKING:
    from esbas.experiments.control import Control

# Shares of the score of the best learner alone.
GOOD = 0.95
POOR = 0.75
EFFECT = 0.1  # difference of normalized scores that the number of seeds should show


@dataclass(frozen=True)
class Verdict:
    """A claim about the recommended selector, and whether it holds.

    Attributes:
        claim: the claim.
        measured: what was measured.
        holds: whether the claim holds; None if not enough was run.
    """

    claim: str
    measured: str
    holds: bool | None


class ControlAnalysis:
    """All tasks, and what follows from them."""

    def __init__(self, options: "Control", cells: Cells) -> None:
        self.protocol = options.protocol
        self.seed = options.seed
        self.recommended = options.about or self.protocol.recommended
        self.chance = self.protocol.chance
        self.seeds: dict[str, int] = {}
        self.tasks: dict[str, TaskScores] = {}
        for task in options.chosen_tasks:
            methods = options.compared_methods(task)
            self.seeds[task.name] = options.seeds_of(task)
            self.tasks[task.name] = TaskScores(task, methods, cells[task.name], self.chance)
        # Several tables need the same intervals.
        self._intervals: dict[tuple[str, ...], Interval | None] = {}

    @property
    def external(self) -> list[str]:
        """The methods that another program has measured, each once."""
        names: list[str] = []
        for each in self.tasks.values():
            for name, method in each.methods.items():
                if method.family == EXTERNAL and name not in names:
                    names.append(name)
        return names

    def of_kind(self, kind: str) -> list[TaskScores]:
        return [each for each in self.tasks.values() if each.task.kind == kind]

    @cached_property
    def counted(self) -> list[TaskScores]:
        """The confirmatory tasks that count."""
        return [each for each in self.of_kind(CONFIRMATORY) if each.counts]

    def methods_on(self, tasks: Sequence[TaskScores]) -> list[str]:
        """Return the methods that run on at least one of the tasks, without single learners.

        The best learner alone and a random one stand for these.
        """
        names: list[str] = []
        for each in tasks:
            for name, method in each.methods.items():
                single = method.family in (ALONE, FIXED)
                if not single and each.has(name) and name not in names:
                    names.append(name)
        return [*names, BEST, ANY]

    @cached_property
    def partial(self) -> dict[str, list[TaskScores]]:
        """The methods that exist on some of the counted tasks only, and these tasks."""
        found = {}
        for name in self.methods_on(self.counted):
            tasks = [each for each in self.counted if each.has(name)]
            if len(tasks) < len(self.counted):
                found[name] = tasks
        return found

    def interval(
        self, tasks: Sequence[TaskScores], method: str, *, final: bool = False
    ) -> Interval | None:
        """Return the interquartile mean over these tasks.

        None if the method is missing on one of them, or has no such score.
        """
        names = [each.task.name for each in tasks]
        key = (*names, method, "final" if final else "score")
        if key not in self._intervals:
            self._intervals[key] = self._interval(tasks, method, final, key)
        return self._intervals[key]

    def _interval(
        self, tasks: Sequence[TaskScores], method: str, final: bool, key: tuple[str, ...]
    ) -> Interval | None:
        if not tasks or not all(each.has(method) for each in tasks):
            return None
        values = [each.finals(method) if final else each.scores(method) for each in tasks]
        if not _all_finite(values):
            return None
        return statistics.iqm_interval(
            values, resamples=self.protocol.resamples, rng=self.rng(*key)
        )

    def improvement(self, each: TaskScores, method: str, other: str) -> float | None:
        """Return the probability that a run of the method scores higher than one of the other."""
        if not (each.has(method) and each.has(other)):
            return None
        first = each.scores(method)
        second = each.scores(other)
        if not _all_finite([first, second]):
            return None
        return statistics.probability_of_improvement(first, second)

    def compared(self, kind: Callable[..., Interval], method: str) -> Interval | None:
        """Compare the recommended selector with a method over the tasks that count.

        Args:
            kind: a function of `statistics` for two lists of scores.
            method: the other method.
        """
        tasks = self.counted
        if not tasks:
            return None
        if not all(each.has(self.recommended) and each.has(method) for each in tasks):
            return None
        first = [each.scores(self.recommended) for each in tasks]
        second = [each.scores(method) for each in tasks]
        if not _all_finite([*first, *second]):
            return None
        rng = self.rng("compared", method, kind.__name__)
        return kind(first, second, resamples=self.protocol.resamples, rng=rng)

    def rng(self, *name: str) -> np.random.Generator:
        """Return a generator for the bootstrap that depends only on the seed and the name."""
        return seeding.generator(self.seed, "control", "bootstrap", *name)

    @cached_property
    def against_chance(self) -> dict[str, tuple[float, float]]:
        """The recommended selector compared with chance, by task that counts.

        The difference of interquartile means, and the p-value after Holm's adjustment.
        """
        names = []
        differences = []
        p_values = []
        for each in self.counted:
            if each.has(self.recommended) and each.has(self.chance):
                own = each.scores(self.recommended)
                chance = each.scores(self.chance)
                names.append(each.task.name)
                differences.append(float(statistics.iqm(own) - statistics.iqm(chance)))
                p_values.append(statistics.paired_test(own, chance))
        found: dict[str, tuple[float, float]] = {}
        for name, difference, p in zip(names, differences, statistics.holm(p_values), strict=True):
            found[name] = (difference, p)
        return found

    def verdicts(self) -> list[Verdict]:
        return [
            self._above_chance(),
            self._near_the_best(),
            self._best_selector(),
            self._above_searches(),
        ]

    def _above_chance(self) -> Verdict:
        claim = "above chance on most tasks, below on none (Wilcoxon, Holm-adjusted)"
        above = 0
        below = 0
        for difference, p in self.against_chance.values():
            if p < self.protocol.level:
                above += difference > 0
                below += difference < 0
        tasks = len(self.against_chance)
        measured = f"above on {above}, below on {below} of {tasks} tasks"
        if tasks == 0:
            return Verdict(claim, measured, None)
        return Verdict(claim, measured, above > tasks / 2 and below == 0)

    def _near_the_best(self) -> Verdict:
        claim = (
            f"at least {GOOD} of the best learner alone on at least half of the tasks,"
            f" and never below {POOR}"
        )
        levels = {}
        for each in self.counted:
            if each.has(self.recommended):
                levels[each.task.name] = float(statistics.iqm(each.scores(self.recommended)))
        if not levels:
            return Verdict(claim, "no task counts", None)
        worst = min(levels, key=lambda name: levels[name])
        good = sum(level >= GOOD for level in levels.values())
        measured = (
            f"at least {GOOD} on {good} of {len(levels)} tasks;"
            f" the lowest is {levels[worst]:.2f}, on {worst}"
        )
        return Verdict(claim, measured, 2 * good >= len(levels) and levels[worst] >= POOR)

    def _best_selector(self) -> Verdict:
        run = self.methods_on(self.counted)
        selectors = [name for name in run if name in self.protocol.selectors]
        others = [name for name in selectors if name != self.recommended]
        return self._above("aggregate above every other selector", others)

    def _above_searches(self) -> Verdict:
        claim = "aggregate above successive halving and uniform-then-commit"
        return self._above(claim, [HALVING, COMMIT])

    def _above(self, claim: str, others: Sequence[str]) -> Verdict:
        """Judge whether the aggregate of the recommended selector is above those of others."""
        texts = []
        close = []
        holds = True
        for name in others:
            found = self.compared(statistics.difference_interval, name)
            if found is None:
                continue
            texts.append(f"{name} {found.value:+.2f} [{found.low:+.2f}, {found.high:+.2f}]")
            if found.low <= 0 <= found.high:
                close.append(name)
            if found.value <= 0:
                holds = False
        if not texts:
            return Verdict(claim, "not run on all tasks", None)
        measured = f"difference from {', '.join(texts)}"
        if close:
            measured += f"; not distinguishable from {', '.join(close)}: the interval contains 0"
        return Verdict(claim, measured, holds)

    def seeds_needed(self, each: TaskScores) -> int | None:
        """Estimate the seeds with which the difference `EFFECT` from chance would be found."""
        if self.seeds[each.task.name] < 3 or each.level <= each.random:
            return None
        if not (each.has(self.recommended) and each.has(self.chance)):
            return None
        differences = each.scores(self.recommended) - each.scores(self.chance)
        return statistics.seeds_for_power(differences, EFFECT, level=self.protocol.level)

    def relative_cost(self, method: str) -> float | None:
        """Return CPU time divided by that of chance: the geometric mean over the tasks that count.

        None if it is unknown on one of them.
        """
        if not self.counted or not all(each.has(method) for each in self.counted):
            return None
        costs = []
        for each in self.counted:
            seconds = each.seconds(each.reference if method == BEST else method)
            costs.append(seconds / each.seconds(self.chance))
        if not np.isfinite(costs).all() or min(costs) <= 0:
            return None
        return float(np.exp(np.mean(np.log(costs))))

    def summary(self) -> dict[str, Any]:
        """Return what summary.json contains.

        CPU times are elsewhere: they differ from run to run.
        """
        aggregate = {}
        if self.counted:
            for name in self.methods_on(self.counted):
                if name not in self.partial:
                    aggregate[name] = self._aggregate_summary(name)
        partial = {name: self._partial_summary(name, tasks) for name, tasks in self.partial.items()}
        return {
            "recommended": self.recommended,
            "chance": self.chance,
            "tasks": {name: self._task_summary(each) for name, each in self.tasks.items()},
            "aggregate": aggregate,
            "partial": partial,
            "verdicts": [asdict(verdict) for verdict in self.verdicts()],
        }

    def _task_summary(self, each: TaskScores) -> dict[str, Any]:
        difference, p = self.against_chance.get(each.task.name, (None, None))
        names = [name for name in each.methods if each.has(name)]
        return {
            "kind": each.task.kind,
            "counts": each.counts,
            "steps": each.task.steps,
            "random": each.random,
            "best_member": each.reference.partition(":")[2],
            "best_member_return": each.level,
            "best_member_late_return": each.reached,
            "threshold": each.task.threshold,
            "above_chance": {"difference": difference, "adjusted_p": p},
            "methods": {name: self._method_summary(each, name) for name in (*names, BEST, ANY)},
        }

    def _method_summary(self, each: TaskScores, name: str) -> dict[str, Any]:
        improvements = {}
        for other in (self.recommended, self.chance, BEST):
            if other != name:
                improvements[other] = self.improvement(each, name, other)
        return {
            "score": _as_dict(self.interval([each], name)),
            "final": _as_dict(self.interval([each], name, final=True)),
            "probability_of_improvement": improvements,
        }

    def _partial_summary(self, name: str, tasks: Sequence[TaskScores]) -> dict[str, Any]:
        """Return the scores of the method and of the recommended selector on the same tasks."""
        return {
            "tasks": [each.task.name for each in tasks],
            "score": _as_dict(self.interval(tasks, name)),
            "final": _as_dict(self.interval(tasks, name, final=True)),
            "recommended_score": _as_dict(self.interval(tasks, self.recommended)),
            "recommended_final": _as_dict(self.interval(tasks, self.recommended, final=True)),
        }

    def _aggregate_summary(self, name: str) -> dict[str, Any]:
        better = None
        if name != self.recommended:
            better = self.compared(statistics.improvement_interval, name)
        return {
            "score": _as_dict(self.interval(self.counted, name)),
            "final": _as_dict(self.interval(self.counted, name, final=True)),
            "recommended_improves": _as_dict(better, "probability"),
            "tasks": len(self.counted),
        }


def _as_dict(interval: Interval | None, name: str = "iqm") -> dict[str, Any] | None:
    return None if interval is None else interval.as_dict(name)


def _all_finite(arrays: Sequence[Array]) -> bool:
    return all(np.isfinite(each).all() for each in arrays)
