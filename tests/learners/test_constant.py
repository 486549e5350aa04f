import gymnasium
import numpy as np
import pytest

from doubles import Always
from esbas.learners import Constant
from esbas.testing import Corridor, check_learner


def test_a_function_is_a_policy_with_log_probs():
    policy, rng = Constant("c", lambda seen: seen + 1).policy(), np.random.default_rng(0)
    assert (policy.act(3, rng), policy.act_with_log_prob(3, rng)) == (4, (4, 0.0))
    assert policy.log_probs(np.array([3, 3]), np.array([4, 5])).tolist() == [0.0, -np.inf]


def test_discrete_actions_may_be_arrays_or_tuples():
    seen = np.array([[1, 2]] * 2)
    actions = np.array([[2, 4], [2, 5]])
    assert Constant("c", lambda seen: 2 * seen).policy().log_probs(seen, actions).tolist() == [
        0.0,
        -np.inf,
    ]
    assert Constant("c", lambda seen: (2, 4)).policy().log_probs(seen, actions).tolist() == [
        0.0,
        -np.inf,
    ]
    assert Constant("c", lambda seen: np.int64(1)).policy().log_probs(
        np.zeros(1), np.ones(1, int)
    ).tolist() == [0.0]


@pytest.mark.parametrize("action", [0.5, np.array([0.5]), (1, 0.5)], ids=str)
def test_a_deterministic_continuous_action_has_no_density(action):
    policy = Constant("c", lambda _: action).policy()
    assert np.isnan(policy.act_with_log_prob(0, np.random.default_rng(0))[1])
    assert np.isnan(policy.log_probs(np.zeros(1), np.array([action]))).all()
    assert policy.log_probs(np.zeros(1), np.array([action]) + 0.1).tolist() == [-np.inf]


def test_a_policy_is_taken_as_it_is():
    policy = Always(1)
    assert Constant("c", policy).policy() is policy


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("CartPole-v1", lambda seen: int(seen[2] > 0)),
        ("Pendulum-v1", lambda seen: seen[:1].astype(np.float32)),
    ],
)
def test_the_contract_is_kept_in_gymnasium(name, function):
    check_learner(lambda: Constant("c", function), gymnasium.make(name, max_episode_steps=30))


def test_the_contract_is_kept_by_a_policy_without_log_probs():
    check_learner(lambda: Constant("c", Always(1)), Corridor())
