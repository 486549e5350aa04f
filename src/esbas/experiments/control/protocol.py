"""The protocol: tasks, portfolios, budgets, selectors and seeds, read from `protocol.toml`. Everything that decides a result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from esbas import schema
from esbas.errors import InvalidValueError, require, unknown
from esbas.files import read_file
from esbas.schema import AnyOf, Number
from esbas.training.options import error_context
from esbas.training.portfolios.members import read_members
from esbas.training.portfolios.recipe import Recipe, read_toml

CONFIRMATORY, DEVELOPMENT, ABLATION = KINDS = "confirmatory", "development", "ablation"
_POSITIVE, _FRACTION = Number(min=1, whole=True), Number(min=0, max=1)
_TABLE = {str: object}
_PORTFOLIO = {"common": _TABLE, "member": [_TABLE], "bad": str, "default": str, "replay": _TABLE}
_TASK = {
    "name": str,
    "kind": str,
    "env": str,
    "wrappers": [str],
    "steps": _POSITIVE,
    "seeds": Number(min=0, whole=True),
    "threshold": AnyOf(float, None),
    "final_episodes": _POSITIVE,
    "portfolio": str,
    "tuned": AnyOf(_TABLE, None),
    "methods": AnyOf([str], None),
    "share_data": bool,
    "evaluate_all": bool,
    "about": str,
}
_OPTIONAL: dict[str, Any] = {
    "wrappers": [],
    "seeds": 0,
    "threshold": None,
    "tuned": None,
    "methods": None,
    "share_data": True,
    "evaluate_all": False,
    "about": "",
}
_QUICK = {"seeds": _POSITIVE, "share_of_steps": _FRACTION, "tasks": [str], "methods": [str]}
_PROTOCOL = {
    "bins": _POSITIVE,
    "seeds": _POSITIVE,
    "block": _POSITIVE,
    "resamples": _POSITIVE,
    "level": _FRACTION,
    "commit_share": _FRACTION,
    "random_steps": _POSITIVE,
    "recommended": str,
    "chance": str,
    "selectors": {str: str},
    "tried": {str: str},
    "quick": _QUICK,
    "portfolio": {str: _TABLE},
    "task": [_TABLE],
}


@dataclass(frozen=True, kw_only=True)
class PortfolioSpec:
    """The members of a portfolio as tables, the options of their replay memory, and two members with a role."""

    members: tuple[Mapping[str, Any], ...]
    replay: Mapping[str, Any]
    bad: str  # the member that chance is also reported without; "": none
    default: str  # the member that is also trained with more updates

    @property
    def names(self) -> tuple[str, ...]:
        return self.recipe().names

    def check(self) -> None:
        """Raise an error unless the members can be read and have the names in the roles. Imports what the members need."""
        for role in filter(None, (self.bad, self.default)):
            if role not in self.names:
                raise unknown("member", role, self.names)

    def recipe(self, names: Sequence[str] | None = None) -> Recipe:
        """The members with these names, or all of them."""
        specs = read_members(self.members, source="the portfolio")
        chosen = specs if names is None else tuple(member for member in specs if member.name in names)
        return Recipe("", chosen, dict(self.replay))


@dataclass(frozen=True, kw_only=True)
class Task:
    """An environment, a budget and a portfolio.

    Attributes:
        name: of the task, also in file names.
        kind: "confirmatory", "development" or "ablation".
        env, wrappers: see `esbas.training.make_task`.
        steps: the budget in environment steps.
        seeds: runs of each method; 0: as many as on other tasks.
        threshold: the mean return that the best member alone must reach in the last fifth of its run, or the task does not count.
        final_episodes: greedy episodes on fresh seeds at the end of a run.
        portfolio: the members.
        tuned: a member with the tuned hyperparameters of another project; its `wrappers` replace those of the task.
        methods: the methods that run on this task; None: all that apply.
        share_data: whether members learn from the episodes of all.
        evaluate_all: whether all members are evaluated at the end, not only the one that was in control.
        about: what an ablation asks.
    """

    name: str
    kind: str
    env: str
    wrappers: tuple[str, ...]
    steps: int
    seeds: int
    threshold: float | None
    final_episodes: int
    portfolio: PortfolioSpec
    tuned: Mapping[str, Any] | None
    methods: tuple[str, ...] | None
    share_data: bool
    evaluate_all: bool
    about: str


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """All tasks, and what they have in common.

    Attributes:
        bins: equal parts of the budget; a score is the mean over them.
        seeds: runs of each method on each task that has no number of its own.
        block: seeds whose results are stored together.
        resamples: of the bootstrap.
        level: of the tests.
        commit_share: the share of the budget after which uniform-then-commit commits.
        random_steps: environment steps with random actions, for the zero of the scale.
        recommended, chance: the names of two selectors.
        selectors: by name, as in `esbas train --selector`.
        tried: more selectors, for tasks that name them in `methods`.
        tasks: by name.
        quick: seeds, share of the steps, tasks and methods of a quick look.
    """

    bins: int
    seeds: int
    block: int
    resamples: int
    level: float
    commit_share: float
    random_steps: int
    recommended: str
    chance: str
    selectors: Mapping[str, str]
    tried: Mapping[str, str]
    tasks: Mapping[str, Task]
    quick: Mapping[str, Any]

    def of_kind(self, *kinds: str) -> list[str]:
        """The names of the tasks of these kinds."""
        return [name for name, task in self.tasks.items() if task.kind in kinds]


def read_protocol(path: Path | None = None) -> Protocol:
    """The protocol in this file; by default that of the package."""
    if path is None:
        source, text = "the protocol", resources.files(__package__).joinpath("protocol.toml").read_text("utf-8")
    else:
        source, text = f"the protocol {str(path)!r}", read_file(path).decode("utf-8", "replace")
    tables: dict[str, Any] = {"tried": {}} | read_toml(text, source=source)
    with error_context(source):
        schema.check(tables, _PROTOCOL, source, remedy="fix the file")
        portfolios = {name: _portfolio(name, table) for name, table in tables.pop("portfolio").items()}
        tasks = [_task(table, portfolios) for table in tables.pop("task")]
        names = [task.name for task in tasks]
        require(len(set(names)) == len(names), "tasks have different names", "rename one", tasks=names)
        for role in ("recommended", "chance"):
            if tables[role] not in tables["selectors"]:
                raise unknown("selector", tables[role], tables["selectors"])
    return Protocol(tasks=dict(zip(names, tasks, strict=True)), **tables)


def _portfolio(name: str, table: Mapping[str, Any]) -> PortfolioSpec:
    where = f"the portfolio {name!r}"
    full: dict[str, Any] = {"common": {}, "bad": "", "replay": {}} | dict(table)
    schema.check(full, _PORTFOLIO, where, remedy="fix the file")
    members = tuple(full["common"] | member for member in full["member"])
    return PortfolioSpec(members=members, replay=full["replay"], bad=full["bad"], default=full["default"])


def _task(table: Mapping[str, Any], portfolios: Mapping[str, PortfolioSpec]) -> Task:
    full = _OPTIONAL | dict(table)
    schema.check(full, _TASK, f"the task {table.get('name')!r}", remedy="fix the file")
    if full["kind"] not in KINDS:
        raise unknown("kind of task", full["kind"], KINDS)
    if full["portfolio"] not in portfolios:
        raise unknown("portfolio", full["portfolio"], portfolios)
    if not full["name"].replace("-", "").isalnum():
        raise InvalidValueError(f"the name of a task must be letters, digits and dashes, but is {full['name']!r}: rename it")
    methods = None if full["methods"] is None else tuple(full["methods"])
    changed = {"portfolio": portfolios[full["portfolio"]], "wrappers": tuple(full["wrappers"]), "methods": methods}
    return Task(**(full | changed))
