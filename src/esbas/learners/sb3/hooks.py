"""All calls to Stable-Baselines3 that rely on its internals."""

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from esbas.columns import Array
from esbas.errors import require, unknown
from esbas.learners.deep.pytorch import torch
from esbas.learners.deep.replay import SharedReplay
from esbas.learners.deep.tensors import NUMBER, plain, require_names, require_numbers, tensors

try:
    import sb3_contrib
    import stable_baselines3
    from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm as OffPolicyAlgorithm
    from stable_baselines3.common.preprocessing import is_image_space
    from stable_baselines3.common.type_aliases import ReplayBufferSamples, TrainFrequencyUnit
except ModuleNotFoundError as error:
    problem = "members of Stable-Baselines3 need it, but it is not installed"
    raise ModuleNotFoundError(f"{problem}: pip install 'esbas[sb3]'") from error

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
    """The class with this name, or the given class."""
    if isinstance(given, str):
        if given not in ALGORITHMS:
            raise unknown("algorithm of Stable-Baselines3", given, ALGORITHMS)
        return ALGORITHMS[given]
    off_policy = isinstance(given, type) and issubclass(given, OffPolicyAlgorithm)
    require(off_policy, "a model is an off-policy algorithm of Stable-Baselines3", "choose SAC, DQN or another", model=given)
    return given


def default_policy(task: gym.Env[Any, Any]) -> str:
    """The name "CnnPolicy" for images, "MlpPolicy" otherwise."""
    return "CnnPolicy" if is_image_space(task.observation_space) else "MlpPolicy"


def begin(model: OffPolicyAlgorithm, replay: "ReplayView", *, total_steps: int) -> None:
    """Do what `model.learn(total_steps, reset_num_timesteps=False)` does before its loop."""
    model.replay_buffer = replay  # type: ignore[assignment]  # `train` only samples from it
    model.set_logger(Logger(None, []))
    model._total_timesteps = model.num_timesteps + total_steps


def sample_action(model: OffPolicyAlgorithm, observation: Array) -> tuple[Array, Array]:
    """The action that `model.learn` would take, and the same action as it would store it, (1, ...) each."""
    model._last_obs = observation[None]
    action, stored = model._sample_action(model.learning_starts, model.action_noise, 1)
    return action, stored


def is_warming_up(model: OffPolicyAlgorithm) -> bool:
    """Whether the next action is drawn uniformly from the action space."""
    return model.num_timesteps < model.learning_starts


def count_step(model: OffPolicyAlgorithm, *, over: bool) -> None:
    """Do what `model.learn` does after each step: update schedules and targets, and reset the noise after an episode."""
    model.num_timesteps += 1
    model._update_current_progress_remaining(model.num_timesteps, model._total_timesteps)
    model._on_step()
    if over:
        model._episode_num += 1
        if model.action_noise is not None:
            model.action_noise.reset()


def is_due(model: OffPolicyAlgorithm, *, steps: int, episodes: int) -> bool:
    """Whether `model.learn` would train after this many steps and episodes."""
    frequency: Any = model.train_freq  # a TrainFreq after the model was set up
    return bool(frequency.frequency <= (steps if frequency.unit == TrainFrequencyUnit.STEP else episodes))


def unsupported(model: OffPolicyAlgorithm) -> str:
    """Why the model cannot be a member, and what to do; empty if it can."""
    buffer: Any = model.replay_buffer  # None in a model that was loaded without an environment
    supported = {"handle_timeout_termination": True, "n_steps": getattr(model, "n_steps", 1), "gamma": model.gamma}
    kwargs = {name: value for name, value in model.replay_buffer_kwargs.items() if supported.get(name) != value}
    without = "build it without"
    for unfit, problem, remedy in (
        (model.n_envs != 1, f"has {model.n_envs} environments", "build it with one"),
        (model._vec_normalize_env is not None, "normalises observations with VecNormalize", without),
        (model.use_sde, "explores with gSDE", without),
        (isinstance(model.observation_space, gym.spaces.Dict), "is for dict observations", "flatten them with a wrapper"),
        (buffer is not None and type(buffer) not in _BUFFERS, f"has the replay buffer {type(buffer).__name__}", without),
        (model.optimize_memory_usage, "has optimize_memory_usage=True", without),
        (bool(kwargs), f"has replay_buffer_kwargs={kwargs}", without),
        (buffer is not None and buffer.size() > 0, _has_learnt(buffer), "load it from a file, which leaves its memory out"),
    ):
        if unfit:
            return f"it {problem}: {remedy}"
    return ""


_BUFFERS = ReplayBuffer, NStepReplayBuffer


def _has_learnt(buffer: Any) -> str:
    size = 0 if buffer is None else buffer.size()
    return f"has learnt before and would lose the {size:,} transitions in its own memory"


def state_of(model: OffPolicyAlgorithm) -> dict[str, Any]:
    """The state of networks, targets, optimizers and counters as arrays and plain data."""
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
    """Load a state that `state_of` returned. Its names and types are checked before anything is loaded."""
    current = state_of(model)
    for part in ("parameters", "variables", "counters"):
        require_names(part, state[part], current[part])
        require_numbers(part, state[part])
    require_numbers("noise", state["noise"])
    counters = state["counters"]
    require(all(isinstance(value, NUMBER) for value in counters.values()), "saved counters are numbers", counters=counters)
    model.set_parameters(tensors(state["parameters"]), device=model.device)
    for name, value in state["variables"].items():
        getattr(model, name).data.copy_(tensors(value))
    for name, value in state["counters"].items():
        setattr(model, name, value)
    if state["noise"] is not None:
        model.action_noise.noise_prev = np.array(state["noise"])  # type: ignore[union-attr]  # there is one in this case


def policy_state_of(model: OffPolicyAlgorithm) -> dict[str, Any]:
    """The networks of the policy, targets included, as arrays."""
    return dict(plain(model.policy.state_dict()))


def restore_policy(model: OffPolicyAlgorithm, state: dict[str, Any]) -> None:
    """Load a state that `policy_state_of` returned. Its names, types and shapes are checked before anything is loaded."""
    current = policy_state_of(model)
    require_names("networks", state, current)
    require_numbers("networks", state)
    for name, array in current.items():
        fits = np.shape(state[name]) == array.shape
        require(fits, f"saved networks have the shapes of {name}", "build the learner as it was", shape=np.shape(state[name]))
    model.policy.load_state_dict({name: torch.from_numpy(np.array(array)) for name, array in state.items()})


class ReplayView:
    """The shared memory as the replay buffer of one model. It samples as `ReplayBuffer` does, from the same generator."""

    def __init__(self, replay: SharedReplay, model: OffPolicyAlgorithm, *, prepare: Callable[[Array], Array]) -> None:
        self._replay, self._device, self._prepare, self._gamma = replay, model.device, prepare, model.gamma
        self._steps = model.n_steps if hasattr(model, "n_steps") else 1

    def sample(self, batch_size: int, env: object = None) -> ReplayBufferSamples:
        del env
        places = np.random.randint(0, len(self._replay), size=batch_size)  # noqa: NPY002  # as Stable-Baselines3 does
        return self._samples(places)

    def newest(self, batch_size: int) -> ReplayBufferSamples | None:
        """The newest transitions, or all of them if there are fewer; None if there are none."""
        count = min(batch_size, len(self._replay))
        return self._samples(self._replay.added - 1 - np.arange(count)) if count else None

    def _samples(self, places: Array) -> ReplayBufferSamples:
        batch = self._replay.batch(self._replay.rows(places), steps=self._steps, gamma=self._gamma)
        batch_size = len(places)
        flat, one_by_one = (-1, 1), batch.observations.ndim == 1  # integers are a column
        seen, following = (
            each.reshape(flat) if one_by_one else self._prepare(each) for each in (batch.observations, batch.next_observations)
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
    """An environment with spaces only, to build a model."""

    def __init__(self, observation_space: gym.Space[Any], action_space: gym.Space[Any]) -> None:
        self.observation_space, self.action_space = observation_space, action_space
