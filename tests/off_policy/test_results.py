"""Warnings, errors, intervals."""

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import stdtrit

import esbas
from esbas.errors import InvalidValueError
from esbas.off_policy import (
    FewEffectiveSamplesWarning,
    doubly_robust,
    importance_sampling,
    per_decision,
)
from esbas.off_policy.intervals import skewed_interval, student_quantile
from off_policy.tiny import FIRST, ONLY_ZERO, TARGET, episode, simulated

ESTIMATES = importance_sampling, per_decision, doubly_robust


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_fewer_than_fifty_effective_samples_are_a_warning(estimate):
    with pytest.warns(
        FewEffectiveSamplesWarning, match=r"at least 50, but is 49\.0 of 49 trajectories: use more"
    ) as caught:
        estimate(simulated(TARGET, 49, 0), TARGET)
    assert caught[0].filename == __file__
    assert estimate(simulated(TARGET, 50, 0), TARGET).n == 50  # a warning would be an error here


def test_text():
    with pytest.warns(FewEffectiveSamplesWarning):
        text = str(importance_sampling([episode([0, 0], [0], [2.0], TARGET)], TARGET))
    assert text == "2 (95 % interval -inf to inf; effective sample size 1.0 of 1)"


def test_unknown_behavior_probabilities():
    unknown = dataclasses.replace(simulated(FIRST, 1, 0)[0], log_probs=np.empty(0))
    with pytest.raises(
        InvalidValueError,
        match="under the policy that acted must be known, but one of trajectory 1 is not: record",
    ):
        per_decision([*simulated(FIRST, 1, 0), unknown], TARGET)


def test_a_policy_without_probabilities():
    class Silent:
        def act(self, observation, rng):
            return 0

    for estimate in ESTIMATES:
        with pytest.raises(
            InvalidValueError,
            match=r"must have `log_probs\(observations, actions\)`, but Silent does not",
        ):
            estimate(simulated(FIRST, 3, 0), Silent())


def test_a_policy_that_never_acts_like_this():
    data = [episode([0, 1], [1], [1.0], FIRST)] * 3
    for weighted in (False, True):
        with pytest.raises(InvalidValueError, match="has an action that it would never take"):
            importance_sampling(data, ONLY_ZERO, weighted=weighted)


def test_behaviors_that_cannot_have_acted():
    data = [episode([0, 1], [1], [1.0], FIRST)]
    with pytest.raises(InvalidValueError, match="one of the actions has probability 0"):
        importance_sampling(data, TARGET, behaviors={"a": ONLY_ZERO}, arms=["a"])
    with pytest.raises(InvalidValueError, match="`arms` must name for each trajectory"):
        importance_sampling(data, TARGET, behaviors={"a": FIRST})
    with pytest.raises(InvalidValueError, match="`arms` must name for each trajectory"):
        importance_sampling(data, TARGET, behaviors={"a": FIRST}, arms=["b"])


def test_weights_beyond_floats():
    length = 1000
    rare = esbas.Trajectory(
        np.zeros(length + 1, int),
        np.zeros(length, int),
        np.ones(length),
        True,
        False,
        np.full(length, math.log(0.1)),
    )
    with pytest.raises(
        InvalidValueError,
        match=r"must be below exp\(300\), but one is exp\(2197\): use weighted=True",
    ):
        importance_sampling([rare], TARGET, weighted=False)
    with pytest.warns(FewEffectiveSamplesWarning):
        assert importance_sampling([rare, rare], TARGET).value == length


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gamma": 1.5}, "`gamma` must be between 0 and 1, but got 1.5"),
        ({"folds": 1}, "`folds` must be at least 2, but got 1"),
        ({"actions": 1}, "`actions` must be greater than any action, but got 1 with action 1"),
        (
            {"q": lambda observations, actions: np.zeros(3)},
            "`q` must return one finite number for each of",
        ),
        ({"v": lambda observations: np.zeros(3)}, "Give `q` and `v`, or neither"),
    ],
)
def test_doubly_robust_options(options, message):
    with pytest.raises(InvalidValueError, match=message):
        doubly_robust(simulated(FIRST, 60, 0), TARGET, **options)


def test_doubly_robust_needs_discrete_data_or_a_q():
    continuous = dataclasses.replace(
        episode([0, 1], [1], [1.0], FIRST), observations=np.zeros((2, 3))
    )
    log_probs = type(
        "Any", (), {"log_probs": lambda self, observations, actions: np.zeros(len(actions))}
    )()
    with pytest.raises(
        InvalidValueError, match="A table needs discrete observations, but got float64: pass `q`"
    ):
        doubly_robust([continuous], log_probs)
    zeros = dataclasses.replace(episode([0, 1], [0], [1.0], FIRST))
    with pytest.raises(InvalidValueError, match="pass `actions`, their number"):
        doubly_robust([zeros], TARGET)  # action 1 never occurs


def test_no_trajectories():
    with pytest.raises(InvalidValueError, match="`trajectories` must not be empty"):
        importance_sampling([], TARGET)


def test_quantiles():
    degrees = np.array([3, 5, 10, 30, 1000, 1e9])
    np.testing.assert_allclose(student_quantile(degrees), stdtrit(degrees, 0.975), rtol=0.01)


def test_interval_solves_halls_equation():
    values = np.random.default_rng(0).lognormal(size=200)
    n = len(values)
    mean = values.mean()
    spread = values.std(ddof=1)
    skewness = ((values - mean) ** 3).mean() / values.std() ** 3
    kurtosis = ((values - mean) ** 4).mean() / values.std() ** 4
    ends = [float(end) for end in skewed_interval(values)]
    t = [math.sqrt(n) * (mean - end) / spread for end in ends]
    c = skewness / math.sqrt(n)
    transformed = [x + c * x**2 / 3 + c**2 * x**3 / 27 + c / 6 for x in t]
    quantile = float(student_quantile(np.array(n / (kurtosis - 1))))
    np.testing.assert_allclose(transformed, [quantile, -quantile])
    assert ends[1] - mean > mean - ends[0]  # longer towards the tail


def test_intervals_of_symmetric_numbers():
    values = np.concatenate([np.linspace(-1, 1, 1001), [0.0]])
    low, high = skewed_interval(values)
    half = 1.96 * values.std(ddof=1) / math.sqrt(1002)
    np.testing.assert_allclose([low, high], [-half, half], rtol=0.01)
    np.testing.assert_array_equal(skewed_interval(np.full(7, 3.0)), [3.0, 3.0])
