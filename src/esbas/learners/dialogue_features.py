"""The feature sets of the paper's negotiation learners: simple, fast, simple-2, fast-2, and n-z-* with z features of noise.

The functions are plain: the feature maps call them as they are, the compiled experiment compiles the same ones.
"""

from esbas.columns import Array

NOTHING_HEARD_SCORE = 0.5  # stands for the recognition score before anything was heard
NOTHING_HEARD_COST = 1.0  # stands for the cost of the option heard before anything was heard
_MASK = 0xFFFFFFFF


def time_feature(turn: float) -> float:
    """φ_t = 0.1 t / (0.1 t + 1) at the system's t-th act, t = 1, 2, ..."""
    return 0.1 * turn / (0.1 * turn + 1.0)


def difference_feature(heard_cost: float, next_cost: float) -> float:
    """φ_dif: the system's cost of the option heard (1 if none) minus that of its next best option."""
    return heard_cost - next_cost


def feature_count(base: int, square: bool) -> int:
    """How many features there are over this many base features: 1 and they themselves, with `square` all their products, too."""
    return 1 + base + (base * (base + 1) // 2 if square else 0)


def fill_features(base: Array, count: int, square: bool, out: Array) -> None:
    """Write (1, b_0, ..., b_count-1) and, with `square`, b_i b_j for i <= j in order of i, then j.

    Features come first: `base` is (count, ...) and `out` (feature_count, ...), so that one state and a column of them are alike.
    """
    out[0] = 1.0
    for i in range(count):
        out[1 + i] = base[i]
    if square:
        at = 1 + count
        for i in range(count):
            for j in range(i, count):
                out[at] = base[i] * base[j]
                at += 1


def mix(x: int) -> int:
    """A bijection of 32-bit numbers that scatters them; for integers, columns of int64 and compiled int64 alike."""
    x = x & _MASK  # the factors lie below 2^31, so that no product leaves int64
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & _MASK
    x = ((x ^ (x >> 15)) * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def noise_key(seed: int, lowest_cost: int) -> int:
    """What an instance's noise in one dialogue starts from: its seed, and the first 32 bits of the system's lowest cost.

    Costs are drawn anew for every dialogue, so they name it: the value acted on can be computed again when it is trained on,
    whoever acted and however many dialogues others had in between.
    """
    return mix(mix(seed) ^ lowest_cost)


def noise(key: int, turn: int, feature: int) -> float:
    """A number from [0, 1) that looks independent for every key, turn and feature."""
    return mix(mix(key ^ turn) ^ feature) * (1.0 / 4294967296.0)
