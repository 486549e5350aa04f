"""Excerpts: copies of the parts of a replay memory that one update of a network needs."""

from typing import Any, NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas.learners.dqn.replay.memory import SharedReplay


class StepColumns(NamedTuple):
    """B steps, each with the n - 1 steps after it: (B * n,) each.

    `formulas.py` reads them like a replay memory.
    """

    actions: Array
    rewards: Array
    terminated: Array
    log_probs: Array
    tails: Array  # >= 0 where a segment ends; what follows in the same block of n is never read
    visits: Array  # of the next observation; meaningless if visits are not counted
    codes: Array  # 0, 1, ...: the index in `visits`


class Excerpt(NamedTuple):
    """What one update needs."""

    steps: StepColumns
    observations: Array  # (B, *observation)
    # (B * F, *observation): next observations. F is n for corrected returns, which may stop at
    # every step, otherwise 1.
    following: Array


def layouts(
    batch_size: int, n_steps: int, corrected: bool, shape: tuple[int, ...], dtype: Any
) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Return the shapes and types of the arrays of an excerpt, in order."""
    steps = (batch_size * n_steps,)
    stops = n_steps if corrected else 1
    return {
        "actions": (steps, np.int64),
        "rewards": (steps, np.float32),
        "terminated": (steps, np.bool_),
        "log_probs": (steps, np.float32),
        "tails": (steps, np.int32),
        "visits": (steps, np.int64),
        "observations": ((batch_size, *shape), dtype),
        "following": ((batch_size * stops, *shape), dtype),
    }


def excerpt_of(arrays: dict[str, Array]) -> Excerpt:
    """Return the excerpt that consists of the arrays of `layouts`."""
    steps = StepColumns(
        actions=arrays["actions"],
        rewards=arrays["rewards"],
        terminated=arrays["terminated"],
        log_probs=arrays["log_probs"],
        tails=arrays["tails"],
        visits=arrays["visits"],
        codes=np.arange(len(arrays["visits"]), dtype=np.int32),
    )
    return Excerpt(steps, arrays["observations"], arrays["following"])


def fill(excerpt: Excerpt, replay: SharedReplay, rows: Array, n_steps: int) -> None:
    """Copy the steps in these rows, (B,), and those that follow them."""
    memory = replay.arrays()
    ahead = (rows[:, None] + np.arange(n_steps)) % len(memory.rewards)  # (B, n)
    steps = excerpt.steps
    for name in ("actions", "rewards", "terminated", "log_probs", "tails"):
        np.take(getattr(memory, name), ahead.ravel(), out=getattr(steps, name), mode="clip")
    if len(memory.codes) == len(memory.rewards):  # visits are counted
        np.take(memory.visits, memory.codes[ahead.ravel()], out=steps.visits, mode="clip")
    excerpt.observations[:] = replay.observations(rows)
    if len(excerpt.following) > len(rows):  # corrected returns
        excerpt.following[:] = replay.next_observations(ahead.ravel())
        return
    over = memory.tails[ahead] >= 0  # (B, n)
    over[:, -1] = True
    last = ahead[np.arange(len(rows)), over.argmax(axis=1)]  # (B,): where each return ends
    known = excerpt.observations if n_steps == 1 else None
    excerpt.following[:] = replay.next_observations(last, known)


def following_at(excerpt: Excerpt, at: Array) -> Array:
    """Return the next observations of these steps, given as positions in the columns."""
    batch_size = len(excerpt.observations)
    if len(excerpt.following) > batch_size:  # there is one for each step
        return np.asarray(excerpt.following[at])
    n_steps = len(excerpt.steps.rewards) // batch_size
    return np.asarray(excerpt.following[at // n_steps])
