"""The [[member]] tables of a portfolio: reads and checks them, names the members, and builds the learners."""

import dataclasses
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from esbas import limits
from esbas.errors import InvalidValueError, require, unknown
from esbas.learner import Learner
from esbas.learners import Isolated
from esbas.training.options import checked, error_context
from esbas.training.portfolios.algorithms import check_spaces, find_algorithm
from esbas.training.portfolios.build import BuildContext

LONGEST_NAME = 1000


@dataclass(frozen=True, kw_only=True)
class MemberSpec:
    """One learner of a portfolio, before it is built."""

    place: str  # in the text, for errors
    algorithm: str
    name: str
    options: Mapping[str, Any]
    varied: tuple[str, ...]  # the options that its grid varies
    time_limit: float | None
    isolate: bool
    start_from: str | None = None  # the folder of an earlier training; see `esbas.training.warm_start`
    start_member: str | None = None

    @property
    def where(self) -> str:
        """Place and name, for errors."""
        return self.place + (f", {json.dumps(self.name, ensure_ascii=False)}" if self.name else "")

    def check_spaces(self, context: BuildContext) -> None:
        """Raise a SpaceError if the algorithm does not support the spaces of the task."""
        with error_context(self.where):
            check_spaces(self.algorithm, context)

    def build(self, context: BuildContext) -> Learner:
        """Build the learner. An isolated one is built in a separate process, with a separate replay memory.

        Its states are also requested between two saves of the run, so its memory is part of them.
        """
        with error_context(self.where, rule="must fit the task"):
            if self.isolate:
                return Isolated(partial(_build, self, dataclasses.replace(context, folder=None, processes=1)))
            return _build(self, context)


def _build(member: MemberSpec, context: BuildContext) -> Learner:
    learner = find_algorithm(member.algorithm).make(context, member.name, **member.options)
    name = getattr(learner, "name", None)
    require(name == member.name, "a learner has the name that it is created with", "set self.name = name", name=name)
    if member.time_limit is not None:
        learner.time_limit = member.time_limit  # type: ignore[attr-defined]  # an optional attribute, read by the loop
    return learner


def read_members(tables: Sequence[Mapping[str, Any]], *, source: str) -> tuple[MemberSpec, ...]:
    """Read all members and give each a different name; `source` names the text in errors."""
    unnamed = [member for number, table in enumerate(tables, 1) for member in _read(table, number, source)]
    members = tuple(dataclasses.replace(member, name=_name(member, unnamed)) for member in unnamed)
    names = [member.name for member in members]
    for name in names:
        require(len(name) <= LONGEST_NAME, f"names have at most {LONGEST_NAME} characters", "name the member", name=name[:50])
        if names.count(name) > 1:
            raise InvalidValueError(f"{source}: members must have different names, but two are named {name!r}: rename one")
    return members


def _settings(
    *,
    algorithm: str,
    name: str = "",
    grid: Mapping[str, Any] | None = None,
    time_limit: float | None = None,
    isolate: bool = False,
    start_from: str | None = None,
    start_member: str | None = None,
) -> None:
    """The signature of what a [[member]] table contains besides the options of the algorithm."""


SETTINGS = "algorithm", *(_settings.__kwdefaults__ or {})
"""What a [[member]] table contains besides the options of the algorithm."""


def _read(table: Mapping[str, Any], number: int, source: str) -> list[MemberSpec]:
    """One member, or one for each combination of the grid, with the name as it is written in the table."""
    name = table.get("name", "")
    place = f"{source}, [[member]] number {number}"
    with error_context(place + (f", {json.dumps(str(name), ensure_ascii=False)}" if name else "")):
        settings = checked(_settings, {key: table[key] for key in table if key in SETTINGS}, kind="a member")
        algorithm, grid = settings["algorithm"], settings.get("grid", {})
        found = find_algorithm(algorithm)
        require(name.isprintable() and name == name.strip(), "a name is one line of text without spaces at its ends", name=name)
        time_limit = settings.get("time_limit")
        limits.checked(time_limit)
        alone = "start_member" in settings and "start_from" not in settings
        require(not alone, "start_member has a folder", "add start_from", start_member=settings.get("start_member"))
        options = {key: value for key, value in table.items() if key not in SETTINGS}
        for key, values in grid.items():
            listed = isinstance(values, list | tuple) and len(values) > 0
            require(listed, "a grid has a list of values for each option", **{key: values})
            require(key not in options, "an option is given once, in the grid or outside of it", "remove one", option=key)
        return [
            MemberSpec(
                place=place,
                algorithm=algorithm,
                name=name,
                options=found.options(algorithm, options | dict(zip(grid, values, strict=True)), also=SETTINGS),
                varied=tuple(grid),
                time_limit=time_limit,
                isolate=settings.get("isolate", False),
                start_from=settings.get("start_from"),
                start_member=settings.get("start_member"),
            )
            for values in itertools.product(*grid.values())
        ]


def _name(member: MemberSpec, members: Sequence[MemberSpec]) -> str:
    """The given name with {option} replaced by values, or the title of the algorithm, followed by other options that differ."""
    used: list[str] = []

    def value(match: re.Match[str]) -> str:
        with error_context(member.where):
            if match[1] not in member.options:
                raise unknown("option for the name", match[1], member.options)
        used.append(match[1])
        return _in_words(member.options[match[1]])

    name = re.sub(r"\{(\w*)\}", value, member.name) if member.name else find_algorithm(member.algorithm).title
    peers = [other.options for other in members if other.algorithm == member.algorithm and not other.name]
    differing = [key for key in member.options if any(key not in other or other[key] != member.options[key] for other in peers)]
    rest = [key for key in (member.varied if member.name else differing) if key not in used]
    return " ".join([name, ", ".join(f"{key} {_in_words(member.options[key])}" for key in rest)]).strip()


def _in_words(value: Any) -> str:
    """The value of an option as it is written in a name."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return f"({', '.join(map(_in_words, value))})" if isinstance(value, list | tuple) else str(value)
