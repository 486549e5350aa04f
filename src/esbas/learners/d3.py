"""Algorithms of d3rlpy as members of a portfolio: they learn from the growing batch of all trajectories."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas import seeding, spaces
from esbas.columns import Array, Columns
from esbas.errors import DivergenceError, SpaceError, require
from esbas.learner import Policy
from esbas.learners import _d3_hooks as hooks
from esbas.learners import schedules
from esbas.learners._inputs import Inputs, discrete_actions
from esbas.learners._own_generators import OwnGenerators
from esbas.learners._torch import torch
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.trajectory import TrajectorySet

EXPLORATION = 1.0, 0.1, 5_000


class D3Learner:
    """Makes gradient steps in proportion to the transitions that are new, on batches drawn from all of them.

    Where an episode was cut off, its last transition counts, and so does the value of what would have followed. Box actions are
    scaled to [-1, 1]. It learns with global generators of its own, which are in place only while it learns; its policies draw
    from the generator that they are given.

    Args:
        name: of the learner.
        algorithm: "dqn", "double_dqn", "nfq", "sac", "bcq" or "cql" for discrete actions; "ddpg", "td3", "td3_plus_bc", "sac",
            "cql", "iql", "awac", "crr", "bcq", "bear", "plas" or "plas_with_perturbation" for Box; or a configuration of d3rlpy.
        observation_space: Box (flattened) or Discrete (one-hot).
        action_space: Discrete, or Box with bounds.
        updates_per_step: gradient steps per new transition; need not be whole.
        batch: transitions per gradient step; None: as many as the algorithm usually has.
        hidden: the widths of the networks' layers, for names; None: the usual ones.
        options: of the configuration, for names.
        epsilon: the probability of a random action, (first, last, transitions in between), falling linearly, or one number; for
            discrete actions, by default (1.0, 0.1, 5_000).
        noise: the standard deviation of normal noise, in halves of the range of an action, as for `epsilon`; for Box.
        seed: of weights, batches and draws; members with different names differ.
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
            require(noise is None, "noise is for Box actions", "give epsilon instead", noise=noise)
        else:
            self._actions = _bounded(action_space, owner=owner)
            require(epsilon is None, "epsilon is for discrete actions", "give noise instead", epsilon=epsilon)
        given = epsilon if self._discrete else noise
        self._exploration = schedules.falling(
            EXPLORATION if given is None else given, name="epsilon" if self._discrete else "noise"
        )
        config = hooks.configuration(algorithm, discrete=self._discrete, options=options, hidden=hidden, owner=owner)
        self.batch, self.updates_per_step = batch or int(config.batch_size), updates_per_step
        self._rng, self._generators = seeding.generator(seed, "d3", name, "batches"), OwnGenerators()
        with self._generators:
            torch.manual_seed(seeding.integer(seed, "d3", name, "torch"))
            np.random.seed(seeding.integer(seed, "d3", name, "numpy"))  # noqa: NPY002  # d3rlpy knows the global one
            self.model = hooks.build(config, inputs=self._inputs.size, actions=self._actions)
        self._learnt, self._seen = 0, 0  # trajectories, transitions
        self._rows, self._known = Columns(), 0  # the transitions, and from how many trajectories: read again after loading
        self._last: tuple[bytes, Array] | None = None  # a vector and the values of discrete actions

    def policy(self) -> Policy:
        """What the algorithm takes for best, with as much exploration as it is time for."""
        return self._policy(schedules.between(self._exploration, self._seen))

    def greedy_policy(self) -> Policy:
        """The policy without exploration."""
        return self._policy(0.0)

    def _policy(self, exploration: float) -> Policy:
        return EpsilonGreedy(self._marks, lambda: exploration) if self._discrete else D3Policy(self, exploration)

    def _marks(self, observation: Any) -> Array:
        """1 for the best of the discrete actions, 0 for the others, (A,)."""
        row = self._row(observation)
        key = row.tobytes()
        if self._last is None or self._last[0] != key:  # asked once to act, once for the probability
            self._last = key, np.eye(self._actions)[int(hooks.best_action(self.model, row))]
        return self._last[1]

    def act(self, observation: Any, rng: np.random.Generator, *, noise: float) -> Array:
        """The best Box action, with noise. Some algorithms draw candidates: they, too, come from `rng`."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**63 - 1)))
            action = hooks.best_action(self.model, self._row(observation))
        space, noisy = self.action_space, action + noise * rng.standard_normal(self._actions)
        unit = (np.clip(noisy, -1, 1).reshape(space.shape) + 1) / 2
        taken: Array = np.clip(space.low + unit * (space.high - space.low), space.low, space.high).astype(space.dtype)
        return taken

    def _row(self, observation: Any) -> Array:
        return self._inputs(np.asarray(observation)[None], np.float32)

    def learn(self, data: TrajectorySet) -> None:
        """Take in what is new, and make the gradient steps that are due for it."""
        require(self._learnt <= len(data), "the data only grow", learnt=self._learnt, trajectories=len(data))
        if self._known < len(data):
            self._take(data)
        rate, seen = self.updates_per_step, len(self._rows["rewards"])
        due = math.floor(seen * rate) - math.floor(self._seen * rate)
        self._learnt, self._seen, self._last = len(data), seen, None
        columns = {name: self._rows[name] for name in _COLUMNS}
        with self._generators:
            for _ in range(due):
                drawn = self._rng.integers(seen, size=self.batch)
                losses = hooks.update(self.model, {name: column[drawn] for name, column in columns.items()})
                if not np.isfinite(list(losses.values())).all():
                    told = f"the losses of learner {self.name!r} must be finite, but are {losses}"
                    raise DivergenceError(f"{told}: lower its learning rate")

    def _take(self, data: TrajectorySet) -> None:
        steps, count = data.transitions(self._known), self._actions
        actions = steps.actions.reshape(-1, 1)
        if not self._discrete:
            low, high = self.action_space.low.reshape(count), self.action_space.high.reshape(count)
            actions = (2 * (steps.actions.reshape(-1, count) - low) / (high - low) - 1).astype(np.float32)
        seen, following = (self._inputs(each, np.float32) for each in (steps.observations, steps.next_observations))
        self._rows.extend(dict(zip(_COLUMNS, (seen, actions, steps.rewards, following, steps.terminated), strict=True)))
        self._known = len(data)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the transitions, as arrays and plain data; they are read again from the data when it learns."""
        counts = {"learnt": self._learnt, "seen": self._seen}
        generators = self._generators.state_dict() | {"batches": seeding.state_of(self._rng)}
        return {"model": hooks.state_of(self.model), "counts": counts, "generators": generators}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """From what `state_dict` told."""
        hooks.restore(self.model, state["model"])
        self._learnt, self._seen = state["counts"]["learnt"], state["counts"]["seen"]
        self._generators.load_state_dict(state["generators"])
        seeding.restore(self._rng, state["generators"]["batches"])
        self._rows, self._known, self._last = Columns(), 0, None


_COLUMNS = "observations", "actions", "rewards", "following", "terminated"


class D3Policy:
    """A member's algorithm as a policy for Box actions."""

    def __init__(self, learner: D3Learner, noise: float) -> None:
        self._learner, self._noise = learner, noise

    def act(self, observation: Any, rng: np.random.Generator) -> Array:
        """The best action, with noise."""
        return self._learner.act(observation, rng, noise=self._noise)


def _bounded(space: Any, *, owner: str) -> int:
    """How many numbers an action of this Box has."""
    low, high = (np.asarray(getattr(space, bound, np.inf)) for bound in ("low", "high"))
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise SpaceError(f"the actions of {owner} must be Discrete or Box with bounds, but are {space}: leave it out")
    return int(np.size(low))
