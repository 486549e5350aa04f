"""Fitted Q iteration (Ernst et al., 2005) with one linear function per action.

The functions are plain: the learner calls them as they are, the compiled experiment compiles the same ones.
"""

import numpy as np

from esbas.columns import Array


def best_values(weights: Array, following: Array) -> Array:
    """max_a' w_a' · φ' for every row φ' of `following`, (N,)."""
    values = following @ weights.T  # (N, A)
    best = values[:, 0].copy()
    for action in range(1, weights.shape[0]):
        best = np.maximum(best, values[:, action])
    return best


def fitted_q(
    inverses: Array,  # (A, d, d): of Σ φ φᵀ + ridge, over the steps with each action
    moments: Array,  # (A, d): Σ φ r
    features: Array,  # (N, d): of the steps behind which something follows, those with action 0 first, and so on
    following: Array,  # (N, d): the features of what follows
    starts: Array,  # (A + 1,): the steps with action a are starts[a] .. starts[a + 1] - 1
    gamma: float,
    tolerance: float,
    max_iterations: int,
) -> Array:
    """Iterate w_a = argmin Σ (w·φ - r - γ max_a' w_a'·φ')² + ridge |w|², all actions at once, from 0 until |Δw| <= tolerance."""
    actions = moments.shape[0]
    weights = np.zeros_like(moments)  # (A, d)
    for _ in range(max_iterations):
        best = best_values(weights, following)  # (N,)
        change = 0.0
        updated = np.empty_like(weights)
        for a in range(actions):
            rows = slice(starts[a], starts[a + 1])
            updated[a] = inverses[a] @ (moments[a] + gamma * (features[rows].T @ best[rows]))
            change += np.sum((updated[a] - weights[a]) ** 2)
        weights = updated
        if change <= tolerance * tolerance:
            break
    return weights
