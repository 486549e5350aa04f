"""Gymnasium's spaces as plain data, and back."""

import math
import re
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from esbas import schema
from esbas.columns import Array
from esbas.errors import InvalidValueError, SpaceError

LARGEST = 2**24  # elements of an array, so that a damaged file cannot use up the memory
_TYPES = "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"
_BOUND = schema.AnyOf(float, schema.Number(min=0, max=2**64, whole=True), "inf", "-inf")
_WHOLE = schema.Number(min=1, whole=True)
_SHAPE = [schema.COUNT]


class OpaqueSpace(gymnasium.Space[Any]):
    """A space of a kind that has no plain form: it accepts any value."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        del mask, probability
        raise SpaceError(f"values of a saved space must be known, but this one is {self._text}: use the task itself")

    def contains(self, x: Any) -> bool:
        del x
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueSpace) and other._text == self._text

    def __repr__(self) -> str:
        return self._text


def to_data(space: Any) -> dict[str, Any]:
    """A space as plain data. A kind without a plain form becomes its description."""
    if isinstance(space, spaces.Discrete):
        return {"space": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, spaces.MultiDiscrete):
        return {"space": "MultiDiscrete", "nvec": space.nvec.tolist(), "start": space.start.tolist(), "dtype": str(space.dtype)}
    if isinstance(space, spaces.MultiBinary):
        return {
            "space": "MultiBinary",
            "n": int(space.n) if isinstance(space.n, int | np.integer) else list(map(int, space.shape)),
        }
    if isinstance(space, spaces.Box):
        about = {"space": "Box", "shape": list(map(int, space.shape)), "dtype": str(space.dtype)}
        return about | {"low": _bounds(space.low), "high": _bounds(space.high)}
    if isinstance(space, spaces.Tuple):
        return {"space": "Tuple", "spaces": [to_data(part) for part in space.spaces]}
    if isinstance(space, spaces.Dict) and all(isinstance(key, str) for key in space.spaces):
        return {"space": "Dict", "spaces": [[key, to_data(part)] for key, part in space.spaces.items()]}
    if isinstance(space, spaces.Text):
        lengths = {"min_length": int(space.min_length), "max_length": int(space.max_length)}
        return {"space": "Text", **lengths, "characters": space.characters}
    return {"space": "other", "text": " ".join(re.sub(r" at 0x[0-9a-f]+", "", str(space)).split())[:200]}  # without addresses


def from_data(data: Any, where: str) -> gymnasium.Space[Any]:
    """The space for data that `to_data` returned; `where` names them in errors."""
    schema.check(data, {"space": str, str: Any}, where)
    if data["space"] not in _READERS:
        raise InvalidValueError(f"{where} must have a known space, but has {schema.short(data['space'])}: {schema.REMEDY}")
    shape, read = _READERS[data["space"]]
    schema.check(data, {"space": str} | shape, where)
    try:
        return read(data, where)
    except InvalidValueError:
        raise
    except Exception as error:  # Gymnasium refuses what it cannot represent, with any error
        cause = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise InvalidValueError(f"{where} must describe a {data['space']} space, but {cause}: {schema.REMEDY}") from error


def fitted(space: Any, value: Any) -> Any:
    """A value of this space as learners expect it, such as an array for a list. Raises a SpaceError if it does not fit.

    Values outside the bounds of a Box are allowed: many tasks exceed their own bounds.
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
    kinds = "biuf" if np.dtype(space.dtype).kind == "f" else "biu"
    if given.shape != space.shape or given.dtype.kind not in kinds:
        raise _misfit(space, value)
    array: Array = given.astype(space.dtype)
    exact = np.dtype(space.dtype).kind == "f" or np.array_equal(array, given)
    if not exact or (not isinstance(space, spaces.Box) and not space.contains(array)):
        raise _misfit(space, value)
    array.flags.writeable = False
    return array


def _misfit(space: Any, value: Any) -> SpaceError:
    got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else schema.short(value)
    short = " ".join(str(space).split())[:200]
    return SpaceError(
        f"an observation must be in {short}, but got {got}: pass it as the task returns it (policy.observation_space)"
    )


def _bounds(array: Array) -> Any:
    """One number if all are equal, otherwise nested lists. Infinite numbers are text, which JSON can hold."""
    if array.size and (array == array.flat[0]).all():
        return _bound(array.flat[0].item())
    return _nested(array.tolist())


def _nested(value: Any) -> Any:
    return [_nested(item) for item in value] if isinstance(value, list) else _bound(value)


def _bound(number: Any) -> Any:
    return number if math.isfinite(number) else str(number)


def _checked_shape(shape: list[int], where: str) -> tuple[int, ...]:
    sizes = tuple(shape)
    schema.require(len(sizes) <= 16 and math.prod(sizes) <= LARGEST, f"at most {LARGEST} elements", where, shape=shape)
    return sizes


def _read_box(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    schema.require(data["dtype"] in _TYPES, "a type of numbers", where, dtype=data["dtype"])
    shape, dtype = _checked_shape(data["shape"], where), np.dtype(data["dtype"])
    wide: Any = np.float64 if dtype.kind == "f" else object  # whole numbers of 64 bits do not fit into floats
    low, high = (np.broadcast_to(np.array(_numbers(data[name], where), wide), shape).astype(dtype) for name in ("low", "high"))
    return spaces.Box(low, high, shape, dtype.type)


def _numbers(value: Any, where: str) -> Any:
    if isinstance(value, list):
        return [_numbers(item, where) for item in value]
    schema.check(value, _BOUND, f"a bound in {where}")
    return float(value) if isinstance(value, str) else value


def _read_multi_discrete(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    schema.require(data["dtype"] in _TYPES[1:9], "a type of whole numbers", where, dtype=data["dtype"])
    nvec, start = np.array(data["nvec"]), np.array(data["start"])
    whole = nvec.dtype.kind == start.dtype.kind == "i" and nvec.shape == start.shape and nvec.size > 0
    schema.require(whole, "lists of whole numbers", where, nvec=data["nvec"])
    return spaces.MultiDiscrete(nvec, np.dtype(data["dtype"]).type, start=start)


def _read_multi_binary(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    shape = _checked_shape(data["n"] if isinstance(data["n"], list) else [data["n"]], where)
    return spaces.MultiBinary(shape if isinstance(data["n"], list) else data["n"])


def _read_parts(data: dict[str, Any], where: str) -> gymnasium.Space[Any]:
    if data["space"] == "Tuple":
        return spaces.Tuple([from_data(part, where) for part in data["spaces"]])
    return spaces.Dict([(key, from_data(part, where)) for key, part in data["spaces"]])


_Reader = Callable[[dict[str, Any], str], gymnasium.Space[Any]]
_READERS: dict[str, tuple[dict[Any, Any], _Reader]] = {
    "Discrete": ({"n": _WHOLE, "start": int}, lambda data, _: spaces.Discrete(data["n"], start=data["start"])),
    "MultiDiscrete": ({"nvec": list, "start": list, "dtype": str}, _read_multi_discrete),
    "MultiBinary": ({"n": schema.AnyOf(_WHOLE, _SHAPE)}, _read_multi_binary),
    "Box": ({"shape": _SHAPE, "dtype": str, "low": Any, "high": Any}, _read_box),
    "Tuple": ({"spaces": [Any]}, _read_parts),
    "Dict": ({"spaces": [(str, Any)]}, _read_parts),
    "Text": (
        {"min_length": schema.COUNT, "max_length": schema.COUNT, "characters": str},
        lambda data, _: spaces.Text(data["max_length"], min_length=data["min_length"], charset=data["characters"]),
    ),
    "other": ({"text": str}, lambda data, _: OpaqueSpace(data["text"])),
}
