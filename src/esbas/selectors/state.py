"""The saved state of every selector: types and sizes."""

from collections.abc import Sequence
from typing import Any

from esbas._internal import schema
from esbas._internal.schema import COUNT, AnyOf, Number
from esbas.errors import require

MAX_DOUBLINGS = 64  # of the lengths of epochs: more choices than anything can make

_CHOICE = {
    "number": Number(min=1, whole=True),
    "arm": str,
    "epoch": COUNT,
    "context": AnyOf(None, [AnyOf(float, Number(finite=False))]),
    "propensity": AnyOf(None, Number(min=0, max=1 + 1e-9)),
}
_STATE = {
    "arms": [str],
    "stationary": [str],
    "number": COUNT,
    "epoch": Number(min=-1, whole=True),
    "epoch_end": Number(min=0, max=2**128, whole=True),
    "claims": bool,
    "selections": [COUNT],
    "late": [COUNT],
    "rng": object,
    str: object,  # what subclasses add
}


def check_selector_state(
    state: Any, where: str, *, note: Any, epochs: Sequence[int] | None
) -> None:
    """Raise an error unless this is the state of a selector with these epochs.

    Args:
        state: what `state_dict` returned, perhaps after a trip through JSON.
        where: what the state belongs to, for messages.
        note: the shape of the notes of open choices.
        epochs: the lengths that the selector was created with.
    """
    schema.check(state, _STATE | {"open": [(_CHOICE, note, bool)]}, where)
    arms = len(state["arms"])
    selections = len(state["selections"])
    late = len(state["late"])
    require(
        0 < arms == len(set(state["arms"])),
        f"The arms in {where} must have different names, but got {schema.short(state['arms'])}: "
        "go back to an earlier copy.",
    )
    require(
        arms == selections == late,
        f"The numbers of selections and of late values in {where} must be one per arm, but got "
        f"{selections} and {late} for {arms} arms: go back to an earlier copy.",
    )
    named = [choice["arm"] for choice, _, known in state["open"] if known]
    unknown = set(named + state["stationary"]) - set(state["arms"])
    require(
        not unknown,
        f"Open choices and stationary arms in {where} must be among its arms, but "
        f"{schema.short(sorted(unknown))} are not: go back to an earlier copy.",
    )
    require(
        _epoch_fits(state, epochs),
        f"The epoch in {where} must be one of a selector with epochs={schema.short(epochs)}, "
        f"but got {state['epoch']}: build the selector with the same epochs.",
    )


def _epoch_fits(state: dict[str, Any], epochs: Sequence[int] | None) -> bool:
    if epochs is None:
        return bool(state["epoch"] == 0 and state["epoch_end"] == 0)
    # Lengths double after the last given one, so a large epoch would have a huge length.
    return bool(state["epoch"] < len(epochs) + MAX_DOUBLINGS)
