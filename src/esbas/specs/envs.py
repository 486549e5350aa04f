"""Tasks: Gymnasium environments by name or as they are, with wrappers."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import gymnasium.wrappers

from esbas.envs import atari
from esbas.envs.wrappers import DiscreteActions, DiscreteObservations
from esbas.errors import InvalidValueError, require, unknown
from esbas.registry import import_object
from esbas.training import atari_defaults
from esbas.training.options import checked, error_context, read_call
from esbas.training.task_names import call, checked_task, create, name_of

_OWN = {"DiscreteActions": DiscreteActions, "DiscreteObservations": DiscreteObservations}
NO_WRAPPERS = "none"
"""Given as the only wrapper, it also keeps those away that a task gets by default."""
_STATISTICS = "obs_rms", "return_rms"  # of wrappers that normalise by running statistics
_NO_TEXT, _NO_ARRAYS = "needs a function, which text cannot express", "would change the type of arrays that learners receive"
_REFUSED = {
    "Autoreset": "would continue after the end of an episode",
    "RecordVideo": "would record the training",
    "HumanRendering": "would show the training",
    **dict.fromkeys(("TransformObservation", "TransformAction", "TransformReward"), _NO_TEXT),
    **dict.fromkeys(("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"), _NO_ARRAYS),
}


def make_task(
    env: str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]],
    *,
    wrappers: Sequence[str] = (),
    render_mode: str | None = None,
) -> gymnasium.Env[Any, Any]:
    """Create a Gymnasium environment with wrappers.

    Args:
        env: a registered id such as "CartPole-v1", with options as in "FrozenLake-v1(is_slippery=False)"; "package:Name-v0" to
            import the package first; "module:name" or "file.py:name" for a class of environments or a function that creates one;
            "file.py" if it is the only one in the file. In Python also such a class or function itself, or an environment, which
            is then used in place and never closed.
        wrappers: the innermost first: names of `gymnasium.wrappers` and of the wrappers in `esbas.envs`, or `module:Class`, with
            options as in "TimeLimit(max_episode_steps=200)". By default, Atari games with colour images get preprocessing
            (docs/tasks.md); `["none"]`: no wrappers at all.
        render_mode: "human", "rgb_array" or another mode of the environment; None: no rendering.
    """
    return make_with_wrappers(env, wrappers=wrappers, render_mode=render_mode)[0]


def make_with_wrappers(
    env: str | gymnasium.Env[Any, Any] | Callable[..., gymnasium.Env[Any, Any]],
    *,
    wrappers: Sequence[str] = (),
    render_mode: str | None = None,
) -> tuple[gymnasium.Env[Any, Any], tuple[str, ...]]:
    """As `make_task`; returns the task and all of its wrappers as text."""
    alone = NO_WRAPPERS not in wrappers or len(wrappers) == 1
    require(alone, f"{NO_WRAPPERS!r} is the only wrapper", "remove it, or the others", wrappers=tuple(wrappers))
    changed, outermost = atari_defaults.options_of(env) if isinstance(env, str) and not wrappers else ({}, [])
    task = create(env, render_mode, changed=changed) if isinstance(env, str) else _given(env, render_mode)
    texts = tuple(wrappers) or (*atari_defaults.wrappers_of(task), *outermost)
    for text in texts:
        task = task if text == NO_WRAPPERS else _wrapped(task, text)
    _check_statistics(task)
    return task, texts


def _check_statistics(task: gymnasium.Env[Any, Any]) -> None:
    layer: Any = task
    while isinstance(layer, gymnasium.Wrapper):
        if any(name in vars(layer) for name in _STATISTICS):
            message = f"a wrapper must treat all steps alike, but {type(layer).__name__} uses running statistics"
            raise InvalidValueError(f"{message}, which makes stored steps inconsistent: remove it, or rescale by constants")
        layer = layer.env


class _KeptOpen(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment that belongs to the caller, who closes it."""

    def close(self) -> None:
        pass


def _given(env: Any, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    """The task for an environment, or for a function that creates one."""
    name = name_of(env)
    if isinstance(env, gymnasium.vector.VectorEnv | gymnasium.Env):
        task = checked_task(env, name)
        if render_mode not in (None, task.render_mode):
            message = f"the environment {name!r} must have been created with render_mode={render_mode!r}, but was not"
            raise InvalidValueError(f"{message}: create it so, or give a function that creates it")
        return _KeptOpen(task)
    with error_context(f"environment {name!r}", rule="must start", remedy="fix the environment, or choose another"):
        return call(env, {} if render_mode is None else {"render_mode": render_mode}, name)


def _wrapped(task: gymnasium.Env[Any, Any], text: str) -> gymnasium.Env[Any, Any]:
    name, given = read_call(text)
    if ":" in name:
        return _apply(import_object(name), name, given, task, text)
    names = [*_OWN, *(known for known in gymnasium.wrappers.__all__ if known[0].isupper() and known not in _REFUSED)]
    if name in _REFUSED:
        raise InvalidValueError(f"a wrapper must fit any learner and any run, but {name} {_REFUSED[name]}: remove it")
    if name not in names:
        raise unknown("wrapper", name, names, f"choose one of gymnasium.wrappers, {' or '.join(_OWN)}")
    return _apply(_OWN.get(name) or getattr(gymnasium.wrappers, name), name, given, task, text)


def _apply(
    wrapper: Any, name: str, given: Mapping[str, Any], task: gymnasium.Env[Any, Any], text: str
) -> gymnasium.Env[Any, Any]:
    with error_context(f"wrapper {text!r}", rule="must fit the task"):
        options = checked(wrapper, given, kind=name, reserved=("env",))
        if wrapper is gymnasium.wrappers.AtariPreprocessing:
            atari.use_one_thread()
            atari.check_game(task, frame_skip=options.get("frame_skip", 4))
        wrapped: gymnasium.Env[Any, Any] = wrapper(task, **options)
    return wrapped


def wrap(task: gymnasium.Env[Any, Any], text: str) -> gymnasium.Env[Any, Any]:
    """Put one wrapper around an environment; `text` is as in `make_task`."""
    return _wrapped(task, text)
