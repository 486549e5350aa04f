"""Rounds for the check of bandits, and expectations about a bandit that has played them."""

import json
from typing import Any

import numpy as np

from esbas import seeding
from esbas.bandits import Bandit
from esbas.testing.contract import expect


def play(bandit: Bandit, rounds: int) -> list[int]:
    """Play rounds, several in flight at a time, some of them withdrawn; return the chosen arms. Higher numbers are better."""
    rng = seeding.generator(rounds, "rewards")
    chosen, flying = [], []
    for _ in range(rounds):
        chosen.append(int(bandit.choose()))
        flying.append((chosen[-1], bandit.pull(chosen[-1], probability=bandit.propensity(chosen[-1]))))
        while flying and rng.random() < 0.6:
            arm, ticket = flying.pop(int(rng.integers(len(flying))))
            if rng.random() < 0.1:
                bandit.withdraw(ticket)
            else:
                bandit.spend(arm, 1.0 + arm)
                bandit.update(arm, rng.random() ** (1 / (arm + 1)), pull=ticket)
    for arm, ticket in flying:
        bandit.update(arm, float(rng.integers(2)), pull=ticket)
    return chosen


def state_text(bandit: Bandit) -> str:
    """The state as JSON without NaN and infinities, to compare it."""
    return json.dumps(bandit.state_dict(), allow_nan=False)


def same(one: Any, other: Any) -> bool:
    """Whether two arrays are equal up to rounding."""
    return bool(np.allclose(one, other, rtol=1e-9, atol=1e-12, equal_nan=True))


def expect_empty(bandit: Bandit, arms: Any, which: str) -> None:
    """Expect no pulls and no means of these arms."""
    counts, means = bandit.counts[list(arms)], bandit.means[list(arms)]
    expect(not counts.any() and bool(np.isnan(means).all()), f"{which} has counts {counts} and means {means}")


def expect_shapes(bandit: Bandit) -> None:
    """Counts, means and indices have one valid entry per arm."""
    columns = {"counts": bandit.counts, "means": bandit.means, "indices": bandit.indices()}
    for name, column in columns.items():
        shape = np.shape(column)
        right = isinstance(column, np.ndarray) and shape == (bandit.n_arms,)
        expect(right, f"{name} has shape {shape} with {bandit.n_arms} arms")
    counts, means, indices = columns.values()
    expect(bool(np.isfinite(counts).all() and (counts >= 0).all()), f"counts are {counts}")
    known = means[~np.isnan(means)]
    expect(bool(((known >= -1e-9) & (known <= 1 + 1e-9)).all()), f"means are {means} with all rewards in [0, 1]")
    expect(not np.isnan(indices).any(), f"indices are {indices}")
