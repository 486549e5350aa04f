"""Every bandit: the contract, saved states, and valid numbers in long runs."""

import json
import math
import re
from functools import partial

import numpy as np
import pytest

from esbas import ESBAS, SSBAS, BanditSelector
from esbas.bandits import BANDITS, RandomBandit, make_bandit, on_window
from esbas.testing import check_bandit, check_selector

OTHER_PARAMETERS = {
    "ucbv": {"zeta": 1.0, "c": 0.3},
    "klucb": {"c": 3.0},
    "gaussianthompson": {"prior_pulls": 1.0, "sigma": 1.0},
    "successiveelimination": {"delta": 0.99, "epsilon": 1.5},  # commits within the check
    "medianelimination": {"epsilon": 1.0, "delta": 0.99},
    "explorethencommit": {"pulls": 4},
    "epsilongreedy": {"epsilon": 1.0},
    "swucb": {"window": 5},
    "swucbsharp": {"lam": 12.3, "alpha": 0.9},
    "discounteducb": {"horizon": 10, "breaks": 5},
    "slidingthompson": {"window": 1},
    "discountedthompson": {"discount": 0.2},
    "exp3": {"gamma": 1.0},
    "exp3s": {"alpha": 0.5, "switches": 10},
    "exp3r": {"interval": 20.0, "delta": 0.99, "gamma": 0.7},  # the detector acts within the check
    "rexp3": {"horizon": 30, "variation": 10.0},
    "corral": {"horizon": 10},
    "d3rb": {"d_min": 0.01, "c": 0.01},
    "ed2rb": {"d_min": 0.01, "c": 0.01},
    "agent57": {"window": 3, "epsilon": 0.1},
    "rlessucb": {"epsilon": 0.45, "sigma": 0.01},
}


@pytest.mark.parametrize("name", BANDITS)
def test_the_contract_is_kept(name):
    check_bandit(make_bandit(name))
    if name in OTHER_PARAMETERS:
        check_bandit(partial(make_bandit(name), **OTHER_PARAMETERS[name]))


@pytest.mark.parametrize("name", BANDITS)
def test_the_contract_is_kept_on_a_window(name):
    check_bandit(on_window(make_bandit(name), size=lambda tau: tau // 2))
    check_bandit(on_window(make_bandit(name), size=lambda tau: 10), seed=1)


@pytest.mark.parametrize("name", BANDITS)
def test_it_works_in_epochs_on_a_window_and_on_learning_arms(name):
    for kind in (ESBAS, SSBAS, BanditSelector):
        check_selector(partial(kind, bandit=make_bandit(name)))


@pytest.mark.parametrize("name", BANDITS)
def test_a_saved_bandit_continues_identically(name):
    rng = np.random.default_rng(0)
    bandit = make_bandit(name)(3, rng=np.random.default_rng(1))
    for number in range(400):
        arm = bandit.choose()
        bandit.update(arm, float(rng.random() ** (arm + 1)))
        if number % 80 == 0:
            bandit.pull(number % 3)  # stays in flight
    text = json.dumps(bandit.state_dict(), allow_nan=False)
    twin = make_bandit(name)(3, rng=np.random.default_rng())
    twin.load_state_dict(json.loads(text))
    twin.rng.bit_generator.state = bandit.rng.bit_generator.state
    for _ in range(400):
        arm = bandit.choose()
        reward = float(rng.random())
        assert twin.choose() == arm
        bandit.update(arm, reward)
        twin.update(arm, reward)
    assert json.dumps(twin.state_dict()) == json.dumps(bandit.state_dict())


REWARDS = {
    "at 0": [0.0],
    "at 1": [1.0],
    "mixed": np.random.default_rng(0).choice([0.0, 1.0, 0.5, 1e-300, 0.9], 997).tolist(),
}


def expect_sound(bandit, rewards):
    """Numbers can be saved, probabilities have sum 1, means are in the range of the rewards."""
    indices = bandit.indices()
    means = bandit.means
    assert not np.isnan(indices).any()
    known = means[~np.isnan(means)]
    assert known.size
    assert min(rewards) - 1e-12 <= known.min() <= known.max() <= max(rewards) + 1e-12
    assert np.isfinite(bandit.counts).all()
    assert bandit.choose() in range(bandit.n_arms)
    json.dumps(bandit.state_dict(), allow_nan=False)
    if isinstance(bandit, RandomBandit):
        assert indices.sum() == pytest.approx(1)
        assert indices.min() > 0


def run_long(name, rounds, which):
    rewards = REWARDS[which]
    bandit = make_bandit(name)(3, rng=np.random.default_rng(0))
    for number in range(rounds):
        bandit.update(bandit.choose(), rewards[number % len(rewards)])
    expect_sound(bandit, rewards)
    for arm in range(3):  # a sudden change
        for _ in range(50):
            bandit.update(arm, 1.0 - rewards[0])
    expect_sound(bandit, [0.0, 1.0])


@pytest.mark.parametrize("which", REWARDS)
@pytest.mark.parametrize("name", BANDITS)
def test_a_long_run_ends_in_sound_numbers(name, which):
    run_long(name, 5_000, which)


@pytest.mark.slow
@pytest.mark.parametrize("which", REWARDS)
@pytest.mark.parametrize("name", BANDITS)
def test_a_million_rounds_end_in_sound_numbers(name, which):
    run_long(name, 1_000_000, which)


def test_every_docstring_names_its_source():
    # without a source, or from the paper
    without = {"uniform", "roundrobin", "epsilongreedy", "explorethencommit", "slidingucb"}
    assert {
        name for name in BANDITS if not re.search(r"\b(19|20)\d\d", make_bandit(name).__doc__)
    } == without


@pytest.mark.parametrize("name", [name for name in BANDITS if not make_bandit(name).any_scale])
def test_rewards_outside_0_1_are_refused_where_they_make_no_sense(name):
    bandit = make_bandit(name)(2)
    if bandit.any_scale:
        bandit.update(0, 7.0)
        return
    for reward in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="A reward must be between 0 and 1, but got"):
            bandit.update(0, reward)
    assert bandit.counts.tolist() == [0, 0]
