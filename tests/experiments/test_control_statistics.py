"""The statistics of the control benchmark: by hand, by brute force, and by simulation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from esbas.errors import InvalidValueError
from esbas.experiments.control import statistics

FLOATS = st.floats(-100, 100)
SAMPLES = st.lists(FLOATS, min_size=1, max_size=12)


def test_the_interquartile_mean_by_hand():
    assert statistics.iqm([1.0, 2.0, 3.0, 100.0]) == 2.5
    assert statistics.iqm([1.0, 2.0, 6.0]) == 3.0  # ⌊3 / 4⌋ = 0 values are cut
    assert statistics.iqm([[0.0, 1.0], [2.0, 3.0]], axis=0).tolist() == [1.0, 2.0]


@given(SAMPLES, st.floats(0.1, 10), FLOATS)
def test_the_interquartile_mean_moves_with_the_values(values, factor, shift):
    moved = [factor * value + shift for value in values]
    assert statistics.iqm(moved) == pytest.approx(factor * statistics.iqm(values) + shift, abs=1e-6)


@given(SAMPLES, SAMPLES)
def test_the_probability_of_improvement_is_that_of_all_pairs(first, second):
    found = statistics.probability_of_improvement(first, second)
    assert found == pytest.approx(
        np.mean([(x > y) + 0.5 * (x == y) for x in first for y in second])
    )
    assert found + statistics.probability_of_improvement(second, first) == pytest.approx(1)
    # This is what the bootstrap computes.
    ranks = statistics._improvements(np.array([first]), np.array([second]))
    assert ranks[0] == pytest.approx(found)


def test_holm_by_hand():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.5, 0.9]) == [1.0, 1.0]
    assert statistics.holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_between_the_raw_and_bonferronis_values(values):
    adjusted = statistics.holm(values)
    assert all(
        p <= a <= min(1.0, len(values) * p) + 1e-12 for p, a in zip(values, adjusted, strict=True)
    )
    order = np.argsort(values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_the_paired_test():
    better = np.arange(10) + np.linspace(1, 2, 10)
    # All differences are positive.
    assert statistics.paired_test(better, np.arange(10)) == pytest.approx(2 / 2**10)
    assert statistics.paired_test(better, better) == 1.0
    assert statistics.paired_test([1.0], [0.0]) == 1.0


def test_intervals_are_deterministic_and_contain_their_estimates():
    scores = [np.random.default_rng(task).normal(task, 1, 20) for task in range(3)]
    found = [
        statistics.iqm_interval(scores, resamples=500, rng=np.random.default_rng(0))
        for _ in range(2)
    ]
    assert found[0] == found[1]
    assert found[0].low < found[0].value < found[0].high
    assert found[0].value == statistics.iqm(np.concatenate(scores))
    assert found[0].as_dict() == {
        "iqm": found[0].value,
        "low": found[0].low,
        "high": found[0].high,
        "seeds": 20,
    }


def test_resamples_stay_within_their_task():
    drawn = statistics.resampled(
        [[0.0, 1.0], [10.0, 11.0, 12.0]], resamples=50, rng=np.random.default_rng(0)
    )
    assert [each.shape for each in drawn] == [(50, 2), (50, 3)]
    assert drawn[0].max() <= 1
    assert drawn[1].min() >= 10


def test_most_intervals_contain_the_true_mean():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        scores = [rng.normal(0.0, 1.0, 20), rng.normal(0.0, 1.0, 20)]
        found = statistics.iqm_interval(scores, resamples=300, rng=rng)
        inside += found.low <= 0 <= found.high
    assert 170 <= inside <= 200


def test_pairs_are_kept_together_in_differences():
    base = [np.random.default_rng(3).normal(0, 10, 20)]
    found = statistics.difference_interval(
        [base[0] + 1], base, resamples=300, rng=np.random.default_rng(0)
    )
    assert (found.value, found.low, found.high) == pytest.approx((1, 1, 1))
    better = statistics.improvement_interval(
        [base[0] + 100], base, resamples=50, rng=np.random.default_rng(0)
    )
    assert (better.value, better.low, better.high) == (1.0, 1.0, 1.0)


def test_the_number_of_seeds_by_hand():
    # Standard deviation 1, effect 1/2: ((1.959964 + 0.841621) / 0.5)² / 0.955 = 32.9
    assert statistics.seeds_for_power([-1.0, 0.0, 1.0], 0.5) == 33
    assert statistics.seeds_for_power([2.0, 2.0], 0.5) == 2
    with pytest.raises(InvalidValueError):
        statistics.seeds_for_power([1.0, 2.0], 0.0)


def test_that_number_of_seeds_finds_the_effect():
    rng = np.random.default_rng(0)
    n = statistics.seeds_for_power([-1.0, 0.0, 1.0], 0.5)
    found = np.mean([stats.wilcoxon(rng.normal(0.5, 1, n)).pvalue < 0.05 for _ in range(300)])
    assert 0.7 < found < 0.9


def test_the_band_of_curves_is_the_interval_of_each_bin():
    curves = np.random.default_rng(5).normal(0, 1, (20, 3))
    low, high = statistics.iqm_band(curves, resamples=400, rng=np.random.default_rng(0))
    for column in range(3):
        alone = statistics.iqm_interval(
            [curves[:, column]], resamples=400, rng=np.random.default_rng(0)
        )
        assert (low[column], high[column]) == pytest.approx((alone.low, alone.high))
