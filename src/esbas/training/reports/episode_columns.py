"""All episodes of a training as columns."""

from collections.abc import Mapping

import numpy as np

from esbas._internal.columns import Array
from esbas.reporting.columns import Columns
from esbas.training.runs.episode_log import Episodes


def episode_columns(runs: Mapping[int, Episodes]) -> Columns:
    """Return the episodes of all runs, one after the other.

    The columns are run (the seed), number (of the episode in its run, from 1), learner (in
    control), value, length, steps (environment steps of the run after the episode), epoch,
    terminated and truncated.

    Args:
        runs: the episodes of each run, by seed.
    """
    seeds = [np.full(len(run), seed, np.int64) for seed, run in runs.items()]
    numbers = [np.arange(1, len(run) + 1) for run in runs.values()]
    return Columns(
        {
            "run": _joined(seeds, np.int64),
            "number": _joined(numbers, np.int64),
            "learner": _joined([run.learners for run in runs.values()], np.str_),
            "value": _joined([run.values for run in runs.values()], np.float64),
            "length": _joined([run.lengths for run in runs.values()], np.int64),
            "steps": _joined([run.steps for run in runs.values()], np.int64),
            "epoch": _joined([run.epochs for run in runs.values()], np.int64),
            "terminated": _joined([run.terminated for run in runs.values()], np.bool_),
            "truncated": _joined([run.truncated for run in runs.values()], np.bool_),
        }
    )


def _joined(parts: list[Array], kind: type) -> Array:
    """Join the columns of all runs; without any run, there is an empty one."""
    return np.concatenate([np.empty(0, kind), *parts])
