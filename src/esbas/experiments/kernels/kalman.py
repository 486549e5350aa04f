"""Kalman Thompson sampling in compiled runs: the formulas of `esbas.bandits.kalman_filters` in loops, without allocations.

The filters are the last axis of every array, so that one instruction updates several of them.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from esbas.bandits import kalman_filters
from esbas.bandits.kalman_filters import FILTERS, PACES
from esbas.compiling import compiled

Floats = NDArray[np.float64]

_drift, _retention = compiled(kalman_filters.drift), compiled(kalman_filters.retention)
_noise: Any = compiled(kalman_filters.noise)
_log_likelihood, _factor = compiled(kalman_filters.log_likelihood), compiled(kalman_filters.factor)
_doubtful, _doubted = compiled(kalman_filters.doubtful), compiled(kalman_filters.doubted)
_standardised, _first_distance = compiled(kalman_filters.standardised), compiled(kalman_filters.first_distance)


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
    averages: Floats  # (K,)


@compiled
def new_bank(n_arms: int) -> Bank:
    """Filters without a reward."""
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
    _weigh(bank, k, _standardised(reward, numbers[1], numbers[2]))
    _move(bank, k)
    t, seen = bank.rounds[0], bank.seen
    seen[k] = t
    for j in range(len(seen)):
        if _doubtful(t, seen[j]):
            for f in range(FILTERS):
                bank.covariances[j, j, f] = _doubted(bank.covariances[j, j, f])
            seen[j] = t


@compiled
def _drift_all(bank: Bank) -> None:
    t, covariances, own, common = bank.rounds[0], bank.covariances, bank.errors, bank.variances
    for f in range(FILTERS):
        own[f], common[f] = _drift(PACES[0, f], t), _drift(PACES[1, f], t)
    for i in range(len(covariances)):
        for j in range(i + 1):
            for f in range(FILTERS):
                covariances[i, j, f] += common[f]
        for f in range(FILTERS):
            covariances[i, i, f] += own[f]


@compiled
def _weigh(bank: Bank, k: int | np.int64, value: float) -> None:
    """How well each filter predicted the value of arm k: its weight and its noise."""
    t, count, squares, log_weights = bank.rounds[0], bank.numbers[0], bank.squares, bank.log_weights
    keep, freedom = _retention(t), max(count, 1.0)
    for f in range(FILTERS):
        bank.variances[f] = variance = bank.covariances[k, k, f] + 1.0
        bank.errors[f] = error = (value - bank.means[k, f]) / math.sqrt(variance)
        squared = error * error
        r = _noise(squares[f], count) if t > 1 else _noise(squared, 1.0)
        log_weights[f] = keep * log_weights[f] + _log_likelihood(squared, variance, r, freedom)
        squares[f] = keep * squares[f] + squared
    first = log_weights[0]
    for f in range(FILTERS):
        log_weights[f] -= first
    bank.numbers[0] = keep * count + 1.0


@compiled
def _move(bank: Bank, k: int | np.int64) -> None:
    """Means and covariances after the errors of arm k."""
    row, covariances, n_arms = bank.row, bank.covariances, len(bank.seen)
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
    """(K,): a sample of the standardised values, as `KalmanFilters.sample` draws it. The next call overwrites it."""
    samples, n_arms = bank.samples, len(bank.seen)
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
    """A filter, as `KalmanFilters.draw` draws it."""
    log_weights = bank.log_weights
    largest, total = log_weights.max(), 0.0
    for f in range(FILTERS):
        total += math.exp(log_weights[f] - largest)
    for f in range(FILTERS - 1):
        point -= math.exp(log_weights[f] - largest) / total
        if point < 0.0:
            return f
    return FILTERS - 1


@compiled
def average(bank: Bank) -> Floats:
    """(K,): the means, averaged over the filters, as `KalmanFilters.average` does. The next call overwrites it."""
    averages, log_weights, weights = bank.averages, bank.log_weights, bank.errors  # `errors` is free between two rewards
    largest, total = log_weights.max(), 0.0
    for f in range(FILTERS):
        weights[f] = math.exp(log_weights[f] - largest)
        total += weights[f]
    for k in range(len(averages)):
        averages[k] = 0.0
        for f in range(FILTERS):
            averages[k] += weights[f] / total * bank.means[k, f]
    return averages
