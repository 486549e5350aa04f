"""What members of a portfolio are built from, and what an algorithm must tell to be built."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from esbas import spaces
from esbas.learner import Learner
from esbas.learners import SharedReplay
from esbas.training.options import checked

DISCRETE, CONTINUOUS, OTHER = "discrete", "continuous", "other"


def kind_of(space: Any) -> str:
    """The numbers 0, ..., n - 1 are discrete, vectors between bounds continuous, all else is other."""
    if spaces.is_discrete(space):
        return DISCRETE if space.start == 0 else OTHER
    return CONTINUOUS if hasattr(space, "low") else OTHER


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """The task's spaces, the length and the seed of the run, and one memory for all who need it."""

    observation_space: Any
    action_space: Any
    memory: Mapping[str, int]  # options of the memory
    steps: int
    seed: int

    @cached_property
    def replay(self) -> SharedReplay:
        """The memory, made when the first one asks."""
        return SharedReplay(self, **self.memory)


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """A kind of member.

    Attributes:
        title: what members are named after.
        actions: the kinds of actions that it is for.
        signature: imports it and returns whose keyword arguments its options are.
        make: called with a workshop, a name and the options.
        ours: the arguments that `make` gives.
        observations: the kinds of observations that it is for; none: any.
        optional: arguments without a default that may be left out.
        hints: types of options where they differ from the signature.
    """

    title: str
    actions: tuple[str, ...]
    signature: Callable[[], Callable[..., Any]]
    make: Callable[..., Learner]
    ours: tuple[str, ...]
    observations: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    hints: Mapping[str, Any] | None = None

    def options(self, kind: str, given: Mapping[str, Any], *, also: Collection[str] = ()) -> dict[str, Any]:
        """The given options, if it has them; `also` names what else stands beside them."""
        return checked(self.signature(), given, kind=kind, ours=self.ours, optional=self.optional, hints=self.hints, also=also)
