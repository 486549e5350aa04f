"""What is compared: the methods that apply to a task, each with its members and what chooses among them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from esbas.errors import unknown
from esbas.experiments.control.protocol import Protocol, Task
from esbas.training.portfolios.members import read_members
from esbas.training.portfolios.recipe import Recipe

SELECTOR, FIXED, ALONE, SEARCH, SINGLE, ENSEMBLE = "selector", "fixed", "alone", "search", "single", "ensemble"
EXTERNAL = "external"
HALVING, COMMIT = "successive-halving", "uniform-then-commit"
WITHOUT_BAD, REPLAY_RATIO, TUNED = "uniform-without-bad", "more-updates", "rl-zoo"
VOTE, MEAN_Q = "majority-vote", "mean-q"
_UPDATES = {"dqn": "updates", "sb3": "gradient_steps"}  # the option that multiplies the updates of an algorithm


@dataclass(frozen=True, kw_only=True)
class Method:
    """How a budget is spent on a task.

    Attributes:
        name: of the method.
        family: "selector"; "alone": one member with its own data; "fixed": one member acts, all learn; "search": members with
            their own data compete for the budget; "single": one learner with other hyperparameters; "ensemble": the members that
            chance has trained, evaluated together; "external": measured by another program.
        recipe: the members; none of an external method.
        selector: as in `esbas train --selector`; for searches the name of the search.
        wrappers: of the environment.
    """

    name: str
    family: str
    recipe: Recipe
    selector: str
    wrappers: tuple[str, ...]

    def copied_from(self, task: Task, chance: str) -> str | None:
        """The method whose cells this one shares; None if it has cells of its own.

        A member in control of all episodes sees the same data whether others learn from them or not, so it does exactly as it
        does alone. It needs a run of its own only if the others are evaluated, too.
        """
        if self.family == ENSEMBLE:
            return chance
        return self.name.replace(FIXED, ALONE, 1) if self.family == FIXED and not task.evaluate_all else None


def methods_of(task: Task, protocol: Protocol) -> dict[str, Method]:
    """All methods that apply to the task, in the order of the tables."""
    own, names = task.portfolio, task.portfolio.names
    found: list[Method] = []

    def add(name: str, family: str, recipe: Recipe, selector: str, wrappers: tuple[str, ...] = task.wrappers) -> None:
        found.append(Method(name=name, family=family, recipe=recipe, selector=selector, wrappers=wrappers))

    everyone = own.recipe()
    more = {name: text for name, text in protocol.tried.items() if task.methods is not None and name in task.methods}
    for name, text in {**protocol.selectors, **more}.items():
        add(name, SELECTOR, everyone, text)
    if own.bad:
        good = own.recipe([name for name in names if name != own.bad])
        add(WITHOUT_BAD, SELECTOR, good, protocol.selectors[protocol.chance])
    for name in names:
        add(f"alone:{name}", ALONE, own.recipe([name]), f"fixed:{name}")
    for name in names:
        add(f"fixed:{name}", FIXED, everyone, f"fixed:{name}")
    for search in (HALVING, COMMIT):
        add(search, SEARCH, everyone, search)
    busier = _with_more_updates(own.recipe([own.default]), len(names))
    if busier is not None:
        add(REPLAY_RATIO, SINGLE, busier, f"fixed:{own.default}")
    if task.tuned is not None:
        table = dict(task.tuned)
        wrappers, replay = tuple(table.pop("wrappers", task.wrappers)), table.pop("replay", {})
        member = read_members([{"name": TUNED} | table], source=f"the tuned member of {task.name}")
        add(TUNED, SINGLE, Recipe("", member, replay), f"fixed:{TUNED}", wrappers)
    for ensemble in (VOTE, MEAN_Q):
        add(ensemble, ENSEMBLE, everyone, protocol.chance)
    by_name = {method.name: method for method in found}
    return by_name if task.methods is None else {name: by_name[name] for name in by_name if matches(name, task.methods)}


def matches(name: str, wanted: Collection[str]) -> bool:
    """Whether a method is wanted, by its name, or as one of "alone" or "fixed"."""
    return name in wanted or name.partition(":")[0] in wanted


def check_methods(wanted: Collection[str], known: Mapping[str, Any]) -> None:
    """Raise an error for a name that no method has."""
    for name in wanted:
        if not any(matches(method, [name]) for method in known):
            raise unknown("method", name, known)


def _with_more_updates(recipe: Recipe, factor: int) -> Recipe | None:
    """The member with `factor` times as many updates per step; None if its algorithm has no such option."""
    (member,) = recipe.members
    option = _UPDATES.get(member.algorithm.partition(".")[0])
    if option is None:
        return None
    updates = factor * int(member.options.get(option, 1))
    return replace(recipe, members=(replace(member, options={**member.options, option: updates}),))
