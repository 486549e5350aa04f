"""How often intervals contain the exact value: a small version by default, the whole table of docs/evaluation.md if slow."""

import itertools

import pytest
from benchmarks.coverage import ESTIMATORS, SHARES, TASKS, coverage, make_task


@pytest.mark.parametrize("adaptive", [False, True], ids=["independent", "adaptive"])
@pytest.mark.parametrize(("name", "share"), [("chain", 0.1), ("random", 0.3)])
def test_some_intervals(name, share, adaptive):
    covered, size = coverage(make_task(name, share, seed=2), adaptive, sets=250, trajectories=500, seed=2)
    assert size == pytest.approx(share, rel=0.4)
    assert set(covered) == set(ESTIMATORS)
    assert all(0.89 <= each <= 0.995 for each in covered.values()), covered  # 95 % of 250, give or take 4 standard errors


@pytest.mark.slow
@pytest.mark.parametrize("adaptive", [False, True], ids=["independent", "adaptive"])
def test_all_intervals(adaptive):
    found = {}
    for name, share in itertools.product(TASKS, SHARES):
        covered, size = coverage(make_task(name, share, seed=1), adaptive, sets=2000, trajectories=2000, seed=1)
        assert size == pytest.approx(share, rel=0.25)
        found |= {(name, share, estimator): each for estimator, each in covered.items()}
    outside = {key: each for key, each in found.items() if not 0.93 <= each <= 0.97}
    assert not outside
