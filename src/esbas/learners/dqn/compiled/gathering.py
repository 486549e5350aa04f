"""Reads observations from a replay memory, compiled."""

from typing import Any

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.compiling import compiled_part


@compiled_part
def rows_of(drawn: Array, memory: Any, rows: Array) -> None:
    """Fill in the rows of transitions, (B,), given their numbers modulo the capacity."""
    total = len(memory.rewards)
    newest = memory.added - 1
    buffer_size = memory.buffer_size
    for i in range(len(rows)):
        rows[i] = (newest - (newest - drawn[i]) % buffer_size) % total


@compiled_part
def read_observations(
    memory: Any,
    ahead: int | np.int64,
    rows: Array,
    count: int,
    first: int,
    divisor: Any,
    out: Array,
) -> None:
    """Write the observations of rows to the first `count` rows of `out`, (B, inputs).

    They are written as (x - first) / divisor. With `ahead` = 1, these are the next observations,
    otherwise it is 0.
    """
    frames = memory.frames
    tails = memory.tails
    tail_items = memory.tail_items
    heads = memory.heads
    head_items = memory.head_items
    ages = memory.ages
    stack = memory.stack
    total, size = frames.shape
    for number in range(count):
        row = rows[number]
        to = out[number]
        age = int(ages[row])
        for position in range(stack):
            back = stack - 1 - position - ahead  # how many rows before this one the frame is
            start = position * size
            if back < 0 and tails[row] >= 0:
                tail = tails[row]
                for i in range(size):
                    to[start + i] = np.float32(tail_items[tail, i] - first) / divisor
            elif back > age:  # from before the segment began
                head = heads[(row - age) % total]
                older = stack - 1 - back + age
                for i in range(size):
                    to[start + i] = np.float32(head_items[head, older, i] - first) / divisor
            else:
                source = (row - back) % total
                for i in range(size):
                    to[start + i] = np.float32(frames[source, i] - first) / divisor
