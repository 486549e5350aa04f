"""Save files: nested plain data and arrays in one zip, written atomically, read without running any code.

The file is an uncompressed `.npz`: the entry `json` holds the nested data, in which `{"$array": "a3"}` stands for the entry `a3`.
A file that is read can come from anywhere: all sizes in it are compared with the size of the file before memory is allocated.
"""

import io
import json
import math
import os
import zipfile
from typing import Any, BinaryIO

import numpy as np

from esbas import schema
from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.files import open_atomically, open_regular

FORMAT = 2  # 1: esbas 0.1


def write(path: str | os.PathLike[str], kind: str, state: dict[str, Any]) -> None:
    """Write the state to `path`. If that fails, the file that was there before stays unchanged."""
    arrays: dict[str, Array] = {}
    text = json.dumps({"kind": kind, "format": FORMAT, "state": _pack(state, arrays)}, allow_nan=True)
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
        raise SaveFileError(f"a save file must exist, but there is none at {where}: check the path") from None
    except (OSError, ValueError) as error:
        raise SaveFileError(
            f"a save file must be a file that can be read, but {where} is not ({error}): check the path"
        ) from error
    try:
        with opened:
            content, arrays = _load(opened)
        schema.check(content.get("format"), schema.COUNT, "its format")
        version, found = content["format"], str(content.get("kind"))[:100]
        if version != FORMAT:
            remedy = "upgrade esbas" if version > FORMAT else "continue with the version of esbas that wrote it, or start again"
            raise SaveFileError(f"save files of format {FORMAT} can be read, but {where} has format {version}: {remedy}")
        if found != kind:
            raise SaveFileError(f"{where} must hold a {kind}, but holds a {found}: give the path of a {kind}")
        schema.check(content["state"], dict, "its state")
        return dict(_unpack(content["state"], arrays))
    except SaveFileError:
        raise
    except Exception as error:  # a damaged file can raise anything
        cause = " ".join(f"{type(error).__name__}: {error}".removesuffix(f": {schema.REMEDY}").split())[:300]
        raise SaveFileError(f"{where} must be a whole esbas save file, but is damaged ({cause}): {schema.REMEDY}") from error


def _load(opened: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    with zipfile.ZipFile(opened) as file:
        entries, size = file.infolist(), os.fstat(opened.fileno()).st_size
        stored = all(entry.compress_type == zipfile.ZIP_STORED and entry.compress_size == entry.file_size for entry in entries)
        if not stored or sum(entry.file_size for entry in entries) > size:
            raise zipfile.BadZipFile("its entries are compressed or overlap")
        arrays = {entry.filename.removesuffix(".npy"): _array(file.read(entry)) for entry in entries}  # compares checksums
    if len(arrays) != len(entries):
        raise zipfile.BadZipFile("two entries have the same name")
    content = schema.read_json(arrays.pop("json").tobytes(), "its entry 'json'")
    if not isinstance(content, dict):
        raise ValueError("its entry 'json' is not a dictionary")
    return content, arrays


def _array(data: bytes) -> Array:
    """The array in an entry. NumPy's own reader would allocate memory for any shape that the entry claims."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"arrays of version {version} are not known")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran_order, dtype = read(stream)
    rest = len(data) - stream.tell()
    if dtype.hasobject or min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise ValueError(f"an array of {dtype} and shape {shape} does not fit into {rest} bytes")
    return np.ndarray(shape, dtype, data, stream.tell(), order="F" if fortran_order else "C").copy(order="K")


def _pack(value: Any, arrays: dict[str, Array], depth: int = schema.MAX_DEPTH - 1) -> Any:
    """The value with every array moved to `arrays`."""
    if not depth:
        raise SaveFileError(f"saved data may have {schema.MAX_DEPTH - 2} nested levels, but has more: store it flat")
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise SaveFileError(f"arrays of numbers can be saved, but got objects {value!r}: store numbers or plain data")
        name = next((name for name, known in arrays.items() if known is value), f"a{len(arrays)}")  # shared: written once
        arrays[name] = value
        return {"$array": name}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        if not all(isinstance(key, str) and key != "$array" for key in value):
            raise SaveFileError(f"the keys of saved data must be text other than '$array', but got {list(value)!r}: use str(key)")
        return {key: _pack(item, arrays, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays, depth - 1) for item in value]
    if isinstance(value, int) and value.bit_length() > 1000:
        raise SaveFileError("saved integers may have 1000 bits, but got a larger one: store an array")
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SaveFileError(f"plain data and arrays can be saved, but got {type(value).__name__}: store what it is made of")


def _unpack(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, dict):
        return arrays[value["$array"]] if set(value) == {"$array"} else {k: _unpack(v, arrays) for k, v in value.items()}
    return [_unpack(item, arrays) for item in value] if isinstance(value, list) else value
