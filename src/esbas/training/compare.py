"""`esbas.compare`: trainings on the same environment, in one table and one figure."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from esbas._internal import values
from esbas._internal.files import file_errors
from esbas._internal.schema import short
from esbas.errors import EsbasError, InvalidValueError
from esbas.objective import Objective
from esbas.reporting import Results, Table
from esbas.reporting.results import read_config
from esbas.specs.sources import label_of
from esbas.training.reports.comparison import (
    ComparedTraining,
    default_threshold,
    draw,
    notes_on,
    publish,
    readable,
)
from esbas.training.training import Training, load_training

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COMMAND = "esbas compare"
# Removed in this order: config.json, which identifies the folder, is the last one.
_WRITTEN = (
    "trainings.csv",
    "curves.png",
    "curves.svg",
    "summary.json",
    "report.html",
    "config.json",
)


class Comparison:
    """Trainings on the same environment. Created by `esbas.compare`.

    Attributes:
        threshold: the table shows the steps until the mean value of recent episodes reaches it.
        notes: what the numbers mean, as sentences.
        report: the page with the table and the figure; None if no folder was given.
    """

    def __init__(self, trainings: Sequence[ComparedTraining], threshold: float | None) -> None:
        self._trainings = trainings
        self._given_threshold = threshold
        self._objective = _common_objective(trainings)
        if threshold is None:
            self.threshold = default_threshold(trainings, self._objective)
        else:
            self.threshold = values.number("threshold", threshold)
        self.notes = tuple(notes_on(trainings, self._objective, self.threshold))
        self.report: Path | None = None

    @property
    def env(self) -> str:
        """The environment, with its options."""
        return self._trainings[0].plan.config.env_name

    def table(self) -> Table:
        """Return a row per training: its selector, values, steps to the threshold and speed."""
        header, rows = readable(self._trainings, self._objective, self.threshold)
        return Table(header, rows)

    def figure(self) -> "Figure":
        """Draw the learning curves of all trainings, with 95 % bands over runs."""
        return draw(self._trainings, self._objective, self.threshold)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the table, the figure and a report into a folder, and return the report's path.

        Files of an earlier comparison are overwritten; a folder with other results is refused.
        """
        path = values.path("folder", folder)
        _clear(path)
        folders = shlex.join(str(each.folder) for each in self._trainings)
        results = Results(
            path, command=f"{COMMAND} {folders}", config={"threshold": self._given_threshold}
        )
        publish(results, self._trainings, self._objective, self.threshold)
        self.report = path / "report.html"
        return self.report

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self._trainings)
        return f"<Comparison on {self.env}: {names}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def compare(
    *trainings: Training | str | os.PathLike[str],
    threshold: float | None = None,
    out: str | os.PathLike[str] | None = None,
    trust: bool = False,
) -> Comparison:
    """Compare trainings on the same environment.

    Unfinished trainings are compared by their episodes so far.

    Args:
        trainings: trainings, or their folders.
        threshold: the table shows the steps until the mean value of recent episodes reaches it.
            Default: 90 % of the way from the worst to the best mean.
        out: a folder for the table, the figure and a report. Default: none is written.
        trust: import the modules that the folders name. Imported modules can run any code:
            docs/safety.md.
    """
    values.truth("trust", trust)
    if not trainings:
        raise InvalidValueError("Nothing is given to compare: give trainings, or their folders.")
    found = [_opened(each, trust=trust) for each in trainings]
    paths = [each.folder.resolve() for each in found]
    if len(set(paths)) < len(paths):
        raise InvalidValueError(
            f"The trainings must be different, but got {short([str(each) for each in paths])}."
        )
    has_unique_names = len({path.name for path in paths}) == len(paths)
    compared = []
    for training, path in zip(found, paths, strict=True):
        name = path.name if has_unique_names else str(training.folder)
        compared.append(ComparedTraining(training._training, name=name))
    comparison = Comparison(compared, threshold)
    if out is not None:
        comparison.save(out)
    return comparison


def _opened(given: Training | str | os.PathLike[str], *, trust: bool) -> Training:
    if isinstance(given, Training):
        return given
    if not isinstance(given, str | os.PathLike):
        raise InvalidValueError(
            f"`trainings` must be trainings or folders, but got {short(given)}."
        )
    return load_training(given, trust=trust)


def _common_objective(trainings: Sequence[ComparedTraining]) -> Objective:
    """Return the objective of all trainings. They must have the same environment, too."""
    first, *others = trainings
    described = _described(first)
    for other in others:
        for kind, name in _described(other).items():
            if name != described[kind]:
                pair = f"{first.name!r} has {described[kind]!r} and {other.name!r} has {name!r}"
                message = f"Trainings must have the same {kind}, but {pair}"
                raise InvalidValueError(f"{message}: compare trainings with the same {kind}.")
    return first.plan.objective


def _described(training: ComparedTraining) -> dict[str, str]:
    """Return what must be the same in compared trainings."""
    config = training.plan.config
    return {"environment": config.env_name, "objective": label_of(config.objective)}


def _clear(out: Path) -> None:
    """Remove the files of an earlier comparison; files of other commands stay."""
    try:
        earlier = str(read_config(out)["command"])
    except EsbasError:
        return
    if not earlier.startswith(COMMAND):
        return
    for name in _WRITTEN:
        with file_errors(out / name):
            (out / name).unlink(missing_ok=True)
