"""The notation of the paper's table for portfolios.

Examples are `all-4 + constant-1.10` and `8*n-1-simple-2`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from esbas.errors import InvalidValueError, require, unknown

_LEARNER = re.compile(r"(?:n-(?P<noise>[1-9]\d*)-)?(?P<base>simple|fast)(?P<squares>-2)?")
_CONSTANT = re.compile(r"constant-(?P<mu>\d+\.\d+)")
_GROUP = re.compile(
    r"all-(?:4(?:-n-(?P<noise4>[1-9]\d*))?|2-(?:n-(?P<noise2>[1-9]\d*)-)?(?P<base>simple|fast))"
)
_TERM = re.compile(r"(?:(?P<times>\d+) ?\* ?)?(?P<name>\S+)")
_MARK = re.compile(r"\s*\((?P<mark>[^()]*)\)\s*$")
_MARKS = "no reset", "second"

# For suggestions in error messages.
_LEARNERS = ("simple", "fast", "simple-2", "fast-2")
_NOISY_LEARNERS = tuple(f"n-{noise}-{name}" for noise in (1, 2, 3) for name in _LEARNERS)
_GROUPS = ("all-4", "all-4-n-1", "all-2-simple", "all-2-fast", "all-2-n-1-simple", "all-2-n-1-fast")

MAX_NOISE = 8
"""Maximum number of noise features of a learner."""
MAX_LEARNERS = 16
"""Maximum number of learners in a portfolio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueLearner:
    """A learner with these features or, if `mu` is given, a constant policy of that mean return."""

    base: str = "simple"  # or "fast": without the time feature
    squares: bool = False  # whether squares and products of the features are added
    noise: int = 0  # the number of noise features
    mu: str = ""  # such as "1.01"

    @property
    def name(self) -> str:
        """The name in the paper."""
        if self.mu:
            return f"constant-{self.mu}"
        prefix = f"n-{self.noise}-" if self.noise else ""
        suffix = "-2" if self.squares else ""
        return prefix + self.base + suffix


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: a portfolio, and whether the arms of its constant policies are reset."""

    portfolio: str  # the terms, joined by " + "
    learners: tuple[DialogueLearner, ...]
    reset: bool = True  # whether the arms of constant policies are also reset when an epoch starts
    second: bool = False  # whether to use the second half of the constants' policies

    @property
    def name(self) -> str:
        """The name of the row, which `parse` can read."""
        name = self.portfolio
        if not self.reset:
            name += " (no reset)"
        if self.second:
            name += " (second)"
        return name

    @property
    def constants(self) -> tuple[DialogueLearner, ...]:
        """The constant policies."""
        return tuple(learner for learner in self.learners if learner.mu)

    def without_reset(self) -> "TableRow":
        """Return the same row without resets of constant arms."""
        return replace(self, reset=not self.constants)


def parse(text: str, *, constants: Iterable[str] = ()) -> TableRow:
    """Return the row with this name.

    A name consists of terms separated by `+`: a learner, a group of them, or `N*learner`.

    Args:
        text: such as `simple-2 + constant-1.01 (no reset)`.
        constants: the mean returns of the known constant policies; used for suggestions in error
            messages.
    """
    portfolio, marks = _split_marks(text)
    terms = [" ".join(term.split()) for term in portfolio.split("+")]
    if "" in terms:
        raise InvalidValueError(
            f"A portfolio must be terms joined by '+', such as 'simple-2 + fast-2', "
            f"but got {text!r}."
        )
    known = [*_LEARNERS, *_NOISY_LEARNERS, *_GROUPS]
    known += [f"constant-{mu}" for mu in constants]
    learners: list[DialogueLearner] = []
    for term in terms:
        learners += _learners_of(term, known)
    require(
        len(learners) <= MAX_LEARNERS,
        f"A portfolio must have at most {MAX_LEARNERS} learners, but got {len(learners)}.",
    )
    row = TableRow(
        " + ".join(_tidy(term) for term in terms),
        tuple(learners),
        reset="no reset" not in marks,
        second="second" in marks,
    )
    require(
        not marks or bool(row.constants),
        f"A marked row must have a constant policy, but got {text!r}: remove the mark.",
    )
    return row


def _split_marks(text: str) -> tuple[str, list[str]]:
    """Return the portfolio, and the marks behind it without their brackets."""
    marks: list[str] = []
    rest = text
    found = _MARK.search(rest)
    while found is not None:
        mark = " ".join(found["mark"].split())
        if mark not in _MARKS:
            raise unknown("mark of a row", mark, _MARKS)
        marks.append(mark)
        rest = rest[: found.start()]
        found = _MARK.search(rest)
    return rest, marks


def _learners_of(term: str, known: list[str]) -> list[DialogueLearner]:
    """Return the learners of a term. `known` are names for suggestions."""
    name, times = _split_times(term)
    require(
        1 <= times <= MAX_LEARNERS,
        f"N in N*learner must be between 1 and {MAX_LEARNERS}, but got {term!r}.",
    )
    group = _GROUP.fullmatch(name)
    if group is not None:
        noise = _checked_noise(group["noise4"] or group["noise2"], term)
        bases = (group["base"],) if group["base"] else ("simple", "fast")
        plain = [DialogueLearner(base=base, noise=noise) for base in bases]
        squared = [replace(learner, squares=True) for learner in plain]
        return (plain + squared) * times
    learner = _LEARNER.fullmatch(name)
    if learner is not None:
        noise = _checked_noise(learner["noise"], term)
        squares = bool(learner["squares"])
        return [DialogueLearner(base=learner["base"], squares=squares, noise=noise)] * times
    constant = _CONSTANT.fullmatch(name)
    if constant is not None:
        return [DialogueLearner(mu=_two_decimals(constant["mu"]))] * times
    raise unknown("learner", name, known)


def _split_times(term: str) -> tuple[str, int]:
    """Return the name and the number N of a term `N*name`; N is 1 for a term `name`."""
    found = _TERM.fullmatch(term)
    if found is None:
        return term, 1
    return found["name"], int(found["times"] or 1)


def _checked_noise(digits: str | None, term: str) -> int:
    noise = int(digits or 0)
    require(
        noise <= MAX_NOISE,
        f"A learner must have at most {MAX_NOISE} noise features, but got {term!r}.",
    )
    return noise


def _two_decimals(mu: str) -> str:
    whole, decimals = mu.split(".")
    return f"{int(whole)}.{decimals.rstrip('0').ljust(2, '0')}"


def _tidy(term: str) -> str:
    """Return a term in its shortest form."""
    name, times = _split_times(term)
    constant = _CONSTANT.fullmatch(name)
    if constant is not None:
        name = f"constant-{_two_decimals(constant['mu'])}"
    return f"{times}*{name}" if times > 1 else name
