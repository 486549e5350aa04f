"""The file `clock.json` of a run: its progress and its time.

It is read where a checkpoint would be too large to open.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from esbas._internal import schema
from esbas._internal.files import read_file
from esbas.reporting.files import write_json

NAME = "clock.json"
_REMEDY = "remove the file, which loses only the measured time"


@dataclass(frozen=True, kw_only=True)
class Clock:
    """The progress of a run at its last checkpoint.

    Attributes:
        seconds: taken so far, over all interruptions.
        episodes: in the checkpoint.
        steps: in the checkpoint.
        finished: whether the run has used up its budget.
    """

    seconds: schema.NonNegative
    episodes: schema.Count
    steps: schema.Count
    finished: bool


def read_clock(directory: Path) -> Clock | None:
    """Read the clock of a run; None before its first checkpoint."""
    path = directory / NAME
    text = read_file(path, missing=b"")
    if not text and not path.exists():
        return None
    content = schema.read_json(text, str(path), remedy=_REMEDY)
    schema.check(content, schema.fields_of(Clock), str(path), remedy=_REMEDY)
    return Clock(**content)


def write_clock(directory: Path, clock: Clock) -> None:
    """Write the clock of a run."""
    write_json(directory / NAME, asdict(clock))
