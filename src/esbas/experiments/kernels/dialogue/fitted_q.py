"""Fitted Q iteration as in `esbas.learners.linear_fqi`, compiled.

The steps are stored in blocks of lanes, which the inner loops run over.

Matrix products would use BLAS here, whose threads compete with ours for the cores and whose sums
depend on the number of threads. These loops give the same results on any number of cores.

D is the number of features of the learner that has most of them. Arrays have this width; a learner
with d features uses the first d entries.
"""

import math

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LANES = 128  # steps per block, so that its features fit into the first-level cache


@compiled
def inverse(matrix: Floats, d: int, ridge: float, result: Floats) -> None:
    """Write (matrix + ridge · 1)⁻¹ of a symmetric positive matrix, by Cholesky's method."""
    lower = np.zeros((d, d))
    for j in range(d):
        for i in range(j, d):
            rest = matrix[i, j]
            if i == j:
                rest += ridge
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            if i == j:
                lower[i, j] = math.sqrt(rest)
            else:
                lower[i, j] = rest / lower[j, j]
    for column in range(d):  # solve L Lᵀ x = e_column
        for i in range(d):
            rest = 1.0 if i == column else 0.0
            for k in range(i):
                rest -= lower[i, k] * result[k, column]
            result[i, column] = rest / lower[i, i]
        for i in range(d - 1, -1, -1):
            rest = result[i, column]
            for k in range(i + 1, d):
                rest -= lower[k, i] * result[k, column]
            result[i, column] = rest / lower[i, i]


@compiled
def fitted_q(
    inverses: Floats,  # (A, D, D): of Σ φ φᵀ + ridge, over the steps with each action
    moments: Floats,  # (A, D): Σ φ r
    features: Floats,  # (B, d, LANES): of steps that do not end their dialogue; 0 in empty lanes
    following: Floats,  # (B, d, LANES): the features of the next steps
    starts: Integers,  # (A + 1,): action a has the blocks starts[a] .. starts[a + 1] - 1
    gamma: float,
    tolerance: float,
    max_iterations: int,
    weights: Floats,  # (A, D): the result
) -> None:
    """Iterate w_a = argmin Σ (w·φ - r - γ max_a' w_a'·φ')² + ridge |w|² from w = 0.

    An iteration updates all actions at once. The last one is that with |Δw| <= tolerance.
    """
    # Not the constant LANES, which would be unrolled: slower to compile, not faster to run.
    _, d, lanes = features.shape
    updated = np.zeros_like(weights)
    best = np.empty(lanes)
    values = np.empty(lanes)
    sums = np.empty((d, lanes))
    weights.fill(0.0)
    for _ in range(max_iterations):
        change = 0.0
        for a in range(len(weights)):
            sums.fill(0.0)
            for block in range(starts[a], starts[a + 1]):
                _best_values(weights, following[block], values, best)
                _add_products(features[block], best, sums)
            for j in range(d):  # sum over the lanes, and add the rewards
                for i in range(1, lanes):
                    sums[j, 0] += sums[j, i]
                sums[j, 0] = moments[a, j] + gamma * sums[j, 0]
            for j in range(d):
                weight = 0.0
                for k in range(d):
                    weight += inverses[a, j, k] * sums[k, 0]
                updated[a, j] = weight
                change += (weight - weights[a, j]) ** 2
        for a in range(len(weights)):
            for j in range(d):
                weights[a, j] = updated[a, j]
        if change <= tolerance * tolerance:
            break


@compiled
def _best_values(weights: Floats, following: Floats, values: Floats, best: Floats) -> None:
    """Write max_a' w_a'·φ' for the lanes of a block to `best`."""
    d, lanes = following.shape
    for a in range(len(weights)):
        w = weights[a]
        for i in range(lanes):
            values[i] = w[0] * following[0, i]
        j = 1
        while j + 2 < d:  # three features at a time: a third of the loads and stores
            first = w[j]
            second = w[j + 1]
            third = w[j + 2]
            x = following[j]
            y = following[j + 1]
            z = following[j + 2]
            for i in range(lanes):
                values[i] += first * x[i] + second * y[i] + third * z[i]
            j += 3
        while j < d:
            first = w[j]
            x = following[j]
            for i in range(lanes):
                values[i] += first * x[i]
            j += 1
        for i in range(lanes):
            # An assignment in every lane, so that the loop is vectorized.
            best[i] = values[i] if a == 0 or values[i] > best[i] else best[i]


@compiled
def _add_products(features: Floats, best: Floats, sums: Floats) -> None:
    """Add φ v, with one sum per lane: additions to a single sum could not overlap."""
    d, lanes = features.shape
    for j in range(d):
        x = features[j]
        lane_sums = sums[j]
        for i in range(lanes):
            lane_sums[i] += x[i] * best[i]
