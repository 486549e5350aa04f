"""Values and shares of control over the steps of a run."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas.objective import Objective
from esbas.training import recent
from esbas.training.recent import Windows
from esbas.training.runs.episode_log import Episodes

POINTS = 200
BINS = 20
"""Parts of the steps over which the values of single learners are averaged."""


def enough(run: Episodes, least: int = recent.SETTLED) -> int:
    """Return `least`, or half of the episodes of a shorter run: where it begins to count.

    By default, it is the number of episodes from which on a mean can reach a threshold.
    """
    return min(least, (len(run) + 1) // 2)


def grid(runs: Sequence[Episodes], *, least: int = 1) -> Array:
    """Return steps, (X,), up to the end of the shortest run.

    They begin where all runs have `least` episodes, or half of their episodes if they are short.
    `recent.LEAST` episodes are a full window.
    """
    first = max(int(run.steps[enough(run, least) - 1]) for run in runs)
    last = min(int(run.steps[-1]) for run in runs)
    return steps_between(min(first, last), last)


def steps_between(first: int, last: int) -> Array:
    """Return at most POINTS steps at equal distances, (X,)."""
    return np.unique(np.linspace(first, last, POINTS).astype(np.int64))


def window_text(runs: Sequence[Episodes]) -> str:
    """Describe the episodes that `last_mean` averages: "the recent episodes (the last ...)".

    If runs are so short that these are all of their episodes, it says so.
    """
    counts = {len(run) for run in runs}
    most = max(counts)
    if most > recent.LEAST:
        return f"the recent episodes ({recent.RULE})"
    if len(counts) > 1:
        return "all episodes"
    return "the only episode" if most == 1 else f"all {most} episodes"


def window_name(runs: Sequence[Episodes]) -> str:
    """Name the same episodes in a few words, for the header of a column: "recent episodes"."""
    return window_text(runs).removeprefix("the ").partition(" (")[0]


def moving_text(runs: Sequence[Episodes]) -> str:
    """Describe the episodes that each point of a curve averages."""
    if max(len(run) for run in runs) <= recent.LEAST:
        return "episodes so far"
    return "recent episodes (the last tenth of the steps)"


def moving_rule(runs: Sequence[Episodes]) -> str:
    """Define the same episodes exactly, for a caption."""
    name = moving_name(runs)
    return f"{name} ({recent.RULE})" if name == "recent episodes" else name


def moving_name(runs: Sequence[Episodes]) -> str:
    """Name the same episodes in a few words, for an axis: "recent episodes"."""
    return moving_text(runs).partition(" (")[0]


def values(run: Episodes, at: Array, *, window: int | None = None) -> Array:
    """Return the mean value of the recent episodes up to each of the steps, (X,).

    Args:
        run: with N episodes.
        at: environment steps, (X,).
        window: a fixed number of last episodes instead of the recent ones.
    """
    means = _moving_mean(run.values[None], run, at, window)  # (1, X)
    return np.asarray(means[0])


def shares(run: Episodes, names: Sequence[str], at: Array, *, window: int | None = None) -> Array:
    """Return each learner's share of the recent episodes up to each of the steps, (K, X).

    Args:
        run: with N episodes.
        names: of the K learners.
        at: environment steps, (X,).
        window: a fixed number of last episodes instead of the recent ones.
    """
    control = (run.learners[None] == np.array(names)[:, None]).astype(np.float64)  # (K, N)
    return _moving_mean(control, run, at, window)


def last_mean(run: Episodes, *, window: int | None = None) -> float:
    """Return the mean value of the recent episodes at the end, or of the last `window` episodes."""
    if window is not None:
        return float(run.values[-window:].mean())
    weights = recent.recent_weights(run.steps)
    return float(np.average(run.values[-len(weights) :], weights=weights))


def leader(run: Episodes, objective: Objective) -> str:
    """Return the learner that controlled most of the recent episodes.

    Among several, it is the one with the best mean there.
    """
    weights = recent.recent_weights(run.steps)
    learners = run.learners[-len(weights) :]
    values = run.values[-len(weights) :]
    ranks: dict[str, tuple[float, float]] = {}
    for name in np.unique(learners):
        own = learners == name
        mean = float(np.average(values[own], weights=weights[own]))
        ranks[str(name)] = (float(weights[own].sum()), objective.score(mean))
    return max(ranks, key=ranks.__getitem__)


class OwnValues(NamedTuple):
    """Mean values of the episodes that a learner controlled."""

    steps: Array  # (B,): the mean step at which the episodes of each mean ended
    means: Array  # (B,)


def own_values(runs: Sequence[Episodes], name: str) -> OwnValues:
    """Return mean values of the episodes that a learner controlled, in all runs, over the steps.

    Each mean is over a part of the steps, one of BINS or more of them: a learner that is rarely in
    control gets fewer means, each of `recent.LEAST` episodes, because single ones say little.
    """
    steps = np.concatenate([run.steps[run.learners == name] for run in runs])
    values = np.concatenate([run.values[run.learners == name] for run in runs])
    order = np.argsort(steps, kind="stable")
    width = max(int(run.steps[-1]) for run in runs) / BINS
    groups: list[list[int]] = []
    for index in order.tolist():
        is_full = bool(groups) and len(groups[-1]) >= recent.LEAST
        if not groups or (is_full and steps[index] - steps[groups[-1][0]] > width):
            groups.append([])
        groups[-1].append(index)
    if len(groups) > 1 and len(groups[-1]) < recent.LEAST:
        rest = groups.pop()
        groups[-1] += rest
    mean_steps = np.array([steps[group].mean() for group in groups])
    mean_values = np.array([values[group].mean() for group in groups])
    return OwnValues(mean_steps, mean_values)


def _moving_mean(rows: Array, run: Episodes, at: Array, window: int | None) -> Array:
    """Return the means of rows, (K, N), over the window that ends at each of the steps, (K, X)."""
    zeros = np.zeros((len(rows), 1))
    sums = np.concatenate([zeros, np.cumsum(rows, axis=1)], axis=1)  # (K, N + 1)
    played = np.searchsorted(run.steps, at, side="right")  # (X,): episodes up to each of the steps
    windows = _windows(run, np.maximum(played, 1), window)
    after_first = sums[:, windows.last + 1] - sums[:, windows.first + 1]
    return np.asarray((after_first + windows.part * rows[:, windows.first]) / windows.weight)


def _windows(run: Episodes, counts: Array, window: int | None) -> Windows:
    """Return the window after each number of episodes."""
    if window is None:
        return recent.recent_windows(run.steps, counts)
    return Windows(np.maximum(counts - window, 0), np.ones(len(counts)), counts - 1)
