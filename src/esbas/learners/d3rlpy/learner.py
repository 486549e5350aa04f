"""The learner that wraps an algorithm of d3rlpy. It learns from the growing batch of all data."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas import seeding
from esbas._internal import spaces
from esbas._internal.columns import Array, GrowingColumns
from esbas.errors import DivergenceError, SpaceError, require
from esbas.learner import Policy
from esbas.learners import schedules
from esbas.learners.cursor import DataCursor
from esbas.learners.d3rlpy import hooks
from esbas.learners.dqn.on_pytorch.generators import PrivateGenerators
from esbas.learners.dqn.on_pytorch.pytorch import torch
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.from_env import check_options, name_for, require_arrays, spaces_of
from esbas.learners.inputs import Inputs, discrete_actions
from esbas.learners.naming import Named
from esbas.trajectory import TrajectorySet

EXPLORATION = 1.0, 0.1, 5_000


class D3Options(TypedDict, total=False):
    """The options of `D3Learner` besides those of its algorithm."""

    updates_per_step: float
    batch_size: int | None
    hidden: Sequence[int] | None
    epsilon: float | Sequence[float] | None
    noise: float | Sequence[float] | None
    seed: int


class D3Learner(Named):
    """Makes gradient steps in proportion to the number of new transitions.

    Batches are sampled from all transitions. The last step of a truncated episode bootstraps from
    the next observation. Box actions are scaled to [-1, 1]. Learning draws from separate copies of
    the global random generators; policies draw from the generator that is passed to them.

    Policies for discrete actions are ε-greedy and have log-probabilities. Policies for Box actions
    do not have them: their noise is clipped to the bounds, so that their actions have no density.

    Args:
        name: the name of the learner.
        algorithm: "dqn", "double_dqn", "nfq", "sac", "bcq" or "cql" for discrete actions; "ddpg",
            "td3", "td3_plus_bc", "sac", "cql", "iql", "awac", "crr", "bcq", "bear", "plas" or
            "plas_with_perturbation" for Box; or a configuration of d3rlpy.
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete, or Box with bounds.
        updates_per_step: gradient steps per new transition; may be a fraction.
        batch_size: transitions per gradient step. Defaults to the algorithm's batch size.
        hidden: the widths of the networks' layers, if `algorithm` is a name. Defaults to the
            algorithm's networks.
        options: arguments of the configuration, if `algorithm` is a name.
        epsilon: for discrete actions, the probability of a random action: (first, last, transitions
            in between) for a linear decay, or one number. Defaults to (1.0, 0.1, 5_000).
        noise: for Box actions, the standard deviation of Gaussian noise in halves of an action's
            range; same format and default.
        seed: the seed of weights, batches and draws. Learners with different names draw different
            numbers.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        algorithm: Any,
        *,
        observation_space: Any,
        action_space: Any,
        updates_per_step: float = 1.0,
        batch_size: int | None = None,
        hidden: Sequence[int] | None = None,
        options: Mapping[str, Any] | None = None,
        epsilon: float | Sequence[float] | None = None,
        noise: float | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        require(
            updates_per_step > 0,
            f"`updates_per_step` must be greater than 0, but got {updates_per_step!r}.",
        )
        require(
            batch_size is None or batch_size >= 1,
            f"`batch_size` must be at least 1, but got {batch_size!r}.",
        )
        self.name = name
        self.observation_space = observation_space
        self.action_space = action_space
        owner = f"learner {name!r}"
        self._discrete = spaces.is_discrete(action_space)
        self._inputs = Inputs(observation_space, owner=owner)
        if self._discrete:
            self._actions = discrete_actions(action_space, owner=owner)
            require(
                noise is None,
                f"`noise` is for Box actions, but got {noise!r}: use `epsilon` instead.",
            )
            option = "epsilon"
            exploration = epsilon
        else:
            self._actions = _bounded(action_space, owner=owner)
            require(
                epsilon is None,
                f"`epsilon` is for discrete actions, but got {epsilon!r}: use `noise` instead.",
            )
            option = "noise"
            exploration = noise
        if exploration is None:
            exploration = EXPLORATION
        self._exploration = schedules.linear_decay(exploration, name=option)
        config = hooks.configuration(
            algorithm, discrete=self._discrete, options=options, hidden=hidden, owner=owner
        )
        self.batch_size = batch_size or int(config.batch_size)
        self.updates_per_step = updates_per_step
        self._rng = seeding.generator(seed, "d3", name, "batches")
        self._generators = PrivateGenerators()
        with self._generators:
            torch.manual_seed(seeding.integer(seed, "d3", name, "torch"))
            # d3rlpy uses the global generator.
            np.random.seed(seeding.integer(seed, "d3", name, "numpy"))  # noqa: NPY002
            self.model = hooks.build(config, inputs=self._inputs.size, actions=self._actions)
        self._cursor = DataCursor()
        self._losses: dict[str, float] = {}  # of the last gradient step
        self._rows = GrowingColumns()  # the transitions
        self._stored = 0  # the number of trajectories in `_rows`

    @classmethod
    def for_env(
        cls,
        env: Any,
        algorithm: Any,
        *,
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
        **settings: Unpack[D3Options],
    ) -> Self:
        """Build the learner for an environment.

        Args:
            env: the environment, from which the spaces are read.
            algorithm: see the class.
            name: the name of the learner. Default: "d3rlpy", the algorithm, and the given options
                except `seed`, such as "d3rlpy cql batch_size 64".
            options: see the class.
            **settings: the other arguments of the class.
        """
        observation_space, action_space = spaces_of(env)
        require_arrays(observation_space, cls.__name__)
        check_options(cls, settings)
        kind = algorithm if isinstance(algorithm, str) else type(algorithm).__name__
        given = {**(options or {}), **settings}
        return cls(
            name_for(cls, name, given, title=f"d3rlpy {kind}"),
            algorithm,
            observation_space=observation_space,
            action_space=action_space,
            options=options,
            **settings,
        )

    def policy(self) -> Policy:
        """Return a policy with the current amount of exploration."""
        return self._policy(schedules.value_at(self._exploration, self._cursor.transitions))

    def greedy_policy(self) -> Policy:
        return self._policy(0.0)

    def _policy(self, exploration: float) -> Policy:
        if not self._discrete:
            return D3Policy(self, exploration)
        return EpsilonGreedy(self._indicators_of_one, exploration, batch_values=self._indicators)

    def _indicators(self, observations: Array) -> Array:
        """Return 1 for the best of the discrete actions, 0 for the others, (N, A)."""
        best = hooks.best_actions(self.model, self._inputs(observations, np.float32))
        indicators: Array = np.eye(self._actions)[best.reshape(-1).astype(np.int64)]
        return indicators

    def _indicators_of_one(self, observation: Any) -> Array:
        indicators: Array = self._indicators(np.asarray(observation)[None])[0]
        return indicators

    def act(self, observation: Any, rng: np.random.Generator, *, noise: float) -> Array:
        """Return the best Box action plus noise.

        `rng` also seeds PyTorch, since some algorithms sample candidate actions.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63 - 1)))
            seen = self._inputs(np.asarray(observation)[None], np.float32)
            action = hooks.best_actions(self.model, seen)[0]
        space = self.action_space
        noisy = action + noise * rng.standard_normal(self._actions)
        unit = (np.clip(noisy, -1, 1).reshape(space.shape) + 1) / 2
        scaled = space.low + unit * (space.high - space.low)
        taken: Array = np.clip(scaled, space.low, space.high).astype(space.dtype)
        return taken

    def learn(self, data: TrajectorySet) -> None:
        """Store the new transitions, then make the gradient steps that are due for them."""
        progress = self._cursor.up_to(data)
        if self._stored < len(data):
            self._add(data)
        rate = self.updates_per_step
        seen = progress.transitions
        due = math.floor(seen * rate) - math.floor(self._cursor.transitions * rate)
        self._cursor = progress
        columns = {name: self._rows[name] for name in _COLUMNS}
        with self._generators:
            for _ in range(due):
                drawn = self._rng.integers(seen, size=self.batch_size)
                batch = {name: column[drawn] for name, column in columns.items()}
                self._losses = hooks.update(self.model, batch)
                if not np.isfinite(list(self._losses.values())).all():
                    raise DivergenceError(
                        f"The losses of learner {self.name!r} became infinite or NaN, "
                        f"{self._losses}: lower its learning rate."
                    )

    def _add(self, data: TrajectorySet) -> None:
        steps = data.transitions(self._stored)
        if self._discrete:
            actions = steps.actions.reshape(-1, 1)
        else:
            low = self.action_space.low.reshape(self._actions)
            high = self.action_space.high.reshape(self._actions)
            flat = steps.actions.reshape(-1, self._actions)
            actions = (2 * (flat - low) / (high - low) - 1).astype(np.float32)
        self._rows.extend(
            {
                "observations": self._inputs(steps.observations, np.float32),
                "actions": actions,
                "rewards": steps.rewards,
                "following": self._inputs(steps.next_observations, np.float32),
                "terminated": steps.terminated,
            }
        )
        self._stored = len(data)

    def state_dict(self) -> dict[str, Any]:
        """Return everything except the transitions.

        The next `learn` reads them again from the data.
        """
        generators = self._generators.state_dict()
        generators["batches"] = seeding.state_of(self._rng)
        return {
            "model": hooks.state_of(self.model),
            "counts": self._cursor.state_dict(),
            "generators": generators,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        hooks.restore(self.model, state["model"])
        self._cursor = DataCursor.from_state(state["counts"])
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self._rng, state["generators"]["batches"])
        self._rows = GrowingColumns()
        self._stored = 0

    def metrics(self) -> dict[str, float]:
        """Return the loss of the last gradient step, and epsilon for discrete actions."""
        found = {}
        for name in ("critic_loss", "loss"):
            if name in self._losses:
                found["loss"] = float(self._losses[name])
        if self._discrete:
            found["epsilon"] = schedules.value_at(self._exploration, self._cursor.transitions)
        return found


_COLUMNS = "observations", "actions", "rewards", "following", "terminated"


class D3Policy:
    """A policy for Box actions: the best action plus noise."""

    def __init__(self, learner: D3Learner, noise: float) -> None:
        self._learner = learner
        self._noise = noise

    def act(self, observation: Any, rng: np.random.Generator) -> Array:
        return self._learner.act(observation, rng, noise=self._noise)


def _bounded(space: Any, *, owner: str) -> int:
    """Return the number of dimensions of an action."""
    low = np.asarray(getattr(space, "low", np.inf))
    high = np.asarray(getattr(space, "high", np.inf))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SpaceError(
            f"The actions of {owner} must be Discrete or Box with bounds, but are {space}: "
            "leave this learner out."
        )
    return int(np.size(low))
