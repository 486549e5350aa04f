"""Sums up the log of a study: how often each arm was chosen, and its values, over the rounds."""

from typing import NamedTuple

from esbas._internal import schema
from esbas.errors import StoreError
from esbas.studies.events import ASKED, TOLD
from esbas.studies.store import Store

CHUNK = 50_000  # events that are summed up at a time, so that others can use the store meanwhile
# Larger values are left out, because PostgreSQL refuses squares that overflow.
_SUMMABLE = "(value IS NULL OR abs(value) < 1e140)"
_SUMS = f"""
    SELECT
        (number - 1) / ?,
        arm,
        count(CASE WHEN kind = '{ASKED}' THEN 1 END),
        count(value),
        coalesce(sum(value - ?), 0.0),
        coalesce(sum((value - ?) * (value - ?)), 0.0)
    FROM esbas_event
    WHERE study = ? AND seq > ? AND seq <= ? AND kind IN ('{ASKED}', '{TOLD}') AND {_SUMMABLE}
    GROUP BY 1, 2
"""  # noqa: S608
_FIRST = f"""
    SELECT value FROM esbas_event
    WHERE study = ? AND kind = '{TOLD}' AND {_SUMMABLE}
    ORDER BY seq LIMIT 1
"""  # noqa: S608


class ArmTotals(NamedTuple):
    """The totals of one arm in the rounds `part * width + 1` to `(part + 1) * width`."""

    part: int
    arm: str
    asked: int  # how often it was chosen
    told: int  # how many of these choices have a value
    sum: float  # of the values, minus `origin` each
    squares: float  # the sum of the squares of the same differences


class Overview(NamedTuple):
    """The totals of all rounds.

    `origin` is the first value: differences to it lose no digits if values are large.
    """

    last: int  # the number of the last event that is contained
    width: int  # rounds in a part: a power of 2
    origin: float
    totals: list[ArmTotals]


def overview(store: Store, study: int, *, parts: int) -> Overview:
    """Sum up the log of a study, in at most `parts` parts of equal length."""
    with store.lock:
        last = store.last(study)
        ((rounds,),) = store.execute(
            "SELECT coalesce(max(number), 0) FROM esbas_event WHERE study = ?", (study,)
        )
        first = store.execute(_FIRST, (study,))
    origin = first[0][0] if first else 0.0
    _check(isinstance(rounds, int) and isinstance(origin, float))
    width = 1
    while width * parts < rounds:
        width *= 2
    found: dict[tuple[int, str], ArmTotals] = {}
    for start in range(0, last, CHUNK):
        end = min(start + CHUNK, last)
        with store.lock:
            rows = store.execute(_SUMS, (width, origin, origin, origin, study, start, end))
        for part, arm, asked, told, total, squares in rows:
            _check(isinstance(part, int) and isinstance(arm, str))
            old = found.get((part, arm), ArmTotals(part, arm, 0, 0, 0.0, 0.0))
            found[part, arm] = ArmTotals(
                part,
                arm,
                asked=old.asked + asked,
                told=old.told + told,
                sum=old.sum + total,
                squares=old.squares + squares,
            )
    return Overview(last, width, origin, [found[each] for each in sorted(found)])


def _check(fits: bool) -> None:
    if not fits:
        raise StoreError(f"An event of the log is damaged: {schema.REMEDY}.")
