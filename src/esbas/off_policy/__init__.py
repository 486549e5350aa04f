"""Off-policy evaluation: the value of a policy from the trajectories of others.

See docs/evaluation.md.
"""

from esbas.off_policy.doubly_robust import doubly_robust
from esbas.off_policy.importance_sampling import importance_sampling, per_decision
from esbas.off_policy.result import FewEffectiveSamplesWarning, OffPolicyEstimate
from esbas.off_policy.weights import balance_log_weights, effective_sample_size

__all__ = [
    "FewEffectiveSamplesWarning",
    "OffPolicyEstimate",
    "balance_log_weights",
    "doubly_robust",
    "effective_sample_size",
    "importance_sampling",
    "per_decision",
]
