"""Successive elimination, median elimination, explore then commit."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import UNIT, History, expect_same_statistics, operations, replay
from esbas.bandits import ExploreThenCommit, MedianElimination, SuccessiveElimination
from esbas.bandits.elimination import elimination_radius, median_elimination_pulls


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


def rounds_until_commitment(bandit, means, limit=100_000, seed=0):
    rng = np.random.default_rng(seed)
    for number in range(limit):
        if len(bandit.survivors) == 1:
            return number
        arm = bandit.choose()
        bandit.update(arm, float(rng.random() < means[arm]))
    return limit


def test_successive_elimination_by_hand():
    # sqrt(ln(5 * 2 * 100^2 / 0.1) / 100) = 0.37169222, so that 2 alpha = 0.743
    assert elimination_radius(2, 100, 0.1) == pytest.approx(0.37169222)
    bandit = SuccessiveElimination(2)
    for number in range(1, 1000):
        assert bandit.choose() == 0  # round robin over the survivors
        bandit.update(0, 1.0)
        assert bandit.survivors == [0, 1]  # no test before both have a new reward
        assert bandit.choose() == 1
        bandit.update(1, 0.3)
        if 2 * elimination_radius(2, number, 0.1) <= 0.7:
            break
        assert bandit.survivors == [0, 1]
    assert bandit.survivors == [0]
    assert number == 116  # sqrt(ln(100 * 116^2) / 116) = 0.3488
    assert bandit.indices().tolist() == [-116, -math.inf]
    assert [bandit.choose(), bandit.choose(among=[1])] == [0, 1]


def test_successive_elimination_accepts_an_error():
    bandit = play(SuccessiveElimination(2, epsilon=0.8), [(0, 0.5), (1, 0.6)] * 100)
    assert bandit.survivors == [1]  # the radius is below 0.4 after 85 pulls of each
    assert play(SuccessiveElimination(2), [(0, 0.5), (1, 0.6)] * 100).survivors == [0, 1]


def test_a_kept_arm_counts_with_its_own_radius():
    bandit = play(SuccessiveElimination(2), [(0, 0.9), (1, 0.5)] * 100)
    bandit.reset(keep=[0])
    assert bandit.survivors == [0, 1]
    assert bandit.counts.tolist() == [100, 0]
    assert bandit.choose() == 1


def test_median_elimination_by_hand():
    # epsilon_1 = 0.05, delta_1 = 0.05: 4 / 0.0025 ln 60 = 6550.95; epsilon_2 = 0.0375, delta_2 =
    # 0.025: 13617.75
    assert [median_elimination_pulls(stage, 0.2, 0.1) for stage in (1, 2)] == [6551, 13618]
    # 4 / (1/16) ln 12 = 159.03, 4 / (9/256) ln 24 = 361.6
    bandit = MedianElimination(5, epsilon=1, delta=0.5)
    values = [0.3, 0.9, 0.1, 0.6, 0.2]
    for _ in range(160 * 5 - 1):
        arm = bandit.choose()
        bandit.update(arm, values[arm])
    assert bandit.survivors == [0, 1, 2, 3, 4]
    bandit.update(bandit.choose(), values[4])
    assert bandit.survivors == [0, 1, 3]  # the better half, rounded up
    values = [0.9, 0.0, 0.1, 0.6, 0.2]  # only rewards of the second stage count there
    for _ in range(362 * 3):
        arm = bandit.choose()
        bandit.update(arm, values[arm])
    assert bandit.survivors == [0, 3]
    assert bandit.counts.tolist() == [522, 522, 160, 522, 160]


def test_median_elimination_ends_with_ties():
    bandit = MedianElimination(4, epsilon=1, delta=0.5)
    assert rounds_until_commitment(bandit, [1.0] * 4) < 10_000
    assert bandit.survivors == [0]


def test_explore_then_commit_by_hand():
    bandit = ExploreThenCommit(3, pulls=2)
    played = []
    for reward in (0.5, 0.0, 0.25, 0.25, 1.0, 0.5):
        played.append(bandit.choose())
        bandit.update(played[-1], reward)
    assert played == [0, 1, 2, 0, 1, 2]
    assert bandit.survivors == [1]  # means 0.375, 0.5, 0.375
    play(bandit, [(1, 0.0)] * 10)
    assert bandit.choose() == 1  # permanently
    assert bandit.choose(among=[0, 2]) == 0
    bandit.remove_arm(1)
    assert bandit.survivors == [0, 1]  # the other arm is back


def test_explore_then_commit_waits_for_rewards_in_flight():
    bandit = ExploreThenCommit(2, pulls=1)
    tickets = [bandit.pull(bandit.choose()) for _ in range(4)]
    bandit.update(0, 0.0, pull=tickets[0])
    assert bandit.survivors == [0, 1]
    bandit.update(1, 1.0, pull=tickets[3])
    assert bandit.survivors == [1]


def test_explore_then_commit_follows_the_horizon():
    assert ExploreThenCommit(3, horizon=24_000).pulls == 400  # 8000^(2/3)


@pytest.mark.parametrize(
    "make", [SuccessiveElimination, lambda n: MedianElimination(n, epsilon=0.5), ExploreThenCommit]
)
def test_the_best_arm_survives(make):
    bandit = make(3)
    rounds_until_commitment(bandit, [0.2, 0.9, 0.5])
    assert bandit.survivors == [1]


class Elimination(History):
    """Replays each stage from lists of rewards."""

    def __init__(self, n_arms):
        super().__init__(n_arms)
        self.survivors = list(range(n_arms))
        self.stage = 1
        self.fresh = [[] for _ in range(n_arms)]

    def rewards(self, arm):
        return [reward for _, reward in self.weighted(arm)]

    def settle(self, ticket, arm, reward):
        super().settle(ticket, arm, reward)
        self.fresh[arm].append(reward)
        if len(self.survivors) > 1:
            self.test()

    def restart(self):
        self.stage = 1
        self.fresh = [[] for _ in range(self.n_arms)]

    def add(self):
        super().add()
        self.survivors.append(self.n_arms - 1)
        self.restart()

    def remove(self, arm):
        super().remove(arm)
        del self.fresh[arm]
        self.survivors = [k - (k > arm) for k in self.survivors if k != arm]
        if not self.survivors:
            self.survivors = list(range(self.n_arms))
            self.restart()

    def reset(self, keep):
        super().reset(keep)
        self.survivors = list(range(self.n_arms))
        self.restart()


class NaiveSuccessive(Elimination):
    delta, epsilon = 0.9, 1.9  # so that arms are eliminated within a few rounds
    tested = 0

    def test(self):
        fewest = min(len(self.rewards(k)) for k in self.survivors)
        if fewest > self.tested:
            self.tested = fewest
            means = {k: np.mean(self.rewards(k)) for k in self.survivors}
            radii = {
                k: math.sqrt(math.log(5 * self.n_arms * n**2 / self.delta) / n)
                for k in means
                for n in [len(self.rewards(k))]
            }
            if (
                math.sqrt(math.log(5 * self.n_arms * fewest**2 / self.delta) / fewest)
                <= self.epsilon / 2
            ):
                self.survivors = [max(self.survivors, key=means.get)]
            else:
                best = max(means[k] - radii[k] for k in means)
                self.survivors = [k for k in self.survivors if means[k] + radii[k] > best]

    def restart(self):
        super().restart()
        self.tested = 0


class NaiveMedian(Elimination):
    def test(self):
        if min(len(self.fresh[k]) for k in self.survivors) >= median_elimination_pulls(
            self.stage, 1, 0.99
        ):
            ranked = sorted(
                self.survivors, key=lambda k: (-sum(self.fresh[k]) / len(self.fresh[k]), k)
            )
            self.survivors = sorted(ranked[: (len(ranked) + 1) // 2])
            self.stage = self.stage + 1
            self.fresh = [[] for _ in range(self.n_arms)]


class NaiveCommitment(Elimination):
    def test(self):
        if min(len(self.rewards(k)) for k in self.survivors) >= 3:
            self.survivors = [max(self.survivors, key=lambda k: np.mean(self.rewards(k)))]


# sums of these are exact, so ties are exact
SIXTEENTHS = st.integers(0, 16).map(lambda number: number / 16)


@pytest.mark.parametrize(
    ("make", "model"),
    [
        (lambda n: SuccessiveElimination(n, delta=0.9, epsilon=1.9), NaiveSuccessive),
        (lambda n: MedianElimination(n, epsilon=1, delta=0.99), NaiveMedian),
        (lambda n: ExploreThenCommit(n, pulls=3), NaiveCommitment),
    ],
    ids=["successive", "median", "commit"],
)
@given(todo=operations(SIXTEENTHS | UNIT.map(round), max_size=60), n_arms=st.integers(1, 4))
def test_the_survivors_follow_from_the_whole_history(make, model, n_arms, todo):
    bandit, history = make(n_arms), model(n_arms)
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    assert bandit.survivors == history.survivors
    assert bandit.choose() in history.survivors


def test_median_elimination_follows_from_a_long_history():
    rng = np.random.default_rng(5)
    bandit = MedianElimination(6, epsilon=1, delta=0.99)
    history = NaiveMedian(6)
    stages = [list(bandit.survivors)]
    while len(bandit.survivors) > 1:
        arm = bandit.choose()
        reward = float(rng.integers(2))
        ticket = bandit.pull(arm)
        history.fresh[arm].append(reward)
        bandit.update(arm, reward, pull=ticket)
        history.test()
        assert bandit.survivors == history.survivors
        if bandit.survivors != stages[-1]:
            stages.append(list(bandit.survivors))
    assert [len(stage) for stage in stages] == [6, 3, 2, 1]
