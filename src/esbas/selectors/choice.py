"""What a selector decides: a choice, and what a new selector returns for it."""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from esbas._internal import schema
from esbas.errors import InvalidValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A token: the arm that controls the next episode.

    Pass it to `tell` with the episode's value, or to `withdraw`.
    """

    number: int  # meta-time τ, from 1
    arm: str
    epoch: int  # β, from 0; always 0 without epochs
    # What the arm was chosen for. Only selectors that use contexts keep it.
    context: tuple[float, ...] | None = None
    # The probability with which the arm was chosen. None: the selector cannot compute it.
    propensity: float | None = None


class Pick(NamedTuple):
    """What `Selector.pick` returns."""

    arm: str
    propensity: float | None = 1.0
    note: Any = None  # plain data that comes back with the value of the episode


def check_value(value: Any) -> float:
    """Return the value of an episode as a finite number, or raise an error."""
    number = math.nan
    if not isinstance(value, str | bytes):  # `float` would read "0.7"
        with suppress(TypeError, ValueError, OverflowError):
            number = float(value)  # also of NumPy's numbers
    if not math.isfinite(number):
        raise not_finite(value)
    return number


def not_finite(value: Any) -> InvalidValueError:
    """Return the error for a value that is not a finite number."""
    return InvalidValueError(
        f"A value must be finite, but got {schema.short(value)}: "
        "tell a finite one, or withdraw the choice."
    )
