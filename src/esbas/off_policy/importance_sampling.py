"""Importance sampling: trajectories are weighted by their probability under the policy.

A weight is the ratio to the probability under the policy that acted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import require
from esbas.objective import Objective, as_objective, total_return
from esbas.off_policy.result import OffPolicyEstimate, estimate_from
from esbas.off_policy.steps import LogProbs, Trajectories, WeightedSteps, weighted_steps
from esbas.off_policy.terms import Term
from esbas.trajectory import Trajectory


def importance_sampling(
    trajectories: Trajectories,
    policy: LogProbs,
    *,
    objective: Objective | Callable[[Trajectory], float] | None = None,
    weighted: bool = True,
    behaviors: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """Estimate the value of a policy, with one weight per trajectory, for any objective.

    `Σ_i w_i R_i / n`, or, if weighted, `Σ_i w_i R_i / Σ_i w_i`, with `w_i = Π_t π(a_t | s_t) /
    b(a_t | s_t)`. With `behaviors`, the denominator is the mixture of all policies that acted (the
    balance heuristic): if `policy` acted in m trajectories itself, no weight is larger than n / m.

    References:
        D. Precup, R. S. Sutton, and S. Singh. Eligibility traces for off-policy policy evaluation.
        ICML, 2000.

        E. Veach and L. J. Guibas. Optimally combining sampling techniques for Monte Carlo
        rendering. SIGGRAPH, 1995.

    Args:
        trajectories: episodes of other policies, with the log-probabilities that were recorded
            while they acted.
        policy: the policy to evaluate: an object with `log_probs(observations, actions)`, or one
            array (T,) for each trajectory.
        objective: the value of a trajectory. Default: its return, without discount.
        weighted: divide by the sum of the weights. The result is within the range of the returns,
            and biased of order 1/n.
        behaviors: the policies that acted, by name, for the balance heuristic; each as `policy`.
            None: recorded probabilities.
        arms: with `behaviors`, which of them acted in each trajectory. Default: `trajectories.arms`
            of a `TrajectorySet`.
    """
    steps = weighted_steps(trajectories, policy, behaviors=behaviors, arms=arms)
    value = total_return() if objective is None else as_objective(objective)
    returns = np.array([value(each) for each in steps.trajectories])
    log_weights = steps.final_log_weights
    return estimate_from([(log_weights, returns)], log_weights, weighted=weighted)


def per_decision(
    trajectories: Trajectories,
    policy: LogProbs,
    *,
    gamma: float = 1.0,
    weighted: bool = True,
    behaviors: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """Estimate the discounted return of a policy, with one weight per decision.

    A reward does not depend on later actions, so its weight does not either:

    `Σ_t γ^t Σ_i w_it r_it / n`, or, if weighted, `Σ_t γ^t Σ_i w_it r_it / Σ_i w_it`, where w_it is
    the weight of the actions up to step t. An episode that has ended keeps its weight, and its
    later rewards are 0. The variance is smaller than that of `importance_sampling`, mostly by far;
    the effective sample size is that of whole trajectories.

    References:
        D. Precup, R. S. Sutton, and S. Singh. Eligibility traces for off-policy policy evaluation.
        ICML, 2000.

        P. S. Thomas. Safe reinforcement learning. PhD thesis, University of Massachusetts, 2015
        (weighted form).

    Args:
        trajectories: as for `importance_sampling`.
        policy: as for `importance_sampling`.
        gamma: the discount.
        weighted: as for `importance_sampling`.
        behaviors: as for `importance_sampling`.
        arms: as for `importance_sampling`.
    """
    require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
    steps = weighted_steps(trajectories, policy, behaviors=behaviors, arms=arms)
    terms = _reward_terms(steps, gamma=gamma)
    return estimate_from(terms, steps.final_log_weights, weighted=weighted)


def _reward_terms(steps: WeightedSteps, *, gamma: float) -> Iterator[Term]:
    for time, (log_weights, rewards) in enumerate(steps.by_time(steps.rewards)):
        yield reward_term(time, log_weights, rewards, gamma=gamma)


def reward_term(time: int, log_weights: Array, rewards: Array, *, gamma: float) -> Term:
    """Return the term of one step: the discounted rewards of all trajectories at this time."""
    return log_weights, gamma**time * rewards
