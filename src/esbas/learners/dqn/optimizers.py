"""Optimizers of flat weights, compiled. `batched.py` has the same formulas for tensors."""

import math

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled

MAX_GRADIENT_NORM = 10.0
OPTIMIZERS = "adam", "rmsprop"


@compiled
def norm_of(gradient: Array) -> float:
    """Return the Euclidean norm. Four sums are faster, since one would wait for each addition."""
    a = b = c = d = 0.0
    whole = len(gradient) // 4 * 4
    for i in range(0, whole, 4):
        a += gradient[i] * np.float64(gradient[i])
        b += gradient[i + 1] * np.float64(gradient[i + 1])
        c += gradient[i + 2] * np.float64(gradient[i + 2])
        d += gradient[i + 3] * np.float64(gradient[i + 3])
    for i in range(whole, len(gradient)):
        a += gradient[i] * np.float64(gradient[i])
    return math.sqrt(a + b + c + d)


@compiled
def adam(
    weights: Array,
    gradient: Array,
    first: Array,
    second: Array,
    count: int,
    rate: float,
    shrink: float,
) -> None:
    """Update by Adam (Kingma and Ba, 2015), with their β and ε.

    `count` is the number of updates, including this one. The gradient is multiplied by `shrink`.
    """
    step = np.float32(rate / (1 - 0.9**count))
    spread = np.float32(1 - 0.999**count)
    factor = np.float32(shrink)
    tenth = np.float32(0.1)
    thousandth = np.float32(0.001)
    tiny = np.float32(1e-8)
    for i in range(len(weights)):
        slope = gradient[i] * factor
        first[i] += tenth * (slope - first[i])
        second[i] += thousandth * (slope * slope - second[i])
        weights[i] -= step * first[i] / (np.sqrt(second[i] / spread) + tiny)


@compiled
def rmsprop(weights: Array, gradient: Array, second: Array, rate: float, shrink: float) -> None:
    """Update by RMSprop (Tieleman and Hinton, 2012) with ρ = 0.95."""
    step = np.float32(rate)
    factor = np.float32(shrink)
    twentieth = np.float32(0.05)
    tiny = np.float32(1e-7)
    for i in range(len(weights)):
        slope = gradient[i] * factor
        second[i] += twentieth * (slope * slope - second[i])
        weights[i] -= step * slope / (np.sqrt(second[i]) + tiny)
