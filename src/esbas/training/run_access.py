"""All that a training reads from an `esbas.Run` beyond its public attributes, in one place."""

from collections.abc import Sequence
from typing import Any

import esbas
from esbas.learner import Learner
from esbas.objective import Objective


def steps_done(run: esbas.Run) -> int:
    """Environment steps so far."""
    return run.loop.steps


def step_budget(run: esbas.Run) -> int | None:
    """The budget in environment steps."""
    return run.steps


def episode_budget(run: esbas.Run) -> int | None:
    """The budget in episodes."""
    return run.episodes


def learners_of(run: esbas.Run) -> Sequence[Learner]:
    """The learners, in order."""
    return list(run.loop.roster.learners)


def objective_of(run: esbas.Run) -> Objective:
    """What the run maximises or minimises."""
    return run.loop.objective


def close(run: esbas.Run) -> None:
    """Close the environment and the processes of isolated learners."""
    parts: list[Any] = [*run.loop.roster.learners, run.loop.env]
    for part in parts:
        getattr(part, "close", lambda: None)()
