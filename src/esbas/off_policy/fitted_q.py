"""Action values of a policy, by fitted Q evaluation on a table.

Observations and actions of the trajectories must be discrete.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.errors import InvalidValueError, require
from esbas.trajectory import Trajectory

TOLERANCE = 1e-9  # of the largest value, at which the iteration ends


@dataclass(frozen=True, eq=False)
class TransitionCounts:
    """How often each transition was seen, in C data sets at the same time.

    Attributes:
        pairs: (T,) the state and action of each kind of transition, as `state * A + action`, in
            ascending order.
        following: (T,) the next state, S if the episode ends.
        counts: (T, C).
        rewards: (S * A, C) the sum of all rewards.
    """

    pairs: Array
    following: Array
    counts: Array
    rewards: Array


def fitted_q(
    table: TransitionCounts, probabilities: Array, *, gamma: float, iterations: int
) -> tuple[Array, Array]:
    """Compute Q, (S, A, C), and V, (S, C), of the policy with these action probabilities, (S, A).

    Repeats `Q(s, a) <- mean of r + γ V(s')` over the transitions that were seen, which is the
    expectation in the model that they suggest. Q is 0 where nothing was seen. Episodes that end, or
    are cut off, have no future rewards.

    Reference: H. Le, C. Voloshin, and Y. Yue. Batch policy learning under constraints. ICML, 2019.
    """
    states, actions = probabilities.shape
    columns = table.counts.shape[1]
    starts = np.flatnonzero(np.diff(table.pairs, prepend=-1))
    seen = table.pairs[starts]

    def sums(numbers: Array) -> Array:
        """Return the sum for each pair: (T, C) -> (S * A, C)."""
        total = np.zeros((states * actions, columns))
        total[seen] = np.add.reduceat(numbers, starts, axis=0)
        return total

    counts = np.maximum(sums(table.counts), 1)
    values = np.zeros((states + 1, columns))
    q = np.zeros((states, actions, columns))
    for _ in range(iterations):
        future = sums(table.counts * values[table.following])
        q = ((table.rewards + gamma * future) / counts).reshape(states, actions, columns)
        new = np.einsum("sac,sa->sc", q, probabilities)
        change = np.abs(new - values[:-1]).max()
        values[:-1] = new
        if change <= TOLERANCE * np.abs(new).max():
            break
    return q, values[:-1]


def cross_fitted(
    trajectories: Sequence[Trajectory],
    policy: Any,
    *,
    actions: int | None,
    gamma: float,
    folds: int,
) -> tuple[Array, Array]:
    """Compute Q(s, a) and V(s) of all steps, (N,) each: for each fold from the other folds."""
    taken = np.concatenate([each.actions for each in trajectories])
    seen = np.concatenate([each.observations for each in trajectories])
    if not np.issubdtype(seen.dtype, np.integer):
        raise InvalidValueError(
            f"A table needs discrete observations, but got {seen.dtype}: "
            "pass `q`, or use per_decision."
        )
    states, state_of_seen = np.unique(seen, axis=0, return_inverse=True)
    state_of_seen = state_of_seen.ravel()
    probabilities = action_probabilities(policy, states, taken, count=actions)  # (S, A)
    lengths = np.array([len(each) for each in trajectories])
    last = np.cumsum(lengths) - 1
    # A trajectory has one observation more than steps: the rows of the last ones are left out.
    final_rows = last + np.arange(1, len(lengths) + 1)
    rows = np.delete(np.arange(len(seen)), final_rows)
    state = state_of_seen[rows]
    following = state_of_seen[rows + 1]
    following[last] = len(states)
    fold = np.repeat(np.arange(len(lengths)) % min(folds, len(lengths)), lengths)
    pair = state * probabilities.shape[1] + taken
    rewards = np.concatenate([each.rewards for each in trajectories])
    counts = _counted(pair, following, rewards, fold, size=probabilities.size, states=len(states))
    iterations = int(lengths.max())
    q, v = fitted_q(left_out(counts), probabilities, gamma=gamma, iterations=iterations)
    return q.reshape(probabilities.size, -1)[pair, fold], v[state, fold]


def left_out(table: TransitionCounts) -> TransitionCounts:
    """Replace each data set by all others.

    `counts`, (T, C), and `rewards`, (S * A, C), become the sums over the other columns.
    """
    counts = table.counts.sum(axis=-1, keepdims=True) - table.counts
    rewards = table.rewards.sum(axis=-1, keepdims=True) - table.rewards
    return TransitionCounts(table.pairs, table.following, counts, rewards)


def action_probabilities(
    policy: Any, observations: Array, taken: Array, *, count: int | None
) -> Array:
    """Compute the probabilities of all actions 0, 1, ... for each observation, (N, A)."""
    if not (np.issubdtype(taken.dtype, np.integer) and taken.ndim == 1 and taken.min() >= 0):
        raise InvalidValueError(
            f"Actions must be 0, 1, 2, ..., but are {taken.dtype} of shape {taken.shape[1:]}: "
            "pass `q` and `v`."
        )
    largest = int(taken.max())
    if count is None:
        count = largest + 1
    require(
        count > largest,
        f"`actions` must be greater than any action, but got {count!r} with action {largest}.",
    )
    columns = []
    for action in range(count):
        same_action = np.full(len(observations), action, taken.dtype)
        columns.append(policy.log_probs(observations, same_action))
    probabilities: Array = np.exp(np.stack(columns, axis=1))
    sums = probabilities.sum(axis=1)
    require(
        bool(np.allclose(sums, 1, atol=1e-4)),
        f"The probabilities of all {count} actions must add up to 1, but got {sums.min():g}: "
        "pass `actions`, their number.",
    )
    return probabilities


def _counted(
    pair: Array, following: Array, rewards: Array, fold: Array, *, size: int, states: int
) -> TransitionCounts:
    """Count the transitions, with a column for each fold."""
    folds = int(fold.max()) + 1
    kinds, kind = np.unique(pair * (states + 1) + following, return_inverse=True)
    counts = np.bincount(kind * folds + fold, minlength=len(kinds) * folds).reshape(-1, folds)
    summed = np.bincount(pair * folds + fold, rewards, minlength=size * folds).reshape(-1, folds)
    return TransitionCounts(
        kinds // (states + 1), kinds % (states + 1), counts.astype(float), summed
    )
