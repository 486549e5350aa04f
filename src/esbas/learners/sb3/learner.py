"""The learner that wraps a model of Stable-Baselines3 or sb3-contrib."""

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from esbas import schema, seeding, spaces
from esbas.columns import Array
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, require
from esbas.learners.deep.generators import PrivateGenerators
from esbas.learners.deep.replay import SharedReplay
from esbas.learners.sb3 import hooks
from esbas.learners.sb3.hooks import OffPolicyAlgorithm
from esbas.learners.sb3.log_probs import log_probs_of
from esbas.learners.sb3.metrics import metrics_of
from esbas.trajectory import TrajectorySet, Transition

RESERVED_OPTIONS = "env", "buffer_size", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "use_sde", "seed"


class SB3Learner:
    """Learns from every transition, whichever member acted, exactly as `model.learn()` does when it acts alone.

    The model draws from separate copies of the global random generators, which are active only while it acts and trains.

    Policies have log-probabilities (`act_with_log_prob` and `log_probs`) if the model is DQN, QR-DQN, or SAC or TQC without
    `action_noise`. TD3, DDPG and models with `action_noise` cannot provide them, so their policies lack these methods.

    Args:
        name: the name of the learner.
        model: a class; or "dqn", "qrdqn", "sac", "td3", "ddpg", "tqc"; or a model with an empty memory, which continues from its
            current state as in `learn(total_steps, reset_num_timesteps=False)`.
        replay: the replay memory, which also defines the spaces. All members of a portfolio use the same object.
        total_steps: the length of the run, for the schedules of learning rates and exploration.
        options: arguments of the class except `env`, `seed` and the replay buffer. `policy` defaults to "CnnPolicy" for images
            and to "MlpPolicy" otherwise.
        seed: the seed of weights and draws, for classes. Members with different names draw different numbers.
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
        require(total_steps >= 1, "total_steps >= 1", total_steps=total_steps)
        self.name, self.replay = name, replay
        self.observation_space, self.action_space = replay.observation_space, replay.action_space
        self._generators = PrivateGenerators()
        if isinstance(model, OffPolicyAlgorithm):
            require(options is None, "options are for classes", "pass them to the model itself", options=options)
            model.action_space, model.action_noise = copy.deepcopy(
                (model.action_space, model.action_noise)
            )  # other models may share them
            self.model = model
        else:
            with self._generators:
                self.model = self._build(hooks.algorithm(model), dict(options or {}), seeding.integer(seed, "sb3", name))
        self._check_model()
        self._view = hooks.ReplayView(replay, self.model, prepare=self._prepare)
        hooks.begin(self.model, self._view, total_steps=total_steps)
        self._log_probs = log_probs_of(self.model)
        self._steps, self._episodes = 0, 0  # since the last training
        self._trajectories = 0  # in total

    def _build(self, algorithm: type[OffPolicyAlgorithm], options: dict[str, Any], seed: int) -> OffPolicyAlgorithm:
        clash = [option for option in RESERVED_OPTIONS if option in options]
        require(not clash, f"options do not contain {', '.join(RESERVED_OPTIONS)}", "the learner sets them", options=clash)
        task = hooks.Spaces(self.observation_space, copy.deepcopy(self.action_space))
        python_state = random.getstate()  # Stable-Baselines3 seeds Python's generator, too, but never uses it
        try:
            return algorithm(
                **{"policy": hooks.default_policy(task)} | copy.deepcopy(options), env=task, buffer_size=1, seed=seed
            )
        except AssertionError as error:
            problem = f"learner {self.name!r} must fit the task, but {algorithm.__name__} says: {error}"
            raise SpaceError(f"{problem}: leave it out, or choose another") from error
        finally:
            random.setstate(python_state)

    def _check_model(self) -> None:
        why = hooks.unsupported(self.model)
        if why:
            rule = f"the model of learner {self.name!r} must work with one plain environment and the shared memory"
            raise InvalidValueError(f"{rule}, but {why}")
        model_shape, shape = self.model.observation_space.shape, self.observation_space.shape
        self._transposes = model_shape != shape and (shape[-1], *shape[:-1]) == model_shape
        same = self._transposes or spaces.same(self.model.observation_space, self.observation_space)
        pairs = [("observation", self.model.observation_space, self.observation_space, same)]
        same = spaces.same(self.model.action_space, self.action_space)
        for kind, own, given, fits in (*pairs, ("action", self.model.action_space, self.action_space, same)):
            if not fits:
                raise SpaceError(
                    f"the {kind} space of learner {self.name!r} must be the task's, {given}, but is {own}: leave it out"
                )

    def _prepare(self, observations: Array) -> Array:
        """Observations as the model expects them: images with channels first."""
        return np.moveaxis(observations, -1, -3) if self._transposes else observations

    def policy(self) -> "SB3Policy":
        """A live view of the model with its exploration."""
        return SB3Policy(self.act) if self._log_probs is None else SB3PolicyWithLogProbs(self)

    def greedy_policy(self) -> "SB3Policy":
        """A live view of the model without exploration. It has no log-probabilities."""
        return SB3Policy(self.act_greedily)

    def act(self, observation: Any) -> Any:
        """The action that the model would take while it learns."""
        with self._generators:
            action, stored = hooks.sample_action(self.model, self._prepare(np.array(observation)))
        taken = self._valid(action[0])
        if not spaces.is_discrete(self.action_space):
            self.replay.note(taken, stored[0])
        return taken

    def act_with_log_prob(self, observation: Any) -> tuple[Any, float]:
        """The action that `act` would return, with its log-probability."""
        assert self._log_probs is not None
        self._log_probs.before()
        action = self.act(observation)
        return action, self._log_probs.of_last(self._prepare(np.array(observation)), np.asarray(action))

    def log_probs(self, observations: Array, actions: Array) -> Array:
        """The log-probabilities of actions under the current policy, (N,)."""
        assert self._log_probs is not None
        return self._log_probs.of(self._prepare(np.asarray(observations)), np.asarray(actions))

    def act_greedily(self, observation: Any) -> Any:
        """The model's deterministic action."""
        with self._generators:
            action, _ = self.model.predict(self._prepare(np.array(observation)), deterministic=True)
        return self._valid(action)

    def _valid(self, action: Array) -> Any:
        if spaces.is_discrete(self.action_space):
            return int(action)
        return np.clip(action, self.action_space.low, self.action_space.high)  # rounding may exceed the bounds

    def step(self, transition: Transition) -> None:
        """Store the transition, unless another member has done so, and train when the model would."""
        self.replay.add(transition)
        self._advance(over=bool(transition.terminated or transition.truncated))

    def learn(self, data: TrajectorySet) -> None:
        """Store the new trajectories, unless another member has done so, and train as often as the model would have."""
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
            losses = [value for key, value in model.logger.name_to_value.items() if key.startswith("train/")]
            if not np.isfinite(losses).all():
                raise DivergenceError(
                    f"the losses of learner {self.name!r} must be finite, but diverged: lower its learning rate"
                )

    def state_dict(self) -> dict[str, Any]:
        """Includes the shared memory."""
        counts = {"steps": self._steps, "episodes": self._episodes, "trajectories": self._trajectories}
        generators = self._generators.state_dict() | {"actions": seeding.state_of(self.model.action_space.np_random)}
        return {
            "model": hooks.state_of(self.model),
            "counts": counts,
            "generators": generators,
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Also restores the shared memory, for all members that use it."""
        hooks.restore(self.model, state["model"])
        self._steps, self._episodes, self._trajectories = (state["counts"][key] for key in ("steps", "episodes", "trajectories"))
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self.model.action_space.np_random, state["generators"]["actions"])
        self.replay.load_state_dict(state["replay"])

    def policy_state(self) -> dict[str, Any]:
        """The networks of the model's policy."""
        return {"policy": hooks.policy_state_of(self.model)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the networks. The learning continues from them, with the model's own warm-up and schedules."""
        schema.check(state, {"policy": dict}, f"the saved policy of learner {self.name!r}")
        hooks.restore_policy(self.model, state["policy"])

    def metrics(self) -> dict[str, float]:
        return metrics_of(self.model, self._view)


class SB3Policy:
    """A policy without log-probabilities."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """The model draws from the member's generators, as it does alone, and not from `rng`."""
        del rng
        return self._function(observation)


class SB3PolicyWithLogProbs(SB3Policy):
    """A policy with log-probabilities: densities with respect to the environment's action, if actions are continuous."""

    def __init__(self, learner: SB3Learner) -> None:
        super().__init__(learner.act)
        self._learner = learner

    def act_with_log_prob(self, observation: Any, rng: np.random.Generator) -> tuple[Any, float]:
        del rng
        return self._learner.act_with_log_prob(observation)

    def log_probs(self, observations: Array, actions: Array) -> Array:
        return self._learner.log_probs(observations, actions)
