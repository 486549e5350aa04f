"""The bounds that the paper proves: Theorems 1-3, the corollaries of Theorem 2, and Table 1 (two learners, ESBAS).

Exponents describe the orders of gaps and learning curves: a gap of Θ(T^-c†) has `gap` = c†, so 0 is Θ(1) and 1 is Θ(1/T). The
regret of the best canonical meta-algorithm is O(T^(1-c*)) with `own` = c*, and O(log T) for c* = 1.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import require

Floats = NDArray[np.float64]


@dataclass(frozen=True, order=True)
class Growth:
    """An order of growth, T^exponent (log T)^log_power. Instances compare by how fast they grow."""

    exponent: float
    log_power: float = 0.0

    def __call__(self, times: ArrayLike) -> Floats:
        """The value at meta-times T >= 1."""
        t = np.asarray(times, np.float64)
        return np.asarray(t**self.exponent * np.log(t) ** self.log_power, np.float64)

    def __str__(self) -> str:
        power = "" if self.exponent == 0 else "T" if self.exponent == 1 else f"T^{self.exponent:.3g}"
        log = "" if self.log_power == 0 else "log T" if self.log_power == 1 else f"log^{self.log_power:.3g} T"
        return " ".join(part for part in (power, log) if part) or "1"


LOG = Growth(0.0, 1.0)


def short_sighted_growth(gap: float, *, gap_log_power: float = 0.0) -> Growth:
    """The column of ρ_ss in Table 1. `gap` 0 with `gap_log_power` m is Corollary 2: a gap of Θ((log T)^-m).

    Below c† = 1/2 the bandit can distinguish the arms, and the sum of Theorem 2 applies. From 1/2 on it cannot, and the sum of
    the gaps is smaller, which is the largest possible regret.
    """
    _check(gap, "gap")
    require(gap_log_power >= 0, "gap_log_power >= 0", gap_log_power=gap_log_power)
    require(gap == 0 or gap_log_power == 0, "a logarithmic gap has gap 0", gap=gap, gap_log_power=gap_log_power)
    if gap == 0:
        return Growth(0.0, 2.0 + gap_log_power)
    if gap < 0.5:
        return Growth(gap, 1.0)
    return Growth(1.0 - gap) if gap < 1 else LOG


def canonical_growth(own: float) -> Growth:
    """The order of ρ_abs of the best canonical meta-algorithm (one learner alone)."""
    _check(own, "own")
    return LOG if own == 1 else Growth(1.0 - own)


def absolute_growth(gap: float, own: float) -> Growth:
    """The order of ρ_abs that follows from Theorem 3: the larger of the canonical and the short-sighted regret.

    Exponents that differ by rounding alone, such as 0.3 and 1 - 0.7, are equal.
    """
    canonical, short_sighted = canonical_growth(own), short_sighted_growth(gap)
    if math.isclose(canonical.exponent, short_sighted.exponent, rel_tol=0.0, abs_tol=1e-12):
        return Growth(short_sighted.exponent, max(canonical.log_power, short_sighted.log_power))
    return max(canonical, short_sighted)


def table_1_absolute(gap: float, own: float) -> Growth | None:
    """The columns of ρ_abs in Table 1 as printed; None for the grey cell.

    For c† >= 1/2 the printed O(T^(1-c†)) and the grey cell assume c* >= c†. If both learners converge more slowly than their gap
    closes, c* < c†, and Theorem 3 gives O(T^(1-c*)): see `absolute_growth`.
    """
    _check(own, "own")
    if own == 1 or gap < 0.5:
        return absolute_growth(gap, own)
    return short_sighted_growth(gap) if gap < 1 else None


def theorem_1(canonical: ArrayLike) -> Floats:
    """K max_α ρ_abs(σ^α), from (K, ...): an upper bound for all meta-algorithms if learners learn after every trajectory."""
    regrets = np.asarray(canonical, np.float64)
    require(regrets.ndim >= 1 and len(regrets) >= 1, "there is a canonical regret per arm", shape=regrets.shape)
    return np.asarray(len(regrets) * regrets.max(axis=0), np.float64)


def theorem_2(smallest_gaps: ArrayLike) -> Floats:
    """Σ β / Δ_β†, cumulative over epochs, from Δ† of each epoch, (B,): the order of ρ_ss of ESBAS at the ends of epochs."""
    gaps = np.asarray(smallest_gaps, np.float64)
    require(gaps.ndim == 1 and bool((gaps > 0).all()), "smallest gaps are positive, one per epoch", smallest_gaps=smallest_gaps)
    return np.cumsum(np.arange(len(gaps)) / gaps)


def theorem_3(
    times: ArrayLike, *, n_arms: int, canonical: ArrayLike, short_sighted: ArrayLike, kappa: float | Floats = 0.0
) -> Floats:
    """(3K+1) ρ*(T / 3K) + ρ_ss(T) + κ log T, for meta-times T >= 9K²: an upper bound of ρ_abs of ESBAS.

    Args:
        times: (C,) the meta-times T.
        n_arms: K.
        canonical: (H,) ρ_abs of the best canonical meta-algorithm at meta-times 1, 2, ..., H >= T / 3K; interpolated linearly.
        short_sighted: (C,) ρ_ss of ESBAS at `times`.
        kappa: the theorem's constant.
    """
    t, best = np.asarray(times, np.float64), np.asarray(canonical, np.float64)
    require(bool((t >= 9 * n_arms**2).all()), "T >= 9 K²", T=times, K=n_arms)
    reach = t / (3 * n_arms)
    require(best.ndim == 1 and bool((reach <= len(best)).all()), "canonical reaches T / 3K", length=best.shape, K=n_arms)
    at_share = np.interp(reach, np.arange(len(best) + 1), np.concatenate([[0.0], best]))
    return np.asarray((3 * n_arms + 1) * at_share + np.asarray(short_sighted, np.float64) + kappa * np.log(t), np.float64)


def kappa_of_theorem_3(
    times: ArrayLike, *, n_arms: int, absolute: ArrayLike, canonical: ArrayLike, short_sighted: ArrayLike
) -> Floats:
    """(C,): the κ that Theorem 3 needs at each meta-time. The theorem holds with any κ > 0 that is at least their maximum."""
    rest = theorem_3(times, n_arms=n_arms, canonical=canonical, short_sighted=short_sighted)
    return np.asarray((np.asarray(absolute, np.float64) - rest) / np.log(np.asarray(times, np.float64)), np.float64)


def _check(exponent: float, name: str) -> None:
    require(math.isfinite(exponent) and 0 <= exponent <= 1, f"0 <= {name} <= 1", **{name: exponent})
