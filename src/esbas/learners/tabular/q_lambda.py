"""Watkins's Q(λ) with a table (Watkins, 1989; Sutton and Barto, 1998, section 7.6).

For discrete observations and actions.
"""

from typing import Any, NamedTuple, Self, Unpack

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import ArrayOf
from esbas.errors import InvalidValueError, require
from esbas.learners.tabular.q_learning import q_update
from esbas.learners.tabular.table import Exploration, Rate, Tabular, TabularOptions
from esbas.trajectory import Transition

SMALLEST = 1e-3  # traces below it are dropped


class Traces(NamedTuple):
    """The traces of an episode that is not over."""

    expected: int  # the observation with which the next step must begin
    cells: Array  # (N,): flat indices in the table, all different
    traces: Array  # (N,)


NO_TRACES = Traces(-1, np.empty(0, np.int64), np.empty(0))


def traces_after(cells: Array, traces: Array, cell: int, decay: float) -> tuple[Array, Array]:
    """Return cells and traces after a step: traces decay by γλ, or by 0 to cut them.

    The trace of the new `cell` becomes 1 instead of increasing by 1 (Singh and Sutton, 1996).

    Args:
        cells: different flat indices in the table, (N,).
        traces: their traces, (N,).
        cell: the flat index of the new step's observation and action.
        decay: γλ, or 0.
    """
    decayed = decay * traces
    kept = (cells != cell) & (decayed >= SMALLEST)
    return np.concatenate((cells[kept], [cell])), np.concatenate((decayed[kept], [1.0]))


class QLambdaOptions(TabularOptions, total=False):
    """The options of `QLambda`."""

    trace_decay: float


class QLambda(Tabular):
    """Passes each change on to the actions that led to it, so delayed rewards spread faster.

    Traces are cut at each action that is not the best one of this table, whichever learner took
    it, so what it learns is correct for the data of others. They are also cut where a step does not
    continue the previous one of its stream.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        trace_decay: λ, the decay of traces per step besides gamma, from 0 (Q-learning) to 1.
    """

    title = "Q(lambda)"

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
        trace_decay: float = 0.8,
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
        require(
            0 <= trace_decay <= 1,
            f"`trace_decay` must be between 0 and 1, but got {trace_decay!r}.",
        )
        self.trace_decay = trace_decay
        self._open: dict[int, Traces] = {}  # by stream

    @classmethod
    def for_env(
        cls, env: Any, *, name: str | None = None, **options: Unpack[QLambdaOptions]
    ) -> Self:
        """Build the learner for an environment, see `Tabular.for_env`."""
        return cls._for_env(env, name, options)

    def step(self, transition: Transition) -> None:
        """Update all actions with a trace. After a truncation, the next value counts."""
        s = int(transition.observation)
        a = int(transition.action)
        terminated = transition.terminated
        expected, cells, traces = self._open.pop(transition.stream, NO_TRACES)
        before = self.table[s, a]
        best = self.table[s].max()
        continues = s == expected and before == best
        decay = self.gamma * self.trace_decay if continues else 0.0
        cells, traces = traces_after(cells, traces, s * self.action_space.n + a, decay)
        best_next = 0.0 if terminated else self.table[transition.next_observation].max()
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        after = q_update(before, rate, transition.reward, self.gamma, best_next)
        self.table.reshape(-1)[cells] += (after - before) * traces
        if not (terminated or transition.truncated):
            next_s = int(transition.next_observation)
            self._open[transition.stream] = Traces(next_s, cells, traces)
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated

    def state_dict(self) -> dict[str, Any]:
        streams = []
        for stream, opened in self._open.items():
            streams.append({"stream": stream, **opened._asdict()})
        return super().state_dict() | {"streams": streams}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        where = f"the saved state of learner {self.name!r}"
        stream_shape = {
            "stream": int,
            "expected": int,
            "cells": ArrayOf("i", (None,)),
            "traces": ArrayOf("f", (None,)),
        }
        schema.check(state, {"streams": [stream_shape], str: Any}, where)
        opened = {}
        for each in state["streams"]:
            traces = Traces(each["expected"], each["cells"], each["traces"])
            self._check_traces(traces)
            opened[each["stream"]] = traces
        super().load_state_dict(state)
        self._open = opened

    def _check_traces(self, saved: Traces) -> None:
        inside = (saved.cells >= 0) & (saved.cells < self.table.size)
        if len(saved.cells) != len(saved.traces) or not inside.all():
            raise InvalidValueError(
                f"Each saved trace of learner {self.name!r} must belong to a cell of its table of "
                f"{self.table.size}, but got {len(saved.traces)} traces of the cells "
                f"{schema.short(saved.cells.tolist())}: {schema.REMEDY}."
            )
