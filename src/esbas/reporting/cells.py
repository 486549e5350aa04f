"""The text of table cells: all numbers in a column have the same number of decimals."""

import math
import re
from collections.abc import Sequence

from esbas.reporting.estimate import Estimate

DIGITS = 4
"""Significant digits of the largest number of a column without intervals."""
MORE = 2
"""Decimals that a column has at most beyond what its largest number or interval needs, so that smaller ones show as well."""
LARGEST, MOST_DECIMALS = 1e12, 8
"""Columns with larger numbers, or with more decimals, are written with exponents."""
UNKNOWN = "–"


def table_texts(rows: Sequence[Sequence[object]]) -> list[list[str]]:
    """The texts of all cells, row by row."""
    columns = [column_texts(column) for column in zip(*rows, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]


def column_texts(column: Sequence[object]) -> list[str]:
    """The texts of one column: numbers with commas, floats and Estimates with common decimals, a dash for unknown.

    The decimals follow from the intervals, or from the largest number if there are none.
    """
    means = [value.mean if isinstance(value, Estimate) else value for value in column]
    numbers = [abs(value) for value in means if isinstance(value, float) and math.isfinite(value)]
    needed = [value.decimals for value in column if isinstance(value, Estimate) and value.decimals is not None]
    decimals = min(max(needed), min(needed) + MORE) if needed else _decimals(numbers)
    exponents = decimals > MOST_DECIMALS or max(numbers, default=0.0) > LARGEST
    style = f".{DIGITS - 1}e" if exponents else f"z,.{decimals}f"  # z: no minus sign before 0
    return [_text(value, style) for value in column]


def is_numeric(text: str) -> bool:
    """Whether a cell holds a number, perhaps with a short remark, or a dash, and so is right-aligned."""
    return re.fullmatch(r"([-+−]?[\d.]|–).{,23}|", text) is not None


def _decimals(numbers: Sequence[float]) -> int:
    """DIGITS digits of the largest number, one digit of the smallest unless that takes MORE decimals; no zeros at all ends."""
    shown = [number for number in numbers if number > 0]
    if not shown:
        return 0
    places = [-math.floor(math.log10(number)) for number in (max(shown), min(shown))]  # of their first digits
    decimals = max(0, places[0] + DIGITS - 1)
    decimals = min(max(decimals, places[1]), decimals + MORE)
    ends = [f"{number:.{decimals}f}".partition(".")[2].rstrip("0") for number in shown]
    return max(map(len, ends))


def _text(value: object, style: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return UNKNOWN
    if isinstance(value, Estimate):
        return value.text(style)
    if isinstance(value, float):  # NumPy's float64 is a float
        return format(value, style)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
