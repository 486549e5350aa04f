"""Saved policies and metrics of learners with networks and regressors, and `DQN(device=...)`."""

import math
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from esbas import Trajectory, TrajectorySet, Transition
from esbas.errors import EsbasError, InvalidValueError
from esbas.learners import (
    DQN,
    Constant,
    DoubleQ,
    FittedQ,
    LinearFQI,
    SB3Learner,
    SharedReplay,
    TabularQ,
)
from esbas.learners.dqn.on_pytorch.pytorch import find_device, torch

PLACES, MOVES, PLANE = (
    gym.spaces.Discrete(3),
    gym.spaces.Discrete(4),
    gym.spaces.Box(-2.0, 2.0, (2,), np.float32),
)
SMALL = {"policy_kwargs": {"net_arch": [8]}, "learning_starts": 5, "batch_size": 8, "train_freq": 1}


def memory(actions: Any = MOVES) -> SharedReplay:
    return SharedReplay(
        SimpleNamespace(observation_space=PLACES, action_space=actions), buffer_size=100
    )


def batch(actions: Any = MOVES, *, seed: int = 0) -> TrajectorySet:
    data = TrajectorySet()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        done = (
            rng.integers(4, size=6)
            if actions is MOVES
            else rng.uniform(-2, 2, (6, 2)).astype(np.float32)
        )
        data.append(Trajectory(rng.integers(3, size=7), done, rng.normal(size=6), True, False))
    return data


def one_hot(observation: Any) -> Any:
    return np.eye(3)[observation]


def table() -> Any:
    return TabularQ("learner", states=3, actions=4)


def double() -> Any:
    return DoubleQ("learner", states=3, actions=4)


def linear() -> Any:
    return LinearFQI("learner", one_hot, actions=4)


def fitted() -> Any:
    spaces = {"observation_space": PLACES, "action_space": MOVES}
    return FittedQ("learner", "DecisionTreeRegressor", **spaces)


def deep() -> Any:
    return DQN("learner", replay=memory(), hidden=(8,), learning_starts=5, batch_size=8)


def sb3(algorithm: str, actions: Any = MOVES) -> Any:
    return SB3Learner("learner", algorithm, replay=memory(actions), total_steps=100, options=SMALL)


def sb3_dqn() -> Any:
    return sb3("dqn")


MAKE = [table, double, linear, fitted, deep, sb3_dqn]


def chosen(learner: Any) -> list[Any]:
    policy = learner.greedy_policy()
    rng = np.random.default_rng(0)
    return [policy.act(seen, rng) for seen in range(3)]


@pytest.mark.parametrize("make", MAKE)
def test_a_learner_that_loads_a_policy_acts_like_it_and_learns_on(make: Any) -> None:
    learner = make()
    other = make()
    learner.learn(batch())
    other.learn(batch(seed=1))
    state = learner.policy_state()
    other.load_policy_state(state)
    assert chosen(other) == chosen(learner)
    other.learn(batch(seed=1))


@pytest.mark.parametrize("make", MAKE)
def test_a_policy_state_is_a_copy(make: Any) -> None:
    learner = make()
    learner.learn(batch())
    state = learner.policy_state()
    before = chosen(learner)
    other = make()
    other.load_policy_state(state)
    longer = batch()
    for trajectory in batch(seed=5):
        longer.append(trajectory)
    for each in (learner, other):
        each.learn(longer)
    twin = make()
    twin.load_policy_state(state)
    assert chosen(twin) == before


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize(
    "state",
    [
        {},
        {"weights": np.zeros(2)},
        {"table": np.zeros(3)},
        {"fitted": {"actions": np.zeros(1)}},
        [],
    ],
)
def test_another_state_is_refused_in_one_sentence(make: Any, state: Any) -> None:
    learner = make()
    with pytest.raises(EsbasError, match="must"):
        learner.load_policy_state(state)


@pytest.mark.parametrize("damage", [np.zeros((1, 1)), "text"])
def test_networks_of_another_shape_are_refused(damage: Any) -> None:
    learner = sb3("dqn")
    state = learner.policy_state()
    name = next(iter(state["policy"]))
    before = learner.policy_state()
    with pytest.raises(EsbasError, match="must"):
        learner.load_policy_state({"policy": state["policy"] | {name: damage}})
    assert all(
        np.array_equal(learner.policy_state()["policy"][key], array)
        for key, array in before["policy"].items()
    )


def test_a_constant_has_nothing_to_save() -> None:
    learner = Constant("c", lambda _: 1)
    learner.load_policy_state(learner.policy_state())
    assert (learner.policy_state(), learner.metrics()) == ({}, {})


def test_a_dqn_that_loads_weights_uses_them_as_its_target() -> None:
    learner = deep()
    other = deep()
    learner.learn(batch())
    other.load_policy_state(learner.policy_state())
    network = other.state_dict()["network"]
    assert np.array_equal(network["weights"], learner.policy_state()["weights"])
    assert np.array_equal(network["weights"], network["target"])
    assert not network["first"].any()


def test_the_metrics_of_a_dqn_are_those_of_its_last_batch() -> None:
    """Every step earns 9 and ends the episode, so the goals are 9.

    The loss is |error| - 0.5 where that is above 1.
    """
    learner = DQN(
        "d",
        replay=memory(),
        hidden=(8,),
        learning_starts=1,
        train_freq=1,
        batch_size=8,
        n_steps=1,
        learning_rate=1e-9,
    )
    assert learner.metrics() == {"epsilon": 1.0}
    for _ in range(3):
        learner.step(Transition(0, 2, 9.0, 0, True, False))
    value = float(learner.values(0)[2])
    expected = {"mean Q": value, "TD error": 9 - value, "loss": 8.5 - value}
    found = learner.metrics()
    assert found.pop("epsilon") == pytest.approx(1 - 0.98 * 3 / 8000)
    assert found == pytest.approx(expected, rel=1e-4)


def test_networks_that_train_together_have_their_own_metrics() -> None:
    replay = memory()
    alone = deep()
    members = [
        DQN(name, replay=replay, hidden=(8,), learning_starts=5, batch_size=8)
        for name in ("other", "learner")
    ]
    for learner in (alone, *members):
        learner.learn(batch())
        learner.values(0)  # makes the updates that are pending
    assert members[1].metrics() == pytest.approx(alone.metrics(), rel=1e-5)
    assert members[0].metrics() != members[1].metrics()


def test_metrics_of_fitted_learners() -> None:
    learner = linear()
    assert learner.metrics() == {"epsilon": 1.0}
    learner.learn(batch())
    best = (np.eye(3)[batch().transitions().observations] @ learner.weights.T).max(axis=1)
    keep = ~batch().transitions().terminated
    assert learner.metrics() == {"epsilon": 0.6, "mean Q": pytest.approx(best[keep].mean())}
    learner = fitted()
    learner.learn(batch())
    assert set(learner.metrics()) == {"epsilon", "mean Q"}


@pytest.mark.parametrize(
    ("algorithm", "names"),
    [
        ("dqn", {"loss", "epsilon", "mean Q", "TD error"}),
        ("qrdqn", {"loss", "epsilon", "mean Q", "TD error"}),
        ("sac", {"loss", "mean Q"}),
        ("td3", {"loss", "mean Q"}),
        ("tqc", {"loss", "mean Q"}),
    ],
)
def test_metrics_of_models_of_sb3(algorithm: str, names: set[str]) -> None:
    actions = MOVES if algorithm.endswith("dqn") else PLANE
    learner = sb3(algorithm, actions)
    twin = sb3(algorithm, actions)
    assert set(learner.metrics()) <= {"epsilon"}
    for each in (learner, twin):
        each.learn(batch(actions))
    found = learner.metrics()
    assert set(found) == names
    assert all(math.isfinite(value) for value in found.values())
    more = batch(actions)
    for trajectory in batch(actions, seed=2):
        more.append(trajectory)
    for each in (learner, twin):  # asking for metrics changes nothing
        each.learn(more)
    assert learner.metrics() == twin.metrics()
    assert np.array_equal(chosen(learner), chosen(twin))


def test_the_td_error_of_a_model_of_sb3_by_hand() -> None:
    learner = sb3("dqn")
    for _ in range(3):
        learner.step(Transition(1, 2, 3.0, 0, True, False))
    value = float(learner.model.q_net(torch.tensor([[1]])).detach()[0, 2])
    found = learner.metrics()
    assert (found["mean Q"], found["TD error"]) == (
        pytest.approx(value),
        pytest.approx(3.0 - value),
    )


# Devices


def test_the_default_device_is_the_cpu() -> None:
    learner = DQN(
        "learner", replay=memory(), hidden=(8,), learning_starts=5, batch_size=8, device="cpu"
    )
    default = deep()
    for each in (learner, default):
        each.learn(batch())
    assert np.array_equal(learner.policy_state()["weights"], default.policy_state()["weights"])


@pytest.mark.parametrize(
    ("device", "words"),
    [
        ("cuda:99", "finds no 'cuda:99'"),
        ("gpu", "but got 'gpu': use cpu or auto"),
        ("cpu:x", "'cpu:x'"),
    ],
)
def test_a_device_that_does_not_exist_is_refused(device: str, words: str) -> None:
    with pytest.raises(InvalidValueError, match=words):
        DQN("learner", replay=memory(), device=device)


def test_a_device_is_found_automatically() -> None:
    assert find_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
