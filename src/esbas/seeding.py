"""Any number of independent, named random streams from one seed.

A stream depends only on the seed and its name, not on the other streams, the process, or the number
of runs at the same time.
"""

import zlib
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas.errors import InvalidValueError

_EPISODE = zlib.crc32(b"episode")


def sequence(seed: int, *name: str | int) -> np.random.SeedSequence:
    """Return the seed sequence of the stream with this name.

    An example is `sequence(7, "environment", 12)`.
    """
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InvalidValueError(
            f"`seed` must be an integer of at least 0, but got {schema.short(seed)}."
        )
    key = [zlib.crc32(part.encode()) if isinstance(part, str) else int(part) for part in name]
    return np.random.SeedSequence(int(seed), spawn_key=key)


def generator(seed: int, *name: str | int) -> np.random.Generator:
    """Return the generator of the stream with this name."""
    return np.random.Generator(np.random.PCG64(sequence(seed, *name)))


def integer(seed: int, *name: str | int) -> int:
    """Return a 31-bit seed for parts that take an integer, such as `env.reset(seed=...)`."""
    return int(sequence(seed, *name).generate_state(1)[0] >> 1)


def episode(seed: int, number: int) -> tuple[np.random.Generator, int]:
    """Return a generator for the policy that acts in an episode, and a seed for `env.reset`.

    They depend on the run's seed and the number of the episode alone.
    """
    # The same as `generator(seed, "episode", number)`, and faster
    stream = np.random.SeedSequence(seed, spawn_key=(_EPISODE, number))
    rng = np.random.Generator(np.random.PCG64(stream))
    return rng, int(rng.integers(2**31))


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """Return the generator's state as plain data."""
    return dict(rng.bit_generator.state)


def restore(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Set the generator to a state that `state_of` returned."""
    check_state(rng, state)
    rng.bit_generator.state = state


def check_state(rng: np.random.Generator, state: Any) -> None:
    """Raise an error unless this is a state of such a generator."""
    where = "the state of the random generator"
    kind = type(rng.bit_generator)
    schema.check(state, {"bit_generator": kind.__name__, str: object}, where)
    if kind is np.random.PCG64:
        large = schema.Number(min=0, max=2**128 - 1, whole=True)
        small = schema.Number(min=0, max=2**32 - 1, whole=True)
        shape = {
            "bit_generator": str,
            "state": {"state": large, "inc": large},
            "has_uint32": small,
            "uinteger": small,
        }
        schema.check(state, shape, where)
    try:
        kind(0).state = state
    except Exception as error:
        raise InvalidValueError(
            f"The state of the random generator must be one of {kind.__name__}, but {error}: "
            f"{schema.REMEDY}."
        ) from error
