"""What is compared: the methods that apply to a task, each with its learners."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from esbas.errors import unknown
from esbas.experiments.control.protocol import Protocol, Task
from esbas.specs.portfolios.learner_tables import read_learner_tables
from esbas.specs.portfolios.recipe import Recipe

SELECTOR = "selector"
FIXED = "fixed"
ALONE = "alone"
SEARCH = "search"
SINGLE = "single"
ENSEMBLE = "ensemble"
EXTERNAL = "external"
HALVING = "successive-halving"
COMMIT = "uniform-then-commit"
WITHOUT_BAD = "uniform-without-bad"
REPLAY_RATIO = "more-updates"
TUNED = "rl-zoo"
VOTE = "majority-vote"
MEAN_Q = "mean-q"
# The option that multiplies the updates of an algorithm.
_UPDATES = {"dqn": "gradient_steps", "sb3": "gradient_steps"}


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a budget is spent on a task.

    Attributes:
        name: of the method.
        family: "selector"; "alone": one learner with its own data; "fixed": one learner acts, all
            learn; "search": learners with their own data compete for the budget; "single": one
            learner with other hyperparameters; "ensemble": the learners that chance has trained,
            evaluated together; "external": measured by another program.
        recipe: the learners; none of an external method.
        selector: as in `esbas train --selector`; for searches the name of the search.
        wrappers: of the environment.
    """

    # The names of stored parts have a digest of the repr of this class: see `sweep`.
    name: str
    family: str
    recipe: Recipe
    selector: str
    wrappers: tuple[str, ...]

    def copied_from(self, task: Task, chance: str) -> str | None:
        """Return the method whose cells this one shares; None if it has cells of its own.

        A learner in control of all episodes sees the same data whether others learn from them or
        not, so it does exactly as it does alone. It needs a run of its own only if the others are
        evaluated, too.
        """
        if self.family == ENSEMBLE:
            return chance
        if self.family == FIXED and not task.evaluate_all:
            return self.name.replace(FIXED, ALONE, 1)
        return None


def methods_of(task: Task, protocol: Protocol) -> dict[str, Method]:
    """Return all methods that apply to the task by name, in the order of the tables."""
    found = [
        *_selectors(task, protocol),
        *_single_learners(task),
        *_searches(task),
        *_other_hyperparameters(task),
        *_ensembles(task, protocol),
    ]
    by_name = {method.name: method for method in found}
    if task.methods is None:
        return by_name
    return {name: method for name, method in by_name.items() if matches(name, task.methods)}


def _selectors(task: Task, protocol: Protocol) -> list[Method]:
    portfolio = task.portfolio
    everyone = portfolio.recipe()
    found = []
    for name, selector in protocol.selectors.items():
        found.append(_method(task, name, SELECTOR, everyone, selector))
    if portfolio.bad:
        good = portfolio.recipe([name for name in portfolio.names if name != portfolio.bad])
        chance = protocol.selectors[protocol.chance]
        found.append(_method(task, WITHOUT_BAD, SELECTOR, good, chance))
    return found


def _single_learners(task: Task) -> list[Method]:
    portfolio = task.portfolio
    everyone = portfolio.recipe()
    alone = []
    fixed = []
    for name in portfolio.names:
        selector = f"fixed:{name}"
        own = portfolio.recipe([name])
        alone.append(_method(task, f"{ALONE}:{name}", ALONE, own, selector))
        fixed.append(_method(task, f"{FIXED}:{name}", FIXED, everyone, selector))
    return alone + fixed


def _searches(task: Task) -> list[Method]:
    everyone = task.portfolio.recipe()
    return [_method(task, name, SEARCH, everyone, name) for name in (HALVING, COMMIT)]


def _other_hyperparameters(task: Task) -> list[Method]:
    portfolio = task.portfolio
    default = portfolio.default
    found = []
    busier = _with_more_updates(portfolio.recipe([default]), len(portfolio.names))
    if busier is not None:
        found.append(_method(task, REPLAY_RATIO, SINGLE, busier, f"fixed:{default}"))
    if task.tuned is not None:
        options = {"name": TUNED} | dict(task.tuned)
        wrappers = tuple(options.pop("wrappers", task.wrappers))
        replay = options.pop("replay", {})
        learner = read_learner_tables([options], source=f"the tuned learner of {task.name}")
        tuned = _method(task, TUNED, SINGLE, Recipe("", learner, replay), f"fixed:{TUNED}")
        found.append(replace(tuned, wrappers=wrappers))
    return found


def _ensembles(task: Task, protocol: Protocol) -> list[Method]:
    everyone = task.portfolio.recipe()
    return [_method(task, name, ENSEMBLE, everyone, protocol.chance) for name in (VOTE, MEAN_Q)]


def _method(task: Task, name: str, family: str, recipe: Recipe, selector: str) -> Method:
    return Method(
        name=name, family=family, recipe=recipe, selector=selector, wrappers=task.wrappers
    )


def matches(name: str, wanted: Collection[str]) -> bool:
    """Return whether a method is wanted, by its name, or as one of "alone" or "fixed"."""
    return name in wanted or name.partition(":")[0] in wanted


def check_methods(wanted: Collection[str], known: Mapping[str, Any]) -> None:
    """Raise an error for a name that no method has."""
    for name in wanted:
        if not any(matches(method, [name]) for method in known):
            raise unknown("method", name, known)


def _with_more_updates(recipe: Recipe, factor: int) -> Recipe | None:
    """Return the learner with `factor` times as many updates per step.

    None if its algorithm has no such option.
    """
    (learner,) = recipe.learners
    option = _UPDATES.get(learner.algorithm.partition(".")[0])
    if option is None:
        return None
    updates = factor * int(learner.options.get(option, 1))
    busier = replace(learner, options={**learner.options, option: updates})
    return replace(recipe, learners=(busier,))
