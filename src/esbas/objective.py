"""Objectives (the paper's μ): the value of a trajectory to the selector."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.registry import Registry, import_object
from esbas.errors import InvalidValueError, require
from esbas.trajectory import Trajectory

DISCOUNT = 0.99
"""The default of `discounted_return`."""

# Text with options is read by a higher layer, which is imported when such a text is given.
_READ_OBJECTIVE = "esbas.specs.selectors:read_objective"


@dataclass(frozen=True, kw_only=True)
class Objective:
    """A number per trajectory, to be maximized (or minimized, with `maximize=False`).

    Attributes:
        name: for reports and save files. A run is resumed with the objective of this name.
        function: returns the value of a trajectory.
        maximize: whether larger is better.
        infos: the keys of the info of each step that the function needs. They are kept as columns,
            such as `trajectory.infos["is_success"]`. Their values must be numbers or booleans.
        details: other numbers of a trajectory that evaluations report beside the value. They may
            use the same infos, and no others.
    """

    name: str
    function: Callable[[Trajectory], float] = field(repr=False)
    maximize: bool = True
    infos: tuple[str, ...] = ()
    details: tuple["Objective", ...] = ()

    def __post_init__(self) -> None:
        are_keys = isinstance(self.infos, tuple | list) and all(
            isinstance(key, str) and key for key in self.infos
        )
        require(
            are_keys,
            f"`infos` of objective {self.name!r} must be a tuple of keys such as "
            f"('is_success',), but got {schema.short(self.infos)}.",
        )
        store = object.__setattr__  # the dataclass is frozen
        store(self, "infos", tuple(self.infos))
        are_objectives = isinstance(self.details, tuple | list) and all(
            isinstance(detail, Objective) for detail in self.details
        )
        require(
            are_objectives,
            f"`details` of objective {self.name!r} must be a tuple of objectives, "
            f"but got {schema.short(self.details)}.",
        )
        store(self, "details", tuple(self.details))
        for detail in self.details:
            missing = [key for key in detail.infos if key not in self.infos]
            require(
                not missing,
                f"`infos` of objective {self.name!r} must have the keys of its details, but "
                f"{missing} of {detail.name!r} are not among them: add them.",
            )

    def __call__(self, trajectory: Trajectory) -> float:
        """Return the trajectory's value, in the units of the objective."""
        returned = self.function(trajectory)
        try:
            value = float(returned)
        except (TypeError, ValueError):
            raise InvalidValueError(
                f"The values of objective {self.name!r} must be numbers, "
                f"but got {schema.short(returned)}: fix its function."
            ) from None
        if not math.isfinite(value):
            raise InvalidValueError(
                f"The values of objective {self.name!r} must be finite, but got {value}: "
                "fix its function."
            )
        return value

    def score(self, value: float) -> float:
        """Return the value as selectors see it: larger is better."""
        return value if self.maximize else -value


OBJECTIVES: Registry[Callable[..., Objective]] = Registry("objective")
"""Functions that create objectives, by name. `@OBJECTIVES.register("name")` adds another one.

Their arguments are the options of the objective, as in "discounted(gamma=0.9)".
"""


@OBJECTIVES.register("return")
def total_return() -> Objective:
    """Return the objective Σ r(t), without discount."""

    def function(trajectory: Trajectory) -> float:
        return float(trajectory.rewards.sum())

    return Objective(name="return", function=function)


@OBJECTIVES.register("discounted")
def discounted_return(gamma: float = DISCOUNT) -> Objective:
    """Return the objective Σ γ^t r(t+1): the return of the paper's Section 2.1."""
    require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")

    def function(trajectory: Trajectory) -> float:
        return float(trajectory.rewards @ gamma ** np.arange(len(trajectory)))

    return Objective(name=f"discounted return, gamma={gamma:g}", function=function)


@OBJECTIVES.register("shortest")
def episode_length(*, maximize: bool = False) -> Objective:
    """Return the number of steps as an objective."""
    return Objective(name="episode length", function=len, maximize=maximize)


OBJECTIVES.add("longest", partial(episode_length, maximize=True))


def success_time(*, failure: float) -> Objective:
    """Return the number of steps until the goal as an objective, to be minimized.

    Args:
        failure: the value of an episode that was truncated before the goal; 200 in Section 5.1.
    """

    def function(trajectory: Trajectory) -> float:
        return len(trajectory) if trajectory.terminated else failure

    return Objective(
        name=f"time to success, {failure:g} if none", function=function, maximize=False
    )


@OBJECTIVES.register("success_rate")
def success_rate(key: str = "is_success") -> Objective:
    """Return the objective that is 1 if an episode ends with success, and 0 otherwise.

    Its mean is the success rate. As in the logs of Stable-Baselines3, success is what the info of
    the last step says; successes of earlier steps do not count.

    Args:
        key: of the info. Its value at the last step must be true or false, or 1 or 0.
    """

    def function(trajectory: Trajectory) -> float:
        column = trajectory.infos[key]
        success = float(column[-1])
        if math.isnan(success):
            raise _missing(key, column, "the last step")
        if success not in (0.0, 1.0):
            raise InvalidValueError(
                f"The info {key!r} must be true or false, or 1 or 0, to be a success, "
                f"but got {success!r} at the last step of an episode: name another key."
            )
        return success

    name = "success rate" if key == "is_success" else f"success rate by {key}"
    return Objective(name=name, function=function, infos=(key,))


@OBJECTIVES.register("constrained_return")
def constrained_return(*, cost: str = "cost", limit: float, penalty: float) -> Objective:
    """Return the objective G - penalty * max(0, C - limit), for a return subject to a cost.

    G is the return without discount, and C the cost of the episode: the sum of the info `cost` over
    its steps, of which those without the key count as 0.

    The penalty is fixed. It applies to each episode, so a policy whose episodes are sometimes above
    the limit loses value even if its mean cost is below. Where the episodes of a policy are all on
    the same side of the limit, its mean value is E[G] - penalty * max(0, E[C] - limit): then the
    constraint is on the mean cost. With `limit=0` and costs of at least 0 that is always so. A
    policy that keeps the limit is preferred if the others gain less return than `penalty` for each
    unit of cost above it.

    Evaluations report the cost beside the value.

    Args:
        cost: the key of the info.
        limit: the cost of an episode that is allowed.
        penalty: the value that each unit of cost above the limit takes away.
    """
    require(math.isfinite(limit), f"`limit` must be a finite number, but got {limit!r}.")
    require(
        math.isfinite(penalty) and penalty >= 0,
        f"`penalty` must be a finite number of at least 0, but got {penalty!r}.",
    )

    def total_cost(trajectory: Trajectory) -> float:
        column = trajectory.infos[cost]
        if np.isnan(column).all():
            raise _missing(cost, column, "at least one step")
        return float(np.nansum(column))

    def function(trajectory: Trajectory) -> float:
        excess = max(0.0, total_cost(trajectory) - limit)
        return float(trajectory.rewards.sum()) - penalty * excess

    shown_cost = Objective(name=cost, function=total_cost, maximize=False, infos=(cost,))
    return Objective(
        name=f"return - {_exact(penalty)} * max(0, {cost} - {_exact(limit)})",
        function=function,
        infos=(cost,),
        details=(shown_cost,),
    )


def _exact(number: float) -> str:
    """Return a number with all its digits, because a run is resumed with the objective's name."""
    return repr(float(number)).removesuffix(".0")


def _missing(key: str, column: Array, where: str) -> InvalidValueError:
    """Return the error for an episode whose infos do not have a key where they must."""
    count = int(np.count_nonzero(~np.isnan(column)))
    return InvalidValueError(
        f"The info of {where} of an episode must have the key {key!r}, but {count} of the "
        f"{len(column)} steps of this one have it: name a key that the environment reports, "
        "or add it in a wrapper."
    )


ObjectiveLike = Objective | Callable[[Trajectory], float] | str | None
"""What `as_objective` accepts."""


def as_objective(given: ObjectiveLike) -> Objective:
    """Return the objective that is given.

    Args:
        given: an `Objective`; a function of a trajectory, which is maximized; a function or a class
            that creates one of these, such as `total_return`; a name, see `make_objective`; or None
            for the discounted return.
    """
    if given is None:
        return discounted_return()
    if isinstance(given, Objective):
        return given
    if isinstance(given, str):
        return make_objective(given)
    if not callable(given):
        raise InvalidValueError(
            "`objective` must be an objective, a function of a trajectory, or a name, "
            f"but got {schema.short(given)}: pass for example 'return' or esbas.total_return()."
        )
    return _from_function(given, getattr(given, "__name__", "custom"), {})


def make_objective(name: str) -> Objective:
    """Return the objective with this name.

    Args:
        name: a registered name ("return", "discounted", "longest", "success_rate", ...), or
            `module:name` for an `Objective`, a function that creates one, or a function of a
            trajectory. Options may follow in parentheses, as in "discounted(gamma=0.9)".
    """
    if "(" in name:
        read: Objective = import_object(_READ_OBJECTIVE)(name)
        return read
    return create_objective(name, {})


def create_objective(name: str, options: Mapping[str, Any]) -> Objective:
    """Return the objective with this name and these options.

    Args:
        name: see `make_objective`, without options in parentheses.
        options: the arguments of the function that creates the objective.
    """
    found: Any = OBJECTIVES.find(name)
    if isinstance(found, Objective):
        require(not options, f"The objective {name!r} has no options: leave them out.")
        return found
    if not callable(found):
        raise InvalidValueError(
            f"An objective must be a function, but {name!r} is {found!r}: "
            "name a function of a trajectory."
        )
    return _from_function(found, name, options)


def _from_function(
    function: Callable[..., Any], name: str, options: Mapping[str, Any]
) -> Objective:
    """Return the objective that a function of a trajectory is, or that a function creates."""
    required = [each for each in _required_parameters(function) if each.name not in options]
    if any(each.kind is not inspect.Parameter.KEYWORD_ONLY for each in required):
        require(not options, f"A function of a trajectory such as {name!r} has no options.")
        return Objective(name=getattr(function, "__name__", "custom"), function=function)
    for each in required:
        raise InvalidValueError(
            f"`{each.name}` of objective {name!r} is missing: "
            f"add it in parentheses, as in {name}({each.name}=...)."
        )
    return as_objective(function(**options))


def _required_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters without a default. Positional ones of any number count as one."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # as for some functions and classes in C
        parameters = inspect.signature(lambda trajectory: trajectory).parameters
    required = []
    for parameter in parameters.values():
        has_default = parameter.default is not inspect.Parameter.empty
        if not has_default and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
            required.append(parameter)
    return required
