"""CORRAL: by hand, and against mirror descent by bisection on the whole history."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import UNIT, Model, operations, replay
from esbas.bandits import Corral
from esbas.bandits.corral import log_barrier_multiplier


def bisect(weights, rates, losses):
    """λ by bisection."""

    def too_large(level):
        inverses = [
            1 / w + eta * (loss - level)
            for w, eta, loss in zip(weights, rates, losses, strict=True)
        ]
        return min(inverses) <= 0 or sum(1 / x for x in inverses) > 1

    low = min(losses)
    high = max(losses)
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (low, middle) if too_large(middle) else (middle, high)
    return low


def test_corral_by_hand():
    # eta = sqrt(0.02) = 0.1414214, gamma = 0.01, beta = exp(1 / ln 100)
    bandit = Corral(2, horizon=100)
    bandit.update(0, 0.0)
    # loss 1 / (1/2) = 2: with a = 1 / w_0 = 2 + eta (2 - λ) and 1 / w_1 = a - 2 eta, 1/a + 1/(a - 2
    # eta) = 1 gives a = 2.1513720
    assert bandit.indices().tolist() == pytest.approx([0.46517149, 0.53482851])
    assert bandit.beta == pytest.approx(1.2425270)
    before = bandit.indices().tolist()
    bandit.update(1, 1.0)  # no loss: nothing moves
    assert bandit.indices().tolist() == pytest.approx(before)


def test_an_arm_that_loses_weight_learns_faster():
    bandit = Corral(2, horizon=100)
    first = bandit.rates[0]
    assert bandit.bounds == [4.0, 4.0]
    while bandit.indices()[0] >= 1 / 4:
        bandit.update(0, 0.0)
    # the rate of the arm increased
    assert bandit.rates == [pytest.approx(first * math.exp(1 / math.log(100))), first]
    assert bandit.bounds == [pytest.approx(2 / bandit.indices()[0]), 4.0]


def test_an_arm_that_improves_recovers():
    bandit = Corral(2, horizon=2000, rng=np.random.default_rng(0))
    for number in range(2000):
        arm = bandit.choose()
        bandit.update(arm, [0.5, 0.2 if number < 500 else 0.9][arm])
    assert bandit.indices()[1] > 0.9


@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1), st.floats(1e-4, 2), st.floats(0, 1e4)), min_size=1, max_size=6
    )
)
def test_the_multiplier_gives_weights_with_sum_1(columns):
    weights, rates, losses = map(list, zip(*columns, strict=True))
    weights = [w / sum(weights) for w in weights]
    level = log_barrier_multiplier(weights, rates, losses)
    moved = [
        1 / (1 / w + eta * (loss - level))
        for w, eta, loss in zip(weights, rates, losses, strict=True)
    ]
    assert min(moved) > 0
    assert sum(moved) == pytest.approx(1, abs=1e-6)
    assert level == pytest.approx(bisect(weights, rates, losses), rel=1e-9, abs=1e-9)


class NaiveCorral(Model):
    horizon = 50

    def __init__(self, n_arms):
        self.weights = [1 / n_arms] * n_arms
        self.open = {}
        self.rates = [self.first_rate] * n_arms
        self.bounds = [2 * n_arms] * n_arms

    @property
    def first_rate(self):
        return math.sqrt(len(self.weights) / self.horizon)

    def probabilities(self):
        return [
            (1 - 1 / self.horizon) * w + 1 / self.horizon / len(self.weights) for w in self.weights
        ]

    def pull(self, ticket, arm, among=None):
        chances = self.probabilities()
        self.open[ticket] = chances[arm] / (1 if among is None else sum(chances[k] for k in among))

    def settle(self, ticket, arm, reward):
        losses = [
            (1 - reward) / self.open[ticket] if k == arm else 0 for k in range(len(self.weights))
        ]
        level = bisect(self.weights, self.rates, losses)
        columns = zip(self.weights, self.rates, losses, strict=True)
        self.weights = [1 / (1 / w + eta * (loss - level)) for w, eta, loss in columns]
        for k, chance in enumerate(self.probabilities()):
            if 1 / chance > self.bounds[k]:
                self.bounds[k] = 2 / chance
                self.rates[k] *= math.exp(1 / math.log(self.horizon))

    def normalize(self):
        self.weights = [w / sum(self.weights) for w in self.weights]

    def add(self):
        self.weights.append(sum(self.weights) / len(self.weights))
        self.normalize()
        self.rates.append(self.first_rate)
        self.bounds.append(2 * len(self.weights))

    def remove(self, arm):
        del self.weights[arm], self.rates[arm], self.bounds[arm]
        self.normalize()

    def reset(self, keep):
        mean = sum(self.weights[k] for k in keep) / len(keep) if keep else 1
        for k in range(len(self.weights)):
            if k not in keep:
                self.weights[k], self.rates[k], self.bounds[k] = (
                    mean,
                    self.first_rate,
                    2 * len(self.weights),
                )
        self.normalize()


@given(todo=operations(UNIT), n_arms=st.integers(1, 4), seed=st.integers(0, 9))
def test_the_probabilities_follow_from_the_whole_history(n_arms, seed, todo):
    bandit = Corral(n_arms, horizon=50, rng=np.random.default_rng(seed))
    model = NaiveCorral(n_arms)
    replay(bandit, model, todo)
    assert bandit.indices().tolist() == pytest.approx(model.probabilities(), rel=1e-7)
    assert bandit.rates == pytest.approx(model.rates)
    assert bandit.bounds == pytest.approx(model.bounds, rel=1e-7)
