"""Bandits that are a formula over a memory: by hand, and against the formula on all rounds."""

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import (
    ANY_SIZE,
    UNIT,
    History,
    expect_same_statistics,
    of_discount,
    of_window,
    operations,
    replay,
)
from esbas.bandits import (
    KLUCB,
    SWUCB,
    UCB1,
    UCBV,
    Discounted,
    DiscountedUCB,
    SWUCBSharp,
    UCBTuned,
    Window,
)
from esbas.bandits.kl_ucb import bernoulli_kl, kl_ucb_level, kl_upper_bound


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


# arm 0: mean 1/2, variance 1/4; arm 1: mean 1/2, variance 0
THREE_ROUNDS = [(0, 1.0), (1, 0.5), (0, 0.0)]


def test_ucb_v_by_hand():
    # t = 4, E = 1.2 ln 4 = 1.663553; arm 0: 1/2 + sqrt(2 / 4 * E / 2) + 3 E / 2, arm 1: 1/2 + 3 E
    assert play(UCBV(2), THREE_ROUNDS).indices().tolist() == pytest.approx([3.6402239, 5.4906597])


def test_ucb_tuned_by_hand():
    # ln 3 / 2 = 0.549306, ln 3 = 1.098612; the minimum is 1/4 for both
    assert play(UCBTuned(2), THREE_ROUNDS).indices().tolist() == pytest.approx(
        [0.8705760, 1.0240735]
    )
    bandit = play(UCBTuned(2), [(0, 0.5)] * 199 + [(1, 0.5)])
    # ln 200 / 199 = 0.02662471; no variance: sqrt(0.02662471 * sqrt(2 * 0.02662471)) = 0.07838287
    assert bandit.indices()[0] == pytest.approx(0.5 + 0.07838287)


def test_kl_ucb_by_hand():
    # After three rounds t = 4. Arm 0: kl(1/2, q) = -ln(4 q (1 - q)) / 2 = ln 4 / 2, so q = (1 +
    # sqrt(3/4)) / 2
    assert play(KLUCB(2), THREE_ROUNDS).indices()[0] == pytest.approx((1 + math.sqrt(3 / 4)) / 2)
    bandit = play(KLUCB(3), [(0, 0.0), (1, 1.0), (2, 0.0)])
    # kl(0, q) = -ln(1 - q) = ln 4
    assert bandit.indices().tolist() == pytest.approx([3 / 4, 1.0, 3 / 4])


@pytest.mark.parametrize("c", [0, 3])
def test_kl_ucb_is_defined_at_ln_ln_1(c):
    index = play(KLUCB(1, c=c), [(0, 0.3)]).indices()[0]
    # t = 2
    assert 0.3 * math.log(0.3 / index) + 0.7 * math.log(0.7 / (1 - index)) == pytest.approx(
        0.0 if c else math.log(2)
    )
    # discounted counts may add up to less than one
    assert kl_ucb_level(0.5, c) == kl_ucb_level(1, c) == 0.0
    assert kl_ucb_level(math.e, 3) == 1.0  # ln ln e = 0
    assert kl_ucb_level(math.exp(math.e), 3) == pytest.approx(math.e + 3)


@given(st.floats(0, 1), st.floats(0, 50))
def test_the_kl_bound_is_the_largest_that_fits(mean, divergence):
    bound = kl_upper_bound(mean, divergence)
    low = mean
    high = 1.0
    for _ in range(200):  # bisection
        middle = (low + high) / 2
        if middle < 1 and bernoulli_kl(mean, middle or 5e-324) <= divergence:
            low = middle
        else:
            high = middle
    # kl is flat around the mean: bisection is not more precise
    assert bound == pytest.approx(low, abs=1e-7)
    assert mean <= bound <= 1


def test_discounted_ucb_by_hand():
    # counts 1/4 + 1 and 1/2, means 1/5 and 1/2, n = 7/4; 2 sqrt(ln(7/4) / 2 / N_k)
    bandit = play(DiscountedUCB(2, discount=0.5), THREE_ROUNDS)
    assert bandit.counts.tolist() == [1.25, 0.5]
    assert bandit.means.tolist() == pytest.approx([0.2, 0.5])
    assert bandit.indices().tolist() == pytest.approx([1.1462480, 0.5 + 1.4961494])


def test_the_discount_follows_horizon_and_breaks():
    assert DiscountedUCB(2).memory.discount == 0.99
    assert DiscountedUCB(2, horizon=10_000, breaks=4).memory.discount == pytest.approx(1 - 0.02 / 4)


def test_sw_ucb_by_hand():
    bandit = play(SWUCB(2, window=3), [(0, 1.0), (1, 0.0), (0, 0.0), (1, 1.0)])
    # the first round has left: arm 0 with 0, arm 1 with 0 and 1; sqrt(ln 3 / 2 / 1), sqrt(ln 3 / 2
    # / 2)
    assert bandit.counts.tolist() == [1, 2]
    assert bandit.indices().tolist() == pytest.approx([0.7411519, 0.5 + 0.5240735])


def test_the_default_window_follows_the_horizon():
    bandit = SWUCB(2, horizon=100)  # 4 sqrt(100 ln 100) = 85.8
    play(bandit, [(number % 2, 1.0) for number in range(200)])
    assert bandit.counts.sum() == 86


@pytest.mark.parametrize("window", [1, 10, 37])
def test_a_window_never_holds_more_than_its_size(window):
    bandit = SWUCB(3, window=window)
    for _ in range(100):
        bandit.update(bandit.choose(), 1.0)
        assert bandit.counts.sum() <= window
    assert bandit.counts.sum() == window


def test_a_reward_that_expires_leaves_its_own_arm():
    # arm 0 leaves while arm 1 is pulled
    bandit = play(SWUCB(2, window=2), [(0, 1.0), (1, 0.25), (1, 0.5)])
    assert bandit.means.tolist() == pytest.approx([math.nan, 0.375], nan_ok=True)


def test_sw_ucb_sharp_by_hand():
    bandit = play(SWUCBSharp(2, lam=1, alpha=0.5), [(0, 1.0), (1, 0.0), (0, 0.0), (1, 1.0)])
    # after t = 4 rounds the window contains 2; sqrt(1.5 ln 4) = 1.4420269: the logarithm counts all
    # rounds, also older ones
    assert bandit.counts.tolist() == [1, 1]
    assert bandit.indices().tolist() == pytest.approx([1.4420269, 2.4420269])


def test_sw_ucb_sharp_can_have_the_window_of_ssbas():
    sharp, half = (
        SWUCBSharp(2, lam=0.5, alpha=1),
        UCB1(2, memory=Window(2, size=lambda tau: tau // 2)),
    )
    for number in range(200):
        for bandit in (sharp, half):
            bandit.update(number % 3 % 2, number % 7 / 7)
        assert sharp.counts.tolist() == half.counts.tolist()


def log_bonus(xi, factor=1.0):
    def index(history, arm):
        bonus = math.sqrt(xi * math.log(max(history.count(), 1)) / history.count(arm))
        return history.mean_or_prior(arm) + factor * bonus

    return index


def sharp_index(history, arm):
    return history.mean_or_prior(arm) + math.sqrt(
        1.5 * math.log(len(history.rounds)) / history.count(arm)
    )


def largest_if_unknown(variance):
    return 0.25 if math.isnan(variance) else variance


def ucb_v_index(history, arm):
    rate = 1.2 * math.log(history.count() + 1) / history.count(arm)
    return (
        history.mean_or_prior(arm)
        + math.sqrt(2 * largest_if_unknown(history.variance(arm)) * rate)
        + 3 * rate
    )


def ucb_tuned_index(history, arm):
    rate = math.log(max(history.count(), 1)) / history.count(arm)
    width = min(0.25, largest_if_unknown(history.variance(arm)) + math.sqrt(2 * rate))
    return history.mean_or_prior(arm) + math.sqrt(rate * width)


def kl_index(history, arm):
    mean = history.mean_or_prior(arm)
    low = history.mean_or_prior(arm)
    high = 1.0
    for _ in range(100):
        q = (low + high) / 2
        first = mean * math.log(mean / q) if mean > 0 else 0.0
        second = (1 - mean) * math.log((1 - mean) / (1 - q)) if mean < 1 and q < 1 else 0.0
        if history.count(arm) * (first + second) <= math.log(history.count() + 1):
            low = q
        else:
            high = q
    return low


def growing(tau):
    return tau // 2


MEMORIES = {
    "all rounds": (None, History),
    "window": (
        lambda n_arms: Window(n_arms, size=growing),
        partial(History, weigh=of_window(growing)),
    ),
    "discount": (
        lambda n_arms: Discounted(n_arms, discount=0.7),
        partial(History, weigh=of_discount(0.7)),
    ),
}
FORMULAS = {
    "UCB1": (UCB1, log_bonus(0.25)),
    "UCBV": (UCBV, ucb_v_index),
    "UCBTuned": (UCBTuned, ucb_tuned_index),
}
FORMULAS |= {"KLUCB": (KLUCB, kl_index)}


def expect_same_indices(bandit, history, index, tolerance=1e-7):
    expect_same_statistics(bandit, history)
    expected = [index(history, k) if history.count(k) else math.inf for k in range(bandit.n_arms)]
    assert bandit.indices().tolist() == pytest.approx(expected, rel=tolerance, abs=tolerance)
    chosen = expected[bandit.choose()]
    assert chosen == pytest.approx(max(expected), rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("name", FORMULAS)
@given(todo=operations(UNIT), n_arms=st.integers(1, 4))
def test_the_index_follows_from_the_whole_history(name, memory, n_arms, todo):
    (make_memory, make_history), (kind, index) = MEMORIES[memory], FORMULAS[name]
    bandit = kind(n_arms, memory=make_memory(n_arms) if make_memory else None)
    history = make_history(n_arms)
    replay(bandit, history, todo)
    expect_same_indices(bandit, history, index)


@pytest.mark.parametrize(
    ("factory", "weigh", "index"),
    [
        (partial(SWUCB, window=7), of_window(lambda tau: 7), log_bonus(0.5)),
        (SWUCBSharp, of_window(lambda tau: min(math.ceil((tau - 1) ** 0.5), tau - 1)), sharp_index),
        (partial(DiscountedUCB, discount=0.6), of_discount(0.6), log_bonus(0.5, factor=2)),
    ],
    ids=["SWUCB", "SWUCBSharp", "DiscountedUCB"],
)
@given(todo=operations(ANY_SIZE), n_arms=st.integers(1, 4))
def test_the_index_of_changing_arms_follows_from_the_whole_history(
    factory, weigh, index, n_arms, todo
):
    bandit, history = factory(n_arms), History(n_arms, weigh)
    replay(bandit, history, todo)
    expect_same_indices(bandit, history, index)


@pytest.mark.parametrize("kind", [UCB1, UCBV, UCBTuned])
@given(todo=operations(UNIT))
def test_the_size_of_rewards_changes_no_choice(kind, todo):
    unit = kind(3)
    large = kind(3)
    large.spread = 64.0  # a power of two: the same digits
    for what, number, reward in todo:
        if what != "reset":
            unit.update(number % 3, reward)
            large.update(number % 3, 64 * reward)
    assert large.indices().tolist() == pytest.approx((64 * unit.indices()).tolist(), rel=1e-9)
