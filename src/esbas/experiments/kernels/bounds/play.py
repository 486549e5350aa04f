"""The parts that all runs on synthetic learners share.

Runs execute in lockstep, so inner loops are over runs. An array with a row per arm and a column per
run is (K, R). Meta-time τ of a run draws two words of its stream under every meta-algorithm: one
for the reward, one for a bandit that chooses at random. So differences between meta-algorithms are
due to their choices alone.

Each whole run is a function of expectations, (T, K), the keys of the runs, (R,), and increasing
checkpoints, (C,) from 1 to T. It returns the short-sighted regret at each checkpoint, (R, C).
"""

import math

import numpy as np
from numpy.typing import NDArray

from esbas._internal.compiling import compiled
from esbas.experiments.kernels.counter import uniform

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Keys = NDArray[np.uint64]


@compiled
def play(
    tau: int, expectations: Floats, keys: Keys, arms: Integers, rewards: Floats, regrets: Floats
) -> None:
    """Draw the rewards (0 or 1) of the chosen arms, and add the short-sighted regrets.

    `arms`, `rewards` and `regrets` are (R,).
    """
    row = expectations[tau - 1]
    best = row.max()
    for run in range(len(arms)):
        mean = row[arms[run]]
        rewards[run] = 1.0 if uniform(keys[run], 2 * tau) < mean else 0.0
        regrets[run] += best - mean


@compiled
def draw(tau: int, keys: Keys, chances: Floats, arms: Integers) -> None:
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
def take_largest(indices: Floats, arms: Integers) -> None:
    """Write the arm with the largest index, (K, R), for each run; the first one of equals."""
    for run in range(len(arms)):
        arms[run] = 0
    for arm in range(1, len(indices)):
        for run in range(len(arms)):
            # An assignment for every run, so that the loop is vectorized.
            arms[run] = arm if indices[arm, run] > indices[arms[run], run] else arms[run]


@compiled
def count(arms: Integers, rewards: Floats, pulls: Floats, sums: Floats) -> None:
    """Add a round to the counts and sums of rewards, (K, R)."""
    for arm in range(len(pulls)):
        for run in range(len(arms)):
            chosen = 1.0 if arms[run] == arm else 0.0
            pulls[arm, run] += chosen
            sums[arm, run] += chosen * rewards[run]


@compiled
def mean_or_first(total: float, pulls: float) -> float:
    """Return the mean reward, or infinity for an arm without a pull, so that it is chosen first."""
    return total / pulls if pulls > 0.0 else math.inf


@compiled
def record(tau: int, checkpoints: Integers, passed: int, regrets: Floats, recorded: Floats) -> int:
    """Record the regrets if `tau` is a checkpoint, and return the number of checkpoints passed."""
    if passed < len(checkpoints) and tau == checkpoints[passed]:
        recorded[:, passed] = regrets
        return passed + 1
    return passed
