"""Kalman Thompson sampling in compiled runs.

The formulas are those of `esbas.bandits.kalman_filters`, in loops and without allocations. The
filters are the last axis of every array, so that one instruction updates several of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled
from esbas.bandits import kalman_filters
from esbas.bandits.kalman_filters import FILTERS, PACES

Floats = NDArray[np.float64]

_drift = compiled(kalman_filters.drift)
_retention = compiled(kalman_filters.retention)
_noise: Any = compiled(kalman_filters.noise)
_log_likelihood = compiled(kalman_filters.log_likelihood)
_factor = compiled(kalman_filters.factor)
_doubtful = compiled(kalman_filters.doubtful)
_doubted = compiled(kalman_filters.doubted)
_standardized = compiled(kalman_filters.standardized)
_first_distance = compiled(kalman_filters.first_distance)


class Bank(NamedTuple):
    """The state of `KalmanFilters` as arrays, and room for intermediate results."""

    rounds: NDArray[np.int64]  # (1,)
    numbers: Floats  # (3,): the discounted count, the first reward, the first distance from it
    seen: NDArray[np.int64]  # (K,)
    squares: Floats  # (F,)
    log_weights: Floats  # (F,)
    means: Floats  # (K, F)
    covariances: Floats  # (K, K, F), up to the diagonal
    row: Floats  # (K, F)
    errors: Floats  # (F,)
    variances: Floats  # (F,)
    samples: Floats  # (K,)


@compiled
def new_bank(n_arms: int) -> Bank:
    """Allocate filters that have seen no reward."""
    covariances = np.zeros((n_arms, n_arms, FILTERS))
    for k in range(n_arms):
        covariances[k, k] = 1.0
    return Bank(
        np.zeros(1, np.int64),
        np.zeros(3),
        np.zeros(n_arms, np.int64),
        np.zeros(FILTERS),
        np.zeros(FILTERS),
        np.zeros((n_arms, FILTERS)),
        covariances,
        np.zeros((n_arms, FILTERS)),
        np.zeros(FILTERS),
        np.zeros(FILTERS),
        np.zeros(n_arms),
    )


@compiled
def observe(bank: Bank, k: int | np.int64, reward: float) -> None:
    """Learn from a reward of arm k, as `KalmanFilters.observe` does."""
    numbers = bank.numbers
    if bank.rounds[0] == 0:
        numbers[1] = reward
    if numbers[2] == 0.0:
        numbers[2] = _first_distance(reward, numbers[1])
    bank.rounds[0] += 1
    _drift_all(bank)
    _weigh(bank, k, _standardized(reward, numbers[1], numbers[2]))
    _move(bank, k)
    t = bank.rounds[0]
    seen = bank.seen
    seen[k] = t
    for j in range(len(seen)):
        if _doubtful(t, seen[j]):
            for f in range(FILTERS):
                bank.covariances[j, j, f] = _doubted(bank.covariances[j, j, f])
            seen[j] = t


@compiled
def _drift_all(bank: Bank) -> None:
    t = bank.rounds[0]
    covariances = bank.covariances
    # `errors` and `variances` are free until `_weigh` fills them.
    own = bank.errors
    common = bank.variances
    for f in range(FILTERS):
        own[f] = _drift(PACES[0, f], t)
        common[f] = _drift(PACES[1, f], t)
    for i in range(len(covariances)):
        for j in range(i + 1):
            for f in range(FILTERS):
                covariances[i, j, f] += common[f]
        for f in range(FILTERS):
            covariances[i, i, f] += own[f]


@compiled
def _weigh(bank: Bank, k: int | np.int64, value: float) -> None:
    """Update weight and noise of each filter by how well it predicted the value of arm k."""
    t = bank.rounds[0]
    count = bank.numbers[0]
    squares = bank.squares
    log_weights = bank.log_weights
    keep = _retention(t)
    freedom = max(count, 1.0)
    for f in range(FILTERS):
        variance = bank.covariances[k, k, f] + 1.0
        error = (value - bank.means[k, f]) / math.sqrt(variance)
        squared = error * error
        r = _noise(squares[f], count) if t > 1 else _noise(squared, 1.0)
        bank.variances[f] = variance
        bank.errors[f] = error
        log_weights[f] = keep * log_weights[f] + _log_likelihood(squared, variance, r, freedom)
        squares[f] = keep * squares[f] + squared
    first = log_weights[0]
    for f in range(FILTERS):
        log_weights[f] -= first
    bank.numbers[0] = keep * count + 1.0


@compiled
def _move(bank: Bank, k: int | np.int64) -> None:
    """Update means and covariances by the errors of arm k."""
    row = bank.row
    covariances = bank.covariances
    n_arms = len(bank.seen)
    for i in range(n_arms):
        for f in range(FILTERS):
            row[i, f] = covariances[max(i, k), min(i, k), f] / math.sqrt(bank.variances[f])
            bank.means[i, f] += row[i, f] * bank.errors[f]
    for i in range(n_arms):
        for j in range(i + 1):
            for f in range(FILTERS):
                if i == k or j == k:
                    covariances[i, j, f] /= bank.variances[f]
                else:
                    covariances[i, j, f] -= row[i, f] * row[j, f]


@compiled
def sample(bank: Bank, f: int, normals: Floats) -> Floats:
    """Return a sample of the standardized values, (K,), as `KalmanFilters.sample` draws it.

    The next call overwrites the array.
    """
    samples = bank.samples
    n_arms = len(bank.seen)
    lower = _factor(bank.covariances[:, :, f])
    spread = math.sqrt(_noise(bank.squares[f], bank.numbers[0]))
    for i in range(n_arms):
        total = 0.0
        for j in range(i + 1):
            total += lower[i, j] * normals[j]
        samples[i] = bank.means[i, f] + spread * total
    return samples


@compiled
def draw(bank: Bank, point: float) -> int:
    """Return the index of a filter, as `KalmanFilters.draw` draws it."""
    log_weights = bank.log_weights
    largest = log_weights.max()
    total = 0.0
    for f in range(FILTERS):
        total += math.exp(log_weights[f] - largest)
    for f in range(FILTERS - 1):
        point -= math.exp(log_weights[f] - largest) / total
        if point < 0.0:
            return f
    return FILTERS - 1
