"""A model of an environment with discrete observations and actions, counted from transitions.

A *cell* is a pair of an observation s and an action a, as s * A + a. An *edge* leads from a cell to
an observation that followed it. Edges are stored once and linked twice: with the other edges of
their cell, for backups, and with the other edges into the same observation, for the search of
predecessors. So memory grows with the number of different transitions that were seen, and not with
S² A.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.compiling import compiled, compiled_part
from esbas._internal.schema import ArrayOf
from esbas.errors import InvalidValueError

NONE = -1  # no edge, or not in the queue
_FIRST_ROOM = 64  # edges; doubled when it is used up
# A change of this share of the largest value is not passed on.
TOLERANCE = 1e-4


class Edges(NamedTuple):
    """Transitions that were seen, (E,) each; the first `used` are in use."""

    cell: Array  # where the edge starts
    state: Array  # where it leads to
    counts: Array  # how often
    next_of_cell: Array  # another edge of the same cell, or NONE
    next_of_state: Array  # another edge into the same state, or NONE


class Model(NamedTuple):
    """Counts of what followed each cell, (C,) each unless stated otherwise."""

    edges: Edges
    used: Array  # (1,): edges in use
    of_cell: Array  # the newest edge of the cell, or NONE
    of_state: Array  # (S,): the newest edge into the state, or NONE
    visits: Array  # including those that terminated the episode, which have no edge
    reward: Array  # the mean

    @classmethod
    def empty(cls, states: int, actions: int) -> Self:
        cells = states * actions
        return cls(
            edges=_room_for_edges(_FIRST_ROOM),
            used=np.zeros(1, np.int64),
            of_cell=np.full(cells, NONE),
            of_state=np.full(states, NONE),
            visits=np.zeros(cells, np.int64),
            reward=np.zeros(cells),
        )

    def with_room(self) -> "Model":
        """Return the model with room for at least one more edge."""
        room = len(self.edges.cell)
        if self.used[0] < room:
            return self
        larger = _room_for_edges(2 * room)
        for old, new in zip(self.edges, larger, strict=True):
            new[:room] = old
        return self._replace(edges=larger)

    def state_dict(self) -> dict[str, Any]:
        used = int(self.used[0])
        return {
            "cells": self.edges.cell[:used].copy(),
            "states": self.edges.state[:used].copy(),
            "counts": self.edges.counts[:used].copy(),
            "visits": self.visits.copy(),
            "rewards": self.reward.copy(),
        }

    def load_state_dict(self, state: dict[str, Any], *, where: str) -> "Model":
        """Return the saved model. Edges are linked again in the order in which they were seen."""
        cells = len(self.visits)
        states = len(self.of_state)
        shape = {
            "cells": ArrayOf("i", (None,)),
            "states": ArrayOf("i", (None,)),
            "counts": ArrayOf("i", (None,)),
            "visits": ArrayOf("i", (cells,)),
            "rewards": ArrayOf("f", (cells,)),
        }
        schema.check(state, shape, where)
        used = len(state["cells"])
        bounds = {"cells": cells, "states": states, "counts": np.iinfo(np.int64).max}
        for name, end in bounds.items():
            found = state[name]
            if len(found) != used or not ((found >= 0) & (found < end)).all():
                raise InvalidValueError(
                    f"The {name} in {where} must be {used} numbers from 0 to {end - 1}, "
                    f"but got {schema.short(found.tolist())}: {schema.REMEDY}."
                )
        loaded = Model.empty(states, cells // states)
        loaded.visits[:] = state["visits"]
        loaded.reward[:] = state["rewards"]
        for cell, next_state, count in zip(
            state["cells"].tolist(), state["states"].tolist(), state["counts"].tolist(), strict=True
        ):
            loaded = loaded.with_room()
            _add_edge(loaded, cell, next_state)
            loaded.edges.counts[loaded.used[0] - 1] = count
        return loaded


class Queue(NamedTuple):
    """Cells whose values should be computed again, as a binary heap; those first that matter most.

    The first `size` of `cell` are in use. Each is at least as urgent as those at twice its position
    (from 1) and the one after.
    """

    size: Array  # (1,)
    cell: Array  # (C,)
    priority: Array  # (C,), of each cell
    position: Array  # (C,): where each cell stands in the heap, from 0, or NONE

    @classmethod
    def empty(cls, cells: int) -> Self:
        return cls(
            size=np.zeros(1, np.int64),
            cell=np.zeros(cells, np.int64),
            priority=np.zeros(cells),
            position=np.full(cells, NONE),
        )

    def state_dict(self) -> dict[str, Any]:
        waiting = self.cell[: self.size[0]].copy()
        return {"waiting": waiting, "priorities": self.priority[waiting]}

    def load_state_dict(self, state: dict[str, Any], *, where: str) -> "Queue":
        """Return the saved queue."""
        cells = len(self.cell)
        schema.check(
            state, {"waiting": ArrayOf("i", (None,)), "priorities": ArrayOf("f", (None,))}, where
        )
        waiting = state["waiting"]
        is_inside = ((waiting >= 0) & (waiting < cells)).all()
        is_once = len(np.unique(waiting)) == len(waiting) == len(state["priorities"])
        if not (is_inside and is_once):
            raise InvalidValueError(
                f"The waiting cells in {where} must be different numbers from 0 to {cells - 1} "
                f"with a priority each, but got {schema.short(waiting.tolist())}: {schema.REMEDY}."
            )
        loaded = Queue.empty(cells)
        loaded.size[0] = len(waiting)
        loaded.cell[: len(waiting)] = waiting
        loaded.priority[waiting] = state["priorities"]
        loaded.position[waiting] = np.arange(len(waiting))
        return loaded


def _room_for_edges(room: int) -> Edges:
    return Edges(*(np.zeros(room, np.int64) for _ in Edges._fields))


@compiled
def _add_edge(model: Model, cell: int, state: int) -> None:
    """Add an edge that has not been seen, with a count of 1. There must be room for it."""
    edges = model.edges
    new = model.used[0]
    edges.cell[new] = cell
    edges.state[new] = state
    edges.counts[new] = 1
    edges.next_of_cell[new] = model.of_cell[cell]
    edges.next_of_state[new] = model.of_state[state]
    model.of_cell[cell] = new
    model.of_state[state] = new
    model.used[0] = new + 1


@compiled
def observe(model: Model, cell: int, reward: float, state: int, terminated: bool) -> None:
    """Count a transition to `state`. There must be room for an edge."""
    model.visits[cell] += 1
    model.reward[cell] += (reward - model.reward[cell]) / model.visits[cell]
    if terminated:
        return
    edges = model.edges
    edge = model.of_cell[cell]
    while edge != NONE:
        if edges.state[edge] == state:
            edges.counts[edge] += 1
            return
        edge = edges.next_of_cell[edge]
    _add_edge(model, cell, state)


@compiled
def backup(model: Model, table: Array, gamma: float, cell: int) -> float:
    """Return r(s, a) + γ Σ_s' p(s' | s, a) max_a' Q(s', a'), with counted r and p.

    The probability that is missing to 1 is that of a termination, after which there is no value.
    """
    edges = model.edges
    following = 0.0
    edge = model.of_cell[cell]
    while edge != NONE:
        following += edges.counts[edge] * table[edges.state[edge]].max()
        edge = edges.next_of_cell[edge]
    value: float = model.reward[cell] + gamma * following / model.visits[cell]
    return value


@compiled_part
def _put(queue: Queue, cell: int, position: int) -> None:
    queue.cell[position] = cell
    queue.position[cell] = position


@compiled_part
def _rise(queue: Queue, cell: int) -> None:
    """Move a cell towards the front of the heap, as far as its priority allows."""
    at = queue.position[cell]
    while at > 0:
        parent = (at - 1) // 2
        other = queue.cell[parent]
        if queue.priority[other] >= queue.priority[cell]:
            break
        _put(queue, other, at)
        at = parent
    _put(queue, cell, at)


@compiled_part
def _more_urgent_child(queue: Queue, at: int) -> int:
    """Return the position below `at` with the higher priority. There must be one."""
    left = 2 * at + 1
    right = left + 1
    if right == queue.size[0]:
        return left
    if queue.priority[queue.cell[right]] > queue.priority[queue.cell[left]]:
        return right
    return left


@compiled
def push(queue: Queue, cell: int, priority: float) -> None:
    """Add a cell, or raise its priority if it waits already."""
    if queue.position[cell] == NONE:
        queue.priority[cell] = priority
        _put(queue, cell, queue.size[0])
        queue.size[0] += 1
    elif priority > queue.priority[cell]:
        queue.priority[cell] = priority
    else:
        return
    _rise(queue, cell)


@compiled
def pop(queue: Queue) -> int:
    """Remove the cell with the highest priority and return it. The queue must not be empty."""
    first = queue.cell[0]
    queue.position[first] = NONE
    queue.size[0] -= 1
    size = queue.size[0]
    if size > 0:
        moved = queue.cell[size]
        at = 0
        while 2 * at + 1 < size:
            child = _more_urgent_child(queue, at)
            if queue.priority[queue.cell[child]] <= queue.priority[moved]:
                break
            _put(queue, queue.cell[child], at)
            at = child
        _put(queue, moved, at)
    return int(first)


@compiled
def sweep(
    model: Model,
    queue: Queue,
    table: Array,
    gamma: float,
    known_after: int,
    start: int,
    backups: int,
) -> None:
    """Make up to `backups` backups, first of the cell `start`, then where values change most.

    Args:
        model: the counts.
        queue: the cells that wait; those that are left wait for the next sweep.
        table: the values, (S, A), which change.
        gamma: the discount factor.
        known_after: cells with fewer visits keep their value.
        start: the cell that was visited.
        backups: how many.
    """
    edges = model.edges
    actions = table.shape[1]
    push(queue, start, math.inf)
    for _ in range(backups):
        if queue.size[0] == 0:
            return
        cell = pop(queue)
        if model.visits[cell] < known_after:
            continue
        state = cell // actions
        before = table[state].max()
        table[state, cell % actions] = backup(model, table, gamma, cell)
        change = abs(table[state].max() - before)
        smallest = TOLERANCE * abs(table[state].max())
        if change <= smallest:
            continue
        edge = model.of_state[state]
        while edge != NONE:
            source = edges.cell[edge]
            push(queue, source, gamma * change * edges.counts[edge] / model.visits[source])
            edge = edges.next_of_state[edge]
