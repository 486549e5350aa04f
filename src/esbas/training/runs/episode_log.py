"""The log of a run as CSV files. They survive a kill, and are cut back to the checkpoint when the run continues."""

import csv
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.reporting.files import write_csv
from esbas.runner import EpisodeRecord

EPISODES = "episode", "steps", "learner", "value", "length", "epoch", "terminated", "truncated"
FAULTS = "episode", "learner", "where", "dismissed", "message"


class CsvLog:
    """A CSV file to which rows are added; the first column is the number of the episode.

    Args:
        path: of the file.
        header: the names of the columns.
        upto: rows of later episodes are removed, because they will be played again.
    """

    def __init__(self, path: Path, header: Sequence[str], *, upto: int) -> None:
        kept = [row for row in _whole_rows(path, len(header)) if int(row[0]) <= upto] if upto else []
        write_csv(path, header, kept)
        self._file = path.open("a", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def add(self, *cells: object) -> None:
        self._writer.writerow(cells)

    def flush(self, *, to_disk: bool = False) -> None:
        """Make added rows visible to other processes; with `to_disk` they also survive a power failure."""
        self._file.flush()
        if to_disk:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class RunLog:
    """The files `episodes.csv` and `faults.csv` of one run; a context manager."""

    def __init__(self, folder: Path, *, upto: int) -> None:
        self._episodes = CsvLog(folder / "episodes.csv", EPISODES, upto=upto)
        self._faults = CsvLog(folder / "faults.csv", FAULTS, upto=upto)

    def add(self, record: EpisodeRecord, *, steps: int) -> None:
        """Add an episode; `steps` is the number of environment steps after it."""
        ended = int(record.terminated), int(record.truncated)
        self._episodes.add(record.number, steps, record.arm, record.value, record.length, record.epoch, *ended)
        for fault in record.faults:
            self._faults.add(record.number, fault.arm, fault.where, fault.dismissed, " ".join(fault.message.split()))

    def flush(self, *, to_disk: bool = False) -> None:
        self._episodes.flush(to_disk=to_disk)
        self._faults.flush(to_disk=to_disk)

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._episodes.close()
        self._faults.close()


@dataclass(frozen=True)
class Episodes:
    """The episodes of one run, as columns."""

    steps: Array  # (N,): environment steps after each episode
    learners: Array  # (N,): names of the learners in control
    values: Array  # (N,)
    lengths: Array  # (N,)

    def __len__(self) -> int:
        return len(self.values)


def read_episodes(folder: Path) -> Episodes:
    """Read the episodes that `RunLog` wrote."""
    rows = _whole_rows(folder / "episodes.csv", len(EPISODES))
    steps, learners, values, lengths = ([row[k] for row in rows] for k in range(1, 5))
    counts = np.array(steps, np.int64), np.array(lengths, np.int64)
    return Episodes(counts[0], np.array(learners, np.str_), np.array(values, np.float64), counts[1])


def read_faults(folder: Path) -> list[tuple[int, str, str, int, str]]:
    """Read the faults that `RunLog` wrote: episode, learner, where, dismissed for how many episodes, message."""
    rows = _whole_rows(folder / "faults.csv", len(FAULTS))
    return [(int(number), learner, where, int(dismissed), message) for number, learner, where, dismissed, message in rows]


def _whole_rows(path: Path, width: int) -> list[list[str]]:
    """The rows after the header, without an incomplete last row that a kill left."""
    try:
        text = path.read_text("utf-8", errors="replace")
        whole = text[: text.rfind("\n") + 1]
        rows = list(csv.reader(whole.splitlines()))[1:]
        if any(len(row) != width or not row[0].isdigit() for row in rows):
            raise ValueError("a row has missing columns")
        return rows
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise SaveFileError(f"{str(path)!r} must be a log of esbas, but is damaged ({error}): restore an earlier copy") from error
