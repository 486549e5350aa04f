"""Storage for a replay memory: what a row is, items outside the ring buffer, and a check of the free memory."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from esbas import spaces
from esbas.columns import Array
from esbas.errors import InvalidValueError, SpaceError

Layout = tuple[tuple[int, ...], np.dtype[Any]]  # the shape and type of one row


class MemoryArrays(NamedTuple):
    """The arrays of a replay memory: one row per step, F numbers per frame."""

    frames: Array  # (rows, F)
    actions: Array  # (rows, ...)
    rewards: Array  # (rows,)
    terminated: Array  # (rows,)
    ages: Array  # (rows,): steps since the segment began, at most the number of frames in a stack
    log_probs: Array  # (rows,): of the actions under the policy that acted, NaN if unknown
    tails: Array  # (rows,): where the next observation is in `tail_items`, -1 if it is in the next row
    tail_items: Array  # (..., F)
    heads: Array  # (rows,): where the older frames of a segment's first stack are in `head_items`
    head_items: Array  # (..., stack - 1, F)
    added: int
    capacity: int
    stack: int


class Pool:
    """At most one item for each row of a ring buffer. Memory is used for existing items only."""

    def __init__(self, rows: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.places = np.full(rows, -1, np.int32)  # the index of each row's item, -1 if it has none
        self.items = np.zeros((8, *shape), dtype)
        self._free = list(range(8))

    def put(self, row: int, item: Array) -> None:
        """Store an item for a row that has none."""
        if not self._free:
            size = len(self.items)
            self.items = np.concatenate([self.items, np.zeros_like(self.items)])
            self._free = list(range(size, 2 * size))
        self.places[row] = place = self._free.pop()
        self.items[place] = item

    def release(self, row: int) -> None:
        """Remove the item of a row, if it has one."""
        place = int(self.places[row])
        if place >= 0:
            self._free.append(place)
            self.places[row] = -1

    def of(self, rows: Array) -> Array:
        """The items of rows that have one."""
        return np.asarray(self.items[self.places[rows]])

    def state_dict(self) -> dict[str, Array]:
        rows = np.flatnonzero(self.places >= 0)
        return {"rows": rows, "items": self.of(rows)}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        for row in np.flatnonzero(self.places >= 0):
            self.release(int(row))
        for row, item in zip(state["rows"], state["items"], strict=True):
            self.put(int(row), item)


def layout_of(space: Any, kind: str) -> Layout:
    """The shape and type of the elements of a space."""
    if spaces.is_discrete(space):
        return (), np.dtype(np.int64)
    shape, dtype = getattr(space, "shape", None), getattr(space, "dtype", None)
    if shape is None or dtype is None or (kind == "action" and not hasattr(space, "low")):
        allowed = "Discrete or Box" if kind == "action" else "Discrete, Box or another space of arrays"
        remedy = "wrap the environment, for instance in FlattenObservation" if kind == "observation" else "wrap the environment"
        raise SpaceError(f"the {kind} space of a replay memory must be {allowed}, but is {space}: {remedy}")
    return tuple(shape), np.dtype(dtype)


def require_memory(layouts: Iterable[Layout], *, rows: int, capacity: int) -> None:
    """Raise an error unless this many rows fit into the free memory."""
    needed = rows * sum(math.prod(shape) * dtype.itemsize for shape, dtype in layouts)
    free = available_memory()
    if needed > free:
        problem = f"but {capacity:,} transitions need {needed / 1e9:.1f} GB and {max(free, 0) / 1e9:.1f} GB are free"
        raise InvalidValueError(
            f"a replay memory must fit into free memory, {problem}: lower its capacity, or store stacked frames once"
        )


def available_memory() -> float:
    """The number of bytes that this process may still allocate; infinite if the system does not report it."""
    free = math.inf
    lines = _read("/proc/meminfo").splitlines()
    for line in lines:
        if line.startswith("MemAvailable:"):
            free = float(line.split()[1]) * 1024
    limit, used = _read("/sys/fs/cgroup/memory.max"), _read("/sys/fs/cgroup/memory.current")  # the limit of a container
    return min(free, float(limit) - float(used)) if limit.strip().isdigit() and used.strip().isdigit() else free


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
