"""Stores of studies: what SQLite and PostgreSQL have in common.

Studies, events and snapshots are rows of tables, which are written in transactions.
"""

import json
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from importlib import resources
from typing import Any, NamedTuple

from esbas._internal import schema
from esbas.errors import StoreError, unknown
from esbas.studies.description import read_description
from esbas.studies.events import COLUMNS, Event, from_row, to_row

VERSION = 1  # of the tables: the number of the last file in sql/
CHUNK = 2000  # events that are read at a time
SMALL = 100_000  # characters of a snapshot that is kept although there is a newer one
_MARKS = ", ".join("?" * (len(Event._fields) + 1))
# Only names of columns are inserted into these statements.
_APPEND = f"INSERT INTO esbas_event (study, {COLUMNS}) VALUES ({_MARKS})"  # noqa: S608
_EVENTS = f"SELECT {COLUMNS} FROM esbas_event WHERE study = ? AND "  # noqa: S608


class StudyRow(NamedTuple):
    """The row of a study in its store."""

    id: int
    name: str
    # {"selector": see `describe_selector`, "expire_after": seconds, "claim_expires": seconds}
    description: dict[str, Any]
    created: float  # seconds since 1970


class Store(ABC):
    """Tables of studies.

    A backend implements the five abstract methods. Statements have `?` for their parameters.
    """

    def __init__(self, url: str) -> None:
        self.url = url  # without a password
        self.lock = threading.RLock()  # one thread at a time uses the connection

    @abstractmethod
    def write(self, study: int | None) -> AbstractContextManager[float]:
        """Open a transaction that no other one on this study (None: any study) overlaps.

        The block gets the time, in seconds since 1970. If it fails, nothing has happened. Once it
        has ended, what it wrote is kept even if the process is killed.
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
        """Return all studies, in the order in which they were created."""
        rows = self.execute("SELECT id, name, description, created FROM esbas_study ORDER BY id")
        return [_study(row) for row in rows]

    def find(self, name: str) -> StudyRow | None:
        """Return the study with this name, or None."""
        rows = self.execute(
            "SELECT id, name, description, created FROM esbas_study WHERE name = ?", (name,)
        )
        return _study(rows[0]) if rows else None

    def get(self, name: str) -> StudyRow:
        """Return the study with this name; raise an error if there is none."""
        found = self.find(name)
        if found is None:
            names = [each.name for each in self.studies()]
            remedy = "esbas study list shows all, open_study creates one"
            raise unknown("study", name, names, remedy)
        return found

    def create(self, name: str, description: dict[str, Any]) -> tuple[StudyRow, bool]:
        """Create the study, unless it exists. Return the study, and whether it is new."""
        with self.lock, self.write(None) as now:
            found = self.find(name)
            if found is not None:
                return found, False
            return self.insert(name, description, now), True

    def insert(self, name: str, description: dict[str, Any], now: float) -> StudyRow:
        """Add a study. Only within `write(None)`."""
        ((last,),) = self.execute("SELECT coalesce(max(id), 0) FROM esbas_study")
        row = StudyRow(last + 1, name, description, now)
        self.execute(
            "INSERT INTO esbas_study VALUES (?, ?, ?, ?)",
            (row.id, name, json.dumps(description), now),
        )
        return row

    def append(self, study: int, events: Sequence[Event]) -> None:
        """Add events at the end of the log. Only within `write`."""
        if len(events) == 1:
            self.execute(_APPEND, (study, *to_row(events[0])))
        else:
            self.execute_many(_APPEND, [(study, *to_row(event)) for event in events])

    def events(self, study: int, *, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Yield the events with larger numbers than `after`, in order, also those added meanwhile.

        Args:
            study: the number of the study.
            after: the number of the last event that is left out.
            until: the number of the last event that is wanted; None: all.
        """
        while True:
            most = CHUNK
            if until is not None:  # the numbers have no gaps
                most = max(0, min(CHUNK, until - after))
            with self.lock:
                rows = self.execute(f"{_EVENTS} seq > ? ORDER BY seq LIMIT {most}", (study, after))
            for row in rows:
                event = from_row(row)
                if until is not None and event.seq > until:
                    return
                yield event
            if len(rows) < CHUNK:  # these were the last ones
                return
            after = rows[-1][0]

    def last(self, study: int) -> int:
        """Return the number of the last event; 0 if there is none."""
        ((seq,),) = self.execute(
            "SELECT coalesce(max(seq), 0) FROM esbas_event WHERE study = ?", (study,)
        )
        return int(seq)

    def with_key(self, study: int, key: str) -> Event | None:
        """Return the event of the request with this key, or None."""
        rows = self.execute(f"{_EVENTS} key = ?", (study, key))
        return from_row(rows[0]) if rows else None

    def of_choice(self, study: int, number: int) -> dict[str, Event]:
        """Return the events of a choice, by kind."""
        found = {}
        for row in self.execute(f"{_EVENTS} number = ?", (study, number)):
            event = from_row(row)
            found[event.kind] = event
        return found

    def counts(self, study: int) -> dict[str, int]:
        """Return the number of events by kind."""
        rows = self.execute(
            "SELECT kind, count(*) FROM esbas_event WHERE study = ? GROUP BY kind", (study,)
        )
        return {str(kind): int(count) for kind, count in rows}

    def snapshot(self, study: int, *, until: int | None = None) -> tuple[int, str] | None:
        """Return the newest snapshot, or the newest that contains no event after `until`.

        Returns:
            The number of its last event, and its state; None if there is no snapshot.
        """
        limit = 2**62 if until is None else until
        rows = self.execute(
            "SELECT seq, state FROM esbas_snapshot WHERE study = ? AND seq <= ? "
            "ORDER BY seq DESC LIMIT 1",
            (study, limit),
        )
        if not rows:
            return None
        seq, state = rows[0]
        return int(seq), str(state)

    def snapshot_seq(self, study: int) -> int:
        """Return the number of the last event in the newest snapshot; 0 if there is none."""
        ((seq,),) = self.execute(
            "SELECT coalesce(max(seq), 0) FROM esbas_snapshot WHERE study = ?", (study,)
        )
        return int(seq)

    def add_snapshot(self, study: int, seq: int, state: str) -> None:
        """Store a snapshot, and delete older ones that are large.

        Small ones are kept because they make it quick to explain old choices.
        """
        with self.lock, self.write(study):
            self.execute(
                "DELETE FROM esbas_snapshot WHERE study = ? AND seq < ? AND length(state) > ?",
                (study, seq, SMALL),
            )
            self.insert_snapshot(study, seq, state)

    def insert_snapshot(self, study: int, seq: int, state: str) -> None:
        """Store a snapshot and keep all others. Only within `write`."""
        self.execute(
            "INSERT INTO esbas_snapshot VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
            (study, seq, state),
        )

    def _create_tables(self) -> None:
        """Create the tables, one numbered file after the other. Only within `write`."""
        folder = resources.files("esbas.studies").joinpath("sql")
        for name in sorted(file.name for file in folder.iterdir()):
            text = folder.joinpath(name).read_text("utf-8")
            without_comments = re.sub("--.*", "", text)
            for statement in without_comments.split(";"):
                if statement.strip():
                    self.execute(statement)

    def _check_version(self) -> None:
        rows = self.execute("SELECT version FROM esbas_version")
        if not rows or any(version != VERSION for (version,) in rows):
            found = ", ".join(schema.short(version) for (version,) in rows[:3]) or "none"
            raise StoreError(
                f"The store {self.url!r} must have version {VERSION}, but has {found}: "
                "upgrade esbas."
            )


def _study(row: Sequence[Any]) -> StudyRow:
    number, name, description, created = row
    fits = (
        isinstance(number, int)
        and isinstance(name, str)
        and isinstance(description, str)
        and isinstance(created, float)
    )
    if not fits:
        raise StoreError(
            f"Study {schema.short(name)} must have a name, a description and a time of creation "
            f"in its store, but has not: {schema.REMEDY}."
        )
    return StudyRow(number, name, read_description(description, name), created)
