"""Thompson sampling: the posterior by hand and from all rounds, and samples that follow it."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.histories import (
    UNIT,
    History,
    expect_same_statistics,
    of_discount,
    of_window,
    operations,
    replay,
)
from esbas.bandits import (
    BetaThompson,
    Discounted,
    DiscountedThompson,
    GaussianThompson,
    SlidingThompson,
    Window,
)
from esbas.errors import InvalidValueError


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


def shares(bandit, draws=4000):
    """How often each arm is chosen."""
    return np.bincount([bandit.choose() for _ in range(draws)], minlength=bandit.n_arms) / draws


def test_the_beta_posterior_counts_successes_and_failures_not_pulls():
    bandit = play(BetaThompson(2), [(0, 1.0), (0, 0.0), (0, 0.0), (1, 0.25)])
    assert bandit.posterior(0) == (2.0, 3.0)  # 1 + one success, 1 + two failures
    assert bandit.posterior(1) == (1.25, 1.75)
    assert bandit.indices().tolist() == pytest.approx([2 / 5, 1.25 / 3])


def test_the_beta_prior_can_be_chosen():
    assert play(BetaThompson(1, successes=3, failures=0.5), [(0, 1.0)]).posterior(0) == (4.0, 0.5)


def test_beta_samples_follow_the_posterior():
    # P(Beta(2, 1) > Beta(1, 1)) = 2/3: the mean of the first
    bandit = play(BetaThompson(2, rng=np.random.default_rng(1)), [(0, 1.0)])
    assert shares(bandit)[0] == pytest.approx(2 / 3, abs=0.03)


def test_the_gaussian_posterior_by_hand():
    # N(S / (n + 1), 1 / (n + 1)), as Agrawal and Goyal
    bandit = GaussianThompson(2, prior_mean=0, prior_pulls=1, sigma=1)
    play(bandit, [(0, 1.0), (0, 0.5), (1, 1.0)])
    assert bandit.indices().tolist() == pytest.approx([0.5, 0.5])
    flat = play(GaussianThompson(2), [(0, 1.0), (0, 0.5)])
    assert flat.indices().tolist() == [0.75, math.inf]
    assert flat.choose() == 1


def test_gaussian_samples_follow_the_posterior():
    # difference of the samples: N(0.25, 1/4 / 4 + 1/4 / 1), so arm 0 wins with Phi(0.25 / 0.559017)
    # = 0.6726
    rounds = [(0, 0.75)] * 4 + [(1, 0.5)]
    assert shares(play(GaussianThompson(2, rng=np.random.default_rng(2)), rounds))[
        0
    ] == pytest.approx(0.6726, abs=0.03)


def test_the_propensity_is_unknown():
    assert BetaThompson(2).propensity(0) is None
    assert GaussianThompson(2).propensity(0, among=[0]) is None


def test_the_spread_scales_gaussian_samples():
    choices = []
    for factor in (1.0, 128.0):
        bandit = GaussianThompson(3, rng=np.random.default_rng(3))
        bandit.spread = factor
        play(bandit, [(0, 0.75 * factor), (1, 0.5 * factor), (2, 0.25 * factor)])
        choices.append([bandit.choose() for _ in range(200)])
    assert choices[0] == choices[1]


def test_a_reward_outside_0_1_is_refused_where_the_prior_needs_it():
    for bandit in (BetaThompson(2), GaussianThompson(2, prior_pulls=1)):
        with pytest.raises(InvalidValueError, match="A reward must be between 0 and 1, but got"):
            bandit.update(0, 1.5)
    play(GaussianThompson(2), [(0, 1.5)])


def test_rounds_in_flight_are_ignored():
    bandit = play(BetaThompson(2), [(0, 1.0)])
    bandit.pull(0)
    assert bandit.posterior(0) == (2.0, 1.0)
    assert bandit.counts.tolist() == [2, 0]
    flat = play(GaussianThompson(2), [(0, 1.0)])
    flat.pull(1)
    assert flat.indices().tolist() == [1.0, 1.0]  # the mean of all arms is used


def growing(tau):
    return tau // 2


CASES = {
    "all rounds": (BetaThompson, History),
    "window": (
        partial(SlidingThompson, window=6),
        partial(History, weigh=of_window(lambda tau: 6)),
    ),
    "discount": (
        partial(DiscountedThompson, discount=0.7),
        partial(History, weigh=of_discount(0.7)),
    ),
}


@pytest.mark.parametrize("case", CASES)
@given(todo=operations(UNIT), n_arms=st.integers(1, 4))
def test_the_beta_posterior_follows_from_the_whole_history(case, n_arms, todo):
    factory, make_history = CASES[case]
    bandit = factory(n_arms)
    history = make_history(n_arms)
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    for arm in range(bandit.n_arms):
        successes = math.fsum(w * x for w, x in history.weighted(arm))
        failures = math.fsum(w * (1 - x) for w, x in history.weighted(arm))
        assert bandit.posterior(arm) == pytest.approx((1 + successes, 1 + failures), rel=1e-9)


@pytest.mark.parametrize("prior_pulls", [0.0, 2.0])
@pytest.mark.parametrize("memory", [None, "window", "discount"])
@given(todo=operations(UNIT), n_arms=st.integers(1, 4))
def test_the_gaussian_posterior_follows_from_the_whole_history(memory, prior_pulls, n_arms, todo):
    memories = {
        "window": Window(n_arms, size=growing),
        "discount": Discounted(n_arms, discount=0.7),
    }
    weights = {"window": of_window(growing), "discount": of_discount(0.7)}
    bandit = GaussianThompson(n_arms, prior_pulls=prior_pulls, memory=memories.get(memory))
    history = History(n_arms, *([weights[memory]] if memory else []))
    replay(bandit, history, todo)
    expect_same_statistics(bandit, history)
    expected = []
    for arm in range(bandit.n_arms):
        weight = prior_pulls + history.settled(arm)
        total = 0.5 * prior_pulls + math.fsum(w * x for w, x in history.weighted(arm))
        unplayed = math.inf if not history.count(arm) else history.mean_or_prior(arm)
        expected.append(total / weight if weight else unplayed)
    assert bandit.indices().tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
