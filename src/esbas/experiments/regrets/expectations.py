"""The pseudo-regrets of the paper for known expectations: only the chosen arms are random.

Row τ - 1 of `expectations`, (T, K), holds 𝔼μ of the policy of each arm at meta-time τ; if the
learners' data differ between runs, `expectations` is (R, T, K). `chosen`, (T,) or (R, T), holds the
arms that were played. Every regret is cumulative: entry τ - 1 is the regret up to τ. Its mean
over runs is the pseudo-regret of the meta-algorithm.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import InvalidValueError, require

Floats = NDArray[np.float64]


def absolute(expectations: ArrayLike, chosen: ArrayLike, *, optimum: float) -> Floats:
    """Return ρ_abs(T) = T 𝔼μ*_∞ - Σ 𝔼μ^σ(τ).

    This is the regret against the best policy that any learner converges to.
    """
    return np.cumsum(optimum - _of_chosen(expectations, chosen), axis=-1)


def short_sighted(expectations: ArrayLike, chosen: ArrayLike) -> Floats:
    """Return ρ_ss(T) = Σ (max_α 𝔼μ^α - 𝔼μ^σ(τ)).

    This is the regret against the currently best arm.
    """
    table = _table(expectations)
    return np.cumsum(table.max(axis=-1) - _of_chosen(table, chosen), axis=-1)


def canonical_absolute(expectations: ArrayLike, *, optimum: float) -> Floats:
    """Return the absolute pseudo-regret of each canonical meta-algorithm σ^α, (K, T).

    A canonical meta-algorithm always plays the same arm.
    """
    table = _two_dimensional(expectations, "expectations")
    return np.cumsum(optimum - table.T, axis=-1)


def relative(expectations: ArrayLike, chosen: ArrayLike, *, canonical: ArrayLike) -> Floats:
    """Return ρ_abs of the meta-algorithm minus ρ_abs of the best canonical one.

    The best one has the smallest regret at the horizon. `canonical`, (T, K), holds 𝔼μ of each
    arm in its own canonical run; the optimum cancels.
    """
    table = _two_dimensional(canonical, "canonical")
    best = int(table.sum(axis=0).argmax())
    own = _of_chosen(expectations, chosen)
    require(
        own.shape[-1] == len(table),
        f"`canonical` must have as many rows as there are meta-times, {own.shape[-1]},"
        f" but got {len(table)}.",
    )
    return np.cumsum(table[:, best] - own, axis=-1)


def gaps(expectations: ArrayLike) -> Floats:
    """Return Δ^α = max_α' 𝔼μ^α' - 𝔼μ^α, of the shape of `expectations`."""
    table = _table(expectations)
    return np.asarray(table.max(axis=-1, keepdims=True) - table, np.float64)


def smallest_gap(expectations: ArrayLike) -> Floats:
    """Return Δ†: the smallest gap that is not 0, along the last axis.

    It is infinite if all arms are equal.
    """
    differences = gaps(expectations)
    return np.asarray(np.where(differences > 0, differences, np.inf).min(axis=-1), np.float64)


def epoch_gaps(expectations: ArrayLike, *, lengths: Sequence[int] | None = None) -> Floats:
    """Return Δ_β^α, the gaps at the first meta-time of each epoch β, (B, K).

    These are the epochs that start within `expectations`, (T, K). They have lengths 1, 2, 4, ... as
    in ESBAS, where they start at meta-times 2^β, or the given `lengths`.
    """
    table = _two_dimensional(expectations, "expectations")
    if lengths is None:
        lengths = [1 << epoch for epoch in range(len(table).bit_length())]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    within = starts[starts < len(table)]
    return gaps(table[within])


def _table(expectations: ArrayLike, name: str = "expectations") -> Floats:
    table = np.asarray(expectations, np.float64)
    require(
        table.ndim >= 1 and table.shape[-1] >= 1,
        f"`{name}` must have an entry for each arm, but got the shape {table.shape}.",
    )
    if not np.isfinite(table).all():
        raise InvalidValueError(
            f"`{name}` must be finite, but got {table[~np.isfinite(table)][0]}."
        )
    return table


def _two_dimensional(expectations: ArrayLike, name: str) -> Floats:
    table = _table(expectations, name)
    require(table.ndim == 2, f"`{name}` must be (T, K), but got the shape {table.shape}.")
    return table


def _of_chosen(expectations: ArrayLike, chosen: ArrayLike) -> Floats:
    """Return the expectations of the arms that were played, in the shape of `chosen`."""
    table = _table(expectations)
    arms = np.asarray(chosen)
    require(
        table.ndim >= 2,
        f"`expectations` must be (T, K) or (R, T, K), but got the shape {table.shape}.",
    )
    require(
        np.issubdtype(arms.dtype, np.integer),
        f"`chosen` must have integers, but got the type {arms.dtype}.",
    )
    times, n_arms = table.shape[-2:]
    same_runs = table.ndim == 2 or arms.shape == table.shape[:-1]
    require(
        arms.ndim >= 1 and arms.shape[-1] == times and same_runs,
        "`chosen` must have an arm for each meta-time, but got the shape"
        f" {arms.shape} for expectations of the shape {table.shape}.",
    )
    if arms.size > 0 and (arms.min() < 0 or arms.max() >= n_arms):
        raise InvalidValueError(
            f"`chosen` must have arms from 0 to {n_arms - 1}, but got {arms.min()} to {arms.max()}."
        )
    broad = np.broadcast_to(table, (*arms.shape, n_arms))
    return np.take_along_axis(broad, arms[..., np.newaxis], axis=-1)[..., 0]
