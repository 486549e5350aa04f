"""R-less-UCB: by hand, and from lists of all rewards."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import ANY_SIZE, History, expect_same_statistics, operations, replay
from esbas.bandits import RLessUCB
from esbas.bandits.rising import RisingArm


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


def test_r_less_ucb_by_hand():
    bandit = RLessUCB(2)
    play(bandit, [(0, reward / 10) for reward in range(1, 9)] + [(1, 0.5)])
    # n = 8, h = 2, t = 10: rewards rise by 0.1 per pull, so that the 10th would be 1.0;
    # bonus 0.5 (10 - 8 + 2 - 1) sqrt(10 * 4 ln 10 / 8) = 5.0896053
    assert bandit.indices().tolist() == pytest.approx([1.0 + 5.0896053, math.inf])
    assert bandit.choose() == 1  # fewer than four pulls: no window yet


def test_constant_rewards_are_expected_to_stay():
    bandit = play(RLessUCB(1, sigma=0), [(0, 0.25)] * 50)
    assert bandit.indices().tolist() == pytest.approx([0.25])


def test_the_spread_scales_the_bonus():
    small = RLessUCB(2)
    large = RLessUCB(2)
    large.spread = 64.0
    for number in range(60):
        reward = number % 7 / 7
        play(small, [(number % 2, reward)])
        play(large, [(number % 2, 64 * reward)])
    assert large.indices().tolist() == pytest.approx((64 * small.indices()).tolist())


def estimate(rewards, epsilon, time):
    n = len(rewards)
    h = math.floor(epsilon * len(rewards))
    x = dict(enumerate(rewards, start=1))
    return (
        sum(
            x[number] + (time - number) * (x[number] - x[number - h]) / h
            for number in range(n - h + 1, n + 1)
        )
        / h
    )


@given(
    st.lists(ANY_SIZE, min_size=4, max_size=80),
    st.sampled_from([0.25, 0.3, 0.45, 0.49]),
    st.integers(0, 100),
)
def test_the_sums_follow_from_all_rewards(rewards, epsilon, later):
    arm = RisingArm()
    for number, reward in enumerate(rewards, start=1):
        arm.add(reward, epsilon)
        if arm.window:
            time = number + later
            assert arm.estimate(time) == pytest.approx(
                estimate(rewards[:number], epsilon, time), rel=1e-9, abs=1e-6
            )


class Naive(History):
    epsilon = 0.4
    alpha = 4
    sigma = 0.5

    def __init__(self, n_arms):
        super().__init__(n_arms)
        self.arrived = [[] for _ in range(n_arms)]

    def settle(self, ticket, arm, reward):
        super().settle(ticket, arm, reward)
        self.arrived[arm].append(reward)

    def add(self):
        super().add()
        self.arrived.append([])

    def remove(self, arm):
        super().remove(arm)
        del self.arrived[arm]

    def reset(self, keep):
        super().reset(keep)
        self.arrived = [column if k in keep else [] for k, column in enumerate(self.arrived)]

    def index(self, arm):
        time = self.count() + 1
        n = len(self.arrived[arm])
        value = (
            estimate(self.arrived[arm], self.epsilon, time)
            if math.floor(self.epsilon * n)
            else self.mean_or_prior(arm)
        )
        if not math.floor(self.epsilon * n):
            n = int(self.count(arm))
        h = math.floor(self.epsilon * n)
        if not h:
            return math.inf
        return value + self.sigma * (time - n + h - 1) * math.sqrt(
            10 * math.log(time**self.alpha) / h**3
        )


@given(todo=operations(ANY_SIZE), n_arms=st.integers(1, 3))
def test_the_index_follows_from_the_whole_history(todo, n_arms):
    bandit = RLessUCB(n_arms, epsilon=0.4)
    history = Naive(n_arms)
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    expected = [history.index(k) for k in range(bandit.n_arms)]
    assert bandit.indices().tolist() == pytest.approx(expected, rel=1e-9, abs=1e-6)
