"""All calls to Stable-Baselines3 that rely on its internals."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm as OffPolicyAlgorithm
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.type_aliases import ReplayBufferSamples, TrainFrequencyUnit

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas.errors import require, unknown
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.dqn.on_pytorch.tensors import (
    NUMBER,
    plain,
    require_names,
    require_numbers,
    tensors,
)
from esbas.learners.dqn.replay.memory import SharedReplay

ALGORITHMS: dict[str, type[OffPolicyAlgorithm]] = {
    "dqn": stable_baselines3.DQN,
    "qrdqn": sb3_contrib.QRDQN,
    "sac": stable_baselines3.SAC,
    "td3": stable_baselines3.TD3,
    "ddpg": stable_baselines3.DDPG,
    "tqc": sb3_contrib.TQC,
}
_COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_episode_num",
    "_n_calls",
    "exploration_rate",
    "_current_progress_remaining",
)


def algorithm(given: type[OffPolicyAlgorithm] | str) -> type[OffPolicyAlgorithm]:
    """Return the class with this name, or the given class."""
    if isinstance(given, str):
        if given not in ALGORITHMS:
            raise unknown("algorithm of Stable-Baselines3", given, ALGORITHMS)
        return ALGORITHMS[given]
    require(
        isinstance(given, type) and issubclass(given, OffPolicyAlgorithm),
        "`model` must be an off-policy algorithm of Stable-Baselines3, "
        f"but got {given!r}: choose for example SAC or DQN.",
    )
    return given


def default_policy(env: gym.Env[Any, Any]) -> str:
    """Return "CnnPolicy" for images, "MlpPolicy" otherwise."""
    return "CnnPolicy" if is_image_space(env.observation_space) else "MlpPolicy"


def begin(model: OffPolicyAlgorithm, replay: "ReplayView", *, total_steps: int) -> None:
    """Do what `model.learn(total_steps, reset_num_timesteps=False)` does before its loop."""
    model.replay_buffer = replay  # type: ignore[assignment]  # `train` only samples from it
    model.set_logger(Logger(None, []))
    model._total_timesteps = model.num_timesteps + total_steps


def release(model: OffPolicyAlgorithm) -> None:
    """Remove the shared memory of an earlier learner, so that another learner can use the model."""
    memory: Any = model.replay_buffer
    if isinstance(memory, ReplayView):
        model.replay_buffer = None


def sample_action(model: OffPolicyAlgorithm, observation: Array) -> tuple[Array, Array]:
    """Return the action that `model.learn` would take, and how it would store it, (1, ...) each."""
    model._last_obs = observation[None]
    action, stored = model._sample_action(model.learning_starts, model.action_noise, 1)
    return action, stored


def is_warming_up(model: OffPolicyAlgorithm) -> bool:
    """Return whether the next action is drawn uniformly from the action space."""
    return model.num_timesteps < model.learning_starts


def exploration_of(model: Any) -> float:
    """Return the probability of a random action of a model for discrete actions."""
    return 1.0 if is_warming_up(model) else float(model.exploration_rate)


def count_step(model: OffPolicyAlgorithm, *, over: bool) -> None:
    """Do what `model.learn` does after each step.

    It updates schedules and targets, and resets the noise after an episode.
    """
    model.num_timesteps += 1
    model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
    model._on_step()
    if over:
        model._episode_num += 1
        if model.action_noise is not None:
            model.action_noise.reset()


def is_due(model: OffPolicyAlgorithm, *, steps: int, episodes: int) -> bool:
    """Return whether `model.learn` would train after this many steps and episodes."""
    train_freq: Any = model.train_freq  # a TrainFreq after the model was set up
    count = steps if train_freq.unit == TrainFrequencyUnit.STEP else episodes
    return bool(count >= train_freq.frequency)


def unsupported(model: OffPolicyAlgorithm) -> str:
    """Return why the model cannot be a learner, and what to do; empty if it can."""
    if model.n_envs != 1:
        return f"it has {model.n_envs} environments: build it with one"
    if model._vec_normalize_env is not None:
        return "it normalizes observations with VecNormalize: build it without"
    if model.use_sde:
        return "it explores with gSDE: build it without"
    if isinstance(model.observation_space, gym.spaces.Dict):
        return "it is for dict observations: flatten them with a wrapper"
    buffer: Any = model.replay_buffer  # None in a model that was loaded without an environment
    if buffer is not None and type(buffer) not in (ReplayBuffer, NStepReplayBuffer):
        return f"it has the replay buffer {type(buffer).__name__}: build it without"
    if model.optimize_memory_usage:
        return "it has optimize_memory_usage=True: build it without"
    supported = {
        "handle_timeout_termination": True,
        "n_steps": getattr(model, "n_steps", 1),
        "gamma": model.gamma,
    }
    given = model.replay_buffer_kwargs
    others = {name: value for name, value in given.items() if supported.get(name) != value}
    if others:
        return f"it has replay_buffer_kwargs={others}: build it without"
    if buffer is not None and buffer.size() > 0:
        return (
            f"it has learned before and would lose the {buffer.size():,} transitions in its own "
            "memory: load it from a file, which leaves its memory out"
        )
    return ""


def state_of(model: OffPolicyAlgorithm) -> dict[str, Any]:
    """Return the state of networks, targets, optimizers and counters as arrays and plain data."""
    variables = {name: getattr(model, name) for name in model._get_torch_save_params()[1]}
    counters = {name: getattr(model, name) for name in _COUNTERS if hasattr(model, name)}
    noise = getattr(model.action_noise, "noise_prev", None)  # of an Ornstein-Uhlenbeck process
    return {
        "parameters": plain(model.get_parameters()),
        "variables": plain(variables),
        "counters": counters,
        "noise": plain(noise),
    }


def restore(model: OffPolicyAlgorithm, state: dict[str, Any]) -> None:
    """Load a state that `state_of` returned. Its names and types are checked first."""
    current = state_of(model)
    for part in ("parameters", "variables", "counters"):
        require_names(part, state[part], current[part])
        require_numbers(part, state[part])
    require_numbers("noise", state["noise"])
    for name, value in state["counters"].items():
        require(
            isinstance(value, NUMBER),
            f"The saved counter `{name}` must be a number, but got {schema.short(value)}: "
            f"{schema.REMEDY}.",
        )
    model.set_parameters(tensors(state["parameters"]), device=model.device)
    for name, value in state["variables"].items():
        getattr(model, name).data.copy_(tensors(value))
    for name, value in state["counters"].items():
        setattr(model, name, value)
    if state["noise"] is not None:
        noise: Any = model.action_noise
        noise.noise_prev = np.array(state["noise"])


def policy_state_of(model: OffPolicyAlgorithm) -> dict[str, Any]:
    """Return the networks of the policy, targets included, as arrays."""
    return dict(plain(model.policy.state_dict()))


def restore_policy(model: OffPolicyAlgorithm, state: dict[str, Any]) -> None:
    """Load a state that `policy_state_of` returned. Names, types and shapes are checked first."""
    current = policy_state_of(model)
    require_names("networks", state, current)
    require_numbers("networks", state)
    loaded = {}
    for name, array in current.items():
        shape = np.shape(state[name])
        require(
            shape == array.shape,
            f"The saved network `{name}` must have the shape {array.shape}, but has {shape}: "
            "build the learner as it was.",
        )
        loaded[name] = torch.from_numpy(np.array(state[name]))
    model.policy.load_state_dict(loaded)


class ReplayView:
    """The shared memory as the replay buffer of one model.

    It samples as `ReplayBuffer` does, from the same generator.
    """

    def __init__(
        self, replay: SharedReplay, model: OffPolicyAlgorithm, *, prepare: Callable[[Array], Array]
    ) -> None:
        self._replay = replay
        self._device = model.device
        self._prepare = prepare
        self._gamma = model.gamma
        self._steps = getattr(model, "n_steps", 1)

    def sample(self, batch_size: int, env: object = None) -> ReplayBufferSamples:
        """Sample a batch. Like Stable-Baselines3, it draws from the global generator."""
        del env
        numbers = np.random.randint(0, len(self._replay), size=batch_size)  # noqa: NPY002
        return self._samples(numbers)

    def newest(self, batch_size: int) -> ReplayBufferSamples | None:
        """Return the newest transitions, or all of them if there are fewer; None without any."""
        count = min(batch_size, len(self._replay))
        if count == 0:
            return None
        return self._samples(self._replay.added - 1 - np.arange(count))

    def _samples(self, numbers: Array) -> ReplayBufferSamples:
        rows = self._replay.rows(numbers)
        batch = self._replay.batch(rows, steps=self._steps, gamma=self._gamma)
        columns = {
            "observations": self._prepared(batch.observations),
            "actions": batch.actions.reshape(len(numbers), -1),
            "next_observations": self._prepared(batch.next_observations),
            "dones": batch.terminated.astype(np.float32).reshape(-1, 1),
            "rewards": batch.returns.reshape(-1, 1),
        }
        if self._steps > 1:
            columns["discounts"] = batch.discounts.reshape(-1, 1)
        tensors_of = {}
        for name, column in columns.items():
            tensors_of[name] = torch.as_tensor(column, device=self._device)
        return ReplayBufferSamples(**tensors_of)

    def _prepared(self, observations: Array) -> Array:
        if observations.ndim == 1:  # integers are a column
            return observations.reshape(-1, 1)
        return self._prepare(observations)


class Spaces(gym.Env[Any, Any]):
    """An environment with spaces only, to build a model."""

    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.observation_space = observation_space
        self.action_space = action_space
