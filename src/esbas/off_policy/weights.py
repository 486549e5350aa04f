"""Importance weights from log-probabilities, and how much data they leave."""

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, require


def balance_log_weights(log_probs: Array, counts: Array) -> Array:
    """Compute the log-weights of the balance heuristic (multiple importance sampling), (n, K).

    Of t = Σ_j n_j trajectories, n_j come from arm j. With p_ik the probability of the actions of
    trajectory i under the policy of arm k, `w_ik = p_ik / Σ_j (n_j / t) p_ij`: the trajectories are
    treated as draws from the mixture of all policies. A weight is at most t / n_k, however long the
    episodes are.

    Reference: E. Veach and L. J. Guibas. Optimally combining sampling techniques for Monte Carlo
        rendering. SIGGRAPH, 1995.

    Args:
        log_probs: log p_ik, (n, K); -inf where a policy would never act like this.
        counts: n_j, (K,).

    Returns:
        log w_ik; -inf where p_ik is 0. It is infinite where p_ik is positive, but 0 for every arm
        with n_j > 0: the mixture cannot have produced such a trajectory.
    """
    log_probs = np.asarray(log_probs, float)
    counts = np.asarray(counts, float)
    require(
        log_probs.ndim == 2 and counts.shape == log_probs.shape[1:],
        "`log_probs` must have the shape (n, K) and `counts` the shape (K,), but got "
        f"{log_probs.shape} and {counts.shape}.",
    )
    if np.isnan(log_probs).any() or np.isposinf(log_probs).any():
        raise InvalidValueError(
            "`log_probs` must be numbers less than infinity, but some are NaN or infinite: "
            "leave out arms without probabilities."
        )
    require(
        bool((counts >= 0).all()) and counts.sum() > 0,
        f"`counts` must be at least 0, and one of them positive, but got {counts}.",
    )
    with np.errstate(divide="ignore"):  # log 0 = -inf
        shares = np.log(counts / counts.sum())
    with np.errstate(invalid="ignore"):  # -inf - -inf
        weights = log_probs - np.logaddexp.reduce(log_probs + shares, axis=1)[:, None]
    return np.where(np.isneginf(log_probs), -np.inf, weights)


def effective_sample_size(log_weights: Array) -> Array:
    """Compute Kish's (Σ w)² / Σ w² over the last axis; 0 if all weights are 0.

    About as many trajectories of the policy itself would give an estimate of the same precision.

    Reference: A. Kong. A note on importance sampling using standardized weights. University of
        Chicago, 1992.
    """
    log_weights = np.asarray(log_weights, float)
    once = np.logaddexp.reduce(log_weights, axis=-1)
    squared = np.logaddexp.reduce(2 * log_weights, axis=-1)
    possible = once > -np.inf
    log_size = 2 * np.where(possible, once, 0.0) - np.where(possible, squared, 0.0)
    return np.where(possible, np.exp(log_size), 0.0)
