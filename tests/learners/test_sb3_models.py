"""Models of Stable-Baselines3 that a learner cannot use, and states that no learner saved."""

import copy
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer

import esbas
from esbas.errors import EsbasError, InvalidValueError, SaveFileError, SpaceError
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.sb3.learner import SB3Learner

SMALL: dict[str, Any] = {
    "policy_kwargs": {"net_arch": [8]},
    "learning_starts": 5,
    "batch_size": 4,
    "buffer_size": 20,
}
ENDS = {"handle_timeout_termination": False}


class OwnBuffer(ReplayBuffer):
    pass


class Goals(gym.Env[Any, Any]):
    """A task for hindsight experience replay."""

    point = gym.spaces.Box(-1, 1, (2,), np.float32)
    observation_space = gym.spaces.Dict(
        {"observation": point, "achieved_goal": point, "desired_goal": point}
    )
    action_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    def compute_reward(self, achieved: Any, desired: Any, info: Any) -> Any:
        return 0.0


def build(algorithm: Any = stable_baselines3.DQN, task: Any = "CartPole-v1", **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return algorithm("MlpPolicy", task, **SMALL | options)


def member(model: Any, *, total_steps: int = 60) -> SB3Learner:
    return SB3Learner(
        "it",
        model,
        replay=SharedReplay(gym.make("CartPole-v1"), buffer_size=100),
        total_steps=total_steps,
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"replay_buffer_class": OwnBuffer},
            "it has the replay buffer OwnBuffer: build it without",
        ),
        (
            {"optimize_memory_usage": True, "replay_buffer_kwargs": ENDS},
            "has optimize_memory_usage=True",
        ),
        (
            {"replay_buffer_kwargs": ENDS},
            "has replay_buffer_kwargs={'handle_timeout_termination': False}",
        ),
        (
            {"replay_buffer_class": NStepReplayBuffer, "replay_buffer_kwargs": {"n_steps": 3}},
            "replay_buffer_kwargs={'n_steps': 3}",
        ),
    ],
    ids=["class", "memory", "timeout", "n steps"],
)
def test_settings_that_the_shared_memory_cannot_honour_are_refused(
    options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        member(build(**options))
    assert str(caught.value).startswith(
        "The model of learner 'it' must work with one plain environment and the shared memory, "
        "but it "
    )
    assert sentence in str(caught.value)


def test_settings_that_are_the_default_anyway_are_accepted() -> None:
    member(
        build(
            replay_buffer_class=ReplayBuffer,
            replay_buffer_kwargs={"handle_timeout_termination": True},
        )
    )
    member(build(n_steps=3))


def test_dict_observations_and_hindsight_are_refused() -> None:
    with pytest.raises(
        SpaceError, match=r"observation space of a replay memory must be .*FlattenObservation"
    ):
        SharedReplay(Goals(), buffer_size=10)
    her = stable_baselines3.SAC(
        "MultiInputPolicy",
        Goals(),
        replay_buffer_class=stable_baselines3.HerReplayBuffer,
        buffer_size=5,
    )
    plain = stable_baselines3.SAC("MultiInputPolicy", Goals(), buffer_size=5)
    for model in (her, plain):
        with pytest.raises(
            InvalidValueError, match="it is for dict observations: flatten them with a wrapper"
        ):
            member(model)


def test_a_model_that_would_lose_its_memory_is_refused() -> None:
    model = build()
    model.learn(12)
    with pytest.raises(
        InvalidValueError,
        match=r"would lose the 12 transitions in its own memory: load it from a file",
    ):
        member(model)


def test_a_loaded_model_continues_its_schedules(tmp_path: Any) -> None:
    """As `learn(reset_num_timesteps=False)`: exploration goes on from 12 of 72 steps, not of 60."""
    model = build(exploration_fraction=1.0, exploration_initial_eps=1.0, exploration_final_eps=0.0)
    model.learn(12)
    model.save(tmp_path / "model")
    learner = member(
        stable_baselines3.DQN.load(tmp_path / "model", env=gym.make("CartPole-v1")), total_steps=60
    )
    assert learner.model.num_timesteps == 12
    record = next(
        esbas.run(
            gym.make("CartPole-v1"), [learner], esbas.SSBAS(["it"]), episodes=1, keep_data=False
        )
    )
    assert record.faults == ()
    assert learner.model.exploration_rate == pytest.approx(1 - (12 + record.length) / 72)


def trained() -> SB3Learner:
    learner = SB3Learner(
        "it",
        "dqn",
        replay=SharedReplay(gym.make("CartPole-v1"), buffer_size=100),
        total_steps=60,
        options={name: value for name, value in SMALL.items() if name != "buffer_size"},
    )
    list(
        esbas.run(
            gym.make("CartPole-v1"), [learner], esbas.SSBAS(["it"]), episodes=2, keep_data=False
        )
    )
    return learner


HOSTILE = "/etc/passwd"


@pytest.mark.parametrize(
    "path",
    [
        ("model", "parameters"),
        ("model", "parameters", "policy"),
        ("model", "parameters", "policy.optimizer", "param_groups"),
        ("model", "variables"),
        ("model", "counters"),
        ("model", "counters", "num_timesteps"),
        ("model", "noise"),
        ("generators", "torch"),
    ],
    ids="/".join,
)
def test_a_path_in_the_place_of_a_state_is_refused(
    path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("something was loaded from a file")

    learner = trained()
    state = copy.deepcopy(learner.state_dict())
    parent: Any = state
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = HOSTILE
    monkeypatch.setattr(torch, "load", fail)
    monkeypatch.setattr("stable_baselines3.common.base_class.load_from_zip_file", fail)
    before = copy.deepcopy(learner.state_dict()["model"])
    with pytest.raises(SaveFileError):
        learner.load_state_dict(state)
    if path[0] == "model":  # nothing was changed
        np.testing.assert_equal(learner.state_dict()["model"], before)


@pytest.mark.parametrize(
    ("part", "name"), [("parameters", "logger"), ("variables", "policy"), ("counters", "device")]
)
def test_a_state_sets_nothing_but_what_a_learner_saves(part: str, name: str) -> None:
    learner = trained()
    state = copy.deepcopy(learner.state_dict())
    state["model"][part][name] = 0
    with pytest.raises(EsbasError, match=f"The {part} of a saved learner must be"):
        learner.load_state_dict(state)
