"""The base of learners with a table of action values, for discrete observations and actions."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, ArrayOf
from esbas._internal.spaces import Discrete
from esbas.errors import require
from esbas.learners import schedules
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.ez_greedy import EZGreedy, check_exponent
from esbas.learners.from_env import (
    check_options,
    name_for,
    number_of_actions,
    number_of_observations,
    spaces_of,
)
from esbas.learners.naming import Named
from esbas.trajectory import TrajectorySet, Transition

Rate = float | Callable[[int], float]
Exploration = float | Sequence[float] | Callable[[int], float]
RECENT = 100  # updates that count in `metrics`


class TabularOptions(TypedDict, total=False):
    """The options of `Tabular`."""

    learning_rate: Rate
    gamma: float
    epsilon: Exploration
    initial: float
    zeta: float | None


class Tabular(Named):
    """A table of action values and an ε-greedy policy. Subclasses implement `step`.

    The policy is a live view of the table.

    Args:
        name: the name of the learner.
        states: the number of observations, 0, ..., states - 1.
        actions: the number of actions.
        learning_rate: a number, or a function of the number of the episode, from 1.
        gamma: the discount factor.
        epsilon: the probability of a random action: a number; (first, last, transitions in between)
            for a linear decay; or a function of the number of the episode.
        initial: the initial value of all actions. If it is higher than any return, actions that
            were never taken are tried first.
        zeta: the exponent of the zeta distribution of how often a random action is repeated, see
            `EZGreedy`; the paper uses 2. None: once, which is epsilon-greedy.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        *,
        states: int,
        actions: int,
        learning_rate: Rate = 0.1,
        gamma: float = 0.99,
        epsilon: Exploration = 0.1,
        initial: float = 0.0,
        zeta: float | None = None,
    ) -> None:
        require(states >= 1, f"`states` must be at least 1, but got {states!r}.")
        require(actions >= 1, f"`actions` must be at least 1, but got {actions!r}.")
        require(0 <= gamma <= 1, f"`gamma` must be between 0 and 1, but got {gamma!r}.")
        require(
            callable(learning_rate) or 0 < learning_rate <= 1,
            f"`learning_rate` must be greater than 0 and at most 1, but got {learning_rate!r}.",
        )
        require(bool(np.isfinite(initial)), f"`initial` must be finite, but got {initial!r}.")
        if zeta is not None:
            check_exponent(zeta)
        self.name = name
        self.gamma = gamma
        self.observation_space = Discrete(states)
        self.action_space = Discrete(actions)
        self.table: Array = np.full((states, actions), float(initial))
        self._rate = learning_rate
        self._epsilon = epsilon if callable(epsilon) else _number_or_decay(epsilon)
        self._zeta = zeta
        self._episode = 1  # the number of the current episode
        self._seen = 0  # the number of transitions so far
        # The value before an update, the value after it, and the learning rate.
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=RECENT)

    @classmethod
    def for_env(
        cls, env: Any, *, name: str | None = None, **options: Unpack[TabularOptions]
    ) -> Self:
        """Build the learner for an environment with discrete observations and actions.

        Args:
            env: the environment, from which the numbers of observations and actions are read.
            name: the name of the learner. Default: what the algorithm is called, and the given
                options except `seed`, such as "tabular Q learning_rate 0.02".
            **options: the other arguments of the class.
        """
        return cls._for_env(env, name, options)

    @classmethod
    def _for_env(cls, env: Any, name: str | None, options: Mapping[str, Any]) -> Self:
        observation_space, action_space = spaces_of(env)
        states = number_of_observations(observation_space, cls.__name__)
        actions = number_of_actions(action_space, cls.__name__)
        check_options(cls, options)
        return cls(name_for(cls, name, options), states=states, actions=actions, **options)

    def policy(self) -> EpsilonGreedy | EZGreedy:
        rows = self.table.__getitem__  # works for one observation and for many
        epsilon = self._epsilon if isinstance(self._epsilon, float) else self.epsilon()
        policy = EpsilonGreedy(rows, epsilon, batch_values=rows)
        return policy if self._zeta is None else EZGreedy(policy, self._zeta)

    def greedy_policy(self) -> EpsilonGreedy:
        rows = self.table.__getitem__
        return EpsilonGreedy(rows, 0.0, batch_values=rows)

    def epsilon(self) -> float:
        """Return the current probability of a random action."""
        if isinstance(self._epsilon, float):
            return self._epsilon
        if callable(self._epsilon):
            return self._epsilon(self._episode)
        return schedules.value_at(self._epsilon, self._seen)

    def step(self, transition: Transition) -> None:
        """Update once. After a truncation, unlike a termination, the next value counts."""
        raise NotImplementedError

    def learn(self, data: TrajectorySet) -> None:
        """Step through the new trajectories."""
        finished = self._episode - 1
        for trajectory in data.since(finished):
            for transition in trajectory.transitions():
                self.step(transition)

    def metrics(self) -> dict[str, float]:
        """Return epsilon, and the means over the last updates: values and absolute TD errors."""
        found = {"epsilon": self.epsilon()}
        if self._recent:
            before, after, rate = np.array(self._recent, float).T
            errors = np.zeros(len(rate))
            np.divide(np.abs(after - before), rate, out=errors, where=rate > 0)
            found["mean Q"] = float(after.mean())
            found["TD error"] = float(errors.mean())
        return found

    def state_dict(self) -> dict[str, Any]:
        return {
            "table": self.table.copy(),
            "episode": self._episode,
            "seen": self._seen,
            "recent": np.array(self._recent, float).reshape(-1, 3),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape = {
            "table": Any,  # checked by `load_policy_state`
            "episode": COUNT,
            "seen": COUNT,
            "recent": ArrayOf("f", (None, 3)),
            str: Any,  # what subclasses add
        }
        schema.check(state, shape, f"the saved state of learner {self.name!r}")
        self.load_policy_state({"table": state["table"]})
        self._episode = state["episode"]
        self._seen = state["seen"]
        self._recent = deque(map(tuple, state["recent"].tolist()), maxlen=RECENT)

    def policy_state(self) -> dict[str, Any]:
        return {"table": self.table.copy()}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the values. The learning continues from them."""
        shape = {"table": ArrayOf("f", self.table.shape)}
        remedy = "build the learner as it was, or go back to an earlier copy"
        schema.check(state, shape, f"the saved policy of learner {self.name!r}", remedy=remedy)
        self.table[:] = state["table"]


def _number_or_decay(given: float | Sequence[float]) -> float | schedules.LinearDecay:
    schedule = schedules.linear_decay(given)
    return schedule if isinstance(given, Sequence) else float(given)
