"""What portfolios need of the spaces of a task: conversions of observations, and advice if something does not fit."""

import re
from typing import Any

import gymnasium
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, utils

from esbas import spaces
from esbas.envs.wrappers import number_of, parts_of

MOST_STATES = 10_000
"""Observations with discrete parts are numbered automatically up to this number of combinations."""
LARGEST_TABLE = 100_000
"""Values of actions that the tables of the default portfolio may have."""
_LONGEST_VECTOR = 1_000_000
_SMALLEST_IMAGE, _LARGE_IMAGE = 30, 100  # pixels per side
_FITS_ATARI = 36  # the smallest image that the networks of the paper take
_STACK = '"FrameStackObservation(stack_size=4)"'
_OPENCV = "pip install opencv-python-headless"


def is_array(space: Any) -> bool:
    """Whether the elements are numbers or arrays, which every learner can store."""
    return spaces.is_discrete(space) or getattr(space, "shape", None) is not None


def fits_a_table(observations: Any, actions: int) -> bool:
    """Whether the default portfolio uses tables."""
    n = number_of(observations)
    return n is not None and n * actions <= LARGEST_TABLE and (n <= MOST_STATES or _counts_from_0(observations))


def is_large_image(space: Any) -> bool:
    """Whether the default portfolio uses the networks for Atari games: images with several channels or frames."""
    shape: tuple[int, ...] = getattr(space, "shape", None) or ()
    sides = sorted(shape)[1:]  # the shortest axis is that of channels or frames
    return str(getattr(space, "dtype", "")) == "uint8" and len(shape) == 3 and min(sides) >= _FITS_ATARI


def conversion(space: Any, *, tabular: bool) -> str | None:
    """The wrapper that makes observations fit; None if they fit already, or no wrapper can make them fit.

    Args:
        space: of the observations.
        tabular: whether a learner with a table is in the portfolio.
    """
    n = number_of(space)
    if tabular and n is not None and n <= MOST_STATES and not _counts_from_0(space):
        return "DiscreteObservations"
    return "FlattenObservation" if not is_array(space) and _can_be_flattened(space) else None


def advice(space: Any) -> str:
    """What is wrong with observations that are no arrays, and which option helps."""
    if _can_be_flattened(space):
        return f"the observation space is {space}: add --wrappers FlattenObservation"
    own = "add a wrapper of your own, as --wrappers module:Class"
    if not isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        return f"the observation space is {space}: {own}"
    wrong = [f"{key!r} ({_cut(str(part))})" for key, part in parts_of(space) if not _can_be_flattened(part)]
    rest = [key for key, part in parts_of(space) if _can_be_flattened(part)]
    remedy = f'keep the others with --wrappers "FilterObservation(filter_keys={rest})"' if rest else own
    return f"the observations have parts that cannot be flattened, {', '.join(wrong)}: {remedy}"


def image_note(env: Any) -> str | None:
    """Advice for single frames: one does not show what moves, and large ones take more time and memory than they are worth."""
    space = env.observation_space
    shape: tuple[int, ...] = getattr(space, "shape", None) or ()
    frame = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3))
    if str(getattr(space, "dtype", "")) != "uint8" or not frame or min(shape[:2]) < _SMALLEST_IMAGE:
        return None
    large, colours = max(shape[:2]) > _LARGE_IMAGE, shape[2] if len(shape) == 3 else 0
    if large and hasattr(env.unwrapped, "ale"):
        skips = getattr(env.unwrapped, "_frameskip", None) != 1  # the task itself repeats actions
        words = ['"AtariPreprocessing(frame_skip=1)"' if skips else "AtariPreprocessing"]
    else:
        words = ["GrayscaleObservation"] if colours == 3 else []
        words += [f'"ReshapeObservation(shape=[{shape[0]}, {shape[1]}])"'] if colours == 1 else []
        words += ['"ResizeObservation(shape=[84, 84])"'] if large else []
    size, opencv = " x ".join(map(str, shape)), f" (they need OpenCV: {_OPENCV})" if large else ""
    return f"Observations are single images of {size}. To learn faster, add --wrappers {' '.join([*words, _STACK])}{opencv}."


def _counts_from_0(space: Any) -> bool:
    return spaces.is_discrete(space) and int(space.start) == 0


def _can_be_flattened(space: Any) -> bool:
    """Whether every part is a number or an array; texts, graphs and sequences have no fixed length."""
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        each = all(_can_be_flattened(part) for _, part in parts_of(space))
    else:
        each = isinstance(space, Box | Discrete | MultiBinary | MultiDiscrete)
    return each and utils.flatdim(space) <= _LONGEST_VECTOR


def _cut(text: str) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", text)  # addresses of objects
    return text if len(text) <= 80 else text[:80] + "..."
