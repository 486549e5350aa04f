"""Tasks by name: any registered Gymnasium environment, with wrappers."""

import warnings
from collections.abc import Sequence
from typing import Any

import gymnasium
import gymnasium.wrappers

from esbas.errors import InvalidValueError, unknown
from esbas.training.options import checked, read_call, telling

_ELSEWHERE = "name a registered one such as 'CartPole-v1', or one that a package registers as 'package:Name-v0'"
_STATISTICS = "obs_rms", "return_rms"  # of wrappers that normalise by what they have seen so far
_INSTALL = "install the package that registers it, and name it, too, as in "
_NO_TEXT, _NO_ARRAYS = "needs a function, which no text can tell", "would change the arrays that learners know"
_REFUSED = {
    "Autoreset": "would play on behind the end of an episode",
    "RecordVideo": "would film the training",
    "HumanRendering": "would show the training",
    **dict.fromkeys(("TransformObservation", "TransformAction", "TransformReward"), _NO_TEXT),
    **dict.fromkeys(("ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch"), _NO_ARRAYS),
}


def make_task(env_id: str, *, wrappers: Sequence[str] = (), render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """A Gymnasium environment inside wrappers.

    Args:
        env_id: registered, such as "CartPole-v1"; or "package:Name-v0": the package is imported first.
        wrappers: of `gymnasium.wrappers`, such as "TimeLimit(max_episode_steps=200)", the first one innermost.
        render_mode: "human", "rgb_array" or another that the environment has; None: it is not rendered.
    """
    task = _made(env_id, render_mode)
    for text in wrappers:
        task = _wrapped(task, text)
    layer: Any = task
    while isinstance(layer, gymnasium.Wrapper):
        if any(name in vars(layer) for name in _STATISTICS):
            told = f"a wrapper must treat all steps alike, but {type(layer).__name__} goes by statistics of the steps so far"
            raise InvalidValueError(f"{told}, so that stored steps lose their meaning: leave it out, or rescale by given numbers")
        layer = layer.env
    return task


def _made(env_id: str, render_mode: str | None) -> gymnasium.Env[Any, Any]:
    package, colon, name = env_id.rpartition(":")
    task: gymnasium.Env[Any, Any] | None
    given: dict[str, Any] = {} if render_mode is None else {"render_mode": render_mode}  # not every environment takes one
    failing = telling(f"environment {env_id!r}", rule="must start", remedy="mend it, or choose another")
    with failing, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*is out of date")  # an old version that is asked for is meant
        warnings.filterwarnings("ignore", message=".*not in the possible render_modes")  # told below
        warnings.filterwarnings("ignore", message=".*Using the latest versioned")  # told below
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
    names = [known for known in gymnasium.wrappers.__all__ if known[0].isupper() and known not in _REFUSED]
    if name in _REFUSED:
        raise InvalidValueError(f"a wrapper must fit any learner and any run, but {name} {_REFUSED[name]}: leave it out")
    if name not in names:
        raise unknown("wrapper", name, names, "choose one of gymnasium.wrappers")
    with telling(f"wrapper {text!r}", rule="must fit the task"):
        wrapper = getattr(gymnasium.wrappers, name)
        wrapped: gymnasium.Env[Any, Any] = wrapper(task, **checked(wrapper, given, kind=name, ours=("env",)))
    return wrapped
