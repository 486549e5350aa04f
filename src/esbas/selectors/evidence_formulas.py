"""The formulas of `SharedEvidence`. The selector applies them to NumPy arrays; `esbas.kernels.shared_evidence` compiles them.

An epoch has K arms with frozen policies and t trajectories so far, n_k of them by arm k. Trajectory i has the value R_i, and arm
k takes all of its actions with probability p_ik.
"""

import math
from typing import Any

KAPPA = 4.0  # the variance that is added for few own trajectories, in units of the variance of values
OPTIMISM = 1.0  # how much an arm's uncertainty counts where changed and unchanged arms are compared
SMALLEST_SPREAD = 1e-12  # of values, relative to their mean: equal values keep a variance, so that choices among them are random
SMALLEST_VARIANCE = 1e-200


def following_fit(t: int) -> int:
    """The number of trajectories at the fit that follows the one at t trajectories."""
    return t + 1 + t // 12


def merged(
    count: float, mean: float, squares: float, more: float, other_mean: float, other_squares: float
) -> tuple[float, float, float]:
    """Number, mean and squared deviations from the mean of two groups of values together (Chan, Golub & LeVeque 1983)."""
    total = count + more
    if total == 0.0:
        return 0.0, 0.0, 0.0
    difference = other_mean - mean
    return total, mean + difference * (more / total), squares + other_squares + difference * difference * (count * more / total)


def value_variance(count: float, mean: float, squares: float) -> float:
    """s², the variance of values: 1 if there are none, and never 0."""
    if count == 0.0:
        return 1.0
    return max(squares / count, (SMALLEST_SPREAD * mean) ** 2, SMALLEST_VARIANCE)


def few_pulls_variance(s2: float, pulls: Any) -> Any:
    """κ s² / n_k²: what a few trajectories of its own cannot say about an arm."""
    return KAPPA * s2 / (pulls * pulls)


def optimistic(value: float, variance: float, number: float) -> float:
    """U_k = V_k + sqrt(x ln(τ + 1) C_kk) before choice τ + 1."""
    return value + math.sqrt(OPTIMISM * math.log(number + 1.0) * variance)


def limited_precision(precision: float, s2: float, pulls: float) -> float:
    """The precision of an estimate from earlier epochs: at most that of `pulls` trajectories with the current s².

    Otherwise an epoch in which all values so far were equal would decide for ever.
    """
    return min(precision, pulls * pulls / (KAPPA * s2)) if pulls > 0 else 0.0


def accumulated(mean: float, precision: float, value: float, more: float) -> tuple[float, float]:
    """Mean and precision of two estimates together."""
    total = precision + more
    return (precision * mean + more * value) / total, total


def condition(values: Any, covariance: Any, k: int, mean: float, variance: float) -> None:
    """Change N(values, covariance) in place to what it is given an observation of coordinate k with this mean and variance."""
    row = covariance[k].copy()
    total = row[k] + variance
    error = mean - values[k]
    for i in range(len(row)):
        values[i] += row[i] / total * error
        for j in range(len(row)):
            covariance[i, j] -= row[i] / total * row[j]
    for i in range(len(row)):
        covariance[i, k] = covariance[k, i] = row[i] * (variance / total)  # the same without its rounding error
        covariance[i, i] = max(covariance[i, i], 0.0)
