"""What a selector decides: a choice, and what a new selector returns for it."""

from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A token: the arm that controls the next episode. Pass it to `tell` with the episode's value, or to `withdraw`."""

    number: int  # meta-time τ, from 1
    arm: str
    epoch: int  # β, from 0; always 0 without epochs
    context: tuple[float, ...] | None = None  # what the arm was chosen for; only kept by selectors that use it
    propensity: float | None = None  # the probability with which the arm was chosen; None if the selector cannot compute it


class Pick(NamedTuple):
    """What `Selector.pick` returns."""

    arm: str
    propensity: float | None = 1.0
    note: Any = None  # plain data that comes back with the value of the episode
