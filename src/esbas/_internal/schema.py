"""Checks of plain data that is read back: states, save files, settings. Data of the wrong shape raises one sentence.

A shape is one of:

- a type: `str`, `bool`, `int`, `float` (finite, whole numbers included), `dict` or `list`; `Any` for any plain data or arrays;
- `None`, or another constant such as `"run"`;
- `{"key": shape}`: a dictionary with exactly these keys; `{"key": shape, str: shape}`: with these keys and any others;
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

from esbas.errors import EsbasError, InvalidValueError

MAX_DEPTH = 64  # of nested lists and dictionaries
MAX_DIGITS = 320  # of a number in JSON: more than any float needs
REMEDY = "go back to an earlier copy"


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number between `min` and `max`, both allowed. By default, whole numbers have at most 64 bits."""

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
        return bool((-limit if self.min is None else self.min) <= value <= (limit if self.max is None else self.max))

    def __str__(self) -> str:
        bounds = [
            f"{sign} {bound}" for sign, bound in ((">=", self.min), ("<=", self.max)) if bound is not None and bound < 2**64
        ]
        return f"a {'whole ' if self.whole else 'finite ' if self.finite else ''}number {' and '.join(bounds)}".strip()


COUNT = Number(min=0, whole=True)
Count = Annotated[int, COUNT]
"""The type of a field that is a whole number >= 0; read by `fields_of`."""
NonNegative = Annotated[float, Number(min=0)]
"""The type of a field that is a number >= 0; read by `fields_of`."""


@dataclass(frozen=True)
class ArrayOf:
    """A NumPy array. `kinds` are letters of `dtype.kind` ("f": float, "iu": integer, "b": bool); None in `shape`: any size."""

    kinds: str
    shape: tuple[int | None, ...]

    def accepts(self, value: Any) -> bool:
        fits = isinstance(value, np.ndarray) and value.dtype.kind in self.kinds and value.ndim == len(self.shape)
        return fits and all(size in (None, found) for size, found in zip(self.shape, value.shape, strict=True))

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

    >>> check({"epoch": -1}, {"epoch": COUNT}, "the state")
    Traceback (most recent call last):
    esbas.errors.InvalidValueError: the state must have a whole number >= 0 at `epoch`, but got -1: go back to an earlier copy
    """
    try:
        _check(value, shape, MAX_DEPTH)
    except _Mismatch as mismatch:
        path, rule, got = mismatch.args
        place = repr(path.removeprefix(".")[:200])[1:-1]  # keys can be any text
        at = f"have {rule} at `{place}`" if path else f"have {rule}" if rule.startswith("the keys") else f"be {rule}"
        raise InvalidValueError(f"{where} must {at}, but got {short(got)}: {remedy}") from None


def require(holds: bool, rule: str, where: str, *, remedy: str = REMEDY, **got: object) -> None:
    """Raise an InvalidValueError unless a rule about several parts of the data holds."""
    if not holds:
        values = ", ".join(f"{name}={short(value)}" for name, value in got.items())
        raise InvalidValueError(f"in {where}, {rule} must hold, but got {values}: {remedy}")


@contextmanager
def restored_on_error(part: Any, where: str = "") -> Iterator[None]:
    """Load the old state of `part` again if the block fails. With `where`, errors of plug-ins become one sentence."""
    before = None
    with suppress(Exception, SystemExit):  # a part that cannot be saved cannot be restored, but it can be loaded
        before = copy.deepcopy(part.state_dict())
    try:
        yield
    except BaseException as error:
        if before is not None:
            with suppress(Exception, SystemExit):
                part.load_state_dict(before)
        if isinstance(error, EsbasError) or not isinstance(error, Exception) or not where:
            raise
        raise InvalidValueError(f"{where} must fit, but {type(error).__name__}: {str(error)[:200]}: {REMEDY}") from error


def fields_of(record: type) -> dict[Any, Any]:
    """The shape of a dataclass, from the types of its fields."""
    return {
        field.name: next((each for each in (*get_args(field.type)[1:], field.type) if _known(each)), Any)
        for field in fields(record)
    }


def like(value: Any) -> Any:
    """The shape of values with the same type as this one."""
    return next((kind for kind in (bool, int, float, str, dict, list) if isinstance(value, kind)), Any)


def read_json(text: str | bytes, where: str, *, remedy: str = REMEDY) -> Any:
    """Parse JSON. Text that is not JSON, is nested too deeply, or has numbers of more than 320 digits raises one sentence."""
    try:
        return json.loads(
            text, parse_int=lambda digits: int(_bounded(digits)), parse_float=lambda digits: float(_bounded(digits))
        )
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"{where} must be JSON, but {type(error).__name__}: {str(error)[:200]}: {remedy}") from None


def short(value: Any) -> str:
    """The value for a message: on one line, never long, never slow."""
    if isinstance(value, int) and value.bit_length() > 200:
        return "an integer of more than 60 digits"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:60] + "...")
    if isinstance(value, list | tuple | dict):
        small = isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(item, int | float | str) for item in value)
        return f"[{', '.join(map(short, value))}]" if small else f"a {type(value).__name__} of {len(value)} items"
    return repr(value) if value is None or isinstance(value, int | float) else f"a value of type {type(value).__name__}"


def _check(value: Any, shape: Any, depth: int) -> None:
    if not depth:
        raise _Mismatch("", f"at most {MAX_DEPTH} nested levels", value)
    if shape is Any:
        if not isinstance(value, dict | list | tuple):
            return
        shape = {str: Any} if isinstance(value, dict) else [Any]
    shape = _SHAPES.get(shape, shape) if isinstance(shape, type) else shape
    if isinstance(shape, Number | ArrayOf):
        if not shape.accepts(value):
            raise _Mismatch("", str(shape), value)
    elif isinstance(shape, AnyOf):
        _check_any(value, shape.shapes, depth)
    elif isinstance(shape, dict):
        _check_dict(value, shape, depth)
    elif isinstance(shape, list | tuple):
        if not isinstance(value, list | tuple) or (isinstance(shape, tuple) and len(value) != len(shape)):
            raise _Mismatch("", "a list" if isinstance(shape, list) else f"a list of length {len(shape)}", value)
        if isinstance(shape, list) and len(value) > 100 and _all_fit(value, shape[0]):
            return
        for i, item in enumerate(value):
            try:
                _check(item, shape[i if isinstance(shape, tuple) else 0], depth - 1)
            except _Mismatch as mismatch:
                raise _Mismatch(f"[{i}]{mismatch.args[0]}", *mismatch.args[1:]) from None
    elif not (isinstance(value, shape) if isinstance(shape, type) else type(value) is type(shape) and value == shape):
        names = {str: "text", bool: "true or false"}
        raise _Mismatch("", names.get(shape, shape.__name__) if isinstance(shape, type) else repr(shape), value)


def _all_fit(values: Any, shape: Any) -> bool:
    """Whether many values fit, where this can be seen at once. False says nothing: the values are then checked one by one."""
    shape = _SHAPES.get(shape, shape) if isinstance(shape, type) else shape
    kinds = set(map(type, values))
    if isinstance(shape, AnyOf):
        rest = [value for value in values if value is not None] if None in shape.shapes and type(None) in kinds else values
        return not rest or any(_all_fit(rest, each) for each in shape.shapes)
    if shape is Any:
        return kinds <= {bool, int, float, str, type(None)}
    if not isinstance(shape, Number) or not shape.finite or kinds not in ({int}, {float}):
        return False
    return (kinds == {int} or math.isfinite(sum(values))) and shape.accepts(min(values)) and shape.accepts(max(values))


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
            raise _Mismatch(f".{key}{mismatch.args[0]}", *mismatch.args[1:]) from None


def _check_any(value: Any, shapes: tuple[Any, ...], depth: int) -> None:
    found: list[_Mismatch] = []
    for shape in shapes:
        try:
            return _check(value, shape, depth)
        except _Mismatch as mismatch:
            found.append(mismatch)
    deepest = max(found, key=lambda mismatch: len(mismatch.args[0]))
    if deepest.args[0]:
        raise deepest
    raise _Mismatch("", " or ".join(mismatch.args[1] for mismatch in found), value)


_SHAPES: dict[Any, Any] = {int: Number(whole=True), float: Number(), dict: {str: Any}, list: [Any]}


def _known(shape: Any) -> bool:
    return isinstance(shape, Number | ArrayOf | AnyOf | list) or shape in (bool, int, float, str)


def _bounded(digits: str) -> str:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"a number has {len(digits)} digits, which is more than {MAX_DIGITS}")
    return digits
