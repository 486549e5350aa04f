"""Confidence intervals for means of skewed numbers with heavy tails."""

import math

import numpy as np

from esbas._internal.columns import Array

NORMAL = 1.959963984540054  # the 97.5 % quantile of the normal distribution
FEWEST = 3.0  # degrees of freedom


def skewed_interval(values: Array) -> tuple[Array, Array]:
    """Compute the ends of a 95 % interval for the mean of independent numbers.

    The shapes are (..., n) -> (...), (...).

    Importance weights are skewed, so T = √n (mean - μ) / s is skewed the other way, and `mean ±
    1.96 s / √n` misses μ too often, mostly on one side. Hall's transformation of T, with the
    sample's skewness c,

        g(T) = T + c T² / (3 √n) + c² T³ / (27 n) + c / (6 √n),

    removes the skewness and is monotone. The interval consists of all μ with |g(T)| <= q, a
    quantile of Student's t with n / (k - 1) degrees of freedom, k being the sample's kurtosis: few
    if a few values make up the variance. Satterthwaite's rule gives twice as many, but samples of
    such numbers underestimate k; docs/evaluation.md has the measured coverage. Adaptively collected
    trajectories are not independent, but their deviations are martingale differences, for which T
    has the same limit.

    References:
        P. Hall. On the removal of skewness by transformation. Journal of the Royal Statistical
        Society B 54, 1992.

        F. E. Satterthwaite. An approximate distribution of estimates of variance components.
        Biometrics 2, 1946.
    """
    count = values.shape[-1]
    mean = values.mean(axis=-1)
    if count == 1:
        return np.full_like(mean, -math.inf), np.full_like(mean, math.inf)
    deviations = values - mean[..., None]
    variance = (deviations**2).mean(axis=-1)
    spread = np.where(variance > 0, np.sqrt(variance), 1.0)
    deviations /= spread[..., None]
    cubes = deviations**3
    skewness = cubes.mean(axis=-1)
    kurtosis = (cubes * deviations).mean(axis=-1)
    freedom = np.clip(count / np.maximum(kurtosis - 1, 1.0), FEWEST, None)
    quantile = student_quantile(freedom)
    error = np.sqrt(variance / (count - 1))
    low = mean - error * _inverse(quantile, skewness, count)
    high = mean - error * _inverse(-quantile, skewness, count)
    return low, high


def _inverse(transformed: Array, skewness: Array, count: int) -> Array:
    """Return T, given g(T). For a skewness near 0, it is g(T)."""
    root = math.sqrt(count)
    c = np.where(np.abs(skewness) > 1e-6, skewness, 1e-6)
    cubed = 1 + c * (transformed / root - c / (6 * count))
    return np.asarray(3 * root / c * (np.cbrt(cubed) - 1))


def student_quantile(freedom: Array) -> Array:
    """Return the 97.5 % quantile of Student's t.

    The error is below 1 % for at least three degrees of freedom.

    Reference: M. Abramowitz and I. A. Stegun. Handbook of Mathematical Functions, 26.7.5. 1964.
    """
    z = NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
