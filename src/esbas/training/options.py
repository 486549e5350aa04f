"""Options as people write them: calls such as "dqn(rate=0.001)", and keyword arguments checked against a signature."""

import ast
import inspect
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from gymnasium.error import DependencyNotInstalled

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, unknown
from esbas.training.hints import fitted, told

_REMEDY = "give another value, or leave it out"


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of "name" or "name(key=value, ...)"; the values are literals, and nothing is executed.

    >>> read_call("dqn(rate=0.001, hidden=[64, 64])")
    ('dqn', {'rate': 0.001, 'hidden': [64, 64]})
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        called, keywords = (tree.func, tree.keywords) if isinstance(tree, ast.Call) and not tree.args else (tree, [])
        name, options = ast.unparse(called), {str(word.arg): ast.literal_eval(word.value) for word in keywords}
        once = len(options) == len(keywords) and "None" not in options  # None: **options
        if once and all(part.isidentifier() for part in name.split(".")):
            return name, options
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # all that `ast` is documented to raise
        pass
    rule = "must be a name, or a name with options and plain values such as name(key=1.5, other='text')"
    raise InvalidValueError(f"{text!r} {rule}, but is not: quote texts, and write each option as key=value")


def checked(
    function: Callable[..., Any],
    given: Mapping[str, Any],
    *,
    kind: str,
    ours: Collection[str] = (),
    optional: Collection[str] = (),
    hints: Mapping[str, Any] | None = None,
    also: Collection[str] = (),
) -> dict[str, Any]:
    """The given options, if the function takes them: lists become tuples where it wants tuples.

    Args:
        function: whose arguments the options are.
        given: by name.
        kind: what has the options, for errors.
        ours: the arguments that the caller gives itself.
        optional: arguments that may be left out although the function has no default.
        hints: the types of arguments where they differ from the function's own.
        also: other names that may have been meant.
    """
    parameters = _parameters(function)
    names = [name for name in parameters if name not in ours]
    for name in given:
        if name in parameters and name in ours:
            raise InvalidValueError(f"{kind} must not be given {name!r}, which esbas sets itself: leave it out")
        if name not in names:
            raise unknown(f"option of {kind}", name, [*names, *also], "" if names else "it has none")
    for name in names:
        if parameters[name].default is inspect.Parameter.empty and name not in given and name not in optional:
            raise InvalidValueError(f"{kind} must be given {name!r}, but was not: add {name}=...")
    return {
        name: _checked(value, (hints or {}).get(name) or _hint(function, name), f"the option {name!r} of {kind}")
        for name, value in given.items()
    }


@contextmanager
def telling(where: str, *, rule: str = "must work", remedy: str = "change it, or leave it out") -> Iterator[None]:
    """Whatever fails within becomes one sentence that begins with `where`."""
    try:
        yield
    except EsbasError as error:
        raise type(error)(f"{where}: {' '.join(str(error).split())}") from error  # a space may be told in many lines
    except (ImportError, DependencyNotInstalled) as error:
        said = first_line(error)
        raise MissingExtraError(f"{where}: {said}" + ("" if "pip install" in said else ": install what is missing")) from error
    except Exception as error:
        text = f"{where} {rule}, but {type(error).__name__}: {first_line(error)}"
        raise InvalidValueError(f"{text}: {remedy}") from error


def first_line(error: BaseException) -> str:
    """What the error says, in one line."""
    return (str(error).strip().splitlines() or ["nothing is told"])[0].rstrip(".")


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    found = inspect.signature(function).parameters.items()
    return {name: parameter for name, parameter in found if name != "self" and parameter.kind not in variadic}


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The type of one argument; Any where a name in it is known to type checkers alone."""
    holder = types.SimpleNamespace(__annotations__={name: _parameters(function)[name].annotation})
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
        raise InvalidValueError(f"{what} must be {told(hint) or 'what no text can tell'}, but is {value!r}: {_REMEDY}") from None
