"""The protocol: everything that decides a result, read from `protocol.toml`.

These are tasks, portfolios, budgets, selectors and seeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas._internal.schema import AnyOf, Number
from esbas.errors import require, unknown
from esbas.specs.options import error_context
from esbas.specs.portfolios.learner_tables import read_learner_tables
from esbas.specs.portfolios.recipe import Recipe, read_toml

CONFIRMATORY = "confirmatory"
DEVELOPMENT = "development"
ABLATION = "ablation"
KINDS = (CONFIRMATORY, DEVELOPMENT, ABLATION)

# The shape of the file: see `schema.check`.
_POSITIVE = Number(min=1, whole=True)
_FRACTION = Number(min=0, max=1)
_TABLE = {str: object}
_PORTFOLIO = {"common": _TABLE, "learner": [_TABLE], "bad": str, "default": str, "replay": _TABLE}
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
    "quick": _QUICK,
    "portfolio": {str: _TABLE},
    "task": [_TABLE],
}


@dataclass(frozen=True, kw_only=True)
class PortfolioSpec:
    """The learners of a portfolio as tables, the options of their replay memory, and two roles."""

    learners: tuple[Mapping[str, Any], ...]
    replay: Mapping[str, Any]
    bad: str  # the learner that chance is also reported without; "": none
    default: str  # the learner that is also trained with more updates

    @property
    def names(self) -> tuple[str, ...]:
        return self.recipe().names

    def check(self) -> None:
        """Raise an error unless the learners can be read and have the names in the roles.

        It imports what the learners need.
        """
        names = self.names
        for role in (self.bad, self.default):
            if role and role not in names:
                raise unknown("learner", role, names)

    def recipe(self, names: Sequence[str] | None = None) -> Recipe:
        """Return the learners with these names, or all of them."""
        specs = read_learner_tables(self.learners, source="the portfolio")
        if names is not None:
            specs = tuple(learner for learner in specs if learner.name in names)
        return Recipe("", specs, dict(self.replay))


@dataclass(frozen=True, kw_only=True)
class Task:
    """An environment, a budget and a portfolio.

    Attributes:
        name: of the task, also in file names.
        kind: "confirmatory", "development" or "ablation".
        env, wrappers: see `esbas.training.make_env`.
        steps: the budget in environment steps.
        seeds: runs of each method; 0: as many as on other tasks.
        threshold: the mean return that the best learner alone must reach in the last fifth of its
            run, or the task does not count.
        final_episodes: greedy episodes on fresh seeds at the end of a run.
        portfolio: the learners.
        tuned: a learner with the tuned hyperparameters of another project; its `wrappers` replace
            those of the task.
        methods: the methods that run on this task; None: all that apply.
        share_data: whether learners learn from the episodes of all.
        evaluate_all: whether all learners are evaluated at the end, not only the one that was in
            control.
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
    tasks: Mapping[str, Task]
    quick: Mapping[str, Any]

    def of_kind(self, *kinds: str) -> list[str]:
        """Return the names of the tasks of these kinds."""
        return [name for name, task in self.tasks.items() if task.kind in kinds]


def read_protocol(path: Path | None = None) -> Protocol:
    """Read the protocol in this file; by default that of the package."""
    if path is None:
        source = "the protocol"
        text = resources.files(__package__).joinpath("protocol.toml").read_text("utf-8")
    else:
        source = f"the protocol {str(path)!r}"
        text = read_file(path).decode("utf-8", "replace")
    tables = read_toml(text, source=source)
    with error_context(source):
        schema.check(tables, _PROTOCOL, source, remedy="fix the file")
        portfolios = {}
        for name, table in tables.pop("portfolio").items():
            portfolios[name] = _portfolio(name, table)
        tasks: dict[str, Task] = {}
        for table in tables.pop("task"):
            task = _task(table, portfolios)
            require(
                task.name not in tasks,
                f"Tasks must have different names, but two are called {task.name!r}: rename one.",
            )
            tasks[task.name] = task
        for role in ("recommended", "chance"):
            if tables[role] not in tables["selectors"]:
                raise unknown("selector", tables[role], tables["selectors"])
    return Protocol(tasks=tasks, **tables)


def _portfolio(name: str, table: Mapping[str, Any]) -> PortfolioSpec:
    defaults: dict[str, Any] = {"common": {}, "bad": "", "replay": {}}
    full = defaults | dict(table)
    schema.check(full, _PORTFOLIO, f"the portfolio {name!r}", remedy="fix the file")
    return PortfolioSpec(
        learners=tuple(full["common"] | own for own in full["learner"]),
        replay=full["replay"],
        bad=full["bad"],
        default=full["default"],
    )


def _task(table: Mapping[str, Any], portfolios: Mapping[str, PortfolioSpec]) -> Task:
    full = _OPTIONAL | dict(table)
    schema.check(full, _TASK, f"the task {table.get('name')!r}", remedy="fix the file")
    if full["kind"] not in KINDS:
        raise unknown("kind of task", full["kind"], KINDS)
    if full["portfolio"] not in portfolios:
        raise unknown("portfolio", full["portfolio"], portfolios)
    require(
        full["name"].replace("-", "").isalnum(),
        "The name of a task must have letters, digits and dashes only,"
        f" but got {full['name']!r}: rename it.",
    )
    full["portfolio"] = portfolios[full["portfolio"]]
    full["wrappers"] = tuple(full["wrappers"])
    if full["methods"] is not None:
        full["methods"] = tuple(full["methods"])
    return Task(**full)
