"""The learner that wraps a model of Stable-Baselines3 or sb3-contrib."""

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np

from esbas import seeding
from esbas._internal import schema, spaces
from esbas._internal.columns import Array
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, require
from esbas.learners.dqn.on_pytorch.generators import PrivateGenerators
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.from_env import name_for, replay_for, spaces_of
from esbas.learners.naming import Named
from esbas.learners.sb3 import hooks
from esbas.learners.sb3.hooks import OffPolicyAlgorithm
from esbas.learners.sb3.log_probs import log_probs_of
from esbas.learners.sb3.metrics import metrics_of
from esbas.trajectory import TrajectorySet, Transition

TITLES = {"DQN": "SB3 DQN", "QRDQN": "QR-DQN"}
"""Titles of classes in derived names, where they are not the name of the class."""
RESERVED_OPTIONS = (
    "env",
    "buffer_size",
    "replay_buffer_class",
    "replay_buffer_kwargs",
    "optimize_memory_usage",
    "use_sde",
    "seed",
)


class SB3Learner(Named):
    """Learns from every transition, whichever learner acted, as `model.learn()` does alone.

    The model draws from separate copies of the global random generators, which are active only
    while it acts and trains.

    Policies have log-probabilities (`act_with_log_prob` and `log_probs`) if the model is DQN,
    QR-DQN, or SAC or TQC without `action_noise`. TD3, DDPG and models with `action_noise` cannot
    provide them, so their policies lack these methods.

    Args:
        name: the name of the learner.
        model: a class; or "dqn", "qrdqn", "sac", "td3", "ddpg", "tqc"; or a model with an empty
            memory, which continues from its current state as in `learn(total_steps,
            reset_num_timesteps=False)`.
        replay: the replay memory, which also defines the spaces. All learners of a portfolio use
            the same object.
        total_steps: the length of the run, for the schedules of learning rates and exploration.
        options: arguments of the class except `env`, `seed` and the replay buffer. `policy`
            defaults to "CnnPolicy" for images and to "MlpPolicy" otherwise.
        seed: the seed of weights and draws, for classes. Learners with different names draw
            different numbers.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        model: OffPolicyAlgorithm | type[OffPolicyAlgorithm] | str,
        *,
        replay: SharedReplay,
        total_steps: int,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> None:
        require(total_steps >= 1, f"`total_steps` must be at least 1, but got {total_steps!r}.")
        self.name = name
        self.replay = replay
        self.observation_space = replay.observation_space
        self.action_space = replay.action_space
        self._generators = PrivateGenerators()
        if isinstance(model, OffPolicyAlgorithm):
            require(
                options is None,
                f"`options` are for classes, but got {options!r}: pass them to the model itself.",
            )
            # Other models may share them.
            model.action_space = copy.deepcopy(model.action_space)
            model.action_noise = copy.deepcopy(model.action_noise)
            self.model = model
        else:
            with self._generators:
                self.model = self._build(
                    hooks.algorithm(model), dict(options or {}), seeding.integer(seed, "sb3", name)
                )
        self._check_model()
        self._view = hooks.ReplayView(replay, self.model, prepare=self._prepare)
        hooks.begin(self.model, self._view, total_steps=total_steps)
        self._log_probs = log_probs_of(self.model)
        self._steps = 0  # since the last training
        self._episodes = 0  # since the last training
        self._trajectories = 0  # in total

    @classmethod
    def for_env(
        cls,
        env: Any,
        model: OffPolicyAlgorithm | type[OffPolicyAlgorithm] | str,
        *,
        total_steps: int,
        name: str | None = None,
        replay: SharedReplay | None = None,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
    ) -> Self:
        """Build the learner for an environment.

        Args:
            env: the environment, from which the spaces are read.
            model: see the class.
            total_steps: the length of the run.
            name: the name of the learner. Default: the name of the algorithm and the given options,
                such as "SAC learning_rate 0.001".
            replay: a replay memory for several learners. Default: a new one.
            options: see the class.
            seed: see the class.
        """
        spaces_of(env)
        algorithm = type(model) if isinstance(model, OffPolicyAlgorithm) else hooks.algorithm(model)
        title = TITLES.get(algorithm.__name__, algorithm.__name__)
        return cls(
            name_for(cls, name, options or {}, title=title),
            model,
            replay=replay_for(env, replay),
            total_steps=total_steps,
            options=options,
            seed=seed,
        )

    def _build(
        self, algorithm: type[OffPolicyAlgorithm], options: dict[str, Any], seed: int
    ) -> OffPolicyAlgorithm:
        clash = [option for option in RESERVED_OPTIONS if option in options]
        require(
            not clash,
            f"`options` must not contain {', '.join(RESERVED_OPTIONS)}, "
            f"but got {', '.join(clash)}: the learner sets them.",
        )
        env = hooks.Spaces(self.observation_space, copy.deepcopy(self.action_space))
        arguments = {"policy": hooks.default_policy(env)} | copy.deepcopy(options)
        # Stable-Baselines3 also seeds Python's generator, but never uses it.
        python_state = random.getstate()
        try:
            return algorithm(**arguments, env=env, buffer_size=1, seed=seed)
        except AssertionError as error:
            raise SpaceError(
                f"Learner {self.name!r} must fit the environment, but {algorithm.__name__} "
                f"reports: {error}: leave it out, or choose another."
            ) from error
        finally:
            random.setstate(python_state)

    def _check_model(self) -> None:
        why = hooks.unsupported(self.model)
        if why:
            raise InvalidValueError(
                f"The model of learner {self.name!r} must work with one plain environment and the "
                f"shared memory, but {why}."
            )
        model_shape = self.model.observation_space.shape
        shape = self.observation_space.shape
        self._transposes = model_shape != shape and (shape[-1], *shape[:-1]) == model_shape
        if not self._transposes:
            self._check_space("observation", self.model.observation_space, self.observation_space)
        self._check_space("action", self.model.action_space, self.action_space)

    def _check_space(self, kind: str, own: Any, given: Any) -> None:
        if not spaces.same(own, given):
            raise SpaceError(
                f"The {kind} space of learner {self.name!r} must be that of the environment, "
                f"{given}, but is {own}: leave this learner out."
            )

    def _prepare(self, observations: Array) -> Array:
        """Return observations as the model expects them: images with channels first."""
        return np.moveaxis(observations, -1, -3) if self._transposes else observations

    def policy(self) -> "SB3Policy":
        """Return a live view of the model with its exploration."""
        return SB3Policy(self.act) if self._log_probs is None else SB3PolicyWithLogProbs(self)

    def greedy_policy(self) -> "SB3GreedyPolicy":
        """Return a live view of the model without exploration. It has no log-probabilities."""
        return SB3GreedyPolicy(self)

    def act(self, observation: Any) -> Any:
        """Return the action that the model would take while it learns."""
        with self._generators:
            action, stored = hooks.sample_action(self.model, self._prepare(np.array(observation)))
        taken = self._valid(action[0])
        if not spaces.is_discrete(self.action_space):
            self.replay.note(taken, stored[0])
        return taken

    def act_with_log_prob(self, observation: Any) -> tuple[Any, float]:
        """Return the action that `act` would return, with its log-probability."""
        assert self._log_probs is not None
        self._log_probs.before()
        action = self.act(observation)
        seen = self._prepare(np.array(observation))
        return action, self._log_probs.of_last(seen, np.asarray(action))

    def log_probs(self, observations: Array, actions: Array) -> Array:
        """Return the log-probabilities of actions under the current policy, (N,)."""
        assert self._log_probs is not None
        return self._log_probs.of(self._prepare(np.asarray(observations)), np.asarray(actions))

    def act_greedily(self, observation: Any) -> Any:
        """Return the model's deterministic action."""
        with self._generators:
            action, _ = self.model.predict(self._prepare(np.array(observation)), deterministic=True)
        return self._valid(action)

    def act_greedily_on_batch(self, observations: Array) -> Array:
        """Return the model's deterministic actions for many observations, (N, ...)."""
        seen = self._prepare(np.array(observations))
        with self._generators:
            actions, _ = self.model.predict(seen, deterministic=True)
        if spaces.is_discrete(self.action_space):
            return actions
        return self._clipped(actions)

    def _valid(self, action: Array) -> Any:
        if spaces.is_discrete(self.action_space):
            return int(action)
        return self._clipped(action)

    def _clipped(self, actions: Array) -> Array:
        """Return actions within their bounds, which rounding may have exceeded."""
        return np.asarray(np.clip(actions, self.action_space.low, self.action_space.high))

    def step(self, transition: Transition) -> None:
        """Store the transition, unless another learner has done so, and train when it is due."""
        self.replay.add(transition)
        self._advance(over=bool(transition.terminated or transition.truncated))

    def learn(self, data: TrajectorySet) -> None:
        """Store the new trajectories, unless another learner has done so, and train on them.

        It trains as often as the model would have.
        """
        self.replay.take(data)
        for trajectory in data.since(self._trajectories):
            for t in range(len(trajectory)):
                self._advance(over=t == len(trajectory) - 1)

    def _advance(self, *, over: bool) -> None:
        model = self.model
        hooks.count_step(model, over=over)
        self._steps += 1
        self._episodes += over
        self._trajectories += over
        if not hooks.is_due(model, steps=self._steps, episodes=self._episodes):
            return
        gradient_steps = model.gradient_steps if model.gradient_steps >= 0 else self._steps
        self._steps = self._episodes = 0
        if model.num_timesteps > model.learning_starts and gradient_steps > 0:
            with self._generators:
                model.train(batch_size=model.batch_size, gradient_steps=gradient_steps)
            self._check_losses()

    def _check_losses(self) -> None:
        for key, value in self.model.logger.name_to_value.items():
            if key.startswith("train/") and not np.isfinite(value):
                raise DivergenceError(
                    f"The losses of learner {self.name!r} became infinite or NaN: "
                    "lower its `learning_rate`."
                )

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this learner and of the shared memory."""
        counts = {
            "steps": self._steps,
            "episodes": self._episodes,
            "trajectories": self._trajectories,
        }
        generators = self._generators.state_dict()
        generators["actions"] = seeding.state_of(self.model.action_space.np_random)
        return {
            "model": hooks.state_of(self.model),
            "counts": counts,
            "generators": generators,
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the state, including the shared memory for all learners that use it."""
        hooks.restore(self.model, state["model"])
        counts = state["counts"]
        self._steps = counts["steps"]
        self._episodes = counts["episodes"]
        self._trajectories = counts["trajectories"]
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self.model.action_space.np_random, state["generators"]["actions"])
        self.replay.load_state_dict(state["replay"])

    def policy_state(self) -> dict[str, Any]:
        """Return the networks of the model's policy."""
        return {"policy": hooks.policy_state_of(self.model)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the networks.

        Learning continues from them, with the model's own warm-up and schedules.
        """
        schema.check(state, {"policy": dict}, f"the saved policy of learner {self.name!r}")
        hooks.restore_policy(self.model, state["policy"])

    def metrics(self) -> dict[str, float]:
        return metrics_of(self.model, self._view)


class SB3Policy:
    """A policy without log-probabilities."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """Return an action. The model draws from its own generators, not from `rng`."""
        del rng
        return self._function(observation)


class SB3GreedyPolicy(SB3Policy):
    """A policy without exploration, which can also act on many observations at once."""

    def __init__(self, learner: SB3Learner) -> None:
        super().__init__(learner.act_greedily)
        self._learner = learner

    def act_batch(self, observations: Array, rng: np.random.Generator) -> Array:
        """Return the actions for many observations, (N, ...)."""
        del rng
        return self._learner.act_greedily_on_batch(observations)


class SB3PolicyWithLogProbs(SB3Policy):
    """A policy with log-probabilities.

    For continuous actions, they are densities with respect to the environment's action.
    """

    def __init__(self, learner: SB3Learner) -> None:
        super().__init__(learner.act)
        self._learner = learner

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        del rng
        return self._learner.act_with_log_prob(observation)

    def log_probs(self, observations: Array, actions: Array) -> Array:
        return self._learner.log_probs(observations, actions)
