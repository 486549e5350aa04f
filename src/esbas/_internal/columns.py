"""Growing arrays that are handed out as read-only views."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from esbas.errors import InvalidValueError

Array = NDArray[Any]


class GrowingColumns:
    """Named arrays that grow at the end, independently of each other.

    The first rows of a column determine its shape and type.
    """

    def __init__(self) -> None:
        self._rows: dict[str, Array] = {}  # with space for further rows
        self._sizes: dict[str, int] = {}

    def __getitem__(self, name: str) -> Array:
        """Return all rows of a column, as a read-only view."""
        return frozen(self._rows[name][: self._sizes[name]], copy=False)

    def extend(self, rows: Mapping[str, Array]) -> None:
        """Append rows to columns: all of them, or, if any do not fit, none.

        Takes constant time per row on average.
        """
        for name, new in rows.items():
            if name not in self._rows:
                self._rows[name] = np.empty((64, *new.shape[1:]), new.dtype)
            require_alike(name, new, self._rows[name])
        for name, new in rows.items():
            start = self._sizes.get(name, 0)
            end = start + len(new)
            old = self._rows[name]
            if end > len(old):
                self._rows[name] = np.empty((max(end, 2 * len(old)), *old.shape[1:]), old.dtype)
                self._rows[name][:start] = old[:start]
            self._rows[name][start:end] = new
            self._sizes[name] = end

    def state_dict(self) -> dict[str, Array]:
        return {name: self[name] for name in self._rows}

    def load_state_dict(self, state: Mapping[str, Array]) -> None:
        self._rows = {}
        self._sizes = {}
        self.extend(state)


def require_alike(name: str, new: Array, old: Array) -> None:
    """Raise an error unless rows of `new` can be stored in `old`."""
    if new.shape[1:] != old.shape[1:] or not np.can_cast(new.dtype, old.dtype, "same_kind"):
        raise InvalidValueError(
            f"The {name} must all be alike, but got {_row(new)} after {_row(old)}: "
            "flatten or pad them."
        )


def _row(column: Array) -> str:
    return f"{column.dtype} of shape {column.shape[1:]}"


class ReadOnlyDict(dict[Any, Any]):
    """A dictionary that cannot be changed. Copies of it can."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("This dictionary is read-only: copy it first.")

    __setitem__ = __delitem__ = __ior__ = update = setdefault = pop = popitem = clear = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


def read_only_copy(value: Any) -> Any:
    """Return a read-only copy of an array, or of a tuple, list or dictionary of arrays.

    Anything else is returned as it is.
    """
    if isinstance(value, np.ndarray):
        value = value.copy()
        value.setflags(write=False)
    elif type(value) in (tuple, list):
        value = tuple(map(read_only_copy, value))
    elif isinstance(value, dict):
        value = ReadOnlyDict({key: read_only_copy(item) for key, item in value.items()})
    return value


def frozen(values: ArrayLike, *, copy: bool = True) -> Array:
    """Return the values as a read-only array, copied if the caller could still write to them."""
    array = np.asarray(values)
    if array.flags.writeable:
        if array is values:
            array = array.copy() if copy else array.view()
        array.setflags(write=False)
    return array
