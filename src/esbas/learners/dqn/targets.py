"""The targets of the values in a batch, for any number of networks: `formulas.py` with the networks that it asks for."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.formulas import add_rewards, bootstrap, rounds_of, start
from esbas.learners.deep.group import UpdateOptions

Evaluate = Callable[[str, Array], Array]


def targets_of(
    memory: Any, rows: Array, options: Sequence[UpdateOptions], next_observations: Callable[[Array], Array], evaluate: Evaluate
) -> Array:
    """The targets, (n, B), of n networks.

    Args:
        memory: what the formulas read: the arrays of a replay memory, or the steps of an excerpt.
        rows: the batches, (n, B).
        options: of each network.
        next_observations: returns those of rows (n, m), where rows that do not matter are 0.
        evaluate: called with "target" or "weights", and with observations (n, m, ...), one row per network; returns the values of
            all actions, (n, m, A).
    """
    count, size = rows.shape
    (at, who), (scales, targets) = np.empty((2, count, size), np.int64), np.empty((2, count, size), np.float32)
    used = np.array([start(rows[k], at[k], who[k], scales[k], targets[k]) for k in range(count)])
    rounds = [rounds_of(each.n_step, each.corrected) for each in options]
    for number in range(max(most for most, _ in rounds)):
        for k, (most, length) in enumerate(rounds):
            state = at[k], who[k], scales[k], targets[k]
            used[k] = add_rewards(memory, length, options[k].gamma, *state, used[k]) if number < most else 0
        if not used.any():
            break
        following = next_observations(at[:, : used.max()] * (np.arange(used.max()) < used[:, None]))
        values = choosers = evaluate("target", following)
        if any(each.double for each in options):
            choosers = evaluate("weights", following)
        for k in np.flatnonzero(used).tolist():
            own, state = values[k].T.copy(), (at[k], who[k], scales[k], targets[k])
            chosen = choosers[k].T.copy() if options[k].double else own
            decay, last = options[k].trace_decay, number == rounds[k][0] - 1
            used[k] = bootstrap(memory, own, chosen, decay, last, *state, used[k])
    return targets
