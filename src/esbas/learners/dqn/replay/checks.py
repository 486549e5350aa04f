"""Checks of the saved state of a replay memory."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.schema import COUNT, ArrayOf

WHERE = "a saved replay memory"
SETTINGS = {"capacity": COUNT, "stack": COUNT, "clip_rewards": bool}
"""What must be as it was when the memory was saved."""


def check_state(
    state: Any,
    *,
    columns: Mapping[str, Array],
    rows: int,
    pools: Mapping[str, Array],
    integers: Mapping[str, Any],
    others: Mapping[str, Any],
) -> None:
    """Raise an InvalidValueError unless the state fits a memory. Compiled functions rely on its sizes and on its integers.

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
    shapes |= {name: ArrayOf(column.dtype.kind, (used, *column.shape[1:])) for name, column in columns.items()}
    for name, items in pools.items():
        count = getattr(state.get(f"{name}_rows"), "shape", ())[:1] or (0,)
        shapes |= {f"{name}_rows": ArrayOf("i", count), f"{name}_items": ArrayOf(items.dtype.kind, (*count, *items.shape[1:]))}
    schema.check(state, shapes, WHERE)
    for name in pools:
        where = state[f"{name}_rows"]
        fits = len(np.unique(where)) == len(where) and bool(((where >= 0) & (where < rows)).all())
        schema.require(fits, f"0 <= {name}_rows < {rows}, each at most once,", WHERE, rows=where)
    check_integers(state, integers)


def check_integers(arrays: Mapping[str, Any], ranges: Mapping[str, Any]) -> None:
    """Raise an InvalidValueError unless the integers in these arrays are in their ranges."""
    for name, allowed in ranges.items():
        if name in arrays:
            inside = (arrays[name] >= allowed.start) & (arrays[name] < allowed.stop)
            schema.require(bool(inside.all()), f"{allowed.start} <= {name} < {allowed.stop}", WHERE, values=arrays[name])
