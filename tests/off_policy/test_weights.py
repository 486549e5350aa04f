import math

import numpy as np
import pytest

from esbas.errors import InvalidValueError
from esbas.off_policy.weights import balance_log_weights


def test_weights_by_hand():
    log_probs = np.log([[0.5, 0.25], [0.1, 0.4]])
    weights = np.exp(balance_log_weights(log_probs, np.array([1, 3])))
    np.testing.assert_allclose(weights, [[0.5 / 0.3125, 0.25 / 0.3125], [0.1 / 0.325, 0.4 / 0.325]])


def test_one_policy_has_weight_one():
    np.testing.assert_array_equal(
        balance_log_weights(np.array([[-3.0], [-1e6]]), np.array([2])), [[0.0], [0.0]]
    )


def test_arms_without_trajectories_are_weighted_too():
    weights = np.exp(balance_log_weights(np.log([[0.5, 0.25]]), np.array([0, 4])))
    np.testing.assert_allclose(weights, [[2.0, 1.0]])


def test_long_episodes_neither_overflow_nor_underflow():
    log_probs = np.array([[-1e5, -1e5 + 1], [-2e5, -1e5]])
    weights = np.exp(balance_log_weights(log_probs, np.array([1, 1])))
    np.testing.assert_allclose(weights, [[2 / (1 + math.e), 2 * math.e / (1 + math.e)], [0, 2]])
    assert (weights <= 2).all()


def test_impossible_actions():
    weights = balance_log_weights(np.array([[-np.inf, -1.0], [-np.inf, -np.inf]]), np.array([1, 0]))
    np.testing.assert_array_equal(weights, [[-np.inf, np.inf], [-np.inf, -np.inf]])


@pytest.mark.parametrize(
    ("log_probs", "counts"),
    [
        ([[np.nan]], [1]),
        ([[np.inf]], [1]),
        ([[0.0]], [0]),
        ([[0.0]], [-1]),
        ([[0.0]], [1, 1]),
        ([0.0], [1]),
    ],
)
def test_what_is_not_a_log_probability_is_refused(log_probs, counts):
    with pytest.raises(InvalidValueError):
        balance_log_weights(np.array(log_probs), np.array(counts))
