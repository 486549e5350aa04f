"""What an off-policy estimate says."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from esbas.columns import Array
from esbas.evaluation.intervals import skewed_interval
from esbas.evaluation.terms import Term, sum_of_terms
from esbas.evaluation.weights import effective_sample_size

FEW = 50
"""An estimate with a smaller effective sample size comes with a warning."""


class FewEffectiveSamplesWarning(UserWarning):
    """The trajectories say too little about the policy: neither the estimate nor its interval can be relied on."""


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
    """The estimate and the ends of its interval, of one data set or of many: (..., n) -> (...), (...), (...)."""
    value, pseudo_values = sum_of_terms(terms, weighted=weighted)
    low, high = skewed_interval(pseudo_values)
    return value, np.minimum(low, value), np.maximum(high, value)


def estimate_from(terms: Iterable[Term], log_weights: Array, *, weighted: bool) -> OffPolicyEstimate:
    """The estimate from the terms of one data set, and the log-weights of whole trajectories, (n,). Warns if they say little."""
    value, low, high = map(float, estimate_with_interval(terms, weighted=weighted))
    size, count = float(effective_sample_size(log_weights)), len(log_weights)
    if size < FEW:
        message = f"the effective sample size should be at least {FEW}, but is {size:.1f} of {count:,} trajectories"
        remedy = "use more trajectories, or those of policies that are more like this one"
        warnings.warn(f"{message}: {remedy}", FewEffectiveSamplesWarning, stacklevel=3)
    return OffPolicyEstimate(value=value, low=low, high=high, effective_sample_size=size, n=count)
