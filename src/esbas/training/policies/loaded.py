"""`esbas.load_policy`: a policy of a training, without its task."""

import os
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from esbas import seeding, spaces
from esbas.columns import read_only_copy
from esbas.errors import SaveFileError
from esbas.learner import Learner
from esbas.objective import make_objective
from esbas.training.folder import TrainingFolder, open_without_task
from esbas.training.policies.finding import find_best, find_run, member_at_checkpoint
from esbas.training.policies.layers import applied_layers, read_layers
from esbas.training.policies.policy_file import StoredPolicy
from esbas.training.policies.scoring import greedy
from esbas.training.policies.space_data import fitted
from esbas.training.reports import curves
from esbas.training.runs.episode_log import read_episodes
from esbas.training.runs.one_run import run_folder


class LoadedPolicy:
    """A policy of a training, without exploration. Created by `esbas.load_policy`.

    Attributes:
        name: of the learner.
        seed: of the run.
        steps: environment steps of training that it has learnt from.
        observation_space: of the observations that it takes. They are those of the task itself, before the wrappers of the
            training, unless a wrapper remembers earlier observations, such as FrameStackObservation: then they are those that
            the last such wrapper returns.
        action_space: of the actions that it returns, accordingly.
    """

    def __init__(self, stored: StoredPolicy, training: TrainingFolder) -> None:
        layers = read_layers(training.folder, training.plan)
        outermost = {"observation_space": layers[-1].observation_space, "action_space": layers[-1].action_space}
        self.name, self.seed, self.steps = stored.learner, stored.seed, stored.steps
        self._learner: Learner = stored.build(training.plan, **outermost, isolate=False)
        self._policy = self._acting = greedy(self._learner)
        layer, applied = applied_layers(layers)
        self.observation_space, self.action_space = layer.observation_space, layer.action_space
        self._allowed = spaces.allowed_actions(outermost["action_space"])
        self._observing = [each for each in applied if isinstance(each, gymnasium.ObservationWrapper)]
        self._returning = [each for each in reversed(applied) if isinstance(each, gymnasium.ActionWrapper)]
        self._rng = seeding.generator(stored.seed, "loaded policy")

    def act(self, observation: Any, rng: np.random.Generator | None = None) -> Any:
        """The action for an observation.

        Args:
            observation: one of `observation_space`. Lists are accepted for arrays.
            rng: for policies that draw random numbers, for instance to break ties; by default, a generator of this object.
        """
        seen = fitted(self.observation_space, observation)
        for layer in self._observing:
            seen = layer.observation(seen)
        action = spaces.plain_action(self._acting.act(read_only_copy(seen), self._rng if rng is None else rng), self._allowed)
        for wrapper in self._returning:
            action = wrapper.action(action)
        return action

    def start(self) -> None:
        """Start an episode. Only policies that remember earlier observations of the episode need this call."""
        start = getattr(self._policy, "start", None)
        started = None if start is None else start()
        self._acting = self._policy if started is None else started

    def __repr__(self) -> str:
        return f"<policy of {self.name!r}, seed {self.seed}, after {self.steps:,} steps>"


def load_policy(
    folder: str | os.PathLike[str], *, member: str | None = None, seed: int | None = None, trust: bool = False
) -> LoadedPolicy:
    """Load a policy of a training. The task is not created.

    Args:
        folder: written by `esbas train`.
        member: the learner, as it is in the last checkpoint. Default: the best policy that was kept, of any learner and time.
        seed: the run. Default: all runs for the best policy; for a member, the run with the best last episodes.
        trust: import the modules that the folder names, except that of the task. Imported modules can run any code:
            docs/safety.md.
    """
    training = open_without_task(Path(folder), trust=trust)
    return LoadedPolicy(stored_policy(training, member=member, seed=seed), training)


def stored_policy(training: TrainingFolder, *, member: str | None, seed: int | None) -> StoredPolicy:
    """The best policy, or that of a member in the last checkpoint."""
    if member is not None:
        return member_at_checkpoint(training, find_run(training, seed), member)
    best = find_best(training, seed)
    if best is None:
        run = read_episodes(run_folder(training.folder, find_run(training, seed)))
        leader = curves.leader(run, make_objective(training.plan.objective))
        message = f"a best policy must have been found by an evaluation, but {str(training.folder)!r} has had none yet"
        raise SaveFileError(f"{message}: `esbas resume {training.folder}`, or name a member ({leader!r} was in control most)")
    return best
