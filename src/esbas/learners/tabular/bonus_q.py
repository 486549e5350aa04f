"""Q-learning with a table and a count bonus, for discrete observations and actions."""

from typing import Any, Self, Unpack

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import ArrayOf
from esbas.errors import InvalidValueError
from esbas.learners.count_bonus import check_bonus, count_bonus
from esbas.learners.tabular.q_learning import TabularQ
from esbas.learners.tabular.table import Exploration, Rate, TabularOptions
from esbas.trajectory import Transition


class BonusQOptions(TabularOptions, total=False):
    """The options of `BonusQ`."""

    bonus: float


class BonusQ(TabularQ):
    """Q-learning from rewards that are increased by β / sqrt(n), see `count_bonus`.

    n is the number of visits of the next observation by all learners. So it plans to go where
    nobody was often, also if that takes many steps, and the bonuses vanish with time. Its values
    and its policy without exploration contain what is left of them.

    Actions that were never taken have brought no bonus yet. Where bonuses exceed the initial
    values, it prefers what it knows. So the initial values are higher than those of other tables.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        initial: the initial value of all actions: higher than a few bonuses.
        bonus: β, in units of the rewards. 0: `TabularQ`.
    """

    title = "bonus Q"

    def __init__(
        self,
        name: str,
        *,
        states: int,
        actions: int,
        learning_rate: Rate = 0.1,
        gamma: float = 0.99,
        epsilon: Exploration = 0.1,
        initial: float = 1.0,
        zeta: float | None = None,
        bonus: float = 0.02,
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
        check_bonus(bonus)
        self.bonus = bonus
        self.visits: Array = np.zeros(states, np.int64)  # (S,)

    @classmethod
    def for_env(
        cls, env: Any, *, name: str | None = None, **options: Unpack[BonusQOptions]
    ) -> Self:
        """Build the learner for an environment, see `Tabular.for_env`."""
        return cls._for_env(env, name, options)

    def step(self, transition: Transition) -> None:
        """Count the visit, and update once with the increased reward."""
        following = transition.next_observation
        self.visits[following] += 1
        reward = transition.reward + count_bonus(self.bonus, self.visits[following])
        super().step(transition._replace(reward=reward))

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"visits": self.visits.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        shape = {"visits": ArrayOf("i", self.visits.shape), str: Any}
        schema.check(state, shape, f"the saved state of learner {self.name!r}")
        fewest = int(state["visits"].min())
        if fewest < 0:
            raise InvalidValueError(
                f"The saved visits of learner {self.name!r} must not be negative, but one is "
                f"{fewest}: {schema.REMEDY}."
            )
        super().load_state_dict(state)
        self.visits[:] = state["visits"]
