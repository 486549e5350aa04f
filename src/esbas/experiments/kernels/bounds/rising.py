"""R-less-UCB on learning arms."""

import math

import numpy as np

from esbas._internal.compiling import compiled
from esbas.bandits.rising import rising_bonus
from esbas.experiments.kernels.bounds.play import Floats, Integers, Keys, play, record, take_largest

bonus = compiled(rising_bonus)


@compiled
def rising_regrets(
    expectations: Floats,
    keys: Keys,
    checkpoints: Integers,
    epsilon: float,
    alpha: float,
    sigma: float,
) -> Floats:
    """Run R-less-UCB.

    The sums over the last h = ⌊ε n⌋ rewards of an arm are kept as in
    `esbas.bandits.rising.RisingArm`.
    """
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    indices = np.full(shape, np.inf)
    pulls = np.zeros(shape, np.int64)
    windows = np.zeros(shape, np.int64)
    sums = np.zeros((4, *shape))  # of x(l), x(l - h), l x(l), l x(l - h)
    past = np.zeros((*shape, len(expectations)), np.uint8)  # each arm's rewards, in their order
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    for tau in range(1, len(expectations) + 1):
        for arm in range(shape[0]):
            for run in range(runs):
                h = windows[arm, run]
                if h > 0:
                    change = sums[0, arm, run] - sums[1, arm, run]
                    weighted_change = sums[2, arm, run] - sums[3, arm, run]
                    difference = tau * change - weighted_change
                    estimate = sums[0, arm, run] / h + difference / h**2
                    indices[arm, run] = estimate + bonus(sigma, alpha, tau, pulls[arm, run], h)
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        for run in range(runs):
            arm = arms[run]
            _add(rewards[run], epsilon, past[arm, run], pulls[arm], windows[arm], sums[:, arm], run)
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded


@compiled
def _add(
    reward: float,
    epsilon: float,
    past: Integers,
    pulls: Integers,
    windows: Integers,
    sums: Floats,
    run: int,
) -> None:
    """Add a reward of an arm, whose window then moves by one or grows by one.

    Rewards are 0 or 1, so the sums are exact.
    """
    n = pulls[run] + 1
    h = math.floor(epsilon * n)
    past[n - 1] = np.uint8(reward)
    if h == windows[run]:
        middle = float(past[n - h - 1])
        first = float(past[n - 2 * h - 1])
        sums[0, run] += reward - middle
        sums[1, run] += middle - first
        sums[2, run] += n * reward - (n - h) * middle
        sums[3, run] += n * middle - (n - h) * first
    else:
        joining = float(past[n - 2 * h])
        sums[0, run] += reward
        sums[1, run] += joining
        sums[2, run] += n * reward
        sums[3, run] += sums[1, run] + (n - h) * joining
    pulls[run] = n
    windows[run] = h
