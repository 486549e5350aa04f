"""Batches of observations: how many there are, and each of them alone."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from esbas.errors import SpaceError

ARRAYS = spaces.Box | spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary
"""Spaces whose values are arrays or numbers, so that several of them can be stacked."""


def batch_size(space: Any, observation: Any) -> int | None:
    """Return the number of observations of a batch, or None if there is a single observation.

    An observation with the shape of the space is a single one. With one more axis in front, it is a
    batch. In observations of several parts, all parts have that axis. What has a wrong structure
    counts as a single observation.

    Raises:
        SpaceError: if a shape is neither, or if the parts are of different batches.
    """
    sizes = [_size(part, value) for part, value in _parts(space, observation)]
    if len(set(sizes)) > 1:
        counts = ", ".join("no batch" if size is None else str(size) for size in sizes)
        message = "All parts of an observation must be batches of the same size, or none of them"
        raise SpaceError(
            f"{message}, but the sizes are {counts}: give every part the same first axis."
        )
    return sizes[0] if sizes else None


def nth_of(space: Any, observations: Any, number: int) -> Any:
    """Return one observation of a batch."""
    if isinstance(space, spaces.Dict):
        return {key: nth_of(part, observations[key], number) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(
            nth_of(part, value, number)
            for part, value in zip(space.spaces, observations, strict=True)
        )
    return observations[number]


def _parts(space: Any, observation: Any) -> Iterator[tuple[Any, Any]]:
    """Iterate over the parts of an observation that are arrays, with their spaces."""
    if isinstance(space, spaces.Dict):
        if isinstance(observation, dict) and set(observation) == set(space.spaces):
            for key, part in space.spaces.items():
                yield from _parts(part, observation[key])
    elif isinstance(space, spaces.Tuple):
        if isinstance(observation, tuple | list) and len(observation) == len(space.spaces):
            for part, value in zip(space.spaces, observation, strict=True):
                yield from _parts(part, value)
    elif isinstance(space, ARRAYS):
        yield space, observation


def _size(space: Any, value: Any) -> int | None:
    try:
        given = np.shape(value)
    except ValueError:  # lists of different lengths
        given = None
    expected = tuple(space.shape)
    if given == expected:
        return None
    if given is not None and given[1:] == expected and len(given) == len(expected) + 1:
        return int(given[0])
    batch = f"(N, {', '.join(map(str, expected))})" if expected else "(N,)"
    got = "lists of different lengths" if given is None else f"the shape {given}"
    message = (
        f"An observation must have the shape {expected}, or {batch} for a batch, but got {got}"
    )
    raise SpaceError(f"{message}: pass it as the environment returns it.")
