"""What Atari games get by default: preprocessing, and a replay memory that fits it."""

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium

from esbas._internal.registry import split_path
from esbas.envs import atari
from esbas.errors import MissingExtraError
from esbas.specs.options import join_options, read_call, split_options

NAMES = "AtariPreprocessing", "FrameStackObservation", "TimeLimit"
"""All wrappers that a game may get by default."""
_PACKAGE = "ale_py"
_NAMESPACE = "ALE/"
_VERSIONS = ("-v0", "-v4", "-v5")
_REPEATS = 4
_NO_OPS = 30
_SIZE = 84
_STACK = 4


def register(name: str) -> None:
    """Register the games of ale-py if this could be the id of one, with or without the package."""
    module, env_id = split_path(name)
    is_named = env_id.startswith(_NAMESPACE) or module == _PACKAGE
    is_possible = is_named or (not module and env_id.endswith(_VERSIONS))
    if env_id in gymnasium.registry or not is_possible:
        return
    try:
        atari.register()
    except MissingExtraError as error:
        if is_named:
            problem = f"The environment {env_id!r} needs ale-py, but it is not installed"
            raise MissingExtraError(f"{problem}: pip install 'esbas[atari]'.") from error


def options_of(text: str) -> tuple[dict[str, Any], list[str]]:
    """Return options to change in a game that gets preprocessing, and its outermost wrappers.

    Preprocessing repeats actions, so the game does not. `max_episode_steps` counts the steps of
    learners. Other environments need no changes and no wrappers.
    """
    name, given = split_options(text)
    register(name)
    spec = gymnasium.registry.get(split_path(name)[1])
    if spec is None or not str(spec.entry_point).startswith(f"{_PACKAGE}."):
        return {}, []
    if given.get("obs_type", "rgb") != "rgb" or given.get("sound_obs"):
        return {}, []
    changed: dict[str, Any] = {}
    # A random number of repeats belongs to the environment.
    repeats_are_fixed = isinstance(spec.kwargs.get("frameskip"), int)
    if repeats_are_fixed and "frameskip" not in given:
        changed["frameskip"] = 1
    outermost: list[str] = []
    limit = given.get("max_episode_steps")
    if limit is not None:
        changed["max_episode_steps"] = None
        outermost.append(join_options("TimeLimit", {"max_episode_steps": limit}))
    return changed, outermost


def wrappers_of(env: Any) -> list[str]:
    """Return the wrappers that an environment gets if none are given, as text.

    A game that shows its screen gets preprocessing. Other environments get no wrappers.
    """
    if not atari.shows_screen(env):
        return []
    game = env.unwrapped
    options = {
        # Continuous actions have no number for doing nothing.
        "noop_max": 0 if game.continuous else _NO_OPS,
        "frame_skip": _REPEATS if game._frameskip == 1 else 1,
        "screen_size": _SIZE,
        "terminal_on_life_loss": False,
    }
    return [
        join_options("AtariPreprocessing", options),
        join_options("FrameStackObservation", {"stack_size": _STACK}),
    ]


def replay_of(env: Any) -> dict[str, Any]:
    """Return options of the replay memory for a game whose observations are stacks of images."""
    stack = stack_of(env)
    if not atari.is_game(env) or stack == 1:
        return {}
    return {"stack": stack, "clip_rewards": True}


def stack_of(env: Any) -> int:
    """Return the number of frames in an observation; 1 if frames are not stacked.

    They are stacked if this is what the last wrapper does that changes observations.
    """
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.FrameStackObservation):
            shape = layer.observation_space.shape
            return int(shape[0]) if shape else 1
        if isinstance(layer, gymnasium.ObservationWrapper):
            return 1
        layer = layer.env
    return 1


def note_of(env: Any, wrappers: Sequence[str], memory: Mapping[str, Any]) -> str | None:
    """Return a note about preprocessing that was added by default; None if none was added.

    Args:
        env: the environment with its wrappers.
        wrappers: those that were added.
        memory: the options of the replay memory.
    """
    if not wrappers or read_call(wrappers[0])[0] != NAMES[0]:
        return None
    options = read_call(wrappers[0])[1]
    parts = [f"gray images of {_SIZE} x {_SIZE}", f"the last {_STACK} as an observation"]
    repeats = atari.repeats_of(env)
    if repeats is not None and repeats > 1:
        parts.append(f"each action repeated {repeats} times")
    if options["noop_max"]:
        parts.append(f"up to {options['noop_max']} no-ops at the start")
    rewards = "not clipped"
    if memory.get("clip_rewards"):
        rewards = "clipped to [-1, 1] for learning, not in scores"
    words = "--env-kwargs frameskip=1 --wrappers AtariPreprocessing"
    if options["frame_skip"] == 1:  # the game repeats actions itself
        words = '--wrappers "AtariPreprocessing(frame_skip=1)"'
    about = f"Atari preprocessing: {', '.join(parts)}; rewards {rewards}."
    change = f'To change it, add {words} "{wrappers[1]}" with your options'
    return f"{about} {change}; --wrappers none removes it."
