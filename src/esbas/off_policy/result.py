"""The result of an off-policy evaluation: an estimate with its interval."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from esbas._internal.columns import Array
from esbas.off_policy.intervals import skewed_interval
from esbas.off_policy.terms import Term, sum_of_terms
from esbas.off_policy.weights import effective_sample_size

FEW = 50
"""An estimate with a smaller effective sample size comes with a warning."""


class FewEffectiveSamplesWarning(UserWarning):
    """The trajectories contain too little about the policy for a reliable estimate and interval."""


@dataclass(frozen=True, kw_only=True)
class OffPolicyEstimate:
    """The value of a policy, estimated from the trajectories of others.

    Attributes:
        value: the estimate.
        low, high: its 95 % confidence interval.
        effective_sample_size: Kish's (Σ w)² / Σ w² of the weights of whole trajectories.
        n: the number of trajectories.
    """

    value: float
    low: float
    high: float
    effective_sample_size: float
    n: int

    def __str__(self) -> str:
        size = f"effective sample size {self.effective_sample_size:.1f} of {self.n:,}"
        return f"{self.value:.4g} (95 % interval {self.low:.4g} to {self.high:.4g}; {size})"


def estimate_with_interval(terms: Iterable[Term], *, weighted: bool) -> tuple[Array, Array, Array]:
    """Compute the estimate and the ends of its interval, of one data set or of many.

    The shapes are (..., n) -> (...), (...), (...).
    """
    value, pseudo_values = sum_of_terms(terms, weighted=weighted)
    low, high = skewed_interval(pseudo_values)
    return value, np.minimum(low, value), np.maximum(high, value)


def estimate_from(
    terms: Iterable[Term], log_weights: Array, *, weighted: bool
) -> OffPolicyEstimate:
    """Compute the estimate from the terms of one data set.

    Warns if the effective sample size is small.

    Args:
        terms: see `sum_of_terms`.
        log_weights: of whole trajectories, (n,).
        weighted: see `sum_of_terms`.
    """
    value, low, high = map(float, estimate_with_interval(terms, weighted=weighted))
    size = float(effective_sample_size(log_weights))
    count = len(log_weights)
    if size < FEW:
        warnings.warn(
            f"The effective sample size should be at least {FEW}, but is {size:.1f} of "
            f"{count:,} trajectories: use more trajectories, or those of policies that are more "
            "like this one.",
            FewEffectiveSamplesWarning,
            stacklevel=3,
        )
    return OffPolicyEstimate(value=value, low=low, high=high, effective_sample_size=size, n=count)
