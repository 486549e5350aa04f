"""What learners are built from, and how an algorithm is described."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from esbas._internal import spaces
from esbas.errors import InvalidValueError
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.learners.dqn.replay.unused import UnusedReplay
from esbas.specs.options import checked, parameters_of

DISCRETE = "discrete"
CONTINUOUS = "continuous"
OTHER = "other"
OF_CONTEXT = "observation_space", "action_space", "seed"
"""What a learner class of the user receives by keyword if its signature has it."""
RESERVED = "env", "folder", "processes"
"""The arguments of the replay memory that are not options."""


def kind_of(space: Any) -> str:
    """Return the kind of a space.

    `DISCRETE` for the numbers 0, ..., n - 1, `CONTINUOUS` for vectors within bounds, and `OTHER`
    for all other spaces.
    """
    if spaces.is_discrete(space):
        return DISCRETE if space.start == 0 else OTHER
    return CONTINUOUS if hasattr(space, "low") else OTHER


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """What the learners of a run are built from.

    Attributes:
        observation_space: of the environment.
        action_space: of the environment.
        memory: the options of the replay memory that deep learners share.
        steps: the length of the run.
        seed: of the run.
        folder: where a large replay memory writes its rows.
        processes: how many processes train networks with convolutions.
        acting: whether the learners will only act, and not learn.
    """

    observation_space: Any
    action_space: Any
    memory: Mapping[str, Any]
    steps: int
    seed: int
    folder: Path | None = None
    processes: int = 1
    acting: bool = False

    @cached_property
    def replay(self) -> SharedReplay:
        """The replay memory, created at its first use."""
        if self.acting:
            return UnusedReplay(self, **self.memory)
        return SharedReplay(self, folder=self.folder, processes=self.processes, **self.memory)


@dataclass(frozen=True, kw_only=True)
class AlgorithmSpec:
    """An algorithm that a portfolio can name.

    Attributes:
        title: the default name of its learners.
        actions: the kinds of action spaces that it supports.
        signature: returns the function whose keyword arguments are the options; imports it first if
            necessary.
        make: called with a `BuildContext`, a name and the options; returns a learner.
        reserved: the arguments that `make` sets itself.
        observations: the kinds of observation spaces that it supports; empty: any.
        optional: arguments without a default that may be omitted.
        hints: types of options where they differ from the signature.
        any_observations: whether observations may be of any space; otherwise they are numbers or
            arrays.
    """

    title: str
    actions: tuple[str, ...]
    signature: Callable[[], Callable[..., Any]]
    make: Callable[..., Learner]
    reserved: tuple[str, ...]
    observations: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    hints: Mapping[str, Any] | None = None
    any_observations: bool = False

    def options(
        self, kind: str, given: Mapping[str, Any], *, also: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return the given options, checked against the signature.

        Args:
            kind: what the options belong to, for errors.
            given: the options.
            also: other names to suggest if one is unknown.
        """
        return checked(
            self.signature(),
            given,
            kind=kind,
            reserved=self.reserved,
            optional=self.optional,
            hints=self.hints,
            also=also,
        )


def algorithm_of(name: str, learner_class: Any) -> AlgorithmSpec:
    """Return the algorithm for a learner class of the user.

    The class is called with the name of the learner, with the arguments in `OF_CONTEXT` as far as
    its signature has them, and with the options.

    Args:
        name: the name that the portfolio uses for the class, for errors.
        learner_class: the class.
    """
    if not callable(learner_class):
        rule = "An algorithm must be a learner class"
        raise InvalidValueError(f"{rule}, but {name!r} is {learner_class!r}: name a class.")
    parameters = parameters_of(learner_class)
    first = _first_positional(parameters)
    if first is None or first in OF_CONTEXT:
        problem = f"The first argument of {name!r} must be the name of the learner"
        raise InvalidValueError(f"{problem}: define __init__(self, name, ...).")
    wanted = tuple(each for each in OF_CONTEXT if each in parameters)
    return AlgorithmSpec(
        title=getattr(learner_class, "__name__", name.rpartition(":")[2]),
        actions=(DISCRETE, CONTINUOUS, OTHER),
        signature=lambda: learner_class,
        make=partial(_make, learner_class, wanted),
        reserved=(first, *wanted),
        any_observations=True,
    )


def _first_positional(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """Return the name of the first parameter that can be given by position."""
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    for name, parameter in parameters.items():
        if parameter.kind in positional:
            return name
    return None


def _make(
    learner_class: Any, wanted: tuple[str, ...], context: BuildContext, name: str, /, **options: Any
) -> Learner:
    of_context = {each: getattr(context, each) for each in wanted}
    learner: Learner = learner_class(name, **of_context, **options)
    return learner
