"""CSV and JSON files of results."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esbas._internal.files import write_atomically
from esbas.errors import InvalidValueError
from esbas.reporting.estimate import Estimate


def plain(value: Any) -> Any:
    """Convert arrays, NumPy scalars, Estimates, paths and tuples to JSON types.

    Numbers that are not finite become None.
    """
    if isinstance(value, Estimate):
        return plain(value.as_dict())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    got = f"{type(value).__name__} {value!r}"
    raise InvalidValueError(f"Results must be plain data and arrays, but got {got}: convert it.")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table with numbers at full precision. Unknown values are left empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([_cell(value) for value in row])
    write_atomically(path, buffer.getvalue().encode())


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write data as indented JSON."""
    text = json.dumps(plain(data), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())


def _cell(value: object) -> object:
    if isinstance(value, Estimate):
        return value.interval_text()
    return plain(value)
