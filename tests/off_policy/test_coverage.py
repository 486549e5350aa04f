"""How often intervals contain the exact value.

A small version by default, the whole table of docs/evaluation.md if slow.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from benchmarks.coverage import (
    ESTIMATORS,
    TASKS,
    TRAJECTORIES,
    all_terms,
    collect,
    coverage,
    log_weights_of,
    make_env,
)

from esbas import Trajectory
from esbas.off_policy import doubly_robust, importance_sampling, per_decision
from esbas.off_policy.result import estimate_with_interval
from off_policy.tiny import TablePolicy


@pytest.mark.parametrize("adaptive", [False, True], ids=["independent", "adaptive"])
@pytest.mark.parametrize(("name", "share"), [("chain", 0.1), ("random", 0.3)])
def test_some_intervals(name, share, adaptive):
    covered, size = coverage(
        make_env(name, share, seed=2), adaptive, sets=250, trajectories=500, seed=2
    )
    assert size == pytest.approx(share, rel=0.4)
    assert set(covered) == set(ESTIMATORS)
    # 95 % of 250, give or take 4 standard errors
    assert all(0.89 <= each <= 0.995 for each in covered.values()), covered


@pytest.mark.filterwarnings("ignore::esbas.off_policy.FewEffectiveSamplesWarning")
@pytest.mark.parametrize("adaptive", [False, True], ids=["independent", "adaptive"])
def test_simulated_estimates_are_those_of_the_functions(adaptive):
    task = make_env("grid", 0.3, seed=3)
    arms, steps = collect(task, np.random.default_rng(3), adaptive, (2, 90))
    for data_set in range(2):
        logged = [
            _trajectory(
                task,
                arms[data_set, i],
                [[column[data_set, i] for column in step] for step in steps],
            )
            for i in range(90)
        ]
        policy = TablePolicy(task.policy)
        names = [str(arm) for arm in arms[data_set]]
        acted = {str(arm): TablePolicy(behavior) for arm, behavior in enumerate(task.behaviors)}
        functions = {
            "trajectory": importance_sampling,
            "decision": per_decision,
            "doubly robust": doubly_robust,
        }
        for (name, terms), weighted in itertools.product(
            all_terms(task, steps, *log_weights_of(task, arms, steps)), (False, True)
        ):
            options = {"behaviors": acted, "arms": names} if name == "balance" else {}
            found = functions.get(name, importance_sampling)(
                logged, policy, weighted=weighted, **options
            )
            simulated = [
                each[data_set] for each in estimate_with_interval(terms, weighted=weighted)
            ]
            np.testing.assert_allclose(dataclasses.astuple(found)[:3], simulated, rtol=1e-9)


def _trajectory(task, arm, steps):
    states, actions, rewards, lasts = (np.array(column) for column in zip(*steps, strict=True))
    count = int(lasts.sum())
    # nothing depends on where an episode ended
    observations = np.append(states[:count], 0)
    taken = actions[:count]
    log_probs = TablePolicy(task.behaviors[arm]).log_probs(observations[:-1], taken)
    return Trajectory(
        observations, taken, rewards[:count], terminated=True, truncated=False, log_probs=log_probs
    )


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True], ids=["independent", "adaptive"])
def test_all_intervals(adaptive):
    found = {}
    for name, (share, count) in itertools.product(TASKS, TRAJECTORIES.items()):
        covered, size = coverage(
            make_env(name, share, seed=1), adaptive, sets=2000, trajectories=count, seed=1
        )
        assert size == pytest.approx(share, rel=0.25)
        found |= {(name, share, estimator): each for estimator, each in covered.items()}
    outside = {key: each for key, each in found.items() if not 0.93 <= each <= 0.97}
    assert not outside
