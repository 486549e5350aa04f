"""Converts values from text to the types of a signature."""

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from esbas._internal.values import number_in

_PLAIN = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    types.NoneType: "",
}
_LARGEST = 2**63  # whole numbers that are not written as such are smaller


def fitted(value: Any, hint: Any) -> Any:
    """Return the value converted to the type; raise a TypeError if it does not fit.

    >>> fitted([1, 0.1, 8000], tuple[float, float, int])
    (1.0, 0.1, 8000)
    >>> fitted("100k", int), fitted(1e5, int)
    (100000, 100000)
    """
    origin = typing.get_origin(hint) or hint
    inner = typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin in (typing.Union, types.UnionType):
        return _fitted_to_one(value, inner)
    if origin is typing.Literal or origin in _PLAIN:
        return _fitted_plain(value, origin, inner)
    if _is(origin, Mapping) and isinstance(value, dict):
        return value
    if _is(origin, np.number) and type(value) in (int, float):
        return value
    if origin is np.ndarray and isinstance(value, list | tuple):
        return np.array(value, np.float32)  # the type of most bounds of spaces
    if _is(origin, Sequence) and isinstance(value, list | tuple):
        return _fitted_items(value, origin, inner)
    raise TypeError


def describe(hint: Any) -> str:
    """Return a type in words; an empty text for types that text cannot express."""
    origin = typing.get_origin(hint) or hint
    inner = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        described = [describe(each) for each in inner]
        return " or ".join(dict.fromkeys(words for words in described if words))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin in _PLAIN:
        return _PLAIN[origin]
    if _is_record(origin, inner):
        return f"a list of {len(inner)} ({', '.join(map(describe, inner))})"
    if _is(origin, Sequence) or origin is np.ndarray:
        each = describe(inner[0]) if inner else ""
        return f"a list, each {each}" if each else "a list"
    if _is(origin, np.number):
        return "a number"
    if _is(origin, Mapping):
        return "a table"
    return ""


def _fitted_to_one(value: Any, hints: tuple[Any, ...]) -> Any:
    """Return the value converted to the first type that it fits; its own type comes first."""
    for each in sorted(hints, key=lambda hint: type(value) is not hint):
        try:
            return fitted(value, each)
        except TypeError:
            continue
    raise TypeError


def _fitted_plain(value: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    if origin is float and type(value) is int:
        return float(value)
    if origin is int:
        value = _as_whole(value)
    fits = value in inner if origin is typing.Literal else type(value) is origin
    if not fits:
        raise TypeError
    return value


def _as_whole(value: Any) -> Any:
    """Return a float such as 1e5, or a text such as "100k", as the whole number that it is.

    Others are returned as they are. TOML has no whole numbers with an exponent.
    """
    if type(value) is float and value.is_integer() and abs(value) < _LARGEST:
        return int(value)
    number = number_in(value) if type(value) is str else None
    return value if number is None or abs(number) >= _LARGEST else number


def _fitted_items(values: Sequence[Any], origin: Any, inner: tuple[Any, ...]) -> Any:
    item_hint = inner[0] if inner else Any
    hints = list(inner) if _is_record(origin, inner) else [item_hint] * len(values)
    if len(hints) != len(values):
        raise TypeError
    converted = [fitted(value, hint) for value, hint in zip(values, hints, strict=True)]
    return tuple(converted) if origin is tuple else converted


def _is(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def _is_record(origin: Any, inner: tuple[Any, ...]) -> bool:
    """Return whether it is a tuple type with a fixed length."""
    return origin is tuple and bool(inner) and inner[-1] is not Ellipsis
