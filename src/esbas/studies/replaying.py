"""Replays a log: a new selector must make the choices that the log contains."""

from dataclasses import dataclass

from esbas.errors import StoreError
from esbas.store.replica import Replica
from esbas.store.study import Study


@dataclass(frozen=True)
class Difference:
    """The first event that a new selector does not repeat."""

    seq: int
    number: int | None
    message: str


@dataclass(frozen=True)
class Replay:
    """What replaying a log has shown."""

    events: int  # that were repeated
    choices: int
    difference: Difference | None  # None: all of them


def replay(study: Study) -> Replay:
    """Recompute every choice of a study from its log alone, without snapshots."""
    replica = Replica(study.description["selector"])
    choices = 0
    for event in study.history():
        try:
            replica.apply(event)
        except StoreError as error:
            return Replay(replica.seq, choices, Difference(event.seq, event.number, str(error)))
        choices += event.kind == "asked"
    return Replay(replica.seq, choices, None)
