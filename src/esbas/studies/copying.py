"""Copies studies between stores, and writes their logs as CSV."""

import csv
import io
import json
import os
from itertools import islice

from esbas._internal.files import open_atomically
from esbas.errors import StudyError
from esbas.studies.events import Event
from esbas.studies.requests import check_name
from esbas.studies.store import CHUNK, Store

FROM_DATA = ("among", "context", "log_probs")  # parts of the data that have a column
CSV_HEADER = (*Event._fields[:-1], *FROM_DATA, "data")


def copy_study(source: Store, name: str, target: Store, *, new_name: str | None = None) -> int:
    """Copy the log and the newest snapshot of a study to another store, in one transaction.

    Events that are added meanwhile are not copied.

    Args:
        source: the store that has the study.
        name: of the study.
        target: where the copy goes.
        new_name: of the copy; there must be no such study in the target (default: the same name).

    Returns:
        The number of events.
    """
    new = check_name(name if new_name is None else new_name, "The name of a study")
    row = source.get(name)
    until = source.last(row.id)
    with target.lock, target.write(None) as now:
        if target.find(new) is not None:
            raise StudyError(
                f"There is already a study {new!r} in {target.url!r}: give the copy another name."
            )
        copy = target.insert(new, row.description, now)
        events = source.events(row.id, until=until)
        while chunk := list(islice(events, CHUNK)):
            target.append(copy.id, chunk)
        snapshot = source.snapshot(row.id, until=until)
        if snapshot is not None:
            seq, state = snapshot
            target.insert_snapshot(copy.id, seq, state)
    return until


def write_csv(store: Store, name: str, path: str | os.PathLike[str]) -> int:
    """Write the log of a study to a file, one row per event, and return the number of events."""
    study = store.get(name).id
    rows = 0
    with open_atomically(path) as file:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow(CSV_HEADER)
        for event in store.events(study):
            rest = dict(event.data)
            cells = [_cell(rest.pop(name, None)) for name in FROM_DATA]
            cells.append(_cell(rest or None))
            writer.writerow([*event[:-1], *cells])
            rows += 1
        text.detach()  # flushes; the file is closed by whoever opened it
    return rows


def _cell(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
