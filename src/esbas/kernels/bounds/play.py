"""What all runs on synthetic learners share. Runs go in lockstep, one step of each at every meta-time: so loops are over runs.

An array with a row per arm and a column per run is (K, R). Meta-time τ of a run draws two words of its stream, whoever plays: one
for the reward, one for a bandit that chooses at random. So differences between meta-algorithms are differences of their choices.
Each whole run is a function of expectations, (T, K), the runs' keys, (R,), and increasing checkpoints, (C,) within 1 .. T, and
returns the short-sighted regret up to each checkpoint, (R, C).
"""

import math

import numpy as np
from numpy.typing import NDArray

from esbas.compiling import compiled
from esbas.kernels.counter import uniform

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Keys = NDArray[np.uint64]


@compiled
def play(tau: int, expectations: Floats, keys: Keys, arms: Whole, rewards: Floats, regrets: Floats) -> None:
    """Draw rewards, (R,), 0 or 1, of the chosen arms, (R,), and add up the short-sighted regret, (R,)."""
    row = expectations[tau - 1]
    best = row.max()
    for run in range(len(arms)):
        mean = row[arms[run]]
        rewards[run] = 1.0 if uniform(keys[run], 2 * tau) < mean else 0.0
        regrets[run] += best - mean


@compiled
def draw(tau: int, keys: Keys, chances: Floats, arms: Whole) -> None:
    """Draw an arm with the given probabilities, (K, R), for each run."""
    last = len(chances) - 1
    for run in range(len(arms)):
        point = uniform(keys[run], 2 * tau + 1)
        arm = 0
        while True:
            point -= chances[arm, run]
            if point < 0.0 or arm == last:
                break
            arm += 1
        arms[run] = arm


@compiled
def take_largest(indices: Floats, arms: Whole) -> None:
    """The arm with the largest index, (K, R), the first of equals, for each run."""
    for run in range(len(arms)):
        arms[run] = 0
    for arm in range(1, len(indices)):
        for run in range(len(arms)):
            arms[run] = arm if indices[arm, run] > indices[arms[run], run] else arms[run]


@compiled
def count(arms: Whole, rewards: Floats, pulls: Floats, sums: Floats) -> None:
    """Add a round to the counts and sums of rewards, (K, R)."""
    for arm in range(len(pulls)):
        for run in range(len(arms)):
            chosen = 1.0 if arms[run] == arm else 0.0
            pulls[arm, run] += chosen
            sums[arm, run] += chosen * rewards[run]


@compiled
def mean_or_first(total: float, pulls: float) -> float:
    """The mean reward; infinite for an arm without a pull, so that it goes first."""
    return total / pulls if pulls > 0.0 else math.inf


@compiled
def tell(tau: int, checkpoints: Whole, passed: int, regrets: Floats, told: Floats) -> int:
    """At a checkpoint, keep the regrets; returns how many checkpoints are passed."""
    if passed < len(checkpoints) and tau == checkpoints[passed]:
        told[:, passed] = regrets
        return passed + 1
    return passed
