"""Excerpts: copies of the parts of a replay memory that one update of a network needs, in arrays that never move."""

from typing import Any, NamedTuple

import numpy as np

from esbas.columns import Array
from esbas.learners.deep.replay import SharedReplay


class StepColumns(NamedTuple):
    """The steps that follow each of B steps, n per step: (B * n,) each. `formulas.py` reads them like a replay memory."""

    actions: Array
    rewards: Array
    terminated: Array
    log_probs: Array
    tails: Array  # >= 0 where a segment ends; what follows in the same block of n is never read


class Excerpt(NamedTuple):
    """What one update needs."""

    steps: StepColumns
    observations: Array  # (B, *observation)
    following: Array  # (B * F, *observation): next observations; F is n for corrected returns, which may stop at every step, or 1


def layouts(
    batch: int, n_step: int, corrected: bool, shape: tuple[int, ...], dtype: Any
) -> dict[str, tuple[tuple[int, ...], Any]]:
    """The shapes and types of the arrays of an excerpt, in order."""
    count, stops = batch * n_step, n_step if corrected else 1
    columns = {"actions": np.int64, "rewards": np.float32, "terminated": np.bool_, "log_probs": np.float32, "tails": np.int32}
    return {name: ((count,), kind) for name, kind in columns.items()} | {
        "observations": ((batch, *shape), dtype),
        "following": ((batch * stops, *shape), dtype),
    }


def excerpt_of(arrays: dict[str, Array]) -> Excerpt:
    """The excerpt that consists of the arrays of `layouts`."""
    steps = StepColumns(*(arrays[name] for name in StepColumns._fields))
    return Excerpt(steps, arrays["observations"], arrays["following"])


def fill(excerpt: Excerpt, replay: SharedReplay, rows: Array, n_step: int) -> None:
    """Copy the steps in these rows, (B,), and those that follow them."""
    memory = replay.arrays()
    ahead = (rows[:, None] + np.arange(n_step)) % len(memory.rewards)  # (B, n)
    for name, column in excerpt.steps._asdict().items():
        np.take(getattr(memory, name), ahead.ravel(), out=column, mode="clip")
    excerpt.observations[:] = replay.observations(rows)
    if len(excerpt.following) > len(rows):
        excerpt.following[:] = replay.next_observations(ahead.ravel())
        return
    over = memory.tails[ahead] >= 0
    over[:, -1] = True
    last = ahead[np.arange(len(rows)), over.argmax(axis=1)]  # where an uncorrected return ends
    known = excerpt.observations if n_step == 1 else None
    excerpt.following[:] = replay.next_observations(last, known)


def following_at(excerpt: Excerpt, at: Array) -> Array:
    """The next observations of these steps, given as positions in the columns."""
    stops = len(excerpt.following) // len(excerpt.observations)
    places = at if stops > 1 else at // (len(excerpt.steps.rewards) // len(excerpt.observations))
    return np.asarray(excerpt.following[places])
