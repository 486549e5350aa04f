"""Any number of independent, named random streams from one seed.

A stream depends only on the seed and its name, not on the other streams, the process, or the number of runs at the same time.
"""

import zlib
from typing import Any

import numpy as np

from esbas import schema
from esbas.errors import InvalidValueError, require


def sequence(seed: int, *name: str | int) -> np.random.SeedSequence:
    """The seed sequence of the stream with this name, such as `sequence(7, "environment", 12)`."""
    require(isinstance(seed, int | np.integer) and seed >= 0, "seed is an integer >= 0", seed=seed)
    key = tuple(zlib.crc32(part.encode()) if isinstance(part, str) else int(part) for part in name)
    return np.random.SeedSequence(int(seed), spawn_key=key)


def generator(seed: int, *name: str | int) -> np.random.Generator:
    """The generator of the stream with this name."""
    return np.random.Generator(np.random.PCG64(sequence(seed, *name)))


def integer(seed: int, *name: str | int) -> int:
    """A 31-bit seed for parts that take an integer, such as `env.reset(seed=...)`."""
    return int(sequence(seed, *name).generate_state(1)[0] >> 1)


def episode(seed: int, number: int) -> tuple[np.random.Generator, int]:
    """The randomness of one episode of a run: a generator for the policy that acts, and a seed for `env.reset`."""
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_EPISODE, number))))
    return rng, int(rng.integers(2**31))


_EPISODE = zlib.crc32(b"episode")


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """The generator's state as plain data."""
    return dict(rng.bit_generator.state)


def restore(rng: np.random.Generator, state: dict[str, Any]) -> None:
    """Set the generator to a state that `state_of` returned."""
    check_state(rng, state)
    rng.bit_generator.state = state


def check_state(rng: np.random.Generator, state: Any) -> None:
    """Raise an error unless this is a state of such a generator."""
    where, kind = "the state of the random generator", type(rng.bit_generator)
    schema.check(state, {"bit_generator": kind.__name__, str: object}, where)
    if kind is np.random.PCG64:
        large, bits = schema.Number(min=0, max=2**128 - 1, whole=True), schema.Number(min=0, max=2**32 - 1, whole=True)
        numbers = {"state": {"state": large, "inc": large}, "has_uint32": bits, "uinteger": bits}
        schema.check(state, {"bit_generator": str} | numbers, where)
    try:
        kind(0).state = state
    except Exception as error:
        raise InvalidValueError(f"{where} must be one of {kind.__name__}, but {error}: {schema.REMEDY}") from error
