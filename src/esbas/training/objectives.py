"""Objectives by name."""

import inspect
from collections.abc import Callable
from typing import Any

import esbas
from esbas.errors import InvalidValueError
from esbas.objective import Objective, as_objective
from esbas.registry import Registry

OBJECTIVES: Registry[Callable[[], Objective]] = Registry("objective")
"""Functions without arguments that return an objective, by name."""
OBJECTIVES.add("return", esbas.total_return)
OBJECTIVES.add("discounted", esbas.discounted_return)
OBJECTIVES.register("longest")(lambda: esbas.episode_length(maximize=True))
OBJECTIVES.add("shortest", esbas.episode_length)


def find_objective(name: str) -> Objective:
    """The objective with this name.

    `module:name` may be an `Objective`, a function or class that returns one when it is called without arguments, or a function
    of a trajectory, which is maximised.
    """
    found: Any = OBJECTIVES.find(name)
    if isinstance(found, Objective):
        return found
    if not callable(found):
        raise InvalidValueError(f"an objective must be a function, but {name!r} is {found!r}: name a function of a trajectory")
    needed = [each for each in inspect.signature(found).parameters.values() if _is_required(each)]
    return as_objective(found if needed else found())


def _is_required(parameter: inspect.Parameter) -> bool:
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    return parameter.default is inspect.Parameter.empty and parameter.kind not in variadic
