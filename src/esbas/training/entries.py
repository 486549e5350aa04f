"""From the [[member]] tables of a portfolio to members that can be built."""

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
from esbas.training.algorithms import ALGORITHMS, check_spaces
from esbas.training.options import checked, telling
from esbas.training.workshop import Workshop


@dataclass(frozen=True, kw_only=True)
class Member:
    """One learner to be built."""

    place: str  # where it stands, for errors
    algorithm: str
    name: str
    options: Mapping[str, Any]
    varied: tuple[str, ...]  # the options that its grid varies
    time_limit: float | None
    isolate: bool

    @property
    def where(self) -> str:
        """Where it stands, and its name."""
        return self.place + (f", {json.dumps(self.name, ensure_ascii=False)}" if self.name else "")

    def check_spaces(self, shop: Workshop) -> None:
        """Raise a SpaceError unless it fits the task."""
        with telling(self.where):
            check_spaces(self.algorithm, shop)

    def build(self, shop: Workshop) -> Learner:
        """The learner; one that is isolated is built in a process of its own, with a memory of its own."""
        with telling(self.where, rule="must fit the task"):
            if self.isolate:
                return Isolated(partial(_made, self, dataclasses.replace(shop)))
            return _made(self, shop)


def _made(member: Member, shop: Workshop) -> Learner:
    learner = ALGORITHMS[member.algorithm].make(shop, member.name, **member.options)
    if member.time_limit is not None:
        learner.time_limit = member.time_limit  # type: ignore[attr-defined]  # the loop looks for it
    return learner


def read_members(tables: Sequence[Mapping[str, Any]], *, source: str) -> tuple[Member, ...]:
    """All members, each with a name of its own; `source` names the tables in errors."""
    unnamed = [member for number, table in enumerate(tables, 1) for member in _read(table, number, source)]
    members = tuple(dataclasses.replace(member, name=_name(member, unnamed)) for member in unnamed)
    names = [member.name for member in members]
    for name in names:
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
) -> None:
    """Its keyword arguments are all that stands in a table beside the options."""


_SETTINGS = "algorithm", *(_settings.__kwdefaults__ or {})


def _read(table: Mapping[str, Any], number: int, source: str) -> list[Member]:
    """One member, or one for each combination of the grid, under the name that is given."""
    name = table.get("name", "")
    place = f"{source}, [[member]] number {number}"
    with telling(place + (f", {json.dumps(str(name), ensure_ascii=False)}" if name else "")):
        settings = checked(_settings, {key: table[key] for key in table if key in _SETTINGS}, kind="a member")
        algorithm, grid = settings["algorithm"], settings.get("grid", {})
        if algorithm not in ALGORITHMS:
            raise unknown("algorithm", algorithm, ALGORITHMS)
        require(name.isprintable() and name == name.strip(), "a name is text in one line, without spaces around it", name=name)
        time_limit = settings.get("time_limit")
        limits.checked(time_limit)
        beside = {key: value for key, value in table.items() if key not in _SETTINGS}
        for key, values in grid.items():
            listed = isinstance(values, list | tuple) and len(values) > 0
            require(listed, "a grid has a list of values for each option", **{key: values})
            require(key not in beside, "an option stands in the grid or beside it", "leave one out", option=key)
        return [
            Member(
                place=place,
                algorithm=algorithm,
                name=name,
                options=ALGORITHMS[algorithm].options(algorithm, beside | dict(zip(grid, values, strict=True)), also=_SETTINGS),
                varied=tuple(grid),
                time_limit=time_limit,
                isolate=settings.get("isolate", False),
            )
            for values in itertools.product(*grid.values())
        ]


def _name(member: Member, members: Sequence[Member]) -> str:
    """The given name with values in the place of {option}, or the algorithm's; behind it what else differs."""
    told: list[str] = []

    def value(match: re.Match[str]) -> str:
        with telling(member.where):
            if match[1] not in member.options:
                raise unknown("option for the name", match[1], member.options)
        told.append(match[1])
        return _in_words(member.options[match[1]])

    name = re.sub(r"\{(\w*)\}", value, member.name) if member.name else ALGORITHMS[member.algorithm].title
    peers = [other.options for other in members if other.algorithm == member.algorithm and not other.name]
    differing = [key for key in member.options if any(key not in other or other[key] != member.options[key] for other in peers)]
    rest = [key for key in (member.varied if member.name else differing) if key not in told]
    return " ".join([name, ", ".join(f"{key} {_in_words(member.options[key])}" for key in rest)]).strip()


def _in_words(value: Any) -> str:
    """An option's value as it stands in a name."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:g}"
        return short if float(short) == value else repr(value)
    return f"({', '.join(map(_in_words, value))})" if isinstance(value, list | tuple) else str(value)
