"""Rules for what clients send: names, keys, contexts, log-probabilities. All of it is data."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from esbas import schema
from esbas.errors import ChoiceError, InvalidValueError
from esbas.selectors.choice import Choice
from esbas.selectors.selector import plain_context

LONGEST_NAME = 200  # characters of the names of studies and arms, and of keys
MOST_ARMS = 1000
MOST_NUMBERS = 10_000  # of a context, and of the log-probabilities of an episode

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_name(name: Any, what: str) -> str:
    """The name, if it is text of 1 to 200 characters that both databases can store."""
    remedy = f"use Unicode text of 1 to {LONGEST_NAME} characters"
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidValueError(f"{what} must be text of 1 to {LONGEST_NAME} characters, but got {schema.short(name)}: {remedy}")
    if _UNSTORABLE.search(name):
        raise InvalidValueError(f"{what} must be without NUL and halves of surrogate pairs, but got {name!r}: {remedy}")
    return name


def check_key(key: Any) -> None:
    """Raise an error unless this is a key, or None."""
    if key is not None:
        check_name(key, "a key")


def check_seconds(seconds: Any, what: str) -> None:
    """Raise an error unless this is a positive number of seconds, or None."""
    fits = isinstance(seconds, int | float) and not isinstance(seconds, bool) and 0 < seconds < math.inf
    if seconds is not None and not fits:
        raise InvalidValueError(f"{what} must be a positive number of seconds, but got {schema.short(seconds)}: leave it out")


def check_arms(arms: Iterable[Any], what: str) -> list[str]:
    """The names as a list."""
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidValueError(f"{what} must be a list of names, but got {schema.short(arms)}: write ['a', 'b']")
    names = [check_name(each, "the name of an arm") for each in arms]
    if not 0 < len(names) <= MOST_ARMS or len(set(names)) < len(names):
        raise InvalidValueError(f"{what} must be 1 to {MOST_ARMS} different names, but got {schema.short(names)}: change them")
    return names


def check_context(context: Any) -> list[float] | None:
    """The context as plain numbers."""
    return None if context is None else _bounded(plain_context(context), "a context", "pass features instead")


def check_log_probs(log_probs: Any) -> dict[str, list[float]] | None:
    """The log-probabilities of the actions of an episode under the policies of arms, as plain numbers of equal length."""
    if log_probs is None:
        return None
    if not isinstance(log_probs, Mapping):
        raise InvalidValueError(
            f"log_probs must be numbers by arm, but got {schema.short(log_probs)}: write {{'a': [-0.1, -2.0]}}"
        )
    found = {
        check_name(arm, "the name of an arm"): _bounded(plain_context(numbers), "log_probs of an arm", "leave them out")
        for arm, numbers in log_probs.items()
    }
    lengths = sorted({len(numbers) for numbers in found.values()})
    if len(lengths) != 1 or lengths == [0]:
        raise InvalidValueError(f"log_probs must have one number per action and arm, but have the lengths {lengths}: fix them")
    return found


def number_of(choice: Choice | int) -> tuple[int, str | None]:
    """The number of a choice, and its arm if that is known."""
    if isinstance(choice, Choice):
        return choice.number, choice.arm
    if isinstance(choice, bool) or not isinstance(choice, int):
        raise ChoiceError(f"a choice is what ask() returned, or its number, but got {schema.short(choice)}: pass one of them")
    return choice, None


def same_arm(number: int, arm: str | None, asked: str | None) -> str | None:
    """The arm of a choice; an error if the caller's token has another one."""
    if arm not in (None, asked):
        raise ChoiceError(
            f"a choice must come from this study, but choice {number} has the arm {asked!r}, not {arm!r}: ask again"
        )
    return asked


def check_value(value: Any) -> float:
    """The value as a finite number."""
    try:
        number = float(value)  # also of NumPy
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidValueError(
            f"a value must be finite, but got {schema.short(value)}: tell a finite one, or withdraw the choice"
        )
    return number


def _bounded(numbers: Sequence[float], what: str, remedy: str) -> list[float]:
    if len(numbers) > MOST_NUMBERS:
        raise InvalidValueError(f"{what} must have at most {MOST_NUMBERS:,} numbers, but got {len(numbers):,}: {remedy}")
    return list(numbers)
