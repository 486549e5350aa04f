"""Checks the contract of an objective."""

from typing import Any

import numpy as np

from esbas import seeding
from esbas.learner import RandomPolicy
from esbas.objective import Objective, as_objective
from esbas.runner import play
from esbas.testing.contract import check_rules, expect
from esbas.trajectory import Trajectory


def check_objective(objective: Any, env: Any, *, seed: int = 0, episodes: int = 6, max_steps: int = 100_000) -> None:
    """Raise a ContractError unless the objective keeps the contract of `esbas.Objective` in this environment.

    The rules: it has a name; it gives every trajectory a finite number, the same each time; it does not change the trajectory.

    Args:
        objective: an `esbas.Objective`, or any function of a trajectory.
        env: any Gymnasium-style environment.
        seed: seed of the episodes.
        episodes: how many are played with random actions.
        max_steps: an episode that takes longer is an error.
    """
    checked, trajectories = as_objective(objective), []
    for number in range(episodes):
        rng, env_seed = seeding.episode(seed, number)
        trajectories.append(play(env, RandomPolicy(env.action_space), rng=rng, seed=env_seed, max_steps=max_steps))
    check_rules(f"objective {checked.name!r}", _RULES, (checked, trajectories))


def _has_a_name(case: tuple[Objective, list[Trajectory]]) -> None:
    """An objective has a name and says whether large values are good."""
    objective, _ = case
    expect(isinstance(objective.name, str) and objective.name != "", f"its name is {objective.name!r}")
    expect(isinstance(objective.maximize, bool), f"maximize is {objective.maximize!r}")


def _gives_numbers(case: tuple[Objective, list[Trajectory]]) -> None:
    """The value of a trajectory is finite, the same each time, and leaves the trajectory as it is."""
    objective, trajectories = case
    for trajectory in trajectories:
        before = [np.array(column) for column in (trajectory.observations, trajectory.actions, trajectory.rewards)]
        values = [objective(trajectory) for _ in range(2)]
        expect(values[0] == values[1], f"the value of one trajectory was {values[0]}, then {values[1]}")
        after = trajectory.observations, trajectory.actions, trajectory.rewards
        expect(all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "it changed the trajectory")


_RULES = _has_a_name, _gives_numbers
