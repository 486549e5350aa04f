"""Random numbers for compiled runs: NumPy's SFC64 generator.

One 64-bit word is enough for a step of an episode. From the top, a word consists of 29 bits for
chances (explore or not; where to start), 2 bits for a random action, and 25 and 8 bits for the
abscissa and the layer of a normal draw by the ziggurat method (Marsaglia & Tsang, 2000) with 256
layers.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from esbas import seeding
from esbas._internal.compiling import compiled

Integer = int | np.int64
Stream = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
"""The state of a generator, an immutable value."""

CHANCE_BITS = 29
_HALF = 1 << 24  # abscissas are integers from -_HALF to _HALF - 1
_RIGHT = 3.6541528853610088  # start of the tail, for 256 layers
_AREA = 0.00492867323399  # area of each layer

# numba converts a uint64 and an int to a float, so constants are uint64 as well.
_1 = np.uint64(1)
_3 = np.uint64(3)
_8 = np.uint64(8)
_11 = np.uint64(11)
_24 = np.uint64(24)
_33 = np.uint64(33)
_35 = np.uint64(35)
_40 = np.uint64(40)
_TWO_BITS = np.uint64(3)
_EIGHT_BITS = np.uint64(255)
_25_BITS = np.uint64((1 << 25) - 1)


def stream(seed: int, *name: str | int) -> Stream:
    """Return the stream with this name.

    Its words are those of `numpy.random.SFC64(esbas.seeding.sequence(seed, *name))`.
    """
    state: Any = np.random.SFC64(seeding.sequence(seed, *name)).state["state"]
    a, b, c, counter = state["state"]
    return a, b, c, counter


def _ziggurat() -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float64]]:
    """Return the tables of the ziggurat method.

    For each layer: the width of a unit of abscissa, the number of abscissas on each side that are
    always inside, and the density at the right edge.
    """
    edges = np.zeros(257)
    edges[0] = _AREA / math.exp(-_RIGHT * _RIGHT / 2)
    edges[1] = _RIGHT
    for i in range(1, 255):
        density = math.exp(-edges[i] * edges[i] / 2) + _AREA / edges[i]
        edges[i + 1] = math.sqrt(-2 * math.log(density))
    width = edges[:-1] / _HALF
    inside = np.floor(_HALF * edges[1:] / edges[:-1])
    density_at_edge = np.exp(-edges * edges / 2)
    return width.astype(np.float32), inside.astype(np.int32), density_at_edge


WIDTH, INSIDE, DENSITY = _ziggurat()  # (256,), (256,), (257,)


@compiled
def next_word(stream: Stream) -> tuple[Stream, np.uint64]:
    """Return the next state and the next 64 bits of the generator (SFC64 by Doty-Humphrey)."""
    a, b, c, counter = stream
    word = a + b + counter
    rotated = (c << _24) | (c >> _40)
    return (b ^ (b >> _11), c + (c << _3), rotated + word, counter + _1), word


@compiled
def chance(word: np.uint64) -> Integer:
    """Return an integer from 0 to 2^29 - 1."""
    return np.int64(word >> _35)


@compiled
def below(word: np.uint64, n: Integer) -> Integer:
    """Return an integer from 0 to n - 1."""
    return (chance(word) * n) >> CHANCE_BITS


@compiled
def random_action(word: np.uint64) -> Integer:
    """Return an integer from 0 to 3."""
    return np.int64((word >> _33) & _TWO_BITS)


@compiled
def normal(stream: Stream, word: np.uint64) -> tuple[Stream, np.float32]:
    """Draw a standard normal number. About one draw in eighty takes more words from the stream."""
    layer = np.int64(word & _EIGHT_BITS)
    abscissa = np.int64((word >> _8) & _25_BITS) - _HALF
    if abs(abscissa) < INSIDE[layer]:
        return stream, np.float32(abscissa) * WIDTH[layer]
    return _normal_beyond(stream, layer, abscissa)


@compiled
def _normal_beyond(stream: Stream, layer: Integer, abscissa: Integer) -> tuple[Stream, np.float32]:
    """Accept or reject a point that may be outside its layer; after a rejection, draw again."""
    while True:
        if layer == 0:
            return _tail(stream, abscissa < 0)
        x = np.float32(abscissa) * WIDTH[layer]
        stream, word = next_word(stream)
        height = DENSITY[layer] + uniform(word) * (DENSITY[layer + 1] - DENSITY[layer])
        if height < math.exp(-0.5 * np.float64(x) * np.float64(x)):
            return stream, x
        stream, word = next_word(stream)
        layer = np.int64(word & _EIGHT_BITS)
        abscissa = np.int64((word >> _8) & _25_BITS) - _HALF
        if abs(abscissa) < INSIDE[layer]:
            return stream, np.float32(abscissa) * WIDTH[layer]


@compiled
def _tail(stream: Stream, negative: bool | np.bool_) -> tuple[Stream, np.float32]:
    """Draw a number beyond the right edge of the base layer (Marsaglia, 1964)."""
    while True:
        stream, word = next_word(stream)
        x = -math.log(uniform(word)) / _RIGHT
        stream, word = next_word(stream)
        y = -math.log(uniform(word))
        if y + y > x * x:
            drawn = -_RIGHT - x if negative else _RIGHT + x
            return stream, np.float32(drawn)


@compiled
def uniform(word: np.uint64) -> float:
    """Return a number in (0, 1)."""
    return (np.float64(word >> _11) + 0.5) * 2.0**-53
