"""The rank test of Mann and Whitney: whether the values of one sample are larger than of another.

It compares ranks, so a few values that are a hundred times as large as all others do not matter.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import require

EXACT = 50
"""Numbers in both samples up to which the p-value is exact. The counts fit into 53 bits."""


def p_larger(sample: ArrayLike, other: ArrayLike) -> float:
    """Return the one-sided p-value of "the values of `sample` are not larger than of `other`".

    It is the chance of ranks at least as high as these, if it were chance which of the values
    belong to `sample`. Equal values share the mean of their ranks. Small samples are counted
    exactly, ties included; otherwise it is the normal approximation with the corrections for ties
    and continuity (Mann and Whitney, 1947; Lehmann, 1975).

    Of the 10 ways to choose two of the ranks 1 to 5, only 4 and 5 has a sum of 9 or more:

    >>> p_larger([8.0, 9.0], [1.0, 2.0, 3.0])
    0.1

    Args:
        sample: numbers, (N,).
        other: numbers, (M,).
    """
    first = np.asarray(sample, np.float64)
    second = np.asarray(other, np.float64)
    require(len(first) > 0 and len(second) > 0, "Both samples must have at least one number.")
    ranks, ties = _doubled_ranks(np.concatenate([first, second]))
    if len(ranks) <= EXACT:
        return _exact(ranks, len(first))
    return _approximate(ranks, ties, len(first))


def least_p(count: int, other: int) -> float:
    """Return the smallest p-value that samples of these sizes can have.

    >>> least_p(2, 3)
    0.1
    """
    orders = math.comb(count + other, count)
    # Beyond this, it is too large for a float.
    return 1.0 / orders if orders < 10**300 else 0.0


def _doubled_ranks(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return twice the ranks of the values, which are whole numbers, and how often values occur."""
    _, index, ties = np.unique(values, return_inverse=True, return_counts=True)
    below = np.cumsum(ties) - ties  # smaller values
    doubled = 2 * below + ties + 1
    return doubled[index], ties


def _exact(ranks: NDArray[np.int64], count: int) -> float:
    """Count the ways to choose `count` of the ranks whose sum is at least that of the first."""
    # ways[k, s]: to choose k of the ranks so far with the sum s
    ways = np.zeros((count + 1, int(ranks.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in ranks.tolist():
        ways[1:, rank:] += ways[:-1, :-rank].copy()
    at_least = ways[count, int(ranks[:count].sum()) :].sum()
    return float(at_least) / math.comb(len(ranks), count)


def _approximate(ranks: NDArray[np.int64], ties: NDArray[np.int64], count: int) -> float:
    total = len(ranks)
    pairs = count * (total - count)
    # The number of pairs in which the first sample has the larger value; ties count half.
    larger = float(ranks[:count].sum()) / 2.0 - count * (count + 1) / 2.0
    tied = float(np.sum(ties.astype(np.float64) ** 3 - ties)) / (total * (total - 1))
    variance = pairs / 12.0 * (total + 1 - tied)
    if variance <= 0.0:  # all values are equal
        return 1.0
    z = (larger - pairs / 2.0 - 0.5) / math.sqrt(variance)
    return 0.5 * math.erfc(z / math.sqrt(2.0))
