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
    """The pseudo-regret of a run: the expected reward of the best arm minus that of the pulled arms, summed over rounds.

    All bandits see the same rewards in a run: reward t of an arm does not depend on the bandit.
    """
    draws = seeding.generator(seed, "stationary", "rewards", run).random((arms.rounds, len(arms.means)))
    rewards = (draws < arms.means).astype(np.float64).tolist()  # (T, K)
    bandit = factory(name, rounds=arms.rounds)(len(arms.means), rng=seeding.generator(seed, "stationary", name, run))
    pulls = [0] * len(arms.means)
    for row in rewards:
        arm = bandit.choose()
        bandit.update(arm, row[arm])
        pulls[arm] += 1
    return sum(count * (max(arms.means) - mean) for count, mean in zip(pulls, arms.means, strict=True))


def block(name: str, arms: Arms, *, seed: int, first: int, last: int) -> dict[str, NDArray[np.float64]]:
    """The regrets of the runs first, ..., last - 1."""
    return {"regrets": np.array([one_run(name, arms, seed=seed, run=run) for run in range(first, last)])}


def run_sweep(options: SweepOptions, results: Results, arms: Arms) -> dict[str, Estimate]:
    """The regret of every bandit by name, the smallest first."""
    firsts = range(0, options.runs, BLOCK)
    finished = options.run_parts(
        results,
        {
            f"{name}-{first}": partial(block, name, arms, seed=options.seed, first=first, last=min(first + BLOCK, options.runs))
            for name in COMPARED
            for first in firsts
        },
        description="stationary arms",
        processes=True,
    )
    regrets = {name: estimate(np.concatenate([finished[f"{name}-{first}"]["regrets"] for first in firsts])) for name in COMPARED}
    return dict(sorted(regrets.items(), key=lambda item: item[1].mean))
