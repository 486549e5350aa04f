"""Logs of negotiation dialogues: one JSON object per line.

docs/dialogue-log.md documents the format.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from esbas.errors import EsbasError, InvalidValueError, require, unknown

SYSTEM = "system"
USER = "user"
ACTS = {SYSTEM: ("propose", "ask_repeat", "accept", "end"), USER: ("propose", "accept", "hang_up")}
_LAST = "accept", "end", "hang_up"  # acts that end the dialogue
_KEYS = "system_costs", "user_costs", "acts", "note"


@dataclass(frozen=True, slots=True)
class Act:
    """One turn of one player."""

    by: str  # "system" or "user"
    act: str  # see ACTS
    option: int | None = None
    """The option that is proposed. If the system accepts, what it understood as the user's
    proposal (None: nothing)."""
    heard: int | None = None
    """The option that the system understood when the user proposed, if known."""
    score: float | None = None  # confidence of the recognizer


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A dialogue. The constructor checks that it follows the rules of the game."""

    user_costs: tuple[float, ...]
    acts: tuple[Act, ...]
    system_costs: tuple[float, ...] | None = None
    source: str = ""  # the file and line that it was read from, for error messages

    def __post_init__(self) -> None:
        options = len(self.user_costs)
        require(
            options >= 2, f"There must be at least two options, but `user_costs` has {options}."
        )
        self._check_costs(self.user_costs)
        if self.system_costs is not None:
            require(
                len(self.system_costs) == options,
                f"Both players must have {options} costs, "
                f"but `system_costs` has {len(self.system_costs)}.",
            )
            self._check_costs(self.system_costs)
        before: list[Act] = []
        for number, act in enumerate(self.acts, start=1):
            try:
                _check_act(act, before, options)
            except EsbasError as error:
                raise InvalidValueError(f"Act {number}: {error}") from None
            before.append(act)

    @staticmethod
    def _check_costs(costs: Sequence[float]) -> None:
        for cost in costs:
            valid = _is_number(cost) and 0 <= cost <= 1
            require(valid, f"Costs must be numbers between 0 and 1, but one is {cost!r}.")

    @property
    def ended(self) -> bool:
        """Whether a player ended the dialogue; otherwise it was truncated."""
        return bool(self.acts) and self.acts[-1].act in _LAST


def read_dialogues(path: str | os.PathLike[str]) -> Iterator[Dialogue]:
    """Read the dialogues of a log one by one.

    Empty lines are skipped. The error for an invalid line has its number.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidValueError(f"There is no log at {str(path)!r}: check the path.")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                dialogue = _parse(line, f"{path.name}, line {number}")
            except EsbasError as error:
                raise InvalidValueError(
                    f"{path}, line {number}: {error} Fix or delete the line."
                ) from error
            yield dialogue


def write_dialogues(
    path: str | os.PathLike[str], dialogues: Iterable[Dialogue], *, append: bool = False
) -> None:
    """Write a log, or append to it. Keys without a value are omitted."""
    with Path(path).open("a" if append else "w", encoding="utf-8") as file:
        for dialogue in dialogues:
            content = asdict(dialogue)
            line = {key: content[key] for key in _KEYS if content.get(key) is not None}
            line["acts"] = [_given(act) for act in content["acts"]]
            file.write(json.dumps(line) + "\n")


def _given(act: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in act.items() if value is not None}


def _parse(line: bytes, source: str) -> Dialogue:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidValueError(f"A line must be one JSON object, but {error}.") from error
    _check_keys(content, _KEYS, "key", required=("user_costs", "acts"))
    user_costs = _costs(content["user_costs"], "user_costs")
    system_costs = _costs(content.get("system_costs"), "system_costs")
    given = content["acts"]
    require(isinstance(given, list), f"`acts` must be a list, but got {given!r}.")
    names = tuple(field.name for field in fields(Act))
    for act in given:
        _check_keys(act, names, "key of an act", required=("by", "act"))
    acts = tuple(Act(**act) for act in given)
    return Dialogue(user_costs or (), acts, system_costs, source)


def _costs(given: Any, name: str) -> tuple[float, ...] | None:
    if given is None:
        return None
    require(isinstance(given, list), f"`{name}` must be a list of numbers, but got {given!r}.")
    return tuple(given)


def _check_keys(given: Any, known: Sequence[str], kind: str, *, required: Sequence[str]) -> None:
    require(isinstance(given, dict), f"A JSON object is expected here, but got {given!r}.")
    for key in given:
        if key not in known:
            raise unknown(kind, key, known)
    for key in required:
        if key not in given:
            names = ", ".join(map(repr, given)) or "none"
            raise InvalidValueError(f"The key {key!r} must be given, but the keys are {names}.")


def _check_act(act: Act, before: Sequence[Act], options: int) -> None:
    """Check an act against the rules of the game."""
    if not (isinstance(act.by, str) and act.by in ACTS):
        raise unknown("player", act.by, ACTS)
    if act.act not in ACTS[act.by]:
        raise unknown(f"act of the {act.by}", act.act, ACTS[act.by])
    last = before[-1] if before else None
    if last is not None:
        require(
            last.act not in _LAST,
            f"Nothing must follow the end of a dialogue, but got {act.act!r}.",
        )
        require(last.by != act.by, f"Players must take turns, but the {act.by} acts twice.")
    _check_option("option", act.option, options)
    _check_option("heard", act.heard, options)
    require(
        act.score is None or _is_number(act.score),
        f"`score` must be a number, but got {act.score!r}.",
    )
    if act.act == "propose":
        require(
            act.option is not None,
            f"A proposal must have an `option`, but the {act.by}'s has none.",
        )
    if act.by == USER and act.act == "accept":
        asked = last is not None and last.act == "propose"
        require(asked, "A user can only accept a proposal, but the system made none.")
    if act.by == SYSTEM and act.act == "accept" and act.option is not None:
        offered = any(earlier.by == USER and earlier.act == "propose" for earlier in before)
        require(
            offered,
            f"The system can only accept option {act.option} after the user proposed one.",
        )


def _check_option(name: str, value: Any, options: int) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(
        whole and 0 <= value < options,
        f"`{name}` must be one of 0 to {options - 1}, but got {value!r}.",
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
