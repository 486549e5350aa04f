"""Deep Q-network (Mnih et al., 2015), with double Q-learning and n-step returns; members of one shape train in one call."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from esbas import seeding, spaces
from esbas.columns import Array
from esbas.errors import DivergenceError, SpaceError, require, unknown
from esbas.learners import schedules
from esbas.learners.dqn_batched import OPTIMIZERS, Group, Own
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.networks import Convolution, Network
from esbas.learners.replay import SharedReplay
from esbas.trajectory import TrajectorySet, Transition


class DQN:
    """Learns action values from a shared replay memory.

    DQNs on one memory with equal networks, `batch` and `optimizer` are trained in one batched call. All else is each one's own,
    and each learns what it would learn alone.

    Args:
        name: of the learner.
        replay: the memory, which also tells the spaces; the same object for all members of a portfolio.
        rate: of learning.
        gamma: the discount.
        double: whether the network itself chooses the next action that its target values (van Hasselt et al., 2016).
        n_step: how many rewards are summed before the target's value counts.
        hidden: the widths of the dense layers.
        convolutions: (filters, kernel, stride) each; None: a usual choice for images, none for anything else.
        optimizer: "adam" or "rmsprop".
        batch: transitions per update.
        train_every: transitions between trainings.
        updates: per training.
        learning_starts: transitions before the first training.
        sync_every: updates between copies of the network to its target.
        epsilon: the probability of a random action, (first, last, transitions in between); it falls linearly.
        seed: of the weights and the batches; members with different names differ.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        *,
        replay: SharedReplay,
        rate: float = 1e-3,
        gamma: float = 0.99,
        double: bool = True,
        n_step: int = 3,
        hidden: Sequence[int] = (64, 64),
        convolutions: Sequence[Convolution] | None = None,
        optimizer: str = "adam",
        batch: int = 64,
        train_every: int = 2,
        updates: int = 1,
        learning_starts: int = 500,
        sync_every: int = 300,
        epsilon: tuple[float, float, int] = (1.0, 0.02, 8_000),
        seed: int = 0,
    ) -> None:
        require(rate > 0, "rate > 0", rate=rate)
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        counts = {"n_step": n_step, "batch": batch, "train_every": train_every, "updates": updates, "sync_every": sync_every}
        for option, count in counts.items():
            require(count >= 1, f"{option} >= 1", **{option: count})
        self._epsilon = schedules.falling(epsilon)
        if optimizer not in OPTIMIZERS:
            raise unknown("optimizer", optimizer, OPTIMIZERS)
        self.name, self.replay = name, replay
        self.observation_space, self.action_space = replay.observation_space, replay.action_space
        if not (spaces.is_discrete(self.action_space) and self.action_space.start == 0):
            raise SpaceError(f"the actions of DQN {name!r} must be 0, 1, ..., n - 1, but are {self.action_space}: leave it out")
        self._train_every, self._updates, self._learning_starts = train_every, updates, learning_starts
        self._seen = 0  # transitions
        self._rng = seeding.generator(seed, "dqn", name, "batches")
        network = Network(self.observation_space, actions=int(self.action_space.n), hidden=hidden, convolutions=convolutions)
        key = network.convolutions, tuple(network.shapes), batch, optimizer
        if key not in replay.groups:
            replay.groups[key] = Group(replay, network, batch=batch, optimizer=optimizer)
        self._group: Group = replay.groups[key]
        own = Own(rate=rate, gamma=gamma, double=double, n_step=n_step, sync_every=sync_every, rng=self._rng)
        self._place = self._group.join(own, network.initial(seeding.generator(seed, "dqn", name, "weights")))
        self._last: tuple[Any, Array] | None = None  # an observation and its values

    def policy(self) -> EpsilonGreedy:
        """ε-greedy on the network as it is at each step."""
        return EpsilonGreedy(self.values, self.epsilon)

    def greedy_policy(self) -> EpsilonGreedy:
        """The same without exploration."""
        return EpsilonGreedy(self.values, lambda: 0.0)

    def epsilon(self) -> float:
        """The probability of a random action now."""
        return schedules.between(self._epsilon, self._seen)

    def values(self, observation: Any) -> Array:
        """The values of all actions, (A,)."""
        if self._last is None or observation is not self._last[0]:  # asked once to act, once for the probability
            values = self._group.values(self._place, observation)
            self._check(bool(np.isfinite(values).all()))
            self._last = observation, values
        return self._last[1]

    def step(self, transition: Transition) -> None:
        """Store the transition, if nobody has, and train when it is time."""
        self._last = None
        self.replay.add(transition)
        self._train(self.replay.added - 1)

    def learn(self, data: TrajectorySet) -> None:
        """Store what is new, if nobody has, and train as often as `step` would have."""
        self._last = None
        self.replay.take(data)
        self._train(self._seen)

    def _train(self, since: int) -> None:
        """Train for the transitions that came `since`."""
        self._seen = self.replay.added
        due = self._seen // self._train_every - max(since, self._learning_starts) // self._train_every
        if due > 0:
            self._group.owe(self._place, due * self._updates)
        self._check(not self._group.diverged(self._place))

    def _check(self, finite: bool) -> None:
        if not finite:
            raise DivergenceError(f"the values of DQN {self.name!r} must be finite, but diverged: lower its rate")

    def state_dict(self) -> dict[str, Any]:
        """Everything as arrays and plain data, the shared memory included."""
        own = {"seen": self._seen, "rng": seeding.state_of(self._rng), "network": self._group.state_dict(self._place)}
        return own | {"replay": self.replay.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Become the learner that `state_dict` told of; the memory becomes what it was, for all who share it."""
        self._seen, self._last = state["seen"], None
        seeding.restore(self._rng, state["rng"])
        self._group.load_state_dict(self._place, state["network"])
        self.replay.load_state_dict(state["replay"])
