"""Spaces of environments in portfolios: conversions, and advice where none fits."""

import re
from collections.abc import Sequence
from typing import Any

import gymnasium
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete, utils

from esbas._internal import spaces
from esbas.envs.wrappers import MOST_ACTIONS, number_of, parts_of
from esbas.specs.options import join_options, read_call

MOST_STATES = 10_000
"""Observations with discrete parts are numbered automatically up to this number of combinations."""
LARGEST_TABLE = 100_000
"""Values of actions that the tables of the default portfolio may have."""
_LONGEST_VECTOR = 1_000_000
_SMALLEST_IMAGE = 30  # pixels per side
_LARGE_IMAGE = 100  # pixels per side
_FITS_ATARI = 36  # the smallest image that the networks of the paper take


def is_array(space: Any) -> bool:
    """Return whether the elements are numbers or arrays, which every learner can store."""
    return spaces.is_discrete(space) or getattr(space, "shape", None) is not None


def fits_a_table(observations: Any, actions: int) -> bool:
    """Return whether the default portfolio uses tables."""
    usable = without_texts(observations)
    states = number_of(usable)
    if states is None or states * actions > LARGEST_TABLE:
        return False
    return states <= MOST_STATES or _counts_from_0(usable)


def is_large_image(space: Any) -> bool:
    """Return whether the default portfolio uses the networks for Atari games.

    They are for images with several channels or frames.
    """
    shape = _shape(space)
    if not _has_bytes(space) or len(shape) != 3:
        return False
    sides = sorted(shape)[1:]  # the shortest axis is that of channels or frames
    return min(sides) >= _FITS_ATARI


def conversions(space: Any, *, tabular: bool) -> tuple[str, ...]:
    """Return the wrappers that make observations fit, the innermost first.

    There are none if none is needed, or none helps.

    Args:
        space: of the observations.
        tabular: whether a learner with a table is in the portfolio.
    """
    usable = without_texts(space)
    before: tuple[str, ...] = ()
    if usable is not space:
        keys = [key for key, _ in parts_of(space) if key not in _texts(space)]
        before = (join_options("FilterObservation", {"filter_keys": keys}),)
    states = number_of(usable)
    if tabular and states is not None and states <= MOST_STATES and not _counts_from_0(usable):
        return (*before, "DiscreteObservations")
    if not is_array(usable) and _can_be_flattened(usable):
        return (*before, "FlattenObservation")
    return ()


def without_texts(space: Any) -> Any:
    """Return a Dict or Tuple without its texts, if it has other parts; any other space as it is.

    Learners cannot use texts, and those of well-known environments, such as the mission of
    MiniGrid, often say the same in all episodes.
    """
    texts = _texts(space)
    if not texts or len(texts) == len(parts_of(space)):
        return space
    parts = [(key, part) for key, part in parts_of(space) if key not in texts]
    if isinstance(space, gymnasium.spaces.Dict):
        return gymnasium.spaces.Dict(parts)
    return gymnasium.spaces.Tuple([part for _, part in parts])


def _texts(space: Any) -> list[Any]:
    """Return the keys of the parts of a Dict or Tuple that are texts."""
    if not isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        return []
    return [key for key, part in parts_of(space) if spaces.is_text(part)]


def numbered(actions: Any) -> Any:
    """Return the actions as `DiscreteActions` numbers them, where it can; others as they are."""
    count = number_of(actions)
    if count is None or _counts_from_0(actions) or not 0 < count <= MOST_ACTIONS:
        return actions
    return Discrete(count)


def too_many_actions(actions: Any) -> str | None:
    """Return why actions with discrete parts cannot be numbered, and what helps; None if they can.

    It is the end of a sentence.
    """
    count = number_of(actions)
    if count is None or count <= MOST_ACTIONS:
        return None
    remedy = "write a wrapper with the actions that are needed, and add it as --wrappers"
    many = f"{count:,}" if count < 10**12 else "too many"
    return f"has {many} combinations, of which at most {MOST_ACTIONS:,} can be numbered: {remedy}"


def conversion_notes(env: Any, added: Sequence[str]) -> list[str]:
    """Return a sentence about each conversion that was added.

    Args:
        env: the environment with its wrappers.
        added: the wrappers that were added last, the innermost first.
    """
    notes: list[str] = []
    layer = env
    for text in reversed(added):
        name = read_call(text)[0]
        below = layer.env
        if name == "DiscreteActions":
            last = int(layer.action_space.n) - 1
            own = " ".join(str(below.action_space).split())
            notes.append(
                f"Actions are numbered from 0 to {last:,} by DiscreteActions for these learners; "
                f"policies return those of {own}."
            )
        elif name == "FilterObservation":
            texts = ", ".join(repr(key) for key in _texts(below.observation_space))
            without = f"without {texts}, which is text"
            notes[-1] = notes[-1].replace(", so that", f" {without}, so that")
        else:
            why = "so that these learners can use them"
            notes.append(f"Observations are converted by {name}, {why}.")
        layer = below
    return notes[::-1]


def advice(space: Any) -> str:
    """Return what is wrong with observations that are no arrays, and which option helps."""
    if _can_be_flattened(space):
        return f"the observation space is {space}: add --wrappers FlattenObservation"
    own_wrapper = "add a wrapper of your own, as --wrappers module:Class"
    if not isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        return f"the observation space is {space}: {own_wrapper}"
    wrong: list[str] = []
    usable: list[Any] = []
    for key, part in parts_of(space):
        if _can_be_flattened(part):
            usable.append(key)
        else:
            wrong.append(f"{key!r} ({_cut(str(part))})")
    remedy = own_wrapper
    if usable:
        remedy = f'keep the others with --wrappers "FilterObservation(filter_keys={usable})"'
    return f"the observations have parts that cannot be flattened, {', '.join(wrong)}: {remedy}"


def image_note(env: Any) -> str | None:
    """Return advice for single frames; None for other observations.

    A single frame does not show what moves. A large one takes more time and memory than it is
    worth.
    """
    space = env.observation_space
    shape = _shape(space)
    is_frame = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3))
    if not _has_bytes(space) or not is_frame or min(shape[:2]) < _SMALLEST_IMAGE:
        return None
    is_large = max(shape[:2]) > _LARGE_IMAGE
    colors = shape[2] if len(shape) == 3 else 0
    wrappers: list[str] = []
    if is_large and hasattr(env.unwrapped, "ale"):
        repeats_actions = getattr(env.unwrapped, "_frameskip", None) != 1
        wrappers.append(
            '"AtariPreprocessing(frame_skip=1)"' if repeats_actions else "AtariPreprocessing"
        )
    else:
        if colors == 3:
            wrappers.append("GrayscaleObservation")
        if colors == 1:
            wrappers.append(f'"ReshapeObservation(shape=[{shape[0]}, {shape[1]}])"')
        if is_large:
            wrappers.append('"ResizeObservation(shape=[84, 84])"')
    wrappers.append('"FrameStackObservation(stack_size=4)"')
    size = " x ".join(map(str, shape))
    opencv = " (they need OpenCV: pip install opencv-python-headless)" if is_large else ""
    advised = f"To learn faster, add --wrappers {' '.join(wrappers)}{opencv}."
    return f"Observations are single images of {size}. {advised}"


def _shape(space: Any) -> tuple[int, ...]:
    return getattr(space, "shape", None) or ()


def _has_bytes(space: Any) -> bool:
    return str(getattr(space, "dtype", "")) == "uint8"


def _counts_from_0(space: Any) -> bool:
    return spaces.is_discrete(space) and int(space.start) == 0


def _can_be_flattened(space: Any) -> bool:
    """Return whether every part is a number or an array.

    Texts, graphs and sequences have no fixed length.
    """
    if isinstance(space, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
        is_possible = all(_can_be_flattened(part) for _, part in parts_of(space))
    else:
        is_possible = isinstance(space, Box | Discrete | MultiBinary | MultiDiscrete)
    return is_possible and utils.flatdim(space) <= _LONGEST_VECTOR


def _cut(text: str) -> str:
    text = re.sub(r" at 0x[0-9a-f]+", "", text)  # addresses of objects
    return text if len(text) <= 80 else text[:80] + "..."
