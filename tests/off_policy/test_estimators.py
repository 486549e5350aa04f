"""Formulas worked out by hand, exact expectations by enumeration, invariances."""

import dataclasses
import itertools
from functools import partial

import numpy as np
import pytest

from esbas import Trajectory, TrajectorySet, discounted_return, episode_length
from esbas.off_policy import doubly_robust, effective_sample_size, importance_sampling, per_decision
from off_policy.tiny import (
    FIRST,
    GAMMA,
    SECOND,
    TARGET,
    TablePolicy,
    episode,
    every_trajectory,
    exact_value,
    simulated,
)

pytestmark = pytest.mark.filterwarnings("ignore::esbas.off_policy.FewEffectiveSamplesWarning")

# weights of the two actions: 0.9 / 0.4 and 0.8 / 0.3; then 0.1 / 0.6, where the episode ends
A = 0.9 / 0.4
B = 0.8 / 0.3
C = 0.1 / 0.6
TWO = [episode([0, 1, 0], [0, 1], [1.0, 5.0], FIRST), episode([0, 1], [1], [2.0], FIRST)]


def test_one_weight_per_trajectory():
    plain = importance_sampling(TWO, TARGET, weighted=False)
    assert plain.value == pytest.approx((A * B * 6 + C * 2) / 2)
    assert plain.n == 2
    assert plain.effective_sample_size == pytest.approx((A * B + C) ** 2 / ((A * B) ** 2 + C**2))
    assert plain.low <= plain.value <= plain.high
    assert importance_sampling(TWO, TARGET).value == pytest.approx(
        (A * B * 6 + C * 2) / (A * B + C)
    )


def test_any_objective():
    lengths = importance_sampling(TWO, TARGET, objective=episode_length(), weighted=False)
    assert lengths.value == pytest.approx((A * B * 2 + C * 1) / 2)


def test_one_weight_per_decision():
    plain = per_decision(TWO, TARGET, gamma=0.5, weighted=False)
    assert plain.value == pytest.approx((A * 1 + C * 2 + 0.5 * A * B * 5) / 2)
    weighted = per_decision(TWO, TARGET, gamma=0.5)  # the episode that has ended keeps its weight
    assert weighted.value == pytest.approx(
        (A * 1 + C * 2) / (A + C) + 0.5 * A * B * 5 / (A * B + C)
    )


def test_doubly_robust_with_a_given_q():
    table = np.array([[1.0, 2.0], [3.0, 4.0]])
    q = lambda observations, actions: table[observations, actions]  # noqa: E731
    v0 = 0.9 * 1 + 0.1 * 2
    v1 = 0.2 * 3 + 0.8 * 4
    plain = doubly_robust(TWO, TARGET, q=q, gamma=0.5, weighted=False)
    expected = (v0 + A * (1 - 1) + 0.5 * (A * v1 + A * B * (5 - 4)) + v0 + C * (2 - 2)) / 2
    assert plain.value == pytest.approx(expected)
    weighted = doubly_robust(TWO, TARGET, q=q, gamma=0.5)
    second = 0.5 * (A * v1 / (A + C) + A * B * (5 - 4) / (A * B + C))
    assert weighted.value == pytest.approx(v0 + 0.0 + second)
    v = lambda observations: np.array([v0, v1])[observations]  # noqa: E731
    assert doubly_robust(TWO, TARGET, q=q, v=v, gamma=0.5) == weighted


def test_balance_heuristic():
    trajectories = [*TWO, episode([1, 0], [0], [4.0], SECOND)]
    policies = {"first": FIRST, "second": SECOND}
    found = importance_sampling(
        trajectories, TARGET, behaviors=policies, arms=["first", "first", "second"], weighted=False
    )
    weights = [
        0.9 * 0.8 / ((2 * 0.4 * 0.3 + 0.8 * 0.5) / 3),
        0.1 / ((2 * 0.6 + 0.2) / 3),
        0.2 / ((2 * 0.7 + 0.5) / 3),
    ]
    assert found.value == pytest.approx(np.dot(weights, [6, 2, 4]) / 3)
    data = TrajectorySet()  # knows who acted
    for each, arm in zip(trajectories, ["first", "first", "second"], strict=True):
        data.append(each, arm=arm)
    assert importance_sampling(data, TARGET, behaviors=policies, weighted=False) == found
    unused = policies | {"no log_probs, no trajectories": object()}
    assert importance_sampling(data, TARGET, behaviors=unused, weighted=False) == found


def test_log_probabilities_instead_of_policies():
    arrays = [TARGET.log_probs(each.observations[:-1], each.actions) for each in TWO]
    assert per_decision(TWO, arrays) == per_decision(TWO, TARGET)


def Q(observations, actions):
    return np.array([[2.0, -1.0], [0.5, 3.0]])[observations, actions]


ESTIMATORS = {
    "trajectory": partial(importance_sampling, objective=discounted_return(GAMMA)),
    "decision": partial(per_decision, gamma=GAMMA),
    "doubly robust": partial(doubly_robust, q=Q, gamma=GAMMA, actions=2),
}
every_estimator = pytest.mark.parametrize("estimate", ESTIMATORS.values(), ids=ESTIMATORS)


@every_estimator
def test_expectation_is_the_exact_value(estimate):
    mean = sum(
        p * estimate([each], TARGET, weighted=False).value for p, each in every_trajectory(FIRST)
    )
    assert mean == pytest.approx(exact_value(TARGET), abs=1e-12)
    assert abs(exact_value(TARGET) - exact_value(FIRST)) > 0.5


def test_expectation_of_the_balance_heuristic_is_the_exact_value():
    options = {
        "weighted": False,
        "behaviors": {"first": FIRST, "second": SECOND},
        "arms": ["first", "second"],
    }
    pairs = itertools.product(every_trajectory(FIRST), every_trajectory(SECOND))
    estimate = partial(ESTIMATORS["trajectory"], **options)
    mean = sum(p * q * estimate([one, other], TARGET).value for (p, one), (q, other) in pairs)
    assert mean == pytest.approx(exact_value(TARGET), abs=1e-12)


@every_estimator
@pytest.mark.parametrize("weighted", [False, True])
def test_many_trajectories_lead_to_the_exact_value(estimate, weighted):
    found = estimate(simulated(FIRST, 3000, 0), TARGET, weighted=weighted)
    assert found.low < exact_value(TARGET) < found.high
    assert found.high - found.low < 1
    assert found.effective_sample_size > 500


@every_estimator
@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_trajectories_does_not_matter(estimate, weighted):
    data = simulated(FIRST, 40, 1)
    one, other = (estimate(each, TARGET, weighted=weighted) for each in (data, data[::-1]))
    np.testing.assert_allclose(dataclasses.astuple(one), dataclasses.astuple(other))


def test_a_constant_shifts_weighted_estimates():
    data = [each for each in simulated(FIRST, 60, 2) if len(each) == 2]
    shifted = [dataclasses.replace(each, rewards=each.rewards + 100) for each in data]
    for estimate in (importance_sampling, per_decision, partial(doubly_robust, q=Q)):
        before = estimate(data, TARGET)
        after = estimate(shifted, TARGET)
        shifts = [getattr(after, name) - getattr(before, name) for name in ("value", "low", "high")]
        np.testing.assert_allclose(shifts, 200)


def test_own_trajectories_are_averaged():
    data = simulated(TARGET, 200, 3)
    mean = np.mean([each.rewards.sum() for each in data])
    for estimate in (importance_sampling, per_decision):
        found = estimate(data, TARGET)
        assert found.value == pytest.approx(mean)
        assert found.effective_sample_size == pytest.approx(200)


def test_fitted_q_reduces_the_error():
    data = simulated(FIRST, 300, 4)
    plain = per_decision(data, TARGET, gamma=GAMMA)
    robust = doubly_robust(data, TARGET, gamma=GAMMA)
    assert robust.high - robust.low < 0.9 * (plain.high - plain.low)
    assert robust.low < exact_value(TARGET) < robust.high


def test_no_trajectory_is_corrected_by_a_q_that_has_seen_it():
    """A state that only one trajectory visits has Q = 0 for it, and the reward counts in full."""
    deterministic = TablePolicy(np.array([[1.0], [1.0], [1.0]]))
    data = [
        episode([k, k], [0], [reward], deterministic)
        for k, reward in ((0, 1.0), (1, 5.0), (2, 9.0))
    ]
    found = doubly_robust(data, deterministic, folds=3)
    assert (found.value, found.high - found.low > 1) == (5.0, True)
    # now every Q is exact, and nothing is left to estimate but the state at the start
    seen_by_others = [*data, *data]
    assert doubly_robust(seen_by_others, deterministic, folds=2).value == 5.0


def test_ten_thousand_steps():
    steps, rng = 10_000, np.random.default_rng(5)

    def walk(length):
        actions = rng.integers(2, size=length)
        recorded = np.full(length, np.log(0.5))
        return Trajectory(
            np.zeros(length + 1, int),
            actions,
            np.ones(length),
            terminated=True,
            truncated=False,
            log_probs=recorded,
        )

    data = [walk(steps), walk(steps), walk(steps // 2)]
    target = TablePolicy(np.array([[0.45, 0.55]]))
    for estimate in (importance_sampling, per_decision, partial(doubly_robust, gamma=0.99)):
        found = estimate(data, target)
        assert np.isfinite(dataclasses.astuple(found)).all()
        assert 1 <= found.effective_sample_size <= 3
        # discounted
        assert steps / 2 - 1e-6 <= found.value <= steps or found.value == pytest.approx(100, abs=1)
    assert np.isfinite(per_decision(data, target, weighted=False).value)
    own = importance_sampling(data, TablePolicy(np.array([[0.5, 0.5]])), weighted=False)
    assert own.value == pytest.approx(steps * 2.5 / 3)


def test_effective_sample_size():
    assert effective_sample_size(np.log([1.0, 1.0, 2.0])) == pytest.approx(16 / 6)
    assert effective_sample_size(np.array([-1e6, -1e6])) == pytest.approx(2)
    np.testing.assert_allclose(
        effective_sample_size(np.array([[0.0, -np.inf], [-np.inf, -np.inf]])), [1, 0]
    )
