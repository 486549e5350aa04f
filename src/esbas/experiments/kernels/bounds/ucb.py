"""UCB1 on learning arms.

It is restarted in every epoch (ESBAS), uses all rounds or a window (SSBAS, SW-UCB, SW-UCB#), or
discounts rounds (D-UCB).
"""

import numpy as np

from esbas._internal.compiling import compiled
from esbas.bandits.ucb import ucb_bonus
from esbas.experiments.kernels.bounds.play import (
    Floats,
    Integers,
    Keys,
    count,
    mean_or_first,
    play,
    record,
    take_largest,
)

bonus = compiled(ucb_bonus)


@compiled
def _indices(xi: float, total: float, pulls: Floats, sums: Floats, indices: Floats) -> None:
    """Write x_k + √(ξ ln n / n_k), which is infinite for an arm without a pull."""
    for arm in range(len(pulls)):
        for run in range(pulls.shape[1]):
            n = pulls[arm, run]
            indices[arm, run] = mean_or_first(sums[arm, run], n) + bonus(xi, total, max(n, 1.0))


@compiled
def ucb_regrets(
    expectations: Floats, keys: Keys, checkpoints: Integers, xi: float, restarts: bool
) -> Floats:
    """Run UCB1 on all rounds or, if it restarts at meta-times 2^β, ESBAS."""
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    pulls = np.zeros(shape)
    sums = np.zeros(shape)
    indices = np.zeros(shape)
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    since = 0
    for tau in range(1, len(expectations) + 1):
        if restarts and tau & (tau - 1) == 0:
            pulls[:] = 0.0
            sums[:] = 0.0
            since = tau - 1
        _indices(xi, float(tau - 1 - since), pulls, sums, indices)
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        count(arms, rewards, pulls, sums)
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded


@compiled
def window_regrets(
    expectations: Floats,
    keys: Keys,
    checkpoints: Integers,
    xi: float,
    sizes: Integers,
    all_rounds: bool,
) -> Floats:
    """Run UCB1 on the last `sizes[τ - 1]` rounds before round τ.

    n counts these rounds or, with `all_rounds`, every round so far.
    """
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    pulls = np.zeros(shape)
    sums = np.zeros(shape)
    indices = np.zeros(shape)
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    start = 0
    rounds = np.zeros((len(expectations), runs), np.uint8)  # 2 arm + reward
    for tau in range(1, len(expectations) + 1):
        while start < tau - 1 - sizes[tau - 1]:
            _expire(rounds[start], pulls, sums)
            start += 1
        counted = tau - 1 if all_rounds else tau - 1 - start
        _indices(xi, float(counted), pulls, sums, indices)
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        count(arms, rewards, pulls, sums)
        for run in range(runs):
            rounds[tau - 1, run] = 2 * arms[run] + np.int64(rewards[run])
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded


@compiled
def _expire(oldest: Floats, pulls: Floats, sums: Floats) -> None:
    """Remove the oldest round from the counts and sums."""
    for arm in range(len(pulls)):
        for run in range(len(oldest)):
            left = 1.0 if oldest[run] >> 1 == arm else 0.0
            pulls[arm, run] -= left
            sums[arm, run] -= left * (oldest[run] & 1)


@compiled
def discounted_regrets(
    expectations: Floats, keys: Keys, checkpoints: Integers, xi: float, discount: float
) -> Floats:
    """Run D-UCB, with the index x_k + 2 √(ξ ln n / n_k).

    A round that is followed by s others counts γ^s.
    """
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    pulls = np.zeros(shape)
    means = np.zeros(shape)
    indices = np.zeros(shape)
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    totals = np.zeros(runs)
    for tau in range(1, len(expectations) + 1):
        totals[:] = 0.0
        for arm in range(len(pulls)):
            totals += pulls[arm]
        for arm in range(len(pulls)):
            for run in range(runs):
                n = pulls[arm, run]
                if n > 0.0:
                    indices[arm, run] = means[arm, run] + 2.0 * bonus(xi, totals[run], n)
                else:
                    indices[arm, run] = np.inf
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        for arm in range(len(pulls)):
            for run in range(runs):
                pulls[arm, run] *= discount
                if arms[run] == arm:
                    known = pulls[arm, run] > 0.0
                    pulls[arm, run] += 1.0
                    if known:
                        step = 1.0 / pulls[arm, run]
                        means[arm, run] += step * (rewards[run] - means[arm, run])
                    else:
                        means[arm, run] = rewards[run]
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded
