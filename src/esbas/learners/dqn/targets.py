"""The targets of the values in a batch, for any number of networks, by `formulas.py`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas.learners.dqn.formulas import add_rewards, bootstrap, rounds_of, start
from esbas.learners.dqn.group import UpdateOptions

Evaluate = Callable[[str, Array], Array]


def targets_of(
    memory: Any,
    rows: Array,
    options: Sequence[UpdateOptions],
    next_observations: Callable[[Array], Array],
    evaluate: Evaluate,
) -> Array:
    """Return the targets, (n, B), of n networks.

    Args:
        memory: what the formulas read: the arrays of a replay memory, or the steps of an excerpt.
        rows: the batches, (n, B).
        options: of each network.
        next_observations: returns those of rows (n, m), where rows that do not matter are 0.
        evaluate: called with "target" or "weights", and with observations (n, m, ...), one row per
            network; returns the values of all actions, (n, m, A).
    """
    count, size = rows.shape
    at = np.empty((count, size), np.int64)
    who = np.empty((count, size), np.int64)
    scales = np.empty((count, size), np.float32)
    targets = np.empty((count, size), np.float32)
    used = np.zeros(count, np.int64)  # (n,): how many of the columns are in use
    rounds = []
    lengths = []
    for k in range(count):
        used[k] = start(rows[k], at[k], who[k], scales[k], targets[k])
        most, length = rounds_of(options[k].n_steps, options[k].corrected)
        rounds.append(most)
        lengths.append(length)
    any_double = any(each.double for each in options)
    for number in range(max(rounds)):
        for k in range(count):
            state = at[k], who[k], scales[k], targets[k]
            if number < rounds[k]:
                factors = options[k].gamma, options[k].bonus
                used[k] = add_rewards(memory, lengths[k], *factors, *state, used[k])
            else:
                used[k] = 0
        if not used.any():
            break
        widest = used.max()
        matters = np.arange(widest) < used[:, None]  # (n, widest)
        following = next_observations(at[:, :widest] * matters)
        values = evaluate("target", following)  # (n, widest, A)
        choosers = evaluate("weights", following) if any_double else values
        for k in np.flatnonzero(used).tolist():
            state = at[k], who[k], scales[k], targets[k]
            own = values[k].T.copy()
            chosen = choosers[k].T.copy() if options[k].double else own
            decay = options[k].trace_decay
            last = number == rounds[k] - 1
            used[k] = bootstrap(memory, own, chosen, decay, last, *state, used[k])
    return targets
