"""Storage for a replay memory: its arrays, items outside the ring buffer, the free memory."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from esbas._internal import spaces
from esbas._internal.columns import Array
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
    tails: Array  # (rows,): index of the next observation in `tail_items`, -1: it is the next row
    tail_items: Array  # (..., F)
    heads: Array  # (rows,): index of the older frames of a segment's first stack in `head_items`
    head_items: Array  # (..., stack - 1, F)
    codes: Array  # (rows,): of the next observations; (1,) if visits are not counted
    visits: Array  # (codes,): how often an observation with this code was reached; or (1,)
    added: int
    buffer_size: int
    stack: int


class Pool:
    """At most one item for each row of a ring buffer. Memory is used for existing items only."""

    def __init__(self, rows: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.slots = np.full(rows, -1, np.int32)  # the index of each row's item, -1 if it has none
        self.items = np.zeros((8, *shape), dtype)
        self._free = list(range(8))

    def put(self, row: int, item: Array) -> None:
        """Store an item for a row that has none."""
        if not self._free:
            size = len(self.items)
            self.items = np.concatenate([self.items, np.zeros_like(self.items)])
            self._free = list(range(size, 2 * size))
        slot = self._free.pop()
        self.slots[row] = slot
        self.items[slot] = item

    def release(self, row: int) -> None:
        """Remove the item of a row, if it has one."""
        slot = int(self.slots[row])
        if slot >= 0:
            self._free.append(slot)
            self.slots[row] = -1

    def of(self, rows: Array) -> Array:
        """Return the items of rows that have one."""
        return np.asarray(self.items[self.slots[rows]])

    def state_dict(self) -> dict[str, Array]:
        rows = np.flatnonzero(self.slots >= 0)
        return {"rows": rows, "items": self.of(rows)}

    def load_state_dict(self, state: dict[str, Array]) -> None:
        for row in np.flatnonzero(self.slots >= 0):
            self.release(int(row))
        for row, item in zip(state["rows"], state["items"], strict=True):
            self.put(int(row), item)


def layout_of(space: Any, kind: str) -> Layout:
    """Return the shape and type of the elements of an "observation" or "action" space."""
    if spaces.is_discrete(space):
        return (), np.dtype(np.int64)
    shape = getattr(space, "shape", None)
    dtype = getattr(space, "dtype", None)
    if shape is None or dtype is None or (kind == "action" and not hasattr(space, "low")):
        allowed = "Discrete, Box or another space of arrays"
        remedy = "wrap the environment, for instance in FlattenObservation"
        if kind == "action":
            allowed = "Discrete or Box"
            remedy = "wrap the environment"
        raise SpaceError(
            f"The {kind} space of a replay memory must be {allowed}, but is {space}: {remedy}."
        )
    return tuple(shape), np.dtype(dtype)


def require_memory(layouts: Iterable[Layout], *, rows: int, buffer_size: int) -> None:
    """Raise an error unless this many rows fit into the free memory."""
    needed = rows * sum(math.prod(shape) * dtype.itemsize for shape, dtype in layouts)
    free = available_memory()
    if needed > free:
        raise InvalidValueError(
            f"A replay memory must fit into free memory, but {buffer_size:,} transitions need "
            f"{needed / 1e9:.1f} GB and {max(free, 0) / 1e9:.1f} GB are free: "
            "lower its `buffer_size`, or store stacked frames once."
        )


def available_memory() -> float:
    """Return how many bytes this process may still allocate; infinite if that is unknown."""
    free = math.inf
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            free = float(line.split()[1]) * 1024
    # The limit of a container.
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    used = _read("/sys/fs/cgroup/memory.current").strip()
    if limit.isdigit() and used.isdigit():
        free = min(free, float(limit) - float(used))
    return free


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
