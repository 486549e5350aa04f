"""Gymnasium environments, by name or as they are, with wrappers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import gymnasium.wrappers

from esbas._internal import values
from esbas._internal.registry import import_object
from esbas._internal.schema import short
from esbas.envs import atari
from esbas.envs.normalizing import NormalizedObservations
from esbas.envs.wrappers import DiscreteActions, DiscreteObservations
from esbas.errors import InvalidValueError, unknown
from esbas.specs import atari_defaults
from esbas.specs.env_names import call, checked_env, create, name_of, starting
from esbas.specs.options import checked, error_context, read_call
from esbas.specs.sources import importable_name, label_of

NO_WRAPPERS = "none"
"""The only wrapper, if an environment shall not get those that it gets by default either."""
_OWN = {
    "DiscreteActions": DiscreteActions,
    "DiscreteObservations": DiscreteObservations,
    "NormalizedObservations": NormalizedObservations,
}
_STATISTICS = "obs_rms", "return_rms"  # of wrappers that normalize by running statistics
_NO_TEXT = "needs a function, which text cannot express"
_NO_ARRAYS = "would change the type of arrays that learners receive"
_REFUSED = {
    "Autoreset": "would continue after the end of an episode",
    "RecordVideo": "would record the training",
    "HumanRendering": "would show the training",
    **dict.fromkeys(("TransformObservation", "TransformAction", "TransformReward"), _NO_TEXT),
    **dict.fromkeys(("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"), _NO_ARRAYS),
}


def make_env(
    env: str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]],
    *,
    wrappers: Sequence[Any] = (),
    render_mode: str | None = None,
) -> gymnasium.Env[Any, Any]:
    """Create a Gymnasium environment with wrappers.

    Args:
        env: a registered id such as "CartPole-v1", with options as in
            "FrozenLake-v1(is_slippery=False)"; "package:Name-v0" to import the package first;
            "module:name" or "file.py:name" for a class of environments or a function that creates
            one; "file.py" if it is the only one in the file. In Python also such a class or
            function itself, or an environment, which is then used as it is and never closed.
        wrappers: the innermost first: names of `gymnasium.wrappers` and of the wrappers in
            `esbas.envs`, or `module:Class`, with options as in "TimeLimit(max_episode_steps=200)";
            in Python also classes and functions. By default, Atari games with color images get
            preprocessing (docs/environments.md); `["none"]`: no wrappers at all.
        render_mode: "human", "rgb_array" or another mode of the environment; None: no rendering.
    """
    return make_with_wrappers(env, wrappers=wrappers, render_mode=render_mode)[0]


def make_with_wrappers(
    env: str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]],
    *,
    wrappers: Sequence[Any] = (),
    render_mode: str | None = None,
) -> tuple[gymnasium.Env[Any, Any], tuple[Any, ...]]:
    """Create an environment, as `make_env`; return it with its wrappers, also those by default."""
    chosen = given_wrappers(wrappers)
    changed: dict[str, Any] = {}
    outermost: list[str] = []
    if isinstance(env, str):
        if not chosen:
            changed, outermost = atari_defaults.options_of(env)
        made = create(env, render_mode, changed=changed)
    else:
        made = _given(env, render_mode)
    if not chosen:
        chosen = (*atari_defaults.wrappers_of(made), *outermost)
    for wrapper in chosen:
        if wrapper != NO_WRAPPERS:
            made = wrap(made, wrapper)
    _check_statistics(made)
    return made, chosen


def given_wrappers(given: Any) -> tuple[Any, ...]:
    """Return wrappers as text where they have a name, and as they are otherwise.

    Args:
        given: text, a class, a function from an environment to an environment, or a list of these.
    """
    is_one = isinstance(given, str) or callable(given)
    wrappers = (given,) if is_one else values.items("wrappers", given)
    found = tuple(_named_wrapper(each) for each in wrappers)
    if NO_WRAPPERS in found and len(found) > 1:
        raise InvalidValueError(
            f"The wrapper {NO_WRAPPERS!r} must be the only one: remove it, or the others."
        )
    return found


def _named_wrapper(given: Any) -> Any:
    if isinstance(given, str):
        return given
    if not callable(given):
        what = "text, classes, or functions from an environment to an environment"
        raise InvalidValueError(f"`wrappers` must be {what}, but got {short(given)}.")
    own_name = getattr(given, "__name__", "")
    if own_name in _OWN and _OWN[own_name] is given:
        return own_name
    if own_name in gymnasium.wrappers.__all__ and getattr(gymnasium.wrappers, own_name) is given:
        return own_name
    return importable_name(given) or given


def _check_statistics(env: gymnasium.Env[Any, Any]) -> None:
    """Raise an error if a wrapper normalizes by running statistics.

    Such a wrapper would make stored steps inconsistent with later ones.
    """
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if any(name in vars(layer) for name in _STATISTICS):
            problem = f"The wrapper {type(layer).__name__} uses running statistics"
            reason = "which makes stored steps inconsistent"
            remedy = "remove it; --normalize-observations scales by constants"
            raise InvalidValueError(f"{problem}, {reason}: {remedy}.")
        layer = layer.env


class _KeptOpen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that belongs to the caller, who closes it."""

    def close(self) -> None:
        pass


def _given(env: Any, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    """Return the environment for an environment object, or for a function that creates one."""
    name = name_of(env)
    if isinstance(env, gymnasium.vector.VectorEnv | gymnasium.Env):
        own = checked_env(env, name)
        if render_mode not in (None, own.render_mode):
            problem = f"The environment {name!r} was not created with render_mode={render_mode!r}"
            remedy = "create it so, or give a function that creates it"
            raise InvalidValueError(f"{problem}: {remedy}.")
        return _KeptOpen(own)
    options = {} if render_mode is None else {"render_mode": render_mode}
    with starting(name):
        return call(env, options, name)


def wrap(env: gymnasium.Env[Any, Any], wrapper: Any) -> gymnasium.Env[Any, Any]:
    """Put one wrapper around an environment; `wrapper` is as in `make_env`."""
    if isinstance(wrapper, str):
        name, given = read_call(wrapper)
        found = _find_wrapper(name)
        with error_context(f"Wrapper {wrapper!r}", rule="must fit the environment"):
            return _apply(found, name, given, env)
    label = label_of(wrapper)
    with error_context(f"Wrapper {label!r}", rule="must fit the environment"):
        return checked_env(wrapper(env), label)


def _find_wrapper(name: str) -> Any:
    """Return the wrapper with this name."""
    if ":" in name:
        return import_object(name)
    if name in _REFUSED:
        problem = f"The wrapper {name} cannot be used, because it {_REFUSED[name]}"
        raise InvalidValueError(f"{problem}: remove it.")
    classes = [each for each in gymnasium.wrappers.__all__ if each[0].isupper()]
    known = [*_OWN, *(each for each in classes if each not in _REFUSED)]
    if name not in known:
        remedy = f"choose one of gymnasium.wrappers, {' or '.join(_OWN)}"
        raise unknown("wrapper", name, known, remedy)
    return _OWN.get(name) or getattr(gymnasium.wrappers, name)


def _apply(
    wrapper: Any, name: str, given: Mapping[str, Any], env: gymnasium.Env[Any, Any]
) -> gymnasium.Env[Any, Any]:
    options = checked(wrapper, given, kind=name, reserved=("env",))
    if wrapper is gymnasium.wrappers.AtariPreprocessing:
        atari.use_one_thread()
        atari.check_game(env, frame_skip=options.get("frame_skip", 4))
    wrapped: gymnasium.Env[Any, Any] = wrapper(env, **options)
    return wrapped
