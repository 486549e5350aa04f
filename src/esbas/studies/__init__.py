"""Durable studies: selectors with a name and a log, in SQLite or PostgreSQL.

Any number of processes can share a study.
"""

from esbas.studies.choosing import StudyChoice
from esbas.studies.comparing import StudyComparison, compare
from esbas.studies.copying import copy_study, write_csv
from esbas.studies.events import Event
from esbas.studies.opening import open_store, open_study
from esbas.studies.replaying import Difference, Replay, replay
from esbas.studies.store import Store, StudyRow
from esbas.studies.study import Study

__all__ = [
    "Difference",
    "Event",
    "Replay",
    "Store",
    "Study",
    "StudyChoice",
    "StudyComparison",
    "StudyRow",
    "compare",
    "copy_study",
    "open_store",
    "open_study",
    "replay",
    "write_csv",
]
