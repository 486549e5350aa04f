"""Rewards that are increased where observations are rare."""

import doctest
import math

import gymnasium as gym
import numpy as np
import pytest

from esbas import Transition
from esbas.errors import InvalidValueError
from esbas.learners import BonusQ, TabularQ, count_bonus
from esbas.specs.portfolios.recipe import recipe_of
from esbas.testing import Corridor, check_learner


def table(**options):
    return BonusQ("it", **{"states": 4, "actions": 2, "learning_rate": 0.5} | options)


def random_steps(seed, count=200):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        seen, action, following = (int(rng.integers(n)) for n in (4, 2, 4))
        yield Transition(seen, action, float(rng.normal()), following, rng.random() < 0.1, False)


def test_the_formula():
    assert doctest.testmod(count_bonus).failed == 0
    assert count_bonus.count_bonus(3.0, 9) == 1.0
    assert count_bonus.count_bonus(3.0, 0) == 3.0


def test_a_table_by_hand():
    learner = table(gamma=0.5, initial=0.0, bonus=2.0)
    learner.step(Transition(0, 1, 1.0, 3, False, False))
    assert learner.table[0, 1] == 1.5  # 0.5 * (1 + 2 / sqrt(1))
    learner.step(Transition(3, 0, 0.0, 3, True, False))  # a terminal observation counts, too
    expected = 0.5 * 2 / math.sqrt(2)
    assert learner.table[3, 0] == pytest.approx(expected)
    learner.step(Transition(0, 1, 1.0, 3, False, False))
    target = 1 + 2 / math.sqrt(3) + 0.5 * expected
    assert learner.table[0, 1] == pytest.approx(1.5 + 0.5 * (target - 1.5))
    assert learner.visits.tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("seed", range(3))
def test_it_is_q_learning_from_increased_rewards(seed):
    learner = table(bonus=0.7, zeta=2.0)
    plain = TabularQ("q", states=4, actions=2, learning_rate=0.5, initial=1.0)
    without = table(bonus=0.0)
    unchanged = TabularQ("q", states=4, actions=2, learning_rate=0.5, initial=1.0)
    seen = []
    for step in random_steps(seed):
        seen.append(step.next_observation)
        bonus = 0.7 / math.sqrt(seen.count(step.next_observation))
        learner.step(step)
        plain.step(step._replace(reward=step.reward + bonus))
        without.step(step)
        unchanged.step(step)
    np.testing.assert_allclose(learner.table, plain.table, rtol=1e-12)
    np.testing.assert_array_equal(without.table, unchanged.table)
    assert learner.visits.tolist() == np.bincount(seen, minlength=4).tolist()


def test_the_contract_is_kept():
    check_learner(lambda: BonusQ.for_env(Corridor(), bonus=0.5), Corridor())


def test_counts_are_saved_and_checked():
    learner = table()
    for step in random_steps(0):
        learner.step(step)
    twin = table()
    twin.load_state_dict(learner.state_dict())
    np.testing.assert_array_equal(twin.visits, learner.visits)
    broken = learner.state_dict()
    broken["visits"][2] = -1
    before = twin.state_dict()
    with pytest.raises(
        InvalidValueError, match="saved visits of learner 'it' must not be negative"
    ):
        twin.load_state_dict(broken)
    with pytest.raises(InvalidValueError, match="visits"):
        twin.load_state_dict(before | {"visits": np.zeros(3, np.int64)})
    np.testing.assert_equal(twin.state_dict(), before)


@pytest.mark.parametrize("bonus", [-0.1, math.inf, math.nan])
def test_factors_are_checked(bonus):
    with pytest.raises(InvalidValueError, match="`bonus` must be finite and not negative"):
        table(bonus=bonus)


def test_portfolios_have_the_table():
    env = gym.make("FrozenLake-v1")
    (learner,) = recipe_of(["bonus_q(bonus=0.3, initial=2.0)"]).build(env, steps=10, seed=0)
    assert type(learner) is BonusQ
    assert (learner.bonus, learner.table.max(), learner.name) == (0.3, 2.0, "bonus Q")
    assert BonusQ.for_env(env, bonus=0.3).name == "bonus Q bonus 0.3"
