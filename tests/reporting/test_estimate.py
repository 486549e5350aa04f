import math

import numpy as np
import pytest
from scipy import stats

from esbas.errors import InvalidValueError
from esbas.reporting import Estimate, estimate, estimates


def test_a_mean_and_its_interval_by_hand():
    # mean 2, standard deviation 1, three runs: t(2, 0.975) / √3 = 4.302653 / 1.732051
    result = estimate([1, 2, 3])
    assert result.mean == 2
    assert result.ci95 == pytest.approx(2.484138, abs=1e-6)
    assert result.runs == 3


def test_an_estimate_is_a_number_with_two_ends():
    result = Estimate(498.2, 4.0, 5)
    assert float(result) == 498.2
    assert (result.low, result.high) == (494.2, 502.2)
    assert repr(result) == "Estimate(498 ± 4, 5 runs)"
    assert repr(estimate([1.0, 2.0], over="episodes")) == "Estimate(1.5, 2 episodes)"


@pytest.mark.parametrize(
    ("samples", "over", "text"),
    [
        ([164.5, 499.5], "episodes", "332 over 2 episodes"),
        ([332.0], "episodes", "332 over 1 episode"),
        ([332.0], "runs", "332"),
        ([1.0, 2.0], "runs", "1.5 over 2 runs"),
        ([500.0, 500.0], "episodes", "500 over 2 episodes"),
        ([1.0, 2.0, 3.0], "runs", "2 over 3 runs"),  # ± 2.5
        ([10.0, 20.0, 39.0], "runs", "23 over 3 runs"),  # ± 37
        ([10.0, 20.0, 24.0], "runs", "18 ± 18"),
        ([-1.0, 1.0] * 4, "runs", "0 over 8 runs"),
        ([-1.0, 1.0] * 5, "runs", "0.0 ± 0.8"),
        ([0.0, 0.0, 0.0], "runs", "0 ± 0"),
    ],
)
def test_intervals_that_say_nothing_are_not_shown(samples, over, text):
    result = estimate(samples, over=over)
    assert str(result) == text
    assert math.isnan(result.ci95) == (len(samples) == 1)  # the object keeps it


def test_files_have_the_interval_in_any_case():
    assert estimate([1.0, 2.0]).interval_text() == "2 ± 6"
    assert estimate([1.0]).interval_text() == "1"


def test_intervals_are_those_of_scipy():
    samples = np.random.default_rng(0).normal(5, 2, (30, 4))
    mean, ci95 = estimates(samples)
    low, high = stats.t.interval(
        0.95, 29, loc=samples.mean(axis=0), scale=stats.sem(samples, axis=0)
    )
    np.testing.assert_allclose(mean - ci95, low)
    np.testing.assert_allclose(mean + ci95, high)


def test_the_interval_of_one_run_is_unknown():
    result = estimate([1.5])
    assert math.isnan(result.ci95)
    assert result.as_dict() == {"mean": 1.5, "ci95": None, "runs": 1}
    assert str(result) == "1.5"
    assert repr(result) == "Estimate(1.5, 1 run)"
    assert math.isnan(result.low)
    assert math.isnan(result.high)


@pytest.mark.parametrize(
    ("mean", "ci95", "text"),
    [
        (21.01, 0.05, "21.01 ± 0.05"),
        (2.0, 2.484, "2.0 ± 2.5"),
        (23.8149, 0.2041, "23.81 ± 0.20"),
        (-5249.6, 120.4, "-5250 ± 120"),
        (0.123456, 0.00042, "0.1235 ± 0.0004"),
        (3.0, 0.0, "3 ± 0"),
    ],
)
def test_estimates_are_formatted_by_their_precision(mean, ci95, text):
    assert str(Estimate(mean, ci95, 10)) == text


@pytest.mark.parametrize("samples", [[], [[1, 2]], [1, math.nan], [math.inf]])
def test_samples_must_be_finite_numbers(samples):
    with pytest.raises(InvalidValueError):
        estimate(samples)
