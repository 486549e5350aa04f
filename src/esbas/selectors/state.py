"""The rules that the saved state of every selector keeps."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from esbas import schema
from esbas.schema import COUNT, AnyOf, Number

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


def check_selector_state(state: Any, where: str, *, note: Any, epochs: Sequence[int] | None) -> None:
    """Raise an error unless this is the state of a selector with these epochs, and all parts of it agree.

    Args:
        state: what `state_dict` returned, perhaps after a trip through JSON.
        where: what the state belongs to, for messages.
        note: the shape of the notes of open choices.
        epochs: the lengths that the selector was created with.
    """
    schema.check(state, _STATE | {"open": [(_CHOICE, note, bool)]}, where)
    arms, number, epoch, opened = state["arms"], state["number"], state["epoch"], state["open"]
    _require_arms(state, where)
    numbers = [choice["number"] for choice, *_ in opened]
    fits = len(set(numbers)) == len(numbers) and max(numbers, default=0) <= number
    schema.require(fits, "open choices have different numbers, at most `number`", where, number=number, open=numbers)
    known = Counter(choice["arm"] for choice, _, is_known in opened if is_known)
    schema.require(set(known) <= set(arms), "open choices name arms", where, open=sorted(known), arms=arms)
    counted = zip(arms, state["selections"], state["late"], strict=True)
    fits = sum(state["selections"]) <= number and all(late + known[arm] <= asked for arm, asked, late in counted)
    schema.require(fits, "selections add up", where, number=number, selections=state["selections"], late=state["late"])
    latest = max((choice["epoch"] for choice, *_ in opened), default=0)
    schema.require(latest <= max(epoch, 0), "open choices belong to epochs so far", where, epoch=epoch, open=latest)
    if epochs is None:
        fits = epoch == state["epoch_end"] == 0
    else:
        fits = epoch < len(epochs) + MAX_DOUBLINGS and (epoch >= 0 or state["epoch_end"] == 0)
    remedy = "build the selector with the same epochs"
    schema.require(fits, "the epoch fits", where, remedy=remedy, epoch=epoch, epoch_end=state["epoch_end"], epochs=epochs)


def _require_arms(state: dict[str, Any], where: str) -> None:
    arms, stationary = state["arms"], state["stationary"]
    schema.require(0 < len(arms) == len(set(arms)), "there are arms with different names", where, arms=arms)
    schema.require(set(stationary) <= set(arms), "stationary arms are arms", where, stationary=stationary, arms=arms)
    lengths = {name: len(state[name]) for name in ("arms", "selections", "late")}
    fits = len(set(lengths.values())) == 1
    schema.require(fits, "there is one number of selections and of late values per arm", where, lengths=list(lengths.values()))
