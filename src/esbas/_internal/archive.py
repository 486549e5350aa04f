"""Save files: nested plain data and arrays in one zip.

They are written atomically, and read without running any code.

The file is an uncompressed `.npz`: the entry `json` holds the nested data, in which `{"$array":
"a3"}` stands for the entry `a3`. A file that is read can come from anywhere: all sizes in it are
compared with the size of the file before memory is allocated.
"""

import io
import json
import math
import os
import zipfile
from typing import Any, BinaryIO, Literal

import numpy as np

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.files import open_atomically, open_regular
from esbas.errors import SaveFileError

FORMAT = 2  # 1: esbas 0.1


def write(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write the state to `path`. If that fails, the file that was there before stays unchanged."""
    arrays: dict[str, Array] = {}
    content = {"kind": kind, "format": FORMAT, "state": _pack(state, arrays)}
    text = json.dumps(content, allow_nan=True)
    with open_atomically(path) as file:
        np.savez(file, allow_pickle=False, json=np.frombuffer(text.encode(), np.uint8), **arrays)


def check(state: Any) -> None:
    """Raise a SaveFileError unless `write` can store this: plain data and arrays."""
    _pack(state, {})


def read(path: str | os.PathLike[str], kind: str) -> dict[str, Any]:
    """Read what `write` wrote."""
    where = repr(str(path))
    try:
        opened = open_regular(path)
    except FileNotFoundError:
        raise SaveFileError(f"There is no save file at {where}: check the path.") from None
    except (OSError, ValueError) as error:
        raise SaveFileError(f"{where} cannot be read ({error}): check the path.") from error
    try:
        with opened:
            content, arrays = _load(opened)
        schema.check(content.get("format"), schema.COUNT, "its format")
        version = content["format"]
        found = str(content.get("kind"))[:100]
        if version != FORMAT:
            remedy = "continue with the version of esbas that wrote it, or start again"
            if version > FORMAT:
                remedy = "upgrade esbas"
            raise SaveFileError(
                f"Save files must have format {FORMAT}, but {where} has format {version}: {remedy}."
            )
        if found != kind:
            raise SaveFileError(
                f"{where} must have a {kind}, but has a {found}: give the path of a {kind}."
            )
        schema.check(content["state"], dict, "its state")
        return dict(_unpack(content["state"], arrays))
    except SaveFileError:
        raise
    except Exception as error:  # a damaged file can raise anything
        problem = f"{type(error).__name__}: {error}".removesuffix(f": {schema.REMEDY}.")
        cause = " ".join(problem.split())[:300]
        raise SaveFileError(
            f"{where} must be a whole esbas save file, but is damaged ({cause}): {schema.REMEDY}."
        ) from error


def _load(opened: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    with zipfile.ZipFile(opened) as file:
        entries = file.infolist()
        size = os.fstat(opened.fileno()).st_size
        for entry in entries:
            if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
                raise zipfile.BadZipFile("its entries are compressed")
        if sum(entry.file_size for entry in entries) > size:
            raise zipfile.BadZipFile("its entries overlap")
        arrays = {}
        for entry in entries:
            data = file.read(entry)  # compares the checksum
            arrays[entry.filename.removesuffix(".npy")] = _array(data)
    if len(arrays) != len(entries):
        raise zipfile.BadZipFile("two entries have the same name")
    content = schema.read_json(arrays.pop("json").tobytes(), "its entry 'json'")
    if not isinstance(content, dict):
        raise ValueError("its entry 'json' is not a dictionary")
    return content, arrays


def _array(data: bytes) -> Array:
    """Return the array in an entry.

    NumPy's own reader would allocate memory for any shape that the entry claims.
    """
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"arrays of version {version} are not known")
    if version == (1, 0):
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    else:
        shape, fortran_order, dtype = np.lib.format.read_array_header_2_0(stream)
    rest = len(data) - stream.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"an array of {dtype} and shape {shape} does not fit into {rest} bytes")
    order: Literal["F", "C"] = "F" if fortran_order else "C"
    view: Array = np.ndarray(shape, dtype, data, stream.tell(), order=order)
    return view.copy(order="K")


def _pack(value: Any, arrays: dict[str, Array], depth: int = schema.MAX_DEPTH - 1) -> Any:
    """Return the value with every array moved to `arrays`."""
    if not depth:
        most = schema.MAX_DEPTH - 2
        raise SaveFileError(
            f"Saved data may have {most} nested levels, but has more: store it flat."
        )
    if isinstance(value, np.ndarray):
        return {"$array": _add_array(value, arrays)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key != "$array" for key in value):
            raise SaveFileError(
                "The keys of saved data must be text other than '$array', "
                f"but got {list(value)!r}: use str(key)."
            )
        return {key: _pack(item, arrays, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays, depth - 1) for item in value]
    if isinstance(value, int) and value.bit_length() > 1000:
        raise SaveFileError(
            "Saved integers may have 1000 bits, but got a larger one: store an array."
        )
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SaveFileError(
        f"Plain data and arrays can be saved, but got {type(value).__name__}: "
        "store what it is made of."
    )


def _add_array(array: Array, arrays: dict[str, Array]) -> str:
    """Add an array, unless it is there already: shared arrays are written once. Return its name."""
    if array.dtype.hasobject:
        raise SaveFileError(
            f"Arrays of numbers can be saved, but got objects {array!r}: "
            "store numbers or plain data."
        )
    for name, known in arrays.items():
        if known is array:
            return name
    name = f"a{len(arrays)}"
    arrays[name] = array
    return name


def _unpack(value: Any, arrays: dict[str, Array]) -> Any:
    """Return the value with every array put back."""
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"$array"}:
        return arrays[value["$array"]]
    return {key: _unpack(item, arrays) for key, item in value.items()}
