"""Exp3, Exp3.S, Exp3.R and Rexp3: by hand, and against weights computed from all rounds."""

import json
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import UNIT, Model, operations, replay
from esbas.bandits import Exp3, Exp3R, Exp3S, Rexp3
from esbas.errors import InvalidValueError


def probabilities(bandit):
    return bandit.indices().tolist()


def log_weights(bandit):
    return [arm.log_weight for arm in bandit.memory.arms]


def is_uniform(bandit, ticket):
    """Whether Exp3.R drew the round uniformly."""
    return bandit.memory.open[ticket].note[1]


def test_exp3_by_hand():
    bandit = Exp3(2, gamma=0.5)
    assert probabilities(bandit) == [0.5, 0.5]
    bandit.update(0, 1.0)  # w = exp(0.5 / (2 * 0.5)) = 1.648721 and 1; p = 1/2 * 0.622459 + 1/4
    assert probabilities(bandit) == pytest.approx([0.56122967, 0.43877033])
    bandit.update(1, 0.5)  # w_1 = exp(0.25 / (2 * 0.43877033)) = 1.329645
    assert probabilities(bandit) == pytest.approx([0.52678590, 0.47321410])


def test_exp3_s_by_hand():
    bandit = Exp3S(2, gamma=0.5, alpha=0.1)
    bandit.update(0, 1.0)  # w = 1.648721 + 0.271828 and 1 + 0.271828: the sum before the step is 2
    assert probabilities(bandit) == pytest.approx([0.55080236, 0.44919764])


def test_the_parameters_follow_the_horizon():
    assert Exp3(3, horizon=10_000).gamma == pytest.approx(
        math.sqrt(3 * math.log(3) / (math.e - 1) / 10_000)
    )
    assert Exp3(3, horizon=1).gamma == 1.0
    bandit = Exp3S(3, horizon=10_000, switches=4)
    assert bandit.gamma == pytest.approx(
        math.sqrt(3 * (4 * math.log(30_000) + math.e) / (math.e - 1) / 10_000)
    )
    assert bandit.alpha == 1e-4


def test_a_late_reward_is_divided_by_the_probability_of_its_draw():
    late = Exp3(2, gamma=0.5)
    prompt = Exp3(2, gamma=0.5)
    ticket = late.pull(1)  # drawn with 1/2
    late.update(0, 1.0)
    late.update(1, 1.0, pull=ticket)
    prompt.update(1, 1.0)  # the same two rewards, both drawn with 1/2
    ticket = prompt.pull(0)
    assert probabilities(late) == [0.5, 0.5]
    prompt.update(0, 1.0, pull=ticket)
    assert probabilities(prompt)[0] > 0.5  # drawn with less than 1/2


def test_an_arm_chosen_among_few_counts_with_its_share_of_them():
    bandit = Exp3(4, gamma=0.5)
    assert bandit.choose(among=[2]) == 2
    assert bandit.propensity(2, among=[2]) == 1.0
    bandit.update(2, 1.0, pull=bandit.pull(2, probability=1.0))  # exp(0.5 / 4)
    weight = math.exp(0.125)
    assert probabilities(bandit)[2] == pytest.approx(0.5 * weight / (weight + 3) + 0.125)


def test_choices_follow_the_probabilities():
    bandit = Exp3(3, gamma=0.3, rng=np.random.default_rng(0))
    for arm in (0, 0, 1, 0):
        bandit.update(arm, 1.0)
    expected = probabilities(bandit)
    chosen = np.bincount([bandit.choose() for _ in range(10_000)], minlength=3) / 10_000
    assert chosen.tolist() == pytest.approx(expected, abs=0.02)
    pair = np.bincount([bandit.choose(among=[0, 2]) for _ in range(10_000)], minlength=3) / 10_000
    assert pair[0] == pytest.approx(expected[0] / (expected[0] + expected[2]), abs=0.02)


def test_propensities_are_the_probabilities_scaled_to_the_arms():
    bandit = Exp3(3, gamma=0.3)
    for arm in (0, 0, 1, 0):
        bandit.update(arm, 1.0)
    chances = probabilities(bandit)
    assert [bandit.propensity(arm) for arm in range(3)] == chances
    assert bandit.propensity(2, among=[0, 2]) == pytest.approx(
        chances[2] / (chances[0] + chances[2])
    )


def test_weights_do_not_overflow():
    bandit = Exp3(2, gamma=0.02)
    # the probability of arm 1 is at its minimum, 0.01, so each of its rewards multiplies its weight
    # by e
    for _ in range(3000):
        bandit.update(0, 1.0)
    for _ in range(3000):
        bandit.update(1, 1.0)
        bandit.update(0, 1.0)
    assert sum(probabilities(bandit)) == pytest.approx(1)
    assert all(math.isfinite(chance) for chance in probabilities(bandit))
    json.dumps(bandit.state_dict(), allow_nan=False)


def test_exp3_s_recovers_soon_after_a_switch():
    ever = Exp3(2, gamma=0.1)
    shared = Exp3S(2, gamma=0.1, alpha=0.01)
    for bandit in (ever, shared):
        for _ in range(2000):
            bandit.update(0, 1.0)
        for _ in range(15):
            bandit.update(1, 1.0)
    assert probabilities(ever)[1] == pytest.approx(0.05)
    assert probabilities(shared)[1] > 0.5


def test_rexp3_by_hand():
    # (3 ln 3)^(1/3) (10000 / 1)^(2/3) = 690.75; gamma for that many rounds
    bandit = Rexp3(3)
    assert bandit.batch == 691
    assert bandit.gamma == pytest.approx(math.sqrt(3 * math.log(3) / (math.e - 1) / 691))
    bandit = Rexp3(2, horizon=20, variation=5)  # (2 ln 2)^(1/3) 4^(2/3) = 2.81
    assert bandit.batch == 3
    gamma = math.sqrt(2 * math.log(2) / (math.e - 1) / 3)
    bandit.update(0, 1.0)
    # both weights share the sum: w_0 / (w_0 + w_1), with w_0 = exp(gamma / (2 / 2))
    share = math.exp(gamma) / (math.exp(gamma) + 1)
    assert probabilities(bandit) == pytest.approx(
        [(1 - gamma) * share + gamma / 2, (1 - gamma) * (1 - share) + gamma / 2]
    )
    bandit.update(0, 1.0)
    late = bandit.pull(1)
    assert probabilities(bandit) == [0.5, 0.5]  # three rounds: a new batch
    bandit.update(0, 1.0)
    bandit.update(1, 1.0, pull=late)  # a reward of the last batch
    assert probabilities(bandit) == pytest.approx(
        [(1 - gamma) * share + gamma / 2, (1 - gamma) * (1 - share) + gamma / 2]
    )
    assert bandit.means.tolist() == [1.0, 1.0]


def test_exp3_r_by_hand():
    bandit = Exp3R(3)
    # sqrt(3 ln 3 ln 10000 / 10000), 10 sqrt(10000 ln 10000), 2 sqrt(3 ln(1 / 0.0175217) / (2 gamma
    # H))
    assert [bandit.gamma, bandit.interval, bandit.threshold] == pytest.approx(
        [0.05509608, 3034.85426, 0.38095066]
    )
    # every round is uniform; 4 of each arm; 2 sqrt(2 ln(1/0.9) / 16) = 0.2295
    bandit = Exp3R(2, gamma=1, interval=8, delta=0.9)
    assert bandit.threshold == pytest.approx(0.2295218)
    for arm, reward in [(0, 1.0)] * 4 + [(1, 0.0)] * 4:
        bandit.update(arm, reward)
    assert probabilities(bandit) == [0.5, 0.5]  # gamma = 1 hides the weights
    assert log_weights(bandit)[0] > log_weights(bandit)[1]  # arm 0 is presumed and best: no drift
    for arm, reward in [(0, 0.0)] * 4 + [(1, 0.2)] * 4:
        bandit.update(arm, reward)
    assert log_weights(bandit) != [0.0, 0.0]  # better by 0.2: not enough
    for arm, reward in [(0, 0.0)] * 4 + [(1, 0.25)] * 4:
        bandit.update(arm, reward)
    assert log_weights(bandit) == [0.0, 0.0]  # better by 0.25: Exp3 restarts


def test_exp3_r_draws_the_share_gamma_of_rounds_uniformly():
    bandit = Exp3R(3, gamma=0.2, horizon=1000, rng=np.random.default_rng(0))
    seen = np.zeros(3)
    for _ in range(20_000):
        arm = bandit.choose()
        ticket = bandit.pull(arm)
        seen[arm] += is_uniform(bandit, ticket)
        bandit.update(arm, [0.1, 0.9, 0.1][arm], pull=ticket)
    assert (seen / 20_000).tolist() == pytest.approx([0.2 / 3] * 3, abs=0.01)


class NaiveExp3(Model):
    """Plain weights."""

    def __init__(self, n_arms, bandit, gamma=0.3):
        self.bandit = bandit
        self._gamma = gamma
        self.weights = [1.0] * n_arms
        self.open = {}

    @property
    def n_arms(self):
        return len(self.weights)

    @property
    def gamma(self):
        return self._gamma

    def probabilities(self):
        return [
            (1 - self.gamma) * w / sum(self.weights) + self.gamma / self.n_arms
            for w in self.weights
        ]

    def pull(self, ticket, arm, among=None):
        chances = self.probabilities()
        self.open[ticket] = chances[arm] / (1 if among is None else sum(chances[k] for k in among))

    def settle(self, ticket, arm, reward):
        if ticket in self.open:
            self.step(arm, self.gamma * reward / (self.n_arms * self.open.pop(ticket)))

    def step(self, arm, gain):
        self.weights[arm] *= math.exp(gain)

    def withdraw(self, ticket, arm):
        self.open.pop(ticket, None)

    def add(self):
        self.weights.append(sum(self.weights) / self.n_arms)

    def remove(self, arm):
        del self.weights[arm]

    def reset(self, keep):
        mean = sum(self.weights[k] for k in keep) / len(keep) if keep else 1.0
        self.weights = [w if k in keep else mean for k, w in enumerate(self.weights)]
        self.open.clear()


class NaiveExp3S(NaiveExp3):
    def step(self, arm, gain):
        shared = math.e * 0.05 / self.n_arms * sum(self.weights)
        self.weights = [
            w * (math.exp(gain) if k == arm else 1.0) + shared for k, w in enumerate(self.weights)
        ]


class NaiveRexp3(NaiveExp3):
    played = 0

    @property
    def batch(self):
        return max(math.ceil((self.n_arms * math.log(self.n_arms)) ** (1 / 3) * 4 ** (2 / 3)), 1)

    @property
    def gamma(self):
        return min(1.0, math.sqrt(self.n_arms * math.log(self.n_arms) / (math.e - 1) / self.batch))

    def probabilities(self):
        return (
            super().probabilities() if self.played < self.batch else [1 / self.n_arms] * self.n_arms
        )

    def pull(self, ticket, arm, among=None):
        if self.played >= self.batch:
            self.played = 0
            self.weights = [1.0] * self.n_arms
            self.open.clear()
        super().pull(ticket, arm, among)
        self.played += 1

    def withdraw(self, ticket, arm):
        self.played -= ticket in self.open
        super().withdraw(ticket, arm)

    def reset(self, keep):
        super().reset(keep)
        self.played = 0


class NaiveExp3R(NaiveExp3):
    def __init__(self, n_arms, bandit):
        super().__init__(n_arms, bandit)
        self.uniform = set()
        self.seen = [[] for _ in range(n_arms)]

    def pull(self, ticket, arm, among=None):
        super().pull(ticket, arm, among)
        if is_uniform(self.bandit, ticket):  # a random draw of the bandit
            self.uniform.add(ticket)

    def settle(self, ticket, arm, reward):
        super().settle(ticket, arm, reward)
        if ticket in self.uniform:
            self.seen[arm].append(reward)
            if self.n_arms > 1 and min(map(len, self.seen)) >= 0.3 * 5 / self.n_arms:
                means = [sum(column) / len(column) for column in self.seen]
                presumed = means[self.weights.index(max(self.weights))]
                if max(means) - presumed >= 2 * math.sqrt(
                    self.n_arms * math.log(1 / 0.9) / (2 * 0.3 * 5)
                ):
                    self.weights = [1.0] * self.n_arms
                self.clear()

    def clear(self):
        self.seen = [[] for _ in range(self.n_arms)]

    def add(self):
        super().add()
        self.clear()

    def remove(self, arm):
        super().remove(arm)
        del self.seen[arm]

    def reset(self, keep):
        super().reset(keep)
        self.clear()


CASES = {
    "Exp3": (partial(Exp3, gamma=0.3), NaiveExp3),
    "Exp3S": (partial(Exp3S, gamma=0.3, alpha=0.05), NaiveExp3S),
    "Rexp3": (partial(Rexp3, horizon=20, variation=5), NaiveRexp3),
    "Exp3R": (partial(Exp3R, gamma=0.3, interval=5, delta=0.9), NaiveExp3R),
}


@pytest.mark.parametrize("name", CASES)
@given(todo=operations(UNIT), n_arms=st.integers(1, 4), seed=st.integers(0, 9))
def test_the_probabilities_follow_from_the_whole_history(name, n_arms, seed, todo):
    make, naive = CASES[name]
    bandit = make(n_arms, rng=np.random.default_rng(seed))
    model = naive(n_arms, bandit)
    replay(bandit, model, todo)
    assert probabilities(bandit) == pytest.approx(model.probabilities(), rel=1e-9)


def test_a_probability_outside_0_1_is_refused_and_changes_nothing():
    bandit = Exp3(2)
    for probability in (0.0, -0.5, 1.5, math.nan):
        with pytest.raises(
            InvalidValueError, match="`probability` must be greater than 0 and at most 1"
        ):
            bandit.pull(0, probability=probability)
    assert bandit.counts.tolist() == [0, 0]


def test_bad_parameters_are_refused():
    for make in (
        partial(Exp3, gamma=0),
        partial(Exp3, gamma=1.5),
        partial(Exp3S, alpha=0),
        partial(Rexp3, variation=0),
    ):
        with pytest.raises(InvalidValueError):
            make(2)
    with pytest.raises(InvalidValueError, match="A reward must be between 0 and 1, but got"):
        Exp3(2).update(0, -0.1)
