"""Rounds for the check of bandits, and expectations about a bandit that has played them."""

import json
from typing import Any

import numpy as np

from esbas import seeding
from esbas.bandits import Bandit
from esbas.testing.contract import expect


def play(bandit: Bandit, rounds: int) -> list[int]:
    """Play rounds, several in flight at a time, some of them withdrawn. Return the chosen arms.

    Arms with higher numbers have higher rewards.
    """
    rng = seeding.generator(rounds, "rewards")
    chosen = []
    flying = []
    for _ in range(rounds):
        arm = int(bandit.choose())
        ticket = bandit.pull(arm, probability=bandit.propensity(arm))
        chosen.append(arm)
        flying.append((arm, ticket))
        while flying and rng.random() < 0.6:
            arm, ticket = flying.pop(int(rng.integers(len(flying))))
            if rng.random() < 0.1:
                bandit.withdraw(ticket)
            else:
                bandit.update(arm, rng.random() ** (1 / (arm + 1)), pull=ticket)
    for arm, ticket in flying:
        bandit.update(arm, float(rng.integers(2)), pull=ticket)
    return chosen


def state_text(bandit: Bandit) -> str:
    """Return the state as JSON without NaN and infinities, to compare it."""
    return json.dumps(bandit.state_dict(), allow_nan=False)


def same(one: Any, other: Any) -> bool:
    """Return whether two arrays are equal up to rounding."""
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def expect_empty(bandit: Bandit, arms: Any, which: str) -> None:
    """Expect no pulls and no means of these arms."""
    counts = bandit.counts[list(arms)]
    means = bandit.means[list(arms)]
    expect(
        not counts.any() and bool(np.isnan(means).all()),
        f"{which} has counts {counts} and means {means}",
    )


def expect_shapes(bandit: Bandit) -> None:
    """Expect one valid entry per arm in counts, means and indices."""
    counts = bandit.counts
    means = bandit.means
    indices = bandit.indices()
    for name, column in (("counts", counts), ("means", means), ("indices", indices)):
        shape = np.shape(column)
        right = isinstance(column, np.ndarray) and shape == (bandit.n_arms,)
        expect(right, f"{name} has shape {shape} with {bandit.n_arms} arms")
    expect(bool(np.isfinite(counts).all() and (counts >= 0).all()), f"counts are {counts}")
    known = means[~np.isnan(means)]
    expect(
        bool(((known >= -1e-9) & (known <= 1 + 1e-9)).all()),
        f"means are {means} with all rewards in [0, 1]",
    )
    expect(not np.isnan(indices).any(), f"indices are {indices}")
