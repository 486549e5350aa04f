"""The log of a study, and the selector in memory that follows it."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from esbas._internal import schema
from esbas.errors import ChoiceError, InvalidValueError, StoreError, StudyError
from esbas.selectors import Choice
from esbas.studies import events
from esbas.studies.events import Event
from esbas.studies.replica import Replica
from esbas.studies.store import Store

SNAPSHOT_EVERY = 10_000  # events: about as many have to be replayed when a process opens the study
MOST_EXPIRED = 1000  # choices that expire in one transaction


class Turn:
    """A transaction. The selector has seen all events so far, and other processes cannot add one.

    Attributes:
        replica: the selector.
        now: the time of the events that are added, in seconds since 1970.
        events: the events that were added.
    """

    def __init__(self, log: "StudyLog", replica: Replica, now: float) -> None:
        self.replica = replica
        # The clocks of several machines may differ, but the times in a log never decrease.
        self.now = max(now, replica.at)
        self.events: list[Event] = []
        self._log = log

    def ask(
        self,
        among: list[str] | None,
        context: list[float] | None,
        *,
        key: str | None,
        data: Mapping[str, Any],
    ) -> Choice:
        """Let the selector choose."""
        self._log.changed = True
        choice = self.replica.ask(among, context)
        event = Event(
            seq=self.replica.seq + 1,
            kind=events.ASKED,
            number=choice.number,
            arm=choice.arm,
            propensity=choice.propensity,
            epoch=choice.epoch,
            at=self.now,
            key=key,
            data=data,
        )
        self._add(event, choice)
        return choice

    def claim_epoch(self, *, key: str | None, data: Mapping[str, Any]) -> int | None:
        """Claim the epoch that is due."""
        self._log.changed = True
        epoch = self.replica.claim_epoch()
        event = Event(
            seq=self.replica.seq + 1,
            kind=events.EPOCH_CLAIMED,
            epoch=epoch,
            at=self.now,
            key=key,
            data=data,
        )
        self._add(event)
        return epoch

    def add(self, kind: str, **columns: Any) -> None:
        """Add an event of another kind."""
        self._log.changed = True
        self._add(Event(self.replica.seq + 1, kind, at=self.now, **columns))

    def repeated(
        self, key: str | None, kind: str, *, data: Mapping[str, Any] | None = None, **columns: Any
    ) -> Event | None:
        """Return the event of an earlier request with this key, or None.

        A key that was used for another request is refused.
        """
        if key is None:
            return None
        event = self._log.store.with_key(self._log.study, key)
        if event is None:
            return None
        wanted = {"kind": kind, **columns}
        same = all(getattr(event, name) == value for name, value in wanted.items())
        if not same or (data is not None and _text(data) != _text(event.data)):
            raise StudyError(
                f"Key {schema.short(key)} was used before for another request "
                f"(event {event.seq}, {event.kind}): use a new key for every request."
            )
        return event

    def _add(self, event: Event, choice: Choice | None = None) -> None:
        self.replica.note(event, choice)
        self._log.store.append(self._log.study, [event])
        self.events.append(event)


class StudyLog:
    """Keeps the selector in memory up to date with the log, and adds to both in transactions.

    Args:
        store: where the study is.
        study: its number there.
        description: its selector.
        expire_after: seconds until a choice without a value is given up; None: never.
    """

    def __init__(
        self,
        store: Store,
        study: int,
        description: Mapping[str, Any],
        *,
        expire_after: float | None,
    ) -> None:
        self.store = store
        self.study = study
        self.changed = False  # whether the selector in memory may know more than the log
        self._description = description
        self._expire_after = expire_after
        self._replica: Replica | None = None
        self._snapshot_due = False
        self._process = os.getpid()

    def current(self) -> Replica:
        """Return the selector, with all events that are in the log. Only within `store.lock`."""
        self.check_process()
        if self._replica is None:
            replica = load_replica(self.store, self.study, self._description)
            self.changed = False
            self._replica = replica
            newest = self.store.snapshot_seq(self.study)
            self._snapshot_due = replica.seq - newest >= 2 * SNAPSHOT_EVERY
        else:
            self._catch_up(self._replica)
        return self._replica

    def arms_in_memory(self) -> tuple[str, ...]:
        """Return the arms as far as this process knows them, without reading the log."""
        if self._replica is None:
            return tuple(self._description["arms"])
        return self._replica.selector.arms

    @contextmanager
    def writing(self, *, expiring: bool = True) -> Iterator[Turn]:
        """Open a transaction. If the block fails, neither the log nor the selector has changed."""
        with self.store.lock:
            self.check_process()
            replica = self._replica
            if replica is None:
                replica = self.current()
            if expiring and self.overdue(replica, time.time()):
                self.expire()
            try:
                with self.store.write(self.study) as now:
                    self._catch_up(replica)
                    before = replica.seq
                    turn = Turn(self, replica, now)
                    yield turn
            except BaseException:
                if self.changed:
                    self._replica = None  # it has events that the log lacks
                raise
            self.changed = False
            passed = replica.seq // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY
            if turn.events and (self._snapshot_due or passed):
                self._snapshot(replica)

    def expire(self) -> list[int]:
        """Add an event for each choice whose time is over, and return their numbers."""
        with self.writing(expiring=False) as turn:
            gone = self.overdue(turn.replica, turn.now)
            for number in gone:
                choice, _ = turn.replica.opened[number]
                turn.add(events.EXPIRED, number=number, arm=choice.arm)
        return gone

    def overdue(self, replica: Replica, now: float) -> list[int]:
        """Return the numbers of choices whose time is over, the oldest first."""
        found: list[int] = []
        if self._expire_after is not None:
            for number, (_, at) in replica.opened.items():
                if at + self._expire_after > now or len(found) == MOST_EXPIRED:
                    break
                found.append(number)
        return found

    def of_choice(self, number: int) -> dict[str, Event]:
        """Return the events of a choice, by kind; raise an error if there is no such choice."""
        found = {}
        if 0 < number < 2**62:  # the databases cannot look for larger numbers
            found = self.store.of_choice(self.study, number)
        if events.ASKED not in found:
            raise ChoiceError(
                f"Choice {schema.short(number)} is not from this study: call ask() for a new one."
            )
        return found

    def before(self, event: Event) -> Replica:
        """Return the selector as it was before an event.

        This may take a while, so it does not hold `store.lock`.
        """
        return load_replica(self.store, self.study, self._description, until=event.seq - 1)

    def check_process(self) -> None:
        """Use a new connection if this process has been forked."""
        if os.getpid() != self._process:
            self._process = os.getpid()
            self.store.reopen()

    def _catch_up(self, replica: Replica) -> None:
        try:
            for event in self.store.events(self.study, after=replica.seq):
                replica.apply(event)
        except BaseException:
            self._replica = None  # an event may be applied in part
            raise

    def _snapshot(self, replica: Replica) -> None:
        with suppress(StoreError):  # the request has succeeded, and the log is enough
            self.store.add_snapshot(self.study, replica.seq, json.dumps(replica.state_dict()))
        self._snapshot_due = False


def _text(data: Mapping[str, Any]) -> str:
    """Return what the client sent as text, for comparisons: as text, NaN is equal to itself."""
    sent = {name: item for name, item in data.items() if name != "late"}
    return json.dumps(sent, sort_keys=True)


def load_replica(
    store: Store, study: int, description: Mapping[str, Any], *, until: int | None = None
) -> Replica:
    """Return the selector after all events, or after the event `until`.

    It starts from the last snapshot before that event, and applies the events since then.
    """
    with store.lock:
        snapshot = store.snapshot(study, until=until)
    replica = Replica(description)
    if snapshot is not None:
        seq, state = snapshot
        try:
            replica.load_state_dict(schema.read_json(state, "a snapshot"))
            fits = replica.seq == seq
        except (InvalidValueError, StoreError):
            fits = False
        if not fits:  # of another version, or damaged: the log alone is enough
            replica = Replica(description)
    for event in store.events(study, after=replica.seq, until=until):
        replica.apply(event)
    return replica
