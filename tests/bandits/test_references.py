"""Comparison with bandits of other libraries.

Where they are wrong, the difference is stated and tested.

MABWiser is part of the development extra. SMPyBandits is installed with `pip install -e
'.[references]'`, since it depends on scikit-learn and pandas; its tests are skipped if it is not
installed.
"""

import contextlib
import io
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from esbas.bandits import SWUCB, UCB1, DiscountedUCB, Exp3

ROUNDS = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1)), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def smpybandits():
    """Return its policies.

    On import it prints a lot, disables all warnings of NumPy, and needs a function that SciPy has
    renamed.
    """
    special = pytest.importorskip("scipy.special")
    errors = np.geterr()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        # the same function, under the name it had before SciPy 1.14
        if not hasattr(special, "btdtri"):
            special.btdtri = special.betaincinv
        reason = "SMPyBandits is not installed: pip install -e '.[references]'"
        policies = pytest.importorskip("SMPyBandits.Policies", reason=reason)
    np.seterr(**errors)
    return SimpleNamespace(
        SWUCB=policies.SWUCB, DiscountedUCB=policies.DiscountedUCB, Exp3=policies.Exp3
    )


def feed(policy, rounds):
    for arm, reward in rounds:
        policy.getReward(arm, reward)


def play(bandit, rounds):
    for arm, reward in rounds:
        bandit.update(arm, reward)
    return bandit


@pytest.mark.parametrize("alpha", [0.5, 1.0, math.sqrt(1 / 8)])
@settings(max_examples=30)
@given(rounds=ROUNDS)
def test_ucb1_agrees_with_mabwiser(alpha, rounds):
    """Its bonus is α √(2 ln n / n_k), so that ξ = 2 α².

    Its default α = 1 is Auer's ξ = 2; the paper's 1/4 is α = √(1/8).
    """
    mab = pytest.importorskip(
        "mabwiser.mab", reason="MABWiser is not installed: pip install -e '.[dev]'"
    )
    # it gives an arm without a pull the index 0; ours goes first
    every = [(arm, 0.5) for arm in range(3)] + rounds
    other = mab.MAB(arms=[0, 1, 2], learning_policy=mab.LearningPolicy.UCB1(alpha=alpha))
    other.fit(decisions=[arm for arm, _ in every], rewards=[reward for _, reward in every])
    ours = play(UCB1(3, xi=2 * alpha**2), every)
    theirs = other.predict_expectations()
    assert ours.indices().tolist() == pytest.approx([theirs[arm] for arm in range(3)], rel=1e-9)


@given(rounds=ROUNDS, window=st.integers(1, 20))
def test_sw_ucb_agrees_with_smpybandits(smpybandits, rounds, window):
    other = smpybandits.SWUCB(3, tau=window, alpha=0.6)  # its α is our ξ
    other.startGame()
    feed(other, rounds)
    ours = play(SWUCB(3, window=window, xi=0.6), rounds)
    assert ours.indices().tolist() == pytest.approx(
        [other.computeIndex(arm) for arm in range(3)], rel=1e-9, abs=1e-12
    )


@given(rounds=ROUNDS, gamma=st.floats(0.05, 1))
def test_exp3_agrees_with_smpybandits(smpybandits, rounds, gamma):
    other = smpybandits.Exp3(3, gamma=gamma)
    other.startGame()
    feed(other, rounds)
    assert play(Exp3(3, gamma=gamma), rounds).indices().tolist() == pytest.approx(
        other.trusts.tolist(), rel=1e-6
    )


def discounted_pair(smpybandits, rounds, gamma, n_arms):
    with contextlib.redirect_stdout(io.StringIO()):  # it warns when gamma is 1
        other = smpybandits.DiscountedUCB(n_arms, gamma=gamma, alpha=4.0)
    other.startGame()
    # it keeps discounted counts as integers, which truncates them: fixed here
    other.discounted_pulls = np.zeros(n_arms)
    feed(other, rounds)
    # Its bonus is √(α ln n / (2 N_k)), that of the article 2 √(ξ ln n / N_k): α = 8 ξ.
    return other, play(DiscountedUCB(n_arms, discount=gamma, xi=0.5), rounds)


@given(rounds=ROUNDS, gamma=st.floats(0.5, 1))
def test_discounted_means_agree_with_smpybandits(smpybandits, rounds, gamma):
    other, ours = discounted_pair(smpybandits, rounds, gamma, 3)
    seen = other.discounted_pulls > 0
    means = np.divide(
        other.discounted_rewards, other.discounted_pulls, out=np.full(3, math.nan), where=seen
    )
    assert ours.means.tolist() == pytest.approx(means.tolist(), rel=1e-9, abs=1e-12, nan_ok=True)
    last = rounds[-1][
        0
        # the count of the arm just pulled is right; that of others is not discounted until they are
        # pulled again
    ]
    assert ours.counts[last] == pytest.approx(other.discounted_pulls[last])


@given(rounds=ROUNDS)
def test_discounted_ucb_agrees_with_smpybandits_where_no_count_is_stale(smpybandits, rounds):
    every = [(arm, 0.5) for arm in range(3)] + rounds
    other, ours = discounted_pair(smpybandits, every, 1.0, 3)  # no discount
    assert ours.indices().tolist() == pytest.approx(
        [other.computeIndex(arm) for arm in range(3)], rel=1e-9
    )
    alone = [(0, reward) for _, reward in rounds]
    # the only arm is pulled in every round
    other, ours = discounted_pair(smpybandits, alone, 0.8, 1)
    assert ours.indices().tolist() == pytest.approx([other.computeIndex(0)], rel=1e-9)


def test_smpybandits_does_not_discount_arms_that_are_not_pulled(smpybandits):
    other, ours = discounted_pair(smpybandits, [(0, 1.0)] + [(1, 0.0)] * 20, 0.5, 2)
    assert other.discounted_pulls[0] == 1.0  # the article: 0.5^20
    assert ours.counts[0] == pytest.approx(0.5**20)
    assert ours.indices()[0] > 100 > other.computeIndex(0)  # so it never tries the arm again
