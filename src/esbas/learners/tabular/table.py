"""What learners with a table of action values have in common, for discrete observations and actions."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.errors import require
from esbas.learners import schedules
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.schema import COUNT, ArrayOf
from esbas.spaces import Discrete
from esbas.trajectory import TrajectorySet, Transition

Rate = float | Callable[[int], float]
Exploration = float | Sequence[float] | Callable[[int], float]
RECENT = 100  # updates that count in `metrics`


class Tabular:
    """A table of action values and an ε-greedy policy, which is a live view of the table. Subclasses implement `step`.

    Args:
        name: the name of the learner.
        states: the number of observations, 0, ..., states - 1.
        actions: the number of actions.
        rate: the learning rate: a number, or a function of the number of the episode, from 1.
        gamma: the discount factor.
        epsilon: the probability of a random action: a number; (first, last, transitions in between) for a linear decay; or a
            function of the number of the episode.
        initial: the initial value of all actions. If it is higher than any return, actions that were never taken are tried first.
    """

    stationary = False

    def __init__(
        self,
        name: str,
        *,
        states: int,
        actions: int,
        rate: Rate = 0.1,
        gamma: float = 0.99,
        epsilon: Exploration = 0.1,
        initial: float = 0.0,
    ) -> None:
        require(states >= 1 and actions >= 1, "states >= 1 and actions >= 1", states=states, actions=actions)
        require(0 <= gamma <= 1, "0 <= gamma <= 1", gamma=gamma)
        require(callable(rate) or 0 < rate <= 1, "0 < rate <= 1", rate=rate)
        require(bool(np.isfinite(initial)), "initial is finite", initial=initial)
        self.name, self.gamma = name, gamma
        self.observation_space, self.action_space = Discrete(states), Discrete(actions)
        self.table: Array = np.full((states, actions), float(initial))
        self._rate = rate
        self._epsilon = epsilon if callable(epsilon) else _number_or_decay(epsilon)
        self._episode, self._seen = 1, 0  # the number of the episode, and of transitions so far
        self._recent: deque[tuple[float, float, float]] = deque(maxlen=RECENT)  # values before and after an update, and its rate

    def policy(self) -> EpsilonGreedy:
        rows = self.table.__getitem__  # works for one observation and for many
        epsilon = self._epsilon if isinstance(self._epsilon, float) else self.epsilon()
        return EpsilonGreedy(rows, epsilon, batch_values=rows)

    def greedy_policy(self) -> EpsilonGreedy:
        rows = self.table.__getitem__
        return EpsilonGreedy(rows, 0.0, batch_values=rows)

    def epsilon(self) -> float:
        """The current probability of a random action."""
        if isinstance(self._epsilon, float):
            return self._epsilon
        return self._epsilon(self._episode) if callable(self._epsilon) else schedules.value_at(self._epsilon, self._seen)

    def step(self, transition: Transition) -> None:
        """Update once. The next value counts unless the episode terminated, so it does after a truncation."""
        raise NotImplementedError

    def learn(self, data: TrajectorySet) -> None:
        """Step through the new trajectories: this learner has seen `episode - 1` of them."""
        for trajectory in data.since(self._episode - 1):
            for transition in trajectory.transitions():
                self.step(transition)

    def metrics(self) -> dict[str, float]:
        """The means of the last updates: values after them, and absolute TD errors."""
        found = {"epsilon": self.epsilon()}
        if self._recent:
            before, after, rate = np.array(self._recent, float).T
            errors = np.divide(np.abs(after - before), rate, out=np.zeros(len(rate)), where=rate > 0)
            found |= {"mean Q": float(after.mean()), "TD error": float(errors.mean())}
        return found

    def state_dict(self) -> dict[str, Any]:
        recent = np.array(self._recent, float).reshape(-1, 3)
        return {"table": self.table.copy(), "episode": self._episode, "seen": self._seen, "recent": recent}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        counts = {"episode": COUNT, "seen": COUNT, "recent": ArrayOf("f", (None, 3))}
        schema.check(state, {"table": Any, str: Any} | counts, f"the saved state of learner {self.name!r}")
        self.load_policy_state({"table": state["table"]})
        self._episode, self._seen = state["episode"], state["seen"]
        self._recent = deque(map(tuple, state["recent"].tolist()), maxlen=RECENT)

    def policy_state(self) -> dict[str, Any]:
        return {"table": self.table.copy()}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the values. The learning continues from them."""
        shape, remedy = {"table": ArrayOf("f", self.table.shape)}, "build the learner as it was, or go back to an earlier copy"
        schema.check(state, shape, f"the saved policy of learner {self.name!r}", remedy=remedy)
        self.table[:] = state["table"]


def _number_or_decay(given: float | Sequence[float]) -> float | schedules.LinearDecay:
    schedule = schedules.linear_decay(given)
    return schedule if isinstance(given, Sequence) else float(given)
