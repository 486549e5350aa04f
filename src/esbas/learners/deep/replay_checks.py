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


def check_state(state: Any, *, columns: Mapping[str, Array], pools: Mapping[str, Array], integers: Mapping[str, Any]) -> None:
    """Raise an InvalidValueError unless the state fits a memory. Compiled functions rely on its sizes and on its integers.

    Args:
        state: what `SharedReplay.state_dict` returned.
        columns: the memory's arrays, one row per step.
        pools: the items of the memory's pools.
        integers: the ranges of the integers in some of these arrays.
    """
    schema.check(state, {"added": COUNT, str: Any}, WHERE)
    rows = len(columns["rewards"])
    used = min(state["added"], rows)
    shapes: dict[Any, Any] = SETTINGS | {"added": COUNT, "episodes": COUNT, "open": bool}
    shapes |= {name: ArrayOf(column.dtype.kind, (used, *column.shape[1:])) for name, column in columns.items()}
    for name, items in pools.items():
        count = np.shape(state.get(f"{name}_rows"))[:1] or (0,)
        shapes |= {f"{name}_rows": ArrayOf("i", count), f"{name}_items": ArrayOf(items.dtype.kind, (*count, *items.shape[1:]))}
    schema.check(state, shapes, WHERE)
    for name in pools:
        where = state[f"{name}_rows"]
        fits = len(np.unique(where)) == len(where) and bool(((where >= 0) & (where < rows)).all())
        schema.require(fits, f"0 <= {name}_rows < {rows}, each at most once,", WHERE, rows=where)
    for name, allowed in integers.items():
        inside = (state[name] >= allowed.start) & (state[name] < allowed.stop)
        schema.require(bool(inside.all()), f"{allowed.start} <= {name} < {allowed.stop}", WHERE, values=state[name])
