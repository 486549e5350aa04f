"""Reads calls such as "dqn(learning_rate=0.001)", and checks options against a signature."""

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from esbas._internal.registry import where as position_of
from esbas.errors import EsbasError, InvalidValueError, MissingExtraError, UnknownNameError, unknown
from esbas.specs.type_hints import describe, fitted

# "module:" or "file.py:" before a name.
_MODULE = re.compile(r"\s*([A-Za-z_][\w.]*|[^'\"]*\.py):(?=[A-Za-z_])")
# Options, and their names in other libraries: for "did you mean".
_MEANT = {
    "learning_rate": ("rate", "lr", "alpha", "step_size"),
    "gamma": ("discount", "discount_factor"),
    "batch_size": ("batch", "minibatch_size"),
    "hidden": ("layers", "net_arch", "hidden_sizes", "hidden_layers", "hidden_size"),
    "policy_kwargs": ("layers", "net_arch", "hidden", "hidden_sizes", "hidden_layers"),
    "epsilon": ("epsilon_decay", "epsilon_start", "epsilon_end", "eps", "exploration"),
    "exploration_fraction": ("epsilon", "epsilon_decay", "exploration"),
    "n_steps": ("n_step", "nstep"),
    "sync_every": ("target_update", "target_update_interval", "target_update_freq"),
    "target_update_interval": ("target_update", "target_update_freq", "sync_every"),
    "train_freq": ("train_every", "update_every"),
    "gradient_steps": ("updates", "updates_per_step"),
    "learning_starts": ("warmup", "warmup_steps", "start_steps"),
}
# Names for the size of the replay memory, which is no option of a single learner.
_MEMORY_SIZE = "buffer_size", "memory_size", "replay_size", "capacity"
_LONGEST_VALUE = 300  # characters of a value in a message


def read_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of "name", "name(key=value, ...)" or "module:name(...)".

    Values are literals. No code is executed.

    >>> read_call("dqn(learning_rate=0.001, hidden=[64, 64])")
    ('dqn', {'learning_rate': 0.001, 'hidden': [64, 64]})
    """
    module = _MODULE.match(text)
    call = text[module.end() :] if module else text
    try:
        name, options = _parsed_call(call.strip())
    # These are the errors that `ast` is documented to raise.
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        form = "a name, or a name with options and plain values such as name(key=1.5, other='text')"
        remedy = "put text in quotes, and write each option as key=value"
        raise InvalidValueError(f"{text!r} must be {form}: {remedy}.") from None
    return (f"{module[1]}:{name}" if module else name), options


def _parsed_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of a call; raise a ValueError if it is not one."""
    tree = ast.parse(text, mode="eval").body
    called: ast.expr = tree
    keywords: list[ast.keyword] = []
    if isinstance(tree, ast.Call) and not tree.args:
        called = tree.func
        keywords = tree.keywords
    name = ast.unparse(called)
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError("not a name")
    options: dict[str, Any] = {}
    for keyword in keywords:
        if keyword.arg is None or keyword.arg in options:
            raise ValueError("**options, or an option twice")
        options[keyword.arg] = _literal(keyword.value)
    return name, options


def split_options(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the options, as `read_call` does, for any name, as of environments.

    The name may have any characters but quotes and parentheses.

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
        form = "a name with options and plain values such as name(key=1.5, other='text')"
        remedy = "put text in quotes, and write each option as key=value"
        raise InvalidValueError(f"{text!r} must be {form}: {remedy}.") from None


def join_options(name: str, options: Mapping[str, Any]) -> str:
    """Return the text that `split_options` splits into this name and these options."""
    if not options:
        return name
    listed = ", ".join(f"{key}={value!r}" for key, value in options.items())
    return f"{name}({listed})"


def _literal(node: ast.expr) -> Any:
    """Return the value of a literal; true and false may be written as in TOML."""
    spelled = {"true": True, "false": False}
    if isinstance(node, ast.Name) and node.id in spelled:
        return spelled[node.id]
    return ast.literal_eval(node)


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
    """Return the given options, converted to the types of the signature, such as a list to a tuple.

    Raises an error if the function does not have an option, if a required one is missing, or if a
    value has the wrong type.

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
    has_memory = "replay" in parameters or "buffer_size" in parameters
    for name in given:
        if name in names:
            continue
        if name in _MEMORY_SIZE and has_memory:
            reason = "because all learners share the replay memory"
            remedy = "set `buffer_size` under [replay] in a portfolio file, as `esbas example` does"
            raise InvalidValueError(f"`{name}` of {kind} must not be given, {reason}: {remedy}.")
        if name in parameters:
            raise InvalidValueError(
                f"`{name}` of {kind} must not be given, because esbas sets it: remove it."
            )
        raise _unknown_option(kind, name, names, also)
    for name in names:
        is_required = parameters[name].default is inspect.Parameter.empty
        if is_required and name not in given and name not in optional:
            raise InvalidValueError(f"`{name}` of {kind} is missing: add it.")
    converted: dict[str, Any] = {}
    for name, value in given.items():
        hint = (hints or {}).get(name) or _hint(function, name)
        converted[name] = _converted(value, hint, f"`{name}` of {kind}")
    return converted


def _unknown_option(
    kind: str, name: str, names: Collection[str], also: Collection[str]
) -> UnknownNameError:
    what = f"option of {kind}"
    for option, elsewhere in _MEANT.items():
        if option in names and name.lower() in elsewhere:
            return unknown(what, name, [option], f"did you mean {option!r}?")
    return unknown(what, name, [*names, *also], "" if names else "it has no options")


@contextmanager
def error_context(
    where: str, *, rule: str = "must work", remedy: str = "change it, or remove it"
) -> Iterator[None]:
    """Turn any error within the block into one sentence that begins with `where`."""
    try:
        yield
    except EsbasError as error:
        message = " ".join(str(error).split())  # spaces may be printed in many lines
        raise type(error)(f"{where}: {message}") from error
    except (Exception, SystemExit) as error:
        message = first_line(error)
        # The latter is Gymnasium's.
        if isinstance(error, ImportError) or type(error).__name__ == "DependencyNotInstalled":
            install = "" if "pip install" in message else ": install it"
            raise MissingExtraError(f"{where}: {message}{install}.") from error
        problem = f"{where} {rule}, but {type(error).__name__}: {message}"
        raise InvalidValueError(f"{problem}: {remedy}{position_of(error)}.") from error


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, without a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no message"


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a function or class."""
    variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
    found = inspect.signature(function).parameters.values()
    return {each.name: each for each in found if each.name != "self" and each.kind not in variadic}


def _hint(function: Callable[..., Any], name: str) -> Any:
    """Return the type of an argument; Any if it is not annotated, or cannot be evaluated here."""
    holder = types.SimpleNamespace(__annotations__={name: parameters_of(function)[name].annotation})
    # Only the globals of `maker` are read.
    maker = function.__init__ if isinstance(function, type) else function  # type: ignore[misc]
    try:
        hint = typing.get_type_hints(holder, globalns=maker.__globals__)[name]
    except NameError:  # a name that only type checkers know
        return Any
    return Any if hint is inspect.Parameter.empty else hint


def _converted(value: Any, hint: Any, what: str) -> Any:
    try:
        return fitted(value, hint)
    except TypeError:
        wanted = describe(hint) or "an object that text cannot express"
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}..."
        remedy = "give another value, or remove it"
        raise InvalidValueError(f"{what} must be {wanted}, but got {shown}: {remedy}.") from None
