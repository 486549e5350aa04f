"""The text of table cells: all numbers in a column have the same number of decimals."""

import math
import re
import textwrap
from collections.abc import Sequence

from esbas.reporting.estimate import Estimate

DIGITS = 4
"""Significant digits of the largest number of a column without intervals."""
MORE = 2
"""Decimals beyond those that the largest number or interval of a column needs, at most.

They show smaller numbers as well.
"""
LARGEST = 1e12
MOST_DECIMALS = 8
"""Columns with larger numbers, or with more decimals, are written with exponents."""
UNKNOWN = "–"


def table_texts(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    """Return the texts of all cells, row by row."""
    columns = [column_texts(column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def column_texts(column: Sequence[object]) -> list[str]:
    """Return the texts of one column.

    Numbers have commas, floats and Estimates have common decimals, and a dash is for unknown. The
    decimals follow from the intervals, or from the largest number if there are none.
    """
    numbers: list[float] = []
    for value in column:
        number = value.mean if isinstance(value, Estimate) else value
        if isinstance(number, float) and math.isfinite(number):
            numbers.append(abs(number))
    needed = [
        value.decimals
        for value in column
        if isinstance(value, Estimate) and value.shows_interval and value.decimals is not None
    ]
    decimals = min(max(needed), min(needed) + MORE) if needed else _decimals(numbers)
    exponents = decimals > MOST_DECIMALS or max(numbers, default=0.0) > LARGEST
    style = f".{DIGITS - 1}e" if exponents else f"z,.{decimals}f"  # z: no minus sign before 0
    return [_text(value, style) for value in column]


def is_numeric(text: str) -> bool:
    """Return whether a cell has a number, perhaps with a remark, or a dash: it is right-aligned."""
    return re.fullmatch(r"([-+−]?[\d.]|–).{,23}|", text) is not None


def fitted_headers(
    header: Sequence[str], texts: Sequence[Sequence[str]], *, width: int, gap: int
) -> list[str]:
    """Return the headers, with line breaks between their words if the table would be too wide.

    Cells are never broken: names of learners are what a reader looks for.

    Args:
        header: of the columns.
        texts: of the cells, row by row.
        width: in characters, of a line.
        gap: between two columns.
    """
    widest: list[int] = []
    for column, name in enumerate(header):
        cells = [len(row[column]) for row in texts]
        words = [len(word) for word in name.split()]
        widest.append(max([1, *cells, *words]))
    room = width - gap * (len(header) - 1)
    longest = max([1, *(len(name) for name in header)])
    fitted = list(header)
    for limit in range(longest, 0, -1):  # as few lines as possible
        fitted = []
        taken = 0
        for name, cell in zip(header, widest, strict=True):
            lines = textwrap.wrap(name, max(cell, limit), break_on_hyphens=False)
            fitted.append("\n".join(lines))
            taken += max([cell, *(len(line) for line in lines)])
        if taken <= room:
            break
    return fitted


def table_width(header: Sequence[str], texts: Sequence[Sequence[str]], *, gap: int) -> int:
    """Return the width of a table in characters; headers may have several lines."""
    width = gap * (len(header) - 1)
    for column, name in enumerate(header):
        cells = [len(row[column]) for row in texts]
        lines = [len(line) for line in name.split("\n")]
        width += max([*cells, *lines])
    return width


def _decimals(numbers: Sequence[float]) -> int:
    """Return how many decimals show DIGITS digits of the largest number.

    A digit of the smallest number is shown, too, unless that takes over MORE further decimals.
    Decimals that are 0 in all numbers are left out.
    """
    shown = [number for number in numbers if number > 0]
    if not shown:
        return 0
    decimals = max(0, _first_decimal(max(shown)) + DIGITS - 1)
    decimals = min(max(decimals, _first_decimal(min(shown))), decimals + MORE)
    needed = 0
    for number in shown:
        digits = f"{number:.{decimals}f}".partition(".")[2]
        needed = max(needed, len(digits.rstrip("0")))
    return needed


def _first_decimal(number: float) -> int:
    """Return the decimal of the first digit: 2 for 0.05, 0 for 5, -1 for 50."""
    return -math.floor(math.log10(number))


def _text(value: object, style: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, Estimate):
        return value.text(style)
    if isinstance(value, float):  # NumPy's float64 is a float
        return format(value, style)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
