"""What Atari games get if no wrappers are given: preprocessing, and a replay memory that fits it."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from esbas.envs import atari
from esbas.errors import MissingExtraError
from esbas.registry import split_path
from esbas.training.options import join_options, read_call, split_options

NAMES = "AtariPreprocessing", "FrameStackObservation", "TimeLimit"
"""All wrappers that a game may get by default."""
_PACKAGE, _NAMESPACE, _VERSIONS = "ale_py", "ALE/", ("-v0", "-v4", "-v5")
_REPEATS, _NO_OPS, _SIZE, _STACK = 4, 30, 84, 4


def register(name: str) -> None:
    """Register the games of ale-py if this could be the id of one, with or without the package."""
    place, own = split_path(name)
    named = own.startswith(_NAMESPACE) or place == _PACKAGE
    if own in gymnasium.registry or not (named or (not place and own.endswith(_VERSIONS))):
        return
    try:
        atari.register()
    except MissingExtraError as error:
        if named:
            message = f"the task {own!r} needs ale-py, but it is not installed"
            raise MissingExtraError(f"{message}: pip install 'esbas[atari]'") from error


def options_of(text: str) -> tuple[dict[str, Any], list[str]]:
    """How to make the named task if it is a game that gets preprocessing: options to change, and its outermost wrappers.

    Preprocessing repeats actions, so the game does not. `max_episode_steps` counts the steps of learners.
    """
    name, given = split_options(text)
    register(name)
    spec = gymnasium.registry.get(split_path(name)[1])
    game = spec is not None and str(spec.entry_point).startswith(f"{_PACKAGE}.")
    if spec is None or not game or given.get("obs_type", "rgb") != "rgb" or given.get("sound_obs"):
        return {}, []
    fixed = isinstance(spec.kwargs.get("frameskip"), int)  # a random number of repeats belongs to the task
    changed: dict[str, Any] = {"frameskip": 1} if fixed and "frameskip" not in given else {}
    limit = given.get("max_episode_steps")
    if limit is None:
        return changed, []
    return changed | {"max_episode_steps": None}, [join_options("TimeLimit", {"max_episode_steps": limit})]


def wrappers_of(task: Any) -> list[str]:
    """The wrappers that a task gets if none are given, as text: those of a game that shows its screen; otherwise none."""
    if not atari.shows_screen(task):
        return []
    game = task.unwrapped
    options = {
        "noop_max": 0 if game.continuous else _NO_OPS,  # continuous actions have no number for doing nothing
        "frame_skip": _REPEATS if game._frameskip == 1 else 1,
        "screen_size": _SIZE,
        "terminal_on_life_loss": False,
    }
    return [join_options("AtariPreprocessing", options), join_options("FrameStackObservation", {"stack_size": _STACK})]


def replay_of(task: Any) -> dict[str, Any]:
    """Options of the replay memory for a game whose observations are stacks of images; nothing for other tasks."""
    stack = stack_of(task)
    return {"stack": stack, "clip_rewards": True} if atari.is_game(task) and stack > 1 else {}


def stack_of(task: Any) -> int:
    """The number of frames in an observation, if the last wrapper that changes observations stacks them; otherwise 1."""
    layer = task
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.FrameStackObservation):
            return int(layer.observation_space.shape[0]) if layer.observation_space.shape else 1
        if isinstance(layer, gymnasium.ObservationWrapper):
            break
        layer = layer.env
    return 1


def note_of(task: Any, wrappers: Sequence[str], memory: Mapping[str, Any]) -> str | None:
    """One line about preprocessing that was added by default, and how to change it; None if there is none.

    Args:
        task: with its wrappers.
        wrappers: those that were added.
        memory: the options of the replay memory.
    """
    if not wrappers or read_call(wrappers[0])[0] != NAMES[0]:
        return None
    options = read_call(wrappers[0])[1]
    repeats, no_ops = atari.repeats_of(task), options["noop_max"]
    parts = [f"grey images of {_SIZE} x {_SIZE}", f"the last {_STACK} as an observation"]
    parts += [f"each action repeated {repeats} times"] if repeats is not None and repeats > 1 else []
    parts += [f"up to {no_ops} no-ops at the start"] if no_ops else []
    clipped = "clipped to [-1, 1] for learning, not in scores" if memory.get("clip_rewards") else "not clipped"
    whole = "--env-kwargs frameskip=1 --wrappers AtariPreprocessing", '--wrappers "AtariPreprocessing(frame_skip=1)"'
    change = f'{whole[options["frame_skip"] == 1]} "{wrappers[1]}" with your options'
    return f"Atari preprocessing: {', '.join(parts)}; rewards {clipped}. To change it, add {change}; --wrappers none removes it."
