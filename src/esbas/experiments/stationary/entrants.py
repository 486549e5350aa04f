"""Who takes part, and one block of runs of one of them."""

import inspect
from functools import partial

import numpy as np
from numpy.typing import NDArray

from esbas import seeding
from esbas.bandits import BANDITS, UCB1, BanditFactory

BLOCK = 20
"""Runs in a part: what Ctrl-C loses at most, for each job."""
ENTRANTS: dict[str, BanditFactory] = {name: BANDITS.find(name) for name in BANDITS} | {"ucb1-auer": partial(UCB1, xi=2.0)}


def label(name: str) -> str:
    """How the bandit is called in tables."""
    named = {"ucb1": "UCB1 (ξ = 1/4)", "ucb1-auer": "UCB1 (ξ = 2)"}
    return named[name] if name in named else str(getattr(ENTRANTS[name], "__name__", name))


def factory(name: str, rounds: int) -> BanditFactory:
    """The bandit with its defaults; one that takes a horizon is told it."""
    takes_horizon = "horizon" in inspect.signature(ENTRANTS[name]).parameters
    return partial(ENTRANTS[name], horizon=rounds) if takes_horizon else ENTRANTS[name]


def one_run(name: str, *, means: tuple[float, ...], rounds: int, seed: int, run: int) -> float:
    """The pseudo-regret of a run: by how much the expectations of the arms pulled fall short of the best, in all.

    The rewards of a run are the same for all bandits: reward t of an arm does not depend on who pulls it.
    """
    draws = seeding.generator(seed, "stationary", "rewards", run).random((rounds, len(means)))
    rewards = (draws < means).astype(np.float64).tolist()  # (T, K)
    bandit = factory(name, rounds)(len(means), rng=seeding.generator(seed, "stationary", name, run))
    pulls = [0] * len(means)
    for row in rewards:
        arm = bandit.choose()
        bandit.update(arm, row[arm])
        pulls[arm] += 1
    return sum(count * (max(means) - mean) for count, mean in zip(pulls, means, strict=True))


def block(
    name: str, *, means: tuple[float, ...], rounds: int, seed: int, first: int, last: int
) -> dict[str, NDArray[np.float64]]:
    """The regrets of the runs first, ..., last - 1."""
    regrets = [one_run(name, means=means, rounds=rounds, seed=seed, run=run) for run in range(first, last)]
    return {"regrets": np.array(regrets)}
