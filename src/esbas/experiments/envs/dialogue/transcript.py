"""Negotiation dialogues as text."""

from collections.abc import Sequence

from esbas.envs.dialogue.log import SYSTEM, USER, Act, Dialogue
from esbas.errors import unknown

VIEWS = "all", SYSTEM, USER
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def transcript(dialogue: Dialogue, view: str = "all") -> str:
    """One line for the costs of each player and one per turn, as seen by an observer ("all"), the system or the user."""
    if view not in VIEWS:
        raise unknown("view", view, VIEWS)
    lines = []
    if dialogue.system_costs is not None and view != USER:
        lines.append(f"The system's costs: {cost_line(dialogue.system_costs)}.")
    if view != SYSTEM:
        lines.append(f"The user's costs: {cost_line(dialogue.user_costs)}.")
    return "\n".join(lines + [turn(act, view) for act in dialogue.acts]) + "\n"


def turn(act: Act, view: str = "all") -> str:
    """A turn as one line of text."""
    return f"System: {_SYSTEM[act.act].format(letter(act.option))}" if act.by == SYSTEM else f"User:   {_user(act, view)}"


def outcome(dialogue: Dialogue) -> str:
    """The end of the dialogue in one sentence."""
    end = dialogue.acts[-1] if dialogue.ended else None
    if end is None or end.act != "accept" or (end.by == SYSTEM and end.option is None):
        return "No agreement."
    if end.by == USER:
        return f"Agreement on {letter(dialogue.acts[-2].option)}."
    said = next(act.option for act in reversed(dialogue.acts) if act.by == USER)
    if said == end.option:
        return f"Agreement on {letter(said)}."
    return f"A misunderstanding: the system accepted {letter(end.option)}, but the user had proposed {letter(said)}."


def letter(option: int | None) -> str:
    """The name of an option: A, B, C, ..."""
    if option is None:
        return "nothing"
    return _LETTERS[option] if option < len(_LETTERS) else f"number {option}"


_SYSTEM = {
    "propose": "I propose {}.",
    "ask_repeat": "Could you repeat that?",
    "accept": "I accept {}.",
    "end": "Let us stop here.",
}


def _user(act: Act, view: str) -> str:
    if act.act != "propose":
        return "I accept." if act.act == "accept" else "(hangs up)"
    said = f"I want {letter(act.heard if view == SYSTEM and act.heard is not None else act.option)}."
    if view == USER or act.heard is None or act.score is None:
        return said
    if view == SYSTEM:
        return f"{said}  (understood with score {act.score:.2f})"
    return f"{said}  (understood: {letter(act.heard)}, score {act.score:.2f})"


def cost_line(costs: Sequence[float]) -> str:
    """The costs of all options in one line."""
    return ", ".join(f"{letter(option)} {cost:.2f}" for option, cost in enumerate(costs))
