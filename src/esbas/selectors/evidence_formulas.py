"""The formulas of `SharedEvidence`.

The selector applies them to NumPy arrays, and kernels compile them. An epoch has K arms with frozen
policies and t trajectories so far, n_k of them by arm k. Trajectory i has the value R_i, and arm k
takes all of its actions with probability p_ik.
"""

import math
from typing import Any

# κ: the variance that is added for few own trajectories, in units of the variance of values.
KAPPA = 4.0
# x: how much an arm's uncertainty counts where changed and unchanged arms are compared.
OPTIMISM = 1.0
# Equal values keep a variance, so that choices among them are random.
SMALLEST_SPREAD = 1e-12  # relative to the mean of values
SMALLEST_VARIANCE = 1e-200


def following_fit(t: int) -> int:
    """Return the number of trajectories at the fit that follows the one at t trajectories."""
    return t + 1 + t // 12


def merged(
    count: float, mean: float, squares: float, more: float, other_mean: float, other_squares: float
) -> tuple[float, float, float]:
    """Return number, mean and squared deviations of two groups of values together.

    The deviations are from the mean (Chan, Golub & LeVeque 1983).

    Args:
        count: the number of values in the first group.
        mean: their mean.
        squares: the sum of their squared deviations.
        more: the number of values in the second group.
        other_mean: their mean.
        other_squares: the sum of their squared deviations.
    """
    total = count + more
    if total == 0.0:
        return 0.0, 0.0, 0.0
    difference = other_mean - mean
    merged_mean = mean + difference * (more / total)
    between = difference * difference * (count * more / total)
    return total, merged_mean, squares + other_squares + between


def value_variance(count: float, mean: float, squares: float) -> float:
    """Return s², the variance of values: 1 if there are none, and never 0."""
    if count == 0.0:
        return 1.0
    return max(squares / count, (SMALLEST_SPREAD * mean) ** 2, SMALLEST_VARIANCE)


def few_pulls_variance(s2: float, pulls: Any) -> Any:
    """Return κ s² / n_k², the variance that a few own trajectories leave."""
    return KAPPA * s2 / (pulls * pulls)


def optimistic(value: float, variance: float, number: float) -> float:
    """Return U_k = V_k + √(x ln(τ + 1) C_kk) before choice τ + 1."""
    return value + math.sqrt(OPTIMISM * math.log(number + 1.0) * variance)


def limited_precision(precision: float, s2: float, pulls: float) -> float:
    """Return the precision of an estimate from earlier epochs.

    It is at most that of `pulls` trajectories with the current s². Otherwise, an epoch in which all
    values so far were equal would decide for ever.
    """
    return min(precision, pulls * pulls / (KAPPA * s2)) if pulls > 0 else 0.0


def accumulated(mean: float, precision: float, value: float, more: float) -> tuple[float, float]:
    """Return mean and precision of two estimates together."""
    total = precision + more
    return (precision * mean + more * value) / total, total


def condition(values: Any, covariance: Any, k: int, mean: float, variance: float) -> None:
    """Condition N(values, covariance) on an observation of coordinate k, in place.

    Args:
        values: the means, (K,).
        covariance: (K, K).
        k: the coordinate.
        mean: what was observed.
        variance: the variance of the observation.
    """
    row = covariance[k].copy()
    total = row[k] + variance
    error = mean - values[k]
    for i in range(len(row)):
        values[i] += row[i] / total * error
        for j in range(len(row)):
            covariance[i, j] -= row[i] / total * row[j]
    for i in range(len(row)):
        exact = row[i] * (variance / total)  # the same without its rounding error
        covariance[i, k] = exact
        covariance[k, i] = exact
        covariance[i, i] = max(covariance[i, i], 0.0)
