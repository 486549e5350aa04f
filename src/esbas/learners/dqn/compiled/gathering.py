"""Reads observations from a replay memory, compiled."""

from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.compiling import compiled


@compiled
def rows_of(drawn: Array, memory: Any, rows: Array) -> None:
    """The rows of transitions, (B,), given their numbers modulo the capacity."""
    total, newest, capacity = len(memory.rewards), memory.added - 1, memory.capacity
    for i in range(len(rows)):
        rows[i] = (newest - (newest - drawn[i]) % capacity) % total


@compiled
def read_observations(memory: Any, ahead: int, rows: Array, count: int, first: int, divisor: Any, out: Array) -> None:
    """Write the observations of rows to the first `count` columns of `out`, (inputs, B), as (x - first) / divisor.

    With `ahead` = 1, these are the next observations, otherwise it is 0.
    """
    frames, tails, tail_items, heads, head_items = memory.frames, memory.tails, memory.tail_items, memory.heads, memory.head_items
    ages, stack, (total, size) = memory.ages, memory.stack, frames.shape
    for column in range(count):
        row, age = rows[column], int(ages[rows[column]])
        for position in range(stack):
            back, to = stack - 1 - position - ahead, position * size
            if back < 0 and tails[row] >= 0:
                tail = tails[row]
                for i in range(size):
                    out[to + i, column] = np.float32(tail_items[tail, i] - first) / divisor
            elif back > age:  # from before the segment began
                head, place = heads[(row - age) % total], stack - 1 - back + age
                for i in range(size):
                    out[to + i, column] = np.float32(head_items[head, place, i] - first) / divisor
            else:
                source = (row - back) % total
                for i in range(size):
                    out[to + i, column] = np.float32(frames[source, i] - first) / divisor
