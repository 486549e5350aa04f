"""Environments by name: registered ids, and classes and functions in modules and files."""

import ast
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from esbas._internal import values
from esbas._internal.registry import import_source, split_path
from esbas._internal.schema import short
from esbas.errors import BrokenEnvError, InvalidValueError, UnknownNameError, unknown
from esbas.specs import atari_defaults, known_packages
from esbas.specs.options import error_context, join_options, split_options
from esbas.specs.sources import Unnamed, importable_name, label_of

Env = gymnasium.Env[Any, Any]
_ANY_NAME = (
    "name a registered one such as 'CartPole-v1', or one that a package registers as "
    "'package:Name-v0'"
)
_OF_MAKE = "max_episode_steps", "disable_env_checker"  # options of gymnasium.make itself


def create(text: str, render_mode: str | None, *, changed: Mapping[str, Any] | None = None) -> Env:
    """Create the environment that the text names; see `esbas.training.make_env`.

    Args:
        text: the name, with options.
        render_mode: None for no rendering.
        changed: options that replace some of those in the text.
    """
    name, options = split_options(text)
    module_name, own_name = split_path(name)
    if ":" in own_name:  # gymnasium.make would import what is before the colon
        raise InvalidValueError(f"The environment {name!r} has several colons: use one at most.")
    if "render_mode" in options:
        raise InvalidValueError(
            f"`render_mode` of environment {text!r} must not be given, because esbas sets it: "
            "remove it."
        )
    given = options | dict(changed or {})
    if render_mode is not None:  # not every environment has this argument
        given["render_mode"] = render_mode
    atari_defaults.register(name)
    env: Env | None = None
    maker: Any = None
    module: ModuleType | None = None
    with starting(text):
        known_packages.register(name)
        if module_name:
            module = _import(module_name, own_name)
            own_name = own_name or _only_env(module, module_name)
            if own_name not in gymnasium.registry:
                maker = _attribute(module, own_name)
        env = _registered_env(own_name, given, text) if maker is None else call(maker, given, text)
    if env is None:
        raise _unknown_env(text, own_name, module, module_name)
    if maker is None and env.spec is not None and env.spec.id != own_name:
        full_name = _with_module(env.spec.id, module_name)
        raise InvalidValueError(
            f"The environment {name!r} must be named with its version: name {full_name!r}."
        )
    modes = env.metadata.get("render_modes") or []
    if render_mode is not None and render_mode not in modes:
        raise unknown(f"render mode of environment {text!r}", render_mode, modes)
    return env


def starting(name: str) -> AbstractContextManager[None]:
    """Turn errors of an environment that is created into one sentence that names it."""
    remedy = "fix the environment, or choose another"
    return error_context(f"Environment {name!r}", rule="must start", remedy=remedy)


def call(maker: Any, options: Mapping[str, Any], name: str) -> Env:
    """Create an environment by calling a class or function."""
    if not callable(maker):
        what = "a class or function that creates an environment"
        raise InvalidValueError(f"{name!r} must be {what}, but is {maker!r}: name another.")
    _check_options(maker, options, also=("max_episode_steps",))
    given = dict(options)
    limit = None
    if "max_episode_steps" not in _parameters(maker):
        limit = given.get("max_episode_steps")
        if limit is not None:
            del given["max_episode_steps"]
    env = checked_env(maker(**given), name)
    return env if limit is None else gymnasium.wrappers.TimeLimit(env, limit)


def checked_env(env: Any, name: str) -> Env:
    """Return the same object, if it is a single Gymnasium environment; raise an error otherwise."""
    if isinstance(env, gymnasium.vector.VectorEnv):
        got = f"{name!r} with {env.num_envs} environments"
        problem = f"Vector environments are not supported, but got {got}"
        remedy = "give a single environment; several seeds with several jobs use all cores"
        raise InvalidValueError(f"{problem}: {remedy}.")
    if not isinstance(env, gymnasium.Env):
        problem = f"{name!r} must be a gymnasium.Env, but is {type(env).__name__!r}"
        remedy = "name a subclass of gymnasium.Env, or a function that returns an environment"
        raise InvalidValueError(f"{problem}: {remedy}.")
    for kind in ("observation_space", "action_space"):
        space = getattr(env, kind, None)
        if not isinstance(space, gymnasium.Space):
            raise _no_space(name, kind, space)
    return env


def _no_space(name: str, kind: str, got: Any) -> BrokenEnvError:
    found = "none" if got is None else short(got)
    remedy = f"define it in `__init__`, such as self.{kind} = gymnasium.spaces.Discrete(2)"
    return BrokenEnvError(
        f"An environment needs an `{kind}` of gymnasium.spaces, but {name!r} has {found}: {remedy}."
    )


class NamedMaker:
    """A function that creates environments, with the name of what it creates.

    Args:
        maker: the function.
        first: the environment that it has created to find out the name. It is the first one to be
            used.
    """

    def __init__(self, maker: Callable[..., Env], first: Env) -> None:
        self.name = name_of(first)
        self.__wrapped__ = maker  # the signature is that of the function
        self._first: Env | None = first

    def __call__(self, **options: Any) -> Env:
        first = self._first
        if first is None or options:
            return self.__wrapped__(**options)
        self._first = None
        return first


def given_env(env: Any, options: Mapping[str, Any] | Sequence[str]) -> Any:
    """Return the environment as text with its options, or as it is if it has no name.

    Args:
        env: text, an environment, or a class or function that creates one.
        options: of the environment: a dictionary, or words such as "is_slippery=False".
    """
    if isinstance(env, Unnamed):
        return env
    if isinstance(env, Path):  # of a file such as myenv.py
        env = str(env)
    chosen = _read_settings(options)
    name = env if isinstance(env, str) else importable_name(env)
    if name is not None:
        return complete_name(name, chosen)
    if isinstance(env, gymnasium.vector.VectorEnv | gymnasium.Env):
        checked_env(env, name_of(env))
        if chosen:
            remedy = "set them where it is created"
            raise InvalidValueError(
                f"`env_kwargs` must not be given with an environment object: {remedy}."
            )
        return env
    if not callable(env):
        what = "the name of an environment, an environment, or a function that creates one"
        raise InvalidValueError(f"`env` must be {what}, but got {short(env)}.")
    return functools.partial(env, **chosen) if chosen else env


def complete_name(env: str, options: Mapping[str, Any]) -> str:
    """Return the name of an environment with all its options, from its text and from more options.

    >>> complete_name("FrozenLake-v1(is_slippery=False)", {"map_name": "8x8"})
    "FrozenLake-v1(is_slippery=False, map_name='8x8')"
    """
    name, own = split_options(env)
    for key in options:
        if key in own:
            raise InvalidValueError(
                f"The option {key!r} of the environment is given twice: remove one."
            )
    complete = join_options(name, {**own, **options})
    split_options(complete)  # raises an error for values that text cannot express, such as infinity
    return complete


def name_of(env: Any) -> str:
    """Return a name for an environment, or for a function that creates one."""
    if isinstance(env, gymnasium.Env):
        if env.spec is not None:
            return env.spec.id
        return type(env.unwrapped).__name__
    if isinstance(env, Unnamed):
        return env.label
    return importable_name(env) or label_of(env)


def _read_settings(options: Any) -> dict[str, Any]:
    """Return the options of an environment, given as a dictionary or as words such as "a=8x8"."""
    if isinstance(options, Mapping):
        for key in options:
            if not (isinstance(key, str) and key.isidentifier()):
                raise InvalidValueError(
                    f"`env_kwargs` must have names of options, but got {short(key)}."
                )
        return dict(options)
    found: dict[str, Any] = {}
    for word in values.items("env_kwargs", options):
        key, equals, value = values.text("env_kwargs", word).partition("=")
        if not (equals and key.isidentifier()):
            example = "write is_slippery=False"
            raise InvalidValueError(
                f"`env_kwargs` must have the form name=value, but got {word!r}: {example}."
            )
        if key in found:
            raise InvalidValueError(
                f"The option {key!r} of the environment is given twice: remove one."
            )
        found[key] = _literal(value)
    return found


def _registered_env(env_id: str, options: Mapping[str, Any], text: str) -> Env | None:
    """Return the environment with a registered id; None if there is none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date")  # old versions are allowed
        # `create` raises errors instead of these two warnings.
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")
        warnings.filterwarnings("ignore", message=".*Using the latest versioned")
        try:
            spec = gymnasium.registry.get(env_id)
            if options and spec is not None and spec.entry_point is not None:
                entry = spec.entry_point
                maker = load_env_creator(entry) if isinstance(entry, str) else entry
                own = {key: value for key, value in options.items() if key not in _OF_MAKE}
                _check_options(maker, own, also=_OF_MAKE)
            made: Any = gymnasium.make(env_id, **options)
            return checked_env(made, text)
        except AttributeError as error:  # Gymnasium's own check
            for kind in ("observation_space", "action_space"):
                if f"must specify an {kind.replace('_', ' ')}" in str(error):
                    raise _no_space(text, kind, None) from error
            raise
        except gymnasium.error.NamespaceNotFound:
            remedy = "install the package that registers it, and name the package as in "
            remedy += repr(f"package:{env_id}")
            namespace = env_id.partition("/")[0]
            raise _missing_package(env_id) or unknown("namespace", namespace, [], remedy) from None
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
            return None


def _unknown_env(
    text: str, own_name: str, module: ModuleType | None, module_name: str
) -> UnknownNameError:
    """Return the error for an environment that does not exist, with a suggestion."""
    missing = _missing_package(own_name)
    if missing is not None:
        return missing
    game = f"ALE/{own_name}"
    if game in gymnasium.registry:
        known = [game]
    else:
        known = list(reversed(gymnasium.registry))  # newer versions are registered later
        if module is not None:
            known += [each.__name__ for each in _classes(module)]
    known = [_with_module(each, module_name) for each in known]
    return unknown("environment", text, known, _ANY_NAME)


def _with_module(name: str, module_name: str) -> str:
    return f"{module_name}:{name}" if module_name else name


def _import(module_name: str, env_name: str) -> ModuleType:
    try:
        return import_source(module_name)
    except UnknownNameError as error:
        raise _missing_package(env_name) or error from None


def _missing_package(env_id: str) -> UnknownNameError | None:
    """Return the error for a well-known environment whose package has not been imported."""
    package = known_packages.package_of(env_id)
    if package is None or package.is_registered():
        return None
    return UnknownNameError(
        f"The environment {env_id!r} is in the package {package.name}, which is not installed: "
        f"pip install {package.name}."
    )


def _check_options(
    maker: Callable[..., Any], options: Mapping[str, Any], *, also: Sequence[str] = ()
) -> None:
    """Raise an error for an option that the class or function does not have."""
    parameters = _parameters(maker)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    names = [*parameters, *also]
    for key in options:
        if key not in names and key != "render_mode":
            known = [each for each in names if each not in ("self", "render_mode")]
            remedy = "" if known else "it has no options"
            raise unknown("option of this environment", key, known, remedy)


def _parameters(maker: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(maker).parameters
    except (TypeError, ValueError):
        # Python cannot read the signature: anything may be an option.
        return {"options": inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)}


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _only_env(module: ModuleType, module_name: str) -> str:
    """Return the name of the only environment in a module."""
    names = _registered(module)
    entries: list[Any] = [gymnasium.registry[each].entry_point for each in names]
    for each in _classes(module):
        is_registered = each in entries or f"{module.__name__}:{each.__name__}" in entries
        if not is_registered:
            names.append(each.__name__)
    if not names:
        remedy = "define a subclass of gymnasium.Env in it"
        raise InvalidValueError(f"There is no environment in {module_name!r}: {remedy}.")
    if len(names) > 1:
        listed = ", ".join(_with_module(each, module_name) for each in names)
        raise InvalidValueError(
            f"There are {len(names)} environments in {module_name!r}: name one of {listed}."
        )
    return names[0]


def _classes(module: ModuleType) -> list[type[Any]]:
    """Return the classes of environments that the module defines."""
    found: list[type[Any]] = []
    for each in vars(module).values():
        if not isinstance(each, type) or each.__module__ != module.__name__:
            continue
        if issubclass(each, gymnasium.Env) and not issubclass(each, gymnasium.Wrapper):
            found.append(each)
    return found


def _registered(module: ModuleType) -> list[str]:
    """Return the ids that the module registers, according to its source."""
    source = Path(module.__file__ or "").read_text("utf-8", errors="replace")
    in_source: set[Any] = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or _called_name(node) != "register":
            continue
        by_name = [word.value for word in node.keywords if word.arg == "id"]
        for value in [*node.args[:1], *by_name]:
            if isinstance(value, ast.Constant):
                in_source.add(value.value)
    return [each for each in gymnasium.registry if each in in_source]


def _called_name(node: ast.Call) -> str:
    """Return the last part of the name of the function that is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    if isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def _literal(text: str) -> Any:
    """Return the value of a literal; anything else is text."""
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return text
