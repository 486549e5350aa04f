"""Off-policy models of Stable-Baselines3 and sb3-contrib as members of a portfolio."""

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from esbas import seeding, spaces
from esbas.columns import Array
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, require
from esbas.learners import _sb3_hooks as hooks
from esbas.learners._own_generators import OwnGenerators
from esbas.learners._sb3_hooks import OffPolicyAlgorithm
from esbas.learners.replay import SharedReplay
from esbas.trajectory import TrajectorySet, Transition

_OURS = "env", "buffer_size", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage", "use_sde", "seed"


class SB3Learner:
    """A model that learns from every transition as `model.learn()` would, whoever acted; alone it learns exactly the same.

    It draws from global generators of its own, which are in place only while it acts and trains.

    Args:
        name: of the learner.
        model: a constructed model, which goes on from where it is; a class; or "dqn", "qrdqn", "sac", "td3", "ddpg", "tqc".
        replay: the memory, which also tells the spaces; the same object for all members of a portfolio.
        total_steps: the length of the run, which schedules of rates and exploration refer to.
        options: for the class: all that it takes besides `env`, `seed` and the replay buffer; `policy` is "MlpPolicy", for images
            "CnnPolicy", unless told.
        seed: for the class: of its weights and draws; members with different names differ.
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
        self._generators = OwnGenerators()
        if isinstance(model, OffPolicyAlgorithm):
            require(options is None, "options are for classes", "give them to the model itself", options=options)
            model.action_space, model.action_noise = copy.deepcopy(
                (model.action_space, model.action_noise)
            )  # others may share them
            self.model = model
        else:
            with self._generators:
                self.model = self._build(hooks.algorithm(model), dict(options or {}), seeding.integer(seed, "sb3", name))
        self._check_model()
        hooks.begin(self.model, hooks.ReplayView(replay, self.model, see=self._see), total_steps=total_steps)
        self._steps, self._episodes = 0, 0  # since the last training
        self._trajectories = 0  # so far

    def _build(self, algorithm: type[OffPolicyAlgorithm], options: dict[str, Any], seed: int) -> OffPolicyAlgorithm:
        clash = [option for option in _OURS if option in options]
        require(
            not clash, f"options do not contain {', '.join(_OURS)}", "the shared replay and the learner have them", options=clash
        )
        task = hooks.Spaces(self.observation_space, copy.deepcopy(self.action_space))
        elsewhere = random.getstate()  # Stable-Baselines3 seeds it, too, and never uses it
        try:
            return algorithm(**{"policy": hooks.usual_policy(task)} | copy.deepcopy(options), env=task, buffer_size=1, seed=seed)
        except AssertionError as error:
            told = f"learner {self.name!r} must fit the task, but {algorithm.__name__} says: {error}"
            raise SpaceError(f"{told}: leave it out, or choose another") from error
        finally:
            random.setstate(elsewhere)

    def _check_model(self) -> None:
        why = hooks.unsupported(self.model)
        if why:
            raise InvalidValueError(
                f"the model of learner {self.name!r} must be for one plain environment, but it {why}: build it without"
            )
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

    def _see(self, observations: Array) -> Array:
        """Observations as the model expects them: images with channels first."""
        return np.moveaxis(observations, -1, -3) if self._transposes else observations

    def policy(self) -> "SB3Policy":
        """The model as it explores at each step."""
        return SB3Policy(self.act)

    def greedy_policy(self) -> "SB3Policy":
        """The model as it acts when it does not explore."""
        return SB3Policy(self.act_greedily)

    def act(self, observation: Any) -> Any:
        """The action that the model would take while it learns."""
        with self._generators:
            action, stored = hooks.sample_action(self.model, self._see(np.array(observation)))
        taken = self._valid(action[0])
        if not spaces.is_discrete(self.action_space):
            self.replay.note(taken, stored[0])
        return taken

    def act_greedily(self, observation: Any) -> Any:
        """The action that the model takes for the best."""
        with self._generators:
            action, _ = self.model.predict(self._see(np.array(observation)), deterministic=True)
        return self._valid(action)

    def _valid(self, action: Array) -> Any:
        if spaces.is_discrete(self.action_space):
            return int(action)
        return np.clip(action, self.action_space.low, self.action_space.high)  # rounding may leave the space

    def step(self, transition: Transition) -> None:
        """Store the transition, if nobody has, and train when the model would."""
        self.replay.add(transition)
        self._advance(over=bool(transition.terminated or transition.truncated))

    def learn(self, data: TrajectorySet) -> None:
        """Store what is new, if nobody has, and train as often as the model would have."""
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
        """Everything as arrays and plain data, the shared memory included."""
        counts = {"steps": self._steps, "episodes": self._episodes, "trajectories": self._trajectories}
        generators = self._generators.state_dict() | {"actions": seeding.state_of(self.model.action_space.np_random)}
        return {
            "model": hooks.state_of(self.model),
            "counts": counts,
            "generators": generators,
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the learner that `state_dict` told of; the memory becomes what it was, for all who share it."""
        hooks.restore(self.model, state["model"])
        self._steps, self._episodes, self._trajectories = (state["counts"][key] for key in ("steps", "episodes", "trajectories"))
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self.model.action_space.np_random, state["generators"]["actions"])
        self.replay.load_state_dict(state["replay"])


class SB3Policy:
    """A member's model as a policy."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def act(self, observation: Any, rng: np.random.Generator) -> Any:
        """The model's action; it draws from the member's own generators, as it does alone."""
        del rng
        return self._function(observation)
