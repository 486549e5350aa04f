"""Policies without exploration."""

from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from esbas import Trajectory, TrajectorySet, Transition
from esbas.learners import TabularQ
from esbas.learners.dqn.learner import DQN
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.linear_fqi import LinearFQI
from esbas.learners.sb3.learner import SB3Learner

# acts at random while it learns
SMALL: dict[str, Any] = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 1_000_000}


def actions(policy: Any, observation: Any, *, draws: int = 60) -> set[int]:
    rng = np.random.default_rng(0)
    return {policy.act(observation, rng) for _ in range(draws)}


def test_a_table_is_followed() -> None:
    learner = TabularQ("q", states=1, actions=3, epsilon=1.0)
    learner.step(Transition(0, 2, 1.0, 0, True, False))
    assert actions(learner.policy(), 0) == {0, 1, 2}
    assert actions(learner.greedy_policy(), 0) == {2}


def test_a_fitted_linear_function_is_followed() -> None:
    learner = LinearFQI("fqi", lambda _: np.ones(1), actions=3, epsilon=lambda _: 1.0)
    assert actions(learner.greedy_policy(), 0) == {0, 1, 2}  # all values are equal
    data = TrajectorySet()
    data.append(Trajectory(np.zeros(2), np.array([2]), np.ones(1), True, False))
    learner.learn(data)
    assert actions(learner.policy(), 0) == {0, 1, 2}
    assert actions(learner.greedy_policy(), 0) == {2}


def test_a_network_is_followed() -> None:
    env = gym.make("CartPole-v1")
    learner = DQN("dqn", replay=SharedReplay(env, buffer_size=10))
    seen = np.ones(4, np.float32)
    assert actions(learner.policy(), seen) == {0, 1}
    assert actions(learner.greedy_policy(), seen) == {int(learner.values(seen).argmax())}


@pytest.mark.parametrize(
    ("task", "algorithm"),
    [("CartPole-v1", "dqn"), ("FrozenLake-v1", "qrdqn"), ("Pendulum-v1", "sac")],
)
def test_a_model_of_sb3_predicts(task: str, algorithm: str) -> None:
    env = gym.make(task)
    learner = SB3Learner(
        "m", algorithm, replay=SharedReplay(env, buffer_size=10), total_steps=100, options=SMALL
    )
    seen = env.reset(seed=1)[0]
    rng = np.random.default_rng(0)
    explored, greedy = (
        [policy.act(seen, rng) for _ in range(30)]
        for policy in (learner.policy(), learner.greedy_policy())
    )
    assert all(env.action_space.contains(action) for action in [*explored, *greedy])
    assert len({str(action) for action in explored}) > 1
    assert {str(action) for action in greedy} == {
        str(learner.model.predict(np.array(seen), deterministic=True)[0])
    }


def test_a_model_of_sb3_predicts_from_images_with_channels_last() -> None:
    space = gym.spaces.Box(0, 255, (36, 40, 3), np.uint8)
    replay = SharedReplay(
        SimpleNamespace(observation_space=space, action_space=gym.spaces.Discrete(3)),
        buffer_size=10,
    )
    learner = SB3Learner(
        "m", "dqn", replay=replay, total_steps=100, options={"learning_starts": 1_000_000}
    )
    seen = np.random.default_rng(1).integers(256, size=space.shape).astype(np.uint8)
    expected = int(learner.model.predict(np.moveaxis(seen, -1, 0), deterministic=True)[0])
    assert actions(learner.greedy_policy(), seen, draws=3) == {expected}
