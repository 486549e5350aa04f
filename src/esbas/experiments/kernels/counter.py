"""Counter-based random numbers: word i of a stream is a function of its key and i.

The generator is SplitMix64 (Steele et al., 2014). The draws of a turn do not depend on how many
numbers earlier turns used, and dialogue τ of a run has the same random numbers under every
meta-algorithm. So differences between meta-algorithms are due to their choices alone.
"""

import math

import numpy as np

from esbas import seeding
from esbas._internal.compiling import compiled

# numba converts a uint64 and an int to a float, so constants are uint64 as well.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_11 = np.uint64(11)
_27 = np.uint64(27)
_30 = np.uint64(30)
_31 = np.uint64(31)
_UNIT = 2.0**-53


def run_key(seed: int, *name: str | int) -> np.uint64:
    """Return the key of the stream with this name."""
    return np.uint64(seeding.sequence(seed, *name).generate_state(1, np.uint64)[0])


@compiled
def word(key: np.uint64, i: int | np.int64) -> np.uint64:
    """Return the i-th word of the stream."""
    x = key + np.uint64(i) * _STEP
    x = (x ^ (x >> _30)) * _FIRST
    x = (x ^ (x >> _27)) * _SECOND
    return x ^ (x >> _31)


@compiled
def uniform(key: np.uint64, i: int | np.int64) -> float:
    """Return word i as a number in [0, 1)."""
    return np.float64(word(key, i) >> _11) * _UNIT


@compiled
def normal(key: np.uint64, i: int | np.int64) -> float:
    """Return words i and i + 1 as a standard normal number (Box and Muller, 1958)."""
    radius = math.sqrt(-2.0 * math.log(1.0 - uniform(key, i)))
    angle = 2.0 * math.pi * uniform(key, i + 1)
    return radius * math.cos(angle)
