"""The selector of a study in the memory of one process, made from the log alone."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from esbas._internal import schema
from esbas.errors import EsbasError, StoreError, require
from esbas.evidence import Evidence
from esbas.selectors import Choice
from esbas.studies import events
from esbas.studies.description import build_selector
from esbas.studies.events import Event

_STATE = {
    "seq": schema.COUNT,
    "at": float,
    "selector": {"claims": bool, str: Any},
    "opened": [(schema.COUNT, float)],
    "claim": schema.AnyOf(None, (schema.COUNT, str, float)),
}


class ClaimedEpoch(NamedTuple):
    """An epoch that a caller prepares."""

    epoch: int
    claimant: str
    until: float  # seconds since 1970; afterwards, others can claim the epoch


class Replica:
    """A selector that applies events in their order.

    Every replica that has seen the same events makes the same choices.

    Args:
        description: the selector, see `describe_selector`.

    Attributes:
        seq: the number of the last event.
        at: its time.
        opened: the open choices and when they were made, by number; the oldest first.
        claim: the epoch that is claimed.
        claims: whether an epoch was ever claimed; otherwise epochs start by themselves.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.selector = build_selector(description)
        self.seq = 0
        self.at = 0.0
        self.opened: dict[int, tuple[Choice, float]] = {}
        self.claim: ClaimedEpoch | None = None
        self.claims = False

    def ask(self, among: Sequence[str] | None, context: Sequence[float] | None) -> Choice:
        """Return the next choice of the selector. The caller must then `note` its event."""
        return self.selector.ask(among=among, context=context)

    def claim_epoch(self) -> int | None:
        """Claim the epoch that is due, if any. The caller must then `note` its event."""
        return self.selector.claim_epoch()

    def apply(self, event: Event) -> None:
        """Repeat an event of the log.

        If the selector does something else, raise a StoreError; the replica is then unusable.
        """
        if event.seq != self.seq + 1:
            raise StoreError(
                f"A log must have no gaps, but event {event.seq} follows event {self.seq}: "
                f"{schema.REMEDY}."
            )
        try:
            choice = None
            if event.kind == events.ASKED:
                choice = self.ask(event.data.get("among"), event.data.get("context"))
                self._compare(event, choice)
            elif event.kind == events.EPOCH_CLAIMED and self.claim_epoch() != event.epoch:
                raise StoreError(different(event, "another epoch is due"))
            self.note(event, choice)
        except StoreError:
            raise
        except (
            EsbasError,
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            ValueError,
        ) as error:
            first_line = str(error).partition("\n")[0]
            raise StoreError(different(event, first_line[:300])) from error

    def note(self, event: Event, choice: Choice | None = None) -> None:
        """Add an event that has just happened. `choice` is what `ask` returned for it."""
        kind = event.kind
        selector = self.selector
        if kind == events.ASKED:
            assert choice is not None
            self.opened[choice.number] = choice, event.at
        elif kind in (events.TOLD, events.WITHDRAWN, events.EXPIRED):
            self._close(event)
        elif kind == events.ARM_ADDED:
            selector.add_arm(str(event.arm), stationary=bool(event.data.get("stationary")))
        elif kind == events.ARM_REMOVED:
            selector.remove_arm(str(event.arm))
        elif kind == events.EPOCH_CLAIMED:
            self.claims = True
            if event.epoch is not None:
                self.claim = ClaimedEpoch(
                    event.epoch, str(event.data["claimant"]), float(event.data["until"])
                )
        else:
            assert event.epoch is not None  # a column that these kinds have
            if kind == events.EPOCH_READY:
                selector.epoch_ready(event.epoch)
            else:
                selector.release_epoch(event.epoch)
            self.claim = None
        self.seq = event.seq
        self.at = event.at

    def state_dict(self) -> dict[str, Any]:
        """Return a snapshot as plain data."""
        opened = [[number, at] for number, (_, at) in self.opened.items()]
        claim = None if self.claim is None else list(self.claim)
        return {
            "seq": self.seq,
            "at": self.at,
            "selector": self.selector.state_dict(),
            "opened": opened,
            "claim": claim,
        }

    def load_state_dict(self, state: Any) -> None:
        """Continue from a snapshot."""
        schema.check(state, _STATE, "a snapshot")
        self.selector.load_state_dict(state["selector"])
        choices = {choice.number: choice for choice in self.selector.open_choices}
        times = dict(state["opened"])
        require(
            list(times) == list(choices),
            f"A snapshot must have the times of its {len(choices)} open choices, but has "
            f"{len(times)} times: {schema.REMEDY}.",
        )
        self.opened = {number: (choices[number], at) for number, at in times.items()}
        self.claims = state["selector"]["claims"]
        self.claim = None
        if state["claim"] is not None:
            self.claim = ClaimedEpoch(*state["claim"])
            due = self.selector.claim_epoch()
            require(
                due == self.claim.epoch,
                f"The epoch that a snapshot claims must be due, but it claims {self.claim.epoch}, "
                f"and due is {due}: {schema.REMEDY}.",
            )
        self.seq = state["seq"]
        self.at = state["at"]

    def _close(self, event: Event) -> None:
        found = self.opened.pop(event.number or 0, None)
        if found is None:
            if event.kind != events.TOLD or not event.data.get("late"):
                raise StoreError(different(event, "its choice is not open"))
            return  # recorded; the selector has given the choice up
        choice, _ = found
        if event.kind != events.TOLD:
            self.selector.withdraw(choice)
            return
        assert event.value is not None  # a column that this kind has
        value = float(event.value)
        evidence = None
        log_probs = event.data.get("log_probs")
        if log_probs is not None and "log_probs" in self.selector.wants:
            evidence = Evidence.from_log_probs(log_probs, arm=choice.arm, value=value)
        self.selector.tell(choice, value, evidence=evidence)

    def _compare(self, event: Event, choice: Choice) -> None:
        same = (
            choice.number == event.number
            and choice.arm == event.arm
            and choice.epoch == event.epoch
            and choice.propensity == event.propensity
        )
        if not same:
            raise StoreError(different(event, f"the selector chooses {choice}"[:300]))


def different(event: Event, cause: str) -> str:
    """Return the message for an event that the selector cannot repeat."""
    number = "" if event.number is None else f" of choice {event.number}"
    return (
        f"Event {event.seq} of the log ({event.kind}{number}, arm {schema.short(event.arm)}) "
        f"cannot be repeated ({cause.removesuffix('.')}): use the version of esbas that wrote it, "
        f"or {schema.REMEDY}."
    )
