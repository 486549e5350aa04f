"""R-max (Brafman and Tennenholtz, 2002): optimism about what is unknown, with a guarantee.

It is near-optimal on all but a number of steps that is polynomial in the numbers of observations
and actions, with high probability, if m is large enough (Strehl et al., 2009).
"""

from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.compiling import compiled
from esbas.errors import require
from esbas.learners.epsilon_greedy import EpsilonGreedy
from esbas.learners.tabular.model import TOLERANCE, Model, backup, push
from esbas.learners.tabular.prioritized_sweeping import PrioritizedSweeping
from esbas.learners.tabular.table import Exploration
from esbas.trajectory import Transition

GROWTH = 1.1  # of the largest reward, when a larger one is seen
MOST_SWEEPS = 1_000  # over all values, when a policy without optimism is planned


class RMaxOptions(TypedDict, total=False):
    """The options of `RMax`."""

    gamma: float
    epsilon: Exploration
    zeta: float | None
    planning_steps: int
    known_after: int
    r_max: float


class RMax(PrioritizedSweeping):
    """Goes where it has not been, until it knows all that it can reach.

    An action that was taken fewer than m times has the value r_max / (1 - γ), which is higher than
    that of any other. The values of all others are planned by the model, as in
    `PrioritizedSweeping`. So its policy explores by itself, over many steps if necessary.

    The greedy policy is planned without optimism: actions that were never taken are not chosen.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        planning_steps: how many values are computed after each transition, at most.
        known_after: m, the visits after which an action is known.
        r_max: the largest reward that is possible. If a larger one is seen, it grows to that, or by
            a tenth, whichever is more.
    """

    title = "R-max"

    def __init__(
        self,
        name: str,
        *,
        states: int,
        actions: int,
        gamma: float = 0.99,
        epsilon: Exploration = 0.0,
        zeta: float | None = None,
        planning_steps: int = 100,
        known_after: int = 3,
        r_max: float = 1.0,
    ) -> None:
        require(0 <= gamma < 1, f"`gamma` must be at least 0 and less than 1, but got {gamma!r}.")
        require(bool(np.isfinite(r_max)), f"`r_max` must be finite, but got {r_max!r}.")
        require(known_after >= 1, f"`known_after` must be at least 1, but got {known_after!r}.")
        super().__init__(
            name,
            states=states,
            actions=actions,
            gamma=gamma,
            epsilon=epsilon,
            initial=r_max / (1 - gamma),
            zeta=zeta,
            planning_steps=planning_steps,
        )
        self.known_after = known_after
        self._r_max = float(r_max)
        # The values of a policy that was loaded; None: they are planned by the model.
        self._loaded: Array | None = None

    @classmethod
    def for_env(  # type: ignore[override]  # it has options of its own
        cls, env: Any, *, name: str | None = None, **options: Unpack[RMaxOptions]
    ) -> Self:
        """Build the learner for an environment, see `Tabular.for_env`."""
        return cls._for_env(env, name, options)

    def step(self, transition: Transition) -> None:
        """Count the transition and plan. After a truncation, the next value counts."""
        self._loaded = None
        if transition.reward > self._r_max:
            # All values are computed again, so it grows by a tenth at least, and not often.
            self._r_max = max(float(transition.reward), GROWTH * self._r_max)
            unknown = self._model.visits.reshape(self.table.shape) < self.known_after
            self.table[unknown] = self._r_max / (1 - self.gamma)
            for cell in np.flatnonzero(~unknown).tolist():
                push(self._queue, cell, self._r_max)
        super().step(transition)

    def greedy_policy(self) -> EpsilonGreedy:
        rows = self._values_without_optimism().__getitem__
        return EpsilonGreedy(rows, 0.0, batch_values=rows)

    def _values_without_optimism(self) -> Array:
        if self._loaded is not None:
            return self._loaded
        return plan_by_experience(self._model, self.gamma, *self.table.shape)

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"r_max": self._r_max}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        schema.check(state, {"r_max": float, str: Any}, f"the saved state of learner {self.name!r}")
        super().load_state_dict(state)
        self._r_max = state["r_max"]
        self._loaded = None

    def policy_state(self) -> dict[str, Any]:
        return {"table": self._values_without_optimism().copy()}

    def load_policy_state(self, state: dict[str, Any]) -> None:
        """Replace the values. The first transition that is learnt replaces the greedy policy."""
        super().load_policy_state(state)
        self._loaded = self.table.copy()


@compiled
def plan_by_experience(model: Model, gamma: float, states: int, actions: int) -> Array:
    """Return the values of the best policy among those that take only actions that were taken.

    Value iteration over the counted model. Actions that were never taken have the value -inf where
    there are others, and 0 where there are none.
    """
    table = np.full((states, actions), -np.inf)
    for state in range(states):
        for action in range(actions):
            if model.visits[state * actions + action] > 0:
                table[state, action] = 0.0
        if table[state].max() < 0.0:
            table[state] = 0.0
    for _ in range(MOST_SWEEPS):
        largest_change = 0.0
        largest_value = 0.0
        for cell in range(states * actions):
            if model.visits[cell] == 0:
                continue
            state = cell // actions
            action = cell % actions
            value = backup(model, table, gamma, cell)
            largest_change = max(largest_change, abs(value - table[state, action]))
            largest_value = max(largest_value, abs(value))
            table[state, action] = value
        if largest_change <= TOLERANCE * largest_value:
            break
    return table
