"""Watkins's Q(λ) with a table (Watkins, 1989; Sutton and Barto, 1998, section 7.6), for discrete observations and actions."""

from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.errors import require
from esbas.learners.tabular import Exploration, Rate, Tabular
from esbas.learners.tabular_q import q_update
from esbas.schema import ArrayOf
from esbas.trajectory import Transition

SMALLEST = 1e-3  # traces below it are dropped


def traces_after(places: Array, traces: Array, place: int, decay: float) -> tuple[Array, Array]:
    """Traces decay by γλ, or by 0 to cut them, and the trace of the new `place` becomes 1 (Singh and Sutton, 1996).

    `places` are different positions in the table, (N,); `traces` are their traces, (N,).
    """
    decayed = decay * traces
    kept = (places != place) & (decayed >= SMALLEST)
    return np.concatenate((places[kept], [place])), np.concatenate((decayed[kept], [1.0]))


class QLambda(Tabular):
    """Passes each change on to the actions that led to it, which makes delayed rewards known faster.

    Traces are cut at each action that is not the best one of this table, whoever took it, so what it learns is correct for the
    data of others. They are also cut where a step does not continue the previous one of its stream.

    Args:
        name: the name of the learner.
        states: see `Tabular`, also for the other arguments.
        trace_decay: λ, the decay of traces per step in addition to gamma, from 0 (Q-learning) to 1.
    """

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
        trace_decay: float = 0.8,
    ) -> None:
        super().__init__(name, states=states, actions=actions, rate=rate, gamma=gamma, epsilon=epsilon, initial=initial)
        require(0 <= trace_decay <= 1, "0 <= trace_decay <= 1", trace_decay=trace_decay)
        self.trace_decay = trace_decay
        self._open: dict[int, tuple[int, Array, Array]] = {}  # by stream: the next observation, places, traces

    def step(self, transition: Transition) -> None:
        """Update all actions with a trace. The next value counts unless the episode terminated, so it does after a truncation."""
        s, a, terminated = int(transition.observation), int(transition.action), transition.terminated
        expected, places, traces = self._open.pop(transition.stream, (-1, np.empty(0, np.int64), np.empty(0)))
        before, best = self.table[s, a], self.table[s].max()
        decay = self.gamma * self.trace_decay if s == expected and before == best else 0.0
        places, traces = traces_after(places, traces, s * self.action_space.n + a, decay)
        best_next = 0.0 if terminated else self.table[transition.next_observation].max()
        rate = self._rate(self._episode) if callable(self._rate) else self._rate
        after = q_update(before, rate, transition.reward, self.gamma, best_next)
        self.table.reshape(-1)[places] += (after - before) * traces
        if not (terminated or transition.truncated):
            self._open[transition.stream] = int(transition.next_observation), places, traces
        self._recent.append((before, after, rate))
        self._seen += 1
        self._episode += terminated or transition.truncated

    def state_dict(self) -> dict[str, Any]:
        streams = [
            {"stream": stream, "expected": expected, "places": places, "traces": traces}
            for stream, (expected, places, traces) in self._open.items()
        ]
        return super().state_dict() | {"streams": streams}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        stream = {"stream": int, "expected": int, "places": ArrayOf("i", (None,)), "traces": ArrayOf("f", (None,))}
        where = f"the saved state of learner {self.name!r}"
        schema.check(state, {"streams": [stream], str: Any}, where)
        for each in state["streams"]:
            places, traces = each["places"], each["traces"]
            fits = len(places) == len(traces) and bool(((places >= 0) & (places < self.table.size)).all())
            schema.require(fits, "each trace has a place in the table", where, places=len(places), traces=len(traces))
        super().load_state_dict(state)
        self._open = {each["stream"]: (each["expected"], each["places"], each["traces"]) for each in state["streams"]}
