"""Options from text: reads calls such as "dqn(rate=0.001)" and checks keyword arguments against a signature."""

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, UnknownNameError, unknown
from esbas.registry import where as place_of
from esbas.training.type_hints import describe, fitted

_REMEDY = "give another value, or remove it"
_MODULE = re.compile(r"\s*([A-Za-z_][\w.]*|[^'\"]*\.py):(?=[A-Za-z_])")  # "module:" or "file.py:" before a name
_SYNONYMS = {
    **dict.fromkeys(("learning_rate", "lr", "alpha", "step_size"), ("rate", "learning_rate")),
    **dict.fromkeys(("discount", "discount_factor"), ("gamma",)),
    **dict.fromkeys(("batch_size", "minibatch_size"), ("batch",)),
    **dict.fromkeys(("layers", "net_arch", "hidden_sizes", "hidden_layers", "hidden_size"), ("hidden", "policy_kwargs")),
    **dict.fromkeys(
        ("epsilon_decay", "epsilon_start", "epsilon_end", "eps", "exploration", "exploration_rate"),
        ("epsilon", "exploration_fraction"),
    ),
    **dict.fromkeys(("nstep", "n_steps"), ("n_step",)),
    **dict.fromkeys(("target_update", "target_update_interval", "target_update_freq"), ("sync_every", "target_update_interval")),
    **dict.fromkeys(("train_freq", "update_every"), ("train_every", "train_freq")),
    **dict.fromkeys(("warmup", "warmup_steps", "start_steps"), ("learning_starts",)),
    "rate": ("learning_rate",),
    "batch": ("batch_size",),
}
"""What an option may be called elsewhere."""
_MEMORY = "buffer_size", "memory_size", "replay_size", "capacity"
_SHARED = (
    "the replay memory is shared by all members: set capacity under [replay] in a portfolio file, as esbas train --example does"
)


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of "name", "name(key=value, ...)" or "module:name(...)". Values are literals; no code is executed.

    >>> read_call("dqn(rate=0.001, hidden=[64, 64])")
    ('dqn', {'rate': 0.001, 'hidden': [64, 64]})
    """
    module = _MODULE.match(text)
    try:
        tree = ast.parse((text[module.end() :] if module else text).strip(), mode="eval").body
        called, keywords = (tree.func, tree.keywords) if isinstance(tree, ast.Call) and not tree.args else (tree, [])
        name, options = ast.unparse(called), {str(word.arg): _literal(word.value) for word in keywords}
        once = len(options) == len(keywords) and "None" not in options  # None: **options
        if once and all(part.isidentifier() for part in name.split(".")):
            return (f"{module[1]}:{name}" if module else name), options
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):  # what `ast` is documented to raise
        pass
    rule = "must be a name, or a name with options and plain values such as name(key=1.5, other='text')"
    raise InvalidValueError(f"{text!r} {rule}, but is not: put text in quotes, and write each option as key=value")


def split_options(text: str) -> tuple[str, dict[str, Any]]:
    """As `read_call`, for names that may have any characters but quotes and parentheses, such as those of environments.

    >>> split_options("FrozenLake-v1(is_slippery=False)")
    ('FrozenLake-v1', {'is_slippery': False})
    """
    text = text.strip()
    unquoted = re.split("['\"]", text, maxsplit=1)[0]
    start = text.find("(", unquoted.rfind(".py") + 1)  # the name of a file may have parentheses
    if start < 0 or not text.endswith(")"):
        return text, {}
    try:
        return text[:start].strip(), read_call(f"options{text[start:]}")[1]
    except InvalidValueError:
        rule = "must be a name with options and plain values such as name(key=1.5, other='text')"
        raise InvalidValueError(f"{text!r} {rule}, but is not: put text in quotes, and write each option as key=value") from None


def join_options(name: str, options: Mapping[str, Any]) -> str:
    """The inverse of `split_options`."""
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})" if options else name


def _literal(node: ast.expr) -> Any:
    """The value of a literal; true and false may be written as in TOML."""
    spelled = {"true": True, "false": False}
    return spelled[node.id] if isinstance(node, ast.Name) and node.id in spelled else ast.literal_eval(node)


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
        if name in _MEMORY and name not in names and {"replay", "buffer_size"} & set(parameters):
            raise InvalidValueError(f"{kind} must not be given {name!r}: {_SHARED}")
        if name in parameters and name in reserved:
            raise InvalidValueError(f"{kind} must not be given {name!r}, which esbas sets itself: remove it")
        if name not in names:
            raise _unknown_option(kind, name, names, also)
    for name in names:
        if parameters[name].default is inspect.Parameter.empty and name not in given and name not in optional:
            raise InvalidValueError(f"{kind} must be given {name!r}, but was not: add {name}=...")
    return {
        name: _checked(value, (hints or {}).get(name) or _hint(function, name), f"the option {name!r} of {kind}")
        for name, value in given.items()
    }


def _unknown_option(kind: str, name: str, names: Collection[str], also: Collection[str]) -> UnknownNameError:
    meant = [each for each in _SYNONYMS.get(name.lower(), ()) if each in names]
    if meant:
        return UnknownNameError(f"there is no option of {kind} named {name!r}: did you mean {meant[0]!r}?")
    return unknown(f"option of {kind}", name, [*names, *also], "" if names else "it has no options")


@contextmanager
def error_context(where: str, *, rule: str = "must work", remedy: str = "change it, or remove it") -> Iterator[None]:
    """Turn any error within into one sentence that begins with `where`."""
    try:
        yield
    except EsbasError as error:
        raise type(error)(f"{where}: {' '.join(str(error).split())}") from error  # spaces may be printed in many lines
    except Exception as error:
        message = first_line(error)
        if isinstance(error, ImportError) or type(error).__name__ == "DependencyNotInstalled":  # the latter is Gymnasium's
            raise MissingExtraError(f"{where}: {message}" + ("" if "pip install" in message else ": install it")) from error
        text = f"{where} {rule}, but {type(error).__name__}: {message}"
        raise InvalidValueError(f"{text}: {remedy}{place_of(error)}") from error


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
