"""D³RB and ED²RB on learning arms."""

import math

import numpy as np

from esbas._internal.compiling import compiled
from esbas.bandits.balancing import balancing_radius
from esbas.experiments.kernels.bounds.play import (
    Floats,
    Integers,
    Keys,
    count,
    play,
    record,
    take_largest,
)

radius = compiled(balancing_radius)


@compiled
def balancing_regrets(
    expectations: Floats,
    keys: Keys,
    checkpoints: Integers,
    d_min: float,
    c: float,
    delta: float,
    estimating: bool,
) -> Floats:
    """Run D³RB or, if `estimating`, ED²RB.

    D³RB doubles the coefficient of an arm when it is too small. ED²RB estimates it.
    """
    shape = (expectations.shape[1], len(keys))
    runs = len(keys)
    pulls = np.zeros(shape)
    sums = np.zeros(shape)
    indices = np.full(shape, np.inf)
    values = np.full(shape, d_min)
    radii = np.zeros(shape)
    n_arms = shape[0]
    arms = np.zeros(runs, np.int64)
    rewards = np.zeros(runs)
    regrets = np.zeros(runs)
    recorded = np.zeros((runs, len(checkpoints)))
    passed = 0
    for tau in range(1, len(expectations) + 1):
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        count(arms, rewards, pulls, sums)
        for run in range(runs):
            arm = arms[run]
            n = pulls[arm, run]
            radii[arm, run] = radius(c, n_arms, delta, n)
            upper = sums[arm, run] / n + radii[arm, run]
            lower = -math.inf
            for k in range(n_arms):
                if pulls[k, run] > 0.0:
                    lower = max(lower, sums[k, run] / pulls[k, run] - radii[k, run])
            root = math.sqrt(n)
            value = values[arm, run]
            if estimating:
                estimated = max(d_min, root * (lower - upper)) * root
                value = min(max(estimated, value), 2.0 * value)
                indices[arm, run] = -value
            else:
                if upper + value / root < lower:
                    value = 2.0 * value
                indices[arm, run] = -(value * root)
            values[arm, run] = value
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded
