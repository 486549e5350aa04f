"""Gymnasium's spaces as plain data, and back."""

import math
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from esbas._internal import schema
from esbas._internal.columns import Array
from esbas._internal.spaces import is_text
from esbas.errors import InvalidValueError, SpaceError

LARGEST = 2**24  # elements of an array, so that a damaged file cannot use up the memory
MOST_AXES = 16
_WHOLE_TYPES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_TYPES = ("bool", *_WHOLE_TYPES, "float16", "float32", "float64")
_BOUND = schema.AnyOf(float, schema.Number(min=0, max=2**64, whole=True), "inf", "-inf")
_WHOLE = schema.Number(min=1, whole=True)
_SHAPE = [schema.COUNT]


class OpaqueSpace(gymnasium.Space[Any]):
    """A space of a kind that has no plain form: it accepts any value.

    Args:
        text: describes the space.
        has_texts: whether its elements are texts.
    """

    def __init__(self, text: str, *, has_texts: bool = False) -> None:
        super().__init__(dtype=str if has_texts else None)
        self._text = text

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        del mask, probability
        message = f"Values of the saved space {self._text} are not known"
        raise SpaceError(f"{message}: use the environment itself.")

    def contains(self, x: Any) -> bool:
        del x
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueSpace) and other._text == self._text

    def __repr__(self) -> str:
        return self._text


def to_data(space: Any) -> dict[str, Any]:
    """Return a space as plain data. A kind without a plain form becomes its description."""
    if isinstance(space, spaces.Discrete):
        return {"space": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {
            "space": "MultiDiscrete",
            "nvec": space.nvec.tolist(),
            "start": space.start.tolist(),
            "dtype": str(space.dtype),
        }
    if isinstance(space, spaces.MultiBinary):
        if isinstance(space.n, int | np.integer):
            return {"space": "MultiBinary", "n": int(space.n)}
        return {"space": "MultiBinary", "n": _sizes(space.shape)}
    if isinstance(space, spaces.Box):
        return {
            "space": "Box",
            "shape": _sizes(space.shape),
            "dtype": str(space.dtype),
            "low": _bounds(space.low),
            "high": _bounds(space.high),
        }
    if isinstance(space, spaces.Tuple):
        return {"space": "Tuple", "spaces": [to_data(part) for part in space.spaces]}
    if isinstance(space, spaces.Dict) and all(isinstance(key, str) for key in space.spaces):
        parts = [[key, to_data(part)] for key, part in space.spaces.items()]
        return {"space": "Dict", "spaces": parts}
    if isinstance(space, spaces.Text):
        return {
            "space": "Text",
            "min_length": int(space.min_length),
            "max_length": int(space.max_length),
            "characters": space.characters,
        }
    without_addresses = re.sub(r" at 0x[0-9a-f]+", "", str(space))
    kind = "other text" if is_text(space) else "other"
    return {"space": kind, "text": " ".join(without_addresses.split())[:200]}


def from_data(data: Any, where: str) -> gymnasium.Space[Any]:
    """Return the space for data that `to_data` returned; `where` names them in errors."""
    schema.check(data, {"space": str, str: Any}, where)
    if data["space"] not in _READERS:
        given = schema.short(data["space"])
        raise InvalidValueError(f"{where} has the unknown space {given}: {schema.REMEDY}.")
    shape, read = _READERS[data["space"]]
    schema.check(data, {"space": str} | shape, where)
    try:
        return read(data, where)
    except InvalidValueError:
        raise
    except Exception as error:  # Gymnasium refuses what it cannot represent, with any error
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        message = f"{where} does not describe a {data['space']} space ({cause})"
        raise InvalidValueError(f"{message}: {schema.REMEDY}.") from error


def fitted(space: Any, value: Any) -> Any:
    """Return a value of this space as learners expect it, such as an array for a list.

    Raises a SpaceError if it does not fit. Values outside the bounds of a Box are allowed: many
    environments exceed their own bounds.
    """
    if isinstance(space, spaces.Dict):
        if not isinstance(value, dict) or set(value) != set(space.spaces):
            raise _misfit(space, value)
        return {key: fitted(part, value[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        if not isinstance(value, tuple | list) or len(value) != len(space.spaces):
            raise _misfit(space, value)
        return tuple(fitted(part, item) for part, item in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Discrete):
        number = np.asarray(value)
        if number.shape or number.dtype.kind not in "iu" or not space.contains(int(number)):
            raise _misfit(space, value)
        return int(number)
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return _fitted_array(space, value)
    if not space.contains(value):
        raise _misfit(space, value)
    return value


def _fitted_array(space: Any, value: Any) -> Array:
    try:
        given = np.asarray(value)
    except ValueError:  # lists of different lengths
        raise _misfit(space, value) from None
    has_floats = np.dtype(space.dtype).kind == "f"
    kinds = "biuf" if has_floats else "biu"
    if given.shape != space.shape or given.dtype.kind not in kinds:
        raise _misfit(space, value)
    array: Array = given.astype(space.dtype)
    if not has_floats and not np.array_equal(array, given):
        raise _misfit(space, value)
    if not isinstance(space, spaces.Box) and not space.contains(array):
        raise _misfit(space, value)
    array.flags.writeable = False
    return array


def _misfit(space: Any, value: Any) -> SpaceError:
    got = schema.short(value)
    if isinstance(value, np.ndarray):
        got = f"{value.dtype} of shape {value.shape}"
    wanted = " ".join(str(space).split())[:200]
    remedy = "pass it as the environment returns it (policy.observation_space)"
    return SpaceError(f"An observation must be in {wanted}, but got {got}: {remedy}.")


def _sizes(shape: tuple[int, ...]) -> list[int]:
    return [int(size) for size in shape]


def _bounds(array: Array) -> Any:
    """Return one number if all are equal, otherwise nested lists.

    Infinite numbers are text, which JSON can hold.
    """
    if array.size and (array == array.flat[0]).all():
        return _bound(array.flat[0].item())
    return _nested(array.tolist())


def _nested(value: Any) -> Any:
    return [_nested(item) for item in value] if isinstance(value, list) else _bound(value)


def _bound(number: Any) -> Any:
    return number if math.isfinite(number) else str(number)


def _checked_shape(shape: list[int], where: str) -> tuple[int, ...]:
    if len(shape) > MOST_AXES or math.prod(shape) > LARGEST:
        most = f"at most {MOST_AXES} axes and {LARGEST:,} elements"
        raise InvalidValueError(
            f"A space in {where} must have {most}, but has the shape {schema.short(shape)}: "
            f"{schema.REMEDY}."
        )
    return tuple(shape)


def _checked_type(name: str, known: tuple[str, ...], where: str) -> Any:
    if name not in known:
        raise InvalidValueError(
            f"A space in {where} must have one of the types {', '.join(known)}, "
            f"but has {schema.short(name)}: {schema.REMEDY}."
        )
    return np.dtype(name)


def _read_box(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    dtype = _checked_type(data["dtype"], _TYPES, where)
    shape = _checked_shape(data["shape"], where)
    # Whole numbers of 64 bits do not fit into floats.
    wide: Any = np.float64 if dtype.kind == "f" else object
    low = np.array(_numbers(data["low"], where), wide)
    high = np.array(_numbers(data["high"], where), wide)
    return spaces.Box(
        np.broadcast_to(low, shape).astype(dtype),
        np.broadcast_to(high, shape).astype(dtype),
        shape,
        dtype.type,
    )


def _numbers(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return [_numbers(item, where) for item in value]
    schema.check(value, _BOUND, f"a bound in {where}")
    return float(value) if isinstance(value, str) else value


def _read_multi_discrete(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    dtype = _checked_type(data["dtype"], _WHOLE_TYPES, where)
    nvec = np.array(data["nvec"])
    start = np.array(data["start"])
    is_whole = nvec.dtype.kind == "i" and start.dtype.kind == "i"
    if not is_whole or nvec.shape != start.shape or nvec.size == 0:
        message = f"`nvec` and `start` in {where} must be lists of whole numbers of the same shape"
        raise InvalidValueError(f"{message}: {schema.REMEDY}.")
    return spaces.MultiDiscrete(nvec, dtype.type, start=start)


def _read_multi_binary(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    size = data["n"]
    if isinstance(size, list):
        return spaces.MultiBinary(_checked_shape(size, where))
    _checked_shape([size], where)
    return spaces.MultiBinary(size)


def _read_parts(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    if data["space"] == "Tuple":
        return spaces.Tuple([from_data(part, where) for part in data["spaces"]])
    return spaces.Dict([(key, from_data(part, where)) for key, part in data["spaces"]])


def _read_discrete(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    del where
    return spaces.Discrete(data["n"], start=data["start"])


def _read_text(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    del where
    return spaces.Text(
        data["max_length"], min_length=data["min_length"], charset=data["characters"]
    )


def _read_opaque(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    del where
    return OpaqueSpace(data["text"], has_texts=data["space"] == "other text")


_Reader = Callable[[dict[str, Any], str], gymnasium.Space[Any]]
# The shape of the data of each kind of space, and the function that reads them.
_READERS: dict[str, tuple[dict[Any, Any], _Reader]] = {
    "Discrete": ({"n": _WHOLE, "start": int}, _read_discrete),
    "MultiDiscrete": ({"nvec": list, "start": list, "dtype": str}, _read_multi_discrete),
    "MultiBinary": ({"n": schema.AnyOf(_WHOLE, _SHAPE)}, _read_multi_binary),
    "Box": ({"shape": _SHAPE, "dtype": str, "low": Any, "high": Any}, _read_box),
    "Tuple": ({"spaces": [Any]}, _read_parts),
    "Dict": ({"spaces": [(str, Any)]}, _read_parts),
    "Text": (
        {"min_length": schema.COUNT, "max_length": schema.COUNT, "characters": str},
        _read_text,
    ),
    "other": ({"text": str}, _read_opaque),
    "other text": ({"text": str}, _read_opaque),
}
