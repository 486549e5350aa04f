"""The pseudo-regrets of the paper for known expectations: only the chosen arms are random.

Row τ - 1 of `expectations`, (T, K), holds 𝔼μ of the policy of each arm at meta-time τ; if the learners' data differ between runs,
`expectations` is (R, T, K). `chosen`, (T,) or (R, T), holds the arms that were played. Every regret is cumulative: entry τ - 1 is
the regret up to τ. Its mean over runs is the pseudo-regret of the meta-algorithm.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import require

Floats = NDArray[np.float64]


def absolute(expectations: ArrayLike, chosen: ArrayLike, *, optimum: float) -> Floats:
    """ρ_abs(T) = T 𝔼μ*_∞ - Σ 𝔼μ^σ(τ): the regret against the best policy that any learner converges to."""
    return np.cumsum(optimum - _of_chosen(expectations, chosen), axis=-1)


def short_sighted(expectations: ArrayLike, chosen: ArrayLike) -> Floats:
    """ρ_ss(T) = Σ (max_α 𝔼μ^α - 𝔼μ^σ(τ)): the regret against the currently best arm."""
    table = _table(expectations)
    return np.cumsum(table.max(axis=-1) - _of_chosen(table, chosen), axis=-1)


def canonical_absolute(expectations: ArrayLike, *, optimum: float) -> Floats:
    """(K, T): the absolute pseudo-regret of each canonical meta-algorithm σ^α, which always plays the same arm."""
    table = _table(expectations)
    require(table.ndim == 2, "expectations are (T, K)", shape=table.shape)
    return np.cumsum(optimum - table.T, axis=-1)


def relative(expectations: ArrayLike, chosen: ArrayLike, *, canonical: ArrayLike) -> Floats:
    """ρ_abs of the meta-algorithm minus ρ_abs of the best canonical one, which has the smallest regret at the horizon.

    `canonical`, (T, K), holds 𝔼μ of each arm in its own canonical run; the optimum cancels.
    """
    table = _table(canonical)
    require(table.ndim == 2, "canonical is (T, K)", shape=table.shape)
    best = int(table.sum(axis=0).argmax())
    own = _of_chosen(expectations, chosen)
    require(own.shape[-1] == len(table), "canonical runs have the same length", chosen=own.shape[-1], canonical=len(table))
    return np.cumsum(table[:, best] - own, axis=-1)


def gaps(expectations: ArrayLike) -> Floats:
    """Δ^α = max_α' 𝔼μ^α' - 𝔼μ^α, of the shape of `expectations`."""
    table = _table(expectations)
    return np.asarray(table.max(axis=-1, keepdims=True) - table, np.float64)


def smallest_gap(expectations: ArrayLike) -> Floats:
    """Δ†: the smallest gap that is not 0, along the last axis; infinite if all arms are equal."""
    differences = gaps(expectations)
    return np.asarray(np.where(differences > 0, differences, np.inf).min(axis=-1), np.float64)


def epoch_gaps(expectations: ArrayLike, *, lengths: Sequence[int] | None = None) -> Floats:
    """(B, K): Δ_β^α, the gaps at the first meta-time of each epoch β that starts within `expectations`, (T, K).

    Epochs have lengths 1, 2, 4, ... as in ESBAS (they start at meta-times 2^β), or the given `lengths`.
    """
    table = _table(expectations)
    require(table.ndim == 2, "expectations are (T, K)", shape=table.shape)
    if lengths is None:
        lengths = [1 << epoch for epoch in range(len(table).bit_length())]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return gaps(table[starts[starts < len(table)]])


def _table(expectations: ArrayLike) -> Floats:
    table = np.asarray(expectations, np.float64)
    require(table.ndim >= 1 and table.shape[-1] >= 1, "expectations have an entry per arm", shape=table.shape)
    require(bool(np.isfinite(table).all()), "expectations are finite", expectations=expectations)
    return table


def _of_chosen(expectations: ArrayLike, chosen: ArrayLike) -> Floats:
    """The expectations of the arms that were played, in the shape of `chosen`."""
    table, arms = _table(expectations), np.asarray(chosen)
    require(table.ndim >= 2, "expectations are (T, K) or (R, T, K)", shape=table.shape)
    require(np.issubdtype(arms.dtype, np.integer), "chosen arms are integers", dtype=arms.dtype)
    fits = arms.ndim >= 1 and arms.shape[-1] == table.shape[-2] and (table.ndim == 2 or arms.shape == table.shape[:-1])
    require(fits, "chosen has an arm per meta-time", chosen=arms.shape, expectations=table.shape)
    inside = arms.size == 0 or (arms.min() >= 0 and arms.max() < table.shape[-1])
    require(bool(inside), "0 <= arm < K", chosen=chosen, K=table.shape[-1])
    broad = np.broadcast_to(table, (*arms.shape, table.shape[-1]))
    return np.take_along_axis(broad, arms[..., np.newaxis], axis=-1)[..., 0]
