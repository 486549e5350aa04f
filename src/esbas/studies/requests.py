"""Rules for what clients send: names, keys, contexts, log-probabilities.

The argument `what` of these functions begins a message: "The name of a study must be ...".
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from esbas._internal import schema
from esbas.errors import ChoiceError, InvalidValueError
from esbas.selectors.choice import Choice
from esbas.selectors.selector import plain_context

LONGEST_NAME = 200  # characters of the names of studies and arms, and of keys
MOST_ARMS = 1000
MOST_NUMBERS = 10_000  # of a context, and of the log-probabilities of an episode

_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check_name(name: Any, what: str) -> str:
    """Return the name, if it is text of 1 to 200 characters that both databases can store."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise InvalidValueError(
            f"{what} must be text of 1 to {LONGEST_NAME} characters, but got {schema.short(name)}."
        )
    if _UNSTORABLE.search(name):
        raise InvalidValueError(
            f"{what} must be without NUL and halves of surrogate pairs, but got {name!r}: "
            "use other characters."
        )
    return name


def check_key(key: Any) -> None:
    """Raise an error unless this is a key, or None."""
    if key is not None:
        check_name(key, "A key")


def check_seconds(seconds: Any, what: str) -> None:
    """Raise an error unless this is a positive number of seconds, or None."""
    if seconds is None:
        return
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or not 0 < seconds < math.inf:
        raise InvalidValueError(
            f"{what} must be a positive number of seconds, but got {schema.short(seconds)}."
        )


def check_arms(arms: Iterable[Any], what: str) -> list[str]:
    """Return the names as a list, if they are 1 to 1,000 different names."""
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise InvalidValueError(
            f"{what} must be a list of names such as ['a', 'b'], but got {schema.short(arms)}."
        )
    names = [check_name(each, "The name of an arm") for each in arms]
    if not 0 < len(names) <= MOST_ARMS or len(set(names)) < len(names):
        raise InvalidValueError(
            f"{what} must be 1 to {MOST_ARMS} different names, but got {schema.short(names)}."
        )
    return names


def check_context(context: Any) -> list[float] | None:
    """Return the context as plain numbers."""
    if context is None:
        return None
    return _bounded(plain_context(context), "A context", "pass features instead")


def check_log_probs(log_probs: Any) -> dict[str, list[float]] | None:
    """Return the log-probabilities of an episode's actions as plain numbers, by arm."""
    if log_probs is None:
        return None
    if not isinstance(log_probs, Mapping):
        raise InvalidValueError(
            "`log_probs` must be numbers by arm such as {'a': [-0.1, -2.0]}, but got "
            f"{schema.short(log_probs)}."
        )
    found = {}
    for arm, given in log_probs.items():
        name = check_name(arm, "The name of an arm")
        found[name] = _bounded(plain_context(given), "`log_probs` of an arm", "leave them out")
    lengths = sorted({len(numbers) for numbers in found.values()})
    if len(lengths) != 1 or lengths == [0]:
        raise InvalidValueError(
            "`log_probs` must have one number per action for every arm, but got the lengths "
            f"{lengths}."
        )
    return found


def number_of(choice: Choice | int) -> tuple[int, str | None]:
    """Return the number of a choice, and its arm if that is known."""
    if isinstance(choice, Choice):
        return choice.number, choice.arm
    if isinstance(choice, bool) or not isinstance(choice, int):
        raise ChoiceError(
            f"A choice must be what ask() returned, or its number, but got {schema.short(choice)}."
        )
    return choice, None


def same_arm(number: int, arm: str | None, asked: str | None) -> str | None:
    """Return the arm of a choice; raise an error if the caller's choice has another one."""
    if arm not in (None, asked):
        raise ChoiceError(
            f"Choice {number} of this study has the arm {asked!r}, but got one with the arm "
            f"{arm!r}: call ask() for a new one."
        )
    return asked


def _bounded(numbers: Sequence[float], what: str, remedy: str) -> list[float]:
    if len(numbers) > MOST_NUMBERS:
        raise InvalidValueError(
            f"{what} must have at most {MOST_NUMBERS:,} numbers, but got {len(numbers):,}: "
            f"{remedy}."
        )
    return list(numbers)
