"""Doubly robust estimates: importance sampling of what a fitted Q does not explain."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, require
from esbas.off_policy.fitted_q import action_probabilities, cross_fitted
from esbas.off_policy.result import OffPolicyEstimate, estimate_from
from esbas.off_policy.steps import LogProbs, Trajectories, WeightedSteps, weighted_steps
from esbas.off_policy.terms import Term


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
    behaviors: Mapping[str, LogProbs] | None = None,
    arms: Sequence[str] | None = None,
) -> OffPolicyEstimate:
    """Estimate the discounted return of a policy, with an estimate Q of its action values.

    Q is a control variate. The estimate is

        Σ_t γ^t Σ_i [w_it (r_it - Q(s_it, a_it)) + w_i,t-1 V(s_it)] / n,

    with `V(s) = Σ_a π(a | s) Q(s, a)`; if weighted, the weights of each step are divided by their
    sum instead of n. Any Q gives a consistent estimate, and the better it is, the smaller the
    variance.

    Without `q`, observations and actions must be discrete. Then Q is fitted to the trajectories,
    once for each fold, from the other folds: no trajectory is corrected by a Q that has seen it.

    References:
        N. Jiang and L. Li. Doubly robust off-policy value evaluation for reinforcement learning.
        ICML, 2016.

        P. S. Thomas and E. Brunskill. Data-efficient off-policy policy evaluation for
        reinforcement learning. ICML, 2016 (weighted).

    Args:
        trajectories: as for `importance_sampling`.
        policy: the policy to evaluate, with `log_probs(observations, actions)`.
        q: action values from elsewhere, N observations and N actions -> (N,). It must not be fitted
            to these trajectories.
        v: its expectation over the actions of the policy, (N, ...) -> (N,). Default: the sum over
            discrete actions.
        actions: the number of discrete actions. Default: as many as occur.
        gamma: the discount.
        weighted: as for `importance_sampling`.
        folds: how often Q is fitted; at most once for each trajectory.
        behaviors: as for `importance_sampling`.
        arms: as for `importance_sampling`.
    """
    require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
    require(folds >= 2, f"`folds` must be at least 2, but got {folds!r}.")
    require(q is not None or v is None, "Give `q` and `v`, or neither, but got only `v`.")
    if not hasattr(policy, "log_probs"):
        raise InvalidValueError(
            "The policy must have `log_probs(observations, actions)`, but "
            f"{type(policy).__name__} does not: use per_decision if only the log-probabilities "
            "of the actions are known."
        )
    steps = weighted_steps(trajectories, policy, behaviors=behaviors, arms=arms)
    if q is None:
        values = cross_fitted(steps.trajectories, policy, actions=actions, gamma=gamma, folds=folds)
    else:
        values = _given_values(steps, policy, q, v, actions)
    terms = doubly_robust_terms(steps.by_time(steps.rewards, *values), gamma=gamma)
    return estimate_from(terms, steps.final_log_weights, weighted=weighted)


def doubly_robust_terms(by_time: Iterable[tuple[Array, ...]], *, gamma: float) -> Iterator[Term]:
    """Yield the terms of all steps.

    Args:
        by_time: for each step the log-weights, rewards, Q(s, a) and V(s), (..., n) each. They are 0
            after the end of an episode, except for the log-weights.
        gamma: the discount.
    """
    before = np.zeros(())
    for time, (log_weights, rewards, taken, expected) in enumerate(by_time):
        yield np.broadcast_to(before, expected.shape), gamma**time * expected
        yield log_weights, gamma**time * (rewards - taken)
        before = log_weights


def _given_values(
    steps: WeightedSteps,
    policy: Any,
    q: Callable[[Array, Array], Array],
    v: Callable[[Array], Array] | None,
    count: int | None,
) -> tuple[Array, Array]:
    """Return Q(s, a) and V(s) of all steps, (N,) each, from the functions that were passed."""
    observations = np.concatenate([each.observations[:-1] for each in steps.trajectories])
    taken = np.concatenate([each.actions for each in steps.trajectories])

    def checked(name: str, values: Any) -> Array:
        found = np.asarray(values, float)
        require(
            found.shape == (len(taken),) and bool(np.isfinite(found).all()),
            f"`{name}` must return one finite number for each of {len(taken)} steps, "
            f"but returned an array of shape {found.shape}, or numbers that are not finite.",
        )
        return found

    if v is not None:
        return checked("q", q(observations, taken)), checked("v", v(observations))
    probabilities = action_probabilities(policy, observations, taken, count=count)  # (N, A)
    values = np.empty_like(probabilities)  # (N, A)
    for action in range(probabilities.shape[1]):
        values[:, action] = checked("q", q(observations, np.full_like(taken, action)))
    values_taken = values[np.arange(len(taken)), taken]
    expected = (probabilities * values).sum(axis=1)
    return values_taken, np.asarray(expected)
