"""Small tables as plain text, HTML in a notebook, pandas or CSV."""

import importlib
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

from esbas.errors import InvalidValueError, MissingExtraError, unknown
from esbas.reporting.cells import fitted_headers, is_numeric, table_texts
from esbas.reporting.estimate import Estimate
from esbas.reporting.files import write_csv

GAP = "  "
"""Between two columns of plain text."""
WIDTH = 80
"""Characters of a line of plain text. In wider tables, headers have several lines."""


class Table:
    """A small table that cannot be changed.

    >>> table = Table(["learner", "value", "faults"], [["a", 498.25, 0], ["bb", 7.5, 12]])
    >>> print(table)
    learner  value  faults
    a        498.2       0
    bb         7.5      12
    >>> table["faults"]
    (0, 12)

    Attributes:
        columns: their names.
        rows: the cells: texts, numbers, Estimates; None or NaN for unknown.

    Args:
        columns: their names, which must be different.
        rows: a cell per column in each.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self.columns = tuple(columns)
        self.rows = tuple(tuple(row) for row in rows)
        _check_names(self.columns)
        for row in self.rows:
            if len(row) != len(self.columns):
                problem = f"A row of the table has {len(row)} cells"
                rule = f"but there are {len(self.columns)} columns"
                raise InvalidValueError(f"{problem}, {rule}: give one cell per column.")

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, object]]:
        """Iterate over the rows, each as a dictionary."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))

    def __getitem__(self, column: str) -> tuple[object, ...]:
        """Return the cells of a column."""
        if column not in self.columns:
            raise unknown("column", column, self.columns)
        index = self.columns.index(column)
        return tuple(row[index] for row in self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self.columns == other.columns and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]  # cells may be lists

    def __str__(self) -> str:
        return plain_text(self.columns, table_texts(self.rows))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_text(self.columns, table_texts(self.rows))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame; a column of Estimates becomes two, NAME and "NAME, ci95"."""
        pandas = import_pandas()
        columns, rows = _without_estimates(self)
        return pandas.DataFrame(rows, columns=columns)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with numbers at full precision and the columns of `to_pandas`."""
        columns, rows = _without_estimates(self)
        write_csv(Path(path), columns, rows)


def plain_text(
    columns: Sequence[str], texts: Sequence[Sequence[str]], *, gap_after: int | None = None
) -> str:
    """Align cells with blanks; columns of numbers to the right.

    Args:
        columns: their names.
        texts: of the cells, row by row.
        gap_after: the number of rows after which dots stand for rows that are left out.
    """
    headers = fitted_headers(columns, texts, width=WIDTH, gap=len(GAP))
    lines = _header_lines(headers) + [list(row) for row in texts]
    if gap_after is not None:
        lines.insert(len(lines) - len(texts) + gap_after, ["…"] * len(columns))
    numeric = _numeric(len(columns), texts)
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    aligned: list[str] = []
    for line in lines:
        cells: list[str] = []
        for cell, width, is_number in zip(line, widths, numeric, strict=True):
            cells.append(cell.rjust(width) if is_number else cell.ljust(width))
        aligned.append(GAP.join(cells).rstrip())
    return "\n".join(aligned)


def _header_lines(headers: Sequence[str]) -> list[list[str]]:
    """Return headers of one or several lines, aligned at the last line."""
    split = [header.split("\n") for header in headers]
    height = max(len(lines) for lines in split)
    padded = [[""] * (height - len(lines)) + lines for lines in split]
    return [list(line) for line in zip(*padded, strict=True)]


def html_text(
    columns: Sequence[str], texts: Sequence[Sequence[str]], *, gap_after: int | None = None
) -> str:
    """Write a table in HTML; arguments as in `plain_text`.

    It sets no colors, so that it is readable on light and on dark backgrounds.
    """
    lines = [list(row) for row in texts]
    if gap_after is not None:
        lines.insert(gap_after, ["…"] * len(columns))
    numeric = _numeric(len(columns), texts)
    styles: list[str] = []
    for is_number in numeric:
        side = "right" if is_number else "left"
        styles.append(f"text-align: {side}; padding: 0.2em 0.7em")
    head_styles = [f"{style}; border-bottom: 1px solid currentColor" for style in styles]
    parts = [
        '<table style="border-collapse: collapse; font-variant-numeric: tabular-nums">',
        "<thead>",
        _html_line("th", columns, head_styles),
        "</thead>",
        "<tbody>",
        *(_html_line("td", line, styles) for line in lines),
        "</tbody>",
        "</table>",
    ]
    return "\n".join(parts)


def import_pandas() -> Any:
    """Import pandas, which is no dependency of esbas."""
    try:
        return importlib.import_module("pandas")
    except ImportError as error:
        raise MissingExtraError(
            "A DataFrame needs pandas, but it is not installed: pip install pandas."
        ) from error


def _check_names(names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if name in names[:number]:
            raise InvalidValueError(
                f"Columns must have different names, but got {name!r} twice: rename one of them."
            )


def _numeric(columns: int, texts: Sequence[Sequence[str]]) -> list[bool]:
    """Return whether each column has numbers only."""
    return [all(is_numeric(row[index]) for row in texts) for index in range(columns)]


def _html_line(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    written = []
    for cell, style in zip(cells, styles, strict=True):
        written.append(f'<{tag} style="{style}">{escape(cell)}</{tag}>')
    return f"<tr>{''.join(written)}</tr>"


def _without_estimates(table: Table) -> tuple[list[str], list[list[object]]]:
    """Return names and rows in which a column of Estimates is two columns of numbers."""
    names: list[str] = []
    columns: list[list[object]] = []
    for name in table.columns:
        cells = table[name]
        if not any(isinstance(cell, Estimate) for cell in cells):
            names.append(name)
            columns.append(list(cells))
            continue
        names += [name, f"{name}, ci95"]
        columns.append([cell.mean if isinstance(cell, Estimate) else cell for cell in cells])
        columns.append([cell.ci95 if isinstance(cell, Estimate) else None for cell in cells])
    rows = [[column[number] for column in columns] for number in range(len(table))]
    return names, rows
