"""Doubly robust estimates: importance sampling of what a fitted Q does not explain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import InvalidValueError, require
from esbas.evaluation.fitted_q import action_probabilities, cross_fitted
from esbas.evaluation.result import OffPolicyEstimate, estimate_from
from esbas.evaluation.steps import LogProbs, Trajectories, WeightedSteps, weighted_steps
from esbas.evaluation.terms import Term


def doubly_robust(
    trajectories: Trajectories,
    policy: Any,
    *,
    q: Callable[[Array, Array], Array] | None = None,
    v: Callable[[Array], Array] | None = None,
    actions: int | None = None,
    gamma: float = 1.0,
    weighted: bool = True,
    folds: int = 5,
    behaviours: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """The discounted return of a policy, per decision, with an estimate Q of its action values as a control variate.

    `Σ_t γ^t Σ_i [w_it (r_it - Q(s_it, a_it)) + w_i,t-1 V(s_it)] / n`, with `V(s) = Σ_a π(a | s) Q(s, a)`; if weighted, the
    weights of each step are divided by their sum instead of n. Any Q gives a consistent estimate, and the better it is, the
    smaller the variance.

    Without `q`, observations and actions must be discrete. Then Q is fitted to the trajectories, once for each fold, from the
    other folds: no trajectory is corrected by a Q that has seen it.

    References: N. Jiang and L. Li. Doubly robust off-policy value evaluation for reinforcement learning. ICML, 2016.
    P. S. Thomas and E. Brunskill. Data-efficient off-policy policy evaluation for reinforcement learning. ICML, 2016 (weighted).

    Args:
        trajectories: as for `importance_sampling`.
        policy: the policy to evaluate, with `log_probs(observations, actions)`.
        q: action values from elsewhere, N observations and N actions -> (N,). It must not be fitted to these trajectories.
        v: its expectation over the actions of the policy, (N, ...) -> (N,). Default: the sum over discrete actions.
        actions: the number of discrete actions. Default: as many as occur.
        gamma: the discount.
        weighted: as for `importance_sampling`.
        folds: how often Q is fitted; at most once for each trajectory.
        behaviours: as for `importance_sampling`.
        arms: as for `importance_sampling`.
    """
    require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
    require(folds >= 2, "folds >= 2", folds=folds)
    require(q is not None or v is None, "v belongs to a q", "pass both", q=q)
    if not hasattr(policy, "log_probs"):
        message = f"the policy must have `log_probs(observations, actions)`, but {type(policy).__name__} has not"
        raise InvalidValueError(f"{message}: use per_decision if only the log-probabilities of the actions are known")
    steps = weighted_steps(trajectories, policy, behaviours=behaviours, arms=arms)
    if q is None:
        values = cross_fitted(steps.trajectories, policy, actions=actions, gamma=gamma, folds=folds)
    else:
        values = _given(steps, policy, q, v, actions)
    terms = doubly_robust_terms(steps.by_time(steps.rewards, *values), gamma=gamma)
    return estimate_from(terms, steps.final_log_weights, weighted=weighted)


def doubly_robust_terms(by_time: Iterable[tuple[Array, ...]], *, gamma: float) -> Iterator[Term]:
    """The terms of all steps; each is given by log-weights, rewards, Q(s, a) and V(s), (..., n), which are 0 after the end."""
    before = np.zeros(())
    for time, (log_weights, rewards, taken, expected) in enumerate(by_time):
        yield np.broadcast_to(before, expected.shape), gamma**time * expected
        yield log_weights, gamma**time * (rewards - taken)
        before = log_weights


def _given(
    steps: WeightedSteps, policy: Any, q: Callable[[Array, Array], Array], v: Callable[[Array], Array] | None, count: int | None
) -> tuple[Array, Array]:
    """Q(s, a) and V(s) of all steps, (N,) each, from the functions that were passed."""
    observations = np.concatenate([each.observations[:-1] for each in steps.trajectories])
    taken = np.concatenate([each.actions for each in steps.trajectories])

    def checked(name: str, values: Any) -> Array:
        found = np.asarray(values, float)
        fits = found.shape == taken.shape[:1] and bool(np.isfinite(found).all())
        require(fits, f"{name} returns one finite number for each step", shape=found.shape, steps=len(taken))
        return found

    if v is not None:
        return checked("q", q(observations, taken)), checked("v", v(observations))
    probabilities = action_probabilities(policy, observations, taken, count=count)  # (N, A)
    every = [checked("q", q(observations, np.full_like(taken, action))) for action in range(probabilities.shape[1])]
    values = np.stack(every, axis=1)
    return values[np.arange(len(taken)), taken], np.asarray((probabilities * values).sum(axis=1))
