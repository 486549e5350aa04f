"""The notation of the paper's table for portfolios, such as `all-4 + constant-1.10` or `8*n-1-simple-2`."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from esbas.errors import InvalidValueError, require, unknown

_LEARNER = re.compile(r"(?:n-(?P<noise>[1-9]\d*)-)?(?P<base>simple|fast)(?P<squares>-2)?")
_CONSTANT = re.compile(r"constant-(?P<mu>\d+\.\d+)")
_GROUP = re.compile(r"all-(?:4(?:-n-(?P<noise4>[1-9]\d*))?|2-(?:n-(?P<noise2>[1-9]\d*)-)?(?P<base>simple|fast))")
_TERM = re.compile(r"(?:(?P<times>\d+) ?\* ?)?(?P<name>\S+)")
_MARK = re.compile(r"\s*\((?P<mark>[^()]*)\)\s*$")
_MARKS = "no reset", "second"

MAX_NOISE = 8
"""Maximum number of noise features of a learner."""
MAX_MEMBERS = 16
"""Maximum number of algorithms in a portfolio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueAlgorithm:
    """An algorithm in a portfolio: a learner with these features or, if `mu` is given, a constant policy of that mean return."""

    base: str = "simple"  # or "fast": without the time feature
    squares: bool = False  # whether squares and products of the features are added
    noise: int = 0  # the number of noise features
    mu: str = ""  # such as "1.01"

    @property
    def name(self) -> str:
        """The name in the paper."""
        if self.mu:
            return f"constant-{self.mu}"
        return (f"n-{self.noise}-" if self.noise else "") + self.base + ("-2" if self.squares else "")


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of the table: a portfolio, and whether the arms of its constant policies are reset."""

    portfolio: str  # the terms, joined by " + "
    algorithms: tuple[DialogueAlgorithm, ...]
    reset: bool = True  # whether the arms of constant policies are also reset when an epoch starts
    second: bool = False  # whether to use the second half of the constants' policies

    @property
    def name(self) -> str:
        """The name of the row, which `parse` can read."""
        return self.portfolio + (" (no reset)" if not self.reset else "") + (" (second)" if self.second else "")

    @property
    def constants(self) -> tuple[DialogueAlgorithm, ...]:
        """The constant policies."""
        return tuple(algorithm for algorithm in self.algorithms if algorithm.mu)

    def without_reset(self) -> "TableRow":
        """The same row without resets of constant arms."""
        return replace(self, reset=not self.constants)


def parse(text: str, *, constants: Iterable[str] = ()) -> TableRow:
    """The row with this name: terms separated by `+`, each an algorithm, a group of them, or `N*algorithm`.

    Args:
        text: such as `simple-2 + constant-1.01 (no reset)`.
        constants: the mean returns of the known constant policies; used for suggestions in error messages.
    """
    marks: list[str] = []
    rest = text
    while found := _MARK.search(rest):
        marks.append(" ".join(found["mark"].split()))
        if marks[-1] not in _MARKS:
            raise unknown("mark of a row", marks[-1], _MARKS)
        rest = rest[: found.start()]
    terms = [" ".join(term.split()) for term in rest.split("+")]
    if "" in terms:
        raise InvalidValueError(f"a portfolio must be terms joined by '+', but got {text!r}: for example 'simple-2 + fast-2'")
    known = [*_KNOWN, *(f"constant-{mu}" for mu in constants)]
    members = [_members(term, known) for term in terms]
    algorithms = tuple(algorithm for group in members for algorithm in group)
    require(len(algorithms) <= MAX_MEMBERS, f"a portfolio has at most {MAX_MEMBERS} algorithms", algorithms=len(algorithms))
    names = " + ".join(_tidy(term) for term in terms)
    row = TableRow(names, algorithms, reset="no reset" not in marks, second="second" in marks)
    require(not marks or bool(row.constants), "a marked row has a constant policy", "remove the mark", row=text)
    return row


def _members(term: str, known: list[str]) -> list[DialogueAlgorithm]:
    found = _TERM.fullmatch(term)
    name = found["name"] if found else term
    times = int(found["times"] or 1) if found else 1
    require(1 <= times <= MAX_MEMBERS, f"1 <= N <= {MAX_MEMBERS} in N*algorithm", term=term)
    if group := _GROUP.fullmatch(name):
        noise = int(group["noise4"] or group["noise2"] or 0)
        bases = (group["base"],) if group["base"] else ("simple", "fast")
        require(noise <= MAX_NOISE, f"noise features <= {MAX_NOISE}", term=term)
        return [DialogueAlgorithm(base=base, squares=squares, noise=noise) for squares in (False, True) for base in bases] * times
    if learner := _LEARNER.fullmatch(name):
        noise = int(learner["noise"] or 0)
        require(noise <= MAX_NOISE, f"noise features <= {MAX_NOISE}", term=term)
        return [DialogueAlgorithm(base=learner["base"], squares=bool(learner["squares"]), noise=noise)] * times
    if constant := _CONSTANT.fullmatch(name):
        return [DialogueAlgorithm(mu=_two_decimals(constant["mu"]))] * times
    raise unknown("algorithm", name, known)


def _two_decimals(mu: str) -> str:
    whole, decimals = mu.split(".")
    return f"{int(whole)}.{decimals.rstrip('0').ljust(2, '0')}"


def _tidy(term: str) -> str:
    found = _TERM.fullmatch(term)
    assert found is not None  # `_members` has parsed it
    name = found["name"]
    if constant := _CONSTANT.fullmatch(name):
        name = f"constant-{_two_decimals(constant['mu'])}"
    times = int(found["times"] or 1)
    return f"{times}*{name}" if times > 1 else name


_LEARNERS = ("simple", "fast", "simple-2", "fast-2")
_GROUPS = ("all-4", "all-4-n-1", "all-2-simple", "all-2-fast", "all-2-n-1-simple", "all-2-n-1-fast")
_KNOWN = (*_LEARNERS, *(f"n-{noise}-{name}" for noise in (1, 2, 3) for name in _LEARNERS), *_GROUPS)
