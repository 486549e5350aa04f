"""Checks of plain data that is read back: states, save files, settings.

Data of the wrong shape raises one sentence. A shape is one of:

- a type: `str`, `bool`, `int`, `float` (finite, whole numbers included), `dict` or `list`; `Any`
  for any plain data or arrays;
- `None`, or another constant such as `"run"`;
- `{"key": shape}`: a dictionary with exactly these keys; `{"key": shape, str: shape}`: with these
  keys and any others;
- `[shape]`: a list of any length; `(shape, shape)`: a list of exactly these items;
- a `Number`, `ArrayOf` or `AnyOf`.
"""

import copy
import json
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args

import numpy as np

from esbas.errors import EsbasError, InvalidValueError, counted

MAX_DEPTH = 64  # of nested lists and dictionaries
MAX_DIGITS = 320  # of a number in JSON: more than any float needs
REMEDY = "go back to an earlier copy"


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number between `min` and `max`, both allowed.

    By default, whole numbers have at most 64 bits. With `finite=False`, any float is accepted,
    infinities and NaN included.
    """

    min: float | None = None
    max: float | None = None
    whole: bool = False
    finite: bool = True

    def accepts(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int if self.whole else int | float):
            return False
        if not self.finite:
            return isinstance(value, float)
        limit = 2**63 - 1 if self.whole else sys.float_info.max
        smallest = -limit if self.min is None else self.min
        largest = limit if self.max is None else self.max
        return bool(smallest <= value <= largest)

    def __str__(self) -> str:
        words = ["a"]
        if self.whole:
            words.append("whole")
        elif self.finite:
            words.append("finite")
        words.append("number")
        bounds = []
        if self.min is not None:
            bounds.append(f">= {self.min}")
        if self.max is not None and self.max < 2**64:  # a larger one is hard to read
            bounds.append(f"<= {self.max}")
        if bounds:
            words.append(" and ".join(bounds))
        return " ".join(words)


COUNT = Number(min=0, whole=True)
Count = Annotated[int, COUNT]
"""The type of a field that is a whole number >= 0; read by `fields_of`."""
NonNegative = Annotated[float, Number(min=0)]
"""The type of a field that is a number >= 0; read by `fields_of`."""


@dataclass(frozen=True)
class ArrayOf:
    """A NumPy array.

    Attributes:
        kinds: letters of `dtype.kind` ("f": float, "iu": integer, "b": bool).
        shape: the size of each axis; None: any size.
    """

    kinds: str
    shape: tuple[int | None, ...]

    def accepts(self, value: Any) -> bool:
        if not isinstance(value, np.ndarray) or value.dtype.kind not in self.kinds:
            return False
        if value.ndim != len(self.shape):
            return False
        sizes = zip(self.shape, value.shape, strict=True)
        return all(size is None or size == found for size, found in sizes)

    def __str__(self) -> str:
        return f"an array of kind {self.kinds!r} and shape {self.shape}".replace("None", "any")


class AnyOf:
    """One of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class _Mismatch(Exception):  # noqa: N818  # never leaves this file
    """The path, the rule and the value."""


def check(value: Any, shape: Any, where: str, *, remedy: str = REMEDY) -> None:
    """Raise an InvalidValueError unless the value has this shape.

    >>> check(-1, COUNT, "the epoch", remedy="fix it")
    Traceback (most recent call last):
    esbas.errors.InvalidValueError: The epoch must be a whole number >= 0, but got -1: fix it.
    """
    try:
        _check(value, shape, MAX_DEPTH)
    except _Mismatch as mismatch:
        path, rule, got = mismatch.args
        if path:
            key = repr(path.removeprefix(".")[:200])[1:-1]  # keys can be any text
            expected = f"have {rule} at `{key}`"
        elif rule.startswith("the keys"):
            expected = f"have {rule}"
        else:
            expected = f"be {rule}"
        raise _invalid(f"{where} must {expected}, but got {short(got)}", remedy) from None


@contextmanager
def restored_on_error(part: Any, where: str = "") -> Iterator[None]:
    """Load the old state of `part` again if the block fails.

    With `where`, errors of plug-ins become one sentence.
    """
    before = None
    # A part that cannot be saved cannot be restored, but it can be loaded.
    with suppress(Exception):
        before = copy.deepcopy(part.state_dict())
    try:
        yield
    except BaseException as error:
        if before is not None:
            with suppress(Exception):
                part.load_state_dict(before)
        if isinstance(error, EsbasError) or not isinstance(error, Exception) or not where:
            raise
        raise _invalid(
            f"{where} must fit, but {type(error).__name__}: {str(error)[:200]}", REMEDY
        ) from error


def fields_of(record: type) -> dict[Any, Any]:
    """Return the shape of a dataclass, from the types of its fields."""
    shape: dict[Any, Any] = {}
    for field in fields(record):
        shape[field.name] = Any
        # For `Annotated[int, COUNT]`, the shape is the annotation.
        for candidate in (*get_args(field.type)[1:], field.type):
            if _known(candidate):
                shape[field.name] = candidate
                break
    return shape


def like(value: Any) -> Any:
    """Return the shape of values with the same type as this one."""
    for kind in (bool, int, float, str, dict, list):
        if isinstance(value, kind):
            return kind
    return Any


def read_json(text: str | bytes, where: str, *, remedy: str = REMEDY) -> Any:
    """Parse JSON.

    Text that is not JSON, is nested too deeply, or has numbers of more than 320 digits raises one
    sentence.
    """

    def parse_int(digits: str) -> int:
        return int(_bounded(digits))

    def parse_float(digits: str) -> float:
        return float(_bounded(digits))

    try:
        return json.loads(text, parse_int=parse_int, parse_float=parse_float)
    except (ValueError, RecursionError) as error:
        problem = f"{type(error).__name__}: {str(error)[:200]}"
        raise _invalid(f"{where} must be JSON, but {problem}", remedy) from None


def short(value: Any) -> str:
    """Return the value for a message: on one line, never long, never slow."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    if value is None or isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if isinstance(value, dict):
        return f"a {kind} of {counted(len(value), 'item')}"
    if isinstance(value, list | tuple):
        if len(value) > 8 or not all(isinstance(item, int | float | str) for item in value):
            return f"a {kind} of {counted(len(value), 'item')}"
        return f"[{', '.join(map(short, value))}]"
    return f"a value of type {kind}"


def _invalid(problem: str, remedy: str) -> InvalidValueError:
    """Return the error with a sentence that begins with a capital letter.

    It does not if it begins with a path, or with "its": then it becomes part of another sentence.
    """
    first_word = problem.split(maxsplit=1)[0]
    if first_word.isalpha() and first_word != "its":
        problem = problem[0].upper() + problem[1:]
    return InvalidValueError(f"{problem}: {remedy.rstrip('.')}.")


def _check(value: Any, shape: Any, depth: int) -> None:
    if not depth:
        raise _Mismatch("", f"at most {MAX_DEPTH} nested levels", value)
    if shape is Any:
        if not isinstance(value, dict | list | tuple):
            return
        shape = {str: Any} if isinstance(value, dict) else [Any]
    if isinstance(shape, type):
        shape = _SHAPES.get(shape, shape)
    if isinstance(shape, Number | ArrayOf):
        if not shape.accepts(value):
            raise _Mismatch("", str(shape), value)
    elif isinstance(shape, AnyOf):
        _check_any(value, shape.shapes, depth)
    elif isinstance(shape, dict):
        _check_dict(value, shape, depth)
    elif isinstance(shape, list):
        if not isinstance(value, list | tuple):
            raise _Mismatch("", "a list", value)
        if len(value) <= 100 or not _all_fit(value, shape[0]):
            _check_items(value, shape * len(value), depth)
    elif isinstance(shape, tuple):
        if not isinstance(value, list | tuple) or len(value) != len(shape):
            raise _Mismatch("", f"a list of length {len(shape)}", value)
        _check_items(value, shape, depth)
    elif isinstance(shape, type):
        if not isinstance(value, shape):
            raise _Mismatch("", _TYPE_NAMES.get(shape, shape.__name__), value)
    elif type(value) is not type(shape) or value != shape:
        raise _Mismatch("", repr(shape), value)


def _check_items(values: Any, shapes: Any, depth: int) -> None:
    for i, (item, shape) in enumerate(zip(values, shapes, strict=True)):
        try:
            _check(item, shape, depth - 1)
        except _Mismatch as mismatch:
            path, rule, got = mismatch.args
            raise _Mismatch(f"[{i}]{path}", rule, got) from None


def _all_fit(values: Any, shape: Any) -> bool:
    """Return whether many values fit, where this can be seen at once.

    If it is False, the values may still fit: they are then checked one by one.
    """
    if isinstance(shape, type):
        shape = _SHAPES.get(shape, shape)
    kinds = set(map(type, values))
    if isinstance(shape, AnyOf):
        rest = values
        if None in shape.shapes and type(None) in kinds:
            rest = [value for value in values if value is not None]
        return not rest or any(_all_fit(rest, each) for each in shape.shapes)
    if shape is Any:
        return kinds <= {bool, int, float, str, type(None)}
    if not isinstance(shape, Number) or not shape.finite or kinds not in ({int}, {float}):
        return False
    if kinds == {float} and not math.isfinite(sum(values)):  # NaN, which min and max may miss
        return False
    return shape.accepts(min(values)) and shape.accepts(max(values))


def _check_dict(value: Any, shape: dict[Any, Any], depth: int) -> None:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise _Mismatch("", "a dictionary with text as keys", value)
    needed = [key for key in shape if key is not str]
    if not value.keys() >= set(needed) or (str not in shape and len(value) > len(needed)):
        raise _Mismatch("", f"the keys {', '.join(needed)}"[:300], ", ".join(value))
    for key, item in value.items():
        try:
            _check(item, shape[key] if key in shape else shape[str], depth - 1)
        except _Mismatch as mismatch:
            path, rule, got = mismatch.args
            raise _Mismatch(f".{key}{path}", rule, got) from None


def _check_any(value: Any, shapes: tuple[Any, ...], depth: int) -> None:
    found: list[_Mismatch] = []
    for shape in shapes:
        try:
            return _check(value, shape, depth)
        except _Mismatch as mismatch:
            found.append(mismatch)
    deepest = max(found, key=_length_of_path)
    if deepest.args[0]:
        raise deepest
    raise _Mismatch("", " or ".join(mismatch.args[1] for mismatch in found), value)


def _length_of_path(mismatch: _Mismatch) -> int:
    return len(mismatch.args[0])


_TYPE_NAMES: dict[type, str] = {str: "text", bool: "true or false"}
_SHAPES: dict[Any, Any] = {int: Number(whole=True), float: Number(), dict: {str: Any}, list: [Any]}


def _known(shape: Any) -> bool:
    return isinstance(shape, Number | ArrayOf | AnyOf | list) or shape in (bool, int, float, str)


def _bounded(digits: str) -> str:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, which is more than {MAX_DIGITS}")
    return digits
