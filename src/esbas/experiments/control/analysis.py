"""Scores on one scale, intervals, comparisons with the recommended selector, and verdicts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from esbas import seeding
from esbas.experiments.control import statistics
from esbas.experiments.control.protocol import CONFIRMATORY
from esbas.experiments.control.scores import ANY, BEST, TaskScores
from esbas.experiments.control.setup import ALONE, COMMIT, EXTERNAL, FIXED, HALVING, SELECTOR
from esbas.experiments.control.statistics import Interval
from esbas.experiments.control.sweep import Cells

if TYPE_CHECKING:
    from esbas.experiments.control import Control

GOOD, POOR = 0.95, 0.75  # of the best member alone
EFFECT = 0.1  # difference of normalised scores that the number of seeds should show


@dataclass(frozen=True)
class Verdict:
    """A claim about the recommended selector, what was measured, and whether the claim holds; None: not enough was run."""

    claim: str
    measured: str
    holds: bool | None


class ControlAnalysis:
    """All tasks, and what follows from them."""

    def __init__(self, options: "Control", cells: Cells) -> None:
        self.protocol, self.seed = options.protocol, options.seed
        self.recommended, self.chance = options.about or self.protocol.recommended, self.protocol.chance
        self.seeds = {task.name: options.seeds_of(task) for task in options.chosen_tasks}
        self._intervals: dict[tuple[str, ...], Interval | None] = {}  # they are needed in several tables
        self.tasks = {
            task.name: TaskScores(task, options.compared_methods(task), cells[task.name], self.chance)
            for task in options.chosen_tasks
        }

    @property
    def external(self) -> list[str]:
        """The methods that another program has measured."""
        methods = [method for each in self.tasks.values() for method in each.methods.values()]
        return [*dict.fromkeys(method.name for method in methods if method.family == EXTERNAL)]

    def of_kind(self, kind: str) -> list[TaskScores]:
        return [each for each in self.tasks.values() if each.task.kind == kind]

    @cached_property
    def counted(self) -> list[TaskScores]:
        """The confirmatory tasks that count."""
        return [each for each in self.of_kind(CONFIRMATORY) if each.counts]

    def methods_on(self, tasks: Sequence[TaskScores], *, members: bool = False) -> list[str]:
        """Methods that run on at least one of the tasks; with `members`, those of single members instead of all others."""
        names = dict.fromkeys(
            name
            for each in tasks
            for name, method in each.methods.items()
            if (method.family in (ALONE, FIXED)) == members and each.has(name)
        )
        return [*names] if members else [*names, BEST, ANY]

    @cached_property
    def partial(self) -> dict[str, list[TaskScores]]:
        """The methods that exist on some of the counted tasks only, and these tasks."""
        found = {name: [each for each in self.counted if each.has(name)] for name in self.methods_on(self.counted)}
        return {name: tasks for name, tasks in found.items() if len(tasks) < len(self.counted)}

    def interval(self, tasks: Sequence[TaskScores], method: str, *, final: bool = False) -> Interval | None:
        """The interquartile mean over these tasks; None if the method is missing on one of them, or has no such score."""
        key = (*(each.task.name for each in tasks), method, "final" if final else "score")
        if key not in self._intervals:
            self._intervals[key] = self._interval(tasks, method, final, key)
        return self._intervals[key]

    def _interval(self, tasks: Sequence[TaskScores], method: str, final: bool, key: tuple[str, ...]) -> Interval | None:
        if not tasks or not all(each.has(method) for each in tasks):
            return None
        values = [each.finals(method) if final else each.scores(method) for each in tasks]
        if not all(np.isfinite(each).all() for each in values):
            return None
        return statistics.iqm_interval(values, resamples=self.protocol.resamples, rng=self.rng(*key))

    def improvement(self, each: TaskScores, method: str, other: str) -> float | None:
        """The probability that a run of the method has a higher score than one of the other."""
        pair = [each.scores(name) for name in (method, other) if each.has(name)]
        if len(pair) < 2 or not all(np.isfinite(scores).all() for scores in pair):
            return None
        return statistics.probability_of_improvement(*pair)

    def compared(self, kind: Callable[..., Interval], method: str) -> Interval | None:
        """The recommended selector compared with a method over the tasks that count, by one of `statistics`."""
        names, tasks = (self.recommended, method), self.counted
        if not tasks or not all(each.has(name) for each in tasks for name in names):
            return None
        first, second = ([each.scores(name) for each in tasks] for name in names)
        if not all(np.isfinite(each).all() for each in (*first, *second)):
            return None
        return kind(first, second, resamples=self.protocol.resamples, rng=self.rng("compared", method, kind.__name__))

    def rng(self, *name: str) -> np.random.Generator:
        """Random numbers of the bootstrap that depend on nothing but the seed and the name."""
        return seeding.generator(self.seed, "control", "bootstrap", *name)

    @cached_property
    def against_chance(self) -> dict[str, tuple[float, float]]:
        """By task that counts: the difference of interquartile means from chance, and the p-value after Holm's adjustment."""
        usable = [each for each in self.counted if each.has(self.recommended) and each.has(self.chance)]
        pairs = [(each.scores(self.recommended), each.scores(self.chance)) for each in usable]
        adjusted = statistics.holm([statistics.paired_test(*pair) for pair in pairs])
        differences = [float(statistics.iqm(first) - statistics.iqm(second)) for first, second in pairs]
        return {each.task.name: found for each, *found in zip(usable, differences, adjusted, strict=True)}  # type: ignore[misc]

    def verdicts(self) -> list[Verdict]:
        return [self._above_chance(), self._near_the_best(), self._best_selector(), self._above_searches()]

    def _above_chance(self) -> Verdict:
        found, level = self.against_chance, self.protocol.level
        above = sum(difference > 0 and p < level for difference, p in found.values())
        below = sum(difference < 0 and p < level for difference, p in found.values())
        claim = "above chance on most tasks, below on none (Wilcoxon, Holm-adjusted)"
        holds = None if not found else above > len(found) / 2 and below == 0
        return Verdict(claim, f"above on {above}, below on {below} of {len(found)} tasks", holds)

    def _near_the_best(self) -> Verdict:
        claim = f"at least {GOOD} of the best member alone on at least half of the tasks, and never below {POOR}"
        levels = {
            each.task.name: float(statistics.iqm(each.scores(self.recommended)))
            for each in self.counted
            if each.has(self.recommended)
        }
        if not levels:
            return Verdict(claim, "no task counts", None)
        worst, good = min(levels, key=lambda name: levels[name]), sum(level >= GOOD for level in levels.values())
        measured = f"at least {GOOD} on {good} of {len(levels)} tasks; the lowest is {levels[worst]:.2f}, on {worst}"
        return Verdict(claim, measured, 2 * good >= len(levels) and levels[worst] >= POOR)

    def _best_selector(self) -> Verdict:
        others = [
            name
            for name in self.methods_on(self.counted)
            if any(name in each.methods and each.methods[name].family == SELECTOR for each in self.counted)
            and name in self.protocol.selectors
            and name != self.recommended
        ]
        return self._above("aggregate above every other selector", others)

    def _above_searches(self) -> Verdict:
        return self._above("aggregate above successive halving and uniform-then-commit", [HALVING, COMMIT])

    def _above(self, claim: str, others: Sequence[str]) -> Verdict:
        found = {name: self.compared(statistics.difference_interval, name) for name in others}
        known = {name: each for name, each in found.items() if each is not None}
        if not known:
            return Verdict(claim, "not run on all tasks", None)
        texts = ", ".join(f"{name} {each.value:+.2f} [{each.low:+.2f}, {each.high:+.2f}]" for name, each in known.items())
        close = [name for name, each in known.items() if each.low <= 0 <= each.high]
        doubt = f"; not distinguishable from {', '.join(close)}: the interval contains 0" if close else ""
        return Verdict(claim, f"difference from {texts}{doubt}", all(each.value > 0 for each in known.values()))

    def seeds_needed(self, each: TaskScores) -> int | None:
        """The seeds with which the difference `EFFECT` from chance would be found on this task, as estimated from these runs."""
        if self.seeds[each.task.name] < 3 or not (
            each.has(self.recommended) and each.has(self.chance) and each.level > each.random
        ):
            return None
        differences = each.scores(self.recommended) - each.scores(self.chance)
        return statistics.seeds_for_power(differences, EFFECT, level=self.protocol.level)

    def relative_cost(self, method: str) -> float | None:
        """CPU time divided by that of chance: the geometric mean over the tasks that count; None if it is unknown on one."""
        costs = [
            each.seconds(each.reference if method == BEST else method) / each.seconds(self.chance)
            for each in self.counted
            if each.has(method)
        ]
        known = len(costs) == len(self.counted) > 0 and all(np.isfinite(costs)) and min(costs) > 0
        return float(np.exp(np.mean(np.log(costs)))) if known else None

    def summary(self) -> dict[str, Any]:
        """What summary.json contains. CPU times are elsewhere: they differ from run to run."""
        return {
            "recommended": self.recommended,
            "chance": self.chance,
            "tasks": {name: self._task_summary(each) for name, each in self.tasks.items()},
            "aggregate": {
                name: self._aggregate_summary(name) for name in self.methods_on(self.counted) if name not in self.partial
            }
            if self.counted
            else {},
            "partial": {name: self._partial_summary(name, tasks) for name, tasks in self.partial.items()},
            "verdicts": [{"claim": each.claim, "measured": each.measured, "holds": each.holds} for each in self.verdicts()],
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
        score, final = self.interval([each], name), self.interval([each], name, final=True)
        others = self.recommended, self.chance, BEST
        return {
            "score": None if score is None else score.as_dict(),
            "final": None if final is None else final.as_dict(),
            "probability_of_improvement": {over: self.improvement(each, name, over) for over in others if over != name},
        }

    def _partial_summary(self, name: str, tasks: Sequence[TaskScores]) -> dict[str, Any]:
        """The method and the recommended selector on the same tasks."""
        found: dict[str, Any] = {"tasks": [each.task.name for each in tasks]}
        for method, prefix in ((name, ""), (self.recommended, "recommended_")):
            score, final = self.interval(tasks, method), self.interval(tasks, method, final=True)
            found |= {f"{prefix}score": None if score is None else score.as_dict()}
            found |= {f"{prefix}final": None if final is None else final.as_dict()}
        return found

    def _aggregate_summary(self, name: str) -> dict[str, Any]:
        score, final = self.interval(self.counted, name), self.interval(self.counted, name, final=True)
        better = self.compared(statistics.improvement_interval, name) if name != self.recommended else None
        return {
            "score": None if score is None else score.as_dict(),
            "final": None if final is None else final.as_dict(),
            "recommended_improves": None if better is None else better.as_dict("probability"),
            "tasks": len(self.counted),
        }
