"""Deep Q-network (Mnih et al., 2015) with double Q-learning and corrected n-step returns."""

from collections.abc import Callable, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas import seeding
from esbas._internal import schema, spaces
from esbas._internal.columns import Array
from esbas._internal.schema import ArrayOf
from esbas.errors import DivergenceError, InvalidValueError, SpaceError, require, unknown
from esbas.learners import schedules
from esbas.learners.count_bonus import check_bonus
from esbas.learners.dqn.group import Hyperparameters
from esbas.learners.dqn.groups import group_for
from esbas.learners.dqn.layout import Convolution, NetworkLayout
from esbas.learners.dqn.optimizers import OPTIMIZERS
from esbas.learners.dqn.replay.memory import SharedReplay
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.ez_greedy import EZGreedy, check_exponent
from esbas.learners.from_env import (
    check_options,
    name_for,
    number_of_actions,
    replay_for,
    require_arrays,
    spaces_of,
)
from esbas.learners.naming import Named
from esbas.trajectory import TrajectorySet, Transition


class DQNOptions(TypedDict, total=False):
    """The options of `DQN`."""

    learning_rate: float
    gamma: float
    double: bool
    n_steps: int
    corrected: bool
    trace_decay: float
    hidden: Sequence[int]
    convolutions: Sequence[Convolution] | None
    initialization: str
    optimizer: str
    batch_size: int
    train_freq: int
    gradient_steps: int
    learning_starts: int
    sync_every: int
    epsilon: tuple[float, float, int]
    zeta: float | None
    bonus: float
    device: str
    overlap: bool
    seed: int


class DQN(Named):
    """Learns action values from a shared replay memory. Its policy is a live view of the network.

    DQNs on one memory with equal networks, `batch_size`, `optimizer` and `device` are trained in
    one call. All other options may differ, and each DQN learns the same as it would alone.

    Args:
        name: the name of the learner.
        replay: the replay memory, which also defines the spaces. All learners of a portfolio use
            the same object.
        learning_rate: of the optimizer.
        gamma: the discount factor.
        double: whether to use double Q-learning: the network selects the next action, the target
            network evaluates it (van Hasselt et al., 2016).
        n_steps: the number of rewards in an n-step return, at most.
        corrected: whether returns are corrected for the data of others: Retrace(λ) (Munos et al.,
            2016). A return ends at the first action that this DQN would not take, or whose
            probability under the policy that took it is unknown. If False, it has `n_steps`
            rewards, whichever learner acted: it is biased towards the policies that acted, and the
            values do not converge to the optimal ones.
        trace_decay: λ of corrected returns, from 0 (one reward) to 1.
        hidden: the widths of the dense layers.
        convolutions: (filters, kernel, stride) each. Defaults to a standard choice for images and
            to none otherwise.
        initialization: of the weights: "pytorch", uniform within ±√(1 / inputs), or
            "he_uniform", within ±√(6 / inputs) with biases of 0 (He et al., 2015).
        optimizer: "adam" or "rmsprop" (ρ = 0.95, ε = 1e-7).
        batch_size: transitions per update.
        train_freq: transitions between trainings.
        gradient_steps: updates per training.
        learning_starts: transitions before the first training.
        sync_every: updates between copies of the network to the target network.
        epsilon: the probability of a random action: (first, last, transitions in between) for a
            linear decay.
        zeta: the exponent of the zeta distribution of how often a random action is repeated, see
            `EZGreedy`; the paper uses 2. None: once, which is epsilon-greedy.
        bonus: β of a bonus β / sqrt(n) that increases rewards, n the visits of the next observation
            by all learners until the update. Visits are counted by `ObservationCodes`: of labels,
            or of 65,536 hashes of arrays. Values contain what is left of the bonuses.
        device: "cpu", or a device of PyTorch: "cuda", "mps", or "auto" for "cuda" if there is one,
            otherwise "cpu". On the CPU, PyTorch is used for convolutions only. Saved states can be
            loaded on any device.
        overlap: whether the policy acts with the weights before the newest update, so that it need
            not wait: on the CPU, updates are made in `replay.processes` processes meanwhile.
            Results do not depend on their number. Needs PyTorch.
        seed: the seed of weights and batches. Learners with different names draw different
            numbers.
    """

    title = "DQN"
    stationary = False

    def __init__(
        self,
        name: str,
        *,
        replay: SharedReplay,
        learning_rate: float = 1e-3,
        gamma: float = 0.99,
        double: bool = True,
        n_steps: int = 3,
        corrected: bool = True,
        trace_decay: float = 1.0,
        hidden: Sequence[int] = (64, 64),
        convolutions: Sequence[Convolution] | None = None,
        initialization: str = "pytorch",
        optimizer: str = "adam",
        batch_size: int = 64,
        train_freq: int = 2,
        gradient_steps: int = 1,
        learning_starts: int = 500,
        sync_every: int = 300,
        epsilon: tuple[float, float, int] = (1.0, 0.02, 8_000),
        zeta: float | None = None,
        bonus: float = 0.0,
        device: str = "cpu",
        overlap: bool = False,
        seed: int = 0,
    ) -> None:
        require(
            learning_rate > 0, f"`learning_rate` must be greater than 0, but got {learning_rate!r}."
        )
        require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
        counts = {
            "n_steps": n_steps,
            "batch_size": batch_size,
            "train_freq": train_freq,
            "gradient_steps": gradient_steps,
            "sync_every": sync_every,
        }
        for option, count in counts.items():
            require(count >= 1, f"`{option}` must be at least 1, but got {count!r}.")
        require(
            0 <= trace_decay <= 1,
            f"`trace_decay` must be between 0 and 1, but got {trace_decay!r}.",
        )
        if zeta is not None:
            check_exponent(zeta)
        check_bonus(bonus)
        self._epsilon = schedules.linear_decay(epsilon)
        self._zeta = zeta
        if optimizer not in OPTIMIZERS:
            raise unknown("optimizer", optimizer, OPTIMIZERS)
        self.name = name
        self.replay = replay
        self.observation_space = replay.observation_space
        self.action_space = replay.action_space
        if not (spaces.is_discrete(self.action_space) and self.action_space.start == 0):
            raise SpaceError(
                f"The actions of DQN {name!r} must be 0, 1, ..., n - 1, "
                f"but are {self.action_space}: leave this learner out."
            )
        if bonus > 0:
            replay.count_visits()
        self._train_freq = train_freq
        self._gradient_steps = gradient_steps
        self._learning_starts = learning_starts
        self._seen = 0  # transitions
        self._rng = seeding.generator(seed, "dqn", name, "batches")
        network = NetworkLayout(
            self.observation_space,
            actions=int(self.action_space.n),
            hidden=hidden,
            convolutions=convolutions,
        )
        self._group = group_for(
            replay,
            network,
            batch_size=batch_size,
            optimizer=optimizer,
            device=device,
            overlap=overlap,
        )
        options = Hyperparameters(
            rate=learning_rate,
            gamma=gamma,
            double=double,
            n_steps=n_steps,
            corrected=corrected,
            trace_decay=trace_decay,
            bonus=bonus,
            sync_every=sync_every,
            rng=self._rng,
        )
        weights = network.initial(seeding.generator(seed, "dqn", name, "weights"), initialization)
        self._index = self._group.add(options, weights)

    @classmethod
    def for_env(
        cls,
        env: Any,
        *,
        name: str | None = None,
        replay: SharedReplay | None = None,
        **options: Unpack[DQNOptions],
    ) -> Self:
        """Build the learner for an environment with discrete actions.

        Args:
            env: the environment, from which the spaces are read.
            name: the name of the learner. Default: "DQN" and the given options except `seed`, such
                as "DQN learning_rate 0.001, n_steps 3".
            replay: a replay memory for several learners. Default: a new one. Learners that share a
                memory need less space, and those with equal networks train together.
            **options: the other arguments of the class.
        """
        observation_space, action_space = spaces_of(env)
        require_arrays(observation_space, cls.__name__)
        number_of_actions(action_space, cls.__name__)
        check_options(cls, options)
        return cls(name_for(cls, name, options), replay=replay_for(env, replay), **options)

    def policy(self) -> EpsilonGreedy | EZGreedy:
        policy = self._policy(self.epsilon)
        return policy if self._zeta is None else EZGreedy(policy, self._zeta)

    def greedy_policy(self) -> EpsilonGreedy:
        return self._policy(lambda: 0.0)

    def _policy(self, epsilon: Callable[[], float]) -> EpsilonGreedy:
        return EpsilonGreedy(self.values, epsilon, batch_values=self.batch_values)

    def epsilon(self) -> float:
        """Return the current probability of a random action."""
        return schedules.value_at(self._epsilon, self._seen)

    def values(self, observation: Any) -> Array:
        """Return the values of all actions, (A,)."""
        values = self._group.values(self._index, observation)
        self._check_values(values, observation)
        return values

    def batch_values(self, observations: Array) -> Array:
        """Return the values of all actions, (N, A), from one forward pass."""
        values = self._group.batch_values(self._index, observations)
        self._check_values(values, observations)
        return values

    def _check_values(self, values: Array, observations: Any) -> None:
        """Raise an error if values are not finite, which may be due to the observations."""
        if np.isfinite(values).all():
            return
        if not np.isfinite(np.asarray(observations, np.float64)).all():
            raise InvalidValueError(
                f"Observations must be finite, but DQN {self.name!r} got "
                f"{schema.short(observations)}: fix what observes."
            )
        self._check(False)

    def step(self, transition: Transition) -> None:
        """Store the transition, unless another learner has done so, and train when it is due."""
        self.replay.add(transition)
        self._train(self.replay.added - 1)

    def learn(self, data: TrajectorySet) -> None:
        """Store the new trajectories, unless another learner has done so, and train on them.

        It trains as often as `step` would have.
        """
        self.replay.take(data)
        self._train(self._seen)

    def _train(self, since: int) -> None:
        """Run the trainings that are due for the transitions after the first `since`."""
        self._seen = self.replay.added
        skipped = max(since, self._learning_starts)
        due = self._seen // self._train_freq - skipped // self._train_freq
        if due > 0:
            self._group.request(self._index, due * self._gradient_steps)
        self._check(not self._group.diverged(self._index))

    def _check(self, finite: bool) -> None:
        if not finite:
            raise DivergenceError(
                f"The values of DQN {self.name!r} became infinite or NaN: "
                "lower its `learning_rate`."
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this learner and of the shared memory."""
        return {
            "seen": self._seen,
            "rng": seeding.state_of(self._rng),
            "network": self._group.state_dict(self._index),
            "replay": self.replay.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the state, including the shared memory for all learners that use it."""
        self._seen = state["seen"]
        seeding.restore(self._rng, state["rng"])
        self._group.load_state_dict(self._index, state["network"])
        self.replay.load_state_dict(state["replay"])

    def policy_state(self) -> dict[str, Any]:
        """Return the weights of the network."""
        return {"weights": self._group.weights(self._index)}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the weights of network and target.

        Learning continues from them with a new optimizer.
        """
        shape = {"weights": ArrayOf("f", (self._group.network.size,))}
        schema.check(
            state,
            shape,
            f"the saved policy of learner {self.name!r}",
            remedy="build the learner as it was",
        )
        self._group.restart(self._index, state["weights"])

    def metrics(self) -> dict[str, float]:
        """Return epsilon, and means over the last batch: loss, Q and absolute TD error."""
        return {"epsilon": self.epsilon()} | self._group.metrics(self._index)

    def close(self) -> None:
        """End the processes that train, also for other learners.

        They are started again if necessary.
        """
        self._group.close()
