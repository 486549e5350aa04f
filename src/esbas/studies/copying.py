"""Copies studies between stores, and writes their logs as CSV."""

import csv
import io
import json
import os
from itertools import islice

from esbas.errors import StudyError
from esbas.files import open_atomically
from esbas.store.events import Event
from esbas.store.requests import check_name
from esbas.store.store import CHUNK, Store

CSV_HEADER = (*Event._fields[:-1], "among", "context", "log_probs", "data")


def copy_study(source: Store, name: str, target: Store, *, new_name: str | None = None) -> int:
    """Copy the log and the newest snapshot of a study to another store, in one transaction. Returns the number of events.

    Events that are added meanwhile are not copied.

    Args:
        source: the store that has the study.
        name: of the study.
        target: where the copy goes.
        new_name: of the copy; there must be no such study in the target (default: the same name).
    """
    new = check_name(name if new_name is None else new_name, "the name of a study")
    row = source.get(name)
    until = source.last(row.id)
    with target.lock, target.write(None) as now:
        if target.find(new) is not None:
            raise StudyError(f"a copy must have a new name, but {target.url!r} has a study {new!r}: give another name")
        copy = target.insert(new, row.description, now)
        events = source.events(row.id, until=until)
        while chunk := list(islice(events, CHUNK)):
            target.append(copy.id, chunk)
        snapshot = source.snapshot(row.id, until=until)
        if snapshot is not None:
            target.insert_snapshot(copy.id, *snapshot)
    return until


def write_csv(store: Store, name: str, path: str | os.PathLike[str]) -> int:
    """Write the log of a study to a file, one row per event. Returns the number of events."""
    study, rows = store.get(name).id, 0
    with open_atomically(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(CSV_HEADER)
        for event in store.events(study):
            rest = dict(event.data)
            columns = [rest.pop(column, None) for column in CSV_HEADER[-4:-1]]
            writer.writerow([*event[:-1], *map(_cell, columns), _cell(rest or None)])
            rows += 1
        text.detach()  # flushes; the file is closed by whoever opened it
    return rows


def _cell(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
