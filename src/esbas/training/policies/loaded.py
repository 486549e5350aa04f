"""`esbas.load_policy` loads a policy of a training, without its environment."""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from esbas import seeding
from esbas._internal import spaces, values
from esbas._internal.columns import read_only_copy
from esbas.errors import InvalidValueError, SaveFileError
from esbas.learner import Learner, Policy
from esbas.training.folder import TrainingFolder, open_folder
from esbas.training.policies.batches import ARRAYS, batch_size, nth_of
from esbas.training.policies.finding import find_best, find_run, learner_at_checkpoint
from esbas.training.policies.layers import applied_layers, read_layers
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from esbas.training.policies.space_data import fitted
from esbas.training.reports import curves
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.one_run import run_folder
from esbas.training.runs.resuming import how_to_resume


class LoadedPolicy:
    """A policy of a training, without exploration. Created by `esbas.load_policy`.

    Attributes:
        name: of the learner.
        seed: of the run.
        steps: environment steps of training that it has learnt from.
        observation_space: of the observations that it takes. They are those of the environment,
            before the wrappers of the training, unless a wrapper remembers earlier observations,
            such as FrameStackObservation: then they are those that the last such wrapper returns.
        action_space: of the actions that it returns, accordingly.
    """

    def __init__(self, stored: StoredPolicy, training: TrainingFolder) -> None:
        layers = read_layers(training.folder, training.plan)
        outermost = layers[-1]
        self.name = stored.learner
        self.seed = stored.seed
        self.steps = stored.steps
        self._learner: Learner = stored.build(
            training.plan,
            observation_space=outermost.observation_space,
            action_space=outermost.action_space,
            isolate=False,
        )
        self._policy = greedy(self._learner)
        self._acting = self._policy  # in the current episode
        layer, applied = applied_layers(layers)
        self.observation_space = layer.observation_space
        self.action_space = layer.action_space
        self._allowed = spaces.allowed_actions(outermost.action_space)
        self._stackable = isinstance(outermost.observation_space, ARRAYS)
        self._observing = [
            each for each in applied if isinstance(each, gymnasium.ObservationWrapper)
        ]
        self._returning = [
            each for each in reversed(applied) if isinstance(each, gymnasium.ActionWrapper)
        ]
        self._rng = seeding.generator(stored.seed, "loaded policy")

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> Any:
        """Return the action for an observation.

        Args:
            observation: one of `observation_space`. Lists are accepted for arrays.
            rng: for policies that draw random numbers, for instance to break ties; by default, a
                generator of this object.
        """
        chosen = self._acting.act(self._seen(observation), self._rng if rng is None else rng)
        return self._action(chosen)

    def predict(
        self,
        observation: Any,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = True,
    ) -> tuple[Any, Any]:
        """Return the action for an observation, or those for a batch, as in Stable-Baselines3.

        Actions are those of `act`. An observation with exactly the shape of the space is a single
        one; with one more axis in front, it is a batch. A batch is evaluated in one pass if the
        policy has `act_batch(observations, rng)`, as those of DQNs, tables and Stable-Baselines3
        do.

        Policies that remember earlier observations of an episode need `state` and `episode_start`,
        or, for a single environment, `start()` before each episode. Others ignore both.

        Args:
            observation: one of `observation_space`, or a batch of them, (N, ...). In a batch of
                dictionaries, each entry has that axis.
            state: what the last call returned; None at first.
            episode_start: whether each observation is the first one of an episode, (N,).
            deterministic: must be true, since the policy has no exploration.

        Returns:
            The action, as a NumPy scalar or array, or the actions of a batch, (N, ...), and the
            state for the next call. Actions of spaces without a shape, such as Dict, are returned
            as they are, those of a batch as a list.
        """
        if not deterministic:
            message = f"The policy of {self.name!r} was kept without its exploration"
            raise InvalidValueError(
                f"{message}, but got deterministic=False: use deterministic=True."
            )
        space = self.observation_space
        size = batch_size(space, observation)
        observations = [observation]
        if size is not None:
            observations = [nth_of(space, observation, number) for number in range(size)]
        seen = [self._seen(each) for each in observations]
        chosen: Sequence[Any]
        if hasattr(self._policy, "start"):
            actors = self._actors(state, episode_start, count=len(seen), single=size is None)
            chosen = [actor.act(each, self._rng) for actor, each in zip(actors, seen, strict=True)]
            state = actors
        else:
            chosen = self._chosen(seen)
        actions = [self._action(each) for each in chosen]
        return self._as_arrays(actions, single=size is None), state

    def _seen(self, observation: Any) -> Any:
        """Return the observation as the policy gets it, after all wrappers."""
        seen = fitted(self.observation_space, observation)
        for wrapper in self._observing:
            seen = wrapper.observation(seen)
        return read_only_copy(seen)

    def _action(self, chosen: Any) -> Any:
        """Return what the policy chose as an action of the environment, below all wrappers."""
        action = spaces.plain_action(chosen, self._allowed)
        for wrapper in self._returning:
            action = wrapper.action(action)
        return action

    def _chosen(self, seen: list[Any]) -> Sequence[Any]:
        """Return what the policy chooses for each observation: in one pass if it can."""
        act_batch = getattr(self._policy, "act_batch", None)
        if act_batch is not None and self._stackable and len(seen) > 1:
            actions: Sequence[Any] = act_batch(np.stack(seen), self._rng)
            return actions
        return [self._policy.act(each, self._rng) for each in seen]

    def _actors(
        self, state: Any, episode_start: Any, *, count: int, single: bool
    ) -> tuple[Policy, ...]:
        """Return the policy of each episode, with its own memory.

        Args:
            state: what this method returned last time, or None.
            episode_start: whether an episode starts, (N,), or None if none does.
            count: the number of observations, N.
            single: whether there is a single observation: without a state, it belongs to the
                episode that `start` began.
        """
        starts = np.zeros(count, np.bool_)
        if episode_start is not None:
            starts = np.asarray(episode_start, np.bool_).reshape(-1)
        known = state if state is not None else (None,) * count
        if len(starts) != count or len(known) != count:
            given = f"{count} observations, {len(known)} states and {len(starts)} episode starts"
            raise InvalidValueError(
                f"`state` and `episode_start` must have an entry per observation, but got {given}."
            )
        if state is None and episode_start is None and single:
            return (self._acting,)
        actors = []
        for actor, begins in zip(known, starts, strict=True):
            actors.append(self._started() if begins or actor is None else actor)
        if count > 1 and any(actor is self._policy for actor in actors):
            message = f"The policy of {self.name!r} remembers one episode at a time"
            given = f"a batch of {count} observations"
            raise InvalidValueError(f"{message}, but got {given}: pass single observations.")
        return tuple(actors)

    def _as_arrays(self, actions: list[Any], *, single: bool) -> Any:
        """Return the only action, or all actions in one array."""
        shape = self.action_space.shape
        if shape is None:
            return actions[0] if single else actions
        stacked = np.array(actions, self.action_space.dtype).reshape((len(actions), *shape))
        return stacked[0] if single else stacked

    def start(self) -> None:
        """Start an episode.

        Only policies that remember earlier observations of the episode need this call.
        """
        self._acting = self._started()

    def _started(self) -> Policy:
        """Return the policy of a new episode."""
        start = getattr(self._policy, "start", None)
        if start is None:
            return self._policy
        started: Policy | None = start()
        return self._policy if started is None else started

    def __repr__(self) -> str:
        return f"<policy of {self.name!r}, seed {self.seed}, after {self.steps:,} steps>"


def load_policy(
    folder: str | os.PathLike[str],
    *,
    learner: str | None = None,
    seed: int | None = None,
    trust: bool = False,
) -> LoadedPolicy:
    """Load a policy of a training. The environment is not created.

    Args:
        folder: written by `esbas train`.
        learner: its name; it is taken as it is in the last checkpoint. Default: the best policy
            that was kept, of any learner and time.
        seed: the run. Default: all runs for the best policy; for a learner, the run with the best
            last episodes.
        trust: import the modules that the folder names, except that of the environment. Imported
            modules can run any code: docs/safety.md.
    """
    path = values.path("folder", folder)
    is_trusted = values.truth("trust", trust)
    training = open_folder(path, trust=is_trusted, needs_env=False)
    return LoadedPolicy(stored_policy(training, learner=learner, seed=seed), training)


def stored_policy(
    training: TrainingFolder, *, learner: str | None, seed: int | None
) -> StoredPolicy:
    """Return the best policy, or that of a learner in the last checkpoint."""
    if learner is not None:
        return learner_at_checkpoint(training, find_run(training, seed), learner)
    best = find_best(training, seed)
    if best is None:
        run = read_episodes(run_folder(training.folder, find_run(training, seed)))
        leader = curves.leader(run, training.plan.objective)
        message = f"{str(training.folder)!r} has no best policy, because none was evaluated yet"
        named = f"name a learner ({leader!r} was in control most)"
        raise SaveFileError(
            f"{message}: {how_to_resume(training.plan, training.folder)}, or {named}."
        )
    return best
