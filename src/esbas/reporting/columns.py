"""Long tables as named NumPy columns, such as all episodes of a training."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from esbas._internal.columns import Array, frozen
from esbas.errors import InvalidValueError, counted, unknown
from esbas.reporting.cells import table_texts
from esbas.reporting.files import write_csv
from esbas.reporting.table import html_text, import_pandas, plain_text

SHOWN = 5
"""Rows at the beginning, and at the end, that the text of long columns shows."""


class Columns:
    """Named NumPy columns of equal length, which cannot be changed.

    >>> episodes = Columns({"number": [1, 2], "value": [0.5, 1.0]})
    >>> episodes["value"].mean(), episodes.value.max()
    (np.float64(0.75), np.float64(1.0))
    >>> episodes
    number  value
         1    0.5
         2    1.0
    2 rows

    Attributes:
        names: of the columns. A column is also an attribute, if its name is free: `episodes.value`.
    """

    def __init__(self, columns: Mapping[str, ArrayLike]) -> None:
        self._columns: dict[str, Array] = {}
        for name, values in columns.items():
            array = np.asarray(values)
            if array.ndim != 1:
                problem = f"A column must have one axis, but {name!r} has the shape {array.shape}"
                raise InvalidValueError(f"{problem}: split it.")
            self._columns[name] = frozen(array)
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
            problem = f"All columns must have the same number of rows, but {given}"
            raise InvalidValueError(f"{problem}: give one value per row.")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def keys(self) -> tuple[str, ...]:
        """Return the names, so that `dict(columns)` works."""
        return self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        for column in self._columns.values():
            return len(column)
        return 0

    def __getitem__(self, name: str) -> Array:
        if name not in self._columns:
            raise unknown("column", name, self._columns)
        return self._columns[name]

    def __getattr__(self, name: str) -> Array:
        # Python calls this for names that are no attribute. While a copy is being made, it has no
        # `_columns` yet.
        columns = self.__dict__.get("_columns", {})
        if name not in columns:
            raise AttributeError(
                f"There is no column {name!r}: the columns are {', '.join(columns)}."
            )
        found: Array = columns[name]
        return found

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self._columns if name.isidentifier())]

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame."""
        pandas = import_pandas()
        return pandas.DataFrame({name: column.copy() for name, column in self._columns.items()})

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with numbers at full precision."""
        rows = zip(*(column.tolist() for column in self._columns.values()), strict=True)
        write_csv(Path(path), self.names, rows)

    def __repr__(self) -> str:
        texts, gap_after = self._shown()
        return f"{plain_text(self.names, texts, gap_after=gap_after)}\n{self._size()}"

    def _repr_html_(self) -> str:
        texts, gap_after = self._shown()
        return f"{html_text(self.names, texts, gap_after=gap_after)}\n<p>{self._size()}</p>"

    def _shown(self) -> tuple[list[list[str]], int | None]:
        """Return the texts of the first and the last rows, and after how many of them a gap is."""
        if len(self) <= 2 * SHOWN:
            shown = list(range(len(self)))
            gap_after = None
        else:
            shown = [*range(SHOWN), *range(len(self) - SHOWN, len(self))]
            gap_after = SHOWN
        columns = [column[shown].tolist() for column in self._columns.values()]
        rows = list(zip(*columns, strict=True))
        return table_texts(rows), gap_after

    def _size(self) -> str:
        return counted(len(self), "row")
