"""Fitted Q iteration as in `esbas.learners.linear_fqi`, compiled, with steps in blocks of lanes for the inner loops.

Matrix products would use BLAS here, whose threads compete with ours for the cores and whose sums depend on the number of threads.
These loops give the same results on any number of cores.

Arrays are as wide as the widest member of a portfolio, D; a member with d features uses the first d entries.
"""

import math

import numpy as np
from numpy.typing import NDArray

from esbas.compiling import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
LANES = 128  # steps per block, so that its features fit into the first-level cache


@compiled
def inverse(matrix: Floats, d: int, ridge: float, result: Floats) -> None:
    """(matrix + ridge · 1)⁻¹ of a symmetric positive matrix, by Cholesky decomposition."""
    lower = np.zeros((d, d))
    for j in range(d):
        for i in range(j, d):
            rest = matrix[i, j] + (ridge if i == j else 0.0)
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            lower[i, j] = math.sqrt(rest) if i == j else rest / lower[j, j]
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
    features: Floats,  # (B, d, LANES): of the steps that are not the last of their dialogue; 0 in empty lanes
    following: Floats,  # (B, d, LANES): the features of the next steps
    starts: Integers,  # (A + 1,): the steps with action a are in the blocks starts[a] .. starts[a + 1] - 1
    gamma: float,
    tolerance: float,
    max_iterations: int,
    weights: Floats,  # (A, D): the result
) -> None:
    """Iterate w_a = argmin Σ (w·φ - r - γ max_a' w_a'·φ')² + ridge |w|², all actions at once, from 0 until |Δw| <= tolerance."""
    _, d, lanes = features.shape  # a constant would be unrolled: slower to compile, not faster to run
    updated, best, values, sums = np.zeros_like(weights), np.empty(lanes), np.empty(lanes), np.empty((d, lanes))
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
    """max_a' w_a'·φ' for the lanes of a block."""
    d, lanes = following.shape
    for a in range(len(weights)):
        w = weights[a]
        for i in range(lanes):
            values[i] = w[0] * following[0, i]
        j = 1
        while j + 2 < d:  # three features at a time: a third of the loads and stores
            first, second, third = w[j], w[j + 1], w[j + 2]
            x, y, z = following[j], following[j + 1], following[j + 2]
            for i in range(lanes):
                values[i] += first * x[i] + second * y[i] + third * z[i]
            j += 3
        while j < d:
            first, x = w[j], following[j]
            for i in range(lanes):
                values[i] += first * x[i]
            j += 1
        for i in range(lanes):
            best[i] = values[i] if a == 0 or values[i] > best[i] else best[i]


@compiled
def _add_products(features: Floats, best: Floats, sums: Floats) -> None:
    """Add φ v, with one sum per lane: the additions to a single sum could not overlap."""
    d, lanes = features.shape
    for j in range(d):
        x, lane_sums = features[j], sums[j]
        for i in range(lanes):
            lane_sums[i] += x[i] * best[i]
