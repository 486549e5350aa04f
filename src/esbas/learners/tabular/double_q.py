"""Double Q-learning with two tables (van Hasselt, 2010), for discrete observations and actions."""

from typing import Any, Self, Unpack

import numpy as np

from esbas import seeding
from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import ArrayOf
from esbas.learners.tabular.q_learning import q_update
from esbas.learners.tabular.table import Exploration, Rate, Tabular, TabularOptions
from esbas.trajectory import Transition


def double_value(own: Array, other: Array) -> float:
    """Return Q_B(argmax_a Q_A(a)): one table selects the next action, the other evaluates it.

    Ties go to the first action.
    """
    return float(other[own.argmax()])


class DoubleQOptions(TabularOptions, total=False):
    """The options of `DoubleQ`."""

    seed: int


class DoubleQ(Tabular):
    """Updates one of two tables, at random, and acts on their mean.

    Noisy rewards do not inflate its values.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        seed: the seed of the choice of the table. Learners with different names draw different
            numbers.
    """

    title = "double Q"

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
        seed: int = 0,
    ) -> None:
        super().__init__(
            name,
            states=states,
            actions=actions,
            learning_rate=learning_rate,
            gamma=gamma,
            epsilon=epsilon,
            initial=initial,
            zeta=zeta,
        )
        self.tables: Array = np.stack([self.table, self.table])  # (2, S, A); `table` is their mean
        self._rng = seeding.generator(seed, "double q", name)

    @classmethod
    def for_env(
        cls, env: Any, *, name: str | None = None, **options: Unpack[DoubleQOptions]
    ) -> Self:
        """Build the learner for an environment, see `Tabular.for_env`."""
        return cls._for_env(env, name, options)

    def step(self, transition: Transition) -> None:
        """Update one table. After a truncation, unlike a termination, the next value counts."""
        s = transition.observation
        a = transition.action
        terminated = transition.terminated
        own, other = self.tables if self._rng.random() < 0.5 else self.tables[::-1]
        next_s = transition.next_observation
        following = 0.0 if terminated else double_value(own[next_s], other[next_s])
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        before = own[s, a]
        after = q_update(before, rate, transition.reward, self.gamma, following)
        own[s, a] = after
        self.table[s, a] = (after + other[s, a]) / 2
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "tables": self.tables.copy(),
            "rng": seeding.state_of(self._rng),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape = {"tables": ArrayOf("f", self.tables.shape), "rng": dict, str: Any}
        schema.check(state, shape, f"the saved state of learner {self.name!r}")
        super().load_state_dict(state)
        self.tables[:] = state["tables"]
        seeding.restore(self._rng, state["rng"])

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the values in both tables. The learning continues from them."""
        super().load_policy_state(state)
        self.tables[:] = self.table
