"""Checks of plain options. Each function returns a value in its final type, or raises an error."""

import math
import operator
import os
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from esbas._internal.schema import short
from esbas.errors import InvalidValueError

MOST_SEEDS = 10_000
"""Seeds of a range in text, so that a typing error does not fill the memory."""
_EXAMPLES = "such as 100000, 1e5, 100k, 2M or 100,000"
_MULTIPLES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9}
# Digits with underscores, or with commas between thousands; then decimals, an exponent of at most
# two digits (so that no text becomes a number that fills the memory), and a letter.
_NUMBER = re.compile(
    r"""
    (?P<number>
        [+-]?
        (?: [0-9]{1,3} (?: ,[0-9]{3} )+ | [0-9]+ (?: _[0-9]+ )* )
        (?: \.[0-9]+ )?
        (?: e [+-]?[0-9]{1,2} )?
    )
    (?P<multiple> [kmb]? )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_LONGEST_NUMBER = 40  # characters


def whole(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return a whole number.

    Floats such as 6e4 are accepted, NumPy's integers, and text as people write numbers.

    >>> whole("steps", 6e4, at_least=1)
    60000
    >>> [whole("steps", text) for text in ("1e5", "100k", "1.5M", "100_000", "100,000")]
    [100000, 100000, 1500000, 100000, 100000]
    """
    found = number_in(value) if isinstance(value, str) else _as_integer(value)
    if found is None:
        examples = f" {_EXAMPLES}" if isinstance(value, str) else ""
        raise InvalidValueError(
            f"`{name}` must be a whole number{examples}, but got {short(value)}."
        )
    if at_least is not None and found < at_least:
        raise InvalidValueError(f"`{name}` must be at least {at_least}, but got {found}.")
    if at_most is not None and found > at_most:
        raise InvalidValueError(f"`{name}` must be at most {at_most:,}, but got {short(value)}.")
    return found


def number_in(text: str) -> int | None:
    """Return the whole number that the text stands for; None if it stands for none."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None or len(found[0]) > _LONGEST_NUMBER:
        return None
    digits = found["number"].replace(",", "").replace("_", "")
    exact = Fraction(digits) * _MULTIPLES[found["multiple"].lower()]
    return int(exact) if exact.denominator == 1 else None


def _as_integer(value: Any) -> int | None:
    """Return the value as an integer; None if it is not one, or is True or False."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    try:
        return operator.index(value)
    except TypeError:  # also an array with several numbers
        return None


def number(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf
) -> float:
    """Return a finite number."""
    is_number = isinstance(value, int | float) or hasattr(type(value), "__float__")
    if isinstance(value, bool | str) or not is_number:
        raise InvalidValueError(f"`{name}` must be a number, but got {short(value)}.")
    try:
        found = float(value)
    except (OverflowError, TypeError, ValueError):  # such as an array with several numbers
        raise InvalidValueError(f"`{name}` must be a number, but got {short(value)}.") from None
    if not math.isfinite(found):
        raise InvalidValueError(f"`{name}` must be finite, but got {found}.")
    if found <= above:
        raise InvalidValueError(f"`{name}` must be greater than {above:g}, but got {found:g}.")
    if found < at_least:
        raise InvalidValueError(f"`{name}` must be at least {at_least:g}, but got {found:g}.")
    return found


def truth(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise InvalidValueError(f"`{name}` must be True or False, but got {short(value)}.")
    return value


def text(name: str, value: Any) -> str:
    """Return text."""
    if not isinstance(value, str):
        raise InvalidValueError(f"`{name}` must be text, but got {short(value)}.")
    return value


def path(name: str, value: Any) -> Path:
    """Return a path, which may be given as text."""
    if not isinstance(value, str | os.PathLike):
        raise InvalidValueError(f"`{name}` must be a path, but got {short(value)}.")
    found = os.fspath(value)
    if not isinstance(found, str) or not found or "\0" in found:
        raise InvalidValueError(f"`{name}` must be a path, but got {short(value)}.")
    return Path(found)


def items(name: str, value: Any) -> tuple[Any, ...]:
    """Return the items of a list, a tuple, a range or an array. Text and mappings are refused."""
    is_listed = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping | set)
    if not is_listed:
        raise InvalidValueError(f"`{name}` must be a list, but got {short(value)}.")
    try:
        return tuple(value)
    except TypeError:  # an array without dimensions cannot be iterated
        raise InvalidValueError(f"`{name}` must be a list, but got {short(value)}.") from None


def wholes(name: str, value: Any, *, at_least: int) -> tuple[int, ...]:
    """Return whole numbers, given as a list, or as text with spaces or commas in between.

    >>> wholes("epochs", "20 20,1k", at_least=1)
    (20, 20, 1000)
    """
    return tuple(whole(name, each, at_least=at_least) for each in _words_in(name, value))


def seeds(name: str, value: Any) -> tuple[int, ...]:
    """Return the seeds of runs, each once. One whole number is one seed.

    In text, spaces or commas are between seeds, and 0-4 stands for 0, 1, 2, 3 and 4.

    >>> seeds("seeds", range(3))
    (0, 1, 2)
    >>> seeds("seeds", "0-2, 7")
    (0, 1, 2, 7)
    """
    found: list[int] = []
    is_one = _as_integer(value) is not None
    for each in _words_in(name, [value] if is_one else value):
        found += _seeds_in(name, each)
    if len(set(found)) < len(found):
        raise InvalidValueError(f"`{name}` must be different, but got {short(found)}.")
    return tuple(found)


def _words_in(name: str, value: Any) -> tuple[Any, ...]:
    """Return the items of a list, or the words of a text. A text in a list may have several."""
    found: list[Any] = []
    for each in (value,) if isinstance(value, str) else items(name, value):
        found += each.replace(",", " ").split() if isinstance(each, str) else [each]
    return tuple(found)


def _seeds_in(name: str, word: Any) -> Iterable[int]:
    """Return the seeds of one word, which may be a range."""
    if not isinstance(word, str):
        return [whole(name, word, at_least=0)]
    is_negative = word.startswith("-")
    parts = [number_in(part) for part in ([word] if is_negative else word.split("-"))]
    if None in parts or len(parts) > 2:
        examples = "whole numbers such as 0 1 2, 0,1,2 or 0-4"
        raise InvalidValueError(f"`{name}` must be {examples}, but got {word!r}.")
    first = whole(name, parts[0], at_least=0)
    last = whole(name, parts[-1], at_least=0)
    if last < first:
        remedy = f"write {last}-{first}"
        raise InvalidValueError(
            f"A range of `{name}` must begin with its smaller number, but got {word!r}: {remedy}."
        )
    if last - first >= MOST_SEEDS:
        raise InvalidValueError(
            f"A range of `{name}` must have at most {MOST_SEEDS:,} seeds, but got {word!r}."
        )
    return range(first, last + 1)


def settings(name: str, value: Any) -> tuple[str, ...]:
    """Return words such as "cpus=2", which may be given as a dictionary.

    >>> settings("resources", {"cpus": 2})
    ('cpus=2',)
    """
    if isinstance(value, Mapping):
        return tuple(f"{key}={item}" for key, item in value.items())
    return tuple(text(name, each) for each in items(name, value))
