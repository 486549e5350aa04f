"""Several actions with the best value: each of them has the same probability."""

import math

import numpy as np
import pytest

from esbas.learners import EpsilonGreedy, TabularQ
from esbas.learners.epsilon_greedy import action_probability


def policy(values, epsilon):
    return EpsilonGreedy(lambda _: np.asarray(values, float), epsilon)


def probabilities(values, epsilon):
    return np.exp(policy(values, epsilon).log_probs(np.zeros(len(values)), np.arange(len(values))))


def test_the_probability_by_hand():
    assert action_probability(True, 2, 0.2, 4) == pytest.approx(0.45)  # 0.2 / 4 + 0.8 / 2
    assert action_probability(False, 2, 0.2, 4) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("values", "epsilon", "expected"),
    [
        ([0, 0, 0, 0], 0.0, [0.25, 0.25, 0.25, 0.25]),
        ([1, 0, 1], 0.3, [0.45, 0.1, 0.45]),
        ([-math.inf, 2, -math.inf], 0.3, [0.1, 0.8, 0.1]),
        ([-math.inf, -math.inf], 0.0, [0.5, 0.5]),
        ([3, 1], 1.0, [0.5, 0.5]),
    ],
)
def test_probabilities_by_hand(values, epsilon, expected):
    np.testing.assert_allclose(probabilities(values, epsilon), expected, atol=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_probabilities_equal_those_of_all_outcomes(seed):
    """Brute force: sum over exploring or not, and over every action that is then possible."""
    rng = np.random.default_rng(seed)
    values = rng.integers(3, size=rng.integers(1, 7)).tolist()
    epsilon = rng.random()
    expected = [0.0] * len(values)
    best = [action for action, value in enumerate(values) if value == max(values)]
    for chance, actions in ((epsilon, range(len(values))), (1 - epsilon, best)):
        for action in actions:
            expected[action] += chance / len(actions)
    found = probabilities(values, epsilon)
    np.testing.assert_allclose(found, expected)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize("values", [[0, 2, 2, 1, 2], [1, 1], [0, 1, 0]])
def test_frequencies_are_the_probabilities(values):
    rng = np.random.default_rng(1)
    draws = 3000
    drawn = [policy(values, 0.3).act_with_log_prob(0, rng) for _ in range(draws)]
    counts = np.bincount([action for action, _ in drawn], minlength=len(values))
    expected = probabilities(values, 0.3)
    assert (
        np.abs(counts / draws - expected) < 4 * np.sqrt(expected * (1 - expected) / draws)
    ).all()
    np.testing.assert_allclose(
        [log_prob for _, log_prob in drawn], np.log([expected[action] for action, _ in drawn])
    )


def test_a_number_is_drawn_for_the_action_only_if_there_is_a_tie():
    for values, draws in (([0, 1, 0], 1), ([1, 1, 0], 2)):
        rng = np.random.default_rng(0)
        counted = np.random.default_rng(0)
        policy(values, 0.0).act(0, rng)
        counted.random(draws)
        assert rng.random() == counted.random()


@pytest.mark.parametrize("values", [[0, math.nan, 1], [math.nan, 1, math.nan]])
def test_values_that_are_not_numbers_count_as_the_best(values):
    first = values.index(math.nan)
    rng = np.random.default_rng(0)
    assert policy(values, 0.0).act(0, rng) == first
    assert policy(values, 0.0).act_with_log_prob(0, rng) == (first, 0.0)
    assert probabilities(values, 0.3)[first] == pytest.approx(0.8)


def test_a_new_table_takes_every_action():
    acting = TabularQ("q", states=1, actions=3).greedy_policy()
    rng = np.random.default_rng(0)
    assert {acting.act(0, rng) for _ in range(50)} == {0, 1, 2}
