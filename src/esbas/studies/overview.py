"""The whole log of a study in a few hundred numbers: how often each arm was chosen, and what it was worth, over the rounds."""

from typing import NamedTuple

from esbas import schema
from esbas.errors import StoreError
from esbas.store.events import ASKED, TOLD
from esbas.store.store import Store

CHUNK = 50_000  # events that are summed up at a time, so that others can use the store meanwhile
_SUMMABLE = "(value IS NULL OR abs(value) < 1e140)"  # larger values are left out: PostgreSQL refuses squares that overflow
_SUMS = (
    f"SELECT (number - 1) / ?, arm, count(CASE WHEN kind = '{ASKED}' THEN 1 END), count(value), coalesce(sum(value - ?), 0.0), "  # noqa: S608
    "coalesce(sum((value - ?) * (value - ?)), 0.0) FROM esbas_event "
    f"WHERE study = ? AND seq > ? AND seq <= ? AND kind IN ('{ASKED}', '{TOLD}') AND {_SUMMABLE} GROUP BY 1, 2"
)
_FIRST = f"SELECT value FROM esbas_event WHERE study = ? AND kind = '{TOLD}' AND {_SUMMABLE} ORDER BY seq LIMIT 1"  # noqa: S608


class ArmTotals(NamedTuple):
    """What happened to one arm in the rounds `part * width + 1` to `(part + 1) * width`."""

    part: int
    arm: str
    asked: int  # how often it was chosen
    told: int  # how many of these choices have a value
    sum: float  # of the values, minus `origin` each
    squares: float  # the sum of the squares of the same differences


class Overview(NamedTuple):
    """The totals of all rounds. `origin` is the first value: differences to it lose no digits if values are large."""

    last: int  # the number of the last event that is contained
    width: int  # rounds in a part: a power of 2
    origin: float
    totals: list[ArmTotals]


def overview(store: Store, study: int, *, parts: int) -> Overview:
    """Sum up the log of a study, in at most `parts` parts of equal length."""
    with store.lock:
        last = store.last(study)
        ((rounds,),) = store.execute("SELECT coalesce(max(number), 0) FROM esbas_event WHERE study = ?", (study,))
        first = store.execute(_FIRST, (study,))
    _check(isinstance(rounds, int) and all(isinstance(value, float) for (value,) in first))
    width = 1
    while width * parts < rounds:
        width *= 2
    origin, found = first[0][0] if first else 0.0, dict[tuple[int, str], ArmTotals]()
    for start in range(0, last, CHUNK):
        with store.lock:
            rows = store.execute(_SUMS, (width, origin, origin, origin, study, start, min(start + CHUNK, last)))
        for part, arm, *numbers in rows:
            _check(isinstance(part, int) and isinstance(arm, str))
            old = found.get((part, arm), ArmTotals(part, arm, 0, 0, 0.0, 0.0))
            found[part, arm] = ArmTotals(part, arm, *(a + b for a, b in zip(old[2:], numbers, strict=True)))
    return Overview(last, width, origin, [found[each] for each in sorted(found)])


def _check(fits: bool) -> None:
    if not fits:
        raise StoreError(f"every event of a log must be whole, but one is not: {schema.REMEDY}")
