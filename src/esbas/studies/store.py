"""What SQLite and PostgreSQL have in common: studies, events and snapshots in tables, written in transactions."""

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from typing import Any, NamedTuple

from esbas import schema
from esbas.errors import StoreError, unknown
from esbas.store.description import read_description
from esbas.store.events import COLUMNS, Event, from_row, to_row

VERSION = 1  # of the tables: the number of the last file in sql/
CHUNK = 2000  # events that are read at a time
SMALL = 100_000  # characters of a snapshot that is kept although there is a newer one
_MARKS = ", ".join("?" * (len(Event._fields) + 1))
_APPEND = f"INSERT INTO esbas_event (study, {COLUMNS}) VALUES ({_MARKS})"  # noqa: S608  # names of columns
_EVENTS = f"SELECT {COLUMNS} FROM esbas_event WHERE study = ? AND "  # noqa: S608


class StudyRow(NamedTuple):
    """A study as its store knows it."""

    id: int
    name: str
    description: dict[str, Any]  # {"selector": see `describe_selector`, "expire_after": seconds, "claim_expires": seconds}
    created: float  # seconds since 1970


class Store(ABC):
    """Tables of studies. A backend implements the five methods that are abstract; statements have `?` for their parameters."""

    def __init__(self, url: str) -> None:
        self.url = url  # without a password
        self.lock = threading.RLock()  # one thread at a time uses the connection

    @abstractmethod
    def write(self, study: int | None) -> AbstractContextManager[float]:
        """A transaction that no other one on this study (None: any study) overlaps. Gives the time, in seconds since 1970.

        If the block fails, nothing has happened. When it ends, a process that is killed loses nothing.
        """

    @abstractmethod
    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""

    @abstractmethod
    def execute_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each of several rows."""

    @abstractmethod
    def reopen(self) -> None:
        """Use a new connection, and leave the old one alone: this process has been forked."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    def studies(self) -> list[StudyRow]:
        """All studies, in the order in which they were created."""
        rows = self.execute("SELECT id, name, description, created FROM esbas_study ORDER BY id")
        return [_study(row) for row in rows]

    def find(self, name: str) -> StudyRow | None:
        """The study with this name, if there is one."""
        rows = self.execute("SELECT id, name, description, created FROM esbas_study WHERE name = ?", (name,))
        return _study(rows[0]) if rows else None

    def get(self, name: str) -> StudyRow:
        """The study with this name; an error if there is none."""
        found = self.find(name)
        if found is None:
            raise unknown(
                "study", name, [each.name for each in self.studies()], "esbas study list shows all, open_study creates one"
            )
        return found

    def create(self, name: str, description: dict[str, Any]) -> tuple[StudyRow, bool]:
        """Create the study, unless it exists already: the study, and whether it is new."""
        with self.lock, self.write(None) as now:
            found = self.find(name)
            if found is not None:
                return found, False
            return self.insert(name, description, now), True

    def insert(self, name: str, description: dict[str, Any], now: float) -> StudyRow:
        """Add a study. Only within `write(None)`."""
        ((last,),) = self.execute("SELECT coalesce(max(id), 0) FROM esbas_study")
        row = StudyRow(last + 1, name, description, now)
        self.execute("INSERT INTO esbas_study VALUES (?, ?, ?, ?)", (row.id, name, json.dumps(description), now))
        return row

    def append(self, study: int, events: Sequence[Event]) -> None:
        """Add events at the end of the log. Only within `write`."""
        if len(events) == 1:
            self.execute(_APPEND, (study, *to_row(events[0])))
        else:
            self.execute_many(_APPEND, [(study, *to_row(event)) for event in events])

    def events(self, study: int, *, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """The events with larger numbers than `after`, in order. Events that are added meanwhile are included."""
        while True:
            most = CHUNK if until is None else max(0, min(CHUNK, until - after))  # there are no gaps
            with self.lock:
                rows = self.execute(f"{_EVENTS} seq > ? ORDER BY seq LIMIT {most}", (study, after))
            for row in rows:
                event = from_row(row)
                if until is not None and event.seq > until:
                    return
                yield event
            if len(rows) < CHUNK:  # the last ones
                return
            after = rows[-1][0]

    def last(self, study: int) -> int:
        """The number of the last event; 0 if there is none."""
        ((seq,),) = self.execute("SELECT coalesce(max(seq), 0) FROM esbas_event WHERE study = ?", (study,))
        return int(seq)

    def with_key(self, study: int, key: str) -> Event | None:
        """The event of the request that the client called `key`."""
        rows = self.execute(f"{_EVENTS} key = ?", (study, key))
        return from_row(rows[0]) if rows else None

    def of_choice(self, study: int, number: int) -> dict[str, Event]:
        """The events of a choice, by kind."""
        return {event.kind: event for event in map(from_row, self.execute(f"{_EVENTS} number = ?", (study, number)))}

    def counts(self, study: int) -> dict[str, int]:
        """The number of events by kind."""
        rows = self.execute("SELECT kind, count(*) FROM esbas_event WHERE study = ? GROUP BY kind", (study,))
        return {str(kind): int(count) for kind, count in rows}

    def snapshot(self, study: int, *, until: int | None = None) -> tuple[int, str] | None:
        """The newest snapshot, or the newest that contains no event after `until`: its last event, and its state."""
        limit = 2**62 if until is None else until
        rows = self.execute(
            "SELECT seq, state FROM esbas_snapshot WHERE study = ? AND seq <= ? ORDER BY seq DESC LIMIT 1", (study, limit)
        )
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def snapshot_seq(self, study: int) -> int:
        """The last event in the newest snapshot; 0 if there is none."""
        ((seq,),) = self.execute("SELECT coalesce(max(seq), 0) FROM esbas_snapshot WHERE study = ?", (study,))
        return int(seq)

    def add_snapshot(self, study: int, seq: int, state: str) -> None:
        """Store a snapshot. Older ones are kept if they are small: they make it quick to explain old choices."""
        with self.lock, self.write(study):
            self.execute("DELETE FROM esbas_snapshot WHERE study = ? AND seq < ? AND length(state) > ?", (study, seq, SMALL))
            self.insert_snapshot(study, seq, state)

    def insert_snapshot(self, study: int, seq: int, state: str) -> None:
        """Store a snapshot and keep all others. Only within `write`."""
        self.execute("INSERT INTO esbas_snapshot VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (study, seq, state))

    def _create_tables(self) -> None:
        """Create the tables, one numbered file after the other. Only within `write`."""
        for file in sorted(each.name for each in resources.files("esbas.store").joinpath("sql").iterdir()):
            text = resources.files("esbas.store").joinpath("sql", file).read_text("utf-8")
            for statement in re.sub("--.*", "", text).split(";"):
                if statement.strip():
                    self.execute(statement)

    def _check_version(self) -> None:
        rows = self.execute("SELECT version FROM esbas_version")
        if [row for row in rows if row[0] == VERSION] != rows or not rows:
            found = ", ".join(schema.short(row[0]) for row in rows[:3]) or "none"
            raise StoreError(f"a store must have version {VERSION}, but {self.url!r} has {found}: upgrade esbas")


def _study(row: Sequence[Any]) -> StudyRow:
    number, name, description, created = row
    fits = isinstance(number, int) and isinstance(name, str) and isinstance(description, str) and isinstance(created, float)
    if not fits:
        raise StoreError(f"a study must have a name and a description, but {schema.short(name)} has not: {schema.REMEDY}")
    return StudyRow(number, name, read_description(description, name), created)
