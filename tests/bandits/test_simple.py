"""Epsilon-greedy, uniform and round robin."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import ANY_SIZE, History, Model, expect_same_statistics, operations, replay
from esbas.bandits import EpsilonGreedyBandit, RoundRobin, UniformBandit


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


def test_epsilon_greedy_by_hand():
    bandit = play(
        EpsilonGreedyBandit(3, epsilon=0.3, rng=np.random.default_rng(0)), [(0, 0.0), (1, 5.0)]
    )
    assert bandit.choose() == 2  # unplayed
    assert bandit.indices().tolist() == pytest.approx([0.1, 0.1, math.inf])
    play(bandit, [(2, 1.0)])
    assert bandit.indices().tolist() == pytest.approx([0.1, 0.8, 0.1])
    chosen = np.bincount([bandit.choose() for _ in range(5000)]) / 5000
    assert chosen.tolist() == pytest.approx([0.1, 0.8, 0.1], abs=0.02)
    among = np.bincount([bandit.choose(among=[0, 2]) for _ in range(5000)], minlength=3) / 5000
    assert among.tolist() == pytest.approx([0.15, 0.0, 0.85], abs=0.02)


def test_propensities_by_hand():
    bandit = play(EpsilonGreedyBandit(3, epsilon=0.3), [(0, 0.0), (1, 5.0)])
    # arm 2 is unplayed and goes first
    assert [bandit.propensity(arm) for arm in range(3)] == [0.0, 0.0, 1.0]
    assert [bandit.propensity(arm, among=[0, 1]) for arm in (0, 1)] == pytest.approx([0.15, 0.85])
    play(bandit, [(2, 1.0)])
    assert [bandit.propensity(arm) for arm in range(3)] == pytest.approx([0.1, 0.8, 0.1])
    assert UniformBandit(4).propensity(1) == 1 / 4
    assert UniformBandit(4).propensity(1, among=[1, 3]) == 1 / 2
    assert RoundRobin(3).propensity(0) == 1.0


def test_uniform_by_hand():
    bandit = play(UniformBandit(4, rng=np.random.default_rng(0)), [(0, 1.0)] * 50)
    assert bandit.indices().tolist() == [0.25] * 4
    assert (np.bincount([bandit.choose() for _ in range(8000)]) / 8000).tolist() == pytest.approx(
        [0.25] * 4, abs=0.02
    )
    assert {bandit.choose(among=[1, 3]) for _ in range(50)} == {1, 3}


def test_round_robin_by_hand():
    bandit = RoundRobin(3)
    assert bandit.indices().tolist() == [0, -1, -2]
    for expected in (0, 1, 2, 0, 1):
        assert bandit.choose() == bandit.choose() == expected
        bandit.pull(expected)
    assert bandit.choose(among=[0, 1]) == 0  # 2 would be next, but is not available
    bandit.remove_arm(0)  # 1 was last and is now 0
    assert bandit.choose() == 1
    bandit.add_arm()
    bandit.pull(1)
    assert bandit.choose() == 2
    bandit.reset()
    assert bandit.choose() == 0


class Cycle(Model):
    """Arms have names in the order of their numbers; the last one pulled determines the next."""

    def __init__(self, n_arms):
        self.names = list(range(n_arms))
        self.last = -1

    def pull(self, ticket, arm, among=None):
        self.last = self.names[arm]

    def add(self):
        self.names.append(max(*self.names, self.last) + 1)

    def remove(self, arm):
        del self.names[arm]

    def reset(self, keep):
        self.last = -1

    def order(self):
        return sorted(range(len(self.names)), key=lambda arm: (self.names[arm] <= self.last, arm))


@given(operations(ANY_SIZE), st.integers(1, 4))
def test_round_robin_follows_from_the_whole_history(todo, n_arms):
    bandit = RoundRobin(n_arms)
    cycle = Cycle(n_arms)
    replay(bandit, cycle, todo)
    assert np.argsort(-bandit.indices()).tolist() == cycle.order()
    assert bandit.choose() == cycle.order()[0]


@pytest.mark.parametrize("kind", [EpsilonGreedyBandit, UniformBandit, RoundRobin])
@given(todo=operations(ANY_SIZE), n_arms=st.integers(1, 4))
def test_the_statistics_follow_from_the_whole_history(kind, n_arms, todo):
    bandit = kind(n_arms)
    history = History(n_arms)
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    if kind is EpsilonGreedyBandit:
        values = [
            history.mean_or_prior(k) if history.count(k) else math.inf for k in range(bandit.n_arms)
        ]
        unplayed = [math.isinf(value) for value in values]
        chances = bandit.indices()
        assert np.isinf(chances).tolist() == unplayed
        if not any(unplayed):
            assert values[int(np.argmax(chances))] == pytest.approx(max(values), abs=1e-9)
            assert chances.sum() == pytest.approx(1)
