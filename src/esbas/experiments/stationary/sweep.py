"""All runs of every bandit, in blocks that are stored as they finish."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from esbas import seeding
from esbas.experiments.options import SweepOptions
from esbas.experiments.stationary.setup import COMPARED, Arms, factory
from esbas.reporting import Estimate, Results, estimate

BLOCK = 20
"""Runs in a part."""


def one_run(name: str, arms: Arms, *, seed: int, run: int) -> float:
    """Return the pseudo-regret of a run.

    It is the expected reward of the best arm minus that of the pulled arms, summed over rounds. All
    bandits see the same rewards in a run: reward t of an arm does not depend on the bandit.
    """
    n_arms = len(arms.means)
    rng = seeding.generator(seed, "stationary", "rewards", run)
    draws = rng.random((arms.rounds, n_arms))
    rewards = (draws < arms.means).astype(np.float64).tolist()  # (T, K)
    new_bandit = factory(name, rounds=arms.rounds)
    bandit = new_bandit(n_arms, rng=seeding.generator(seed, "stationary", name, run))
    pulls = [0] * n_arms
    for row in rewards:
        arm = bandit.choose()
        bandit.update(arm, row[arm])
        pulls[arm] += 1
    best = max(arms.means)
    return sum(count * (best - mean) for count, mean in zip(pulls, arms.means, strict=True))


def block(
    name: str, arms: Arms, *, seed: int, first: int, last: int
) -> dict[str, NDArray[np.float64]]:
    """Return the regrets of the runs first, ..., last - 1."""
    regrets = [one_run(name, arms, seed=seed, run=run) for run in range(first, last)]
    return {"regrets": np.array(regrets)}


def run_sweep(options: SweepOptions, results: Results, arms: Arms) -> dict[str, Estimate]:
    """Return the regret of every bandit by name, the smallest first."""
    parts = {}
    for name in COMPARED:
        for first in range(0, options.runs, BLOCK):
            last = min(first + BLOCK, options.runs)
            parts[f"{name}-{first}"] = partial(
                block, name, arms, seed=options.seed, first=first, last=last
            )
    finished = options.run_parts(results, parts, description="stationary arms", processes=True)
    regrets = {}
    for name in COMPARED:
        firsts = range(0, options.runs, BLOCK)
        blocks = [finished[f"{name}-{first}"]["regrets"] for first in firsts]
        regrets[name] = estimate(np.concatenate(blocks))
    best_first = sorted(regrets, key=lambda name: regrets[name].mean)
    return {name: regrets[name] for name in best_first}
