"""Plain data, and files that are written whole or not at all."""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from esbas.errors import InvalidValueError
from esbas.reporting.estimate import Estimate


def plain(value: Any) -> Any:
    """Arrays, NumPy scalars, Estimates, paths and tuples as JSON's types; what is not finite as None."""
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
    raise InvalidValueError(
        f"results are plain data and arrays, but got {type(value).__name__} {value!r}: tell what it is made of"
    )


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table, numbers in full; what is unknown is left empty."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([header, *([_cell(value) for value in row] for row in rows)])
    write_atomically(path, buffer.getvalue().encode())


def write_json(path: Path, data: Mapping[str, Any]) -> None:
    """Write plain data, for programs and people."""
    text = json.dumps(plain(data), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_atomically(path, text.encode())


def _cell(value: object) -> object:
    return str(value) if isinstance(value, Estimate) else plain(value)


def write_atomically(path: Path, data: bytes) -> None:
    """Write the file, or, if anything fails or kills us, leave what was there as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
