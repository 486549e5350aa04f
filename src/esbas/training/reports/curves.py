"""Values and shares of control over the steps of a run."""

from collections.abc import Sequence

import numpy as np

from esbas.columns import Array
from esbas.objective import Objective
from esbas.training.runs.episode_log import Episodes

WINDOW = 50  # episodes
POINTS = 200
LATE = 0.25  # share of episodes that count as the end of a run


def enough(run: Episodes) -> int:
    """The number of episodes from which on a mean can reach a threshold: the window, or half of the episodes of a short run."""
    return min(WINDOW, (len(run) + 1) // 2)


def late(episodes: int) -> int:
    """The number of episodes that count as the end of a run."""
    return max(1, round(LATE * episodes))


def grid(runs: Sequence[Episodes], *, settled: bool = False) -> Array:
    """Steps, (X,), from where all runs have an episode, or enough of them if `settled`, to the end of the shortest run."""
    first = max(int(run.steps[enough(run) - 1 if settled else 0]) for run in runs)
    last = min(int(run.steps[-1]) for run in runs)
    return np.unique(np.linspace(min(first, last), last, POINTS).astype(np.int64))


def window_text(runs: Sequence[Episodes]) -> str:
    """The episodes that `last_mean` averages: "the last 50 episodes", or how many there are in shorter runs."""
    least, most = (min(WINDOW, f(map(len, runs))) for f in (min, max))
    if least == WINDOW:
        return f"the last {WINDOW} episodes"
    if least == most:
        return "the only episode" if most == 1 else f"all {most} episodes"
    return f"the last {least} to {most} episodes"


def moving_text(runs: Sequence[Episodes]) -> str:
    """The episodes that each point of a curve averages."""
    return f"last {WINDOW} episodes" if max(map(len, runs)) > WINDOW else "episodes so far"


def values(run: Episodes, at: Array, *, window: int = WINDOW) -> Array:
    """The mean value of the last episodes up to each of the steps, (X,)."""
    return np.asarray(_moving_mean(run.values[None], run, at, window)[0])


def shares(run: Episodes, names: Sequence[str], at: Array, *, window: int = WINDOW) -> Array:
    """The share of control of each learner in the last episodes up to each of the steps, (K, X)."""
    control = (run.learners[None] == np.array(names)[:, None]).astype(np.float64)  # (K, N)
    return _moving_mean(control, run, at, window)


def last_mean(run: Episodes, *, window: int = WINDOW) -> float:
    """The mean value of the last episodes of the run."""
    return float(run.values[-window:].mean())


def leader(run: Episodes, objective: Objective) -> str:
    """The learner that controlled most episodes at the end of the run; among several, the one with the best mean there."""
    ends = slice(len(run) - late(len(run)), len(run))
    learners, values = run.learners[ends], run.values[ends]
    own = {str(name): values[learners == name] for name in np.unique(learners)}
    return max(own, key=lambda name: (len(own[name]), objective.score(float(own[name].mean()))))


def _moving_mean(rows: Array, run: Episodes, at: Array, window: int) -> Array:
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)  # (K, N + 1)
    end = np.maximum(np.searchsorted(run.steps, at, side="right"), 1)
    start = np.maximum(end - window, 0)
    return np.asarray((sums[:, end] - sums[:, start]) / (end - start))
