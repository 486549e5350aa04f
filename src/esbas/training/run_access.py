"""All that `esbas.training` uses of the loop inside an `esbas.Run`, in one place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import esbas
from esbas.learner import Learner, Policy
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


def play(env: Any, policy: Policy, *, rng: np.random.Generator, seed: int, max_steps: int) -> esbas.Trajectory:
    """Play one episode, after calling the optional `start()` of the policy."""
    getattr(policy, "start", lambda: None)()
    return esbas.play(env, policy, rng=rng, seed=seed, max_steps=max_steps)


def close(run: esbas.Run) -> None:
    """Close the environment and the processes of isolated learners."""
    parts: list[Any] = [*run.loop.roster.learners, run.loop.env]
    for part in parts:
        getattr(part, "close", lambda: None)()
