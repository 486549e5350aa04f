"""A wrapper that shifts and scales observations by constants."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from esbas.errors import InvalidValueError, SpaceError

LIMIT = 100.0
"""Normalized observations are cut off at minus and plus this number.

The usual 10 of running statistics would be too small: a policy that learnt goes far beyond what
random actions reach, as the cart of CartPole to 27 deviations.
"""


class NormalizedObservations(gymnasium.ObservationWrapper[Any, Any, Any]):
    """Shifts and scales each component of an observation: (observation - mean) / scale.

    The constants never change, so observations that were stored earlier stay comparable. The result
    is cut off at -100 and 100, because a component can become much larger than it was when the
    constants were measured. Infinite values and NaN stay as they are, so that they are noticed.

    Args:
        env: its observations are arrays of floats.
        mean: a number per component, in the order of `observation.ravel()`.
        scale: likewise, all positive.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], *, mean: Sequence[float], scale: Sequence[float]
    ) -> None:
        super().__init__(env)
        space: Any = env.observation_space
        if not has_floats(space):
            raise SpaceError(
                f"NormalizedObservations needs arrays of floats, but the observation space is "
                f"{space}: remove it."
            )
        self.mean = _constants("mean", mean, space)
        self.scale = _constants("scale", scale, space)
        if not np.all(self.scale > 0):
            raise InvalidValueError("`scale` of NormalizedObservations must be positive.")
        self._dtype = space.dtype
        self.observation_space = spaces.Box(-LIMIT, LIMIT, space.shape, space.dtype.type)

    def observation(self, observation: Any) -> Any:
        """Return the normalized observation."""
        given = np.asarray(observation, np.float64)
        normalized = np.clip((given - self.mean) / self.scale, -LIMIT, LIMIT)
        return np.where(np.isfinite(given), normalized, given).astype(self._dtype)


def has_floats(space: Any) -> bool:
    """Return whether the elements of a space are arrays of floats."""
    return isinstance(space, spaces.Box) and np.issubdtype(space.dtype, np.floating)


def _constants(name: str, given: Sequence[float], space: Any) -> Any:
    """Return the constants in the shape of the observations."""
    found = np.array(given, np.float64)
    needed = int(np.prod(space.shape))
    if found.shape != (needed,) or not np.all(np.isfinite(found)):
        raise InvalidValueError(
            f"`{name}` of NormalizedObservations must be a list of {needed} finite numbers, one "
            "per component of an observation."
        )
    return found.reshape(space.shape)
