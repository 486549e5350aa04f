"""Parts of a training as users give them: text, classes, functions and objects.

Text can be stored in a folder and sent to other processes. So a part that can be imported under its
name becomes text such as "module:Class". Any other part stays an object, and needs this process.
"""

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from esbas.errors import SaveFileError
from esbas.objective import Objective
from esbas.specs.options import parameters_of

# Modules that other processes do not find, or find with another content.
_LOCAL_MODULES = "__main__", "__mp_main__", "builtins"


@dataclass(frozen=True)
class Unnamed:
    """Stands for an object that a folder could not name, in a training that was loaded from it."""

    label: str

    def __call__(self, *_: Any, **__: Any) -> Any:
        problem = f"This training was described by an object ({self.label})"
        remedy = "call esbas.train with the arguments that it was started with"
        raise SaveFileError(f"{problem}, which its folder does not have: {remedy}.")


def importable_name(given: Any) -> str | None:
    """Return "module:name" if other processes find this class or function there; None otherwise."""
    module = getattr(given, "__module__", None)
    name = getattr(given, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str):
        return None
    if module in _LOCAL_MODULES or "<" in name:  # "<" as in "<lambda>" and "function.<locals>"
        return None
    # The module that defined the object is loaded: looking for the object imports nothing.
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return f"{module}:{name}" if found is given else None


def named(given: Any) -> Any:
    """Return the text for a class or function that can be imported; anything else as it is."""
    if isinstance(given, str):
        return given
    return importable_name(given) or given


def is_text(given: Any) -> bool:
    """Return whether this part, or every item of it, is text."""
    if isinstance(given, tuple):
        return all(isinstance(each, str) for each in given)
    return given is None or isinstance(given, str)


def label_of(given: Any) -> str:
    """Return a short name for messages and folders.

    >>> label_of(lambda: 3)
    'lambda'
    >>> label_of("ssbas(xi=1)")
    'ssbas(xi=1)'
    """
    if isinstance(given, str):
        return given
    if isinstance(given, Unnamed):
        return given.label
    if isinstance(given, tuple | list):
        return ", ".join(label_of(each) for each in given)
    if isinstance(given, functools.partial):
        return label_of(given.func)
    own_name = getattr(given, "name", None)
    if isinstance(own_name, str):  # learners and objectives
        return own_name
    plain_name = getattr(given, "__qualname__", type(given).__qualname__)
    return plain_name.rpartition(".")[2].strip("<>")


def to_plain(given: Any) -> Any:
    """Return plain data for config.json. An object without a name becomes its label."""
    if isinstance(given, tuple | list):
        return [to_plain(each) for each in given]
    if given is None or isinstance(given, str | int | float | bool):
        return given
    if isinstance(given, Objective):
        return {"object": given.name, "maximize": given.maximize}
    return {"object": label_of(given)}


def from_plain(data: Any) -> Any:
    """Return what `to_plain` was given, with `Unnamed` instead of objects."""
    if isinstance(data, list):
        return tuple(from_plain(each) for each in data)
    if isinstance(data, dict) and isinstance(data.get("object"), str):
        unnamed = Unnamed(data["object"])
        if "maximize" in data:
            is_maximized = data["maximize"] is True
            return Objective(name=unnamed.label, function=unnamed, maximize=is_maximized)
        return unnamed
    return data


def require_parts(config: Any) -> None:
    """Raise an error if a part of the training is `Unnamed`, so that the training cannot run."""
    for name in ("env", "learners", "selector", "objective", "wrappers"):
        given = getattr(config, name)
        parts = given if isinstance(given, tuple) else (given,)
        for part in parts:
            source = part.function if isinstance(part, Objective) else part
            if isinstance(source, Unnamed):
                source()


def call_with(function: Callable[..., Any], **available: Any) -> Any:
    """Call a function with those of the available arguments that it takes, by name or by position.

    >>> call_with(lambda env: env + 1, env=1, seed=2)
    2
    >>> call_with(lambda world, number: (world, number), env=1, seed=2)
    (1, 2)
    """
    try:
        parameters = list(parameters_of(function).values())
    except (TypeError, ValueError):  # a signature that Python cannot read
        return function(*available.values())
    by_name = {each.name: available[each.name] for each in parameters if each.name in available}
    if by_name:
        return function(**by_name)
    required = [each for each in parameters if each.default is each.empty]
    by_position = list(available.values())[: len(required)]
    return function(*by_position)
