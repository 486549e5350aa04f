"""What a portfolio member needs of Stable-Baselines3, all in one place: much of it is not public."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from esbas.columns import Array
from esbas.errors import require, unknown
from esbas.learners._tensors import plain, tensors
from esbas.learners._torch import torch
from esbas.learners.replay import SharedReplay

try:
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm as OffPolicyAlgorithm  # for sb3.py
    from stable_baselines3.common.preprocessing import is_image_space
    from stable_baselines3.common.type_aliases import ReplayBufferSamples, TrainFrequencyUnit
except ModuleNotFoundError as error:
    told = "members of Stable-Baselines3 need it, but it is not installed"
    raise ModuleNotFoundError(f"{told}: pip install 'esbas[sb3]'") from error

ALGORITHMS: dict[str, type[OffPolicyAlgorithm]] = {
    "dqn": stable_baselines3.DQN,
    "qrdqn": sb3_contrib.QRDQN,
    "sac": stable_baselines3.SAC,
    "td3": stable_baselines3.TD3,
    "ddpg": stable_baselines3.DDPG,
    "tqc": sb3_contrib.TQC,
}
_COUNTERS = "num_timesteps", "_n_updates", "_episode_num", "_n_calls", "exploration_rate", "_current_progress_remaining"


def algorithm(given: type[OffPolicyAlgorithm] | str) -> type[OffPolicyAlgorithm]:
    """The class of this name, or the class itself."""
    if isinstance(given, str):
        if given not in ALGORITHMS:
            raise unknown("algorithm of Stable-Baselines3", given, ALGORITHMS)
        return ALGORITHMS[given]
    off_policy = isinstance(given, type) and issubclass(given, OffPolicyAlgorithm)
    require(off_policy, "a model is an off-policy algorithm of Stable-Baselines3", "choose SAC, DQN or another", model=given)
    return given


def usual_policy(task: gym.Env[Any, Any]) -> str:
    """The name of the policy for images or for anything else."""
    return "CnnPolicy" if is_image_space(task.observation_space) else "MlpPolicy"


def begin(model: OffPolicyAlgorithm, replay: "ReplayView", *, total_steps: int) -> None:
    """What `learn` does before its loop."""
    model.replay_buffer = replay  # type: ignore[assignment]  # `train` only samples from it
    model.set_logger(Logger(None, []))
    model._total_timesteps = total_steps


def sample_action(model: OffPolicyAlgorithm, observation: Array) -> tuple[Array, Array]:
    """The action that `learn` would take, and as it would be stored, (1, ...) each."""
    model._last_obs = observation[None]
    action, stored = model._sample_action(model.learning_starts, model.action_noise, 1)
    return action, stored


def count_step(model: OffPolicyAlgorithm, *, over: bool) -> None:
    """What `learn` does after each step: schedules, targets, and a fresh noise when the episode is over."""
    model.num_timesteps += 1
    model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
    model._on_step()
    if over:
        model._episode_num += 1
        if model.action_noise is not None:
            model.action_noise.reset()


def is_due(model: OffPolicyAlgorithm, *, steps: int, episodes: int) -> bool:
    """Whether `learn` would train after so many steps and episodes."""
    frequency: Any = model.train_freq  # a TrainFreq since the model was set up
    return bool(frequency.frequency <= (steps if frequency.unit == TrainFrequencyUnit.STEP else episodes))


def unsupported(model: OffPolicyAlgorithm) -> str:
    """Why the model cannot be a member, or nothing."""
    if model.n_envs != 1:
        return f"has {model.n_envs} environments"
    if model._vec_normalize_env is not None:
        return "normalises observations with VecNormalize"
    return "explores with gSDE" if model.use_sde else ""


def state_of(model: OffPolicyAlgorithm) -> dict[str, Any]:
    """Networks, targets, optimizers and counters as arrays and plain data."""
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
    """Bring the model to a state told by `state_of`."""
    model.set_parameters(tensors(state["parameters"]), device=model.device)
    for name, value in state["variables"].items():
        getattr(model, name).data.copy_(tensors(value))
    for name, value in state["counters"].items():
        setattr(model, name, value)
    if state["noise"] is not None:
        model.action_noise.noise_prev = np.array(state["noise"])  # type: ignore[union-attr]  # only then there is one


class ReplayView:
    """The shared memory as the replay buffer of one model: it draws as `ReplayBuffer` does, from the same generator."""

    def __init__(self, replay: SharedReplay, model: OffPolicyAlgorithm, *, see: Callable[[Array], Array]) -> None:
        self._replay, self._device, self._see, self._gamma = replay, model.device, see, model.gamma
        self._steps = model.n_steps if hasattr(model, "n_steps") else 1

    def sample(self, batch_size: int, env: object = None) -> ReplayBufferSamples:
        """A batch."""
        del env
        places = np.random.randint(0, len(self._replay), size=batch_size)  # noqa: NPY002  # as Stable-Baselines3 draws
        batch = self._replay.batch(self._replay.rows(places), steps=self._steps, gamma=self._gamma)
        flat, one_by_one = (-1, 1), batch.observations.ndim == 1  # integers stand in a column
        seen, following = (
            each.reshape(flat) if one_by_one else self._see(each) for each in (batch.observations, batch.next_observations)
        )
        columns = {
            "observations": seen,
            "actions": batch.actions.reshape(batch_size, -1),
            "next_observations": following,
            "dones": batch.terminated.astype(np.float32).reshape(flat),
            "rewards": batch.returns.reshape(flat),
        }
        if self._steps > 1:
            columns["discounts"] = batch.discounts.reshape(flat)
        return ReplayBufferSamples(**{name: torch.as_tensor(column, device=self._device) for name, column in columns.items()})


class Spaces(gym.Env[Any, Any]):
    """An environment that has spaces and nothing else: a model is built for it, and never plays."""

    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space
