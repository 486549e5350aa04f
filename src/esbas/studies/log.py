"""The log of a study, and the selector in memory that follows it."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from esbas import schema
from esbas.errors import ChoiceError, InvalidValueError, StoreError, StudyError
from esbas.selectors import Choice
from esbas.store import events
from esbas.store.events import Event
from esbas.store.replica import Replica
from esbas.store.store import Store

SNAPSHOT_EVERY = 10_000  # events: about as many have to be replayed when a process opens the study
MOST_EXPIRED = 1000  # choices that expire in one transaction


class Turn:
    """A transaction: the selector has seen all events so far, and nobody else can add one."""

    def __init__(self, log: "StudyLog", replica: Replica, now: float) -> None:
        self.replica = replica
        self.now = max(now, replica.at)  # clocks of several machines may differ: times never decrease
        self._log = log
        self.events: list[Event] = []

    def ask(self, among: list[str] | None, context: list[float] | None, *, key: str | None, data: Mapping[str, Any]) -> Choice:
        """Let the selector choose."""
        self._log.changed = True
        choice = self.replica.ask(among, context)
        made = choice.number, choice.arm, None, choice.propensity, choice.epoch
        self._add(Event(self.replica.seq + 1, events.ASKED, *made, at=self.now, key=key, data=data), choice)
        return choice

    def claim_epoch(self, *, key: str | None, data: Mapping[str, Any]) -> int | None:
        """Claim the epoch that is due."""
        self._log.changed = True
        epoch = self.replica.claim_epoch()
        self._add(Event(self.replica.seq + 1, events.EPOCH_CLAIMED, epoch=epoch, at=self.now, key=key, data=data))
        return epoch

    def add(self, kind: str, **columns: Any) -> None:
        """Add an event of another kind."""
        self._log.changed = True
        self._add(Event(self.replica.seq + 1, kind, at=self.now, **columns))

    def repeated(self, key: str | None, kind: str, *, data: Mapping[str, Any] | None = None, **columns: Any) -> Event | None:
        """The event of an earlier request with this key. A key that was used for another request is refused."""
        event = None if key is None else self._log.store.with_key(self._log.study, key)
        if event is None:
            return None
        same = event.kind == kind and all(getattr(event, name) == value for name, value in columns.items())
        if not same or (data is not None and _text(data) != _text(event.data)):
            raise StudyError(
                f"a key must stand for one request, but {schema.short(key)} stands for another one "
                f"(event {event.seq}, {event.kind}): use a new key for every request"
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
        expire_after: seconds until a choice that nobody told is given up; None: never.
    """

    def __init__(self, store: Store, study: int, description: Mapping[str, Any], *, expire_after: float | None) -> None:
        self.store, self.study = store, study
        self.changed = False  # whether the selector in memory may know more than the log
        self._description, self._expire_after = description, expire_after
        self._replica: Replica | None = None
        self._snapshot_due = False
        self._process = os.getpid()

    def current(self) -> Replica:
        """The selector, with all events that are in the log. Only within `store.lock`."""
        self.check_process()
        if self._replica is None:
            replica = load_replica(self.store, self.study, self._description)
            self.changed, self._replica = False, replica
            newest = self.store.snapshot_seq(self.study)
            self._snapshot_due = replica.seq - newest >= 2 * SNAPSHOT_EVERY
        else:
            self._catch_up(self._replica)
        return self._replica

    @contextmanager
    def writing(self, *, expiring: bool = True) -> Iterator[Turn]:
        """A transaction. If the block fails, neither the log nor the selector has changed."""
        with self.store.lock:
            self.check_process()
            replica = self.current() if self._replica is None else self._replica
            if expiring and self.overdue(replica, time.time()):
                self.expire()
            try:
                with self.store.write(self.study) as now:
                    self._catch_up(replica)
                    before, turn = replica.seq, Turn(self, replica, now)
                    yield turn
            except BaseException:
                if self.changed:
                    self._replica = None  # it has events that the log lacks
                raise
            self.changed = False
            if turn.events and (self._snapshot_due or replica.seq // SNAPSHOT_EVERY > before // SNAPSHOT_EVERY):
                self._snapshot(replica)

    def expire(self) -> list[int]:
        """Add an event for each choice whose time is over, and return their numbers."""
        with self.writing(expiring=False) as turn:
            gone = self.overdue(turn.replica, turn.now)
            for number in gone:
                turn.add(events.EXPIRED, number=number, arm=turn.replica.opened[number][0].arm)
        return gone

    def overdue(self, replica: Replica, now: float) -> list[int]:
        """The numbers of choices whose time is over, the oldest first."""
        found: list[int] = []
        if self._expire_after is not None:
            for number, (_, at) in replica.opened.items():
                if at + self._expire_after > now or len(found) == MOST_EXPIRED:
                    break
                found.append(number)
        return found

    def of_choice(self, number: int) -> dict[str, Event]:
        """The events of a choice, by kind; an error if there was no such choice."""
        found = self.store.of_choice(self.study, number) if 0 < number < 2**62 else {}
        if events.ASKED not in found:
            raise ChoiceError(f"a choice must come from this study, but choice {schema.short(number)} does not: ask for one")
        return found

    def before(self, event: Event) -> Replica:
        """The selector as it was before an event. This may take a while, so other threads are not kept waiting."""
        return load_replica(self.store, self.study, self._description, until=event.seq - 1)

    def check_process(self) -> None:
        """In a forked process, use a new connection."""
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
    """What the client sent, for comparisons: also NaN is equal to itself."""
    return json.dumps({name: item for name, item in data.items() if name != "late"}, sort_keys=True)


def load_replica(store: Store, study: int, description: Mapping[str, Any], *, until: int | None = None) -> Replica:
    """The selector after all events, or after the event `until`: from the last snapshot before it, and the events since then."""
    with store.lock:
        snapshot = store.snapshot(study, until=until)
    replica = Replica(description)
    if snapshot is not None:
        try:
            replica.load_state_dict(schema.read_json(snapshot[1], "a snapshot"))
            if replica.seq != snapshot[0]:
                raise StoreError("it belongs to another event")
        except (InvalidValueError, StoreError):  # of another version, or damaged: the log alone is enough
            replica = Replica(description)
    for event in store.events(study, after=replica.seq, until=until):
        replica.apply(event)
    return replica
