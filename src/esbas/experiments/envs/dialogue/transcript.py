"""Negotiation dialogues as text."""

from collections.abc import Sequence

from esbas.errors import unknown
from esbas.experiments.envs.dialogue.log import SYSTEM, USER, Act, Dialogue

VIEWS = "all", SYSTEM, USER
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SYSTEM_SAYS = {
    "propose": "I propose {}.",
    "ask_repeat": "Could you repeat that?",
    "accept": "I accept {}.",
    "end": "Let us stop here.",
}


def transcript(dialogue: Dialogue, view: str = "all") -> str:
    """Return one line for the costs of each player and one per turn.

    Args:
        dialogue: the dialogue.
        view: what is shown: what an observer sees ("all"), the system ("system") or the user
            ("user").
    """
    if view not in VIEWS:
        raise unknown("view", view, VIEWS)
    lines = []
    if dialogue.system_costs is not None and view != USER:
        lines.append(f"The system's costs: {cost_line(dialogue.system_costs)}.")
    if view != SYSTEM:
        lines.append(f"The user's costs: {cost_line(dialogue.user_costs)}.")
    lines += [turn(act, view) for act in dialogue.acts]
    return "\n".join(lines) + "\n"


def turn(act: Act, view: str = "all") -> str:
    """Return a turn as one line of text."""
    if act.by == SYSTEM:
        return f"System: {_SYSTEM_SAYS[act.act].format(letter(act.option))}"
    return f"User:   {_user_says(act, view)}"


def outcome(dialogue: Dialogue) -> str:
    """Return the end of the dialogue in one sentence."""
    end = dialogue.acts[-1] if dialogue.ended else None
    if end is None or end.act != "accept" or (end.by == SYSTEM and end.option is None):
        return "No agreement."
    if end.by == USER:
        return f"Agreement on {letter(dialogue.acts[-2].option)}."
    said = [act.option for act in dialogue.acts if act.by == USER][-1]
    if said == end.option:
        return f"Agreement on {letter(said)}."
    return (
        f"A misunderstanding: the system accepted {letter(end.option)}, "
        f"but the user had proposed {letter(said)}."
    )


def letter(option: int | None) -> str:
    """Return the name of an option: A, B, C, ..."""
    if option is None:
        return "nothing"
    return _LETTERS[option] if option < len(_LETTERS) else f"number {option}"


def _user_says(act: Act, view: str) -> str:
    if act.act == "accept":
        return "I accept."
    if act.act == "hang_up":
        return "(hangs up)"
    shown = act.option
    if view == SYSTEM and act.heard is not None:
        shown = act.heard
    said = f"I want {letter(shown)}."
    if view == USER or act.heard is None or act.score is None:
        return said
    if view == SYSTEM:
        return f"{said}  (understood with score {act.score:.2f})"
    return f"{said}  (understood: {letter(act.heard)}, score {act.score:.2f})"


def cost_line(costs: Sequence[float]) -> str:
    """Return the costs of all options in one line."""
    return ", ".join(f"{letter(option)} {cost:.2f}" for option, cost in enumerate(costs))
