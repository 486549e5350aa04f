"""`esbas compare FOLDER...`: trainings on one task, side by side, as far as they are."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from esbas.errors import InvalidValueError, require
from esbas.objective import Objective
from esbas.reporting import Results
from esbas.training.comparison import Training, publish, usual_threshold
from esbas.training.folder import open_folder
from esbas.training.plan import OBJECTIVES

COMMAND = "esbas compare "
_WRITTEN = "trainings.csv", "curves.png", "curves.svg", "summary.json", "report.html", "config.json"  # the last one last


@dataclass(frozen=True)
class Compare:
    """Compare trainings on one task: a table, and the learning curves of all in one figure.

    Trainings that are not finished are compared as far as they are. What an earlier comparison wrote is overwritten.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER...")]
    """What `esbas train` wrote to, one or more."""
    _: KW_ONLY
    threshold: float | None = None
    """A mean of 50 episodes; the table tells the steps to it. By default 90 % of the way from the worst to the best one."""
    out: Path = Path("esbas-compare")
    """Where table, figure and report go."""


def main(config: Compare) -> None:
    """Read, compare, write, print."""
    require(len(config.folders) > 0, "there is a folder to compare", folders=[])
    places = [folder.resolve() for folder in config.folders]
    require(len(set(places)) == len(places), "folders are different", folders=[str(folder) for folder in config.folders])
    by_name = len({place.name for place in places}) == len(places)
    named = zip(config.folders, places, strict=True)
    trainings = [Training(open_folder(folder), name=place.name if by_name else str(folder)) for folder, place in named]
    objective = _common_objective(trainings)
    threshold = usual_threshold(trainings, objective) if config.threshold is None else config.threshold
    _clear(config.out)
    words = shlex.join(map(str, config.folders))
    results = Results(config.out, command=COMMAND + words, config={"threshold": config.threshold})
    publish(results, trainings, objective, threshold)


def _common_objective(trainings: Sequence[Training]) -> Objective:
    first, *others = trainings
    for other in others:
        for what, one, two in (
            ("task", first.plan.env_id, other.plan.env_id),
            ("objective", first.plan.objective, other.plan.objective),
        ):
            if one != two:
                told = f"trainings must have one {what} to be compared, but {first.name!r} has {one!r} and {other.name!r} {two!r}"
                raise InvalidValueError(f"{told}: compare those that have the same")
    return OBJECTIVES[first.plan.objective]()


def _clear(out: Path) -> None:
    """Make room for another comparison: what an earlier one wrote goes, what anything else wrote does not."""
    try:
        earlier = str(json.loads((out / "config.json").read_text("utf-8"))["command"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    for name in _WRITTEN if earlier.startswith(COMMAND) else ():
        (out / name).unlink(missing_ok=True)
