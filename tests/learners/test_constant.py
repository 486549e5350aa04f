import gymnasium
import numpy as np
import pytest

from doubles import Always
from esbas.learners import Constant
from esbas.testing import Corridor, check_learner


def test_a_function_is_a_policy_that_knows_its_probabilities():
    policy = Constant("c", lambda seen: seen + 1).policy()
    assert policy.act(3, np.random.default_rng(0)) == 4
    assert (policy.probability(3, 4), policy.probability(3, 5)) == (1.0, 0.0)


def test_actions_may_be_arrays():
    policy = Constant("c", lambda seen: 2 * seen).policy()
    assert policy.probability(np.array([0.5, 1.0]), np.array([1.0, 2.0])) == 1.0
    assert policy.probability(np.array([0.5, 1.0]), np.array([1.0, 2.5])) == 0.0
    assert policy.probability(np.array([0.5, 1.0]), np.array([1.0])) == 0.0
    assert Constant("c", lambda seen: np.int64(1)).policy().probability(0, 1) == 1.0


def test_a_policy_is_taken_as_it_is():
    policy = Always(1)
    assert Constant("c", policy).policy() is policy


@pytest.mark.parametrize(
    ("name", "function"),
    [("CartPole-v1", lambda seen: int(seen[2] > 0)), ("Pendulum-v1", lambda seen: seen[:1].astype(np.float32))],
)
def test_the_contract_is_kept_in_gymnasium(name, function):
    check_learner(lambda: Constant("c", function), gymnasium.make(name, max_episode_steps=30))


def test_the_contract_is_kept_by_a_policy_that_cannot_tell():
    check_learner(lambda: Constant("c", Always(1)), Corridor())
