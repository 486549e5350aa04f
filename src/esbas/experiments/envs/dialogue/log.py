"""Logs of negotiation dialogues: one JSON object per line. docs/dialogue-log.md documents the format."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from esbas.errors import EsbasError, InvalidValueError, unknown

SYSTEM, USER = "system", "user"
ACTS = {SYSTEM: ("propose", "ask_repeat", "accept", "end"), USER: ("propose", "accept", "hang_up")}
_LAST = "accept", "end", "hang_up"  # acts that end the dialogue
_KEYS = "system_costs", "user_costs", "acts", "note"


@dataclass(frozen=True, slots=True)
class Act:
    """One turn of one player."""

    by: str  # "system" or "user"
    act: str  # see ACTS
    option: int | None = None  # proposed; if the system accepts, what it understood as the user's proposal (None: nothing)
    heard: int | None = None  # the option that the system understood when the user proposed, if known
    score: float | None = None  # confidence of the recogniser


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue. The constructor checks that it follows the rules of the game."""

    user_costs: tuple[float, ...]
    acts: tuple[Act, ...]
    system_costs: tuple[float, ...] | None = None
    place: str = ""  # where it was read, for error messages

    def __post_init__(self) -> None:
        options = len(self.user_costs)
        _check(options >= 2, "there must be at least two options, but user_costs has {}", options)
        _check(self.system_costs is None or len(self.system_costs) == options, "both players must have {} costs", options)
        for cost in (*self.user_costs, *(self.system_costs or ())):
            _check(_is_number(cost) and 0 <= cost <= 1, "costs must lie in [0, 1], but one is {!r}", cost)
        before: list[Act] = []
        for number, act in enumerate(self.acts, start=1):
            try:
                _check_act(act, before, options)
            except EsbasError as error:
                raise InvalidValueError(f"act {number}: {error}") from None
            before.append(act)

    @property
    def ended(self) -> bool:
        """Whether a player ended the dialogue; otherwise it was truncated."""
        return bool(self.acts) and self.acts[-1].act in _LAST


def read_dialogues(path: str | os.PathLike[str]) -> Iterator[Dialogue]:
    """Read the dialogues of a log one by one. Empty lines are skipped; the error for an invalid line gives its number."""
    path = Path(path)
    if not path.is_file():
        raise InvalidValueError(f"a log must be a file, but there is none at {str(path)!r}: check the path")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield _parse(line, f"{path.name}, line {number}")
                except EsbasError as error:
                    raise InvalidValueError(f"{path}, line {number}: {error}: fix or delete the line") from error


def write_dialogues(path: str | os.PathLike[str], dialogues: Iterable[Dialogue], *, append: bool = False) -> None:
    """Write a log, or append to it. Keys without a value are omitted."""
    with Path(path).open("a" if append else "w", encoding="utf-8") as file:
        for dialogue in dialogues:
            content = asdict(dialogue)
            content = {key: content[key] for key in _KEYS if content.get(key) is not None}
            content["acts"] = [{key: value for key, value in act.items() if value is not None} for act in content["acts"]]
            file.write(json.dumps(content) + "\n")


def _parse(line: bytes, place: str) -> Dialogue:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"a line must be one JSON object, but {error}") from error
    _check_keys(content, _KEYS, "key", required=("user_costs", "acts"))
    costs = {name: _costs(content.get(name), name) for name in ("user_costs", "system_costs")}
    _check(isinstance(content["acts"], list), "acts must be a list, but is {!r}", content["acts"])
    names = tuple(field.name for field in fields(Act))
    for given in content["acts"]:
        _check_keys(given, names, "key of an act", required=("by", "act"))
    return Dialogue(costs["user_costs"] or (), tuple(Act(**given) for given in content["acts"]), costs["system_costs"], place)


def _costs(given: Any, name: str) -> tuple[float, ...] | None:
    _check(given is None or isinstance(given, list), f"{name} must be a list of numbers, but is {{!r}}", given)
    return None if given is None else tuple(given)


def _check_keys(given: Any, known: Sequence[str], kind: str, *, required: Sequence[str]) -> None:
    _check(isinstance(given, dict), "a JSON object is expected here, but got {!r}", given)
    for key in given:
        if key not in known:
            raise unknown(kind, key, known)
    for key in required:
        _check(key in given, f"{key!r} must be given, but the keys are {{}}", ", ".join(map(repr, given)) or "none")


def _check_act(act: Act, before: Sequence[Act], options: int) -> None:
    """Check an act against the rules of the game."""
    if not (isinstance(act.by, str) and act.by in ACTS):
        raise unknown("player", act.by, ACTS)
    if act.act not in ACTS[act.by]:
        raise unknown(f"act of the {act.by}", act.act, ACTS[act.by])
    last = before[-1] if before else None
    _check(last is None or last.act not in _LAST, "nothing must follow the end of a dialogue, but got {!r}", act.act)
    _check(last is None or last.by != act.by, "players must take turns, but the {} acts twice", act.by)
    for name in ("option", "heard"):
        value = getattr(act, name)
        whole = value is None or (isinstance(value, int) and not isinstance(value, bool))
        _check(
            whole and (value is None or 0 <= value < options), f"{name} must be one of 0 to {options - 1}, but is {{!r}}", value
        )
    _check(act.score is None or _is_number(act.score), "a score must be a number, but is {!r}", act.score)
    _check(act.act != "propose" or act.option is not None, "a proposal must name its option, but the {}'s does not", act.by)
    if act.by == USER:
        asked = last is not None and last.act == "propose"
        _check(act.act != "accept" or asked, "a user can only accept a proposal, but the system made none{}", "")
    else:
        offered = any(earlier.by == USER and earlier.act == "propose" for earlier in before)
        accepts = act.act == "accept" and act.option is not None
        _check(not accepts or offered, "the system can only accept option {} after the user proposed one", act.option)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check(holds: bool, message: str, value: object) -> None:
    if not holds:
        raise InvalidValueError(message.format(value))
