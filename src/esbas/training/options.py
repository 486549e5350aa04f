"""Options from text: reads calls such as "dqn(rate=0.001)" and checks keyword arguments against a signature."""

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gymnasium.error import DependencyNotInstalled

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, unknown
from esbas.training.type_hints import describe, fitted

_REMEDY = "give another value, or remove it"
_MODULE = re.compile(r"\s*([A-Za-z_][\w.]*):(?=[A-Za-z_])")  # "module:" before a name


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of "name", "name(key=value, ...)" or "module:name(...)". Values are literals; no code is executed.

    >>> read_call("dqn(rate=0.001, hidden=[64, 64])")
    ('dqn', {'rate': 0.001, 'hidden': [64, 64]})
    """
    module = _MODULE.match(text)
    try:
        tree = ast.parse((text[module.end() :] if module else text).strip(), mode="eval").body
        called, keywords = (tree.func, tree.keywords) if isinstance(tree, ast.Call) and not tree.args else (tree, [])
        name, options = ast.unparse(called), {str(word.arg): ast.literal_eval(word.value) for word in keywords}
        once = len(options) == len(keywords) and "None" not in options  # None: **options
        if once and all(part.isidentifier() for part in name.split(".")):
            return (f"{module[1]}:{name}" if module else name), options
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # what `ast` is documented to raise
        pass
    rule = "must be a name, or a name with options and plain values such as name(key=1.5, other='text')"
    raise InvalidValueError(f"{text!r} {rule}, but is not: put text in quotes, and write each option as key=value")


def checked(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    *,
    kind: str,
    reserved: Collection[str] = (),
    optional: Collection[str] = (),
    hints: Mapping[str, Any] | None = None,
    also: Collection[str] = (),
) -> dict[str, Any]:
    """The given options, converted to the types of the signature (a list to a tuple, for example).

    Raises an error if the function does not have an option, if a required one is missing, or if a value has the wrong type.

    Args:
        function: its arguments are the options.
        given: values by name.
        kind: what the options belong to, for errors.
        reserved: arguments that the caller sets itself.
        optional: arguments without a default that may be omitted.
        hints: types of arguments where they differ from the signature.
        also: other names to suggest if one is unknown.
    """
    parameters = parameters_of(function)
    names = [name for name in parameters if name not in reserved]
    for name in given:
        if name in parameters and name in reserved:
            raise InvalidValueError(f"{kind} must not be given {name!r}, which esbas sets itself: remove it")
        if name not in names:
            raise unknown(f"option of {kind}", name, [*names, *also], "" if names else "it has no options")
    for name in names:
        if parameters[name].default is inspect.Parameter.empty and name not in given and name not in optional:
            raise InvalidValueError(f"{kind} must be given {name!r}, but was not: add {name}=...")
    return {
        name: _checked(value, (hints or {}).get(name) or _hint(function, name), f"the option {name!r} of {kind}")
        for name, value in given.items()
    }


@contextmanager
def error_context(where: str, *, rule: str = "must work", remedy: str = "change it, or remove it") -> Iterator[None]:
    """Turn any error within into one sentence that begins with `where`."""
    try:
        yield
    except EsbasError as error:
        raise type(error)(f"{where}: {' '.join(str(error).split())}") from error  # spaces may be printed in many lines
    except (ImportError, DependencyNotInstalled) as error:
        message = first_line(error)
        raise MissingExtraError(f"{where}: {message}" + ("" if "pip install" in message else ": install it")) from error
    except Exception as error:
        text = f"{where} {rule}, but {type(error).__name__}: {first_line(error)}"
        raise InvalidValueError(f"{text}: {remedy}") from error


def first_line(error: BaseException) -> str:
    """The message of an error in one line."""
    return (str(error).strip().splitlines() or ["no message"])[0].rstrip(".")


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The named parameters of a function or class."""
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    found = inspect.signature(function).parameters.items()
    return {name: parameter for name, parameter in found if name != "self" and parameter.kind not in variadic}


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The type of one argument; Any if the annotation has a name that only type checkers know."""
    holder = types.SimpleNamespace(__annotations__={name: parameters_of(function)[name].annotation})
    maker = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]  # only its globals are read
    try:
        hint = typing.get_type_hints(holder, globalns=maker.__globals__)[name]
    except NameError:
        return Any
    return Any if hint is inspect.Parameter.empty else hint


def _checked(value: Any, hint: Any, what: str) -> Any:
    try:
        return fitted(value, hint)
    except TypeError:
        raise InvalidValueError(
            f"{what} must be {describe(hint) or 'an object that text cannot express'}, but is {_cut(repr(value))}: {_REMEDY}"
        ) from None


def _cut(text: str) -> str:
    return text if len(text) <= 300 else text[:300] + "..."
