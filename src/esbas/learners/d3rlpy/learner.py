"""The learner that wraps an algorithm of d3rlpy. It learns from the growing batch of all trajectories."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas import seeding, spaces
from esbas.columns import Array, Columns
from esbas.errors import DivergenceError, SpaceError, require
from esbas.learner import Policy
from esbas.learners import schedules
from esbas.learners.cursor import DataCursor
from esbas.learners.d3 import hooks
from esbas.learners.deep.generators import PrivateGenerators
from esbas.learners.deep.pytorch import torch
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.inputs import Inputs, discrete_actions
from esbas.trajectory import TrajectorySet

EXPLORATION = 1.0, 0.1, 5_000


class D3Learner:
    """Makes gradient steps in proportion to the number of new transitions, on batches sampled from all transitions.

    The last step of a truncated episode bootstraps from the next observation. Box actions are scaled to [-1, 1]. Learning draws
    from separate copies of the global random generators; policies draw from the generator that is passed to them.

    Policies for discrete actions are ε-greedy and have log-probabilities. Policies for Box actions do not have them: their noise
    is clipped to the bounds, so that their actions have no density.

    Args:
        name: the name of the learner.
        algorithm: "dqn", "double_dqn", "nfq", "sac", "bcq" or "cql" for discrete actions; "ddpg", "td3", "td3_plus_bc", "sac",
            "cql", "iql", "awac", "crr", "bcq", "bear", "plas" or "plas_with_perturbation" for Box; or a configuration of d3rlpy.
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete, or Box with bounds.
        updates_per_step: gradient steps per new transition; may be a fraction.
        batch: transitions per gradient step. Defaults to the algorithm's batch size.
        hidden: the widths of the networks' layers, if `algorithm` is a name. Defaults to the algorithm's networks.
        options: arguments of the configuration, if `algorithm` is a name.
        epsilon: for discrete actions, the probability of a random action: (first, last, transitions in between) for a linear
            decay, or one number. Defaults to (1.0, 0.1, 5_000).
        noise: for Box actions, the standard deviation of Gaussian noise in halves of an action's range; same format and default.
        seed: the seed of weights, batches and draws. Members with different names draw different numbers.
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
        batch: int | None = None,
        hidden: Sequence[int] | None = None,
        options: Mapping[str, Any] | None = None,
        epsilon: float | Sequence[float] | None = None,
        noise: float | Sequence[float] | None = None,
        seed: int = 0,
    ) -> None:
        require(updates_per_step > 0, "updates_per_step > 0", updates_per_step=updates_per_step)
        require(batch is None or batch >= 1, "batch >= 1", batch=batch)
        self.name, self.observation_space, self.action_space = name, observation_space, action_space
        owner, self._discrete = f"learner {name!r}", spaces.is_discrete(action_space)
        self._inputs = Inputs(observation_space, owner=owner)
        if self._discrete:
            self._actions = discrete_actions(action_space, owner=owner)
            require(noise is None, "noise is for Box actions", "use epsilon instead", noise=noise)
        else:
            self._actions = _bounded(action_space, owner=owner)
            require(epsilon is None, "epsilon is for discrete actions", "use noise instead", epsilon=epsilon)
        given = epsilon if self._discrete else noise
        self._exploration = schedules.linear_decay(
            EXPLORATION if given is None else given, name="epsilon" if self._discrete else "noise"
        )
        config = hooks.configuration(algorithm, discrete=self._discrete, options=options, hidden=hidden, owner=owner)
        self.batch, self.updates_per_step = batch or int(config.batch_size), updates_per_step
        self._rng, self._generators = seeding.generator(seed, "d3", name, "batches"), PrivateGenerators()
        with self._generators:
            torch.manual_seed(seeding.integer(seed, "d3", name, "torch"))
            np.random.seed(seeding.integer(seed, "d3", name, "numpy"))  # noqa: NPY002  # d3rlpy uses the global generator
            self.model = hooks.build(config, inputs=self._inputs.size, actions=self._actions)
        self._cursor = DataCursor()
        self._losses: dict[str, float] = {}  # of the last gradient step
        self._rows, self._stored = Columns(), 0  # the transitions, and the number of trajectories they come from

    def policy(self) -> Policy:
        """The best actions with the current amount of exploration."""
        return self._policy(schedules.value_at(self._exploration, self._cursor.transitions))

    def greedy_policy(self) -> Policy:
        return self._policy(0.0)

    def _policy(self, exploration: float) -> Policy:
        if not self._discrete:
            return D3Policy(self, exploration)
        return EpsilonGreedy(self._indicators_of_one, exploration, batch_values=self._indicators)

    def _indicators(self, observations: Array) -> Array:
        """1 for the best of the discrete actions, 0 for the others, (N, A)."""
        best = hooks.best_actions(self.model, self._inputs(observations, np.float32))
        indicators: Array = np.eye(self._actions)[best.reshape(-1).astype(np.int64)]
        return indicators

    def _indicators_of_one(self, observation: Any) -> Array:
        indicators: Array = self._indicators(np.asarray(observation)[None])[0]
        return indicators

    def act(self, observation: Any, rng: np.random.Generator, *, noise: float) -> Array:
        """The best Box action plus noise. `rng` also seeds PyTorch, since some algorithms sample candidate actions."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63 - 1)))
            action = hooks.best_actions(self.model, self._inputs(np.asarray(observation)[None], np.float32))[0]
        space, noisy = self.action_space, action + noise * rng.standard_normal(self._actions)
        unit = (np.clip(noisy, -1, 1).reshape(space.shape) + 1) / 2
        taken: Array = np.clip(space.low + unit * (space.high - space.low), space.low, space.high).astype(space.dtype)
        return taken

    def learn(self, data: TrajectorySet) -> None:
        """Store the new transitions, then make the gradient steps that are due for them."""
        progress = self._cursor.up_to(data)
        if self._stored < len(data):
            self._add(data)
        rate, seen = self.updates_per_step, progress.transitions
        due = math.floor(seen * rate) - math.floor(self._cursor.transitions * rate)
        self._cursor = progress
        columns = {name: self._rows[name] for name in _COLUMNS}
        with self._generators:
            for _ in range(due):
                drawn = self._rng.integers(seen, size=self.batch)
                self._losses = losses = hooks.update(self.model, {name: column[drawn] for name, column in columns.items()})
                if not np.isfinite(list(losses.values())).all():
                    problem = f"the losses of learner {self.name!r} must be finite, but are {losses}"
                    raise DivergenceError(f"{problem}: lower its learning rate")

    def _add(self, data: TrajectorySet) -> None:
        steps, count = data.transitions(self._stored), self._actions
        actions = steps.actions.reshape(-1, 1)
        if not self._discrete:
            low, high = self.action_space.low.reshape(count), self.action_space.high.reshape(count)
            actions = (2 * (steps.actions.reshape(-1, count) - low) / (high - low) - 1).astype(np.float32)
        seen, following = (self._inputs(each, np.float32) for each in (steps.observations, steps.next_observations))
        self._rows.extend(dict(zip(_COLUMNS, (seen, actions, steps.rewards, following, steps.terminated), strict=True)))
        self._stored = len(data)

    def state_dict(self) -> dict[str, Any]:
        """Everything except the transitions, which are read again from the data by the next `learn`."""
        generators = self._generators.state_dict() | {"batches": seeding.state_of(self._rng)}
        return {"model": hooks.state_of(self.model), "counts": self._cursor.state_dict(), "generators": generators}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        hooks.restore(self.model, state["model"])
        self._cursor = DataCursor.from_state(state["counts"])
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self._rng, state["generators"]["batches"])
        self._rows, self._stored = Columns(), 0

    def metrics(self) -> dict[str, float]:
        """The loss of the last gradient step, and the exploration of algorithms for discrete actions."""
        loss = self._losses.get("loss", self._losses.get("critic_loss"))
        found = {} if loss is None else {"loss": float(loss)}
        exploration = schedules.value_at(self._exploration, self._cursor.transitions)
        return found | ({"epsilon": exploration} if self._discrete else {})


_COLUMNS = "observations", "actions", "rewards", "following", "terminated"


class D3Policy:
    """A policy for Box actions: the best action plus noise."""

    def __init__(self, learner: D3Learner, noise: float) -> None:
        self._learner, self._noise = learner, noise

    def act(self, observation: Any, rng: np.random.Generator) -> Array:
        return self._learner.act(observation, rng, noise=self._noise)


def _bounded(space: Any, *, owner: str) -> int:
    """The number of dimensions of an action."""
    low, high = (np.asarray(getattr(space, bound, np.inf)) for bound in ("low", "high"))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SpaceError(f"the actions of {owner} must be Discrete or Box with bounds, but are {space}: leave it out")
    return int(np.size(low))
