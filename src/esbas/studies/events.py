"""The events that the log of a study consists of."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from esbas import schema
from esbas.errors import InvalidValueError, StoreError
from esbas.selectors import Choice

ASKED, TOLD, WITHDRAWN, EXPIRED = "asked", "told", "withdrawn", "expired"
ARM_ADDED, ARM_REMOVED = "arm_added", "arm_removed"
EPOCH_CLAIMED, EPOCH_READY, EPOCH_RELEASED = "epoch_claimed", "epoch_ready", "epoch_released"

KINDS: dict[str, tuple[str, ...]] = {
    ASKED: ("number", "arm", "epoch"),
    TOLD: ("number", "arm", "value"),
    WITHDRAWN: ("number", "arm"),
    EXPIRED: ("number", "arm"),
    ARM_ADDED: ("arm",),
    ARM_REMOVED: ("arm",),
    EPOCH_CLAIMED: (),  # without an epoch: none was due, but from now on epochs start only if somebody claims them
    EPOCH_READY: ("epoch",),
    EPOCH_RELEASED: ("epoch",),
}
"""The kinds of events, and the columns that each must have."""


class Event(NamedTuple):
    """A row of the log. What happened, in this order, determines the state of the selector."""

    seq: int
    kind: str  # a key of `KINDS`
    number: int | None = None  # of the choice
    arm: str | None = None
    value: float | None = None
    propensity: float | None = None  # the probability with which the arm was chosen; None if the selector cannot compute it
    epoch: int | None = None
    at: float = 0.0  # seconds since 1970
    key: str | None = None  # what the client calls its request
    data: Mapping[str, Any] = {}
    """What only some kinds have.

    asked: `among` and `context`, if given; told: `log_probs`, if given, and `late` if the choice had expired; arm_added:
    `stationary`; epoch_claimed: `claimant` and `until`; epoch_released: `expired`, if its time was over.
    """


COLUMNS = ", ".join(Event._fields)


def to_row(event: Event) -> tuple[Any, ...]:
    """The event as the values of a row."""
    return *event[:-1], json.dumps(event.data) if event.data else None


def from_row(row: Sequence[Any]) -> Event:
    """The event in a row. A row that no study wrote raises a StoreError."""
    event = Event._make((*row[:-1], {} if row[-1] is None else _data(row)))
    types = tuple(map(type, row))
    if (event.kind, types) not in _FITTING:
        _check_types(row, event.kind, types)
    if not math.isfinite(event.at + (event.value or 0.0) + (event.propensity or 0.0)):
        raise _damaged(row, "its numbers are not finite")
    return event


_FITTING: set[tuple[str, tuple[type, ...]]] = set()  # kinds and types that were found to fit
_TYPES = (int, str, int, str, float, float, int, float, str, str)  # of the columns, in the order of the fields of `Event`


def _check_types(row: Sequence[Any], kind: object, types: tuple[type, ...]) -> None:
    if not isinstance(kind, str) or kind not in KINDS:
        raise _damaged(row, f"there is no kind {schema.short(kind)}")
    needed = "seq", "at", *KINDS[kind]
    for name, found, known in zip(Event._fields, types, _TYPES, strict=True):
        if found is not known and (found is not type(None) or name in needed):
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
    """The choice that an event of the kind "asked" records."""
    number, arm, epoch, context = event.number, event.arm, event.epoch, event.data.get("context")
    assert number is not None and arm is not None and epoch is not None  # noqa: PT018  # columns that this kind has
    known = tuple(context) if with_context and context is not None else None
    return Choice(number=number, arm=arm, epoch=epoch, context=known, propensity=event.propensity)


def _damaged(row: Sequence[Any], cause: str) -> StoreError:
    cause = cause.removesuffix(f": {schema.REMEDY}")
    return StoreError(f"every event of a log must be whole, but event {schema.short(row[0])} is not ({cause}): {schema.REMEDY}")
