"""Deep Q-network (Mnih et al., 2015) with double Q-learning and corrected n-step returns. Equal networks train together."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esbas import schema, seeding, spaces
from esbas.columns import Array
from esbas.errors import DivergenceError, SpaceError, require, unknown
from esbas.learners import schedules
from esbas.learners.deep.group import Hyperparameters
from esbas.learners.deep.groups import group_for
from esbas.learners.deep.layout import Convolution, NetworkLayout
from esbas.learners.deep.optimizers import OPTIMIZERS
from esbas.learners.deep.replay import SharedReplay
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.schema import ArrayOf
from esbas.trajectory import TrajectorySet, Transition


class DQN:
    """Learns action values from a shared replay memory. Its policy is a live view of the network.

    DQNs on one memory with equal networks, `batch`, `optimizer` and `device` are trained in one call. All other options may
    differ, and each DQN learns the same as it would alone.

    Args:
        name: the name of the learner.
        replay: the replay memory, which also defines the spaces. All members of a portfolio use the same object.
        rate: the learning rate.
        gamma: the discount factor.
        double: whether to use double Q-learning: the network selects the next action, the target network evaluates it
            (van Hasselt et al., 2016).
        n_step: the number of rewards in an n-step return, at most.
        corrected: whether returns are corrected for the data of others: Retrace(λ) (Munos et al., 2016). A return ends at the
            first action that this DQN would not take, or whose probability under the policy that took it is unknown. If
            False, it has `n_step` rewards, whoever acted: it is biased towards the policies that acted, and the values do not
            converge to the optimal ones.
        trace_decay: λ of corrected returns, from 0 (one reward) to 1.
        hidden: the widths of the dense layers.
        convolutions: (filters, kernel, stride) each. Defaults to a standard choice for images and to none otherwise.
        initialization: of the weights: "pytorch", uniform within ±√(1 / inputs), or "he_uniform", within ±√(6 / inputs) with
            biases of 0 (He et al., 2015).
        optimizer: "adam" or "rmsprop" (ρ = 0.95, ε = 1e-7).
        batch: transitions per update.
        train_every: transitions between trainings.
        updates: updates per training.
        learning_starts: transitions before the first training.
        sync_every: updates between copies of the network to the target network.
        epsilon: the probability of a random action: (first, last, transitions in between) for a linear decay.
        device: "cpu", or a device of PyTorch: "cuda", "mps", or "auto" for "cuda" if there is one, otherwise "cpu". On the CPU,
            PyTorch is used for convolutions only. Saved states can be loaded on any device.
        overlap: whether the policy acts with the weights before the newest update, so that it need not wait: on the CPU, updates
            are made in `replay.processes` processes meanwhile. Results do not depend on their number. Needs PyTorch.
        seed: the seed of weights and batches. Members with different names draw different numbers.
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
        corrected: bool = True,
        trace_decay: float = 1.0,
        hidden: Sequence[int] = (64, 64),
        convolutions: Sequence[Convolution] | None = None,
        initialization: str = "pytorch",
        optimizer: str = "adam",
        batch: int = 64,
        train_every: int = 2,
        updates: int = 1,
        learning_starts: int = 500,
        sync_every: int = 300,
        epsilon: tuple[float, float, int] = (1.0, 0.02, 8_000),
        device: str = "cpu",
        overlap: bool = False,
        seed: int = 0,
    ) -> None:
        require(rate > 0, "rate > 0", rate=rate)
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        counts = {"n_step": n_step, "batch": batch, "train_every": train_every, "updates": updates, "sync_every": sync_every}
        for option, count in counts.items():
            require(count >= 1, f"{option} >= 1", **{option: count})
        require(0 <= trace_decay <= 1, "0 <= trace_decay <= 1", trace_decay=trace_decay)
        self._epsilon = schedules.linear_decay(epsilon)
        if optimizer not in OPTIMIZERS:
            raise unknown("optimizer", optimizer, OPTIMIZERS)
        self.name, self.replay = name, replay
        self.observation_space, self.action_space = replay.observation_space, replay.action_space
        if not (spaces.is_discrete(self.action_space) and self.action_space.start == 0):
            raise SpaceError(f"the actions of DQN {name!r} must be 0, 1, ..., n - 1, but are {self.action_space}: leave it out")
        self._train_every, self._updates, self._learning_starts = train_every, updates, learning_starts
        self._seen = 0  # transitions
        self._rng = seeding.generator(seed, "dqn", name, "batches")
        network = NetworkLayout(
            self.observation_space, actions=int(self.action_space.n), hidden=hidden, convolutions=convolutions
        )
        self._group = group_for(replay, network, batch=batch, optimizer=optimizer, device=device, overlap=overlap)
        options = Hyperparameters(
            rate=rate,
            gamma=gamma,
            double=double,
            n_step=n_step,
            corrected=corrected,
            trace_decay=trace_decay,
            sync_every=sync_every,
            rng=self._rng,
        )
        weights = network.initial(seeding.generator(seed, "dqn", name, "weights"), initialization)
        self._place = self._group.add(options, weights)

    def policy(self) -> EpsilonGreedy:
        return self._policy(self.epsilon)

    def greedy_policy(self) -> EpsilonGreedy:
        return self._policy(lambda: 0.0)

    def _policy(self, epsilon: Callable[[], float]) -> EpsilonGreedy:
        return EpsilonGreedy(self.values, epsilon, batch_values=self.batch_values)

    def epsilon(self) -> float:
        """The current probability of a random action."""
        return schedules.value_at(self._epsilon, self._seen)

    def values(self, observation: Any) -> Array:
        """The values of all actions, (A,)."""
        values = self._group.values(self._place, observation)
        self._check(bool(np.isfinite(values).all()))
        return values

    def batch_values(self, observations: Array) -> Array:
        """The values of all actions, (N, A), in one forward pass."""
        values = self._group.batch_values(self._place, observations)
        self._check(bool(np.isfinite(values).all()))
        return values

    def step(self, transition: Transition) -> None:
        """Store the transition, unless another member has done so, and train when it is time."""
        self.replay.add(transition)
        self._train(self.replay.added - 1)

    def learn(self, data: TrajectorySet) -> None:
        """Store the new trajectories, unless another member has done so, and train as often as `step` would have."""
        self.replay.take(data)
        self._train(self._seen)

    def _train(self, since: int) -> None:
        """Run the trainings that are due for the transitions after the first `since`."""
        self._seen = self.replay.added
        due = self._seen // self._train_every - max(since, self._learning_starts) // self._train_every
        if due > 0:
            self._group.request(self._place, due * self._updates)
        self._check(not self._group.diverged(self._place))

    def _check(self, finite: bool) -> None:
        if not finite:
            raise DivergenceError(f"the values of DQN {self.name!r} must be finite, but diverged: lower its rate")

    def state_dict(self) -> dict[str, Any]:
        """Includes the shared memory."""
        own = {"seen": self._seen, "rng": seeding.state_of(self._rng), "network": self._group.state_dict(self._place)}
        return own | {"replay": self.replay.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Also restores the shared memory, for all members that use it."""
        self._seen = state["seen"]
        seeding.restore(self._rng, state["rng"])
        self._group.load_state_dict(self._place, state["network"])
        self.replay.load_state_dict(state["replay"])

    def policy_state(self) -> dict[str, Any]:
        """The weights of the network."""
        return {"weights": self._group.weights(self._place)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the weights of network and target. The learning continues from them with a new optimiser."""
        shape = {"weights": ArrayOf("f", (self._group.network.size,))}
        schema.check(state, shape, f"the saved policy of learner {self.name!r}", remedy="build the learner as it was")
        self._group.restart(self._place, state["weights"])

    def metrics(self) -> dict[str, float]:
        """The means over the batch of the last update: the loss, the values of the actions, the absolute TD errors."""
        return {"epsilon": self.epsilon()} | self._group.metrics(self._place)

    def close(self) -> None:
        """End the processes that train, also for other members. They are started again if necessary."""
        self._group.close()
