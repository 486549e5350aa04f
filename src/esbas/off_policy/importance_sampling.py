"""Importance sampling: each trajectory counts as often as the policy would produce it, compared with the one that did."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from esbas.columns import Array
from esbas.errors import require
from esbas.evaluation.result import OffPolicyEstimate, estimate_from
from esbas.evaluation.steps import LogProbs, Trajectories, weighted_steps
from esbas.evaluation.terms import Term
from esbas.objective import Objective, as_objective, total_return
from esbas.trajectory import Trajectory


def importance_sampling(
    trajectories: Trajectories,
    policy: LogProbs,
    *,
    objective: Objective | Callable[[Trajectory], float] | None = None,
    weighted: bool = True,
    behaviours: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """The value of a policy, with one weight per trajectory: for any objective.

    `Σ_i w_i R_i / n`, or, if weighted, `Σ_i w_i R_i / Σ_i w_i`, with `w_i = Π_t π(a_t | s_t) / b(a_t | s_t)`. With `behaviours`,
    the denominator is the mixture of all policies that acted (the balance heuristic): if `policy` acted in m trajectories itself,
    no weight is larger than n / m.

    References: D. Precup, R. S. Sutton, and S. Singh. Eligibility traces for off-policy policy evaluation. ICML, 2000.
    E. Veach and L. J. Guibas. Optimally combining sampling techniques for Monte Carlo rendering. SIGGRAPH, 1995.

    Args:
        trajectories: episodes of other policies, with the log-probabilities that were recorded while they acted.
        policy: the policy to evaluate: an object with `log_probs(observations, actions)`, or one array (T,) for each trajectory.
        objective: the value of a trajectory. Default: its return, without discount.
        weighted: divide by the sum of the weights. The result is within the range of the returns, and biased of order 1/n.
        behaviours: the policies that acted, by name, for the balance heuristic; each as `policy`. None: recorded probabilities.
        arms: with `behaviours`, which of them acted in each trajectory. Default: `trajectories.arms` of a `TrajectorySet`.
    """
    steps = weighted_steps(trajectories, policy, behaviours=behaviours, arms=arms)
    value = total_return() if objective is None else as_objective(objective)
    returns = np.array([value(each) for each in steps.trajectories])
    return estimate_from([(steps.final_log_weights, returns)], steps.final_log_weights, weighted=weighted)


def per_decision(
    trajectories: Trajectories,
    policy: LogProbs,
    *,
    gamma: float = 1.0,
    weighted: bool = True,
    behaviours: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """The discounted return of a policy, with one weight per decision: a reward does not depend on later actions.

    `Σ_t γ^t Σ_i w_it r_it / n`, or, if weighted, `Σ_t γ^t Σ_i w_it r_it / Σ_i w_it`, where w_it is the weight of the actions up
    to step t. An episode that has ended keeps its weight, and its later rewards are 0. The variance is smaller than that of
    `importance_sampling`, mostly by far; the effective sample size is that of whole trajectories.

    References: D. Precup, R. S. Sutton, and S. Singh. Eligibility traces for off-policy policy evaluation. ICML, 2000.
    P. S. Thomas. Safe reinforcement learning. PhD thesis, University of Massachusetts, 2015 (weighted form).

    Args:
        trajectories: as for `importance_sampling`.
        policy: as for `importance_sampling`.
        gamma: the discount.
        weighted: as for `importance_sampling`.
        behaviours: as for `importance_sampling`.
        arms: as for `importance_sampling`.
    """
    require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
    steps = weighted_steps(trajectories, policy, behaviours=behaviours, arms=arms)
    terms = (reward_term(time, *step, gamma=gamma) for time, step in enumerate(steps.by_time(steps.rewards)))
    return estimate_from(terms, steps.final_log_weights, weighted=weighted)


def reward_term(time: int, log_weights: Array, rewards: Array, *, gamma: float) -> Term:
    """The term of one step: the rewards that all trajectories got at this time, discounted."""
    return log_weights, gamma**time * rewards
