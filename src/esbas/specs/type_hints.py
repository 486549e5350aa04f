"""Converts values from text to the types of a signature."""

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

_PLAIN = {bool: "true or false", int: "a whole number", float: "a number", str: "text", types.NoneType: ""}


def fitted(value: Any, hint: Any) -> Any:
    """The value converted to the type, such as a list to a tuple; raises a TypeError if it does not fit.

    >>> fitted([1, 0.1, 8000], tuple[float, float, int])
    (1.0, 0.1, 8000)
    """
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if hint is Any or isinstance(hint, typing.TypeVar):
        return value
    if origin in (typing.Union, types.UnionType):
        return _fitted_to_one(value, inner)
    if origin is typing.Literal or origin in _PLAIN:
        return _fitted_plain(value, origin, inner)
    items = value if isinstance(value, list | tuple) else None
    if isinstance(value, dict) if _is(origin, Mapping) else _is(origin, np.number) and type(value) in (int, float):
        return value
    if origin is np.ndarray and items is not None:
        return np.array(items, np.float32)  # the type of most bounds of spaces
    if _is(origin, Sequence) and items is not None:
        wanted = inner if _is_record(origin, inner) else [inner[0] if inner else Any] * len(items)
        if len(wanted) == len(items):
            each = [fitted(item, one) for item, one in zip(items, wanted, strict=True)]
            return tuple(each) if origin is tuple else each
    raise TypeError


def describe(hint: Any) -> str:
    """A type in words; empty for types that text cannot express."""
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(words for each in inner if (words := describe(each))))
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    if origin in _PLAIN:
        return _PLAIN[origin]
    if _is_record(origin, inner):
        return f"a list of {len(inner)} ({', '.join(map(describe, inner))})"
    if _is(origin, Sequence) or origin is np.ndarray:
        return "a list, each " + describe(inner[0]) if inner and describe(inner[0]) else "a list"
    return "a number" if _is(origin, np.number) else "a table" if _is(origin, Mapping) else ""


def _fitted_to_one(value: Any, hints: tuple[Any, ...]) -> Any:
    for each in hints:
        try:
            return fitted(value, each)
        except TypeError:
            continue
    raise TypeError


def _fitted_plain(value: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    if origin is float and type(value) is int:
        return float(value)
    if value in inner if origin is typing.Literal else type(value) is origin:
        return value
    raise TypeError


def _is(origin: Any, kind: type) -> bool:
    return isinstance(origin, type) and issubclass(origin, kind)


def _is_record(origin: Any, inner: tuple[Any, ...]) -> bool:
    """Whether it is a tuple type with a fixed length."""
    return origin is tuple and bool(inner) and inner[-1] is not Ellipsis
