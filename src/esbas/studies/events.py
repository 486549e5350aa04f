"""The events that the log of a study consists of."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from esbas._internal import schema
from esbas.errors import InvalidValueError, StoreError
from esbas.selectors import Choice

ASKED = "asked"
TOLD = "told"
WITHDRAWN = "withdrawn"
EXPIRED = "expired"
ARM_ADDED = "arm_added"
ARM_REMOVED = "arm_removed"
EPOCH_CLAIMED = "epoch_claimed"
EPOCH_READY = "epoch_ready"
EPOCH_RELEASED = "epoch_released"

KINDS: dict[str, tuple[str, ...]] = {
    ASKED: ("number", "arm", "epoch"),
    TOLD: ("number", "arm", "value"),
    WITHDRAWN: ("number", "arm"),
    EXPIRED: ("number", "arm"),
    ARM_ADDED: ("arm",),
    ARM_REMOVED: ("arm",),
    # Without an epoch, none was due; but from now on, epochs start only when they are claimed.
    EPOCH_CLAIMED: (),
    EPOCH_READY: ("epoch",),
    EPOCH_RELEASED: ("epoch",),
}
"""The kinds of events, and the columns that each must have."""


class Event(NamedTuple):
    """A row of the log. The events, in their order, determine the state of the selector."""

    seq: int
    kind: str  # a key of `KINDS`
    number: int | None = None  # of the choice
    arm: str | None = None
    value: float | None = None
    # The probability with which the arm was chosen; None if the selector cannot compute it
    propensity: float | None = None
    epoch: int | None = None
    at: float = 0.0  # seconds since 1970
    key: str | None = None  # the client's name for its request
    data: Mapping[str, Any] = {}
    """What only some kinds have.

    - asked: `among` and `context`, if given;
    - told: `log_probs`, if given, and `late` if the choice had expired;
    - arm_added: `stationary`;
    - epoch_claimed: `claimant` and `until`;
    - epoch_released: `expired`, if the claim had expired.
    """


COLUMNS = ", ".join(Event._fields)


def to_row(event: Event) -> tuple[Any, ...]:
    """Return the event as the values of a row."""
    data = json.dumps(event.data) if event.data else None
    return (*event[:-1], data)


def from_row(row: Sequence[Any]) -> Event:
    """Return the event in a row. A row that a study cannot have written raises a StoreError."""
    data = {} if row[-1] is None else _data(row)
    event = Event._make((*row[:-1], data))
    types = tuple(map(type, row))
    if (event.kind, types) not in _FITTING:
        _check_types(row, event.kind, types)
    # One test for all numbers, because this runs for every event: the sum is finite if each one is.
    if not math.isfinite(event.at + (event.value or 0.0) + (event.propensity or 0.0)):
        raise _damaged(row, "its numbers are not finite")
    return event


# Kinds and types that were found to fit
_FITTING: set[tuple[str, tuple[type, ...]]] = set()
# The types of the columns, in the order of the fields of `Event`
_TYPES = (int, str, int, str, float, float, int, float, str, str)


def _check_types(row: Sequence[Any], kind: object, types: tuple[type, ...]) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise _damaged(row, f"there is no kind {schema.short(kind)}")
    needed = ("seq", "at", *KINDS[kind])
    for name, found, known in zip(Event._fields, types, _TYPES, strict=True):
        absent = found is type(None) and name not in needed
        if found is not known and not absent:
            raise _damaged(row, f"its {name} does not fit {kind!r}")
    _FITTING.add((kind, types))


def _data(row: Sequence[Any]) -> dict[str, Any]:
    try:
        data = schema.read_json(row[-1], "its data")
        schema.check(data, {str: Any}, "its data")
    except (InvalidValueError, TypeError) as error:
        raise _damaged(row, str(error)) from None
    return dict(data)


def choice_of(event: Event, *, with_context: bool) -> Choice:
    """Return the choice that an event of the kind "asked" records."""
    # Columns that this kind has
    assert event.number is not None
    assert event.arm is not None
    assert event.epoch is not None
    context = None
    if with_context and event.data.get("context") is not None:
        context = tuple(event.data["context"])
    return Choice(
        number=event.number,
        arm=event.arm,
        epoch=event.epoch,
        context=context,
        propensity=event.propensity,
    )


def _damaged(row: Sequence[Any], cause: str) -> StoreError:
    # The cause may be a sentence about the data that ends with the same remedy.
    cause = cause.removesuffix(".").removesuffix(f": {schema.REMEDY}")
    return StoreError(
        f"Event {schema.short(row[0])} of the log is damaged ({cause}): {schema.REMEDY}."
    )
