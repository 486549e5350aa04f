"""Checks the contract of an objective."""

import copy
from typing import Any

import numpy as np

from esbas import seeding
from esbas.learner import RandomPolicy
from esbas.loop import play
from esbas.objective import Objective, as_objective
from esbas.testing.contract import check_rules, expect
from esbas.trajectory import Trajectory


def check_objective(
    objective: Any, env: Any, *, seed: int = 0, episodes: int = 6, max_episode_steps: int = 100_000
) -> None:
    """Raise a ContractError unless the objective keeps the contract of `esbas.Objective`.

    The rules: it has a name; it gives every trajectory a finite number, the same each time, and so
    do its details; it does not change the trajectory, and uses only those infos that it declares.

    Args:
        objective: an `esbas.Objective`, or any function of a trajectory.
        env: any Gymnasium-style environment.
        seed: seed of the episodes.
        episodes: how many are played with random actions.
        max_episode_steps: an episode that takes longer is an error.
    """
    checked = as_objective(objective)
    policy = RandomPolicy(env.action_space)
    trajectories = []
    for number in range(episodes):
        rng, env_seed = seeding.episode(seed, number)
        trajectory = play(
            env,
            policy,
            rng=rng,
            seed=env_seed,
            max_episode_steps=max_episode_steps,
            infos=checked.infos,
        )
        trajectories.append(trajectory)
    check_rules(f"Objective {checked.name!r}", _RULES, (checked, trajectories))


def _has_a_name(case: tuple[Objective, list[Trajectory]]) -> None:
    """An objective has a name, and `maximize` is true or false."""
    objective, _ = case
    expect(
        isinstance(objective.name, str) and objective.name != "", f"its name is {objective.name!r}"
    )
    expect(isinstance(objective.maximize, bool), f"maximize is {objective.maximize!r}")


def _gives_numbers(case: tuple[Objective, list[Trajectory]]) -> None:
    """The value of a trajectory is finite, the same each time, and does not change it."""
    objective, trajectories = case
    for trajectory in trajectories:
        before = copy.deepcopy(trajectory)
        first = objective(trajectory)
        second = objective(trajectory)
        expect(first == second, f"the value of one trajectory was {first}, then {second}")
        for detail in objective.details:
            detail(trajectory)
        for name in ("observations", "actions", "rewards"):
            same = np.array_equal(getattr(before, name), getattr(trajectory, name))
            expect(same, "it changed the trajectory")
        for key, column in before.infos.items():
            same = np.array_equal(column, trajectory.infos[key], equal_nan=True)
            expect(same, "it changed the trajectory")


_RULES = (_has_a_name, _gives_numbers)
