"""Constants by which the observations of a training are shifted and scaled.

They come from a few steps with random actions before the training, are stored in its folder, and
never change: with running statistics, observations in the replay memory would no longer fit later
ones.
"""

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from esbas import seeding
from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.files import read_file
from esbas.envs.normalizing import has_floats
from esbas.errors import InvalidValueError, SaveFileError, SpaceError
from esbas.reporting.files import write_json
from esbas.specs.options import error_context, join_options

NORMALIZATION = "normalization.json"
WARM_UP_STEPS = 1_000
"""Steps with random actions from which the constants are computed; not part of any budget."""
MOST_COMPONENTS = 10_000
"""Components of an observation, so that the wrapper fits into a line of text."""
NORMALIZED_NOTE = (
    "Observations are normalized by NormalizedObservations with constants from "
    f"{WARM_UP_STEPS:,} steps with random actions, which are not part of the budget."
)
_SEED = 0  # the same for all trainings: constants depend on the environment alone
_CONSTANT = (
    1e-6  # a component that varies less than this, relative to its mean, has rounding errors
)
_TINY = 1e-30  # and so has one that varies less than this
_RULE = "of `normalize_observations` must be able to play with random actions"
_SHAPE = {"mean": [float], "scale": [float], "steps": schema.COUNT}


@dataclass(frozen=True)
class Normalization:
    """What is subtracted from each component of an observation, and by what it is divided.

    Attributes:
        mean: of each component, in the order of `observation.ravel()`.
        scale: its standard deviation; 1 if it did not vary.
        steps: with random actions, from which the constants were computed.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]
    steps: int

    @property
    def wrapper(self) -> str:
        """The wrapper that does it, as text."""
        constants = {"mean": list(self.mean), "scale": list(self.scale)}
        return join_options("NormalizedObservations", constants)

    def check_fits(self, space: Any) -> None:
        """Raise an error unless the constants are for observations of this space."""
        check_observations(space)
        components = math.prod(space.shape)
        if len(self.mean) != components:
            raise SpaceError(
                f"The constants for normalizing observations are for {len(self.mean):,} "
                f"components, but the observations have {components:,}: use another training."
            )


def check_observations(space: Any) -> None:
    """Raise an error if observations of this space cannot be normalized."""
    if not has_floats(space):
        shown = " ".join(str(space).split())
        if isinstance(space, Box):  # its bounds would be a long list
            shown = f"a Box of {space.dtype} with shape {space.shape}"
        raise SpaceError(
            "`normalize_observations` needs observations that are arrays of floats (Box), but the "
            f"observation space of the learners is {shown}: remove the option."
        )
    components = math.prod(space.shape)
    if components > MOST_COMPONENTS:
        raise SpaceError(
            f"`normalize_observations` needs at most {MOST_COMPONENTS:,} components of an "
            f"observation, but the space has {components:,}: scale them by a wrapper of your own."
        )


def measure(env: Any) -> Normalization:
    """Compute the constants from steps with random actions. The environment is left in an episode.

    They depend on the environment alone, not on the seeds of runs, so that all runs of a training
    have the same, also those that are added later.

    Args:
        env: the environment with all other wrappers.
    """
    check_observations(env.observation_space)
    # A copy, because the space of the environment may have a generator that others use.
    actions = copy.deepcopy(env.action_space)
    actions.seed(seeding.integer(_SEED, "warm-up", "actions"))
    mean = np.zeros(math.prod(env.observation_space.shape))
    squares = np.zeros_like(mean)  # sums of squared differences from the mean
    count = 0
    context = error_context("The warm-up", rule=_RULE, remedy="correct the environment")
    with context, np.errstate(invalid="ignore", over="ignore"):  # `_check_finite` reports them
        for values in _random_observations(env, actions):
            # Welford's update: sums of squares would lose all digits if the mean is large.
            count += 1
            difference = values - mean
            mean = mean + difference / count
            squares = squares + difference * (values - mean)
    deviation = np.sqrt(squares / count)
    _check_finite(mean, deviation)
    return Normalization(
        mean=tuple(mean.tolist()),
        scale=tuple(_without_zeros(deviation, mean).tolist()),
        steps=WARM_UP_STEPS,
    )


def _random_observations(env: Any, actions: Any) -> Iterator[Array]:
    """Play with random actions, and yield all observations, also the first ones of episodes."""
    steps = 0
    for episode in itertools.count():
        reset_seed = seeding.integer(_SEED, "warm-up", "episode", episode)
        observation, _ = env.reset(seed=reset_seed)
        yield _checked(observation, env.observation_space)
        is_over = False
        while not is_over:
            if steps == WARM_UP_STEPS:
                return
            observation, _, terminated, truncated, _ = env.step(actions.sample())
            yield _checked(observation, env.observation_space)
            is_over = bool(terminated or truncated)
            steps += 1


def _checked(observation: Any, space: Any) -> Array:
    found = np.asarray(observation, np.float64)
    if found.shape != space.shape:
        raise SpaceError(
            f"The environment returned an observation of shape {found.shape}, but its observation "
            f"space has shape {space.shape}: correct the environment."
        )
    return found.ravel()


def _check_finite(mean: Array, deviation: Array) -> None:
    usable = np.isfinite(mean) & np.isfinite(deviation)
    if not usable.all():
        first = int(np.argmin(usable))
        raise InvalidValueError(
            "`normalize_observations` needs finite observations, but component "
            f"{first} was infinite, NaN or too large within {WARM_UP_STEPS:,} random steps: "
            "correct the environment."
        )


def _without_zeros(deviation: Array, mean: Array) -> Array:
    """Return the deviations, with 1 for components that do not vary: they are only shifted."""
    least = np.maximum(_CONSTANT * np.abs(mean), _TINY)
    return np.where(deviation > least, deviation, 1.0)


def write_normalization(folder: Path, normalization: Normalization) -> None:
    """Store the constants in the folder of a training."""
    content = {
        "mean": list(normalization.mean),
        "scale": list(normalization.scale),
        "steps": normalization.steps,
    }
    write_json(folder / NORMALIZATION, content)


def read_normalization(folder: Path) -> Normalization | None:
    """Read what `write_normalization` wrote; None if there is no such file."""
    path = folder / NORMALIZATION
    if not path.exists():
        return None
    where = repr(str(path))
    data = schema.read_json(read_file(path), where)
    schema.check(data, _SHAPE, where)
    has_valid_scales = len(data["mean"]) == len(data["scale"]) and min(data["scale"], default=1) > 0
    if not has_valid_scales:
        rule = "must have a positive scale for each mean"
        raise SaveFileError(f"{where} {rule}: {schema.REMEDY}.")
    return Normalization(
        mean=tuple(map(float, data["mean"])),
        scale=tuple(map(float, data["scale"])),
        steps=int(data["steps"]),
    )
