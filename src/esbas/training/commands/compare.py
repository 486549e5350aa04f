"""`esbas compare FOLDER...`: compares trainings on the same task."""

import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.errors import EsbasError, InvalidValueError, require
from esbas.files import file_errors
from esbas.objective import Objective, make_objective
from esbas.reporting import Results
from esbas.reporting.results import read_config
from esbas.training.folder import open_folder
from esbas.training.reports.comparison import ComparedTraining, default_threshold, publish

COMMAND = "esbas compare "
_WRITTEN = (
    "trainings.csv",
    "curves.png",
    "curves.svg",
    "summary.json",
    "report.html",
    "config.json",
)  # removed in this order: config.json identifies the folder


@dataclass(frozen=True)
class Compare:
    """Compare trainings on the same task: a table, and all learning curves in one figure.

    Unfinished trainings are compared by the episodes that they have. Files of an earlier comparison are overwritten.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")]
    """One or more folders that `esbas train` wrote."""
    _: KW_ONLY
    threshold: float | None = None
    """The table shows the steps until the mean of 50 episodes reaches it. Default: 90 % of the way from worst to best mean."""
    out: Path = Path("esbas-compare")
    """The folder for table, figure and report."""
    trust: bool = False
    """Import the modules that the folders name. Imported modules can run any code: docs/safety.md."""


def main(config: Compare) -> None:
    """Run `esbas compare` with these options."""
    require(len(config.folders) > 0, "there is a folder to compare", "esbas compare FOLDER...", folders=[])
    places = [folder.resolve() for folder in config.folders]
    require(len(set(places)) == len(places), "folders are different", folders=[str(folder) for folder in config.folders])
    by_name = len({place.name for place in places}) == len(places)
    named = zip(config.folders, places, strict=True)
    trainings = [
        ComparedTraining(open_folder(folder, trust=config.trust), name=place.name if by_name else str(folder))
        for folder, place in named
    ]
    objective = _common_objective(trainings)
    threshold = default_threshold(trainings, objective) if config.threshold is None else config.threshold
    _clear(config.out)
    words = shlex.join(map(str, config.folders))
    results = Results(config.out, command=COMMAND + words, config={"threshold": config.threshold})
    publish(results, trainings, objective, threshold)


def _common_objective(trainings: Sequence[ComparedTraining]) -> Objective:
    first, *others = trainings
    for other in others:
        for kind, one, two in (
            ("task", first.plan.env_id, other.plan.env_id),
            ("objective", first.plan.objective, other.plan.objective),
        ):
            if one != two:
                message = f"trainings must have the same {kind}, but {first.name!r} has {one!r} and {other.name!r} has {two!r}"
                raise InvalidValueError(f"{message}: compare trainings with the same {kind}")
    return make_objective(first.plan.objective)


def _clear(out: Path) -> None:
    """Remove the files of an earlier comparison; files of other commands stay."""
    try:
        earlier = str(read_config(out)["command"])
    except EsbasError:
        return
    for name in _WRITTEN if earlier.startswith(COMMAND) else ():
        with file_errors(out / name):
            (out / name).unlink(missing_ok=True)
