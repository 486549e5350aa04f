"""Log-probabilities of actions: one draw with its log-probability, and many actions at once."""

import copy
import math
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.noise import NormalActionNoise

from esbas import Trajectory, TrajectorySet, Transition
from esbas.learners import (
    DQN,
    EpsilonGreedy,
    FittedQ,
    LinearFQI,
    SB3Learner,
    SharedReplay,
    TabularQ,
)
from esbas.learners.dqn.on_pytorch.pytorch import torch

VALUES = np.array([0.0, 2.0, 2.0, 1.0])
SEEN = np.arange(6) % 3


def batch() -> TrajectorySet:
    """A few trajectories with three observations and four actions."""
    data = TrajectorySet()
    rng = np.random.default_rng(0)
    for _ in range(5):
        data.append(
            Trajectory(
                rng.integers(3, size=7), rng.integers(4, size=6), rng.normal(size=6), True, False
            )
        )
    return data


def learned(learner: Any) -> Any:
    learner.learn(batch())
    return learner.policy()


def table() -> EpsilonGreedy:
    return learned(TabularQ("q", states=3, actions=4, epsilon=0.4))


def unlearned_linear() -> EpsilonGreedy:
    return LinearFQI(
        "linear", lambda seen: np.eye(3)[seen], actions=4, epsilon=lambda _: 0.4
    ).policy()


def linear() -> EpsilonGreedy:
    return learned(
        LinearFQI("linear", lambda seen: np.eye(3)[seen], actions=4, epsilon=lambda _: 0.4)
    )


def fitted() -> EpsilonGreedy:
    spaces = {"observation_space": gym.spaces.Discrete(3), "action_space": gym.spaces.Discrete(4)}
    return learned(FittedQ("fitted", "DecisionTreeRegressor", **spaces, epsilon=0.4))


def deep() -> EpsilonGreedy:
    env = SimpleNamespace(
        observation_space=gym.spaces.Discrete(3), action_space=gym.spaces.Discrete(4)
    )
    return learned(
        DQN(
            "deep",
            replay=SharedReplay(env, buffer_size=100),
            hidden=(8,),
            learning_starts=5,
            epsilon=(0.4, 0.4, 1),
        )
    )


POLICIES = [table, unlearned_linear, linear, fitted, deep]


@pytest.mark.parametrize("make", POLICIES)
def test_acting_with_a_log_prob_draws_the_same_actions(make: Any) -> None:
    policy = make()
    one = np.random.default_rng(3)
    other = np.random.default_rng(3)
    observations = np.tile(SEEN, 10)
    plain = [policy.act(seen, one) for seen in observations]
    drawn = [policy.act_with_log_prob(seen, other) for seen in observations]
    assert [action for action, _ in drawn] == plain
    assert one.bit_generator.state == other.bit_generator.state
    np.testing.assert_allclose(
        [log_prob for _, log_prob in drawn],
        policy.log_probs(observations, np.array(plain)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("make", POLICIES)
def test_log_probs_are_those_of_the_frequencies(make: Any) -> None:
    policy = make()
    rng = np.random.default_rng(4)
    draws = 2000
    for seen in range(3):
        actions = [policy.act(seen, rng) for _ in range(draws)]
        frequencies = np.bincount(actions, minlength=4) / draws
        log_probs = policy.log_probs(np.full(4, seen), np.arange(4))
        np.testing.assert_allclose(np.exp(log_probs), frequencies, atol=4 * math.sqrt(0.25 / draws))
        tied = make is unlearned_linear
        np.testing.assert_allclose(
            sorted(np.exp(log_probs)), [0.25] * 4 if tied else [0.1, 0.1, 0.1, 0.7]
        )


def test_epsilon_greedy_by_hand() -> None:
    policy = EpsilonGreedy(lambda _: VALUES, lambda: 0.2)
    # two are best
    assert policy.log_probs(np.zeros(4), np.arange(4)) == pytest.approx(
        np.log([0.05, 0.45, 0.45, 0.05])
    )


def test_impossible_actions() -> None:
    greedy = EpsilonGreedy(lambda _: VALUES, lambda: 0.0)
    assert greedy.log_probs(np.zeros(3), np.array([0, 1, 2])).tolist() == [
        -np.inf,
        math.log(0.5),
        math.log(0.5),
    ]
    exploring = EpsilonGreedy(lambda _: VALUES, lambda: 1.0)
    assert exploring.log_probs(np.zeros(3), np.array([-1, 0, 4])) == pytest.approx(
        [-np.inf, math.log(0.25), -np.inf]
    )


@pytest.mark.parametrize("batched", [True, False])
def test_values_are_computed_once(batched: bool) -> None:
    calls: list[Any] = []

    def values(observation: Any) -> Any:
        calls.append(observation)
        return np.tile(VALUES, (len(observation), 1)) if np.ndim(observation) else VALUES

    policy = EpsilonGreedy(values, lambda: 0.5, batch_values=values if batched else None)
    policy.act_with_log_prob(0, np.random.default_rng(0))
    assert len(calls) == 1
    policy.log_probs(SEEN, SEEN)
    assert len(calls) == 1 + (1 if batched else len(SEEN))


# Stable-Baselines3

DISCRETE = gym.spaces.Discrete(3)
LOPSIDED = gym.spaces.Box(np.array([-2.0], np.float32), np.array([5.0], np.float32))
PLANE = gym.spaces.Box(np.array([-2.0, 0.0], np.float32), np.array([5.0, 0.5], np.float32))
OBSERVATIONS = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)


def member(algorithm: str, action_space: Any, *, warm: bool = True, **options: Any) -> SB3Learner:
    """A member of Stable-Baselines3, after its warm-up by default."""
    space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    env = SimpleNamespace(observation_space=space, action_space=copy.deepcopy(action_space))
    small = {"policy_kwargs": {"net_arch": [16]}, "learning_starts": 10} | options
    learner = SB3Learner(
        "it",
        algorithm,
        replay=SharedReplay(env, buffer_size=50),
        total_steps=1000,
        options=small,
        seed=3,
    )
    learner.model.num_timesteps = 10 if warm else 9
    if hasattr(learner.model, "exploration_rate"):
        learner.model.exploration_rate = 0.4
    return learner


@pytest.mark.parametrize("warm", [True, False], ids=["exploring", "warm-up"])
@pytest.mark.parametrize(
    ("algorithm", "space"), [("dqn", DISCRETE), ("qrdqn", DISCRETE), ("sac", PLANE), ("tqc", PLANE)]
)
def test_sb3_acts_the_same_with_log_probs(algorithm: str, space: Any, warm: bool) -> None:
    plain, with_log_probs = (member(algorithm, space, warm=warm) for _ in range(2))
    rng = np.random.default_rng(0)
    seen = np.tile(OBSERVATIONS, (8, 1))
    actions = [plain.policy().act(each, rng) for each in seen]
    drawn = [with_log_probs.policy().act_with_log_prob(each, rng) for each in seen]
    np.testing.assert_array_equal(actions, [action for action, _ in drawn])
    one, other = (learner._generators.state_dict() for learner in (plain, with_log_probs))
    np.testing.assert_equal(one, other)  # no additional draws
    expected = with_log_probs.policy().log_probs(seen, np.array(actions))
    # single precision
    np.testing.assert_allclose([log_prob for _, log_prob in drawn], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("algorithm", ["dqn", "qrdqn"])
def test_sb3_explores_epsilon_greedily(algorithm: str) -> None:
    learner = member(algorithm, DISCRETE)
    draws = 2000
    policy = learner.policy()
    seen = OBSERVATIONS[0]
    probabilities = np.exp(policy.log_probs(np.tile(seen, (3, 1)), np.arange(3)))
    assert sorted(probabilities) == pytest.approx([0.4 / 3, 0.4 / 3, 0.6 + 0.4 / 3])
    assert probabilities.argmax() == learner.greedy_policy().act(seen, np.random.default_rng(0))
    actions = [policy.act(seen, np.random.default_rng(0)) for _ in range(draws)]
    np.testing.assert_allclose(
        np.bincount(actions, minlength=3) / draws, probabilities, atol=4 * math.sqrt(0.25 / draws)
    )


@pytest.mark.parametrize("algorithm", ["dqn", "qrdqn"])
def test_sb3_makes_one_forward_pass_per_step(algorithm: str) -> None:
    learner = member(algorithm, DISCRETE)
    passes = []
    model: Any = learner.model
    network = model.q_net if algorithm == "dqn" else model.quantile_net
    network.register_forward_hook(lambda *_: passes.append(1))
    for _ in range(20):
        learner.policy().act_with_log_prob(OBSERVATIONS[0], np.random.default_rng(0))
    assert len(passes) == 20


def grid(steps: int) -> tuple[Any, float]:
    """The midpoints of equal cells of `LOPSIDED`, and their width."""
    width = 7.0 / steps
    return (-2.0 + width * (np.arange(steps) + 0.5))[:, None], width


@pytest.mark.parametrize("warm", [True, False], ids=["exploring", "warm-up"])
@pytest.mark.parametrize("algorithm", ["sac", "tqc"])
def test_densities_integrate_to_one(algorithm: str, warm: bool) -> None:
    policy, (actions, width) = member(algorithm, LOPSIDED, warm=warm).policy(), grid(100_000)
    for seen in OBSERVATIONS[:2]:
        densities = np.exp(policy.log_probs(np.tile(seen, (len(actions), 1)), actions))
        assert densities.sum() * width == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("algorithm", ["sac", "tqc"])
def test_densities_are_those_of_the_actions_in_the_environment(algorithm: str) -> None:
    learner = member(algorithm, LOPSIDED)
    draws = 3000
    bins = 14
    policy = learner.policy()
    seen = OBSERVATIONS[0]
    rng = np.random.default_rng(0)
    actions = np.array([policy.act(seen, rng) for _ in range(draws)])
    cells, width = grid(bins * 100)
    masses = (
        np.exp(policy.log_probs(np.tile(seen, (len(cells), 1)), cells)).reshape(bins, 100).sum(1)
        * width
    )
    frequencies = np.histogram(actions, bins=bins, range=(-2, 5))[0] / draws
    np.testing.assert_allclose(frequencies, masses, atol=4 * math.sqrt(0.2 / draws))
    outside = np.array([[-2.1], [5.1]])
    assert policy.log_probs(np.tile(seen, (2, 1)), outside).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize("algorithm", ["sac", "tqc"])
def test_densities_agree_with_the_library(algorithm: str) -> None:
    """The library has the density in [-1, 1]² and adds 1e-6 to each 1 - tanh²."""
    learner = member(algorithm, PLANE)
    model: Any = learner.model
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        scaled, log_densities = model.actor.action_log_prob(torch.from_numpy(OBSERVATIONS))
    actions = model.policy.unscale_action(scaled.numpy())
    expected = log_densities.numpy() - math.log(7.0 / 2) - math.log(0.5 / 2)
    np.testing.assert_allclose(
        learner.policy().log_probs(OBSERVATIONS, actions), expected, rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize("action", [-2.0, 5.0])
def test_densities_at_the_bounds_are_finite(action: float) -> None:
    assert np.isfinite(
        member("sac", LOPSIDED).policy().log_probs(OBSERVATIONS[:1], np.array([[action]]))
    ).all()


def test_sb3_warm_up_is_uniform() -> None:
    discrete, box = (
        member(*case, warm=False).policy() for case in (("dqn", DISCRETE), ("sac", PLANE))
    )
    rng = np.random.default_rng(0)
    assert discrete.act_with_log_prob(OBSERVATIONS[0], rng)[1] == pytest.approx(-math.log(3))
    assert box.act_with_log_prob(OBSERVATIONS[0], rng)[1] == pytest.approx(
        -math.log(7.0) - math.log(0.5)
    )


def test_models_without_log_probs_lack_the_methods() -> None:
    noise = NormalActionNoise(np.zeros(2), np.ones(2))
    policies = [
        member("td3", PLANE).policy(),
        member("ddpg", PLANE).policy(),
        member("sac", PLANE, action_noise=noise).policy(),
        member("sac", PLANE).greedy_policy(),
    ]
    for policy in policies:
        assert not hasattr(policy, "act_with_log_prob")
        assert not hasattr(policy, "log_probs")


def test_a_live_policy_follows_its_learner() -> None:
    learner = TabularQ("q", states=3, actions=4, epsilon=0.0)
    policy = learner.policy()
    assert policy.log_probs(np.array([0]), np.array([2])).tolist() == [math.log(0.25)]
    learner.step(Transition(0, 2, 1.0, 1, False, False))
    assert policy.log_probs(np.array([0]), np.array([2])).tolist() == [0.0]
