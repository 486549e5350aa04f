"""The folder of a training, opened again."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from esbas.errors import EsbasError, SaveFileError
from esbas.training.config import Train
from esbas.training.portfolios.recipe import read_recipe
from esbas.training.runs.plan import Plan

COMMAND = "esbas train "
PORTFOLIO = "portfolio.toml"


@dataclass(frozen=True)
class TrainingFolder:
    """A training: its folder, its options and its plan."""

    folder: Path
    config: Train
    plan: Plan

    @property
    def seeds(self) -> tuple[int, ...]:
        return self.config.seeds


def open_folder(folder: Path, **options: Any) -> TrainingFolder:
    """The training in this folder; `options` are those that do not affect its results, such as `jobs`."""
    where = repr(str(folder))
    try:
        about = json.loads((folder / "config.json").read_text("utf-8"))
        command = str(about["command"])
        if not command.startswith(COMMAND):
            raise SaveFileError(
                f"{where} must be the folder of a training, but another command wrote it: `{about['again']}` continues it"
            )
        config = Train.from_options(command.removeprefix(COMMAND), dict(about["config"]), out=folder, **options)
        recipe = read_recipe((folder / PORTFOLIO).read_text("utf-8"), source=str(folder / PORTFOLIO))
    except EsbasError:
        raise
    except FileNotFoundError as error:
        missing = Path(error.filename).name
        raise SaveFileError(f"{where} must be the folder of a training, but it has no {missing}: check the path") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SaveFileError(f"{where} must be the folder of a training, but its config.json is damaged ({error})") from error
    return TrainingFolder(folder, config, config.plan(recipe))
