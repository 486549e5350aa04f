"""Checks of the saved state of a replay memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.schema import COUNT, ArrayOf
from esbas.errors import InvalidValueError

WHERE = "a saved replay memory"
SETTINGS = {"buffer_size": COUNT, "stack": COUNT, "clip_rewards": bool}
"""What must be as it was when the memory was saved."""


def check_state(
    state: Any,
    *,
    columns: Mapping[str, Array],
    rows: int,
    pools: Mapping[str, Array],
    integers: Mapping[str, range],
    others: Mapping[str, Any],
) -> None:
    """Raise an InvalidValueError unless the state fits a memory.

    Compiled functions rely on its sizes and on its integers.

    Args:
        state: what `SharedReplay.state_dict` returned.
        columns: the memory's arrays, one row per step, if they are part of the state.
        rows: how many rows they have.
        pools: the items of the memory's pools.
        integers: the ranges of the integers in some of these arrays.
        others: the shapes of what else the state has.
    """
    schema.check(state, {"added": COUNT, str: Any}, WHERE)
    used = min(state["added"], rows)
    shapes: dict[Any, Any] = {**SETTINGS, "added": COUNT, "episodes": COUNT, "open": bool, **others}
    for name, column in columns.items():
        shapes[name] = ArrayOf(column.dtype.kind, (used, *column.shape[1:]))
    for name, items in pools.items():
        item_rows = state.get(f"{name}_rows")
        count = len(item_rows) if isinstance(item_rows, np.ndarray) and item_rows.ndim else 0
        shapes[f"{name}_rows"] = ArrayOf("i", (count,))
        shapes[f"{name}_items"] = ArrayOf(items.dtype.kind, (count, *items.shape[1:]))
    schema.check(state, shapes, WHERE)
    check_integers(state, {f"{name}_rows": range(rows) for name in pools})
    check_integers(state, integers)


def check_integers(arrays: Mapping[str, Any], ranges: Mapping[str, range]) -> None:
    """Raise an InvalidValueError unless the integers in these arrays are in their ranges."""
    for name, allowed in ranges.items():
        if name not in arrays:
            continue
        values = arrays[name]
        outside = (values < allowed.start) | (values >= allowed.stop)
        if outside.any():
            raise InvalidValueError(
                f"In {WHERE}, `{name}` must be from {allowed.start} to {allowed.stop - 1}, "
                f"but got {values[outside][0]}: {schema.REMEDY}."
            )
