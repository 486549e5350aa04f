"""The bounds that the paper proves: Theorems 1-3, corollaries of Theorem 2, and Table 1.

Table 1 is about ESBAS with two learners. Exponents describe the orders of gaps and learning
curves: a gap of Θ(T^-c†) has `gap` = c†, so 0 is Θ(1) and 1 is Θ(1/T). The regret of the
best canonical meta-algorithm is O(T^(1-c*)) with `own` = c*, and O(log T) for c* = 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import InvalidValueError, require

Floats = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Growth:
    """An order of growth, T^exponent (log T)^log_power. Instances compare by how fast they grow."""

    exponent: float
    log_power: float = 0.0

    def __call__(self, times: ArrayLike) -> Floats:
        """Return the value at meta-times T >= 1."""
        t = np.asarray(times, np.float64)
        return np.asarray(t**self.exponent * np.log(t) ** self.log_power, np.float64)

    def __str__(self) -> str:
        factors = []
        if self.exponent == 1:
            factors.append("T")
        elif self.exponent != 0:
            factors.append(f"T^{self.exponent:.3g}")
        if self.log_power == 1:
            factors.append("log T")
        elif self.log_power != 0:
            factors.append(f"log^{self.log_power:.3g} T")
        return " ".join(factors) if factors else "1"


LOG = Growth(0.0, 1.0)


def short_sighted_growth(gap: float, *, gap_log_power: float = 0.0) -> Growth:
    """Return the column of ρ_ss in Table 1.

    Below c† = 1/2 the bandit can distinguish the arms, and the sum of Theorem 2 applies. From 1/2
    on it cannot, and the sum of the gaps is smaller, which is the largest possible regret.

    Args:
        gap: c†.
        gap_log_power: m of Corollary 2, a gap of Θ((log T)^-m), which has `gap` 0.
    """
    _check(gap, "gap")
    require(gap_log_power >= 0, f"`gap_log_power` must be at least 0, but got {gap_log_power!r}.")
    require(
        gap == 0 or gap_log_power == 0,
        f"`gap` must be 0 if `gap_log_power` is not 0, but got {gap!r} and {gap_log_power!r}.",
    )
    if gap == 0:
        return Growth(0.0, 2.0 + gap_log_power)
    if gap < 0.5:
        return Growth(gap, 1.0)
    if gap < 1:
        return Growth(1.0 - gap)
    return LOG


def canonical_growth(own: float) -> Growth:
    """Return the order of ρ_abs of the best canonical meta-algorithm (one learner alone)."""
    _check(own, "own")
    return LOG if own == 1 else Growth(1.0 - own)


def absolute_growth(gap: float, own: float) -> Growth:
    """Return the order of ρ_abs that follows from Theorem 3.

    It is the larger one of the canonical and the short-sighted regret. Exponents that differ by
    rounding alone, such as 0.3 and 1 - 0.7, are equal.
    """
    canonical = canonical_growth(own)
    short_sighted = short_sighted_growth(gap)
    if math.isclose(canonical.exponent, short_sighted.exponent, rel_tol=0.0, abs_tol=1e-12):
        return Growth(short_sighted.exponent, max(canonical.log_power, short_sighted.log_power))
    return max(canonical, short_sighted)


def table_1_absolute(gap: float, own: float) -> Growth | None:
    """Return the columns of ρ_abs in Table 1 as printed; None for the gray cell.

    For c† >= 1/2 the printed O(T^(1-c†)) and the gray cell assume c* >= c†. If both learners
    converge more slowly than their gap closes, c* < c†, and Theorem 3 gives O(T^(1-c*)): see
    `absolute_growth`.
    """
    _check(own, "own")
    if own == 1 or gap < 0.5:
        return absolute_growth(gap, own)
    if gap < 1:
        return short_sighted_growth(gap)
    return None


def theorem_1(canonical: ArrayLike) -> Floats:
    """Return K max_α ρ_abs(σ^α), from (K, ...).

    It is an upper bound for all meta-algorithms if learners learn after every trajectory.
    """
    regrets = np.asarray(canonical, np.float64)
    require(
        regrets.ndim >= 1 and len(regrets) >= 1,
        f"`canonical` must have a regret for each arm, but got the shape {regrets.shape}.",
    )
    return np.asarray(len(regrets) * regrets.max(axis=0), np.float64)


def theorem_2(smallest_gaps: ArrayLike) -> Floats:
    """Return Σ β / Δ_β†, cumulative over epochs, from Δ† of each epoch, (B,).

    It is the order of ρ_ss of ESBAS at the ends of epochs.
    """
    gaps = np.asarray(smallest_gaps, np.float64)
    if gaps.ndim != 1 or not (gaps > 0).all():
        raise InvalidValueError(
            "`smallest_gaps` must have one number greater than 0 for each epoch,"
            f" but got {smallest_gaps!r}."
        )
    return np.cumsum(np.arange(len(gaps)) / gaps)


def theorem_3(
    times: ArrayLike,
    *,
    n_arms: int,
    canonical: ArrayLike,
    short_sighted: ArrayLike,
    kappa: float | Floats = 0.0,
) -> Floats:
    """Return (3K+1) ρ*(T / 3K) + ρ_ss(T) + κ log T, for meta-times T >= 9K².

    It is an upper bound of ρ_abs of ESBAS.

    Args:
        times: (C,) the meta-times T.
        n_arms: K.
        canonical: (H,) ρ_abs of the best canonical meta-algorithm at meta-times 1, 2, ..., H,
            where H >= T / 3K; interpolated linearly.
        short_sighted: (C,) ρ_ss of ESBAS at `times`.
        kappa: the theorem's constant.
    """
    t = np.asarray(times, np.float64)
    best = np.asarray(canonical, np.float64)
    if not (t >= 9 * n_arms**2).all():
        raise InvalidValueError(
            f"`times` must be at least 9 K², but got {t.min():g} for K = {n_arms}."
        )
    reach = t / (3 * n_arms)
    require(
        best.ndim == 1 and bool((reach <= len(best)).all()),
        "`canonical` must be one-dimensional and reach T / 3K, but got the shape"
        f" {best.shape} for K = {n_arms}.",
    )
    at_share = np.interp(reach, np.arange(len(best) + 1), np.concatenate([[0.0], best]))
    own = np.asarray(short_sighted, np.float64)
    bound = (3 * n_arms + 1) * at_share + own + kappa * np.log(t)
    return np.asarray(bound, np.float64)


def kappa_of_theorem_3(
    times: ArrayLike,
    *,
    n_arms: int,
    absolute: ArrayLike,
    canonical: ArrayLike,
    short_sighted: ArrayLike,
) -> Floats:
    """Return the κ that Theorem 3 needs at each meta-time, (C,).

    The theorem holds with any κ > 0 that is at least their maximum.
    """
    rest = theorem_3(times, n_arms=n_arms, canonical=canonical, short_sighted=short_sighted)
    missing = np.asarray(absolute, np.float64) - rest
    return np.asarray(missing / np.log(np.asarray(times, np.float64)), np.float64)


def _check(exponent: float, name: str) -> None:
    require(0 <= exponent <= 1, f"`{name}` must be between 0 and 1, but got {exponent!r}.")
