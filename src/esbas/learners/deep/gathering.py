"""Reads steps and observations from a replay memory, compiled."""

from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.compiling import compiled


@compiled
def row_of(place: int, memory: Any) -> int:
    """The row of a transition, given its number modulo the capacity."""
    rows, newest = len(memory.rewards), memory.added - 1
    return (newest - (newest - place) % memory.capacity) % rows


@compiled
def read_observation(memory: Any, row: int, first: int, divisor: Any, out: Array, column: int) -> None:
    """Write the observation of a row to a column of `out`, (inputs, B), as (x - first) / divisor."""
    for position in range(memory.stack):
        _read_frame(memory, row, position, position, first, divisor, out, column)


@compiled
def read_next_observation(memory: Any, row: int, first: int, divisor: Any, out: Array, column: int) -> None:
    """The same for the observation after a row: the next frame, and the frames before it."""
    rows, size, newest = len(memory.frames), memory.frames.shape[1], memory.stack - 1
    for position in range(newest):
        _read_frame(memory, row, position + 1, position, first, divisor, out, column)
    tail = memory.tails[row]
    source = memory.tail_items[tail] if tail >= 0 else memory.frames[(row + 1) % rows]
    for i in range(size):
        out[newest * size + i, column] = np.float32(source[i] - first) / divisor


@compiled
def _read_frame(memory: Any, row: int, position: int, to: int, first: int, divisor: Any, out: Array, column: int) -> None:
    """Frame `position` of the stack of a row. Frames from before the segment began are stored separately."""
    rows, size = memory.frames.shape
    age, back = int(memory.ages[row]), memory.stack - 1 - position
    if back > age:
        head = memory.heads[(row - age) % rows]
        source = memory.head_items[head, position + age]
    else:
        source = memory.frames[(row - back) % rows]
    for i in range(size):
        out[to * size + i, column] = np.float32(source[i] - first) / divisor
