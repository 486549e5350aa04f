"""The [[learner]] tables of a portfolio: reads and checks them, and names and builds learners."""

import dataclasses
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from esbas._internal import limits
from esbas.errors import InvalidValueError, require, unknown
from esbas.learner import Learner
from esbas.learners import Isolated
from esbas.learners.naming import derived_name, in_words
from esbas.specs.options import checked, error_context
from esbas.specs.portfolios.algorithms import check_spaces, find_algorithm
from esbas.specs.portfolios.build import BuildContext

LONGEST_NAME = 1000


@dataclass(frozen=True, kw_only=True)
class LearnerSpec:
    """One learner of a portfolio, before it is built.

    Attributes:
        position: of its table in the text, for errors.
        algorithm: the name of the algorithm.
        name: of the learner.
        options: of the algorithm.
        varied: the options that its grid varies.
        learn_timeout: seconds per learning call; None: no limit.
        isolate: whether it runs in a separate process.
        start_from: the folder of an earlier training; see `esbas.training.warm_start`.
        start_learner: the learner of that training. Default: the one with the same name.
    """

    position: str
    algorithm: str
    name: str
    options: Mapping[str, Any]
    varied: tuple[str, ...]
    learn_timeout: float | None
    isolate: bool
    start_from: str | None = None
    start_learner: str | None = None

    @property
    def where(self) -> str:
        """Position and name, for errors."""
        return _where(self.position, self.name)

    def check_spaces(self, context: BuildContext) -> None:
        """Raise a SpaceError if the algorithm does not support the spaces of the environment."""
        with error_context(self.where):
            check_spaces(self.algorithm, context)

    def build(self, context: BuildContext) -> Learner:
        """Build the learner.

        An isolated one is built in a separate process, with a separate replay memory. Its states
        are also requested between two saves of the run, so its memory is part of them.
        """
        with error_context(self.where, rule="must fit the environment"):
            if self.isolate:
                own_context = dataclasses.replace(context, folder=None, processes=1)
                return Isolated(partial(_build, self, own_context))
            return _build(self, context)


def _where(position: str, name: object) -> str:
    if not name:
        return position
    return f"{position}, {json.dumps(str(name), ensure_ascii=False)}"


def _build(spec: LearnerSpec, context: BuildContext) -> Learner:
    learner = find_algorithm(spec.algorithm).make(context, spec.name, **spec.options)
    name = getattr(learner, "name", None)
    rule = f"A learner must have the name {spec.name!r} that it is created with"
    require(name == spec.name, f"{rule}, but got {name!r}: set self.name = name.")
    if spec.learn_timeout is not None:
        # An optional attribute, which the loop reads.
        learner.learn_timeout = spec.learn_timeout  # type: ignore[attr-defined]
    return learner


def read_learner_tables(
    tables: Sequence[Mapping[str, Any]], *, source: str
) -> tuple[LearnerSpec, ...]:
    """Read all learners and give each a different name; `source` names the text in errors."""
    unnamed: list[LearnerSpec] = []
    for number, table in enumerate(tables, 1):
        unnamed += _read(table, number, source)
    learners: list[LearnerSpec] = []
    used: set[str] = set()
    for spec in unnamed:
        name = _name(spec, unnamed)
        if len(name) > LONGEST_NAME:
            rule = f"The name of a learner must have at most {LONGEST_NAME} characters"
            raise InvalidValueError(f"{rule}, but got {name[:50]!r}...: give a shorter name.")
        if name in used:
            rule = "Learners must have different names"
            raise InvalidValueError(f"{source}: {rule}, but two are named {name!r}: rename one.")
        used.add(name)
        learners.append(dataclasses.replace(spec, name=name))
    return tuple(learners)


def _settings(
    *,
    algorithm: str,
    name: str = "",
    grid: Mapping[str, Any] | None = None,
    learn_timeout: float | None = None,
    isolate: bool = False,
    start_from: str | None = None,
    start_learner: str | None = None,
) -> None:
    """Serve as the signature of a [[learner]] table, without the options of the algorithm."""


SETTINGS = "algorithm", *(_settings.__kwdefaults__ or {})
"""What a [[learner]] table contains besides the options of the algorithm."""


def _read(table: Mapping[str, Any], number: int, source: str) -> list[LearnerSpec]:
    """Read one learner, or one for each combination of the grid; names are not complete yet."""
    position = f"{source}, [[learner]] number {number}"
    with error_context(_where(position, table.get("name"))):
        given = {key: value for key, value in table.items() if key in SETTINGS}
        options = {key: value for key, value in table.items() if key not in SETTINGS}
        settings = checked(_settings, given, kind="a learner")
        algorithm = settings["algorithm"]
        found = find_algorithm(algorithm)
        _check_settings(settings)
        grid = settings.get("grid", {})
        _check_grid(grid, options)
        learners: list[LearnerSpec] = []
        for values in itertools.product(*grid.values()):
            combined = options | dict(zip(grid, values, strict=True))
            learners.append(
                LearnerSpec(
                    position=position,
                    algorithm=algorithm,
                    name=settings.get("name", ""),
                    options=found.options(algorithm, combined, also=SETTINGS),
                    varied=tuple(grid),
                    learn_timeout=settings.get("learn_timeout"),
                    isolate=settings.get("isolate", False),
                    start_from=settings.get("start_from"),
                    start_learner=settings.get("start_learner"),
                )
            )
        return learners


def _check_settings(settings: Mapping[str, Any]) -> None:
    name = settings.get("name", "")
    if not name.isprintable() or name != name.strip():
        rule = "`name` must be one line of text without spaces at its ends"
        raise InvalidValueError(f"{rule}, but got {name!r}.")
    limits.checked(settings.get("learn_timeout"))
    if "start_learner" in settings and "start_from" not in settings:
        raise InvalidValueError(
            f"`start_learner` must have a folder, but got {settings['start_learner']!r} alone: "
            "add `start_from`."
        )


def _check_grid(grid: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    for key, values in grid.items():
        if not isinstance(values, list | tuple) or not values:
            rule = f"`{key}` in a grid must be a list of values"
            raise InvalidValueError(f"{rule}, but got {values!r}.")
        if key in options:
            raise InvalidValueError(f"`{key}` is given in the grid and outside of it: remove one.")


def _name(spec: LearnerSpec, learners: Sequence[LearnerSpec]) -> str:
    """Return the name of a learner.

    It is the given name, with {option} replaced by values, or the title of the algorithm. Other
    options that differ between the learners follow.
    """
    used: list[str] = []

    def value_of(match: re.Match[str]) -> str:
        option = match[1]
        with error_context(spec.where):
            if option not in spec.options:
                raise unknown("option for the name", option, spec.options)
        used.append(option)
        return in_words(spec.options[option])

    if spec.name:
        name = re.sub(r"\{(\w*)\}", value_of, spec.name)
        shown: Sequence[str] = spec.varied
    else:
        name = find_algorithm(spec.algorithm).title
        shown = _differing_options(spec, learners)
    return derived_name(name, {key: spec.options[key] for key in shown if key not in used})


def _differing_options(spec: LearnerSpec, learners: Sequence[LearnerSpec]) -> list[str]:
    """Return the options in which other unnamed learners with the same algorithm differ."""
    differing: list[str] = []
    for key, value in spec.options.items():
        for other in learners:
            is_peer = other.algorithm == spec.algorithm and not other.name
            if is_peer and (key not in other.options or other.options[key] != value):
                differing.append(key)
                break
    return differing
