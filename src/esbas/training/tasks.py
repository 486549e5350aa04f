"""Tasks by name: any registered Gymnasium environment, with wrappers."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import gymnasium.wrappers

from esbas.errors import InvalidValueError, unknown
from esbas.registry import import_object
from esbas.training.options import checked, error_context, read_call

_ELSEWHERE = "name a registered one such as 'CartPole-v1', or one that a package registers as 'package:Name-v0'"
_STATISTICS = "obs_rms", "return_rms"  # of wrappers that normalise by running statistics
_INSTALL = "install the package that registers it, and name the package as in "
_NO_TEXT, _NO_ARRAYS = "needs a function, which text cannot express", "would change the type of arrays that learners receive"
_REFUSED = {
    "Autoreset": "would continue after the end of an episode",
    "RecordVideo": "would record the training",
    "HumanRendering": "would show the training",
    **dict.fromkeys(("TransformObservation", "TransformAction", "TransformReward"), _NO_TEXT),
    **dict.fromkeys(("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"), _NO_ARRAYS),
}


def make_task(env_id: str, *, wrappers: Sequence[str] = (), render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Create a Gymnasium environment with wrappers.

    Args:
        env_id: a registered id such as "CartPole-v1", or "package:Name-v0" to import the package first.
        wrappers: the innermost first: names of `gymnasium.wrappers`, or `module:Class`, with options as in
            "TimeLimit(max_episode_steps=200)".
        render_mode: "human", "rgb_array" or another mode of the environment; None: no rendering.
    """
    task = _make(env_id, render_mode)
    for text in wrappers:
        task = _wrapped(task, text)
    layer: Any = task
    while isinstance(layer, gymnasium.Wrapper):
        if any(name in vars(layer) for name in _STATISTICS):
            message = f"a wrapper must treat all steps alike, but {type(layer).__name__} uses running statistics"
            raise InvalidValueError(f"{message}, which makes stored steps inconsistent: remove it, or rescale by constants")
        layer = layer.env
    return task


def _make(env_id: str, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    package, colon, name = env_id.rpartition(":")
    task: gymnasium.Env[Any, Any] | None
    given: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}  # not every environment has this argument
    failing = error_context(f"environment {env_id!r}", rule="must start", remedy="fix the environment, or choose another")
    with failing, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date")  # old versions are allowed
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")  # an error below
        warnings.filterwarnings("ignore", message=".*Using the latest versioned")  # an error below
        try:
            task = gymnasium.make(env_id, **given)
        except gymnasium.error.NamespaceNotFound:
            raise unknown("namespace", name.partition("/")[0], [], _INSTALL + repr(f"package:{name}")) from None
        except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
            task = None
    if task is None:
        raise unknown("environment", env_id, [package + colon + known for known in gymnasium.registry], _ELSEWHERE)
    if task.spec is not None and task.spec.id != name:
        remedy = f"name {package + colon + task.spec.id!r}"
        raise InvalidValueError(f"an environment must be named with its version, but got {env_id!r}: {remedy}")
    modes = task.metadata.get("render_modes") or []
    if render_mode is not None and render_mode not in modes:
        raise unknown(f"render mode of environment {env_id!r}", render_mode, modes)
    return task


def _wrapped(task: gymnasium.Env[Any, Any], text: str) -> gymnasium.Env[Any, Any]:
    name, given = read_call(text)
    if ":" in name:
        return _apply(import_object(name), name, given, task, text)
    names = [known for known in gymnasium.wrappers.__all__ if known[0].isupper() and known not in _REFUSED]
    if name in _REFUSED:
        raise InvalidValueError(f"a wrapper must fit any learner and any run, but {name} {_REFUSED[name]}: remove it")
    if name not in names:
        raise unknown("wrapper", name, names, "choose one of gymnasium.wrappers")
    return _apply(getattr(gymnasium.wrappers, name), name, given, task, text)


def _apply(
    wrapper: Any, name: str, given: Mapping[str, Any], task: gymnasium.Env[Any, Any], text: str
) -> gymnasium.Env[Any, Any]:
    with error_context(f"wrapper {text!r}", rule="must fit the task"):
        wrapped: gymnasium.Env[Any, Any] = wrapper(task, **checked(wrapper, given, kind=name, reserved=("env",)))
    return wrapped


def wrap(task: gymnasium.Env[Any, Any], text: str) -> gymnasium.Env[Any, Any]:
    """Put one wrapper around an environment; `text` is as in `make_task`."""
    return _wrapped(task, text)
