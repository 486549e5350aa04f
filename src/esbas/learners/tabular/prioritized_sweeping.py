"""Prioritized sweeping (Moore and Atkeson, 1993): a table with a model, by which it plans."""

from typing import Any, Self, TypedDict, Unpack

import numpy as np

from esbas._internal import schema
from esbas.errors import require
from esbas.learners.tabular.model import Model, Queue, observe, sweep
from esbas.learners.tabular.table import Exploration, Tabular
from esbas.trajectory import Transition


class PrioritizedSweepingOptions(TypedDict, total=False):
    """The options of `PrioritizedSweeping`."""

    gamma: float
    epsilon: Exploration
    initial: float
    zeta: float | None
    planning_steps: int


class PrioritizedSweeping(Tabular):
    """Counts what follows each action, and plans by these counts.

    After each transition it computes values by the model again, r + γ Σ p max Q, for the action
    that was taken, and then for the predecessors of whatever has changed most. So a reward spreads
    within one episode to all observations that lead to it. The model does not depend on who acted.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        planning_steps: how many values are computed after each transition, at most.
    """

    title = "prioritized sweeping"
    known_after = 1  # visits until the value of an action is computed by the model

    def __init__(
        self,
        name: str,
        *,
        states: int,
        actions: int,
        gamma: float = 0.99,
        epsilon: Exploration = 0.1,
        initial: float = 0.0,
        zeta: float | None = None,
        planning_steps: int = 20,
    ) -> None:
        super().__init__(
            name,
            states=states,
            actions=actions,
            learning_rate=1.0,  # values are replaced
            gamma=gamma,
            epsilon=epsilon,
            initial=initial,
            zeta=zeta,
        )
        require(
            planning_steps >= 1, f"`planning_steps` must be at least 1, but got {planning_steps!r}."
        )
        self.planning_steps = planning_steps
        self._model = Model.empty(states, actions)
        self._queue = Queue.empty(states * actions)
        self._compile()

    @classmethod
    def for_env(  # type: ignore[override]  # there is no learning rate
        cls, env: Any, *, name: str | None = None, **options: Unpack[PrioritizedSweepingOptions]
    ) -> Self:
        """Build the learner for an environment, see `Tabular.for_env`."""
        return cls._for_env(env, name, options)

    def _compile(self) -> None:
        """Compile now, instead of within a learning call, whose time may be limited."""
        model = Model.empty(1, 1)
        observe(model, 0, 0.0, 0, True)
        sweep(model, Queue.empty(1), np.zeros((1, 1)), 0.9, 1, 0, 1)

    def step(self, transition: Transition) -> None:
        """Count the transition and plan. After a truncation, the next value counts."""
        s = int(transition.observation)
        a = int(transition.action)
        next_s = int(transition.next_observation)
        cell = s * self.action_space.n + a
        before = self.table[s, a]
        self._model = self._model.with_room()
        # Other types of numbers would be compiled again.
        reward = float(transition.reward)
        observe(self._model, cell, reward, next_s, bool(transition.terminated))
        self._plan(cell)
        self._recent.append((before, self.table[s, a], 1.0))
        self._seen += 1
        self._episode += transition.terminated or transition.truncated

    def _plan(self, cell: int) -> None:
        """Compute values again, after this cell was visited."""
        sweep(
            self._model,
            self._queue,
            self.table,
            self.gamma,
            self.known_after,
            cell,
            self.planning_steps,
        )

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "model": self._model.state_dict(),
            "queue": self._queue.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where = f"the saved state of learner {self.name!r}"
        schema.check(state, {"model": Any, "queue": Any, str: Any}, where)
        model = self._model.load_state_dict(state["model"], where=where)
        queue = self._queue.load_state_dict(state["queue"], where=where)
        super().load_state_dict(state)
        self._model = model
        self._queue = queue
