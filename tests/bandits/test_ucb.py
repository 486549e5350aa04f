"""UCB1 and its sliding window: by hand, and against formulas computed from the whole history."""

import math
from fractions import Fraction
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esbas import UCB1, SlidingUCB
from esbas.errors import InvalidValueError
from esbas.testing import check_bandit

REWARDS = st.floats(-1000, 1000) | st.sampled_from([0.0, 1.0, 0.5])
# An operation: its kind, and numbers that determine arms, rounds and rewards.
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["play"] * 4 + ["pull"] * 3 + ["settle"] * 3 + ["withdraw", "add", "remove", "reset"]
        ),
        st.integers(0, 100),
        REWARDS,
    ),
    max_size=60,
)


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)


def test_ucb1_by_hand():
    bandit = UCB1(n_arms=3, xi=0.25)
    assert bandit.indices().tolist() == [math.inf] * 3
    play(bandit, [(0, 1.0), (0, 0.0)])
    # unplayed arms first, the lowest number first
    assert (bandit.choose(), bandit.choose(among=[0, 2])) == (1, 2)
    play(bandit, [(1, 1.0), (2, 0.25)])
    # n = 4, ln 4 = 1.386294; arm 0: 1/2 + sqrt(ln 4 / 8), arm 1: 1 + sqrt(ln 4 / 4), arm 2: 1/4 +
    # sqrt(ln 4 / 4)
    assert bandit.indices().tolist() == pytest.approx(
        [0.5 + 0.4162773, 1.0 + 0.5887050, 0.25 + 0.5887050]
    )
    assert bandit.counts.tolist() == [2, 1, 1]
    assert bandit.means.tolist() == [0.5, 1.0, 0.25]
    assert bandit.choose() == 1


def test_the_parameter_of_auer_makes_the_bonus_larger():
    bandit = UCB1(n_arms=2, xi=2)
    play(bandit, [(0, 0.5), (1, 0.5), (1, 0.5)])
    # sqrt(2 ln 3 / 1) = 1.482304, sqrt(2 ln 3 / 2) = 1.048147
    assert bandit.indices().tolist() == pytest.approx([0.5 + 1.482304, 0.5 + 1.048147])


def test_the_bonus_grows_with_the_spread_of_the_rewards():
    bandit = UCB1(n_arms=2, spread=100.0)
    play(bandit, [(0, 50.0), (1, 0.0)])
    # 100 sqrt(ln 2 / 4)
    assert bandit.indices().tolist() == pytest.approx([50 + 41.62773, 41.62773])


def test_without_exploration_the_best_mean_wins():
    bandit = UCB1(n_arms=3, xi=0)
    play(bandit, [(0, 0.5), (1, 0.7), (2, 0.7)])
    assert bandit.choose() == 1  # the lowest number of equals


def test_a_single_pull_has_no_bonus():
    bandit = UCB1(n_arms=1)
    bandit.update(0, 3.0)
    assert bandit.indices().tolist() == [3.0]  # ln 1 = 0


def test_rounds_in_flight_count_as_pulls():
    bandit = UCB1(n_arms=2)
    play(bandit, [(0, 1.0), (1, 0.0)])
    ticket = bandit.pull(0)
    assert bandit.counts.tolist() == [2, 1]
    assert bandit.means.tolist() == [1.0, 0.0]
    # sqrt(ln 3 / 8), sqrt(ln 3 / 4)
    assert bandit.indices().tolist() == pytest.approx([1.0 + 0.3705760, 0.5240735])
    bandit.update(0, 0.0, pull=ticket)
    assert bandit.means.tolist() == [0.5, 0.0]


def test_the_sliding_window_by_hand():
    bandit = SlidingUCB(n_arms=2, xi=0.25)  # before round t it holds the last floor(t / 2) rounds
    expected = {
        1: ([1, 0], [1.0, math.nan]),
        2: ([0, 1], [math.nan, 0.0]),
        3: ([1, 1], [0.5, 0.0]),
        4: ([1, 1], [0.5, 1.0]),
    }
    for number, (arm, reward) in enumerate([(0, 1.0), (1, 0.0), (0, 0.5), (1, 1.0)], start=1):
        bandit.update(arm, reward)
        counts, means = expected[number]
        assert bandit.counts.tolist() == counts
        assert bandit.means.tolist() == pytest.approx(means, nan_ok=True)
    # the window before round 6 holds rounds 3, 4, 5: arm 0 with 1/2, arm 1 with 1 and 1/4
    bandit.update(1, 0.25)
    assert bandit.counts.tolist() == [1, 2]
    # sqrt(ln 3 / 4) = 0.5240735, sqrt(ln 3 / 8) = 0.3705760
    assert bandit.indices().tolist() == pytest.approx([0.5 + 0.5240735, 0.625 + 0.3705760])
    assert bandit.choose() == 0


def test_a_reward_that_arrives_after_its_round_left_the_window_has_no_effect():
    bandit = SlidingUCB(n_arms=2)
    ticket = bandit.pull(0)
    play(bandit, [(1, 0.5)] * 5)
    bandit.update(0, 1.0, pull=ticket)
    assert bandit.counts.tolist() == [0, 3]
    assert math.isnan(bandit.means[0])


class WholeHistory:
    """All rounds; statistics are recomputed from them exactly each time."""

    def __init__(self, n_arms, size):
        self.arms = list(range(n_arms))  # identities, which stay the same when the numbers change
        self.next_arm = n_arms
        self.rounds = []  # [arm, exact reward or None]; arm None: withdrawn or forgotten
        self.tickets = {}  # round -> the bandit's ticket
        self.size = size

    def window(self):
        known = self.size(len(self.rounds) + 1)
        return self.rounds[max(len(self.rounds) - known, 0) :] if known else []

    def in_flight(self):
        return [
            number
            for number, (arm, reward) in enumerate(self.rounds)
            if arm is not None and reward is None
        ]

    def counts(self):
        return [sum(arm == each for each, _ in self.window()) for arm in self.arms]

    def means(self):
        rewards = [
            [reward for each, reward in self.window() if each == arm and reward is not None]
            for arm in self.arms
        ]
        return [sum(column, Fraction(0)) / len(column) if column else None for column in rewards]

    def indices(self, xi):
        counts = self.counts()
        means = self.means()
        known = [reward for arm, reward in self.window() if arm is not None and reward is not None]
        prior = sum(known, Fraction(0)) / len(known) if known else Fraction(0)
        total = sum(counts)
        return [
            float(prior if mean is None else mean) + math.sqrt(xi * math.log(total) / count)
            if count
            else math.inf
            for count, mean in zip(counts, means, strict=True)
        ]


def replay(bandit, history, operations):
    """Apply the same operations to the bandit and to the whole history."""
    for what, number, reward in operations:
        arm = number % bandit.n_arms
        flying = history.in_flight()
        if what == "play":
            bandit.update(arm, reward)
            history.rounds.append([history.arms[arm], Fraction(reward)])
        elif what == "pull":
            history.tickets[len(history.rounds)] = bandit.pull(arm)
            history.rounds.append([history.arms[arm], None])
        elif what == "settle" and flying:
            chosen = flying[number % len(flying)]
            bandit.update(
                history.arms.index(history.rounds[chosen][0]), reward, pull=history.tickets[chosen]
            )
            history.rounds[chosen][1] = Fraction(reward)
        elif what == "withdraw" and flying:
            chosen = flying[number % len(flying)]
            bandit.withdraw(history.tickets[chosen])
            history.rounds[chosen][0] = None
        elif what == "add":
            bandit.add_arm()
            history.arms.append(history.next_arm)
            history.next_arm += 1
        elif what == "remove" and bandit.n_arms > 1:
            bandit.remove_arm(arm)
            gone = history.arms.pop(arm)
            history.rounds = [
                [None if each == gone else each, known] for each, known in history.rounds
            ]
        elif what == "reset":
            keep = [arm] if number % 2 else []
            bandit.reset(keep=keep)
            kept = [history.arms[k] for k in keep]
            history.rounds = [
                [each if each in kept and known is not None else None, known]
                for each, known in history.rounds
            ]


@given(st.integers(1, 5), OPERATIONS, st.sampled_from([0.0, 0.25, 2.0]))
def test_ucb1_equals_the_whole_history(n_arms, operations, xi):
    bandit, history = UCB1(n_arms, xi=xi), WholeHistory(n_arms, size=lambda tau: tau)
    replay(bandit, history, operations)
    assert bandit.counts.tolist() == history.counts()
    means = [math.nan if mean is None else float(mean) for mean in history.means()]
    assert bandit.means.tolist() == pytest.approx(means, rel=1e-12, abs=1e-9, nan_ok=True)
    indices = history.indices(xi)
    assert bandit.indices().tolist() == pytest.approx(indices, rel=1e-12, abs=1e-9)
    assert indices[bandit.choose()] >= max(indices) - 1e-9


@given(
    st.integers(1, 5),
    OPERATIONS,
    st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.25, 2.0]),
)
def test_the_sliding_window_equals_the_whole_history_exactly(n_arms, operations, fraction, xi):
    bandit = SlidingUCB(n_arms, xi=xi, fraction=fraction)
    history = WholeHistory(n_arms, size=lambda tau: math.floor(tau * fraction))
    replay(bandit, history, operations)
    assert bandit.counts.tolist() == history.counts()
    means = [math.nan if mean is None else float(mean) for mean in history.means()]
    assert bandit.means.tolist() == pytest.approx(means, rel=0, abs=0, nan_ok=True)
    indices = history.indices(xi)
    assert bandit.indices().tolist() == indices
    assert bandit.choose() == indices.index(max(indices))


@pytest.mark.parametrize(
    "factory",
    [UCB1, partial(UCB1, xi=2), partial(UCB1, xi=0)]
    + [partial(SlidingUCB, fraction=f) for f in (0.01, 0.3, 0.5, 1)],
)
def test_the_contract_is_kept(factory):
    check_bandit(factory)


@pytest.mark.parametrize("xi", [-1, -1e-9, math.nan, math.inf])
@pytest.mark.parametrize("kind", [UCB1, SlidingUCB])
def test_a_bad_parameter_is_refused(kind, xi):
    with pytest.raises(InvalidValueError, match=r"`xi` must be finite and at least 0, but got "):
        kind(2, xi=xi)


@pytest.mark.parametrize("fraction", [0, -0.5, 1.5, math.nan])
def test_a_bad_fraction_is_refused(fraction):
    with pytest.raises(InvalidValueError, match="`fraction` must be greater than 0 and at most 1"):
        SlidingUCB(2, fraction=fraction)


@pytest.mark.parametrize("n_arms", [0, -1])
def test_a_bad_number_of_arms_is_refused(n_arms):
    with pytest.raises(InvalidValueError, match="`n_arms` must be a whole number of at least 1"):
        UCB1(n_arms)
