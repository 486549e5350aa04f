"""Objectives (the paper's μ): the value of a trajectory to the selector."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from esbas.errors import InvalidValueError, require
from esbas.registry import Registry
from esbas.trajectory import Trajectory

DISCOUNT = 0.99
"""The default of `discounted_return`."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A number per trajectory, to be maximised (or minimised, with `maximize=False`)."""

    name: str
    function: Callable[[Trajectory], float]
    maximize: bool = True

    def __call__(self, trajectory: Trajectory) -> float:
        """The trajectory's value, in its own units."""
        value = float(self.function(trajectory))
        if not math.isfinite(value):
            require(False, f"objective {self.name!r} is finite", "fix the function", value=value)
        return value

    def score(self, value: float) -> float:
        """The value as selectors see it: larger is better."""
        return value if self.maximize else -value


OBJECTIVES: Registry[Callable[[], Objective]] = Registry("objective")
"""Functions that create objectives, by name. Register one of your own with `@OBJECTIVES.register("name")`."""


@OBJECTIVES.register("return")
def total_return() -> Objective:
    """Σ r(t), without discount."""
    return Objective(name="return", function=lambda trajectory: float(trajectory.rewards.sum()))


@OBJECTIVES.register("discounted")
def discounted_return(gamma: float = DISCOUNT) -> Objective:
    """Σ γ^t r(t+1): the return of the paper's Section 2.1."""
    require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)

    def function(trajectory: Trajectory) -> float:
        return float(trajectory.rewards @ gamma ** np.arange(len(trajectory)))

    return Objective(name=f"discounted return, gamma={gamma:g}", function=function)


@OBJECTIVES.register("shortest")
def episode_length(*, maximize: bool = False) -> Objective:
    """The number of steps."""
    return Objective(name="episode length", function=len, maximize=maximize)


OBJECTIVES.add("longest", partial(episode_length, maximize=True))


def success_time(*, failure: float) -> Objective:
    """The number of steps until the goal; `failure` if the episode was truncated before it (200 in Section 5.1)."""

    def function(trajectory: Trajectory) -> float:
        return len(trajectory) if trajectory.terminated else failure

    return Objective(name=f"time to success, {failure:g} if none", function=function, maximize=False)


def as_objective(given: Objective | Callable[[Trajectory], float] | None) -> Objective:
    """An objective as it is; a function of a trajectory as one to be maximised; by default the discounted return."""
    if given is None:
        return discounted_return()
    return given if isinstance(given, Objective) else Objective(name=getattr(given, "__name__", "custom"), function=given)


def make_objective(name: str) -> Objective:
    """The objective with this name.

    Args:
        name: a registered name ("return", "discounted", "longest", "shortest", ...), or `module:name` for an `Objective`, a
            function without arguments that creates one, or a function of a trajectory.
    """
    found: Any = OBJECTIVES.find(name)
    if isinstance(found, Objective):
        return found
    if not callable(found):
        raise InvalidValueError(f"an objective must be a function, but {name!r} is {found!r}: name a function of a trajectory")
    required = [each for each in inspect.signature(found).parameters.values() if _is_required(each)]
    return as_objective(found if required else found())


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
