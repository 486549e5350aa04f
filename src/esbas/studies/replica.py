"""The selector of a study in the memory of one process: what the log says, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from esbas import schema
from esbas.errors import EsbasError, StoreError
from esbas.evidence import Evidence
from esbas.selectors import Choice
from esbas.store import events
from esbas.store.description import build_selector
from esbas.store.events import Event

_STATE = {
    "seq": schema.COUNT,
    "at": float,
    "selector": {"claims": bool, str: Any},
    "opened": [(schema.COUNT, float)],
    "claim": schema.AnyOf(None, (schema.COUNT, str, float)),
}


class ClaimedEpoch(NamedTuple):
    """An epoch that somebody prepares."""

    epoch: int
    claimant: str
    until: float  # seconds since 1970; afterwards, others can claim the epoch


class Replica:
    """Applies events in their order. Every replica that has seen the same events makes the same choices.

    Args:
        description: the selector, see `describe_selector`.
    """

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.selector = build_selector(description)
        self.seq, self.at = 0, 0.0  # of the last event
        self.opened: dict[int, tuple[Choice, float]] = {}  # number -> choice and when it was asked for, the oldest first
        self.claim: ClaimedEpoch | None = None
        self.claims = False  # whether anybody ever claimed an epoch; otherwise epochs start by themselves

    def ask(self, among: Sequence[str] | None, context: Sequence[float] | None) -> Choice:
        """The choice that the selector makes next. An event must follow."""
        return self.selector.ask(among=among, context=context)

    def claim_epoch(self) -> int | None:
        """The epoch that is due. An event must follow."""
        return self.selector.claim_epoch()

    def apply(self, event: Event) -> None:
        """Do what the event says. If that is not what the selector does, raise a StoreError; the replica is then of no use."""
        if event.seq != self.seq + 1:
            raise StoreError(f"a log must have no gaps, but event {event.seq} follows {self.seq}: {schema.REMEDY}")
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
        except (EsbasError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StoreError(different(event, str(error).partition("\n")[0][:300])) from error

    def note(self, event: Event, choice: Choice | None = None) -> None:
        """Add an event that has just happened. `choice` is what `ask` returned for it."""
        kind, selector = event.kind, self.selector
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
                self.claim = ClaimedEpoch(event.epoch, str(event.data["claimant"]), float(event.data["until"]))
        else:
            finish = selector.epoch_ready if kind == events.EPOCH_READY else selector.release_epoch
            finish(event.epoch)  # type: ignore[arg-type]  # a column that these kinds have
            self.claim = None
        self.seq, self.at = event.seq, event.at

    def state_dict(self) -> dict[str, Any]:
        """A snapshot, as plain data."""
        opened = [[number, at] for number, (_, at) in self.opened.items()]
        claim = None if self.claim is None else list(self.claim)
        return {"seq": self.seq, "at": self.at, "selector": self.selector.state_dict(), "opened": opened, "claim": claim}

    def load_state_dict(self, state: Any) -> None:
        """Continue from a snapshot."""
        schema.check(state, _STATE, "a snapshot")
        self.selector.load_state_dict(state["selector"])
        choices = {choice.number: choice for choice in self.selector.open_choices}
        fits = [number for number, _ in state["opened"]] == list(choices)
        schema.require(fits, "open choices have times", "a snapshot", open=len(choices), times=len(state["opened"]))
        self.opened = {number: (choices[number], at) for number, at in state["opened"]}
        self.claims = state["selector"]["claims"]
        self.claim = None
        if state["claim"] is not None:
            self.claim = ClaimedEpoch(*state["claim"])
            due = self.selector.claim_epoch()
            schema.require(due == self.claim.epoch, "a claimed epoch is due", "a snapshot", claimed=self.claim.epoch, due=due)
        self.seq, self.at = state["seq"], state["at"]

    def _close(self, event: Event) -> None:
        found = self.opened.pop(event.number or 0, None)
        if found is None:
            if event.kind != events.TOLD or not event.data.get("late"):
                raise StoreError(different(event, "its choice is not open"))
            return  # recorded; the selector has given the choice up
        choice = found[0]
        if event.kind == events.TOLD:
            value = float(event.value)  # type: ignore[arg-type]  # a column that this kind has
            log_probs = event.data.get("log_probs") if "log_probs" in self.selector.wants else None
            evidence = None if log_probs is None else Evidence.from_log_probs(log_probs, arm=choice.arm, value=value)
            self.selector.tell(choice, value, evidence=evidence)
        else:
            self.selector.withdraw(choice)

    def _compare(self, event: Event, choice: Choice) -> None:
        logged = event.number, event.arm, event.epoch, event.propensity
        if (choice.number, choice.arm, choice.epoch, choice.propensity) != logged:
            raise StoreError(different(event, f"the selector chooses {choice}"[:300]))


def different(event: Event, cause: str) -> str:
    """The message for an event that the selector cannot repeat."""
    number = "" if event.number is None else f" of choice {event.number}"
    what = f"the log must repeat, but event {event.seq} ({event.kind}{number}, arm {schema.short(event.arm)}) does not: {cause}"
    return f"{what}; use the version of esbas that wrote it, or {schema.REMEDY}"
