"""Save files: nested plain data and arrays in one zip, written atomically, read without running any code.

The file is an uncompressed `.npz`: the entry `json` holds the nested data, in which `{"$array": "a3"}` stands for the entry `a3`.
"""

import json
import os
import zipfile
from typing import Any

import numpy as np

from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.files import open_atomically

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
        content, arrays = _load(path)
        found, version = str(content["kind"]), int(content["format"])
        if version != FORMAT:
            remedy = "upgrade esbas" if version > FORMAT else "continue with the version of esbas that wrote it, or start again"
            raise SaveFileError(f"save files of format {FORMAT} can be read, but {where} has format {version}: {remedy}")
        if found != kind:
            raise SaveFileError(f"{where} must hold a {kind}, but holds a {found}: give the path of a {kind}")
        return dict(_unpack(content["state"], arrays))
    except FileNotFoundError:
        raise SaveFileError(f"a save file must exist, but there is none at {where}: check the path") from None
    except SaveFileError:
        raise
    except Exception as error:  # a damaged file can raise anything
        cause = f"{type(error).__name__}: {error}"
        raise SaveFileError(
            f"{where} must be a whole esbas save file, but is damaged ({cause}): go back to an earlier copy"
        ) from error


def _load(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, Array]]:
    with zipfile.ZipFile(path) as file:
        damaged = file.testzip()  # compares all checksums before anything is interpreted
    if damaged is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged} is wrong")
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    return json.loads(arrays.pop("json").tobytes()), arrays


def _pack(value: Any, arrays: dict[str, Array]) -> Any:
    """The value with every array moved to `arrays`."""
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
        return {key: _pack(item, arrays) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_pack(item, arrays) for item in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise SaveFileError(f"plain data and arrays can be saved, but got {type(value).__name__}: store what it is made of")


def _unpack(value: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(value, dict):
        return arrays[value["$array"]] if set(value) == {"$array"} else {k: _unpack(v, arrays) for k, v in value.items()}
    return [_unpack(item, arrays) for item in value] if isinstance(value, list) else value
