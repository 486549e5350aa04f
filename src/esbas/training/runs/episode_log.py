"""The log of a run as CSV files.

They survive a kill, and are cut back to the checkpoint when the run continues.
"""

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np

from esbas._internal.columns import Array
from esbas._internal.files import file_errors, read_file
from esbas.errors import SaveFileError
from esbas.loop import EpisodeRecord
from esbas.reporting.files import write_csv
from esbas.training.runs.clock import read_clock

EPISODES = ("episode", "steps", "learner", "value", "length", "epoch", "terminated", "truncated")
FAULTS = ("episode", "learner", "where", "dismissed", "message")
EVALUATIONS = ("steps", "learner", "episodes", "mean", "min", "max", "played steps", "problem")
LONGEST = 1000  # characters of a message

# What the cells of each column look like.
_NUMBER_TEXT = r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[-+]?[0-9]{1,4})?|[-+]?inf|nan"
_COUNT = re.compile(r"[0-9]{1,18}")
_TEXT = re.compile(r".*", re.DOTALL)
_BIT = re.compile(r"[01]")
_NUMBER = re.compile(_NUMBER_TEXT, re.IGNORECASE)
_NUMBER_OR_EMPTY = re.compile(rf"({_NUMBER_TEXT})?", re.IGNORECASE)
_EPISODE_CELLS = (_COUNT, _COUNT, _TEXT, _NUMBER, _COUNT, _COUNT, _BIT, _BIT)
_FAULT_CELLS = (_COUNT, _TEXT, _TEXT, _COUNT, _TEXT)
_EVALUATION_CELLS = (
    _COUNT,
    _TEXT,
    _COUNT,
    _NUMBER_OR_EMPTY,
    _NUMBER_OR_EMPTY,
    _NUMBER_OR_EMPTY,
    _COUNT,
    _TEXT,
)


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
        """Make added rows visible to other processes.

        With `to_disk`, they also survive a power failure.
        """
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
        upto: the number of episodes in the checkpoint. The log must contain all of them; later ones
            are removed, because they will be played again.
        steps: the number of environment steps in the checkpoint.
    """

    def __init__(self, folder: Path, *, upto: int, steps: int = 0) -> None:
        episodes: list[list[str]] = []
        faults: list[list[str]] = []
        if upto:
            episodes = _episode_rows(folder, at_least=upto, at_most=upto)
            logged_steps = episodes[-1][1]
            if int(logged_steps) != steps:
                why = f"episode {upto} ends at step {logged_steps} instead of {steps}"
                raise _damaged(folder / "episodes.csv", why)
            faults = [row for row in _fault_rows(folder) if int(row[0]) <= upto]
        self._episodes = CsvLog(folder / "episodes.csv", EPISODES, episodes)
        try:
            self._faults = CsvLog(folder / "faults.csv", FAULTS, faults)
        except BaseException:
            self._episodes.close()
            raise

    def add(self, record: EpisodeRecord, *, steps: int) -> None:
        """Add an episode; `steps` is the number of environment steps after it."""
        self._episodes.add(
            record.number,
            steps,
            record.learner,
            record.value,
            record.length,
            record.epoch,
            int(record.terminated),
            int(record.truncated),
        )
        for fault in record.faults:
            self._faults.add(
                record.number, fault.learner, fault.where, fault.dismissed, one_line(fault.message)
            )

    def flush(self, *, to_disk: bool = False) -> None:
        self._episodes.flush(to_disk=to_disk)
        self._faults.flush(to_disk=to_disk)

    def __enter__(self) -> "RunLog":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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
    terminated: Array  # (N,): whether the environment ended the episode
    truncated: Array  # (N,): whether a time limit did

    def __len__(self) -> int:
        return len(self.values)


def read_episodes(folder: Path, *, upto: int | None = None) -> Episodes:
    """Read the first `upto` episodes that `RunLog` wrote, or all.

    The log must have at least the episodes of the last checkpoint.
    """
    if upto is not None:
        at_least = upto
    else:
        # Before the log, which a running training extends.
        clock = read_clock(folder)
        at_least = 0 if clock is None else clock.episodes
    rows = _episode_rows(folder, at_least=at_least, at_most=upto)
    columns = {}
    for index, name in enumerate(EPISODES):
        columns[name] = [row[index] for row in rows]
    return Episodes(
        steps=np.array(columns["steps"], np.int64),
        learners=np.array(columns["learner"], np.str_),
        values=np.array(columns["value"], np.float64),
        lengths=np.array(columns["length"], np.int64),
        epochs=np.array(columns["epoch"], np.int64),
        terminated=np.array(columns["terminated"], np.str_) == "1",
        truncated=np.array(columns["truncated"], np.str_) == "1",
    )


class FaultRow(NamedTuple):
    """A row of `faults.csv`."""

    episode: int
    learner: str
    where: str
    dismissed: int  # for how many episodes
    message: str


def read_faults(folder: Path) -> list[FaultRow]:
    """Read the faults that `RunLog` wrote."""
    faults = []
    for episode, learner, where, dismissed, message in _fault_rows(folder):
        faults.append(FaultRow(int(episode), learner, where, int(dismissed), message))
    return faults


@dataclass(frozen=True)
class EvaluationRow:
    """A row of `evaluations.csv`: a few episodes of one learner's greedy policy.

    Mean, min and max are NaN if no episode ended.
    """

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
        return (
            self.steps,
            self.learner,
            self.episodes,
            _or_empty(self.mean),
            _or_empty(self.min),
            _or_empty(self.max),
            self.played,
            self.problem,
        )


def read_evaluations(folder: Path, *, upto: int | None = None) -> list[EvaluationRow]:
    """Read the evaluations of a run, or only those of its first `upto` environment steps."""
    path = folder / "evaluations.csv"
    rows = []
    for cells in _whole_rows(path, EVALUATIONS, _EVALUATION_CELLS):
        steps, learner, episodes, mean, least, most, played, problem = cells
        row = EvaluationRow(
            steps=int(steps),
            learner=learner,
            episodes=int(episodes),
            mean=_or_nan(mean),
            min=_or_nan(least),
            max=_or_nan(most),
            played=int(played),
            problem=problem,
        )
        if not problem and not math.isfinite(row.mean):
            raise _damaged(path, f"a row at step {steps} has the mean {mean!r}")
        if upto is None or row.steps <= upto:
            rows.append(row)
    return rows


def _or_empty(number: float) -> float | str:
    return "" if math.isnan(number) else number


def _or_nan(cell: str) -> float:
    return float(cell) if cell else math.nan


def one_line(message: str) -> str:
    """Return a message as one line that any file can hold.

    It has no control characters and surrogates, and at most LONGEST characters.
    """
    letters = [letter if letter.isprintable() else " " for letter in message[: 10 * LONGEST]]
    line = " ".join("".join(letters).split())
    if len(line) > LONGEST:
        return line[: LONGEST - 4] + " ..."
    return line


def _episode_rows(folder: Path, *, at_least: int, at_most: int | None = None) -> list[list[str]]:
    """Return the rows of the episodes 1, 2, ..., each of which starts where the last one ended.

    A CSV file has no checksum: this is how a lost row is found.
    """
    path = folder / "episodes.csv"
    rows = _whole_rows(path, EPISODES, _EPISODE_CELLS)[:at_most]
    start = 0  # steps before the episode
    for number, row in enumerate(rows, 1):
        episode, steps, _, _, length, *_ = row
        if int(episode) != number:
            raise _damaged(path, f"row {number} is that of episode {episode}")
        if int(steps) != start + int(length):
            why = f"episode {number} has {length} steps, but lasts from step {start} to {steps}"
            raise _damaged(path, why)
        start = int(steps)
    if len(rows) < at_least:
        raise _damaged(path, f"it has {len(rows)} episodes, and the checkpoint has {at_least}")
    return rows


def _fault_rows(folder: Path) -> list[list[str]]:
    return _whole_rows(folder / "faults.csv", FAULTS, _FAULT_CELLS)


def _whole_rows(
    path: Path, header: Sequence[str], cells: Sequence[re.Pattern[str]]
) -> list[list[str]]:
    """Return the rows after the header, without an incomplete last row that a kill left."""
    text = read_file(path, missing=b"").decode("utf-8", "replace")
    whole_lines = text[: text.rfind("\n") + 1]
    if not whole_lines:
        return []
    try:
        first, *rows = csv.reader(io.StringIO(whole_lines, newline=""))
    except csv.Error as error:
        raise _damaged(path, str(error)) from error
    if first != list(header):
        raise _damaged(path, f"its columns must be {', '.join(header)}")
    for number, row in enumerate(rows, 1):
        if len(row) != len(header):
            raise _damaged(path, f"row {number} has {len(row)} columns instead of {len(header)}")
        for name, cell, pattern in zip(header, row, cells, strict=True):
            if not pattern.fullmatch(cell):
                where = f"column {name!r} of row {number}"
                raise _damaged(path, f"{cell[:40]!r} in {where} is not valid")
    return rows


def _damaged(path: Path, why: str) -> SaveFileError:
    message = f"{str(path)!r} must be a complete log of the run, but {why}"
    return SaveFileError(f"{message}: restore an earlier copy of the whole folder.")
