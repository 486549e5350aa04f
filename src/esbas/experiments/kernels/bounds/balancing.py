"""D³RB and ED²RB on learning arms."""

import math

import numpy as np

from esbas.bandits.balancing import balancing_radius
from esbas.compiling import compiled
from esbas.kernels.bounds.play import Floats, Integers, Keys, count, play, record, take_largest

radius = compiled(balancing_radius)


@compiled
def balancing_regrets(
    expectations: Floats, keys: Keys, checkpoints: Integers, d_min: float, c: float, delta: float, estimating: bool
) -> Floats:
    """D³RB, which doubles the coefficient of an arm when it is too small, or ED²RB (`estimating`), which estimates it."""
    shape, runs = (expectations.shape[1], len(keys)), len(keys)
    pulls, sums, indices, values = np.zeros(shape), np.zeros(shape), np.full(shape, np.inf), np.full(shape, d_min)
    radii = np.zeros(shape)
    arms, rewards, regrets = np.zeros(runs, np.int64), np.zeros(runs), np.zeros(runs)
    recorded, passed = np.zeros((runs, len(checkpoints))), 0
    for tau in range(1, len(expectations) + 1):
        take_largest(indices, arms)
        play(tau, expectations, keys, arms, rewards, regrets)
        count(arms, rewards, pulls, sums)
        for run in range(runs):
            arm = arms[run]
            n = pulls[arm, run]
            radii[arm, run] = radius(c, len(pulls), delta, n)
            upper, lower = sums[arm, run] / n + radii[arm, run], -math.inf
            for k in range(len(pulls)):
                if pulls[k, run] > 0.0:
                    lower = max(lower, sums[k, run] / pulls[k, run] - radii[k, run])
            root, value = math.sqrt(n), values[arm, run]
            if estimating:
                value = min(max(max(d_min, root * (lower - upper)) * root, value), 2.0 * value)
                indices[arm, run] = -value
            else:
                value = 2.0 * value if upper + value / root < lower else value
                indices[arm, run] = -(value * root)
            values[arm, run] = value
        passed = record(tau, checkpoints, passed, regrets, recorded)
    return recorded
