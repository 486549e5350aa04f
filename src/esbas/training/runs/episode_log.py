"""The log of a run as CSV files. They survive a kill, and are cut back to the checkpoint when the run continues."""

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np

from esbas.columns import Array
from esbas.errors import SaveFileError
from esbas.files import file_errors, read_file
from esbas.reporting.files import write_csv
from esbas.runner import EpisodeRecord
from esbas.training.runs.clock import read_clock

EPISODES = "episode", "steps", "learner", "value", "length", "epoch", "terminated", "truncated"
FAULTS = "episode", "learner", "where", "dismissed", "message"
EVALUATIONS = "steps", "learner", "episodes", "mean", "min", "max", "played steps", "problem"
LONGEST = 1000  # characters of a message
_COUNT, _TEXT, _BIT = re.compile(r"[0-9]{1,18}"), re.compile(r".*", re.DOTALL), re.compile(r"[01]")
_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]{1,4})?|[-+]?inf|nan", re.IGNORECASE)
_EPISODE_CELLS = _COUNT, _COUNT, _TEXT, _NUMBER, _COUNT, _COUNT, _BIT, _BIT
_FAULT_CELLS = _COUNT, _TEXT, _TEXT, _COUNT, _TEXT
_KNOWN = re.compile(rf"({_NUMBER.pattern})?", re.IGNORECASE)  # empty: unknown
_EVALUATION_CELLS = _COUNT, _TEXT, _COUNT, _KNOWN, _KNOWN, _KNOWN, _COUNT, _TEXT


class CsvLog:
    """A CSV file to which rows are added.

    Args:
        path: of the file, which is written anew.
        header: the names of the columns.
        rows: the rows to start with.
    """

    def __init__(self, path: Path, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        self._path = path
        write_csv(path, header, rows)
        with file_errors(path):
            self._file = path.open("a", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, lineterminator="\n")

    def add(self, *cells: object) -> None:
        with file_errors(self._path):
            self._writer.writerow(cells)

    def flush(self, *, to_disk: bool = False) -> None:
        """Make added rows visible to other processes; with `to_disk` they also survive a power failure."""
        with file_errors(self._path):
            self._file.flush()
            if to_disk:
                os.fsync(self._file.fileno())

    def close(self) -> None:
        with file_errors(self._path):
            self._file.close()


class RunLog:
    """The files `episodes.csv` and `faults.csv` of one run; a context manager.

    Args:
        folder: of the run.
        upto: the number of episodes in the checkpoint. The log must contain all of them; later ones are removed, because they
            will be played again.
        steps: the number of environment steps in the checkpoint.
    """

    def __init__(self, folder: Path, *, upto: int, steps: int = 0) -> None:
        episodes, faults = [], []  # of a new run
        if upto:
            episodes = _episode_rows(folder, at_least=upto, at_most=upto)
            if int(episodes[-1][1]) != steps:
                raise _damaged(folder / "episodes.csv", f"episode {upto} ends at step {episodes[-1][1]} instead of {steps}")
            faults = [row for row in _fault_rows(folder) if int(row[0]) <= upto]
        self._episodes = CsvLog(folder / "episodes.csv", EPISODES, episodes)
        try:
            self._faults = CsvLog(folder / "faults.csv", FAULTS, faults)
        except BaseException:
            self._episodes.close()
            raise

    def add(self, record: EpisodeRecord, *, steps: int) -> None:
        """Add an episode; `steps` is the number of environment steps after it."""
        ended = int(record.terminated), int(record.truncated)
        self._episodes.add(record.number, steps, record.arm, record.value, record.length, record.epoch, *ended)
        for fault in record.faults:
            self._faults.add(record.number, fault.arm, fault.where, fault.dismissed, one_line(fault.message))

    def flush(self, *, to_disk: bool = False) -> None:
        self._episodes.flush(to_disk=to_disk)
        self._faults.flush(to_disk=to_disk)

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self._episodes.close()
        finally:
            self._faults.close()


@dataclass(frozen=True)
class Episodes:
    """The episodes of one run, as columns."""

    steps: Array  # (N,): environment steps after each episode
    learners: Array  # (N,): names of the learners in control
    values: Array  # (N,)
    lengths: Array  # (N,)
    epochs: Array  # (N,)

    def __len__(self) -> int:
        return len(self.values)


def read_episodes(folder: Path, *, upto: int | None = None) -> Episodes:
    """Read the first `upto` episodes that `RunLog` wrote, or all: at least those of the last checkpoint."""
    clock = read_clock(folder) if upto is None else None  # first: a running training extends the log
    rows = _episode_rows(folder, at_least=clock.episodes if clock else upto or 0, at_most=upto)
    if clock is not None and clock.finished and len(rows) > clock.episodes:
        raise _damaged(folder / "episodes.csv", f"it has {len(rows)} episodes, and the finished run has {clock.episodes}")
    steps, learners, values, lengths, epochs = ([row[k] for row in rows] for k in range(1, 6))
    counts = np.array(steps, np.int64), np.array(lengths, np.int64), np.array(epochs, np.int64)
    return Episodes(counts[0], np.array(learners, np.str_), np.array(values, np.float64), *counts[1:])


def read_faults(folder: Path) -> list[tuple[int, str, str, int, str]]:
    """Read the faults that `RunLog` wrote: episode, learner, where, dismissed for how many episodes, message."""
    return [(int(row[0]), row[1], row[2], int(row[3]), row[4]) for row in _fault_rows(folder)]


@dataclass(frozen=True)
class EvaluationRow:
    """A row of `evaluations.csv`: a few episodes of one learner's greedy policy. Mean, min and max are NaN if none ended."""

    steps: int  # of training so far
    learner: str
    episodes: int
    mean: float
    min: float
    max: float
    played: int  # environment steps
    problem: str  # why it cannot be the best policy; empty if it can

    @property
    def cells(self) -> tuple[object, ...]:
        numbers = ("" if math.isnan(number) else number for number in (self.mean, self.min, self.max))
        return self.steps, self.learner, self.episodes, *numbers, self.played, self.problem


def read_evaluations(folder: Path, *, upto: int | None = None) -> list[EvaluationRow]:
    """Read the evaluations of a run, or only those of its first `upto` environment steps."""
    path, rows = folder / "evaluations.csv", []
    for cells in _whole_rows(folder / "evaluations.csv", EVALUATIONS, _EVALUATION_CELLS):
        mean, least, most = (float(cell) if cell else math.nan for cell in cells[3:6])
        rows.append(EvaluationRow(int(cells[0]), cells[1], int(cells[2]), mean, least, most, int(cells[6]), cells[7]))
        if len(rows) > 1 and rows[-2].steps > rows[-1].steps:
            raise _damaged(path, f"step {rows[-1].steps} comes after step {rows[-2].steps}")
        if not rows[-1].problem and not math.isfinite(rows[-1].mean):
            raise _damaged(path, f"the mean of row {len(rows)} is {cells[3]!r}")
    return [row for row in rows if upto is None or row.steps <= upto]


def one_line(message: str) -> str:
    """A message as one line that any file can hold: without control characters and surrogates, at most LONGEST characters."""
    short = message[: 10 * LONGEST]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in short).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 4] + " ..."


def _episode_rows(folder: Path, *, at_least: int, at_most: int | None = None) -> list[list[str]]:
    """The rows of the episodes 1, 2, ..., each of which starts where the one before ended."""
    path, before = folder / "episodes.csv", 0
    rows = _whole_rows(path, EPISODES, _EPISODE_CELLS)[:at_most]
    for number, row in enumerate(rows, 1):
        if int(row[0]) != number:
            raise _damaged(path, f"row {number} is that of episode {row[0]}")
        if int(row[1]) != before + int(row[4]):
            raise _damaged(path, f"episode {number} has {row[4]} steps, but lasts from step {before} to step {row[1]}")
        before = int(row[1])
    if len(rows) < at_least:
        raise _damaged(path, f"it has {len(rows)} episodes, and the checkpoint has {at_least}")
    return rows


def _fault_rows(folder: Path) -> list[list[str]]:
    return _whole_rows(folder / "faults.csv", FAULTS, _FAULT_CELLS)


def _whole_rows(path: Path, header: Sequence[str], cells: Sequence[re.Pattern[str]]) -> list[list[str]]:
    """The rows after the header, without an incomplete last row that a kill left."""
    try:
        text = read_file(path, missing=b"").decode("utf-8", "replace")
        first, *rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline="")) if "\n" in text else [list(header)]
    except csv.Error as error:
        raise _damaged(path, str(error)) from error
    if first != list(header):
        raise _damaged(path, f"its columns must be {', '.join(header)}")
    for row in rows:
        if len(row) != len(header):
            raise _damaged(path, f"a row must have {len(header)} columns, but has {len(row)}")
        for name, cell, pattern in zip(header, row, cells, strict=True):
            if not pattern.fullmatch(cell):
                raise _damaged(path, f"{cell[:40]!r} in column {name!r} of row {rows.index(row) + 1} is not valid")
    return rows


def _damaged(path: Path, why: str) -> SaveFileError:
    return SaveFileError(
        f"{str(path)!r} must be a complete log of the run, but {why}: restore an earlier copy of the whole folder"
    )
