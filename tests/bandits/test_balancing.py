"""D³RB and ED²RB: by hand, and replayed from the whole history."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import UNIT, History, expect_same_statistics, operations, replay
from esbas.bandits import D3RB, ED2RB
from esbas.bandits.balancing import balancing_radius


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


def test_the_radius_is_defined_at_ln_ln_1():
    # sqrt(ln(2 * 1 / 0.1) / 1), sqrt(ln(2 ln 10 / 0.1) / 10)
    assert balancing_radius(1, 2, 0.1, 1) == pytest.approx(1.73081838)
    assert balancing_radius(1, 2, 0.1, 10) == pytest.approx(0.61885093)
    for kind in (D3RB, ED2RB):
        assert play(kind(2), [(0, 0.5)]).indices().tolist() == [-1.0, math.inf]


def test_d3rb_by_hand():
    bandit = D3RB(2, d_min=0.1, c=0.1)
    # arm 1 with reward 0 after 20 rewards 1 of arm 0; radii 0.1 * 0.45237821 and 0.1 * 1.73081838:
    # 0 + 0.1 / 1 + 0.17308 < 1 - 0.04524: the allowance doubles
    play(bandit, [(0, 1.0)] * 20)
    assert bandit.coefficients == (0.1, 0.1)
    play(bandit, [(1, 0.0)])
    assert bandit.coefficients == (0.1, 0.2)
    assert bandit.indices().tolist() == pytest.approx([-0.1 * math.sqrt(20), -0.2])
    assert bandit.choose() == 1  # 0.2 < 0.447
    # 0.2 / sqrt(2) + 0.122 and then 0.4 / sqrt(3) + 0.101: below 0.95 both times
    play(bandit, [(1, 0.0)] * 2)
    assert bandit.coefficients == (0.1, 0.8)
    assert bandit.choose() == 0  # 0.447 < 0.8 sqrt(3)


def test_d3rb_compares_means():
    # Sums over sqrt(n) instead of means would make arm 0 (mean 0.5, 100 pulls) ten times as good
    # and reject arm 1.
    bandit = play(D3RB(2, d_min=0.01, c=0.01), [(0, 0.5)] * 100 + [(1, 0.5)])
    assert bandit.coefficients == (0.01, 0.01)


def test_d3rb_pulls_an_untried_arm_first_and_then_balances():
    bandit = D3RB(3)
    chosen = []
    for _ in range(9):
        chosen.append(bandit.choose())
        bandit.update(chosen[-1], 0.5)
    assert chosen == [0, 1, 2] * 3


def test_ed2rb_by_hand():
    bandit = ED2RB(2, d_min=0.1, c=0.1)
    play(bandit, [(0, 1.0)] * 20)
    # arm 0: the estimate is d_min, 0.1 sqrt(n), which is never more than twice what it was
    assert bandit.indices()[0] == pytest.approx(-0.1 * math.sqrt(20))
    play(bandit, [(1, 0.0)])  # estimate 1 - 0.04524 - 0.17308 = 0.782, potential clipped to 2 * 0.1
    assert bandit.indices()[1] == pytest.approx(-0.2)
    # estimate sqrt(2) (0.95476 - 0.12239) = 1.177, potential 1.66: clipped to 0.4
    play(bandit, [(1, 0.0)])
    assert bandit.indices()[1] == pytest.approx(-0.4)
    # mean 1/3, estimate sqrt(3) (0.95476 - 0.33333 - 0.10149) = 0.901: clipped to 0.8
    play(bandit, [(1, 1.0)])
    assert bandit.indices()[1] == pytest.approx(-0.8)
    # mean 1/2, estimate 2 (0.95476 - 0.5 - 0.09114) = 0.727, potential twice that
    play(bandit, [(1, 1.0)])
    assert bandit.indices()[1] == pytest.approx(-1.4545015)
    # no evidence left: 0.1 sqrt(102) = 1.01, but potentials never decrease
    play(bandit, [(1, 1.0)] * 98)
    assert bandit.indices()[1] == pytest.approx(-1.4545015)


@pytest.mark.parametrize("kind", [D3RB, ED2RB])
def test_the_size_of_rewards_changes_no_choice(kind):
    unit = kind(3, d_min=0.1, c=0.2)
    large = kind(3, d_min=0.1, c=0.2)
    large.spread = 64.0
    rng = np.random.default_rng(0)
    for _ in range(500):
        arm = unit.choose()
        reward = float(rng.random())
        assert large.choose() == arm
        unit.update(arm, reward * (arm + 1) / 3)
        large.update(arm, 64 * reward * (arm + 1) / 3)


def test_rounds_in_flight_count_for_the_potential():
    for kind in (D3RB, ED2RB):
        bandit = play(kind(2), [(0, 0.5), (1, 0.5)])
        assert bandit.choose() == 0
        bandit.pull(0)
        assert bandit.indices()[0] == pytest.approx(-math.sqrt(2))
        assert bandit.choose() == 1


class Naive(History):
    d_min = 0.05
    c = 0.3
    delta = 0.2

    def __init__(self, n_arms):
        super().__init__(n_arms)
        self.values = [self.d_min] * n_arms

    def bounds(self, arm):
        rewards = [reward for _, reward in self.weighted(arm)]
        n = len(rewards)
        radius = self.c * math.sqrt(math.log(self.n_arms * max(math.log(n), 1) / self.delta) / n)
        return np.mean(rewards) - radius, np.mean(rewards) + radius, n

    def settle(self, ticket, arm, reward):
        super().settle(ticket, arm, reward)
        best = max(self.bounds(k)[0] for k in range(self.n_arms) if self.settled(k))
        _, upper, n = self.bounds(arm)
        self.judge(arm, best - upper, n)

    def add(self):
        super().add()
        self.values.append(self.d_min)

    def remove(self, arm):
        super().remove(arm)
        del self.values[arm]

    def reset(self, keep):
        super().reset(keep)
        self.values = [value if k in keep else self.d_min for k, value in enumerate(self.values)]


class NaiveD3RB(Naive):
    def judge(self, arm, lack, n):
        if abs(lack - self.values[arm] * n**0.5 / n) < 1e-12:
            return  # too close to call
        if self.values[arm] * n**0.5 / n < lack:
            self.values[arm] *= 2

    def potential(self, arm):
        return self.values[arm] * self.count(arm) ** 0.5


class NaiveED2RB(Naive):
    def judge(self, arm, lack, n):
        wanted = max(self.d_min, n**0.5 * lack) * n**0.5
        self.values[arm] = sorted([self.values[arm], wanted, 2 * self.values[arm]])[1]

    def potential(self, arm):
        return self.values[arm] * (self.count(arm) / max(self.settled(arm), 1)) ** 0.5


@pytest.mark.parametrize(("kind", "naive"), [(D3RB, NaiveD3RB), (ED2RB, NaiveED2RB)])
@given(todo=operations(UNIT), n_arms=st.integers(1, 4))
def test_the_potentials_follow_from_the_whole_history(kind, naive, n_arms, todo):
    bandit = kind(n_arms, d_min=0.05, c=0.3, delta=0.2)
    history = naive(n_arms)
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    expected = [
        -history.potential(k) if history.count(k) else math.inf for k in range(bandit.n_arms)
    ]
    assert bandit.indices().tolist() == pytest.approx(expected, rel=1e-9)
