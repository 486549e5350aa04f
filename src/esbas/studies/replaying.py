"""Replays a log: a new selector must make the choices that the log contains."""

from dataclasses import dataclass

from esbas.errors import StoreError
from esbas.studies import events
from esbas.studies.replica import Replica
from esbas.studies.study import Study


@dataclass(frozen=True)
class Difference:
    """The first event that a new selector does not repeat."""

    seq: int
    number: int | None
    message: str


@dataclass(frozen=True)
class Replay:
    """The result of replaying a log."""

    events: int  # that were repeated
    choices: int  # that were repeated
    difference: Difference | None  # None if all events were repeated


def replay(study: Study) -> Replay:
    """Recompute every choice of a study from its log alone, without snapshots."""
    replica = Replica(study.description["selector"])
    choices = 0
    for event in study.history():
        try:
            replica.apply(event)
        except StoreError as error:
            difference = Difference(event.seq, event.number, str(error))
            return Replay(replica.seq, choices, difference)
        if event.kind == events.ASKED:
            choices += 1
    return Replay(replica.seq, choices, None)
