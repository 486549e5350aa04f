"""Environments by name: registered ids, and classes and functions in modules and files, each with options."""

import ast
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

from esbas.errors import EsbasError, InvalidValueError, UnknownNameError, unknown
from esbas.registry import import_object, import_place, split_path
from esbas.training import atari_defaults
from esbas.training.options import error_context, join_options, split_options

Task = gymnasium.Env[Any, Any]
_ELSEWHERE = "name a registered one such as 'CartPole-v1', or one that a package registers as 'package:Name-v0'"
_INSTALL = "install the package that registers it, and name the package as in "
_PACKAGES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "MinAtar/": "minatar"}
"""Packages of well-known tasks, by the beginning of their ids."""
_OF_MAKE = "max_episode_steps", "disable_env_checker"  # options of gymnasium.make itself
_SINGLE = "give one environment; --seeds 0 1 2 --jobs 3 trains several at the same time"


def create(text: str, render_mode: str | None, *, changed: Mapping[str, Any] | None = None) -> Task:
    """Create the environment that the text names; see `esbas.training.make_task`. `changed` replaces some of its options."""
    name, options = split_options(text)
    place, own = split_path(name)
    task: Task | None = None
    mode = {} if render_mode is None else {"render_mode": render_mode}  # not every environment has this argument
    given = options | dict(changed or {}) | mode
    if ":" in own:  # gymnasium.make would import what is before it
        raise InvalidValueError(f"an environment must be named with one colon at most, but got {name!r}: remove the others")
    if "render_mode" in options:
        raise InvalidValueError(f"environment {text!r} must not be given 'render_mode', which esbas sets itself: remove it")
    atari_defaults.register(name)
    with error_context(f"environment {text!r}", rule="must start", remedy="fix the environment, or choose another"):
        module = _import(place, own) if place else None
        if module is not None and not own:
            own = _only_task(module, place)
        maker = None if module is None or own in gymnasium.registry else _attribute(module, own)
        task = _made(own, given, text) if maker is None else call(maker, given, text)
    if task is None:
        missing = _elsewhere(own)
        if missing is not None:
            raise missing
        names = [*reversed(gymnasium.registry), *(() if module is None else (each.__name__ for each in _classes(module)))]
        raise unknown("environment", text, [f"{place}:{known}" if place else known for known in names], _ELSEWHERE)
    if maker is None and task.spec is not None and task.spec.id != own:
        known = f"{place}:{task.spec.id}" if place else task.spec.id
        raise InvalidValueError(f"an environment must be named with its version, but got {name!r}: name {known!r}")
    modes = task.metadata.get("render_modes") or []
    if render_mode is not None and render_mode not in modes:
        raise unknown(f"render mode of environment {text!r}", render_mode, modes)
    return task


def call(maker: Any, options: Mapping[str, Any], name: str) -> Task:
    """The environment that a class or function creates."""
    if not callable(maker):
        raise InvalidValueError(f"a task must be a class or function that creates an environment, but {name!r} is {maker!r}")
    _check_options(maker, options, also=_OF_MAKE[:1])
    own = _parameters(maker)
    limit = options.get("max_episode_steps") if "max_episode_steps" not in own else None
    given = options if limit is None else {key: value for key, value in options.items() if key != "max_episode_steps"}
    task = checked_task(maker(**given), name)
    return task if limit is None else gymnasium.wrappers.TimeLimit(task, limit)


def checked_task(task: Any, name: str) -> Task:
    """The same object, if it is a Gymnasium environment, and not several of them."""
    if isinstance(task, gymnasium.vector.VectorEnv):
        message = f"a task must be one environment, but {name!r} is a vector of {task.num_envs}"
        raise InvalidValueError(f"{message}: {_SINGLE}")
    if not isinstance(task, gymnasium.Env):
        message = f"a task must be a gymnasium.Env, but {name!r} is {type(task).__name__!r}"
        raise InvalidValueError(f"{message}: name a subclass of gymnasium.Env, or a function that returns an environment")
    return task


def complete_name(env_id: str, settings: Sequence[str]) -> str:
    """The name of a task with all its options, from its text and from settings such as "is_slippery=False".

    >>> complete_name("FrozenLake-v1(is_slippery=False)", ["map_name=8x8"])
    "FrozenLake-v1(is_slippery=False, map_name='8x8')"
    """
    name, options = split_options(env_id)
    for text in settings:
        key, equals, value = text.partition("=")
        if not (equals and key.isidentifier()):
            raise InvalidValueError(f"--env-kwargs must have the form name=value, but got {text!r}: write is_slippery=False")
        if key in options:
            raise InvalidValueError(f"an option of a task must be given once, but {key!r} is given twice: remove one")
        options[key] = _literal(value)
    complete = join_options(name, options)
    split_options(complete)  # raises an error for values that text cannot express, such as infinity
    return complete


def name_of(env: Any) -> str:
    """A name for an environment, or for a function that creates one; `module:name` if it can be imported under that name."""
    if isinstance(env, gymnasium.Env):
        return env.spec.id if env.spec is not None else type(env.unwrapped).__name__
    module, name = getattr(env, "__module__", None), getattr(env, "__qualname__", "")
    return f"{module}:{name}" if is_importable(env) else name.rpartition(".")[2].strip("<>") or type(env).__name__


def is_importable(maker: Any) -> bool:
    """Whether another process finds this class or function under its name."""
    module, name = getattr(maker, "__module__", None), getattr(maker, "__qualname__", "<")
    with suppress(EsbasError):
        local = module in (None, "__main__", "__mp_main__", "builtins") or "<" in name
        return not local and import_object(f"{module}:{name}") is maker
    return False


def _made(own: str, options: Mapping[str, Any], text: str) -> Task | None:
    """The environment with a registered id; None if there is none."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date")  # old versions are allowed
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")  # an error of `create`
        warnings.filterwarnings("ignore", message=".*Using the latest versioned")  # an error of `create`
        try:
            spec = gymnasium.registry.get(own)
            if options and spec is not None and spec.entry_point is not None:
                entry = spec.entry_point
                plain = {key: value for key, value in options.items() if key not in _OF_MAKE}
                _check_options(load_env_creator(entry) if isinstance(entry, str) else entry, plain, also=_OF_MAKE)
            made: Any = gymnasium.make(own, **options)
            return checked_task(made, text)
        except gymnasium.error.NamespaceNotFound:
            raise _elsewhere(own) or unknown("namespace", own.partition("/")[0], [], _INSTALL + repr(f"package:{own}")) from None
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
            return None


def _import(place: str, own: str) -> ModuleType:
    try:
        return import_place(place)
    except UnknownNameError as error:
        raise _elsewhere(own) or error from None


def _elsewhere(own: str) -> UnknownNameError | None:
    """The error for a well-known task whose package has not been imported."""
    start = next((each for each in _PACKAGES if own.startswith(each)), None)
    if start is None or any(known.startswith(start) for known in gymnasium.registry):
        return None
    package = _PACKAGES[start]
    remedy = f"pip install {package}, and name it {package.replace('-', '_')}:{own}"
    return UnknownNameError(f"the task {own!r} is in the package {package}: {remedy}")


def _check_options(maker: Callable[..., Any], options: Mapping[str, Any], *, also: Sequence[str] = ()) -> None:
    """Raise an error for an option that the class or function does not have."""
    parameters = _parameters(maker)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return
    for key in options:
        if key not in (*parameters, *also, "render_mode"):
            known = [each for each in (*parameters, *also) if each not in ("self", "render_mode")]
            raise unknown("option of this task", key, known, "" if known else "it has no options")


def _parameters(maker: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(maker).parameters
    except (TypeError, ValueError):  # a signature that Python cannot read: anything may be an option
        return {"options": inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)}


def _attribute(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _only_task(module: ModuleType, place: str) -> str:
    """The name of the only task in a module."""
    ids = _registered(module)
    entries: list[Any] = [gymnasium.registry[each].entry_point for each in ids]
    classes = [each for each in _classes(module) if each not in entries and f"{module.__name__}:{each.__name__}" not in entries]
    names = [*ids, *(each.__name__ for each in classes)]
    if len(names) != 1:
        listed = ", ".join(f"{place}:{each}" for each in names)
        message = f"{place!r} must have exactly one task to be named like this, but has {len(names) or 'none'}"
        raise InvalidValueError(
            f"{message}: " + (f"name one of {listed}" if names else "define a subclass of gymnasium.Env in it")
        )
    return names[0]


def _classes(module: ModuleType) -> list[type[Any]]:
    """The environments that the module defines."""
    found = [each for each in vars(module).values() if isinstance(each, type) and each.__module__ == module.__name__]
    return [each for each in found if issubclass(each, gymnasium.Env) and not issubclass(each, gymnasium.Wrapper)]


def _registered(module: ModuleType) -> list[str]:
    """The ids that the module registers, as its source says."""
    source = Path(module.__file__ or "").read_text("utf-8", errors="replace")
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    registering = [node for node in calls if getattr(node.func, "attr", getattr(node.func, "id", "")) == "register"]
    values = [*(node.args[0] for node in registering if node.args)]
    values += [word.value for node in registering for word in node.keywords if word.arg == "id"]
    named = [value.value for value in values if isinstance(value, ast.Constant)]
    return [each for each in gymnasium.registry if each in named]


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
        return text
