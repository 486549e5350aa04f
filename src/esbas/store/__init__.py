"""Durable studies: a selector with a name and a log, in SQLite or PostgreSQL, shared by any number of processes."""

from esbas.store.comparing import Comparison, compare
from esbas.store.copying import copy_study, write_csv
from esbas.store.events import Event
from esbas.store.opening import open_store, open_study
from esbas.store.replaying import Difference, Replay, replay
from esbas.store.store import Store, StudyRow
from esbas.store.study import Study

__all__ = [
    "Comparison",
    "Difference",
    "Event",
    "Replay",
    "Store",
    "Study",
    "StudyRow",
    "compare",
    "copy_study",
    "open_store",
    "open_study",
    "replay",
    "write_csv",
]
