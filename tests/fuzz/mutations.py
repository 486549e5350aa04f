"""Hostile variants of bytes and of plain data."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


PLAIN: list[Any] = [
    None, True, False, -1, 0, 1, 2, 7, -(2**31), 2**31, 2**53, 2**63 - 1, 2**63, 2**64, -(2**63),
    10**30, 10**300,
    0.5, -0.0, -1.5, 1e-320, 1e300, -1e308, 1.7e308, float("nan"), float("inf"), -float("inf"),
    "", "a", "slow", "PCG64", "MT19937", "ESBAS", "\n\x00", "\ud800", "x" * 10_000, "9" * 5_000,
    [], [1], [None], [[1, 2], [3]], [0] * 1_000, {}, {"a": 1}, {"": {}},
    {"low": 1, "high": 0}, {"$array": "a0"},
]  # fmt: skip
ODD: list[Any] = [
    10**5000,
    -(10**5000),
    nested(5_000),
    np.arange(3),
    np.zeros((2, 2)),
    {1: 2},
    (1, 2),
    object(),
    set(),
    b"bytes",
]


def mutated_bytes(data: bytes, rng: np.random.Generator) -> bytes:
    found = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        start = int(rng.integers(len(found) + 1))
        length = int(rng.integers(1, 9))
        kind = rng.integers(5)
        if kind == 0:
            found[start : start + 1] = rng.bytes(1)
        elif kind == 1:
            found[start : start + length] = rng.bytes(length)
        elif kind == 2:
            del found[start : start + int(rng.integers(1, 200))]
        elif kind == 3:
            found[start : start + length] = bytes([int(rng.choice([0, 127, 128, 255]))]) * length
        else:
            found[start:start] = found[: int(rng.integers(1, 100))]
    return bytes(found)


def mutated(value: Any, rng: np.random.Generator, *, odd: bool) -> Any:
    """A copy in which one to three items are something else; `odd` adds what JSON cannot hold."""
    root = [_copied(value)]
    for _ in range(int(rng.integers(1, 4))):
        items = list(_items(root))
        parent, key = items[int(rng.integers(len(items)))]
        kind = rng.integers(8)
        old = parent[key]
        if kind == 0 and isinstance(parent, dict):
            del parent[key]
        elif kind == 0 and parent is not root:
            parent.pop(key)
        elif kind == 1 and isinstance(old, list) and old:
            old.append(_copied(old[int(rng.integers(len(old)))]))
        elif kind == 1 and isinstance(old, dict):
            old[str(rng.choice(["a", "kind", "$array", "number", "x\ny"]))] = _hostile(rng, odd)
        elif kind == 2:
            other, name = items[int(rng.integers(len(items)))]
            parent[key] = _copied(other[name])
        elif kind in (3, 4) and isinstance(old, int | float):
            parent[key] = old + int(rng.choice([-2, -1, 1, 2, 1000]))
        elif kind == 5 and isinstance(old, np.ndarray):
            parent[key] = _other_array(old, rng)
        else:
            parent[key] = _hostile(rng, odd)
    return root[0]


def _hostile(rng: np.random.Generator, odd: bool) -> Any:
    values = PLAIN + ODD if odd else PLAIN
    return _copied(values[int(rng.integers(len(values)))])


def _other_array(array: Any, rng: np.random.Generator) -> Any:
    with np.errstate(all="ignore"):
        return _array_variant(array, rng)


def _array_variant(array: Any, rng: np.random.Generator) -> Any:
    variants = [
        array[1:] if array.ndim else array,
        array.astype(bool),
        array[None],
        array.astype("U8"),
        array.ravel(),
    ]
    if array.dtype.kind in "iuf":
        variants += [
            -array.astype(float),
            array.astype(float) * np.nan,
            array.astype(np.int64) * 2**40,
        ]
    return variants[int(rng.integers(len(variants)))]


def _items(value: Any, depth: int = 20) -> Iterator[tuple[Any, Any]]:
    """Each list or dictionary with each of its keys, nested ones included."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        yield value, key
        if isinstance(item, dict | list) and len(item) < 500 and depth:
            yield from _items(item, depth - 1)


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except RecursionError:  # too deep to copy: nothing changes it
        return value
