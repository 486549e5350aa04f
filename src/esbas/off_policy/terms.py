"""The form of all estimators: a sum of terms, each a weighted mean over the trajectories.

- importance sampling: one term, the weight of the whole trajectory and its return;
- per decision: a term for each step, the weight of the actions so far and the reward;
- doubly robust: two terms for each step.
"""

from collections.abc import Iterable

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError

Term = tuple[Array, Array]
"""Log-weights log w_i, (..., n), and numbers x_i, (..., n), one per trajectory.

Leading axes are separate data sets.
"""
# Of log-weights that are not normalized: moments of fourth order must not overflow either.
LARGEST = 300.0


def sum_of_terms(terms: Iterable[Term], *, weighted: bool) -> tuple[Array, Array]:
    """Compute the estimate, (...), and one pseudo-value per trajectory, (..., n).

    An interval follows from the spread of the pseudo-values.

    A term is Σ w_i x_i / n or, if `weighted`, Σ w_i x_i / Σ w_i = m: biased of order 1/n, with much
    smaller errors if the weights differ a lot. Pseudo-values are w_i x_i, or those of the
    jackknife, `n m - (n - 1) m_(i)`, where m_(i) is the term without trajectory i.

    Reference: R. G. Miller. The jackknife - a review. Biometrika 61, 1974.
    """
    value = np.zeros(())
    pseudo_values = np.zeros(())
    for log_weights, numbers in terms:
        mean, parts = _ratio(log_weights, numbers) if weighted else _mean(log_weights, numbers)
        value = value + mean
        pseudo_values = pseudo_values + parts
    return value, pseudo_values


def _mean(log_weights: Array, numbers: Array) -> Term:
    largest = log_weights.max()
    if largest > LARGEST:
        raise InvalidValueError(
            f"Importance weights must be below exp({LARGEST:g}), but one is exp({largest:.4g}): "
            "use weighted=True, or trajectories of policies that are more like this one."
        )
    products = np.exp(log_weights) * numbers
    return products.mean(axis=-1), products


def _ratio(log_weights: Array, numbers: Array) -> Term:
    count = log_weights.shape[-1]
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))  # the largest is 1
    weights /= weights.sum(axis=-1, keepdims=True)
    mean = (weights * numbers).sum(axis=-1, keepdims=True)
    others = np.maximum(1 - weights, 1e-9)  # 0 if one trajectory has all the weight
    return mean[..., 0], mean + (count - 1) * weights * (numbers - mean) / others
