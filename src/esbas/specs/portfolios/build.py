"""What learners are built from, and how an algorithm is described."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from esbas import spaces
from esbas.errors import InvalidValueError
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.learners.deep.replay_unused import UnusedReplay
from esbas.training.options import checked, parameters_of

DISCRETE, CONTINUOUS, OTHER = "discrete", "continuous", "other"
TASK = "observation_space", "action_space", "seed"
"""What a class of your own receives by keyword if its signature has it."""
RESERVED = "env", "folder", "processes"
"""The arguments of the replay memory that are not options."""


def kind_of(space: Any) -> str:
    """`DISCRETE` for the numbers 0, ..., n - 1, `CONTINUOUS` for vectors within bounds, `OTHER` for all other spaces."""
    if spaces.is_discrete(space):
        return DISCRETE if space.start == 0 else OTHER
    return CONTINUOUS if hasattr(space, "low") else OTHER


@dataclass(frozen=True, kw_only=True)
class BuildContext:
    """The spaces of the task, the length and the seed of the run, and the replay memory that deep learners share."""

    observation_space: Any
    action_space: Any
    memory: Mapping[str, Any]  # options of the replay memory
    steps: int
    seed: int
    folder: Path | None = None  # where a large replay memory writes its rows
    processes: int = 1  # that train networks with convolutions
    acting: bool = False  # whether the learners will act, and not learn

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
        signature: returns the function whose keyword arguments are the options; imports it first if necessary.
        make: called with a `BuildContext`, a name and the options; returns a learner.
        reserved: the arguments that `make` sets itself.
        observations: the kinds of observation spaces that it supports; empty: any.
        optional: arguments without a default that may be omitted.
        hints: types of options where they differ from the signature.
        any_observations: whether observations may be of any space; otherwise they are numbers or arrays.
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

    def options(self, kind: str, given: Mapping[str, Any], *, also: Collection[str] = ()) -> dict[str, Any]:
        """The given options, checked against the signature; `also` are other names to suggest if one is unknown."""
        return checked(
            self.signature(), given, kind=kind, reserved=self.reserved, optional=self.optional, hints=self.hints, also=also
        )


def algorithm_of(name: str, learner_class: Any) -> AlgorithmSpec:
    """The algorithm for a learner class of your own; `name` is the name that the portfolio uses, for errors.

    The class is called with the name of the learner, with the arguments in `TASK` as far as its signature has them, and with
    the options.
    """
    if not callable(learner_class):
        raise InvalidValueError(f"an algorithm must be a learner class, but {name!r} is {learner_class!r}: name a class")
    positional = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = parameters_of(learner_class)
    first = next((each.name for each in parameters.values() if each.kind in positional), None)
    if first is None or first in TASK:
        message = f"a learner class must have the name of the learner as its first argument, but {name!r} has not"
        raise InvalidValueError(f"{message}: define __init__(self, name, ...)")
    task = tuple(each for each in TASK if each in parameters)
    return AlgorithmSpec(
        title=getattr(learner_class, "__name__", name.rpartition(":")[2]),
        actions=(DISCRETE, CONTINUOUS, OTHER),
        signature=lambda: learner_class,
        make=partial(_make, learner_class, task),
        reserved=(first, *task),
        any_observations=True,
    )


def _make(learner_class: Any, task: tuple[str, ...], context: BuildContext, name: str, /, **options: Any) -> Learner:
    learner: Learner = learner_class(name, **{each: getattr(context, each) for each in task}, **options)
    return learner
