"""Atari games of ale-py, and their usual preprocessing as a stack of Gymnasium's own wrappers."""

import sys
from typing import Any

import gymnasium
import gymnasium.wrappers

from esbas.errors import InvalidValueError, MissingExtraError

EMULATED_FPS = 60
"""Frames of the emulator per second."""


def register() -> None:
    """Register the games with Gymnasium, and keep the emulator from printing its version."""
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError(
            "Atari games need ale-py, but it is not installed: pip install 'esbas[atari]'."
        ) from error
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)


def is_game(env: Any) -> bool:
    """Return whether this is a game of ale-py, with or without wrappers."""
    module: Any = sys.modules.get("ale_py")  # if it was never imported, no environment is a game
    return module is not None and isinstance(env.unwrapped, module.AtariEnv)


def shows_screen(env: Any) -> bool:
    """Return whether this is a game whose observations are the screen in color, as it is."""
    game = env.unwrapped
    return (
        is_game(env)
        and game._obs_type == "rgb"
        and not game.sound_obs
        and env.observation_space == game.observation_space
    )


def preprocess(
    env: gymnasium.Env[Any, Any],
    *,
    noop_max: int = 30,
    frame_skip: int = 4,
    screen_size: int = 84,
    terminal_on_life_loss: bool = False,
    stack_size: int = 4,
) -> gymnasium.Env[Any, Any]:
    """Put Gymnasium's AtariPreprocessing and FrameStackObservation around a game.

    Observations are the last `stack_size` gray images, (stack_size, screen_size, screen_size)
    bytes. Rewards are those of the game. An episode depends on the actions and on `reset(seed=...)`
    alone. OpenCV then uses one thread in this process.

    Args:
        env: a game that does not repeat actions itself, as made by
            `gymnasium.make("ALE/Breakout-v5", frameskip=1)`.
        noop_max: an episode starts with 1 to `noop_max` frames without an action; 0: with none.
        frame_skip: the number of frames for which an action is repeated. The image is the maximum
            of the last two.
        screen_size: width and height of the images.
        terminal_on_life_loss: whether an episode is one life; otherwise, it is one game. The next
            episode is a new game anyway.
        stack_size: the number of images in an observation.
    """
    check_game(env, frame_skip=frame_skip)
    use_one_thread()
    preprocessed = gymnasium.wrappers.AtariPreprocessing(
        env,
        noop_max=noop_max,
        frame_skip=frame_skip,
        screen_size=screen_size,
        terminal_on_life_loss=terminal_on_life_loss,
    )
    return gymnasium.wrappers.FrameStackObservation(preprocessed, stack_size)


def check_game(env: Any, *, frame_skip: int) -> None:
    """Raise an error if this is no game, or if both it and its preprocessing repeat actions."""
    if not hasattr(env.unwrapped, "ale"):
        raise InvalidValueError(
            f"AtariPreprocessing needs a game of ale-py, but the environment is {env.unwrapped}: "
            "name one such as ALE/Breakout-v5, or leave it out."
        )
    repeats = getattr(env.unwrapped, "_frameskip", 1)
    if frame_skip > 1 and repeats != 1:
        raise InvalidValueError(
            "Either the game or its preprocessing must repeat actions, but the game has "
            f"frameskip={repeats} and AtariPreprocessing has frame_skip={frame_skip}: "
            "give the game frameskip=1 (--env-kwargs frameskip=1)."
        )


def use_one_thread() -> None:
    """Keep OpenCV from starting threads: images are small, and trainings share the cores."""
    try:
        import cv2
    except ImportError as error:
        raise MissingExtraError(
            "Atari preprocessing needs OpenCV, but it is not installed: pip install 'esbas[atari]'."
        ) from error
    cv2.setNumThreads(1)


def repeats_of(env: Any) -> int | None:
    """Return for how many frames a game with its wrappers repeats an action.

    None for other environments, and if the number is random.
    """
    if not is_game(env):
        return None
    repeats = env.unwrapped._frameskip
    layer = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.AtariPreprocessing) and isinstance(repeats, int):
            repeats *= layer.frame_skip
        layer = layer.env
    return repeats if isinstance(repeats, int) else None
